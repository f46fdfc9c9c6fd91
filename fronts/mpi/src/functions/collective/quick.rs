//! The short way of calls that are as most are: one group, items of the library's own datatypes one
//! behind the other, operations of the library. Nothing is said of mistakes here: what is not so goes
//! the long way, which does.

use std::ffi::{c_int, c_void};

use landeck::collectives::Operation as Collective;
use landeck::raw::collective::{Asked, Data};
use landeck::raw::{Memory, collective};

use crate::abi::{Handle, IN_PLACE};
use crate::arguments::Items;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::operation::{self, Operation};

/// A call that goes this way.
pub(super) struct Quick {
    communicator: &'static Communicator,
    asked: Asked<'static>,
}

impl Quick {
    /// Does it.
    ///
    /// # Safety
    /// The program leaves the buffers to this call.
    #[inline]
    pub(super) unsafe fn call(&self) -> Result<(), Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::call(&self.communicator.world, &self.asked) }.map_err(Mistake::from)
    }
}

#[inline]
fn of_one_group(comm: Handle) -> Option<&'static Communicator> {
    let communicator = communicator::get("comm", comm).ok()?;
    communicator.remote.is_none().then_some(&**communicator)
}

#[inline]
fn dense(buffer: *const c_void, count: i64, datatype: Handle) -> Option<Items> {
    if buffer.addr() == IN_PLACE {
        return None;
    }
    let items = Items::new("", buffer, ("", count), datatype).ok()?;
    items.datatype.is_dense.then_some(items)
}

#[inline]
fn whole(items: &Items) -> Data<'static> {
    let Memory { start, layout, count } = items.memory();
    Data::Whole { start, layout, count }
}

#[inline]
pub(super) fn barrier(comm: Handle) -> Option<Quick> {
    let (operation, nothing) = (Collective::Barrier, Data::Nothing);
    let asked = Asked { operation, root: 0, input: nothing, output: nothing, operator: None };
    Some(Quick { communicator: of_one_group(comm)?, asked })
}

#[inline]
pub(super) fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let root = usize::try_from(root).ok().filter(|root| *root < communicator.size as usize)?;
    let output = whole(&dense(buffer, count, datatype)?);
    let (operation, input) = (Collective::Broadcast, Data::Nothing);
    Some(Quick { communicator, asked: Asked { operation, root, input, output, operator: None } })
}

#[inline]
pub(super) fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let (input, output) = (dense(sendbuf, count, datatype)?, dense(recvbuf, count, datatype)?);
    let Ok(Operation::Predefined(predefined)) = operation::get("op", op) else { return None };
    if input.start == output.start {
        return None;
    }
    let operator = Some(predefined.on(input.datatype).ok()?.into());
    let (operation, input, output) = (Collective::AllReduce, whole(&input), whole(&output));
    Some(Quick { communicator, asked: Asked { operation, root: 0, input, output, operator } })
}
