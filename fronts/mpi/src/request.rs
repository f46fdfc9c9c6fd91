//! The requests that the program holds: operations that go on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use landeck::raw::{self, Operation};
use landeck_c_boundary::{Handle as TableHandle, Table};

use crate::abi::{Handle, REQUEST_NULL, REQUEST_OF_NOBODY, REQUEST_SENT, Status};
use crate::communicator::{Communicator, failure, status_of};
use crate::job;
use crate::mistake::Mistake;

/// An operation that goes on, and whose ranks its status names.
struct Pending {
    operation: Operation,
    communicator: Communicator,
}

static PENDING: Mutex<Table<Pending>> = Mutex::new(Table::new());

/// Keeps an operation and gives its handle, which is larger than every constant.
pub(crate) fn keep(operation: Operation, communicator: Communicator) -> Handle {
    match operation {
        // Receives always begin as pending, so this was a send.
        Operation::Complete(_) => REQUEST_SENT,
        Operation::Pending(_) => {
            pending().insert(Pending { operation, communicator }).to_bits() as Handle
        }
    }
}

/// Waits for a request; it is no more afterwards.
pub(crate) fn wait(value: Handle) -> Result<Status, Mistake> {
    job::current()?;
    match value {
        REQUEST_NULL | REQUEST_SENT => Ok(Status::empty()),
        REQUEST_OF_NOBODY => Ok(Status::of_nobody()),
        value => {
            let taken = pending().remove(TableHandle::from_bits(value as u64));
            let Pending { operation, communicator } = taken.map_err(Mistake::Request)?;
            let status = raw::wait(communicator.messages(), operation).map_err(failure)?;
            Ok(status_of(&status))
        }
    }
}

fn pending() -> MutexGuard<'static, Table<Pending>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}
