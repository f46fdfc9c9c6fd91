//! The door of a job: which visitors it lets in, and what it answers to their questions.
//!
//! A pure machine. Its driver has the sockets, the memory and the membership: it tells the door what
//! happened ([`Input`]) and carries out what the door answers ([`Action`]). Sockets and memory have
//! numbers here, which the driver gives out. Published names and objects are the door's own.
//!
//! | a visitor | next | when |
//! |---|---|---|
//! | asks | closed | it was answered, is late, is gone, or comes from another user |
//! | asks | pending | the driver is to do something before the answer |
//! | pending | closed | it was answered, or is gone |
//! | pending | waits | a vacated slot would be free if others had no need of what is in it |
//! | waits | closed | its time is over, or it is gone |
//! | pending, waits | inside | the membership has let it in |
//! | pending | below | it has joined in the place of the process that was started |
//! | inside, below | closed | it is gone, or says anything |

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_wire::{HostId, ProcessId};

use self::keeper::Keeper;
use self::names::Names;
pub use self::object::{
    Asked, OBJECT_NAME_BYTES_MAX, OBJECT_QUESTION_BYTES, Object, ObjectAnswer, ObjectKind,
    ObjectName, ObjectNameError, ObjectQuestion,
};
pub use self::question::{Answer, NAME_BYTES_MAX, NameError, PublicName, Published, Question};
pub use self::steps::{Action, Input, Listener, Listening, Memory, Reply, Visitor};
pub use self::verdict::{KEPT_MAX, NAMES_MAX, Verdict};
use crate::membership::{Membership, Presence, Refusal};

mod format;
mod keeper;
mod names;
mod object;
mod question;
mod steps;
mod verdict;

/// Bytes of the longest question.
pub const QUESTION_BYTES_MAX: usize = OBJECT_QUESTION_BYTES;
/// Time for a question, once connected.
const QUESTION_TIME: Duration = Duration::from_secs(2);
/// How long a visitor waits for a slot until all have looked whether they need what is in it, and how
/// often it is looked whether they have.
const VACANCY_TIME: Duration = Duration::from_millis(500);
const VACANCY_LOOK: Duration = Duration::from_millis(1);
/// Visitors beyond one for each slot.
pub const VISITORS_BEYOND_SLOTS: usize = 32;

/// The machine.
#[derive(Clone, Debug)]
pub struct Door {
    host: HostId,
    trusted_uid: u32,
    visitors_max: usize,
    visitors: BTreeMap<Visitor, Visit>,
    names: Names,
    keeper: Keeper,
    actions: Vec<Action>,
}

/// What is known of a visitor.
#[derive(Clone, Debug)]
struct Visit {
    pid: u32,
    /// The name at whose socket it came in.
    by: Option<Listener>,
    standing: Standing,
}

#[derive(Clone, Debug)]
enum Standing {
    /// It has not asked yet, and has until then.
    Asking { until: Duration },
    /// It has asked, and the driver is to do something before it is answered.
    Pending(Pending),
    /// It has asked to join, and waits for a slot that somebody may still need; until then.
    Waiting { until: Duration },
    /// It was let in.
    Inside { process: ProcessId },
    /// It has joined in the place of the process that was started, and is watched besides.
    Below { process: ProcessId },
}

/// A question that is answered when the driver has done something.
#[derive(Clone, Debug)]
enum Pending {
    /// To join: when the membership has answered.
    Join,
    /// To publish: when there is a socket.
    Publish(Publication),
    /// To be watched: when it is known whether the process has joined.
    Found { process: ProcessId },
    /// To look at the job: when there is a descriptor for that.
    Observe,
    /// About an object: when there is memory.
    Object(ObjectQuestion),
}

/// What a process wants to publish.
#[derive(Clone, Debug)]
struct Publication {
    process: ProcessId,
    context: u32,
    name: PublicName,
}

impl Door {
    /// The door of a host's job with so many slots, for visitors of this user.
    pub fn new(host: HostId, slots: u32, trusted_uid: u32) -> Self {
        Self {
            host,
            trusted_uid,
            visitors_max: slots as usize + VISITORS_BEYOND_SLOTS,
            visitors: BTreeMap::new(),
            names: Names::default(),
            keeper: Keeper::default(),
            actions: Vec::new(),
        }
    }

