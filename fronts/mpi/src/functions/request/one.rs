//! One request: waited for, tested, looked at, freed, cancelled.

use std::ffi::c_int;

use landeck::{World, raw};
use landeck_c_boundary::pointer;

use super::Several;
use super::batch::{Batch, Chosen};
use crate::abi::{Handle, REQUEST_NULL, Status};
use crate::arguments::{give, tell};
use crate::mistake::Mistake;
use crate::objects::generalized::Generalized;
use crate::objects::request::{self, Entry, Found, Request, Started};
use crate::objects::{completion, freed};
use crate::walk::Walk;

/// Waits until a request is complete.
#[inline]
pub(crate) unsafe fn wait(request: *mut Handle, status: *mut Status) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a request, or it is refused.
    let handle = unsafe { pointer::read("request", request)? };
    let Some(end) = completion::complete_message("request", handle)? else {
        // SAFETY: the program gives a request, and a writable status, or none.
        return unsafe { Batch::completes(alone(request, status), Chosen::One(0)).run() };
    };
    // SAFETY: the program gives a writable request, and a writable status, or none.
    unsafe {
        request.write(REQUEST_NULL);
        tell(status, end.status)?;
    }
    end.mistake.map_or(Ok(Walk::Done), Err)
}

/// Looks whether a request is complete.
#[inline]
pub(crate) unsafe fn test(
    request: *mut Handle,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<Walk, Mistake> {
    pointer::check("flag", flag, 1)?;
    // SAFETY: the program gives the address of a request, or it is refused.
    let handle = unsafe { pointer::read("request", request)? };
    if let Found::Kept(entry) = request::find("request", handle)? {
        let is_over = entry.is_over()?;
        // SAFETY: checked above; the program says that it is writable.
        unsafe { give("flag", flag, c_int::from(is_over))? };
        if !is_over {
            return Ok(Walk::Done);
        }
    } else {
        // SAFETY: as above.
        unsafe { give("flag", flag, 1)? };
    }
    // SAFETY: the program gives a request, and a writable status, or none.
    unsafe { wait(request, status) }
}

/// Looks whether a request is over, and leaves it as it is.
pub(crate) unsafe fn request_get_status(
    request: Handle,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<Walk, Mistake> {
    pointer::check("flag", flag, 1)?;
    let is_over = match request::find("request", request)? {
        Found::Kept(entry) => entry.is_over()?,
        Found::Null | Found::Immediate(_) => true,
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(is_over))? };
    if !is_over {
        return Ok(Walk::Done);
    }
    let request = (&raw const request).cast_mut();
    // SAFETY: the request is read before this returns, and never written. The program gives a
    // writable status, or none.
    unsafe { Batch::looks(alone(request, status), Chosen::One(0)).run() }
}

/// MPI_Request_free: frees a request; its operation goes on unobserved.
pub(crate) unsafe fn request_free(request: *mut Handle) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a request, or it is refused.
    let handle = unsafe { pointer::read("request", request)? };
    let walk = match request::find("request", handle)? {
        Found::Null => {
            return Err(request::wrong(
                "request",
                handle,
                "one that was started and not completed",
            ));
        }
        Found::Immediate(_) => Walk::Done,
        Found::Kept(entry) => free(handle, entry)?,
    };
    // SAFETY: read above; the program says that it is writable too.
    unsafe { request.write(REQUEST_NULL) };
    Ok(walk)
}

/// MPI_Cancel: takes back a message that has not been matched.
pub(crate) unsafe fn cancel(request: *mut Handle) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a request, or it is refused.
    let handle = unsafe { pointer::read("request", request)? };
    match request::find("request", handle)? {
        Found::Null => Err(not_cancellable(handle)),
        Found::Immediate(_) => Ok(Walk::Done),
        Found::Kept(entry) => match &entry.request {
            Request::Generalized(own) => Ok(own.cancel(own.is_over()).into_walk()),
            Request::PointToPoint(message) => cancel_message(message.world(), message.operation),
            Request::Persistent(persistent) if persistent.is_message => {
                match &*persistent.active() {
                    Some(Started::Pending(pending)) => {
                        cancel_message(pending.world(), pending.operation)
                    }
                    Some(Started::Complete(_) | Started::Exchange(_)) => Ok(Walk::Done),
                    None if entry.is_seen() => Ok(Walk::Done),
                    None => Err(not_cancellable(handle)),
                }
            }
            _ => Err(not_cancellable(handle)),
        },
    }
}

/// Takes a message back. Its receiver has to answer; where that is this process itself, it does so at
/// once, so that programs find the message taken back when they look next.
fn cancel_message(world: &World, operation: raw::Operation) -> Result<Walk, Mistake> {
    raw::cancel(world, operation)?;
    for _ in 0..LOOKS {
        if raw::are_over(world, &[Some(operation)])? {
            break;
        }
    }
    Ok(Walk::Done)
}

/// How often that is looked at: question and answer are sent and arrive.
const LOOKS: usize = 4;

#[cold]
fn not_cancellable(handle: Handle) -> Mistake {
    request::wrong("request", handle, "a message that was started, or a generalized request")
}

fn free(handle: Handle, entry: &Entry) -> Result<Walk, Mistake> {
    match &entry.request {
        Request::PointToPoint(message) => release(entry, Some(message.operation))?,
        Request::Pair(pair) => {
            release(entry, pair.receive)?;
            release(entry, Some(pair.send))?;
        }
        Request::Persistent(persistent) if persistent.is_message => {
            if let Some(Started::Pending(pending)) = &*persistent.active() {
                release(entry, Some(pending.operation))?;
            }
        }
        Request::Generalized(own) => return free_generalized(handle, own),
        Request::Collective(_) | Request::Exchange(_) | Request::Persistent(_) => {
            return freed::free(request::take("request", handle)?);
        }
        Request::Flush(_) => {}
    }
    request::take("request", handle)?;
    Ok(Walk::Done)
}

fn free_generalized(handle: Handle, own: &Generalized) -> Result<Walk, Mistake> {
    if !own.set_freed() {
        return Ok(Walk::Done);
    }
    let asking = own.dispose()?;
    request::take("request", handle)?;
    Ok(asking.into_walk())
}

/// Leaves an operation to itself, unless its end is known.
fn release(entry: &Entry, operation: Option<raw::Operation>) -> Result<(), Mistake> {
    if let Some(operation) = operation
        && !entry.is_seen()
    {
        raw::release(entry.world(), operation)?;
    }
    Ok(())
}

/// A request alone.
fn alone(request: *mut Handle, status: *mut Status) -> Several {
    Several { requests: request, count: 1, statuses: status }
}
