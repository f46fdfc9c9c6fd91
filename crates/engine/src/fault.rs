//! The reason why a collective operation failed at this member.

use landeck_arithmetic::ReductionError;
use landeck_collectives::Operation;
use landeck_kernel::Failure;
use landeck_memory::NoMemory;
use landeck_memory::heap::HeapFull;

use crate::mismatch::Mismatch;

/// The reason why a collective operation failed at this member. Members are named by rank.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A message could not be sent or received.
    Failure(Failure),
    /// Members called different operations.
    Mismatch(Mismatch),
    /// The data of a member have another length than this process expects.
    Length {
        /// The member that sent or deposited the data.
        member: u32,
        /// The operation.
        operation: Operation,
        /// The length of the data.
        message_bytes: u64,
        /// The length that this process expects.
        expected_bytes: u64,
    },
    /// The data of a member have another length than a third one expects, on which this process depends.
    LengthElsewhere {
        /// The member that sent or deposited the data.
        member: u32,
        /// The member that expects another length.
        by: u32,
        /// The operation.
        operation: Operation,
        /// The length of the data.
        message_bytes: u64,
        /// The length that the other member expects.
        expected_bytes: u64,
    },
    /// The call of a member does not agree with the call of this process.
    Disagreement {
        /// The other member.
        member: u32,
        /// The operation.
        operation: Operation,
        /// The difference: a clause about the other member.
        what: String,
    },
    /// A member had no memory for its part, in its heap or of its own; or a member that it depends on had none.
    NoRoom {
        /// The member without memory.
        member: u32,
        /// The operation.
        operation: Operation,
    },
    /// A member could not do its part for all.
    Spoiled {
        /// That member.
        member: u32,
        /// The operation.
        operation: Operation,
    },
    /// A buffer of the call does not fit the operation.
    Buffer {
        /// The operation.
        operation: Operation,
        /// The side of the call: `input` or `output`.
        which: &'static str,
        /// The length of the buffer.
        buffer_bytes: u64,
        /// The length that the operation needs.
        needed_bytes: u64,
    },
    /// The call has counts or displacements for another number of members.
    Counts {
        /// The operation.
        operation: Operation,
        /// The side of the call: `input` or `output`.
        which: &'static str,
        /// How many there are.
        given: usize,
        /// How many members there are.
        size: u32,
    },
    /// The data cannot be combined.
    Operator(ReductionError),
    /// The user's function panicked.
    Panicked,
    /// The root of the call is no member.
    NoSuchRoot {
        /// The rank that the call names.
        root: u32,
        /// How many members there are.
        size: u32,
    },
    /// The operation must go over a board, and this group has none.
    NoBoard,
    /// A member wrote words on the board that no member writes.
    BrokenBoard {
        /// That member.
        member: u32,
    },
    /// The heap of this process has no room for its deposit.
    Heap(HeapFull),
    /// This process gets no private memory for the operation.
    NoMemory(NoMemory),
    /// The other members have agreed that this process is gone.
    Excluded,
    /// This process is no member of the group.
    NotAMember,
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<ReductionError> for Fault {
    fn from(error: ReductionError) -> Self {
        Self::Operator(error)
    }
}
