//! The door with random visitors, and a driver that answers late and in any order. No visitor gets two answers, and
//! every socket and all memory is returned.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may

use std::collections::BTreeSet;
use std::time::Duration;

use landeck_protocols::door::{
    Door, DoorAction, Input, Listener, Listening, MemoryNumber, Name, ObjectKind, ObjectQuestion,
    ObjectRequest, Question, VISITORS_BEYOND_SLOTS, Visitor,
};
use landeck_protocols::membership::{
    self, LastPresence, Membership, MembershipPlan, OnFailure, Output, State,
};
use landeck_testing::{Random, Watchdog, seed};
use landeck_wire::{ControlMessage, Incarnation, ProcessId, SegmentId, Slot};

/// The time limit of each test.
const TIME_MAX: Duration = Duration::from_secs(300);
const HOST: SegmentId = SegmentId(7);
const UID: u32 = 1_000;
const PROCESSES: u32 = 3;
const SLOTS: u32 = 5;

/// A job, its door, and the resources of their driver at the moment.
struct World {
    random: Random,
    door: Door,
    membership: Membership,
    now: Duration,
    last: u64,
    connections: BTreeSet<Visitor>,
    names: BTreeSet<Listener>,
    memories: BTreeSet<MemoryNumber>,
    /// The actions that the door is still waiting for.
    owed: Vec<DoorAction>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (guests, on_failure, grace) =
            (SLOTS - PROCESSES, OnFailure::Notify, Duration::from_secs(1));
        let plan = MembershipPlan {
            host: HOST,
            processes: PROCESSES,
            guests,
            keeps_ranks: false,
            is_held: false,
            on_failure,
            grace,
        };
        let mut world = Self {
            random: Random::new(seed),
            door: Door::new(HOST, SLOTS, UID),
            membership: Membership::new(plan),
            now: Duration::ZERO,
            last: 0,
            connections: BTreeSet::new(),
            names: BTreeSet::new(),
            memories: BTreeSet::new(),
            owed: Vec::new(),
        };
        for slot in (1..PROCESSES).map(Slot) {
            world.tell_membership(membership::Input::Started { slot, pid: 100 + slot.0 });
        }
        world
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn tell(&mut self, input: Input<'_>) {
        for action in self.door.handle(self.now, &self.membership, input) {
            match action {
                DoorAction::Answer { visitor, memory, .. } => {
                    assert!(memory.is_none_or(|memory| self.memories.contains(&memory)));
                    assert!(self.connections.remove(&visitor), "{visitor:?} is answered twice");
                }
                DoorAction::Close { visitor } => assert!(self.connections.remove(&visitor)),
                DoorAction::Admit { visitor, .. } | DoorAction::Watch { visitor, .. } => {
                    assert!(self.connections.contains(&visitor));
                }
                DoorAction::Lost { visitor, process } => {
                    assert!(self.connections.contains(&visitor));
                    if self.membership.is_alive(process) {
                        self.end(process.slot);
                    }
                }
                DoorAction::Found { slot, pid } => {
                    self.tell_membership(membership::Input::Found { slot, pid });
                }
                DoorAction::Said { slot, has_left } => {
                    self.tell_membership(match has_left {
                        true => membership::Input::Left { slot },
                        false => membership::Input::Returned { slot },
                    });
                }
                DoorAction::Left { process } => {
                    if self.membership.is_alive(process) {
                        self.end(process.slot);
                    }
                }
                DoorAction::Release(memory) => assert!(self.memories.remove(&memory)),
                DoorAction::Deafen(listener) => assert!(self.names.remove(&listener)),
                DoorAction::Announce => {}
                owed => self.owed.push(owed),
            }
        }
    }

