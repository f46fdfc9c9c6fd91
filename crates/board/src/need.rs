//! Whether a member of the first world still needs the board lines of a member that is gone.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use landeck_memory::segment::Segment;

use super::words::{Head, PROGRESS, STRIDE_BYTES, Shared, WINDOW};

/// Bytes from the start of the shared words to the one with the outcome of the last agreement.
const OUTCOME: u64 = (offset_of!(Shared, head) + offset_of!(Head, agreement)) as u64;

/// Whether the process of `own` may still look at what that of another slot, which is gone, has written on the
/// first world's board: an operation that it came to and this one is not over with, or the agreement that it
/// decided. So this process needs the slot ([`Segment::release_vacant`]). False where one of them is no member.
pub fn needs_of_first_world(segment: &Segment, own: u32, gone: u32) -> bool {
    if segment.rank_of(own).is_none() || segment.rank_of(gone).is_none() {
        return false;
    }
    let plan = segment.plan();
    let (mine, theirs) = (plan.world_lines(own), plan.world_lines(gone));
    let over = segment.long(mine + PROGRESS).load(Ordering::Acquire) as u32;
    let over = over.max(1); // who has done nothing yet says nothing
    let came = (0..WINDOW as u64).any(|line| {
        let number = segment.long(theirs + line * STRIDE_BYTES).load(Ordering::Acquire) as u32;
        number != 0 && over.wrapping_sub(number) as i32 <= 0
    });
    let outcome = segment.long(plan.world_board() + OUTCOME).load(Ordering::Acquire);
    came || outcome != 0 && (outcome >> 32) as u32 == gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Board, LinesPlace};
    use landeck_memory::fixture::{attached_views, depart};
    use landeck_memory::{Bytes, SegmentPlan};

    const PROCESSES: u32 = 3;

    /// A segment with the first world, as each of its members sees it.
    fn all() -> Vec<Segment> {
        let plan = SegmentPlan::new(1, PROCESSES);
        attached_views(&SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..plan })
    }

    fn look(all: &[Segment], gone: u32) {
        for own in (0..PROCESSES).filter(|&own| own != gone) {
            let view = &all[own as usize];
            view.release_vacant(own, gone, needs_of_first_world(view, own, gone));
            view.set_seen(own, view.membership_generation());
        }
    }

    #[test]
    fn the_first_world_keeps_what_its_members_are_not_over_with() {
        let all = all();
        let lines: Vec<_> =
            (0..PROCESSES).map(|slot| LinesPlace::of_world(all[0].plan(), slot)).collect();
        let open = |own: u32| {
            let view = &all[own as usize];
            Board::open(view, view.plan().world_board(), &lines, own).unwrap()
        };
        let mut boards: Vec<_> = (0..PROCESSES).map(open).collect();
        let (number, signature) = boards[2].begin(0);
        boards[2].come(number, signature, 0, Bytes::EMPTY);
        let since = depart(&all[0], 2);
        look(&all, 2);
        assert!(all[0].is_referenced(2, since));
        for own in [0, 1] {
            let (number, _) = boards[own].begin(0);
            boards[own].end(number);
        }
        look(&all, 2);
        assert!(!all[0].is_referenced(2, since));
        let since = depart(&all[1], 0);
        look(&all, 0);
        assert!(all[1].is_referenced(0, since), "the shared words of the first world lie there");
    }
}
