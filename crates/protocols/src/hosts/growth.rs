//! Hosts that are added to a job while it runs, as the job's conductor decides it.
//!
//! One host is added after the other, each in four steps. The founder allows it, if the machine is one that stays. Then the
//! host checks and makes its part, which has no rank and no guardian yet, and takes words from then on. Then all other hosts
//! give its guests their places, and name the guests that they have themselves. At last the host learns of those, and its
//! guardian begins. So each host knows the places of a guest before that one can come.
//!
//! The segment that a host would have is another one each time, and stands for the attempt: an answer that belongs to an
//! earlier attempt counts for nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use landeck_wire::{HostNumber, ProcessId, SegmentId};
use serde::{Deserialize, Serialize};

/// The answer to wishes of a job that is over, or about to be.
const CLOSED: &str = "it is ending";

/// A host that is to come into a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewHost {
    /// Its number in the machine.
    pub number: HostNumber,
    /// The identity of the job's segment there.
    pub segment: SegmentId,
}

/// The state of a host that is wanted and can have a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// It has no part, and this would be its segment.
    New(SegmentId),
    /// It has a part already.
    There,
    /// It has one that no process joins any more. Another one can be made when that is over.
    Ending,
}

/// An order to the conductor's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrowthOutput {
    /// Look whether a host can come. [`Growth::looked`] takes the answer at once.
    Look(HostNumber),
    /// Ask the founder. [`Growth::allowed`] takes the answer.
    Ask(NewHost),
    /// Have the host check its part. [`Growth::answered`] takes the answer.
    Check(NewHost),
    /// Have the host make its part. [`Growth::answered`] takes the answer.
    Prepare(NewHost),
    /// Write the host behind all others of the job, where it stays, whatever becomes of it.
    Place(NewHost),
    /// Have a host give the guests of the new one their places. [`Growth::told`] takes the answer.
    Tell {
        /// The host that is told.
        to: HostNumber,
        /// The new one.
        host: NewHost,
    },
    /// Have the host take the guests that have come elsewhere, each with whether it is a guest, and then have its guardian
    /// begin.
    Begin {
        /// The host, which is added now.
        host: NewHost,
        /// The guests.
        guests: Vec<(ProcessId, bool)>,
    },
    /// Have the host forget its part.
    Dismiss(HostNumber),
    /// Tell the founder that the job does not come to the host.
    GiveUp(HostNumber),
    /// Tell the processes of the host that wait to join why there is no part.
    Refuse(HostNumber, String),
    /// Answer the wishes for a host. It has a part, or else the reason why not.
    Answer(HostNumber, Result<(), String>),
}

/// The hosts that were added to a job, and those that are to be.
#[derive(Debug)]
pub struct Growth {
    /// The machine is one that stays: its founder keeps the book of the hosts.
    has_founder: bool,
    step: Step,
    /// The hosts that are wanted. The step is that of the first.
    wanted: VecDeque<HostNumber>,
    /// Those whose last part is not over yet.
    ending: BTreeSet<HostNumber>,
    /// Those on which a process waits to join.
    guests_wait: BTreeSet<HostNumber>,
    /// The numbers of the processes that were started on each host that was added and have not ended.
    processes: BTreeMap<HostNumber, BTreeSet<u32>>,
    is_closed: bool,
    is_released: bool,
    outputs: VecDeque<GrowthOutput>,
}

#[derive(Debug)]
enum Step {
    Idle,
    Looking(HostNumber),
    Allowing(NewHost),
    Checking(NewHost),
    Preparing(NewHost),
    Telling {
        host: NewHost,
        /// The other hosts that have not answered.
        awaited: BTreeSet<HostNumber>,
        /// The guests of those that have.
        guests: Vec<(ProcessId, bool)>,
    },
}

impl Growth {
    /// A job to which no host was added, in a machine that stays or in one that was made for it.
    pub const fn new(has_founder: bool) -> Self {
        Self {
            has_founder,
            step: Step::Idle,
            wanted: VecDeque::new(),
            ending: BTreeSet::new(),
            guests_wait: BTreeSet::new(),
            processes: BTreeMap::new(),
            is_closed: false,
            is_released: false,
            outputs: VecDeque::new(),
        }
    }

    /// A job of a machine that stays, to which these hosts were added before its conductor was killed.
    pub fn resumed(added: impl Iterator<Item = HostNumber>) -> Self {
        let processes = added.map(|host| (host, BTreeSet::new())).collect();
        Self { processes, ..Self::new(true) }
    }

    /// Takes the next order.
    pub fn take(&mut self) -> Option<GrowthOutput> {
        self.outputs.pop_front()
    }

