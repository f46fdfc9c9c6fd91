//! Why a collective operation did not end well at this member.

use landeck_arithmetic::ReductionError;
use landeck_collectives::Operation;
use landeck_kernel::Failure;
use landeck_memory::NoMemory;
use landeck_memory::heap::HeapFull;

use crate::mismatch::Mismatch;

/// Why a collective operation did not end well. Members are named by rank.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A message could not be sent or received.
    Failure(Failure),
    /// Members called different operations.
    Mismatch(Mismatch),
    /// A member's data have another length than this process expects.
    Length { member: u32, operation: Operation, message_bytes: u64, expected_bytes: u64 },
    /// A member's call does not agree with this process's: what the member does.
    Disagreement { member: u32, operation: Operation, what: String },
    /// A member had no memory for its part, in its heap or of its own; or one that it depends on had none.
    NoRoom { member: u32, operation: Operation },
    /// A member could not do its part for all.
    Spoiled { member: u32, operation: Operation },
    /// A buffer of the call does not fit the operation.
    Buffer { operation: Operation, which: &'static str, buffer_bytes: u64, needed_bytes: u64 },
    /// There are counts or displacements for another number of members.
    Counts { operation: Operation, which: &'static str, given: usize, size: u32 },
    /// The data cannot be combined.
    Operator(ReductionError),
    /// The user's function panicked.
    Panicked,
    /// No operator was given, or the root is nobody.
    NoSuchRoot { root: u32, size: u32 },
    /// The operation is to go over a board, and this group has none.
    NoBoard,
    /// What a member says on the board cannot be.
    BrokenBoard { member: u32 },
    /// There is no room for what this member lays on the board.
    Heap(HeapFull),
    /// This member gets no memory of its own for the operation.
    NoMemory(NoMemory),
    /// The others have agreed that this process is gone.
    Excluded,
    /// The process is no member.
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
