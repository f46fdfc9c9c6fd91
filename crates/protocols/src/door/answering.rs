//! The door's answer to each question: at once, or when its driver has done something for it.

use std::time::Duration;

use landeck_wire::ProcessId;

use super::keeper::Keeper;
use super::name::Name;
use super::object::{ObjectAnswer, ObjectQuestion};
use super::question::{Answer, Published, Question, Reply};
use super::start::{STARTS_MAX, StartAnswer, StartRefusal, StartWish};
use super::steps::{DoorAction, Listener, Listening, MemoryNumber, Visitor};
use super::verdict::Verdict;
use super::{Door, MemberStanding};
use crate::membership::{LastPresence, Membership};

/// A question that is answered when the driver has done something.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    /// Join: answered when the membership has answered. A visitor that has already waited for a slot waits at most
    /// until then.
    Join { until: Option<Duration> },
    /// Publish: answered when there is a socket.
    Publish(Publication),
    /// Be watched: answered when it is known whether the process has joined.
    Found { process: ProcessId },
    /// Look at what a process says of itself: answered when the driver has looked.
    Presence { process: ProcessId },
    /// Observe the job: answered when there is a descriptor for that.
    Observe,
    /// A question about an object: answered when there is memory.
    Object(ObjectQuestion),
    /// Start a process: answered when it has joined, or will not.
    Start,
}

/// A name that a process wants to publish, with the context of its port.
#[derive(Clone, Debug)]
pub(super) struct Publication {
    process: ProcessId,
    context: u32,
    name: Name,
}

impl Door {
    pub(super) fn asked(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        pid: u32,
        by: Option<Listener>,
        question: Question,
    ) {
        match (question, by) {
            (Question::Join { wanted }, by) if by.is_none() || wanted.is_none() => {
                self.wait_for(
                    visitor,
                    Pending::Join { until: None },
                    DoorAction::Ask { visitor, wanted, pid },
                );
            }
            (Question::Observe, None) => {
                self.wait_for(visitor, Pending::Observe, DoorAction::Expose { visitor });
            }
            (Question::Found { process }, None) => {
                let look = DoorAction::Look { visitor, slot: process.slot };
                self.wait_for(visitor, Pending::Found { process }, look);
            }
            (Question::Presence { process }, None) => {
                let look = DoorAction::Look { visitor, slot: process.slot };
                self.wait_for(visitor, Pending::Presence { process }, look);
            }
            (Question::LookUp, Some(listener)) => match self.names.at(listener) {
                Some(published) => {
                    let bare = Answer::bare(Verdict::Granted);
                    self.reply(visitor, Answer { published, ..bare });
                }
                None => self.close(visitor), // as if it had come too late
            },
            (Question::Publish { process, context, name }, None) => {
                self.publish(membership, visitor, Publication { process, context, name });
            }
            (Question::Unpublish { process, name }, None) => {
                self.unpublish(visitor, process, &name);
            }
            (Question::Object(question), _) => self.about_object(membership, visitor, question),
            (Question::Start(wish), None) => self.start(membership, visitor, wish),
            _ => self.refuse(visitor, Verdict::Senseless),
        }
    }

    fn publish(&mut self, membership: &Membership, visitor: Visitor, wanted: Publication) {
        match self.not_published(membership, &wanted) {
            Some(refused) => self.reply(visitor, refused),
            None => {
                let listen = DoorAction::Listen { visitor, name: wanted.name.clone() };
                self.wait_for(visitor, Pending::Publish(wanted), listen);
            }
        }
    }

    /// The refusal of a publication; `None` if it is possible now.
    fn not_published(&self, membership: &Membership, wanted: &Publication) -> Option<Answer> {
        if membership.is_alive(wanted.process) {
            self.names.refusal(&wanted.name)
        } else {
            Some(Answer::bare(Verdict::NotAlive))
        }
    }

    pub(super) fn listening(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        outcome: Listening,
    ) {
        let Some(Pending::Publish(wanted)) = self.pending(visitor) else {
            return self.deafen(outcome);
        };
        // It may have become impossible since the question.
        if let Some(refused) = self.not_published(membership, &wanted) {
            self.deafen(outcome);
            return self.reply(visitor, refused);
        }
        match outcome {
            Listening::At(listener) => {
                let Publication { process, context, name } = wanted;
                let pid = membership.record(process.slot).pid;
                let published = Published { process, pid, context };
                self.names.publish(listener, name, published);
                let granted = Answer::bare(Verdict::Granted);
                self.reply(visitor, Answer { published, ..granted });
            }
            Listening::InUse => self.refuse(visitor, Verdict::InUse),
            Listening::Failed => self.refuse(visitor, Verdict::TooMany),
        }
    }

