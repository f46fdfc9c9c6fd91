//! Attributes of communicators, datatypes and windows.

use std::ffi::{c_int, c_void};

use landeck_c_boundary::pointer;

use crate::abi::{Callback, KEYVAL_INVALID};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::keyval::{self, Keyval};
use crate::objects::kind::Kind;

/// Makes a key for attributes of communicators.
pub(crate) unsafe fn comm_create_keyval(
    comm_copy_attr_fn: Callback,
    comm_delete_attr_fn: Callback,
    comm_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result<(), Mistake> {
    pointer::check("comm_keyval", comm_keyval, 1)?;
    let kind = Kind::Communicator;
    // SAFETY: the program gives functions of these types, or constants.
    let made = unsafe { Keyval::new(kind, comm_copy_attr_fn, comm_delete_attr_fn, extra_state) };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("comm_keyval", comm_keyval, keyval::keep(made)) }
}

/// Frees a key; attributes of it stay.
pub(crate) unsafe fn comm_free_keyval(comm_keyval: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a key, or it is refused.
    let number = unsafe { pointer::read("comm_keyval", comm_keyval)? };
    keyval::free("comm_keyval", number, Kind::Communicator)?;
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("comm_keyval", comm_keyval, KEYVAL_INVALID) }
}
