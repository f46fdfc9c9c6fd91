//! What the agent keeps for the processes of its job: names of mailboxes, and memory that lives
//! until nobody uses it any more, or, of a group, until that is over.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landeck_memory::shared_area;
use landeck_wire::{ProcessId, Slot};

use crate::objects::{Answer, Asked, Object, ObjectKind, ObjectName, Question};
use crate::socket::{KEPT_MAX, Verdict};

/// The objects of a job.
#[derive(Default)]
pub(crate) struct Keeper {
    kept: HashMap<u64, Kept>,
    /// The number that was given out last.
    last: u64,
}

struct Kept {
    kind: ObjectKind,
    name: Option<ObjectName>,
    object: Object,
    /// None for a mailbox.
    memory: Option<OwnedFd>,
    /// Who uses the memory, and how often.
    users: HashMap<ProcessId, u32>,
}

impl Keeper {
    /// Answers a question of a process that lives, whose process number this is; with memory where
    /// there is any.
    pub(crate) fn answer(
        &mut self,
        question: Question,
        pid: u32,
    ) -> (Answer, Option<BorrowedFd<'_>>) {
        let bare = |verdict| (Answer::bare(question.process.host, verdict), None);
        let is_mailbox = question.kind == ObjectKind::Mailbox;
        match (question.asked, is_mailbox) {
            (Asked::Name, true) if question.name.is_some() => self.make(question, pid, None),
            (Asked::Make, false) => match shared_area::file(question.bytes) {
                Ok(memory) => self.make(question, pid, Some(memory)),
                Err(_) => bare(Verdict::NoMemory),
            },
            (Asked::Find, true) | (Asked::Open, false) => self.open(&question),
            (Asked::Close, _) => bare(self.close(&question)),
            (Asked::Retire, _) if question.kind == ObjectKind::Group => {
                bare(self.retire(&question))
            }
            (Asked::Next, _) if question.kind == ObjectKind::Group => (self.next(&question), None),
            _ => bare(Verdict::Senseless),
        }
    }

    /// A process is gone: with it go the names of its mailboxes, and memory that nobody else uses.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.kept.retain(|_, kept| {
            kept.users.retain(|user, _| user.slot != slot);
            kept.is_used() && (kept.memory.is_some() || kept.object.owner.slot != slot)
        });
    }

    fn make(
        &mut self,
        question: Question,
        pid: u32,
        memory: Option<OwnedFd>,
    ) -> (Answer, Option<BorrowedFd<'_>>) {
        let Question { kind, process, bytes, words, name, .. } = question;
        let bare = |verdict| Answer::bare(process.host, verdict);
        if let Some(present) = name.as_ref().and_then(|name| self.named(kind, name)) {
            return (Answer { object: present.object, ..bare(Verdict::InUse) }, None);
        }
        if self.kept.len() >= KEPT_MAX {
            return (bare(Verdict::TooMany), None);
        }
        self.last += 1;
        let object = Object { number: self.last, bytes, words, owner: process, pid };
        let users = memory.iter().map(|_| (process, 1)).collect();
        let kept = Kept { kind, name, object, memory, users };
        let kept = self.kept.entry(self.last).insert_entry(kept).into_mut();
        (Answer { object, ..bare(Verdict::Granted) }, kept.memory.as_ref().map(AsFd::as_fd))
    }

    fn open(&mut self, question: &Question) -> (Answer, Option<BorrowedFd<'_>>) {
        let bare = |verdict| Answer::bare(question.process.host, verdict);
        let number = match &question.name {
            Some(name) => self.named(question.kind, name).map_or(0, |kept| kept.object.number),
            None => question.number,
        };
        let found = self.kept.get_mut(&number).filter(|kept| kept.kind == question.kind);
        let Some(kept) = found else { return (bare(Verdict::Unknown), None) };
        if kept.memory.is_some() {
            *kept.users.entry(question.process).or_default() += 1;
        }
        let answer = Answer { object: kept.object, ..bare(Verdict::Granted) };
        (answer, kept.memory.as_ref().map(AsFd::as_fd))
    }

    fn close(&mut self, question: &Question) -> Verdict {
        let found = self.kept.get_mut(&question.number).filter(|kept| kept.kind == question.kind);
        let Some(kept) = found else { return Verdict::Unknown };
        if kept.memory.is_none() {
            if kept.object.owner != question.process {
                return Verdict::InUse;
            }
            self.kept.remove(&question.number);
            return Verdict::Granted;
        }
        let Some(uses) = kept.users.get_mut(&question.process) else { return Verdict::Unknown };
        *uses -= 1;
        if *uses == 0 {
            kept.users.remove(&question.process);
        }
        if !kept.is_used() {
            self.kept.remove(&question.number);
        }
        Verdict::Granted
    }

    /// A group is over: its members have its memory as long as they like, nobody else gets it.
    fn retire(&mut self, question: &Question) -> Verdict {
        let is_there = |kept: &Kept| kept.kind == ObjectKind::Group;
        if !self.kept.get(&question.number).is_some_and(is_there) {
            return Verdict::Unknown;
        }
        self.kept.remove(&question.number);
        Verdict::Granted
    }

    /// The object of this kind with the next number.
    fn next(&self, question: &Question) -> Answer {
        let is_next =
            |kept: &&Kept| kept.kind == question.kind && kept.object.number > question.number;
        let next = self.kept.values().filter(is_next).min_by_key(|kept| kept.object.number);
        let bare = |verdict| Answer::bare(question.process.host, verdict);
        match next {
            Some(kept) => {
                let (object, name) = (kept.object, kept.name.clone());
                Answer { object, name, ..bare(Verdict::Granted) }
            }
            None => bare(Verdict::Unknown),
        }
    }

    fn named(&self, kind: ObjectKind, name: &ObjectName) -> Option<&Kept> {
        self.kept.values().find(|kept| kept.kind == kind && kept.name.as_ref() == Some(name))
    }
}

