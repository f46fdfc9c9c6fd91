//! A run of several hosts: the arbiter with its detectors, and a lease and a copy of the words on each other host.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use landeck_protocols::hosts::{
    Arbiter, ArbiterOutput, Detector, DetectorOutput, FollowerOutput, HostEnd, HostSight,
    HostTiming, Lease, LeaseOutput, NumberBlock, NumbersError, Snapshot, WordFollower,
};
use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::word::{HostEntry, HostPlace, LaterProcess, ProcessEnd, Word};
use landeck_wire::{HostIncarnation, HostNumber, JobId, ProcessId, SegmentId};

use super::clock::HostClock;
use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{ArbiterLook, Check, HostChecks, Trouble, ensure};
use super::hosts_setting::HostsSetting;
use super::link::{Quality, TcpStream};
use landeck_simulator::{Events, Time};

mod arbiter;
mod faults;
mod runs;
mod trunks;

/// The datagrams that a socket holds while nobody reads it.
const SOCKET_DATAGRAMS: usize = 64;
/// A daemon that is not admitted asks again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The incarnation of the arbiter's daemon.
const ARBITER: HostIncarnation = HostIncarnation(1);
/// A driver's look is late by less than this.
const LATENESS: Duration = Duration::from_millis(2);

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostsReport {
    /// The words that were given.
    pub(crate) words: usize,
    /// The hosts that were called lost because they were silent.
    pub(crate) losses: u64,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

/// Runs several hosts.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(setting: &HostsSetting) -> Result<HostsReport, ProtocolFailure> {
    let mut world = World::new(*setting);
    world.begin();
    let end = setting.length + world.rest();
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
    match world.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(HostsReport {
            words: world.checks.words.len(),
            losses: world.checks.losses,
            hash: world.log.hash(),
        }),
    }
}

/// A message of a host to the arbiter.
#[derive(Clone, Debug)]
enum Up {
    Hello(HostEntry, u128, u32),
    Ended(HostIncarnation, ProcessId, ProcessEnd),
    Came(HostIncarnation, ProcessId),
    Returned(HostIncarnation, ProcessId),
    Moved(HostIncarnation, SocketAddr),
    Resend(HostIncarnation),
    Numbers(HostIncarnation, JobId, u64),
    EndJob(JobId, u8),
    PartAdded(HostIncarnation, JobId),
    PartOver(HostIncarnation, JobId),
    /// The only part of a host whose daemon has started again.
    PartKept(HostIncarnation, JobId),
    Bye(HostIncarnation),
}

/// A message of the arbiter to a host.
#[derive(Clone, Debug)]
enum Down {
    Welcome(Snapshot),
    Word(Word),
    Excluded(HostIncarnation),
    Block(u64, NumberBlock),
}

/// Something in a socket.
#[derive(Clone, Debug)]
enum Inbound {
    /// A heartbeat. Its seal is that of one run of one incarnation of the host.
    Beat {
        host: usize,
        sealed_for: (u64, u32),
        number: u64,
        heartbeat: Heartbeat,
    },
    Up {
        host: usize,
        epoch: u32,
        message: Up,
    },
    Down {
        epoch: u32,
        message: Down,
    },
    KernelAnswer {
        host: usize,
        incarnation: HostIncarnation,
        at: Duration,
    },
}

#[derive(Clone, Debug)]
enum Event {
    Look {
        node: usize,
        generation: u32,
    },
    Arrive {
        node: usize,
        inbound: Inbound,
    },
    Attempt {
        host: usize,
        is_up: bool,
        epoch: u32,
    },
    Probe {
        host: usize,
    },
    Hello {
        node: usize,
        incarnation: u64,
    },
    ProcessEnds {
        node: usize,
    },
    /// The current job is over for its conductor, and the next one begins.
    JobTurns,
    /// A host has the part of this job next.
    PartTurns {
        node: usize,
        job: u64,
    },
    Fault(Fault),
    Repair(Fault, usize),
    Start {
        node: usize,
        incarnation: u64,
    },
    /// The keeper of a killed daemon starts it again, or the lease is over before that, and it ends the processes.
    StartAgain {
        node: usize,
        incarnation: u64,
        is_in_time: bool,
    },
    Heal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Cut,
    CutUp,
    CutDown,
    Freeze,
    Pause,
    Restart,
    Reset,
    Kill,
    /// The daemon of the arbiter is killed, and started again.
    KillArbiter,
}

