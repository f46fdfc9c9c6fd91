//! The messages that a mailbox retrieves from a group.

pub(crate) mod views;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use landeck_engine::Engine;
use landeck_memory::gate::Entry;
use landeck_memory::{Bytes, Gate, ThreadMode, fork, room};
use landeck_objects::group_log::{Described, WaitsFor};
use landeck_protocols::service::{GroupEntry, Outcome, Phase, Seat};
use landeck_wire::ProcessId;

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::message::SharedValues;
use crate::origin::Origin;
use crate::replica::{Replica, WaitNotice};
use crate::sending::SHARED_FROM;

/// A mailbox's membership in a group.
pub struct Subscription {
    replica: Arc<Replica>,
    seat: Seat,
    /// Usually the retrieving thread is the only one here.
    position: Gate<ReadPosition>,
    /// The server has forwarded the messages before this number; none without a server.
    forwarded: Option<AtomicU64>,
}

/// How far a mailbox has read.
struct ReadPosition {
    /// The next message of the group.
    next: u64,
    /// Copies of the messages that were in the mailbox when the member left.
    copies: VecDeque<CopiedMessage>,
    /// Nothing more comes from the group.
    is_complete: bool,
    /// The last view that was told; none before the first.
    view: Option<u64>,
    /// The descriptor has announced the messages before this number.
    announced: u64,
    /// The descriptor has announced the views up to this one.
    announced_view: u64,
    /// How many announced messages and views were not taken.
    outstanding: u64,
    /// Whether the message that was taken last was announced.
    was_announced: bool,
    /// Another process has removed the member, and the mailbox has yet to report it.
    is_removed: bool,
    /// The member is leaving, so its removal is no news.
    is_leaving: bool,
}

/// Has a descriptor announce the messages of a subscription, until it is dropped.
pub struct SubscriptionWatch(Arc<Subscription>);

struct CopiedMessage {
    number: u64,
    tag: u32,
    bytes: Vec<u8>,
    sender: MessageSender,
}

/// The sender of a message.
#[derive(Clone, Copy)]
struct MessageSender {
    process: ProcessId,
    member: Option<u32>,
}

/// The next message that a mailbox retrieves from a group.
pub struct NextMessage<'a> {
    /// The number of broadcasts that the group accepted before it.
    pub number: u64,
    /// Its tag.
    pub tag: u32,
    /// Its bytes. Other processes may overwrite them during the read, which is then repeated.
    pub bytes: Bytes<'a>,
    /// The process that has sent it.
    pub process: ProcessId,
    /// The number of the member that has sent it, if one has.
    pub member: Option<u32>,
    /// The group and the message's number, while the message lies in the group's memory.
    shared: Option<(&'a Replica, u64)>,
}

/// Whether the reader is known to be a member.
#[derive(Clone, Copy)]
enum Standing {
    Member,
    Unknown,
}

/// The result of an attempt to read the next message.
enum ReadAttempt<T> {
    /// There is no message.
    Empty,
    /// The message was read.
    Read(T),
    /// The message is not for this member, or was overwritten.
    Retry,
}

impl Subscription {
    pub(crate) fn new(replica: Arc<Replica>, seat: Seat, first: u64) -> Self {
        let position = ReadPosition {
            next: first,
            copies: VecDeque::new(),
            is_complete: false,
            view: None,
            announced: first,
            announced_view: 0,
            outstanding: 0,
            was_announced: false,
            is_removed: false,
            is_leaving: false,
        };
        let forwarded = match replica.copy() {
            // What the server has fed is there.
            Some(copy) => {
                copy.add_member(seat);
                None
            }
            None => replica.server_client.as_ref().map(|_| AtomicU64::new(first)),
        };
        Self { replica, seat, position: Gate::new(ThreadMode::Multiple, position), forwarded }
    }

    /// The member's place in the group.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// The number of the group.
    pub fn group(&self) -> u64 {
        self.replica.number()
    }

    /// Whether this is of the same job as a replica.
    pub(crate) fn is_in_job_of(&self, replica: &Replica) -> bool {
        Arc::ptr_eq(&self.replica.shared, &replica.shared)
    }

