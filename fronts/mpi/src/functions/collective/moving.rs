//! Collective operations that move data.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use landeck::unstable::collectives::Operation as Collective;

use super::asked::{Asked, Role};
use super::side::{Named, Side, received, sent};
use crate::abi::Handle;
use crate::counts::Counts;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};

/// Waits for everybody.
#[inline]
pub(crate) unsafe fn barrier(comm: Handle) -> Result<Asked, Mistake> {
    Ok(Asked::new(communicator::get("comm", comm)?, Collective::Barrier))
}

/// The root's items go to all.
#[inline]
pub(crate) unsafe fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let role = Role::of(communicator, root)?;
    let named = Named { buffer, name: "buffer", count_name: "count" };
    let output =
        if role == Role::Bystander { Side::Nothing } else { named.whole(count, datatype)? };
    Ok(Asked { role, output, ..Asked::new(communicator, Collective::Broadcast) })
}

/// A call that collects data at a root or distributes them from it: the root has a block for each process.
struct Rooted {
    asked: Asked,
    /// The number of processes with blocks at the root.
    processes: u32,
}

fn rooted(operation: Collective, root: c_int, comm: Handle) -> Result<Rooted, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let role = Role::of(communicator, root)?;
    let asked = Asked { role, ..Asked::new(communicator, operation) };
    Ok(Rooted { asked, processes: communicator.messages().1 })
}

/// The data that this process itself brings to a root, or gets from it.
fn own_part(asked: &Asked, named: Named, count: i64, datatype: Handle) -> Result<Side, Mistake> {
    let far = asked.communicator.remote.is_some();
    match asked.role {
        Role::Bystander => Ok(Side::Nothing),
        Role::Root if far => Ok(Side::Nothing),
        Role::Root if named.is_in_place() => Ok(Side::InPlace),
        _ => named.whole(count, datatype),
    }
}

fn gathered(
    Rooted { mut asked, processes }: Rooted,
    (from, count, datatype): (Named, i64, Handle),
    output: impl FnOnce(u32) -> Result<Side, Mistake>,
) -> Result<Asked, Mistake> {
    asked.input = own_part(&asked, from, count, datatype)?;
    if asked.role == Role::Root {
        asked.output = output(processes)?;
        asked.input.check_apart(&asked.output)?;
    }
    Ok(asked)
}

fn scattered(
    Rooted { mut asked, processes }: Rooted,
    input: impl FnOnce(u32) -> Result<Side, Mistake>,
    (into, count, datatype): (Named, i64, Handle),
) -> Result<Asked, Mistake> {
    asked.output = own_part(&asked, into, count, datatype)?;
    if asked.role == Role::Root {
        asked.input = input(processes)?;
        asked.input.check_apart(&asked.output)?;
    }
    Ok(asked)
}

/// Everybody's items go to the root.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let input = (sent(sendbuf, "sendcount"), sendcount, sendtype);
    gathered(rooted(Collective::Gather, root, comm)?, input, |_| {
        received(recvbuf, "recvcount").blocks(recvcount, recvtype)
    })
}

/// MPI_Gatherv: each process may bring another number of items.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Counts,
    recvtype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let input = (sent(sendbuf, "sendcount"), sendcount, sendtype);
    let mut gather = rooted(Collective::Gather, root, comm)?;
    gather.asked.output = Side::Elsewhere;
    gathered(gather, input, |processes| {
        let into = received(recvbuf, "recvcounts");
        // SAFETY: the program gives so many counts at the root.
        unsafe { into.varying(&recvcounts, ("displs", &displs), recvtype, processes) }
    })
}

/// The root's blocks go to everybody.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let output = (received(recvbuf, "recvcount"), recvcount, recvtype);
    let input = |_| sent(sendbuf, "sendcount").blocks(sendcount, sendtype);
    scattered(rooted(Collective::Scatter, root, comm)?, input, output)
}

