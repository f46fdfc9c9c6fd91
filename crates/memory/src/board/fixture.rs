//! Boards for the tests of this folder.

use super::handle::Board;
use crate::plan::SegmentPlan;
use crate::segment::Segment;

/// A segment, and the board of its first world as each of so many members has it.
pub(super) fn boards(members: u32) -> (Segment, Vec<Board>) {
    let plan =
        SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, members) };
    let segment = Segment::local(&plan);
    let lines: Vec<_> = (0..members).map(|slot| segment.world_lines(slot)).collect();
    let open = |own| Board::open(&segment, segment.world_board(), &lines, own).expect("a board");
    let boards = (0..members).map(open).collect();
    (segment, boards)
}
