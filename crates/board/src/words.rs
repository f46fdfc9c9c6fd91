//! The words of a board, and the two protocols on them: coming and deciding.
//!
//! Each member writes a line of its own for each operation, and stores its *word* last, with
//! release: the number of the operation and its signature. That alone says that the member has
//! come; it is written once and never taken back, so when its process has died it is final.
//!
//! An operation that all members wait for also has a counter, so that the last one to come knows it without looking
//! at all lines. Its commit word says how it ended: the first member to decide decides for all.
//!
//! | word | written by | when |
//! |---|---|---|
//! | line | its member | once an operation, after all have completed the one 16 before |
//! | progress | its member | when it has completed an operation |
//! | refused | its member | once: from this operation on it comes to none |
//! | arrivals | any member: one addition each | when it comes; the last sets it to zero |
//! | commit | any member, by exchange | once an operation |
//! | cursor, finished, owners | any member, by exchange | while all combine together |
//! | sleepers, room_sleepers | any member | around its sleep |
//! | settled | a member that has read the progress of all | when that was further |
//! | revoked | any member | once |
//! | vote | its member | when it brings its part to an agreement |
//! | agreement | any member, by exchange | once an agreement |
//! | roster | the leading member | once, for observers outside the job |
//! | ticket | its member | when it opens the board, and when it forgets it |

#[cfg(not(loom))]
use std::ptr::NonNull;

#[cfg(not(loom))]
use landeck_memory::bytes::{Bytes, copy};
use landeck_memory::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Operations that can be under way at once on one board. With as many as there are members, each has all that it
/// does as a leaf and as a root in one turn on its processor.
pub const WINDOW: usize = 16;
/// Bytes of a result in a line.
pub const RESULT_BYTES: usize = 48;
/// Words of data in a line.
const DATA_WORDS: usize = RESULT_BYTES / 8;
/// Bytes of data in a line of a member and the one behind it.
pub const INLINE_BYTES: usize = RESULT_BYTES + 64;
/// Bytes from a member's line of an operation to that of the next one.
pub(crate) const STRIDE_BYTES: u64 = 128;
/// Most pieces that all combine together.
pub const PIECES_MAX: usize = 32;
/// Instead of a length: the data lie in a heap.
pub(crate) const IN_HEAP: u32 = u32::MAX;
/// Instead of a length: the data lie in a cell.
pub(crate) const IN_CELL: u32 = u32::MAX - 1;
/// Instead of a length: the data lie in their member's memory, at the place that stands behind the line.
pub(crate) const TOLD: u32 = u32::MAX - 3;
/// The word of the data that says how far the member is as a reader, where members read each other's memory.
pub(crate) const READER: usize = DATA_WORDS - 1;
/// Instead of a length: there are no data, and the words of the data say why.
pub(crate) const NOTHING: u32 = u32::MAX - 2;

/// A line with a word that publishes what else stands in it.
#[repr(C, align(64))]
pub(crate) struct Line {
    /// Number (low half) and signature or state (high half).
    word: AtomicU64,
    /// Bytes of data, or where they are instead (low half); what members check against each other (high).
    pub(crate) about: AtomicU64,
    pub(crate) data: [AtomicU64; DATA_WORDS],
}

impl Line {
    /// As on a new board.
    #[cfg(all(test, loom))]
    pub(crate) fn zero() -> Self {
        let data = std::array::from_fn(|_| AtomicU64::new(0));
        Self { word: AtomicU64::new(0), about: AtomicU64::new(0), data }
    }

    /// Publishes the line.
    #[inline]
    pub(crate) fn publish(&self, number: u32, signature: u32) {
        self.word.store(word(number, signature), Ordering::Release);
    }

    /// The signature with which the line was published for this operation; none when it was not.
    #[inline]
    pub(crate) fn published(&self, number: u32) -> Option<u32> {
        let word = self.word.load(Ordering::Acquire);
        (word as u32 == number).then_some((word >> 32) as u32)
    }