    /// Returns a socket that no name needs.
    fn deafen(&mut self, outcome: Listening) {
        if let Listening::At(listener) = outcome {
            self.actions.push(DoorAction::Deafen(listener));
        }
    }

    fn unpublish(&mut self, visitor: Visitor, process: ProcessId, name: &Name) {
        let verdict = match self.names.take_back(process, name) {
            Ok(listener) => {
                self.actions.push(DoorAction::Deafen(listener));
                Verdict::Granted
            }
            Err(verdict) => verdict,
        };
        self.refuse(visitor, verdict);
    }

    pub(super) fn about_object(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        question: ObjectQuestion,
    ) {
        if membership.is_alive(question.process) && Keeper::needs_memory(&question) {
            let allocate = DoorAction::Allocate { visitor, bytes: question.bytes };
            return self.wait_for(visitor, Pending::Object(question), allocate);
        }
        self.answer_about_object(membership, visitor, question, None);
    }

    pub(super) fn provided(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        memory: Option<MemoryNumber>,
    ) {
        match (self.pending(visitor), memory) {
            (Some(Pending::Object(question)), made) => {
                self.answer_about_object(membership, visitor, question, made);
            }
            (Some(Pending::Observe), Some(segment)) => {
                let answer = Answer::bare(Verdict::Granted);
                self.end(visitor, Reply::Plain(answer), Some(segment));
                self.actions.push(DoorAction::Release(segment));
            }
            (Some(Pending::Observe), None) => self.refuse(visitor, Verdict::TooMany),
            (_, memory) => self.actions.extend(memory.map(DoorAction::Release)),
        }
    }

    /// Answers a question about an object for which this memory was created.
    fn answer_about_object(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        question: ObjectQuestion,
        made: Option<MemoryNumber>,
    ) {
        let process = question.process;
        let (answer, memory) = if membership.is_alive(process) {
            let pid = membership.record(process.slot).pid;
            self.keeper.answer(question, pid, made)
        } else {
            self.actions.extend(made.map(DoorAction::Release));
            (ObjectAnswer::bare(Verdict::NotAlive), None)
        };
        self.end(visitor, Reply::Object(answer), memory);
    }

    /// Passes a wish on, if it is one of a living process and few enough are under way.
    fn start(&mut self, membership: &Membership, visitor: Visitor, wish: Box<StartWish>) {
        let refusal = match wish.check() {
            _ if !membership.is_alive(wish.asker) => Some(StartRefusal::NotAlive),
            Err(refusal) => Some(refusal),
            Ok(()) if !membership.is_running() => Some(StartRefusal::Ending),
            Ok(()) => (self.starts >= STARTS_MAX).then_some(StartRefusal::TooMany),
        };
        match refusal {
            Some(refusal) => {
                self.end(visitor, Reply::Start(StartAnswer::Refused(refusal)), None);
            }
            None => {
                self.starts += 1;
                self.wait_for(visitor, Pending::Start, DoorAction::Start { visitor, wish });
            }
        }
    }

    /// Answers a wish. Its visitor may have gone.
    pub(super) fn started(&mut self, visitor: Visitor, answer: &StartAnswer) {
        self.starts = self.starts.saturating_sub(1);
        if let Some(Pending::Start) = self.pending(visitor) {
            self.end(visitor, Reply::Start(answer.clone()), None);
        }
    }

    /// Passes on what a process says of itself. Of a process that has ended, or has another in its slot, that means
    /// nothing.
    fn heard(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        process: ProcessId,
        presence: LastPresence,
    ) {
        let is_ours = membership.rank_of(process.slot).is_some()
            && membership.process(process.slot) == process;
        let has_left = match presence {
            LastPresence::Finalized => true,
            LastPresence::Attached => false,
            LastPresence::NotAttached | LastPresence::Aborted => {
                return self.refuse(visitor, Verdict::NotAlive);
            }
        };
        if !is_ours {
            return self.refuse(visitor, Verdict::NotAlive);
        }
        // What it says is announced before it has its answer.
        self.actions.push(DoorAction::Said { slot: process.slot, has_left });
        self.refuse(visitor, Verdict::Granted);
    }