    /// Takes the wish for a host, of a process there that wants to join or of any other one. All wishes that come before the
    /// answer have it.
    pub fn want(&mut self, host: HostNumber, waits_there: bool) {
        if waits_there {
            self.guests_wait.insert(host);
        }
        if !self.wanted.contains(&host) && !self.ending.contains(&host) {
            self.wanted.push_back(host);
        }
        self.go_on();
    }

    /// Begins with the next host that is wanted.
    fn go_on(&mut self) {
        if self.is_closed {
            self.wanted.extend(std::mem::take(&mut self.ending));
            for host in std::mem::take(&mut self.wanted) {
                self.answer(host, Err(CLOSED.to_owned()));
            }
        }
        if let (Step::Idle, Some(&host)) = (&self.step, self.wanted.front()) {
            self.step = Step::Looking(host);
            self.outputs.push_back(GrowthOutput::Look(host));
        }
    }

    /// Takes the sight of the host that is wanted next, or the reason why it cannot come.
    pub fn looked(&mut self, host: HostNumber, seen: Result<Prospect, String>) {
        if !matches!(self.step, Step::Looking(wanted) if wanted == host) {
            return;
        }
        match seen {
            Ok(Prospect::New(segment)) => {
                let host = NewHost { number: host, segment };
                match self.has_founder {
                    true => self.ask(Step::Allowing(host), GrowthOutput::Ask(host)),
                    false => self.ask(Step::Checking(host), GrowthOutput::Check(host)),
                }
            }
            Ok(Prospect::There) => self.finish(host, Ok(())),
            Ok(Prospect::Ending) => {
                self.wanted.pop_front();
                self.ending.insert(host);
                self.step = Step::Idle;
                self.go_on();
            }
            Err(why) => self.finish(host, Err(why)),
        }
    }

    fn ask(&mut self, step: Step, question: GrowthOutput) {
        self.step = step;
        self.outputs.push_back(question);
    }

    /// Takes the founder's answer.
    pub fn allowed(&mut self, host: NewHost, outcome: Result<(), String>) {
        if !matches!(self.step, Step::Allowing(asked) if asked == host) {
            return;
        }
        match outcome {
            Ok(()) => self.ask(Step::Checking(host), GrowthOutput::Check(host)),
            Err(why) => self.finish(host.number, Err(why)),
        }
    }

    /// Takes the answer of a host, to the question whether its part is possible or to the order to make it. `others` are those
    /// that have a part now.
    pub fn answered(
        &mut self,
        from: HostNumber,
        answer: Result<(), String>,
        others: &BTreeSet<HostNumber>,
    ) {
        match (&self.step, answer) {
            (&Step::Checking(host), Ok(())) if host.number == from => {
                self.ask(Step::Preparing(host), GrowthOutput::Prepare(host));
            }
            (&Step::Preparing(host), Ok(())) if host.number == from => self.tell(host, others),
            (Step::Checking(host) | Step::Preparing(host), Err(why)) if host.number == from => {
                self.give_up(&why);
            }
            _ => {}
        }
    }

    /// Has all other hosts give the guests of the new one their places.
    fn tell(&mut self, host: NewHost, others: &BTreeSet<HostNumber>) {
        self.outputs.push_back(GrowthOutput::Place(host));
        let told = others.iter().map(|&to| GrowthOutput::Tell { to, host });
        self.outputs.extend(told);
        self.step = Step::Telling { host, awaited: others.clone(), guests: Vec::new() };
        self.begin_if_told();
    }

    /// Takes the guests of a host that has given those of the host with this segment their places.
    pub fn told(&mut self, from: HostNumber, segment: SegmentId, its: Vec<(ProcessId, bool)>) {
        if let Step::Telling { host, awaited, guests } = &mut self.step
            && host.segment == segment
            && awaited.remove(&from)
        {
            guests.extend(its);
            self.begin_if_told();
        }
    }

    fn begin_if_told(&mut self) {
        if let Step::Telling { host, awaited, guests } = &mut self.step
            && awaited.is_empty()
        {
            let (host, guests) = (*host, std::mem::take(guests));
            self.processes.insert(host.number, BTreeSet::new());
            self.outputs.push_back(GrowthOutput::Begin { host, guests });
            self.finish(host.number, Ok(()));
        }
    }

    /// Takes note that a host is lost, for this reason. The conductor may learn it before its sight of the hosts does.
    pub fn lost(&mut self, host: HostNumber, why: &str) {
        if self.adding().is_some_and(|adding| adding.number == host) {
            self.give_up(why);
        } else if self.wanted.contains(&host) || self.ending.remove(&host) {
            self.wanted.retain(|wanted| *wanted != host);
            self.answer(host, Err(why.to_owned()));
        }
        self.await_no_longer(host);
    }

