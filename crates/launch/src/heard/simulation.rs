//! A part whose daemon is killed at any step, and so is that of its launcher's host: the guardian, these two daemons and the
//! launcher, what each of them sends, and what is lost with a daemon, in random order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::guardian::{Command, Event, ToldEvents};
use landeck_memory::{Presence, WaitRecord};
use landeck_protocols::door::StartWish;
use landeck_testing::{Random, seed};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use super::tests::ended;
use super::*;

const HOST: HostNumber = HostNumber(2);
const RANKS: u32 = 3;
/// The numbers of processes that are added.
const ADDED: std::ops::Range<u32> = 10..13;

/// A wish for a process.
pub(crate) fn wish() -> StartWish {
    let (slot, incarnation) = (Slot(0), Incarnation(1));
    StartWish {
        asker: ProcessId { segment: SegmentId(1), slot, incarnation },
        host: HostNumber::NONE,
        program: Vec::new(),
        arguments: Vec::new(),
        variables: Vec::new(),
        directory: None,
        join_ms: 0,
    }
}

/// The guardian: what runs below it, and its conversation with the daemon, which outlives that.
#[derive(Default)]
struct Guardian {
    told: ToldEvents,
    /// The events, and the numbers of questions where it begins to tell again.
    to_daemon: VecDeque<Result<Event, u64>>,
    /// The number of the last question, and whether the daemon hears nothing before the answer.
    asked: u64,
    is_asked: bool,
    /// The number of the conductor's question that the daemon passes on.
    asked_for: u64,
    from_daemon: VecDeque<Command>,
    running: BTreeMap<u32, u32>,
    last_pid: u32,
    /// The PIDs of all processes that were started with a number, and those that have ended.
    started: BTreeMap<u32, Vec<u32>>,
    ended: BTreeSet<u32>,
    wishes: BTreeSet<u64>,
    last_wish: u64,
    answers: BTreeMap<u64, u32>,
    is_to_end: bool,
}

impl Guardian {
    fn tell(&mut self, event: Event) {
        self.told.note(&event);
        self.to_daemon.push_back(Ok(event));
    }

    fn start(&mut self, rank: u32) {
        self.last_pid += 1;
        let (pid, slot) = (self.last_pid, rank);
        self.running.insert(rank, pid);
        self.started.entry(rank).or_default().push(pid);
        self.tell(Event::Started { slot, pid, rank, restart: 0 });
    }

    /// A process ends; a rank is started again.
    fn end(&mut self, rank: u32) {
        let Some(pid) = self.running.remove(&rank) else { return };
        let (presence, wait) = (Presence::NotAttached, WaitRecord::default());
        let (slot, status, at) = (rank, 0, Duration::ZERO);
        self.tell(Event::Ended { slot, pid, status, at, wait, presence, again: None });
        self.ended.insert(pid);
        if rank < RANKS && !self.is_to_end {
            self.start(rank);
        }
    }

    fn ask(&mut self) {
        self.last_wish += 1;
        self.wishes.insert(self.last_wish);
        self.tell(Event::StartAsked { request: self.last_wish, wish: Box::new(wish()) });
    }

    /// A daemon asks it to tell again, and hears nothing that comes before that.
    fn ask_again(&mut self, asked_for: u64) {
        (self.asked, self.is_asked, self.asked_for) = (self.asked + 1, true, asked_for);
        self.from_daemon.push_back(Command::TellAgain { asked: self.asked });
    }

    /// The next event that the daemon hears.
    fn heard(&mut self) -> Option<Event> {
        match self.to_daemon.pop_front()? {
            Err(asked) => {
                self.is_asked &= asked != self.asked;
                None
            }
            Ok(event) => Some(event).filter(|_| !self.is_asked),
        }
    }

    fn obey(&mut self, command: Command) {
        self.told.obeyed(&command);
        match command {
            Command::Start { rank } => self.start(rank),
            Command::AnswerStart { request, .. } => {
                self.wishes.remove(&request);
                *self.answers.entry(request).or_default() += 1;
            }
            Command::End { .. } => self.is_to_end = true,
            Command::TellAgain { asked } => {
                self.to_daemon.push_back(Err(asked));
                self.to_daemon.extend(self.told.again().into_iter().map(Ok));
            }
            _ => {}
        }
    }
}

/// The daemon that conducts the job, and its conversations with the part and with the launcher, which end with it.
#[derive(Default)]
struct Conductor {
    heard: Heard,
    /// The commands, and the number of a question where the part is to tell again.
    to_daemon: VecDeque<Result<PartCommand, u64>>,
    /// The question that has no answer yet.
    asked: Option<u64>,
    from_daemon: VecDeque<PartEvent>,
    to_launcher: VecDeque<PartEvent>,
    from_launcher: VecDeque<PartCommand>,
}

