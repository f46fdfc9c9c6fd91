//! Telling others where this member's data lie, and reading data where their members have told that they lie.
//!
//! Data in one piece are told of; others are deposited, and so are all data of a member that another one may not read. A
//! reader takes what it finds: the place of the data, or the data. A read that is refused changes nothing but the way:
//! the reader asks, and the owner deposits the data while it waits for its readers.

use landeck_board::{Board, Came, Exposed, Reader, Told};
use landeck_collectives::{Cells, Readers};
use landeck_memory::{Buffer, Bytes, NoMemory, ReadRefused, room};

use super::deposit::{block_for, place_among, target_in};
use super::take::Taking;
use super::{Around, AtBoard, BlockMemory, BoardError, Result, Stepped};

/// The bytes that a member reads before it looks after other things, at least and at most.
const READ_BYTES_MIN: u64 = 64 << 10;
const READ_BYTES_MAX: u64 = 1 << 20;
/// The bytes that are read at once for a target whose parts lie apart.
const BETWEEN_BYTES: usize = 64 << 10;

/// This member's data, of which it has told.
pub(super) struct OwnData {
    cells: Cells,
    exposed: Exposed,
    /// They have a block on the board, for readers that asked.
    has_block: bool,
}

impl AtBoard {
    /// Nobody reads this member's data from now on. A reader in the middle of a read notices.
    pub(crate) fn hide(&mut self) {
        self.own_data = None;
    }

