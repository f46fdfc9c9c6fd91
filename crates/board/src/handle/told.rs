//! Data that stay in their member's memory: its line tells where they lie, and others read them there.
//!
//! Each member of such an operation comes with a line that has a word more: how far this member is as a reader. The
//! owner of the data leaves when all its readers have said that they read nothing more. A reader that may not read asks
//! for the data by the same word. Then the owner deposits them in a block that its line names from then on.
//!
//! A member may also tell where a result will lie that it makes of the data of all. It says how much of it is there by the
//! word that says so of a result in a deposit.
//!
//! An owner that leaves earlier, whatever the reason, retracts its mark. So a reader in the middle of a read notices.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use landeck_memory::bytes::{Buffer, Bytes};
use landeck_memory::heap::Block;
use landeck_memory::process_memory::allow_readers;
use landeck_memory::{ProcessMark, ReadRefused, RemoteBytes};

use super::Board;
use crate::words::{IN_HEAP, Line, LongLine, READER, TOLD, WINDOW};

/// The place of a member's data in its own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    mark: ProcessMark,
    place: RemoteBytes,
}

impl Told {
    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.place.length).unwrap_or(usize::MAX)
    }

    /// Fills `target` with the bytes from number `start` on.
    ///
    /// # Errors
    /// [`ReadRefused`]. Then the target has any content. A place that has not so many bytes is unmapped.
    pub fn read(&self, start: usize, target: &Buffer) -> Result<(), ReadRefused> {
        let end = (start as u64).checked_add(target.len() as u64);
        if end.is_none_or(|end| end > self.place.length) {
            return Err(ReadRefused::Unmapped { pid: self.mark.pid });
        }
        self.mark.read(&[self.place], start as u64, std::slice::from_ref(target))
    }
}

/// This process's memory, as long as other members may read it. If it is dropped before its readers have read, all of them
/// notice.
#[derive(Debug)]
#[must_use]
pub struct Exposed(());

impl Exposed {
    /// All readers have read.
    pub fn close(self) {
        std::mem::forget(self);
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        ProcessMark::retract();
    }
}

/// How far a member is as a reader of others' memory, in an operation to which it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It may still read.
    Reads,
    /// It asks this member for the data on the board.
    Asks {
        /// The member.
        owner: u32,
        /// It can never read that member's memory.
        is_lasting: bool,
    },
    /// It reads nothing more.
    Done,
    /// It has left, and what it has told of is not there any more.
    Left(Leave),
}

/// The reason why a member has left before its data were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It could not do its part.
    Failed,
    /// This member is gone.
    Gone(u32),
    /// This member had no memory.
    NoRoom(u32),
}

const DONE: u64 = 1;
const ASKS: u64 = 2;
const CANNOT_READ: u64 = 3;
const LEFT: u64 = 4;
const LEFT_FOR_GONE: u64 = 5;
const LEFT_FOR_ROOM: u64 = 6;

impl Reader {
    fn to_word(self) -> u64 {
        let (of, what) = match self {
            Self::Reads => (0, 0),
            Self::Done => (0, DONE),
            Self::Left(Leave::Failed) => (0, LEFT),
            Self::Left(Leave::Gone(member)) => (member, LEFT_FOR_GONE),
            Self::Left(Leave::NoRoom(member)) => (member, LEFT_FOR_ROOM),
            Self::Asks { owner, is_lasting: true } => (owner, CANNOT_READ),
            Self::Asks { owner, is_lasting: false } => (owner, ASKS),
        };
        u64::from(of) << 32 | what
    }

    fn of_word(word: u64) -> Self {
        let of = (word >> 32) as u32;
        match u64::from(word as u32) {
            DONE => Self::Done,
            LEFT => Self::Left(Leave::Failed),
            LEFT_FOR_GONE => Self::Left(Leave::Gone(of)),
            LEFT_FOR_ROOM => Self::Left(Leave::NoRoom(of)),
            ASKS => Self::Asks { owner: of, is_lasting: false },
            CANNOT_READ => Self::Asks { owner: of, is_lasting: true },
            _ => Self::Reads,
        }
    }
}

/// A member's knowledge of the operations in which members read each other's memory.
#[derive(Default)]
pub(super) struct Reading {
    /// The operations in which this member may still read, and what it has said there.
    open: Vec<(u32, Reader)>,
    /// The members whose memory this one cannot read.
    unreadable: Vec<u32>,
    /// A member cannot read this one's memory.
    is_refused: bool,
    /// The system knows that others may read this process's memory.
    is_allowed: bool,
}

