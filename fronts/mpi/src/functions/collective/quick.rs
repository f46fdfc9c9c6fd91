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

/// So many items for each of `processes`.
#[inline]
fn blocks(
    buffer: *const c_void,
    count: i64,
    datatype: Handle,
    processes: u32,
) -> Option<(Items, Data<'static>)> {
    let all = dense(buffer, count.checked_mul(i64::from(processes))?, datatype)?;
    let Memory { start, layout, .. } = all.memory();
    Some((all, Data::Blocks { start, layout, count: count as u64 }))
}

#[inline]
fn whole(items: &Items) -> Data<'static> {
    let Memory { start, layout, count } = items.memory();
    Data::Whole { start, layout, count }
}

/// Whether no byte is in both.
#[inline]
fn are_apart(one: &Items, other: &Items) -> bool {
    let range = |items: &Items| {
        let start = items.start.addr();
        (start, start + items.dense_bytes().unwrap_or(0))
    };
    let ((start, end), (other_start, other_end)) = (range(one), range(other));
    end <= other_start || other_end <= start
}

#[inline]
fn root_of(root: c_int, communicator: &Communicator) -> Option<usize> {
    usize::try_from(root).ok().filter(|root| *root < communicator.size as usize)
}

#[inline]
fn moving(
    communicator: &'static Communicator,
    operation: Collective,
    root: usize,
    input: Data<'static>,
    output: Data<'static>,
) -> Quick {
    Quick { communicator, asked: Asked { operation, root, input, output, operator: None } }
}

#[inline]
pub(super) fn barrier(comm: Handle) -> Option<Quick> {
    let nothing = Data::Nothing;
    Some(moving(of_one_group(comm)?, Collective::Barrier, 0, nothing, nothing))
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
    let root = root_of(root, communicator)?;
    let output = whole(&dense(buffer, count, datatype)?);
    Some(moving(communicator, Collective::Broadcast, root, Data::Nothing, output))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline]
pub(super) fn gather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let root = root_of(root, communicator)?;
    let own = dense(sendbuf, sendcount, sendtype)?;
    let mut output = Data::Nothing;
    if root == communicator.rank as usize {
        let (all, data) = blocks(recvbuf, recvcount, recvtype, communicator.size)?;
        output = are_apart(&own, &all).then_some(data)?;
    }
    Some(moving(communicator, Collective::Gather, root, whole(&own), output))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline]
pub(super) fn scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let root = root_of(root, communicator)?;
    let own = dense(recvbuf, recvcount, recvtype)?;
    let mut input = Data::Nothing;
    if root == communicator.rank as usize {
        let (all, data) = blocks(sendbuf, sendcount, sendtype, communicator.size)?;
        input = are_apart(&own, &all).then_some(data)?;
    }
    Some(moving(communicator, Collective::Scatter, root, input, whole(&own)))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline]
pub(super) fn allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let own = dense(sendbuf, sendcount, sendtype)?;
    let (all, output) = blocks(recvbuf, recvcount, recvtype, communicator.size)?;
    are_apart(&own, &all)
        .then(|| moving(communicator, Collective::AllGather, 0, whole(&own), output))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline]
pub(super) fn alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let (own, input) = blocks(sendbuf, sendcount, sendtype, communicator.size)?;
    let (all, output) = blocks(recvbuf, recvcount, recvtype, communicator.size)?;
    are_apart(&own, &all).then(|| moving(communicator, Collective::AllToAll, 0, input, output))
}

#[inline]
pub(super) fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    root: c_int,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let root = root_of(root, communicator)?;
    let recvbuf = (root == communicator.rank as usize).then_some(recvbuf);
    combining(communicator, (Collective::Reduce, root), (sendbuf, recvbuf), (count, datatype), op)
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
    let (communicator, buffers) = (of_one_group(comm)?, (sendbuf, Some(recvbuf)));
    combining(communicator, (Collective::AllReduce, 0), buffers, (count, datatype), op)
}

#[inline]
fn combining(
    communicator: &'static Communicator,
    (operation, root): (Collective, usize),
    (sendbuf, recvbuf): (*const c_void, Option<*mut c_void>),
    (count, datatype): (i64, Handle),
    op: Handle,
) -> Option<Quick> {
    let input = dense(sendbuf, count, datatype)?;
    let mut output = Data::Nothing;
    if let Some(recvbuf) = recvbuf {
        let result = dense(recvbuf, count, datatype)?;
        output = are_apart(&input, &result).then(|| whole(&result))?;
    }
    let Ok(Operation::Predefined(predefined)) = operation::get("op", op) else { return None };
    let operator = Some(predefined.on(input.datatype).ok()?.into());
    let asked = Asked { operation, root, input: whole(&input), output, operator };
    Some(Quick { communicator, asked })
}
