//! A part whose daemon is killed at any step, between the guardian and the conductor: what each of them sends, and what is
//! lost with a daemon, in random order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use landeck_launch::guardian::{Command, Event, ToldEvents};
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
pub(super) fn wish() -> StartWish {
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
    /// The events, and none where it begins to tell again.
    to_daemon: VecDeque<Option<Event>>,
    /// The times that it begins to tell again before a daemon listens.
    unheard: usize,
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
        self.to_daemon.push_back(Some(event));
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

    /// The next daemon asks it to tell again, and hears nothing that comes before that.
    fn kill_daemon(&mut self) {
        self.from_daemon.push_back(Command::TellAgain);
        self.unheard += 1;
    }

    /// The next event that the daemon hears.
    fn heard(&mut self) -> Option<Event> {
        match self.to_daemon.pop_front()? {
            None => {
                self.unheard -= 1;
                None
            }
            event => event.filter(|_| self.unheard == 0),
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
            Command::TellAgain => {
                self.to_daemon.push_back(None);
                self.to_daemon.extend(self.told.again().into_iter().map(Some));
            }
            _ => {}
        }
    }
}

/// The conductor, and its conversation with the daemon, which ends with that.
#[derive(Default)]
struct Conductor {
    heard: Heard,
    to_daemon: VecDeque<PartCommand>,
    from_daemon: VecDeque<PartEvent>,
    /// The events that counted, as rank and PID.
    started: BTreeMap<u32, Vec<u32>>,
    ended: BTreeMap<u32, Vec<u32>>,
    /// The numbers that are taken, and the wishes that were taken for the first time.
    starting: BTreeSet<u32>,
    taken: BTreeSet<u64>,
    has_ended_job: bool,
}

impl Conductor {
    fn send(&mut self, command: PartCommand) {
        self.heard.ordered(HOST, &command);
        self.to_daemon.push_back(command);
    }

    fn hear(&mut self, event: PartEvent) {
        if !self.heard.is_new(HOST, &event) {
            if let PartEvent::StartAsked { request, .. } = event {
                self.to_daemon.extend(self.heard.answer(HOST, request));
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
            PartEvent::Stands => {
                let (orders, lost) = self.heard.stands(HOST);
                self.to_daemon.extend(orders);
                lost.into_iter().for_each(|event| self.take(event));
            }
            _ => {}
        }
    }
}

/// A daemon passes an event on.
fn passed_on(event: Event) -> PartEvent {
    match event {
        Event::Started { rank, pid, restart, .. } => {
            PartEvent::Happened(Happened::Started { rank, pid, restart })
        }
        Event::Ended { slot, pid, .. } => ended(slot, pid),
        Event::StartAsked { request, wish } => PartEvent::StartAsked { request, rank: None, wish },
        Event::AllTold => PartEvent::Stands,
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
}

impl World {
    /// One of the things that can happen. `is_busy` says whether processes end and ask for others, and the daemon is killed.
    fn step(&mut self, random: &mut Random, is_busy: bool) {
        let Self { guardian, conductor } = self;
        match random.below(9) {
            0 if is_busy => {
                // What it has read goes with it, in both directions.
                conductor.from_daemon.clear();
                conductor.to_daemon.clear();
                conductor.heard.restarted(HOST);
                guardian.kill_daemon();
            }
            1 if is_busy => guardian.end(random.below(ADDED.end.into()) as u32),
            2 if is_busy && guardian.wishes.len() < 3 => guardian.ask(),
            3 if is_busy && random.once_in(20) && !conductor.has_ended_job => {
                conductor.has_ended_job = true;
                conductor.send(PartCommand::End { grace: Duration::ZERO });
            }
            4 | 5 => {
                conductor.from_daemon.extend(guardian.heard().map(passed_on));
            }
            6 => {
                let command = conductor.to_daemon.pop_front();
                guardian.from_daemon.extend(command.map(command_of));
            }
            7 => {
                if let Some(command) = guardian.from_daemon.pop_front() {
                    guardian.obey(command);
                }
            }
            _ => {
                if let Some(event) = conductor.from_daemon.pop_front() {
                    conductor.hear(event);
                }
            }
        }
    }

    fn is_quiet(&self) -> bool {
        let Self { guardian, conductor } = self;
        guardian.to_daemon.is_empty()
            && guardian.from_daemon.is_empty()
            && conductor.to_daemon.is_empty()
            && conductor.from_daemon.is_empty()
    }

    /// Checks each property once nothing is under way.
    fn check(&self) {
        let Self { guardian, conductor } = self;
        for (rank, heard) in &conductor.started {
            let all = &guardian.started[rank];
            assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "twice or late: {heard:?}");
            assert!(heard.iter().all(|pid| all.contains(pid)));
        }
        for (rank, all) in &guardian.started {
            let last = all.last();
            assert_eq!(conductor.started.get(rank).and_then(|heard| heard.last()), last);
            let has_ended = last.is_some_and(|pid| guardian.ended.contains(pid));
            let heard = conductor.ended.get(rank);
            let is_heard = heard.and_then(|heard| heard.last()) == last;
            assert_eq!(is_heard, has_ended, "the end of {last:?} with number {rank}");
        }
        for heard in conductor.ended.values() {
            assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "twice or late: {heard:?}");
        }
        assert_eq!(guardian.wishes, BTreeSet::new(), "these have no answer");
        assert_eq!(guardian.is_to_end, conductor.has_ended_job, "the order to end");
        let alive: BTreeSet<u32> =
            guardian.running.keys().copied().filter(|rank| ADDED.contains(rank)).collect();
        assert_eq!(conductor.starting, alive, "added processes");
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
        (0..300).for_each(|_| world.step(&mut random, true));
        // A daemon that stays passes everything on.
        while !world.is_quiet() {
            world.step(&mut random, false);
        }
        world.check();
    }
}
