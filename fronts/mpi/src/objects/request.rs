//! Requests: operations that go on, of every kind.
//!
//! A request *waits for* one operation after the other ([`Request::waits_for`]); most have one. When
//! it waits for none any more it is over, and `completion` brings it to its end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landeck::World;
use landeck::raw;
use landeck_c_boundary::{HandleError, Table};

use crate::abi::{Handle, REQUEST_NULL, Status};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::buffer::Flush;
use crate::objects::communicator::{Communicator, Holder};
use crate::objects::completion::End;
use crate::objects::exchange::Exchange;
use crate::objects::generalized::Generalized;
use crate::objects::kind::Kind;
use crate::walk::Call;

/// The object behind a request handle.
#[derive(Debug)]
pub(crate) enum Request {
    /// A message that is sent or received.
    PointToPoint(RequestMessage),
    /// A message that is received while another is sent.
    Pair(Box<Pair>),
    /// A collective operation.
    Collective(Pending),
    /// Messages between neighbours.
    Exchange(Box<Exchange>),
    /// One that is started any number of times. Its handle stays when it is complete.
    Persistent(Arc<Persistent>),
    /// The program's own operation.
    Generalized(Arc<Generalized>),
    /// Messages that lie in a buffer of the program and leave it.
    Flush(Box<Flush>),
}

/// A message that goes on, or has come already. Its memory is described by the operation itself.
#[derive(Debug)]
pub(crate) struct RequestMessage {
    pub(crate) operation: raw::Operation,
    pub(crate) communicator: Holder,
}

/// An operation of the library that goes on, with what it needs until its end.
pub(crate) struct Pending {
    pub(crate) operation: raw::Operation,
    pub(crate) communicator: Arc<Communicator>,
    /// The remaining steps when the operation is over.
    pub(crate) rest: Mutex<Option<Rest>>,
}

/// The remaining steps between the end of a request's operation and that of the request. They are like those
/// of a [`Walk`](crate::walk::Walk), with calls of the program's functions between them.
pub(crate) type Rest = Box<dyn FnMut() -> Result<Option<Call>, Mistake> + Send + Sync>;

/// Two messages of one request. Its status is that of the one that is received.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) communicator: Arc<Communicator>,
    /// Nothing, for a message from MPI_PROC_NULL.
    pub(crate) receive: Option<raw::Operation>,
    pub(crate) send: raw::Operation,
}

/// An operation that is started any number of times.
pub(crate) struct Persistent {
    pub(crate) communicator: Arc<Communicator>,
    /// Whether it is a message: those may be cancelled.
    pub(crate) is_message: bool,
    /// Starts it once.
    pub(crate) begin: Box<dyn Fn() -> Result<Started, Mistake> + Send + Sync>,
    /// The operation since the last start.
    pub(crate) active: Mutex<Option<Started>>,
}

/// The result of a start.
#[derive(Debug)]
pub(crate) enum Started {
    /// It is over already.
    Complete(Status),
    Pending(Pending),
    Exchange(Exchange),
}

/// A request in the table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) request: Request,
    /// How it ended, if a call has looked at that without completing it.
    seen: Mutex<Option<Box<End>>>,
    is_seen: AtomicBool,
}

/// The event that a request waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitsFor {
    /// It is not started.
    Inactive,
    /// For nothing any more: it is over.
    Nothing,
    /// For this, perhaps not only.
    Operation(raw::Operation),
}

static TABLE: Table<Entry> = Table::new(Kind::Request as u8);

/// A send that was complete when it was started. It leads to no place of the table, as its
/// generation is 0.
pub(crate) const SENT: Handle = (Kind::Request as Handle) << 56 | 1;
/// A receive from MPI_PROC_NULL.
pub(crate) const OF_NOBODY: Handle = (Kind::Request as Handle) << 56 | 2;

/// Makes sure, before an operation begins, that there is room for its request.
#[inline(always)]
pub(crate) fn make_room() -> Result<(), Mistake> {
    Ok(TABLE.make_room()?)
}

/// Gives out the handle of a request.
#[inline(always)]
pub(crate) fn keep(request: Request) -> Handle {
    // SAFETY: the program has said that one thread calls; the place is filled at once.
    let vacant = if job::is_single() { unsafe { TABLE.vacant_alone() } } else { None };
    match vacant {
        Some(vacant) => vacant.fill(Entry::new(request)) as Handle,
        None => TABLE.insert(Entry::new(request)) as Handle,
    }
}

/// Gives out the handle of a message that is being sent.
#[inline]
pub(crate) fn keep_send(operation: raw::Operation, communicator: Holder) -> Handle {
    match operation {
        raw::Operation::Complete(_) => SENT,
        raw::Operation::Pending(_) => keep_receive(operation, communicator),
    }
}

