//! The door of a job, which decides which visitors to admit and answers their questions.
//!
//! The door is a pure state machine. Its driver has the sockets, the memory and the membership: it reports events
//! ([`Input`]) and carries out the door's answers ([`DoorAction`]). Here sockets and memory are numbers that the driver
//! assigns. The door itself keeps published names and objects.
//!
//! | a visitor | next | when |
//! |---|---|---|
//! | asks | closed | it was answered, is late, is gone, or comes from another user |
//! | asks | pending | the driver must do something before the answer |
//! | pending | closed | it was answered, or is gone |
//! | pending | waits | a vacated slot would be free if no other process needed its contents |
//! | waits | pending | a slot is requested for it again |
//! | waits | closed | it is gone |
//! | pending | inside | the membership has admitted it |
//! | pending | below | it has joined in place of the process that was started |
//! | inside, below | closed | it is gone, or sends anything |

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_wire::{ControlMessage, ProcessId, SegmentId};

use self::answering::Pending;
use self::keeper::Keeper;
pub use self::name::{NAME_BYTES_MAX, Name, NameError};
use self::names::Names;
pub use self::object::{Object, ObjectAnswer, ObjectKind, ObjectQuestion, ObjectRequest};
pub use self::question::{Answer, PartAnswer, Published, Question, Reply};
pub use self::start::{STARTS_MAX, StartAnswer, StartRefusal, StartWish, WISH_BYTES_MAX};
pub use self::steps::{DoorAction, Input, Listener, Listening, MemoryNumber, Visitor};
pub use self::verdict::{KEPT_MAX, NAMES_MAX, Verdict};
use crate::membership::{Membership, Refusal};

mod answering;
mod keeper;
mod name;
mod names;
mod object;
mod question;
pub(crate) mod registry;
mod start;
mod steps;
mod verdict;

/// The time for a question after connecting.
const QUESTION_TIME: Duration = Duration::from_secs(2);
/// How long a visitor waits for a slot until all processes have checked whether they need its contents.
const VACANCY_TIME: Duration = Duration::from_millis(500);
/// The interval between two requests for a slot meanwhile.
const VACANCY_LOOK: Duration = Duration::from_millis(1);
/// The number of visitors that are possible beyond one for each slot.
pub const VISITORS_BEYOND_SLOTS: usize = 32;

/// The door's state machine.
#[derive(Clone, Debug)]
pub struct Door {
    trusted_uid: u32,
    visitors_max: usize,
    visitors: BTreeMap<Visitor, Visit>,
    names: Names,
    keeper: Keeper,
    /// The starts that were passed on and have no answer yet, also of visitors that have gone.
    starts: usize,
    actions: Vec<DoorAction>,
}

/// A visitor: its process, the socket it came to, and its state.
#[derive(Clone, Debug)]
struct Visit {
    pid: u32,
    /// The published name whose socket it came to.
    by: Option<Listener>,
    standing: MemberStanding,
}

#[derive(Clone, Debug)]
enum MemberStanding {
    /// It has not asked yet, and may do so until then.
    Asking { until: Duration },
    /// It has asked, and the driver must do something before the answer.
    Pending(Pending),
    /// It has asked to join, and waits until then for a slot whose contents others may need.
    Waiting { until: Duration },
    /// It was admitted.
    Inside { process: ProcessId },
    /// It has joined in place of the process that was started, and is watched besides.
    Below { process: ProcessId },
}

impl MemberStanding {
    /// Whether the membership has been asked for a slot.
    fn is_joining(&self) -> bool {
        matches!(self, Self::Pending(Pending::Join { .. }))
    }
}

impl Door {
    /// Creates the door of a host's job with so many slots, for visitors of this user.
    pub fn new(host: SegmentId, slots: u32, trusted_uid: u32) -> Self {
        Self {
            trusted_uid,
            visitors_max: slots as usize + VISITORS_BEYOND_SLOTS,
            visitors: BTreeMap::new(),
            names: Names::default(),
            keeper: Keeper::new(host),
            starts: 0,
            actions: Vec::new(),
        }
    }

