//! Lanes between processes on different hosts, as the daemon of one end sees them.
//!
//! For each pair one side dials: the one that can reach the other, else the one with the lower [`ProcessId`]. The other
//! side asks for the lane over the trunk. The accepting daemon confirms a lane over the trunk. The dialling daemon hands
//! its socket over only then, so neither process gets a lane that the other one will not have.
//!
//! A dial that fails goes on with the next address. After the last one the other side has its turn, and when that has
//! failed too, the pair is unreachable until a process wants the lane again.
//!
//! Numbers of lanes grow. The last digit of a number says whether the lower or the higher process's side has dialled, so that two sides that both dial,
//! because their host tables differ, never use one number. Then the lower side's dial wins. A lane with a number that is
//! not above all that were accepted is refused. The daemon that accepts a lane closes the older one of the pair.
//!
//! A daemon that starts again knows no lane until its processes say which ones they have ([`Dialling::has`]). So the two
//! sides may know different numbers. Each side *doubts* the lanes that it knew before: a request or a connection with a
//! lower number says that the other side has forgotten the doubted lane, which is given up for one with a higher number.
//! A number also names the run of the daemon that dials, since connections of the run before may still arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_wire::{HostNumber, JobId, ProcessId};

mod messages;

pub use messages::{DialContent, DialMessage, DialOutput};

/// The digit of a lane's number that says that the lower process's side has dialled.
const LOW: u32 = 1;
/// The digits that name the run of the daemon that has dialled. A connection is no older than a few runs.
const RUN: u32 = 0b1_1110;

/// The directions in which connections between this host and another one can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReach {
    /// Each reaches the other.
    Both,
    /// Only this host reaches the other.
    FromHere,
    /// Only the other host reaches this one.
    FromThere,
}

/// The lanes of all processes of one host.
#[derive(Clone, Debug)]
pub struct Dialling {
    /// The time within which a connected lane must be confirmed.
    limit: Duration,
    /// The digits of this run of the daemon in the numbers of lanes.
    run: u32,
    /// The digits of the present runs of the other hosts' daemons, but the first ones.
    runs: BTreeMap<HostNumber, u32>,
    hosts: BTreeMap<HostNumber, Route>,
    pairs: BTreeMap<(ProcessId, ProcessId), Ends>,
    ended: BTreeMap<JobId, BTreeSet<ProcessId>>,
    is_held: bool,
}

#[derive(Clone, Copy, Debug)]
struct Route {
    reach: HostReach,
    addresses: usize,
}

/// A pair of processes.
#[derive(Clone, Copy, Debug)]
struct Ends {
    own: ProcessId,
    far: ProcessId,
    host: HostNumber,
    phase: Phase,
    is_wanted: bool,
    /// The other side has tried all its addresses.
    is_second: bool,
    /// A request came while this host held.
    is_owed: bool,
    /// The highest number that this side has used.
    tried: u32,
    /// The highest number of a lane that was accepted, or that the other side has given up.
    seen: u32,
    /// The digits of this run of the daemon.
    run: u32,
    /// The other side may not know the lanes up to this one: its daemon has started again since, or this one has.
    doubted: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The other side has been asked, or it has its turn.
    Asked {
        is_turn: bool,
    },
    Dialling {
        lane: u32,
        address: usize,
        is_accepted: bool,
    },
    /// The connection stands, and its confirmation is awaited until then.
    Offered {
        lane: u32,
        address: usize,
        until: Duration,
    },
    Open {
        lane: u32,
    },
    Unreachable,
}