    /// Has broadcasts of other processes wake this process from now on, so that they can be announced.
    pub fn watch(own: &Arc<Self>) -> SubscriptionWatch {
        own.replica.log.waits(WaitsFor::Messages, true);
        SubscriptionWatch(own.clone())
    }

    /// How many announced messages can no longer be taken. Each is counted once.
    pub fn take_vain_announcements(&self) -> u64 {
        let Ok(mut position) = self.position() else { return 0 };
        match position.is_spent() {
            true => std::mem::take(&mut position.outstanding),
            false => 0,
        }
    }

    /// Ends the subscription with its mailbox.
    pub fn close(&self) {
        let Ok(mut position) = self.position() else { return };
        position.is_complete = true;
        position.copies.clear();
    }

    /// Announces messages that wait, and once that the member was removed.
    fn announce(&self, each: &dyn Fn()) {
        let Ok(mut position) = self.position() else { return };
        while let Some((number, is_left_out)) = self.next_unannounced(&position) {
            position.announced = number + 1;
            if !is_left_out {
                position.outstanding += 1;
                each();
            }
        }
        if position.is_complete || position.is_removed || position.is_leaving {
            return;
        }
        // A broken group reports itself to the thread that retrieves.
        let is_member = self.replica.with(|local| {
            self.catch_up(local.state.unserved());
            Ok(local.state.member(self.seat).is_some())
        });
        if matches!(is_member, Ok(false)) {
            position.is_removed = true;
            position.outstanding += 1;
            each();
        }
    }

    /// Whether the member was removed while announced messages are missing.
    fn is_removed(&self, position: &ReadPosition) -> Result<bool> {
        if position.is_removed || position.outstanding == 0 {
            return Ok(position.is_removed);
        }
        self.replica.with(|local| Ok(local.state.member(self.seat).is_none()))
    }

    /// The next message to announce, and whether this member is left out of it.
    fn next_unannounced(&self, position: &ReadPosition) -> Option<(u64, bool)> {
        let first = position.copies.front().map_or(position.next, |copy| copy.number);
        let number = position.announced.max(first);
        if let Some(last) = position.copies.back()
            && number <= last.number
        {
            return Some((number, !position.copies.iter().any(|copy| copy.number == number)));
        }
        if position.is_complete || !self.is_readable(number) {
            return None;
        }
        let cell = self.replica.log.broadcast(number)?;
        let described = self.replica.log.described(cell);
        Some((number, described.is_some_and(|described| self.is_left_out(&described))))
    }

    fn is_left_out(&self, described: &Described) -> bool {
        Origin::from_words(described.words).left_out == Some(self.seat.id)
    }

    /// Whether a server forwards the messages.
    pub fn is_served(&self) -> bool {
        self.forwarded.is_some()
    }

    /// Records that the server has forwarded this message, and those before it.
    pub fn forward(&self, number: u64) {
        if let Some(forwarded) = &self.forwarded {
            forwarded.fetch_max(number.saturating_add(1), Ordering::AcqRel);
        }
    }

    fn is_forwarded(&self, number: u64) -> bool {
        self.forwarded.as_ref().is_none_or(|end| number < end.load(Ordering::Acquire))
    }

    /// Whether the member may take a message: its server has forwarded it, or has nothing to forward to a member that
    /// is left out.
    fn is_readable(&self, number: u64) -> bool {
        let log = &self.replica.log;
        let described = || log.broadcast(number).and_then(|cell| log.described(cell));
        self.is_forwarded(number)
            || described().is_some_and(|described| self.is_left_out(&described))
    }

    /// Counts the messages of servers that are gone as forwarded.
    fn catch_up(&self, unserved: u64) {
        if let Some(number) = unserved.checked_sub(1) {
            self.forward(number);
        }
    }

