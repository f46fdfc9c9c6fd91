//! A run of ordered groups over hosts: the arbiter's homes, and on each host a lease, its holders and their parties.
//!
//! Words, heartbeats and messages between holders are datagrams, which links lose, double and reorder. Words are repeated
//! until a heartbeat tells that they are applied.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use landeck_protocols::hosts::{Detector, HostTiming, Lease};
use landeck_protocols::order::{
    GroupStanding, GroupWord, HolderId, HomeReport, Homes, OrderEntry, OrderMessage, OrderParty,
};
use landeck_simulator::{Events, Time};
use landeck_wire::HostIncarnation;
use landeck_wire::heartbeat::Heartbeat;

use super::clock::HostClock;
use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::Check;
use super::link::Quality;

mod arbiter;
mod checks;
mod faults;
mod held;
mod hosts;
mod setting;
mod traces;

use checks::OrderChecks;
use held::{CopyLog, Held, Request, Trace};

pub(crate) use setting::{Act, OrderSetting, STEPS, Step};

/// The datagrams that a socket holds while nobody reads it.
const SOCKET_DATAGRAMS: usize = 256;
/// The incarnation of the arbiter's daemon.
const ARBITER: HostIncarnation = HostIncarnation(1);

/// The home of a group when the faults end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HomeSight {
    pub(crate) host: u16,
    pub(crate) epoch: u64,
    pub(crate) length: u64,
    /// The entries that are not stable.
    pub(crate) lag: u64,
    /// The holders that count.
    pub(crate) counted: usize,
    /// The holder that made it refuse requests last.
    pub(crate) slow: Option<u16>,
}

/// The result of a run in which all properties held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderReport {
    pub(crate) views: u32,
    /// The changes of a group's home.
    pub(crate) takeovers: u32,
    /// The groups that were lost with their last complete copy.
    pub(crate) losses: u32,
    pub(crate) messages: u32,
    pub(crate) answers: u32,
    /// The holders that lived at the end.
    pub(crate) survivors: u32,
    /// The hosts that ended at a step of the protocol.
    pub(crate) stops: u32,
    /// The messages that holders dropped, for they were of another epoch.
    pub(crate) stale: u64,
    /// The entries of the longest log.
    pub(crate) entries: u64,
    /// The homes of all groups when the faults end; `None` for one without.
    pub(crate) sights: Vec<Option<HomeSight>>,
    pub(crate) hash: u64,
}

/// Runs groups over hosts.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(setting: &OrderSetting) -> Result<OrderReport, ProtocolFailure> {
    let mut world = World::new(setting.clone());
    world.begin();
    let end = setting.length + setting.rest;
    while let Some((at, event)) = world.events.pop() {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        if world.now >= end {
            break;
        }
        world.happen(event);
        if let Some(failure) = world.failure.take() {
            return Err(failure);
        }
    }
    let check = world.at_rest();
    world.check(check);
    world.failure.take().map_or_else(|| Ok(world.report()), Err)
}

/// A message between two holders, with what the driver adds.
#[derive(Clone, Debug)]
struct Packet {
    from: HolderId,
    to: HolderId,
    message: OrderMessage,
    entries: Vec<OrderEntry>,
    log: Option<CopyLog>,
}

/// A datagram.
#[derive(Clone, Debug)]
enum Inbound {
    /// A heartbeat, sealed for one incarnation of the host that is not the arbiter's.
    Beat {
        host: usize,
        sealed_for: u64,
        number: u64,
        heartbeat: Heartbeat,
    },
    /// A host that has begun wants to be admitted.
    Hello {
        host: usize,
        incarnation: u64,
        boot: u128,
    },
    Welcome {
        incarnation: u64,
        number: u64,
        standings: BTreeMap<u32, GroupStanding>,
    },
    Excluded(u64),
    Words(Vec<GroupWord>),
    Register {
        host: usize,
        incarnation: u64,
        group: u32,
    },
    NoProcess {
        host: usize,
        incarnation: u64,
        holder: HolderId,
        group: u32,
    },
    Report {
        host: usize,
        incarnation: u64,
        group: u32,
        epoch: u64,
        report: HomeReport,
    },
    Order(u32, Box<Packet>),
}

