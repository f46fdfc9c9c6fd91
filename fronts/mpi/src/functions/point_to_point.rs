//! Sending and receiving between two processes.

// They have the arguments of the standard.
#![allow(clippy::too_many_arguments)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use landeck::raw::message::{self, Mode};
use landeck::raw::{self, Memory};
use landeck::world::{Source, TagFilter};
use landeck::{Tag, World};
use landeck_c_boundary::pointer;

use super::buffer::buffer_of;
use super::quick;
use crate::abi::{ERR_NO_MEM, Handle, Status};
use crate::arguments::{
    Items, destination, give, source as source_of, tag as tag_of, tell, wanted_tag,
};
use crate::mistake::Mistake;
use crate::objects::buffer;
use crate::objects::communicator::{self, Communicator, Holder};
use crate::objects::completion::status_of_error;
use crate::objects::request::{self, Pair, Request, status_of};

/// The arguments of a message that is sent, as they come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) items: Items,
    pub(crate) tag: Tag,
    /// None for MPI_PROC_NULL.
    pub(crate) to: Option<usize>,
}

/// The arguments of a message that is received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) items: Items,
    pub(crate) tag: TagFilter,
    /// None for MPI_PROC_NULL.
    pub(crate) from: Option<Source>,
}

impl Outgoing {
    /// Checks the arguments.
    #[inline]
    pub(crate) fn new(items: Items, dest: c_int, tag: c_int, size: u32) -> Result<Self, Mistake> {
        Ok(Self { items, tag: tag_of(tag)?, to: destination(dest, size)? })
    }
}

impl Incoming {
    /// Checks the arguments.
    #[inline]
    pub(crate) fn new(items: Items, source: c_int, tag: c_int, size: u32) -> Result<Self, Mistake> {
        Ok(Self { items, tag: wanted_tag(tag)?, from: source_of(source, size)? })
    }
}

/// Sends; returns when the buffer may be used again.
#[inline(always)]
pub(crate) unsafe fn send(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        if quick::send(buf, count, datatype, dest, tag, comm) {
            return Ok(());
        }
        send_in(Mode::Standard, buf, (count, datatype), (dest, tag), comm)
    }
}

/// Sends; returns when, besides, the receive has begun.
pub(crate) unsafe fn ssend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { send_in(Mode::Synchronous, buf, (count, datatype), (dest, tag), comm) }
}

/// Sends to a receive that is there already: as any other.
pub(crate) unsafe fn rsend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { send_in(Mode::Standard, buf, (count, datatype), (dest, tag), comm) }
}

/// Sends by way of the buffer that is attached; does not wait for the receiver.
pub(crate) unsafe fn bsend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let items = Items::of_message("buf", buf, ("count", count), datatype, dest)?;
    let outgoing = Outgoing::new(items, dest, tag, size)?;
    let Some(to) = outgoing.to else { return Ok(()) };
    // SAFETY: the program keeps the items as they are until this returns.
    unsafe { buffer_of(communicator)?.send(world, &items.memory(), to, outgoing.tag) }
}

/// Receives.
#[inline(always)]
pub(crate) unsafe fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        if quick::receive(buf, count, datatype, source, tag, comm, status) {
            return Ok(());
        }
        receive_in(buf, (count, datatype), (source, tag), comm, status)
    }
}

/// Receives, and says what is wrong.
#[inline(never)]
unsafe fn receive_in(
    buf: *mut c_void,
    (count, datatype): (i64, Handle),
    (source, tag): (c_int, c_int),
    comm: Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let items = Items::of_message("buf", buf, ("count", count), datatype, source)?;
    let incoming = Incoming::new(items, source, tag, size)?;
    // SAFETY: the program leaves the items to us until this returns, and gives a writable status,
    // or none.
    unsafe { receive(world, &incoming, status) }
}

/// Starts to send.
#[inline(always)]
pub(crate) unsafe fn isend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        if is_place(request) && quick::send(buf, count, datatype, dest, tag, comm) {
            request.write(request::SENT);
            return Ok(());
        }
        start_in(Mode::Standard, buf, (count, datatype), (dest, tag), comm, request)
    }
}

/// Whether a handle may be written there, as far as that can be seen.
#[inline(always)]
fn is_place(request: *const Handle) -> bool {
    !request.is_null() && request.is_aligned()
}

/// Starts to send; over when, besides, the receive has begun.
pub(crate) unsafe fn issend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { start_in(Mode::Synchronous, buf, (count, datatype), (dest, tag), comm, request) }
}

/// Starts to send to a receive that is there already: as any other.
pub(crate) unsafe fn irsend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { start_in(Mode::Standard, buf, (count, datatype), (dest, tag), comm, request) }
}

/// Sends by way of the buffer that is attached; that is over at once.
pub(crate) unsafe fn ibsend(
    buf: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    communicator::get("comm", comm)?;
    pointer::check("request", request, 1)?;
    // SAFETY: as the caller says.
    unsafe {
        bsend(buf, count, datatype, dest, tag, comm)?;
        give("request", request, request::SENT)
    }
}

