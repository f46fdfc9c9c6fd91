//! The properties of a communicator, and names, hints and handlers that programs attach to it.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, PoisonError};

use landeck_c_boundary::pointer;

use crate::abi::{COMM_NULL, Handle, IDENT, MAX_OBJECT_NAME, UNEQUAL};
use crate::arguments::{give, give_text, name as name_of};
use crate::functions::group::alike;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::{communicator, group, info};

/// This process's rank.
pub(crate) unsafe fn comm_rank(comm: Handle, rank: *mut c_int) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("rank", rank, communicator.rank as c_int) }
}

/// How many processes there are.
pub(crate) unsafe fn comm_size(comm: Handle, size: *mut c_int) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("size", size, communicator.size as c_int) }
}

/// Its processes.
pub(crate) unsafe fn comm_group(comm: Handle, group: *mut Handle) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    pointer::check("group", group, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("group", group, group::keep(Arc::clone(&communicator.group))?) }
}

/// MPI_Comm_get_parent: the communicator with the processes that have started this one; none has.
pub(crate) unsafe fn comm_get_parent(parent: *mut Handle) -> Result<(), Mistake> {
    job::current()?;
    // SAFETY: the program says that it is writable.
    unsafe { give("parent", parent, COMM_NULL) }
}

/// How far two are alike.
pub(crate) unsafe fn comm_compare(
    comm1: Handle,
    comm2: Handle,
    result: *mut c_int,
) -> Result<(), Mistake> {
    let (one, other) = (communicator::get("comm1", comm1)?, communicator::get("comm2", comm2)?);
    let compared = match (&one.remote, &other.remote) {
        _ if comm1 == comm2 => IDENT,
        (None, None) => alike(&one.group, &other.group),
        (Some(far), Some(other_far)) => {
            alike(&one.group, &other.group).max(alike(&far.group, &other_far.group))
        }
        _ => UNEQUAL,
    };
    // SAFETY: the program says that it is writable.
    unsafe { give("result", result, compared) }
}

/// Its name.
pub(crate) unsafe fn comm_get_name(
    comm: Handle,
    comm_name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Mistake> {
    let name = match comm {
        COMM_NULL => "MPI_COMM_NULL".to_owned(),
        comm => {
            let communicator = communicator::get("comm", comm)?;
            communicator.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    };
    let length = ("resultlen", resultlen);
    // SAFETY: the program has so much room.
    unsafe { give_text(("comm_name", comm_name), MAX_OBJECT_NAME, &name, length) }
}

/// Names it.
pub(crate) unsafe fn comm_set_name(comm: Handle, comm_name: *const c_char) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    // SAFETY: the program gives a text, or it is refused.
    let name = unsafe { name_of("comm_name", comm_name)? };
    *communicator.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    Ok(())
}

/// Its hints.
pub(crate) unsafe fn comm_get_info(comm: Handle, info_used: *mut Handle) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    pointer::check("info_used", info_used, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("info_used", info_used, info::keep(communicator.hints())?) }
}

/// Gives it hints.
pub(crate) unsafe fn comm_set_info(comm: Handle, info: Handle) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let hints = info::snapshot("info", info)?;
    let mut own = communicator.info.lock().unwrap_or_else(PoisonError::into_inner);
    for (key, value) in hints.pairs() {
        own.set(key, value);
    }
    drop(own);
    communicator.heed_hints();
    Ok(())
}
