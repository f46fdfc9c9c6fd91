//! The membership of one host's job: the only source of views.
//!
//! The membership is a pure state machine. Its driver, the agent, reports events ([`Input`]) and carries out the
//! answers ([`Output`]): it writes records into the segment, signals processes, answers guests.
//!
//! | slot state | next | when |
//! |---|---|---|
//! | free | alive | a guest is admitted |
//! | reserved | alive | its process started, or joined by itself |
//! | reserved | dead | its process cannot start, or the job ends before |
//! | alive | left | it said goodbye, and runs on |
//! | left | alive | it takes part again, as the slot's next incarnation |
//! | alive, left | departed | it ended well: status 0, after its goodbye or without having joined |
//! | alive, left | dead | it ended in any other way |
//! | departed, dead | alive | a guest gets the slot as its next incarnation, once the driver says that no process needs
//! the contents that the last process left |
//! | free, departed, dead | reserved | a failed process of the job is about to be started again, or one more process |
//!
//! A process that is added while the job runs is one of the job's own, without a rank: the job ends with the last of
//! them, and its failure counts. Its record has its number and the restart 0.
//!
//! A restarted process is another process: it gets a free slot, and nothing of its predecessor's. Only the job's end
//! and its failure policy treat both as one. A process that has left and takes part again is another member, too, but
//! the same process: it keeps its slot with all that is in it, and what it was a member of before is over.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

pub use self::steps::{Input, LastPresence, Output, Refusal};
pub use crate::record::{Record, State};
use crate::restarts::{ReplacedProcess, Restarts};
use crate::view::View;

mod adding;
mod leaving;
mod steps;

/// The parameters of a membership.
#[derive(Clone, Copy, Debug)]
pub struct MembershipPlan {
    /// The host of the job.
    pub host: SegmentId,
    /// The number of slots of the job's own processes, which come first.
    pub processes: u32,
    /// The number of slots for guests, which follow.
    pub guests: u32,
    /// Whether the slots of the job's own processes are given to nobody else, since other hosts know them by their ranks.
    pub keeps_ranks: bool,
    /// Whether the job here lasts until [`Input::Release`] also while it has no process: its processes are on other hosts.
    pub is_held: bool,
    /// The consequence of a process's death for the others.
    pub on_failure: OnFailure,
    /// The time between the request to end and the kill, if the job is ended because of a failure.
    pub grace: Duration,
}

/// The consequence of a process's death for the other processes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// They are ended.
    Abort,
    /// They learn of it and continue.
    Notify,
    /// They learn of it and continue. The process is started again, unless it ended with status 0.
    Restart {
        /// The largest number of restarts of each process.
        times: u32,
        /// Whether the others are ended when a process fails that is not started again. Otherwise they continue without
        /// it.
        then_abort: bool,
    },
}

/// The membership's state machine.
#[derive(Clone, Debug)]
pub struct Membership {
    plan: MembershipPlan,
    records: Vec<Record>,
    /// The rank of each slot's process among those that the job began with, whether or not it was restarted; `None` for
    /// guests.
    ranks: Vec<Option<u32>>,
    view: View,
    phase: Phase,
    restarts: Restarts,
    /// The number of own processes that are awaited or run, also after they have left.
    present: u32,
    /// Whether it lasts without a process.
    is_held: bool,
    /// Slots whose process has ended, the earliest first.
    vacated: VecDeque<Slot>,
    /// The vacated slots whose contents other processes may need, as the driver has last reported.
    kept: BTreeSet<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Processes were asked to end; those left at `kill_at` are killed, once.
    Ending {
        kill_at: Option<Duration>,
    },
    Over,
}

impl Membership {
    /// Creates the membership before any event: all processes of the plan are still to come. They form the first view,
    /// by slot.
    pub fn new(plan: MembershipPlan) -> Self {
        let reserved = Record { state: State::Reserved, incarnation: 1, ..Record::default() };
        let processes = plan.processes as usize;
        let mut records = vec![Record::default(); processes + plan.guests as usize];
        records[..processes].fill(reserved);
        let first = (0..plan.processes).map(|slot| ProcessId {
            segment: plan.host,
            slot: Slot(slot),
            incarnation: Incarnation(1),
        });
        let view = View::first(first);
        let mut ranks = vec![None; records.len()];
        ranks.iter_mut().zip(0..plan.processes).for_each(|(place, rank)| *place = Some(rank));
        let times = match plan.on_failure {
            OnFailure::Restart { times, .. } => times,
            OnFailure::Abort | OnFailure::Notify => 0,
        };
        let restarts = Restarts::new(times, plan.processes);
        let (phase, vacated, kept) = (Phase::Running, VecDeque::new(), BTreeSet::new());
        let (present, is_held) = (plan.processes, plan.is_held);
        Self { plan, records, ranks, view, phase, restarts, present, is_held, vacated, kept }
    }

