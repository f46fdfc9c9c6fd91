//! Graphs of which each member knows its own neighbours.

use std::ffi::c_int;
use std::ops::Range;

use landeck_c_boundary::pointer;

use super::{fill, has_no};
use crate::abi::{ERR_ARG, ERR_RANK, Handle, UNWEIGHTED, WEIGHTS_EMPTY};
use crate::arguments::{give, length_of};
use crate::functions::communicator_creation::only_one_group;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::info;
use crate::objects::topology::{Distributed, Topology};

/// A communicator whose processes are the nodes of a graph; each gives its own edges.
#[allow(clippy::too_many_arguments)] // They are the standard's.
pub(crate) unsafe fn dist_graph_create_adjacent(
    comm_old: Handle,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    info: Handle,
    _reorder: c_int,
    comm_dist_graph: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm_old", comm_old)?;
    only_one_group(communicator)?;
    let (incoming, outgoing) =
        (length_of("indegree", indegree)?, length_of("outdegree", outdegree)?);
    // SAFETY: the program gives arrays of so many.
    let graph = unsafe {
        let in_weights = weights_of(("sourceweights", sourceweights), incoming)?;
        let out_weights = weights_of(("destweights", destweights), outgoing)?;
        if in_weights.is_some() != out_weights.is_some() {
            let text = "one of sourceweights and destweights is MPI_UNWEIGHTED and one is not";
            return Err(Mistake::new(ERR_ARG, text));
        }
        Distributed {
            sources: ranks_of(communicator, ("sources", sources), incoming)?.to_vec(),
            destinations: ranks_of(communicator, ("destinations", destinations), outgoing)?
                .to_vec(),
            weights: in_weights.zip(out_weights),
        }
    };
    // SAFETY: the program says that the place is writable.
    unsafe { keep(communicator, graph, info, comm_dist_graph) }
}

/// MPI_Dist_graph_create: each process gives edges of any nodes.
#[allow(clippy::too_many_arguments)] // They are the standard's.
pub(crate) unsafe fn dist_graph_create(
    comm_old: Handle,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    info: Handle,
    _reorder: c_int,
    comm_dist_graph: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm_old", comm_old)?;
    only_one_group(communicator)?;
    let count = length_of("n", n)?;
    // SAFETY: the program gives arrays of so many.
    let (sources, degrees) = unsafe {
        let sources = ranks_of(communicator, ("sources", sources), count)?;
        (sources, pointer::slice("degrees", degrees, count)?)
    };
    let mut lengths = Vec::with_capacity(count);
    for degree in degrees {
        lengths.push(length_of("degrees", *degree)?);
    }
    let total = lengths.iter().sum();
    // SAFETY: the program gives arrays of so many.
    let (destinations, weights) = unsafe {
        let destinations = ranks_of(communicator, ("destinations", destinations), total)?;
        (destinations, weights_of(("weights", weights), total)?)
    };
    pointer::check("comm_dist_graph", comm_dist_graph, 1)?;
    info::snapshot_or_empty("info", info)?;
    let origins = sources.iter().zip(&lengths).flat_map(|(node, many)| vec![*node; *many]);
    let edges = origins.zip(destinations).enumerate().map(|(place, (from, to))| Edge {
        from,
        to: *to,
        weight: weights.as_ref().map_or(1, |weights| weights[place]),
    });
    let graph = collected(communicator, &edges.collect::<Vec<_>>(), weights.is_some())?;
    // SAFETY: the program says that the place is writable.
    unsafe { keep(communicator, graph, info, comm_dist_graph) }
}