    /// Publishes the line unless a member has for this operation; returns its value now.
    pub(crate) fn decide(&self, number: u32, state: u32) -> u32 {
        let mut before = self.word.load(Ordering::Acquire);
        loop {
            if before as u32 == number {
                return (before >> 32) as u32;
            }
            let exchanged = self.word.compare_exchange(
                before,
                word(number, state),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match exchanged {
                Ok(_) => return state,
                Err(now) => before = now,
            }
        }
    }

    /// Writes data that fit; to be published afterwards.
    #[inline]
    pub(crate) fn set_inline(&self, bytes: &[u8], check: u32) {
        let length = bytes.len().min(RESULT_BYTES);
        self.about.store(word(length as u32, check), Ordering::Relaxed);
        for (target, chunk) in self.data.iter().zip(bytes[..length].chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            target.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// The first word of the data.
    #[cfg(all(test, loom))]
    fn first(&self) -> u64 {
        self.data[0].load(Ordering::Relaxed)
    }

    /// The data, of which so many bytes stand here.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn inline(&self, bytes: usize) -> Bytes<'_> {
        let start = NonNull::from(&self.data).cast();
        // SAFETY: as many bytes at most are of the words, which stay mapped while `self` is borrowed.
        unsafe { Bytes::from_raw(start, bytes.min(RESULT_BYTES)) }
    }
}

/// A member's line of an operation, and behind it another one for data that do not fit. Its place is fixed, so a
/// reader need not be told where the data are.
#[repr(C, align(64))]
pub(crate) struct LongLine {
    pub(crate) line: Line,
    behind: [AtomicU64; 8],
}

#[cfg(not(loom))]
impl LongLine {
    /// Writes data that fit; the line is to be published afterwards.
    #[inline]
    pub(crate) fn set_inline(&self, bytes: Bytes<'_>, check: u32) {
        let bytes = bytes.part(0, INLINE_BYTES);
        self.line.about.store(word(bytes.len() as u32, check), Ordering::Relaxed);
        // SAFETY: the words take that many bytes, only their member writes them, and those who read
        // them have seen the line published.
        unsafe { copy(bytes.start().as_ptr(), self.start().as_ptr(), bytes.len()) };
    }

    /// The data, of which so many bytes stand here.
    #[inline]
    pub(crate) fn inline(&self, bytes: usize) -> Bytes<'_> {
        // SAFETY: as many bytes at most are of the words, which stay mapped while `self` is borrowed.
        unsafe { Bytes::from_raw(self.start(), bytes.min(INLINE_BYTES)) }
    }

    /// Writes some of the data at a place; the line is to be published afterwards.
    #[inline]
    pub(crate) fn write(&self, at: usize, bytes: Bytes<'_>) {
        let at = at.min(INLINE_BYTES);
        let bytes = bytes.part(0, INLINE_BYTES - at);
        // SAFETY: the words take that many bytes from there on, only their member writes them, and those who
        // read them have seen the line published.
        unsafe { copy(bytes.start().as_ptr(), self.start().as_ptr().add(at), bytes.len()) };
    }

    /// Says how many bytes of data there are; the line is to be published afterwards.
    #[inline]
    pub(crate) fn set_length(&self, bytes: usize, check: u32) {
        self.line.about.store(word(bytes.min(INLINE_BYTES) as u32, check), Ordering::Relaxed);
    }

    /// Writes the first words behind the line, which is to be published afterwards.
    #[inline]
    pub(crate) fn set_behind(&self, words: [u64; 6]) {
        for (word, value) in self.behind.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The first words behind the line.
    #[inline]
    pub(crate) fn behind(&self) -> [u64; 6] {
        [0, 1, 2, 3, 4, 5].map(|at: usize| self.behind[at].load(Ordering::Relaxed))
    }

    /// Prefetches the line.
    #[inline]
    pub(crate) fn prefetch(&self) {
        landeck_memory::sync::prefetch(&self.line);
    }

    /// Prefetches the words behind the line.
    #[inline]
    pub(crate) fn prefetch_behind(&self) {
        landeck_memory::sync::prefetch(&self.behind);
    }

    #[inline]
    fn start(&self) -> NonNull<u8> {
        // SAFETY: the data of the line begin within it, and the words behind it follow without a gap.
        unsafe { NonNull::from(self).cast::<u8>().add(std::mem::offset_of!(Line, data)) }
    }
}

/// The words of one member in an agreement.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Vote {
    /// Number of the agreement (low half) and flags (high half); stored last.
    pub(super) word: AtomicU64,
    /// Acknowledged deaths (low half), offered context (high half).
    pub(super) about: AtomicU64,
    pub(super) lines: AtomicU64,
    pub(super) board: AtomicU64,
}

/// The lines of one member.
#[repr(C, align(64))]
pub(crate) struct Lines {
    pub(crate) lines: [LongLine; WINDOW],
    /// The member has completed all operations before this one (low half); its calls in them make this sum (high half).
    pub(crate) progress: AtomicU64,
    /// The first operation that the member does not come to because its group is broken, and 1 in
    /// the high half; 0 for none.
    pub(crate) refused: AtomicU64,
    /// Where the member writes its proposals in agreements.
    pub(crate) proposal: AtomicU64,
    /// The ticket of the board that these lines belong to now; see [`super::ticket`].
    pub(crate) ticket: AtomicU64,
    /// The member's parts of agreements, used by turns.
    pub(crate) votes: [Vote; 2],
    rest: [AtomicU64; 4],
}

/// Bytes of the lines of one member.
pub const LINES_BYTES: u64 = WINDOW as u64 * STRIDE_BYTES + 2 * 64;
/// Bytes from the start of a member's lines to its progress, to what it refuses, and to its ticket.
#[cfg(not(loom))]
pub(crate) const PROGRESS: u64 = std::mem::offset_of!(Lines, progress) as u64;
#[cfg(not(loom))]
pub(crate) const REFUSED: u64 = std::mem::offset_of!(Lines, refused) as u64;
#[cfg(not(loom))]
pub(crate) const TICKET: u64 = std::mem::offset_of!(Lines, ticket) as u64;
/// Bytes of the words that several members write.
pub const SHARED_BYTES: u64 = 4096;

/// The words of one operation that several members write.
#[repr(C, align(64))]
pub(crate) struct Epoch {
    pub(crate) arrivals: Arrivals,
    /// They share the line of the arrivals, since no member takes pieces before all have come.
    pub(crate) pieces: Pieces,
    pub(crate) commit: Line,
    pub(crate) owners: Owners,
}

/// How many have come: the count (16 bits) and the sum of what they say they came for.
#[repr(C)]
pub(crate) struct Arrivals(AtomicU64);

/// The result of counting an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Other members are still to come.
    NotLast,
    /// All have come, with equal calls.
    Last,
    /// All have come, with differing calls.
    LastOfDifferent,
}

