//! Grids.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use super::{fill, has_no, keep_first};
use crate::abi::{COMM_NULL, ERR_ARG, ERR_DIMS, Handle, UNDEFINED};
use crate::arguments::{give, rank as rank_of};
use crate::functions::communicator_creation::{divided, only_one_group};
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::topology::{Cartesian, Topology};

/// A communicator whose processes stand in a grid.
pub(crate) unsafe fn cart_create(
    comm_old: Handle,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    comm_cart: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm_old", comm_old)?;
    only_one_group(communicator)?;
    // SAFETY: the program gives arrays of so many.
    let grid = unsafe { grid_of(communicator, ndims, dims, periods, 1)? };
    let place = ("comm_cart", comm_cart);
    let processes = grid.processes();
    // SAFETY: the program says that the place is writable.
    unsafe { keep_first(communicator, processes, Topology::Cartesian(grid), place) }
}

/// The parts of a grid that have these dimensions, each as a communicator.
pub(crate) unsafe fn cart_sub(
    comm: Handle,
    remain_dims: *const c_int,
    newcomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let grid = grid(communicator)?;
    // SAFETY: the program gives an array of so many.
    let remain = unsafe { pointer::slice("remain_dims", remain_dims, grid.dimensions.len())? };
    pointer::check("newcomm", newcomm, 1)?;
    let coordinates = grid.coordinates(communicator.rank as i32);
    let chosen = |stays: bool| {
        let all = grid.dimensions.iter().zip(&grid.periods).zip(&coordinates).zip(remain);
        all.filter(move |(_, remains)| (**remains != 0) == stays)
    };
    let part = |stays| Cartesian {
        dimensions: chosen(stays).map(|(((dimension, _), _), _)| *dimension).collect(),
        periods: chosen(stays).map(|(((_, period), _), _)| *period).collect(),
    };
    let place = |stays| {
        let own: Vec<i32> = chosen(stays).map(|((_, place), _)| *place).collect();
        part(stays).rank(&own).unwrap_or(0)
    };
    let made = divided(communicator, Some(place(false) as u32), place(true))?;
    let made = made.map_or(COMM_NULL, |made| {
        made.topology.get_or_init(|| Topology::Cartesian(part(true)));
        communicator::keep(made)
    });
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newcomm", newcomm, made) }
}

/// How many dimensions a grid has.
pub(crate) unsafe fn cartdim_get(comm: Handle, ndims: *mut c_int) -> Result<(), Mistake> {
    let grid = grid(communicator::get("comm", comm)?)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("ndims", ndims, grid.dimensions.len() as c_int) }
}

/// MPI_Cart_get: the shape of a grid, and the coordinates of this process.
pub(crate) unsafe fn cart_get(
    comm: Handle,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let grid = grid(communicator)?;
    let room = ("maxdims", maxdims);
    let is_periodic: Vec<c_int> = grid.periods.iter().map(|period| c_int::from(*period)).collect();
    // SAFETY: the program has so much room in each.
    unsafe {
        fill(room, ("dims", dims), &grid.dimensions)?;
        fill(room, ("periods", periods), &is_periodic)?;
        fill(room, ("coords", coords), &grid.coordinates(communicator.rank as i32))
    }
}

/// The rank of a place in a grid.
pub(crate) unsafe fn cart_rank(
    comm: Handle,
    coords: *const c_int,
    rank: *mut c_int,
) -> Result<(), Mistake> {
    let grid = grid(communicator::get("comm", comm)?)?;
    // SAFETY: the program gives an array of so many.
    let coordinates = unsafe { pointer::slice("coords", coords, grid.dimensions.len())? };
    let found = grid.rank(coordinates).ok_or_else(|| {
        let dimensions = &grid.dimensions;
        let text =
            format!("coords is {coordinates:?}, which is outside of the grid {dimensions:?}");
        Mistake::new(ERR_ARG, text)
    })?;
    // SAFETY: the program says that it is writable.
    unsafe { give("rank", rank, found) }
}

/// The place of a rank in a grid.
pub(crate) unsafe fn cart_coords(
    comm: Handle,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let grid = grid(communicator)?;
    rank_of("rank", rank, communicator.size)?;
    // SAFETY: the program has so much room.
    unsafe { fill(("maxdims", maxdims), ("coords", coords), &grid.coordinates(rank)) }
}

/// The neighbours of this process in a dimension, at a distance: who sends to it, and who receives.
pub(crate) unsafe fn cart_shift(
    comm: Handle,
    direction: c_int,
    disp: c_int,
    rank_source: *mut c_int,
    rank_dest: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let grid = grid(communicator)?;
    let count = grid.dimensions.len();
    let dimension = usize::try_from(direction).ok().filter(|dimension| *dimension < count);
    let dimension = dimension.ok_or_else(|| {
        let text = format!("direction is {direction}, but the grid has {count} dimensions");
        Mistake::new(ERR_DIMS, text)
    })?;
    pointer::check("rank_dest", rank_dest, 1)?;
    let own = communicator.rank as i32;
    let neighbour = |distance| grid.neighbour(own, dimension, distance);
    // SAFETY: the program says that both are writable.
    unsafe {
        give("rank_source", rank_source, neighbour(-i64::from(disp)))?;
        give("rank_dest", rank_dest, neighbour(i64::from(disp)))
    }
}

/// The rank that this process would have in such a grid. A grid without a place, which cannot be
/// made, may be asked for: nobody stands in it.
pub(crate) unsafe fn cart_map(
    comm: Handle,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    only_one_group(communicator)?;
    // SAFETY: the program gives arrays of so many.
    let grid = unsafe { grid_of(communicator, ndims, dims, periods, 0)? };
    let is_there = (communicator.rank as usize) < grid.processes();
    let own = if is_there { communicator.rank as c_int } else { UNDEFINED };
    // SAFETY: the program says that it is writable.
    unsafe { give("newrank", newrank, own) }
}

fn grid(communicator: &Communicator) -> Result<&Cartesian, Mistake> {
    match communicator.topology.get() {
        Some(Topology::Cartesian(grid)) => Ok(grid),
        _ => Err(has_no("grid (MPI_Cart_create)")),
    }
}

/// The grid that the program describes, which the processes of a communicator can fill.
unsafe fn grid_of(
    communicator: &Communicator,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    dimension_min: c_int,
) -> Result<Cartesian, Mistake> {
    let count = usize::try_from(ndims).map_err(|_| {
        Mistake::new(ERR_DIMS, format_args!("ndims is {ndims}; it must be 0 or more"))
    })?;
    // SAFETY: as the caller says.
    let (dimensions, periods) = unsafe {
        (pointer::slice("dims", dims, count)?, pointer::slice("periods", periods, count)?)
    };
    if let Some(dimension) = dimensions.iter().find(|dimension| **dimension < dimension_min) {
        let text = format!("dims has {dimension}; every dimension is {dimension_min} or more");
        return Err(Mistake::new(ERR_DIMS, text));
    }
    let periods = periods.iter().map(|period| *period != 0).collect();
    let grid = Cartesian { dimensions: dimensions.to_vec(), periods };
    let size = communicator.size;
    if grid.processes() > size as usize {
        let text = format!("dims is {dimensions:?}, but the communicator has {size} processes");
        return Err(Mistake::new(ERR_DIMS, text));
    }
    Ok(grid)
}
