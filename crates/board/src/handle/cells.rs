//! Handoff buffers, in the code *cells*: what one member deposits for one other member moves in them from member to
//! member.
//!
//! The taker owns a cell from the moment it has read all data in it, and puts its own next deposit there. So a
//! processor writes the lines that it has just read, and half as many lines are in use as if blocks returned to their
//! depositors.
//!
//! The word that announces the deposit gives the cell away; nothing is asked and nothing is sent back. A member without
//! a cell deposits a block of its heap. The cell of a taker that fails, or that never gives, is lost to the others, and
//! a member that is always the root has all cells in the end. Cells belong to the first world, and their memory to the
//! job, so a death changes nothing.
//!
//! A cell can also come back with a result: its taker writes there what it has made of the data, and its depositor owns
//! it again when it has read that. If the operation fails before, the cell is lost, since the other member may still
//! write to it.
//!
//! Others read and write a cell at any time, so it is only ever used through raw pointers ([`Buffer`], [`Bytes`]).

use std::sync::atomic::Ordering;

use landeck_memory::bytes::{Buffer, Bytes};
use landeck_memory::plan::{CELL_BYTES, SegmentPlan};
use landeck_memory::segment::Segment;

use super::Board;
use crate::words::IN_CELL;

/// The handoff buffers that a member owns or still fills.
#[derive(Default)]
pub(crate) struct Cells {
    /// Buffers that it may write to, the one that it has read last at the end.
    held: Vec<u32>,
    /// Buffers that it still fills, and those that are to come back.
    open: Vec<Open>,
}

/// A buffer in use by an operation that its giver still fills or gets back.
struct Open {
    number: u32,
    cell: u32,
    /// Bytes that the buffer will hold.
    length: usize,
    comes_back: bool,
}

impl Cells {
    /// The buffers that a member of the first world owns at first.
    pub(crate) fn of_member(plan: &SegmentPlan, member: u32) -> Self {
        let each = plan.cells_each();
        let held = (member * each..(member + 1) * each).rev().collect();
        Self { held, open: Vec::new() }
    }

    /// Records that so many bytes of its deposit for an operation are present.
    #[inline]
    pub(crate) fn are_filled(&mut self, number: u32, bytes: usize) {
        self.open.retain(|open| open.number != number || bytes < open.length || open.comes_back);
    }

    /// Ends the member's use of an operation's buffers, whatever it has brought.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) {
        if !self.open.is_empty() {
            self.open.retain(|open| open.number != number);
        }
    }

    fn has(&self, cell: u32) -> bool {
        self.held.contains(&cell) || self.open.iter().any(|open| open.cell == cell)
    }
}

impl Board {
    /// Comes to an operation with `length` bytes that one other member takes, in a cell: `write` puts the first
    /// `filled` of them there. This member owns a cell that `comes_back` again after [`Board::take_back`]. False, and
    /// nothing has happened, if this member has no cell for them.
    #[inline]
    pub fn come_in_cell(
        &mut self,
        number: u32,
        (signature, check): (u32, u32),
        (length, filled, comes_back): (usize, usize, bool),
        write: impl FnOnce(Buffer),
    ) -> bool {
        if length > CELL_BYTES as usize {
            return false;
        }
        let Some(cell) = self.cells.held.pop() else { return false };
        let Some(room) = self.room_of(cell) else { return false };
        write(room.part(0, filled.min(length)));
        if filled < length || comes_back {
            self.cells.open.push(Open { number, cell, length, comes_back });
        }
        self.come_where(number, (signature, check), (IN_CELL, cell.into()), (length, filled));
        true
    }

    /// Returns the cell that this member fills in an operation, or that is to come back.
    #[inline]
    pub(crate) fn open_cell(&self, number: u32) -> Option<Buffer> {
        let open = self.cells.open.iter().find(|open| open.number == number)?;
        Some(self.room_of(open.cell)?.part(0, open.length))
    }