    /// Handles an event at `now`, a time since any fixed moment. An impossible event, such as an answer for an unknown
    /// visitor, changes nothing.
    pub fn handle(
        &mut self,
        now: Duration,
        membership: &Membership,
        input: Input<'_>,
    ) -> Vec<DoorAction> {
        match input {
            Input::Came { visitor, uid, pid, by } => self.came(now, visitor, uid, pid, by),
            Input::Said { visitor, bytes } => self.said(membership, visitor, bytes),
            Input::Gone { visitor } => self.close(visitor),
            Input::Provided { visitor, memory } => self.provided(membership, visitor, memory),
            Input::Listening { visitor, outcome } => self.listening(membership, visitor, outcome),
            Input::Seen { visitor, presence } => self.seen(membership, visitor, presence),
            Input::Admitted { visitor, process } => self.admitted(visitor, process),
            Input::Refused { visitor, why } => self.refused(now, membership, visitor, why),
            Input::Ended { process } => self.ended(process),
            Input::Started { visitor, answer } => self.started(visitor, answer),
            Input::Tick => self.tick(now),
        }
        let released = self.keeper.take_released().into_iter().map(DoorAction::Release);
        self.actions.extend(released);
        std::mem::take(&mut self.actions)
    }

    /// When [`Input::Tick`] is due, as seen at `now`, if nothing else happens before.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let due = self.visitors.values().filter_map(|visit| match visit.standing {
            MemberStanding::Asking { until } => Some(until),
            MemberStanding::Waiting { .. } => Some(now + VACANCY_LOOK),
            MemberStanding::Pending(_)
            | MemberStanding::Inside { .. }
            | MemberStanding::Below { .. } => None,
        });
        due.min()
    }

    /// Whether a visitor may ask. Of any other visitor only its end matters.
    pub fn may_ask(&self, visitor: Visitor) -> bool {
        self.visitors
            .get(&visitor)
            .is_some_and(|visit| matches!(visit.standing, MemberStanding::Asking { .. }))
    }

    fn came(&mut self, now: Duration, visitor: Visitor, uid: u32, pid: u32, by: Option<Listener>) {
        if uid != self.trusted_uid {
            self.actions.push(DoorAction::Close { visitor });
        } else if self.visitors.len() >= self.visitors_max {
            // It gets an answer if it reads one, and is forgotten in any case.
            let reply = Reply::Plain(Answer::bare(Verdict::TooMany));
            self.actions.push(DoorAction::Answer { visitor, reply, memory: None });
        } else {
            let standing = MemberStanding::Asking { until: now + QUESTION_TIME };
            self.visitors.insert(visitor, Visit { pid, by, standing });
        }
    }

    fn said(&mut self, membership: &Membership, visitor: Visitor, bytes: &[u8]) {
        let Some(visit) = self.visitors.get(&visitor) else { return };
        if !matches!(visit.standing, MemberStanding::Asking { .. }) {
            // A visitor asks once, so this one is broken.
            return self.close(visitor);
        }
        let (pid, by) = (visit.pid, visit.by);
        match Question::decode(bytes) {
            Ok(question) => self.asked(membership, visitor, pid, by, question),
            Err(_) => self.refuse(visitor, Verdict::Senseless),
        }
    }

    fn admitted(&mut self, visitor: Visitor, process: ProcessId) {
        let asked = self.visitors.get_mut(&visitor);
        let Some(visit) = asked.filter(|visit| visit.standing.is_joining()) else {
            // It has gone since it asked.
            return self.actions.push(DoorAction::Left { process });
        };
        visit.standing = MemberStanding::Inside { process };
        let mut answer = Answer { joined: process, ..Answer::bare(Verdict::Granted) };
        if let Some(published) = visit.by.and_then(|listener| self.names.at(listener)) {
            answer.published = published;
        }
        self.actions.push(DoorAction::Admit { visitor, answer });
    }

    /// Handles the refusal of a slot. If only contents that others may need keep a slot from it, all processes are made
    /// to check, and the visitor waits a little.
    fn refused(&mut self, now: Duration, membership: &Membership, visitor: Visitor, why: Refusal) {
        let Some(visit) = self.visitors.get_mut(&visitor) else { return };
        let MemberStanding::Pending(Pending::Join { until }) = visit.standing else { return };
        let has_time = until.is_none_or(|until| now < until);
        if why == Refusal::Full && membership.keeps_any() && has_time {
            visit.standing = MemberStanding::Waiting { until: until.unwrap_or(now + VACANCY_TIME) };
            self.actions.extend(until.is_none().then_some(DoorAction::Announce));
        } else {
            self.refuse(visitor, verdict_of(why));
        }
    }

    /// Forgets the names of a process that has ended, and the objects kept for it alone.
    fn ended(&mut self, process: ProcessId) {
        let deaf = self.names.forget(process).into_iter().map(DoorAction::Deafen);
        self.actions.extend(deaf);
        self.keeper.forget(process);
    }

    /// Closes the connections of visitors that have not asked in time, and asks again for those that wait for a slot.
    fn tick(&mut self, now: Duration) {
        let is_late = |visit: &Visit| matches!(visit.standing, MemberStanding::Asking { until } if until <= now);
        let late = self.visitors.iter().filter(|(_, visit)| is_late(visit));
        let late: Vec<Visitor> = late.map(|(&visitor, _)| visitor).collect();
        late.into_iter().for_each(|visitor| self.close(visitor));
        for (&visitor, visit) in &mut self.visitors {
            if let MemberStanding::Waiting { until } = visit.standing {
                visit.standing = MemberStanding::Pending(Pending::Join { until: Some(until) });
                self.actions.push(DoorAction::Ask { visitor, wanted: None, pid: visit.pid });
            }
        }
    }

    fn stand(&mut self, visitor: Visitor, standing: MemberStanding) {
        if let Some(visit) = self.visitors.get_mut(&visitor) {
            visit.standing = standing;
        }
    }

    /// Answers with a verdict alone, and closes.
    fn refuse(&mut self, visitor: Visitor, verdict: Verdict) {
        self.reply(visitor, Answer::bare(verdict));
    }

    fn reply(&mut self, visitor: Visitor, answer: Answer) {
        self.end(visitor, Reply::Plain(answer), None);
    }

    /// Answers, and closes.
    fn end(&mut self, visitor: Visitor, reply: Reply, memory: Option<MemoryNumber>) {
        if self.visitors.remove(&visitor).is_some() {
            self.actions.push(DoorAction::Answer { visitor, reply, memory });
        }
    }

    /// Closes a connection. If a process was inside by it, that process has left.
    fn close(&mut self, visitor: Visitor) {
        let Some(visit) = self.visitors.remove(&visitor) else { return };
        match visit.standing {
            MemberStanding::Inside { process } => self.actions.push(DoorAction::Left { process }),
            MemberStanding::Below { process } => {
                self.actions.push(DoorAction::Lost { visitor, process });
            }
            MemberStanding::Asking { .. }
            | MemberStanding::Pending(_)
            | MemberStanding::Waiting { .. } => {}
        }
        self.actions.push(DoorAction::Close { visitor });
    }
}