#[derive(Debug)]
struct Node {
    clock: HostClock,
    boot: u128,
    incarnation: u64,
    /// The run of its daemon within the incarnation.
    run: u32,
    /// Whether its daemon is there.
    is_up: bool,
    is_frozen: bool,
    is_paused: bool,
    /// Whether the processes of this host's part run.
    runs: bool,
    /// The job of this host's part.
    job: u64,
    inbox: VecDeque<Inbound>,
    generation: u32,
    lease: Option<Lease>,
    /// From when the lease counts, by the host's clock: when the incarnation began, since it has asked later, or when a run
    /// of its daemon has sent what the arbiter has answered last.
    leased_from: Duration,
    /// Since when its daemon looks, which has waited for its welcome.
    looks_from: Duration,
    follower: Option<WordFollower>,
    /// The reports of the host on its processes.
    reports: Vec<Up>,
    /// The slots whose processes it has reported.
    slots: u32,
    /// The processes that are away, and those that have come or returned.
    away: Vec<ProcessId>,
    back: Vec<ProcessId>,
    request: u64,
    /// The job that it needs numbers for.
    request_job: u64,
    is_request_open: bool,
    trouble: Trouble,
}

#[derive(Debug, Default)]
struct Trunk {
    is_cut_up: bool,
    is_cut_down: bool,
    up: TcpStream<Up>,
    down: TcpStream<Down>,
}

struct World {
    setting: HostsSetting,
    timing: HostTiming,
    quality: Quality,
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    nodes: Vec<Node>,
    /// The trunk of each host; that of the arbiter's own host is not used.
    trunks: Vec<Trunk>,
    arbiter: Arbiter,
    /// The job that runs.
    job: u64,
    detectors: BTreeMap<usize, Detector>,
    /// The detectors in the record: heartbeats leave without it.
    recorded: BTreeMap<usize, Detector>,
    /// The runs of the hosts' daemons, as far as the arbiter has heard.
    runs: Vec<u32>,
    incarnations: u64,
    /// Since when the arbiter looks punctually.
    punctual_since: Duration,
    is_healed: bool,
    checks: HostChecks,
    failure: Option<ProtocolFailure>,
}

/// The segment of a job's part in an incarnation of a host.
fn segment(incarnation: HostIncarnation, job: JobId) -> SegmentId {
    SegmentId(job.0 << 32 | incarnation.0)
}

fn entry(host: usize, incarnation: u64) -> HostEntry {
    HostEntry {
        host: HostNumber(host as u16),
        incarnation: HostIncarnation(incarnation),
        name: format!("h{host}"),
        key: [0; 32],
        addresses: Vec::new(),
        cores: 1,
        place: HostPlace::default(),
    }
}

impl World {
    fn new(setting: HostsSetting) -> Self {
        let mut draw = Draw::new(setting.seed);
        let mut node = |host: usize| {
            let offset = draw.time(Duration::ZERO, Duration::from_secs(100_000));
            Node {
                clock: HostClock::new(
                    Duration::ZERO,
                    offset,
                    draw.below(100) as u32,
                    draw.permille(500),
                ),
                boot: 1_000 + host as u128,
                incarnation: 1 + host as u64,
                run: 0,
                is_up: true,
                is_frozen: false,
                is_paused: false,
                runs: true,
                job: 1,
                inbox: VecDeque::new(),
                generation: 0,
                lease: None,
                leased_from: Duration::ZERO,
                looks_from: Duration::ZERO,
                follower: None,
                reports: Vec::new(),
                slots: 0,
                away: Vec::new(),
                back: Vec::new(),
                request: 0,
                request_job: 0,
                is_request_open: false,
                trouble: Trouble { incarnation: 1 + host as u64, ..Trouble::default() },
            }
        };
        let nodes: Vec<Node> = (0..setting.hosts).map(&mut node).collect();
        let quality = Quality {
            loss_permille: setting.loss_permille,
            twice_permille: setting.twice_permille,
            delay_min: Duration::from_micros(50),
            delay_max: setting.delay_max,
        };
        let (arbiter, first) = Arbiter::new(entry(0, 1));
        let mut world = Self {
            setting,
            timing: HostTiming::new(setting.timeout),
            quality,
            draw,
            events: Events::default(),
            now: Duration::ZERO,
            log: EventLog::default(),
            trunks: (0..nodes.len()).map(|_| Trunk::default()).collect(),
            runs: vec![0; nodes.len()],
            incarnations: nodes.len() as u64,
            nodes,
            arbiter,
            job: 1,
            detectors: BTreeMap::new(),
            recorded: BTreeMap::new(),
            punctual_since: Duration::ZERO,
            is_healed: false,
            checks: HostChecks::default(),
            failure: None,
        };
        world.carry_out(first);
        world
    }

