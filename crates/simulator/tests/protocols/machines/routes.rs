//! A run of pairs of hosts whose connections pass gateways: steps are cut and heal, gateways stop, return and are full.
//!
//! The host that dials names every gateway on the route, as the daemon does. It tries its ways in order, leaves out those
//! that have failed a moment ago while there is another one, and pauses after each round. A connection ends when one of its
//! steps or gateways does. Both ends see that later, each in its own time, and what was on its way is lost.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use landeck_channel::pair::{LaneError, Pair, Positions};
use landeck_machine::routes::Routes;
use landeck_wire::HostNumber;

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use super::route_checks::{self, BROKEN_TIME, Noted, is_noted};
use super::route_setting::{Answer, DrawnMachine, Faults, any_address, network_of};
use landeck_simulator::{Events, Time};

/// A host waits for each answer on the way for so long.
const DIAL_TIME: Duration = Duration::from_millis(3_500);
/// The pauses of a host between its rounds.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// An end sees within this time that its connection has gone.
const NOTICE_MAX: Duration = Duration::from_secs(4);
/// The time in which faults come and go, that in which those that are there stay, and the time of rest.
const FAULTY: Duration = Duration::from_secs(60);
const HELD: Duration = Duration::from_secs(440);
const REST: Duration = Duration::from_secs(40);
/// Each round of a host finds a way that is well, or one more step that is broken. It takes up to this time.
const ROUND: Duration = Duration::from_secs(30);
/// A pair is connected within this time of the end of all faults.
const HEALED_MAX: Duration = Duration::from_secs(25);
/// The checkers look after this time; what was sent before their last look has arrived if the pair was connected.
const LOOK: Duration = Duration::from_secs(10);
/// The frames of each side.
const FRAMES: u64 = 60;
/// The frames that a side with limits grants.
const GRANT: u64 = 20;
const ONCE: &str = "no frame is lost or twice";

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoutesReport {
    /// The connections that were opened, and those of them that passed a gateway.
    pub(crate) connections: [u32; 2],
    /// The connections that could not be opened.
    pub(crate) failures: u32,
    /// The steps that were cut, and the gateways that stopped or were full.
    pub(crate) faults: u32,
    /// The frames that arrived.
    pub(crate) frames: u64,
    /// The longest time from a path that was well to a connection.
    pub(crate) longest: Duration,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Copy, Debug)]
enum Parcel {
    Frame { position: u64, number: u64 },
    Positions(Positions),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A host that dials looks after its pair.
    Look(usize),
    /// A connection comes to the next host of its way.
    Step(usize),
    /// The answer of the last host has come.
    Dialled(usize),
    DialFailed(usize),
    /// A side pushes, sends, and tells its positions.
    Work {
        pair: usize,
        side: usize,
    },
    Arrive {
        connection: usize,
        side: usize,
        parcel: Parcel,
    },
    /// A side sees that a connection has gone.
    Gone {
        connection: usize,
        side: usize,
    },
    Fault,
    /// A gateway that was stopped is connected to a host again.
    Return {
        gateway: HostNumber,
        host: HostNumber,
    },
    Heal,
    Check,
}

/// A host: what its daemon knows of its ways.
#[derive(Debug)]
struct Host {
    routes: Routes,
    /// The addresses that did not answer, and when.
    silent: BTreeMap<IpAddr, Duration>,
    /// The steps that the routes were told to be broken.
    noted: Noted,
}

#[derive(Clone, Debug)]
struct Way {
    address: IpAddr,
    hosts: Vec<HostNumber>,
    is_broken: bool,
}

#[derive(Debug)]
struct Dial {
    pair: usize,
    way: Way,
    /// The networks of the steps that are behind it.
    networks: Vec<u16>,
}

