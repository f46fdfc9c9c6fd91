//! The keeper of objects: it holds the names of mailboxes, and memory until its last user ends or, for a group, until
//! the group is retired.

use std::collections::BTreeMap;

use landeck_wire::{ProcessId, SegmentId};

use super::object::{ObjectAnswer, ObjectKind, ObjectQuestion, ObjectRequest};
use super::registry::{GroupEntry, Registry};
use super::steps::MemoryNumber;
use super::verdict::{KEPT_MAX, Verdict};

/// The bits of a host's identity in the numbers of its objects. Numbers stay below the largest one.
const HOST_PART: u64 = (u32::MAX as u64 >> 1) << 32;

/// The objects of a job on a host.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    kept: Registry<Kept>,
    /// Memory without users that was not yet returned to the driver.
    released: Vec<MemoryNumber>,
}

/// The state beside an object.
#[derive(Clone, Debug)]
struct Kept {
    /// The memory; `None` for a mailbox.
    memory: Option<MemoryNumber>,
    /// The processes that use the memory, and the number of uses of each.
    users: BTreeMap<ProcessId, u32>,
}

impl Keeper {
    /// Creates the keeper of the objects on a host. The upper half of their numbers is a part of the host's identity, so the
    /// objects of a job on several hosts have different numbers, and none is mistaken for one of another host.
    pub(super) fn new(host: SegmentId) -> Self {
        Self { kept: Registry::new(KEPT_MAX, host.0 & HOST_PART), released: Vec::new() }
    }

    /// Whether this question needs new memory before it can be answered.
    pub(super) fn needs_memory(question: &ObjectQuestion) -> bool {
        question.asked == ObjectRequest::Make && question.kind != ObjectKind::Mailbox
    }

    /// Answers a question of a living process with this PID, with memory if there is any. `made` is the new memory that
    /// the question needs, if it could be made.
    pub(super) fn answer(
        &mut self,
        question: ObjectQuestion,
        pid: u32,
        made: Option<MemoryNumber>,
    ) -> (ObjectAnswer, Option<MemoryNumber>) {
        let bare = |verdict| (ObjectAnswer::bare(verdict), None);
        let is_mailbox = question.kind == ObjectKind::Mailbox;
        match (question.asked, is_mailbox) {
            (ObjectRequest::Name, true) if question.name.is_some() => {
                self.make(question, pid, None)
            }
            (ObjectRequest::Make, false) if made.is_none() => bare(Verdict::NoMemory),
            (ObjectRequest::Make, false) => self.make(question, pid, made),
            (ObjectRequest::Find, true) | (ObjectRequest::Open, false) => self.open(&question),
            (ObjectRequest::Close, true) => bare(self.kept.take_back(&question).verdict),
            (ObjectRequest::Close, false) => bare(self.close(&question)),
            (ObjectRequest::Retire, _) if question.kind == ObjectKind::Group => {
                bare(self.retire(&question))
            }
            (ObjectRequest::Next, _) if question.kind == ObjectKind::Group => {
                let next = self.kept.next(&question).map(|found| ObjectAnswer {
                    name: found.name.clone(),
                    ..ObjectAnswer::granted(found.object)
                });
                (next.unwrap_or(ObjectAnswer::bare(Verdict::Unknown)), None)
            }
            _ => bare(Verdict::Senseless),
        }
    }

    /// Forgets a process that has ended, and all earlier ones of its slot: the names of its mailboxes, and memory that
    /// no other process uses.
    pub(super) fn forget(&mut self, gone: ProcessId) {
        let had = |it: ProcessId| (it.segment, it.slot) == (gone.segment, gone.slot);
        let over = self.kept.remove_all(|entry| {
            entry.beside.users.retain(|&user, _| !had(user));
            !is_used(entry) || entry.beside.memory.is_none() && had(entry.object.owner)
        });
        self.released.extend(over.into_iter().filter_map(|kept| kept.memory));
    }

    /// Takes the memory that has lost its last user since the last call.
    pub(super) fn take_released(&mut self) -> Vec<MemoryNumber> {
        std::mem::take(&mut self.released)
    }

    fn remove(&mut self, number: u64) {
        self.released.extend(self.kept.remove(number).and_then(|kept| kept.memory));
    }

    fn make(
        &mut self,
        question: ObjectQuestion,
        pid: u32,
        memory: Option<MemoryNumber>,
    ) -> (ObjectAnswer, Option<MemoryNumber>) {
        let users = memory.iter().map(|_| (question.process, 1)).collect();
        let answer = self.kept.add(question, pid, Kept { memory, users });
        if answer.verdict == Verdict::Granted {
            return (answer, memory);
        }
        self.released.extend(memory);
        (answer, None)
    }

