//! All of several requests.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use super::Several;
use super::batch::{Batch, Chosen};
use super::watch;
use crate::abi::{Handle, Status};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::walk::Walk;

/// Waits until all of some requests are complete.
pub(crate) unsafe fn waitall(
    count: c_int,
    array_of_requests: *mut Handle,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let several = Several::new(("count", count), array_of_requests, array_of_statuses)?;
    // SAFETY: the program gives so many requests and statuses.
    unsafe { Batch::completes(several, Chosen::All).run() }
}

/// Completes some requests, if all of them are over.
pub(crate) unsafe fn testall(
    count: c_int,
    array_of_requests: *mut Handle,
    flag: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let several = Several::new(("count", count), array_of_requests, array_of_statuses)?;
    // SAFETY: the program gives so many requests and statuses, and a writable flag.
    unsafe {
        if !are_over(several, flag)? {
            return Ok(Walk::Done);
        }
        Batch::completes(several, Chosen::All).run()
    }
}

/// Looks whether all of some requests are over, and leaves them as they are.
pub(crate) unsafe fn request_get_status_all(
    count: c_int,
    array_of_requests: *const Handle,
    flag: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let several = Several::new(("count", count), array_of_requests, array_of_statuses)?;
    // SAFETY: the program gives so many requests and statuses, and a writable flag.
    unsafe {
        if !are_over(several, flag)? {
            return Ok(Walk::Done);
        }
        Batch::looks(several, Chosen::All).run()
    }
}

/// Whether all are over; says so in the flag.
///
/// # Safety
/// The program gives requests as it says, and a writable flag.
unsafe fn are_over(several: Several, flag: *mut c_int) -> Result<bool, Mistake> {
    pointer::check("flag", flag, 1)?;
    // SAFETY: as the caller says.
    unsafe {
        let are_over = watch::test_all(several)?;
        give("flag", flag, c_int::from(are_over))?;
        Ok(are_over)
    }
}
