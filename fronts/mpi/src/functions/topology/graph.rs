//! Graphs that every member knows.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use super::{fill, has_no, keep_first};
use crate::abi::{COMM_NULL, ERR_ARG, Handle, UNDEFINED};
use crate::arguments::{give, rank as rank_of};
use crate::functions::communicator_creation::only_one_group;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::topology::{Graph, Topology};

/// A communicator whose processes are the nodes of a graph.
pub(crate) unsafe fn graph_create(
    comm_old: Handle,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
    _reorder: c_int,
    comm_graph: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm_old", comm_old)?;
    only_one_group(communicator)?;
    // SAFETY: the program gives arrays as the graph has them.
    let graph = unsafe { graph_of(communicator, nnodes, indx, edges)? };
    if graph.index.is_empty() {
        // SAFETY: the program says that it is writable.
        return unsafe { give("comm_graph", comm_graph, COMM_NULL) };
    }
    let (processes, place) = (graph.index.len(), ("comm_graph", comm_graph));
    // SAFETY: the program says that the place is writable.
    unsafe { keep_first(communicator, processes, Topology::Graph(graph), place) }
}

/// How many nodes and edges a graph has.
pub(crate) unsafe fn graphdims_get(
    comm: Handle,
    nnodes: *mut c_int,
    nedges: *mut c_int,
) -> Result<(), Mistake> {
    let graph = graph(communicator::get("comm", comm)?)?;
    pointer::check("nedges", nedges, 1)?;
    // SAFETY: the program says that both are writable.
    unsafe {
        give("nnodes", nnodes, graph.index.len() as c_int)?;
        give("nedges", nedges, graph.edges.len() as c_int)
    }
}

/// The graph as it was given.
pub(crate) unsafe fn graph_get(
    comm: Handle,
    maxindex: c_int,
    maxedges: c_int,
    indx: *mut c_int,
    edges: *mut c_int,
) -> Result<(), Mistake> {
    let graph = graph(communicator::get("comm", comm)?)?;
    // SAFETY: the program has so much room in each.
    unsafe {
        fill(("maxindex", maxindex), ("indx", indx), &graph.index)?;
        fill(("maxedges", maxedges), ("edges", edges), &graph.edges)
    }
}

/// How many neighbours a node has.
pub(crate) unsafe fn graph_neighbors_count(
    comm: Handle,
    rank: c_int,
    nneighbors: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let graph = graph(communicator)?;
    let node = rank_of("rank", rank, communicator.size)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("nneighbors", nneighbors, graph.neighbours(node).len() as c_int) }
}

/// The neighbours of a node.
pub(crate) unsafe fn graph_neighbors(
    comm: Handle,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let graph = graph(communicator)?;
    let node = rank_of("rank", rank, communicator.size)?;
    let (room, place) = (("maxneighbors", maxneighbors), ("neighbors", neighbors));
    // SAFETY: the program has so much room.
    unsafe { fill(room, place, graph.neighbours(node)) }
}

/// The rank that this process would have in such a graph.
pub(crate) unsafe fn graph_map(
    comm: Handle,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
    newrank: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    only_one_group(communicator)?;
    // SAFETY: the program gives arrays as the graph has them.
    let graph = unsafe { graph_of(communicator, nnodes, indx, edges)? };
    let is_there = (communicator.rank as usize) < graph.index.len();
    let own = if is_there { communicator.rank as c_int } else { UNDEFINED };
    // SAFETY: the program says that it is writable.
    unsafe { give("newrank", newrank, own) }
}

fn graph(communicator: &Communicator) -> Result<&Graph, Mistake> {
    match communicator.topology.get() {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => Err(has_no("graph (MPI_Graph_create)")),
    }
}

/// The graph that the program describes, for whose nodes a communicator has enough processes.
unsafe fn graph_of(
    communicator: &Communicator,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
) -> Result<Graph, Mistake> {
    let size = communicator.size;
    let nodes = usize::try_from(nnodes).ok().filter(|nodes| *nodes <= size as usize);
    let nodes = nodes.ok_or_else(|| {
        let text = format!("nnodes is {nnodes}, but the communicator has {size} processes");
        Mistake::new(ERR_ARG, text)
    })?;
    // SAFETY: as the caller says.
    let index = unsafe { pointer::slice("indx", indx, nodes)? };
    let is_ordered = index.iter().is_sorted() && index.first().is_none_or(|first| *first >= 0);
    if !is_ordered {
        let text = "indx does not grow from node to node; it has the sums of their neighbours";
        return Err(Mistake::new(ERR_ARG, text));
    }
    let count = index.last().map_or(0, |last| *last as usize);
    // SAFETY: as the caller says.
    let edges = unsafe { pointer::slice("edges", edges, count)? };
    // An edge may lead to a process that is no node: then nobody talks along it.
    if let Some(edge) = edges.iter().find(|edge| !(0..size as c_int).contains(edge)) {
        let last = size - 1;
        let text = format!("edges has {edge}, but the communicator has the ranks 0 to {last}");
        return Err(Mistake::new(ERR_ARG, text));
    }
    Ok(Graph { index: index.to_vec(), edges: edges.to_vec() })
}
