//! Collective operations over pointers, for fronts in other languages.

use std::ptr::NonNull;

use landeck_arithmetic::Operator;
use landeck_collectives::Operation as What;
use landeck_kernel::Area;
use landeck_layout::Layout;
use landeck_memory::{Buffer, NoMemory};

use super::{Memory, Operation, memory};
use crate::error::Result;
use crate::world::{Status, World};
use landeck_engine::{
    Blocks, Call, CallBlocks, CallData, CallDescription, Fault, OperationId, ValueType,
};

/// The data of one side of a call. Addresses are those of the items' base, which need not be their
/// first byte.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// No data: the operation has none on this side, or not on this member.
    Nothing,
    /// The data of the other side: the operation works in place. The result of a reduce-scatter is
    /// stored where the input begins.
    InPlace,
    /// Items in one piece.
    Whole {
        /// The base of the first item.
        start: *const u8,
        /// The layout of one item.
        layout: &'a Layout,
        /// The number of items.
        count: u64,
    },
    /// Equally many items for each member, one block after the other.
    Blocks {
        /// The base of the first item.
        start: *const u8,
        /// The layout of one item.
        layout: &'a Layout,
        /// The number of items of each block.
        count: u64,
    },
    /// A block for each member, with its own count and displacement.
    Varying {
        /// The address that displacements count from.
        start: *const u8,
        /// The layout of one item.
        layout: &'a Layout,
        /// The number of items of each block.
        counts: &'a [u64],
        /// The displacement of each block, in extents of an item.
        displacements: &'a [i64],
    },
    /// A block for each member, with its own layout, count and displacement.
    Layouts {
        /// The address that displacements count from.
        start: *const u8,
        /// The layout of the items of each block.
        layouts: &'a [Layout],
        /// The number of items of each block.
        counts: &'a [u64],
        /// The displacement of each block, in bytes.
        displacements: &'a [i64],
    },
}

/// A call of a collective operation.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The operation.
    pub operation: What,
    /// The root of the operation; 0 if it has none.
    pub root: usize,
    /// The contribution of this member.
    pub input: Data<'a>,
    /// The place of this member's result.
    pub output: Data<'a>,
    /// The operator of reductions. It combines packed items, each of which is whole elements.
    pub operator: Option<Operator>,
    /// The memory that is missing for the output. The member then takes part without data, so that
    /// no other member waits for it. Its output is not accessed and need not be mapped.
    pub missing: Option<NoMemory>,
}

/// A prepared call, which can be started any number of times.
#[derive(Clone, Debug)]
pub struct Prepared {
    operation: What,
    call: Call,
}

// SAFETY: it shares raw addresses only; the operations that it starts dereference them, and nothing else does.
unsafe impl Sync for Prepared {}

/// A call on data that are contiguous on both sides, each given by address and length in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// The operation.
    pub operation: What,
    /// The root of the operation; 0 if it has none.
    pub root: usize,
    /// The contribution of this member; in a broadcast the data themselves. In a reduction it may
    /// be the output.
    pub input: (NonNull<u8>, usize),
    /// The place of this member's result.
    pub output: (NonNull<u8>, usize),
    /// The operator of reductions; not a function of the caller.
    pub operator: Option<&'a Operator>,
}

/// Runs a collective operation on contiguous data; returns when this member has done its part.
/// Returns false, without running it, in a world whose members compare their calls: only [`call()`]
/// knows the types that they compare.
///
/// # Errors
/// As [`call()`].
///
/// # Safety
/// As [`call()`].
#[inline(never)]
pub unsafe fn call_pieces(world: &World, pieces: &Pieces<'_>) -> Result<bool> {
    let Pieces { operation, root, input, output, operator } = *pieces;
    if world.options.is_checked {
        return Ok(false);
    }
    let is_in_place = operation == What::AllReduce && input == output;
    // SAFETY: both sides are as the caller vouches until this returns, when the operation is over.
    let (input, output) =
        unsafe { (Buffer::new(input.0, input.1), Buffer::new(output.0, output.1)) };
    let data = match is_in_place {
        true => CallData::InPlace(output),
        false => CallData::Pieces { input, output },
    };
    let asked = CallDescription::new(operation, data, &world.options).rooted(root);
    world.collective(CallDescription { operator, ..asked }).map(|()| true)
}

/// Runs a collective operation; returns when this member has done its part.
///
/// # Errors
/// As the methods of [`World`].
///
/// # Safety
/// The memory that both sides name stays mapped during the call. The output is writable and unused
/// by others. The input does not overlap it, and nothing writes to the input.
pub unsafe fn call(world: &World, asked: &Asked<'_>) -> Result<()> {
    // SAFETY: the caller leaves the memory to the operation until this returns, when it is over.
    let described = unsafe { describe(world, asked) };
    world.collective(world.described(described)?)
}

