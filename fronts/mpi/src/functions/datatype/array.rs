//! Datatypes of parts of arrays.

use std::ffi::c_int;

use landeck::layout::{ArrayError, ArrayOrder, Axis, Distribution, Layout, Section};
use landeck_c_boundary::pointer;

use super::creation::{finish, numbers, old_type};
use crate::abi::{
    COMBINER_DARRAY, COMBINER_SUBARRAY, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG,
    DISTRIBUTE_NONE, ERR_ARG, Handle, ORDER_C, ORDER_FORTRAN,
};
use crate::counts::Counts;
use crate::mistake::Mistake;
use crate::objects::contents::Contents;

/// A section of an array.
pub(crate) unsafe fn type_create_subarray(
    ndims: c_int,
    array_of_sizes: Counts,
    array_of_subsizes: Counts,
    array_of_starts: Counts,
    order: c_int,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let dimensions = dimensions_of(ndims)?;
    // SAFETY: the program has so many there.
    let (sizes, lengths, starts) = unsafe {
        (
            numbers("array_of_sizes", array_of_sizes, dimensions)?,
            numbers("array_of_subsizes", array_of_subsizes, dimensions)?,
            numbers("array_of_starts", array_of_starts, dimensions)?,
        )
    };
    let mut sections = Vec::with_capacity(dimensions);
    for index in 0..dimensions {
        sections.push(Section {
            size: at_least(1, "array_of_sizes", index, sizes[index])?,
            length: at_least(1, "array_of_subsizes", index, lengths[index])?,
            start: at_least(0, "array_of_starts", index, starts[index])?,
        });
    }
    let layout = Layout::subarray(&sections, order_of(order)?, &old.layout).map_err(unfit)?;
    let contents = Contents::of(COMBINER_SUBARRAY, array_of_sizes.is_wide())
        .integers(&[ndims])
        .numbers(&sizes)
        .numbers(&lengths)
        .numbers(&starts)
        .integers(&[order])
        .parts([old.part()]);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents) }
}

/// MPI_Type_create_darray: the part of one process in a distributed array.
#[allow(clippy::too_many_arguments)] // the standard has them
pub(crate) unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: Counts,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let dimensions = dimensions_of(ndims)?;
    // SAFETY: the program has so many there.
    let (sizes, distribs, dargs, psizes) = unsafe {
        (
            numbers("array_of_gsizes", array_of_gsizes, dimensions)?,
            pointer::slice("array_of_distribs", array_of_distribs, dimensions)?,
            pointer::slice("array_of_dargs", array_of_dargs, dimensions)?,
            pointer::slice("array_of_psizes", array_of_psizes, dimensions)?,
        )
    };
    let mut axes = Vec::with_capacity(dimensions);
    for index in 0..dimensions {
        axes.push(Axis {
            size: at_least(1, "array_of_gsizes", index, sizes[index])?,
            distribution: distribution_of(index, distribs[index], dargs[index])?,
            processes: at_least(1, "array_of_psizes", index, psizes[index].into())?,
        });
    }
    let place = place_of(size, rank)?;
    let layout = Layout::distributed(&axes, order_of(order)?, place, &old.layout).map_err(unfit)?;
    let contents = Contents::of(COMBINER_DARRAY, array_of_gsizes.is_wide())
        .integers(&[size, rank, ndims])
        .numbers(&sizes)
        .integers(distribs)
        .integers(dargs)
        .integers(psizes)
        .integers(&[order])
        .parts([old.part()]);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents) }
}

#[cold]
fn unfit(error: ArrayError) -> Mistake {
    Mistake::new(ERR_ARG, error)
}

fn dimensions_of(ndims: c_int) -> Result<usize, Mistake> {
    usize::try_from(ndims).ok().filter(|dimensions| *dimensions > 0).ok_or_else(|| {
        Mistake::new(ERR_ARG, format_args!("ndims is {ndims}; an array has 1 dimension or more"))
    })
}

fn at_least(least: i64, argument: &str, index: usize, number: i64) -> Result<u64, Mistake> {
    u64::try_from(number).ok().filter(|_| number >= least).ok_or_else(|| {
        let text = format!("{argument}[{index}] is {number}; it must be {least} or more");
        Mistake::new(ERR_ARG, text)
    })
}

fn order_of(order: c_int) -> Result<ArrayOrder, Mistake> {
    match order {
        ORDER_C => Ok(ArrayOrder::LastFastest),
        ORDER_FORTRAN => Ok(ArrayOrder::FirstFastest),
        _ => Err(Mistake::new(
            ERR_ARG,
            format_args!("order is {order}; pass MPI_ORDER_C or MPI_ORDER_FORTRAN"),
        )),
    }
}

fn distribution_of(index: usize, distrib: c_int, darg: c_int) -> Result<Distribution, Mistake> {
    let block = || match darg {
        DISTRIBUTE_DFLT_DARG => Ok(None),
        _ => at_least(1, "array_of_dargs", index, darg.into()).map(Some),
    };
    match distrib {
        DISTRIBUTE_NONE => Ok(Distribution::Whole),
        DISTRIBUTE_BLOCK => Ok(Distribution::Block(block()?)),
        DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(block()?)),
        _ => Err(Mistake::new(
            ERR_ARG,
            format_args!(
                "array_of_distribs[{index}] is {distrib}; pass one of the MPI_DISTRIBUTE_ constants"
            ),
        )),
    }
}

fn place_of(size: c_int, rank: c_int) -> Result<(u64, u64), Mistake> {
    match (u64::try_from(size), u64::try_from(rank)) {
        (Ok(size), Ok(rank)) if rank < size => Ok((size, rank)),
        _ => Err(Mistake::new(
            ERR_ARG,
            format_args!("rank is {rank} and size is {size}; a rank is 0 or more and below size"),
        )),
    }
}
