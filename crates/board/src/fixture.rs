//! Boards for the tests of this folder.

use landeck_memory::plan::SegmentPlan;
use landeck_memory::segment::Segment;

use super::handle::Board;
use super::place::LinesPlace;

/// A segment, and the board of its first world as each of so many members has it.
pub(super) fn boards(members: u32) -> (Segment, Vec<Board>) {
    let plan =
        SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, members) };
    let segment = Segment::local(&plan);
    let lines: Vec<_> =
        (0..members).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
    let open =
        |own| Board::open(&segment, segment.plan().world_board(), &lines, own).expect("a board");
    let boards = (0..members).map(open).collect();
    (segment, boards)
}
