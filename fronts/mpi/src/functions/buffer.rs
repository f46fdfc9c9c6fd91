//! Attaching and detaching the buffers of buffered sends, and waiting until they are empty: of a
//! communicator, a session, and the process.

use std::ffi::c_void;
use std::sync::Arc;

use landeck_c_boundary::pointer;

use crate::abi::{BUFFER_AUTOMATIC, ERR_ARG, ERR_BUFFER, Handle};
use crate::arguments::give;
use crate::counts::CountPlace;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::buffer::{Attached, Buffer, PROCESS, Slot};
use crate::objects::communicator::{self, Communicator};
use crate::objects::request::{self, Request};
use crate::objects::session;

/// Gives the process a buffer.
pub(crate) unsafe fn buffer_attach(buffer: *mut c_void, size: i64) -> Result<(), Mistake> {
    attach(process()?, buffer, size)
}

/// Takes the buffer of the process away, when it is empty.
pub(crate) unsafe fn buffer_detach(
    buffer_addr: *mut c_void,
    size: CountPlace,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { detach(process()?, buffer_addr, size) }
}

/// Waits until the buffer of the process is empty.
pub(crate) unsafe fn buffer_flush() -> Result<(), Mistake> {
    process()?.flush()
}

/// Starts to wait until the buffer of the process is empty.
pub(crate) unsafe fn buffer_iflush(request: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { start_flush(process()?, request) }
}

/// Gives a communicator a buffer.
pub(crate) unsafe fn comm_attach_buffer(
    comm: Handle,
    buffer: *mut c_void,
    size: i64,
) -> Result<(), Mistake> {
    attach(&communicator::get("comm", comm)?.buffer, buffer, size)
}

/// Takes the buffer of a communicator away, when it is empty.
pub(crate) unsafe fn comm_detach_buffer(
    comm: Handle,
    buffer_addr: *mut c_void,
    size: CountPlace,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { detach(&communicator::get("comm", comm)?.buffer, buffer_addr, size) }
}

/// Waits until the buffer of a communicator is empty.
pub(crate) unsafe fn comm_flush_buffer(comm: Handle) -> Result<(), Mistake> {
    communicator::get("comm", comm)?.buffer.flush()
}

/// Starts to wait until the buffer of a communicator is empty.
pub(crate) unsafe fn comm_iflush_buffer(comm: Handle, request: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { start_flush(&communicator::get("comm", comm)?.buffer, request) }
}

/// Gives a session a buffer.
pub(crate) unsafe fn session_attach_buffer(
    session: Handle,
    buffer: *mut c_void,
    size: i64,
) -> Result<(), Mistake> {
    attach(&session::get("session", session)?.buffer, buffer, size)
}

/// Takes the buffer of a session away, when it is empty.
pub(crate) unsafe fn session_detach_buffer(
    session: Handle,
    buffer_addr: *mut c_void,
    size: CountPlace,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { detach(&session::get("session", session)?.buffer, buffer_addr, size) }
}

/// Waits until the buffer of a session is empty.
pub(crate) unsafe fn session_flush_buffer(session: Handle) -> Result<(), Mistake> {
    session::get("session", session)?.buffer.flush()
}

/// Starts to wait until the buffer of a session is empty.
pub(crate) unsafe fn session_iflush_buffer(
    session: Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { start_flush(&session::get("session", session)?.buffer, request) }
}

/// The buffer that messages of a communicator go by way of: its own, that of its session, or that
/// of the process.
pub(crate) fn buffer_of(communicator: &Communicator) -> Result<Arc<Buffer>, Mistake> {
    let of_session = || communicator.session().and_then(|session| session.buffer.get());
    let found = communicator.buffer.get().or_else(of_session).or_else(|| PROCESS.get());
    found.ok_or_else(|| {
        let text = "no buffer is attached, to the communicator, to its session or to the process; attach \
                    one with MPI_Buffer_attach";
        Mistake::new(ERR_BUFFER, text)
    })
}

/// The place of the buffer of the process.
fn process() -> Result<&'static Slot, Mistake> {
    job::check_joined()?;
    Ok(&PROCESS)
}

fn attach(slot: &Slot, buffer: *mut c_void, size: i64) -> Result<(), Mistake> {
    if buffer.addr() == BUFFER_AUTOMATIC {
        return slot.attach(None);
    }
    let start = buffer.cast::<u8>();
    let bytes = usize::try_from(size)
        .map_err(|_| Mistake::new(ERR_ARG, format_args!("size is {size}; it must be 0 or more")))?;
    pointer::check("buffer", start, bytes).map_err(|error| Mistake::new(ERR_BUFFER, error))?;
    slot.attach(Some(Attached { start, bytes }))
}

/// # Safety
/// The first is the address of a pointer; both are writable.
unsafe fn detach(slot: &Slot, buffer_addr: *mut c_void, size: CountPlace) -> Result<(), Mistake> {
    let buffer_addr = buffer_addr.cast::<*mut c_void>();
    pointer::check("buffer_addr", buffer_addr, 1)?;
    size.check("size")?;
    let (start, bytes) = slot.detach()?;
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: as the caller says.
    unsafe {
        give("buffer_addr", buffer_addr, start)?;
        // It came in through a count.
        size.write("size", bytes as i64)?;
    }
    Ok(())
}

/// # Safety
/// The request is writable.
unsafe fn start_flush(slot: &Slot, request: *mut Handle) -> Result<(), Mistake> {
    pointer::check("request", request, 1)?;
    request::make_room()?;
    let started = match slot.start_flush()? {
        Some(flush) => request::keep(Request::Flush(Box::new(flush))),
        None => request::SENT,
    };
    // SAFETY: as the caller says.
    unsafe { give("request", request, started) }
}