impl Board {
    /// Comes to an operation and tells where its data lie (none are allowed), and where its part of the result will. The
    /// data stay unchanged, as far as members still read them, until the exposure is closed.
    pub fn come_told(
        &mut self,
        number: u32,
        said: (u32, u32),
        (data, result): (Bytes<'_>, Bytes<'_>),
    ) -> Option<Exposed> {
        if !std::mem::replace(&mut self.reading.is_allowed, true) {
            allow_readers();
        }
        let mark = ProcessMark::own();
        let [address, result_address] = [data, result].map(|at| at.start().addr().get() as u64);
        let ProcessMark { pid, address: mark_address, word } = mark;
        let length = result.len() as u64;
        let behind = [address, pid.into(), mark_address, word, result_address, length];
        self.own_long_line(number).set_behind(behind);
        self.begin_reading(number);
        self.come_where(number, said, (TOLD, 0), (data.len(), 0));
        (!data.is_empty()).then(|| Exposed(()))
    }

    /// This member may read others' memory in an operation to which it is about to come.
    pub fn begin_reading(&mut self, number: u32) {
        self.reading.open.push((number, Reader::Reads));
    }

    /// Whether this member deposits its data rather than tell where they lie: another one cannot read them.
    pub fn is_refused(&self) -> bool {
        self.reading.is_refused
    }

    /// Where a member's data lie; valid only after it came. None if they are on the board, or nowhere.
    pub fn told(&self, member: u32, number: u32) -> Option<Told> {
        let line = self.told_line(member, number)?;
        let [address, pid, mark, word, ..] = line.behind();
        let length = line.line.data[LENGTH].load(Ordering::Relaxed);
        let mark = ProcessMark { pid: u32::try_from(pid).ok()?, address: mark, word };
        Some(Told { mark, place: RemoteBytes { address, length } })
    }

    /// Where a member makes its part of the result, and how many bytes of it are there; valid only after it came. None if
    /// its data are on the board.
    pub fn told_result(&self, member: u32, number: u32) -> Option<(Told, usize)> {
        let Told { mark, .. } = self.told(member, number)?;
        let line = self.told_line(member, number)?;
        let [.., address, length] = line.behind();
        let resolved = line.line.data[RESOLVED].load(Ordering::Acquire).min(length);
        Some((Told { mark, place: RemoteBytes { address, length } }, resolved as usize))
    }

    /// The line of a member that has told of its data and has not deposited them.
    fn told_line(&self, member: u32, number: u32) -> Option<&LongLine> {
        let long = self.long_line(member, number);
        let is_told = long.line.about.load(Ordering::Relaxed) as u32 == TOLD;
        (is_told && long.line.data[FILLED].load(Ordering::Acquire) == 0).then_some(long)
    }

    /// Whether this member waits for data that it has asked their owner for, or must ask for.
    pub fn needs_deposit(&mut self, owner: u32, number: u32) -> bool {
        let asks = |&(of, reader): &(u32, Reader)| {
            of == number && matches!(reader, Reader::Asks { owner: asked, .. } if asked == owner)
        };
        if self.reading.open.iter().any(asks) {
            return true;
        }
        let is_unreadable = self.reading.unreadable.contains(&owner);
        if is_unreadable {
            self.ask(owner, number, true);
        }
        is_unreadable
    }

    /// Asks a member for its data on the board, since this member could not read them. It never can if that is lasting.
    #[cold]
    pub fn ask(&mut self, owner: u32, number: u32, is_lasting: bool) {
        if is_lasting && !self.reading.unreadable.contains(&owner) {
            self.reading.unreadable.push(owner);
        }
        self.say_reader(number, Reader::Asks { owner, is_lasting });
    }

    /// Says that this member reads nothing more in an operation.
    pub fn have_read(&mut self, number: u32) {
        self.say_reader(number, Reader::Done);
    }

    /// Says that this member has left before its data were read.
    #[cold]
    pub fn have_left(&mut self, number: u32, reason: Leave) {
        self.say_reader(number, Reader::Left(reason));
    }

    fn say_reader(&mut self, number: u32, reader: Reader) {
        let open = self.reading.open.iter_mut().find(|(of, _)| *of == number);
        if let Some((_, said)) = open.filter(|(_, said)| *said != reader) {
            *said = reader;
            self.own_line(number).data[READER].store(reader.to_word(), Ordering::Release);
            self.wake();
        }
    }

    /// Whether this member's line says of each operation how far it is as a reader.
    pub(super) fn are_readers_stated(&self) -> bool {
        let says = |&(number, reader): &(u32, Reader)| {
            self.own_line(number).data[READER].load(Ordering::Relaxed) == reader.to_word()
        };
        self.reading.open.iter().filter(|(number, _)| self.has_said(*number)).all(says)
    }