    /// Tells other processes that a thread waits here, for messages and perhaps views, until the result is dropped.
    pub fn announce_wait(&self, for_views: bool) -> impl Sized + '_ {
        let log = &self.replica.log;
        let for_views = for_views.then(|| WaitNotice::begin(log, WaitsFor::Others));
        (WaitNotice::begin(log, WaitsFor::Messages), for_views)
    }

    /// Whether a message may be there; one look at memory.
    pub fn is_ready(&self) -> bool {
        let Ok(position) = self.position() else { return false };
        !position.copies.is_empty() || (!position.is_complete && self.has_next(&position))
    }

    fn has_next(&self, position: &ReadPosition) -> bool {
        self.is_readable(position.next) && self.replica.log.broadcast(position.next).is_some()
    }

    /// Whether a message, or a view if the caller asks `for_views`, may be there, after a look at the log: a sender may have
    /// died before it published its message.
    ///
    /// # Errors
    /// [`crate::GroupError::NoMember`], once, when the member was removed; [`crate::GroupError::Broken`];
    /// [`crate::ServiceError::Thread`].
    pub fn is_ready_by_log(&self, for_views: bool) -> Result<bool> {
        let mut position = self.position()?;
        if for_views && self.has_view(&position)? {
            return Ok(true);
        }
        if !position.is_complete && !self.has_next(&position) {
            let (is_member, is_last) = self.replica.with(|local| {
                self.catch_up(local.state.unserved());
                let has_ended = local.state.phase() == Phase::Ended;
                let is_last = has_ended && local.state.broadcasts() <= position.next;
                Ok((local.state.member(self.seat).is_some(), is_last))
            })?;
            if !is_member {
                position.is_complete = true;
                return Err(self.replica.no_member(self.seat.id));
            }
            position.is_complete = is_last;
        }
        drop(position);
        Ok(self.is_ready())
    }

    /// Reads the next message, if there is one with a number below `until`. `read` returns a result and whether the message is taken; it may be
    /// called again for the same message. Returns that result, and whether the message that was taken last was
    /// announced.
    ///
    /// # Errors
    /// [`crate::GroupError::NoMember`], once, when the member was removed; [`crate::GroupError::Broken`];
    /// [`crate::ServiceError::Thread`].
    pub fn read<T>(
        &self,
        until: u64,
        mut read: impl FnMut(&NextMessage<'_>) -> (T, bool),
    ) -> Result<Option<(T, bool)>> {
        let mut position = self.position()?;
        loop {
            if let Some(copy) = position.copies.front() {
                let (result, is_taken) = read(&copy.as_next());
                if is_taken && let Some(copy) = position.copies.pop_front() {
                    position.note_taken(copy.number);
                }
                return Ok(Some((result, position.was_announced)));
            }
            if position.is_complete {
                return Ok(None);
            }
            let number = position.next;
            let attempt = match number < until {
                true => self.read_shared(&mut position, Standing::Unknown, &mut read)?,
                false => ReadAttempt::Empty,
            };
            if position.next > number && matches!(attempt, ReadAttempt::Read(_)) {
                position.note_taken(number);
            }
            match attempt {
                ReadAttempt::Empty if self.is_removed(&position)? => {
                    position.is_complete = true;
                    return Err(self.replica.no_member(self.seat.id));
                }
                ReadAttempt::Empty => return Ok(None),
                ReadAttempt::Read(result) => return Ok(Some((result, position.was_announced))),
                ReadAttempt::Retry => {}
            }
        }
    }

    /// Whether nothing more comes, and nothing is left.
    pub fn is_spent(&self) -> bool {
        self.position().is_ok_and(|position| position.is_spent())
    }

    /// Leaves the group, by the server if there is one. The mailbox keeps copies of its messages, and nothing more
    /// enters it. False when it was no member.
    ///
    /// # Errors
    /// [`crate::GroupError::Broken`], [`crate::ServiceError::NoMemory`], [`crate::ServiceError::Thread`].
    pub fn leave(&self) -> Result<bool> {
        let Some(client) = &self.replica.server_client else { return self.leave_directly() };
        if let Some(copy) = self.replica.copy() {
            // Its room fills up meanwhile, so senders let it leave.
            copy.forget_member(self.seat);
        }
        loop {
            let kept = {
                let mut position = self.position()?;
                if position.is_complete {
                    return Ok(false);
                }
                position.is_leaving = true;
                self.replica.with(|local| {
                    let is_member = local.state.member(self.seat).is_some();
                    let all = local.state.broadcasts();
                    if is_member { self.copy_until(&mut position, all) } else { Ok(()) }
                })?;
                position.next
            };
            match self.replica.request_to_leave(client, self.seat, kept) {
                // A group that has ended has no server.
                Err(_) if self.replica.copy().is_none() => return self.leave_directly(),
                Err(error) => return self.leave_elsewhere(error),
                // A message was accepted meanwhile, which is to be copied as well.
                Ok(Answer::NotNow) => {}
                Ok(answer) => {
                    self.position()?.is_complete = true;
                    self.retire_if_ended()?;
                    return Ok(answer == Answer::Left);
                }
            }
        }
    }

    /// Leaves the group by an entry of this process: it asks no server, so it waits for none.
    ///
    /// # Errors
    /// [`crate::GroupError::Broken`], [`crate::ServiceError::NoMemory`], [`crate::ServiceError::Thread`].
    pub fn leave_directly(&self) -> Result<bool> {
        if self.replica.copy().is_some() {
            return self.leave();
        }
        let mut position = self.position()?;
        if position.is_complete {
            return Ok(false);
        }
        let replica = &self.replica;
        let left = replica.with(|local| {
            replica.append(local, GroupEntry::Leave(self.seat), |local| {
                // Messages that were accepted before the entry are copied before the entry can be accepted.
                let is_member = local.state.member(self.seat).is_some();
                let all = local.state.broadcasts();
                if is_member { self.copy_until(&mut position, all) } else { Ok(()) }
            })
        });
        position.is_complete = true;
        let outcome = left?.outcome;
        self.retire_if_ended()?;
        Ok(matches!(outcome, Outcome::Removed(..)))
    }

    /// Leaves a group of another host that did not answer. One that has ended, or that nobody serves, has no members.
    fn leave_elsewhere(&self, error: ServiceError) -> Result<bool> {
        self.position()?.is_complete = true;
        match error {
            ServiceError::Group(
                GroupError::GroupDestroyed { .. } | GroupError::Unreached { .. },
            ) => Ok(true),
            error => Err(error),
        }
    }

    /// Whether the group's log lies on another host.
    pub fn is_elsewhere(&self) -> bool {
        self.replica.copy().is_some()
    }

    /// Exchanges messages with the server of another host. False when it is gone and messages may be missing.
    pub fn follow(&self, engine: &mut Engine) -> bool {
        self.replica.follow(engine) || self.is_spent()
    }

    /// Goes on with the next server of another host.
    ///
    /// # Errors
    /// [`GroupError::Unreached`], once; [`crate::ServiceError::Object`], [`crate::ServiceError::Ended`],
    /// [`crate::ServiceError::Thread`].
    pub fn find_server(&self) -> Result<()> {
        let found = self.replica.find_server();
        if found.is_err() {
            self.position()?.is_complete = true;
        }
        found
    }

    /// Frees the group's name if the last member has left.
    fn retire_if_ended(&self) -> Result<()> {
        let replica = &self.replica;
        if replica.with(|local| Ok(replica.check_open(&local.state).is_err()))? {
            replica.retire();
        }
        Ok(())
    }

    /// Copies the messages before number `end`.
    fn copy_until(&self, position: &mut ReadPosition, end: u64) -> Result<()> {
        while position.next < end {
            let number = position.next;
            let mut copy = |next: &NextMessage<'_>| {
                let sender = MessageSender { process: next.process, member: next.member };
                let copied = |bytes| CopiedMessage { number, tag: next.tag, bytes, sender };
                (room::copy(next.bytes).map(copied), true)
            };
            match self.read_shared(position, Standing::Member, &mut copy)? {
                ReadAttempt::Read(copy) => position.copies.push_back(copy?),
                ReadAttempt::Retry => {}
                ReadAttempt::Empty => {
                    return Err(self.replica.broken("an accepted message is nowhere"));
                }
            }
        }
        Ok(())
    }

    /// Reads the next message in the group's memory.
    fn read_shared<T>(
        &self,
        position: &mut ReadPosition,
        standing: Standing,
        read: &mut impl FnMut(&NextMessage<'_>) -> (T, bool),
    ) -> Result<ReadAttempt<T>> {
        let (log, number) = (&self.replica.log, position.next);
        if matches!(standing, Standing::Unknown) && !self.is_readable(number) {
            self.replica.with(|local| {
                self.catch_up(local.state.unserved());
                Ok(())
            })?;
            if !self.is_readable(number) {
                return Ok(ReadAttempt::Empty);
            }
        }
        let Some(cell) = log.broadcast(number) else { return Ok(ReadAttempt::Empty) };
        let described = log.described(cell);
        let data = described.and_then(|described| log.data(cell, &described));
        let (Some(described), Some(bytes)) = (described, data) else {
            return self.check_overwritten(position, standing, None);
        };
        if self.is_left_out(&described) {
            self.pass(position);
            return Ok(ReadAttempt::Retry);
        }
        let MessageSender { process, member } = self.sender(&described);
        if process.slot.0 != self.replica.shared.slot && self.replica.copy().is_none() {
            log.expect_next(process.slot.0, cell, &described);
        }
        let shared = Some((&*self.replica, number));
        let tag = described.tag;
        let result = read(&NextMessage { number, tag, bytes, process, member, shared });
        if !log.is_of(cell, number) {
            return self.check_overwritten(position, standing, Some(result));
        }
        Ok(self.finish_read(position, result))
    }

    /// Decides about a message whose memory may hold another by now. It holds this one as long as the reader is a
    /// member.
    #[cold]
    fn check_overwritten<T>(
        &self,
        position: &mut ReadPosition,
        standing: Standing,
        result: Option<(T, bool)>,
    ) -> Result<ReadAttempt<T>> {
        let is_member = match standing {
            Standing::Member => true,
            Standing::Unknown => {
                self.replica.with(|local| Ok(local.state.member(self.seat).is_some()))?
            }
        };
        match (is_member, result) {
            (false, _) => {
                position.is_complete = true;
                Err(self.replica.no_member(self.seat.id))
            }
            (true, Some(result)) => Ok(self.finish_read(position, result)),
            (true, None) => {
                self.pass(position);
                Err(self.replica.broken("a message has no place"))
            }
        }
    }

    fn finish_read<T>(
        &self,
        position: &mut ReadPosition,
        (result, is_taken): (T, bool),
    ) -> ReadAttempt<T> {
        if is_taken {
            self.pass(position);
        }
        ReadAttempt::Read(result)
    }

    /// Counts the next message as taken.
    fn pass(&self, position: &mut ReadPosition) {
        position.next += 1;
        self.replica.log.set_taken(self.seat.id, self.seat.stamp, position.next);
    }

    fn sender(&self, described: &Described) -> MessageSender {
        let origin = Origin::from_words(described.words);
        let process = self.replica.sender_process(origin.process);
        MessageSender { process, member: origin.sender }
    }

    fn position(&self) -> Result<Entry<'_, ReadPosition>> {
        if self.replica.copy().is_some() {
            self.replica.fold_only()?;
        }
        Ok(self.position.enter_in_turn()?)
    }
}

