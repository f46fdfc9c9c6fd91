//! Outboxes: posting messages to a mailbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landeck_kernel::{Area, Completion, Failure, Peer, Started, Status};
use landeck_memory::plain::bytes_of;
use landeck_memory::{Buffer, Bytes, MarkView, Operation, WaitRecord};

use crate::error::{self, Error, ErrorKind, MailboxError, Members, Result};
use crate::message::mailbox_address::MailboxAddress;
use crate::message::typed::Typed;
use crate::message::{Message, tag_of_values};
use crate::modes::{Attempt, urgent_bytes};
use crate::peers::{far_failure, far_owner};
use crate::store::{self, Store};
use landeck_engine::{Engine, OperationId, Shared, WaitError, deadline_ns};

/// A handle through which any process posts to a mailbox. A clone is another handle to the same
/// mailbox. The thread mode of the job determines which threads may use it.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
    address: MailboxAddress,
    to: Peer,
    /// `None` for a mailbox on another host, whose mark this process cannot read.
    mark: Option<Arc<MarkView>>,
    /// Whether the process of a far mailbox has said that the mailbox is gone.
    was_told_gone: Arc<AtomicBool>,
    /// Where the data of long messages wait; `None` for the wish of the job.
    store: Option<Store>,
}

/// The state of a posted message at which the call that posted it returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Sent,
    Retrieved,
}

/// The outcome of an attempt to post: an error without a failure means that the mailbox is gone.
type Posted = std::result::Result<(), Option<Failure>>;

/// The outcome of a wait for a posted message.
enum Ended {
    Well,
    Badly(WaitError),
    Closed,
}

impl Outbox {
    pub(crate) fn open(shared: &Arc<Shared>, address: MailboxAddress) -> Result<Self> {
        let process = address.process();
        if process.segment.0 != shared.segment.plan().host {
            let to = far_owner(&shared.segment, process)?;
            let (shared, was_told_gone) = (shared.clone(), Arc::default());
            let store =
                address.store.filter(|store| store::checked(&shared.segment, *store).is_ok());
            let outbox = Self { shared, address, to, mark: None, was_told_gone, store };
            let is_told = outbox.is_told_gone(&*outbox.shared.engine.enter()?);
            return match is_told || outbox.shared.segment.peer_record(to.0).state.is_gone() {
                true => Err(outbox.gone()),
                false => Ok(outbox),
            };
        }
        let (slot, number) = (process.slot.0, address.mark_number());
        let mark = MarkView::of(&shared.segment, slot, address.place(), number);
        let mark = Some(Arc::new(mark.ok_or(MailboxError::NoAddress)?));
        let (shared, was_told_gone) = (shared.clone(), Arc::default());
        let (to, store) = (Peer(slot), None);
        let outbox = Self { shared, address, to, mark, was_told_gone, store };
        match outbox.is_there() {
            true => Ok(outbox),
            false => Err(outbox.gone()),
        }
    }

    /// Returns the address of the mailbox.
    pub fn address(&self) -> MailboxAddress {
        self.address
    }

    /// Returns a handle to the same mailbox through which the data of long messages wait in another place. A single post is
    /// `outbox.storing(store)?.post(&message)`. Without it, the mailbox says so ([`Mailbox::set_store`](super::Mailbox::set_store)),
    /// or the job. The address of the handle passes the wish on.
    ///
    /// # Errors
    /// [`ErrorKind::NoStore`].
    pub fn storing(&self, store: Store) -> Result<Self> {
        let store = Some(store::checked(&self.shared.segment, store)?);
        let address = MailboxAddress { store, ..self.address };
        Ok(Self { store, address, ..self.clone() })
    }