    /// The outputs before the first input.
    pub fn begin(&self) -> Vec<Output> {
        let slots = (0..self.plan.processes).map(Slot);
        let record = |slot| Output::SetRecord { slot, record: self.record(slot) };
        slots.map(record).chain([Output::Announce]).collect()
    }

    /// Handles an event at `now`, a time since any fixed moment. An impossible event, such as the end of a process that
    /// does not exist, changes nothing.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Started { slot, pid } => self.started(now, slot, pid, &mut out),
            Input::NotStarted { slot } => self.not_started(now, slot, &mut out),
            Input::Ended { slot, status, presence } => {
                self.ended(now, slot, status, presence, &mut out);
            }
            Input::Left { slot } => self.left(slot, &mut out),
            Input::Returned { slot } => self.returned(slot, &mut out),
            Input::Found { slot, pid } => self.found(slot, pid, &mut out),
            Input::Stopped { slot } => self.set_stopped(slot, true, &mut out),
            Input::Continued { slot } => self.set_stopped(slot, false, &mut out),
            Input::Asked { request, wanted, pid } => self.asked(request, wanted, pid, &mut out),
            Input::Add { rank } => self.add(rank, &mut out),
            Input::End { grace } => self.end(now + grace, &mut out),
            Input::Kill => self.kill(&mut out),
            Input::NoRestarts => self.restarts.stop(),
            Input::Release => self.is_held = false,
            Input::Tick => self.restart_due(now, &mut out),
        }
        self.settle(now, &mut out);
        out
    }

    /// The slots whose process has ended, in the order in which they are given away.
    pub fn vacated(&self) -> impl Iterator<Item = Slot> + '_ {
        self.vacated.iter().copied()
    }

    /// Sets the vacated slots whose contents other processes may need: these are not given away. This holds until the
    /// next call; before the first call all are free.
    pub fn keep(&mut self, kept: BTreeSet<Slot>) {
        self.kept = kept;
    }

    /// Whether a vacated slot is kept only because other processes need its contents.
    pub fn keeps_any(&self) -> bool {
        self.vacated.iter().any(|slot| self.kept.contains(slot))
    }

    /// Whether an input may give a vacated slot away at `now`: only then it matters which ones are kept.
    pub fn gives_away(&self, now: Duration, input: &Input) -> bool {
        match input {
            Input::Asked { wanted, .. } => wanted.is_none(),
            Input::Add { .. } => true,
            Input::Tick => self.restarts.next_due().is_some_and(|due| due <= now),
            _ => false,
        }
    }

    /// When [`Input::Tick`] is due, if nothing else happens before.
    pub fn deadline(&self) -> Option<Duration> {
        self.kill_at().into_iter().chain(self.restarts.next_due()).min()
    }

    /// When processes that were asked to end are killed.
    pub const fn kill_at(&self) -> Option<Duration> {
        match self.phase {
            Phase::Ending { kill_at } => kill_at,
            Phase::Running | Phase::Over => None,
        }
    }

    /// Whether the job runs: false as soon as it is being ended.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// The present view.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// The record of a slot.
    pub fn record(&self, slot: Slot) -> Record {
        self.records.get(slot.0 as usize).copied().unwrap_or_default()
    }

    /// The rank as which the process of a slot was first started; `None` for guests.
    pub fn rank_of(&self, slot: Slot) -> Option<u32> {
        self.ranks.get(slot.0 as usize).copied().flatten()
    }

    /// The process that has this slot, or had it last.
    pub fn process(&self, slot: Slot) -> ProcessId {
        let incarnation = Incarnation(self.record(slot).incarnation);
        ProcessId { segment: self.plan.host, slot, incarnation }
    }

    /// Whether this incarnation of the process lives.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        process == self.process(process.slot) && self.record(process.slot).state == State::Alive
    }

    fn started(&mut self, now: Duration, slot: Slot, pid: u32, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if let Some(rank) = self.rank_of(slot) {
            self.restarts.began(rank, now);
        }
        if before.state == State::Reserved {
            self.set(slot, Record { state: State::Alive, pid, ..before }, out);
        }
    }

    fn not_started(&mut self, now: Duration, slot: Slot, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if before.state == State::Reserved {
            self.set(slot, Record { state: State::Dead, ..before }, out);
            self.vacate(slot);
            let rank = self.rank_of(slot);
            // Whoever wanted to have a process added learns that it was not started, and decides.
            if rank.is_some_and(|rank| rank < self.plan.processes) {
                // A program that could not even be started the first time will not start later.
                let was_started = rank.is_some_and(|rank| self.restarts.number(rank) > 0);
                self.failed(now, slot, was_started, out);
            }
        }
    }

    /// Whether the process of a slot runs, also after it has left.
    fn runs(&self, slot: Slot) -> bool {
        matches!(self.record(slot).state, State::Alive | State::Left)
    }

    fn ended(
        &mut self,
        now: Duration,
        slot: Slot,
        status: i32,
        presence: LastPresence,
        out: &mut Vec<Output>,
    ) {
        let before = self.record(slot);
        if !self.runs(slot) {
            return;
        }
        let well =
            status == 0 && matches!(presence, LastPresence::NotAttached | LastPresence::Finalized);
        let state = if well { State::Departed } else { State::Dead };
        self.set(slot, Record { state, status, stopped: false, ..before }, out);
        self.vacate(slot);
        match (presence, self.rank_of(slot)) {
            (LastPresence::Aborted, _) => self.aborted(now, slot, out),
            (_, Some(_)) if state == State::Dead => self.failed(now, slot, status != 0, out),
            _ => {}
        }
    }

    /// Records that the process of a slot is another than the one that was started.
    fn found(&mut self, slot: Slot, pid: u32, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if self.runs(slot) && before.pid != pid {
            self.set(slot, Record { pid, ..before }, out);
        }
    }

    /// Handles the abort by a process: it ends the whole job, whatever the failure policy is.
    fn aborted(&mut self, now: Duration, slot: Slot, out: &mut Vec<Output>) {
        if self.phase == Phase::Running {
            out.push(match self.rank_of(slot) {
                Some(_) => Output::Terminate { slot }, // its children
                None => Output::GuestAborted { slot },
            });
            self.end(now + self.plan.grace, out);
        }
    }

    /// Marks a slot as free for another process.
    fn vacate(&mut self, slot: Slot) {
        self.vacated.push_back(slot);
    }

    /// Handles the death of a process of the job, whose record is already written. `may_restart` is false if a restart
    /// would not help.
    fn failed(&mut self, now: Duration, slot: Slot, may_restart: bool, out: &mut Vec<Output>) {
        if self.phase != Phase::Running {
            return;
        }
        let rank = self.rank_of(slot).filter(|_| may_restart);
        let restart = rank.and_then(|rank| self.restarts.failed(rank, now));
        let aborts = match self.plan.on_failure {
            OnFailure::Abort => true,
            OnFailure::Notify => false,
            OnFailure::Restart { then_abort, .. } => then_abort && restart.is_none(),
        };
        if aborts {
            out.push(Output::Terminate { slot });
            self.end(now + self.plan.grace, out);
            return;
        }
        // Its children may use its slot in its place, so they must not outlive it.
        out.push(Output::Kill { slot });
        out.extend(restart.map(|restart| Output::WillRestart { slot, restart }));
    }

    /// Assigns slots to the processes whose restart is due. This never happens in the same step as an end, so that a
    /// slot has at most one change at a time.
    fn restart_due(&mut self, now: Duration, out: &mut Vec<Output>) {
        while let Some(rank) = self.restarts.take_due(now) {
            let Ok(slot) = self.place_for(None) else {
                self.restarts.postpone(rank, now);
                continue;
            };
            self.occupy(slot, State::Reserved, 0, Some(rank), out);
            out.push(Output::Start { slot, rank, number: self.restarts.number(rank) });
        }
    }

    /// Gives a slot to its next process.
    fn occupy(
        &mut self,
        slot: Slot,
        state: State,
        pid: u32,
        rank: Option<u32>,
        out: &mut Vec<Output>,
    ) {
        self.vacated.retain(|&vacated| vacated != slot);
        let before = self.record(slot);
        let again = u32::from(before.state != State::Reserved);
        let incarnation = before.incarnation + again;
        if let Some(place) = self.ranks.get_mut(slot.0 as usize) {
            *place = rank;
        }
        let is_first = incarnation <= 1 && slot.0 < self.plan.processes;
        let number = rank.filter(|_| !is_first).map(|rank| (rank, self.restarts.number(rank)));
        let replaces = number.map(|(rank, number)| ReplacedProcess { rank, number });
        let returns = before.returns;
        let record = Record { state, incarnation, pid, replaces, returns, ..Record::default() };
        self.set(slot, record, out);
    }

    fn set_stopped(&mut self, slot: Slot, stopped: bool, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if self.runs(slot) && before.stopped != stopped {
            self.set(slot, Record { stopped, ..before }, out);
        }
    }

    fn asked(&mut self, request: u64, wanted: Option<Slot>, pid: u32, out: &mut Vec<Output>) {
        match self.place_for(wanted) {
            Err(why) => out.push(Output::Refuse { request, why }),
            Ok(slot) => {
                let rank = self.rank_of(slot).filter(|_| wanted.is_some());
                self.occupy(slot, State::Alive, pid, rank, out);
                out.push(Output::Admit { request, process: self.process(slot) });
            }
        }
    }

    /// The slot for a process that wants to join.
    fn place_for(&self, wanted: Option<Slot>) -> Result<Slot, Refusal> {
        if self.phase != Phase::Running {
            return Err(Refusal::Ending);
        }
        if let Some(slot) = wanted {
            return match self.record(slot).state {
                _ if self.rank_of(slot).is_none() => Err(Refusal::NoSuchSlot),
                State::Reserved => Ok(slot),
                _ => Err(Refusal::Taken),
            };
        }
        let unused = self.guest_slots().find(|&slot| self.record(slot).state == State::Free);
        let used = || {
            let usable = |slot: &Slot| {
                let is_rank = slot.0 < self.plan.processes;
                self.record(*slot).incarnation < u32::MAX
                    && !self.kept.contains(slot)
                    && !(is_rank && self.plan.keeps_ranks)
            };
            self.vacated.iter().copied().find(usable)
        };
        unused.or_else(used).ok_or(Refusal::Full)
    }

    fn end(&mut self, kill_at: Duration, out: &mut Vec<Output>) {
        match &mut self.phase {
            Phase::Running => {
                self.begin_ending(Some(kill_at), out);
                out.extend(self.living_processes().map(|slot| Output::Terminate { slot }));
            }
            Phase::Ending { kill_at: Some(before) } => *before = kill_at.min(*before),
            Phase::Ending { kill_at: None } | Phase::Over => {}
        }
    }

    fn kill(&mut self, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Running => self.begin_ending(None, out),
            Phase::Ending { .. } => self.phase = Phase::Ending { kill_at: None },
            Phase::Over => return,
        }
        out.extend(self.living_processes().map(|slot| Output::Kill { slot }));
    }

    /// Begins the end of the job. Processes that have not started yet will not start any more.
    fn begin_ending(&mut self, kill_at: Option<Duration>, out: &mut Vec<Output>) {
        self.phase = Phase::Ending { kill_at };
        self.is_held = false;
        self.restarts.stop();
        out.push(Output::SetEnding);
        for slot in self.own_slots() {
            let before = self.record(slot);
            if before.state == State::Reserved {
                self.set(slot, Record { state: State::Dead, ..before }, out);
            }
        }
    }

    /// Derives the consequences of the state, whatever the input was.
    fn settle(&mut self, now: Duration, out: &mut Vec<Output>) {
        if self.kill_at().is_some_and(|kill_at| kill_at <= now) {
            self.kill(out);
        }
        let over = self.present == 0 && !self.is_held && self.restarts.next_due().is_none();
        if over && self.phase != Phase::Over {
            if self.phase == Phase::Running {
                out.push(Output::SetEnding);
            }
            self.phase = Phase::Over;
            out.push(Output::Over);
        }
        self.renew_view(out);
        self.announce(out);
    }

    /// Makes the next view if a member has gone or a process has joined.
    fn renew_view(&mut self, out: &mut Vec<Output>) {
        let mut gone = Vec::new();
        let mut joined = Vec::new();
        for output in out.iter() {
            let Output::SetRecord { slot, record } = output else { continue };
            let process = self.process(*slot);
            match (record.state, self.view.rank_of(process)) {
                (State::Left | State::Departed | State::Dead, Some(_)) => gone.push(process),
                (State::Reserved | State::Alive, None) => joined.push(process),
                _ => {}
            }
        }
        if !gone.is_empty() || !joined.is_empty() {
            self.view = self.view.next(&gone, &joined);
            out.push(Output::NewView);
        }
    }

    /// Puts one announcement after the last record to be announced, and before any signal or answer.
    fn announce(&self, out: &mut Vec<Output>) {
        let to_announce =
            |output: &Output| matches!(output, Output::SetRecord { .. } | Output::SetEnding);
        if !out.iter().any(to_announce) {
            return;
        }
        out.sort_by_key(|output| !to_announce(output));
        let place = out.iter().take_while(|output| to_announce(output)).count();
        out.insert(place, Output::Announce);
    }

    fn set(&mut self, slot: Slot, record: Record, out: &mut Vec<Output>) {
        let is_own = self.rank_of(slot).is_some();
        let Some(place) = self.records.get_mut(slot.0 as usize) else { return };
        let is_there =
            |record: &Record| matches!(record.state, State::Reserved | State::Alive | State::Left);
        if is_own {
            self.present += u32::from(is_there(&record));
            self.present -= u32::from(is_there(place));
        }
        *place = record;
        out.push(Output::SetRecord { slot, record });
    }

    /// The slots of the job's own processes, including restarted ones.
    fn own_slots(&self) -> Vec<Slot> {
        let ranks = (0..).zip(&self.ranks);
        ranks.filter(|(_, rank)| rank.is_some()).map(|(slot, _)| Slot(slot)).collect()
    }

    fn guest_slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (self.plan.processes..self.plan.processes + self.plan.guests).map(Slot)
    }

    fn living_processes(&self) -> impl Iterator<Item = Slot> + '_ {
        let own = self.own_slots().into_iter();
        own.filter(|&slot| self.runs(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::restarts::Restart;

    pub(super) const NOW: Duration = Duration::from_secs(5);
    pub(super) const GRACE: Duration = Duration::from_secs(1);

    pub(super) fn membership(on_failure: OnFailure) -> Membership {
        let plan = MembershipPlan {
            host: SegmentId(7),
            processes: 3,
            guests: 2,
            keeps_ranks: false,
            is_held: false,
            on_failure,
            grace: GRACE,
        };
        let mut membership = Membership::new(plan);
        for slot in 0..3 {
            membership.handle(NOW, Input::Started { slot: Slot(slot), pid: 100 + slot });
        }
        membership
    }

    pub(super) fn ended(slot: u32, status: i32, presence: LastPresence) -> Input {
        Input::Ended { slot: Slot(slot), status, presence }
    }

    fn asked(membership: &mut Membership, wanted: Option<u32>) -> Result<(u32, u32), Refusal> {
        let input = Input::Asked { request: 1, wanted: wanted.map(Slot), pid: 9 };
        let answer = |output: &Output| match output {
            Output::Admit { process, .. } => Some(Ok((process.slot.0, process.incarnation.0))),
            Output::Refuse { why, .. } => Some(Err(*why)),
            _ => None,
        };
        membership.handle(NOW, input).iter().find_map(answer).unwrap()
    }

    #[test]
    fn slots_of_ranks_stay_theirs_where_other_hosts_know_them_by_these() {
        let mut membership = membership(OnFailure::Notify);
        membership.plan.keeps_ranks = true;
        membership.handle(NOW, ended(1, 0, LastPresence::Finalized));
        (0..2).for_each(|_| assert!(asked(&mut membership, None).is_ok()));
        assert_eq!(asked(&mut membership, None), Err(Refusal::Full));
        membership.plan.keeps_ranks = false;
        assert_eq!(asked(&mut membership, None), Ok((1, 2)));
    }

    #[test]
    fn the_first_view_is_the_whole_job() {
        let membership = membership(OnFailure::Abort);
        assert_eq!(membership.view().size(), 3);
        assert_eq!(membership.view().id(), 1, "a start as planned changes no view");
        assert_eq!(membership.begin().last(), Some(&Output::Announce));
        assert_eq!(membership.record(Slot(2)).pid, 102);
    }

    #[test]
    fn a_good_end_is_a_departure_and_any_other_a_death() {
        use LastPresence::{Attached, Finalized, NotAttached};
        for (status, presence, state) in [
            (0, NotAttached, State::Departed),
            (0, Finalized, State::Departed),
            (0, Attached, State::Dead),
            (1 << 8, NotAttached, State::Dead),
            (9, Finalized, State::Dead),
        ] {
            let mut membership = membership(OnFailure::Notify);
            membership.handle(NOW, ended(1, status, presence));
            assert_eq!(membership.record(Slot(1)).state, state, "{status} {presence:?}");
            assert_eq!(membership.view().departed().len(), 1);
            assert!(membership.is_running());
        }
    }

    #[test]
    fn notify_tells_and_goes_on() {
        let mut membership = membership(OnFailure::Notify);
        let out = membership.handle(NOW, ended(1, 11, LastPresence::Attached));
        let record = membership.record(Slot(1));
        assert_eq!(
            out,
            [
                Output::SetRecord { slot: Slot(1), record },
                Output::Announce,
                Output::Kill { slot: Slot(1) },
                Output::NewView,
            ]
        );
    }

    #[test]
    fn abort_asks_all_to_end_and_kills_after_the_grace_time() {
        let mut membership = membership(OnFailure::Abort);
        let out = membership.handle(NOW, ended(1, 11, LastPresence::Attached));
        assert!(out.starts_with(&[
            Output::SetRecord { slot: Slot(1), record: membership.record(Slot(1)) },
            Output::SetEnding,
            Output::Announce,
        ]));
        for slot in 0..3 {
            assert!(out.contains(&Output::Terminate { slot: Slot(slot) }), "{slot}");
        }
        assert_eq!(membership.deadline(), Some(NOW + GRACE));
        membership.handle(NOW, ended(0, 15, LastPresence::Attached));
        let out = membership.handle(NOW + GRACE, Input::Tick);
        assert_eq!(out, [Output::Kill { slot: Slot(2) }]);
        assert_eq!(membership.deadline(), None);
        let out = membership.handle(NOW + GRACE, ended(2, 9, LastPresence::Attached));
        assert!(out.contains(&Output::Over));
    }

    #[test]
    fn the_earlier_end_counts_and_a_kill_is_at_once() {
        let mut membership = membership(OnFailure::Notify);
        membership.handle(NOW, Input::End { grace: 9 * GRACE });
        membership.handle(NOW, Input::End { grace: 2 * GRACE });
        membership.handle(NOW, Input::End { grace: 5 * GRACE });
        assert_eq!(membership.deadline(), Some(NOW + 2 * GRACE));
        let out = membership.handle(NOW, Input::Kill);
        assert_eq!(out.iter().filter(|o| matches!(o, Output::Kill { .. })).count(), 3);
    }

    #[test]
    fn a_program_that_cannot_start_aborts_the_job_before_it_begins() {
        let plan = MembershipPlan {
            host: SegmentId(7),
            processes: 3,
            guests: 0,
            keeps_ranks: false,
            is_held: false,
            on_failure: OnFailure::Abort,
            grace: GRACE,
        };
        let mut membership = Membership::new(plan);
        membership.handle(NOW, Input::Started { slot: Slot(0), pid: 4 });
        let out = membership.handle(NOW, Input::NotStarted { slot: Slot(1) });
        assert!(out.contains(&Output::Terminate { slot: Slot(0) }));
        assert_eq!(membership.record(Slot(2)).state, State::Dead, "it will not be started");
        let out = membership.handle(NOW, ended(0, 15, LastPresence::NotAttached));
        assert!(out.contains(&Output::Over));
    }

    #[test]
    fn an_abort_ends_the_job_whatever_a_failure_means() {
        let restart = OnFailure::Restart { times: 3, then_abort: false };
        for on_failure in [OnFailure::Abort, OnFailure::Notify, restart] {
            let mut membership = membership(on_failure);
            let out = membership.handle(NOW, ended(1, 3 << 8, LastPresence::Aborted));
            assert!(!membership.is_running(), "{on_failure:?}");
            for slot in 0..3 {
                assert!(out.contains(&Output::Terminate { slot: Slot(slot) }), "{on_failure:?}");
            }
            assert_eq!(membership.deadline(), Some(NOW + GRACE), "nobody is started again");
        }
    }

    #[test]
    fn a_guest_may_end_the_job() {
        let mut membership = membership(OnFailure::Notify);
        asked(&mut membership, None).unwrap();
        let out = membership.handle(NOW, ended(3, 0, LastPresence::Aborted));
        assert!(out.contains(&Output::GuestAborted { slot: Slot(3) }), "{out:?}");
        assert!(out.contains(&Output::Terminate { slot: Slot(0) }) && !membership.is_running());
        assert!(!out.contains(&Output::Terminate { slot: Slot(3) }), "it is not ours");
    }

    #[test]
    fn a_process_below_the_started_one_is_known_by_its_own_number() {
        let mut membership = membership(OnFailure::Notify);
        let out = membership.handle(NOW, Input::Found { slot: Slot(1), pid: 900 });
        assert_eq!((membership.record(Slot(1)).pid, out.last()), (900, Some(&Output::Announce)));
        assert_eq!(membership.handle(NOW, Input::Found { slot: Slot(1), pid: 900 }), []);
        membership.handle(NOW, ended(1, 9, LastPresence::Attached));
        assert_eq!(membership.handle(NOW, Input::Found { slot: Slot(1), pid: 901 }), []);
    }

    #[test]
    fn a_stopped_process_is_shown_and_not_failed() {
        let mut membership = membership(OnFailure::Abort);
        let out = membership.handle(NOW, Input::Stopped { slot: Slot(0) });
        assert!(membership.record(Slot(0)).stopped && membership.is_running());
        assert_eq!(out.last(), Some(&Output::Announce));
        assert_eq!(membership.handle(NOW, Input::Stopped { slot: Slot(0) }), []);
        membership.handle(NOW, Input::Continued { slot: Slot(0) });
        assert!(!membership.record(Slot(0)).stopped);
    }

    #[test]
    fn guests_come_and_go_as_new_incarnations() {
        let mut membership = membership(OnFailure::Abort);
        assert_eq!(asked(&mut membership, None), Ok((3, 1)));
        assert_eq!(asked(&mut membership, None), Ok((4, 1)));
        assert_eq!(asked(&mut membership, None), Err(Refusal::Full));
        membership.handle(NOW, ended(4, 0, LastPresence::Attached));
        assert_eq!(membership.record(Slot(4)).state, State::Dead);
        assert!(membership.is_running(), "a guest's death is no failure of the job");
        membership.handle(NOW, ended(3, 0, LastPresence::Finalized));
        assert_eq!(asked(&mut membership, None), Ok((4, 2)), "longest gone first");
        assert_eq!(membership.view().size(), 4);
    }

    #[test]
    fn a_process_leaving_the_first_world_makes_room_unless_its_slot_is_needed() {
        let mut membership = membership(OnFailure::Notify);
        (3..5).for_each(|slot| assert_eq!(asked(&mut membership, None), Ok((slot, 1))));
        membership.handle(NOW, ended(1, 0, LastPresence::Finalized));
        membership.handle(NOW, ended(2, 9, LastPresence::Attached));
        membership.keep(BTreeSet::from([Slot(1)]));
        assert_eq!(asked(&mut membership, None), Ok((2, 2)));
        assert_eq!(membership.rank_of(Slot(2)), None, "a guest has no rank");
        assert_eq!(asked(&mut membership, None), Err(Refusal::Full));
        assert!(membership.keeps_any());
        membership.keep(BTreeSet::new());
        assert_eq!(asked(&mut membership, None), Ok((1, 2)));
        membership.handle(NOW, ended(0, 0, LastPresence::Finalized));
        assert!(!membership.is_running(), "guests in the first world's slots keep no job going");
    }

    #[test]
    fn a_member_takes_its_reserved_slot_once() {
        let plan = MembershipPlan {
            host: SegmentId(7),
            processes: 2,
            guests: 1,
            keeps_ranks: false,
            is_held: false,
            on_failure: OnFailure::Notify,
            grace: GRACE,
        };
        let mut membership = Membership::new(plan);
        assert_eq!(asked(&mut membership, Some(1)), Ok((1, 1)));
        assert_eq!(asked(&mut membership, Some(1)), Err(Refusal::Taken));
        assert_eq!(asked(&mut membership, Some(2)), Err(Refusal::NoSuchSlot));
        membership.handle(NOW, Input::Kill);
        assert_eq!(asked(&mut membership, Some(0)), Err(Refusal::Ending));
    }

    #[test]
    fn the_job_is_over_when_its_processes_are_even_with_guests_there() {
        let mut membership = membership(OnFailure::Abort);
        asked(&mut membership, None).unwrap();
        for slot in 0..2 {
            membership.handle(NOW, ended(slot, 0, LastPresence::Finalized));
        }
        let out = membership.handle(NOW, ended(2, 0, LastPresence::Finalized));
        assert!(out.contains(&Output::SetEnding) && out.contains(&Output::Over), "{out:?}");
    }

    fn supervised(times: u32, then_abort: bool) -> Membership {
        membership(OnFailure::Restart { times, then_abort })
    }

    /// Advances time to the next restart; returns the slot and incarnation that it has got.
    fn restarted(membership: &mut Membership, rank: u32) -> (u32, u32) {
        let due = membership.deadline().unwrap();
        let out = membership.handle(due, Input::Tick);
        let slot = out.iter().find_map(|output| match output {
            Output::Start { slot, rank: of, .. } if *of == rank => Some(*slot),
            _ => None,
        });
        let slot = slot.unwrap();
        assert_eq!(membership.record(slot).state, State::Reserved);
        assert_eq!(membership.rank_of(slot), Some(rank));
        membership.handle(due, Input::Started { slot, pid: 200 });
        (slot.0, membership.record(slot).incarnation)
    }

    #[test]
    fn vacated_slots_matter_only_before_one_is_given_away() {
        let asked = |wanted| Input::Asked { request: 1, wanted, pid: 5 };
        let mut calm = membership(OnFailure::Notify);
        calm.handle(NOW, ended(1, 9, LastPresence::Attached));
        assert!(
            !calm.gives_away(NOW, &Input::Tick),
            "the end of n processes costs n looks at slots"
        );
        assert!(!calm.gives_away(NOW, &ended(2, 9, LastPresence::Attached)));
        assert!(calm.gives_away(NOW, &asked(None)) && !calm.gives_away(NOW, &asked(Some(Slot(2)))));
        let mut supervised = supervised(3, true);
        supervised.handle(NOW, ended(1, 9, LastPresence::Attached));
        assert!(!supervised.gives_away(NOW, &Input::Tick), "it is not time yet");
        assert!(supervised.gives_away(supervised.deadline().unwrap(), &Input::Tick));
    }

    #[test]
    fn a_failed_process_is_started_again_as_another() {
        let mut membership = supervised(3, true);
        let out = membership.handle(NOW, ended(1, 9, LastPresence::Attached));
        let restart = Restart { number: 1, after: crate::restarts::DELAY };
        let will = Output::WillRestart { slot: Slot(1), restart };
        assert!(out.contains(&Output::Kill { slot: Slot(1) }) && out.contains(&will), "{out:?}");
        assert_eq!(membership.handle(NOW, Input::Tick), [], "it is not time yet");
        membership.keep(BTreeSet::from([Slot(1)]));
        assert_eq!(restarted(&mut membership, 1), (3, 1));
        let record = membership.record(Slot(1));
        assert_eq!((record.state, record.incarnation), (State::Dead, 1), "who died stays dead");
        membership.handle(NOW, ended(3, 9, LastPresence::Attached));
        assert_eq!(restarted(&mut membership, 1), (4, 1));
        assert_eq!(
            membership.record(Slot(4)).replaces,
            Some(ReplacedProcess { rank: 1, number: 2 }),
            "so it is known whose place it has"
        );
        membership.handle(NOW, ended(4, 9, LastPresence::Attached));
        assert_eq!(restarted(&mut membership, 1), (3, 2), "the one longest gone");
        let out = membership.handle(NOW, ended(3, 9, LastPresence::Attached));
        assert!(out.contains(&Output::Terminate { slot: Slot(0) }), "that was the last time");
        assert!(!membership.is_running());
    }

    #[test]
    fn a_process_that_may_not_start_again_is_missed_where_options_say_so() {
        let mut membership = supervised(0, false);
        let out = membership.handle(NOW, ended(1, 9, LastPresence::Attached));
        assert!(out.contains(&Output::Kill { slot: Slot(1) }) && membership.is_running());
    }

    #[test]
    fn status_zero_is_no_reason_to_start_again() {
        let mut membership = supervised(3, false);
        membership.handle(NOW, ended(0, 0, LastPresence::Finalized));
        membership.handle(NOW, ended(1, 0, LastPresence::Attached));
        assert_eq!(membership.deadline(), None);
    }

    #[test]
    fn the_job_is_not_over_while_somebody_is_to_come() {
        let mut membership = supervised(1, true);
        for slot in [0, 2] {
            membership.handle(NOW, ended(slot, 0, LastPresence::Finalized));
        }
        let out = membership.handle(NOW, ended(1, 9, LastPresence::Attached));
        assert!(!out.contains(&Output::Over), "{out:?}");
        assert_eq!(restarted(&mut membership, 1), (3, 1));
        let out = membership.handle(NOW, ended(3, 0, LastPresence::Finalized));
        assert!(out.contains(&Output::Over), "{out:?}");
    }

    #[test]
    fn a_new_start_waits_for_a_slot_and_ends_with_the_job() {
        let mut membership = supervised(9, true);
        (0..2).for_each(|_| assert!(asked(&mut membership, None).is_ok()));
        membership.handle(NOW, ended(1, 9, LastPresence::Attached));
        let due = membership.deadline().unwrap();
        membership.keep(BTreeSet::from([Slot(1)]));
        assert_eq!(membership.handle(due, Input::Tick), [], "there are guests everywhere");
        membership.handle(due, ended(4, 0, LastPresence::Finalized));
        assert_eq!(restarted(&mut membership, 1), (4, 2));
        membership.handle(NOW, ended(4, 9, LastPresence::Attached));
        let out = membership.handle(NOW, Input::End { grace: GRACE });
        assert!(!out.contains(&Output::Terminate { slot: Slot(3) }), "guests are not ours to end");
        for slot in [0, 2] {
            membership.handle(NOW, ended(slot, 15, LastPresence::Attached));
        }
        assert_eq!(membership.deadline(), None, "nobody comes any more");
    }

    #[test]
    fn after_an_order_nobody_is_started_again() {
        let mut membership = supervised(3, true);
        membership.handle(NOW, Input::NoRestarts);
        membership.handle(NOW, ended(1, 2, LastPresence::Attached));
        assert!(!membership.is_running());
    }
}
