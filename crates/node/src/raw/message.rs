//! Messages of items of a layout: all send modes, and matched probes.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use landeck_kernel::{Area, Failure, RequestId, Wanted};
use landeck_memory::Buffer;
use landeck_wire::Tag;

use super::memory::SHORT_BYTES;
use super::{Memory, Operation, going, operation, started_receive, started_send};
use crate::error::Result;
use crate::world::{Source, Status, TagFilter, World};
use landeck_engine::{Engine, WaitError};

/// The mode of a send, which determines when it is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The send is complete when its memory may be used again. Ready sends use this mode too.
    #[default]
    Standard,
    /// The send is complete when its memory may be used again and its receive has begun.
    Synchronous,
}

/// A message that was matched and removed from the queue: only the holder of this value can receive
/// it, once. A message that is not received stays with this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held(RequestId);

/// Sends items; returns when they may be changed again and, in mode synchronous, their receive has
/// begun.
///
/// # Errors
/// As [`World::send_layout`].
///
/// # Safety
/// The items are readable during the call.
#[inline]
pub unsafe fn send(
    world: &World,
    memory: &Memory<'_>,
    to: usize,
    tag: Tag,
    mode: Mode,
) -> Result<()> {
    // SAFETY: the items are readable during the call, at whose end the request is over.
    let one_piece = unsafe { memory.one_piece() };
    if let (Mode::Standard, Some(buffer)) = (mode, one_piece) {
        return world.send_area(Area::contiguous(buffer), to, tag);
    }
    // SAFETY: as the caller says.
    unsafe { send_otherwise(world, memory, to, tag, mode) }
}

/// Sends items that are not contiguous, or in mode synchronous. This is a function of its own
/// because of its stack frame, which every caller would pay for.
///
/// # Safety
/// As [`send`].
#[inline(never)]
unsafe fn send_otherwise(
    world: &World,
    memory: &Memory<'_>,
    to: usize,
    tag: Tag,
    mode: Mode,
) -> Result<()> {
    if mode == Mode::Standard && memory.is_short() {
        let mut packed = [MaybeUninit::uninit(); SHORT_BYTES];
        // SAFETY: the items are readable, says the caller; what they pack to outlives the request,
        // which is over when the call ends.
        if let Some(area) = unsafe { memory.packed_area(&mut packed) } {
            return world.send_area(area, to, tag);
        }
    }
    // SAFETY: the caller keeps the items as they are during the call, at whose end the request is over.
    let area = unsafe { area(world, memory) }?;
    if mode == Mode::Standard {
        return world.send_area(area, to, tag);
    }
    let started = start_synchronous(world, area, to, tag)?;
    super::wait(world, started).map(drop)
}

/// Sends contiguous bytes if this is possible at once. Returns false if it is not: then nothing was
/// sent, and [`send`] waits or returns the error.
///
/// # Safety
/// `length` bytes from `start` are readable during the call.
#[inline(always)]
pub unsafe fn send_now(
    world: &World,
    start: NonNull<u8>,
    length: usize,
    to: usize,
    tag: Tag,
) -> bool {
    let (Some(peer), Ok(mut engine)) = (world.members.get(to), world.shared.engine.enter()) else {
        return false;
    };
    // SAFETY: the bytes are readable during the call, and not needed when it is over.
    let bytes = unsafe { Buffer::new(start, length) }.bytes();
    engine.endpoint.send_now(*peer, world.context, tag.0, bytes)
}

/// Receives a message of one process into contiguous memory, if the memory is long enough and the
/// message arrives soon. Otherwise returns `None`: then nothing was received, and [`receive`] waits
/// or returns the error. Without a tag, any tag matches.
///
/// # Safety
/// `length` bytes from `start` are writable during the call, and nobody else uses them.
#[inline(always)]
pub unsafe fn receive_now(
    world: &World,
    start: NonNull<u8>,
    length: usize,
    from: usize,
    tag: Option<u32>,
) -> Option<Received> {
    let source = Some(world.members.get(from)?.0);
    let wanted = Wanted { context: world.context, source, tag };
    // SAFETY: as the caller says; what is not received in the call leaves no request.
    let area = Area::contiguous(unsafe { Buffer::new(start, length) });
    // It owns nothing.
    let area = ManuallyDrop::new(area);
    let mut status = landeck_kernel::Status::NONE;
    let has_come = world.shared.receive_whole_now(&wanted, &area, &mut status);
    matches!(has_come, Ok(true)).then_some(Received(status))
}

/// Begins to receive a message of one process into contiguous memory. Returns `None` where
/// [`start_receive`] would return an error: then nothing was started. Without a tag, any tag
/// matches.
///
/// # Safety
/// `length` bytes from `start` stay writable until the operation is complete, and nobody else uses them.
#[inline(always)]
pub unsafe fn start_receive_plain(
    world: &World,
    start: NonNull<u8>,
    length: usize,
    from: usize,
    tag: Option<u32>,
) -> Option<Operation> {
    let source = Some(world.members.get(from)?.0);
    let wanted = Wanted { context: world.context, source, tag };
    // SAFETY: as the caller says.
    let area = Area::contiguous(unsafe { Buffer::new(start, length) });
    Some(operation(world, world.shared.begin_receive(wanted, area).ok()?))
}

/// The message received by [`receive_now`].
#[derive(Clone, Copy, Debug)]
pub struct Received(landeck_kernel::Status);

