//! Telling others where this member's data lie, and reading data where their members have told that they lie.
//!
//! Data in one piece are told of; others are deposited, and so are all data of a member that another one may not read. A
//! reader takes what it finds: the place of the data, or the data. A read that is refused changes nothing but the way:
//! the reader asks, and the owner deposits the data whenever it waits, for its readers or for what it reads itself. So
//! members that may not read each other do not wait for one another.
//!
//! A member that combines reads the data of others piece by piece into memory of its own. Where it makes a part of the result for all, the
//! others read that where it makes it.

use landeck_board::{Board, Came, Deposit, Exposed, Leave, Reader, Told};
use landeck_collectives::{Cells, Readers, Store};
use landeck_memory::{Buffer, Bytes, NoMemory, ReadRefused, room};

use super::Taking;
use super::deposit::{block_for, place_among, target_in};
use super::{Around, AtBoard, BlockMemory, BoardError, Result, Stepped};

/// The bytes that a member reads before it looks after other things, at least and at most.
const READ_BYTES_MIN: u64 = 64 << 10;
const READ_BYTES_MAX: u64 = 1 << 20;
/// The bytes that are read at once for a target whose parts lie apart.
const BETWEEN_BYTES: usize = 64 << 10;
/// The bytes that are read to be combined at once: of one member, and of all together. They stay in a cache near the
/// processor.
const COMBINED_BYTES_MAX: usize = 64 << 10;
const COMBINED_BYTES_OF_ALL: usize = 256 << 10;

/// This member's data, of which it has told.
pub(super) struct OwnData {
    cells: Cells,
    /// The block that nobody else needs: its place in a deposit is that of the part of the result.
    except: Option<u32>,
    exposed: Exposed,
    /// How many of them are in a block on the board, for readers that asked; none if there is no block.
    deposited: Option<usize>,
    /// How much of this member's part of the result is there.
    resolved: usize,
}

/// The data of others that were read to be combined: as many bytes of each member.
#[derive(Default)]
pub(super) struct ReadParts {
    bytes: Vec<u8>,
    members: Vec<u32>,
}

impl ReadParts {
    /// Forgets all of them.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.members.clear();
    }

    /// The bytes of a member, if they were read.
    pub(super) fn of(&self, member: u32) -> Option<Bytes<'_>> {
        let at = self.members.iter().position(|&of| of == member)?;
        let each = self.bytes.len() / self.members.len();
        Some(Bytes::from(&self.bytes[at * each..(at + 1) * each]))
    }
}

