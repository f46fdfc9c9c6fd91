//! Sending and receiving between two processes.

use std::ffi::{c_int, c_void};

use landeck::raw::message::{self, Mode};
use landeck_c_boundary::pointer;

use crate::abi::{Handle, Status};
use crate::arguments::{
    Items, destination, give, source as source_of, tag as tag_of, tell, wanted_tag,
};
use crate::mistake::Mistake;
use crate::objects::communicator;
use crate::objects::request::{self, status_of};

/// Sends; returns when the buffer may be used again.
pub(crate) unsafe fn send(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let items = Items::new("buf", buf, ("count", count), datatype)?;
    let tag = tag_of(tag)?;
    let Some(to) = destination(dest, size)? else { return Ok(()) };
    // SAFETY: the program keeps the buffer as it is until this returns.
    unsafe { message::send(world, &items.memory(), to, tag, Mode::Standard) }.map_err(Mistake::from)
}

/// Receives.
pub(crate) unsafe fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let items = Items::new("buf", buf, ("count", count), datatype)?;
    let tag = wanted_tag(tag)?;
    let Some(from) = source_of(source, size)? else {
        // SAFETY: the program gives a writable status, or none.
        return unsafe { tell(status, Status::of_nobody()) };
    };
    // SAFETY: the program leaves the buffer to us until this returns.
    let received = unsafe { message::receive(world, &items.memory(), from, tag)? };
    // SAFETY: the program gives a writable status, or none.
    unsafe { tell(status, status_of(&received)) }
}

/// Starts to send.
pub(crate) unsafe fn isend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let items = Items::new("buf", buf, ("count", count), datatype)?;
    let tag = tag_of(tag)?;
    pointer::check("request", request, 1)?;
    let started = match destination(dest, size)? {
        None => request::SENT,
        Some(to) => {
            // SAFETY: the program keeps the buffer as it is until the request is complete.
            let operation =
                unsafe { message::start_send(world, &items.memory(), to, tag, Mode::Standard)? };
            request::keep_message(operation, communicator, items.datatype)
        }
    };
    // SAFETY: the program says that it is writable.
    unsafe { give("request", request, started) }
}

/// Starts to receive.
pub(crate) unsafe fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let items = Items::new("buf", buf, ("count", count), datatype)?;
    let tag = wanted_tag(tag)?;
    pointer::check("request", request, 1)?;
    let started = match source_of(source, size)? {
        None => request::OF_NOBODY,
        Some(from) => {
            // SAFETY: the program leaves the buffer to us until the request is complete.
            let operation = unsafe { message::start_receive(world, &items.memory(), from, tag)? };
            request::keep_message(operation, communicator, items.datatype)
        }
    };
    // SAFETY: the program says that it is writable.
    unsafe { give("request", request, started) }
}
