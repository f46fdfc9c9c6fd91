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

/// Where one side of a call has its data. Addresses are those of the items' base, which need not
/// be their first byte.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// None: the operation has none on this side, or not on this member.
    Nothing,
    /// On the other side: the operation is done in place. The result of a reduction that is
    /// scattered is put where the input begins.
    InPlace,
    /// One piece: so many items.
    Whole {
        /// The first item.
        start: *const u8,
        /// What an item looks like.
        layout: &'a Layout,
        /// How many.
        count: u64,
    },
    /// So many items for each member, one block behind the other.
    Blocks {
        /// The first item.
        start: *const u8,
        /// What an item looks like.
        layout: &'a Layout,
        /// How many in each block.
        count: u64,
    },
    /// A block for each member.
    Varying {
        /// Where displacements count from.
        start: *const u8,
        /// What an item looks like.
        layout: &'a Layout,
        /// How many items each block has.
        counts: &'a [u64],
        /// Where each block begins, in extents of an item.
        displacements: &'a [i64],
    },
    /// A block for each member, with a layout of its own.
    Layouts {
        /// Where displacements count from.
        start: *const u8,
        /// What the items of each block look like.
        layouts: &'a [Layout],
        /// How many items each block has.
        counts: &'a [u64],
        /// Where each block begins, in bytes.
        displacements: &'a [i64],
    },
}

/// A call of a collective operation.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The operation.
    pub operation: What,
    /// Its root; 0 where it has none.
    pub root: usize,
    /// What this member brings.
    pub input: Data<'a>,
    /// Where its result goes.
    pub output: Data<'a>,
    /// How data combine, in operations that reduce: packed items, which each are whole elements.
    pub operator: Option<Operator>,
    /// The memory for the output that there is none of. Then the member takes part with nothing, so that
    /// nobody waits for it, and its output is not touched: it need not be mapped.
    pub missing: Option<NoMemory>,
}

/// A call that is made any number of times.
#[derive(Clone, Debug)]
pub struct Prepared {
    operation: What,
    call: Call,
}

// SAFETY: what is shared of it are addresses, to which only the operations go that it starts.
unsafe impl Sync for Prepared {}

/// A call on data that lie in one piece on both sides: where they begin, and how many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// The operation.
    pub operation: What,
    /// Its root; 0 where it has none.
    pub root: usize,
    /// What this member brings; in a broadcast the data themselves. In a reduction it may be the output.
    pub input: (NonNull<u8>, usize),
    /// Where its result goes.
    pub output: (NonNull<u8>, usize),
    /// How data combine, in operations that reduce; no function of the caller's.
    pub operator: Option<&'a Operator>,
}

/// Does a collective operation on data in one piece. False in a world whose members compare their calls: [`call()`]
/// is told the types that they compare.
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

/// Does a collective operation; returns when this member has done its part.
///
/// # Errors
/// As the methods of [`World`].
///
/// # Safety
/// What the two sides name stays mapped during the call. The output is writable, and nobody else
/// uses it; the input does not overlap it, and nobody writes to it.
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
/// As [`call()`], until the operation is over.
pub unsafe fn start(world: &World, asked: &Asked<'_>) -> Result<Operation> {
    // SAFETY: the caller leaves the memory to the operation until it is over.
    let described = unsafe { describe(world, asked) };
    goes_on(world, world.start(world.described(described)?)?)
}

/// A call to be made with [`start_prepared`]. It begins nothing.
///
/// # Errors
/// [`crate::ErrorKind::OutsideBuffer`] for layouts that are too large to be anywhere.
///
/// # Safety
/// As [`call()`], for each time from [`start_prepared`] until that operation is over.
pub unsafe fn prepare(world: &World, asked: &Asked<'_>) -> Result<Prepared> {
    // SAFETY: the caller leaves the memory to each operation that is started with it.
    let described = unsafe { describe(world, asked) };
    let call = world.described(described)?.into_call(world.group());
    Ok(Prepared { operation: asked.operation, call: world.described(call)? })
}

/// Makes a prepared call. One at a time.
///
/// # Errors
/// As [`start`].
///
/// # Safety
/// As was promised to [`prepare`].
pub unsafe fn start_prepared(world: &World, prepared: &Prepared) -> Result<Operation> {
    goes_on(world, world.start_call(prepared.operation, prepared.call.clone())?)
}

/// What a call that was begun came to; none was complete at once.
fn goes_on(world: &World, started: Option<OperationId>) -> Result<Operation> {
    Ok(match started {
        Some(id) => {
            world.shared.goes_on();
            Operation::Pending(id)
        }
        None => Operation::Complete(Status::of_collective(world.rank())),
    })
}

/// The call as the engine takes it: in pieces where it can be, else in blocks.
///
/// # Errors
/// [`Fault::Failure`] for layouts that are too large to be anywhere.
///
/// # Safety
/// As [`call()`], until the operation is over.
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

/// Both sides of a call in one piece each; none for calls whose data lie apart, or are missing.
///
/// # Safety
/// As [`call()`], until the operation is over.
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

/// Both sides of a call in blocks.
///
/// # Errors
/// [`Fault::Failure`] for layouts that are too large to be anywhere.
///
/// # Safety
/// As [`call()`], until the operation is over.
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

/// Where the result of a reduction that is scattered goes when it is done in place.
fn front_of<'a>(input: &Data<'a>, rank: usize) -> Data<'a> {
    match *input {
        Data::Blocks { start, layout, count } => Data::Whole { start, layout, count },
        Data::Varying { start, layout, counts, .. } => {
            Data::Whole { start, layout, count: counts.get(rank).copied().unwrap_or(0) }
        }
        _ => Data::Nothing,
    }
}

/// The type of what all members name alike, where they do.
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

/// Whether members may differ in what they know of the lengths.
fn may_vary(operation: What) -> bool {
    operation != What::ReduceScatter
}

fn varies(data: &Data<'_>) -> bool {
    matches!(data, Data::Varying { .. } | Data::Layouts { .. })
}

/// # Safety
/// As [`call()`], until the operation is over.
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
                    return Ok(Blocks::Equal { buffer, block_bytes: buffer.len() / size.max(1) });
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

/// So many items from an address on.
///
/// # Safety
/// As [`call()`], until the operation is over.
unsafe fn area(start: *const u8, layout: &Layout, count: u64) -> std::result::Result<Area, Fault> {
    // SAFETY: the caller leaves these items to the operation until it is over.
    Ok(unsafe { Memory { start, layout, count }.area() }?)
}