    /// Returns this member's deposit in a cell that comes back, with the results that were put there since.
    #[inline]
    pub fn coming_back(&self, number: u32) -> Option<Bytes<'_>> {
        let open = self.cells.open.iter().find(|open| open.number == number && open.comes_back)?;
        self.cell_bytes(open.cell.into(), open.length as u64)
    }

    /// Takes back the cell of an operation, after all results in it were read.
    #[inline]
    pub fn take_back(&mut self, number: u32) {
        let is_it = |open: &Open| open.number == number && open.comes_back;
        if let Some(at) = self.cells.open.iter().position(is_it) {
            let cell = self.cells.open.swap_remove(at).cell;
            self.cells.held.push(cell);
        }
    }

    /// Writes a part of a result over the data that it was made of, from `start` of a member's deposit on: they lie in
    /// a cell that comes back, and no member reads that part of them any more. False, and nothing has happened, if they
    /// lie elsewhere.
    #[inline]
    pub fn put_back(&self, member: u32, number: u32, start: usize, bytes: Bytes<'_>) -> bool {
        let line = self.line(member, number);
        let is_in_cell = line.about.load(Ordering::Relaxed) as u32 == IN_CELL;
        let [cell, length] = [0, 1].map(|at: usize| line.data[at].load(Ordering::Relaxed));
        let Ok(cell) = u32::try_from(cell) else { return false };
        let Some(room) = self.room_of(cell).filter(|_| is_in_cell && length <= CELL_BYTES) else {
            return false;
        };
        room.part(0, length as usize).write(start, bytes);
        true
    }

    /// Takes over the cell of a member's deposit, if it lies in one, after this member alone has taken all of it.
    #[inline]
    pub fn take_over(&mut self, member: u32, number: u32) {
        let line = self.line(member, number);
        let is_in_cell = line.about.load(Ordering::Relaxed) as u32 == IN_CELL;
        let cell = line.data[0].load(Ordering::Relaxed);
        // Overwritten words must not give a buffer twice.
        if is_in_cell && cell < u64::from(self.segment().plan().board_cells()) && self.has_cells {
            let cell = cell as u32;
            if !self.cells.has(cell) {
                self.cells.held.push(cell);
            }
        }
    }

    /// Returns the first bytes of a cell.
    pub(crate) fn cell_bytes(&self, cell: u64, length: u64) -> Option<Bytes<'_>> {
        let room = self.room_of(u32::try_from(cell).ok()?).filter(|_| length <= CELL_BYTES)?;
        Some(room.part(0, length as usize).bytes())
    }

    /// Returns the memory of a cell, if there is one with this number.
    #[inline]
    fn room_of(&self, cell: u32) -> Option<Buffer> {
        let plan = self.segment().plan();
        let place = || self.segment().place(plan.cell(cell), CELL_BYTES);
        // SAFETY: the cell lies in the segment, which stays mapped while this board lives. All uses of a cell go
        // through raw pointers, so bytes that another process writes meanwhile are wrong data and no more.
        (cell < plan.board_cells()).then(|| unsafe { Buffer::new(place(), CELL_BYTES as usize) })
    }
}