    /// Decides whether a visitor is watched as a process that joined below the one that was started.
    pub(super) fn seen(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        presence: LastPresence,
    ) {
        let process = match self.pending(visitor) {
            Some(Pending::Found { process }) => process,
            Some(Pending::Presence { process }) => {
                return self.heard(membership, visitor, process, presence);
            }
            _ => return,
        };
        let Some(pid) = self.visitors.get(&visitor).map(|visit| visit.pid) else { return };
        let slot = process.slot;
        let is_ours = membership.rank_of(slot).is_some() && membership.is_alive(process);
        if !is_ours || presence != LastPresence::Attached {
            return self.refuse(visitor, Verdict::NotAlive);
        }
        if membership.record(slot).pid == pid || self.is_watched_below(process) {
            return self.refuse(visitor, Verdict::Taken);
        }
        self.stand(visitor, MemberStanding::Below { process });
        let answer = Answer::bare(Verdict::Granted);
        self.actions
            .extend([DoorAction::Found { slot, pid }, DoorAction::Watch { visitor, answer }]);
    }

    fn is_watched_below(&self, process: ProcessId) -> bool {
        self.visitors.values().any(
            |visit| matches!(visit.standing, MemberStanding::Below { process: other } if other == process),
        )
    }

    /// Defers the answer to a visitor until the driver has carried out an action.
    fn wait_for(&mut self, visitor: Visitor, pending: Pending, action: DoorAction) {
        self.stand(visitor, MemberStanding::Pending(pending));
        self.actions.push(action);
    }