impl Arrivals {
    /// One of `members` comes.
    #[inline]
    pub(crate) fn come(&self, members: u32, signature: u32) -> Arrival {
        let addend = spread(signature) << 16 | 1;
        let sum = self.0.fetch_add(addend, Ordering::AcqRel).wrapping_add(addend);
        if sum as u16 != members as u16 {
            return Arrival::NotLast;
        }
        self.0.store(0, Ordering::Relaxed);
        let same = (spread(signature) << 16 | 1).wrapping_mul(u64::from(members));
        if sum == same { Arrival::Last } else { Arrival::LastOfDifferent }
    }
}

/// Different signatures become numbers whose sums do not meet by accident.
fn spread(signature: u32) -> u64 {
    (u64::from(signature) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// The pieces of data that all members combine together: each member that is there takes the next one.
#[repr(C)]
pub(crate) struct Pieces {
    /// Number (high half) and how many pieces were taken (low half).
    cursor: AtomicU64,
    /// Number (high half) and how many pieces are done.
    finished: AtomicU64,
}

/// The member that has done each piece, plus one. It is read once all are done, so no earlier value is left.
#[repr(C, align(64))]
pub(crate) struct Owners([AtomicU16; PIECES_MAX]);

impl Owners {
    fn set(&self, piece: u32, member: u32) {
        if let Some(word) = self.0.get(piece as usize) {
            word.store((member + 1) as u16, Ordering::Release);
        }
    }

    /// The member that has done a piece.
    pub(crate) fn of(&self, piece: u32) -> Option<u32> {
        u32::from(self.0.get(piece as usize)?.load(Ordering::Acquire)).checked_sub(1)
    }
}

impl Pieces {
    /// Lets all members take pieces; the last member to come calls it.
    pub(crate) fn open(&self, number: u32) {
        self.finished.store(u64::from(number) << 32, Ordering::Relaxed);
        self.cursor.store(u64::from(number) << 32, Ordering::Release);
    }

    /// Takes the next of `count` pieces; none when there is none, or they are not open.
    pub(crate) fn claim(&self, number: u32, count: u32) -> Option<u32> {
        let mut before = self.cursor.load(Ordering::Acquire);
        loop {
            if (before >> 32) as u32 != number || before as u32 >= count {
                return None;
            }
            let exchanged = self.cursor.compare_exchange_weak(
                before,
                before + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match exchanged {
                Ok(_) => return Some(before as u32),
                Err(now) => before = now,
            }
        }
    }

    /// A piece is done, by this member; true when it was the last of `count`.
    pub(crate) fn finish(&self, owners: &Owners, piece: u32, member: u32, count: u32) -> bool {
        owners.set(piece, member);
        let before = self.finished.fetch_add(1, Ordering::AcqRel) as u32;
        before.wrapping_add(1) == count
    }
}

/// The words of a board that several members write.
#[repr(C, align(64))]
pub(crate) struct Shared {
    pub(crate) head: Head,
    pub(crate) epochs: [Epoch; WINDOW],
    rest: [Line; 8],
}

/// The words of the group rather than of one operation.
#[repr(C, align(64))]
pub(crate) struct Head {
    /// How many members sleep in an operation on this board.
    pub(crate) sleepers: Apart<AtomicU32>,
    /// Not zero: the group was revoked.
    pub(crate) revoked: Apart<AtomicU32>,
    /// The member that has decided the last agreement.
    pub(crate) agreement: Line,
    /// How many of the sleepers wait until others have completed an operation.
    pub(crate) room_sleepers: Apart<AtomicU32>,
    /// All members have completed the operations before this one, as of the last check.
    pub(crate) settled: Apart<AtomicU32>,
    /// Where the list of members is.
    pub(crate) roster: Roster,
    rest: [Line; 2],
}

/// Where the list of a group's members is.
#[repr(C, align(64))]
pub(crate) struct Roster {
    /// Context (low half) and how many they are (high half), last; zero: not said.
    pub(crate) about: AtomicU64,
    /// Offset of the list, in the heap of the process that leads.
    pub(crate) place: AtomicU64,
}

/// Bytes from the start of the shared words to the roster.
#[cfg(not(loom))]
pub(crate) const ROSTER: u64 =
    (std::mem::offset_of!(Shared, head) + std::mem::offset_of!(Head, roster)) as u64;

/// Something on a line of its own.
#[repr(C, align(64))]
pub(crate) struct Apart<T>(pub(crate) T);

#[inline]
fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Line>() == 64);
    assert!(size_of::<LongLine>() as u64 == STRIDE_BYTES);
    assert!(
        std::mem::offset_of!(LongLine, behind) == std::mem::offset_of!(Line, data) + RESULT_BYTES
    );
    assert!(size_of::<Lines>() as u64 == LINES_BYTES);
    assert!(size_of::<Epoch>() == 3 * 64);
    assert!(size_of::<Shared>() as u64 == SHARED_BYTES);
};

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use landeck_memory::sync::fence;
    use loom::sync::Arc;
    use loom::thread;

    fn line() -> Line {
        Line::zero()
    }

    fn pieces() -> (Pieces, Owners) {
        let pieces = Pieces { cursor: AtomicU64::new(0), finished: AtomicU64::new(0) };
        (pieces, Owners(std::array::from_fn(|_| AtomicU16::new(0))))
    }

    /// A member that sees another's arrival also sees its data.
    #[test]
    fn a_word_brings_its_data_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let own = Arc::new(line());
            let theirs = own.clone();
            let member = thread::spawn(move || {
                theirs.set_inline(&7u64.to_ne_bytes(), 3);
                theirs.publish(1, 9);
            });
            if own.published(1) == Some(9) {
                assert_eq!((own.first(), own.about.load(Ordering::Relaxed) >> 32), (7, 3));
            }
            member.join().unwrap();
        });
    }

    /// One is the last, sees what all brought, and all see what it made of that; the counter is
    /// zero again before anybody can come to the operation that uses it next.
    #[test]
    fn one_is_the_last_and_decides_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let words = Arc::new(([line(), line()], Arrivals(AtomicU64::new(0)), line()));
            let come = |words: &([Line; 2], Arrivals, Line), member: usize| {
                let (lines, arrivals, commit) = words;
                lines[member].set_inline(&(member as u64 + 1).to_ne_bytes(), 0);
                lines[member].publish(1, 9);
                if arrivals.come(2, 9) == Arrival::Last {
                    let sum: u64 = lines.iter().map(Line::first).sum();
                    assert_eq!(sum, 3, "the last sees what all brought");
                    commit.set_inline(&sum.to_ne_bytes(), 0);
                    commit.decide(1, 1);
                }
                let done = commit.published(1).is_some();
                if done {
                    assert_eq!(commit.first(), 3);
                    assert_eq!(arrivals.0.load(Ordering::Relaxed), 0);
                }
                done
            };
            let others = words.clone();
            let other = thread::spawn(move || come(&others, 1));
            let seen = come(&words, 0) | other.join().unwrap();
            assert!(seen, "the last at least has seen it");
        });
    }

    /// Whatever each wants to decide, all hold the same.
    #[test]
    fn all_hold_the_same_decision_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let commit = Arc::new(line());
            let other = commit.clone();
            let theirs = thread::spawn(move || other.decide(1, 2));
            let ours = commit.decide(1, 1);
            assert_eq!(ours, theirs.join().unwrap());
            assert_eq!(commit.published(1), Some(ours));
        });
    }

    /// Each piece is taken once, and the member that finishes the last one knows it.
    #[test]
    fn every_piece_is_taken_once_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let work = Arc::new(pieces());
            work.0.open(1);
            let take = |(work, owners): &(Pieces, Owners), member: u32| {
                let mut lasts = 0;
                let mut taken = 0;
                while let Some(piece) = work.claim(1, 2) {
                    taken += 1;
                    lasts += u32::from(work.finish(owners, piece, member, 2));
                }
                (taken, lasts)
            };
            let others = work.clone();
            let other = thread::spawn(move || take(&others, 1));
            let (own, theirs) = (take(&work, 0), other.join().unwrap());
            assert_eq!((own.0 + theirs.0, own.1 + theirs.1), (2, 1));
            assert!(work.1.of(0).is_some() && work.1.of(1).is_some());
        });
    }

    /// A sleeper that counts itself and sees no arrival is seen by the publisher.
    #[test]
    fn no_sleeper_is_overlooked_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let words = Arc::new((line(), AtomicU32::new(0)));
            let publisher = words.clone();
            let wakes = thread::spawn(move || {
                publisher.0.publish(1, 9);
                fence(Ordering::SeqCst);
                publisher.1.load(Ordering::Relaxed) != 0
            });
            words.1.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let seen = words.0.published(1).is_some();
            assert!(wakes.join().unwrap() || seen);
        });
    }
}
