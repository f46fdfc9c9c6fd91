//! Operations that the program itself ends, from any thread that may call: what other languages
//! call generalized requests.

use super::{Operation, OperationId};
use crate::error::Result;
use crate::world::World;

/// Begins an operation that is over when [`end`] says so. It is waited for, tested and released as
/// any other; what its status says is nothing.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn start(world: &World) -> Result<Operation> {
    let id = world.shared.kernel.enter()?.signals.begin();
    Ok(Operation::Pending(OperationId::Signal(id)))
}

/// Ends the operation, and wakes whoever waits for it.
///
/// # Errors
/// [`crate::ErrorKind::Thread`], [`crate::ErrorKind::RequestGone`] when it is no such operation, or no more.
pub fn end(world: &World, operation: Operation) -> Result<()> {
    let Operation::Pending(OperationId::Signal(id)) = operation else {
        return Err(crate::ErrorKind::RequestGone.into());
    };
    match world.shared.end_signal(id)? {
        true => Ok(()),
        false => Err(crate::ErrorKind::RequestGone.into()),
    }
}