/// Gives out the handle of a message that is being received: one that has come already has a status.
#[inline]
pub(crate) fn keep_receive(operation: raw::Operation, communicator: Holder) -> Handle {
    keep(Request::PointToPoint(RequestMessage { operation, communicator }))
}

/// The kind of a request handle that was looked up.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Null,
    /// Complete: this is its status, and the handle becomes null.
    Immediate(Status),
    /// In the table.
    Kept(&'static Entry),
}

/// The request of a handle; borrowed for the call.
#[inline(always)]
pub(crate) fn find(argument: &str, handle: Handle) -> Result<Found, Mistake> {
    job::check_joined()?;
    match handle {
        REQUEST_NULL => Ok(Found::Null),
        SENT => Ok(Found::Immediate(Status::empty())),
        OF_NOBODY => Ok(Found::Immediate(Status::of_nobody())),
        _ => get(argument, handle).map(Found::Kept),
    }
}

/// The request of a handle that is neither null nor over at once; borrowed for the call.
#[inline(always)]
pub(crate) fn get(argument: &str, handle: Handle) -> Result<&'static Entry, Mistake> {
    // SAFETY: a program completes a request in one call at a time.
    match unsafe { TABLE.get(handle as u64) } {
        Ok(Entry { request: Request::Generalized(own), .. }) if own.is_freed() => {
            Err(refuse(argument, handle, HandleError::Stale(handle as u64)))
        }
        Ok(entry) => Ok(entry),
        Err(error) => Err(refuse(argument, handle, error)),
    }
}

/// The program's own operation of a handle, also one that it has freed.
pub(crate) fn generalized(
    argument: &str,
    handle: Handle,
) -> Result<&'static Arc<Generalized>, Mistake> {
    // SAFETY: one that is freed stays until the program says that it is complete, in one call.
    match unsafe { TABLE.get(handle as u64) } {
        Ok(Entry { request: Request::Generalized(own), .. }) => Ok(own),
        Ok(_) => Err(wrong(argument, handle, "a generalized request that was started")),
        Err(error) => Err(refuse(argument, handle, error)),
    }
}

/// Takes a request out of the table: its handle is stale from now on.
#[inline]
pub(crate) fn take(argument: &str, handle: Handle) -> Result<Entry, Mistake> {
    TABLE.remove(handle as u64).map_err(|error| refuse(argument, handle, error))
}

/// Drops the request of a message of a predefined communicator, or of another, whose end nobody has
/// kept: its handle is stale from now on.
#[inline(always)]
pub(crate) fn discard_message(
    argument: &str,
    handle: Handle,
    communicator: &Holder,
) -> Result<(), Mistake> {
    if job::is_single() && matches!(communicator, Holder::Predefined(_)) {
        // SAFETY: the program has said that one thread calls; who discards a request is through. It
        // owns nothing: neither a communicator, nor an end.
        return unsafe { TABLE.forget_alone(handle as u64) }
            .map_err(|error| refuse(argument, handle, error));
    }
    discard(argument, handle)
}

/// Drops a request: its handle is stale from now on.
#[inline(always)]
pub(crate) fn discard(argument: &str, handle: Handle) -> Result<(), Mistake> {
    if job::is_single() {
        // SAFETY: the program has said that one thread calls; who discards a request is through.
        return unsafe { TABLE.discard_alone(handle as u64) }
            .map_err(|error| refuse(argument, handle, error));
    }
    take(argument, handle).map(drop)
}

#[cold]
fn refuse(argument: &str, handle: Handle, error: HandleError) -> Mistake {
    Kind::Request.refuse(argument, handle, error)
}

/// A request that is none of those that are wanted.
#[cold]
pub(crate) fn wrong(argument: &str, handle: Handle, wanted: &str) -> Mistake {
    let text = format!("{argument} is {handle:#x}, which is no such request; pass {wanted}");
    Mistake::new(crate::abi::ERR_REQUEST, text)
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}

impl RequestMessage {
    /// The world in which it goes on.
    #[inline]
    pub(crate) fn world(&self) -> &World {
        self.communicator.messages().0
    }
}

impl Pending {
    /// A message that goes on. Its memory is described by the operation itself.
    #[inline]
    pub(crate) fn message(operation: raw::Operation, communicator: &Arc<Communicator>) -> Self {
        let communicator = Arc::clone(communicator);
        Self { operation, communicator, rest: Mutex::new(None) }
    }

    /// The world in which it goes on.
    #[inline]
    pub(crate) fn world(&self) -> &World {
        self.communicator.messages().0
    }