impl Received {
    /// Returns the envelope of the message in the world in which it was received.
    #[inline]
    pub fn status(&self, world: &World) -> Status {
        world.status_of(&self.0)
    }
}

/// Begins to send items.
///
/// # Errors
/// As [`World::send_layout`].
///
/// # Safety
/// The items stay readable and unchanged until the operation is complete.
#[inline(always)]
pub unsafe fn start_send(
    world: &World,
    memory: &Memory<'_>,
    to: usize,
    tag: Tag,
    mode: Mode,
) -> Result<Operation> {
    // SAFETY: the caller keeps the items as they are until the operation is over.
    let area = unsafe { area(world, memory) }?;
    if mode == Mode::Synchronous {
        return start_synchronous(world, area, to, tag);
    }
    let peer = world.peer(to)?;
    let started = world.shared.engine.enter()?.endpoint.send(peer, world.context, tag.0, area);
    started_send(world, started)
}

#[inline(never)]
fn start_synchronous(world: &World, area: Area, to: usize, tag: Tag) -> Result<Operation> {
    let peer = world.peer(to)?;
    let started =
        world.shared.engine.enter()?.endpoint.send_synchronous(peer, world.context, tag.0, area);
    started_send(world, started)
}

/// Waits for a message and receives it into items. A shorter message changes only the first of
/// them.
///
/// # Errors
/// As [`World::receive_layout`]. A message that is too long, which [`crate::ErrorKind::Truncated`]
/// reports, is received all the same.
///
/// # Safety
/// The items are writable during the call, and nobody else uses them.
#[inline]
pub unsafe fn receive(
    world: &World,
    memory: &Memory<'_>,
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<Status> {
    // SAFETY: the items are this call's alone, at whose end the request is over, says the caller.
    match unsafe { memory.one_piece() } {
        Some(buffer) => world.receive_area(Area::contiguous(buffer), from.into(), tag.into(), None),
        // SAFETY: as above.
        None => unsafe { receive_parts(world, memory, from.into(), tag.into()) },
    }
}

/// Receives items that are not contiguous.
///
/// # Safety
/// As [`receive`].
#[inline(never)]
unsafe fn receive_parts(
    world: &World,
    memory: &Memory<'_>,
    from: Source,
    tag: TagFilter,
) -> Result<Status> {
    // SAFETY: the items are this call's alone, at whose end the request is over, says the caller.
    let area = unsafe { area(world, memory) }?;
    world.receive_area(area, from, tag, None)
}

/// Begins to receive items.
///
/// # Errors
/// As [`receive`].
///
/// # Safety
/// The items stay writable until the operation is complete, and nobody else uses them.
#[inline(always)]
pub unsafe fn start_receive(
    world: &World,
    memory: &Memory<'_>,
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<Operation> {
    // SAFETY: the items are this operation's alone until it is over, says the caller.
    let area = unsafe { area(world, memory) }?;
    started_receive(world, area, from.into(), tag.into())
}

/// Matches and removes the message that a receive would get; returns `None` if no such message has
/// arrived.
///
/// # Errors
/// As [`World::try_probe`].
pub fn try_hold(
    world: &World,
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<Option<(Held, Status)>> {
    let wanted = world.wanted(from.into(), tag.into())?;
    let found = world.try_find(wanted, |engine| engine.endpoint.hold(wanted))?;
    Ok(found.map(|(id, status)| (Held(id), world.status_of(&status))))
}

/// Waits for a message, matches it and removes it from the queue.
///
/// # Errors
/// As [`World::probe`].
pub fn hold(
    world: &World,
    from: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<(Held, Status)> {
    let wanted = world.wanted(from.into(), tag.into())?;
    let (id, status) = world.find(wanted, |engine: &mut Engine| engine.endpoint.hold(wanted))?;
    Ok((Held(id), world.status_of(&status)))
}

/// Receives a matched message.
///
/// # Errors
/// As [`receive`], and [`crate::ErrorKind::RequestGone`] when it was received before.
///
/// # Safety
/// As [`receive`].
pub unsafe fn receive_held(world: &World, held: Held, memory: &Memory<'_>) -> Result<Status> {
    // SAFETY: as in `receive`; the operation that is started here is waited for here.
    let started = unsafe { start_receive_held(world, held, memory) }?;
    super::wait(world, started)
}

/// Begins to receive a matched message.
///
/// # Errors
/// As [`receive_held`].
///
/// # Safety
/// As [`start_receive`].
pub unsafe fn start_receive_held(
    world: &World,
    held: Held,
    memory: &Memory<'_>,
) -> Result<Operation> {
    // SAFETY: as in `start_receive`: the items belong to the operation.
    let area = unsafe { area(world, memory) }?;
    let is_there = world.shared.engine.enter()?.endpoint.receive_held(held.0, area);
    if !is_there {
        return Err(world.error(WaitError::Failure(Failure::Gone), None));
    }
    Ok(going(world, held.0.into()))
}

/// # Safety
/// As [`Memory::area`].
#[inline]
unsafe fn area(world: &World, memory: &Memory<'_>) -> Result<Area> {
    // SAFETY: whoever calls keeps the items for as long as the area is in use.
    unsafe { memory.area() }.map_err(|failure| world.error(WaitError::Failure(failure), None))
}
