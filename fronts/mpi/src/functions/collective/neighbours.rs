//! Collective operations between the neighbours of a topology: exchanges among all members, in which
//! those that are no neighbours have nothing for each other.
//!
//! Two processes may be neighbours more than once. What goes from one to the other is then one block of
//! several pieces, which both take in one order: that of the edges in graphs; in grids that of the
//! direction in which the piece travels, so that what is sent downwards arrives from above, even where
//! both neighbours are the same process.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use landeck::collectives::Operation as Collective;
use landeck::layout::{Kind, Layout, Member};

use super::asked::Asked;
use super::side::{Named, Side, all_counts, all_of, received, sent};
use crate::abi::{ERR_TYPE, Handle};
use crate::arguments::count_of;
use crate::counts::Counts;
use crate::functions::topology::neighbours;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::datatype;
use crate::objects::topology::Neighbours;
use landeck_c_boundary::pointer;

/// The same items go to each neighbour.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn neighbor_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, all) = of("comm", comm)?;
    let input = repeated(sent(sendbuf, "sendcount"), sendcount, sendtype, all.destinations.len())?;
    let output = equal(received(recvbuf, "recvcount"), recvcount, recvtype, all.sources.len())?;
    exchanged(communicator, &all, input, output)
}

/// The same, with as many from each as it has.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn neighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Counts,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, all) = of("comm", comm)?;
    let input = repeated(sent(sendbuf, "sendcount"), sendcount, sendtype, all.destinations.len())?;
    let (into, places) = (received(recvbuf, "recvcounts"), ("displs", &displs));
    // SAFETY: the program gives so many counts.
    let output = unsafe { varying(into, &recvcounts, places, recvtype, all.sources.len())? };
    exchanged(communicator, &all, input, output)
}

/// A block for each neighbour.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn neighbor_alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Handle,
    comm: Handle,
) -> Result<Asked, Mistake> {
    let (communicator, all) = of("comm", comm)?;
    let input = equal(sent(sendbuf, "sendcount"), sendcount, sendtype, all.destinations.len())?;
    let output = equal(received(recvbuf, "recvcount"), recvcount, recvtype, all.sources.len())?;
    exchanged(communicator, &all, input, output)
}

/// The same, with as many for each as it says.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn neighbor_alltoallv(
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
    let (communicator, all) = of("comm", comm)?;
    let (from, into) = (sent(sendbuf, "sendcounts"), received(recvbuf, "recvcounts"));
    let (starts, ends) = (("sdispls", &sdispls), ("rdispls", &rdispls));
    // SAFETY: the program gives so many counts.
    let (input, output) = unsafe {
        let input = varying(from, &sendcounts, starts, sendtype, all.destinations.len())?;
        (input, varying(into, &recvcounts, ends, recvtype, all.sources.len())?)
    };
    exchanged(communicator, &all, input, output)
}

/// The same, with a datatype for each, and displacements in bytes.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn neighbor_alltoallw(
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
    let (communicator, all) = of("comm", comm)?;
    let (from, into) = (sent(sendbuf, "sendcounts"), received(recvbuf, "recvcounts"));
    let (starts, ends) = (Counts::wide(sdispls), Counts::wide(rdispls));
    let (starts, ends) = (("sdispls", &starts), ("rdispls", &ends));
    let (sent_types, received_types) = (("sendtypes", sendtypes), ("recvtypes", recvtypes));
    // SAFETY: the program gives so many counts and datatypes.
    let (input, output) = unsafe {
        let input = layouts(from, &sendcounts, starts, sent_types, all.destinations.len())?;
        (input, layouts(into, &recvcounts, ends, received_types, all.sources.len())?)
    };
    exchanged(communicator, &all, input, output)
}

/// The pieces of one side, one for each neighbour, in bytes from a start.
struct Pieces {
    start: *mut u8,
    pieces: Vec<Member>,
}

fn of(argument: &str, comm: Handle) -> Result<(&'static Arc<Communicator>, Neighbours), Mistake> {
    let communicator = communicator::get(argument, comm)?;
    Ok((communicator, neighbours(communicator)?))
}

/// The same items for each of so many neighbours.
fn repeated(
    named: Named,
    count: i64,
    datatype: Handle,
    neighbours: usize,
) -> Result<Pieces, Mistake> {
    let items = named.items(count, datatype)?;
    let piece = Member { offset: 0, count: items.count, layout: items.datatype.layout.clone() };
    Ok(Pieces { start: items.start, pieces: vec![piece; neighbours] })
}

