//! Waiting for, testing, cancelling and releasing operations of all kinds.
//!
//! A caller that waits for all of several operations waits for one after the other; all of them
//! make progress meanwhile. Lists of operations may have gaps, which are ignored.

use landeck_memory::gate::Entry;
use landeck_memory::{Operation as Waited, ThreadMode, WaitRecord};

use super::{Operation, OperationId};
use crate::error::Result;
use crate::world::{Status, World};
use landeck_engine::Engine;

/// Waits until an operation is complete, and completes it.
///
/// # Errors
/// As [`World::send`] and [`World::receive_into`]; the operation is completed in any case.
#[inline(always)]
pub fn wait(world: &World, operation: Operation) -> Result<Status> {
    match operation {
        Operation::Complete(status) => Ok(status),
        Operation::Pending(id) => world.wait(id),
    }
}

/// Completes a list of messages, one after the other, while it holds the endpoint. No other call of
/// the library is possible meanwhile.
pub struct Endings<'a> {
    engine: Entry<'a, Engine>,
    /// Whether this is the only thread: otherwise arriving messages may be for others.
    is_alone: bool,
}

impl<'a> Endings<'a> {
    /// Enters the endpoint.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    #[inline]
    pub fn of(world: &'a World) -> Result<Self> {
        let engine = &world.shared.engine;
        let is_alone = engine.mode() == ThreadMode::Single;
        Ok(Self { engine: engine.enter()?, is_alone })
    }

    /// Completes an operation of a world of this process if it is a message that is complete
    /// without error, or becomes so after one poll. Otherwise returns `None` and leaves the
    /// operation as it was, for a later [`wait`].
    #[inline]
    pub fn take(&mut self, world: &World, id: OperationId) -> Option<Status> {
        let OperationId::Message(message) = id else { return None };
        let mut status = self.engine.endpoint.take_well(message);
        if status.is_none() && self.is_alone {
            self.engine.progress_for_message(message);
            status = self.engine.endpoint.take_well(message);
        }
        status.map(|status| world.status_of(&status))
    }
}

/// Makes progress, and completes the operation if it is complete. A receive from a sender that left
/// in good order stays pending in this call, as in all calls that do not wait, and may still be
/// cancelled.
///
/// # Errors
/// As [`wait`].
pub fn test(world: &World, operation: Operation) -> Result<Option<Status>> {
    if !is_over(&mut *look(world)?, operation) {
        return Ok(None);
    }
    match operation {
        Operation::Complete(status) => Ok(Some(status)),
        Operation::Pending(id) => match world.shared.test(id) {
            Ok(Some(completion)) => world.status(&completion).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(world.error(error, None)),
        },
    }
}

/// Waits until one of the operations is complete, and returns its index; `None` if there are no
/// operations. The operation must still be completed with [`wait`] or [`test()`].
///
/// # Errors
/// [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
pub fn wait_any(world: &World, operations: &[Option<Operation>]) -> Result<Option<usize>> {
    if operations.iter().all(Option::is_none) {
        return Ok(None);
    }
    let record = WaitRecord { operation: Waited::Wait, ..WaitRecord::default() };
    let mut seen = None;
    let ready = |engine: &mut Engine| {
        engine.endpoint.refresh();
        // Only what changes can have ended any.
        if seen.replace(engine.changes()) == Some(engine.changes()) {
            return None;
        }
        let over = operations
            .iter()
            .position(|operation| operation.is_some_and(|one| is_over(engine, one)));
        over.or_else(|| first_given_up(engine, operations))
    };
    let any_of = |engine: &Engine| {
        engine.any_of(operations.iter().flatten().filter_map(|operation| match operation {
            Operation::Pending(id) => Some(*id),
            Operation::Complete(_) => None,
        }))
    };
    let found = world.shared.wait_until_any(&record, ready, &any_of);
    found.map(Some).map_err(|error| world.error(error, None))
}

/// Makes progress, and returns the index of the first complete operation, which must still be
/// completed.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn find_over(world: &World, operations: &[Option<Operation>]) -> Result<Option<usize>> {
    let mut engine = look(world)?;
    let mut all = operations.iter();
    Ok(all.position(|operation| operation.is_some_and(|one| is_over(&mut engine, one))))
}

/// Makes progress, and calls `each` with the indices of the complete operations, which must be
/// completed afterwards.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn each_over(
    world: &World,
    operations: &[Option<Operation>],
    mut each: impl FnMut(usize),
) -> Result<()> {
    let mut engine = look(world)?;
    for (place, operation) in operations.iter().enumerate() {
        if operation.is_some_and(|one| is_over(&mut engine, one)) {
            each(place);
        }
    }
    Ok(())
}

/// Makes progress, and returns whether all operations are complete. They must still be completed.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn are_over(world: &World, operations: &[Option<Operation>]) -> Result<bool> {
    let mut engine = look(world)?;
    Ok(operations.iter().flatten().all(|&operation| is_over(&mut engine, operation)))
}

/// Cancels an operation that is unmatched: a receive without a message, or a send without a
/// receive. It must still be completed, which then needs no other process but for progress;
/// [`Status::is_cancelled`] tells whether it was cancelled. Collective operations are not
/// cancelled.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn cancel(world: &World, operation: Operation) -> Result<()> {
    if let Operation::Pending(id) = operation {
        world.shared.engine.enter()?.cancel(id);
    }
    Ok(())
}

/// Releases an operation, which goes on without a result. Its memory belongs to it until it is
/// complete. A released send is transferred before this process leaves the job.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn release(world: &World, operation: Operation) -> Result<()> {
    if let Operation::Pending(id) = operation {
        world.shared.engine.enter()?.release(id);
    }
    Ok(())
}

fn look(world: &World) -> Result<impl std::ops::DerefMut<Target = Engine>> {
    let mut engine = world.shared.engine.enter()?;
    engine.look();
    Ok(engine)
}

/// Returns whether an operation is complete, or has failed for a call that does not wait.
fn is_over(engine: &mut Engine, operation: Operation) -> bool {
    match operation {
        Operation::Complete(_) => true,
        Operation::Pending(id) => {
            engine.is_done(id) || engine.verdict_of_look(id).is_some() || engine.is_done(id)
        }
    }
}

/// If all operations wait for processes that left, ends the first of them and returns its index.
fn first_given_up(engine: &mut Engine, operations: &[Option<Operation>]) -> Option<usize> {
    let is_hopeless = |operation: &Operation| match operation {
        Operation::Complete(_) => false,
        Operation::Pending(id) => engine.is_hopeless(*id),
    };
    if !operations.iter().flatten().all(is_hopeless) {
        return None;
    }
    let first = operations.iter().position(Option::is_some)?;
    if let Some(Operation::Pending(id)) = operations[first] {
        engine.verdict(id);
    }
    Some(first)
}
