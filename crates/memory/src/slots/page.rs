//! The own page of each process: its presence, its current wait and its counters. The process writes it; any
//! process may read it, also when its writer is wedged, stopped or dead.
//!
//! ```text
//! line 0   presence (32 bits) | processor plus one (32), generation of the membership acted upon,
//!          at byte 16 the source of the length from which its messages are copied once
//! line 1   operation (8 bits) | has peer (8) | has tag (8) | peer (32 high bits)
//!          tag | context, bytes, since, board, number
//! line 2   messages sent, bytes sent, messages received, bytes received, waits, waited ns, sleeps,
//!          bytes laid on boards
//! line 3   whom it waited for: slot plus one, ns; four of them
//! line 4   four more
//! line 5   the lanes to other hosts with unsent bytes, while it waits for long; up to line 7
//! 512      lines of the first world's board
//! 2688     what it says of a wait that has lasted for long
//! 2880     slot references: a bit for each slot; with more than 9,728 slots they need a second page
//! ```
//!
//! A reader may see words of two waits at once. A wait is identified by the time when it began: a reader that reads
//! the line twice and finds equal words has read one wait. Counters are read one by one.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::LINE_BYTES;
use crate::segment::Segment;

const PROCESSOR: u64 = 4;
const ONE_COPY_SOURCE: u64 = 16;
pub(crate) const WAIT_LINE: u64 = LINE_BYTES;
pub(crate) const COUNTER_LINE: u64 = 2 * LINE_BYTES;
pub(crate) const WAITED_FOR_LINES: u64 = 3 * LINE_BYTES;
/// Words of a wait, of the counters, and of those waited for.
pub(crate) const WAIT_WORDS: usize = 6;
pub(crate) const COUNTER_WORDS: usize = 8;
/// How many of those that a process waited for are told apart.
pub const WAITED_FOR: usize = 8;

/// Whether the program of a process has joined and left in good order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// The process runs but has not joined (it may never, as `/bin/true` does not).
    #[default]
    NotAttached,
    /// It has joined.
    Attached,
    /// It has said goodbye.
    Finalized,
    /// It ends, and the whole job with it, with this exit code.
    Aborted(u8),
    /// It has joined as the helper of its machine on this host: no user has started it.
    Helping,
}

/// The call in which a process waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// It does not wait.
    #[default]
    None = 0,
    /// A send that has no room yet.
    Send = 1,
    /// A receive.
    Receive = 2,
    /// A probe.
    Probe = 3,
    /// The completion of one of its requests.
    Wait = 4,
    /// The gathering of its processes at the start.
    Join = 5,
    /// The end: its last messages must be out.
    Leave = 6,
    /// A process that connects.
    Accept = 7,
    /// The other members of a group, in a collective operation.
    Collective = 8,
    /// A unit of a semaphore.
    Semaphore = 9,
    /// An event of a named group: its members' arrival, or room for a broadcast.
    Group = 10,
    /// The data of a message, from the store of a host.
    Fetch = 11,
}

impl Operation {
    const ALL: [Self; 12] = [
        Self::None,
        Self::Send,
        Self::Receive,
        Self::Probe,
        Self::Wait,
        Self::Join,
        Self::Leave,
        Self::Accept,
        Self::Collective,
        Self::Semaphore,
        Self::Group,
        Self::Fetch,
    ];

    /// Whether it is about one message, with a tag of the program's.
    pub const fn has_message(self) -> bool {
        matches!(self, Self::Send | Self::Receive | Self::Probe | Self::Fetch)
    }

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "running",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Probe => "probe",
            Self::Wait => "wait",
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Accept => "accept",
            Self::Collective => "collective operation",
            Self::Semaphore => "semaphore",
            Self::Group => "wait in a named group",
            Self::Fetch => "fetch",
        }
    }
}

impl Presence {
    /// As it stands in the page: the exit code of an abort in the second byte.
    pub const fn to_bits(self) -> u32 {
        match self {
            Self::NotAttached => 0,
            Self::Attached => 1,
            Self::Finalized => 2,
            Self::Aborted(code) => 3 | (code as u32) << 8,
            Self::Helping => 4,
        }
    }

