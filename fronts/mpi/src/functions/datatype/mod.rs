//! Making datatypes, and what they are.

mod array;
mod creation;
mod description;
mod unnamed;

use std::ffi::{c_char, c_int, c_void};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use landeck::layout::Bounds;
use landeck_c_boundary::pointer;

pub(crate) use self::array::{type_create_darray, type_create_subarray};
pub(crate) use self::creation::{
    type_contiguous, type_contiguous_c, type_create_hindexed, type_create_hindexed_block,
    type_create_hindexed_block_c, type_create_hvector, type_create_hvector_c,
    type_create_indexed_block, type_create_resized, type_create_resized_c, type_create_struct,
    type_indexed, type_vector, type_vector_c,
};
pub(crate) use self::description::{
    type_get_contents, type_get_contents_c, type_get_envelope, type_get_envelope_c,
};
pub(crate) use self::unnamed::{
    type_create_f90_complex, type_create_f90_integer, type_create_f90_real, type_get_value_index,
    type_match_size,
};
use crate::abi::{COMBINER_DUP, DATATYPE_NULL, Handle, MAX_OBJECT_NAME, UNDEFINED};
use crate::arguments::{give, give_text, name as name_of};
use crate::counts::CountPlace;
use crate::mistake::Mistake;
use crate::objects::attributes;
use crate::objects::contents::Contents;
use crate::objects::datatype::{self, Datatype};
use crate::walk::Walk;

/// From now on it may be used for messages.
pub(crate) unsafe fn type_commit(datatype: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("datatype", datatype)? };
    datatype::get("datatype", handle)?.is_committed.store(true, Ordering::Release);
    Ok(())
}

/// Frees a datatype: its attributes are deleted; messages of it end well.
pub(crate) unsafe fn type_free(datatype: *mut Handle) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("datatype", datatype)? };
    let found = datatype::get_own("datatype", handle)?;
    let put_back = |list| found.attributes.replace(list);
    attributes::delete(handle, found.attributes.take_all(), put_back, move || {
        datatype::free("datatype", handle)?;
        // SAFETY: read above; the program says that it is writable too.
        unsafe { give("datatype", datatype, DATATYPE_NULL) }
    })
}

/// Another one like it, with copies of its attributes.
pub(crate) unsafe fn type_dup(oldtype: Handle, newtype: *mut Handle) -> Result<Walk, Mistake> {
    let old = creation::old_type(oldtype, newtype)?;
    attributes::copy(oldtype, old.attributes.snapshot(), move |copies| {
        let contents = Contents::of(COMBINER_DUP, false).parts([old.part()]);
        let made = Datatype::new(old.layout.clone(), contents);
        let is_committed = old.is_committed.load(Ordering::Acquire).into();
        let made = Datatype { element: old.element, is_committed, ..made };
        made.attributes.replace(copies);
        // SAFETY: checked at the start; the program says that it is writable.
        unsafe { give("newtype", newtype, datatype::keep(made)?) }
    })
}

/// How many bytes an item has, without gaps.
pub(crate) unsafe fn type_size(datatype: Handle, size: CountPlace) -> Result<(), Mistake> {
    let bytes = datatype::get("datatype", datatype)?.size_bytes;
    // SAFETY: the program says that it is writable.
    unsafe { size.write("size", wide(bytes)) }.map_err(Mistake::from)
}

/// How many bytes an item has, without gaps.
pub(crate) unsafe fn type_size_x(datatype: Handle, size: *mut i64) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { type_size(datatype, CountPlace::wide(size)) }
}

/// Where an item begins, and how far the next one is.
pub(crate) unsafe fn type_get_extent(
    datatype: Handle,
    lb: *mut i64,
    extent: *mut i64,
) -> Result<(), Mistake> {
    let bounds = datatype::get("datatype", datatype)?.layout.bounds();
    // SAFETY: as the caller says.
    unsafe { give_bounds(bounds, ("lb", lb), ("extent", extent)) }
}

/// Where an item begins, and how far the next one is.
pub(crate) unsafe fn type_get_extent_x(
    datatype: Handle,
    lb: *mut i64,
    extent: *mut i64,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { type_get_extent(datatype, lb, extent) }
}

/// Where the first byte of an item is, and how far the end of the last.
pub(crate) unsafe fn type_get_true_extent(
    datatype: Handle,
    true_lb: *mut i64,
    true_extent: *mut i64,
) -> Result<(), Mistake> {
    let bounds = datatype::get("datatype", datatype)?.layout.true_bounds();
    // SAFETY: as the caller says.
    unsafe { give_bounds(bounds, ("true_lb", true_lb), ("true_extent", true_extent)) }
}

/// Where the first byte of an item is, and how far the end of the last.
pub(crate) unsafe fn type_get_true_extent_x(
    datatype: Handle,
    true_lb: *mut i64,
    true_extent: *mut i64,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { type_get_true_extent(datatype, true_lb, true_extent) }
}

/// Its name; the null datatype has one too.
pub(crate) unsafe fn type_get_name(
    datatype: Handle,
    type_name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Mistake> {
    let name = match datatype {
        DATATYPE_NULL => "MPI_DATATYPE_NULL".to_owned(),
        handle => {
            let datatype = datatype::get("datatype", handle)?;
            datatype.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    };
    let length = ("resultlen", resultlen);
    // SAFETY: the program has so much room.
    unsafe { give_text(("type_name", type_name), MAX_OBJECT_NAME, &name, length) }
}

/// Names it.
pub(crate) unsafe fn type_set_name(
    datatype: Handle,
    type_name: *const c_char,
) -> Result<(), Mistake> {
    let datatype = datatype::get("datatype", datatype)?;
    // SAFETY: the program gives a text, or it is refused.
    let name = unsafe { name_of("type_name", type_name)? };
    *datatype.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    Ok(())
}

/// An address as a number.
pub(crate) unsafe fn get_address(
    location: *const c_void,
    address: *mut i64,
) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("address", address, location.addr() as i64) }
}

/// An address some bytes behind another.
pub(crate) fn aint_add(base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

/// How many bytes one address is behind another.
pub(crate) fn aint_diff(addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}

unsafe fn give_bounds(
    bounds: Bounds,
    (lower_argument, lower): (&'static str, *mut i64),
    (extent_argument, extent): (&'static str, *mut i64),
) -> Result<(), Mistake> {
    pointer::check(extent_argument, extent, 1)?;
    // SAFETY: the program says that both are writable.
    unsafe {
        give(lower_argument, lower, bounds.lower)?;
        give(extent_argument, extent, bounds.extent().unwrap_or(UNDEFINED.into()))
    }
}

/// A size, which has 63 bits, as the program gets it.
fn wide(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(UNDEFINED.into())
}
