//! Handoff buffers of messages: buffers that go from process to process with the message in them.
//!
//! The receiver of a message that lies in a cell owns the cell from then on, and puts its own next message there, as
//! members of the first world's board do with theirs. So a core writes where it has just read, and as few buffers are
//! in use as messages are in flight.
//!
//! A word in front of the data counts the bytes that are there, so the receiver copies out while the sender copies
//! in. The sender does not touch a cell once it has published that all bytes are there; before that its receiver does
//! not take it over. A process without a cell sends in another way. Cells of messages that are never received are
//! lost, and nothing else happens.

use crate::filled::Filled;
pub use crate::plan::CELL_BYTES;
use crate::plan::CELL_HEAD_BYTES;
use crate::private::bytes::{Bytes, copy};
use crate::segment::Segment;
use crate::waiting::waiter;

/// Bytes that the sender of a long message puts in before it says so.
const PIECE_BYTES: usize = 16 << 10;
/// How often its receiver looks for the next piece: longer than a piece takes whose sender is not interrupted.
const LOOKS: u32 = 200;

/// The cells that one process owns. One thread at a time.
pub struct MessageCells {
    segment: Segment,
    /// The cell received last stands at the end.
    held: Vec<u32>,
}

/// The cell and length of a message, as its sender announced them; nothing of it is trusted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCell {
    /// The number of the cell.
    pub cell: u32,
    /// Bytes of the message.
    pub bytes: u32,
}

/// A cell that this process fills, and owns until it has announced it.
#[must_use]
pub struct Filling(InCell);

impl Filling {
    /// Where the message lies.
    #[inline]
    pub fn place(&self) -> InCell {
        self.0
    }
}

impl MessageCells {
    /// The cells that the process of a slot has at first.
    pub fn of(segment: &Segment, slot: u32) -> Self {
        let plan = segment.plan();
        // What the first process of a slot had has gone from hand to hand since.
        let is_first = slot < plan.processes && segment.slot_record(slot).incarnation <= 1;
        let first = plan.board_cells() + slot.min(plan.processes) * plan.cells_each();
        let held = match is_first {
            true => (first..first + plan.cells_each()).rev().collect(),
            false => Vec::new(),
        };
        Self { segment: segment.clone(), held }
    }

    /// Begins to fill a cell with a message: with all of it, if it is short. None where there is no cell, or
    /// it would not fit.
    #[inline]
    pub fn begin(&mut self, bytes: Bytes<'_>) -> Option<Filling> {
        if bytes.len() as u64 > CELL_BYTES {
            return None;
        }
        let place = InCell { cell: self.held.pop()?, bytes: bytes.len() as u32 };
        let first = if bytes.len() <= PIECE_BYTES { bytes.len() } else { 0 };
        self.write(place, 0, bytes.part(0, first));
        self.filled(place).set(first as u64);
        Some(Filling(place))
    }

    /// Takes a cell back that was not announced.
    pub fn give_up(&mut self, filling: Filling) {
        self.held.push(filling.0.cell);
    }

    /// Fills an announced cell to the end; the receiver owns it then. True when there was anything left to fill.
    #[inline]
    pub fn finish(&mut self, filling: Filling, bytes: Bytes<'_>) -> bool {
        let place = filling.0;
        if bytes.len() <= PIECE_BYTES {
            return false;
        }
        let mut filled = 0;
        while filled < bytes.len() {
            let piece = bytes.part(filled, PIECE_BYTES);
            self.write(place, filled, piece);
            filled += piece.len();
            self.filled(place).set(filled as u64);
        }
        true
    }

    /// Whether a message can lie there.
    #[inline]
    pub fn is_possible(&self, place: InCell) -> bool {
        place.cell < self.segment.plan().cells() && u64::from(place.bytes) <= CELL_BYTES
    }

