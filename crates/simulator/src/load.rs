//! The sizes of an operation's blocks.

use landeck_collectives::{Cells, Operation};

/// The sizes of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    bytes: u64,
    /// The number of parts into which the data are cut; none where each block has all the bytes.
    parts: Option<u64>,
}

impl Sizes {
    /// The sizes for an operation with data of `bytes`. In gather, scatter, allgather and alltoall these are the
    /// bytes that one member has for another or for all, else all bytes of a member.
    pub(crate) fn new(operation: Operation, bytes: u64, segments: u32, size: u32) -> Self {
        let parts = match operation {
            Operation::Barrier => return Self { bytes: 0, parts: None },
            Operation::ReduceScatter => Some(size * segments.max(1)),
            _ if operation.has_segments() => Some(segments.max(1)),
            _ => None,
        };
        let is_in_segments = operation.has_blocks_in_segments() && parts.is_none();
        let bytes = if is_in_segments { bytes.div_ceil(u64::from(segments.max(1))) } else { bytes };
        Self { bytes, parts: parts.map(u64::from) }
    }

    pub(crate) fn of(&self, cells: Cells) -> u64 {
        self.of_run(cells.first, cells.count)
    }

    fn of_run(&self, first: u32, count: u32) -> u64 {
        let Some(parts) = self.parts else { return self.bytes * u64::from(count) };
        let begin =
            |block: u32| (u128::from(self.bytes) * u128::from(block) / u128::from(parts)) as u64;
        begin(first + count) - begin(first)
    }

    /// The bytes of blocks that continue with the first after the last.
    pub(crate) fn of_circle(&self, first: u32, count: u32, size: u32) -> u64 {
        let until_end = count.min(size - first);
        self.of_run(first, until_end) + self.of_run(0, count - until_end)
    }

    /// Whether all blocks have equally many bytes.
    pub(crate) fn are_even(&self) -> bool {
        self.parts.is_none_or(|parts| self.bytes.is_multiple_of(parts))
    }

    pub(crate) fn of_all(&self, cells: &[Cells]) -> u64 {
        cells.iter().map(|cells| self.of(*cells)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::Store;

    #[test]
    fn segments_are_parts_and_blocks_are_whole() {
        let cells = |first, count| Cells::new(Store::Output, first, count);
        let segments = Sizes::new(Operation::Broadcast, 10, 4, 9);
        assert_eq!([0, 1, 2, 3].map(|first| segments.of(cells(first, 1))), [2, 3, 2, 3]);
        assert_eq!(segments.of_all(&[cells(0, 2), cells(2, 2)]), 10);
        assert_eq!(Sizes::new(Operation::Gather, 10, 1, 9).of(cells(3, 2)), 20);
        assert_eq!(Sizes::new(Operation::ReduceScatter, 9, 1, 9).of(cells(3, 2)), 2);
        assert_eq!(Sizes::new(Operation::Barrier, 9, 1, 9).of(cells(3, 2)), 0);
        assert_eq!(segments.of_circle(3, 2, 4), 5, "the last and the first");
        assert!(!segments.are_even() && Sizes::new(Operation::Broadcast, 12, 4, 9).are_even());
    }
}
