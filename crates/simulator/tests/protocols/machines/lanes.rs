//! A run of two daemons that open lanes between their processes, with connections that fail, trunks that break, hosts
//! that hold, processes that end, and daemons that start again and know only what their processes tell them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_protocols::hosts::{DialMessage, DialOutput, Dialling, HostReach};
use landeck_wire::{HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use landeck_simulator::{Events, Time};

const ADDRESSES: usize = 2;
const PROCESSES: u32 = 3;
/// A connected lane must be confirmed within this time.
const LIMIT: Duration = Duration::from_secs(2);
/// The time with faults, and the whole time.
const FAULTY: Duration = Duration::from_secs(60);
const LENGTH: Duration = Duration::from_secs(160);
/// A process whose lane is broken or unreachable wants it again after this time.
const AGAIN: Duration = Duration::from_millis(500);

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LanesReport {
    /// The connections that were made.
    pub(crate) connections: usize,
    /// The ends of lanes that processes got.
    pub(crate) ends: usize,
    /// The runs of daemons that were followed by another one.
    pub(crate) restarts: u32,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Want {
        own: ProcessId,
        far: ProcessId,
    },
    /// A dial's outcome at the side that dials.
    Dialled {
        connection: usize,
    },
    DialFailed {
        own: ProcessId,
        far: ProcessId,
        lane: u32,
        run: u32,
    },
    /// A connection comes to the side that is dialled.
    Arrived {
        connection: usize,
    },
    Message {
        to: usize,
        epoch: u32,
        message: DialMessage,
    },
    /// A process sees that its lane has ended.
    Broken {
        connection: usize,
        end: usize,
    },
    TrunkReset,
    Network,
    Break,
    Hold(usize),
    Release(usize),
    ProcessEnds,
    Restart(usize),
    /// A process says to a new run of its daemon what it has and wants.
    Hello {
        process: ProcessId,
        run: u32,
    },
    Learn {
        side: usize,
        process: ProcessId,
    },
    Look(usize),
    Heal,
}

/// The state of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The daemon has it.
    Daemon,
    /// The daemon keeps it for a process that has not said hello.
    Kept,
    /// A process has it.
    Process,
    Closed,
}

#[derive(Debug)]
struct Connection {
    lane: u32,
    /// The process at each host.
    processes: [ProcessId; 2],
    ends: [End; 2],
    dialled_by: usize,
    has_arrived: bool,
}

struct World {
    seed: u64,
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    daemons: [Dialling; 2],
    connections: Vec<Connection>,
    /// Whether a host is reached at an address of its own.
    is_reached: [[bool; ADDRESSES]; 2],
    epoch: u32,
    last_message: [Duration; 2],
    is_held: [bool; 2],
    /// How each daemon takes the other host to be reached.
    reach: [HostReach; 2],
    /// The runs of each daemon before this one.
    runs: [u32; 2],
    restarts: u32,
    /// The processes that have not said hello to this run of their daemon.
    unknown: BTreeSet<ProcessId>,
    /// The side whose processes compute, and do not see that a lane has ended.
    computes: Option<usize>,
    /// The processes that want a lane, each with the other one.
    wanted: BTreeSet<(ProcessId, ProcessId)>,
    ended: BTreeSet<ProcessId>,
    /// The processes that each daemon knows to have ended.
    known: [BTreeSet<ProcessId>; 2],
    /// The last lane that each process got, for each other process.
    last_lane: BTreeMap<(ProcessId, ProcessId), u32>,
    ends: usize,
    is_healed: bool,
}

/// Runs two daemons that open lanes.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<LanesReport, ProtocolFailure> {
    let mut world = World::new(seed);
    while let Some((at, event)) = world.events.pop() {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        if world.now > LENGTH {
            break;
        }
        if let Err((property, text)) = world.happen(event) {
            return Err(world.log.failure(seed, property, text));
        }
    }
    match world.at_rest() {
        Err((property, text)) => Err(world.log.failure(world.seed, property, text)),
        Ok(()) => Ok(LanesReport {
            connections: world.connections.len(),
            ends: world.ends,
            restarts: world.restarts,
            hash: world.log.hash(),
        }),
    }
}

