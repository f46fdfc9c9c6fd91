//! Send modes, urgent messages, matched probes, and persistent sends and receives.

use landeck_kernel::{Area, Completion, Peer, RequestId, Started, URGENT_BYTES_MAX};
use landeck_memory::plain::{Plain, bytes_of, zero};
use landeck_memory::{Buffer, Bytes, Operation, WaitRecord, room};
use landeck_wire::Tag;

use crate::error::{Error, ErrorKind, Result};
use crate::loan::Loan;
use crate::world::{Source, Status, TagFilter, World};
use landeck_engine::{Engine, OperationId, WaitError};

/// The mode of a send, which determines when it is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendMode {
    /// The send is complete when its values may be changed again.
    #[default]
    Standard,
    /// The send is complete when its values may be changed again and its receive has begun.
    Synchronous,
    /// The send is complete as in [`SendMode::Standard`]; the program guarantees that its receive
    /// has begun.
    Ready,
    /// The send is complete at once: the values are copied to this process's heap, and sent from
    /// there when there is room.
    Buffered,
}

/// A message that was matched and removed from the queue: only the holder of this value receives
/// it. Dropping it discards the message.
pub struct Held {
    world: World,
    id: RequestId,
    status: Status,
}

impl World {
    /// Sends values in the given mode; returns when the send is complete in that mode.
    ///
    /// # Errors
    /// As [`World::send`]; in mode buffered, [`ErrorKind::Heap`] when there is no room for the copy.
    pub fn send_in<T: Plain>(
        &self,
        mode: SendMode,
        values: &[T],
        to: usize,
        tag: impl Into<Tag>,
    ) -> Result<()> {
        self.call("send", || {
            let tag = tag.into();
            match mode {
                SendMode::Standard | SendMode::Ready => self.send(values, to, tag),
                SendMode::Synchronous => self.send_synchronous(values, to, tag),
                SendMode::Buffered => self.send_buffered(values, to, tag),
            }
        })
    }

    fn send_synchronous<T: Plain>(&self, values: &[T], to: usize, tag: Tag) -> Result<()> {
        let peer = self.peer(to)?;
        // SAFETY: `finish` ends the request; the values are borrowed until then.
        let area = Area::contiguous(unsafe { Buffer::of(values) });
        let started =
            self.shared.engine.enter()?.endpoint.send_synchronous(peer, self.context, tag.0, area);
        self.finish(started)
    }