    /// The bytes that are there of a message from a position on; none where it cannot lie.
    #[inline]
    pub fn piece(&self, place: InCell, position: usize) -> Bytes<'_> {
        if !self.is_possible(place) {
            return Bytes::EMPTY;
        }
        let filled = self.filled(place).of(place.bytes.into());
        let start = self.segment.place(self.segment.plan().cell(place.cell), CELL_BYTES);
        // SAFETY: the cell was just checked to be one, with room for so many bytes, in the segment, which stays
        // mapped while `self` is borrowed.
        unsafe { Bytes::from_raw(start, filled as usize) }.part(position, usize::MAX)
    }

    /// Copies a message out while its sender puts it in: `write` is told where each piece belongs. False when
    /// that has stopped before the end; then more of it may come later.
    #[inline]
    pub fn copy_out(&self, place: InCell, mut write: impl FnMut(u64, Bytes<'_>)) -> bool {
        let mut position = 0;
        while position < place.bytes as usize {
            let mut piece = Bytes::EMPTY;
            let look = || {
                piece = self.piece(place, position);
                !piece.is_empty()
            };
            if !waiter::poll_times(look, LOOKS) {
                return false;
            }
            write(position as u64, piece);
            position += piece.len();
        }
        true
    }

    /// Takes over the cell of a message that was received or will not be asked for, if all of it is there.
    #[inline]
    pub fn take_over(&mut self, place: InCell) {
        let is_there = self.piece(place, 0).len() == place.bytes as usize;
        // Words that another process has overwritten give nothing twice.
        if is_there && self.is_possible(place) && !self.held.contains(&place.cell) {
            self.held.push(place.cell);
        }
    }

    #[inline]
    fn write(&mut self, place: InCell, at: usize, bytes: Bytes<'_>) {
        let at = at.min(CELL_BYTES as usize);
        let length = bytes.len().min(CELL_BYTES as usize - at);
        let cell = self.segment.place(self.segment.plan().cell(place.cell), CELL_BYTES);
        // SAFETY: both ranges are valid for `length` bytes: the target ends within the cell, in the segment, which
        // stays mapped while `self` is borrowed. They are apart: the bytes are the program's.
        unsafe { copy(bytes.start().as_ptr(), cell.as_ptr().add(at), length) };
    }

    /// The word that counts the bytes that are there.
    #[inline]
    fn filled(&self, place: InCell) -> Filled<'_> {
        Filled(self.segment.long(self.segment.plan().cell(place.cell) - CELL_HEAD_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use crate::slots::membership::{SlotRecord, SlotState};

    fn segment(processes: u32) -> Segment {
        Segment::local(&SegmentPlan {
            heap_bytes_per_process: 1 << 20,
            guests: 1,
            ..SegmentPlan::new(1, processes)
        })
    }

    fn pattern(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn a_message_of_every_length_goes_with_its_cell() {
        let segment = segment(2);
        let (mut ours, mut theirs) = (MessageCells::of(&segment, 0), MessageCells::of(&segment, 1));
        let most = CELL_BYTES as usize;
        for bytes in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, most] {
            let data = pattern(bytes);
            let next = *ours.held.last().unwrap();
            let filling = ours.begin(Bytes::from(&data[..])).unwrap();
            let place = filling.place();
            assert_eq!((place.cell, place.bytes as usize), (next, bytes));
            let is_short = bytes <= PIECE_BYTES;
            assert_eq!(theirs.piece(place, 0).len(), if is_short { bytes } else { 0 });
            assert_eq!(theirs.copy_out(place, |_, _| {}), is_short, "who fills it was interrupted");
            assert_eq!(ours.finish(filling, Bytes::from(&data[..])), !is_short);
            assert!(!ours.held.contains(&next));
            let mut received = vec![0; bytes];
            let is_whole = theirs.copy_out(place, |at, piece| {
                piece.copy_to_slice(&mut received[at as usize..]);
            });
            assert!(is_whole && received == data, "{bytes}");
            theirs.take_over(place);
            assert_eq!(theirs.held.last(), Some(&next));
            std::mem::swap(&mut ours, &mut theirs);
        }
        assert!(ours.begin(Bytes::from(&vec![0; most + 1][..])).is_none(), "longer than a cell");
    }

    #[test]
    fn a_process_without_cells_says_so_and_an_unannounced_cell_comes_back() {
        let segment = segment(3);
        let mut cells = MessageCells::of(&segment, 2);
        let filling = cells.begin(Bytes::from(&[7; 9][..])).unwrap();
        cells.give_up(filling);
        for _ in 0..segment.plan().cells_each() {
            assert!(cells.begin(Bytes::from(&[7; 9][..])).is_some());
        }
        assert!(cells.begin(Bytes::EMPTY).is_none());
    }

    #[test]
    fn each_is_one_process_and_no_board_has_it() {
        let segment = segment(5);
        let plan = segment.plan();
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 2, ..SlotRecord::default() };
        segment.set_slot_record(4, record);
        let all: Vec<u32> = (0..6).flat_map(|slot| MessageCells::of(&segment, slot).held).collect();
        assert_eq!(all.len() as u32, 4 * plan.cells_each(), "none of who comes later");
        assert!(all.iter().all(|cell| (plan.board_cells()..plan.cells()).contains(cell)));
        assert!(all.iter().enumerate().all(|(at, cell)| !all[..at].contains(cell)));
    }

    #[test]
    fn a_cell_is_taken_over_when_all_is_there_and_never_twice() {
        let segment = segment(2);
        let (mut ours, mut theirs) = (MessageCells::of(&segment, 0), MessageCells::of(&segment, 1));
        let data = pattern(PIECE_BYTES + 1);
        let filling = ours.begin(Bytes::from(&data[..])).unwrap();
        let (place, before) = (filling.place(), theirs.held.clone());
        theirs.take_over(place);
        assert_eq!(theirs.held, before, "it is still filled");
        assert!(ours.finish(filling, Bytes::from(&data[..])));
        theirs.take_over(place);
        theirs.take_over(place);
        assert_eq!(theirs.held.len(), before.len() + 1);
    }

    #[test]
    fn places_that_are_none_have_no_bytes_and_give_no_cell() {
        let segment = segment(2);
        let mut cells = MessageCells::of(&segment, 0);
        let (first, end) = (segment.plan().board_cells(), segment.plan().cells());
        for place in [
            InCell { cell: end, bytes: 8 },
            InCell { cell: u32::MAX, bytes: 0 },
            InCell { cell: first, bytes: CELL_BYTES as u32 + 1 },
        ] {
            assert!(!cells.is_possible(place) && cells.piece(place, 0).is_empty());
            cells.take_over(place);
            assert_eq!(cells.held.len() as u32, segment.plan().cells_each(), "{place:?}");
        }
        let place = InCell { cell: first, bytes: 100 };
        cells.filled(place).set(u64::MAX);
        assert_eq!(cells.piece(place, 0).len(), 100, "a word that somebody has overwritten");
        assert_eq!((cells.piece(place, 99).len(), cells.piece(place, 200).len()), (1, 0));
    }
}