#[derive(Debug)]
struct Connection {
    pair: usize,
    lane: u32,
    hosts: Vec<HostNumber>,
    networks: Vec<u16>,
    is_gone: bool,
    /// Whether a direction carries nothing more, counted by the side that sends.
    is_cut: [bool; 2],
    is_lost: [bool; 2],
    last_arrival: [Duration; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Pause(Duration),
    Dial,
    Open,
}

#[derive(Debug)]
struct Side {
    pair: Pair<u64>,
    /// The connection of the newest lane.
    connection: Option<usize>,
    pushed: u64,
    received: u64,
    tells: bool,
}

/// Two hosts, the first of which dials.
#[derive(Debug)]
struct Link {
    hosts: [HostNumber; 2],
    sides: [Side; 2],
    attempt: Attempt,
    next_way: usize,
    pause: Duration,
    lane: u32,
    /// Since when the pair is connected, or is not.
    changed: Duration,
    is_up: bool,
    /// The frames that each side had pushed when the checkers last looked.
    pushed_before: [u64; 2],
}

struct World {
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    machine: DrawnMachine,
    faults: Faults,
    /// The most faults at a time.
    faults_max: usize,
    /// The most steps that were broken at a time.
    broken_most: u32,
    hosts: Vec<Host>,
    links: Vec<Link>,
    dials: Vec<Dial>,
    connections: Vec<Connection>,
    healed: Option<Duration>,
    report: RoutesReport,
}

/// Runs a machine whose connections pass gateways.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<RoutesReport, ProtocolFailure> {
    let mut world = World::new(seed);
    let end = FAULTY + HELD + REST;
    let mut check = world.checks();
    while let (Ok(()), Some((at, event))) = (&check, world.events.pop()) {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        if world.now > end {
            break;
        }
        check = world.happen(event);
    }
    match check.and_then(|()| world.at_rest()) {
        Err((property, text)) => Err(world.log.failure(seed, property, text)),
        Ok(()) => Ok(RoutesReport { hash: world.log.hash(), ..world.report }),
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let machine = DrawnMachine::new(&mut draw);
        let host = || {
            let mut routes = Routes::default();
            machine.hosts().for_each(|host| routes.set(host, machine.place(host).clone()));
            Host { routes, silent: BTreeMap::new(), noted: Noted::new() }
        };
        let hosts = machine.hosts().map(|_| host()).collect();
        let count = machine.places.len() as u64;
        let links = (0..draw.pick(&[1, 1, 2, 3]))
            .map(|_| {
                let is_far = machine.is_line && draw.permille(500);
                let from = if is_far { 0 } else { draw.below(count) };
                let to =
                    if is_far { count - 1 } else { (from + 1 + draw.below(count - 1)) % count };
                let has_limits = draw.permille(300);
                let side = || Side {
                    pair: if has_limits { Pair::new(GRANT) } else { Pair::unlimited() },
                    connection: None,
                    pushed: 0,
                    received: 0,
                    tells: false,
                };
                Link {
                    hosts: [from, to].map(|host| HostNumber(host as u16)),
                    sides: [side(), side()],
                    attempt: Attempt::Pause(Duration::ZERO),
                    next_way: 0,
                    pause: PAUSE_MIN,
                    lane: 0,
                    changed: Duration::ZERO,
                    is_up: false,
                    pushed_before: [0; 2],
                }
            })
            .collect::<Vec<_>>();
        let faults_max = draw.pick(&[1, 4, 8, 12]);
        let mut world = Self {
            draw,
            events: Events::default(),
            now: Duration::ZERO,
            log: EventLog::default(),
            machine,
            faults: Faults::default(),
            faults_max,
            broken_most: 0,
            hosts,
            links,
            dials: Vec::new(),
            connections: Vec::new(),
            healed: None,
            report: RoutesReport::default(),
        };
        for pair in 0..world.links.len() {
            world.plan(Duration::ZERO, Event::Look(pair));
            (0..2).for_each(|side| world.plan(Duration::ZERO, Event::Work { pair, side }));
        }
        world.plan(Duration::ZERO, Event::Fault);
        world.plan(LOOK, Event::Check);
        world.plan(FAULTY + HELD, Event::Heal);
        world
    }

