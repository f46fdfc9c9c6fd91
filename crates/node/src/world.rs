//! Worlds: groups of processes with fixed ranks; sending, receiving and probing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use landeck_channel::Peer;
use landeck_kernel::{Area, Completion, Failure, Wanted};
use landeck_layout::Layout;
use landeck_memory::plain::{Plain, bytes_of, zero};
use landeck_memory::{Buffer, Operation, WaitRecord};
use landeck_wire::Tag;

use crate::error::{Error, ErrorKind, Members, Numbering, Result};
use crate::lease::Lease;
use landeck_engine::context::{WORLD_CONTEXT, inside_of};
use landeck_engine::{CallOptions, Engine, OperationId, Shared, WaitError, deadline_ns};

/// Matches any sender, or any tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Any;

/// The sender to receive from: a rank, or [`Any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(pub(crate) Option<usize>);

/// The tag to receive: a [`Tag`], or [`Any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagFilter(pub(crate) Option<u32>);

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Self(Some(rank))
    }
}

impl From<Any> for Source {
    fn from(_: Any) -> Self {
        Self(None)
    }
}

impl From<Tag> for TagFilter {
    fn from(tag: Tag) -> Self {
        Self(Some(tag.0))
    }
}

impl From<u32> for TagFilter {
    fn from(tag: u32) -> Self {
        Self(Some(tag))
    }
}

impl From<Any> for TagFilter {
    fn from(_: Any) -> Self {
        Self(None)
    }
}

/// The envelope of a message: its sender, its tag and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    rank: usize,
    tag: Tag,
    bytes: u64,
    cancelled: bool,
}

impl Status {
    /// The status of a completed collective operation, which carries no message.
    pub(crate) fn of_collective(rank: usize) -> Self {
        Self { rank, tag: Tag(0), bytes: 0, cancelled: false }
    }

    /// Returns the rank of the sender.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the tag.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns the length of the message in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the operation was cancelled before a message was matched.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

/// A group of processes with fixed ranks and one communication context. A clone is another handle
/// to it. The thread mode of the job determines which threads may use it.
#[derive(Clone)]
pub struct World {
    pub(crate) shared: Arc<Shared>,
    pub(crate) context: u32,
    pub(crate) members: Arc<[Peer]>,
    rank: usize,
    /// The options of its collective operations.
    pub(crate) options: CallOptions,
    /// Members are slots 0, 1, 2, ...: rank and slot are the same number.
    is_plain: bool,
    numbering: Numbering,
    /// Frees the group with the last handle, if the world was derived from another.
    lease: Option<Arc<Lease>>,
}

impl World {
    pub(crate) fn new(shared: Arc<Shared>, context: u32, members: Arc<[Peer]>) -> Self {
        let own = Peer(shared.slot);
        let own_rank = members.iter().position(|&member| member == own);
        // A process that reused the slot of a dead member of the first world is not that member.
        let is_successor = context == WORLD_CONTEXT && shared.segment.rank_of(own.0).is_none();
        let rank = own_rank.filter(|_| !is_successor).unwrap_or(usize::MAX);
        let is_plain = members.iter().enumerate().all(|(rank, peer)| peer.0 as usize == rank);
        let options = CallOptions { is_checked: shared.is_checked, ..CallOptions::default() };
        let numbering = Numbering::Own;
        Self { shared, context, members, rank, options, is_plain, numbering, lease: None }
    }

    /// Creates a world that was derived from another; the lease frees it.
    pub(crate) fn leased(
        shared: Arc<Shared>,
        context: u32,
        members: Arc<[Peer]>,
        lease: Arc<Lease>,
    ) -> Self {
        Self { lease: Some(lease), ..Self::new(shared, context, members) }
    }

    /// Returns the rank of this process; `usize::MAX` if it is not a member.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Returns the members in the order of their ranks.
    pub fn peers(&self) -> &Arc<[Peer]> {
        &self.members
    }