    /// The presence in this word, which may be anything.
    pub const fn from_bits(bits: u32) -> Self {
        match bits & 0xff {
            1 => Self::Attached,
            2 => Self::Finalized,
            3 => Self::Aborted((bits >> 8) as u8),
            4 => Self::Helping,
            _ => Self::NotAttached,
        }
    }
}

/// A wait that a process publishes: its call, peer, tag and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitRecord {
    /// The call.
    pub operation: Operation,
    /// The slot it waits for; none means any.
    pub peer: Option<u32>,
    /// The tag; none means any.
    pub tag: Option<u32>,
    /// The context.
    pub context: u32,
    /// Bytes of the message, where known.
    pub bytes: u64,
    /// Since when, in nanoseconds of the monotonic clock.
    pub since_ns: u64,
    /// Where the shared words of the group's board are, zero where it has none or they are not
    /// known.
    pub board: u64,
    /// In a collective operation: its number on the board; zero where it has none. With data that stay on a host: the number of
    /// the host.
    pub number: u32,
    /// The number of the channel that the message takes; zero where it is not known.
    pub way: u8,
}

impl WaitRecord {
    fn to_words(self) -> [u64; WAIT_WORDS] {
        let first = self.operation as u64
            | u64::from(self.peer.is_some()) << 8
            | u64::from(self.tag.is_some()) << 16
            | u64::from(self.way) << 24
            | u64::from(self.peer.unwrap_or(0)) << 32;
        let second = u64::from(self.context) | u64::from(self.tag.unwrap_or(0)) << 32;
        [first, second, self.bytes, self.since_ns, self.board, u64::from(self.number)]
    }

    /// The record in these words, which may be anything.
    pub(crate) fn from_words(words: [u64; WAIT_WORDS]) -> Self {
        let [first, second, bytes, since_ns, board, number] = words;
        let operation = Operation::ALL.get((first & 0xff) as usize).copied().unwrap_or_default();
        Self {
            operation,
            peer: (first >> 8 & 1 != 0).then_some((first >> 32) as u32),
            tag: (first >> 16 & 1 != 0).then_some((second >> 32) as u32),
            context: second as u32,
            bytes,
            since_ns,
            board,
            number: number as u32,
            way: (first >> 24) as u8,
        }
    }
}

/// The counters of a process since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent.
    pub messages_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Times it waited longer than a moment.
    pub waits: u64,
    /// Time in those waits, in nanoseconds.
    pub waited_ns: u64,
    /// Times it slept in one.
    pub sleeps: u64,
    /// Bytes that it laid on boards for others, in collective operations on one host.
    pub bytes_laid: u64,
}

/// How long a process has waited for one other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitedFor {
    /// The slot of the other.
    pub peer: u32,
    /// The time, in nanoseconds.
    pub ns: u64,
}

impl Counters {
    pub(crate) fn from_words(words: [u64; COUNTER_WORDS]) -> Self {
        let [messages_sent, bytes_sent, messages_received, bytes_received, ..] = words;
        let [.., waits, waited_ns, sleeps, bytes_laid] = words;
        Self {
            messages_sent,
            bytes_sent,
            messages_received,
            bytes_received,
            waits,
            waited_ns,
            sleeps,
            bytes_laid,
        }
    }
}

impl WaitedFor {
    /// Decodes the entries in these words, longest first.
    pub(crate) fn from_words(words: [u64; 2 * WAITED_FOR]) -> Vec<Self> {
        let pairs = words.chunks_exact(2).filter(|pair| pair[0] != 0);
        let mut all: Vec<_> =
            pairs.map(|pair| Self { peer: (pair[0] - 1) as u32, ns: pair[1] }).collect();
        all.sort_by_key(|waited| std::cmp::Reverse(waited.ns));
        all
    }
}

/// The counters of the process of a slot, kept where all can read them at any time: counting costs
/// what counting in private memory would. For that process only, one thread at a time.
pub struct Tally {
    words: NonNull<[AtomicU64; COUNTER_WORDS]>,
    /// Keeps the words mapped.
    _segment: Segment,
}

// SAFETY: the words are used through atomics alone, and stay mapped as long as the handle.
unsafe impl Send for Tally {}

impl Tally {
    /// The counters of a slot.
    pub fn of(segment: &Segment, slot: u32) -> Self {
        let line = segment.plan().own_page(segment.known(slot)) + COUNTER_LINE;
        let words = segment.place(line, LINE_BYTES).cast();
        Self { words, _segment: segment.clone() }
    }