/// # Safety
/// As [`call()`].
#[inline]
unsafe fn one_piece(data: &Data<'_>, size: usize) -> Option<Buffer> {
    let (start, layout, count) = match *data {
        Data::Nothing => return Some(Buffer::EMPTY),
        Data::Whole { start, layout, count } => (start, layout, count),
        Data::Blocks { start, layout, count } => (start, layout, count.checked_mul(size as u64)?),
        Data::InPlace | Data::Varying { .. } | Data::Layouts { .. } => return None,
    };
    // SAFETY: the caller's promise.
    unsafe { Memory { start, layout, count }.one_piece() }
}

/// Begins a collective operation.
///
/// # Errors
/// As the methods of [`World`].
///
/// # Safety
/// As [`call()`], until the operation is complete.
pub unsafe fn start(world: &World, asked: &Asked<'_>) -> Result<Operation> {
    // SAFETY: the caller leaves the memory to the operation until it is over.
    let described = unsafe { describe(world, asked) };
    goes_on(world, world.start(world.described(described)?)?)
}

/// Prepares a call for [`start_prepared`], without starting it.
///
/// # Errors
/// [`crate::ErrorKind::OutsideBuffer`] for layouts that exceed the address space.
///
/// # Safety
/// As [`call()`], for each time from [`start_prepared`] until that operation is complete.
pub unsafe fn prepare(world: &World, asked: &Asked<'_>) -> Result<Prepared> {
    // SAFETY: the caller leaves the memory to each operation that is started with it.
    let described = unsafe { describe(world, asked) };
    let call = world.described(described)?.into_call(world.group());
    Ok(Prepared { operation: asked.operation, call: world.described(call)? })
}

/// Starts a prepared call. The previous operation of the same call must be complete.
///
/// # Errors
/// As [`start`].
///
/// # Safety
/// As guaranteed to [`prepare`].
pub unsafe fn start_prepared(world: &World, prepared: &Prepared) -> Result<Operation> {
    goes_on(world, world.start_call(prepared.operation, prepared.call.clone())?)
}

/// Returns the operation of a started call; `None` stands for one that is complete at once.
fn goes_on(world: &World, started: Option<OperationId>) -> Result<Operation> {
    Ok(match started {
        Some(id) => {
            world.shared.goes_on();
            Operation::Pending(id)
        }
        None => Operation::Complete(Status::of_collective(world.rank())),
    })
}

/// Describes the call for the engine: in pieces if possible, else in blocks.
///
/// # Errors
/// [`Fault::Failure`] for layouts that exceed the address space.
///
/// # Safety
/// As [`call()`], until the operation is complete.
#[inline]
unsafe fn describe<'a>(
    world: &'a World,
    asked: &'a Asked<'_>,
) -> std::result::Result<CallDescription<'a>, Fault> {
    // SAFETY: the caller's promise.
    let data = match unsafe { pieces_of(world.size(), asked) } {
        Some(data) => data,
        // SAFETY: the caller's promise.
        None => CallData::Blocks(unsafe { blocks_of_both(world, asked) }?),
    };
    let described = CallDescription::new(asked.operation, data, &world.options).rooted(asked.root);
    let value_type = match world.options.is_checked {
        true => type_of(asked),
        false => ValueType::default(),
    };
    let (operator, missing) = (asked.operator.as_ref(), asked.missing);
    Ok(CallDescription { operator, value_type, missing, ..described })
}

/// Describes both sides of a call as one piece each; returns `None` if the data are not contiguous
/// or missing.
///
/// # Safety
/// As [`call()`], until the operation is complete.
#[inline]
unsafe fn pieces_of<'a>(size: usize, asked: &Asked<'_>) -> Option<CallData<'a>> {
    if asked.missing.is_some() {
        return None;
    }
    // SAFETY: the caller's promise.
    let output = unsafe { one_piece(&asked.output, size)? };
    Some(match (asked.operation, &asked.input) {
        (What::Broadcast, _) => CallData::Pieces { input: output, output },
        (What::Reduce | What::AllReduce, Data::InPlace) => CallData::InPlace(output),
        // SAFETY: the caller's promise.
        (_, input) => CallData::Pieces { input: unsafe { one_piece(input, size)? }, output },
    })
}

