//! Messages that are sent or received any number of times.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use landeck::raw::message::{self, Mode};
use landeck_c_boundary::pointer;

use super::buffer::buffer_of;
use super::point_to_point::{Incoming, Outgoing};
use crate::abi::{ERR_REQUEST, Handle, Status};
use crate::arguments::{Items, give, length_of};
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::request::{self, Found, Pending, Persistent, Request, Started, status_of};

/// A way to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In(Mode),
    Buffered,
}

/// A message to send any number of times.
pub(crate) unsafe fn send_init(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let way = Way::In(Mode::Standard);
    // SAFETY: as the caller says.
    unsafe { init(way, buf, (count, datatype), (dest, tag), comm, request) }
}

/// MPI_Ssend_init: a persistent synchronous send, complete when its receive has begun.
pub(crate) unsafe fn ssend_init(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let way = Way::In(Mode::Synchronous);
    // SAFETY: as the caller says.
    unsafe { init(way, buf, (count, datatype), (dest, tag), comm, request) }
}

/// MPI_Rsend_init: a persistent send whose receive is posted already. It is done like any other.
pub(crate) unsafe fn rsend_init(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let way = Way::In(Mode::Standard);
    // SAFETY: as the caller says.
    unsafe { init(way, buf, (count, datatype), (dest, tag), comm, request) }
}

/// MPI_Bsend_init: a persistent send through the attached buffer.
pub(crate) unsafe fn bsend_init(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { init(Way::Buffered, buf, (count, datatype), (dest, tag), comm, request) }
}

/// A message to receive any number of times.
pub(crate) unsafe fn recv_init(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let items = Items::of_message("buf", buf, ("count", count), datatype, source)?;
    let Incoming { tag, from, .. } = Incoming::new(items, source, tag, communicator.messages().1)?;
    pointer::check("request", request, 1)?;
    let (items, own) = (items.keep(), Arc::clone(communicator));
    let begin = move || {
        let Some(from) = from else { return Ok(Started::Complete(Status::of_nobody())) };
        let world = own.messages().0;
        // SAFETY: the program leaves the items to us from each start to its end.
        let operation = unsafe { message::start_receive(world, &items.memory(), from, tag)? };
        Ok(Started::Pending(Pending::message(operation, &own)))
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("request", request, keep(communicator, begin)?) }
}

/// Starts a persistent operation.
pub(crate) unsafe fn start(request: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a request, or it is refused.
    start_again("request", unsafe { pointer::read("request", request)? })
}

/// Starts several persistent operations.
pub(crate) unsafe fn startall(count: c_int, array_of_requests: *mut Handle) -> Result<(), Mistake> {
    let count = length_of("count", count)?;
    // SAFETY: the program gives so many requests.
    let requests = unsafe { pointer::slice("array_of_requests", array_of_requests, count)? };
    requests.iter().try_for_each(|handle| start_again("array_of_requests", *handle))
}

fn start_again(argument: &'static str, handle: Handle) -> Result<(), Mistake> {
    let found = match request::find(argument, handle)? {
        Found::Kept(entry) => Some(entry),
        Found::Null | Found::Immediate(_) => None,
    };
    let Some((entry, Request::Persistent(persistent))) = found.map(|it| (it, &it.request)) else {
        return Err(request::wrong(argument, handle, "a persistent one"));
    };
    let mut active = persistent.active();
    if active.is_some() || entry.is_seen() {
        let text =
            format!("{argument} is {handle:#x}, which was started before; complete it first");
        return Err(Mistake::new(ERR_REQUEST, text).on(&persistent.communicator));
    }
    let started = (persistent.begin)().map_err(|mistake| mistake.on(&persistent.communicator))?;
    *active = Some(started);
    Ok(())
}

/// A send that is started any number of times.
unsafe fn init(
    way: Way,
    buf: *const c_void,
    (count, datatype): (i64, Handle),
    (dest, tag): (c_int, c_int),
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let items = Items::of_message("buf", buf, ("count", count), datatype, dest)?;
    let outgoing = Outgoing::new(items, dest, tag, communicator.messages().1)?;
    pointer::check("request", request, 1)?;
    let Outgoing { tag, to, .. } = outgoing;
    let (items, own) = (items.keep(), Arc::clone(communicator));
    let begin = move || {
        let Some(to) = to else { return Ok(Started::Complete(Status::empty())) };
        let world = own.messages().0;
        let mode = match way {
            Way::In(mode) => mode,
            Way::Buffered => {
                // SAFETY: the program keeps the items as they are during the start.
                unsafe { buffer_of(&own)?.send(world, &items.memory(), to, tag)? };
                return Ok(Started::Complete(Status::empty()));
            }
        };
        // SAFETY: the program keeps the items as they are from each start to its end.
        let started = unsafe { message::start_send(world, &items.memory(), to, tag, mode)? };
        Ok(match started {
            landeck::raw::Operation::Complete(status) => Started::Complete(status_of(&status)),
            landeck::raw::Operation::Pending(_) => {
                Started::Pending(Pending::message(started, &own))
            }
        })
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("request", request, keep(communicator, begin)?) }
}

/// Gives out the handle of a persistent message.
fn keep(
    communicator: &Arc<Communicator>,
    begin: impl Fn() -> Result<Started, Mistake> + Send + Sync + 'static,
) -> Result<Handle, Mistake> {
    request::make_room()?;
    Ok(request::keep(Request::Persistent(Arc::new(Persistent {
        communicator: Arc::clone(communicator),
        is_message: true,
        begin: Box::new(begin),
        active: Mutex::new(None),
    }))))
}