#[derive(Clone, Debug)]
enum Event {
    Look { node: usize, generation: u32 },
    Arrive { node: usize, inbound: Inbound },
    Act(Act),
    Start { node: usize, incarnation: u64 },
    Enter { node: usize },
    Send { node: usize },
    Heal,
}

#[derive(Debug)]
struct Node {
    clock: HostClock,
    boot: u128,
    incarnation: u64,
    is_up: bool,
    is_frozen: bool,
    is_paused: bool,
    /// Whether its clock has stood still since it began.
    has_paused: bool,
    inbox: VecDeque<Inbound>,
    generation: u32,
    lease: Option<Lease>,
    /// The number of the last word that it has applied; `None` before its welcome.
    applied: Option<u64>,
    standings: BTreeMap<u32, GroupStanding>,
    held: BTreeMap<u32, Held>,
    /// Whether it takes part in the groups now.
    wants: bool,
    /// The holders that have left, until a word says so.
    leaving: BTreeMap<u32, HolderId>,
}

struct World {
    setting: OrderSetting,
    timing: HostTiming,
    quality: Quality,
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    nodes: Vec<Node>,
    /// The directions in which nothing passes, with the number of their cuts.
    cuts: BTreeMap<(usize, usize), u32>,
    homes: Homes,
    words: Vec<GroupWord>,
    detectors: BTreeMap<usize, Detector>,
    incarnations: u64,
    requests: BTreeMap<(u32, OrderParty, u64), Request>,
    /// The traces of holders that are over.
    traces: Vec<Trace>,
    stops: u32,
    stale: u64,
    sights: Vec<Option<HomeSight>>,
    is_healed: bool,
    checks: OrderChecks,
    failure: Option<ProtocolFailure>,
}

impl World {
    fn new(setting: OrderSetting) -> Self {
        let mut draw = Draw::new(setting.seed);
        let mut node = |host: usize| {
            let offset = draw.time(Duration::ZERO, Duration::from_secs(1_000));
            let (rate, is_fast) = (draw.below(100) as u32, draw.permille(500));
            Node {
                clock: HostClock::new(Duration::ZERO, offset, rate, is_fast),
                boot: 1_000 + host as u128,
                incarnation: 1 + host as u64,
                is_up: true,
                is_frozen: false,
                is_paused: false,
                has_paused: false,
                inbox: VecDeque::new(),
                generation: 0,
                lease: None,
                applied: (host == 0).then_some(0),
                standings: BTreeMap::new(),
                held: BTreeMap::new(),
                wants: false,
                leaving: BTreeMap::new(),
            }
        };
        let nodes: Vec<Node> = (0..setting.hosts).map(&mut node).collect();
        let quality = Quality {
            loss_permille: setting.loss_permille,
            twice_permille: setting.twice_permille,
            delay_min: Duration::from_micros(100),
            delay_max: setting.delay_max,
        };
        Self {
            timing: HostTiming::new(setting.timeout),
            setting,
            quality,
            draw,
            events: Events::default(),
            now: Duration::ZERO,
            log: EventLog::default(),
            incarnations: nodes.len() as u64,
            nodes,
            cuts: BTreeMap::new(),
            homes: Homes::default(),
            words: Vec::new(),
            detectors: BTreeMap::new(),
            requests: BTreeMap::new(),
            traces: Vec::new(),
            stops: 0,
            stale: 0,
            sights: Vec::new(),
            is_healed: false,
            checks: OrderChecks::default(),
            failure: None,
        }
    }

    fn begin(&mut self) {
        let (late, within) = self.setting.late_hosts;
        let first_late = self.setting.hosts - late.min(self.setting.hosts - 2);
        for node in 0..self.nodes.len() {
            self.start_lease(node);
            self.plan_look(node);
            self.plan_send(node);
            let is_late = node >= first_late;
            let alone = if node == 1 { Duration::ZERO } else { self.setting.first_alone };
            let enter = if is_late { self.draw.time(alone, alone + within) } else { alone };
            if node > 0 || self.setting.does_arbiter_hold {
                self.plan(enter, Event::Enter { node });
            }
        }
        for (at, act) in self.setting.acts.clone() {
            self.plan(at, Event::Act(act));
        }
        self.plan(self.setting.length, Event::Heal);
    }