fn verdict_of(why: Refusal) -> Verdict {
    match why {
        Refusal::Full => Verdict::Full,
        Refusal::NoSuchSlot => Verdict::NoSuchSlot,
        Refusal::Taken => Verdict::Taken,
        Refusal::Ending => Verdict::Ending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{self, LastPresence, MembershipPlan, OnFailure, Output};
    use landeck_wire::{Incarnation, Slot};
    use std::collections::BTreeSet;

    pub(super) const HOST: SegmentId = SegmentId(1);
    const UID: u32 = 7;
    /// Two processes and a guest.
    const SLOTS: u32 = 3;

    pub(super) fn process(slot: u32) -> ProcessId {
        ProcessId { segment: HOST, slot: Slot(slot), incarnation: Incarnation(1) }
    }

    pub(super) fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    pub(super) fn publish(slot: u32, text: &str) -> Question {
        Question::Publish { process: process(slot), context: 5, name: name(text) }
    }

    pub(super) fn about(slot: u32, asked: ObjectRequest, number: u64) -> ObjectQuestion {
        let question = ObjectQuestion::new(process(slot), ObjectKind::Segment, asked);
        ObjectQuestion { bytes: 64, number, ..question }
    }

    /// A driver without IO: it has the membership, and leaves all actions that need descriptors to the test.
    #[derive(Clone)]
    pub(super) struct House {
        pub(super) door: Door,
        pub(super) membership: Membership,
        now: Duration,
        last: u64,
    }

    impl House {
        /// Creates a job with two living processes, whose PIDs are 100 and 101.
        pub(super) fn new() -> Self {
            let (on_failure, grace) = (OnFailure::Notify, Duration::ZERO);
            let plan = MembershipPlan {
                host: HOST,
                processes: 2,
                guests: 1,
                keeps_ranks: false,
                is_held: false,
                on_failure,
                grace,
            };
            let mut membership = Membership::new(plan);
            for slot in 0..2 {
                let input = membership::Input::Started { slot: Slot(slot), pid: 100 + slot };
                membership.handle(Duration::ZERO, input);
            }
            let now = Duration::from_secs(10);
            Self { door: Door::new(HOST, SLOTS, UID), membership, now, last: 0 }
        }

        /// Gives the door an event; returns the actions that are left after those for the membership.
        pub(super) fn tell(&mut self, input: Input<'_>) -> Vec<DoorAction> {
            let mut left = Vec::new();
            for action in self.door.handle(self.now, &self.membership, input) {
                match action {
                    DoorAction::Ask { visitor, wanted, pid } => {
                        let request = visitor.0;
                        let asked = membership::Input::Asked { request, wanted, pid };
                        left.extend(self.tell_membership(asked));
                    }
                    DoorAction::Found { slot, pid } => {
                        left.extend(self.tell_membership(membership::Input::Found { slot, pid }));
                    }
                    DoorAction::Said { slot, has_left } => {
                        let said = match has_left {
                            true => membership::Input::Left { slot },
                            false => membership::Input::Returned { slot },
                        };
                        left.extend(self.tell_membership(said));
                    }
                    action => left.push(action),
                }
            }
            left
        }

        fn tell_membership(&mut self, input: membership::Input) -> Vec<DoorAction> {
            let mut left = Vec::new();
            for output in self.membership.handle(self.now, input) {
                left.extend(match output {
                    Output::Admit { request, process } => {
                        self.tell(Input::Admitted { visitor: Visitor(request), process })
                    }
                    Output::Refuse { request, why } => {
                        self.tell(Input::Refused { visitor: Visitor(request), why })
                    }
                    _ => Vec::new(),
                });
            }
            left
        }

        pub(super) fn dies(&mut self, slot: u32) -> Vec<DoorAction> {
            let process = self.membership.process(Slot(slot));
            let (slot, presence) = (Slot(slot), LastPresence::Attached);
            self.tell_membership(membership::Input::Ended { slot, status: 9, presence });
            self.tell(Input::Ended { process })
        }

        pub(super) fn comes(&mut self, pid: u32, by: Option<Listener>) -> Visitor {
            self.last += 1;
            let visitor = Visitor(self.last);
            assert_eq!(self.tell(Input::Came { visitor, uid: UID, pid, by }), []);
            visitor
        }

        pub(super) fn says(&mut self, visitor: Visitor, bytes: &[u8]) -> Vec<DoorAction> {
            self.tell(Input::Said { visitor, bytes })
        }

        /// Lets a visitor come and ask.
        pub(super) fn asks(
            &mut self,
            by: Option<Listener>,
            question: &Question,
        ) -> (Visitor, Vec<DoorAction>) {
            let visitor = self.comes(200, by);
            (visitor, self.says(visitor, &question.encode()))
        }

        pub(super) fn asks_about(
            &mut self,
            question: &ObjectQuestion,
        ) -> (Visitor, Vec<DoorAction>) {
            self.asks(None, &Question::Object(question.clone()))
        }

        /// Publishes a name, with a socket of this number.
        pub(super) fn publishes(&mut self, question: &Question, listener: u64) -> Vec<DoorAction> {
            let (visitor, actions) = self.asks(None, question);
            assert!(matches!(actions[..], [DoorAction::Listen { .. }]), "{actions:?}");
            self.tell(Input::Listening { visitor, outcome: Listening::At(Listener(listener)) })
        }

        /// Creates an object in memory of this number, as its first user.
        pub(super) fn makes(&mut self, slot: u32, memory: u64) -> Vec<DoorAction> {
            let (visitor, actions) = self.asks_about(&about(slot, ObjectRequest::Make, 0));
            assert_eq!(actions, [DoorAction::Allocate { visitor, bytes: 64 }]);
            self.tell(Input::Provided { visitor, memory: Some(MemoryNumber(memory)) })
        }
    }

    /// The answer in the first action.
    pub(super) fn answer(actions: &[DoorAction]) -> Answer {
        match actions.first() {
            Some(DoorAction::Answer { reply: Reply::Plain(answer), memory: None, .. }) => *answer,
            _ => panic!("{actions:?}"),
        }
    }

    #[test]
    fn a_guest_is_let_in_and_its_end_is_told() {
        let mut house = House::new();
        let join = Question::Join { wanted: None };
        let (guest, actions) = house.asks(None, &join);
        let granted = Answer { joined: process(2), ..Answer::bare(Verdict::Granted) };
        assert_eq!(actions, [DoorAction::Admit { visitor: guest, answer: granted }]);
        assert!(!house.door.may_ask(guest));
        let again = Input::Admitted { visitor: guest, process: process(1) };
        assert_eq!(
            house.tell(again),
            [DoorAction::Left { process: process(1) }],
            "it did not ask twice"
        );
        let (_, actions) = house.asks(None, &join);
        assert_eq!(answer(&actions).verdict, Verdict::Full);
        for (wanted, verdict) in [(0, Verdict::Taken), (9, Verdict::NoSuchSlot)] {
            let (_, actions) = house.asks(None, &Question::Join { wanted: Some(Slot(wanted)) });
            assert_eq!(answer(&actions).verdict, verdict);
        }
        let left = [DoorAction::Left { process: process(2) }, DoorAction::Close { visitor: guest }];
        assert_eq!(house.tell(Input::Gone { visitor: guest }), left);
        assert_eq!(house.tell(Input::Gone { visitor: guest }), [], "once");
        let (process, visitor) = (process(2), guest);
        let too_late = house.tell(Input::Admitted { visitor, process });
        assert_eq!(too_late, [DoorAction::Left { process }], "it did not wait for that");
    }

    #[test]
    fn a_guest_waits_a_little_for_a_slot_in_which_others_may_need_something() {
        for is_given_up in [true, false] {
            let mut house = House::new();
            let join = Question::Join { wanted: None };
            house.asks(None, &join);
            house.dies(2);
            house.membership.keep(BTreeSet::from([Slot(2)]));
            let (guest, actions) = house.asks(None, &join);
            assert_eq!(actions, [DoorAction::Announce], "the others are made to look");
            assert_eq!(house.door.deadline(house.now), Some(house.now + VACANCY_LOOK));
            assert_eq!(house.tell(Input::Tick), [], "it waits on");
            if is_given_up {
                house.membership.keep(BTreeSet::new());
                let actions = house.tell(Input::Tick);
                let is_in =
                    matches!(actions[..], [DoorAction::Admit { visitor, .. }] if visitor == guest);
                assert!(is_in, "{actions:?}");
            } else {
                house.now += VACANCY_TIME;
                assert_eq!(answer(&house.tell(Input::Tick)).verdict, Verdict::Full);
                assert_eq!(house.door.visitors.len(), 1, "the first guest");
            }
        }
    }

    #[test]
    fn strangers_latecomers_and_crowds_are_sent_away() {
        let mut house = House::new();
        let visitor = Visitor(1_000);
        let came = |uid| Input::Came { visitor, uid, pid: 200, by: None };
        assert_eq!(house.tell(came(UID + 1)), [DoorAction::Close { visitor }]);
        let most = SLOTS as usize + VISITORS_BEYOND_SLOTS;
        let crowd: Vec<Visitor> = (0..most).map(|_| house.comes(200, None)).collect();
        assert_eq!(answer(&house.tell(came(UID))).verdict, Verdict::TooMany);
        assert_eq!(
            house.tell(Input::Gone { visitor: crowd[0] }),
            [DoorAction::Close { visitor: crowd[0] }]
        );
        assert_eq!(house.tell(came(UID)), [], "there is room again");
        let late = house.now + QUESTION_TIME;
        assert_eq!(house.door.deadline(house.now), Some(late));
        house.now = late - Duration::from_nanos(1);
        assert_eq!(house.tell(Input::Tick), []);
        house.now = late;
        assert_eq!(house.tell(Input::Tick).len(), most);
        assert!(house.door.visitors.is_empty() && house.door.deadline(late).is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        let mut house = House::new();
        house.publishes(&publish(0, "name"), 50);
        let plain = publish(0, "name").encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = plain.clone();
            bytes[at] = byte;
            bytes
        };
        let about = Question::Object(about(0, ObjectRequest::Open, 1)).encode();
        let of_no_kind = [&about[..6], &[99], &about[7..]].concat();
        let name_too_long = [&about[..about.len() - 1], &[1, 65], &[b'n'; 65]].concat();
        let name_at = plain.len() - "name".len();
        for bytes in [
            b"hello".to_vec(),
            vec![0xff; Question::BYTES_MAX],
            vec![7; 4_000],
            Vec::new(),
            with(0, 0),
            with(4, 99),
            with(name_at - 1, 65),
            with(name_at, 0xff),
            of_no_kind,
            name_too_long,
            Question::LookUp.encode(),
        ] {
            let visitor = house.comes(200, None);
            let refused = answer(&house.says(visitor, &bytes));
            assert_eq!(refused, Answer::bare(Verdict::Senseless), "{bytes:?}");
        }
        let at_a_name = Some(Listener(50));
        for question in [
            Question::Join { wanted: Some(Slot(0)) },
            Question::Observe,
            Question::Found { process: process(0) },
            publish(0, "another"),
        ] {
            let (_, actions) = house.asks(at_a_name, &question);
            assert_eq!(answer(&actions).verdict, Verdict::Senseless, "{question:?}");
        }
        assert!(house.door.visitors.is_empty());
    }

    #[test]
    fn a_visitor_that_goes_on_talking_is_closed() {
        let mut house = House::new();
        let (pending, _) = house.asks_about(&about(0, ObjectRequest::Make, 0));
        assert_eq!(house.says(pending, b"more"), [DoorAction::Close { visitor: pending }]);
        let (guest, _) = house.asks(None, &Question::Join { wanted: None });
        let left = [DoorAction::Left { process: process(2) }, DoorAction::Close { visitor: guest }];
        assert_eq!(house.says(guest, b"chatter"), left);
        assert_eq!(house.says(Visitor(1_000), b"nobody"), []);
    }
}