/// So many items for each of so many neighbours, one block behind the other.
fn equal(named: Named, count: i64, datatype: Handle, neighbours: usize) -> Result<Pieces, Mistake> {
    // Who has no neighbours needs no buffer.
    let items = named.items(if neighbours == 0 { 0 } else { count }, datatype)?;
    let layout = &items.datatype.layout;
    let block_bytes =
        layout.extent_bytes()?.saturating_mul(count_of(named.count_name, count)? as i64);
    let piece = |place: usize| Member {
        offset: block_bytes.saturating_mul(place as i64),
        count: items.count,
        layout: layout.clone(),
    };
    Ok(Pieces { start: items.start, pieces: (0..neighbours).map(piece).collect() })
}

/// A block for each of so many neighbours.
///
/// # Safety
/// Unless null or misaligned, the arrays have so many entries.
unsafe fn varying(
    named: Named,
    counts: &Counts,
    displacements: (&'static str, &Counts),
    datatype: Handle,
    neighbours: usize,
) -> Result<Pieces, Mistake> {
    // SAFETY: the caller's promise.
    let (counts, displacements) = unsafe {
        let counts = all_counts(named.count_name, counts, neighbours as u32)?;
        (counts, all_of(displacements.0, displacements.1, neighbours as u32)?)
    };
    let most = counts.iter().copied().max().unwrap_or(0);
    let items = named.items(most.min(1) as i64, datatype)?;
    let layout = &items.datatype.layout;
    let extent = layout.extent_bytes()?;
    let piece = |(count, place): (u64, i64)| Member {
        offset: extent.saturating_mul(place),
        count,
        layout: layout.clone(),
    };
    let pieces = counts.into_iter().zip(displacements).map(piece).collect();
    Ok(Pieces { start: items.start, pieces })
}

/// A block for each of so many neighbours, each of a datatype of its own, in bytes.
///
/// # Safety
/// As [`varying`].
unsafe fn layouts(
    named: Named,
    counts: &Counts,
    displacements: (&'static str, &Counts),
    (types_name, types): (&'static str, *const Handle),
    neighbours: usize,
) -> Result<Pieces, Mistake> {
    if named.is_in_place() {
        return Err(named.misplaced());
    }
    // SAFETY: the caller's promise.
    let (counts, displacements, types) = unsafe {
        let counts = all_counts(named.count_name, counts, neighbours as u32)?;
        let displacements = all_of(displacements.0, displacements.1, neighbours as u32)?;
        (counts, displacements, pointer::slice(types_name, types, neighbours)?)
    };
    let piece = |((count, offset), handle): ((u64, i64), &Handle)| {
        let layout = datatype::get_committed(types_name, *handle)?.layout.clone();
        Ok(Member { offset, count, layout })
    };
    let pieces = counts.into_iter().zip(displacements).zip(types).map(piece);
    let start = named.buffer.cast::<u8>().cast_mut();
    Ok(Pieces { start, pieces: pieces.collect::<Result<_, Mistake>>()? })
}

/// The exchange of pieces among all members.
fn exchanged(
    communicator: &'static Arc<Communicator>,
    all: &Neighbours,
    input: Pieces,
    output: Pieces,
) -> Result<Asked, Mistake> {
    let mut asked = Asked::new(communicator, Collective::AllToAll);
    asked.input = side(communicator.size, &all.destinations, input)?;
    asked.output = side(communicator.size, &all.sources, output)?;
    Ok(asked)
}

/// One side of the exchange: what goes to one process, or comes from it, is one block.
fn side(
    members: u32,
    edges: &[(c_int, usize)],
    Pieces { start, pieces }: Pieces,
) -> Result<Side, Mistake> {
    let mut blocks: Vec<Vec<(usize, Member)>> = vec![Vec::new(); members as usize];
    for ((neighbour, order), piece) in edges.iter().zip(pieces) {
        // Nobody is behind the rim of a grid.
        if let Some(block) = usize::try_from(*neighbour).ok().and_then(|rank| blocks.get_mut(rank))
        {
            block.push((*order, piece));
        }
    }
    let nothing = Layout::elements(Kind::BYTE, 0)?;
    let counts = blocks.iter().map(|block| u64::from(!block.is_empty())).collect();
    let layout = |mut block: Vec<(usize, Member)>| {
        if block.is_empty() {
            return Ok(nothing.clone());
        }
        block.sort_by_key(|(order, _)| *order);
        let pieces: Vec<Member> = block.into_iter().map(|(_, piece)| piece).collect();
        Layout::structure(&pieces).map_err(|error| Mistake::new(ERR_TYPE, error))
    };
    let layouts = blocks.into_iter().map(layout).collect::<Result<_, Mistake>>()?;
    Ok(Side::Layouts { start, layouts, counts, displacements: vec![0; members as usize] })
}