    fn plan(&mut self, after: Duration, event: Event) {
        let at = self.now + after;
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    fn delay(&mut self) -> Duration {
        self.draw.time(Duration::from_micros(100), Duration::from_millis(5))
    }

    fn host(&mut self, host: HostNumber) -> &mut Host {
        &mut self.hosts[usize::from(host.0)]
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Look(pair) => return self.look(pair),
            Event::Step(dial) => self.step(dial),
            Event::Dialled(dial) => return self.dialled(dial),
            Event::DialFailed(dial) => self.dial_failed(dial),
            Event::Work { pair, side } => {
                let mean = if self.now < FAULTY { 400 } else { 1_500 };
                let wait = self.draw.about(Duration::from_millis(mean));
                self.plan(wait, event);
                self.work(pair, side);
            }
            Event::Arrive { connection, side, parcel } => {
                return self.arrive(connection, side, parcel);
            }
            Event::Gone { connection, side } => self.gone(connection, side),
            Event::Fault => self.fault(),
            Event::Return { gateway, host } => self.is_reached(host, gateway),
            Event::Heal => self.heal(),
            Event::Check => {
                self.plan(LOOK, Event::Check);
                return self.checks();
            }
        }
        Ok(())
    }
}

/// Ways and dials.
impl World {
    /// The ways of a host to another one, as its daemon knows them.
    fn ways(&self, from: HostNumber, to: HostNumber) -> Vec<Way> {
        let host = &self.hosts[usize::from(from.0)];
        let mut ways = Vec::new();
        for route in host.routes.between(from, to, self.now) {
            let hosts = route_checks::hosts_of((from, to), &route);
            for address in self.addresses(from, hosts[1]) {
                let is_broken = route.broken.is_some() || self.is_silent(from, address);
                ways.push(Way { address, hosts: hosts.clone(), is_broken });
            }
        }
        ways
    }

    fn addresses(&self, from: HostNumber, to: HostNumber) -> Vec<IpAddr> {
        let known = self.hosts[usize::from(from.0)].routes.addresses(from, to);
        known.unwrap_or_else(|| vec![any_address(to)])
    }

    fn is_silent(&self, host: HostNumber, address: IpAddr) -> bool {
        let silent = &self.hosts[usize::from(host.0)].silent;
        silent.get(&address).is_some_and(|at| self.now < *at + BROKEN_TIME)
    }

    fn look(&mut self, pair: usize) -> Check {
        let link = &self.links[pair];
        let [from, to] = link.hosts;
        let is_due = matches!(link.attempt, Attempt::Pause(until) if self.now >= until);
        let ways = self.ways(from, to);
        if !is_due || ways.is_empty() {
            return Ok(());
        }
        let link = &mut self.links[pair];
        if link.next_way >= ways.len() {
            link.next_way = 0;
        }
        let way = ways[link.next_way].clone();
        if way.is_broken && ways.iter().any(|other| !other.is_broken) {
            self.failed(pair, ways.len());
            return Ok(());
        }
        link.attempt = Attempt::Dial;
        self.log.note(self.now, format!("pair {pair} dials {:?} at {}", way.hosts, way.address));
        let host = &self.hosts[usize::from(from.0)];
        let is_broken = |step: (HostNumber, HostNumber)| {
            let mut addresses = self.addresses(step.0, step.1).into_iter();
            is_noted(&host.noted, step, self.now)
                || (step.0 == from && addresses.all(|address| self.is_silent(from, address)))
        };
        let has_failed = self.is_silent(from, way.address)
            || way.hosts.windows(2).any(|step| is_broken((step[0], step[1])));
        let failed = has_failed.then_some(&way.hosts[..]);
        route_checks::another_way_is_tried(&self.machine, (from, to), failed, is_broken)?;
        self.dials.push(Dial { pair, way, networks: Vec::new() });
        let wait = self.delay();
        self.plan(wait, Event::Step(self.dials.len() - 1));
        Ok(())
    }

    /// The present way of a pair, one of so many, has failed. The next one follows at once, or after a pause.
    fn failed(&mut self, pair: usize, ways: usize) {
        let link = &mut self.links[pair];
        link.next_way += 1;
        let mut wait = Duration::ZERO;
        if link.next_way >= ways {
            wait = link.pause;
            (link.next_way, link.pause) = (0, (link.pause * 2).min(PAUSE_MAX));
        }
        link.attempt = Attempt::Pause(self.now + wait);
        self.plan(wait, Event::Look(pair));
    }