    /// The time without faults at the end: long enough for TCP's retries and for every host to return.
    fn rest(&self) -> Duration {
        4 * self.timing.gone_after() + Duration::from_secs(120)
    }

    fn begin(&mut self) {
        self.add_part(0, HostIncarnation(1), JobId(1));
        self.plan_job_turn();
        for node in 0..self.nodes.len() {
            self.plan_look(node);
            let mean = self.setting.process_ends;
            let wait = self.draw.about(mean);
            self.plan(self.now + wait, Event::ProcessEnds { node });
            if node > 0 {
                let incarnation = self.nodes[node].incarnation;
                self.plan(self.now, Event::Hello { node, incarnation });
                self.plan(self.now, Event::Probe { host: node });
            }
        }
        let rates = self.setting.faults;
        let faults = [
            (Fault::Cut, rates.cut),
            (Fault::CutUp, rates.one_way_cut),
            (Fault::CutDown, rates.one_way_cut),
            (Fault::Freeze, rates.freeze),
            (Fault::Pause, rates.pause),
            (Fault::Restart, rates.restart),
            (Fault::Reset, rates.reset),
            (Fault::Kill, rates.kill),
            (Fault::KillArbiter, rates.kill_arbiter),
        ];
        for (fault, mean) in faults {
            self.plan_fault(fault, mean);
        }
        self.plan(self.setting.length, Event::Heal);
    }

