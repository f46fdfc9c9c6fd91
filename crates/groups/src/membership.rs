//! The membership of one host's job: the only source of views.
//!
//! A pure machine. Its driver, the agent, tells it what happened ([`Input`]) and carries out what
//! it answers ([`Output`]): it writes records into the segment, signals processes, answers guests.
//!
//! | slot state | next | when |
//! |---|---|---|
//! | free | alive | a guest is admitted |
//! | reserved | alive | its process started, or joined by itself |
//! | reserved | dead | its process cannot start, or the job ends before |
//! | alive | departed | it ended well: status 0, after its goodbye or without having joined |
//! | alive | dead | it ended in any other way |
//! | departed, dead | alive | a guest gets the slot, as its next incarnation |

use std::collections::VecDeque;
use std::time::Duration;

use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use crate::view::View;

/// What a membership is made for.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The host it is the membership of.
    pub host: HostId,
    /// Slots of the job's own processes: the first ones.
    pub processes: u32,
    /// Slots after those, for guests.
    pub guests: u32,
    /// What a process's death means for the others.
    pub on_failure: OnFailure,
    /// Time between the request to end and the kill, when the job is ended for a failure.
    pub grace: Duration,
}

/// What a process's death means for the other processes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// They are ended.
    Abort,
    /// They are told, and go on.
    Notify,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// The process of a reserved slot runs.
    Started {
        /// Its slot.
        slot: Slot,
        /// Its process number.
        pid: u32,
    },
    /// The process of a reserved slot cannot be started.
    NotStarted {
        /// Its slot.
        slot: Slot,
    },
    /// A process, or a guest, is no more.
    Ended {
        /// Its slot.
        slot: Slot,
        /// The raw wait status; zero where it is not known, as for guests.
        status: i32,
        /// How far it had come.
        presence: Presence,
    },
    /// A process was stopped.
    Stopped {
        /// Its slot.
        slot: Slot,
    },
    /// A stopped process goes on.
    Continued {
        /// Its slot.
        slot: Slot,
    },
    /// Somebody wants to join. [`Output::Admit`] or [`Output::Refuse`] answers.
    Asked {
        /// The driver's name for the question.
        request: u64,
        /// The reserved slot it is the process of; none for a guest.
        wanted: Option<Slot>,
        /// Its process number.
        pid: u32,
    },
    /// The job is to end: its processes are asked to, and killed after the grace time.
    End {
        /// Time between the two.
        grace: Duration,
    },
    /// The job's processes are to be killed.
    Kill,
    /// Time has passed.
    Tick,
}

/// How far a process had come with joining and leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It never joined.
    NotAttached,
    /// It joined, and said no goodbye.
    Attached,
    /// It said goodbye.
    Finalized,
}

/// What the driver is to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write this record where all can read it.
    SetRecord {
        /// Of this slot.
        slot: Slot,
        /// The whole record.
        record: Record,
    },
    /// Say everywhere that the job ends: waits end.
    SetEnding,
    /// Make everybody look at the records again.
    Announce,
    /// There is a new view; [`Membership::view`] is it.
    NewView,
    /// Ask the process of this slot, and what it started, to end.
    Terminate {
        /// The slot.
        slot: Slot,
    },
    /// Kill the process of this slot, and what is left of what it started.
    Kill {
        /// The slot.
        slot: Slot,
    },
    /// Let this one in.
    Admit {
        /// The driver's name for the question.
        request: u64,
        /// Who it is from now on.
        process: ProcessId,
    },
    /// Do not let this one in.
    Refuse {
        /// The driver's name for the question.
        request: u64,
        /// Why.
        why: Refusal,
    },
    /// No process of the job is left, and none will come.
    Over,
}

