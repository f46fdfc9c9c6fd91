//! Why a collective operation did not end well at this member.

use landeck_arithmetic::ReductionError;
use landeck_collectives::Operation;
use landeck_kernel::Failure;
use landeck_memory::heap::HeapFull;

use super::signature::Signature;

/// Why a collective operation did not end well. Members are named by rank.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// A message could not be sent or received.
    Failure(Failure),
    /// Members called different operations.
    Mismatch(Mismatch),
    /// A member's data have another length than this process expects.
    Length { member: u32, operation: Operation, message_bytes: u64, expected_bytes: u64 },
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
    /// The process is no member.
    NotAMember,
}

/// Who called what, and who called what else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The one.
    pub(crate) first: u32,
    pub(crate) first_calls: Signature,
    /// The other.
    pub(crate) second: u32,
    pub(crate) second_calls: Signature,
}

impl Mismatch {
    /// As it travels.
    pub(crate) fn encode(&self) -> [u8; 16] {
        let words = [self.first, self.first_calls.tag(), self.second, self.second_calls.tag()];
        let mut bytes = [0; 16];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From how it travels; none for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 16] = bytes.try_into().ok()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self {
            first: word(0),
            first_calls: Signature::of_tag(word(4)),
            second: word(8),
            second_calls: Signature::of_tag(word(12)),
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_survives_its_bytes() {
        let mismatch = Mismatch {
            first: 3,
            first_calls: Signature::new(9, Operation::Barrier, 0),
            second: 70_000,
            second_calls: Signature::new(9, Operation::Gather, 5),
        };
        assert_eq!(Mismatch::decode(&mismatch.encode()), Some(mismatch));
        assert_eq!(Mismatch::decode(&[0; 15]), None);
    }
}