/// Describes both sides of a call in blocks.
///
/// # Errors
/// [`Fault::Failure`] for layouts that exceed the address space.
///
/// # Safety
/// As [`call()`], until the operation is complete.
#[inline(never)]
unsafe fn blocks_of_both(
    world: &World,
    asked: &Asked<'_>,
) -> std::result::Result<CallBlocks, Fault> {
    let (size, operation) = (world.size(), asked.operation);
    let blocks = |data: &Data<'_>| {
        // SAFETY: both sides of the call are as the caller of this function vouches.
        unsafe { blocks_of(data, size) }
    };
    let output = match operation == What::ReduceScatter && is_in_place(&asked.output) {
        true => blocks(&front_of(&asked.input, world.rank()))?,
        false => blocks(&asked.output)?,
    };
    Ok(CallBlocks {
        input: blocks(&asked.input)?,
        output,
        in_place: is_in_place(&asked.input) || is_in_place(&asked.output),
        is_varying: may_vary(operation) && (varies(&asked.input) || varies(&asked.output)),
    })
}

/// Returns the place of the result of a reduce-scatter that works in place.
fn front_of<'a>(input: &Data<'a>, rank: usize) -> Data<'a> {
    match *input {
        Data::Blocks { start, layout, count } => Data::Whole { start, layout, count },
        Data::Varying { start, layout, counts, .. } => {
            Data::Whole { start, layout, count: counts.get(rank).copied().unwrap_or(0) }
        }
        _ => Data::Nothing,
    }
}

/// Returns the value type that all members must give alike, if the operation has one.
fn type_of(asked: &Asked<'_>) -> ValueType {
    let sides = [&asked.input, &asked.output].into_iter();
    let found = sides.filter_map(|data| match *data {
        Data::Whole { layout, count, .. } | Data::Blocks { layout, count, .. } => {
            Some(ValueType::of_layout(layout, count))
        }
        _ => None,
    });
    match asked.operation {
        // Each member may name its own blocks in another type.
        _ if varies(&asked.input) || varies(&asked.output) => ValueType::default(),
        What::Barrier | What::ReduceScatter => ValueType::default(),
        _ => { found }.next().unwrap_or_default(),
    }
}

fn is_in_place(data: &Data<'_>) -> bool {
    matches!(data, Data::InPlace)
}

/// Returns whether members may know different lengths.
fn may_vary(operation: What) -> bool {
    operation != What::ReduceScatter
}

fn varies(data: &Data<'_>) -> bool {
    matches!(data, Data::Varying { .. } | Data::Layouts { .. })
}

/// # Safety
/// As [`call()`], until the operation is complete.
unsafe fn blocks_of(data: &Data<'_>, size: usize) -> std::result::Result<Blocks, Fault> {
    // SAFETY: the caller's promise holds for every item that the data name.
    let area = |start, layout: &Layout, count| unsafe { area(start, layout, count) };
    Ok(match *data {
        Data::Nothing | Data::InPlace => Blocks::Nothing,
        Data::Whole { start, layout, count } => Blocks::whole(area(start, layout, count)?),
        Data::Blocks { start, layout, count } => {
            if layout.is_contiguous() {
                let all = area(start, layout, count.saturating_mul(size as u64))?;
                if let Some(buffer) = all.as_buffer() {
                    let block_bytes = buffer.len() / size.max(1);
                    return Ok(Blocks::Equal { buffer, block_bytes, count: size as u32 });
                }
            }
            let block_bytes = extent(layout)?.saturating_mul(count as i64);
            let block = |number| {
                let start = start.wrapping_offset(block_bytes.saturating_mul(number) as isize);
                area(start, layout, count)
            };
            Blocks::Areas((0..size as i64).map(block).collect::<std::result::Result<_, _>>()?)
        }
        Data::Varying { start, layout, counts, displacements } => {
            let extent = extent(layout)?;
            let blocks = counts.iter().zip(displacements).map(|(&count, &displacement)| {
                let start = start.wrapping_offset(extent.saturating_mul(displacement) as isize);
                area(start, layout, count)
            });
            Blocks::Areas(blocks.collect::<std::result::Result<_, _>>()?)
        }
        Data::Layouts { start, layouts, counts, displacements } => {
            let blocks = layouts.iter().zip(counts).zip(displacements);
            let blocks = blocks.map(|((layout, &count), &displacement)| {
                area(start.wrapping_offset(displacement as isize), layout, count)
            });
            Blocks::Areas(blocks.collect::<std::result::Result<_, _>>()?)
        }
    })
}

fn extent(layout: &Layout) -> std::result::Result<i64, Fault> {
    layout.extent_bytes().map_err(|_| too_large())
}

fn too_large() -> Fault {
    memory::too_large().into()
}

/// Returns the area of `count` items, starting at an address.
///
/// # Safety
/// As [`call()`], until the operation is complete.
unsafe fn area(start: *const u8, layout: &Layout, count: u64) -> std::result::Result<Area, Fault> {
    // SAFETY: the caller leaves these items to the operation until it is over.
    Ok(unsafe { Memory { start, layout, count }.area() }?)
}