/// How many neighbours this process has, and whether edges have weights.
pub(crate) unsafe fn dist_graph_neighbors_count(
    comm: Handle,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> Result<(), Mistake> {
    let graph = graph(communicator::get("comm", comm)?)?;
    pointer::check("outdegree", outdegree, 1)?;
    pointer::check("weighted", weighted, 1)?;
    // SAFETY: the program says that all are writable.
    unsafe {
        give("indegree", indegree, graph.sources.len() as c_int)?;
        give("outdegree", outdegree, graph.destinations.len() as c_int)?;
        give("weighted", weighted, c_int::from(graph.weights.is_some()))
    }
}

/// The neighbours of this process, and the weights of its edges, as far as there is room.
pub(crate) unsafe fn dist_graph_neighbors(
    comm: Handle,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Result<(), Mistake> {
    let graph = graph(communicator::get("comm", comm)?)?;
    let incoming = length_of("maxindegree", maxindegree)?.min(graph.sources.len());
    let outgoing = length_of("maxoutdegree", maxoutdegree)?.min(graph.destinations.len());
    let (in_room, out_room) = (("maxindegree", maxindegree), ("maxoutdegree", maxoutdegree));
    // SAFETY: the program has so much room in each.
    unsafe {
        fill(in_room, ("sources", sources), &graph.sources[..incoming])?;
        fill(out_room, ("destinations", destinations), &graph.destinations[..outgoing])?;
        let Some((in_weights, out_weights)) = &graph.weights else { return Ok(()) };
        if sourceweights.addr() != UNWEIGHTED {
            fill(in_room, ("sourceweights", sourceweights), &in_weights[..incoming])?;
        }
        if destweights.addr() != UNWEIGHTED {
            fill(out_room, ("destweights", destweights), &out_weights[..outgoing])?;
        }
    }
    Ok(())
}

fn graph(communicator: &Communicator) -> Result<&Distributed, Mistake> {
    match communicator.topology.get() {
        Some(Topology::Distributed(graph)) => Ok(graph),
        _ => Err(has_no("distributed graph (MPI_Dist_graph_create)")),
    }
}

/// Gives out a communicator of the same processes with this graph.
unsafe fn keep(
    communicator: &Communicator,
    graph: Distributed,
    info: Handle,
    place: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("comm_dist_graph", place, 1)?;
    let hints = info::snapshot_or_empty("info", info)?;
    let made = communicator.child(communicator.world.duplicate()?);
    made.set_hints(hints);
    made.topology.get_or_init(|| Topology::Distributed(graph));
    // SAFETY: checked above; the caller says that it is writable.
    unsafe { give("comm_dist_graph", place, communicator::keep(made)) }
}

/// Nodes that the program names.
unsafe fn ranks_of<'a>(
    communicator: &Communicator,
    (argument, place): (&'static str, *const c_int),
    count: usize,
) -> Result<&'a [c_int], Mistake> {
    // SAFETY: as the caller says.
    let ranks = unsafe { pointer::slice(argument, place, count)? };
    let is_rank = |rank: &&c_int| u32::try_from(**rank).is_ok_and(|rank| rank < communicator.size);
    match ranks.iter().find(|rank| !is_rank(rank)) {
        None => Ok(ranks),
        Some(rank) => {
            let last = communicator.size - 1;
            let text =
                format!("{argument} has {rank}, but the communicator has the ranks 0 to {last}");
            Err(Mistake::new(ERR_RANK, text))
        }
    }
}

/// Weights of edges that the program gives, if it does.
unsafe fn weights_of(
    (argument, place): (&'static str, *const c_int),
    count: usize,
) -> Result<Option<Vec<c_int>>, Mistake> {
    let weights = match place.addr() {
        UNWEIGHTED => return Ok(None),
        WEIGHTS_EMPTY if count == 0 => &[],
        // SAFETY: as the caller says; small numbers are misaligned, so they are refused.
        _ => unsafe { pointer::slice(argument, place, count)? },
    };
    if let Some(weight) = weights.iter().find(|weight| **weight < 0) {
        let text = format!("{argument} has {weight}; a weight is 0 or more");
        return Err(Mistake::new(ERR_ARG, text));
    }
    Ok(Some(weights.to_vec()))
}

#[derive(Clone, Copy)]
struct Edge {
    from: c_int,
    to: c_int,
    weight: c_int,
}

/// The number of words that a node is sent about an edge: whether it leaves the node, the other end, the weight.
const TOLD_WORDS: usize = 3;

/// This process's part of a graph whose edges all processes have: in the order of the ranks that
/// gave them, so that the edges between two nodes have the same order at both.
fn collected(
    communicator: &Communicator,
    edges: &[Edge],
    is_weighted: bool,
) -> Result<Distributed, Mistake> {
    let size = communicator.size as usize;
    let mut told = vec![Vec::new(); size];
    for &Edge { from, to, weight } in edges {
        told[from as usize].extend([1, to, weight]);
        told[to as usize].extend([0, from, weight]);
    }
    let lengths: Vec<u64> = told.iter().map(|words| words.len() as u64).collect();
    let mut heard_lengths = vec![0; size];
    communicator.world.all_to_all(&lengths, &mut heard_lengths)?;
    let (parts, heard_parts) = (parts_of(&lengths), parts_of(&heard_lengths));
    let mut heard = vec![0; heard_parts.last().map_or(0, |last| last.end)];
    communicator.world.all_to_all_varying(&told.concat(), &parts, &mut heard, &heard_parts)?;
    let side = |leaves: c_int| {
        let all = heard.chunks_exact(TOLD_WORDS).filter(move |words| words[0] == leaves);
        all.map(|words| (words[1], words[2])).unzip()
    };
    let (sources, in_weights) = side(0);
    let (destinations, out_weights) = side(1);
    let weights = is_weighted.then_some((in_weights, out_weights));
    Ok(Distributed { sources, destinations, weights })
}

/// Parts of these lengths, one behind the other.
fn parts_of(lengths: &[u64]) -> Vec<Range<usize>> {
    let mut start = 0;
    let part = |length: &u64| {
        let part = start..start + *length as usize;
        start = part.end;
        part
    };
    lengths.iter().map(part).collect()
}
