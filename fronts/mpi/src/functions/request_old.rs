//! Completing requests: waiting, testing, freeing, one or several at once.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use crate::abi::{Handle, REQUEST_NULL, Status};
use crate::arguments::{length_of, tell};
use crate::mistake::Mistake;
use crate::objects::request::{self, Found, Request, Started};
use crate::walk::Walk;

/// Waits until a request is complete.
pub(crate) unsafe fn wait(request: *mut Handle, status: *mut Status) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a request, or it is refused.
    let handle = unsafe { pointer::read("request", request)? };
    let (result, left) = completed("request", handle)?;
    // SAFETY: read above; the program says that it is writable too, and a status, or none.
    unsafe {
        request.write(left);
        tell(status, result)?;
    }
    Ok(Walk::Done)
}

/// Waits until all of some requests are complete.
pub(crate) unsafe fn waitall(
    count: c_int,
    array_of_requests: *mut Handle,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let count = length_of("count", count)?;
    // SAFETY: the program gives an array of so many requests.
    let requests = unsafe { pointer::slice_mut("array_of_requests", array_of_requests, count)? };
    if !array_of_statuses.is_null() {
        pointer::check("array_of_statuses", array_of_statuses, count)?;
    }
    for (index, request) in requests.iter_mut().enumerate() {
        let (result, left) = completed("array_of_requests", *request)?;
        *request = left;
        if !array_of_statuses.is_null() {
            // SAFETY: checked above; the program says that all are writable.
            unsafe { array_of_statuses.add(index).write(result) };
        }
    }
    Ok(Walk::Done)
}

/// Waits for a request; gives its status, and what the handle becomes.
fn completed(argument: &'static str, handle: Handle) -> Result<(Status, Handle), Mistake> {
    let kept = match request::find(argument, handle)? {
        Found::Immediate(status) => return Ok((status, REQUEST_NULL)),
        Found::Kept(kept) => kept,
    };
    if let Request::Persistent(persistent) = kept {
        let active = persistent.take_active();
        let status = match active {
            None => Status::empty(),
            Some(Started::Complete(status)) => status,
            Some(Started::Pending(pending)) => pending.wait()?,
        };
        return Ok((status, handle));
    }
    let status = match request::take(argument, handle)? {
        Request::PointToPoint(pending) | Request::Collective(pending) => pending.wait()?,
        Request::Persistent(_) | Request::Generalized(_) => return Err(Mistake::unsupported()),
    };
    Ok((status, REQUEST_NULL))
}
