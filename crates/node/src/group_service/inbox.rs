//! What a mailbox retrieves from a group.

use std::collections::VecDeque;
use std::sync::Arc;

use landeck_groups::service::{EntryWord, Outcome, Phase, Seat};
use landeck_memory::group_log::{Described, WaitsFor};
use landeck_memory::{Bytes, Gate};
use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use super::live::{Live, Waits};
use crate::error::Result;

/// A mailbox's membership in a group.
pub(crate) struct Subscription {
    pub(super) live: Arc<Live>,
    pub(super) seat: Seat,
    place: Gate<Place>,
}

/// How far it has come.
struct Place {
    /// The next message of the group.
    next: u64,
    /// What was in the mailbox when the member left.
    kept: VecDeque<Kept>,
    is_over: bool,
}

struct Kept {
    tag: u32,
    bytes: Vec<u8>,
    from: From,
}

#[derive(Clone, Copy)]
struct From {
    process: ProcessId,
    member: Option<u32>,
}

/// A message that waits in front.
pub(crate) struct Front<'a> {
    /// Its tag.
    pub(crate) tag: u32,
    /// Its bytes, which others may overwrite while they are read: then it is read again.
    pub(crate) bytes: Bytes<'a>,
    /// Who sent it.
    pub(crate) process: ProcessId,
    /// Which member of the group that was.
    pub(crate) member: Option<u32>,
}

/// What is known of whether this is a member.
#[derive(Clone, Copy)]
enum Standing {
    Member,
    Unknown,
}

/// What came of a look at the message in front.
enum Looked<T> {
    /// There is none.
    None,
    /// It was read.
    Read(T),
    /// It is not for this member, or was overwritten.
    Again,
}

impl Subscription {
    pub(super) fn new(live: Arc<Live>, seat: Seat, first: u64) -> Self {
        let place = Place { next: first, kept: VecDeque::new(), is_over: false };
        let place = Gate::new(live.shared.kernel.mode(), place);
        Self { live, seat, place }
    }

    /// The number of the group.
    pub(crate) fn group(&self) -> u64 {
        self.live.object.number()
    }