    /// Whether the steps and gateways of a way that are behind a connection are well.
    fn answers(&self, hosts: &[HostNumber], networks: &[u16]) -> bool {
        let steps = hosts.windows(2).zip(networks);
        let mut answers =
            steps.map(|(step, network)| self.faults.answer((step[0], step[1], *network)));
        answers.all(|answer| answer == Answer::Well)
    }

    fn step(&mut self, number: usize) {
        let Dial { way: Way { address, hosts, .. }, networks, .. } = &self.dials[number];
        let (hosts, at) = (hosts.clone(), networks.len());
        let (answer, network, takes) = match at {
            0 => {
                let network = network_of(*address);
                (self.faults.answer((hosts[0], hosts[1], network)), network, Duration::ZERO)
            }
            _ if !self.answers(&hosts, networks) => (Answer::Silence, 0, Duration::ZERO),
            _ => self.pass_on(hosts[at], hosts[at + 1]),
        };
        let wait = takes + self.delay();
        let (after, event) = match answer {
            Answer::Well => {
                self.dials[number].networks.push(network);
                let is_last = at + 2 == hosts.len();
                (wait, if is_last { Event::Dialled(number) } else { Event::Step(number) })
            }
            Answer::Refused => (wait, Event::DialFailed(number)),
            Answer::Silence => (DIAL_TIME, Event::DialFailed(number)),
        };
        self.plan(after, event);
    }

    /// A gateway opens a connection to the next host, at one address after the other: the answer that the caller gets, the
    /// network, and the time until then.
    fn pass_on(&mut self, gateway: HostNumber, next: HostNumber) -> (Answer, u16, Duration) {
        if self.faults.full.contains(&gateway) {
            return (Answer::Refused, 0, Duration::ZERO);
        }
        let mut addresses = self.addresses(gateway, next);
        let silent = self.host(gateway).silent.clone();
        // The address that has failed last is the last one.
        addresses.sort_by_key(|address| silent.get(address).copied());
        let mut takes = Duration::ZERO;
        for address in addresses {
            let network = network_of(address);
            match self.faults.answer((gateway, next, network)) {
                Answer::Well => {
                    self.succeeded(&[gateway, next], address);
                    return (
                        if takes < DIAL_TIME { Answer::Well } else { Answer::Silence },
                        network,
                        takes,
                    );
                }
                Answer::Refused => takes += Duration::from_millis(1),
                Answer::Silence => takes += DIAL_TIME,
            }
            self.broken(gateway, (gateway, next), address);
        }
        (if takes < DIAL_TIME { Answer::Refused } else { Answer::Silence }, 0, takes)
    }

    /// A host has not opened a connection that failed at a step, and that began at an address.
    fn broken(&mut self, host: HostNumber, step: (HostNumber, HostNumber), address: IpAddr) {
        let now = self.now;
        if step.0 == host {
            self.host(host).silent.insert(address, now);
            // A step is broken when no address of the next host answers.
            let all = self.addresses(step.0, step.1);
            if !all.into_iter().all(|address| self.is_silent(host, address)) {
                return;
            }
        }
        self.host(host).routes.found_broken(step.0, step.1, now);
        self.host(host).noted.insert(step, now);
    }

    /// A host has opened a connection over these hosts.
    fn succeeded(&mut self, hosts: &[HostNumber], address: IpAddr) {
        let host = self.host(hosts[0]);
        host.silent.remove(&address);
        host.routes.found_well(hosts);
        for step in hosts.windows(2) {
            host.noted.remove(&(step[0], step[1]));
        }
    }

