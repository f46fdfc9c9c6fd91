//! The operations between neighbours: what their arguments say.

use std::ffi::c_void;
use std::sync::Arc;

use super::asked::Asked;
use super::side::Side;
use crate::abi::{ERR_TOPOLOGY, Handle};
use crate::counts::Counts;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::neighbours::Neighbours;

/// MPI_Neighbor_allgather: all neighbours get the same items, and each sends so many.
pub(super) unsafe fn neighbor_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, neighbours) = with_neighbours(comm)?;
    let outgoing = sent(sendbuf, "sendcount", neighbours).same(sendcount, sendtype)?;
    let incoming = received(recvbuf, "recvcount", neighbours).blocks(recvcount, recvtype)?;
    Ok(Asked { communicator, outgoing, incoming })
}

/// MPI_Neighbor_allgatherv: all neighbours get the same items, and each sends a number of its own.
#[allow(clippy::too_many_arguments)] // They are the standard's.
pub(super) unsafe fn neighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Counts,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, neighbours) = with_neighbours(comm)?;
    let outgoing = sent(sendbuf, "sendcount", neighbours).same(sendcount, sendtype)?;
    let side = received(recvbuf, "recvcounts", neighbours);
    // SAFETY: the program gives an entry for each neighbour.
    let incoming = unsafe { side.varying(recvcounts, ("displs", displs), recvtype)? };
    Ok(Asked { communicator, outgoing, incoming })
}

/// So many items to each, so many from each.
pub(super) unsafe fn neighbor_alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, neighbours) = with_neighbours(comm)?;
    let outgoing = sent(sendbuf, "sendcount", neighbours).blocks(sendcount, sendtype)?;
    let incoming = received(recvbuf, "recvcount", neighbours).blocks(recvcount, recvtype)?;
    Ok(Asked { communicator, outgoing, incoming })
}

/// As many items to each and from each as the program says.
#[allow(clippy::too_many_arguments)] // They are the standard's.
pub(super) unsafe fn neighbor_alltoallv(
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
    let (communicator, neighbours) = with_neighbours(comm)?;
    let (out, back) =
        (sent(sendbuf, "sendcounts", neighbours), received(recvbuf, "recvcounts", neighbours));
    // SAFETY: the program gives an entry for each neighbour.
    let (outgoing, incoming) = unsafe {
        (
            out.varying(sendcounts, ("sdispls", sdispls), sendtype)?,
            back.varying(recvcounts, ("rdispls", rdispls), recvtype)?,
        )
    };
    Ok(Asked { communicator, outgoing, incoming })
}

/// MPI_Neighbor_alltoallw: each neighbour has a datatype of its own, and displacements are in bytes.
#[allow(clippy::too_many_arguments)] // They are the standard's.
pub(super) unsafe fn neighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: *const i64,
    sendtypes: *const Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: *const i64,
    recvtypes: *const Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, neighbours) = with_neighbours(comm)?;
    let (out, back) =
        (sent(sendbuf, "sendcounts", neighbours), received(recvbuf, "recvcounts", neighbours));
    // SAFETY: the program gives an entry for each neighbour.
    let (outgoing, incoming) = unsafe {
        (
            out.layouts(sendcounts, ("sdispls", sdispls), ("sendtypes", sendtypes))?,
            back.layouts(recvcounts, ("rdispls", rdispls), ("recvtypes", recvtypes))?,
        )
    };
    Ok(Asked { communicator, outgoing, incoming })
}

fn with_neighbours(
    comm: Handle,
) -> Result<(&'static Arc<Communicator>, &'static Neighbours), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let neighbours = communicator.neighbours().ok_or_else(|| {
        let text = "comm has no topology, so nobody has neighbours in it; make one with \
                    MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create";
        Mistake::new(ERR_TOPOLOGY, text)
    })?;
    Ok((communicator, neighbours))
}

/// The messages that this process sends.
fn sent<'a>(
    buffer: *const c_void,
    count_name: &'static str,
    neighbours: &'a Neighbours,
) -> Side<'a> {
    Side { buffer, name: "sendbuf", count_name, neighbours: &neighbours.destinations }
}

/// The messages that this process receives.
fn received<'a>(
    buffer: *mut c_void,
    count_name: &'static str,
    neighbours: &'a Neighbours,
) -> Side<'a> {
    Side { buffer, name: "recvbuf", count_name, neighbours: &neighbours.sources }
}
