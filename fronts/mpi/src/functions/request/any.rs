//! Any one of several requests.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use super::Several;
use super::batch::{Batch, Chosen};
use super::watch::{self, Known};
use crate::abi::{Handle, Status, UNDEFINED};
use crate::arguments::{give, length_of, tell};
use crate::mistake::Mistake;
use crate::walk::Walk;

/// Waits until one of some requests is complete.
pub(crate) unsafe fn waitany(
    count: c_int,
    array_of_requests: *mut Handle,
    indx: *mut c_int,
    status: *mut Status,
) -> Result<Walk, Mistake> {
    let several = any(count, array_of_requests, indx, status)?;
    // SAFETY: the program gives so many requests, a writable index, a writable status, or none.
    unsafe {
        let known = watch::wait_any(several)?;
        match found(known, indx, status)? {
            Some(index) => Batch::completes(several, Chosen::One(index)).run(),
            None => Ok(Walk::Done),
        }
    }
}

/// Completes one of some requests, if one of them is over.
pub(crate) unsafe fn testany(
    count: c_int,
    array_of_requests: *mut Handle,
    indx: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<Walk, Mistake> {
    let several = any(count, array_of_requests, indx, status)?;
    // SAFETY: the program gives so many requests, a writable index and flag, a writable status, or
    // none.
    unsafe {
        match test(several, indx, flag, status)? {
            Some(index) => Batch::completes(several, Chosen::One(index)).run(),
            None => Ok(Walk::Done),
        }
    }
}

/// Looks whether one of some requests is over, and leaves it as it is.
pub(crate) unsafe fn request_get_status_any(
    count: c_int,
    array_of_requests: *const Handle,
    indx: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<Walk, Mistake> {
    let several = any(count, array_of_requests, indx, status)?;
    // SAFETY: the program gives so many requests, a writable index and flag, a writable status, or
    // none.
    unsafe {
        match test(several, indx, flag, status)? {
            Some(index) => Batch::looks(several, Chosen::One(index)).run(),
            None => Ok(Walk::Done),
        }
    }
}

/// Checks the arguments.
fn any(
    count: c_int,
    requests: *const Handle,
    indx: *mut c_int,
    status: *mut Status,
) -> Result<Several, Mistake> {
    let count = length_of("count", count)?;
    pointer::check("array_of_requests", requests, count)?;
    pointer::check("indx", indx, 1)?;
    if !status.is_null() {
        pointer::check("status", status, 1)?;
    }
    Ok(Several { requests: requests.cast_mut(), count, statuses: status })
}

/// Looks which one is over; says in the flag whether the call has a result.
///
/// # Safety
/// The program gives requests as it says, a writable index and flag, a writable status, or none.
unsafe fn test(
    several: Several,
    indx: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<Option<usize>, Mistake> {
    pointer::check("flag", flag, 1)?;
    // SAFETY: as the caller says.
    unsafe {
        let known = watch::test_any(several)?;
        give("flag", flag, c_int::from(!matches!(known, Known::NoneOver)))?;
        found(known, indx, status)
    }
}

/// Says which one it is; none if there is none to be brought to its end.
///
/// # Safety
/// The program gives a writable index, and a writable status, or none.
unsafe fn found(
    known: Known,
    indx: *mut c_int,
    status: *mut Status,
) -> Result<Option<usize>, Mistake> {
    let (index, undefined) = match known {
        // It came in as C's integer.
        Known::Over(index) => (Some(index), index as c_int),
        Known::NoneOver | Known::NoneActive => (None, UNDEFINED),
    };
    // SAFETY: as the caller says.
    unsafe {
        if matches!(known, Known::NoneActive) {
            tell(status, Status::empty())?;
        }
        give("indx", indx, undefined)?;
    }
    Ok(index)
}