impl Dialling {
    /// Creates the lanes of a host that has none. A connected lane that is not confirmed within `limit` has failed.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self::of_run(limit, 0)
    }

    /// Creates the lanes of a host whose daemon has had so many runs before, none of which this one knows.
    #[must_use]
    pub fn of_run(limit: Duration, run: u32) -> Self {
        let run = digits_of(run);
        let (runs, hosts) = (BTreeMap::new(), BTreeMap::new());
        let (pairs, ended) = (BTreeMap::new(), BTreeMap::new());
        Self { limit, run, runs, hosts, pairs, ended, is_held: false }
    }

    /// Adds a host, or says anew how it is reached and how many addresses it has.
    pub fn set_host(&mut self, host: HostNumber, reach: HostReach, addresses: usize) {
        self.hosts.insert(host, Route { reach, addresses });
    }

    /// A process of this host wants a lane to a process of another one.
    pub fn want(&mut self, own: ProcessId, far: ProcessId, host: HostNumber) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        let Some(mut ends) = self.ends(own, far, host) else { return outputs };
        ends.is_wanted = !matches!(ends.phase, Phase::Open { .. });
        if matches!(ends.phase, Phase::Idle | Phase::Unreachable) {
            ends.is_second = false;
            self.start(&mut ends, &mut outputs);
        }
        self.keep(ends);
        outputs
    }

    /// A process of this host has a lane, or has had it, which an earlier run of this daemon has handed over. Later ones get
    /// higher numbers. What this run knows already changes nothing.
    pub fn has(
        &mut self,
        own: ProcessId,
        far: ProcessId,
        host: HostNumber,
        lane: u32,
    ) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        let Some(mut ends) = self.ends(own, far, host).filter(|ends| ends.seen < lane) else {
            return outputs;
        };
        (ends.seen, ends.doubted) = (lane, lane);
        match ends.phase {
            Phase::Idle | Phase::Unreachable | Phase::Open { .. } => {
                ends.phase = Phase::Open { lane };
            }
            Phase::Dialling { lane: next, .. } | Phase::Offered { lane: next, .. }
                if next > lane => {}
            // The process takes no lane with a lower number.
            _ => self.begin_again(&mut ends, &mut outputs),
        }
        self.keep(ends);
        outputs
    }

    /// The daemon of a host has started again, and has had so many runs before. It knows no lane but those that its processes
    /// tell it. The host may be added later.
    pub fn restarted(&mut self, host: HostNumber, run: u32) {
        self.runs.insert(host, digits_of(run));
        for ends in self.pairs.values_mut().filter(|ends| ends.host == host) {
            ends.doubted = ends.highest();
        }
    }

    /// A dial has connected, and its preamble is sent.
    pub fn dialled(
        &mut self,
        own: ProcessId,
        far: ProcessId,
        lane: u32,
        now: Duration,
    ) -> Vec<DialOutput> {
        let Some(mut ends) = self.pairs.get(&(own, far)).copied() else {
            return vec![DialOutput::Cancel { own, far, lane }];
        };
        let mut outputs = Vec::new();
        match ends.phase {
            Phase::Dialling { lane: current, is_accepted: true, .. } if current == lane => {
                ends.open(lane, &mut outputs);
            }
            Phase::Dialling { lane: current, address, .. } if current == lane => {
                ends.phase = Phase::Offered { lane, address, until: now + self.limit };
            }
            _ => outputs.push(DialOutput::Cancel { own, far, lane }),
        }
        self.keep(ends);
        outputs
    }

    /// A dial has failed, or the other side has closed the connection before it confirmed the lane.
    pub fn dial_failed(&mut self, own: ProcessId, far: ProcessId, lane: u32) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        let Some(mut ends) = self.pairs.get(&(own, far)).copied() else { return outputs };
        match ends.phase {
            Phase::Dialling { lane: current, address, .. }
            | Phase::Offered { lane: current, address, .. }
                if current == lane =>
            {
                self.dial(&mut ends, address + 1, &mut outputs);
            }
            _ => {}
        }
        self.keep(ends);
        outputs
    }

    /// A connection from another host has shown a valid preamble.
    pub fn arrived(
        &mut self,
        own: ProcessId,
        far: ProcessId,
        host: HostNumber,
        lane: u32,
    ) -> Vec<DialOutput> {
        let refuse = DialOutput::Refuse { own, far, lane };
        let Some(mut ends) = self.ends(own, far, host) else { return vec![refuse] };
        let mut outputs = Vec::new();
        let is_late = lane & RUN != self.runs.get(&host).copied().unwrap_or(0);
        let is_dialling = matches!(ends.phase, Phase::Dialling { .. } | Phase::Offered { .. });
        if is_late {
            outputs.push(refuse); // an earlier run has dialled it
        } else if self.is_held {
            ends.is_owed = true;
            outputs.extend([refuse, ends.send(DialContent::Later { lane })]);
        } else if lane <= ends.seen || (is_dialling && ends.is_low()) {
            outputs.push(refuse);
            let is_under_way = is_dialling || ends.is_asking();
            if ends.seen <= ends.doubted && !is_under_way {
                self.begin_again(&mut ends, &mut outputs);
            }
        } else {
            ends.drop_lane(&mut outputs);
            ends.open(lane, &mut outputs);
            outputs.push(ends.send(DialContent::Accepted { lane }));
        }
        self.keep(ends);
        outputs
    }

    /// The far process has sent something on a lane that was offered, so the other daemon has accepted it.
    pub fn accepted(&mut self, own: ProcessId, far: ProcessId, lane: u32) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        if let Some(mut ends) = self.pairs.get(&(own, far)).copied() {
            ends.accepted(lane, &mut outputs);
            self.keep(ends);
        }
        outputs
    }

    /// A message of another daemon has come.
    pub fn heard(&mut self, from: HostNumber, message: DialMessage) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        let Some(mut ends) = self.ends(message.to, message.from, from) else { return outputs };
        match message.content {
            DialContent::Ask { after } => self.asked(&mut ends, after, false, &mut outputs),
            DialContent::Turn { after } => self.asked(&mut ends, after, true, &mut outputs),
            DialContent::Accepted { lane } => ends.accepted(lane, &mut outputs),
            DialContent::Later { lane: refused } => match ends.phase {
                Phase::Dialling { lane, .. } | Phase::Offered { lane, .. } if lane == refused => {
                    ends.drop_lane(&mut outputs);
                }
                _ => {}
            },
            DialContent::Unreachable => {
                if ends.is_asking() {
                    ends.unreachable(&mut outputs);
                }
            }
        }
        self.keep(ends);
        outputs
    }

    /// The number of other processes than `far` to which a process of this host has a lane, or is getting one.
    #[must_use]
    pub fn lanes_besides(&self, own: ProcessId, far: ProcessId) -> usize {
        let is_one = |phase: &Phase| !matches!(phase, Phase::Idle | Phase::Unreachable);
        let others = self.pairs.values().filter(|ends| ends.own == own && ends.far != far);
        others.filter(|ends| is_one(&ends.phase)).count()
    }

    /// A process of this host has reported that a lane of its own is broken. A new one is opened when it is wanted.
    pub fn broken(&mut self, own: ProcessId, far: ProcessId, lane: u32) {
        let ends = self.pairs.get_mut(&(own, far));
        if let Some(ends) = ends.filter(|ends| ends.phase == Phase::Open { lane }) {
            ends.phase = Phase::Idle;
        }
    }

    /// The trunk to a host is new, so messages may have been lost.
    pub fn trunk_renewed(&mut self, host: HostNumber) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        for mut ends in self.pairs_of(|ends| ends.host == host) {
            match ends.phase {
                Phase::Asked { is_turn: false } => {
                    outputs.push(ends.send(DialContent::Ask { after: ends.highest() }));
                }
                Phase::Asked { is_turn: true } => {
                    outputs.push(ends.send(DialContent::Turn { after: ends.highest() }));
                }
                Phase::Open { lane } => outputs.push(ends.send(DialContent::Accepted { lane })),
                Phase::Idle if ends.is_wanted => self.start(&mut ends, &mut outputs),
                _ => {}
            }
            self.keep(ends);
        }
        outputs
    }

    /// Looks at the time: a connected lane that was not confirmed has failed.
    pub fn look(&mut self, now: Duration) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        let late = |ends: &Ends| matches!(ends.phase, Phase::Offered { until, .. } if until <= now);
        for ends in self.pairs_of(late) {
            let Phase::Offered { lane, .. } = ends.phase else { continue };
            let (own, far) = (ends.own, ends.far);
            outputs.push(DialOutput::Cancel { own, far, lane });
            outputs.extend(self.dial_failed(own, far, lane));
        }
        outputs
    }

    /// The time at which the driver has to look again, if any.
    #[must_use]
    pub fn next_look(&self) -> Option<Duration> {
        let until = |ends: &Ends| match ends.phase {
            Phase::Offered { until, .. } => Some(until),
            _ => None,
        };
        self.pairs.values().filter_map(until).min()
    }

    /// The view of this host has become invalid (it holds), or valid again. A host that holds opens no lanes; requests
    /// that come meanwhile are met afterwards.
    pub fn hold(&mut self, is_held: bool) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        if std::mem::replace(&mut self.is_held, is_held) == is_held {
            return outputs;
        }
        let concerned = |ends: &Ends| match is_held {
            true => matches!(ends.phase, Phase::Dialling { .. } | Phase::Offered { .. }),
            false => (ends.is_owed || ends.is_wanted) && !matches!(ends.phase, Phase::Open { .. }),
        };
        for mut ends in self.pairs_of(concerned) {
            if is_held {
                ends.drop_lane(&mut outputs);
                ends.is_owed = true;
            } else {
                self.start(&mut ends, &mut outputs);
            }
            self.keep(ends);
        }
        outputs
    }

    /// A process of a job has ended, on this host or another one.
    pub fn process_ended(&mut self, job: JobId, process: ProcessId) -> Vec<DialOutput> {
        self.ended.entry(job).or_default().insert(process);
        self.forget(|ends| ends.own == process || ends.far == process)
    }

    /// Forgets the ends of the processes of a job that is over.
    pub fn job_over(&mut self, job: JobId) {
        self.ended.remove(&job);
    }

    /// A host is lost. Its lanes stay until they are read to their ends; nothing new is opened.
    pub fn host_lost(&mut self, host: HostNumber) -> Vec<DialOutput> {
        self.hosts.remove(&host);
        self.runs.remove(&host);
        self.forget(|ends| ends.host == host)
    }

    /// The number of the open lane of a pair, if there is one.
    #[must_use]
    pub fn open_lane(&self, own: ProcessId, far: ProcessId) -> Option<u32> {
        match self.pairs.get(&(own, far))?.phase {
            Phase::Open { lane } => Some(lane),
            _ => None,
        }
    }

    fn forget(&mut self, concerned: impl Fn(&Ends) -> bool) -> Vec<DialOutput> {
        let mut outputs = Vec::new();
        for mut ends in self.pairs_of(concerned) {
            if !matches!(ends.phase, Phase::Open { .. }) {
                ends.drop_lane(&mut outputs);
            }
            self.pairs.remove(&(ends.own, ends.far));
        }
        outputs
    }

    fn pairs_of(&self, concerned: impl Fn(&Ends) -> bool) -> Vec<Ends> {
        self.pairs.values().filter(|ends| concerned(ends)).copied().collect()
    }

    /// The pair of two processes, unless one has ended or the host takes no part.
    fn ends(&self, own: ProcessId, far: ProcessId, host: HostNumber) -> Option<Ends> {
        let has_ended = |process| self.ended.values().any(|ended| ended.contains(process));
        let is_over = has_ended(&own) || has_ended(&far) || !self.hosts.contains_key(&host);
        let new = Ends {
            own,
            far,
            host,
            phase: Phase::Idle,
            is_wanted: false,
            is_second: false,
            is_owed: false,
            tried: 0,
            seen: 0,
            run: self.run,
            doubted: 0,
        };
        (!is_over).then(|| self.pairs.get(&(own, far)).copied().unwrap_or(new))
    }

    fn keep(&mut self, ends: Ends) {
        self.pairs.insert((ends.own, ends.far), ends);
    }

    /// Takes a request for a lane above a number, or the turn to dial.
    fn asked(&self, ends: &mut Ends, after: u32, is_turn: bool, outputs: &mut Vec<DialOutput>) {
        // One of two messages that cross names a higher number: the side that hears it dials.
        let is_crossed = is_turn && after < ends.highest() && ends.has_asked(false);
        if is_crossed {
            return;
        }
        ends.is_second |= is_turn;
        let is_newer = ends.lane().is_some_and(|lane| lane > after.max(ends.doubted));
        // Both sides have asked: the lower one dials.
        let has_turn = ends.has_asked(true) && after > ends.highest();
        let waits = ends.is_asking() && !is_turn && !ends.is_low() && !has_turn;
        if is_newer || waits {
            return;
        }
        ends.seen = ends.seen.max(after);
        ends.drop_lane(outputs);
        if self.is_held {
            ends.is_owed = true;
        } else {
            self.dial(ends, 0, outputs);
        }
    }

    /// Gives up what there is of a lane, and begins to open the next one.
    fn begin_again(&self, ends: &mut Ends, outputs: &mut Vec<DialOutput>) {
        ends.drop_lane(outputs);
        ends.is_owed |= self.is_held;
        self.start(ends, outputs);
    }

    /// Begins to open a lane, from the side that dials.
    fn start(&self, ends: &mut Ends, outputs: &mut Vec<DialOutput>) {
        if self.is_held {
            return;
        }
        ends.is_owed = false;
        let reach = self.hosts.get(&ends.host).map_or(HostReach::Both, |route| route.reach);
        let dials = match reach {
            HostReach::FromHere => true,
            HostReach::FromThere => false,
            HostReach::Both => ends.is_low(),
        };
        if dials || ends.is_second {
            self.dial(ends, 0, outputs);
        } else {
            ends.phase = Phase::Asked { is_turn: false };
            outputs.push(ends.send(DialContent::Ask { after: ends.highest() }));
        }
    }

    /// Dials an address. Beyond the last one the other side has its turn, unless it has had it.
    fn dial(&self, ends: &mut Ends, address: usize, outputs: &mut Vec<DialOutput>) {
        let addresses = self.hosts.get(&ends.host).map_or(0, |route| route.addresses);
        if address < addresses {
            let lane = ends.next_lane();
            ends.tried = lane;
            ends.phase = Phase::Dialling { lane, address, is_accepted: false };
            let (own, far, host) = (ends.own, ends.far, ends.host);
            outputs.push(DialOutput::Dial { own, far, host, lane, address });
        } else if ends.is_second {
            outputs.push(ends.send(DialContent::Unreachable));
            ends.unreachable(outputs);
        } else {
            ends.phase = Phase::Asked { is_turn: true };
            outputs.push(ends.send(DialContent::Turn { after: ends.highest() }));
        }
    }
}

