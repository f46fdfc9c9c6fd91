//! Where the words of boards can lie in a segment.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::words::{Head, Lines, Shared};
use super::{LINES_BYTES, SHARED_BYTES};
use crate::plan::BOARDS;
use crate::segment::Segment;

/// Where the lines of a member are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinesPlace {
    /// The member's slot.
    pub slot: u32,
    /// Bytes from the start of the segment.
    pub offset: u64,
}

/// Bytes from the start of the shared words to the one that says that the group was revoked.
const REVOKED: u64 = (offset_of!(Shared, head) + offset_of!(Head, revoked)) as u64;

impl Segment {
    /// Where the lines of a slot are on the first world's board.
    pub fn world_lines(&self, slot: u32) -> LinesPlace {
        LinesPlace { slot, offset: self.plan().world_lines(slot) }
    }

    /// Whether the group with shared words at this place was revoked. False where none can be.
    pub fn is_revoked(&self, board: u64) -> bool {
        is_board(self, board) && self.word(board + REVOKED).load(Ordering::Acquire) != 0
    }

    /// Where the shared words of the first world's board are.
    pub fn world_board(&self) -> u64 {
        self.plan().board(0, 0)
    }
}

pub(super) fn is_board(segment: &Segment, place: u64) -> bool {
    let plan = segment.plan();
    let is_of = |slot: u32| {
        let (first, last) = (plan.board(slot, 0), plan.board(slot, BOARDS - 1));
        (first..=last).contains(&place) && (place - first).is_multiple_of(SHARED_BYTES)
    };
    (0..plan.slots()).any(is_of)
}

pub(super) fn lines_at(segment: &Segment, place: LinesPlace) -> Option<NonNull<Lines>> {
    let (plan, LinesPlace { slot, offset }) = (segment.plan(), place);
    if slot >= plan.slots() || !offset.is_multiple_of(64) {
        return None;
    }
    let (start, end) = (plan.heap(slot), plan.heap(slot + 1));
    let in_heap =
        offset >= start && offset.checked_add(LINES_BYTES).is_some_and(|last| last <= end);
    let is_place = in_heap || offset == plan.world_lines(slot);
    is_place.then(|| segment.place(offset, LINES_BYTES).cast())
}