    /// A host is connected to another one, and tries what it had found broken there.
    fn is_reached(&mut self, host: HostNumber, other: HostNumber) {
        let is_gateway = self.machine.place(other).is_gateway;
        let addresses = self.addresses(host, other);
        let of = self.host(host);
        of.routes.renew(other);
        of.silent.retain(|address, _| !addresses.contains(address));
        of.noted.retain(|(from, to), _| ![from, to].contains(&&other));
        for pair in 0..self.links.len() {
            let link = &mut self.links[pair];
            let is_pausing = matches!(link.attempt, Attempt::Pause(_));
            if is_gateway && link.hosts[0] == host && is_pausing {
                (link.attempt, link.next_way, link.pause) =
                    (Attempt::Pause(self.now), 0, PAUSE_MIN);
                self.plan(Duration::ZERO, Event::Look(pair));
            }
        }
    }

    fn dial_failed(&mut self, number: usize) {
        let Dial { pair, way, networks } = &self.dials[number];
        let (pair, at, address) = (*pair, networks.len(), way.address);
        let (step, from) = ((way.hosts[at], way.hosts[at + 1]), way.hosts[0]);
        self.log.note(
            self.now,
            format!("pair {pair}: no connection from {:?} to {:?}", step.0, step.1),
        );
        self.report.failures += 1;
        self.broken(from, step, address);
        let [from, to] = self.links[pair].hosts;
        let ways = self.ways(from, to).len();
        self.failed(pair, ways);
    }

    fn dialled(&mut self, number: usize) -> Check {
        let Dial { pair, way, networks } = &self.dials[number];
        let (pair, hosts, networks, address) =
            (*pair, way.hosts.clone(), networks.clone(), way.address);
        if !self.answers(&hosts, &networks) {
            self.dials[number].networks.pop();
            self.plan(DIAL_TIME, Event::DialFailed(number));
            return Ok(());
        }
        self.report.connections[0] += 1;
        self.report.connections[1] += u32::from(hosts.len() > 2);
        self.succeeded(&hosts, address);
        let connection = self.connections.len();
        let link = &mut self.links[pair];
        link.lane += 1;
        (link.attempt, link.next_way, link.pause) = (Attempt::Open, 0, PAUSE_MIN);
        let (lane, [from, to]) = (link.lane, link.hosts);
        self.connections.push(Connection {
            pair,
            lane,
            hosts,
            networks,
            is_gone: false,
            is_cut: [false; 2],
            is_lost: [false; 2],
            last_arrival: [Duration::ZERO; 2],
        });
        self.is_reached(from, to);
        self.open(connection, 0)
    }
}

/// Connections and what they carry.
impl World {
    fn open(&mut self, connection: usize, at: usize) -> Check {
        let Connection { pair, lane, .. } = self.connections[connection];
        self.log.note(self.now, format!("side {at} of pair {pair} opens connection {lane}"));
        let side = &mut self.links[pair].sides[at];
        side.connection = Some(connection);
        let positions = match side.pair.open(lane) {
            Ok(positions) => positions,
            Err(error) => {
                return ensure(false, "a pair takes a new connection", || error.to_string());
            }
        };
        self.send(connection, at, Parcel::Positions(positions));
        self.work(pair, at);
        Ok(())
    }

    fn work(&mut self, pair: usize, at: usize) {
        let pushes = self.draw.below(8);
        let side = &mut self.links[pair].sides[at];
        for _ in 0..pushes {
            if side.pushed < FRAMES && side.pair.push(side.pushed, 64).is_ok() {
                side.pushed += 1;
            }
        }
        let Some(connection) = side.connection else { return };
        while let Some((position, &number)) = self.links[pair].sides[at].pair.next_to_send() {
            self.send(connection, at, Parcel::Frame { position, number });
        }
        let side = &mut self.links[pair].sides[at];
        if std::mem::take(&mut side.tells) {
            side.pair.grant(GRANT);
            let positions = side.pair.positions();
            self.send(connection, at, Parcel::Positions(positions));
        }
    }

    fn send(&mut self, number: usize, from: usize, parcel: Parcel) {
        let arrival = self.now + self.delay() * self.connections[number].networks.len() as u32;
        let connection = &mut self.connections[number];
        connection.is_lost[from] |= connection.is_cut[from];
        connection.last_arrival[from] = connection.last_arrival[from].max(arrival);
        let after = connection.last_arrival[from] - self.now;
        if !connection.is_lost[from] {
            self.plan(after, Event::Arrive { connection: number, side: 1 - from, parcel });
        }
    }

