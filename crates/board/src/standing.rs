//! Boards as observers of a job see them: the members of a group, and the progress of each.
//!
//! Every word may have any value, as in all of an [`Observed`] segment.

use landeck_memory::observed::Observed;

use super::place::{LinesPlace, are_lines, leader_of};
use super::roster::decode;
use super::words::{PROGRESS, ROSTER, STRIDE_BYTES, WINDOW};

/// The members of a group that has a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The context of its messages; none for the first world, which is the same in every job.
    pub context: Option<u32>,
    /// Where its members' lines are, in the order of their ranks.
    pub members: Vec<LinesPlace>,
}

/// How far a member of a group is with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not come; how many operations it is behind, 0 if this is its next.
    NotYet {
        /// How many.
        behind: u32,
    },
    /// It has come for this: the signature of its call.
    Here(u32),
    /// It has completed it.
    Past,
}

/// The members of the group whose board has its shared words at this place; none when nothing
/// is said of them there.
pub fn roster_of(segment: &Observed, board: u64) -> Option<Roster> {
    let plan = segment.plan();
    let leader = leader_of(plan, board)?;
    if board == plan.world_board() {
        let lines = |slot| LinesPlace::of_world(plan, slot);
        return Some(Roster { context: None, members: (0..plan.processes).map(lines).collect() });
    }
    let mut words = [0; 2];
    segment.read(board + ROSTER, &mut words);
    let [about, place] = words;
    let count = (about >> 32).min(u64::from(plan.slots()));
    let end = place.checked_add(count * 8)?;
    let is_there = place >= plan.heap(leader) && end <= plan.heap(leader + 1);
    if count == 0 || !is_there {
        return None;
    }
    let mut list = vec![0; count as usize];
    segment.read(place, &mut list);
    let members: Vec<_> = list.into_iter().map(decode).collect();
    let are_members = members.iter().all(|&place| are_lines(plan, place));
    are_members.then_some(Roster { context: Some(about as u32), members })
}

/// How far a member of a group is with an operation.
pub fn standing_of(segment: &Observed, member: LinesPlace, number: u32) -> Standing {
    if !are_lines(segment.plan(), member) {
        return Standing::NotYet { behind: 0 };
    }
    // Its progress stands behind the lines of the operations that can be under way.
    let progress = segment.word(member.offset + PROGRESS) as u32;
    let behind = number.wrapping_sub(progress);
    let line = segment.word(member.offset + u64::from(number) % WINDOW as u64 * STRIDE_BYTES);
    match () {
        () if line as u32 == number && behind as i32 >= 0 => Standing::Here((line >> 32) as u32),
        () if (behind as i32) < 0 => Standing::Past,
        // A member that has done nothing yet says nothing: its progress is as good as 1.
        () if progress == 0 => Standing::NotYet { behind: number.saturating_sub(1) },
        () => Standing::NotYet { behind },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Board, BoardPool, LINES_BYTES, roster_bytes};
    use landeck_memory::{Bytes, Heap, Segment, SegmentPlan};
    use std::sync::atomic::Ordering;

    fn segment() -> Segment {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(7, 3) };
        Segment::create(&plan).unwrap()
    }

    fn observed(segment: &Segment) -> Observed {
        Observed::open(segment.descriptor().unwrap().try_clone_to_owned().unwrap()).unwrap()
    }

    #[test]
    fn the_members_of_a_group_and_how_far_they_are_can_be_seen() {
        let segment = segment();
        let observed = observed(&segment);
        let mut heaps: Vec<Heap> = (0..3).map(|slot| Heap::of(&segment, slot).unwrap()).collect();
        let mut block = |slot: usize, bytes| heaps[slot].allocate(bytes).unwrap();
        let mut own = [2, 0].map(|slot| block(slot, LINES_BYTES as usize));
        let lines = [
            LinesPlace::in_block(&segment, 2, &mut own[0]),
            LinesPlace::in_block(&segment, 0, &mut own[1]),
        ];
        let place = BoardPool::new(&segment, 2).take().unwrap();
        assert_eq!(roster_of(&observed, place), None, "nothing is said yet");
        let mut boards = [0, 1].map(|own| Board::open(&segment, place, &lines, own).unwrap());
        let mut list = block(2, roster_bytes(2));
        boards[0].enroll(77, &lines, &mut list);
        let roster = Roster { context: Some(77), members: lines.to_vec() };
        assert_eq!(roster_of(&observed, place), Some(roster));
        assert_eq!(roster_of(&observed, segment.plan().world_board()).unwrap().members.len(), 3);
        let [(first, _), (second, _)] = boards.each_mut().map(|board| board.begin(9));
        assert_eq!(standing_of(&observed, lines[0], first), Standing::NotYet { behind: 0 });
        boards[0].come(first, 9, 0, Bytes::EMPTY);
        assert_eq!(standing_of(&observed, lines[0], first), Standing::Here(9));
        assert_eq!(standing_of(&observed, lines[1], second), Standing::NotYet { behind: 0 });
        boards[0].end(first);
        assert_eq!(standing_of(&observed, lines[0], first), Standing::Past);
        assert_eq!(standing_of(&observed, lines[0], first + 3), Standing::NotYet { behind: 2 });
    }

    #[test]
    fn scribbled_words_lead_nowhere() {
        let segment = segment();
        let observed = observed(&segment);
        let place = segment.plan().board(1, 3);
        for word in [u64::MAX, 1 << 40, segment.plan().heap(1)] {
            segment.long(place + ROSTER).store(word, Ordering::Relaxed);
            for list in [0, u64::MAX, segment.plan().heap(1), segment.plan().heap(2) - 8] {
                segment.long(place + ROSTER + 8).store(list, Ordering::Relaxed);
                assert_eq!(roster_of(&observed, place), None);
            }
        }
        for place in [0, u64::MAX, segment.plan().heap(0), place + 8] {
            assert_eq!(roster_of(&observed, place), None);
        }
        let nowhere = LinesPlace { slot: 0, offset: u64::MAX };
        assert_eq!(standing_of(&observed, nowhere, 1), Standing::NotYet { behind: 0 });
    }
}
