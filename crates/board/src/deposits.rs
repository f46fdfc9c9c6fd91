//! The blocks of one member at a board: those that others may be reading, and those that are free
//! for the next deposits.

use std::collections::VecDeque;
use std::sync::Arc;

use landeck_memory::heap::Block;

use super::WINDOW;
use super::room::Room;

/// Free blocks, at most, and the bytes of all of them.
const SPARE_MAX: usize = WINDOW;
const SPARE_BYTES_MAX: usize = 1 << 20;
/// Blocks up to this size go round.
const ROUND_BYTES_MAX: usize = 128 << 10;

/// The blocks that hold a member's deposits, and its spare ones.
#[derive(Default)]
pub(super) struct Deposits {
    /// Blocks that others may be reading, in the order of their operations' numbers.
    kept: VecDeque<(u32, Block)>,
    kept_bytes: usize,
    /// The account of the blocks that all boards of this process keep.
    room: Arc<Room>,
    /// Blocks that no member reads any more, the last one back at the end.
    spare: Vec<Block>,
    spare_bytes: usize,
}

impl Deposits {
    /// Counts the kept blocks together with those of other boards from now on.
    pub(super) fn share(&mut self, room: &Arc<Room>) {
        self.room.give_back(self.kept_bytes);
        room.keep(self.kept_bytes);
        self.room = Arc::clone(room);
    }

    /// The account of the blocks that all boards of this process keep.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Whether short blocks of this size go round: what others have just read is in their caches,
    /// and is written faster when it has left them. Of long ones the last is taken, which is in
    /// this member's.
    pub(super) fn go_round(bytes: usize) -> bool {
        bytes <= ROUND_BYTES_MAX
    }

    /// A free block for `bytes` bytes: at least so long, and at most twice as long.
    #[inline]
    pub(super) fn spare(&mut self, bytes: usize) -> Option<Block> {
        if !Self::go_round(bytes) {
            return self.last_spare(bytes);
        }
        let at = self.spare.iter().position(fits(bytes))?;
        Some(self.take_spare(at))
    }

    /// A free block for `bytes` bytes, the last one that came back.
    pub(super) fn last_spare(&mut self, bytes: usize) -> Option<Block> {
        let at = self.spare.iter().rposition(fits(bytes))?;
        Some(self.take_spare(at))
    }

    fn take_spare(&mut self, at: usize) -> Block {
        let block = self.spare.remove(at);
        self.spare_bytes -= block.len();
        block
    }

    /// Keeps a block until all members have completed an operation. Operations come in the order of their numbers,
    /// unless several are in flight at once.
    #[inline]
    pub(super) fn keep(&mut self, number: u32, block: Block) {
        self.is_kept(block.len());
        let later = |(of, _): &(u32, Block)| of.wrapping_sub(number) as i32 > 0;
        match self.kept.iter().position(later) {
            None => self.kept.push_back((number, block)),
            Some(at) => self.kept.insert(at, (number, block)),
        }
    }

    /// Takes back the blocks of the operations before this one, which all members have completed.
    pub(super) fn settle(&mut self, settled: u32) {
        while let Some((number, _)) = self.kept.front()
            && (number.wrapping_sub(settled) as i32) < 0
        {
            let Some((_, block)) = self.kept.pop_front() else { return };
            self.is_back(block.len());
            let has_room =
                self.spare.len() < SPARE_MAX && self.spare_bytes + block.len() <= SPARE_BYTES_MAX;
            // The reserve is for all boards.
            if has_room && !block.is_reserved() {
                self.spare_bytes += block.len();
                self.spare.push(block);
            }
        }
    }

    /// Whether no block is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Bytes of the blocks that are kept.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// The first block that is kept for an operation.
    pub(super) fn of(&mut self, number: u32) -> Option<&mut Block> {
        self.kept.iter_mut().find(|(of, _)| *of == number).map(|(_, block)| block)
    }

    /// Takes that out.
    pub(super) fn take(&mut self, number: u32) -> Option<Block> {
        let at = self.kept.iter().position(|(of, _)| *of == number)?;
        let (_, block) = self.kept.remove(at)?;
        self.is_back(block.len());
        Some(block)
    }

    /// Puts back what was taken out: before all others of its operation.
    pub(super) fn put_back(&mut self, number: u32, block: Block) {
        self.is_kept(block.len());
        let later = |(of, _): &(u32, Block)| of.wrapping_sub(number) as i32 >= 0;
        let at = self.kept.iter().position(later).unwrap_or(self.kept.len());
        self.kept.insert(at, (number, block));
    }