    /// Counts a message that was sent.
    #[inline]
    pub fn sent(&self, bytes: u64) {
        self.add(0, 1);
        self.add(1, bytes);
    }

    /// Counts a message that was received; `bytes` is what it claims, which may be anything.
    #[inline]
    pub fn received(&self, bytes: u64) {
        self.add(2, 1);
        self.add(3, bytes);
    }

    /// Counts what was laid on a board.
    #[inline]
    pub fn laid(&self, bytes: u64) {
        self.add(7, bytes);
    }

    /// Only the process of the slot adds, so this needs no exchange.
    #[inline]
    fn add(&self, at: usize, addend: u64) {
        // SAFETY: `of` took a place of this many words, which the segment's handle keeps mapped.
        let word = unsafe { &self.words.as_ref()[at] };
        word.store(word.load(Ordering::Relaxed).wrapping_add(addend), Ordering::Relaxed);
    }
}

impl Segment {
    /// How far the program of a slot has come.
    pub fn presence(&self, slot: u32) -> Presence {
        let word = self.word(self.plan().own_page(self.known(slot)));
        Presence::from_bits(word.load(Ordering::Acquire))
    }

    /// Says how far the program has come; for the process of the slot only.
    pub fn set_presence(&self, slot: u32, presence: Presence) {
        if presence == Presence::Attached {
            self.set_own_slot(slot);
            if self.rank_of(slot).is_some() {
                self.reference_first_world(slot);
            }
        }
        self.word(self.plan().own_page(slot)).store(presence.to_bits(), Ordering::Release);
    }

    /// The processor on which the process of a slot last began to wait; none when it never has.
    #[inline]
    pub fn processor(&self, slot: u32) -> Option<u32> {
        let word = self.word(self.plan().own_page(self.known(slot)) + PROCESSOR);
        word.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Says on which processor the process of the slot is; for that process only.
    pub fn set_processor(&self, slot: u32, processor: u32) {
        let word = self.word(self.plan().own_page(slot) + PROCESSOR);
        word.store(processor.wrapping_add(1), Ordering::Relaxed);
    }

    /// The number that the process of a slot has set by [`Segment::set_one_copy_source`]; 0 before.
    pub fn one_copy_source(&self, slot: u32) -> u8 {
        let word = self.word(self.plan().own_page(self.known(slot)) + ONE_COPY_SOURCE);
        word.load(Ordering::Relaxed) as u8
    }

    /// Says by a number which source decides from which length on messages are copied once; for the process of the slot
    /// only.
    pub fn set_one_copy_source(&self, slot: u32, source: u8) {
        let word = self.word(self.plan().own_page(slot) + ONE_COPY_SOURCE);
        word.store(u32::from(source), Ordering::Relaxed);
    }

    /// Reads the current wait of a slot's process; operation `None` when it runs.
    pub fn wait_record(&self, slot: u32) -> WaitRecord {
        WaitRecord::from_words(self.page_words(slot, WAIT_LINE))
    }

    /// Says what the process of a slot waits for; for that process only.
    pub fn set_wait_record(&self, slot: u32, record: &WaitRecord) {
        let line = self.plan().own_page(slot) + WAIT_LINE;
        // The operation last.
        for (at, word) in record.to_words().into_iter().enumerate().rev() {
            self.long(line + at as u64 * 8).store(word, Ordering::Release);
        }
    }

    /// Says that the process of a slot does not wait any more; for that process only.
    pub(crate) fn end_wait_record(&self, slot: u32) {
        self.long(self.plan().own_page(slot) + WAIT_LINE).store(0, Ordering::Release);
    }

    /// Reads the counters of a slot's process.
    pub fn counters(&self, slot: u32) -> Counters {
        Counters::from_words(self.page_words(slot, COUNTER_LINE))
    }

    /// The processes that the process of a slot has waited for, longest first, at most [`WAITED_FOR`] of them.
    pub fn waited_for(&self, slot: u32) -> Vec<WaitedFor> {
        WaitedFor::from_words(self.page_words(slot, WAITED_FOR_LINES))
    }

    /// Says how long the process of a slot has waited; for that process only.
    pub(crate) fn set_waited(&self, slot: u32, waits: u64, waited_ns: u64, sleeps: u64) {
        let line = self.plan().own_page(slot) + COUNTER_LINE;
        for (at, word) in (4..).zip([waits, waited_ns, sleeps]) {
            self.long(line + at * 8).store(word, Ordering::Relaxed);
        }
    }

    /// Says how long the process of a slot has waited for one other; for that process only.
    pub(crate) fn set_waited_for(&self, slot: u32, place: usize, waited: WaitedFor) {
        let pair = self.plan().own_page(slot) + WAITED_FOR_LINES + place as u64 * 16;
        self.long(pair).store(u64::from(waited.peer) + 1, Ordering::Relaxed);
        self.long(pair + 8).store(waited.ns, Ordering::Relaxed);
    }

    fn page_words<const WORDS: usize>(&self, slot: u32, line: u64) -> [u64; WORDS] {
        let line = self.plan().own_page(self.known(slot)) + line;
        std::array::from_fn(|at| self.long(line + at as u64 * 8).load(Ordering::Acquire))
    }

    /// A slot number from outside, or the last slot when there is no such slot.
    fn known(&self, slot: u32) -> u32 {
        slot.min(self.plan().slots() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    fn segment() -> Segment {
        Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) })
    }

