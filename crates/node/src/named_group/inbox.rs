//! What a mailbox retrieves from a group.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use landeck_groups::service::{EntryWord, Outcome, Phase, Seat};
use landeck_memory::gate::Entry;
use landeck_memory::{Bytes, Gate, ThreadMode, fork, room};
use landeck_objects::group_log::{Described, WaitsFor};
use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use super::answer::Answer;
use super::live::{Live, Waits};
use super::sending::SHARED_FROM;
use crate::error::Result;
use crate::message::SharedValues;

/// A mailbox's membership in a group.
pub(crate) struct Subscription {
    pub(super) live: Arc<Live>,
    pub(crate) seat: Seat,
    /// Most often the thread that retrieves is the only one here.
    place: Gate<Place>,
    /// Up to which message the server has said that they are there; none without a server.
    forwarded: Option<AtomicU64>,
}

/// How far it has come.
struct Place {
    /// The next message of the group.
    next: u64,
    /// What was in the mailbox when the member left.
    kept: VecDeque<Kept>,
    is_over: bool,
    /// Up to which message the descriptor has told of them.
    told: u64,
    /// Of how many things it has told that were not taken.
    outstanding: u64,
    /// Whether it has told of the one that was taken last.
    was_told: bool,
    /// It was seen to be no member any more, and that is still to be said.
    is_put_out: bool,
    /// Its program has it leave: that it is no member then is nothing to tell of.
    is_leaving: bool,
}

/// A subscription that a descriptor tells of, for as long as it does.
pub(crate) struct Watched(Arc<Subscription>);