    fn open(&mut self, question: &ObjectQuestion) -> (ObjectAnswer, Option<MemoryNumber>) {
        let Some(GroupEntry { object, beside, .. }) = self.kept.find(question) else {
            return (ObjectAnswer::bare(Verdict::Unknown), None);
        };
        if beside.memory.is_some() {
            *beside.users.entry(question.process).or_default() += 1;
        }
        (ObjectAnswer::granted(*object), beside.memory)
    }

    /// Ends one use of memory.
    fn close(&mut self, question: &ObjectQuestion) -> Verdict {
        let Some(entry) = self.kept.find(question) else { return Verdict::Unknown };
        let users = &mut entry.beside.users;
        let Some(uses) = users.get_mut(&question.process) else { return Verdict::Unknown };
        *uses -= 1;
        if *uses == 0 {
            users.remove(&question.process);
        }
        if !is_used(entry) {
            let number = entry.object.number;
            self.remove(number);
        }
        Verdict::Granted
    }

    /// Retires a group: its members keep its memory as long as they like, but no other process gets it.
    fn retire(&mut self, question: &ObjectQuestion) -> Verdict {
        let Some(entry) = self.kept.find(question) else { return Verdict::Unknown };
        let number = entry.object.number;
        self.remove(number);
        Verdict::Granted
    }
}

/// Whether an object must stay: it has no memory, or a process uses its memory, or it is a group that is not retired.
fn is_used(entry: &GroupEntry<Kept>) -> bool {
    let Kept { memory, users } = &entry.beside;
    memory.is_none() || !users.is_empty() || entry.kind == ObjectKind::Group
}

#[cfg(test)]
mod tests {
    use super::super::name::Name;
    use super::*;
    use landeck_wire::{Incarnation, Slot};

    #[test]
    fn a_number_of_another_host_opens_nothing() {
        let made = [3 << 32, 4 << 32].map(|host| {
            let mut keeper = Keeper::new(SegmentId(host));
            let (answer, _) =
                ask(&mut keeper, question(1, ObjectKind::Segment, ObjectRequest::Make, ""), 1);
            (keeper, answer.object.number)
        });
        let [(mut keeper, own), (_, other)] = made;
        let mut open = |number| {
            let asked = question(1, ObjectKind::Segment, ObjectRequest::Open, "");
            ask(&mut keeper, ObjectQuestion { number, ..asked }, 1).0.verdict
        };
        assert_eq!((open(own), open(other)), (Verdict::Granted, Verdict::Unknown));
    }