    /// Returns a world of the same members with a context of its own, for a library built upon this
    /// world: its messages never match those of this world. Creating it needs no agreement and no
    /// memory. It supports messages only, no collective operations. All its members stand together:
    /// when one of them dies, or has left and is needed, all messages in it end with
    /// [`ErrorKind::PeerFailed`], which names that member, also those between the others. A member
    /// that gives up because of it leaves no other one waiting. Tags are below 2^31.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn inside(&self) -> Result<World> {
        let context = inside_of(self.context);
        let mut engine = self.shared.engine.enter()?;
        engine.endpoint.set_members_of(context, self.context, self.members.to_vec());
        engine.endpoint.make_joint(context);
        drop(engine);
        Ok(self.part(context, self.members.clone()).numbered(self.numbering))
    }

    /// A world of some of the members, for messages in one of this world's contexts. It keeps the
    /// group alive as this world does.
    pub(crate) fn part(&self, context: u32, members: Arc<[Peer]>) -> World {
        let part = Self::new(self.shared.clone(), context, members);
        Self { lease: self.lease.clone(), ..part }
    }

    /// Sends values. Returns when `values` may be changed again, which does not mean that they were
    /// received. A message that exceeds the receiver's credit waits until there is credit.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchRank`], [`ErrorKind::PeerFailed`], [`ErrorKind::PeerBroken`], [`ErrorKind::Revoked`],
    /// [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    #[inline(never)]
    pub fn send<T: Plain>(&self, values: &[T], to: usize, tag: impl Into<Tag>) -> Result<()> {
        // SAFETY: the request is over when the call returns; the values are borrowed until then.
        let buffer = unsafe { Buffer::of(values) };
        self.send_area(Area::contiguous(buffer), to, tag.into())
    }

    /// Sends `count` items of a layout, whose offset zero lies at the start of `values`.
    ///
    /// # Errors
    /// As [`World::send`], and [`ErrorKind::OutsideBuffer`].
    pub fn send_layout<T: Plain>(
        &self,
        values: &[T],
        layout: &Layout,
        count: u64,
        to: usize,
        tag: impl Into<Tag>,
    ) -> Result<()> {
        // SAFETY: the request is over when the call returns; the values are borrowed until then.
        let buffer = unsafe { Buffer::of(values) };
        let area = self.area(buffer, layout, count)?;
        self.send_area(area, to, tag.into())
    }

    pub(crate) fn area(&self, buffer: Buffer, layout: &Layout, count: u64) -> Result<Area> {
        Area::with_layout(buffer, 0, layout, count)
            .map_err(|failure| self.error(WaitError::Failure(failure), None))
    }

    #[inline]
    pub(crate) fn send_area(&self, area: Area, to: usize, tag: Tag) -> Result<()> {
        self.call("send", || {
            let peer = self.peer(to)?;
            self.shared
                .send(peer, self.context, tag.0, area)
                .map_err(|error| self.error(error, None))
        })
    }

    /// Sends values if this is possible without waiting; otherwise sends nothing and returns
    /// [`ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`], and as [`World::send`].
    pub fn try_send<T: Plain>(&self, values: &[T], to: usize, tag: impl Into<Tag>) -> Result<()> {
        self.call("send", || {
            let peer = self.peer(to)?;
            match self.shared.try_send(peer, self.context, tag.into().0, bytes_of(values)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(ErrorKind::WouldBlock.into()),
                Err(error) => Err(self.error(error, None)),
            }
        })
    }

    /// Waits for a message that consists of one value, and returns the value and the envelope.
    ///
    /// # Errors
    /// As [`World::receive_into`], and [`ErrorKind::WrongType`] when the message is no single value.
    pub fn receive<T: Plain>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<(T, Status)> {
        self.call("receive", || {
            let mut value = [zero()];
            let status = self.receive_into(&mut value, from, tag)?;
            if status.bytes != size_of::<T>() as u64 {
                let (message_bytes, value_bytes) = (status.bytes, size_of::<T>());
                return Err(ErrorKind::WrongType { message_bytes, value_bytes }.into());
            }
            Ok((value[0], status))
        })
    }