    fn plan(&mut self, at: Duration, event: Event) {
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    fn note(&mut self, event: String) {
        self.log.note(self.now, event);
    }

    fn check(&mut self, check: Check) {
        if let (Err((property, text)), None) = (check, &self.failure) {
            self.failure = Some(self.log.failure(self.setting.seed, property, text));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Look { node, generation } => {
                let current = &self.nodes[node];
                if current.generation == generation && self.runs(node) {
                    self.look(node, true);
                }
            }
            Event::Arrive { node, inbound } => self.arrive(node, inbound),
            Event::Act(act) => self.act(act),
            Event::Start { node, incarnation } => {
                if self.nodes[node].incarnation == incarnation {
                    self.start(node);
                }
            }
            Event::Enter { node } => self.enter(node),
            Event::Send { node } => self.party_sends(node),
            Event::Heal => self.heal(),
        }
    }

    fn local(&self, node: usize) -> Duration {
        self.nodes[node].clock.shows(self.now)
    }

    fn runs(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.is_up && !node.is_frozen && !node.is_paused
    }

    fn passes(&self, from: usize, to: usize) -> bool {
        self.cuts.get(&(from, to)).is_none_or(|cuts| *cuts == 0)
    }

    /// Sends a datagram from one host to another. A host's own arrive at once.
    fn post(&mut self, from: usize, to: usize, inbound: Inbound) {
        if from == to {
            return self.plan(self.now, Event::Arrive { node: to, inbound });
        }
        if !self.passes(from, to) {
            return;
        }
        for at in self.quality.datagram(self.now, &mut self.draw) {
            self.plan(at, Event::Arrive { node: to, inbound: inbound.clone() });
        }
    }

    fn arrive(&mut self, node: usize, inbound: Inbound) {
        let current = &mut self.nodes[node];
        if !current.is_up || current.is_paused || current.inbox.len() >= SOCKET_DATAGRAMS {
            return;
        }
        current.inbox.push_back(inbound);
        if !current.is_frozen {
            self.drain(node);
        }
    }

    fn drain(&mut self, node: usize) {
        while self.runs(node)
            && let Some(inbound) = self.nodes[node].inbox.pop_front()
        {
            match inbound {
                Inbound::Beat { host, sealed_for, number, heartbeat } => match node {
                    0 => self.heard_host(host, sealed_for, number, &heartbeat),
                    _ => self.heard_arbiter(node, sealed_for, number, &heartbeat),
                },
                Inbound::Hello { host, incarnation, boot } => self.admit(host, incarnation, boot),
                Inbound::Welcome { incarnation, number, standings } => {
                    self.welcomed(node, incarnation, (number, standings));
                }
                Inbound::Excluded(incarnation) => self.excluded(node, incarnation),
                Inbound::Words(words) => self.take_words(node, &words),
                Inbound::Register { host, incarnation, group } => {
                    self.register(host, incarnation, group);
                }
                Inbound::NoProcess { host, incarnation, holder, group } => {
                    self.left(host, incarnation, (group, holder));
                }
                Inbound::Report { host, incarnation, group, epoch, report } => {
                    self.reported((host, incarnation), (group, epoch), report);
                }
                Inbound::Order(group, packet) => self.take_packet(node, group, *packet),
            }
        }
    }

    fn report(&self) -> OrderReport {
        let survivors = self.nodes.iter().map(|node| node.held.len() as u32).sum();
        let lengths = self.nodes.iter().flat_map(|node| node.held.values().map(|it| it.log.len()));
        OrderReport {
            views: self.checks.views,
            takeovers: self.checks.takeovers,
            losses: self.checks.losses,
            messages: self.checks.messages,
            answers: self.checks.answers,
            survivors,
            stops: self.stops,
            stale: self.stale,
            entries: lengths.max().unwrap_or(0),
            sights: self.sights.clone(),
            hash: self.log.hash(),
        }
    }
}
