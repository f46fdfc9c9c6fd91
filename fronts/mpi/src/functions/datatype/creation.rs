//! Making datatypes of others. Twins that cannot be told apart by their arguments have a function
//! each, because what MPI_Type_get_envelope says of them differs.

use std::ffi::c_int;
use std::sync::Arc;

use landeck::layout::{Bounds, Layout, LayoutBlock, LayoutError, Member};
use landeck_c_boundary::{pointer, room};

use crate::abi::{
    COMBINER_CONTIGUOUS, COMBINER_HINDEXED, COMBINER_HINDEXED_BLOCK, COMBINER_HVECTOR,
    COMBINER_INDEXED, COMBINER_INDEXED_BLOCK, COMBINER_RESIZED, COMBINER_STRUCT, COMBINER_VECTOR,
    ERR_ARG, Handle,
};
use crate::arguments::{count_of, give};
use crate::counts::Counts;
use crate::mistake::Mistake;
use crate::objects::contents::Contents;
use crate::objects::datatype::{self, Datatype};

/// Items one behind the other.
pub(crate) unsafe fn type_contiguous(
    count: c_int,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { contiguous(false, i64::from(count), oldtype, newtype) }
}

/// Items one behind the other.
pub(crate) unsafe fn type_contiguous_c(
    count: i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { contiguous(true, count, oldtype, newtype) }
}

unsafe fn contiguous(
    is_large: bool,
    count: i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let layout = Layout::contiguous(count_of("count", count)?, &old.layout).map_err(unfit)?;
    let contents = Contents::of(COMBINER_CONTIGUOUS, is_large).numbers(&[count]);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// Blocks of items at equal distances, counted in items.
pub(crate) unsafe fn type_vector(
    count: c_int,
    blocklength: c_int,
    stride: c_int,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let row = [count, blocklength, stride].map(i64::from);
    // SAFETY: as the caller says.
    unsafe { vector(false, row, oldtype, newtype) }
}

/// Blocks of items at equal distances, counted in items.
pub(crate) unsafe fn type_vector_c(
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { vector(true, [count, blocklength, stride], oldtype, newtype) }
}

unsafe fn vector(
    is_large: bool,
    [count, block, stride]: [i64; 3],
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let stride_bytes = in_bytes(stride, old)?;
    let layout = rows(count, block, stride_bytes, old)?;
    let contents = Contents::of(COMBINER_VECTOR, is_large).numbers(&[count, block, stride]);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// Blocks of items at equal distances, counted in bytes.
pub(crate) unsafe fn type_create_hvector(
    count: c_int,
    blocklength: c_int,
    stride: i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { hvector(false, [count.into(), blocklength.into(), stride], oldtype, newtype) }
}

/// Blocks of items at equal distances, counted in bytes.
pub(crate) unsafe fn type_create_hvector_c(
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { hvector(true, [count, blocklength, stride], oldtype, newtype) }
}

unsafe fn hvector(
    is_large: bool,
    [count, block, stride]: [i64; 3],
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let layout = rows(count, block, stride, old)?;
    let contents = Contents::of(COMBINER_HVECTOR, is_large).numbers(&[count, block]);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.offsets(&[stride]).parts([old.part()])) }
}

