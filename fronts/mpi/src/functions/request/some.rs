//! Those of several requests that are over.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use super::Several;
use super::batch::{Batch, Chosen};
use super::watch;
use crate::abi::{Handle, Status, UNDEFINED};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::walk::Walk;

/// Where the program wants to know which requests they are.
#[derive(Clone, Copy)]
struct Answer {
    outcount: *mut c_int,
    indices: *mut c_int,
}

/// Waits until one of some requests is complete; completes all that are.
pub(crate) unsafe fn waitsome(
    incount: c_int,
    array_of_requests: *mut Handle,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let several = Several::new(("incount", incount), array_of_requests, array_of_statuses)?;
    let answer = Answer::new(several, outcount, array_of_indices)?;
    // SAFETY: the program gives so many requests, indices and statuses, and a writable count.
    unsafe {
        watch::wait_any(several)?;
        match answer.find(several)? {
            Some(found) => Batch::completes(several, Chosen::Some(found)).run(),
            None => Ok(Walk::Done),
        }
    }
}

/// Completes those of some requests that are over.
pub(crate) unsafe fn testsome(
    incount: c_int,
    array_of_requests: *mut Handle,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let several = Several::new(("incount", incount), array_of_requests, array_of_statuses)?;
    let answer = Answer::new(several, outcount, array_of_indices)?;
    // SAFETY: the program gives so many requests, indices and statuses, and a writable count.
    unsafe {
        match answer.find(several)? {
            Some(found) => Batch::completes(several, Chosen::Some(found)).run(),
            None => Ok(Walk::Done),
        }
    }
}

/// Looks which of some requests are over, and leaves them as they are.
pub(crate) unsafe fn request_get_status_some(
    incount: c_int,
    array_of_requests: *const Handle,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<Walk, Mistake> {
    let several = Several::new(("incount", incount), array_of_requests, array_of_statuses)?;
    let answer = Answer::new(several, outcount, array_of_indices)?;
    // SAFETY: the program gives so many requests, indices and statuses, and a writable count.
    unsafe {
        match answer.find(several)? {
            Some(found) => Batch::looks(several, Chosen::Some(found)).run(),
            None => Ok(Walk::Done),
        }
    }
}

impl Answer {
    fn new(several: Several, outcount: *mut c_int, indices: *mut c_int) -> Result<Self, Mistake> {
        pointer::check("outcount", outcount, 1)?;
        pointer::check("array_of_indices", indices, several.count)?;
        Ok(Self { outcount, indices })
    }

    /// Finds those that are over, and tells which they are.
    ///
    /// # Safety
    /// The program gives requests as it says, and has as much room for indices.
    unsafe fn find(self, several: Several) -> Result<Option<Vec<usize>>, Mistake> {
        // SAFETY: as the caller says.
        let found = unsafe { watch::find_some(several)? };
        // All numbers are smaller than one that came in as C's integer.
        let count = found.as_ref().map_or(UNDEFINED, |found| found.len() as c_int);
        for (place, index) in found.iter().flatten().enumerate() {
            // SAFETY: as the caller says; `new` checked the array.
            unsafe { self.indices.add(place).write(*index as c_int) };
        }
        // SAFETY: as the caller says.
        unsafe { give("outcount", self.outcount, count)? };
        Ok(found)
    }
}
