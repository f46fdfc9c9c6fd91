//! Generalized requests: operations that the program itself completes, from any thread that may
//! call the library.

use super::{Operation, OperationId};
use crate::error::Result;
use crate::world::World;

/// Starts an operation that [`end`] completes. It is waited for, tested and released like any
/// other; its status is empty.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn start(world: &World) -> Result<Operation> {
    let id = world.shared.engine.enter()?.signals.begin();
    Ok(Operation::Pending(OperationId::Signal(id)))
}

/// Completes the operation, and wakes the threads that wait for it.
///
/// # Errors
/// [`crate::ErrorKind::Thread`], [`crate::ErrorKind::RequestGone`] when the operation is of another
/// kind or was completed.
pub fn end(world: &World, operation: Operation) -> Result<()> {
    let Operation::Pending(OperationId::Signal(id)) = operation else {
        return Err(crate::ErrorKind::RequestGone.into());
    };
    match world.shared.end_signal(id)? {
        true => Ok(()),
        false => Err(crate::ErrorKind::RequestGone.into()),
    }
}
