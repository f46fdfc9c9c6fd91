//! Operations of the program that are waited for as those of the library.

use std::ffi::c_void;
use std::sync::Arc;

use landeck_c_boundary::pointer;

use crate::abi::{Callback, Handle, function};
use crate::arguments::give;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::generalized::{Functions, Generalized};
use crate::objects::request::{self, Request};
use crate::walk::Walk;

/// Begins an operation of the program.
pub(crate) unsafe fn grequest_start(
    query_fn: Callback,
    free_fn: Callback,
    cancel_fn: Callback,
    extra_state: *mut c_void,
    request: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("request", request, 1)?;
    request::make_room()?;
    // SAFETY: the program gives functions of these types, or null pointers.
    let functions = unsafe {
        Functions {
            query: function(query_fn),
            free: function(free_fn),
            cancel: function(cancel_fn),
            extra_state: extra_state.expose_provenance(),
        }
    };
    let world = job::with_membership(|membership| Ok(membership.world()))?;
    let begun = Generalized::begin(world, functions)?;
    let handle = request::keep(Request::Generalized(Arc::new(begun)));
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("request", request, handle) }
}

/// The operation is complete. If the program has freed it before, it goes now.
pub(crate) unsafe fn grequest_complete(request: Handle) -> Result<Walk, Mistake> {
    job::check_joined()?;
    // Whoever waits for it may take it out of the table as soon as it is complete.
    let own = Arc::clone(request::generalized("request", request)?);
    match own.set_complete()? {
        None => Err(request::wrong("request", request, "one that is not complete yet")),
        Some(false) => Ok(Walk::Done),
        Some(true) => {
            request::take("request", request)?;
            Ok(own.dispose()?.into_walk())
        }
    }
}