    pub(super) fn tell<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
    ) -> Result<Stepped> {
        if self.has_come {
            return self.deposit(around, cells, None);
        }
        if !around.board.has_room(self.number) {
            return Ok(Stepped::Waits);
        }
        let Some(data) = tellable(around, cells) else {
            return self.deposit_instead(around, cells);
        };
        let said = (self.signature, self.check);
        let exposed = around.board.come_told(self.number, said, data.bytes());
        self.own_data = exposed.map(|exposed| OwnData { cells, exposed, has_block: false });
        self.has_come = true;
        self.has_deposited(around.board)
    }

    /// Deposits data that others cannot read. This member is a reader all the same.
    fn deposit_instead<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
    ) -> Result<Stepped> {
        let stepped = self.deposit(around, cells, None);
        if self.has_come {
            around.board.begin_reading(self.number);
        }
        stepped
    }

    pub(super) fn read<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        taking: Taking,
    ) -> Result<Stepped> {
        let from = taking.from;
        if !self.has_member_come(around.board, from)? {
            return Ok(Stepped::Waits);
        }
        let Some(told) = around.board.told(from, self.number) else {
            return self.take(around, taking);
        };
        let Taking { deposited, into, .. } = taking;
        let (start, length) = place_among(around.memory, told.bytes(), from, deposited, into)?;
        if length > 0 && around.board.needs_deposit(from, self.number) {
            return Ok(Stepped::Waits);
        }
        let most = (*around.budget).clamp(READ_BYTES_MIN, READ_BYTES_MAX) as usize;
        let end = length.min(self.done + most);
        match read_part(around.memory, told, into, start, self.done..end) {
            Ok(()) => {}
            Err(NotRead::NoMemory(no_memory)) => return Err(no_memory.into()),
            Err(NotRead::Refused(ReadRefused::Unmapped { .. })) => {
                return Err(BoardError::Broken(from));
            }
            Err(NotRead::Refused(refused)) => {
                let is_lasting = !matches!(refused, ReadRefused::Retracted { .. });
                around.board.ask(from, self.number, is_lasting);
                self.done = 0;
                return Ok(Stepped::Waits);
            }
        }
        *around.budget = around.budget.saturating_sub((end - self.done) as u64);
        self.done = end;
        Ok(if end < length { Stepped::Moved } else { Stepped::Over })
    }

    pub(super) fn await_readers<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        readers: Readers,
    ) -> Result<Stepped> {
        around.board.have_read(self.number);
        let Some(OwnData { cells, has_block, .. }) = self.own_data else {
            return Ok(Stepped::Over);
        };
        let is_deposited = has_block && self.done == around.memory.bytes(cells);
        let (is_awaited, is_asked) = self.look_at_readers(around.board, readers, is_deposited);
        if is_asked && !is_deposited {
            return self.deposit_for_readers(around, cells);
        }
        if is_awaited {
            return Ok(Stepped::Waits);
        }
        if let Some(OwnData { exposed, .. }) = self.own_data.take() {
            exposed.close();
        }
        Ok(Stepped::Over)
    }

    /// Whether a reader may still read, and whether one has asked this member. All members before the first that may read
    /// are over.
    fn look_at_readers(
        &mut self,
        board: &mut Board,
        readers: Readers,
        is_deposited: bool,
    ) -> (bool, bool) {
        let own = board.own();
        let (mut is_awaited, mut is_asked) = (false, false);
        let members = (self.seen..board.size()).filter(|&member| member != own);
        for member in members.filter(|&member| readers.contains(member)) {
            let asks = match self.reader(board, member) {
                Reader::Asks { owner, is_lasting } if owner == own => {
                    if is_lasting {
                        board.note_refusal();
                    }
                    true
                }
                _ => false,
            };
            is_asked |= asks;
            let is_served = asks && is_deposited;
            is_awaited |= !is_served && !self.is_reader_over(board, member);
            if !is_awaited && !asks {
                self.seen = member + 1;
            }
        }
        (is_awaited, is_asked)
    }

    fn reader(&self, board: &Board, member: u32) -> Reader {
        match board.came(member, self.number, self.signature) {
            Came::Here => board.reader(member, self.number),
            Came::NotYet | Came::Otherwise(_) => Reader::Reads,
        }
    }

    /// Whether a member reads nothing more of this one's data, or will never come.
    pub(super) fn is_reader_over(&self, board: &Board, member: u32) -> bool {
        matches!(self.reader(board, member), Reader::Done | Reader::Left { .. })
            || board.is_gone(member)
            || board.is_past(member, self.number)
            || self.refuses(board, member)
    }

    /// The error of this member if the owner of data that it reads has left before.
    pub(super) fn owner_left(&self, board: &Board, owner: u32) -> Option<BoardError> {
        board.told(owner, self.number)?;
        match self.reader(board, owner) {
            Reader::Left { gone: Some(member) } if member < board.size() => {
                Some(BoardError::Gone(member))
            }
            Reader::Left { .. } => Some(BoardError::Spoiled(owner)),
            _ => None,
        }
    }

    fn refuses(&self, board: &Board, member: u32) -> bool {
        let refuses = board.refuses(member, self.number);
        refuses && board.came(member, self.number, self.signature) == Came::NotYet
    }

    /// Deposits the next part of this member's data for readers that asked.
    #[cold]
    fn deposit_for_readers<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
    ) -> Result<Stepped> {
        let bytes = around.memory.bytes(cells);
        let Some(own_data) = &mut self.own_data else { return Ok(Stepped::Over) };
        if !own_data.has_block {
            let Some(block) = block_for(around.board, around.allocate, bytes)? else {
                return Ok(Stepped::Waits);
            };
            around.board.deposit_told(self.number, block);
            own_data.has_block = true;
        }
        self.fill(around, cells, None)?;
        around.board.set_filled(self.number, self.done as u64);
        Ok(Stepped::Moved)
    }
}

/// The data of these blocks, if others can read them where they lie: in one piece, of which all know where blocks begin.
fn tellable<M: BlockMemory>(around: &Around<'_, M>, cells: Cells) -> Option<Buffer> {
    if cells.count == 0 || around.memory.bytes(cells) == 0 {
        return Some(Buffer::EMPTY);
    }
    let can_tell = !around.board.is_refused() && !around.memory.has_table();
    around.memory.plain(cells).filter(|_| can_tell)
}

/// The reason why data were not read.
enum NotRead {
    Refused(ReadRefused),
    NoMemory(NoMemory),
}

