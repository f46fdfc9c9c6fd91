//! Where the words of boards can lie in a segment.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use landeck_memory::plan::{BOARDS, LINE_BYTES, SegmentPlan};
use landeck_memory::segment::Segment;

use super::words::{Head, Lines, Shared};
use super::{LINES_BYTES, SHARED_BYTES};

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

impl LinesPlace {
    /// Where the lines of a slot are on the first world's board.
    #[inline]
    pub fn of_world(plan: &SegmentPlan, slot: u32) -> Self {
        Self { slot, offset: plan.world_lines(slot) }
    }
}

/// Whether the group with shared words at this place was revoked. False where none can be.
pub fn is_revoked(segment: &Segment, board: u64) -> bool {
    is_board(segment.plan(), board) && segment.word(board + REVOKED).load(Ordering::Acquire) != 0
}

/// The slot that leads the group whose shared words are at this place, if such words can be there.
pub(crate) fn leader_of(plan: &SegmentPlan, place: u64) -> Option<u32> {
    let slot = place.checked_sub(plan.slot(0))? / plan.slot_bytes();
    let slot = u32::try_from(slot).ok().filter(|&slot| slot < plan.slots())?;
    let (first, last) = (plan.board(slot, 0), plan.board(slot, BOARDS - 1));
    let is_one = (first..=last).contains(&place) && (place - first).is_multiple_of(SHARED_BYTES);
    is_one.then_some(slot)
}

/// Whether the shared words of a board can be at this place.
pub(crate) fn is_board(plan: &SegmentPlan, place: u64) -> bool {
    leader_of(plan, place).is_some()
}

/// Whether a member's lines can be at this place.
pub(crate) fn are_lines(plan: &SegmentPlan, LinesPlace { slot, offset }: LinesPlace) -> bool {
    if slot >= plan.slots() || !offset.is_multiple_of(LINE_BYTES) {
        return false;
    }
    let (start, end) = (plan.heap(slot), plan.heap(slot + 1));
    let in_heap =
        offset >= start && offset.checked_add(LINES_BYTES).is_some_and(|last| last <= end);
    in_heap || offset == plan.world_lines(slot)
}

pub(super) fn lines_at(segment: &Segment, place: LinesPlace) -> Option<NonNull<Lines>> {
    let is_place = are_lines(segment.plan(), place);
    is_place.then(|| segment.place(place.offset, LINES_BYTES).cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::plan::{GUESTS, SLOTS_MAX};
    use landeck_memory::remark::REMARK;

    #[test]
    fn boards_are_found_where_they_can_be() {
        let plan = SegmentPlan::new(1, 3);
        for slot in [0, 2, plan.slots() - 1] {
            for board in [0, 1, BOARDS - 1] {
                assert_eq!(leader_of(&plan, plan.board(slot, board)), Some(slot));
            }
            assert_eq!(leader_of(&plan, plan.board(slot, 1) + 64), None);
            assert_eq!(leader_of(&plan, plan.mailbox(slot)), None);
        }
        assert!(
            !is_board(&plan, 0) && !is_board(&plan, u64::MAX) && !is_board(&plan, plan.heap(0))
        );
    }
    #[test]
    fn the_lines_of_the_first_world_fit_into_the_own_page() {
        for slots in [18, 9_728, 9_729, SLOTS_MAX] {
            let plan = SegmentPlan::new(1, slots - GUESTS);
            assert!(plan.world_lines(1) + LINES_BYTES <= plan.own_page(1) + REMARK);
        }
    }
}