impl ReadPosition {
    fn is_spent(&self) -> bool {
        self.is_complete && self.copies.is_empty()
    }

    fn note_taken(&mut self, number: u64) {
        self.was_announced = self.announced > number;
        self.outstanding = self.outstanding.saturating_sub(u64::from(self.was_announced));
        self.announced = self.announced.max(number + 1);
    }
}

impl NextMessage<'_> {
    /// Whether it is so long that its sender may have kept its values.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.bytes.len() as u64 > SHARED_FROM
    }

    /// The values that it was sent from, if this process has sent it and kept them.
    #[inline(never)]
    pub fn take_values(&self) -> Option<SharedValues> {
        let is_own = |replica: &Replica| {
            let own = &replica.shared;
            own.slot == self.process.slot.0 && own.segment.plan().host == self.process.segment.0
        };
        let (replica, number) = self.shared.filter(|(replica, _)| is_own(replica))?;
        replica.take_values(number)
    }
}

impl CopiedMessage {
    fn as_next(&self) -> NextMessage<'_> {
        let MessageSender { process, member } = self.sender;
        let bytes = Bytes::from(&self.bytes[..]);
        NextMessage { number: self.number, tag: self.tag, bytes, process, member, shared: None }
    }
}

impl SubscriptionWatch {
    /// Calls `each` for each message that waits and was not announced. False when nothing more will come.
    pub fn announce(&self, each: &dyn Fn()) -> bool {
        self.0.announce(each);
        !self.0.is_spent()
    }
}

impl Drop for SubscriptionWatch {
    fn drop(&mut self) {
        // A child made by fork does not end the wait of its parent.
        if !fork::is_child() {
            self.0.replica.log.waits(WaitsFor::Messages, false);
        }
    }
}
