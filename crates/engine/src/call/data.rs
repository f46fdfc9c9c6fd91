//! The memory on both sides of a call: in pieces, or in blocks.

use std::cell::Cell;

use landeck_collectives::Operation;
use landeck_memory::Buffer;

use crate::binding::Blocks;
use crate::fault::Fault;
use crate::identity::GroupRef;

/// The memory on both sides of a call.
pub enum CallData<'a> {
    /// One piece on each side; in a broadcast both are the data. What only the root uses is ignored elsewhere.
    Pieces {
        /// The data that the member brings.
        input: Buffer,
        /// The place of the result.
        output: Buffer,
    },
    /// One piece that holds the input and is replaced by the result.
    InPlace(Buffer),
    /// Blocks on both sides.
    Blocks(CallBlocks),
    /// A message of values in one piece, which a head precedes wherever it lies.
    Message(MessageData<'a>),
}

/// Blocks on both sides of a call.
pub struct CallBlocks {
    /// The data that the member brings; nothing where they stand in the output.
    pub input: Blocks,
    /// The place of the result.
    pub output: Blocks,
    /// The member's own contribution stands in its output (at the root of a scatter: its part stays in the input).
    pub in_place: bool,
    /// Blocks may differ in length, and not all members know all lengths.
    pub is_varying: bool,
}

/// A message to broadcast or to scatter. On the board each block has a head and room for so many bytes.
pub struct MessageData<'a> {
    /// The root's head, which the other members get.
    pub head: &'a Cell<u64>,
    /// Room for the values of one block.
    pub room_bytes: usize,
    /// The values at the root, which may be shorter than there is room for.
    pub input: Buffer,
    /// The place of this member's values. It has all of the room; at a root that scatters, exactly its own values.
    pub output: Buffer,
    /// Makes the same blocks in memory, heads included, for a call that goes by a plan.
    pub in_blocks: &'a mut dyn FnMut() -> Result<CallBlocks, Fault>,
}

impl CallBlocks {
    /// Blocks of known lengths that stand apart.
    pub fn apart(input: Blocks, output: Blocks) -> Self {
        Self { input, output, in_place: false, is_varying: false }
    }

    /// Blocks that stand apart and may differ in length.
    pub fn varying(input: Blocks, output: Blocks) -> Self {
        Self { input, output, in_place: false, is_varying: true }
    }
}

/// Whether an operation in place must set its input aside, since the result goes where the input stands.
#[inline]
pub(crate) fn sets_aside(operation: Operation) -> bool {
    matches!(operation, Operation::AllToAll | Operation::ReduceScatter)
}

/// Bytes that all members know alike of data in two pieces, whose lengths fit each other.
#[inline(always)]
pub(crate) fn known_bytes_of_pieces(
    operation: Operation,
    (input, output): (usize, usize),
    size: usize,
) -> usize {
    match operation {
        Operation::Barrier => 0,
        Operation::Broadcast | Operation::Scatter => output,
        Operation::AllToAll => input / size.max(1),
        _ => input,
    }
}

/// Bytes that all members know alike of data in blocks.
pub(crate) fn known_bytes_of_blocks(operation: Operation, input: &Blocks, output: &Blocks) -> u64 {
    match operation {
        Operation::Barrier => 0,
        Operation::Broadcast => output.bytes(0),
        Operation::ReduceScatter => input.area(0, input.count() as u32).packed_bytes(),
        _ if matches!(input, Blocks::Nothing) => output.bytes(0),
        _ => input.bytes(0),
    }
}

/// The blocks of data in two pieces.
pub(crate) fn blocks_of_pieces(
    operation: Operation,
    root: u32,
    (input, output): (Buffer, Buffer),
    group: GroupRef<'_>,
) -> CallBlocks {
    let at_root = |blocks| if group.rank as u32 == root { blocks } else { Blocks::Nothing };
    let equal = |buffer, block_bytes| equal(buffer, block_bytes, group);
    let (given_bytes, taken_bytes) = (input.len(), output.len());
    let (input, output) = match operation {
        Operation::Barrier => (Blocks::Nothing, Blocks::Nothing),
        Operation::Broadcast => (Blocks::Nothing, Blocks::of(output)),
        Operation::Gather => (Blocks::of(input), at_root(equal(output, given_bytes))),
        Operation::Scatter => (at_root(equal(input, taken_bytes)), Blocks::of(output)),
        Operation::AllGather => (Blocks::of(input), equal(output, given_bytes)),
        Operation::AllToAll => {
            let block_bytes = given_bytes / group.members.len().max(1);
            (equal(input, block_bytes), equal(output, block_bytes))
        }
        Operation::Reduce => (Blocks::of(input), at_root(Blocks::of(output))),
        Operation::ReduceScatter => (equal(input, taken_bytes), Blocks::of(output)),
        Operation::AllReduce | Operation::Scan | Operation::ExclusiveScan => {
            (Blocks::of(input), Blocks::of(output))
        }
    };
    CallBlocks::apart(input, output)
}

/// The blocks of one piece that the result replaces.
pub(crate) fn blocks_in_place(
    operation: Operation,
    data: Buffer,
    group: GroupRef<'_>,
) -> CallBlocks {
    let output = match operation {
        Operation::AllGather | Operation::AllToAll => {
            equal(data, data.len() / group.members.len().max(1), group)
        }
        _ => Blocks::of(data),
    };
    CallBlocks { in_place: true, ..CallBlocks::apart(Blocks::Nothing, output) }
}

/// A block of so many bytes for each member.
fn equal(buffer: Buffer, block_bytes: usize, group: GroupRef<'_>) -> Blocks {
    Blocks::Equal { buffer, block_bytes, count: group.size() }
}
