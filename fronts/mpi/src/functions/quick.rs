//! The short way of messages that are as most are: items of the library's own datatypes one behind the
//! other, between two processes of one communicator, that can go or are there at once. Nothing is said of
//! mistakes here, and nothing waited for: what is not so goes the long way, which does.
//!
//! Half a round trip of some bytes takes less than a hundred nanoseconds, of which these few instructions are
//! all that MPI adds. So they are where they are called from, and what is called less often stands apart: a
//! function pays at its beginning for all registers and stack that any of its ways needs.

use std::ffi::{c_int, c_void};

use landeck::Tag;
use landeck::raw::message;

use crate::abi::{ANY_TAG, Handle, Status};
use crate::arguments::Plain;
use crate::objects::communicator::{self, Holder};
use crate::objects::request::{self, status_of};

/// Sends, if that is possible at once.
///
/// # Safety
/// The program keeps the items as they are until this returns.
#[inline(always)]
pub(super) unsafe fn send(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> bool {
    let Some(communicator) = communicator::find(comm) else { return false };
    let Some(items) = Plain::new(buf, count, datatype) else { return false };
    if communicator.remote.is_some() || dest < 0 || tag < 0 {
        return false;
    }
    let (to, tag) = (dest as usize, Tag(tag as u32));
    // SAFETY: the caller's promise.
    unsafe { message::send_now(&communicator.world, items.start, items.bytes, to, tag) }
}

/// Receives, if the message comes before long.
///
/// # Safety
/// The program leaves the items to this until it returns, and gives a writable status, or none.
#[inline(always)]
pub(super) unsafe fn receive(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> bool {
    let Some(communicator) = communicator::find(comm) else { return false };
    let Some(items) = Plain::new(buf, count, datatype) else { return false };
    let is_usual = communicator.remote.is_none() && status.is_aligned();
    if !is_usual || source < 0 || (tag < 0 && tag != ANY_TAG) {
        return false;
    }
    let (from, world) = (source as usize, &communicator.world);
    let tag = (tag != ANY_TAG).then_some(tag as u32);
    // SAFETY: the caller's promise.
    let received = unsafe { message::receive_now(world, items.start, items.bytes, from, tag) };
    let Some(received) = received else { return false };
    if !status.is_null() {
        // SAFETY: the caller's promise.
        unsafe { status_of(&received.status(world)).write_to(status) };
    }
    true
}

/// Starts to receive; gives the handle of the request.
///
/// # Safety
/// The program leaves the items to the request until that is complete.
#[inline(always)]
pub(super) unsafe fn start_receive(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
) -> Option<Handle> {
    let communicator = communicator::find(comm)?;
    let items = Plain::new(buf, count, datatype)?;
    if communicator.remote.is_some() || source < 0 || (tag < 0 && tag != ANY_TAG) {
        return None;
    }
    let (from, tag) = (source as usize, (tag != ANY_TAG).then_some(tag as u32));
    request::make_room().ok()?;
    let (start, length, world) = (items.start, items.bytes, &communicator.world);
    // SAFETY: the caller's promise.
    let operation = unsafe { message::start_receive_plain(world, start, length, from, tag) }?;
    Some(request::keep_receive(operation, Holder::of(comm, communicator)))
}