    fn tell_membership(&mut self, input: membership::Input) {
        for output in self.membership.handle(self.now, input) {
            match output {
                Output::Admit { request, process } => {
                    self.tell(Input::Admitted { visitor: Visitor(request), process });
                }
                Output::Refuse { request, why } => {
                    self.tell(Input::Refused { visitor: Visitor(request), why });
                }
                Output::SetRecord { slot, record }
                    if matches!(record.state, State::Left | State::Departed | State::Dead) =>
                {
                    self.tell(Input::Ended { process: self.membership.process(slot) });
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, slot: Slot) {
        let presence = LastPresence::Attached;
        self.tell_membership(membership::Input::Ended { slot, status: 9, presence });
    }

    /// Carries out an action that the door is waiting for.
    fn pay(&mut self) {
        let place = self.random.below(self.owed.len().max(1) as u64) as usize;
        if place >= self.owed.len() {
            return;
        }
        let fails = self.random.once_in(4);
        match self.owed.swap_remove(place) {
            DoorAction::Ask { visitor, wanted, pid } => {
                let vacated: Vec<Slot> = self.membership.vacated().collect();
                let kept = vacated.into_iter().filter(|_| self.random.once_in(2)).collect();
                self.membership.keep(kept);
                let request = visitor.0;
                self.tell_membership(membership::Input::Asked { request, wanted, pid });
            }
            DoorAction::Allocate { visitor, .. } | DoorAction::Expose { visitor } => {
                let memory = (!fails).then(|| MemoryNumber(self.number()));
                self.memories.extend(memory);
                self.tell(Input::Provided { visitor, memory });
            }
            DoorAction::Listen { visitor, .. } => {
                let outcome = if fails {
                    *self.random.pick(&[Listening::InUse, Listening::Failed])
                } else {
                    let listener = Listener(self.number());
                    self.names.insert(listener);
                    Listening::At(listener)
                };
                self.tell(Input::Listening { visitor, outcome });
            }
            DoorAction::Look { visitor, .. } => {
                let presence = if fails { LastPresence::Finalized } else { LastPresence::Attached };
                self.tell(Input::Seen { visitor, presence });
            }
            other => panic!("{other:?}"),
        }
    }

    fn come(&mut self) {
        let visitor = Visitor(self.number());
        let by = if self.random.once_in(3) { self.names.first().copied() } else { None };
        let uid = if self.random.once_in(20) { UID + 1 } else { UID };
        let pid = 100 + self.random.below(10) as u32;
        self.connections.insert(visitor);
        self.tell(Input::Came { visitor, uid, pid, by });
        assert!(self.connections.len() <= SLOTS as usize + VISITORS_BEYOND_SLOTS);
    }

    fn some_visitor(&mut self) -> Visitor {
        let place = self.random.below(self.connections.len().max(1) as u64) as usize;
        self.connections.iter().nth(place).copied().unwrap_or(Visitor(0))
    }

    fn some_process(&mut self) -> ProcessId {
        let (slot, incarnation) = (self.random.below(6) as u32, 1 + self.random.below(2) as u32);
        ProcessId { segment: HOST, slot: Slot(slot), incarnation: Incarnation(incarnation) }
    }

    fn say(&mut self) {
        let visitor = self.some_visitor();
        let mut bytes =
            if self.random.once_in(2) { self.question() } else { self.object_question() };
        if self.random.once_in(10) {
            let place = self.random.below(bytes.len() as u64) as usize;
            bytes[place] = self.random.bits() as u8;
        }
        if self.random.once_in(20) {
            bytes.truncate(self.random.below(120) as usize);
        }
        self.tell(Input::Said { visitor, bytes: &bytes });
    }

    fn question(&mut self) -> Vec<u8> {
        let process = self.some_process();
        let name: &str = self.random.pick::<&str>(&["a", "b", "c"]);
        let name = Name::new(name).unwrap();
        let questions = [
            Question::Join { wanted: None },
            Question::Join { wanted: Some(process.slot) },
            Question::Publish { process, context: 5, name: name.clone() },
            Question::Unpublish { process, name },
            Question::LookUp,
            Question::Observe,
            Question::Found { process },
            Question::Presence { process },
        ];
        self.random.pick(&questions).encode()
    }

    /// A question about an object. Groups are left out, since they would outlive their users.
    fn object_question(&mut self) -> Vec<u8> {
        let kinds = [ObjectKind::Mailbox, ObjectKind::Segment, ObjectKind::Semaphore];
        let (kind, asked) = (*self.random.pick(&kinds), *self.random.pick(&ObjectRequest::ALL));
        let question = ObjectQuestion::new(self.some_process(), kind, asked);
        let question = ObjectQuestion { number: self.random.below(20), bytes: 64, ..question };
        let name = Name::new(self.random.pick(&["a", "b", "c"])).unwrap();
        let question = if self.random.once_in(2) { question.named(&name) } else { question };
        Question::Object(question).encode()
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0..5 => self.come(),
            5..10 => self.say(),
            10..13 => self.pay(),
            13 => {
                let visitor = self.some_visitor();
                self.tell(Input::Gone { visitor });
            }
            14 if self.random.once_in(4) => {
                let slot = self.some_process().slot;
                self.end(slot);
            }
            _ => {
                self.now += Duration::from_millis(self.random.below(100));
                self.tell(Input::Tick);
            }
        }
    }

    /// Lets all visitors go, and the driver carry out all its actions.
    fn finish(&mut self) {
        for visitor in self.connections.clone() {
            self.tell(Input::Gone { visitor });
        }
        while !self.owed.is_empty() {
            self.pay();
        }
        for slot in 0..SLOTS {
            let was_let_in = slot == 0 || self.membership.rank_of(Slot(slot)).is_none();
            let is_alive = self.membership.record(Slot(slot)).state == State::Alive;
            assert!(!(was_let_in && is_alive), "the visitor in slot {slot} is gone");
            self.end(Slot(slot));
        }
        assert_eq!(self.connections, BTreeSet::new());
        assert_eq!((&self.names, &self.memories), (&BTreeSet::new(), &BTreeSet::new()));
        assert!(self.door.deadline(self.now).is_none());
    }
}

#[test]
fn whatever_comes_is_answered_once_and_nothing_stays_behind() {
    let _watchdog = Watchdog::start(TIME_MAX);
    let is_soak = std::env::var_os("LANDECK_SOAK").is_some();
    let mut random = Random::new(seed());
    for _ in 0..if is_soak { 50_000 } else { 1_000 } {
        let mut world = World::new(random.bits());
        let steps = random.below(400);
        (0..steps).for_each(|_| world.step());
        world.finish();
    }
}