    /// Says again how far this member is as a reader.
    pub(super) fn restate_readers(&self) {
        for (number, reader) in
            self.reading.open.iter().filter(|(number, _)| self.has_said(*number))
        {
            self.own_line(*number).data[READER].store(reader.to_word(), Ordering::Release);
        }
    }

    /// Whether this member has come to an operation.
    fn has_said(&self, number: u32) -> bool {
        let stated = &self.stated[number as usize % WINDOW];
        stated.has_come && stated.number == number
    }

    /// The operation is over for this member.
    #[inline]
    pub(super) fn end_reading(&mut self, number: u32) {
        let open = &mut self.reading.open;
        let Some(at) = open.iter().position(|(of, _)| *of == number) else { return };
        if !matches!(open[at].1, Reader::Left(_)) {
            self.have_read(number);
        }
        self.reading.open.swap_remove(at);
    }

    /// How far a member is as a reader; valid only after it came.
    pub fn reader(&self, member: u32, number: u32) -> Reader {
        let line = &self.long_line(member, number).line;
        if !has_reader_word(line) {
            return Reader::Done; // It has failed, and reads nothing.
        }
        Reader::of_word(line.data[READER].load(Ordering::Acquire))
    }

    /// Notes that a member can never read this one's memory.
    #[cold]
    pub fn note_refusal(&mut self) {
        self.reading.is_refused = true;
    }

    /// Names a block for the data of which this member has told: it is filled with [`Board::kept`] and
    /// [`Board::set_filled`].
    pub fn deposit_told(&mut self, number: u32, block: Block) {
        let offset = block.offset();
        self.deposits.keep(number, block);
        self.own_line(number).data[PLACE].store(offset, Ordering::Relaxed);
    }
}

const PLACE: usize = 0;
const LENGTH: usize = 1;
const FILLED: usize = 2;
const RESOLVED: usize = 3;

fn has_reader_word(line: &Line) -> bool {
    matches!(line.about.load(Ordering::Relaxed) as u32, TOLD | IN_HEAP)
}