/// MPI_Scatterv: each process may get another number of items.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn scatterv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    displs: Counts,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let output = (received(recvbuf, "recvcount"), recvcount, recvtype);
    let mut scatter = rooted(Collective::Scatter, root, comm)?;
    scatter.asked.input = Side::Elsewhere;
    let input = |processes| {
        let from = sent(sendbuf, "sendcounts");
        // SAFETY: the program gives so many counts at the root.
        unsafe { from.varying(&sendcounts, ("displs", &displs), sendtype, processes) }
    };
    scattered(scatter, input, output)
}

/// The input of this process, which may be in the output already (MPI_IN_PLACE).
fn own_input(
    communicator: &Arc<Communicator>,
    named: Named,
    input: impl FnOnce(Named) -> Result<Side, Mistake>,
) -> Result<Side, Mistake> {
    match named.is_in_place() && communicator.remote.is_none() {
        true => Ok(Side::InPlace),
        false => input(named),
    }
}

fn with_both(mut asked: Asked, input: Side, output: Side) -> Result<Asked, Mistake> {
    input.check_apart(&output)?;
    (asked.input, asked.output) = (input, output);
    Ok(asked)
}

/// Everybody's items go to everybody.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let output = received(recvbuf, "recvcount").blocks(recvcount, recvtype)?;
    let whole = |named: Named| named.whole(sendcount, sendtype);
    let input = own_input(communicator, sent(sendbuf, "sendcount"), whole)?;
    with_both(Asked::new(communicator, Collective::AllGather), input, output)
}

/// MPI_Allgatherv: each process may bring another number of items.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Counts,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let processes = communicator.messages().1;
    let into = received(recvbuf, "recvcounts");
    // SAFETY: the program gives so many counts.
    let output = unsafe { into.varying(&recvcounts, ("displs", &displs), recvtype, processes)? };
    let whole = |named: Named| named.whole(sendcount, sendtype);
    let input = own_input(communicator, sent(sendbuf, "sendcount"), whole)?;
    with_both(Asked::new(communicator, Collective::AllGather), input, output)
}

/// Everybody has a block for everybody.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let output = received(recvbuf, "recvcount").blocks(recvcount, recvtype)?;
    let blocks = |named: Named| named.blocks(sendcount, sendtype);
    let input = own_input(communicator, sent(sendbuf, "sendcount"), blocks)?;
    with_both(Asked::new(communicator, Collective::AllToAll), input, output)
}

/// MPI_Alltoallv: each process may get another number of items.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn alltoallv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Counts,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Counts,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let processes = communicator.messages().1;
    let into = received(recvbuf, "recvcounts");
    // SAFETY: the program gives so many counts.
    let output = unsafe { into.varying(&recvcounts, ("rdispls", &rdispls), recvtype, processes)? };
    let input = own_input(communicator, sent(sendbuf, "sendcounts"), |from| {
        // SAFETY: as above.
        unsafe { from.varying(&sendcounts, ("sdispls", &sdispls), sendtype, processes) }
    })?;
    with_both(Asked::new(communicator, Collective::AllToAll), input, output)
}

/// MPI_Alltoallw: each process has a datatype of its own, and displacements are in bytes.
#[allow(clippy::too_many_arguments)] // As many as the standard has.
pub(crate) unsafe fn alltoallw(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Counts,
    sendtypes: *const Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Counts,
    recvtypes: *const Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let processes = communicator.messages().1;
    let (into, types) = (received(recvbuf, "recvcounts"), ("recvtypes", recvtypes));
    // SAFETY: the program gives so many counts and datatypes.
    let output = unsafe { into.layouts(&recvcounts, ("rdispls", &rdispls), types, processes)? };
    let input = own_input(communicator, sent(sendbuf, "sendcounts"), |from| {
        let types = ("sendtypes", sendtypes);
        // SAFETY: as above.
        unsafe { from.layouts(&sendcounts, ("sdispls", &sdispls), types, processes) }
    })?;
    with_both(Asked::new(communicator, Collective::AllToAll), input, output)
}