/// Why somebody may not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Every slot for guests has a living guest.
    Full,
    /// The slot it wants is not one of the job's processes.
    NoSuchSlot,
    /// The slot it wants has, or had, its process.
    Taken,
    /// The job is ending.
    Ending,
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its state.
    pub state: State,
    /// Which user of the slot is meant; zero before the first.
    pub incarnation: u32,
    /// The process number, while it lives and after.
    pub pid: u32,
    /// Whether it is stopped. A stopped process has not failed.
    pub stopped: bool,
    /// The raw wait status, once it is gone.
    pub status: i32,
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nobody has had it yet.
    #[default]
    Free,
    /// Its process is to come.
    Reserved,
    /// Its process lives.
    Alive,
    /// Its process ended well.
    Departed,
    /// Its process failed.
    Dead,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Membership {
    plan: Plan,
    records: Vec<Record>,
    view: View,
    phase: Phase,
    /// Guest slots whose guest is gone, longest gone first.
    vacated: VecDeque<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Processes were asked to end; those left then are killed, once.
    Ending {
        kill_at: Option<Duration>,
    },
    Over,
}

impl Membership {
    /// The membership before anything happened: all processes of the plan are to come. They are
    /// the first view, by slot.
    pub fn new(plan: Plan) -> Self {
        let reserved = Record { state: State::Reserved, incarnation: 1, ..Record::default() };
        let processes = plan.processes as usize;
        let mut records = vec![Record::default(); processes + plan.guests as usize];
        records[..processes].fill(reserved);
        let first = (0..plan.processes).map(|slot| ProcessId {
            host: plan.host,
            slot: Slot(slot),
            incarnation: Incarnation(1),
        });
        let view = View::first(first);
        Self { plan, records, view, phase: Phase::Running, vacated: VecDeque::new() }
    }

    /// What the driver is to do before the first input.
    pub fn begin(&self) -> Vec<Output> {
        let slots = (0..self.plan.processes).map(Slot);
        let record = |slot| Output::SetRecord { slot, record: self.record(slot) };
        slots.map(record).chain([Output::Announce]).collect()
    }

