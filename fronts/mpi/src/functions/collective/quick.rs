//! The short way of calls that are as most are: one group, items of the library's own datatypes one
//! behind the other, operations of the library. Nothing is said of mistakes here: what is not so goes the long
//! way, which does.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use landeck::raw::collective::{self, Pieces};
use landeck::unstable::arithmetic::Operator;
use landeck::unstable::collectives::Operation as Collective;

use crate::abi::{Handle, IN_PLACE};
use crate::arguments::Plain;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::operation;

/// A call that may go this way.
pub(super) struct Quick {
    communicator: &'static Communicator,
    pieces: Pieces<'static>,
}

impl Quick {
    /// Does it. False when it is to go the long way: then nothing was done.
    ///
    /// # Safety
    /// The program leaves the buffers to this call.
    #[inline]
    pub(super) unsafe fn call(&self) -> Result<bool, Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::call_pieces(&self.communicator.world, &self.pieces) }
            .map_err(Mistake::from)
    }
}

const NOTHING: Plain = Plain { start: NonNull::dangling(), bytes: 0 };

#[inline(always)]
fn of_one_group(comm: Handle) -> Option<&'static Communicator> {
    let communicator = communicator::find(comm)?;
    communicator.remote.is_none().then_some(&**communicator)
}

/// So many items for each of `processes`.
#[inline(always)]
fn blocks(buffer: *const c_void, count: i64, datatype: Handle, processes: u32) -> Option<Plain> {
    Plain::new(buffer, count.checked_mul(i64::from(processes))?, datatype)
}

/// Whether no byte is in both.
#[inline(always)]
fn are_apart(one: &Plain, other: &Plain) -> bool {
    let range = |items: &Plain| (items.start.addr().get(), items.start.addr().get() + items.bytes);
    let ((start, end), (other_start, other_end)) = (range(one), range(other));
    end <= other_start || other_end <= start
}

#[inline(always)]
fn root_of(root: c_int, communicator: &Communicator) -> Option<usize> {
    usize::try_from(root).ok().filter(|root| *root < communicator.size as usize)
}

#[inline(always)]
fn moving(
    communicator: &'static Communicator,
    operation: Collective,
    root: usize,
    input: Plain,
    output: Plain,
) -> Quick {
    combining(communicator, (operation, root), input, output, None)
}

#[inline(always)]
fn combining(
    communicator: &'static Communicator,
    (operation, root): (Collective, usize),
    input: Plain,
    output: Plain,
    operator: Option<&'static Operator>,
) -> Quick {
    let sides = |plain: Plain| (plain.start, plain.bytes);
    let (input, output) = (sides(input), sides(output));
    Quick { communicator, pieces: Pieces { operation, root, input, output, operator } }
}

#[inline(always)]
pub(super) fn barrier(comm: Handle) -> Option<Quick> {
    Some(moving(of_one_group(comm)?, Collective::Barrier, 0, NOTHING, NOTHING))
}

#[inline(always)]
pub(super) fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let root = root_of(root, communicator)?;
    let data = Plain::new(buffer, count, datatype)?;
    Some(moving(communicator, Collective::Broadcast, root, data, data))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline(always)]
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
    let own = Plain::new(sendbuf, sendcount, sendtype)?;
    let mut output = NOTHING;
    if root == communicator.rank as usize {
        let all = blocks(recvbuf, recvcount, recvtype, communicator.size)?;
        output = are_apart(&own, &all).then_some(all)?;
    }
    Some(moving(communicator, Collective::Gather, root, own, output))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline(always)]
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
    let own = Plain::new(recvbuf, recvcount, recvtype)?;
    let mut input = NOTHING;
    if root == communicator.rank as usize {
        let all = blocks(sendbuf, sendcount, sendtype, communicator.size)?;
        input = are_apart(&own, &all).then_some(all)?;
    }
    Some(moving(communicator, Collective::Scatter, root, input, own))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline(always)]
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
    let own = Plain::new(sendbuf, sendcount, sendtype)?;
    let all = blocks(recvbuf, recvcount, recvtype, communicator.size)?;
    are_apart(&own, &all).then(|| moving(communicator, Collective::AllGather, 0, own, all))
}

#[allow(clippy::too_many_arguments)] // As many as the standard has.
#[inline(always)]
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
    let own = blocks(sendbuf, sendcount, sendtype, communicator.size)?;
    let all = blocks(recvbuf, recvcount, recvtype, communicator.size)?;
    are_apart(&own, &all).then(|| moving(communicator, Collective::AllToAll, 0, own, all))
}

#[inline(always)]
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
    let input = Plain::new(sendbuf, count, datatype)?;
    let mut output = NOTHING;
    if root == communicator.rank as usize {
        let result = Plain::new(recvbuf, count, datatype)?;
        output = are_apart(&input, &result).then_some(result)?;
    }
    let operator = Some(operation::operator(op, datatype)?);
    Some(combining(communicator, (Collective::Reduce, root), input, output, operator))
}

#[inline(always)]
pub(super) fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Option<Quick> {
    let communicator = of_one_group(comm)?;
    let output = Plain::new(recvbuf, count, datatype)?;
    let input = match sendbuf.addr() == IN_PLACE {
        true => output,
        false => {
            let input = Plain::new(sendbuf, count, datatype)?;
            are_apart(&input, &output).then_some(input)?
        }
    };
    let operator = Some(operation::operator(op, datatype)?);
    Some(combining(communicator, (Collective::AllReduce, 0), input, output, operator))
}