impl Conductor {
    fn hear(&mut self, event: PartEvent) {
        if !self.heard.is_new(HOST, &event) {
            if let PartEvent::StartAsked { request, .. } = event {
                self.to_daemon.extend(self.heard.answer(HOST, request).map(Ok));
            }
            return;
        }
        if let PartEvent::Stands { asked } = event {
            self.asked.take_if(|it| *it == asked);
            let (orders, lost) = self.heard.stands(HOST);
            self.to_daemon.extend(orders.into_iter().map(Ok));
            self.to_launcher.extend(lost);
        }
        self.to_launcher.push_back(event);
    }

    fn obey(&mut self, command: PartCommand) {
        self.heard.ordered(HOST, &command);
        self.to_daemon.push_back(Ok(command));
    }
}

/// The launcher.
#[derive(Default)]
struct Launcher {
    heard: Heard,
    /// The number of conductors that were killed, and whether the part has still to tell everything again because of that.
    returns: u64,
    is_told_again: bool,
    sent: Vec<PartCommand>,
    /// The events that counted, as rank and PID.
    started: BTreeMap<u32, Vec<u32>>,
    ended: BTreeMap<u32, Vec<u32>>,
    /// The numbers that are taken, and the wishes that were taken for the first time.
    starting: BTreeSet<u32>,
    taken: BTreeSet<u64>,
    has_ended_job: bool,
}

impl Launcher {
    fn send(&mut self, command: PartCommand) {
        self.heard.ordered(HOST, &command);
        self.sent.push(command);
    }

    fn hear(&mut self, event: PartEvent) {
        if !self.heard.is_new(HOST, &event) {
            if let PartEvent::StartAsked { request, .. } = event {
                self.sent.extend(self.heard.answer(HOST, request));
            }
            return;
        }
        self.take(event);
    }

    fn take(&mut self, event: PartEvent) {
        match event {
            PartEvent::Happened(Happened::Started { rank, pid, .. }) => {
                self.started.entry(rank).or_default().push(pid);
            }
            PartEvent::Happened(Happened::Ended { rank, pid, .. }) => {
                self.ended.entry(rank).or_default().push(pid);
                self.starting.remove(&rank);
            }
            PartEvent::NotAdded { rank, .. } => drop(self.starting.remove(&rank)),
            PartEvent::StartAsked { request, .. } => {
                assert!(self.taken.insert(request), "wish {request} was taken twice");
                let refused = StartAnswer::Refused(StartRefusal::Ending);
                match ADDED.clone().find(|rank| !self.starting.contains(rank)) {
                    Some(rank) if !self.has_ended_job => {
                        self.starting.insert(rank);
                        self.send(PartCommand::Start { rank, like: 0, wish: Box::new(wish()) });
                    }
                    _ => {}
                }
                self.send(PartCommand::AnswerStart { request, answer: refused });
            }
            PartEvent::Stands { asked }
                if asked == self.returns && std::mem::take(&mut self.is_told_again) =>
            {
                let (orders, lost) = self.heard.stands(HOST);
                self.sent.extend(orders);
                lost.into_iter().for_each(|event| self.take(event));
            }
            _ => {}
        }
    }
}

/// A daemon passes an event on.
fn passed_on(event: Event, asked_for: u64) -> PartEvent {
    match event {
        Event::Started { rank, pid, restart, .. } => {
            PartEvent::Happened(Happened::Started { rank, pid, restart })
        }
        Event::Ended { slot, pid, .. } => ended(slot, pid),
        Event::StartAsked { request, wish } => PartEvent::StartAsked { request, rank: None, wish },
        Event::AllTold => PartEvent::Stands { asked: asked_for },
        other => panic!("{other:?} never happens"),
    }
}

fn command_of(command: PartCommand) -> Command {
    match command {
        PartCommand::Start { rank, .. } => Command::Start { rank },
        PartCommand::AnswerStart { request, answer } => Command::AnswerStart { request, answer },
        PartCommand::End { grace } => Command::End { grace },
        other => panic!("{other:?} is never sent"),
    }
}

#[derive(Default)]
struct World {
    guardian: Guardian,
    conductor: Conductor,
    launcher: Launcher,
}

