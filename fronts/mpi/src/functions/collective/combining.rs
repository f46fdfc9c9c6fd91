//! Collective operations that combine data.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use landeck::unstable::collectives::Operation as Collective;

use super::asked::{Asked, Combines, Role};
use super::side::{Named, Side, all_counts, received, sent};
use crate::abi::Handle;
use crate::arguments::count_of;
use crate::counts::Counts;
use crate::functions::communicator_creation::only_one_group;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::datatype;
use crate::objects::operation::{self, Operation};

/// How items of a datatype combine.
#[inline]
fn combines(op: Handle, datatype: Handle) -> Result<Combines, Mistake> {
    Ok(match operation::get("op", op)? {
        Operation::Predefined(predefined) => {
            Combines::Predefined(predefined.on(datatype::get("datatype", datatype)?)?)
        }
        Operation::Own(own) => Combines::Own(own, datatype),
    })
}

/// Operations in which each process brings as many items as it gets.
#[inline]
fn whole(
    operation: Collective,
    (sendbuf, recvbuf): (*const c_void, *mut c_void),
    (count, datatype): (i64, Handle),
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let output = received(recvbuf, "count").whole(count, datatype)?;
    let named = sent(sendbuf, "count");
    let input = match named.is_in_place() && communicator.remote.is_none() {
        true => Side::InPlace,
        false => named.whole(count, datatype)?,
    };
    input.check_apart(&output)?;
    let combines = combines(op, datatype)?;
    Ok(Asked { input, output, combines, ..Asked::new(communicator, operation) })
}

/// The combination goes to all.
#[inline]
pub(crate) unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    whole(Collective::AllReduce, (sendbuf, recvbuf), (count, datatype), op, comm)
}

/// MPI_Scan: each process gets the combination of the processes up to itself.
pub(crate) unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    prefix(Collective::Scan, (sendbuf, recvbuf), (count, datatype), op, comm)
}

/// MPI_Exscan: each process gets the combination of the processes before it.
pub(crate) unsafe fn exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    prefix(Collective::ExclusiveScan, (sendbuf, recvbuf), (count, datatype), op, comm)
}

fn prefix(
    operation: Collective,
    buffers: (*const c_void, *mut c_void),
    items: (i64, Handle),
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    only_one_group(communicator::get("comm", comm)?)?;
    whole(operation, buffers, items, op, comm)
}

/// The combination goes to the root.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    root: c_int,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let role = Role::of(communicator, root)?;
    let asked = Asked { role, ..Asked::new(communicator, Collective::Reduce) };
    if role == Role::Bystander {
        return Ok(asked);
    }
    let combines = combines(op, datatype)?;
    let (is_root, far) = (role == Role::Root, communicator.remote.is_some());
    let named = sent(sendbuf, "count");
    let input = match is_root {
        true if far => Side::Nothing,
        true if named.is_in_place() => Side::InPlace,
        _ => named.whole(count, datatype)?,
    };
    let into = received(recvbuf, "count");
    let output = if is_root { into.whole(count, datatype)? } else { Side::Nothing };
    input.check_apart(&output)?;
    Ok(Asked { input, output, combines, ..asked })
}

/// MPI_Reduce_scatter_block: each process gets its block of the combination; blocks are equal.
pub(crate) unsafe fn reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let count = count_of("recvcount", recvcount)?;
    let counts = vec![count; communicator.size as usize];
    scattered(communicator, (sendbuf, recvbuf), (counts, datatype), op, |named| {
        named.blocks(recvcount, datatype)
    })
}

/// MPI_Reduce_scatter: each process gets its block of the combination.
pub(crate) unsafe fn reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    // SAFETY: the program gives so many counts.
    let counts = unsafe { all_counts("recvcounts", &recvcounts, communicator.size)? };
    let blocks = counts.clone();
    scattered(communicator, (sendbuf, recvbuf), (counts, datatype), op, |named| {
        let displacements = places(&blocks).0;
        named.varying_of(blocks, displacements, datatype)
    })
}

/// Where blocks begin that follow each other, and how many items they are together.
fn places(counts: &[u64]) -> (Vec<i64>, u64) {
    let mut end = 0u64;
    let places = counts.iter().map(|count| {
        let start = end;
        end = end.saturating_add(*count);
        start as i64
    });
    (places.collect(), end)
}

fn scattered(
    communicator: &'static Arc<Communicator>,
    (sendbuf, recvbuf): (*const c_void, *mut c_void),
    (counts, datatype): (Vec<u64>, Handle),
    op: Handle,
    blocks: impl FnOnce(Named) -> Result<Side, Mistake>,
) -> Result<Asked, Mistake> {
    let asked = Asked::new(communicator, Collective::ReduceScatter);
    let (from, into) = (sent(sendbuf, "recvcounts"), received(recvbuf, "recvcounts"));
    let combines = combines(op, datatype)?;
    let far = communicator.remote.is_some();
    if from.is_in_place() && !far {
        return Ok(Asked { input: blocks(into)?, output: Side::InPlace, combines, ..asked });
    }
    let rank = communicator.rank as usize;
    let output = into.whole(counts[rank] as i64, datatype)?;
    let (places, all) = places(&counts);
    let input = if far { from.whole(all as i64, datatype)? } else { blocks(from)? };
    input.check_apart(&output)?;
    let result_from = if far { places[rank] as u64 } else { 0 };
    Ok(Asked { input, output, combines, result_from, ..asked })
}