// The words of a deposit and that of a reader are different ones.
const _: () = assert!(READER > RESOLVED && offset_of!(Line, data) + READER * 8 < size_of::<Line>());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Deposit;
    use crate::fixture::boards;
    use landeck_memory::heap::Heap;

    const SAID: (u32, u32) = (7, 0);
    const NOTHING: (Bytes<'_>, Bytes<'_>) = (Bytes::EMPTY, Bytes::EMPTY);

    /// The words of this process's mark are for all tests.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn one_at_a_time() -> std::sync::MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn read(told: &Told, start: usize, length: usize) -> Result<Vec<u8>, ReadRefused> {
        let mut target = vec![0; length];
        // SAFETY: the vector lives until the read is over, and nothing else uses it.
        told.read(start, &unsafe { Buffer::of_mut(&mut target) }).map(|()| target)
    }

    #[test]
    fn told_data_are_read_where_they_lie_until_the_readers_are_done() {
        let _guard = one_at_a_time();
        let (_segment, mut boards) = boards(2);
        let data: Vec<u8> = (0..100).collect();
        let exposed = boards[0].come_told(1, SAID, (Bytes::from(&data[..]), Bytes::EMPTY)).unwrap();
        assert!(boards[1].come_told(1, SAID, NOTHING).is_none(), "nothing to keep");
        let told = boards[1].told(0, 1).unwrap();
        assert_eq!((told.bytes(), read(&told, 40, 10)), (100, Ok(data[40..50].to_vec())));
        assert!(matches!(read(&told, 91, 10), Err(ReadRefused::Unmapped { .. })), "not so many");
        assert_eq!(boards[0].reader(1, 1), Reader::Reads);
        boards[1].have_read(1);
        assert_eq!(boards[0].reader(1, 1), Reader::Done);
        exposed.close();
        assert!(read(&told, 0, 100).is_ok());
    }

    #[test]
    fn a_result_is_read_where_it_is_made_as_far_as_it_is_there() {
        let _guard = one_at_a_time();
        let (segment, mut boards) = boards(2);
        let (data, result) = ([3; 100], [9; 40]);
        let told = (Bytes::from(&data[..]), Bytes::from(&result[..]));
        let exposed = boards[0].come_told(1, SAID, told).unwrap();
        for (said, there) in [(0, 0), (25, 25), (41, 40)] {
            boards[0].set_resolved(1, said);
            let (place, is_there) = boards[1].told_result(0, 1).unwrap();
            assert_eq!((place.bytes(), is_there), (40, there));
            assert_eq!(read(&place, 10, 30), Ok(vec![9; 30]));
        }
        boards[0].deposit_told(1, Heap::of(&segment, 0).unwrap().allocate(100).unwrap());
        boards[0].set_filled(1, 100);
        assert!(boards[1].told_result(0, 1).is_none(), "it is on the board");
        exposed.close();
    }

    #[test]
    fn a_member_that_leaves_before_its_readers_is_noticed() {
        let _guard = one_at_a_time();
        let (_segment, mut boards) = boards(2);
        let exposed = boards[0].come_told(1, SAID, (Bytes::from(&[7; 64][..]), Bytes::EMPTY));
        let told = boards[1].told(0, 1).unwrap();
        drop(exposed);
        assert!(matches!(read(&told, 0, 64), Err(ReadRefused::Retracted { .. })));
    }

    #[test]
    fn a_reader_that_may_not_read_gets_the_data_on_the_board() {
        let _guard = one_at_a_time();
        let (segment, mut boards) = boards(3);
        let mut heap = Heap::of(&segment, 0).unwrap();
        let data = [5; 200];
        let exposed = boards[0].come_told(1, SAID, (Bytes::from(&data[..]), Bytes::EMPTY)).unwrap();
        assert!(boards[1].come_told(1, SAID, NOTHING).is_none());
        assert!(!boards[1].needs_deposit(0, 1));
        boards[1].ask(0, 1, true);
        assert!(boards[1].needs_deposit(0, 1) && !boards[1].needs_deposit(2, 1));
        assert!(boards[1].deposit(0, 1).is_err(), "nothing is there yet");
        assert_eq!(boards[0].reader(1, 1), Reader::Asks { owner: 0, is_lasting: true });
        boards[0].note_refusal();
        assert!(boards[0].is_refused());
        boards[0].deposit_told(1, heap.allocate(200).unwrap());
        boards[0].kept(1).unwrap().write(0, Bytes::from(&data[..]));
        boards[0].set_filled(1, 120);
        assert_eq!(boards[1].told(0, 1), None);
        let Ok(Deposit::Block { bytes, filled: 120, .. }) = boards[1].deposit(0, 1) else {
            panic!("a block")
        };
        assert_eq!(bytes.to_vec(), data);
        boards[1].end(1);
        assert_eq!(boards[0].reader(1, 1), Reader::Done);
        assert!(boards[1].needs_deposit(0, 2), "it never can");
        exposed.close();
    }

    #[test]
    fn a_reader_says_again_what_another_process_has_overwritten() {
        let _guard = one_at_a_time();
        let (_segment, mut boards) = boards(2);
        let (number, (signature, _)) = (boards[1].begin(7).0, SAID);
        assert!(boards[1].come_told(number, (signature, 0), NOTHING).is_none());
        boards[1].ask(0, number, false);
        boards[1].own_line(number).data[READER].store(DONE, Ordering::Relaxed);
        assert_eq!(boards[0].reader(1, number), Reader::Done);
        boards[1].restate();
        let asks = Reader::Asks { owner: 0, is_lasting: false };
        assert_eq!(boards[0].reader(1, number), asks);
    }

    #[test]
    fn every_deposit_in_a_block_has_a_readers_word_and_words_of_readers_come_back() {
        let _guard = one_at_a_time();
        let (segment, mut boards) = boards(2);
        let mut heap = Heap::of(&segment, 1).unwrap();
        boards[1].come(1, 7, 0, Bytes::from(&[1; 112][..]));
        assert_eq!(boards[0].reader(1, 1), Reader::Done, "it came without data of an operation");
        boards[1].begin_reading(17);
        boards[1].come_with(17, SAID, heap.allocate(100).unwrap(), (100, 100));
        assert_eq!(boards[0].reader(1, 17), Reader::Reads, "what stood there before is gone");
        boards[1].ask(0, 17, false);
        assert_eq!(boards[0].reader(1, 17), Reader::Asks { owner: 0, is_lasting: false });
        for reason in [Leave::Failed, Leave::Gone(0), Leave::NoRoom(5)] {
            boards[1].have_left(17, reason);
            assert_eq!(boards[0].reader(1, 17), Reader::Left(reason));
        }
        boards[1].end(17);
        assert_eq!(boards[0].reader(1, 17), Reader::Left(Leave::NoRoom(5)), "it stays so");
        assert_eq!(Reader::of_word(u64::MAX), Reader::Reads);
    }
}