/// The digits of a run in the numbers of its lanes.
const fn digits_of(run: u32) -> u32 {
    run << 1 & RUN
}

impl Ends {
    /// The other daemon has accepted a lane.
    fn accepted(&mut self, accepted: u32, outputs: &mut Vec<DialOutput>) {
        match &mut self.phase {
            Phase::Dialling { lane, is_accepted, .. } if *lane == accepted => *is_accepted = true,
            Phase::Offered { lane, .. } if *lane == accepted => self.open(accepted, outputs),
            _ => {}
        }
    }

    fn is_low(&self) -> bool {
        self.own < self.far
    }

    /// Whether the other side was asked, or has its turn.
    const fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asked { .. })
    }

    fn has_asked(&self, is_turn: bool) -> bool {
        self.phase == Phase::Asked { is_turn }
    }

    const fn lane(&self) -> Option<u32> {
        match self.phase {
            Phase::Dialling { lane, .. } | Phase::Offered { lane, .. } | Phase::Open { lane } => {
                Some(lane)
            }
            _ => None,
        }
    }

    fn highest(&self) -> u32 {
        self.tried.max(self.seen)
    }

    /// The next number of this side: its last digits name the side and the run.
    fn next_lane(&self) -> u32 {
        let digits = self.run | u32::from(self.is_low());
        let next = self.highest() & !(RUN | LOW) | digits;
        if next > self.highest() { next } else { next + (RUN | LOW) + 1 }
    }

    fn send(&self, content: DialContent) -> DialOutput {
        let message = DialMessage { from: self.own, to: self.far, content };
        DialOutput::Send { to: self.host, message }
    }

    fn open(&mut self, lane: u32, outputs: &mut Vec<DialOutput>) {
        let (own, far) = (self.own, self.far);
        (self.is_wanted, self.is_second, self.is_owed) = (false, false, false);
        self.seen = self.seen.max(lane);
        self.phase = Phase::Open { lane };
        outputs.push(DialOutput::HandOver { own, far, lane });
    }

    /// Gives up the lane that there is or that is being dialled.
    fn drop_lane(&mut self, outputs: &mut Vec<DialOutput>) {
        let (own, far) = (self.own, self.far);
        match self.phase {
            Phase::Dialling { lane, .. } | Phase::Offered { lane, .. } => {
                outputs.push(DialOutput::Cancel { own, far, lane });
            }
            Phase::Open { lane } => {
                // The process has a lane no more: it wants the next one, or an answer that there is none.
                self.is_wanted = true;
                outputs.push(DialOutput::Close { own, far, lane });
            }
            _ => {}
        }
        self.phase = Phase::Idle;
    }

    fn unreachable(&mut self, outputs: &mut Vec<DialOutput>) {
        self.phase = Phase::Unreachable;
        self.is_second = false;
        if std::mem::take(&mut self.is_wanted) {
            outputs.push(DialOutput::Unreachable { own: self.own, far: self.far });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    const A: HostNumber = HostNumber(0);
    const B: HostNumber = HostNumber(1);

    fn process(host: HostNumber) -> ProcessId {
        ProcessId { segment: SegmentId(host.0.into()), slot: Slot(0), incarnation: Incarnation(1) }
    }

    fn daemon(other: HostNumber, reach: HostReach) -> Dialling {
        let mut dialling = Dialling::new(Duration::from_secs(5));
        dialling.set_host(other, reach, 2);
        dialling
    }

    /// The messages among outputs.
    fn messages(outputs: &[DialOutput]) -> Vec<DialMessage> {
        let message = |output: &DialOutput| match output {
            DialOutput::Send { message, .. } => Some(*message),
            _ => None,
        };
        outputs.iter().filter_map(message).collect()
    }

    fn dialled(outputs: &[DialOutput]) -> Vec<(u32, usize)> {
        let dial = |output: &DialOutput| match output {
            DialOutput::Dial { lane, address, .. } => Some((*lane, *address)),
            _ => None,
        };
        outputs.iter().filter_map(dial).collect()
    }

    #[test]
    fn the_higher_process_asks_and_both_get_one_lane() {
        let (a, b) = (process(A), process(B));
        let (mut low, mut high) = (daemon(B, HostReach::Both), daemon(A, HostReach::Both));
        let asked = high.want(b, a, A);
        assert_eq!(messages(&asked)[0].content, DialContent::Ask { after: 0 });
        let outputs = low.heard(B, messages(&asked)[0]);
        assert_eq!(dialled(&outputs), [(1, 0)]);
        assert_eq!(low.want(a, b, B), [], "it dials already");
        assert_eq!(low.dialled(a, b, 1, Duration::ZERO), []);
        let accepted = high.arrived(b, a, A, 1);
        assert_eq!(accepted[0], DialOutput::HandOver { own: b, far: a, lane: 1 });
        let opened = low.heard(B, messages(&accepted)[0]);
        assert_eq!(opened, [DialOutput::HandOver { own: a, far: b, lane: 1 }]);
        assert_eq!(
            high.arrived(b, a, A, 1),
            [DialOutput::Refuse { own: b, far: a, lane: 1 }],
            "seen"
        );
        assert_eq!((low.open_lane(a, b), high.open_lane(b, a)), (Some(1), Some(1)));
    }

    #[test]
    fn a_dial_that_fails_tries_all_addresses_then_the_other_side() {
        let (a, b) = (process(A), process(B));
        let (mut low, mut high) = (daemon(B, HostReach::Both), daemon(A, HostReach::Both));
        assert_eq!(dialled(&low.want(a, b, B)), [(1, 0)]);
        assert_eq!(dialled(&low.dial_failed(a, b, 1)), [(33, 1)]);
        assert_eq!(low.dial_failed(a, b, 1), [], "an old one");
        let turn = messages(&low.dial_failed(a, b, 33));
        assert_eq!(turn[0].content, DialContent::Turn { after: 33 });
        assert_eq!(dialled(&high.heard(A, turn[0])), [(64, 0)]);
        assert_eq!(dialled(&high.dial_failed(b, a, 64)), [(96, 1)]);
        let end = high.dial_failed(b, a, 96);
        assert_eq!(messages(&end)[0].content, DialContent::Unreachable);
        assert_eq!(end.len(), 1, "no process of its own wanted it");
        assert_eq!(low.heard(B, messages(&end)[0]), [DialOutput::Unreachable { own: a, far: b }]);
        assert_eq!(dialled(&low.want(a, b, B)), [(65, 0)], "wanted again");
    }

    #[test]
    fn the_side_that_reaches_the_other_dials() {
        let (a, b) = (process(A), process(B));
        let mut low = daemon(B, HostReach::FromThere);
        assert_eq!(messages(&low.want(a, b, B)).len(), 1);
        let mut high = daemon(A, HostReach::FromHere);
        assert_eq!(dialled(&high.want(b, a, A)), [(32, 0)]);
        high.dialled(b, a, 32, Duration::ZERO);
        assert_eq!(high.next_look(), Some(Duration::from_secs(5)));
        let late = high.look(Duration::from_secs(5));
        assert_eq!(late[0], DialOutput::Cancel { own: b, far: a, lane: 32 });
        assert_eq!(dialled(&late), [(64, 1)]);
    }

    #[test]
    fn if_both_dial_the_lower_side_wins() {
        let (a, b) = (process(A), process(B));
        let (mut low, mut high) = (daemon(B, HostReach::FromHere), daemon(A, HostReach::FromHere));
        low.want(a, b, B);
        high.want(b, a, A);
        assert_eq!(low.arrived(a, b, B, 32), [DialOutput::Refuse { own: a, far: b, lane: 32 }]);
        let outputs = high.arrived(b, a, A, 1);
        assert_eq!(outputs[0], DialOutput::Cancel { own: b, far: a, lane: 32 });
        assert_eq!(high.open_lane(b, a), Some(1));
        low.heard(B, messages(&outputs)[0]);
        assert_eq!(
            low.dialled(a, b, 1, Duration::ZERO),
            [DialOutput::HandOver { own: a, far: b, lane: 1 }]
        );
    }

    #[test]
    fn a_host_that_holds_opens_nothing_until_its_view_is_valid() {
        let (a, b) = (process(A), process(B));
        let (mut low, mut high) = (daemon(B, HostReach::Both), daemon(A, HostReach::Both));
        assert_eq!(high.hold(true), []);
        low.want(a, b, B);
        let later = high.arrived(b, a, A, 1);
        assert_eq!(later[0], DialOutput::Refuse { own: b, far: a, lane: 1 });
        assert_eq!(
            low.heard(B, messages(&later)[0]),
            [DialOutput::Cancel { own: a, far: b, lane: 1 }]
        );
        let asked = messages(&high.hold(false));
        assert_eq!(asked[0].content, DialContent::Ask { after: 0 });
        assert_eq!(dialled(&low.heard(B, asked[0])), [(33, 0)]);
        assert_eq!(low.hold(true), [DialOutput::Cancel { own: a, far: b, lane: 33 }]);
        assert_eq!(low.want(a, b, B), []);
        assert_eq!(dialled(&low.hold(false)), [(65, 0)]);
    }

    #[test]
    fn a_broken_lane_is_followed_by_one_with_a_higher_number() {
        let (a, b) = (process(A), process(B));
        let (mut low, mut high) = (daemon(B, HostReach::Both), daemon(A, HostReach::Both));
        low.want(a, b, B);
        low.dialled(a, b, 1, Duration::ZERO);
        let accepted = messages(&high.arrived(b, a, A, 1));
        low.heard(B, accepted[0]);
        high.broken(b, a, 1);
        let asked = messages(&high.want(b, a, A));
        assert_eq!(asked[0].content, DialContent::Ask { after: 1 });
        let outputs = low.heard(B, asked[0]);
        assert_eq!(outputs[0], DialOutput::Close { own: a, far: b, lane: 1 });
        assert_eq!(dialled(&outputs), [(33, 0)]);
        assert_eq!(low.heard(B, asked[0]), [], "a lane above is coming");
        let late = messages(&high.trunk_renewed(A));
        assert_eq!(late[0].content, DialContent::Ask { after: 1 });
    }

    #[test]
    fn a_process_whose_lane_is_taken_back_learns_that_there_is_no_other() {
        let (a, b) = (process(A), process(B));
        let mut high = daemon(A, HostReach::Both);
        high.want(b, a, A);
        high.arrived(b, a, A, 1);
        let turn = DialMessage { from: a, to: b, content: DialContent::Turn { after: 1 } };
        let outputs = high.heard(A, turn);
        assert_eq!(outputs[0], DialOutput::Close { own: b, far: a, lane: 1 });
        assert_eq!(dialled(&high.dial_failed(b, a, 32)), [(64, 1)]);
        let end = high.dial_failed(b, a, 64);
        assert_eq!(end[1], DialOutput::Unreachable { own: b, far: a });
    }

    /// The two sides with a lane of this number, which the lower one has dialled.
    fn connected(number: u32) -> [Dialling; 2] {
        let (a, b) = (process(A), process(B));
        let (mut low, mut high) = (daemon(B, HostReach::Both), daemon(A, HostReach::Both));
        for lane in (1..=number).step_by(32) {
            low.broken(a, b, lane.saturating_sub(32));
            assert_eq!(dialled(&low.want(a, b, B)), [(lane, 0)]);
            low.dialled(a, b, lane, Duration::ZERO);
            low.heard(B, messages(&high.arrived(b, a, A, lane))[0]);
        }
        assert_eq!([low.open_lane(a, b), high.open_lane(b, a)], [Some(number); 2]);
        [low, high]
    }

    #[test]
    fn each_run_has_numbers_of_its_own() {
        let (a, b) = (process(A), process(B));
        for (run, lane) in [(0, 1), (1, 3), (15, 31), (16, 1)] {
            let mut low = Dialling::of_run(Duration::from_secs(5), run);
            low.set_host(B, HostReach::Both, 2);
            assert_eq!(dialled(&low.want(a, b, B)), [(lane, 0)]);
            assert_eq!(dialled(&low.dial_failed(a, b, lane)), [(lane + 32, 1)]);
            let mut high = Dialling::new(Duration::from_secs(5));
            high.restarted(A, run);
            high.set_host(A, HostReach::Both, 1);
            let late = lane ^ 2;
            let refused = DialOutput::Refuse { own: b, far: a, lane: late };
            assert_eq!(high.arrived(b, a, A, late), [refused], "of another run");
            let opened = DialOutput::HandOver { own: b, far: a, lane };
            assert_eq!(high.arrived(b, a, A, lane)[0], opened);
        }
    }

    #[test]
    fn a_lane_that_a_process_has_is_known_to_a_new_run() {
        let (a, b) = (process(A), process(B));
        let [_, mut high] = connected(65);
        let mut low = daemon(B, HostReach::Both);
        high.restarted(A, 0);
        assert_eq!(low.has(a, b, B, 65), []);
        assert_eq!(low.has(a, b, B, 33), [], "an older one");
        assert_eq!((low.open_lane(a, b), low.lanes_besides(a, a)), (Some(65), 1));
        low.broken(a, b, 65);
        assert_eq!(dialled(&low.want(a, b, B)), [(97, 0)]);
        assert_eq!(high.arrived(b, a, A, 97)[1], DialOutput::HandOver { own: b, far: a, lane: 97 });
        low.heard(B, DialMessage { from: b, to: a, content: DialContent::Accepted { lane: 97 } });
        low.dialled(a, b, 97, Duration::ZERO);
        assert_eq!(low.has(a, b, B, 65), [], "it has had that one");
        assert_eq!(low.open_lane(a, b), Some(97));
        // Another daemon that has started again may not know the lane.
        let mut low = daemon(B, HostReach::Both);
        low.has(a, b, B, 65);
        let ask = DialMessage { from: b, to: a, content: DialContent::Ask { after: 1 } };
        let outputs = low.heard(B, ask);
        assert_eq!(outputs[0], DialOutput::Close { own: a, far: b, lane: 65 });
        assert_eq!(dialled(&outputs), [(97, 0)]);
    }

    #[test]
    fn a_lane_that_a_new_run_does_not_know_is_given_up_when_another_is_asked_for() {
        let (a, b) = (process(A), process(B));
        let [mut low, _] = connected(65);
        let mut high = daemon(A, HostReach::Both);
        low.restarted(B, 0);
        let asked = messages(&high.want(b, a, A));
        assert_eq!(asked[0].content, DialContent::Ask { after: 0 });
        let outputs = low.heard(B, asked[0]);
        assert_eq!(outputs[0], DialOutput::Close { own: a, far: b, lane: 65 });
        assert_eq!(dialled(&outputs), [(97, 0)]);
        assert_eq!(low.heard(B, asked[0]), [], "a lane above is coming");
    }

    #[test]
    fn a_new_run_that_dials_with_a_number_that_was_used_is_told_so() {
        let (a, b) = (process(A), process(B));
        let [_, mut high] = connected(65);
        let mut low = daemon(B, HostReach::Both);
        assert_eq!(dialled(&low.want(a, b, B)), [(1, 0)]);
        assert_eq!(
            high.arrived(b, a, A, 1),
            [DialOutput::Refuse { own: b, far: a, lane: 1 }],
            "an old one"
        );
        high.restarted(A, 0);
        let outputs = high.arrived(b, a, A, 1);
        assert_eq!(outputs[0], DialOutput::Refuse { own: b, far: a, lane: 1 });
        assert_eq!(outputs[1], DialOutput::Close { own: b, far: a, lane: 65 });
        let asked = messages(&outputs);
        assert_eq!(asked[0].content, DialContent::Ask { after: 65 });
        assert_eq!(dialled(&low.heard(B, asked[0])), [(97, 0)]);
        assert_eq!(high.arrived(b, a, A, 33).len(), 1, "it was asked already");
        // The new run may have given the other side its turn before it heard that.
        let mut low = daemon(B, HostReach::Both);
        low.want(a, b, B);
        low.dial_failed(a, b, 1);
        let turn = messages(&low.dial_failed(a, b, 33));
        assert_eq!(turn[0].content, DialContent::Turn { after: 33 });
        assert_eq!(high.heard(A, turn[0]), []);
        assert_eq!(dialled(&low.heard(B, asked[0])), [(97, 0)]);
        assert_eq!(high.arrived(b, a, A, 97)[0], DialOutput::HandOver { own: b, far: a, lane: 97 });
    }

    #[test]
    fn a_new_run_that_opens_a_lane_begins_again_above_the_one_that_its_process_has() {
        let (a, b) = (process(A), process(B));
        let mut low = daemon(B, HostReach::Both);
        let ask = DialMessage { from: b, to: a, content: DialContent::Ask { after: 0 } };
        assert_eq!(dialled(&low.heard(B, ask)), [(1, 0)]);
        let outputs = low.has(a, b, B, 65);
        assert_eq!(outputs[0], DialOutput::Cancel { own: a, far: b, lane: 1 });
        assert_eq!(dialled(&outputs), [(97, 0)]);
        let mut high = daemon(A, HostReach::Both);
        high.hold(true);
        high.arrived(b, a, A, 1);
        assert_eq!(high.has(b, a, A, 65), []);
        assert_eq!(high.open_lane(b, a), Some(65));
    }

    #[test]
    fn ended_processes_and_lost_hosts_get_no_lanes() {
        let (a, b) = (process(A), process(B));
        let mut low = daemon(B, HostReach::Both);
        low.want(a, b, B);
        assert_eq!(
            low.process_ended(JobId(1), b),
            [DialOutput::Cancel { own: a, far: b, lane: 1 }]
        );
        assert_eq!(
            low.dialled(a, b, 1, Duration::ZERO),
            [DialOutput::Cancel { own: a, far: b, lane: 1 }]
        );
        assert_eq!(low.want(a, b, B), []);
        let mut low = daemon(B, HostReach::Both);
        assert_eq!(low.host_lost(B), []);
        assert_eq!(low.want(a, b, B), []);
        assert_eq!(low.arrived(a, b, B, 32), [DialOutput::Refuse { own: a, far: b, lane: 32 }]);
    }
}
