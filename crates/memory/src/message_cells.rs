//! Cells for messages: places that go from hand to hand with what lies in them.
//!
//! They are to messages what those of the first world's board are to collective operations: whoever receives
//! a message that lies in a cell has the cell from then on, and puts in it what it sends next. So a processor
//! writes where it has just read, and as few places are in use as data are under way.
//!
//! A word in front of the data says how many of them are there, so that the receiver copies out while the
//! sender copies in. The sender touches a cell no more when it has said that all are there; before that its
//! receiver does not take it over. Who has no cell sends as if there were none, and cells of messages that
//! nobody receives are missed, and that is all.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::Bytes;
use crate::plan::CELL_HEAD_BYTES;
pub use crate::plan::CELL_BYTES;
use crate::segment::Segment;

/// Bytes that the sender of a long message puts in before it says so.
const PIECE_BYTES: usize = 16 << 10;

/// The cells that one process may put messages in. One thread at a time.
pub struct MessageCells {
    segment: Segment,
    /// The one that it has received last at the end.
    held: Vec<u32>,
}

/// Where a message lies, as it is told of; nothing of it is trusted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCell {
    /// The number of the cell.
    pub cell: u32,
    /// Bytes of the message.
    pub bytes: u32,
}

/// A cell that this process fills. Nobody else has it before it is told of.
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
    /// Those that the process of a slot has at first.
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
        self.filled(place).store(first as u64, Ordering::Release);
        Some(Filling(place))
    }

    /// Nobody was told of it.
    pub fn give_up(&mut self, filling: Filling) {
        self.held.push(filling.0.cell);
    }

    /// Fills a cell that its receiver was told of, and that is the receiver's then. True when there was
    /// anything left to fill.
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
            self.filled(place).store(filled as u64, Ordering::Release);
        }
        true
    }

    /// Whether a message can lie there.
    #[inline]
    pub fn is_possible(&self, place: InCell) -> bool {
        place.cell < self.segment.plan().cells() && u64::from(place.bytes) <= CELL_BYTES
    }

    /// What is there of a message from a position on: none where it cannot lie.
    #[inline]
    pub fn piece(&self, place: InCell, position: usize) -> Bytes<'_> {
        if !self.is_possible(place) {
            return Bytes::EMPTY;
        }
        let filled = self.filled(place).load(Ordering::Acquire).min(place.bytes.into());
        let start = self.segment.place(self.segment.plan().cell(place.cell), CELL_BYTES);
        // SAFETY: the cell was just checked to be one, with room for so many bytes, in the segment, which stays
        // mapped while `self` is borrowed.
        unsafe { Bytes::from_raw(start, filled as usize) }.part(position, usize::MAX)
    }

    /// A message was received, or nobody will ask for it: its cell is this process's, if all of it is there.
    #[inline]
    pub fn take_over(&mut self, place: InCell) {
        let is_there = self.piece(place, 0).len() == place.bytes as usize;
        // Words that somebody has overwritten give nothing twice.
        if is_there && self.is_possible(place) && !self.held.contains(&place.cell) {
            self.held.push(place.cell);
        }
    }

    #[inline]
    fn write(&mut self, place: InCell, at: usize, bytes: Bytes<'_>) {
        let at = at.min(CELL_BYTES as usize);
        let length = bytes.len().min(CELL_BYTES as usize - at);
        let cell = self.segment.place(self.segment.plan().cell(place.cell), CELL_BYTES);
        // SAFETY: the range is of the cell, in the segment, which stays mapped while `self` is borrowed. Nobody else
        // writes to the cell until it is full, its receiver reads none of this range before it is told of it, and
        // nothing is read through the slice.
        let target = unsafe { std::slice::from_raw_parts_mut(cell.as_ptr().add(at), length) };
        bytes.copy_to_slice(target);
    }

    /// How many bytes are there.
    #[inline]
    fn filled(&self, place: InCell) -> &AtomicU64 {
        self.segment.long(self.segment.plan().cell(place.cell) - CELL_HEAD_BYTES)
    }
}
