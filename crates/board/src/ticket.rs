//! Tickets: how members find out that no member uses a board any more.
//!
//! A member's lines carry a *ticket*: first that they are promised to a board, then which board they belong to,
//! then nothing. A member's memory on a board is its own again once no ticket of another living member shows the
//! board or the promise. From then on those lines may hold anything, of another board or of none. A member that
//! looks later finds another value than the ticket, which means the same.

use std::sync::atomic::Ordering;

use landeck_memory::heap::Block;
use landeck_memory::segment::Segment;
use landeck_protocols::agreement::MemberStanding;

use super::agreement::Ballot;
use super::words::{REFUSED, TICKET};
use super::{Board, LinesPlace};

/// In front of every ticket, so that data that come to lie there later are none.
const MARK: u64 = 0x6c61_6e64 << 32;
/// A ticket of lines that are to be on a board.
const PROMISED: u64 = MARK | u32::MAX as u64;

impl LinesPlace {
    /// Makes lines of a block of the slot's own heap, which has at least [`LINES_BYTES`](super::LINES_BYTES): zero,
    /// as a new board's, and promised to one.
    pub fn in_block(segment: &Segment, slot: u32, block: &mut Block) -> Self {
        block.fill(0);
        let place = Self { slot, offset: block.offset() };
        segment.long(place.offset + TICKET).store(PROMISED, Ordering::Release);
        place
    }

    /// For lines of this process that others may have been told of, while the board never came to
    /// be here: it comes to no operation there. The lines must stay as they are.
    pub fn refuse(self, segment: &Segment) {
        segment.long(self.offset + REFUSED).store(1 << 32 | 1, Ordering::Release);
        segment.long(self.offset + TICKET).store(0, Ordering::Release);
    }
}

impl Board {
    /// Says that this member's lines are this board's, which has this number in the job.
    pub fn claim(&mut self, number: u32) {
        self.ticket = MARK | u64::from(number);
        self.lines(self.own()).ticket.store(self.ticket, Ordering::Release);
    }

    /// Says that this member uses nothing of the board any more. While it keeps data that others are to read, it stays
    /// among the sleepers, so that they wake it once they have completed the operation.
    pub fn forget(&self) {
        if self.kept_bytes() > 0 {
            self.sleeps(true);
        }
        self.lines(self.own()).ticket.store(0, Ordering::Release);
    }

    /// Whether this member has not forgotten the board. A member that has writes nothing to the shared words: once all
    /// have, the words may belong to another board.
    pub(super) fn is_held(&self) -> bool {
        self.lines(self.own()).ticket.load(Ordering::Relaxed) == self.ticket
    }

    /// Whether all members have forgotten the board: their memory on it is their own again.
    pub fn is_forgotten(&self) -> bool {
        (0..self.size()).all(|member| {
            let ticket = self.lines(member).ticket.load(Ordering::Acquire);
            let holds = ticket == self.ticket || ticket == PROMISED;
            !holds || self.life(member) != MemberStanding::Lives
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BoardPool, LINES_BYTES, SHARED_BYTES};
    use super::*;
    use landeck_memory::heap::Heap;
    use landeck_memory::membership::{SlotRecord, SlotState};
    use landeck_memory::plan::SegmentPlan;
    use landeck_memory::sleep_word;

    #[test]
    fn memory_is_free_when_all_have_forgotten_the_board_or_died() {
        let plan =
            SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, 3) };
        let segment = Segment::local(&plan);
        let mut heaps: Vec<Heap> = (0..3).map(|slot| Heap::of(&segment, slot).unwrap()).collect();
        let mut blocks: Vec<_> =
            heaps.iter_mut().map(|heap| heap.allocate(LINES_BYTES as usize).unwrap()).collect();
        let lines: Vec<_> = (0..3)
            .map(|slot| LinesPlace::in_block(&segment, slot as u32, &mut blocks[slot]))
            .collect();
        let place = BoardPool::new(&segment, 1).take().unwrap();
        let open = |own| Board::open(&segment, place, &lines, own).unwrap();
        let mut boards: Vec<Board> = (0..3).map(open).collect();
        boards[0].claim(7);
        boards[0].forget();
        assert!(!boards[0].is_forgotten(), "others have not even opened it");
        boards[1].claim(7);
        boards[1].forget();
        let dead = SlotRecord { state: SlotState::Dead, ..SlotRecord::default() };
        segment.set_slot_record(2, dead);
        assert!(boards[0].is_forgotten());
        segment.set_slot_record(2, SlotRecord::default());
        boards[2].claim(7);
        assert!(!boards[1].is_forgotten());
        boards[2].forget();
        blocks[2].fill(1);
        assert!(boards[0].is_forgotten() && boards[1].is_forgotten(), "whatever lies there now");
    }