    fn send_buffered<T: Plain>(&self, values: &[T], to: usize, tag: Tag) -> Result<()> {
        let peer = self.peer(to)?;
        let bytes = bytes_of(values);
        let mut engine = self.shared.engine.enter()?;
        // The channel itself copies short messages, if it has room.
        match engine.try_send(peer, self.context, tag.0, (Bytes::from(bytes), None)) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(failure) => {
                drop(engine);
                return Err(self.error(WaitError::Failure(failure), None));
            }
        }
        let mut block = engine.endpoint.allocate(bytes.len())?;
        block.copy_from_slice(bytes);
        match engine.endpoint.send_loan(peer, self.context, tag.0, block) {
            Ok(Started::Complete(_)) => Ok(()),
            Ok(Started::Pending(id)) => {
                engine.release(id.into());
                drop(engine);
                self.shared.goes_on();
                Ok(())
            }
            Err(failure) => {
                drop(engine);
                Err(self.error(WaitError::Failure(failure), None))
            }
        }
    }

    fn finish(&self, started: std::result::Result<Started, landeck_kernel::Failure>) -> Result<()> {
        let finished = match started {
            Ok(Started::Complete(_)) => Ok(()),
            Ok(Started::Pending(id)) => self.shared.wait_or_abandon(id.into(), None).map(drop),
            Err(failure) => Err(WaitError::Failure(failure)),
        };
        finished.map_err(|error| self.error(error, None))
    }

    /// Sends an urgent message of at most 48 bytes of values, which overtakes messages in flight:
    /// for data that must not wait behind bulk data. It has no order with other messages, urgent
    /// ones included.
    ///
    /// To another host it takes the lane of the two processes while little waits there, and else
    /// the relay of the receiver's host. So it ends without the receiver's call. Up to 1,024 urgent
    /// messages of a lane, and some on the relay, may wait for a receiver that does not call; then
    /// this waits. With `--path lane` an urgent message waits like any other.
    ///
    /// # Errors
    /// [`ErrorKind::UrgentTooLong`], and as [`World::send`].
    pub fn send_urgent<T: Plain>(
        &self,
        values: &[T],
        to: usize,
        tag: impl Into<Tag>,
    ) -> Result<()> {
        self.call("send_urgent", || {
            let tag = tag.into();
            let peer = self.peer(to)?;
            let bytes = urgent_bytes(values)?;
            let record = WaitRecord {
                operation: Operation::Send,
                peer: Some(peer.0),
                tag: Some(tag.0),
                context: self.context,
                bytes: bytes.len() as u64,
                ..WaitRecord::default()
            };
            let (context, tag) = (self.context, tag.0);
            let send = |engine: &mut Engine| {
                let sent = engine.endpoint.try_send_urgent(peer, context, tag, Bytes::from(bytes));
                sent.transpose_true()
            };
            let at_once = send(&mut *self.shared.engine.enter()?);
            let sent = match at_once {
                Some(sent) => Ok(sent),
                None => self.shared.wait_until(&record, None, send),
            };
            let failed = |error| self.error(error, None);
            sent.map_err(failed)?.map_err(|failure| failed(WaitError::Failure(failure)))
        })
    }

    /// Sends a loan to at most 31 processes at once, which read it in place. Its memory is free
    /// again when the last of them has dropped it or has died. Processes on other hosts get copies.
    ///
    /// # Errors
    /// As [`World::send`], and [`ErrorKind::Lend`] for too many receivers. Receivers that were sent
    /// the loan before an error have it.
    pub fn send_loan_to<T: Plain>(
        &self,
        loan: Loan<T>,
        to: &[usize],
        tag: impl Into<Tag>,
    ) -> Result<()> {
        self.call("send", || {
            let tag = tag.into();
            let is_near = |peer: Peer| peer.0 < self.shared.segment.plan().slots();
            let mut peers = Vec::new();
            for &rank in to {
                match self.peer(rank)? {
                    peer if is_near(peer) => peers.push(peer),
                    _ => self.send_copy(&loan, rank, tag)?,
                }
            }
            let lent =
                self.shared.engine.enter()?.endpoint.lend(loan.into_block(), &peers, self.context);
            let lent = lent.map_err(|failure| self.error(WaitError::Failure(failure), None))??;
            let (context, record) = (self.context, WaitRecord::default());
            let mut result = Ok(());
            for (reader, peer) in peers.into_iter().enumerate() {
                let record =
                    WaitRecord { operation: Operation::Send, peer: Some(peer.0), ..record };
                let told = self.shared.wait_until(&record, None, |engine| {
                    let endpoint = &mut engine.endpoint;
                    endpoint
                        .try_tell_of_loan(&lent, (reader, peer), context, tag.0)
                        .transpose_true()
                });
                let told = told.map_err(|error| self.error(error, None)).and_then(|told| {
                    told.map_err(|failure| self.error(WaitError::Failure(failure), None))
                });
                if let (Ok(()), Err(error)) = (&result, told) {
                    result = Err(error);
                }
            }
            result
        })
    }

    /// Sends a copy of a loan, without waiting for the receiver as far as there is memory for that.
    fn send_copy<T: Plain>(&self, values: &[T], to: usize, tag: Tag) -> Result<()> {
        match self.send_buffered(values, to, tag) {
            Err(Error { kind: ErrorKind::Heap(_), .. }) => self.send(values, to, tag),
            sent => sent,
        }
    }

    /// Matches and removes the message that a receive would get; returns `None` if no such message
    /// has arrived.
    ///
    /// # Errors
    /// As [`World::try_probe`].
    pub fn try_hold(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Option<Held>> {
        self.call("hold", || {
            let wanted = self.wanted(from.into(), tag.into())?;
            let found = self.try_find(wanted, |engine| engine.endpoint.hold(wanted))?;
            Ok(found.map(|(id, status)| self.held(id, &status)))
        })
    }

    /// Waits for a message, matches it and removes it, so that no receive of another thread gets
    /// it.
    ///
    /// # Errors
    /// As [`World::probe`].
    pub fn hold(&self, from: impl Into<Source>, tag: impl Into<TagFilter>) -> Result<Held> {
        self.call("hold", || {
            let wanted = self.wanted(from.into(), tag.into())?;
            let (id, status) =
                self.find(wanted, |engine: &mut Engine| engine.endpoint.hold(wanted))?;
            Ok(self.held(id, &status))
        })
    }

    fn held(&self, id: RequestId, status: &landeck_kernel::Status) -> Held {
        Held { world: self.clone(), id, status: self.status_of(status) }
    }
}

