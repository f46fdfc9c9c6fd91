//! Operations of the program, and combining without communication.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use crate::abi::{Callback, ERR_ARG, Handle, OP_NULL, function};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::operation::{self, Function, Operation, Own};

/// Makes an operation of a function of the program.
pub(crate) unsafe fn op_create(
    user_fn: Callback,
    commute: c_int,
    op: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a function of this type.
    let function = unsafe { function(user_fn) }.ok_or_else(no_function)?;
    // SAFETY: the program says that the place is writable.
    unsafe { create(Function::Short(function), commute, op) }
}

/// The same for large counts.
pub(crate) unsafe fn op_create_c(
    user_fn: Callback,
    commute: c_int,
    op: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a function of this type.
    let function = unsafe { function(user_fn) }.ok_or_else(no_function)?;
    // SAFETY: the program says that the place is writable.
    unsafe { create(Function::Large(function), commute, op) }
}

/// Frees an operation of the program.
pub(crate) unsafe fn op_free(op: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of an operation, or it is refused.
    operation::free("op", unsafe { pointer::read("op", op)? })?;
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("op", op, OP_NULL) }
}

/// Whether the operands of an operation may change places.
pub(crate) unsafe fn op_commutative(op: Handle, commute: *mut c_int) -> Result<(), Mistake> {
    let commutes = match operation::get("op", op)? {
        Operation::Predefined(_) => true,
        Operation::Own(own) => own.is_commutative,
    };
    // SAFETY: the program says that the place is writable.
    unsafe { give("commute", commute, c_int::from(commutes)) }
}

unsafe fn create(function: Function, commute: c_int, op: *mut Handle) -> Result<(), Mistake> {
    pointer::check("op", op, 1)?;
    let handle = operation::keep(Own { function, is_commutative: commute != 0 });
    // SAFETY: as the caller says.
    unsafe { give("op", op, handle) }
}

#[cold]
fn no_function() -> Mistake {
    Mistake::new(ERR_ARG, "user_fn is a null pointer; pass the function that combines")
}
