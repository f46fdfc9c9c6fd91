//! The same operations over pointers, for fronts in other languages.
//!
//! Their callers promise by contract what Rust callers promise by lifetimes: memory of an
//! operation stays until the operation is over.
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
//! Whatever is started gives an [`Operation`], a small value that can be copied and kept anywhere.
//! It is to be completed once, with [`wait`], with [`test()`] that found it over, or with
//! [`release`]; after that its name is stale, and says so ([`crate::ErrorKind::RequestGone`]).
//! Operations of all kinds, and of all worlds of the process, can be waited for together.
//! An operation may go on when a program has dropped its handle to the world; but its *world* must
//! be there to complete it, so whoever keeps an operation keeps a clone of its world with it, or
//! something that holds one.
//!
//! # Order, credit, progress
//!
//! Messages of one sender in one world are received in the order in which they were sent, on
//! whatever path they travel. To start an operation never waits: beyond the receiver's credit a
//! message stays in its operation, and later ones to the same receiver behind it. A blocking send
//! waits for credit, and serves everything else meanwhile, so two processes that first send and
//! then receive do not wait for each other, however many messages that are, as long as each has at
//! most 16 KiB. Longer ones need room in the sender's heap until they are received, and those beyond
//! 256 KiB (8 MiB where there are more processes than processors) meet their receive before a
//! blocking send returns. Every call that waits, tests or probes moves everything of the process,
//! whatever it asks for; nothing moves between calls, unless a thread was asked for
//! ([`crate::Progress`]), but what a call has handed over arrives.
//!
//! # Threads
//!
//! In thread mode multiple any thread may make any call at any time; a thread that waits for one
//! operation keeps nobody from anything. Two threads do not complete the same operation.

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
/// `length` bytes from `start` stay readable and unchanged until the operation is over.
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
    let started = world.shared.kernel.enter()?.send(peer, world.context, tag.0, area);
    started_send(world, started)
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
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<Operation> {
    // SAFETY: the bytes stay writable, and this operation's alone, until it is over.
    let area = unsafe { area(start, length) };
    started_receive(world, area, from.into(), tag.into())
}

/// Waits until everything that was sent has left this process's hands.
///
/// # Errors
/// [`crate::ErrorKind::Ended`].
pub fn drain(world: &World) -> Result<()> {
    world.drain()
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

/// An operation that goes on after the call.
#[inline]
fn going(world: &World, id: OperationId) -> Operation {
    world.shared.goes_on();
    Operation::Pending(id)
}
