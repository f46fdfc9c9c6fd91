//! Whose lines these are: how members find out that nobody uses a board any more.
//!
//! A member's lines carry a *ticket*: first that they are promised to a board, then which board's
//! they are, then nothing. A member's memory on a board is its own again when no ticket of another
//! living member shows the board or the promise. From then on those lines may hold anything, of
//! another board or of none; whoever looks later sees something else than the ticket, which means
//! the same.

use std::sync::atomic::Ordering;

use super::agreement::{Ballot, Life};
use super::words::{REFUSED, TICKET};
use super::{Board, LinesPlace};
use crate::segment::Segment;

/// In front of every ticket, so that data that come to lie there later are none.
const MARK: u64 = 0x6c61_6e64 << 32;
/// A ticket of lines that are to be on a board.
const PROMISED: u64 = MARK | u32::MAX as u64;

impl Segment {
    /// Makes lines of a block of the slot's own heap, which has at least
    /// [`LINES_BYTES`](super::LINES_BYTES): zero, as a new board's, and promised to one.
    pub fn lines_of(&self, slot: u32, block: &mut crate::heap::Block) -> LinesPlace {
        block.fill(0);
        let place = LinesPlace { slot, offset: block.offset() };
        self.long(place.offset + TICKET).store(PROMISED, Ordering::Release);
        place
    }

    /// For lines of this process that others may have been told of, while the board never came to
    /// be here: it comes to no operation there. The lines must stay as they are.
    pub fn refuse_lines(&self, place: LinesPlace) {
        self.long(place.offset + REFUSED).store(1 << 32 | 1, Ordering::Release);
        self.long(place.offset + TICKET).store(0, Ordering::Release);
    }
}

impl Board {
    /// Says that this member's lines are this board's, which has this number in the job.
    pub fn claim(&mut self, number: u32) {
        self.ticket = MARK | u64::from(number);
        self.lines(self.own()).ticket.store(self.ticket, Ordering::Release);
    }

    /// Says that this member uses nothing of the board any more.
    pub fn forget(&self) {
        self.lines(self.own()).ticket.store(0, Ordering::Release);
    }

    /// Whether this member has not forgotten the board. Who has writes nothing to the words that all share:
    /// as soon as all have, they may be another board's.
    pub(super) fn is_held(&self) -> bool {
        self.lines(self.own()).ticket.load(Ordering::Relaxed) == self.ticket
    }

    /// Whether all members have forgotten the board: their memory on it is their own again.
    pub fn is_forgotten(&self) -> bool {
        (0..self.size()).all(|member| {
            let ticket = self.lines(member).ticket.load(Ordering::Acquire);
            let holds = ticket == self.ticket || ticket == PROMISED;
            !holds || self.life(member) != Life::Lives
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BoardPool, LINES_BYTES};
    use super::*;
    use crate::heap::Heap;
    use crate::membership::{SlotRecord, SlotState};
    use crate::plan::SegmentPlan;

    #[test]
    fn memory_is_free_when_all_have_forgotten_the_board_or_died() {
        let plan =
            SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, 3) };
        let segment = Segment::local(&plan);
        let mut heaps: Vec<Heap> = (0..3).map(|slot| Heap::of(&segment, slot).unwrap()).collect();
        let mut blocks: Vec<_> =
            heaps.iter_mut().map(|heap| heap.allocate(LINES_BYTES as usize).unwrap()).collect();
        let lines: Vec<_> =
            (0..3).map(|slot| segment.lines_of(slot as u32, &mut blocks[slot])).collect();
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

    #[test]
    fn lines_that_never_came_to_a_board_refuse_its_operations() {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        let mut heap = Heap::of(&segment, 1).unwrap();
        let mut block = heap.allocate(LINES_BYTES as usize).unwrap();
        let lines = [segment.world_lines(0), segment.lines_of(1, &mut block)];
        let board = Board::open(&segment, segment.world_board(), &lines, 0).unwrap();
        assert!(!board.refuses(1, 1));
        segment.refuse_lines(lines[1]);
        assert!(board.refuses(1, 1) && board.refuses(1, 9));
    }
}
