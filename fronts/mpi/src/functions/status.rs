//! Queries of a status.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use crate::abi::{ERR_ARG, Handle, Status, UNDEFINED};
use crate::arguments::{count_of, give};
use crate::counts::CountPlace;
use crate::mistake::Mistake;
use crate::objects::datatype;

/// How many items the message had; MPI_UNDEFINED if the last one was not whole.
pub(crate) unsafe fn get_count(
    status: *const Status,
    datatype: Handle,
    count: CountPlace,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    let bytes = unsafe { read(status)? }.bytes();
    let size = datatype::get("datatype", datatype)?.size_bytes;
    let items = match (bytes.checked_div(size), bytes.checked_rem(size)) {
        (Some(items), Some(0)) => i64::try_from(items).ok(),
        (None, _) if bytes == 0 => Some(0),
        _ => None,
    };
    // SAFETY: the program says that it is writable.
    unsafe { count.write("count", items.unwrap_or(UNDEFINED.into())) }.map_err(Mistake::from)
}

/// How many basic elements the message had; MPI_UNDEFINED if the last one was not whole.
pub(crate) unsafe fn get_elements(
    status: *const Status,
    datatype: Handle,
    count: CountPlace,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    let bytes = unsafe { read(status)? }.bytes();
    let elements = datatype::get("datatype", datatype)?.layout.elements_in(bytes);
    let elements = elements.and_then(|elements| i64::try_from(elements).ok());
    // SAFETY: the program says that it is writable.
    unsafe { count.write("count", elements.unwrap_or(UNDEFINED.into())) }.map_err(Mistake::from)
}

/// How many basic elements the message had; MPI_UNDEFINED if the last one was not whole.
pub(crate) unsafe fn get_elements_x(
    status: *const Status,
    datatype: Handle,
    count: *mut i64,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { get_elements(status, datatype, CountPlace::wide(count)) }
}

/// Makes the status one of a message of so many basic elements.
pub(crate) unsafe fn status_set_elements(
    status: *mut Status,
    datatype: Handle,
    count: i64,
) -> Result<(), Mistake> {
    let elements = count_of("count", count)?;
    let bytes = datatype::get("datatype", datatype)?.layout.bytes_of_elements(elements);
    let bytes = bytes.ok_or_else(|| {
        let text = format!("count is {count}, but no message of datatype has so many elements");
        Mistake::new(ERR_ARG, text)
    })?;
    // SAFETY: as the caller says.
    unsafe { change(status, |status| status.set_bytes(bytes)) }
}

/// Makes the status one of a message of so many basic elements.
pub(crate) unsafe fn status_set_elements_x(
    status: *mut Status,
    datatype: Handle,
    count: i64,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { status_set_elements(status, datatype, count) }
}

/// Sets whether the operation was cancelled.
pub(crate) unsafe fn status_set_cancelled(status: *mut Status, flag: c_int) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { change(status, |status| status.set_cancelled(flag != 0)) }
}

/// Whether the operation was cancelled.
pub(crate) unsafe fn test_cancelled(
    status: *const Status,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says; the program says that the flag is writable.
    unsafe { give("flag", flag, read(status)?.is_cancelled().into()) }
}

/// The rank that sent the message.
pub(crate) unsafe fn status_get_source(
    status: *const Status,
    source: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says; the program says that the source is writable.
    unsafe { give("source", source, read(status)?.source) }
}

/// Sets the rank that sent the message.
pub(crate) unsafe fn status_set_source(status: *mut Status, source: c_int) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { change(status, |status| status.source = source) }
}

/// The tag of the message.
pub(crate) unsafe fn status_get_tag(status: *const Status, tag: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: as the caller says; the program says that the tag is writable.
    unsafe { give("tag", tag, read(status)?.tag) }
}

/// Sets the tag of the message.
pub(crate) unsafe fn status_set_tag(status: *mut Status, tag: c_int) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { change(status, |status| status.tag = tag) }
}

/// How the operation ended.
pub(crate) unsafe fn status_get_error(
    status: *const Status,
    error: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says; the program says that the error is writable.
    unsafe { give("error", error, read(status)?.error) }
}

/// Sets how the operation ended.
pub(crate) unsafe fn status_set_error(status: *mut Status, error: c_int) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { change(status, |status| status.error = error) }
}

/// The program's status.
///
/// # Safety
/// Unless null or misaligned, it is readable.
unsafe fn read(status: *const Status) -> Result<Status, Mistake> {
    // SAFETY: as the caller says.
    Ok(unsafe { pointer::read("status", status)? })
}

/// Changes the program's status.
///
/// # Safety
/// Unless null or misaligned, it is readable and writable.
unsafe fn change(status: *mut Status, change: impl FnOnce(&mut Status)) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    let mut changed = unsafe { read(status)? };
    change(&mut changed);
    // SAFETY: as the caller says.
    unsafe { give("status", status, changed) }
}