    /// Takes note that the daemon of a host was killed, and that the next one has its place: what was sent to it may be lost.
    pub fn restarted(&mut self, to: HostNumber) {
        if let Step::Telling { host, awaited, .. } = &self.step
            && awaited.contains(&to)
        {
            self.outputs.push_back(GrowthOutput::Tell { to, host: *host });
        }
    }

    /// Takes note that the part of a host is over.
    pub fn over(&mut self, host: HostNumber) {
        if self.ending.remove(&host) {
            self.wanted.push_back(host);
            self.go_on();
        }
        self.await_no_longer(host);
    }

    fn await_no_longer(&mut self, host: HostNumber) {
        if let Step::Telling { awaited, .. } = &mut self.step
            && awaited.remove(&host)
        {
            self.begin_if_told();
        }
    }

    /// Takes note that the guardian of a host that was added did not begin, for this reason.
    pub fn not_started(&mut self, host: HostNumber, why: &str) {
        self.outputs.push_back(GrowthOutput::Refuse(host, why.to_owned()));
        self.leave(host);
    }

    /// Adds no further host, since the job is over or about to be.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.give_up(CLOSED);
        self.step = Step::Idle;
        self.go_on();
    }

    /// Whether the hosts that were added are to end with their last processes, because no other one has a part. No further host
    /// is added then. This is so once. `hosts` are those that have a part.
    pub fn release(&mut self, hosts: &BTreeSet<HostNumber>) -> bool {
        if self.is_released || !hosts.iter().all(|&host| self.is_added(host)) {
            return false;
        }
        self.is_released = true;
        self.close();
        true
    }

    /// The host that is being added.
    const fn adding(&self) -> Option<NewHost> {
        match self.step {
            Step::Idle | Step::Looking(_) => None,
            Step::Allowing(host)
            | Step::Checking(host)
            | Step::Preparing(host)
            | Step::Telling { host, .. } => Some(host),
        }
    }

    /// Gives up the host that is being added, for this reason.
    fn give_up(&mut self, why: &str) {
        if let Some(host) = self.adding() {
            self.leave(host.number);
            self.finish(host.number, Err(why.to_owned()));
        }
    }

    /// Leaves nothing of the job on a host.
    fn leave(&mut self, host: HostNumber) {
        self.outputs.push_back(GrowthOutput::Dismiss(host));
        if self.has_founder {
            self.outputs.push_back(GrowthOutput::GiveUp(host));
        }
    }

    /// Answers the wishes for the host whose turn it was.
    fn finish(&mut self, host: HostNumber, outcome: Result<(), String>) {
        self.step = Step::Idle;
        self.wanted.retain(|wanted| *wanted != host);
        self.answer(host, outcome);
        self.go_on();
    }

    /// Answers the wishes for a host. A process that waits there sees the part itself.
    fn answer(&mut self, host: HostNumber, outcome: Result<(), String>) {
        let is_waited_for = self.guests_wait.remove(&host);
        if let Err(why) = &outcome
            && is_waited_for
        {
            self.outputs.push_back(GrowthOutput::Refuse(host, why.clone()));
        }
        self.outputs.push_back(GrowthOutput::Answer(host, outcome));
    }

    /// Whether a host was added.
    pub fn is_added(&self, host: HostNumber) -> bool {
        self.processes.contains_key(&host)
    }

    /// Whether the loss of a host is that of a process: one of those that the job began with, or that were started there.
    pub fn has_processes_on(&self, host: HostNumber) -> bool {
        self.processes.get(&host).is_none_or(|processes| !processes.is_empty())
    }

    /// The processes that were started on a host that was added and have not ended.
    pub fn processes_on(&self, host: HostNumber) -> u32 {
        self.processes.get(&host).map_or(0, |processes| processes.len() as u32)
    }

    /// Takes note of a process with this number that is to be started on a host, or was started there.
    pub fn process_starts(&mut self, host: HostNumber, number: u32) {
        if let Some(processes) = self.processes.get_mut(&host) {
            processes.insert(number);
        }
    }

    /// Takes note that the process with this number on a host has ended for good, or was not started.
    pub fn process_ended(&mut self, host: HostNumber, number: u32) {
        if let Some(processes) = self.processes.get_mut(&host) {
            processes.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HostNumber = HostNumber(1);
    const TWO: HostNumber = HostNumber(2);

    fn hosts(numbers: &[u16]) -> BTreeSet<HostNumber> {
        numbers.iter().copied().map(HostNumber).collect()
    }

    fn taken(growth: &mut Growth) -> Vec<GrowthOutput> {
        std::iter::from_fn(|| growth.take()).collect()
    }

    /// Wants a host, which makes its part, so that these others are told.
    fn tell(growth: &mut Growth, number: HostNumber, segment: u64, others: &[u16]) -> NewHost {
        let host = NewHost { number, segment: SegmentId(segment) };
        growth.want(number, false);
        growth.looked(number, Ok(Prospect::New(host.segment)));
        growth.allowed(host, Ok(()));
        growth.answered(number, Ok(()), &BTreeSet::new());
        growth.answered(number, Ok(()), &hosts(others));
        host
    }

    #[test]
    fn a_host_whose_daemon_was_killed_is_told_again() {
        let mut growth = Growth::new(true);
        let host = tell(&mut growth, ONE, 11, &[0, 3]);
        growth.told(HostNumber(0), host.segment, Vec::new());
        taken(&mut growth);
        growth.restarted(HostNumber(0));
        assert_eq!(growth.take(), None, "it has answered");
        let to = HostNumber(3);
        growth.restarted(to);
        assert_eq!(taken(&mut growth), [GrowthOutput::Tell { to, host }]);
        growth.told(to, host.segment, Vec::new());
        growth.restarted(to);
        assert!(!taken(&mut growth).contains(&GrowthOutput::Tell { to, host }));
    }

    #[test]
    fn an_answer_about_a_host_that_was_given_up_does_not_count_for_the_next_one() {
        let mut growth = Growth::new(true);
        let first = tell(&mut growth, ONE, 11, &[0, 3]);
        growth.lost(ONE, "silent");
        let why = Err("silent".to_owned());
        let given_up =
            [GrowthOutput::Dismiss(ONE), GrowthOutput::GiveUp(ONE), GrowthOutput::Answer(ONE, why)];
        assert!(taken(&mut growth).ends_with(&given_up));
        let next = tell(&mut growth, TWO, 12, &[0, 3]);
        taken(&mut growth);
        for (from, host) in [(3, first), (0, first), (0, next)] {
            growth.told(HostNumber(from), host.segment, Vec::new());
            assert_eq!(growth.take(), None);
        }
        growth.told(HostNumber(3), next.segment, Vec::new());
        let begin = GrowthOutput::Begin { host: next, guests: Vec::new() };
        assert_eq!(taken(&mut growth), [begin, GrowthOutput::Answer(TWO, Ok(()))]);
    }

    #[test]
    fn a_wish_waits_for_the_end_of_the_last_part_and_others_do_not() {
        let mut growth = Growth::new(true);
        growth.want(ONE, true);
        growth.want(TWO, false);
        growth.looked(ONE, Ok(Prospect::Ending));
        growth.looked(TWO, Ok(Prospect::There));
        let answer = GrowthOutput::Answer(TWO, Ok(()));
        assert_eq!(taken(&mut growth), [GrowthOutput::Look(ONE), GrowthOutput::Look(TWO), answer]);
        growth.want(ONE, false);
        assert_eq!(growth.take(), None);
        growth.over(ONE);
        assert_eq!(taken(&mut growth), [GrowthOutput::Look(ONE)]);
    }

    #[test]
    fn hosts_that_were_added_are_released_once_and_then_none_comes() {
        let mut growth = Growth::new(false);
        growth.want(ONE, false);
        growth.looked(ONE, Ok(Prospect::New(SegmentId(11))));
        growth.answered(ONE, Ok(()), &BTreeSet::new());
        growth.answered(ONE, Ok(()), &BTreeSet::new());
        assert!(growth.is_added(ONE) && !growth.has_processes_on(ONE));
        assert!(!growth.release(&hosts(&[0, 1])));
        growth.want(TWO, true);
        growth.looked(TWO, Ok(Prospect::New(SegmentId(12))));
        taken(&mut growth);
        assert!(growth.release(&hosts(&[1])) && !growth.release(&hosts(&[1])));
        let why = CLOSED.to_owned();
        let refused = [GrowthOutput::Refuse(TWO, why.clone()), GrowthOutput::Answer(TWO, Err(why))];
        let given_up = taken(&mut growth);
        assert_eq!((&given_up[0], &given_up[1..]), (&GrowthOutput::Dismiss(TWO), &refused[..]));
        growth.want(TWO, true);
        assert_eq!(taken(&mut growth), refused);
    }

    #[test]
    fn the_loss_of_an_added_host_is_that_of_the_processes_that_were_started_there() {
        let mut growth = Growth::new(true);
        tell(&mut growth, ONE, 11, &[]);
        growth.process_starts(ONE, 7);
        assert!(growth.has_processes_on(ONE));
        growth.process_ended(ONE, 7);
        assert!(!growth.has_processes_on(ONE));
        assert!(growth.has_processes_on(TWO), "the job began there");
    }
}
