//! Processes that are started by others.

use crate::abi::{COMM_NULL, Handle};
use crate::arguments::give;
use crate::mistake::Mistake;

/// The communicator with those who started this process with MPI_Comm_spawn: none, as that is not
/// here yet.
pub(crate) unsafe fn comm_get_parent(parent: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("parent", parent, COMM_NULL) }
}