    fn plan(&mut self, at: Duration, event: Event) {
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    fn plan_fault(&mut self, fault: Fault, mean: Duration) {
        if !mean.is_zero() {
            let wait = self.draw.about(mean);
            self.plan(self.now + wait, Event::Fault(fault));
        }
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
                if current.generation == generation && !current.is_frozen && !current.is_paused {
                    self.look(node, true);
                }
            }
            Event::Arrive { node, inbound } => self.arrive(node, inbound),
            Event::Attempt { host, is_up, epoch } => self.attempt(host, is_up, epoch),
            Event::Probe { host } => self.probe(host),
            Event::Hello { node, incarnation } => {
                let current = &self.nodes[node];
                let is_new = current.is_up && current.follower.is_none();
                if current.incarnation == incarnation && is_new {
                    self.hello(node);
                    self.plan(self.now + ASK_AGAIN, Event::Hello { node, incarnation });
                }
            }
            Event::ProcessEnds { node } => self.process_ends(node),
            Event::JobTurns => self.job_turns(),
            Event::PartTurns { node, job } => self.part_turns(node, job),
            Event::Fault(fault) => self.fault(fault),
            Event::Repair(fault, node) => self.repair(fault, node),
            Event::Start { node, incarnation } => {
                if self.nodes[node].incarnation == incarnation {
                    self.start(node);
                }
            }
            Event::StartAgain { node, incarnation, is_in_time } => {
                let current = &self.nodes[node];
                let is_it = current.incarnation == incarnation && !current.is_up && current.runs;
                match is_in_time {
                    _ if !is_it => {}
                    true => self.start_again(node),
                    false => self.end_without_daemon(node),
                }
            }
            Event::Heal => self.heal(),
        }
    }

    // ---- the hosts' daemons

    fn local(&self, node: usize) -> Duration {
        self.nodes[node].clock.shows(self.now)
    }

    fn plan_look(&mut self, node: usize) {
        let local = self.local(node);
        let mut next = local + self.timing.interval();
        if node == 0 {
            let looks = self.detectors.values().filter_map(Detector::next_look);
            // A daemon has no other reason to look.
            next = looks.min().unwrap_or(next).max(local);
        } else if let Some(lease) = &self.nodes[node].lease {
            next = lease.next_look().map_or(next, |look| look.max(local).min(next));
        }
        let late = self.draw.time(Duration::ZERO, LATENESS);
        let at = self.nodes[node].clock.moment_of(next, self.now) + late;
        self.nodes[node].generation += 1;
        let generation = self.nodes[node].generation;
        self.plan(at, Event::Look { node, generation });
    }

    fn look(&mut self, node: usize, drained: bool) {
        if node == 0 {
            self.look_arbiter(drained);
        } else {
            self.look_host(node, drained);
        }
        self.plan_look(node);
    }

    fn look_arbiter(&mut self, drained: bool) {
        let (local, last) = (self.local(0), self.arbiter.last());
        for host in 1..self.nodes.len() {
            let Some(detector) = self.detectors.get_mut(&host) else { continue };
            let outputs = detector.look(local, drained, last);
            self.judge(host, outputs, true);
            let Some(detector) = self.detectors.get(&host) else { continue };
            let watched = (host, detector.incarnation());
            let renewed_ago = local.saturating_sub(detector.renewed());
            let look =
                ArbiterLook { now: self.now, renewed_ago, punctual_since: self.punctual_since };
            let (trouble, delay) = (self.nodes[host].trouble, self.setting.delay_max);
            let is_silent =
                detector.sight() == HostSight::DaemonSilent && !self.nodes[host].is_frozen;
            let check = self.checks.is_in_time(watched, look, trouble, self.timing, delay);
            self.check(check);
            if is_silent {
                let check = self.checks.is_silent(host, look, trouble, self.timing, delay);
                self.check(check);
            }
        }
    }

    fn look_host(&mut self, node: usize, drained: bool) {
        let local = self.local(node);
        let current = &mut self.nodes[node];
        let applied = current.follower.as_ref().map_or(0, WordFollower::applied);
        let Some(lease) = &mut current.lease else { return };
        let outputs = lease.look(local, drained, applied);
        self.check_lease(node, local);
        let current = &mut self.nodes[node];
        let Some(lease) = &mut current.lease else { return };
        let own = HostIncarnation(current.incarnation);
        if lease.is_valid(local) {
            let check = self.checks.believes(own, self.now, current.trouble, self.timing);
            self.check(check);
        }
        for output in outputs {
            match output {
                LeaseOutput::Send { number, heartbeat } => {
                    let sealed_for = (self.nodes[node].incarnation, self.nodes[node].run);
                    self.beat(
                        0,
                        self.trunks[node].is_cut_up,
                        Inbound::Beat { host: node, sealed_for, number, heartbeat },
                    );
                }
                LeaseOutput::End(end) => {
                    self.note(format!("host {node} ends its part: {end:?}"));
                    let does_arbiter_stand = self.nodes[0].is_frozen || self.nodes[0].is_paused;
                    let (trouble, delay) = (self.nodes[node].trouble, self.setting.delay_max);
                    if let (HostEnd::Expired { .. }, false, Some(welcomed)) =
                        (end, does_arbiter_stand, trouble.welcomed)
                    {
                        let since = trouble.ended.max(self.punctual_since).max(welcomed);
                        let look = ArbiterLook {
                            now: self.now,
                            renewed_ago: Duration::ZERO,
                            punctual_since: since,
                        };
                        let check =
                            self.checks.expired((node, own), look, trouble, self.timing, delay);
                        self.check(check);
                    }
                    self.nodes[node].runs = false;
                    self.send_up(node, Up::Bye(own));
                    self.start_later(node);
                }
            }
        }
    }

    fn beat(&mut self, to: usize, is_cut: bool, inbound: Inbound) {
        if is_cut {
            return;
        }
        for at in self.quality.datagram(self.now, &mut self.draw) {
            self.plan(at, Event::Arrive { node: to, inbound: inbound.clone() });
        }
    }

    fn arrive(&mut self, node: usize, inbound: Inbound) {
        let current = &mut self.nodes[node];
        let is_datagram = matches!(inbound, Inbound::Beat { .. });
        let is_full = is_datagram && current.inbox.len() >= SOCKET_DATAGRAMS;
        if !current.is_up || (current.is_paused && is_datagram) || is_full {
            return;
        }
        current.inbox.push_back(inbound);
        if !current.is_frozen && !current.is_paused {
            self.drain(node);
        }
    }

    fn drain(&mut self, node: usize) {
        while let Some(inbound) = self.nodes[node].inbox.pop_front() {
            match inbound {
                Inbound::Beat { host, sealed_for, number, heartbeat } if node == 0 => {
                    // The arbiter has no secret yet of a run that it has not heard of.
                    if sealed_for.1 <= self.runs[host] {
                        self.heard_host(host, number, &heartbeat);
                    }
                }
                Inbound::Beat { sealed_for, number, heartbeat, .. } => {
                    if (self.nodes[node].incarnation, self.nodes[node].run) == sealed_for {
                        self.heard_arbiter(node, number, &heartbeat);
                    }
                }
                Inbound::Up { host, epoch, message } => {
                    if self.trunks[host].up.epoch == epoch {
                        self.hear_up(host, message);
                    }
                }
                Inbound::Down { epoch, message } => {
                    if self.trunks[node].down.epoch == epoch {
                        self.hear_down(node, message);
                    }
                }
                Inbound::KernelAnswer { host, incarnation, at } => {
                    if let Some(detector) = self.detectors.get_mut(&host) {
                        detector.kernel_answers(incarnation, at);
                    }
                }
            }
        }
    }

    fn heard_arbiter(&mut self, node: usize, number: u64, heartbeat: &Heartbeat) {
        let current = &mut self.nodes[node];
        let Some(lease) = &mut current.lease else { return };
        lease.hear(number, heartbeat);
        let own = HostIncarnation(current.incarnation);
        let resend =
            current.follower.as_mut().and_then(|follower| follower.arbiter_is_at(heartbeat.word));
        if resend.is_some() {
            self.send_up(node, Up::Resend(own));
        }
    }

    fn hear_down(&mut self, node: usize, message: Down) {
        let own = HostIncarnation(self.nodes[node].incarnation);
        match message {
            Down::Welcome(snapshot) => {
                if self.nodes[node].follower.is_none() {
                    let check = self.checks.welcomed(node, &snapshot);
                    self.check(check);
                    self.welcomed(node, own, snapshot);
                }
            }
            Down::Word(word) => self.apply(node, word),
            Down::Excluded(incarnation) => {
                let is_own = incarnation == own;
                match &mut self.nodes[node].lease {
                    Some(lease) => lease.excluded(incarnation),
                    None if is_own => self.start_later(node),
                    None => {}
                }
                if is_own {
                    self.plan_look(node);
                }
            }
            Down::Block(request, block) => {
                let current = &mut self.nodes[node];
                if current.request == request {
                    current.is_request_open = false;
                    let asker = ((own, current.run), (current.request_job, request));
                    let check = self.checks.block(asker, block);
                    self.check(check);
                }
            }
        }
    }

    fn apply(&mut self, node: usize, word: Word) {
        let current = &mut self.nodes[node];
        let Some(follower) = &mut current.follower else { return };
        let before = follower.applied();
        let outputs = follower.take(word);
        let after = follower.applied();
        let (own, run) = (HostIncarnation(current.incarnation), current.run);
        let check = self.checks.applied(node, before, after, &outputs);
        self.check(check);
        if node == 0 {
            self.arbiter.applied(HostNumber(0), own, run, after);
        }
        if outputs.iter().any(|output| matches!(output, FollowerOutput::Resend { .. })) {
            self.send_up(node, Up::Resend(own));
        }
    }

    // ---- the arbiter

    fn hear_up(&mut self, from: usize, message: Up) {
        let host = HostNumber(from as u16);
        let local = self.local(0);
        let outputs = match message {
            Up::Hello(entry, boot, run) => return self.hear_hello(from, entry, boot, run),
            Up::Ended(incarnation, process, end) => {
                self.arbiter.process_ended(host, incarnation, process, end)
            }
            Up::Came(incarnation, process) => {
                self.arbiter.process_came(host, incarnation, process, LaterProcess::Guest)
            }
            Up::Returned(incarnation, process) => {
                self.arbiter.process_returned(host, incarnation, process)
            }
            Up::Moved(incarnation, address) => {
                self.arbiter.host_moved(host, incarnation, (vec![address], HostPlace::default()))
            }
            Up::Resend(incarnation) => self.arbiter.trunk_renewed(host, incarnation),
            Up::EndJob(job, code) => {
                self.arbiter.end_job(job, code, "a process asked for it".into())
            }
            Up::PartAdded(incarnation, job) => return self.add_part(from, incarnation, job),
            Up::PartOver(incarnation, job) => {
                self.checks.part_over(job, incarnation);
                self.arbiter.remove_part(segment(incarnation, job), host, incarnation)
            }
            Up::PartKept(incarnation, job) => {
                self.checks.part_kept(job, incarnation);
                self.arbiter.keep_parts(host, incarnation, &[segment(incarnation, job)])
            }
            Up::Numbers(incarnation, job, request) => {
                let block = self.arbiter.lease_numbers(job, host, incarnation, request);
                match block {
                    Ok(block) => self.send_down(from, Down::Block(request, block)),
                    // Nobody needs numbers of a job that is over.
                    Err(NumbersError::Over { .. }) => self.nodes[from].is_request_open = false,
                    Err(_) => {}
                }
                return;
            }
            Up::Bye(incarnation) => {
                if let Some(detector) = self.detectors.get_mut(&from) {
                    let outputs = detector.said_gone(incarnation, local);
                    self.judge(from, outputs, false);
                }
                return;
            }
        };
        self.carry_out(outputs);
    }

    fn hear_hello(&mut self, from: usize, entry: HostEntry, boot: u128, run: u32) {
        self.runs[from] = run;
        self.arbiter.restarted(HostNumber(from as u16), entry.incarnation, run);
        let local = self.local(0);
        if let Some(detector) = self.detectors.get_mut(&from) {
            let outputs = detector.rebooted(boot, local);
            self.judge(from, outputs, false);
        }
        let incarnation = entry.incarnation;
        match self.arbiter.admit(entry) {
            Ok(outputs) => {
                let own = (ARBITER, self.nodes[0].boot);
                let host = HostNumber(from as u16);
                self.nodes[from].trouble.admitted = self.now;
                let detector = match self.detectors.get(&from) {
                    Some(known) if known.incarnation() == incarnation => known.clone(),
                    Some(known) => known.succeeded_by(incarnation, local),
                    None => Detector::new(self.timing, host, incarnation, own, local),
                };
                self.detectors.insert(from, detector);
                self.add_part(from, incarnation, JobId(self.nodes[from].job));
                self.carry_out(outputs);
            }
            Err(landeck_protocols::hosts::AdmissionError::Excluded { .. }) => {
                self.send_down(from, Down::Excluded(incarnation));
            }
            Err(landeck_protocols::hosts::AdmissionError::StillThere { .. }) => {}
        }
    }

    /// Carries out what a detector says.
    fn judge(&mut self, host: usize, outputs: Vec<DetectorOutput>, by_silence: bool) {
        let number = HostNumber(host as u16);
        for output in outputs {
            match output {
                DetectorOutput::Send { number, heartbeat } => {
                    let sealed_for = (self.detectors[&host].incarnation().0, self.runs[host]);
                    let inbound = Inbound::Beat { host, sealed_for, number, heartbeat };
                    self.beat(host, self.trunks[host].is_cut_down, inbound);
                }
                DetectorOutput::Lost { incarnation, silent } => {
                    self.note(format!("host {host} ({incarnation}) is lost after {silent:?}"));
                    let (trouble, delay) = (self.nodes[host].trouble, self.setting.delay_max);
                    let check = match by_silence {
                        true => self.checks.lost(
                            number,
                            incarnation,
                            self.now,
                            trouble,
                            self.timing,
                            delay,
                        ),
                        false => {
                            self.checks.lost_otherwise(incarnation, self.now);
                            Ok(())
                        }
                    };
                    self.check(check);
                    self.check_belief(host, incarnation);
                    let words =
                        self.arbiter.host_lost(number, incarnation, silent.as_millis() as u64);
                    self.carry_out(words);
                }
                DetectorOutput::Gone { incarnation } => {
                    self.note(format!("host {host} ({incarnation}) is gone"));
                    let current = &self.nodes[host];
                    let is_awake = !current.is_frozen && !current.is_paused;
                    let is_same = current.incarnation == incarnation.0 && current.lease.is_some();
                    let runs = current.runs && is_same && is_awake;
                    let check =
                        self.checks.gone(incarnation, self.now, runs, current.trouble, self.timing);
                    self.check(check);
                    self.checks.parts_gone(incarnation);
                    let words = self.arbiter.host_gone(number, incarnation);
                    self.carry_out(words);
                }
                DetectorOutput::Exclude { incarnation } => {
                    self.send_down(host, Down::Excluded(incarnation));
                }
            }
        }
    }

    /// Checks that a host that has just been called lost does not believe that its view is valid.
    fn check_belief(&mut self, host: usize, incarnation: HostIncarnation) {
        let local = self.local(host);
        let current = &self.nodes[host];
        let is_valid = current.lease.as_ref().is_some_and(|lease| lease.is_valid(local));
        if is_valid && current.incarnation == incarnation.0 && current.runs {
            // The clock of a paused host stands still until it goes on.
            let paused = if current.is_paused { self.now } else { current.trouble.paused };
            let trouble = Trouble { paused, ..current.trouble };
            let check = self.checks.believes(incarnation, self.now, trouble, self.timing);
            self.check(check);
        }
    }

    fn carry_out(&mut self, outputs: Vec<ArbiterOutput>) {
        self.recorded.clone_from(&self.detectors);
        for output in outputs {
            match output {
                ArbiterOutput::Send { to, word } => {
                    self.note(format!("to host {}: {word:?}", to.0));
                    let check = self.checks.word_sent(&word);
                    self.check(check);
                    match to {
                        HostNumber::ARBITER => self.apply(0, word),
                        HostNumber(host) => self.send_down(host.into(), Down::Word(word)),
                    }
                }
                ArbiterOutput::Welcome { to: HostNumber::ARBITER, snapshot } => {
                    self.nodes[0].follower = Some(WordFollower::new(snapshot));
                }
                ArbiterOutput::Welcome { to, snapshot } => {
                    let host = usize::from(to.0);
                    let incarnation = self.detectors.get(&host).map(Detector::incarnation);
                    let known = incarnation.map(|incarnation| (incarnation, self.runs[host]));
                    let check = self.checks.welcome_sent(host, known);
                    self.check(check);
                    self.send_down(to.0.into(), Down::Welcome(snapshot));
                }
                ArbiterOutput::Exclude { to, incarnation } => {
                    self.send_down(to.0.into(), Down::Excluded(incarnation));
                }
            }
        }
    }

    /// The arbiter learns of a host's part of a job.
    fn add_part(&mut self, host: usize, incarnation: HostIncarnation, job: JobId) {
        let number = HostNumber(host as u16);
        if self.arbiter.is_living(number, incarnation) {
            self.checks.part_added(job, incarnation);
        }
        self.arbiter.add_part(job, segment(incarnation, job), number, incarnation);
    }

    /// After the time of rest every host takes part, has all words, and the arbiter keeps none.
    fn at_rest(&self) -> Check {
        for (host, node) in self.nodes.iter().enumerate() {
            let expected = self.arbiter.snapshot();
            let found = node.follower.as_ref().map(WordFollower::snapshot);
            ensure(found.as_ref() == Some(&expected), "every host learns all words", || {
                format!(
                    "host {host} is at {:?} of {}",
                    found.map(|all| all.number),
                    expected.number
                )
            })?;
            ensure(!node.is_request_open, "a block of numbers comes", || {
                format!("host {host} has no answer to request {}", node.request)
            })?;
            let local = node.clock.shows(self.now);
            let is_valid = node.lease.as_ref().is_some_and(|lease| lease.is_valid(local));
            ensure(host == 0 || is_valid, "a host that answers has a valid view", || {
                format!("host {host} holds at the end")
            })?;
        }
        let known: Vec<JobId> = self.arbiter.jobs().collect();
        ensure(known == [JobId(self.job)], "jobs that are over are forgotten", || {
            format!("the arbiter knows the jobs {known:?}, and {} runs", self.job)
        })?;
        ensure(self.arbiter.kept() == 0, "words are forgotten", || {
            format!("the arbiter keeps {} words", self.arbiter.kept())
        })
    }
}
