//! The same operations over pointers, for fronts in other languages.
//!
//! Their callers promise by contract what Rust callers promise by lifetimes: memory of an
//! operation stays until the operation is over.

pub mod collective;
pub mod folding;

use std::ptr::NonNull;

use landeck_kernel::{Area, Started};
use landeck_memory::{Buffer, Operation as Waited, WaitRecord};
use landeck_wire::Tag;

pub use crate::collective::OperationId;
use crate::error::Result;
use crate::shared::WaitError;
use crate::world::{From, Status, Tagged, World};

/// An operation that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is over.
    Complete(Status),
    /// It goes on.
    Pending(OperationId),
}

/// An area of `length` bytes; a null pointer is allowed when there are none.
///
/// # Safety
/// As [`Buffer::new`].
unsafe fn area(start: *const u8, length: usize) -> Area {
    let start = NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling());
    // SAFETY: the caller's promise.
    Area::contiguous(unsafe { Buffer::new(start, length) })
}

/// Sends bytes; returns when they may be changed again.
///
/// # Errors
/// As [`World::send`].
///
/// # Safety
/// `length` bytes from `start` are readable during the call.
pub unsafe fn send(
    world: &World,
    start: *const u8,
    length: usize,
    to: usize,
    tag: Tag,
) -> Result<()> {
    // SAFETY: the caller's promise; the request is over when the call returns.
    world.send_area(unsafe { area(start, length) }, to, tag)
}

/// Receives bytes.
///
/// # Errors
/// As [`World::receive_into`].
///
/// # Safety
/// `length` bytes from `start` are writable during the call, and nobody else uses them.
pub unsafe fn receive(
    world: &World,
    start: *mut u8,
    length: usize,
    from: impl Into<From>,
    tag: impl Into<Tagged>,
) -> Result<Status> {
    // SAFETY: the caller's promise; the request is over when the call returns.
    world.receive_area(unsafe { area(start, length) }, from.into(), tag.into(), None)
}

/// Begins to send bytes.
///
/// # Errors
/// As [`World::send`].
///
/// # Safety
/// `length` bytes from `start` stay readable and unchanged until the operation is over.
pub unsafe fn start_send(
    world: &World,
    start: *const u8,
    length: usize,
    to: usize,
    tag: Tag,
) -> Result<Operation> {
    let peer = world.peer(to)?;
    // SAFETY: the caller's promise.
    let area = unsafe { area(start, length) };
    match world.shared.kernel.enter()?.send(peer, world.context, tag.0, area) {
        Ok(Started::Complete(status)) => Ok(Operation::Complete(world.status_of(&status))),
        Ok(Started::Pending(id)) => Ok(Operation::Pending(id.into())),
        Err(failure) => Err(world.error(WaitError::Failure(failure), None)),
    }
}

/// Begins to receive bytes.
///
/// # Errors
/// As [`World::receive_into`].
///
/// # Safety
/// `length` bytes from `start` stay writable until the operation is over, and nobody else uses
/// them.
pub unsafe fn start_receive(
    world: &World,
    start: *mut u8,
    length: usize,
    from: impl Into<From>,
    tag: impl Into<Tagged>,
) -> Result<Operation> {
    let wanted = world.wanted(from.into(), tag.into())?;
    // SAFETY: the caller's promise.
    let area = unsafe { area(start, length) };
    Ok(Operation::Pending(world.shared.kernel.enter()?.receive(wanted, area).into()))
}

/// Waits until an operation is over.
///
/// # Errors
/// As [`World::send`] and [`World::receive_into`]; the operation is over in any case.
pub fn wait(world: &World, operation: Operation) -> Result<Status> {
    match operation {
        Operation::Complete(status) => Ok(status),
        Operation::Pending(id) => match world.shared.wait_or_abandon(id, None) {
            Ok(completion) => world.status(&completion),
            Err(error) => Err(world.error(error, None)),
        },
    }
}

/// Looks whether an operation is over. After a result the operation is no more.
///
/// # Errors
/// As [`wait`].
pub fn test(world: &World, operation: Operation) -> Result<Option<Status>> {
    match operation {
        Operation::Complete(status) => Ok(Some(status)),
        Operation::Pending(id) => match world.shared.test(id) {
            Ok(Some(completion)) => world.status(&completion).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(world.error(error, None)),
        },
    }
}

/// Waits until one of the operations is over, and says which; none when there is no operation.
/// It is still to be completed with [`wait`] or [`test()`].
///
/// # Errors
/// [`crate::Error::Ended`], [`crate::Error::Thread`].
pub fn wait_any(world: &World, operations: &[Operation]) -> Result<Option<usize>> {
    if operations.is_empty() {
        return Ok(None);
    }
    let record = WaitRecord { operation: Waited::Wait, ..WaitRecord::default() };
    let found = world.shared.wait_until(&record, None, |kernel| {
        operations.iter().position(|operation| match *operation {
            Operation::Complete(_) => true,
            Operation::Pending(id) => kernel.is_done(id) || kernel.verdict(id).is_some(),
        })
    });
    found.map(Some).map_err(|error| world.error(error, None))
}

/// Cancels an operation that has not begun. It is still to be completed.
///
/// # Errors
/// [`crate::Error::Thread`].
pub fn cancel(world: &World, operation: Operation) -> Result<()> {
    if let Operation::Pending(id) = operation {
        world.shared.kernel.enter()?.cancel(id);
    }
    Ok(())
}
