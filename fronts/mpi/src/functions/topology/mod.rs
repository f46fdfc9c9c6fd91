//! Virtual topologies: grids, graphs that all processes know, and graphs of which each process knows its own part.
//! Ranks stay as they are in the communicator that is given, whether they may change or not.

mod cartesian;
mod dimensions;
mod distributed;
mod graph;

pub(crate) use cartesian::{
    cart_coords, cart_create, cart_get, cart_map, cart_rank, cart_shift, cart_sub, cartdim_get,
};
pub(crate) use dimensions::dims_create;
pub(crate) use distributed::{
    dist_graph_create, dist_graph_create_adjacent, dist_graph_neighbors, dist_graph_neighbors_count,
};
pub(crate) use graph::{
    graph_create, graph_get, graph_map, graph_neighbors, graph_neighbors_count, graphdims_get,
};

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use crate::abi::{CART, COMM_NULL, DIST_GRAPH, ERR_ARG, ERR_TOPOLOGY, GRAPH, Handle, UNDEFINED};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::topology::Topology;

/// Which kind of topology a communicator has.
pub(crate) unsafe fn topo_test(comm: Handle, status: *mut c_int) -> Result<(), Mistake> {
    let kind = match communicator::get("comm", comm)?.topology.get() {
        None => UNDEFINED,
        Some(Topology::Cartesian(_)) => CART,
        Some(Topology::Graph(_)) => GRAPH,
        Some(Topology::Distributed(_)) => DIST_GRAPH,
    };
    // SAFETY: the program says that it is writable.
    unsafe { give("status", status, kind) }
}

/// Gives out a communicator of the first processes of another one, with a topology.
unsafe fn keep_first(
    communicator: &Communicator,
    processes: usize,
    topology: Topology,
    (argument, place): (&'static str, *mut Handle),
) -> Result<(), Mistake> {
    pointer::check(argument, place, 1)?;
    let ranks: Vec<usize> = (0..processes).collect();
    let made = match communicator.world.subset(&ranks)? {
        None => COMM_NULL,
        Some(world) => {
            let made = communicator.child(world);
            made.topology.get_or_init(|| topology);
            communicator::keep(made)
        }
    };
    // SAFETY: checked above; the caller says that it is writable.
    unsafe { give(argument, place, made) }
}

/// A mistake with a communicator that does not have such a topology.
#[cold]
fn has_no(what: &str) -> Mistake {
    Mistake::new(ERR_TOPOLOGY, format_args!("comm has no {what}; pass one that was made with it"))
}

/// Writes values where the program has room for so many, or for more.
unsafe fn fill(
    (room_argument, room): (&str, c_int),
    (argument, place): (&'static str, *mut c_int),
    values: &[c_int],
) -> Result<(), Mistake> {
    if usize::try_from(room).is_ok_and(|room| room >= values.len()) {
        // SAFETY: the caller says that so many are writable.
        unsafe { pointer::slice_mut(argument, place, values.len())? }.copy_from_slice(values);
        return Ok(());
    }
    let count = values.len();
    let text = format!("{room_argument} is {room}, but {count} are to be written");
    Err(Mistake::new(ERR_ARG, text))
}