    #[inline]
    fn is_kept(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
        self.room.keep(bytes);
    }

    #[inline]
    fn is_back(&mut self, bytes: usize) {
        self.kept_bytes -= bytes;
        self.room.give_back(bytes);
    }
}

/// Whether a block has room for so many bytes, and not more than twice.
fn fits(bytes: usize) -> impl Fn(&Block) -> bool {
    move |block| (bytes..=2 * bytes).contains(&block.len())
}

impl Drop for Deposits {
    fn drop(&mut self) {
        self.room.give_back(self.kept_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_that_share_their_room_know_of_each_other() {
        let (mut heap, room) = (heap(), Arc::default());
        let (mut mine, mut other) = (Deposits::default(), Deposits::default());
        other.keep(1, heap.allocate(100).unwrap());
        other.share(&room);
        mine.share(&room);
        assert!(mine.room().await_more() && other.room().is_awaited());
        other.settle(2);
        assert!(!mine.room().await_more() && !room.is_awaited(), "nothing will come back");
        mine.keep(1, heap.allocate(100).unwrap());
        assert!(room.await_more());
        room.was_found();
        assert!(!room.is_awaited());
        drop(mine);
        assert!(!room.await_more(), "what is gone keeps nothing");
    }
    use landeck_memory::heap::Heap;
    use landeck_memory::plan::SegmentPlan;
    use landeck_memory::segment::Segment;

    fn heap() -> Heap {
        let plan =
            SegmentPlan { heap_bytes_per_process: 6 << 20, guests: 0, ..SegmentPlan::new(1, 1) };
        Heap::of(&Segment::local(&plan), 0).unwrap()
    }

    #[test]
    fn short_blocks_go_round_and_of_long_ones_the_last_is_taken() {
        for (bytes, expected) in [(1000, 0), (300 << 10, 1)] {
            let (mut heap, mut deposits) = (heap(), Deposits::default());
            let blocks = [heap.allocate(bytes).unwrap(), heap.allocate(bytes).unwrap()];
            let offsets = blocks.each_ref().map(Block::offset);
            (0..).zip(blocks).for_each(|(number, block)| deposits.keep(number, block));
            assert!(deposits.spare(bytes).is_none() && deposits.kept_bytes() == 2 * bytes);
            deposits.settle(2);
            let spare = deposits.spare(bytes).unwrap();
            assert_eq!(spare.offset(), offsets[expected]);
            deposits.keep(2, spare);
            deposits.settle(3);
            let last = deposits.last_spare(bytes).unwrap();
            assert_eq!(last.offset(), offsets[expected], "the one that was used last");
            assert_eq!(deposits.last_spare(bytes).unwrap().offset(), offsets[1 - expected]);
            assert!(deposits.is_empty());
            deposits.keep(3, last);
            deposits.settle(4);
            assert!(deposits.spare(bytes / 2 - 1).is_none());
        }
    }

    #[test]
    fn no_more_is_spare_than_a_window_of_blocks_and_a_megabyte() {
        let (mut heap, mut deposits) = (heap(), Deposits::default());
        for number in 0..WINDOW as u32 {
            deposits.keep(number, heap.allocate(200 << 10).unwrap());
        }
        deposits.settle(WINDOW as u32);
        assert_eq!(std::iter::from_fn(|| deposits.spare(200 << 10)).count(), 5);
        for number in 0..2 * WINDOW as u32 {
            deposits.keep(number, heap.allocate(100).unwrap());
        }
        deposits.settle(2 * WINDOW as u32);
        assert_eq!(std::iter::from_fn(|| deposits.spare(100)).count(), WINDOW);
    }

    #[test]
    fn a_deposit_that_is_taken_out_comes_back_in_front() {
        let (mut heap, mut deposits) = (heap(), Deposits::default());
        for (number, bytes) in [(5, 100), (3, 200), (3, 300)] {
            deposits.keep(number, heap.allocate(bytes).unwrap());
        }
        let first = deposits.take(3).unwrap();
        assert_eq!((first.len(), deposits.kept_bytes()), (200, 400));
        deposits.put_back(3, first);
        assert_eq!(deposits.of(3).unwrap().len(), 200);
        deposits.settle(4);
        assert_eq!((deposits.kept_bytes(), deposits.of(3).is_none()), (100, true));
    }
}