    fn arrive(&mut self, number: usize, at: usize, parcel: Parcel) -> Check {
        let is_lost = self.draw.permille(500);
        let connection = &mut self.connections[number];
        // Behind a byte that is lost nothing comes.
        connection.is_lost[1 - at] |= connection.is_cut[1 - at] && is_lost;
        let Connection { pair, lane, .. } = *connection;
        if connection.is_lost[1 - at] {
            return Ok(());
        }
        if lane > self.links[pair].sides[at].pair.lane() {
            self.open(number, at)?;
            let [from, to] = self.links[pair].hosts;
            self.is_reached(to, from);
            self.set_up(pair, !self.connections[number].is_gone);
        }
        let side = &mut self.links[pair].sides[at];
        let taken = match parcel {
            Parcel::Frame { position, number } => {
                side.pair.arrive(lane, position as u16).map(|found| {
                    let expected = side.received;
                    (side.received, side.tells) = (expected + 1, true);
                    ensure(number == expected && found == position, ONCE, || {
                        format!("side {at} of pair {pair}: frame {number}, not {expected}")
                    })
                })
            }
            Parcel::Positions(positions) => side.pair.told(lane, positions).map(|_| Ok(())),
        };
        match taken {
            Ok(check) => {
                self.report.frames += u64::from(matches!(parcel, Parcel::Frame { .. }));
                self.work(pair, at);
                check
            }
            Err(LaneError::Old { .. }) => Ok(()),
            Err(error) => ensure(false, ONCE, || format!("side {at} of pair {pair}: {error}")),
        }
    }

    fn set_up(&mut self, pair: usize, is_up: bool) {
        let [from, to] = self.links[pair].hosts;
        let link = &mut self.links[pair];
        if link.is_up == is_up {
            return;
        }
        let took = self.now - link.changed;
        (link.is_up, link.changed) = (is_up, self.now);
        if is_up && self.faults.has_path_since(&self.machine, (from, to), self.now - took) {
            self.report.longest = self.report.longest.max(took);
        }
    }

    /// A side sees the end of a connection. The one that dials opens another one.
    fn gone(&mut self, number: usize, at: usize) {
        let Connection { pair, lane, .. } = self.connections[number];
        self.log.note(self.now, format!("side {at} of pair {pair}: connection {lane} has gone"));
        let link = &mut self.links[pair];
        let side = &mut link.sides[at];
        side.pair.close(lane);
        if side.connection == Some(number) {
            side.connection = None;
            if at == 0 {
                link.attempt = Attempt::Pause(self.now);
                self.plan(Duration::ZERO, Event::Look(pair));
            }
        }
    }
}

/// Faults.
impl World {
    fn fault(&mut self) {
        if self.now > FAULTY {
            return;
        }
        let wait = self.draw.about(Duration::from_secs(2));
        self.plan(wait, Event::Fault);
        let steps: Vec<_> = self.faults.cuts.keys().copied().collect();
        let gateways: Vec<_> =
            self.faults.stopped.keys().chain(&self.faults.full).copied().collect();
        let count = (steps.len() + gateways.len()) as u64;
        if count >= self.faults_max as u64 || self.draw.below(5) < 2 {
            match self.draw.below(count.max(1)) as usize {
                _ if count == 0 => {}
                at if at < steps.len() => {
                    let (from, to, network) = steps[at];
                    self.faults.heal((from, to, network), self.now);
                    if self.draw.permille(800) {
                        self.faults.heal((to, from, network), self.now);
                    }
                }
                at => self.restore(gateways[at - steps.len()]),
            }
            return;
        }
        self.report.faults += 1;
        match self.draw.below(10) {
            0 => self.cut_network(),
            1 | 2 => self.stop_gateway(),
            _ => self.cut_step(),
        }
        let gateways = self.faults.stopped.len() + self.faults.full.len();
        let broken = self.faults.cuts.len() + gateways * self.machine.places.len();
        self.broken_most = self.broken_most.max(broken as u32);
        self.break_connections();
    }