struct Kept {
    number: u64,
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
    /// The group, and its number there, while it lies in memory that all share.
    live: Option<(&'a Live, u64)>,
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
    pub(crate) fn new(live: Arc<Live>, seat: Seat, first: u64) -> Self {
        let place = Place {
            next: first,
            kept: VecDeque::new(),
            is_over: false,
            told: first,
            outstanding: 0,
            was_told: false,
            is_put_out: false,
            is_leaving: false,
        };
        let forwarded = live.desk.as_ref().map(|_| AtomicU64::new(first));
        Self { live, seat, place: Gate::new(ThreadMode::Multiple, place), forwarded }
    }

    /// Has others' broadcasts wake this process from now on, so that somebody looks.
    pub(crate) fn watched(own: &Arc<Self>) -> Watched {
        own.live.log.waits(WaitsFor::Messages, true);
        Watched(own.clone())
    }

    /// Of how many things the descriptor has told that nobody can take any more; once.
    pub(crate) fn told_in_vain(&self) -> u64 {
        let Ok(mut place) = self.place() else { return 0 };
        let is_over = place.is_over && place.kept.is_empty();
        if is_over { std::mem::take(&mut place.outstanding) } else { 0 }
    }

    /// The mailbox is no more.
    pub(crate) fn close(&self) {
        let Ok(mut place) = self.place() else { return };
        place.is_over = true;
        place.kept.clear();
    }

    /// Tells of what waits and was not told of; and, once, that this is no member any more.
    fn tell(&self, each: &mut impl FnMut()) {
        let Ok(mut place) = self.place() else { return };
        while let Some((number, is_own)) = self.next_untold(&place) {
            place.told = number + 1;
            if !is_own {
                place.outstanding += 1;
                each();
            }
        }
        if place.is_over || place.is_put_out || place.is_leaving {
            return;
        }
        // A broken group says so to whoever retrieves.
        let known = self.live.with(|mirror| {
            self.catch_up(mirror.state.unserved());
            Ok(mirror.state.member(self.seat).is_some())
        });
        if matches!(known, Ok(false)) {
            place.is_put_out = true;
            place.outstanding += 1;
            each();
        }
    }

    /// Whether it was put out, where a descriptor has told of what is not there.
    fn is_out(&self, place: &Place) -> Result<bool> {
        if place.is_put_out || place.outstanding == 0 {
            return Ok(place.is_put_out);
        }
        self.live.with(|mirror| Ok(mirror.state.member(self.seat).is_none()))
    }

    /// The next message to tell of, and whether it is one that this member is not to get.
    fn next_untold(&self, place: &Place) -> Option<(u64, bool)> {
        let first = place.kept.front().map_or(place.next, |kept| kept.number);
        let number = place.told.max(first);
        if let Some(last) = place.kept.back()
            && number <= last.number
        {
            return Some((number, !place.kept.iter().any(|kept| kept.number == number)));
        }
        if place.is_over || !self.is_due(number) {
            return None;
        }
        let cell = self.live.log.broadcast(number)?;
        let described = self.live.log.described(cell);
        Some((number, described.is_some_and(|described| self.is_left_out(&described))))
    }

    fn is_left_out(&self, described: &Described) -> bool {
        described.words[1] >> 32 == u64::from(self.seat.id) + 1
    }

    /// Whether messages come by a server.
    pub(crate) fn is_served(&self) -> bool {
        self.forwarded.is_some()
    }

    /// The server has said that this message is there. Those before it are as well.
    pub(crate) fn forward(&self, number: u64) {
        if let Some(forwarded) = &self.forwarded {
            forwarded.fetch_max(number.saturating_add(1), Ordering::AcqRel);
        }
    }

    /// Whether this message is to be retrieved, as far as the server has said.
    fn is_due(&self, number: u64) -> bool {
        self.forwarded.as_ref().is_none_or(|due| number < due.load(Ordering::Acquire))
    }

    /// What was accepted by a server that is gone is there as well.
    fn catch_up(&self, unserved: u64) {
        if let Some(number) = unserved.checked_sub(1) {
            self.forward(number);
        }
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
        let Ok(place) = self.place() else { return false };
        !place.kept.is_empty()
            || (!place.is_over
                && self.is_due(place.next)
                && self.live.log.broadcast(place.next).is_some())
    }

    /// The same, where a sender may have died before it had said where its message is. An error as
    /// [`Subscription::read`] has it.
    ///
    /// # Errors
    /// [`crate::error::GroupError::NoMember`], [`crate::error::GroupError::Broken`].
    pub(crate) fn is_ready_by_now(&self) -> Result<bool> {
        let mut place = self.place()?;
        let is_there = self.is_due(place.next) && self.live.log.broadcast(place.next).is_some();
        if !place.is_over && !is_there {
            let state = self.live.with(|mirror| {
                self.catch_up(mirror.state.unserved());
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

    /// Reads the message in front, if there is one; takes it if `read` says so, with its result and
    /// whether the descriptor has told of the one that was taken last. It may be called again for the same
    /// message.
    ///
    /// # Errors
    /// [`crate::error::GroupError::NoMember`], once, when it is no member any more;
    /// [`crate::error::GroupError::Broken`].
    pub(crate) fn read<T>(
        &self,
        mut read: impl FnMut(&Front<'_>) -> (T, bool),
    ) -> Result<Option<(T, bool)>> {
        let mut place = self.place()?;
        loop {
            if let Some(kept) = place.kept.front() {
                let (result, is_taken) = read(&kept.front());
                if is_taken && let Some(kept) = place.kept.pop_front() {
                    place.note_taken(kept.number);
                }
                return Ok(Some((result, place.was_told)));
            }
            if place.is_over {
                return Ok(None);
            }
            let number = place.next;
            let looked = self.read_shared(&mut place, Standing::Unknown, &mut read)?;
            if place.next > number && matches!(looked, Looked::Read(_)) {
                place.note_taken(number);
            }
            match looked {
                Looked::None if self.is_out(&place)? => {
                    place.is_over = true;
                    return Err(self.live.no_member(self.seat.id));
                }
                Looked::None => return Ok(None),
                Looked::Read(result) => return Ok(Some((result, place.was_told))),
                Looked::Again => {}
            }
        }
    }

    /// Whether nothing will come any more, and nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.place().is_ok_and(|place| place.is_over && place.kept.is_empty())
    }

    /// Leaves as [`Subscription::leave`], by the server if there is one.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn leave_politely(&self) -> Result<bool> {
        let Some(desk) = &self.live.desk else { return self.leave() };
        loop {
            let kept = {
                let mut place = self.place()?;
                if place.is_over {
                    return Ok(false);
                }
                place.is_leaving = true;
                let live = self.live.clone();
                live.with(|mirror| {
                    let is_member = mirror.state.member(self.seat).is_some();
                    let all = mirror.state.broadcasts();
                    if is_member { self.keep(&mut place, all) } else { Ok(()) }
                })?;
                place.next
            };
            let answer = match self.live.ask_to_leave(desk, self.seat, kept) {
                // Nobody serves a group that is no more.
                Err(_) => return self.leave(),
                Ok(answer) => answer,
            };
            // Something was accepted meanwhile that is to be kept as well.
            if answer == Answer::NotNow {
                continue;
            }
            self.place()?.is_over = true;
            if self.live.with(|mirror| Ok(self.live.check_open(&mirror.state).is_err()))? {
                self.live.retire();
            }
            return Ok(answer == Answer::Left);
        }
    }

    /// Leaves: what is in the mailbox is kept here, nothing more comes. False when it was no member.
    ///
    /// # Errors
    /// [`crate::error::GroupError::Broken`], [`crate::ErrorKind::Thread`].
    pub(crate) fn leave(&self) -> Result<bool> {
        let mut place = self.place()?;
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
            let number = place.next;
            let mut copy = |front: &Front<'_>| {
                let from = From { process: front.process, member: front.member };
                let kept = |bytes| Kept { number, tag: front.tag, bytes, from };
                (room::copy(front.bytes).map(kept), true)
            };
            match self.read_shared(place, Standing::Member, &mut copy)? {
                Looked::Read(kept) => place.kept.push_back(kept?),
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
        if matches!(standing, Standing::Unknown) && !self.is_due(number) {
            self.live.with(|mirror| {
                self.catch_up(mirror.state.unserved());
                Ok(())
            })?;
            if !self.is_due(number) {
                return Ok(Looked::None);
            }
        }
        let Some(cell) = log.broadcast(number) else { return Ok(Looked::None) };
        let described = log.described(cell);
        let data = described.and_then(|described| log.data(cell, &described));
        let (Some(described), Some(bytes)) = (described, data) else {
            return self.doubt(place, standing, None);
        };
        if self.is_left_out(&described) {
            place.pass(self);
            return Ok(Looked::Again);
        }
        let From { process, member } = self.sender(&described);
        if process.slot.0 != self.live.shared.slot {
            log.expect_next(process.slot.0, cell, &described);
        }
        let live = Some((&*self.live, number));
        let result = read(&Front { tag: described.tag, bytes, process, member, live });
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

    fn place(&self) -> Result<Entry<'_, Place>> {
        Ok(self.place.enter_in_turn()?)
    }
}

impl Place {
    fn done<T>(&mut self, of: &Subscription, (result, is_taken): (T, bool)) -> Looked<T> {
        if is_taken {
            self.pass(of);
        }
        Looked::Read(result)
    }

    fn note_taken(&mut self, number: u64) {
        self.was_told = self.told > number;
        self.outstanding = self.outstanding.saturating_sub(u64::from(self.was_told));
        self.told = self.told.max(number + 1);
    }

    fn pass(&mut self, of: &Subscription) {
        self.next += 1;
        of.live.log.set_taken(of.seat.id, of.seat.stamp, self.next);
    }
}

impl Front<'_> {
    /// Whether its sender may have kept its values.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.bytes.len() as u64 > SHARED_FROM
    }

    /// Its values in the memory of this process that they were sent from, if they are kept.
    #[inline(never)]
    pub(crate) fn take_values(&self) -> Option<SharedValues> {
        let is_own = |live: &Live| live.shared.slot == self.process.slot.0;
        let (live, number) = self.live.filter(|(live, _)| is_own(live))?;
        live.take_shared(number)
    }
}

impl Kept {
    fn front(&self) -> Front<'_> {
        let From { process, member } = self.from;
        let bytes = Bytes::from(&self.bytes[..]);
        Front { tag: self.tag, bytes, process, member, live: None }
    }
}

impl Watched {
    /// Tells of what waits and was not told of; false when nothing more will come.
    pub(crate) fn tell(&self, mut each: impl FnMut()) -> bool {
        self.0.tell(&mut each);
        !self.0.is_spent()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // What its parent waits for is not a child's to end.
        if !fork::is_child() {
            self.0.live.log.waits(WaitsFor::Messages, false);
        }
    }
}