    /// Takes in what happened at `now`, a time since any fixed moment. What cannot have happened, as an
    /// answer for a visitor that is not there, changes nothing.
    pub fn handle(
        &mut self,
        now: Duration,
        membership: &Membership,
        input: Input<'_>,
    ) -> Vec<Action> {
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
            Input::Tick => self.tick(now),
        }
        let released = self.keeper.take_released().into_iter().map(Action::Release);
        self.actions.extend(released);
        std::mem::take(&mut self.actions)
    }

    /// When [`Input::Tick`] is due, as seen at `now`, if nothing else happens before.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let due = self.visitors.values().filter_map(|visit| match visit.standing {
            Standing::Asking { until } => Some(until),
            Standing::Waiting { .. } => Some(now + VACANCY_LOOK),
            Standing::Pending(_) | Standing::Inside { .. } | Standing::Below { .. } => None,
        });
        due.min()
    }

    /// Whether a visitor may ask. From all others nothing is heard any more but that they are gone.
    pub fn may_ask(&self, visitor: Visitor) -> bool {
        self.visitors
            .get(&visitor)
            .is_some_and(|visit| matches!(visit.standing, Standing::Asking { .. }))
    }

    fn came(&mut self, now: Duration, visitor: Visitor, uid: u32, pid: u32, by: Option<Listener>) {
        if uid != self.trusted_uid {
            self.actions.push(Action::Close { visitor });
        } else if self.visitors.len() >= self.visitors_max {
            // It is told if it listens, and forgotten in any case.
            let reply = Reply::Plain(Answer::bare(self.host, Verdict::TooMany));
            self.actions.push(Action::Answer { visitor, reply, memory: None });
        } else {
            let standing = Standing::Asking { until: now + QUESTION_TIME };
            self.visitors.insert(visitor, Visit { pid, by, standing });
        }
    }

    fn said(&mut self, membership: &Membership, visitor: Visitor, bytes: &[u8]) {
        let Some(visit) = self.visitors.get(&visitor) else { return };
        if !matches!(visit.standing, Standing::Asking { .. }) {
            // A visitor that was heard has nothing more to say: it is broken.
            return self.close(visitor);
        }
        let (pid, by) = (visit.pid, visit.by);
        if let Some(question) = ObjectQuestion::decode(bytes, self.host) {
            return self.about_object(membership, visitor, question);
        }
        match Question::decode(bytes, self.host) {
            Some(question) => self.asked(membership, visitor, pid, by, question),
            None => self.refuse(visitor, Verdict::Senseless),
        }
    }

    fn asked(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        pid: u32,
        by: Option<Listener>,
        question: Question,
    ) {
        match (question, by) {
            (Question::Join { wanted }, by) if by.is_none() || wanted.is_none() => {
                self.wait_for(visitor, Pending::Join, Action::Ask { visitor, wanted, pid });
            }
            (Question::Observe, None) => {
                self.wait_for(visitor, Pending::Observe, Action::Expose { visitor });
            }
            (Question::Found { process }, None) => {
                let look = Action::Look { visitor, slot: process.slot };
                self.wait_for(visitor, Pending::Found { process }, look);
            }
            (Question::LookUp, Some(listener)) => match self.names.at(listener) {
                Some(published) => {
                    let bare = Answer::bare(self.host, Verdict::Granted);
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
            _ => self.refuse(visitor, Verdict::Senseless),
        }
    }

    fn publish(&mut self, membership: &Membership, visitor: Visitor, wanted: Publication) {
        match self.not_published(membership, &wanted) {
            Some(refused) => self.reply(visitor, refused),
            None => {
                let listen = Action::Listen { visitor, name: wanted.name.clone() };
                self.wait_for(visitor, Pending::Publish(wanted), listen);
            }
        }
    }

    /// Why this cannot be published now; none if it can.
    fn not_published(&self, membership: &Membership, wanted: &Publication) -> Option<Answer> {
        if membership.is_alive(wanted.process) {
            self.names.refusal(self.host, &wanted.name)
        } else {
            Some(Answer::bare(self.host, Verdict::NotAlive))
        }
    }

    fn listening(&mut self, membership: &Membership, visitor: Visitor, outcome: Listening) {
        let Some(Pending::Publish(wanted)) = self.pending(visitor) else {
            return self.deafen(outcome);
        };
        // It may have become impossible since it was asked.
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
                let granted = Answer::bare(self.host, Verdict::Granted);
                self.reply(visitor, Answer { published, ..granted });
            }
            Listening::InUse => self.refuse(visitor, Verdict::InUse),
            Listening::Failed => self.refuse(visitor, Verdict::TooMany),
        }
    }

    /// Gives back a socket that no name needs.
    fn deafen(&mut self, outcome: Listening) {
        if let Listening::At(listener) = outcome {
            self.actions.push(Action::Deafen(listener));
        }
    }

    fn unpublish(&mut self, visitor: Visitor, process: ProcessId, name: &PublicName) {
        let verdict = match self.names.take_back(process, name) {
            Ok(listener) => {
                self.actions.push(Action::Deafen(listener));
                Verdict::Granted
            }
            Err(verdict) => verdict,
        };
        self.refuse(visitor, verdict);
    }

    fn about_object(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        question: ObjectQuestion,
    ) {
        if membership.is_alive(question.process) && Keeper::needs_memory(&question) {
            let allocate = Action::Allocate { visitor, bytes: question.bytes };
            return self.wait_for(visitor, Pending::Object(question), allocate);
        }
        self.answer_about_object(membership, visitor, question, None);
    }

    fn provided(&mut self, membership: &Membership, visitor: Visitor, memory: Option<Memory>) {
        match (self.pending(visitor), memory) {
            (Some(Pending::Object(question)), made) => {
                self.answer_about_object(membership, visitor, question, made);
            }
            (Some(Pending::Observe), Some(segment)) => {
                let answer = Answer::bare(self.host, Verdict::Granted);
                self.end(visitor, Reply::Plain(answer), Some(segment));
                self.actions.push(Action::Release(segment));
            }
            (Some(Pending::Observe), None) => self.refuse(visitor, Verdict::TooMany),
            (_, memory) => self.actions.extend(memory.map(Action::Release)),
        }
    }

    /// Answers a question about an object, for which this memory was made.
    fn answer_about_object(
        &mut self,
        membership: &Membership,
        visitor: Visitor,
        question: ObjectQuestion,
        made: Option<Memory>,
    ) {
        let process = question.process;
        let (answer, memory) = if membership.is_alive(process) {
            let pid = membership.record(process.slot).pid;
            self.keeper.answer(question, pid, made)
        } else {
            self.actions.extend(made.map(Action::Release));
            (ObjectAnswer::bare(process.host, Verdict::NotAlive), None)
        };
        self.end(visitor, Reply::Object(answer), memory);
    }

    /// Decides whether a visitor is watched as a process of the job that is not the one that was started.
    fn seen(&mut self, membership: &Membership, visitor: Visitor, presence: Presence) {
        let Some(Pending::Found { process }) = self.pending(visitor) else { return };
        let Some(pid) = self.visitors.get(&visitor).map(|visit| visit.pid) else { return };
        let slot = process.slot;
        let is_ours = membership.rank_of(slot).is_some() && membership.is_alive(process);
        if !is_ours || presence != Presence::Attached {
            return self.refuse(visitor, Verdict::NotAlive);
        }
        if membership.record(slot).pid == pid || self.is_watched_below(process) {
            return self.refuse(visitor, Verdict::Taken);
        }
        self.stand(visitor, Standing::Below { process });
        let answer = Answer::bare(self.host, Verdict::Granted);
        self.actions.extend([Action::Found { slot, pid }, Action::Watch { visitor, answer }]);
    }

    fn is_watched_below(&self, process: ProcessId) -> bool {
        self.visitors.values().any(
            |visit| matches!(visit.standing, Standing::Below { process: other } if other == process),
        )
    }

    fn admitted(&mut self, visitor: Visitor, process: ProcessId) {
        let Some(visit) = self.visitors.get_mut(&visitor) else {
            // It is gone since it asked.
            return self.actions.push(Action::Left { process });
        };
        visit.standing = Standing::Inside { process };
        let mut answer = Answer { joined: process, ..Answer::bare(self.host, Verdict::Granted) };
        if let Some(published) = visit.by.and_then(|listener| self.names.at(listener)) {
            answer.published = published;
        }
        self.actions.push(Action::Admit { visitor, answer });
    }

    /// There is no slot for a visitor. Where that is so only because others may need what is in one,
    /// they are made to look, and it waits for them a little.
    fn refused(&mut self, now: Duration, membership: &Membership, visitor: Visitor, why: Refusal) {
        let Some(visit) = self.visitors.get_mut(&visitor) else { return };
        let may_wait = why == Refusal::Full && membership.keeps_any();
        match visit.standing {
            Standing::Pending(Pending::Join) if may_wait => {
                visit.standing = Standing::Waiting { until: now + VACANCY_TIME };
                self.actions.push(Action::Announce);
            }
            Standing::Waiting { until } if may_wait && now < until => {}
            _ => self.refuse(visitor, verdict_of(why)),
        }
    }

    /// With a process go its names, and what is kept for it alone.
    fn ended(&mut self, process: ProcessId) {
        let deaf = self.names.forget(process).into_iter().map(Action::Deafen);
        self.actions.extend(deaf);
        self.keeper.forget(process);
    }

    /// Closes the connections of those that have not asked in time, and asks again for those that wait
    /// for a slot.
    fn tick(&mut self, now: Duration) {
        let is_late =
            |visit: &Visit| matches!(visit.standing, Standing::Asking { until } if until <= now);
        let late = self.visitors.iter().filter(|(_, visit)| is_late(visit));
        let late: Vec<Visitor> = late.map(|(&visitor, _)| visitor).collect();
        late.into_iter().for_each(|visitor| self.close(visitor));
        for (&visitor, visit) in &self.visitors {
            if matches!(visit.standing, Standing::Waiting { .. }) {
                self.actions.push(Action::Ask { visitor, wanted: None, pid: visit.pid });
            }
        }
    }

    /// Lets the driver do something before a visitor is answered.
    fn wait_for(&mut self, visitor: Visitor, pending: Pending, action: Action) {
        self.stand(visitor, Standing::Pending(pending));
        self.actions.push(action);
    }

    /// The question of a visitor that waits for the driver.
    fn pending(&self, visitor: Visitor) -> Option<Pending> {
        match &self.visitors.get(&visitor)?.standing {
            Standing::Pending(pending) => Some(pending.clone()),
            _ => None,
        }
    }

    fn stand(&mut self, visitor: Visitor, standing: Standing) {
        if let Some(visit) = self.visitors.get_mut(&visitor) {
            visit.standing = standing;
        }
    }

    /// Answers with a verdict alone, and closes.
    fn refuse(&mut self, visitor: Visitor, verdict: Verdict) {
        self.reply(visitor, Answer::bare(self.host, verdict));
    }

    fn reply(&mut self, visitor: Visitor, answer: Answer) {
        self.end(visitor, Reply::Plain(answer), None);
    }

    /// Answers, and closes.
    fn end(&mut self, visitor: Visitor, reply: Reply, memory: Option<Memory>) {
        if self.visitors.remove(&visitor).is_some() {
            self.actions.push(Action::Answer { visitor, reply, memory });
        }
    }

    /// Closes a connection; a process that was inside by it is gone.
    fn close(&mut self, visitor: Visitor) {
        let Some(visit) = self.visitors.remove(&visitor) else { return };
        match visit.standing {
            Standing::Inside { process } => self.actions.push(Action::Left { process }),
            Standing::Below { process } => self.actions.push(Action::Lost { visitor, process }),
            Standing::Asking { .. } | Standing::Pending(_) | Standing::Waiting { .. } => {}
        }
        self.actions.push(Action::Close { visitor });
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