    /// Cuts a step that a pair uses, or any one, in one direction or both.
    fn cut_step(&mut self) {
        let open = self.connections.iter().filter(|connection| !connection.is_gone);
        let used = open.flat_map(|it| it.hosts.windows(2).zip(&it.networks));
        let used: Vec<_> = used.map(|(step, network)| (step[0], step[1], *network)).collect();
        let step = match used.is_empty() || self.draw.permille(500) {
            false => self.draw.pick(&used),
            true => {
                let hosts: Vec<_> = self.machine.hosts().collect();
                let (from, to) = (self.draw.pick(&hosts), self.draw.pick(&hosts));
                let networks = self.machine.common(from, to);
                if networks.is_empty() {
                    return;
                }
                (from, to, self.draw.pick(&networks))
            }
        };
        let (from, to, network) = step;
        let answer = self.draw.pick(&[Answer::Refused, Answer::Silence]);
        let both = self.draw.permille(700);
        let turned = self.draw.permille(500);
        if both || !turned {
            self.faults.cuts.insert((from, to, network), answer);
        }
        if both || turned {
            self.faults.cuts.insert((to, from, network), answer);
        }
        self.log.note(self.now, format!("{step:?} is cut: {both}, {turned}, {answer:?}"));
    }

    fn cut_network(&mut self) {
        let hosts: Vec<_> = self.machine.hosts().collect();
        let of = self.machine.place(self.draw.pick(&hosts)).networks.clone();
        let Some(network) = of.first().map(|one| one.network) else { return };
        let answer = self.draw.pick(&[Answer::Refused, Answer::Silence]);
        for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to))) {
            if from != to && self.machine.common(from, to).contains(&network) {
                self.faults.cuts.insert((from, to, network), answer);
            }
        }
        self.log.note(self.now, format!("network {network} is cut: {answer:?}"));
    }

    fn stop_gateway(&mut self) {
        let is_gateway = |host: &HostNumber| self.machine.place(*host).is_gateway;
        let gateways: Vec<_> = self.machine.hosts().filter(is_gateway).collect();
        if gateways.is_empty() {
            return;
        }
        let gateway = self.draw.pick(&gateways);
        let is_end = self.links.iter().any(|link| link.hosts.contains(&gateway));
        match is_end || self.draw.permille(400) {
            true => drop(self.faults.full.insert(gateway)),
            false => {
                let answer = self.draw.pick(&[Answer::Refused, Answer::Silence]);
                self.faults.stopped.insert(gateway, answer);
            }
        }
        self.log.note(self.now, format!("{gateway:?} stops, or is full"));
    }

    /// A gateway passes on again. If it was stopped, it has forgotten what it knew, and hosts connect to it again.
    fn restore(&mut self, gateway: HostNumber) {
        self.log.note(self.now, format!("{gateway:?} returns"));
        if self.faults.stopped.contains_key(&gateway) {
            self.host(gateway).silent.clear();
            let noted = std::mem::take(&mut self.host(gateway).noted);
            for (from, to) in noted.into_keys() {
                self.host(gateway).routes.found_well(&[from, to]);
            }
            for host in self.machine.hosts().filter(|host| *host != gateway) {
                if self.draw.permille(500) {
                    let wait = self.draw.about(Duration::from_secs(1));
                    self.plan(wait, Event::Return { gateway, host });
                }
            }
        }
        self.faults.restore(gateway, self.now);
    }

    /// Ends the connections whose steps or gateways are not well.
    fn break_connections(&mut self) {
        for number in 0..self.connections.len() {
            let connection = &self.connections[number];
            if connection.is_gone && connection.is_cut == [true; 2] {
                continue;
            }
            let pair = connection.pair;
            let mut is_cut = connection.is_cut;
            for (step, network) in connection.hosts.windows(2).zip(&connection.networks) {
                let is_stopped = step.iter().any(|host| self.faults.stopped.contains_key(host));
                let is_over = |step| is_stopped || self.faults.cuts.contains_key(&step);
                is_cut[0] |= is_over((step[0], step[1], *network));
                is_cut[1] |= is_over((step[1], step[0], *network));
            }
            if is_cut == [false; 2] {
                continue;
            }
            let was_gone = std::mem::replace(&mut self.connections[number].is_gone, true);
            self.connections[number].is_cut = is_cut;
            if !was_gone {
                if self.links[pair].lane == self.connections[number].lane {
                    self.set_up(pair, false);
                }
                for side in 0..2 {
                    let wait = self.draw.time(Duration::from_millis(1), NOTICE_MAX);
                    self.plan(wait, Event::Gone { connection: number, side });
                }
            }
        }
    }

    fn heal(&mut self) {
        self.log.note(self.now, "all faults end".to_owned());
        self.healed = Some(self.now);
        let steps: Vec<_> = self.faults.cuts.keys().copied().collect();
        steps.into_iter().for_each(|step| self.faults.heal(step, self.now));
        let gateways = self.faults.stopped.keys().chain(&self.faults.full).copied();
        gateways.collect::<Vec<_>>().into_iter().for_each(|gateway| self.restore(gateway));
    }
}

