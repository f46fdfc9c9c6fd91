//! Operations of the program, and combining without communication.

use std::ffi::{c_int, c_void};

use landeck::layout::{Kind, Layout};
use landeck::raw::folding::Collected;
use landeck::unstable::arithmetic::Reduction;
use landeck_c_boundary::pointer;

use crate::abi::{Callback, ERR_ARG, ERR_BUFFER, Handle, OP_NULL, function};
use crate::arguments::{Items, give};
use crate::functions::collective::Combination;
use crate::mistake::Mistake;
use crate::objects::operation::{self, Function, Operation, Own};
use crate::walk::Walk;

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

/// MPI_Op_create_c: an operation whose function takes large counts.
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
        Operation::Predefined(predefined) => predefined.is_commutative(),
        Operation::Own(own) => own.is_commutative,
    };
    // SAFETY: the program says that the place is writable.
    unsafe { give("commute", commute, c_int::from(commutes)) }
}

/// Combines without communication: `inoutbuf = inbuf op inoutbuf`.
pub(crate) unsafe fn reduce_local(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
) -> Result<Walk, Mistake> {
    let input = Items::new("inbuf", inbuf, ("count", count), datatype)?;
    let inout = Items::new("inoutbuf", inoutbuf, ("count", count), datatype)?;
    check_apart(&input, &inout)?;
    match operation::get("op", op)? {
        Operation::Predefined(predefined) => {
            let reduction = predefined.on(inout.datatype)?;
            // SAFETY: the program leaves both to this call.
            unsafe { combine(reduction, &input, &inout)? };
            Ok(Walk::Done)
        }
        Operation::Own(own) => {
            let extent_bytes = inout.datatype.layout.extent_bytes()?;
            let (input, inout, count) = (inbuf.cast_mut(), inoutbuf, inout.count);
            let application = Combination { own, input, inout, count, datatype, extent_bytes };
            let mut application = (count > 0).then(|| Box::new(application));
            let mut kept = None;
            Ok(Walk::new(move || {
                Ok(application.take().map(|application| kept.insert(application).call()))
            }))
        }
    }
}

/// Refuses operands at one place.
fn check_apart(input: &Items, inout: &Items) -> Result<(), Mistake> {
    if input.start != inout.start || inout.count == 0 || inout.datatype.size_bytes == 0 {
        return Ok(());
    }
    let text = format!("inbuf and inoutbuf are both {:p}; pass two buffers", input.start);
    Err(Mistake::new(ERR_BUFFER, text))
}

/// Combines items, which may have gaps.
unsafe fn combine(reduction: Reduction, input: &Items, inout: &Items) -> Result<(), Mistake> {
    if let Some(bytes) = inout.dense_bytes() {
        // SAFETY: the program vouches for both.
        unsafe { reduction.combine_raw(input.start, inout.start, inout.start, bytes)? };
        return Ok(());
    }
    let packed = Layout::elements(Kind::BYTE, inout.datatype.size_bytes)?;
    let mut collected = Collected::new(&packed, inout.count, 2, 2)?;
    // SAFETY: as above.
    unsafe {
        collected.put(0, &input.memory())?;
        collected.put(1, &inout.memory())?;
        collected.combine(&reduction.into())?;
        collected.deliver(0, &inout.memory())?;
    }
    Ok(())
}

unsafe fn create(function: Function, commute: c_int, op: *mut Handle) -> Result<(), Mistake> {
    pointer::check("op", op, 1)?;
    let handle = operation::keep(Own { function, is_commutative: commute != 0 })?;
    // SAFETY: as the caller says.
    unsafe { give("op", op, handle) }
}

#[cold]
fn no_function() -> Mistake {
    Mistake::new(ERR_ARG, "user_fn is a null pointer; pass the function that combines")
}