/// Blocks of items, each of its length and at its offset, counted in items.
pub(crate) unsafe fn type_indexed(
    count: i64,
    array_of_blocklengths: Counts,
    array_of_displacements: Counts,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let length = count_of("count", count)? as usize;
    // SAFETY: the program has so many there.
    let (lengths, offsets) = unsafe {
        let lengths = lengths("array_of_blocklengths", array_of_blocklengths, length)?;
        (lengths, numbers("array_of_displacements", array_of_displacements, length)?)
    };
    let blocks = offsets.iter().zip(&lengths).map(|(offset, length)| {
        Ok(LayoutBlock { offset: in_bytes(*offset, old)?, count: *length as u64 })
    });
    let layout = listed(blocks, old)?;
    let contents = Contents::of(COMBINER_INDEXED, array_of_blocklengths.is_wide());
    let contents = contents.numbers(&[count]).numbers(&lengths).numbers(&offsets);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// Blocks of items, each of its length and at its offset, counted in bytes.
pub(crate) unsafe fn type_create_hindexed(
    count: i64,
    array_of_blocklengths: Counts,
    array_of_displacements: *const i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let length = count_of("count", count)? as usize;
    let displacements = Counts::wide(array_of_displacements);
    // SAFETY: the program has so many there.
    let (lengths, offsets) = unsafe {
        let lengths = lengths("array_of_blocklengths", array_of_blocklengths, length)?;
        (lengths, numbers("array_of_displacements", displacements, length)?)
    };
    let blocks = offsets.iter().zip(&lengths);
    let blocks =
        blocks.map(|(offset, length)| Ok(LayoutBlock { offset: *offset, count: *length as u64 }));
    let layout = listed(blocks, old)?;
    let contents = Contents::of(COMBINER_HINDEXED, array_of_blocklengths.is_wide());
    let contents = contents.numbers(&[count]).numbers(&lengths).offsets(&offsets);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// Blocks of one length, each at its offset, counted in items.
pub(crate) unsafe fn type_create_indexed_block(
    count: i64,
    blocklength: i64,
    array_of_displacements: Counts,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let length = count_of("count", count)? as usize;
    let block = count_of("blocklength", blocklength)?;
    // SAFETY: the program has so many there.
    let offsets = unsafe { numbers("array_of_displacements", array_of_displacements, length)? };
    let blocks = offsets
        .iter()
        .map(|offset| Ok(LayoutBlock { offset: in_bytes(*offset, old)?, count: block }));
    let layout = listed(blocks, old)?;
    let contents = Contents::of(COMBINER_INDEXED_BLOCK, array_of_displacements.is_wide());
    let contents = contents.numbers(&[count, blocklength]).numbers(&offsets);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// Blocks of one length, each at its offset, counted in bytes.
pub(crate) unsafe fn type_create_hindexed_block(
    count: c_int,
    blocklength: c_int,
    array_of_displacements: *const i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let (count, block) = (i64::from(count), i64::from(blocklength));
    // SAFETY: as the caller says.
    unsafe { hindexed_block(false, [count, block], array_of_displacements, oldtype, newtype) }
}

/// Blocks of one length, each at its offset, counted in bytes.
pub(crate) unsafe fn type_create_hindexed_block_c(
    count: i64,
    blocklength: i64,
    array_of_displacements: *const i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { hindexed_block(true, [count, blocklength], array_of_displacements, oldtype, newtype) }
}

unsafe fn hindexed_block(
    is_large: bool,
    [count, blocklength]: [i64; 2],
    displacements: *const i64,
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let length = count_of("count", count)? as usize;
    let block = count_of("blocklength", blocklength)?;
    let displacements = Counts::wide(displacements);
    // SAFETY: the program has so many there.
    let offsets = unsafe { numbers("array_of_displacements", displacements, length)? };
    let blocks = offsets.iter().map(|offset| Ok(LayoutBlock { offset: *offset, count: block }));
    let layout = listed(blocks, old)?;
    let contents = Contents::of(COMBINER_HINDEXED_BLOCK, is_large);
    let contents = contents.numbers(&[count, blocklength]).offsets(&offsets);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// Blocks of items of different datatypes.
pub(crate) unsafe fn type_create_struct(
    count: i64,
    array_of_blocklengths: Counts,
    array_of_displacements: *const i64,
    array_of_types: *const Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("newtype", newtype, 1)?;
    let length = count_of("count", count)? as usize;
    let displacements = Counts::wide(array_of_displacements);
    // SAFETY: the program has so many there.
    let (lengths, offsets, types) = unsafe {
        let lengths = lengths("array_of_blocklengths", array_of_blocklengths, length)?;
        let offsets = numbers("array_of_displacements", displacements, length)?;
        (lengths, offsets, pointer::slice("array_of_types", array_of_types, length)?)
    };
    let mut members = Vec::with_capacity(length);
    let mut parts = Vec::with_capacity(length);
    let mut table_parts = length;
    for (index, handle) in types.iter().enumerate() {
        let old = datatype::get(&format!("array_of_types[{index}]"), *handle)?;
        let (offset, count) = (offsets[index], lengths[index] as u64);
        members.push(Member { offset, count, layout: old.layout.clone() });
        parts.push(old.part());
        table_parts += old.layout.table_parts();
    }
    room::for_many(table_parts, BYTES_PER_BLOCK)?;
    let layout = Layout::structure(&members).map_err(unfit)?;
    let contents = Contents::of(COMBINER_STRUCT, array_of_blocklengths.is_wide());
    let contents = contents.numbers(&[count]).numbers(&lengths).offsets(&offsets);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts(parts)) }
}

/// MPI_Type_create_resized: a datatype with another lower bound and extent.
pub(crate) unsafe fn type_create_resized(
    oldtype: Handle,
    lb: i64,
    extent: i64,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { resized(false, [lb, extent], oldtype, newtype) }
}

/// MPI_Type_create_resized_c: a datatype with another lower bound and extent.
pub(crate) unsafe fn type_create_resized_c(
    oldtype: Handle,
    lb: i64,
    extent: i64,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { resized(true, [lb, extent], oldtype, newtype) }
}

unsafe fn resized(
    is_large: bool,
    [lower, extent]: [i64; 2],
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    let old = old_type(oldtype, newtype)?;
    let upper = lower.checked_add(extent).ok_or_else(|| {
        let text = format!("lb is {lower} and extent is {extent}; their sum must fit in 63 bits");
        Mistake::new(ERR_ARG, text)
    })?;
    let layout = old.layout.resized(Bounds { lower, upper });
    let contents = Contents::of(COMBINER_RESIZED, is_large).offsets(&[lower, extent]);
    // SAFETY: as the caller says.
    unsafe { finish(newtype, layout, contents.parts([old.part()])) }
}

/// The datatype that another one is made of, when there is a place for that one.
pub(super) fn old_type(
    oldtype: Handle,
    newtype: *mut Handle,
) -> Result<&'static Arc<Datatype>, Mistake> {
    pointer::check("newtype", newtype, 1)?;
    let old = datatype::get("oldtype", oldtype)?;
    room::for_many(old.layout.table_parts(), BYTES_PER_BLOCK)?;
    Ok(old)
}

/// Gives the program the new datatype.
///
/// # Safety
/// Unless null or misaligned, the place is writable.
pub(super) unsafe fn finish(
    newtype: *mut Handle,
    layout: Layout,
    contents: Contents,
) -> Result<(), Mistake> {
    let handle = datatype::keep(Datatype::new(layout, contents))?;
    // SAFETY: as the caller says.
    unsafe { give("newtype", newtype, handle) }
}

/// The error for a datatype that cannot be laid out.
#[cold]
pub(super) fn unfit(error: LayoutError) -> Mistake {
    Mistake::new(ERR_ARG, error)
}

/// Memory of a block while its datatype is made, about.
const BYTES_PER_BLOCK: usize = 512;

/// Numbers of the program.
///
/// # Safety
/// The program has so many there, or null.
pub(super) unsafe fn numbers(
    argument: &'static str,
    counts: Counts,
    length: usize,
) -> Result<Vec<i64>, Mistake> {
    counts.check(argument, length)?;
    room::for_many(length, BYTES_PER_BLOCK)?;
    // SAFETY: checked above; the program has so many there.
    Ok((0..length).map(|index| unsafe { counts.get(index) }).collect())
}

/// Numbers of the program that are not negative.
///
/// # Safety
/// As [`numbers`].
unsafe fn lengths(
    argument: &'static str,
    counts: Counts,
    length: usize,
) -> Result<Vec<i64>, Mistake> {
    // SAFETY: as the caller says.
    let lengths = unsafe { numbers(argument, counts, length)? };
    match lengths.iter().position(|length| *length < 0) {
        None => Ok(lengths),
        Some(index) => Err(Mistake::count(&format!("{argument}[{index}]"), lengths[index])),
    }
}

/// A distance of so many items.
fn in_bytes(items: i64, old: &Datatype) -> Result<i64, Mistake> {
    let extent = old.layout.extent_bytes().map_err(unfit)?;
    let bytes = items.checked_mul(extent);
    bytes.ok_or_else(|| unfit(LayoutError::TooLarge { what: "an offset" }))
}

fn rows(count: i64, block: i64, stride_bytes: i64, old: &Datatype) -> Result<Layout, Mistake> {
    let (count, block) = (count_of("count", count)?, count_of("blocklength", block)?);
    Layout::vector(count, block, stride_bytes, &old.layout).map_err(unfit)
}

fn listed(
    blocks: impl Iterator<Item = Result<LayoutBlock, Mistake>>,
    old: &Datatype,
) -> Result<Layout, Mistake> {
    let blocks: Vec<LayoutBlock> = blocks.collect::<Result<_, _>>()?;
    Layout::indexed(&blocks, &old.layout).map_err(unfit)
}