/// Looks of the checkers.
impl World {
    fn checks(&mut self) -> Check {
        for pair in 0..self.links.len() {
            let [from, to] = self.links[pair].hosts;
            let host = &self.hosts[usize::from(from.0)];
            let routes = host.routes.between(from, to, self.now);
            let (machine, noted) = (&self.machine, &host.noted);
            route_checks::routes_are_paths(machine, (from, to), &routes)?;
            route_checks::broken_steps_are_known((from, to), &routes, noted, self.now)?;
            route_checks::the_fastest_is_first(machine, (from, to), &routes, noted, self.now)?;
            self.is_connected(pair)?;
            self.has_arrived(pair)?;
        }
        Ok(())
    }

    /// Where a path has been well for long enough, the pair is connected: a round for each broken step, and one more.
    fn is_connected(&self, pair: usize) -> Check {
        let link = &self.links[pair];
        let [from, to] = link.hosts;
        let limit = self.healed.map_or(ROUND * (1 + self.broken_most), |_| HEALED_MAX);
        let Some(since) = self.now.checked_sub(limit) else { return Ok(()) };
        let is_late = !link.is_up
            && link.changed <= since
            && self.faults.has_path_since(&self.machine, (from, to), since);
        ensure(!is_late, "a pair is connected where a path is well", || {
            let changed = link.changed.as_secs_f64();
            format!(
                "{from:?} and {to:?} are not since {changed:.1} s, a path is well for {limit:?}"
            )
        })
    }

    /// The frames that were pushed at the last look have arrived, if the pair was connected since.
    fn has_arrived(&mut self, pair: usize) -> Check {
        let link = &mut self.links[pair];
        if link.is_up && link.changed + LOOK <= self.now {
            for side in 0..2 {
                let (pushed, received) = (link.pushed_before[side], link.sides[1 - side].received);
                ensure(received >= pushed, "what is sent arrives", || {
                    format!("side {side} of pair {pair}: {received} of {pushed} frames have come")
                })?;
            }
        }
        link.pushed_before = [0, 1].map(|side| link.sides[side].pushed);
        Ok(())
    }

    /// At the end each pair that has a path is connected, and everything has arrived.
    fn at_rest(&mut self) -> Check {
        for pair in 0..self.links.len() {
            let link = &self.links[pair];
            let (from, to) = (link.hosts[0], link.hosts[1]);
            if !self.machine.has_path((from, to), |_| true) {
                continue;
            }
            ensure(link.is_up, "a pair is connected where a path is well", || {
                format!("{from:?} and {to:?} are not connected at the end")
            })?;
            for side in 0..2 {
                let (pushed, received) = (link.sides[side].pushed, link.sides[1 - side].received);
                ensure(pushed == FRAMES && received == FRAMES, ONCE, || {
                    format!("side {side} of pair {pair}: {pushed} pushed, {received} received")
                })?;
            }
        }
        Ok(())
    }
}
