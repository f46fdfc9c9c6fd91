//! Waiting for operations of all kinds, cancelling them, leaving them to themselves.
//!
//! Whoever waits for all of several operations waits for one after the other: all of them move
//! meanwhile. Lists of operations may have gaps, which count for nothing.

use landeck_memory::gate::Entry;
use landeck_memory::{Operation as Waited, ThreadMode, WaitRecord};

use super::{Operation, OperationId};
use crate::error::Result;
use crate::world::{Status, World};
use landeck_engine::Engine;

/// Waits until an operation is over.
///
/// # Errors
/// As [`World::send`] and [`World::receive_into`]; the operation is over in any case.
#[inline(always)]
pub fn wait(world: &World, operation: Operation) -> Result<Status> {
    match operation {
        Operation::Complete(status) => Ok(status),
        Operation::Pending(id) => world.wait(id),
    }
}

/// Completes messages that are over, one after the other, for who has a list of them: all in one visit
/// to the endpoint, in which nothing else can be called.
pub struct Endings<'a> {
    kernel: Entry<'a, Engine>,
    /// Where threads wait for each other, what arrives may be for others.
    is_alone: bool,
}

impl<'a> Endings<'a> {
    /// Begins the visit.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    #[inline]
    pub fn of(world: &'a World) -> Result<Self> {
        let kernel = &world.shared.kernel;
        let is_alone = kernel.mode() == ThreadMode::Single;
        Ok(Self { kernel: kernel.enter()?, is_alone })
    }

    /// Completes an operation of a world of this process if it is a message, has ended well, and takes
    /// one look at most. None for all else: then it is as it was, and for [`wait`], after the visit.
    #[inline]
    pub fn take(&mut self, world: &World, id: OperationId) -> Option<Status> {
        let OperationId::Message(message) = id else { return None };
        let mut status = self.kernel.take_well(message);
        if status.is_none() && self.is_alone {
            self.kernel.progress_for_message(message);
            status = self.kernel.take_well(message);
        }
        status.map(|status| world.status_of(&status))
    }
}

/// Looks whether an operation is over, and makes progress. After a result the operation is no
/// more. A receive from somebody who has left in good order goes on here, and in all that only
/// look: it may still be cancelled.
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

/// Waits until one of the operations is over, and says which; none when there is no operation.
/// It is still to be completed with [`wait`] or [`test()`].
///
/// # Errors
/// [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
pub fn wait_any(world: &World, operations: &[Option<Operation>]) -> Result<Option<usize>> {
    if operations.iter().all(Option::is_none) {
        return Ok(None);
    }
    let record = WaitRecord { operation: Waited::Wait, ..WaitRecord::default() };
    let mut seen = None;
    let ready = |kernel: &mut Engine| {
        kernel.refresh();
        // Only what changes can have ended any.
        if seen.replace(kernel.changes()) == Some(kernel.changes()) {
            return None;
        }
        let over = operations
            .iter()
            .position(|operation| operation.is_some_and(|one| is_over(kernel, one)));
        over.or_else(|| first_given_up(kernel, operations))
    };
    let any_of = |kernel: &Engine| {
        kernel.any_of(operations.iter().flatten().filter_map(|operation| match operation {
            Operation::Pending(id) => Some(*id),
            Operation::Complete(_) => None,
        }))
    };
    let found = world.shared.wait_until_any(&record, ready, &any_of);
    found.map(Some).map_err(|error| world.error(error, None))
}

/// Makes progress, and says which of the operations is over, the first of them. It is still to be
/// completed.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn find_over(world: &World, operations: &[Option<Operation>]) -> Result<Option<usize>> {
    let mut kernel = look(world)?;
    let mut all = operations.iter();
    Ok(all.position(|operation| operation.is_some_and(|one| is_over(&mut kernel, one))))
}

/// Makes progress, and calls `each` with the places of those operations that are over. They are
/// still to be completed, afterwards.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn each_over(
    world: &World,
    operations: &[Option<Operation>],
    mut each: impl FnMut(usize),
) -> Result<()> {
    let mut kernel = look(world)?;
    for (place, operation) in operations.iter().enumerate() {
        if operation.is_some_and(|one| is_over(&mut kernel, one)) {
            each(place);
        }
    }
    Ok(())
}

/// Makes progress, and says whether all of the operations are over. They are still to be completed.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn are_over(world: &World, operations: &[Option<Operation>]) -> Result<bool> {
    let mut kernel = look(world)?;
    Ok(operations.iter().flatten().all(|&operation| is_over(&mut kernel, operation)))
}

/// Cancels an operation that has met nobody: a receive without a message, a send without a
/// receive. It is still to be completed, which does not depend on others any more than to make
/// progress; [`Status::is_cancelled`] says whether it was cancelled. Collective operations go on.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn cancel(world: &World, operation: Operation) -> Result<()> {
    if let Operation::Pending(id) = operation {
        world.shared.kernel.enter()?.cancel(id);
    }
    Ok(())
}

/// Leaves an operation to itself: it goes on, its memory is its own until it is over, and nobody
/// will hear of it. What was sent is sent before this process has left the job.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub fn release(world: &World, operation: Operation) -> Result<()> {
    if let Operation::Pending(id) = operation {
        world.shared.kernel.enter()?.release(id);
    }
    Ok(())
}

fn look(world: &World) -> Result<impl std::ops::DerefMut<Target = Engine>> {
    let mut kernel = world.shared.kernel.enter()?;
    kernel.look();
    Ok(kernel)
}

/// Whether an operation is over, or has failed to one who looks.
fn is_over(kernel: &mut Engine, operation: Operation) -> bool {
    match operation {
        Operation::Complete(_) => true,
        Operation::Pending(id) => {
            kernel.is_done(id) || kernel.verdict_of_look(id).is_some() || kernel.is_done(id)
        }
    }
}

/// The first of the operations, ended, where all wait for those who have left: none can come.
fn first_given_up(kernel: &mut Engine, operations: &[Option<Operation>]) -> Option<usize> {
    let is_hopeless = |operation: &Operation| match operation {
        Operation::Complete(_) => false,
        Operation::Pending(id) => kernel.is_hopeless(*id),
    };
    if !operations.iter().flatten().all(is_hopeless) {
        return None;
    }
    let first = operations.iter().position(Option::is_some)?;
    if let Some(Operation::Pending(id)) = operations[first] {
        kernel.verdict(id);
    }
    Some(first)
}