/// The bytes of values, if they are short enough for an urgent message.
pub(crate) fn urgent_bytes<T: Plain>(values: &[T]) -> Result<&[u8]> {
    let bytes = bytes_of(values);
    match bytes.len() {
        0..=URGENT_BYTES_MAX => Ok(bytes),
        more => Err(ErrorKind::UrgentTooLong { bytes: more, most: URGENT_BYTES_MAX }.into()),
    }
}

/// The outcome of an attempt, if it was decisive.
pub(crate) trait Attempt {
    /// Returns the outcome; `None` if the attempt must be repeated.
    fn transpose_true(self) -> Option<std::result::Result<(), landeck_kernel::Failure>>;
}

impl Attempt for std::result::Result<bool, landeck_kernel::Failure> {
    fn transpose_true(self) -> Option<std::result::Result<(), landeck_kernel::Failure>> {
        match self {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(failure) => Some(Err(failure)),
        }
    }
}

impl Held {
    /// Returns the envelope of the message.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Receives the message into `values`. A shorter message changes only the first of them.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`], [`ErrorKind::PeerFailed`] when the sender died in the middle of
    /// the message, [`ErrorKind::PeerBroken`], [`ErrorKind::Thread`].
    pub fn receive_into<T: Plain>(self, values: &mut [T]) -> Result<Status> {
        self.world.call("receive", || {
            // SAFETY: the wait below ends the request; the values are borrowed until then.
            let area = Area::contiguous(unsafe { Buffer::of_mut(values) });
            let is_there = self.world.shared.engine.enter()?.endpoint.receive_held(self.id, area);
            if !is_there {
                return Err(ErrorKind::RequestGone.into());
            }
            let completion = self.world.shared.wait_or_abandon(self.id.into(), None);
            self.world.status(&completion.map_err(|error| self.world.error(error, None))?)
        })
    }