    /// Takes in what happened at `now`, a time since any fixed moment. What cannot have happened,
    /// as the end of a process that is not there, changes nothing.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Started { slot, pid } => self.started(slot, pid, &mut out),
            Input::NotStarted { slot } => self.not_started(now, slot, &mut out),
            Input::Ended { slot, status, presence } => {
                self.ended(now, slot, status, presence, &mut out);
            }
            Input::Stopped { slot } => self.set_stopped(slot, true, &mut out),
            Input::Continued { slot } => self.set_stopped(slot, false, &mut out),
            Input::Asked { request, wanted, pid } => self.asked(request, wanted, pid, &mut out),
            Input::End { grace } => self.end(now + grace, &mut out),
            Input::Kill => self.kill(&mut out),
            Input::Tick => {}
        }
        self.settle(now, &mut out);
        out
    }

    /// When [`Input::Tick`] is due, if nothing else happens before.
    pub const fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Ending { kill_at } => kill_at,
            Phase::Running | Phase::Over => None,
        }
    }

    /// Whether the job goes on: false as soon as it is being ended.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// The present view.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// What is known of a slot.
    pub fn record(&self, slot: Slot) -> Record {
        self.records.get(slot.0 as usize).copied().unwrap_or_default()
    }

    /// Who has, or had last, this slot.
    pub fn process(&self, slot: Slot) -> ProcessId {
        let incarnation = Incarnation(self.record(slot).incarnation);
        ProcessId { host: self.plan.host, slot, incarnation }
    }

    /// Whether this very process lives.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        process == self.process(process.slot) && self.record(process.slot).state == State::Alive
    }

    fn started(&mut self, slot: Slot, pid: u32, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if before.state == State::Reserved {
            self.set(slot, Record { state: State::Alive, pid, ..before }, out);
        }
    }

    fn not_started(&mut self, now: Duration, slot: Slot, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if before.state == State::Reserved {
            self.set(slot, Record { state: State::Dead, ..before }, out);
            self.failed(now, slot, out);
        }
    }

    fn ended(
        &mut self,
        now: Duration,
        slot: Slot,
        status: i32,
        presence: Presence,
        out: &mut Vec<Output>,
    ) {
        let before = self.record(slot);
        if before.state != State::Alive {
            return;
        }
        let well = status == 0 && presence != Presence::Attached;
        let state = if well { State::Departed } else { State::Dead };
        self.set(slot, Record { state, status, stopped: false, ..before }, out);
        if self.is_guest(slot) {
            self.vacated.push_back(slot);
        } else if state == State::Dead {
            self.failed(now, slot, out);
        }
    }

    /// A process of the job died; its record says so already.
    fn failed(&mut self, now: Duration, slot: Slot, out: &mut Vec<Output>) {
        match (self.phase, self.plan.on_failure) {
            (Phase::Running, OnFailure::Abort) => {
                out.push(Output::Terminate { slot });
                self.end(now + self.plan.grace, out);
            }
            // What it started may use its slot in its place: that must not outlive it.
            (Phase::Running, OnFailure::Notify) => out.push(Output::Kill { slot }),
            (Phase::Ending { .. } | Phase::Over, _) => {}
        }
    }

    fn set_stopped(&mut self, slot: Slot, stopped: bool, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if before.state == State::Alive && before.stopped != stopped {
            self.set(slot, Record { stopped, ..before }, out);
        }
    }

    fn asked(&mut self, request: u64, wanted: Option<Slot>, pid: u32, out: &mut Vec<Output>) {
        match self.place_for(wanted) {
            Err(why) => out.push(Output::Refuse { request, why }),
            Ok(slot) => {
                self.vacated.retain(|&vacated| vacated != slot);
                let before = self.record(slot);
                let again = u32::from(before.state != State::Reserved);
                let incarnation = before.incarnation + again;
                let state = State::Alive;
                self.set(slot, Record { state, incarnation, pid, ..Record::default() }, out);
                out.push(Output::Admit { request, process: self.process(slot) });
            }
        }
    }

    /// The slot for somebody who wants to join.
    fn place_for(&self, wanted: Option<Slot>) -> Result<Slot, Refusal> {
        if self.phase != Phase::Running {
            return Err(Refusal::Ending);
        }
        if let Some(slot) = wanted {
            return match self.record(slot).state {
                _ if slot.0 >= self.plan.processes => Err(Refusal::NoSuchSlot),
                State::Reserved => Ok(slot),
                _ => Err(Refusal::Taken),
            };
        }
        let unused = self.guest_slots().find(|&slot| self.record(slot).state == State::Free);
        let used = || {
            let usable = |slot: &Slot| self.record(*slot).incarnation < u32::MAX;
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

    /// From now on the job ends. Who has not come yet will not come any more.
    fn begin_ending(&mut self, kill_at: Option<Duration>, out: &mut Vec<Output>) {
        self.phase = Phase::Ending { kill_at };
        out.push(Output::SetEnding);
        for slot in (0..self.plan.processes).map(Slot) {
            let before = self.record(slot);
            if before.state == State::Reserved {
                self.set(slot, Record { state: State::Dead, ..before }, out);
            }
        }
    }

    /// What follows from the state, whatever the input was.
    fn settle(&mut self, now: Duration, out: &mut Vec<Output>) {
        if self.deadline().is_some_and(|kill_at| kill_at <= now) {
            self.kill(out);
        }
        let over = !self
            .process_slots()
            .any(|slot| matches!(self.record(slot).state, State::Reserved | State::Alive));
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

    /// Makes the next view when a member is gone or somebody joined.
    fn renew_view(&mut self, out: &mut Vec<Output>) {
        let mut gone = Vec::new();
        let mut joined = Vec::new();
        for output in out.iter() {
            let Output::SetRecord { slot, record } = output else { continue };
            let process = self.process(*slot);
            match (record.state, self.view.rank_of(process)) {
                (State::Departed | State::Dead, Some(_)) => gone.push(process),
                (State::Alive, None) => joined.push(process),
                _ => {}
            }
        }
        if !gone.is_empty() || !joined.is_empty() {
            self.view = self.view.next(&gone, &joined);
            out.push(Output::NewView);
        }
    }

    /// Puts one announcement after the last of what is to be announced, before anybody is
    /// signalled or answered.
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
        if let Some(place) = self.records.get_mut(slot.0 as usize) {
            *place = record;
            out.push(Output::SetRecord { slot, record });
        }
    }

    fn is_guest(&self, slot: Slot) -> bool {
        slot.0 >= self.plan.processes
    }

    fn process_slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.plan.processes).map(Slot)
    }

    fn guest_slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (self.plan.processes..self.plan.processes + self.plan.guests).map(Slot)
    }

    fn living_processes(&self) -> impl Iterator<Item = Slot> + '_ {
        self.process_slots().filter(|&slot| self.record(slot).state == State::Alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(5);
    const GRACE: Duration = Duration::from_secs(1);

    fn membership(on_failure: OnFailure) -> Membership {
        let plan = Plan { host: HostId(7), processes: 3, guests: 2, on_failure, grace: GRACE };
        let mut membership = Membership::new(plan);
        for slot in 0..3 {
            membership.handle(NOW, Input::Started { slot: Slot(slot), pid: 100 + slot });
        }
        membership
    }

    fn ended(slot: u32, status: i32, presence: Presence) -> Input {
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
    fn the_first_view_is_the_whole_job() {
        let membership = membership(OnFailure::Abort);
        assert_eq!(membership.view().size(), 3);
        assert_eq!(membership.view().id(), 1, "a start as planned changes no view");
        assert_eq!(membership.begin().last(), Some(&Output::Announce));
        assert_eq!(membership.record(Slot(2)).pid, 102);
    }

    #[test]
    fn a_good_end_is_a_departure_and_any_other_a_death() {
        use Presence::{Attached, Finalized, NotAttached};
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
        let out = membership.handle(NOW, ended(1, 11, Presence::Attached));
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
        let out = membership.handle(NOW, ended(1, 11, Presence::Attached));
        assert!(out.starts_with(&[
            Output::SetRecord { slot: Slot(1), record: membership.record(Slot(1)) },
            Output::SetEnding,
            Output::Announce,
        ]));
        for slot in 0..3 {
            assert!(out.contains(&Output::Terminate { slot: Slot(slot) }), "{slot}");
        }
        assert_eq!(membership.deadline(), Some(NOW + GRACE));
        membership.handle(NOW, ended(0, 15, Presence::Attached));
        let out = membership.handle(NOW + GRACE, Input::Tick);
        assert_eq!(out, [Output::Kill { slot: Slot(2) }]);
        assert_eq!(membership.deadline(), None);
        let out = membership.handle(NOW + GRACE, ended(2, 9, Presence::Attached));
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
        let plan = Plan {
            host: HostId(7),
            processes: 3,
            guests: 0,
            on_failure: OnFailure::Abort,
            grace: GRACE,
        };
        let mut membership = Membership::new(plan);
        membership.handle(NOW, Input::Started { slot: Slot(0), pid: 4 });
        let out = membership.handle(NOW, Input::NotStarted { slot: Slot(1) });
        assert!(out.contains(&Output::Terminate { slot: Slot(0) }));
        assert_eq!(membership.record(Slot(2)).state, State::Dead, "it will not be started");
        let out = membership.handle(NOW, ended(0, 15, Presence::NotAttached));
        assert!(out.contains(&Output::Over));
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
        membership.handle(NOW, ended(4, 0, Presence::Attached));
        assert_eq!(membership.record(Slot(4)).state, State::Dead);
        assert!(membership.is_running(), "a guest's death is no failure of the job");
        membership.handle(NOW, ended(3, 0, Presence::Finalized));
        assert_eq!(asked(&mut membership, None), Ok((4, 2)), "longest gone first");
        assert_eq!(membership.view().size(), 4);
    }

    #[test]
    fn a_member_takes_its_reserved_slot_once() {
        let plan = Plan {
            host: HostId(7),
            processes: 2,
            guests: 1,
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
            membership.handle(NOW, ended(slot, 0, Presence::Finalized));
        }
        let out = membership.handle(NOW, ended(2, 0, Presence::Finalized));
        assert!(out.contains(&Output::SetEnding) && out.contains(&Output::Over), "{out:?}");
    }

    fn any_input() -> impl Strategy<Value = Input> {
        let slot = || (0_u32..6).prop_map(Slot);
        let presence = prop_oneof![
            Just(Presence::NotAttached),
            Just(Presence::Attached),
            Just(Presence::Finalized)
        ];
        prop_oneof![
            8 => (slot(), 1_u32..99).prop_map(|(slot, pid)| Input::Started { slot, pid }),
            1 => slot().prop_map(|slot| Input::NotStarted { slot }),
            6 => (slot(), prop_oneof![Just(0), Just(9), Just(256)], presence)
                .prop_map(|(slot, status, presence)| Input::Ended { slot, status, presence }),
            2 => slot().prop_map(|slot| Input::Stopped { slot }),
            2 => slot().prop_map(|slot| Input::Continued { slot }),
            8 => (proptest::option::weighted(0.2, slot()), 1_u32..99)
                .prop_map(|(wanted, pid)| Input::Asked { request: 5, wanted, pid }),
            1 => (0_u64..9).prop_map(|s| Input::End { grace: Duration::from_secs(s) }),
            1 => Just(Input::Kill),
            3 => Just(Input::Tick),
        ]
    }

    fn is_subsequence(part: &[ProcessId], whole: &[ProcessId]) -> bool {
        let mut whole = whole.iter();
        part.iter().all(|wanted| whole.any(|process| process == wanted))
    }

    /// What must hold of every step, whatever the input.
    fn check_step(before: &Membership, after: &Membership, out: &[Output]) {
        let (old, new) = (before.view(), after.view());
        let changed = old.members() != new.members();
        assert_eq!(
            new.id(),
            old.id() + u64::from(changed),
            "a change is a new view, nothing else is"
        );
        assert_eq!(out.contains(&Output::NewView), changed);
        let survivors: Vec<_> =
            old.members().iter().copied().filter(|&p| new.rank_of(p).is_some()).collect();
        assert_eq!(new.members()[..survivors.len()], survivors, "survivors keep their order");
        assert!(!changed || is_subsequence(new.departed(), old.members()));
        for slot in (0..5).map(Slot) {
            let (was, is) = (before.record(slot), after.record(slot));
            assert!(is.incarnation >= was.incarnation);
            let gone = matches!(was.state, State::Departed | State::Dead);
            if gone && !matches!(is.state, State::Departed | State::Dead) {
                assert_eq!(is.incarnation, was.incarnation + 1, "the dead do not come back");
            }
            let member = new.rank_of(after.process(slot)).is_some();
            assert_eq!(member, matches!(is.state, State::Reserved | State::Alive));
            let written = out.iter().any(
                |output| matches!(output, Output::SetRecord { slot: s, record } if *s == slot && *record == is),
            );
            assert_eq!(written, was != is, "every change is written, and nothing else");
        }
        let announced = out.iter().position(|output| *output == Output::Announce);
        let last_written =
            out.iter().rposition(|o| matches!(o, Output::SetRecord { .. } | Output::SetEnding));
        assert_eq!(announced, last_written.map(|place| place + 1), "{out:?}");
        assert!(before.is_running() || !after.is_running(), "an ended job does not go on");
    }

    proptest! {
        #[test]
        fn invariants_hold_in_any_history(
            inputs in proptest::collection::vec((any_input(), 0_u64..3), 1..80),
            abort in any::<bool>(),
        ) {
            let on_failure = if abort { OnFailure::Abort } else { OnFailure::Notify };
            let plan = Plan { host: HostId(7), processes: 3, guests: 2, on_failure, grace: GRACE };
            let mut membership = Membership::new(plan);
            let mut now = Duration::ZERO;
            let mut overs = 0;
            for (input, step_s) in inputs {
                now += Duration::from_secs(step_s);
                let before = membership.clone();
                let out = membership.handle(now, input);
                check_step(&before, &membership, &out);
                prop_assert!(membership.deadline().is_none_or(|kill_at| kill_at > now));
                overs += out.iter().filter(|output| **output == Output::Over).count();
            }
            prop_assert!(overs <= 1);
            membership.handle(now, Input::Kill);
            for slot in (0..3).map(Slot) {
                let presence = Presence::Attached;
                membership.handle(now, Input::Ended { slot, status: 9, presence });
            }
            prop_assert!(membership.living_processes().next().is_none());
        }
    }
}