/// Starts to receive.
#[inline(always)]
pub(crate) unsafe fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        if is_place(request)
            && let Some(started) = quick::start_receive(buf, count, datatype, source, tag, comm)
        {
            request.write(started);
            return Ok(());
        }
        start_receive_in(buf, (count, datatype), (source, tag), comm, request)
    }
}

/// Starts to receive, and says what is wrong.
#[inline(never)]
unsafe fn start_receive_in(
    buf: *mut c_void,
    (count, datatype): (i64, Handle),
    (source, tag): (c_int, c_int),
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let items = Items::of_message("buf", buf, ("count", count), datatype, source)?;
    let incoming = Incoming::new(items, source, tag, size)?;
    pointer::check("request", request, 1)?;
    // SAFETY: the program leaves the items to us until the request is complete, and says that the
    // request is writable.
    unsafe {
        request.write(start_receive((comm, communicator), world, &incoming)?);
    }
    Ok(())
}

/// Sends and receives at once.
pub(crate) unsafe fn sendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let sent = Items::of_message("sendbuf", sendbuf, ("sendcount", sendcount), sendtype, dest)?;
    let received =
        Items::of_message("recvbuf", recvbuf, ("recvcount", recvcount), recvtype, source)?;
    let outgoing = Outgoing::new(sent, dest, sendtag, size)?;
    let incoming = Incoming::new(received, source, recvtag, size)?;
    // SAFETY: the program leaves both buffers to us until this returns, and gives a writable
    // status, or none.
    unsafe { exchange(world, outgoing.to, outgoing.tag, &sent.memory(), &incoming, status) }
}

/// Sends and receives at once; what comes in takes the place of what went out.
pub(crate) unsafe fn sendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let items = Items::new("buf", buf, ("count", count), datatype)?;
    let outgoing = Outgoing::new(items, dest, sendtag, size)?;
    let incoming = Incoming::new(items, source, recvtag, size)?;
    // SAFETY: the program leaves the items to us until this returns.
    let copy = unsafe { copy_of(&items)? };
    let layout = &landeck::layout::Layout::element(landeck::layout::Kind::BYTE);
    let memory = Memory { start: copy.as_ptr().cast(), layout, count: copy.len() as u64 };
    // SAFETY: the copy stays until this returns; the program says the rest.
    unsafe { exchange(world, outgoing.to, outgoing.tag, &memory, &incoming, status) }
}

/// Starts to send and to receive.
pub(crate) unsafe fn isendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let sent = Items::of_message("sendbuf", sendbuf, ("sendcount", sendcount), sendtype, dest)?;
    let received =
        Items::of_message("recvbuf", recvbuf, ("recvcount", recvcount), recvtype, source)?;
    let outgoing = Outgoing::new(sent, dest, sendtag, size)?;
    let incoming = Incoming::new(received, source, recvtag, size)?;
    pointer::check("request", request, 1)?;
    // SAFETY: the program leaves both buffers to us until the request is complete, and says that
    // the request is writable.
    unsafe {
        let started = start_exchange((comm, communicator), world, &outgoing, &incoming)?;
        give("request", request, started)
    }
}

/// Starts to send and to receive; what comes in takes the place of what went out. A copy of that
/// goes by way of the library's own buffer.
pub(crate) unsafe fn isendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let items = Items::new("buf", buf, ("count", count), datatype)?;
    let outgoing = Outgoing::new(items, dest, sendtag, size)?;
    let incoming = Incoming::new(items, source, recvtag, size)?;
    pointer::check("request", request, 1)?;
    // SAFETY: the program leaves the items to us until the request is complete, and says that the
    // request is writable.
    unsafe {
        if let Some(to) = outgoing.to {
            buffer::LIBRARY.send(world, &items.memory(), to, outgoing.tag)?;
        }
        let started = start_receive((comm, communicator), world, &incoming)?;
        give("request", request, started)
    }
}

/// Sends, waits until that is over, and says what is wrong.
#[inline(never)]
unsafe fn send_in(
    mode: Mode,
    buf: *const c_void,
    (count, datatype): (i64, Handle),
    (dest, tag): (c_int, c_int),
    comm: Handle,
) -> Result<(), Mistake> {
    let (world, size) = communicator::get("comm", comm)?.messages();
    let items = Items::of_message("buf", buf, ("count", count), datatype, dest)?;
    let Outgoing { to: Some(to), tag, .. } = Outgoing::new(items, dest, tag, size)? else {
        return Ok(());
    };
    // SAFETY: the program keeps the items as they are until this returns.
    unsafe { message::send(world, &items.memory(), to, tag, mode) }.map_err(Mistake::from)
}