/// A run of a daemon at its begin. It hears which run of the other one there is.
fn daemon(side: usize, reach: HostReach, runs: [u32; 2]) -> Dialling {
    let mut daemon = Dialling::of_run(LIMIT, runs[side]);
    let other = HostNumber(1 - side as u16);
    daemon.set_host(other, reach, ADDRESSES);
    daemon.restarted(other, runs[1 - side]);
    daemon
}

fn process(host: usize, slot: u32) -> ProcessId {
    ProcessId {
        segment: SegmentId(10 + host as u64),
        slot: Slot(slot),
        incarnation: Incarnation(1),
    }
}

fn side_of(process: ProcessId) -> usize {
    (process.segment.0 - 10) as usize
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let reaches = [HostReach::Both, HostReach::FromHere, HostReach::FromThere];
        // The host tables agree in most runs. Where they do not, there is at most one lane all the same.
        let here = draw.pick(&reaches);
        let there = match here {
            _ if draw.permille(200) => draw.pick(&reaches),
            HostReach::Both => HostReach::Both,
            HostReach::FromHere => HostReach::FromThere,
            HostReach::FromThere => HostReach::FromHere,
        };
        let reach = [here, there];
        // One may have had more runs than the other, so its numbers are higher.
        let runs = [0, 1].map(|_| draw.below(4) as u32);
        let daemons = [0, 1].map(|side| daemon(side, reach[side], runs));
        let computes = draw.permille(300).then(|| draw.below(2) as usize);
        let mut world = Self {
            seed,
            draw,
            events: Events::default(),
            now: Duration::ZERO,
            log: EventLog::default(),
            daemons,
            connections: Vec::new(),
            is_reached: [[true; ADDRESSES]; 2],
            epoch: 0,
            last_message: [Duration::ZERO; 2],
            is_held: [false; 2],
            reach,
            runs,
            restarts: 0,
            unknown: BTreeSet::new(),
            computes,
            wanted: BTreeSet::new(),
            ended: BTreeSet::new(),
            known: [BTreeSet::new(), BTreeSet::new()],
            last_lane: BTreeMap::new(),
            ends: 0,
            is_healed: false,
        };
        for _ in 0..12 {
            let side = world.draw.below(2) as usize;
            let slot = |draw: &mut Draw| draw.below(PROCESSES.into()) as u32;
            let own = process(side, slot(&mut world.draw));
            let far = process(1 - side, slot(&mut world.draw));
            let wait = world.draw.time(Duration::ZERO, FAULTY / 2);
            world.plan(wait, Event::Want { own, far });
            // Often both want at once.
            if world.draw.permille(500) {
                let later = world.draw.time(Duration::ZERO, Duration::from_millis(2));
                world.plan(wait + later, Event::Want { own: far, far: own });
            }
        }
        world.plan_faults();
        world
    }

    fn plan_faults(&mut self) {
        let faults = [
            (Event::TrunkReset, 6),
            (Event::Network, 4),
            (Event::Break, 3),
            (Event::Hold(0), 15),
            (Event::Hold(1), 15),
            (Event::ProcessEnds, 25),
            (Event::Restart(0), 8),
            (Event::Restart(1), 8),
        ];
        for (fault, mean_s) in faults {
            if self.draw.permille(600) {
                let wait = self.draw.about(Duration::from_secs(mean_s));
                self.plan(wait, fault);
            }
        }
        self.plan(FAULTY, Event::Heal);
    }

    fn plan(&mut self, after: Duration, event: Event) {
        let at = self.now + after;
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    fn again(&mut self, fault: Event, mean: Duration) {
        if !self.is_healed {
            let wait = self.draw.about(mean);
            self.plan(wait, fault);
        }
    }

    fn delay(&mut self) -> Duration {
        let longest = self.draw.pick(&[1, 1, 20, 200]);
        self.draw.time(Duration::from_micros(50), Duration::from_millis(longest))
    }

    fn happen(&mut self, event: Event) -> Check {
        self.log.note(self.now, format!("{event:?}"));
        match event {
            Event::Want { own, far } => {
                if self.ended.contains(&own) || self.ended.contains(&far) {
                    return Ok(());
                }
                let side = side_of(own);
                self.wanted.insert((own, far));
                if self.unknown.contains(&own) {
                    return Ok(()); // it says so when it says hello
                }
                let outputs = self.daemons[side].want(own, far, HostNumber(1 - side as u16));
                self.carry_out(side, outputs)
            }
            Event::Dialled { connection } => self.dialled(connection),
            Event::DialFailed { own, far, lane, run } => {
                let side = side_of(own);
                if run != self.runs[side] {
                    return Ok(());
                }
                let outputs = self.daemons[side].dial_failed(own, far, lane);
                self.carry_out(side, outputs)
            }
            Event::Arrived { connection } => self.arrived(connection),
            Event::Message { to, epoch, message } => {
                if epoch != self.epoch {
                    return Ok(());
                }
                let outputs = self.daemons[to].heard(HostNumber(1 - to as u16), message);
                self.carry_out(to, outputs)
            }
            Event::Broken { connection, end } => self.broken(connection, end),
            Event::Look(side) => {
                let outputs = self.daemons[side].look(self.now);
                self.carry_out(side, outputs)
            }
            Event::Hello { process, run } if run == self.runs[side_of(process)] => {
                self.hello(process)
            }
            Event::Hello { .. } => Ok(()),
            Event::Learn { side, process } => {
                self.known[side].insert(process);
                let outputs = self.daemons[side].process_ended(JobId(1), process);
                self.carry_out(side, outputs)
            }
            _ => self.fault(event),
        }
    }

    fn fault(&mut self, event: Event) -> Check {
        if self.is_healed && !matches!(event, Event::Release(_)) {
            return Ok(());
        }
        match event {
            Event::TrunkReset => {
                self.again(event, Duration::from_secs(6));
                self.reset_trunk()
            }
            Event::Network => {
                self.again(event, Duration::from_secs(4));
                for host in 0..2 {
                    for address in 0..ADDRESSES {
                        self.is_reached[host][address] = self.draw.permille(500);
                    }
                }
                Ok(())
            }
            Event::Break => {
                self.again(event, Duration::from_secs(3));
                if !self.connections.is_empty() {
                    let connection = self.draw.below(self.connections.len() as u64) as usize;
                    (0..2).for_each(|end| self.end_sees(connection, end));
                }
                Ok(())
            }
            Event::Hold(side) => {
                self.again(event, Duration::from_secs(15));
                let wait = self.draw.about(Duration::from_secs(3));
                self.plan(wait, Event::Release(side));
                self.hold(side, true)
            }
            Event::Release(side) => self.hold(side, false),
            Event::ProcessEnds => {
                let process =
                    process(self.draw.below(2) as usize, self.draw.below(PROCESSES.into()) as u32);
                self.end_process(process);
                Ok(())
            }
            Event::Restart(side) => {
                self.again(event, Duration::from_secs(8));
                self.restart(side)
            }
            Event::Heal => {
                self.is_reached = [[true; ADDRESSES]; 2];
                if self.draw.permille(300) {
                    // One direction is enough.
                    let host = self.draw.below(2) as usize;
                    self.is_reached[host] = [false; ADDRESSES];
                }
                self.reset_trunk()?;
                self.is_healed = true;
                self.hold(0, false)?;
                self.hold(1, false)
            }
            _ => Ok(()),
        }
    }

    fn hold(&mut self, side: usize, is_held: bool) -> Check {
        self.is_held[side] = is_held;
        let outputs = self.daemons[side].hold(is_held);
        self.carry_out(side, outputs)
    }

    fn reset_trunk(&mut self) -> Check {
        self.epoch += 1;
        for side in 0..2 {
            let outputs = self.daemons[side].trunk_renewed(HostNumber(1 - side as u16));
            self.carry_out(side, outputs)?;
        }
        Ok(())
    }

    /// A daemon dies, and its next run knows nothing but which processes have ended. Its connections end, but for those of
    /// processes and those that nobody has accepted.
    fn restart(&mut self, side: usize) -> Check {
        self.runs[side] += 1;
        self.restarts += 1;
        if self.draw.permille(200) {
            let wait = self.delay();
            self.plan(wait, Event::Restart(1 - side));
        }
        let run = self.runs[side];
        for connection in 0..self.connections.len() {
            let it = &self.connections[connection];
            let is_its = it.dialled_by == side || it.has_arrived;
            if is_its && matches!(it.ends[side], End::Daemon | End::Kept) {
                self.close(connection, side);
            }
        }
        self.daemons[side] = daemon(side, self.reach[side], self.runs);
        for &process in &self.known[side] {
            self.daemons[side].process_ended(JobId(1), process);
        }
        // Its lease is not valid at first.
        self.hold(side, true)?;
        let wait = self.delay();
        self.plan(wait, Event::Release(side));
        for slot in 0..PROCESSES {
            let process = process(side, slot);
            if !self.ended.contains(&process) {
                self.unknown.insert(process);
                // It may compute before it looks.
                let longest = self.draw.pick(&[1, 200, 5_000, 20_000]);
                let wait = self.draw.time(Duration::ZERO, Duration::from_millis(longest));
                self.plan(wait, Event::Hello { process, run });
            }
        }
        self.daemons[1 - side].restarted(HostNumber(side as u16), run);
        self.reset_trunk()
    }

    /// A process says hello to a new run, takes the lanes that came before, says which ones it has, and what it wants.
    fn hello(&mut self, own: ProcessId) -> Check {
        if self.ended.contains(&own) || !self.unknown.remove(&own) {
            return Ok(());
        }
        let side = side_of(own);
        let fars = (0..PROCESSES).map(|slot| process(1 - side, slot));
        for far in fars.filter(|far| !self.ended.contains(far)).collect::<Vec<_>>() {
            let had = self.last_lane.get(&(own, far)).copied().unwrap_or(0);
            if let Some(kept) = self.of_pair(side, own, far, End::Kept) {
                self.take_kept(side, own, far, kept);
            }
            if had > 0 {
                let outputs = self.daemons[side].has(own, far, HostNumber(1 - side as u16), had);
                self.carry_out(side, outputs)?;
            }
            let has_one = self.of_pair(side, own, far, End::Process).is_some();
            if had > 0 && !has_one {
                self.daemons[side].broken(own, far, had);
            }
            if self.wanted.contains(&(own, far)) && !has_one {
                self.happen(Event::Want { own, far })?;
            }
        }
        Ok(())
    }

    /// A process takes a lane that its daemon has kept, in the place of the one before. It closes one that is not newer.
    fn take_kept(&mut self, side: usize, own: ProcessId, far: ProcessId, kept: usize) {
        let lane = self.connections[kept].lane;
        if self.last_lane.get(&(own, far)).is_some_and(|last| lane <= *last) {
            return self.close(kept, side);
        }
        if let Some(before) = self.of_pair(side, own, far, End::Process) {
            self.close(before, side);
        }
        self.last_lane.insert((own, far), lane);
        self.connections[kept].ends[side] = End::Process;
        self.ends += 1;
        if self.connections[kept].ends[1 - side] == End::Closed {
            self.end_sees(kept, side);
        }
    }

    /// The connection of a pair one end of which is in this state.
    fn of_pair(&self, side: usize, own: ProcessId, far: ProcessId, end: End) -> Option<usize> {
        let is_it = |it: &Connection| {
            (it.processes[side], it.processes[1 - side], it.ends[side]) == (own, far, end)
        };
        self.connections.iter().rposition(is_it)
    }

    fn end_process(&mut self, process: ProcessId) {
        if !self.ended.insert(process) {
            return;
        }
        for side in 0..2 {
            let wait = self.delay();
            self.plan(wait, Event::Learn { side, process });
        }
        let of = |connection: &&usize| self.connections[**connection].processes.contains(&process);
        let all: Vec<usize> = (0..self.connections.len()).collect();
        let mine: Vec<usize> = all.iter().filter(of).copied().collect();
        mine.into_iter().for_each(|connection| self.close(connection, side_of(process)));
    }

    /// Carries out what a daemon says.
    fn carry_out(&mut self, side: usize, outputs: Vec<DialOutput>) -> Check {
        for output in outputs {
            self.log.note(self.now, format!("daemon {side}: {output:?}"));
            match output {
                DialOutput::Dial { own, far, lane, address, .. } => {
                    self.dial(side, own, far, lane, address)?;
                }
                DialOutput::Cancel { own, far, lane } | DialOutput::Close { own, far, lane } => {
                    if let Some(connection) = self.find(side, own, far, lane, End::Closed) {
                        self.close(connection, side);
                    }
                }
                DialOutput::HandOver { own, far, lane } => self.hand_over(side, own, far, lane)?,
                DialOutput::Refuse { .. } => {}
                DialOutput::Send { message, .. } => {
                    let at = self.now + self.delay();
                    self.last_message[side] = self.last_message[side].max(at);
                    let wait = self.last_message[side] - self.now;
                    self.plan(wait, Event::Message { to: 1 - side, epoch: self.epoch, message });
                }
                DialOutput::Unreachable { own, far } => self.plan(AGAIN, Event::Want { own, far }),
            }
        }
        if let Some(next) = self.daemons[side].next_look() {
            self.plan(next.saturating_sub(self.now), Event::Look(side));
        }
        Ok(())
    }

    fn dial(
        &mut self,
        side: usize,
        own: ProcessId,
        far: ProcessId,
        lane: u32,
        address: usize,
    ) -> Check {
        ensure(!self.is_held[side], "a host that holds opens no lanes", || {
            format!("daemon {side} dials")
        })?;
        let wait = self.delay();
        if !self.is_reached[1 - side][address] {
            let run = self.runs[side];
            self.plan(wait, Event::DialFailed { own, far, lane, run });
            return Ok(());
        }
        let processes = if side == 0 { [own, far] } else { [far, own] };
        let connection = self.connections.len();
        let ends = [End::Daemon; 2];
        self.connections.push(Connection {
            lane,
            processes,
            ends,
            dialled_by: side,
            has_arrived: false,
        });
        self.plan(wait, Event::Dialled { connection });
        // A connection is lost on its way now and then, and nobody says so.
        if !self.draw.permille(if self.is_healed { 0 } else { 100 }) {
            let longest = self.draw.pick(&[1, 20, 200, 2_000]);
            let later = self.draw.time(Duration::ZERO, Duration::from_millis(longest));
            self.plan(wait + later, Event::Arrived { connection });
        }
        Ok(())
    }

    fn dialled(&mut self, connection: usize) -> Check {
        let Connection { lane, processes, ends, dialled_by: side, .. } =
            self.connections[connection];
        if ends[side] != End::Daemon {
            return Ok(());
        }
        let outputs =
            self.daemons[side].dialled(processes[side], processes[1 - side], lane, self.now);
        self.carry_out(side, outputs)
    }

    fn arrived(&mut self, connection: usize) -> Check {
        let Connection { lane, processes, dialled_by, .. } = self.connections[connection];
        let side = 1 - dialled_by;
        self.connections[connection].has_arrived = true;
        let host = HostNumber(dialled_by as u16);
        let outputs =
            self.daemons[side].arrived(processes[side], processes[dialled_by], host, lane);
        let is_refused = outputs.iter().any(|output| matches!(output, DialOutput::Refuse { .. }));
        if is_refused {
            self.close(connection, side);
        }
        self.carry_out(side, outputs)
    }

    /// The connection of a lane one end of which a side has and has not in this state.
    fn find(
        &self,
        side: usize,
        own: ProcessId,
        far: ProcessId,
        lane: u32,
        not: End,
    ) -> Option<usize> {
        let is_it = |connection: &Connection| {
            let may_have = connection.dialled_by == side || connection.has_arrived;
            connection.lane == lane
                && connection.processes[side] == own
                && connection.processes[1 - side] == far
                && connection.ends[side] != not
                && may_have
        };
        self.connections.iter().rposition(is_it)
    }

    fn hand_over(&mut self, side: usize, own: ProcessId, far: ProcessId, lane: u32) -> Check {
        let text = || format!("process {own} got lane {lane} to {far}");
        ensure(!self.is_held[side], "a host that holds opens no lanes", text)?;
        let is_over = self.known[side].contains(&own) || self.known[side].contains(&far);
        ensure(!is_over, "an ended process gets no lane", text)?;
        if self.unknown.contains(&own) {
            // The daemon keeps the newest for it.
            if let Some(kept) = self.of_pair(side, own, far, End::Kept) {
                self.close(kept, side);
            }
            if let Some(connection) = self.find(side, own, far, lane, End::Closed) {
                self.connections[connection].ends[side] = End::Kept;
            }
            return Ok(());
        }
        let last = self.last_lane.insert((own, far), lane).unwrap_or(0);
        ensure(lane > last, "numbers of lanes grow", || format!("{}, after lane {last}", text()))?;
        // A new run of the daemon may not know of the lane that the process closes for this one.
        if self.restarts > 0
            && let Some(before) = self.of_pair(side, own, far, End::Process)
        {
            self.close(before, side);
        }
        let pair =
            |other: &Connection| other.processes[side] == own && other.processes[1 - side] == far;
        let held =
            self.connections.iter().filter(|it| pair(it) && it.ends[side] == End::Process).count();
        ensure(held == 0, "a pair has one living lane", || format!("{}, and has another", text()))?;
        let Some(connection) = self.find(side, own, far, lane, End::Closed) else {
            // The connection has broken meanwhile: the process sees its end at once.
            self.daemons[side].broken(own, far, lane);
            self.plan(AGAIN, Event::Want { own, far });
            return Ok(());
        };
        self.ends += 1;
        self.connections[connection].ends[side] = End::Process;
        let is_living = |it: &&Connection| pair(it) && it.ends == [End::Process; 2];
        let living = self.connections.iter().filter(is_living).count();
        ensure(living <= 1, "a pair has one living lane", || {
            format!("{own} and {far} have {living}")
        })?;
        if self.connections[connection].ends[1 - side] == End::Closed {
            self.end_sees(connection, side);
        }
        Ok(())
    }

    /// One side closes its end; the other one sees it later.
    fn close(&mut self, connection: usize, side: usize) {
        self.connections[connection].ends[side] = End::Closed;
        self.end_sees(connection, 1 - side);
    }

    fn end_sees(&mut self, connection: usize, end: usize) {
        let wait = self.delay();
        self.plan(wait, Event::Broken { connection, end });
    }

    fn broken(&mut self, connection: usize, end: usize) -> Check {
        let Connection { lane, processes, ends, dialled_by, .. } = self.connections[connection];
        let (own, far) = (processes[end], processes[1 - end]);
        match ends[end] {
            End::Process if self.computes == Some(end) => Ok(()),
            End::Process => {
                self.close(connection, end);
                if !self.unknown.contains(&own) {
                    self.daemons[end].broken(own, far, lane);
                }
                let wait = self.draw.about(AGAIN);
                self.plan(wait, Event::Want { own, far });
                Ok(())
            }
            End::Daemon if dialled_by == end => {
                self.close(connection, end);
                let outputs = self.daemons[end].dial_failed(own, far, lane);
                self.carry_out(end, outputs)
            }
            _ => Ok(()),
        }
    }

    /// After the time of rest all that is wanted is there.
    fn at_rest(&self) -> Check {
        let by_looking = |(own, _): &&(ProcessId, ProcessId)| self.computes != Some(side_of(*own));
        for pair in self.wanted.iter().filter(by_looking).map(|(own, far)| [*own, *far]) {
            if pair.iter().any(|process| self.ended.contains(process)) {
                continue;
            }
            let mut processes = pair;
            processes.sort_unstable_by_key(|process| side_of(*process));
            let is_there =
                |it: &&Connection| it.processes == processes && it.ends == [End::Process; 2];
            let living = self.connections.iter().filter(is_there).count();
            ensure(living == 1, "a wanted lane comes", || {
                format!("{} and {} have {living} lanes at the end", pair[0], pair[1])
            })?;
        }
        Ok(())
    }
}