    #[test]
    fn a_presence_is_read_as_written_and_nonsense_as_none() {
        let segment = segment();
        for presence in [
            Presence::Attached,
            Presence::Finalized,
            Presence::Aborted(0),
            Presence::Aborted(255),
            Presence::NotAttached,
        ] {
            segment.set_presence(1, presence);
            assert_eq!(segment.presence(1), presence);
        }
        assert_eq!(Presence::from_bits(0xffff_ff77), Presence::NotAttached);
    }

    #[test]
    fn a_wait_is_read_as_written() {
        let segment = segment();
        let exact = WaitRecord {
            operation: Operation::Receive,
            peer: Some(u32::MAX),
            tag: Some(7),
            context: 3,
            bytes: 1 << 40,
            since_ns: 99,
            board: 1 << 50,
            number: u32::MAX,
            way: 255,
        };
        for record in [exact, WaitRecord { peer: None, tag: None, ..exact }, WaitRecord::default()]
        {
            segment.set_wait_record(1, &record);
            assert_eq!(segment.wait_record(1), record);
        }
        assert_eq!(segment.wait_record(0), WaitRecord::default());
        segment.set_wait_record(1, &exact);
        segment.end_wait_record(1);
        assert_eq!(segment.wait_record(1).operation, Operation::None);
    }

    #[test]
    fn a_processor_is_known_when_it_was_said() {
        let segment = segment();
        segment.set_presence(1, Presence::Attached);
        assert_eq!(segment.processor(1), None);
        segment.set_processor(1, 0);
        assert_eq!((segment.processor(1), segment.processor(0)), (Some(0), None));
        assert_eq!(segment.presence(1), Presence::Attached);
    }

    #[test]
    fn a_scribbled_wait_is_still_a_wait() {
        let segment = segment();
        segment.long(segment.plan().own_page(0) + WAIT_LINE).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(segment.wait_record(0).operation, Operation::None);
    }

    #[test]
    fn counters_are_read_as_counted() {
        let segment = segment();
        let tally = Tally::of(&segment, 0);
        (0..3).for_each(|_| tally.sent(10));
        tally.received(u64::MAX);
        tally.received(2);
        tally.laid(9);
        segment.set_waited(0, 4, 5, 6);
        let counters = Counters {
            messages_sent: 3,
            bytes_sent: 30,
            messages_received: 2,
            bytes_received: 1,
            waits: 4,
            waited_ns: 5,
            sleeps: 6,
            bytes_laid: 9,
        };
        assert_eq!((segment.counters(0), segment.counters(1)), (counters, Counters::default()));
    }

    #[test]
    fn those_waited_for_come_longest_first() {
        let segment = segment();
        assert_eq!(segment.waited_for(1), []);
        let (short, long) = (WaitedFor { peer: 0, ns: 5 }, WaitedFor { peer: 9, ns: 7 });
        segment.set_waited_for(1, 0, short);
        segment.set_waited_for(1, WAITED_FOR - 1, long);
        assert_eq!(segment.waited_for(1), [long, short]);
    }
}
