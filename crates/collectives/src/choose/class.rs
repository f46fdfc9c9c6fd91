//! The classes of requests: those that get the same answer.

use super::WayRequest;
use crate::operation::Operation;

/// Octaves up to this are told apart; all larger data count alike.
pub(super) const OCTAVE_MAX: u32 = 40;
/// The assumed length of a block of unknown size.
const UNKNOWN_BYTES: u64 = 1024;

/// Requests that get the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) operation: Operation,
    /// None for a size that not all members know.
    pub(super) octave: Option<u32>,
    pub(super) ordered: bool,
}

/// The number of classes: each operation with each octave or an unknown size, ordered or not.
pub(super) const CLASSES: usize = Operation::ALL.len() * OCTAVES * 2;
const OCTAVES: usize = OCTAVE_MAX as usize + 2;

impl Class {
    #[inline]
    pub(super) fn of(request: &WayRequest) -> Self {
        let octave = request.bytes.map(octave);
        let knows = request.operation == Operation::Barrier;
        Self {
            operation: request.operation,
            octave: if knows { Some(0) } else { octave },
            ordered: !request.commutative || request.reproducible,
        }
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        let octave = self.octave.map_or(OCTAVES - 1, |octave| octave as usize);
        ((self.operation as usize - 1) * OCTAVES + octave) * 2 + usize::from(self.ordered)
    }

    /// The most bytes that a member deposits on the board for data of this class, its results included. None for a
    /// barrier, or if not all members know the size.
    pub(super) fn board_bytes(self, size: u32) -> Option<u64> {
        let one_bytes = 1u64 << self.octave?;
        let blocks = match self.operation {
            Operation::Barrier => return None,
            Operation::Scatter | Operation::AllToAll => size,
            Operation::Broadcast | Operation::Gather | Operation::AllGather => 1,
            Operation::Reduce
            | Operation::AllReduce
            | Operation::ReduceScatter
            | Operation::Scan
            | Operation::ExclusiveScan => 2,
        };
        Some(one_bytes * u64::from(blocks))
    }

    /// The smallest data of this class, all blocks together.
    pub(super) fn bytes(self, size: u32) -> u64 {
        let one = match self.octave {
            None => UNKNOWN_BYTES,
            Some(0) => 0,
            Some(octave) => 1 << (octave - 1),
        };
        let blocks = match self.operation {
            Operation::Gather | Operation::Scatter | Operation::AllGather => u64::from(size),
            Operation::AllToAll => u64::from(size) * u64::from(size),
            _ => 1,
        };
        one * blocks
    }
}

/// 0 for nothing, else one more than the logarithm.
fn octave(bytes: u64) -> u32 {
    (u64::BITS - bytes.leading_zeros()).min(OCTAVE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_counts_as_the_smallest_data_in_it() {
        let bytes = |operation, bytes| Class::of(&WayRequest::new(operation, bytes)).bytes(5);
        for octave in 0..OCTAVE_MAX - 1 {
            assert_eq!(bytes(Operation::Broadcast, 1 << octave), 1 << octave);
            assert_eq!(bytes(Operation::AllGather, (2 << octave) - 1), 5 << octave);
        }
        assert_eq!((bytes(Operation::AllToAll, 8), bytes(Operation::Scan, 0)), (200, 0));
        assert_eq!(bytes(Operation::Reduce, u64::MAX), 1 << (OCTAVE_MAX - 1));
    }

    #[test]
    fn every_class_has_a_place_of_its_own() {
        let mut places: Vec<usize> = Vec::new();
        for operation in Operation::ALL {
            for octave in (0..=OCTAVE_MAX).map(Some).chain([None]) {
                for ordered in [false, true] {
                    places.push(Class { operation, octave, ordered }.index());
                }
            }
        }
        assert_eq!(places, (0..CLASSES).collect::<Vec<_>>());
    }
}