    fn has_rest(&self) -> bool {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Persistent {
    /// The operation that has been started and not completed.
    pub(crate) fn active(&self) -> MutexGuard<'_, Option<Started>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    #[inline(always)]
    fn new(request: Request) -> Self {
        Self { request, seen: Mutex::new(None), is_seen: AtomicBool::new(false) }
    }

    /// Returns the event that it waits for at the moment.
    pub(crate) fn waits_for(&self) -> Result<WaitsFor, Mistake> {
        if self.is_seen() {
            return Ok(WaitsFor::Nothing);
        }
        self.request.waits_for()
    }

    /// Returns the event that it waits for when the operation that it waited for is over.
    pub(crate) fn waits_next(&self) -> Result<Option<raw::Operation>, Mistake> {
        if !self.request.has_several() {
            return Ok(None);
        }
        Ok(match self.waits_for()? {
            WaitsFor::Operation(operation) => Some(operation),
            WaitsFor::Inactive | WaitsFor::Nothing => None,
        })
    }

    /// Whether it is over, or was not started.
    #[inline]
    pub(crate) fn is_over(&self) -> Result<bool, Mistake> {
        match self.waits_for()? {
            WaitsFor::Inactive | WaitsFor::Nothing => Ok(true),
            WaitsFor::Operation(operation) => {
                Ok(raw::are_over(self.world(), &[Some(operation)])? && self.waits_next()?.is_none())
            }
        }
    }

    /// Whether something is left to do when its operation is over.
    pub(crate) fn has_rest(&self) -> bool {
        match &self.request {
            Request::Collective(pending) => pending.has_rest(),
            Request::Persistent(persistent) => match &*persistent.active() {
                Some(Started::Pending(pending)) => pending.has_rest(),
                _ => false,
            },
            _ => false,
        }
    }

    /// A world of this process, to wait in.
    pub(crate) fn world(&self) -> &World {
        match &self.request {
            Request::PointToPoint(message) => message.world(),
            Request::Collective(pending) => pending.world(),
            Request::Exchange(exchange) => exchange.world(),
            Request::Pair(pair) => pair.communicator.messages().0,
            Request::Persistent(persistent) => persistent.communicator.messages().0,
            Request::Generalized(own) => own.world(),
            Request::Flush(flush) => flush.world(),
        }
    }

    /// Whether its end is known.
    #[inline]
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Acquire)
    }

    /// Keeps its end for later calls that look at it or complete it.
    pub(crate) fn set_seen(&self, end: End) {
        *self.lock() = Some(Box::new(end));
        self.is_seen.store(true, Ordering::Release);
    }

    /// Its end, if that is known.
    pub(crate) fn seen(&self) -> Option<End> {
        self.lock().as_deref().cloned()
    }

    /// Its end, if that is known; it is complete then.
    #[inline]
    pub(crate) fn take_seen(&self) -> Option<End> {
        if !self.is_seen() {
            return None;
        }
        self.is_seen.store(false, Ordering::Release);
        self.lock().take().map(|end| *end)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<End>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Request {
    /// Whether it waits for one operation after the other.
    fn has_several(&self) -> bool {
        match self {
            Self::Pair(_) | Self::Flush(_) | Self::Exchange(_) => true,
            Self::Persistent(persistent) => {
                matches!(&*persistent.active(), Some(Started::Exchange(_)))
            }
            Self::PointToPoint(_) | Self::Collective(_) | Self::Generalized(_) => false,
        }
    }

    fn waits_for(&self) -> Result<WaitsFor, Mistake> {
        Ok(match self {
            Self::PointToPoint(message) => WaitsFor::Operation(message.operation),
            Self::Collective(pending) => WaitsFor::Operation(pending.operation),
            Self::Pair(pair) => first_going(
                pair.communicator.messages().0,
                [pair.receive, Some(pair.send)].into_iter().flatten(),
            )?,
            Self::Exchange(exchange) => exchange.waits_for()?,
            Self::Persistent(persistent) => match &*persistent.active() {
                None => WaitsFor::Inactive,
                Some(Started::Complete(_)) => WaitsFor::Nothing,
                Some(Started::Pending(pending)) => WaitsFor::Operation(pending.operation),
                Some(Started::Exchange(exchange)) => exchange.waits_for()?,
            },
            Self::Generalized(own) => WaitsFor::Operation(own.signal),
            Self::Flush(flush) => flush.waits_for()?,
        })
    }
}

/// The first of some operations that is not over.
pub(crate) fn first_going(
    world: &World,
    operations: impl Iterator<Item = raw::Operation>,
) -> Result<WaitsFor, Mistake> {
    for operation in operations {
        if !raw::are_over(world, &[Some(operation)])? {
            return Ok(WaitsFor::Operation(operation));
        }
    }
    Ok(WaitsFor::Nothing)
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pending")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Persistent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Persistent").field("active", &self.active).finish_non_exhaustive()
    }
}

/// Returns the status of a message as the program sees it.
#[inline]
pub(crate) fn status_of(status: &landeck::Status) -> Status {
    // Ranks and tags are not negative as C's integers: `arguments` refused those.
    Status::of_message(
        status.rank() as i32,
        status.tag().0 as i32,
        status.bytes(),
        status.is_cancelled(),
    )
}
