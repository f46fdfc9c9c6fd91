//! Operations over pointers, for fronts in other languages.
//!
//! Callers guarantee by contract what Rust callers guarantee by lifetimes: the memory of an
//! operation stays valid until the operation is complete.
//!
//! | what | where |
//! |---|---|
//! | bytes, sent and received | [`send()`], [`receive()`], [`start_send`], [`start_receive`] |
//! | items of a layout, synchronous sends, probes, messages that are taken out | [`message`] |
//! | collective operations | [`collective`] |
//! | reductions whose caller combines | [`folding`] |
//! | waiting for any of these, cancelling, giving up | [`request`] |
//! | operations that the program ends itself | [`signal`] |
//! | broadcasts of a member of a named group that is in other hands | [`group`] |
//!
//! Worlds need no pointers: [`World::duplicate`], [`World::start_duplicate`], [`World::split`],
//! [`World::split_by_host`], [`World::subset`], [`World::among`] (only the members call it),
//! [`World::named`] (no parent), [`World::inside`] (messages of the front itself), and
//! [`World::bridge`] for two groups.
//!
//! # Operations
//!
//! Every call that starts an operation returns an [`Operation`], a small value that can be copied
//! and kept anywhere. It is completed once: with [`wait`], with a successful [`test()`], or with
//! [`release`]. After that the value is stale, and its use is an error
//! ([`crate::ErrorKind::RequestGone`]). Operations of all kinds, and of all worlds of the process,
//! can be waited for together. An operation may outlive the program's handle to its world, but
//! completing it needs the world. So a front that keeps an operation also keeps a clone of its
//! world, or a value that holds one.
//!
//! # Order, credit, progress
//!
//! Messages of one sender in one world are received in the order in which they were sent, whatever
//! path they take. Starting an operation never waits: beyond the receiver's credit a message stays
//! in its operation, and later messages to the same receiver stay behind it. A blocking send waits
//! for credit and makes progress on everything else meanwhile. So two processes that first send and
//! then receive do not block each other, for any number of messages of at most 16 KiB. Longer
//! messages need room in the sender's heap until they are received, and those beyond 256 KiB (8 MiB
//! where there are more processes than processors) meet their receive before a blocking send
//! returns. Every call that waits, tests or probes makes progress on all operations of the process.
//! Between calls there is no progress without a progress thread ([`crate::Progress`]), but data
//! that a call has handed over arrive.
//!
//! # Threads
//!
//! In thread mode multiple any thread may make any call at any time, and a thread that waits for
//! one operation does not block other threads. Two threads must not complete the same operation.

pub mod collective;
pub mod folding;
pub mod group;
pub mod memory;
pub mod message;
pub mod moves;
pub mod request;
pub mod signal;

use std::ptr::NonNull;

use landeck_kernel::{Area, Failure, Started};
use landeck_memory::Buffer;
use landeck_wire::Tag;

pub use landeck_engine::OperationId;
pub use memory::Memory;
pub use message::{Held, Mode};
pub use moves::Moves;
pub use request::{Endings, are_over, cancel, each_over, find_over, release, test, wait, wait_any};

use crate::error::Result;
use crate::world::{Source, Status, TagFilter, World};
use landeck_engine::WaitError;

/// An operation that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The operation is complete.
    Complete(Status),
    /// The operation is pending.
    Pending(OperationId),
}

/// Returns an area of `length` bytes; a null pointer is allowed for length 0.
///
/// # Safety
/// As [`Buffer::new`].
unsafe fn area(start: *const u8, length: usize) -> Area {
    let start = NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling());
    // SAFETY: so many bytes are there for as long as the area is used, says the caller.
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
    // SAFETY: the bytes are readable during the call, at whose end the request is over.
    world.send_area(unsafe { area(start, length) }, to, tag)
}

/// Waits for a message and receives its bytes.
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
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<Status> {
    // SAFETY: the bytes are writable during the call, at whose end the request is over.
    world.receive_area(unsafe { area(start, length) }, from.into(), tag.into(), None)
}

/// Begins to send bytes.
///
/// # Errors
/// As [`World::send`].
///
/// # Safety
/// `length` bytes from `start` stay readable and unchanged until the operation is complete.
pub unsafe fn start_send(
    world: &World,
    start: *const u8,
    length: usize,
    to: usize,
    tag: Tag,
) -> Result<Operation> {
    let peer = world.peer(to)?;
    // SAFETY: the bytes stay readable and unchanged until the operation is over.
    let area = unsafe { area(start, length) };
    let started = world.shared.engine.enter()?.endpoint.send(peer, world.context, tag.0, area);
    started_send(world, started)
}

/// Begins to receive bytes.
///
/// # Errors
/// As [`World::receive_into`].
///
/// # Safety
/// `length` bytes from `start` stay writable until the operation is complete, and nobody else uses
/// them.
pub unsafe fn start_receive(
    world: &World,
    start: *mut u8,
    length: usize,
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<Operation> {
    // SAFETY: the bytes stay writable, and this operation's alone, until it is over.
    let area = unsafe { area(start, length) };
    started_receive(world, area, from.into(), tag.into())
}

/// Waits until this process has transferred everything that it sent.
///
/// # Errors
/// [`crate::ErrorKind::Ended`].
pub fn drain(world: &World) -> Result<()> {
    world.drain()
}

/// Waits as [`drain`] does, and says goodbye to the processes of other hosts ([`Job::take_leave`](crate::Job::take_leave)).
///
/// # Errors
/// As [`Job::take_leave`](crate::Job::take_leave).
pub fn take_leave(world: &World) -> Result<()> {
    world.take_leave()
}

#[inline(always)]
fn started_send(
    world: &World,
    started: std::result::Result<Started, Failure>,
) -> Result<Operation> {
    match started {
        Ok(started) => Ok(operation(world, started)),
        Err(failure) => Err(world.error(WaitError::Failure(failure), None)),
    }
}

#[inline(always)]
fn started_receive(world: &World, area: Area, from: Source, tag: TagFilter) -> Result<Operation> {
    let wanted = world.wanted(from, tag)?;
    Ok(operation(world, world.shared.begin_receive(wanted, area)?))
}

#[inline(always)]
fn operation(world: &World, started: Started) -> Operation {
    match started {
        Started::Complete(status) => Operation::Complete(world.status_of(&status)),
        Started::Pending(id) => going(world, id.into()),
    }
}

/// Returns an operation that is pending after the call.
#[inline]
fn going(world: &World, id: OperationId) -> Operation {
    world.shared.goes_on();
    Operation::Pending(id)
}
