//! Making communicators of others, and freeing them.

use std::sync::{Arc, PoisonError};

use landeck_c_boundary::pointer;

use crate::abi::{COMM_NULL, ERR_ARG, Handle};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::info::Info;
use crate::objects::{attributes, communicator, info};
use crate::walk::Walk;

/// A copy with messages of its own; the attributes are copied as their keys say, the hints too.
pub(crate) unsafe fn comm_dup(comm: Handle, newcomm: *mut Handle) -> Result<Walk, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let hints = communicator.info.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // SAFETY: the program says that the place is writable.
    unsafe { duplicate(comm, hints, newcomm) }
}

/// The same with hints of its own.
pub(crate) unsafe fn comm_dup_with_info(
    comm: Handle,
    info: Handle,
    newcomm: *mut Handle,
) -> Result<Walk, Mistake> {
    communicator::get("comm", comm)?;
    let hints = info::snapshot_or_empty("info", info)?;
    // SAFETY: the program says that the place is writable.
    unsafe { duplicate(comm, hints, newcomm) }
}

unsafe fn duplicate(comm: Handle, hints: Info, newcomm: *mut Handle) -> Result<Walk, Mistake> {
    pointer::check("newcomm", newcomm, 1)?;
    let communicator = communicator::get("comm", comm)?;
    if communicator.remote.is_some() {
        return Err(Mistake::unsupported());
    }
    let world = communicator.world.duplicate()?;
    let made = communicator.child(world, Arc::clone(&communicator.group));
    *made.info.lock().unwrap_or_else(PoisonError::into_inner) = hints;
    if let Some(topology) = communicator.topology.get() {
        made.topology.get_or_init(|| topology.clone());
    }
    attributes::copy(comm, communicator.attributes.snapshot(), move |copies| {
        made.attributes.replace(copies);
        // SAFETY: checked above; as the caller says, and the call goes on.
        unsafe { give("newcomm", newcomm, communicator::keep(made)) }
    })
}

/// Frees a communicator: its attributes are deleted; what goes on in it ends well.
pub(crate) unsafe fn comm_free(comm: *mut Handle) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("comm", comm)? };
    let communicator = communicator::get("comm", handle)?;
    if communicator.handle() < 0x400 {
        return Err(Mistake::new(
            ERR_ARG,
            format_args!("comm is {}", "predefined, and stays until MPI_Finalize"),
        ));
    }
    let put_back = |list| communicator.attributes.replace(list);
    attributes::delete(handle, communicator.attributes.take_all(), put_back, move || {
        communicator::free("comm", handle)?;
        // SAFETY: read above; the program says that it is writable too.
        unsafe { give("comm", comm, COMM_NULL) }
    })
}