    /// Receives the whole message as a vector.
    ///
    /// # Errors
    /// As [`Held::receive_into`], [`ErrorKind::WrongType`], and [`ErrorKind::NoMemory`]; then the message is lost.
    pub fn receive_vec<T: Plain>(self) -> Result<Vec<T>> {
        let (message_bytes, value_bytes) = (self.status.bytes(), size_of::<T>().max(1));
        if message_bytes % value_bytes as u64 != 0 {
            return Err(ErrorKind::WrongType { message_bytes, value_bytes }.into());
        }
        let mut values = room::zeroes(message_bytes as usize / value_bytes)?;
        self.receive_into(&mut values)?;
        Ok(values)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(mut engine) = self.world.shared.engine.enter() {
            engine.abandon(self.id.into());
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Held").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A persistent send or receive: prepared once, started any number of times. It owns its values,
/// and access to them waits until it is complete.
pub struct Repeated<T: Plain> {
    world: World,
    values: Vec<T>,
    what: What,
    going: Option<OperationId>,
    last: Option<Status>,
}

#[derive(Clone, Copy)]
enum What {
    Send { mode: SendMode, to: usize, tag: Tag },
    Receive { from: Source, tag: TagFilter },
}

impl<T: Plain> Repeated<T> {
    /// Prepares a send of these values in the given mode.
    pub fn send(
        world: &World,
        mode: SendMode,
        values: Vec<T>,
        to: usize,
        tag: impl Into<Tag>,
    ) -> Self {
        Self::new(world, values, What::Send { mode, to, tag: tag.into() })
    }

    /// Prepares a receive of at most `values` values.
    pub fn receive(
        world: &World,
        values: usize,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Self {
        let what = What::Receive { from: from.into(), tag: tag.into() };
        Self::new(world, vec![zero(); values], what)
    }

    fn new(world: &World, values: Vec<T>, what: What) -> Self {
        Self { world: world.clone(), values, what, going: None, last: None }
    }

    /// The name of the call in errors.
    fn name(&self) -> &'static str {
        match self.what {
            What::Send { .. } => "send",
            What::Receive { .. } => "receive",
        }
    }

    /// Starts the operation, after waiting until its last run is complete.
    ///
    /// # Errors
    /// As [`World::send_in`] and [`World::receive_into`], for this run or the last one.
    pub fn start(&mut self) -> Result<()> {
        self.wait()?;
        self.begin().map_err(|error| self.world.in_call(self.name(), error))
    }

    fn begin(&mut self) -> Result<()> {
        // SAFETY: the memory is this operation's own: nobody gets at it before the operation is
        // over, and it goes only after that, or never.
        let buffer = unsafe { Buffer::of_mut(&mut self.values) };
        let (area, world) = (Area::contiguous(buffer), &self.world);
        let started = match self.what {
            What::Receive { from, tag } => {
                let wanted = world.wanted(from, tag)?;
                Ok(world.shared.begin_receive(wanted, area)?)
            }
            What::Send { mode: SendMode::Buffered, to, tag } => {
                return world.send_buffered(&self.values, to, tag);
            }
            What::Send { mode, to, tag } => {
                let peer = world.peer(to)?;
                let mut engine = world.shared.engine.enter()?;
                match mode {
                    SendMode::Synchronous => {
                        engine.endpoint.send_synchronous(peer, world.context, tag.0, area)
                    }
                    _ => engine.endpoint.send(peer, world.context, tag.0, area),
                }
            }
        };
        match started {
            Ok(Started::Complete(status)) => self.last = Some(world.status_of(&status)),
            Ok(Started::Pending(id)) => {
                self.going = Some(id.into());
                world.shared.goes_on();
            }
            Err(failure) => return Err(world.error(WaitError::Failure(failure), None)),
        }
        Ok(())
    }

    /// Makes progress, and returns whether the operation is complete or was not started.
    ///
    /// # Errors
    /// As [`Repeated::start`].
    pub fn test(&mut self) -> Result<bool> {
        let Some(id) = self.going else { return Ok(true) };
        let Some(ended) = self.world.shared.test(id).transpose() else { return Ok(false) };
        self.going = None;
        self.end(ended).map(|()| true)
    }

    /// Waits until the operation is complete; returns at once if it was not started.
    ///
    /// # Errors
    /// As [`Repeated::start`].
    pub fn wait(&mut self) -> Result<()> {
        let Some(id) = self.going.take() else { return Ok(()) };
        let ended = self.world.shared.wait_or_abandon(id, None);
        self.end(ended)
    }

    /// Keeps the envelope of the message of the completed operation.
    fn end(&mut self, ended: std::result::Result<Completion, WaitError>) -> Result<()> {
        let world = self.world.clone();
        world.call(self.name(), || {
            let completion = ended.map_err(|error| world.error(error, None))?;
            self.last = Some(world.status(&completion)?);
            Ok(())
        })
    }

    /// Returns the envelope of the message of the last complete run; `None` before the first.
    pub fn status(&self) -> Option<Status> {
        self.last
    }

    /// Returns the values, after waiting until the operation is complete.
    ///
    /// # Errors
    /// As [`Repeated::start`].
    pub fn values(&mut self) -> Result<&[T]> {
        self.wait()?;
        Ok(&self.values)
    }

    /// Returns the values for changes, after waiting until the operation is complete.
    ///
    /// # Errors
    /// As [`Repeated::start`].
    pub fn values_mut(&mut self) -> Result<&mut [T]> {
        self.wait()?;
        Ok(&mut self.values)
    }
}

impl<T: Plain> Drop for Repeated<T> {
    fn drop(&mut self) {
        let Some(id) = self.going.take() else { return };
        match self.world.shared.engine.enter() {
            Ok(mut engine) => engine.abandon(id),
            // The operation cannot be given up from here: its memory stays for good.
            Err(_) => std::mem::forget(std::mem::take(&mut self.values)),
        }
    }
}

impl<T: Plain> std::fmt::Debug for Repeated<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Repeated").field("goes_on", &self.going.is_some()).finish()
    }
}