/// How many bytes of each of so many members are read at once to be combined.
pub(super) fn combined_bytes(members: u32) -> u64 {
    (COMBINED_BYTES_OF_ALL / members.max(1) as usize).min(COMBINED_BYTES_MAX) as u64
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
        except: Option<u32>,
    ) -> Result<Stepped> {
        if self.has_come {
            return self.deposit(around, cells, except);
        }
        if !around.board.has_room(self.number) {
            return Ok(Stepped::Waits);
        }
        let own_result = except.filter(|_| self.protocol.resolves).map(result_of);
        let result = own_result.map_or(Some(Buffer::EMPTY), |cells| piece_of(around.memory, cells));
        let Some((data, result)) = tellable(around, cells).zip(result) else {
            return self.deposit_instead(around, cells, except);
        };
        let (said, told) = ((self.signature, self.check), (data.bytes(), result.bytes()));
        let exposed = around.board.come_told(self.number, said, told);
        let own_data = |exposed| OwnData { cells, except, exposed, deposited: None, resolved: 0 };
        self.own_data = exposed.map(own_data);
        self.has_come = true;
        self.has_deposited(around.board)
    }

    /// Deposits data that others cannot read. This member is a reader all the same.
    fn deposit_instead<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
        except: Option<u32>,
    ) -> Result<Stepped> {
        let stepped = self.deposit(around, cells, except);
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
        let Taking { from, deposited, into, resolved } = taking;
        self.takes_nothing = around.memory.bytes(into) == 0;
        if !self.has_member_come(around.board, from)? {
            return Ok(Stepped::Waits);
        }
        let Some((told, there)) = told_of(around.board, self.number, taking) else {
            return self.take(around, taking);
        };
        let among = if resolved { into } else { deposited };
        let (start, length) = place_among(around.memory, told.bytes(), from, among, into)?;
        if length > 0 && around.board.needs_deposit(from, self.number) {
            return Ok(Stepped::Waits);
        }
        let most = (*around.budget).clamp(READ_BYTES_MIN, READ_BYTES_MAX) as usize;
        let end = length.min(there).min(self.done + most);
        if end <= self.done && length > 0 {
            return Ok(Stepped::Waits);
        }
        let read = match length {
            0 => Ok(()), // Whether its owner is there or not.
            _ => read_part(around.memory, told, into, start, self.done..end),
        };
        match read {
            Ok(()) => {}
            Err(NotRead::NoMemory(no_memory)) => return Err(no_memory.into()),
            Err(NotRead::Refused(refused)) => {
                ask(around.board, self.number, from, refused)?;
                self.done = 0;
                return Ok(Stepped::Waits);
            }
        }
        *around.budget = around.budget.saturating_sub((end - self.done) as u64);
        self.done = end;
        Ok(if end < length { Stepped::Moved } else { Stepped::Over })
    }

    /// Reads so many bytes of all these members that have told of their data, from `start` of these on. False if one of
    /// them could not be read: then this member has asked for its data.
    pub(super) fn read_others(
        &mut self,
        board: &mut Board,
        members: u32,
        (start, length): (usize, usize),
    ) -> Result<bool> {
        let ReadParts { bytes, members: read } = &mut self.read_parts;
        read.clear();
        let tells =
            |&member: &u32| member != board.own() && board.told(member, self.number).is_some();
        read.extend((0..members).filter(tells));
        room::resize(bytes, read.len() * length)?;
        for (target, &member) in bytes.chunks_exact_mut(length.max(1)).zip(&*read) {
            let Some(told) = board.told(member, self.number) else { continue };
            if let Err(refused) = told.read(start, &target_in(target)) {
                ask(board, self.number, member, refused)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes how much of this member's part of the result is there. Returns whether others read it where it was made.
    pub(super) fn shows_result(&mut self, bytes: usize) -> bool {
        let Some(own_data) = &mut self.own_data else { return false };
        own_data.resolved = bytes;
        own_data.deposited.is_none()
    }

    pub(super) fn await_readers(
        &mut self,
        board: &mut Board,
        memory: &impl BlockMemory,
        readers: Readers,
    ) -> Stepped {
        board.have_read(self.number);
        let Some(own_data) = &self.own_data else { return Stepped::Over };
        let is_deposited = own_data.deposited == Some(memory.bytes(own_data.cells));
        while self.seen < board.size() {
            let reader = self.seen;
            let is_awaited = reader != board.own() && readers.contains(reader);
            if is_awaited && !self.is_reader_over(board, reader) {
                let asked = is_deposited && asks(self.reader(board, reader), board.own());
                if !asked {
                    return Stepped::Waits;
                }
            }
            self.seen += 1;
        }
        if let Some(OwnData { exposed, .. }) = self.own_data.take() {
            exposed.close();
        }
        Stepped::Over
    }

    /// While this member waits: deposits the next part of its data if a reader has asked for them.
    pub(super) fn serve<M: BlockMemory>(&mut self, around: &mut Around<'_, M>) -> Result<Stepped> {
        let Some(own_data) = &self.own_data else { return Ok(Stepped::Waits) };
        let is_wanted = match own_data.deposited {
            Some(bytes) => bytes < around.memory.bytes(own_data.cells),
            None => self.is_asked(around.board),
        };
        if is_wanted { self.deposit_for_readers(around) } else { Ok(Stepped::Waits) }
    }

    /// Whether a reader has asked this member for its data.
    fn is_asked(&self, board: &mut Board) -> bool {
        let own = board.own();
        let mut is_asked = false;
        for member in (0..board.size()).filter(|&member| member != own) {
            let reader = self.reader(board, member);
            is_asked |= asks(reader, own);
            if reader == (Reader::Asks { owner: own, is_lasting: true }) {
                board.note_refusal();
            }
        }
        is_asked
    }

    fn reader(&self, board: &Board, member: u32) -> Reader {
        match board.came(member, self.number, self.signature) {
            Came::Here => board.reader(member, self.number),
            Came::NotYet | Came::Otherwise(_) => Reader::Reads,
        }
    }

    /// Whether a member reads nothing more of this one's data, or will never come.
    pub(super) fn is_reader_over(&self, board: &Board, member: u32) -> bool {
        matches!(self.reader(board, member), Reader::Done | Reader::Left(_))
            || board.is_gone(member)
            || board.is_past(member, self.number)
            || self.refuses(board, member)
    }

    /// The error of this member if the owner of data that it reads has left before they were all there.
    pub(super) fn owner_left(&self, board: &Board, owner: u32) -> Option<BoardError> {
        let is_all_there = match board.deposit(owner, self.number) {
            Ok(Deposit::Inline { .. }) => true,
            Ok(Deposit::Block { bytes, filled, .. }) => filled >= bytes.len(),
            Err(_) => false,
        };
        match self.reader(board, owner) {
            Reader::Left(_) if is_all_there => None,
            Reader::Left(Leave::Gone(member)) if member < board.size() => {
                Some(BoardError::Gone(member))
            }
            Reader::Left(Leave::NoRoom(member)) if member < board.size() => {
                Some(BoardError::NoRoom(member))
            }
            Reader::Left(_) => Some(BoardError::Spoiled(owner)),
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
    ) -> Result<Stepped> {
        let Some(OwnData { cells, except, deposited, resolved, .. }) = self.own_data else {
            return Ok(Stepped::Waits);
        };
        let deposited = match deposited {
            Some(deposited) => deposited,
            None => {
                let bytes = around.memory.bytes(cells);
                let Some(block) = block_for(around.board, around.allocate, bytes)? else {
                    return Ok(Stepped::Waits);
                };
                around.board.deposit_told(self.number, block);
                if let Some(except) = except.filter(|_| resolved > 0) {
                    self.deposit_result(around, cells, except, resolved)?;
                }
                0
            }
        };
        // What the current step has done stays as it is.
        let done = std::mem::replace(&mut self.done, deposited);
        let filled = self.fill(around, cells, except);
        let deposited = std::mem::replace(&mut self.done, done);
        filled?;
        if let Some(own_data) = &mut self.own_data {
            own_data.deposited = Some(deposited);
        }
        around.board.set_filled(self.number, deposited as u64);
        around.board.wake();
        Ok(Stepped::Moved)
    }

    /// Deposits as much of this member's part of the result as is there.
    fn deposit_result<M: BlockMemory>(
        &self,
        around: &mut Around<'_, M>,
        cells: Cells,
        except: u32,
        resolved: usize,
    ) -> Result<()> {
        let own = around.board.own();
        let result = piece_of(around.memory, result_of(except)).ok_or(BoardError::Broken(own))?;
        let start = around.memory.bytes(Cells { count: except - cells.first, ..cells });
        let kept = around.board.kept(self.number).ok_or(BoardError::Broken(own))?;
        kept.write(start, result.bytes().part(0, resolved));
        Ok(())
    }
}

/// The blocks in which a member makes its part of a result.
const fn result_of(block: u32) -> Cells {
    Cells::new(Store::Output, block, 1)
}

/// Whether a reader asks this member for its data.
fn asks(reader: Reader, own: u32) -> bool {
    matches!(reader, Reader::Asks { owner, .. } if owner == own)
}

/// Where the blocks lie of which a step takes some, and how many bytes of these are there; none if they are on the board.
fn told_of(board: &Board, number: u32, taking: Taking) -> Option<(Told, usize)> {
    match taking.resolved {
        true => board.told_result(taking.from, number),
        false => board.told(taking.from, number).map(|told| (told, usize::MAX)),
    }
}

/// Asks a member for data that could not be read.
#[cold]
fn ask(board: &mut Board, number: u32, owner: u32, refused: ReadRefused) -> Result<()> {
    if matches!(refused, ReadRefused::Unmapped { .. }) {
        return Err(BoardError::Broken(owner));
    }
    let is_lasting = !matches!(refused, ReadRefused::Retracted { .. });
    board.ask(owner, number, is_lasting);
    Ok(())
}

/// The data of these blocks, if others can read them where they lie: in one piece, of which all know where blocks begin.
fn tellable<M: BlockMemory>(around: &Around<'_, M>, cells: Cells) -> Option<Buffer> {
    if cells.count == 0 || around.memory.bytes(cells) == 0 {
        return Some(Buffer::EMPTY);
    }
    let can_tell = !around.board.is_refused() && !around.memory.has_table();
    piece_of(around.memory, cells).filter(|_| can_tell)
}

/// Where blocks lie, if they lie in one piece.
fn piece_of<M: BlockMemory>(memory: &M, cells: Cells) -> Option<Buffer> {
    memory.plain(cells).or_else(|| memory.area(cells).as_buffer())
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
    if let Some(buffer) = piece_of(memory, into) {
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
    use landeck_collectives::Action;
    use landeck_kernel::Area;
    use landeck_memory::heap::{Heap, HeapFull};
    use landeck_memory::{ProcessMark, Segment, SegmentPlan, SlotRecord, SlotState};

    use std::sync::{Mutex, MutexGuard, PoisonError};

    use crate::board::Protocol;
    use crate::board::scan_scope::ScanScope;

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
    const READ: Action = Action::Read { from: 0, told: DATA, into: DATA, resolved: false };
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

    /// The segment of a test. The mark of this process is for all tests, so they take turns.
    struct Place {
        segment: Segment,
        _turn: MutexGuard<'static, ()>,
    }

    static TURN: Mutex<()> = Mutex::new(());

    /// Three members at a broadcast, of which member 0 has the data; all have come.
    fn members() -> (Place, [Member; 3]) {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
        (Place { segment, _turn: turn }, members)
    }

    fn begin(members: &mut [Member; 3]) {
        for (own, member) in members.iter_mut().enumerate() {
            let (number, signature) = member.board.begin(5);
            let protocol = Protocol { in_block: true, ..Protocol::default() };
            member.at.begin(number, signature, 0, protocol);
            let cells = if own == 0 { DATA } else { NOTHING };
            let tell = Action::Tell { cells, except: None };
            assert_eq!(member.steps(&tell), Ok(Stepped::Over));
        }
    }

    fn die(segment: &Segment, member: u32) {
        let record = SlotRecord { state: SlotState::Dead, ..SlotRecord::default() };
        segment.set_slot_record(member, record);
    }

    #[test]
    fn the_owner_leaves_when_all_readers_have_read_and_not_before() {
        let (_place, mut members) = members();
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
        let (_place, mut members) = members();
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
        let (place, mut members) = members();
        let [owner, _, other] = &mut members;
        die(&place.segment, 1);
        assert_eq!(owner.step(&LEAVE), Ok(Stepped::Waits));
        assert_eq!(owner.verdict(&LEAVE), None);
        other.at.leave(&mut other.board, None);
        assert_eq!(owner.step(&LEAVE), Ok(Stepped::Over));
    }

    #[test]
    fn a_read_of_a_member_that_is_gone_or_has_left_fails() {
        let (place, mut members) = members();
        let [owner, one, other] = &mut members;
        assert_eq!(one.verdict(&READ), None);
        owner.at.leave(&mut owner.board, None);
        assert_eq!(one.steps(&READ), Ok(Stepped::Waits), "the mark is retracted");
        assert!(one.memory.0.len() == BYTES && other.memory.0.iter().all(|&byte| byte == 0));
        assert_eq!(one.verdict(&READ), Some(BoardError::Spoiled(0)));
        die(&place.segment, 0);
        assert_eq!(one.verdict(&READ), Some(BoardError::Gone(0)));
        assert_eq!(one.board.outcome(one.at.number()), Outcome::Open);
    }

    /// Another process may have overwritten that it has left.
    #[test]
    fn an_owner_that_is_past_is_not_waited_for_whatever_its_words_say() {
        let (_place, mut members) = members();
        let [owner, one, _] = &mut members;
        assert_eq!(one.verdict(&READ), None);
        owner.board.end(owner.at.number());
        assert_eq!(one.verdict(&READ), Some(BoardError::Spoiled(0)));
    }

    #[test]
    fn a_reader_learns_because_of_whom_the_owner_has_left() {
        let (_place, mut members) = members();
        let [owner, one, _] = &mut members;
        owner.at.leave(&mut owner.board, Some(&BoardError::Gone(2)));
        assert_eq!(one.steps(&READ), Ok(Stepped::Waits));
        assert_eq!(one.verdict(&READ), Some(BoardError::Gone(2)));
    }

    #[test]
    fn a_reader_learns_that_the_owner_or_another_one_had_no_memory() {
        for (error, member) in [
            (BoardError::Heap(HeapFull { wanted: 1, in_use: 0, limit: 0 }), 0),
            (BoardError::NoRoom(1), 1),
        ] {
            let (_place, mut members) = members();
            let [owner, _, other] = &mut members;
            owner.at.leave(&mut owner.board, Some(&error));
            assert_eq!(other.steps(&READ), Ok(Stepped::Waits));
            assert_eq!(other.verdict(&READ), Some(BoardError::NoRoom(member)));
        }
    }

    /// Whether the step of member 1 fails that takes a result of member 0, which was through before it was looked at again.
    fn fails_behind_its_maker(come: &Action, result: &Action) -> bool {
        let (_place, mut members) = members();
        for member in &mut members {
            member.memory.0.clear();
            member.at.leave(&mut member.board, None);
        }
        let [maker, taker, _] = &mut members;
        for member in [&mut *maker, &mut *taker] {
            let (number, signature) = member.board.begin(5);
            let protocol =
                Protocol { in_block: true, resolves: true, tells: true, ..Protocol::default() };
            member.at.begin(number, signature, 0, protocol);
        }
        assert_eq!(taker.steps(come), Ok(Stepped::Over));
        assert_eq!(taker.steps(result), Ok(Stepped::Waits));
        assert_eq!(maker.steps(come), Ok(Stepped::Over));
        maker.at.leave(&mut maker.board, None);
        ProcessMark::retract(); // as if it had ended
        taker.verdict(result).is_some() || taker.steps(result) != Ok(Stepped::Over)
    }

    #[test]
    fn a_member_that_is_through_without_bytes_is_not_missed_before_others_come() {
        let (_place, mut members) = members();
        for member in &mut members {
            member.memory.0.clear();
            member.at.leave(&mut member.board, None);
            let (number, signature) = member.board.begin(5);
            let protocol = Protocol { in_block: true, tells: true, ..Protocol::default() };
            member.at.begin(number, signature, 0, protocol);
        }
        let [root, through, _] = &mut members;
        let tell = Action::Tell { cells: DATA, except: None };
        for member in [&mut *root, &mut *through] {
            assert_eq!(member.steps(&tell), Ok(Stepped::Over));
        }
        through.at.leave(&mut through.board, None);
        let combine = Action::CombineDeposits { members: 3, deposited: DATA, into: DATA };
        assert_eq!(root.steps(&combine), Ok(Stepped::Waits));
        assert_eq!(root.verdict(&combine), None);
    }

    #[test]
    fn a_result_of_no_bytes_is_not_missed() {
        let read = Action::Read { from: 0, told: DATA, into: DATA, resolved: true };
        let take = Action::Take { from: 0, deposited: DATA, into: DATA, resolved: true };
        let [tell, deposit] = [
            Action::Tell { cells: DATA, except: Some(0) },
            Action::Deposit { cells: DATA, except: Some(0) },
        ];
        assert!(!fails_behind_its_maker(&tell, &read));
        assert!(!fails_behind_its_maker(&deposit, &take));
    }

    #[test]
    fn data_of_another_length_are_named() {
        let (_place, mut members) = members();
        let [_, one, _] = &mut members;
        one.memory.0.truncate(BYTES - 1);
        let lengths = BoardError::Lengths { member: 0, theirs: BYTES, ours: BYTES - 1 };
        assert_eq!(one.step(&READ), Err(lengths.clone()));
        let take = Action::Take { from: 0, deposited: DATA, into: DATA, resolved: false };
        assert_eq!(one.step(&take), Err(lengths), "where this member expects a deposit");
    }
}
