//! Requests: operations that go on, of every kind.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use landeck::raw;
use landeck_c_boundary::{HandleError, Table};

use crate::abi::{CancelFunction, FreeFunction, Handle, QueryFunction, REQUEST_NULL, Status};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::datatype::Datatype;
use crate::objects::kind::Kind;
use crate::walk::Call;

/// What a handle of a request leads to.
#[derive(Debug)]
pub(crate) enum Request {
    /// A message that is sent or received.
    PointToPoint(Pending),
    /// A collective operation.
    Collective(Pending),
    /// One that is started any number of times. Its handle stays when it is complete.
    Persistent(Arc<Persistent>),
    /// The program's own operation.
    Generalized(Arc<Generalized>),
}

/// An operation of the library that goes on, with what it needs until its end.
pub(crate) struct Pending {
    pub(crate) operation: raw::Operation,
    pub(crate) communicator: Arc<Communicator>,
    /// Kept until the end, should the program free them before.
    pub(crate) datatypes: [Option<Arc<Datatype>>; 2],
    /// What is left to do when the operation is over.
    pub(crate) rest: Option<Rest>,
}

/// What is left to do when the operation of a request is over, before the request is: steps as those
/// of a [`Walk`](crate::walk::Walk), with calls of the program's functions between them.
pub(crate) type Rest = Box<dyn FnMut() -> Result<Option<Call>, Mistake> + Send + Sync>;

/// An operation that is started any number of times.
pub(crate) struct Persistent {
    /// Starts it once.
    pub(crate) begin: Box<dyn Fn() -> Result<Started, Mistake> + Send + Sync>,
    /// What goes on since the last start.
    pub(crate) active: Mutex<Option<Started>>,
}

/// What a start has led to.
#[derive(Debug)]
pub(crate) enum Started {
    /// It is over already.
    Complete(Status),
    Pending(Pending),
}

/// An operation of the program.
#[derive(Debug)]
pub(crate) struct Generalized {
    /// Ended by MPI_Grequest_complete.
    pub(crate) signal: raw::Operation,
    pub(crate) query: Option<QueryFunction>,
    pub(crate) free: Option<FreeFunction>,
    pub(crate) cancel: Option<CancelFunction>,
    pub(crate) extra_state: usize,
}

static TABLE: Table<Request> = Table::new(Kind::Request as u8);

/// A send that was complete when it was started. It leads to no place of the table, as its
/// generation is 0.
pub(crate) const SENT: Handle = (Kind::Request as Handle) << 56 | 1;
/// A receive from nobody; as above.
pub(crate) const OF_NOBODY: Handle = (Kind::Request as Handle) << 56 | 2;

/// Gives out the handle of a request.
pub(crate) fn keep(request: Request) -> Handle {
    TABLE.insert(request) as Handle
}

/// Gives out the handle of a message that was started.
#[inline]
pub(crate) fn keep_message(
    operation: raw::Operation,
    communicator: &Arc<Communicator>,
    datatype: &Arc<Datatype>,
) -> Handle {
    match operation {
        // Receives always begin as pending, so this was a send.
        raw::Operation::Complete(_) => SENT,
        raw::Operation::Pending(_) => keep(Request::PointToPoint(Pending {
            operation,
            communicator: Arc::clone(communicator),
            datatypes: [(!datatype.is_dense).then(|| Arc::clone(datatype)), None],
            rest: None,
        })),
    }
}

/// What a handle is.
pub(crate) enum Found {
    /// Complete, or null: this is its status, and the handle becomes null.
    Immediate(Status),
    /// In the table.
    Kept(&'static Request),
}

/// The request of a handle; borrowed for the call.
#[inline]
pub(crate) fn find(argument: &str, handle: Handle) -> Result<Found, Mistake> {
    job::check_joined()?;
    match handle {
        REQUEST_NULL | SENT => Ok(Found::Immediate(Status::empty())),
        OF_NOBODY => Ok(Found::Immediate(Status::of_nobody())),
        // SAFETY: a program completes a request in one call at a time.
        _ => unsafe { TABLE.get(handle as u64) }
            .map(Found::Kept)
            .map_err(|e| refuse(argument, handle, e)),
    }
}

/// Takes a request out of the table: its handle is stale from now on.
#[inline]
pub(crate) fn take(argument: &str, handle: Handle) -> Result<Request, Mistake> {
    TABLE.remove(handle as u64).map_err(|error| refuse(argument, handle, error))
}

#[cold]
fn refuse(argument: &str, handle: Handle, error: HandleError) -> Mistake {
    Kind::Request.refuse(argument, handle, error)
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}

impl Pending {
    /// Waits until it is over.
    pub(crate) fn wait(self) -> Result<Status, Mistake> {
        let (world, _) = self.communicator.messages();
        match raw::wait(world, self.operation) {
            Ok(status) => Ok(status_of(&status)),
            Err(error) => Err(Mistake::from(error).on(&self.communicator)),
        }
    }

    /// Looks whether it is over. After a result it is no more.
    pub(crate) fn test(&self) -> Result<Option<Status>, Mistake> {
        let (world, _) = self.communicator.messages();
        match raw::test(world, self.operation) {
            Ok(status) => Ok(status.map(|status| status_of(&status))),
            Err(error) => Err(Mistake::from(error).on(&self.communicator)),
        }
    }
}

impl Persistent {
    /// What goes on since the last start; it is the caller's to complete.
    pub(crate) fn take_active(&self) -> Option<Started> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
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

/// What the program gets to know of a message.
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