    /// Posts a message. Returns when the message may be changed again. A message of more than 256
    /// KiB (8 MiB on one host with more processes than processors) waits until the owner retrieves
    /// it: if the mailbox belongs to this thread, post such a message from another thread.
    ///
    /// A short message to another host does not wait for an answer. If no mailbox is there, the
    /// owner's process says so, and every post after that answer fails.
    ///
    /// # Errors
    /// [`MailboxError::Gone`], [`MailboxError::GoneElsewhere`], [`ErrorKind::PeerFailed`] when the
    /// owner has left or died, [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    #[inline]
    pub fn post(&self, message: &Message) -> Result<()> {
        match message.outgoing_piece() {
            Some((tag, bytes)) => self.post_bytes(tag, bytes, Until::Sent),
            None => self.post_message(message, Until::Sent),
        }
    }

    /// Posts a message, waiting for at most `time`; after [`ErrorKind::TimedOut`] nothing was
    /// posted. It waits until the whole message fits in this process's heap, not until it is
    /// retrieved.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], and as [`Outbox::post`].
    pub fn post_within(&self, message: &Message, time: Duration) -> Result<()> {
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch)?;
        if !self.is_there() {
            return Err(self.gone());
        }
        self.post_until(Some(time), |engine| self.send_whole(engine, tag, bytes))
    }

    /// Posts a message and waits until the owner retrieves it.
    ///
    /// # Errors
    /// As [`Outbox::post`].
    pub fn post_and_wait(&self, message: &Message) -> Result<()> {
        self.post_message(message, Until::Retrieved)
    }

    /// Posts a message if this is possible without waiting; otherwise posts nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`], and as [`Outbox::post`].
    pub fn try_post(&self, message: &Message) -> Result<()> {
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch)?;
        self.try_post_bytes(tag, bytes)
    }

    /// Posts a message that consists of these values.
    ///
    /// # Errors
    /// As [`Outbox::post`].
    #[inline]
    pub fn post_values<T: Typed>(&self, values: &[T]) -> Result<()> {
        let bytes = Bytes::from(bytes_of(values));
        self.post_bytes(tag_of_values::<T>(), bytes, Until::Sent)
    }

    /// Posts a message that consists of these values if this is possible without waiting; otherwise
    /// posts nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`], and as [`Outbox::post`].
    pub fn try_post_values<T: Typed>(&self, values: &[T]) -> Result<()> {
        self.try_post_bytes(tag_of_values::<T>(), Bytes::from(bytes_of(values)))
    }

    /// Posts an urgent message of at most 48 bytes of values. It overtakes all messages in flight,
    /// from this process or to the mailbox, and has no order with other messages.
    ///
    /// # Errors
    /// [`ErrorKind::UrgentTooLong`], and as [`Outbox::post`].
    pub fn post_urgent<T: Typed>(&self, values: &[T]) -> Result<()> {
        self.post_urgent_until(values, None)
    }

    /// Posts an urgent message as [`Outbox::post_urgent`] does, waiting for room for at most
    /// `time`. The owner holds up to 256 KiB of urgent messages that it has not retrieved, and the
    /// queue of its process a few more. Between two processes on different hosts up to 1,024 are on
    /// their way beside these, and a few on the relay.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], when nothing was posted; and as [`Outbox::post_urgent`].
    pub fn post_urgent_within<T: Typed>(&self, values: &[T], time: Duration) -> Result<()> {
        self.post_urgent_until(values, Some(time))
    }

    /// Posts an urgent message if there is room without waiting; otherwise posts nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`], when nothing was posted; and as [`Outbox::post_urgent`].
    pub fn try_post_urgent<T: Typed>(&self, values: &[T]) -> Result<()> {
        let bytes = urgent_bytes(values)?;
        if !self.is_there() {
            return Err(self.gone());
        }
        let mut engine = self.shared.engine.enter()?;
        engine.progress();
        let sent = self.send_urgent(&mut engine, tag_of_values::<T>(), bytes);
        drop(engine);
        sent.map_or(Err(ErrorKind::WouldBlock.into()), |sent| self.posted(sent))
    }

    fn post_urgent_until<T: Typed>(&self, values: &[T], time: Option<Duration>) -> Result<()> {
        let bytes = urgent_bytes(values)?;
        if !self.is_there() {
            return Err(self.gone());
        }
        self.post_until(time, |engine| self.send_urgent(engine, tag_of_values::<T>(), bytes))
    }

    /// Tries to post until the attempt succeeds, fails or times out.
    fn post_until(
        &self,
        time: Option<Duration>,
        mut send: impl FnMut(&mut Engine) -> Option<Posted>,
    ) -> Result<()> {
        error::call(&self.shared, "post", || {
            let at_once = send(&mut *self.shared.engine.enter()?);
            let (operation, peer, context) =
                (Operation::Send, Some(self.peer().0), self.address.context());
            let record = WaitRecord { operation, peer, context, ..WaitRecord::default() };
            let sent = match at_once {
                Some(sent) => Ok(sent),
                None => self.shared.wait_until(&record, deadline_ns(time), send),
            };
            self.posted(sent.map_err(|error| self.error(error, time))?)
        })
    }

    /// Sends an urgent message, if there is room.
    fn send_urgent(&self, engine: &mut Engine, tag: u32, bytes: &[u8]) -> Option<Posted> {
        if self.is_told_gone(engine) {
            return Some(Err(None));
        }
        let context = self.address.context();
        self.tried(engine.endpoint.try_send_urgent(self.peer(), context, tag, Bytes::from(bytes)))
    }

    /// Sends a whole message, if there is room for it.
    fn send_whole(&self, engine: &mut Engine, tag: u32, bytes: Bytes<'_>) -> Option<Posted> {
        engine.endpoint.refresh();
        if self.is_told_gone(engine) {
            return Some(Err(None));
        }
        let context = self.address.context();
        self.tried(engine.try_send(self.peer(), context, tag, (bytes, self.store)))
    }

    fn tried(&self, sent: std::result::Result<bool, Failure>) -> Option<Posted> {
        match sent.transpose_true() {
            None if !self.is_there() => Some(Err(None)),
            attempt => attempt.map(|sent| sent.map_err(Some)),
        }
    }

    fn posted(&self, sent: Posted) -> Result<()> {
        match sent {
            Ok(()) => Ok(()),
            Err(None) => Err(self.gone()),
            Err(Some(failure)) => Err(self.error(WaitError::Failure(failure), None)),
        }
    }

    fn post_message(&self, message: &Message, until: Until) -> Result<()> {
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch)?;
        self.post_bytes(tag, bytes, until)
    }

    /// Posts bytes; returns when nothing reads them any more.
    #[inline]
    fn post_bytes(&self, tag: u32, bytes: Bytes<'_>, until: Until) -> Result<()> {
        error::call(&self.shared, "post", || {
            if !self.is_there() {
                return Err(self.gone());
            }
            // SAFETY: `finish` returns when the request has ended or was abandoned, whatever happens.
            let area = Area::contiguous(unsafe { Buffer::new(bytes.start(), bytes.len()) });
            let (to, context) = (self.peer(), self.address.context());
            let mut engine = self.shared.engine.enter()?;
            if self.is_far() {
                engine.progress(); // the answer to an earlier post may be there
                if self.is_told_gone(&engine) {
                    drop(engine);
                    return Err(self.gone());
                }
            }
            let started = match until {
                Until::Sent => match self.store {
                    Some(store) => engine.endpoint.send_stored(to, context, tag, (area, store)),
                    None => engine.endpoint.send(to, context, tag, area),
                },
                Until::Retrieved => engine.endpoint.send_synchronous(to, context, tag, area),
            };
            drop(engine);
            match started {
                Ok(Started::Complete(_)) => Ok(()),
                Ok(Started::Pending(id)) => self.finish(id.into()),
                Err(failure) => Err(self.error(WaitError::Failure(failure), None)),
            }
        })
    }

    fn try_post_bytes(&self, tag: u32, bytes: Bytes<'_>) -> Result<()> {
        error::call(&self.shared, "post", || {
            if !self.is_there() {
                return Err(self.gone());
            }
            let mut engine = self.shared.engine.enter()?;
            engine.progress();
            if self.is_told_gone(&engine) {
                drop(engine);
                return Err(self.gone());
            }
            let context = self.address.context();
            let sent = engine.try_send(self.peer(), context, tag, (bytes, self.store));
            drop(engine);
            match sent {
                Ok(true) => Ok(()),
                Ok(false) => Err(ErrorKind::WouldBlock.into()),
                Err(failure) => Err(self.error(WaitError::Failure(failure), None)),
            }
        })
    }

    /// Waits until a posted message no longer needs its memory. The request is complete or given up
    /// afterwards.
    fn finish(&self, id: OperationId) -> Result<()> {
        let record = self.shared.engine.enter()?.wait_record(id);
        let error = match self.shared.wait_until(&record, None, |engine| self.look(engine, id)) {
            Ok(Ended::Well) => return Ok(()),
            Ok(Ended::Badly(error)) => return Err(self.error(error, None)),
            Ok(Ended::Closed) => self.gone(),
            Err(error) => self.error(error, None),
        };
        self.shared.engine.enter()?.abandon(id);
        Err(error)
    }

    fn look(&self, engine: &mut Engine, id: OperationId) -> Option<Ended> {
        engine.endpoint.refresh();
        self.is_told_gone(engine);
        match engine.take(id) {
            // Its host has returned the message: no mailbox was there to take it.
            Some(Ok(Completion { result: Ok(Status { cancelled: true, .. }), .. })) => {
                Some(Ended::Closed)
            }
            Some(Ok(_)) => Some(Ended::Well),
            Some(Err(error)) => Some(Ended::Badly(error)),
            None => (!self.is_there()).then_some(Ended::Closed),
        }
    }

    fn peer(&self) -> Peer {
        self.to
    }

    /// Whether the mailbox exists, as far as this host knows.
    #[inline]
    fn is_there(&self) -> bool {
        match &self.mark {
            Some(mark) => mark.is_set(),
            None => !self.was_told_gone.load(Ordering::Relaxed),
        }
    }

    /// Whether the process of a far mailbox has said that the mailbox is gone.
    fn is_told_gone(&self, engine: &Engine) -> bool {
        let is_told =
            self.is_far() && engine.endpoint.is_mailbox_gone(self.to, self.address.context());
        if is_told {
            self.was_told_gone.store(true, Ordering::Relaxed);
        }
        is_told
    }

    fn is_far(&self) -> bool {
        self.mark.is_none()
    }

    /// The error for a mailbox that is gone: its owner has dropped it, has left or has died.
    #[cold]
    fn gone(&self) -> Error {
        let owner = self.address.process();
        let segment = &self.shared.segment;
        if self.is_far() {
            if let Some(gone) = far_failure(segment, self.to) {
                return gone.into();
            }
            let record = segment.far_record(self.to.0 - segment.plan().slots());
            let host = segment.host_in_words(record.host_number);
            let who = Members::OF_JOB.process(self.to, segment);
            return MailboxError::GoneElsewhere { who, host }.into();
        }
        let record = segment.slot_record(owner.slot.0);
        if record.incarnation == owner.incarnation.0 && !record.state.is_gone() {
            return MailboxError::Gone { who: Members::OF_JOB.process(self.to, segment) }.into();
        }
        ErrorKind::process_gone(segment, owner, self.to).into()
    }

    #[cold]
    fn error(&self, error: WaitError, time: Option<Duration>) -> Error {
        let error = Error::of_wait(&self.shared, error, time, Members::OF_JOB);
        error::in_call(&self.shared, "post", error)
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outbox").field("address", &self.address).finish_non_exhaustive()
    }
}