/// Whether the board with shared words at this place has cells.
pub(crate) fn are_there(segment: &Segment, shared: u64) -> bool {
    shared == segment.plan().world_board() && segment.plan().board_cells() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::boards;
    use crate::words::IN_HEAP;
    use crate::{Came, Deposit, LinesPlace};

    const SIGNATURE: u32 = 3;

    /// Writes `value` from `start` on.
    fn fill(room: &Buffer, start: usize, value: u8) {
        room.write(start, Bytes::from(&vec![value; room.len() - start][..]));
    }

    /// One member lays so many bytes down, another one takes them.
    fn hand_over(boards: &mut [Board], from: usize, to: usize, value: u8, bytes: usize) -> bool {
        let number = boards.iter_mut().map(|board| board.begin(SIGNATURE).0).max().unwrap();
        assert!(boards[from].has_room(number));
        let write = |room: Buffer| fill(&room, 0, value);
        let came =
            boards[from].come_in_cell(number, (SIGNATURE, 0), (bytes, bytes / 2, false), write);
        if came {
            fill(&boards[from].kept(number).unwrap(), bytes / 2, value);
            boards[from].set_filled(number, bytes as u64);
            assert_eq!(boards[to].came(from as u32, number, SIGNATURE), Came::Here);
            let Ok(Deposit::Block { bytes: there, filled, .. }) =
                boards[to].deposit(from as u32, number)
            else {
                panic!("they lie in a cell")
            };
            assert_eq!((there.len(), filled), (bytes, bytes));
            assert!(there.to_vec().iter().all(|&byte| byte == value));
            assert!(boards[from].kept(number).is_none(), "it was given");
            boards[to].take_over(from as u32, number);
        }
        boards.iter_mut().for_each(|board| board.end(number));
        came
    }

    #[test]
    fn a_member_lays_down_next_in_the_cell_that_it_has_read_last() {
        let (segment, mut boards) = boards(3);
        let each = segment.plan().cells_each() as usize;
        let held = |boards: &[Board]| [0, 1, 2].map(|at: usize| boards[at].cells.held.clone());
        let before = held(&boards);
        assert!(before.iter().all(|cells| cells.len() == each));
        assert!(hand_over(&mut boards, 0, 1, 7, 60_000));
        assert_eq!(boards[1].cells.held.last(), before[0].last());
        assert!(hand_over(&mut boards, 1, 2, 8, CELL_BYTES as usize));
        assert!(hand_over(&mut boards, 2, 0, 9, 3_000));
        assert_eq!(held(&boards), before, "it has gone round");
        let mut all = before.concat();
        all.sort_unstable();
        assert!((0..).zip(&all).all(|(number, cell)| number == *cell), "each is one member's");
    }

    #[test]
    fn a_member_that_always_takes_has_all_cells_and_its_peer_says_it_has_none() {
        let (segment, mut boards) = boards(2);
        let each = segment.plan().cells_each();
        for _ in 0..each {
            assert!(hand_over(&mut boards, 1, 0, 1, 2_000));
        }
        assert!(!hand_over(&mut boards, 1, 0, 1, 2_000));
        assert_eq!(boards[0].cells.held.len() as u32, segment.plan().board_cells());
        assert!(!hand_over(&mut boards, 0, 1, 1, CELL_BYTES as usize + 1), "longer than a cell");
        assert!(hand_over(&mut boards, 0, 1, 1, 2_000) && hand_over(&mut boards, 1, 0, 1, 2_000));
    }

    /// Lays `bytes` bytes down in a cell that comes back; all but the last one are there at first.
    fn lend(board: &mut Board, bytes: usize) -> Option<u32> {
        let number = board.begin(SIGNATURE).0;
        let lengths = (bytes, bytes - 1, true);
        let came = board.come_in_cell(number, (SIGNATURE, 0), lengths, |room| fill(&room, 0, 1));
        came.then(|| {
            fill(&board.kept(number).unwrap(), bytes - 1, 1);
            board.set_filled(number, bytes as u64);
            number
        })
    }

    #[test]
    fn a_lent_cell_is_its_givers_again_with_the_data_put_there() {
        let (segment, mut boards) = boards(2);
        let before = boards[0].cells.held.clone();
        let number = lend(&mut boards[0], 4_000).unwrap();
        assert_eq!(boards[0].cells.held[..], before[..before.len() - 1]);
        assert!(boards[1].put_back(0, number, 1_000, Bytes::from(&[7; 500][..])));
        assert!(boards[1].put_back(0, number, 3_900, Bytes::from(&[8; 500][..])), "cut at its end");
        let back = boards[0].coming_back(number).unwrap().to_vec();
        let expected = [vec![1; 1_000], vec![7; 500], vec![1; 2_400], vec![8; 100]].concat();
        assert_eq!(back, expected);
        let room = boards[0].room_of(*before.last().unwrap()).unwrap();
        let behind = room.part(4_000, 400).bytes().to_vec();
        assert!(behind.iter().all(|&byte| byte == 0), "nothing is written behind it");
        boards[0].take_back(number);
        boards[0].take_back(number);
        assert_eq!(boards[0].cells.held, before, "once");
        boards[0].end(number);
        assert!(boards[0].coming_back(number).is_none() && boards[0].kept(number).is_none());
        assert_eq!(boards[1].cells.held.len() as u32, segment.plan().cells_each(), "never theirs");
    }

    #[test]
    fn a_cell_not_taken_back_is_missed_as_its_receiver_may_still_write_to_it() {
        let (segment, mut boards) = boards(2);
        let number = lend(&mut boards[0], 4_000).unwrap();
        boards[0].end(number);
        boards[0].take_back(number);
        assert_eq!(boards[0].cells.held.len() as u32, segment.plan().cells_each() - 1);
        assert!(boards[0].coming_back(number).is_none());
    }

    #[test]
    fn nothing_is_put_back_where_no_cell_can_be_or_the_data_lie_elsewhere() {
        let (segment, mut boards) = boards(2);
        let number = lend(&mut boards[0], 4_000).unwrap();
        let result = [9; 100];
        for (word, value) in [(0, u64::from(segment.plan().board_cells())), (1, CELL_BYTES + 1)] {
            let line = boards[0].own_line(number);
            let said = line.data[word].swap(value, Ordering::Relaxed);
            assert!(!boards[1].put_back(0, number, 0, Bytes::from(&result[..])), "{value}");
            boards[0].own_line(number).data[word].store(said, Ordering::Relaxed);
        }
        assert!(boards[1].put_back(0, number, 0, Bytes::from(&result[..])));
        boards[0].own_line(number).about.store(u64::from(IN_HEAP), Ordering::Relaxed);
        assert!(!boards[1].put_back(0, number, 0, Bytes::from(&result[..])));
    }

    #[test]
    fn a_cell_that_nobody_takes_is_given_all_the_same() {
        let (segment, mut boards) = boards(2);
        for filled in [10, 4_000] {
            let number = boards[0].begin(SIGNATURE).0;
            let came =
                boards[0].come_in_cell(number, (SIGNATURE, 0), (4_000, filled, false), |_| {});
            assert_eq!((came, boards[0].kept(number).is_some()), (true, filled < 4_000));
            boards[0].end(number);
            assert!(boards[0].kept(number).is_none());
        }
        assert_eq!(boards[0].cells.held.len() as u32, segment.plan().cells_each() - 2);
    }

    #[test]
    fn words_that_were_overwritten_give_no_cell_twice_and_none_that_cannot_be() {
        let (segment, mut boards) = boards(2);
        let number = boards[1].begin(SIGNATURE).0;
        let own = *boards[0].cells.held.last().unwrap();
        for cell in [u64::from(own), u64::from(segment.plan().board_cells()), u64::MAX] {
            let line = boards[1].own_line(number);
            line.about.store(u64::from(IN_CELL), Ordering::Relaxed);
            line.data[0].store(cell, Ordering::Relaxed);
            line.data[1].store(CELL_BYTES, Ordering::Relaxed);
            line.publish(number, SIGNATURE);
            boards[0].take_over(1, number);
            assert_eq!(boards[0].cells.held.len() as u32, segment.plan().cells_each());
            assert_eq!(boards[0].deposit(1, number).is_ok(), cell == u64::from(own));
        }
        boards[1].own_line(number).data[0].store(u64::from(own), Ordering::Relaxed);
        boards[1].own_line(number).data[1].store(CELL_BYTES + 1, Ordering::Relaxed);
        assert!(boards[0].deposit(1, number).is_err(), "longer than a cell");
    }

    #[test]
    fn other_groups_have_none() {
        let (segment, _boards) = boards(2);
        let lines: Vec<LinesPlace> =
            (0..2).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
        let place = segment.plan().board(0, 1);
        let mut board = Board::open(&segment, place, &lines, 0).unwrap();
        let number = board.begin(SIGNATURE).0;
        assert!(!board.come_in_cell(number, (SIGNATURE, 0), (3_000, 3_000, false), |_| {}));
        assert!(!are_there(&Segment::local(&SegmentPlan::new(1, 1)), segment.plan().world_board()));
    }
}
