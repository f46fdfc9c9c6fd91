//! Queries about the ABI itself.

use std::ffi::{c_int, c_void};

use landeck_c_boundary::pointer;

use crate::abi::{ABI_SUBVERSION, ABI_VERSION, Handle, INFO_NULL};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::info::{self, Info};

/// The version of the ABI.
pub(crate) unsafe fn abi_get_version(
    abi_major: *mut c_int,
    abi_minor: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program says that both are writable.
    unsafe {
        give("abi_major", abi_major, ABI_VERSION)?;
        give("abi_minor", abi_minor, ABI_SUBVERSION)
    }
}

/// The widths of its integers.
pub(crate) unsafe fn abi_get_info(info: *mut Handle) -> Result<(), Mistake> {
    pointer::check("info", info, 1)?;
    let mut widths = Info::default();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        widths.set(key, "8");
    }
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("info", info, info::keep(widths)?) }
}

/// Of Fortran nothing is known.
pub(crate) unsafe fn abi_get_fortran_info(info: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("info", info, INFO_NULL) }
}

/// Of Fortran's logical values nothing is known.
pub(crate) unsafe fn abi_get_fortran_booleans(
    _logical_size: c_int,
    _logical_true: *mut c_void,
    _logical_false: *mut c_void,
    is_set: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("is_set", is_set, 0) }
}
