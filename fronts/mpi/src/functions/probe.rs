//! Looking for messages before they are received, and taking them out.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use landeck::raw::message;
use landeck_c_boundary::pointer;

use super::point_to_point::told;
use crate::abi::{Handle, MESSAGE_NO_PROC, MESSAGE_NULL, Status};
use crate::arguments::{Items, give, source as source_of, tell, wanted_tag};
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Holder};
use crate::objects::message::{self as messages, Message};
use crate::objects::request::{self, status_of};

/// Waits until there is a message.
pub(crate) unsafe fn probe(
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let tag = wanted_tag(tag)?;
    let found = match source_of(source, size)? {
        None => Status::of_nobody(),
        Some(from) => status_of(&world.probe(from, tag)?),
    };
    // SAFETY: the program gives a writable status, or none.
    unsafe { tell(status, found) }
}

/// Looks whether there is a message.
pub(crate) unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    comm: Handle,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let tag = wanted_tag(tag)?;
    pointer::check("flag", flag, 1)?;
    let found = match source_of(source, size)? {
        None => Some(Status::of_nobody()),
        Some(from) => world.try_probe(from, tag)?.as_ref().map(status_of),
    };
    // SAFETY: the program gives a writable flag, and a writable status, or none.
    unsafe {
        give("flag", flag, c_int::from(found.is_some()))?;
        found.map_or(Ok(()), |found| tell(status, found))
    }
}

/// Waits until there is a message, and takes it out.
pub(crate) unsafe fn mprobe(
    source: c_int,
    tag: c_int,
    comm: Handle,
    message: *mut Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let tag = wanted_tag(tag)?;
    pointer::check("message", message, 1)?;
    messages::make_room()?;
    let (handle, found) = match source_of(source, size)? {
        None => (MESSAGE_NO_PROC, Status::of_nobody()),
        Some(from) => {
            let (held, found) = message::hold(world, from, tag)?;
            let communicator = Arc::clone(communicator);
            (messages::keep(Message { held, communicator }), status_of(&found))
        }
    };
    // SAFETY: the program gives a writable message, and a writable status, or none.
    unsafe {
        give("message", message, handle)?;
        tell(status, found)
    }
}

/// Takes a message out, if there is one.
pub(crate) unsafe fn improbe(
    source: c_int,
    tag: c_int,
    comm: Handle,
    flag: *mut c_int,
    message: *mut Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let tag = wanted_tag(tag)?;
    pointer::check("flag", flag, 1)?;
    pointer::check("message", message, 1)?;
    messages::make_room()?;
    let found = match source_of(source, size)? {
        None => Some((MESSAGE_NO_PROC, Status::of_nobody())),
        Some(from) => message::try_hold(world, from, tag)?.map(|(held, found)| {
            let communicator = Arc::clone(communicator);
            (messages::keep(Message { held, communicator }), status_of(&found))
        }),
    };
    // SAFETY: the program gives a writable flag and message, and a writable status, or none.
    unsafe {
        give("flag", flag, c_int::from(found.is_some()))?;
        let Some((handle, found)) = found else { return Ok(()) };
        give("message", message, handle)?;
        tell(status, found)
    }
}

/// Receives a message that was taken out.
pub(crate) unsafe fn mrecv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    message: *mut Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a message, or it is refused.
    let taken = unsafe { take(buf, (count, datatype), message)? };
    let Some((items, taken)) = taken else {
        // SAFETY: the program gives a writable status, or none.
        return unsafe { tell(status, Status::of_nobody()) };
    };
    let world = taken.communicator.messages().0;
    // SAFETY: the program leaves the items to us until this returns, and gives a writable status,
    // or none.
    unsafe {
        let received = message::receive_held(world, taken.held, &items.memory());
        told(received, status).map_err(|mistake| mistake.on(&taken.communicator))
    }
}

/// Starts to receive a message that was taken out.
pub(crate) unsafe fn imrecv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    message: *mut Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("request", request, 1)?;
    request::make_room()?;
    // SAFETY: the program gives the address of a message, or it is refused.
    let taken = unsafe { take(buf, (count, datatype), message)? };
    let started = match taken {
        None => request::OF_NOBODY,
        Some((items, Message { held, communicator })) => {
            let world = communicator.messages().0;
            // SAFETY: the program leaves the items to us until the request is complete.
            let operation = unsafe { message::start_receive_held(world, held, &items.memory()) }
                .map_err(|error| Mistake::from(error).on(&communicator))?;
            request::keep_receive(operation, Holder::Counted(communicator))
        }
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("request", request, started) }
}

/// The message that is to be received, and where; none for MPI_MESSAGE_NO_PROC. Its handle becomes
/// null.
///
/// # Safety
/// Unless null or misaligned, the message is readable and writable.
unsafe fn take(
    buf: *mut c_void,
    (count, datatype): (i64, Handle),
    message: *mut Handle,
) -> Result<Option<(Items, Message)>, Mistake> {
    // SAFETY: as the caller says.
    let handle = unsafe { pointer::read("message", message)? };
    let Some(found) = messages::get("message", handle)? else {
        // SAFETY: as the caller says.
        unsafe { message.write(MESSAGE_NULL) };
        return Ok(None);
    };
    let items = Items::new("buf", buf, ("count", count), datatype)
        .map_err(|mistake| mistake.on(&found.communicator))?;
    let taken = messages::take("message", handle)?;
    // SAFETY: as the caller says.
    unsafe { message.write(MESSAGE_NULL) };
    Ok(Some((items, taken)))
}