impl Kept {
    /// Whether it is memory that somebody uses, or no memory, or of a group that is not over.
    fn is_used(&self) -> bool {
        self.memory.is_none() || !self.users.is_empty() || self.kind == ObjectKind::Group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{HostId, Incarnation};

    fn process(slot: u32) -> ProcessId {
        ProcessId { host: HostId(1), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    fn question(slot: u32, kind: ObjectKind, asked: Asked, name: &str) -> Question {
        let name = (!name.is_empty()).then(|| ObjectName::new(name).unwrap());
        Question { asked, kind, process: process(slot), number: 0, bytes: 64, words: [8, 9], name }
    }

    fn verdict(keeper: &mut Keeper, question: Question) -> (Verdict, u64) {
        let answer = keeper.answer(question, 4711).0;
        (answer.verdict, answer.object.number)
    }

    #[test]
    fn a_name_stands_once_until_its_owner_is_gone() {
        let mut keeper = Keeper::default();
        let of = |slot, asked| question(slot, ObjectKind::Mailbox, asked, "inbox");
        assert_eq!(verdict(&mut keeper, of(1, Asked::Find)).0, Verdict::Unknown);
        assert_eq!(verdict(&mut keeper, of(1, Asked::Name)), (Verdict::Granted, 1));
        let (taken, _) = keeper.answer(of(2, Asked::Name), 5);
        assert_eq!((taken.verdict, taken.object.pid), (Verdict::InUse, 4711));
        let (found, memory) = keeper.answer(of(2, Asked::Find), 5);
        assert_eq!((found.object.owner, found.object.words), (process(1), [8, 9]));
        assert!(memory.is_none());
        let stranger = Question { number: 1, name: None, ..of(2, Asked::Close) };
        assert_eq!(verdict(&mut keeper, stranger).0, Verdict::InUse);
        keeper.forget(Slot(1));
        assert_eq!(verdict(&mut keeper, of(2, Asked::Name)), (Verdict::Granted, 2));
    }

    #[test]
    fn memory_lives_until_its_last_user() {
        let mut keeper = Keeper::default();
        let of = |slot, asked| question(slot, ObjectKind::Segment, asked, "field");
        assert_eq!(verdict(&mut keeper, of(1, Asked::Make)), (Verdict::Granted, 1));
        let semaphore = question(1, ObjectKind::Semaphore, Asked::Open, "field");
        assert_eq!(verdict(&mut keeper, semaphore).0, Verdict::Unknown, "another kind");
        assert!(keeper.answer(of(2, Asked::Open), 5).1.is_some());
        assert_eq!(verdict(&mut keeper, of(2, Asked::Open)).1, 1);
        keeper.forget(Slot(1));
        let close = Question { number: 1, ..of(2, Asked::Close) };
        assert_eq!(verdict(&mut keeper, close.clone()).0, Verdict::Granted);
        let by_number = Question { number: 1, name: None, ..of(3, Asked::Open) };
        assert_eq!(verdict(&mut keeper, by_number.clone()), (Verdict::Granted, 1));
        assert_eq!(verdict(&mut keeper, close.clone()).0, Verdict::Granted);
        keeper.forget(Slot(3));
        for gone in [close, by_number, of(2, Asked::Open)] {
            assert_eq!(verdict(&mut keeper, gone).0, Verdict::Unknown);
        }
        assert_eq!(verdict(&mut keeper, of(2, Asked::Make)), (Verdict::Granted, 2), "a new one");
    }

    #[test]
    fn a_group_stays_without_users_until_it_is_over() {
        let mut keeper = Keeper::default();
        let of = |slot, asked| question(slot, ObjectKind::Group, asked, "chat");
        assert_eq!(verdict(&mut keeper, of(1, Asked::Make)), (Verdict::Granted, 1));
        keeper.forget(Slot(1));
        assert_eq!(verdict(&mut keeper, of(2, Asked::Open)), (Verdict::Granted, 1));
        let close = Question { number: 1, ..of(2, Asked::Close) };
        assert_eq!(verdict(&mut keeper, close).0, Verdict::Granted);
        assert_eq!(verdict(&mut keeper, of(3, Asked::Make)).0, Verdict::InUse);
        let next = |number| Question { number, ..question(3, ObjectKind::Group, Asked::Next, "") };
        let found = keeper.answer(next(0), 4711).0;
        assert_eq!((found.object.number, found.name.unwrap().as_str()), (1, "chat"));
        assert_eq!(verdict(&mut keeper, next(1)).0, Verdict::Unknown);
        let retire = |kind| Question { number: 1, ..question(3, kind, Asked::Retire, "") };
        let other = retire(ObjectKind::Segment);
        assert_eq!(verdict(&mut keeper, other).0, Verdict::Senseless);
        assert_eq!(verdict(&mut keeper, retire(ObjectKind::Group)).0, Verdict::Granted);
        assert_eq!(verdict(&mut keeper, retire(ObjectKind::Group)).0, Verdict::Unknown);
        assert_eq!(verdict(&mut keeper, of(3, Asked::Make)), (Verdict::Granted, 2));
    }

    #[test]
    fn there_is_a_limit_and_no_sense_in_nonsense() {
        let mut keeper = Keeper::default();
        for _ in 0..KEPT_MAX {
            let nameless = question(1, ObjectKind::Semaphore, Asked::Make, "");
            assert_eq!(verdict(&mut keeper, nameless).0, Verdict::Granted);
        }
        let more = question(1, ObjectKind::Segment, Asked::Make, "");
        assert_eq!(verdict(&mut keeper, more.clone()).0, Verdict::TooMany);
        let endless = Question { bytes: u64::MAX, ..more };
        assert_eq!(verdict(&mut keeper, endless).0, Verdict::NoMemory);
        for (kind, asked) in [
            (ObjectKind::Mailbox, Asked::Make),
            (ObjectKind::Mailbox, Asked::Open),
            (ObjectKind::Mailbox, Asked::Name),
            (ObjectKind::Segment, Asked::Find),
        ] {
            let nonsense = question(1, kind, asked, "");
            assert_eq!(verdict(&mut keeper, nonsense).0, Verdict::Senseless, "{kind} {asked:?}");
        }
        keeper.forget(Slot(1));
        assert!(keeper.kept.is_empty());
    }
}