/// Reads the bytes `range` of a block, which begins at `start` of what was told of, to where they belong among this
/// member's.
fn read_part<M: BlockMemory>(
    memory: &M,
    told: Told,
    into: Cells,
    start: usize,
    range: std::ops::Range<usize>,
) -> std::result::Result<(), NotRead> {
    if let Some(buffer) = memory.plain(into) {
        let target = buffer.part(range.start, range.len());
        return told.read(start + range.start, &target).map_err(NotRead::Refused);
    }
    let area = memory.area(into);
    let mut between = room::zeroes(range.len().min(BETWEEN_BYTES)).map_err(NotRead::NoMemory)?;
    for at in range.clone().step_by(BETWEEN_BYTES) {
        let part = &mut between[..(range.end - at).min(BETWEEN_BYTES)];
        told.read(start + at, &target_in(part)).map_err(NotRead::Refused)?;
        area.write(at as u64, Bytes::from(&*part));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_board::{LinesPlace, Outcome};
    use landeck_collectives::{Action, Store};
    use landeck_kernel::Area;
    use landeck_memory::heap::Heap;
    use landeck_memory::{Segment, SegmentPlan, SlotRecord, SlotState};

    use crate::board::Protocol;
    use crate::scan_scope::ScanScope;

    /// All data of a member in one piece.
    struct Memory(Vec<u8>);

    impl BlockMemory for Memory {
        fn plain(&self, cells: Cells) -> Option<Buffer> {
            self.area(cells).as_buffer()
        }

        fn area(&self, _cells: Cells) -> Area {
            // SAFETY: the tests keep the memory as long as its areas are used.
            Area::contiguous(unsafe { Buffer::of(&self.0) })
        }

        fn bytes(&self, cells: Cells) -> usize {
            if cells.count > 0 { self.0.len() } else { 0 }
        }

        fn has_table(&self) -> bool {
            false
        }
    }

    const BYTES: usize = 100_000;
    const DATA: Cells = Cells::new(Store::Output, 0, 1);
    const NOTHING: Cells = Cells::new(Store::Output, 0, 0);
    const READ: Action = Action::Read { from: 0, told: DATA, into: DATA };
    const LEAVE: Action = Action::AwaitReaders { readers: Readers::Others };

    struct Member {
        board: Board,
        heap: Heap,
        memory: Memory,
        at: AtBoard,
    }

    impl Member {
        fn step(&mut self, action: &Action) -> Result<Stepped> {
            let mut around = Around {
                board: &mut self.board,
                memory: &self.memory,
                operator: None,
                allocate: &mut |bytes| self.heap.allocate(bytes),
                budget: &mut { u64::MAX },
            };
            self.at.step(action, &mut around)
        }

        /// Takes a step until it is over or waits.
        fn steps(&mut self, action: &Action) -> Result<Stepped> {
            loop {
                match self.step(action)? {
                    Stepped::Moved => {}
                    stepped => return Ok(stepped),
                }
            }
        }

        fn verdict(&self, action: &Action) -> Option<BoardError> {
            self.at.verdict(action, &self.board, ScanScope::All)
        }
    }

    /// Three members at a broadcast, of which member 0 has the data; all have come.
    fn members() -> (Segment, [Member; 3]) {
        let plan =
            SegmentPlan { heap_bytes_per_process: 2 << 20, guests: 0, ..SegmentPlan::new(1, 3) };
        let segment = Segment::local(&plan);
        let lines = [0, 1, 2].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        let mut members = [0, 1, 2].map(|own| {
            let memory = Memory(vec![if own == 0 { 7 } else { 0 }; BYTES]);
            let board = Board::open(&segment, segment.plan().world_board(), &lines, own).unwrap();
            let heap = Heap::of(&segment, own).unwrap();
            Member { board, heap, memory, at: AtBoard::default() }
        });
        begin(&mut members);
        (segment, members)
    }

    fn begin(members: &mut [Member; 3]) {
        for (own, member) in members.iter_mut().enumerate() {
            let (number, signature) = member.board.begin(5);
            let protocol = Protocol { in_block: true, ..Protocol::default() };
            member.at.begin(number, signature, 0, protocol);
            let cells = if own == 0 { DATA } else { NOTHING };
            assert_eq!(member.steps(&Action::Tell { cells }), Ok(Stepped::Over));
        }
    }

    fn die(segment: &Segment, member: u32) {
        let record = SlotRecord { state: SlotState::Dead, ..SlotRecord::default() };
        segment.set_slot_record(member, record);
    }

    #[test]
    fn the_owner_leaves_when_all_readers_have_read_and_not_before() {
        let (_segment, mut members) = members();
        let [owner, one, other] = &mut members;
        assert_eq!(owner.step(&LEAVE), Ok(Stepped::Waits));
        for reader in [&mut *one, &mut *other] {
            assert_eq!(reader.steps(&READ), Ok(Stepped::Over));
            assert_eq!(owner.step(&LEAVE), Ok(Stepped::Waits), "it has not said so");
            let over = Action::AwaitReaders { readers: Readers::Nobody };
            assert_eq!(reader.step(&over), Ok(Stepped::Over));
            assert!(reader.memory.0.iter().all(|&byte| byte == 7));
        }
        assert_eq!(owner.step(&LEAVE), Ok(Stepped::Over));
        assert_eq!(owner.board.kept_bytes(), 0, "nothing lies on the board");
    }

    #[test]
    fn a_reader_that_cannot_read_gets_the_data_on_the_board_and_from_then_on_at_once() {
        let (_segment, mut members) = members();
        let [owner, one, other] = &mut members;
        let number = one.at.number();
        one.board.ask(0, number, true);
        assert_eq!(one.steps(&READ), Ok(Stepped::Waits));
        assert_eq!(owner.steps(&LEAVE), Ok(Stepped::Waits), "another one may still read");
        assert_eq!(owner.board.kept_bytes().max(BYTES), owner.board.kept_bytes());
        for reader in [&mut *one, &mut *other] {
            assert_eq!(reader.steps(&READ), Ok(Stepped::Over));
            assert!(reader.memory.0.iter().all(|&byte| byte == 7));
        }
        other.board.have_read(number);
        assert_eq!(owner.steps(&LEAVE), Ok(Stepped::Over), "the data stay on the board");
        members.iter_mut().for_each(|member| member.at.leave(&mut member.board, None));
        begin(&mut members);
        let [owner, one, _] = &mut members;
        assert_eq!(owner.steps(&LEAVE), Ok(Stepped::Over), "it has told of nothing");
        assert_eq!(one.steps(&READ), Ok(Stepped::Over));
    }

    #[test]
    fn the_owner_does_not_wait_for_readers_that_are_gone_or_have_failed() {
        let (segment, mut members) = members();
        let [owner, _, other] = &mut members;
        die(&segment, 1);
        assert_eq!(owner.step(&LEAVE), Ok(Stepped::Waits));
        assert_eq!(owner.verdict(&LEAVE), None);
        other.at.leave(&mut other.board, None);
        assert_eq!(owner.step(&LEAVE), Ok(Stepped::Over));
    }

    #[test]
    fn a_read_of_a_member_that_is_gone_or_has_left_fails() {
        let (segment, mut members) = members();
        let [owner, one, other] = &mut members;
        assert_eq!(one.verdict(&READ), None);
        owner.at.leave(&mut owner.board, None);
        assert_eq!(one.steps(&READ), Ok(Stepped::Waits), "the mark is retracted");
        assert!(one.memory.0.len() == BYTES && other.memory.0.iter().all(|&byte| byte == 0));
        assert_eq!(one.verdict(&READ), Some(BoardError::Spoiled(0)));
        die(&segment, 0);
        assert_eq!(one.verdict(&READ), Some(BoardError::Gone(0)));
        assert_eq!(one.board.outcome(one.at.number()), Outcome::Open);
    }

    #[test]
    fn a_reader_learns_because_of_whom_the_owner_has_left() {
        let (_segment, mut members) = members();
        let [owner, one, _] = &mut members;
        owner.at.leave(&mut owner.board, Some(&BoardError::Gone(2)));
        assert_eq!(one.steps(&READ), Ok(Stepped::Waits));
        assert_eq!(one.verdict(&READ), Some(BoardError::Gone(2)));
    }

    #[test]
    fn data_of_another_length_are_named() {
        let (_segment, mut members) = members();
        let [_, one, _] = &mut members;
        one.memory.0.truncate(BYTES - 1);
        let lengths = BoardError::Lengths { member: 0, theirs: BYTES, ours: BYTES - 1 };
        assert_eq!(one.step(&READ), Err(lengths.clone()));
        let take = Action::Take { from: 0, deposited: DATA, into: DATA, resolved: false };
        assert_eq!(one.step(&take), Err(lengths), "where this member expects a deposit");
    }
}