    fn process(slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(1), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    fn question(slot: u32, kind: ObjectKind, asked: ObjectRequest, name: &str) -> ObjectQuestion {
        let name = (!name.is_empty()).then(|| Name::new(name).unwrap());
        ObjectQuestion {
            asked,
            kind,
            process: process(slot),
            number: 0,
            bytes: 64,
            words: [8, 9],
            name,
        }
    }

    /// Asks a question, with new memory if it needs any; the memory's number is its size in bytes.
    fn ask(
        keeper: &mut Keeper,
        question: ObjectQuestion,
        pid: u32,
    ) -> (ObjectAnswer, Option<MemoryNumber>) {
        let made = Keeper::needs_memory(&question).then_some(MemoryNumber(question.bytes));
        keeper.answer(question, pid, made)
    }

    fn verdict(keeper: &mut Keeper, question: ObjectQuestion) -> (Verdict, u64) {
        let answer = ask(keeper, question, 4711).0;
        (answer.verdict, answer.object.number)
    }

    #[test]
    fn a_name_stands_once_until_its_owner_is_gone() {
        let mut keeper = Keeper::new(SegmentId(0));
        let of = |slot, asked| question(slot, ObjectKind::Mailbox, asked, "inbox");
        assert_eq!(verdict(&mut keeper, of(1, ObjectRequest::Find)).0, Verdict::Unknown);
        assert_eq!(verdict(&mut keeper, of(1, ObjectRequest::Name)), (Verdict::Granted, 1));
        let (taken, _) = ask(&mut keeper, of(2, ObjectRequest::Name), 5);
        assert_eq!((taken.verdict, taken.object.pid), (Verdict::InUse, 4711));
        let (found, memory) = ask(&mut keeper, of(2, ObjectRequest::Find), 5);
        assert_eq!((found.object.owner, found.object.words), (process(1), [8, 9]));
        assert!(memory.is_none());
        let stranger = ObjectQuestion { number: 1, name: None, ..of(2, ObjectRequest::Close) };
        assert_eq!(verdict(&mut keeper, stranger).0, Verdict::InUse);
        keeper.forget(process(1));
        assert_eq!(verdict(&mut keeper, of(2, ObjectRequest::Name)), (Verdict::Granted, 2));
    }

    #[test]
    fn memory_lives_until_its_last_user() {
        let mut keeper = Keeper::new(SegmentId(0));
        let of = |slot, asked| question(slot, ObjectKind::Segment, asked, "field");
        assert_eq!(verdict(&mut keeper, of(1, ObjectRequest::Make)), (Verdict::Granted, 1));
        let semaphore = question(1, ObjectKind::Semaphore, ObjectRequest::Open, "field");
        assert_eq!(verdict(&mut keeper, semaphore).0, Verdict::Unknown, "another kind");
        assert!(ask(&mut keeper, of(2, ObjectRequest::Open), 5).1.is_some());
        assert_eq!(verdict(&mut keeper, of(2, ObjectRequest::Open)).1, 1);
        keeper.forget(process(1));
        let close = ObjectQuestion { number: 1, ..of(2, ObjectRequest::Close) };
        assert_eq!(verdict(&mut keeper, close.clone()).0, Verdict::Granted);
        let by_number = ObjectQuestion { number: 1, name: None, ..of(3, ObjectRequest::Open) };
        assert_eq!(verdict(&mut keeper, by_number.clone()), (Verdict::Granted, 1));
        assert_eq!(verdict(&mut keeper, close.clone()).0, Verdict::Granted);
        assert_eq!(keeper.take_released(), [], "it has a user");
        keeper.forget(process(3));
        assert_eq!(keeper.take_released(), [MemoryNumber(64)]);
        for gone in [close, by_number, of(2, ObjectRequest::Open)] {
            assert_eq!(verdict(&mut keeper, gone).0, Verdict::Unknown);
        }
        assert_eq!(
            verdict(&mut keeper, of(2, ObjectRequest::Make)),
            (Verdict::Granted, 2),
            "a new one"
        );
    }

    #[test]
    fn a_group_stays_without_users_until_it_is_over() {
        let mut keeper = Keeper::new(SegmentId(0));
        let of = |slot, asked| question(slot, ObjectKind::Group, asked, "chat");
        assert_eq!(verdict(&mut keeper, of(1, ObjectRequest::Make)), (Verdict::Granted, 1));
        keeper.forget(process(1));
        assert_eq!(verdict(&mut keeper, of(2, ObjectRequest::Open)), (Verdict::Granted, 1));
        let close = ObjectQuestion { number: 1, ..of(2, ObjectRequest::Close) };
        assert_eq!(verdict(&mut keeper, close).0, Verdict::Granted);
        assert_eq!(verdict(&mut keeper, of(3, ObjectRequest::Make)).0, Verdict::InUse);
        let next = |number| ObjectQuestion {
            number,
            ..question(3, ObjectKind::Group, ObjectRequest::Next, "")
        };
        let found = ask(&mut keeper, next(0), 4711).0;
        assert_eq!((found.object.number, found.name.unwrap().as_str()), (1, "chat"));
        assert_eq!(verdict(&mut keeper, next(1)).0, Verdict::Unknown);
        let retire =
            |kind| ObjectQuestion { number: 1, ..question(3, kind, ObjectRequest::Retire, "") };
        let other = retire(ObjectKind::Segment);
        assert_eq!(verdict(&mut keeper, other).0, Verdict::Senseless);
        assert_eq!(keeper.take_released(), [MemoryNumber(64)], "that of the second one, not kept");
        assert_eq!(verdict(&mut keeper, retire(ObjectKind::Group)).0, Verdict::Granted);
        assert_eq!(keeper.take_released(), [MemoryNumber(64)]);
        assert_eq!(verdict(&mut keeper, retire(ObjectKind::Group)).0, Verdict::Unknown);
        assert_eq!(verdict(&mut keeper, of(3, ObjectRequest::Make)), (Verdict::Granted, 2));
    }

    #[test]
    fn there_is_a_limit_and_no_sense_in_nonsense() {
        let mut keeper = Keeper::new(SegmentId(0));
        for _ in 0..KEPT_MAX {
            let nameless = question(1, ObjectKind::Semaphore, ObjectRequest::Make, "");
            assert_eq!(verdict(&mut keeper, nameless).0, Verdict::Granted);
        }
        let more = question(1, ObjectKind::Segment, ObjectRequest::Make, "");
        assert_eq!(verdict(&mut keeper, more.clone()).0, Verdict::TooMany);
        assert_eq!(keeper.take_released(), [MemoryNumber(64)], "it is not kept");
        let unmade = keeper.answer(more, 4711, None).0;
        assert_eq!(unmade.verdict, Verdict::NoMemory);
        for (kind, asked) in [
            (ObjectKind::Mailbox, ObjectRequest::Make),
            (ObjectKind::Mailbox, ObjectRequest::Open),
            (ObjectKind::Mailbox, ObjectRequest::Name),
            (ObjectKind::Segment, ObjectRequest::Find),
        ] {
            let nonsense = question(1, kind, asked, "");
            assert_eq!(verdict(&mut keeper, nonsense).0, Verdict::Senseless, "{kind} {asked:?}");
        }
        keeper.forget(process(1));
        assert!(keeper.kept.is_empty());
    }
}