impl World {
    /// One of the things that can happen. `is_busy` says whether processes end and ask for others, and daemons are killed.
    fn step(&mut self, random: &mut Random, is_busy: bool) {
        match random.below(13) {
            0 if is_busy => self.kill_daemon(),
            1 if is_busy && random.once_in(2) => self.kill_conductor(),
            2 if is_busy => self.guardian.end(random.below(ADDED.end.into()) as u32),
            3 if is_busy && self.guardian.wishes.len() < 3 => self.guardian.ask(),
            4 if is_busy && random.once_in(20) && !self.launcher.has_ended_job => {
                self.launcher.has_ended_job = true;
                self.launcher.send(PartCommand::End { grace: Duration::ZERO });
            }
            5 | 6 => {
                let heard = self.guardian.heard();
                let asked_for = self.guardian.asked_for;
                let passed = heard.map(|event| passed_on(event, asked_for));
                self.conductor.from_daemon.extend(passed);
            }
            7 => match self.conductor.to_daemon.pop_front() {
                Some(Ok(command)) => self.guardian.from_daemon.push_back(command_of(command)),
                Some(Err(asked)) => self.guardian.ask_again(asked),
                None => {}
            },
            8 => {
                if let Some(command) = self.guardian.from_daemon.pop_front() {
                    self.guardian.obey(command);
                }
            }
            9 => {
                if let Some(event) = self.conductor.from_daemon.pop_front() {
                    self.conductor.hear(event);
                }
            }
            10 => {
                if let Some(command) = self.conductor.from_launcher.pop_front() {
                    self.conductor.obey(command);
                }
            }
            _ => {
                if let Some(event) = self.conductor.to_launcher.pop_front() {
                    self.launcher.hear(event);
                }
            }
        }
        self.conductor.from_launcher.extend(self.launcher.sent.drain(..));
    }

    /// The daemon of the part goes, with everything that it has read in both directions.
    fn kill_daemon(&mut self) {
        self.conductor.from_daemon.clear();
        self.conductor.to_daemon.clear();
        self.conductor.heard.restarted(HOST);
        self.conductor.to_daemon.extend(self.conductor.asked.map(Err));
        self.guardian.ask_again(0);
    }

    /// The next conductor knows nothing. The launcher calls it, and it has the part tell everything again.
    fn kill_conductor(&mut self) {
        let launcher = &mut self.launcher;
        launcher.heard.restarted(HOST);
        (launcher.returns, launcher.is_told_again) = (launcher.returns + 1, true);
        self.conductor = Conductor { asked: Some(launcher.returns), ..Conductor::default() };
        self.conductor.to_daemon.push_back(Err(launcher.returns));
    }

    fn is_quiet(&self) -> bool {
        let Self { guardian, conductor, .. } = self;
        guardian.to_daemon.is_empty()
            && guardian.from_daemon.is_empty()
            && conductor.to_daemon.is_empty()
            && conductor.from_daemon.is_empty()
            && conductor.to_launcher.is_empty()
            && conductor.from_launcher.is_empty()
    }

    /// Checks each property once nothing is under way.
    fn check(&self) {
        let Self { guardian, launcher, .. } = self;
        for (rank, heard) in &launcher.started {
            let all = &guardian.started[rank];
            assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "twice or late: {heard:?}");
            assert!(heard.iter().all(|pid| all.contains(pid)));
        }
        for (rank, all) in &guardian.started {
            let last = all.last();
            assert_eq!(launcher.started.get(rank).and_then(|heard| heard.last()), last);
            let has_ended = last.is_some_and(|pid| guardian.ended.contains(pid));
            let heard = launcher.ended.get(rank);
            let is_heard = heard.and_then(|heard| heard.last()) == last;
            assert_eq!(is_heard, has_ended, "the end of {last:?} with number {rank}");
        }
        for heard in launcher.ended.values() {
            assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "twice or late: {heard:?}");
        }
        assert_eq!(guardian.wishes, BTreeSet::new(), "these have no answer");
        assert_eq!(guardian.is_to_end, launcher.has_ended_job, "the order to end");
        let alive: BTreeSet<u32> =
            guardian.running.keys().copied().filter(|rank| ADDED.contains(rank)).collect();
        assert_eq!(launcher.starting, alive, "added processes");
        assert!(guardian.answers.values().all(|times| *times >= 1));
    }
}

#[test]
fn a_killed_daemon_loses_no_event_and_doubles_none() {
    let first = seed();
    for number in 0..2_000 {
        let mut random = Random::new(first.wrapping_add(number));
        let mut world = World::default();
        (0..RANKS).for_each(|rank| world.guardian.start(rank));
        (0..400).for_each(|_| world.step(&mut random, true));
        // A daemon that stays passes everything on.
        while !world.is_quiet() {
            world.step(&mut random, false);
        }
        world.check();
    }
}
