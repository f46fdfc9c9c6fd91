//! Making datatypes, and what they are.

use std::sync::atomic::Ordering;

use landeck::layout::Layout;
use landeck_c_boundary::pointer;

use crate::abi::{DATATYPE_NULL, Handle};
use crate::arguments::{count_of, give};
use crate::mistake::Mistake;
use crate::objects::attributes;
use crate::objects::datatype::{self, Datatype};
use crate::walk::Walk;

/// Items one behind the other.
pub(crate) unsafe fn type_contiguous(
    count: i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let count = count_of("count", count)?;
    let old = datatype::get("oldtype", oldtype)?;
    pointer::check("newtype", newtype, 1)?;
    let made = Datatype::new(Layout::contiguous(count, &old.layout)?, None);
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newtype", newtype, datatype::keep(made)) }
}

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
    let found = datatype::get("datatype", handle)?;
    let put_back = |list| found.attributes.replace(list);
    attributes::delete(handle, found.attributes.take_all(), put_back, move || {
        datatype::free("datatype", handle)?;
        // SAFETY: read above; the program says that it is writable too.
        unsafe { give("datatype", datatype, DATATYPE_NULL) }
    })
}

/// An address some bytes behind another.
pub(crate) fn aint_add(base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

/// How many bytes one address is behind another.
pub(crate) fn aint_diff(addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}