    /// The question of a visitor that waits for the driver.
    fn pending(&self, visitor: Visitor) -> Option<Pending> {
        match &self.visitors.get(&visitor)?.standing {
            MemberStanding::Pending(pending) => Some(pending.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{House, about, answer, name, process, publish};
    use super::super::*;
    use crate::membership::{LastPresence, State};
    use landeck_wire::{Incarnation, Slot};

    /// The answer about an object in the first action: verdict, number, memory.
    fn object(actions: &[DoorAction]) -> (Verdict, u64, Option<MemoryNumber>) {
        match actions.first() {
            Some(DoorAction::Answer { reply: Reply::Object(answer), memory, .. }) => {
                (answer.verdict, answer.object.number, *memory)
            }
            _ => panic!("{actions:?}"),
        }
    }

    #[test]
    fn a_name_stands_until_it_is_taken_back_or_its_owner_is_gone() {
        let mut house = House::new();
        let published = Published { process: process(0), pid: 100, context: 5 };
        let granted = answer(&house.publishes(&publish(0, "name"), 50));
        assert_eq!((granted.verdict, granted.published), (Verdict::Granted, published));
        let taken = answer(&house.asks(None, &publish(1, "name")).1);
        assert_eq!((taken.verdict, taken.published), (Verdict::InUse, published));
        let by = Some(Listener(50));
        assert_eq!(answer(&house.asks(by, &Question::LookUp).1).published, published);
        let (_, actions) = house.asks(by, &Question::Join { wanted: None });
        let knows = |answer: &Answer| (answer.joined, answer.published) == (process(2), published);
        assert!(
            matches!(&actions[..], [DoorAction::Admit { answer, .. }] if knows(answer)),
            "{actions:?}"
        );
        let back = |slot| Question::Unpublish { process: process(slot), name: name("name") };
        assert_eq!(answer(&house.asks(None, &back(1)).1).verdict, Verdict::InUse);
        let (_, actions) = house.asks(None, &back(0));
        assert_eq!(actions[0], DoorAction::Deafen(Listener(50)));
        assert_eq!(answer(&actions[1..]).verdict, Verdict::Granted);
        assert_eq!(answer(&house.asks(None, &back(0)).1).verdict, Verdict::NotAlive);
        house.publishes(&publish(0, "name"), 51);
        let (late, _) = (house.comes(200, Some(Listener(51))), house.comes(200, None));
        assert_eq!(house.dies(0), [DoorAction::Deafen(Listener(51))]);
        let too_late = house.says(late, &Question::LookUp.encode());
        assert_eq!(too_late, [DoorAction::Close { visitor: late }]);
        assert_eq!(answer(&house.asks(None, &publish(0, "name")).1).verdict, Verdict::NotAlive);
        assert_eq!(answer(&house.publishes(&publish(1, "name"), 52)).published.pid, 101);
    }

    #[test]
    fn changes_before_there_is_a_socket_count() {
        let mut house = House::new();
        let (slow, _) = house.asks(None, &publish(0, "name"));
        house.publishes(&publish(1, "name"), 50);
        for (outcome, given_back) in
            [(Listening::At(Listener(51)), Some(Listener(51))), (Listening::InUse, None)]
        {
            let mut house = house.clone();
            let actions = house.tell(Input::Listening { visitor: slow, outcome });
            let deaf = given_back.map(DoorAction::Deafen);
            assert_eq!(actions[..actions.len() - 1], deaf.into_iter().collect::<Vec<_>>());
            let refused = answer(&actions[actions.len() - 1..]);
            assert_eq!((refused.verdict, refused.published.pid), (Verdict::InUse, 101));
        }
        house.dies(0);
        let actions = house.tell(Input::Listening { visitor: slow, outcome: Listening::Failed });
        assert_eq!(answer(&actions).verdict, Verdict::NotAlive);
        for (outcome, verdict) in
            [(Listening::InUse, Verdict::InUse), (Listening::Failed, Verdict::TooMany)]
        {
            let (visitor, _) = house.asks(None, &publish(1, "another job's"));
            let refused = answer(&house.tell(Input::Listening { visitor, outcome }));
            assert_eq!((refused.verdict, refused.published.pid), (verdict, 0));
        }
        let (gone, _) = house.asks(None, &publish(1, "in vain"));
        house.tell(Input::Gone { visitor: gone });
        let (visitor, outcome) = (gone, Listening::At(Listener(52)));
        let actions = house.tell(Input::Listening { visitor, outcome });
        assert_eq!(actions, [DoorAction::Deafen(Listener(52))]);
    }

    #[test]
    fn an_object_is_kept_handed_out_and_given_back_after_its_last_user() {
        let mut house = House::new();
        let memory = Some(MemoryNumber(50));
        assert_eq!(object(&house.makes(0, 50)), (Verdict::Granted, 1, memory));
        let open = about(1, ObjectRequest::Open, 1);
        assert_eq!(object(&house.asks_about(&open).1), (Verdict::Granted, 1, memory));
        assert_eq!(house.dies(0), [], "it has another user");
        assert_eq!(
            object(&house.asks_about(&about(0, ObjectRequest::Open, 1)).1).0,
            Verdict::NotAlive
        );
        let (_, actions) = house.asks_about(&about(1, ObjectRequest::Close, 1));
        assert_eq!(object(&actions).0, Verdict::Granted);
        assert_eq!(actions[1..], [DoorAction::Release(MemoryNumber(50))]);
        assert_eq!(object(&house.asks_about(&open).1).0, Verdict::Unknown);
        assert_eq!(object(&house.makes(1, 51)).1, 2);
        assert_eq!(house.dies(1), [DoorAction::Release(MemoryNumber(51))]);
    }

    #[test]
    fn memory_that_is_not_kept_is_given_back() {
        let mut house = House::new();
        let make = about(0, ObjectRequest::Make, 0);
        let (visitor, _) = house.asks_about(&make);
        let refused = house.tell(Input::Provided { visitor, memory: None });
        assert_eq!(object(&refused), (Verdict::NoMemory, 0, None));
        let (gone, _) = house.asks_about(&make);
        house.tell(Input::Gone { visitor: gone });
        let memory = Some(MemoryNumber(50));
        let released = [DoorAction::Release(MemoryNumber(50))];
        assert_eq!(house.tell(Input::Provided { visitor: gone, memory }), released);
        let (visitor, _) = house.asks_about(&make);
        house.dies(0);
        let actions = house.tell(Input::Provided { visitor, memory });
        assert!(actions.contains(&released[0]), "{actions:?}");
        let answered = actions.iter().find(|action| **action != released[0]).cloned();
        assert_eq!(object(answered.as_slice()), (Verdict::NotAlive, 0, None));
    }

    #[test]
    fn there_is_a_limit_to_names() {
        let mut house = House::new();
        for number in 0..NAMES_MAX {
            let granted = house.publishes(&publish(0, &format!("{number}")), 50 + number as u64);
            assert_eq!(answer(&granted).verdict, Verdict::Granted);
        }
        let (_, actions) = house.asks(None, &publish(1, "one more"));
        assert_eq!(answer(&actions).verdict, Verdict::TooMany);
        assert_eq!(house.dies(0).len(), NAMES_MAX);
        assert_eq!(answer(&house.publishes(&publish(1, "one more"), 1)).verdict, Verdict::Granted);
    }

    #[test]
    fn only_a_process_that_joined_in_the_place_of_another_is_watched() {
        let mut house = House::new();
        let mut found = |of: ProcessId, pid: u32, presence: LastPresence| {
            let visitor = house.comes(pid, None);
            let look = house.says(visitor, &Question::Found { process: of }.encode());
            assert_eq!(look, [DoorAction::Look { visitor, slot: of.slot }]);
            (visitor, house.tell(Input::Seen { visitor, presence }))
        };
        let next = ProcessId { incarnation: Incarnation(2), ..process(0) };
        for (of, pid, presence, verdict) in [
            (process(0), 300, LastPresence::NotAttached, Verdict::NotAlive),
            (process(0), 300, LastPresence::Finalized, Verdict::NotAlive),
            (process(0), 100, LastPresence::Attached, Verdict::Taken),
            (next, 300, LastPresence::Attached, Verdict::NotAlive),
            (process(2), 300, LastPresence::Attached, Verdict::NotAlive),
            (process(99), 300, LastPresence::Attached, Verdict::NotAlive),
        ] {
            assert_eq!(answer(&found(of, pid, presence).1).verdict, verdict, "{of} {presence:?}");
        }
        let (visitor, actions) = found(process(0), 300, LastPresence::Attached);
        let granted = Answer::bare(Verdict::Granted);
        assert_eq!(actions, [DoorAction::Watch { visitor, answer: granted }]);
        let (_, second) = found(process(0), 301, LastPresence::Attached);
        assert_eq!(answer(&second).verdict, Verdict::Taken);
        assert_eq!(house.membership.record(Slot(0)).pid, 300);
        let lost =
            [DoorAction::Lost { visitor, process: process(0) }, DoorAction::Close { visitor }];
        assert_eq!(house.tell(Input::Gone { visitor }), lost);
    }

    #[test]
    fn a_process_says_that_it_has_left_and_that_it_takes_part_again() {
        let mut house = House::new();
        let says = |house: &mut House, of: ProcessId, presence: LastPresence| {
            let (visitor, look) = house.asks(None, &Question::Presence { process: of });
            assert_eq!(look, [DoorAction::Look { visitor, slot: of.slot }]);
            answer(&house.tell(Input::Seen { visitor, presence })).verdict
        };
        let next = ProcessId { incarnation: Incarnation(2), ..process(0) };
        assert_eq!(says(&mut house, next, LastPresence::Finalized), Verdict::NotAlive);
        assert_eq!(
            says(&mut house, process(2), LastPresence::Finalized),
            Verdict::NotAlive,
            "a guest"
        );
        assert_eq!(says(&mut house, process(0), LastPresence::NotAttached), Verdict::NotAlive);
        assert!(house.membership.is_alive(process(0)));
        assert_eq!(says(&mut house, process(0), LastPresence::Finalized), Verdict::Granted);
        assert_eq!(house.membership.record(Slot(0)).state, State::Left);
        assert_eq!(says(&mut house, process(0), LastPresence::Attached), Verdict::Granted);
        assert!(house.membership.is_alive(next));
        assert_eq!(says(&mut house, process(0), LastPresence::Finalized), Verdict::NotAlive);
    }

    #[test]
    fn an_observer_gets_the_segment_for_reading() {
        let mut house = House::new();
        let (visitor, actions) = house.asks(None, &Question::Observe);
        assert_eq!(actions, [DoorAction::Expose { visitor }]);
        let memory = Some(MemoryNumber(50));
        let reply = Reply::Plain(Answer::bare(Verdict::Granted));
        let shown =
            [DoorAction::Answer { visitor, reply, memory }, DoorAction::Release(MemoryNumber(50))];
        assert_eq!(house.tell(Input::Provided { visitor, memory }), shown);
        let (visitor, _) = house.asks(None, &Question::Observe);
        let refused = house.tell(Input::Provided { visitor, memory: None });
        assert_eq!(answer(&refused).verdict, Verdict::TooMany);
    }
}