    fn segment_of_two() -> Segment {
        Segment::local(&SegmentPlan {
            heap_bytes_per_process: 1 << 20,
            guests: 0,
            ..SegmentPlan::new(1, 2)
        })
    }

    /// Two members; the first has laid something down, which the other one has not read.
    fn board_that_keeps(segment: &Segment) -> Vec<Board> {
        let lines: Vec<_> = (0..2).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
        let open = |own| Board::open(segment, segment.plan().world_board(), &lines, own).unwrap();
        let mut boards: Vec<Board> = (0..2).map(open).collect();
        boards.iter_mut().for_each(|board| board.claim(7));
        let block = Heap::of(segment, 0).unwrap().allocate(1000).unwrap();
        boards[0].come_with(1, (3, 0), block, (1000, 1000));
        boards[0].end(1);
        boards
    }

    /// The shared words of the first world's board.
    fn shared_words(segment: &Segment) -> Vec<u64> {
        let place = segment.plan().world_board();
        let words = (place..place + SHARED_BYTES).step_by(8);
        words.map(|word| segment.long(word).load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_member_that_forgets_a_board_with_blocks_is_told_and_writes_no_more() {
        for is_asleep in [false, true] {
            let segment = segment_of_two();
            let mut boards = board_that_keeps(&segment);
            if is_asleep {
                boards[0].sleeps(true);
            }
            boards[0].forget();
            // It sleeps for room, whatever it has said of itself before.
            sleep_word::raise(segment.sleep_word(0));
            boards[1].end(1);
            assert!(!sleep_word::is_raised(segment.sleep_word(0)), "it was woken");
            boards[1].forget();
            // From now on the words may be another board's.
            for word in (0..SHARED_BYTES).step_by(8) {
                segment.long(segment.plan().world_board() + word).store(5, Ordering::Relaxed);
            }
            boards[0].wakes(true);
            boards[0].sleeps(true);
            boards[0].collect();
            boards[0].wakes(true);
            assert!(shared_words(&segment).iter().all(|&word| word == 5), "{is_asleep}");
        }
    }

    #[test]
    fn a_member_that_forgets_a_board_without_blocks_sleeps_nowhere() {
        let segment = segment_of_two();
        let boards = board_that_keeps(&segment);
        let before = shared_words(&segment);
        boards[1].forget();
        assert_eq!(shared_words(&segment), before, "nobody has anything to tell it");
        boards[1].sleeps(true);
        assert_eq!(shared_words(&segment), before);
        boards[0].sleeps(true);
        assert_ne!(shared_words(&segment), before);
        boards[0].wakes(true);
        assert_eq!(shared_words(&segment), before);
    }

    #[test]
    fn lines_that_never_came_to_a_board_refuse_its_operations() {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        let mut heap = Heap::of(&segment, 1).unwrap();
        let mut block = heap.allocate(LINES_BYTES as usize).unwrap();
        let lines = [
            LinesPlace::of_world(segment.plan(), 0),
            LinesPlace::in_block(&segment, 1, &mut block),
        ];
        let board = Board::open(&segment, segment.plan().world_board(), &lines, 0).unwrap();
        assert!(!board.refuses(1, 1));
        lines[1].refuse(&segment);
        assert!(board.refuses(1, 1) && board.refuses(1, 9));
    }
}