    /// Waits for a message and receives it into `values`. A shorter message changes only the first
    /// of them; the status returned gives its length.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`], [`ErrorKind::NoSuchRank`], [`ErrorKind::PeerFailed`] (for a receive from
    /// [`Any`]: once for each death, until it is acknowledged), [`ErrorKind::PeerBroken`],
    /// [`ErrorKind::Revoked`], [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    #[inline(never)]
    pub fn receive_into<T: Plain>(
        &self,
        values: &mut [T],
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Status> {
        // SAFETY: the request is over when the call returns; the values are borrowed until then.
        let buffer = unsafe { Buffer::of_mut(values) };
        self.receive_area(Area::contiguous(buffer), from.into(), tag.into(), None)
    }

    /// Receives as [`World::receive_into`] does, but waits for at most `time`. A message that has
    /// arrived only in part by then stays queued: the next matching receive gets all of it.
    /// `values` may have been changed.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]: nothing was lost. And as [`World::receive_into`].
    pub fn receive_into_within<T: Plain>(
        &self,
        values: &mut [T],
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
        time: Duration,
    ) -> Result<Status> {
        // SAFETY: the request is over when the call returns; the values are borrowed until then.
        let buffer = unsafe { Buffer::of_mut(values) };
        self.receive_area(Area::contiguous(buffer), from.into(), tag.into(), Some(time))
    }

    /// Waits for a message and receives it into `count` items of a layout, whose offset zero lies
    /// at the start of `values`.
    ///
    /// # Errors
    /// As [`World::receive_into`], and [`ErrorKind::OutsideBuffer`].
    pub fn receive_layout<T: Plain>(
        &self,
        values: &mut [T],
        layout: &Layout,
        count: u64,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Status> {
        // SAFETY: the request is over when the call returns; the values are borrowed until then.
        let buffer = unsafe { Buffer::of_mut(values) };
        let area = self.area(buffer, layout, count)?;
        self.receive_area(area, from.into(), tag.into(), None)
    }

    #[inline]
    pub(crate) fn receive_area(
        &self,
        area: Area,
        from: Source,
        tag: TagFilter,
        time: Option<Duration>,
    ) -> Result<Status> {
        self.call("receive", || {
            let wanted = self.wanted(from, tag)?;
            match self.shared.receive(wanted, area, deadline_ns(time)) {
                Ok(status) => Ok(self.status_of(&status)),
                Err(error) => Err(self.error(error, time)),
            }
        })
    }

    /// Returns the envelope of the message that a receive would match, or `None` if no such message
    /// has arrived. A sender that left the job in good order is not reported as a failure.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchRank`], [`ErrorKind::PeerFailed`], [`ErrorKind::Thread`].
    pub fn try_probe(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Option<Status>> {
        self.call("probe", || {
            let wanted = self.wanted(from.into(), tag.into())?;
            let found = self.try_find(wanted, |engine| engine.endpoint.probe(wanted))?;
            Ok(found.map(|status| self.status_of(&status)))
        })
    }

    /// Waits until a message arrives that a receive would match, and returns its envelope. The
    /// message stays queued.
    ///
    /// # Errors
    /// As [`World::receive_into`].
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<TagFilter>) -> Result<Status> {
        self.call("probe", || {
            let wanted = self.wanted(from.into(), tag.into())?;
            let status = self.find(wanted, |engine| engine.endpoint.probe(wanted))?;
            Ok(self.status_of(&status))
        })
    }

    /// Looks once for a message that is not received yet.
    pub(crate) fn try_find<T>(
        &self,
        wanted: Wanted,
        find: impl FnOnce(&mut Engine) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut engine = self.shared.engine.enter()?;
        engine.look();
        engine.endpoint.refresh();
        let found = find(&mut engine);
        let failure = match found {
            Some(_) => None,
            // A sender that left in good order sent no message, which is no failure.
            None => {
                engine.endpoint.failure_of_wanted(&wanted).filter(|failure| !failure.is_departure())
            }
        };
        drop(engine);
        match failure {
            Some(failure) => Err(self.error(WaitError::Failure(failure), None)),
            None => Ok(found),
        }
    }

    /// Waits for a message that is not received yet.
    pub(crate) fn find<T>(
        &self,
        wanted: Wanted,
        mut find: impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<T> {
        let record = WaitRecord {
            operation: Operation::Probe,
            peer: wanted.source,
            tag: wanted.tag,
            context: self.context,
            ..WaitRecord::default()
        };
        let found = self.shared.wait_until(&record, None, |engine| {
            // Departures are processed first: that delivers what the departed sent before.
            engine.endpoint.refresh();
            match find(engine) {
                Some(found) => Some(Ok(found)),
                None => engine.endpoint.failure_of_wanted(&wanted).map(Err),
            }
        });
        match found {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(failure)) => Err(self.error(WaitError::Failure(failure), None)),
            Err(error) => Err(self.error(error, None)),
        }
    }

    #[inline]
    pub(crate) fn peer(&self, rank: usize) -> Result<Peer> {
        match self.members.get(rank) {
            Some(&peer) => Ok(peer),
            None => Err(ErrorKind::NoSuchRank { rank, size: self.size() }.into()),
        }
    }

    #[inline]
    pub(crate) fn wanted(&self, from: Source, tag: TagFilter) -> Result<Wanted> {
        let source = match from.0 {
            Some(rank) => Some(self.peer(rank)?.0),
            None => None,
        };
        Ok(Wanted { context: self.context, source, tag: tag.0 })
    }

    pub(crate) fn rank_of(&self, peer: Peer) -> Option<usize> {
        if self.is_plain {
            return (self.members.len() > peer.0 as usize).then_some(peer.0 as usize);
        }
        self.members.iter().position(|&member| member == peer)
    }

    /// Waits for an operation, which is complete or given up afterwards.
    #[inline(always)]
    pub(crate) fn wait(&self, id: OperationId) -> Result<Status> {
        match self.shared.ended_well(id) {
            Some(status) => Ok(self.status_of(&status)),
            None => self.wait_long(id),
        }
    }

    #[inline(never)]
    fn wait_long(&self, id: OperationId) -> Result<Status> {
        match self.shared.wait_or_abandon(id, None) {
            Ok(completion) => self.status(&completion),
            Err(error) => Err(self.error(error, None)),
        }
    }

    /// Waits until this process has transferred everything that it sent.
    pub(crate) fn drain(&self) -> Result<()> {
        self.shared.drain(None).map_err(|error| self.error(error, None))
    }

    /// Waits as [`World::drain`] does, and says goodbye to the processes of other hosts.
    pub(crate) fn take_leave(&self) -> Result<()> {
        self.shared.take_leave().map_err(|error| self.error(error, None))
    }

    #[inline]
    pub(crate) fn status(&self, completion: &Completion) -> Result<Status> {
        match &completion.result {
            Ok(status) => Ok(self.status_of(status)),
            Err(failure) => Err(self.error(WaitError::Failure(failure.clone()), None)),
        }
    }

    #[inline]
    pub(crate) fn status_of(&self, status: &landeck_kernel::Status) -> Status {
        Status {
            rank: self.rank_of(status.peer).unwrap_or(usize::MAX),
            tag: Tag(status.tag),
            bytes: status.bytes,
            cancelled: status.cancelled,
        }
    }

    #[cold]
    pub(crate) fn error(&self, error: WaitError, time: Option<Duration>) -> Error {
        let error = Error::of_wait(&self.shared, error, time, self.names());
        if let (ErrorKind::PeerFailed { .. }, Some(lease)) = (&error.kind, &self.lease) {
            lease.tell_of_loss();
        }
        Error { rank: self.own_rank(), ..error }
    }

    /// The error that tells of the death of a member, if no operation of this world has told this process of one.
    pub(crate) fn untold_death(&self, rank: usize) -> Option<Error> {
        let has_told = self.lease.as_ref().is_some_and(|lease| lease.has_told_of_loss());
        let peer = *self.members.get(rank).filter(|_| !has_told)?;
        Some(self.error(WaitError::Failure(Failure::PeerGone { peer, died: true }), None))
    }

    /// Its members, as errors name them.
    pub(crate) fn names(&self) -> Members<'_> {
        Members::new(&self.members, self.numbering)
    }

    /// A handle to this world whose ranks mean something else to the program.
    pub(crate) fn numbered(self, numbering: Numbering) -> Self {
        Self { numbering, ..self }
    }

    /// Records in an error which call it comes from.
    #[cold]
    pub(crate) fn in_call(&self, call: &'static str, error: Error) -> Error {
        error.of_call(call, self.own_rank())
    }

    /// Runs the body of a call, and adds the call to its errors.
    #[inline(always)]
    pub(crate) fn call<T>(
        &self,
        name: &'static str,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        call().map_err(|error| self.in_call(name, error))
    }

    /// This process's rank, if it is a member.
    fn own_rank(&self) -> Option<usize> {
        (self.rank < self.size()).then_some(self.rank)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("World")
            .field("rank", &self.own_rank())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