    /// Says that a thread waits for messages here, until this is dropped.
    pub(crate) fn waits(&self) -> impl Drop + '_ {
        Waits::begin(&self.live.log, WaitsFor::Messages)
    }

    /// Whether a message may be there; one look at memory.
    pub(crate) fn is_ready(&self) -> bool {
        // What cannot be entered is no reason to wait: the next call says why.
        let Ok(place) = self.place.enter() else { return true };
        !place.kept.is_empty() || (!place.is_over && self.live.log.broadcast(place.next).is_some())
    }

    /// The same, where a sender may have died before it had said where its message is. An error as
    /// [`Subscription::read`] has it.
    ///
    /// # Errors
    /// [`super::GroupError::NoMember`], [`super::GroupError::Broken`], [`crate::Error::Thread`].
    pub(crate) fn is_ready_by_now(&self) -> Result<bool> {
        let mut place = self.place.enter()?;
        if !place.is_over && self.live.log.broadcast(place.next).is_none() {
            let state = self.live.with(|mirror| {
                let is_over = mirror.state.phase() == Phase::Ended;
                Ok((mirror.state.member(self.seat).is_some(), is_over, mirror.state.broadcasts()))
            });
            let (is_member, has_ended, broadcasts) = state?;
            if !is_member {
                place.is_over = true;
                return Err(self.live.no_member(self.seat.id));
            }
            // Nothing more comes from a group that is no more.
            place.is_over = has_ended && broadcasts <= place.next;
        }
        drop(place);
        Ok(self.is_ready())
    }

    /// Reads the message in front, if there is one; takes it if `read` says so, with its result. It may
    /// be called again for the same message.
    ///
    /// # Errors
    /// [`super::GroupError::NoMember`], once, when it is no member any more;
    /// [`super::GroupError::Broken`], [`crate::Error::Thread`].
    pub(crate) fn read<T>(
        &self,
        mut read: impl FnMut(&Front<'_>) -> (T, bool),
    ) -> Result<Option<T>> {
        let mut place = self.place.enter()?;
        loop {
            if let Some(kept) = place.kept.front() {
                let (result, is_taken) = read(&kept.front());
                if is_taken {
                    place.kept.pop_front();
                }
                return Ok(Some(result));
            }
            if place.is_over {
                return Ok(None);
            }
            match self.read_shared(&mut place, Standing::Unknown, &mut read)? {
                Looked::None => return Ok(None),
                Looked::Read(result) => return Ok(Some(result)),
                Looked::Again => {}
            }
        }
    }

    /// Whether nothing will come any more, and nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.place.enter().is_ok_and(|place| place.is_over && place.kept.is_empty())
    }

    /// Leaves: what is in the mailbox is kept here, nothing more comes. False when it was no member.
    ///
    /// # Errors
    /// [`super::GroupError::Broken`], [`crate::Error::Thread`].
    pub(crate) fn leave(&self) -> Result<bool> {
        let mut place = self.place.enter()?;
        if place.is_over {
            return Ok(false);
        }
        let live = self.live.clone();
        let left = live.with(|mirror| {
            let entry = EntryWord::Leave(self.seat);
            live.append(mirror, entry, |mirror| {
                // Whatever was accepted before is copied before the entry can be.
                let is_member = mirror.state.member(self.seat).is_some();
                if is_member { self.keep(&mut place, mirror.state.broadcasts()) } else { Ok(()) }
            })
        });
        place.is_over = true;
        let (_, outcome) = left?;
        let has_ended = live.with(|mirror| Ok(live.check_open(&mirror.state).is_err()))?;
        if has_ended {
            live.retire();
        }
        Ok(matches!(outcome, Outcome::Removed(..)))
    }

    /// Copies the messages up to number `end`.
    fn keep(&self, place: &mut Place, end: u64) -> Result<()> {
        while place.next < end {
            let mut copy = |front: &Front<'_>| {
                let from = From { process: front.process, member: front.member };
                (Kept { tag: front.tag, bytes: front.bytes.to_vec(), from }, true)
            };
            match self.read_shared(place, Standing::Member, &mut copy)? {
                Looked::Read(kept) => place.kept.push_back(kept),
                Looked::Again => {}
                Looked::None => return Err(self.live.broken("an accepted message is nowhere")),
            }
        }
        Ok(())
    }

    fn read_shared<T>(
        &self,
        place: &mut Place,
        standing: Standing,
        read: &mut impl FnMut(&Front<'_>) -> (T, bool),
    ) -> Result<Looked<T>> {
        let (log, number) = (&self.live.log, place.next);
        let Some(cell) = log.broadcast(number) else { return Ok(Looked::None) };
        let described = log.described(cell);
        let data = described.and_then(|described| log.data(cell, &described));
        let (Some(described), Some(bytes)) = (described, data) else {
            return self.doubt(place, standing, None);
        };
        if described.words[1] >> 32 == u64::from(self.seat.id) + 1 {
            place.pass(self);
            return Ok(Looked::Again);
        }
        let From { process, member } = self.sender(&described);
        let result = read(&Front { tag: described.tag, bytes, process, member });
        if !log.is_of(cell, number) {
            return self.doubt(place, standing, Some(result));
        }
        Ok(place.done(self, result))
    }

    /// A message whose memory may be another's by now: it is not, as long as this is a member.
    #[cold]
    fn doubt<T>(
        &self,
        place: &mut Place,
        standing: Standing,
        result: Option<(T, bool)>,
    ) -> Result<Looked<T>> {
        let is_member = match standing {
            Standing::Member => true,
            Standing::Unknown => {
                self.live.with(|mirror| Ok(mirror.state.member(self.seat).is_some()))?
            }
        };
        match (is_member, result) {
            (false, _) => {
                place.is_over = true;
                Err(self.live.no_member(self.seat.id))
            }
            (true, Some(result)) => Ok(place.done(self, result)),
            (true, None) => {
                place.pass(self);
                Err(self.live.broken("a message has no place"))
            }
        }
    }

    fn sender(&self, described: &Described) -> From {
        let [process, who, _] = described.words;
        let host = HostId(self.live.shared.segment.plan().host);
        let (slot, incarnation) = (Slot(process as u32), Incarnation((process >> 32) as u32));
        let member = (who as u32).checked_sub(1);
        From { process: ProcessId { host, slot, incarnation }, member }
    }
}

impl Place {
    fn done<T>(&mut self, of: &Subscription, (result, is_taken): (T, bool)) -> Looked<T> {
        if is_taken {
            self.pass(of);
        }
        Looked::Read(result)
    }

    fn pass(&mut self, of: &Subscription) {
        self.next += 1;
        of.live.log.set_taken(of.seat.id, of.seat.stamp, self.next);
    }
}

impl Kept {
    fn front(&self) -> Front<'_> {
        let From { process, member } = self.from;
        Front { tag: self.tag, bytes: Bytes::from(&self.bytes[..]), process, member }
    }
}
