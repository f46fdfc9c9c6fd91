//! MPI_Bcast.

use std::ffi::{c_int, c_void};

use landeck::collectives::Operation;
use landeck::raw::collective::{self, Asked, Data};

use super::whole;
use crate::abi::Handle;
use crate::arguments::{Items, root as root_of};
use crate::mistake::Mistake;
use crate::objects::communicator;

/// Copies the root's items to all.
pub(crate) unsafe fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let items = Items::new("buffer", buffer, ("count", count), datatype)?;
    let root = root_of(root, communicator.size)?;
    let asked = Asked {
        operation: Operation::Broadcast,
        root,
        input: Data::Nothing,
        output: whole(&items),
        operator: None,
    };
    // SAFETY: the program leaves the buffer to this call.
    unsafe { collective::call(&communicator.world, &asked) }.map_err(Mistake::from)
}
