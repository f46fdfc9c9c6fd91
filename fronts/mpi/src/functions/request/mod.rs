//! Completing requests: waiting, testing, looking, freeing, cancelling, one or several at once.
//!
//! | module | what |
//! |---|---|
//! | `one` | a single request |
//! | `all`, `any`, `some` | several of them |
//! | `batch` | brings requests to their end, and tells of it |
//! | `watch` | finds out which of several are over |

mod all;
mod any;
mod batch;
mod one;
mod some;
mod watch;

pub(crate) use all::{request_get_status_all, testall, waitall};
pub(crate) use any::{request_get_status_any, testany, waitany};
pub(crate) use one::{cancel, request_free, request_get_status, test, wait};
pub(crate) use some::{request_get_status_some, testsome, waitsome};

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use crate::abi::{Handle, Status};
use crate::arguments::length_of;
use crate::mistake::Mistake;

/// The arguments of a call about several requests.
#[derive(Clone, Copy, Debug)]
struct Several {
    requests: *mut Handle,
    count: usize,
    /// Null if the program wants none.
    statuses: *mut Status,
}

impl Several {
    /// Checks the arguments. Looking changes no handle, so for those calls they may be constant.
    fn new(
        (argument, count): (&'static str, c_int),
        requests: *const Handle,
        statuses: *mut Status,
    ) -> Result<Self, Mistake> {
        let count = length_of(argument, count)?;
        pointer::check("array_of_requests", requests, count)?;
        if !statuses.is_null() {
            pointer::check("array_of_statuses", statuses, count)?;
        }
        Ok(Self { requests: requests.cast_mut(), count, statuses })
    }

    /// One of the handles.
    ///
    /// # Safety
    /// The program has so many handles there, and the index is one of theirs.
    #[inline]
    unsafe fn handle(&self, index: usize) -> Handle {
        // SAFETY: as the caller says; `new` checked the array.
        unsafe { self.requests.add(index).read() }
    }
}