/// Starts to send, and says what is wrong.
#[inline(never)]
unsafe fn start_in(
    mode: Mode,
    buf: *const c_void,
    (count, datatype): (i64, Handle),
    (dest, tag): (c_int, c_int),
    comm: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let (world, size) = communicator.messages();
    let items = Items::of_message("buf", buf, ("count", count), datatype, dest)?;
    let outgoing = Outgoing::new(items, dest, tag, size)?;
    pointer::check("request", request, 1)?;
    request::make_room()?;
    let started = match outgoing.to {
        None => request::SENT,
        Some(to) => {
            // SAFETY: the program keeps the items as they are until the request is complete.
            let operation =
                unsafe { message::start_send(world, &items.memory(), to, outgoing.tag, mode)? };
            request::keep_send(operation, Holder::of(comm, communicator))
        }
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { request.write(started) };
    Ok(())
}

/// Receives. A message that was too long is received all the same, and told of.
///
/// # Safety
/// The items are writable, and so is the status, unless it is null.
#[inline]
unsafe fn receive(world: &World, incoming: &Incoming, status: *mut Status) -> Result<(), Mistake> {
    let Some(from) = incoming.from else {
        // SAFETY: as the caller says.
        return unsafe { tell(status, Status::of_nobody()) };
    };
    // SAFETY: as the caller says.
    let received = unsafe { message::receive(world, &incoming.items.memory(), from, incoming.tag) };
    // SAFETY: as the caller says.
    unsafe { told(received, status) }
}

/// Tells of a message that was received, well or not.
///
/// # Safety
/// The status is writable, unless it is null.
#[inline]
pub(crate) unsafe fn told(
    received: landeck::Result<landeck::Status>,
    status: *mut Status,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        match received {
            Ok(received) => tell(status, status_of(&received)),
            Err(error) => {
                tell(status, status_of_error(&error))?;
                Err(error.into())
            }
        }
    }
}

/// Starts to receive; gives the handle of the request.
///
/// # Safety
/// The items are writable until it is complete.
#[inline(always)]
unsafe fn start_receive(
    (comm, communicator): (Handle, &'static Arc<Communicator>),
    world: &World,
    incoming: &Incoming,
) -> Result<Handle, Mistake> {
    let Some(from) = incoming.from else { return Ok(request::OF_NOBODY) };
    request::make_room()?;
    // SAFETY: as the caller says.
    let operation =
        unsafe { message::start_receive(world, &incoming.items.memory(), from, incoming.tag)? };
    Ok(request::keep_receive(operation, Holder::of(comm, communicator)))
}

/// Sends and receives at once. A send that can go at once is over before the receive begins.
///
/// # Safety
/// The sent items are readable. The received items are writable, and so is the status, unless it is null.
unsafe fn exchange(
    world: &World,
    to: Option<usize>,
    tag: Tag,
    sent: &Memory<'_>,
    incoming: &Incoming,
    status: *mut Status,
) -> Result<(), Mistake> {
    let sending = match to {
        // SAFETY: as the caller says; this waits for its end.
        Some(to) => Some(unsafe { message::start_send(world, sent, to, tag, Mode::Standard)? }),
        None => None,
    };
    // SAFETY: as the caller says.
    let received = unsafe { receive(world, incoming, status) };
    let sent = sending.map_or(Ok(()), |sending| raw::wait(world, sending).map(drop));
    received.and(sent.map_err(Mistake::from))
}

/// Starts to send and to receive; gives the handle of the request.
///
/// # Safety
/// The sent items stay readable, and the received ones writable, until the request is complete.
unsafe fn start_exchange(
    (comm, communicator): (Handle, &'static Arc<Communicator>),
    world: &World,
    outgoing: &Outgoing,
    incoming: &Incoming,
) -> Result<Handle, Mistake> {
    request::make_room()?;
    let memory = outgoing.items.memory();
    let send = match outgoing.to {
        None => None,
        Some(to) => {
            // SAFETY: as the caller says.
            let started =
                unsafe { message::start_send(world, &memory, to, outgoing.tag, Mode::Standard)? };
            matches!(started, raw::Operation::Pending(_)).then_some(started)
        }
    };
    let Some(send) = send else {
        // SAFETY: as the caller says.
        return unsafe { start_receive((comm, communicator), world, incoming) };
    };
    let receive = match incoming.from {
        None => None,
        Some(from) => {
            let memory = incoming.items.memory();
            // SAFETY: as the caller says.
            Some(unsafe { message::start_receive(world, &memory, from, incoming.tag)? })
        }
    };
    let communicator = Arc::clone(communicator);
    Ok(request::keep(Request::Pair(Box::new(Pair { communicator, receive, send }))))
}

/// A packed copy of items.
///
/// # Safety
/// The items are readable.
unsafe fn copy_of(items: &Items) -> Result<Vec<MaybeUninit<u8>>, Mistake> {
    let bytes = items.datatype.layout.packed_bytes(items.count)?;
    let mut copy = Vec::new();
    let has_room = usize::try_from(bytes).is_ok_and(|bytes| copy.try_reserve_exact(bytes).is_ok());
    if !has_room {
        let text = format!("there is no memory for a copy of the {bytes} bytes to be sent");
        return Err(Mistake::new(ERR_NO_MEM, text));
    }
    copy.resize(bytes as usize, MaybeUninit::uninit());
    // SAFETY: as the caller says; the copy is no part of the items.
    unsafe { items.memory().pack(0, &mut copy)? };
    Ok(copy)
}
