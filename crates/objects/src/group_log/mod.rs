//! The log of a named group, in memory of its own.
//!
//! ```text
//! head         snapshot word | waiting for messages | waiting for anything else | held | roll | sent on |
//!              found no room
//! marks        a line per member: how far its mailbox has taken what was broadcast
//! waiting      two words per peer: threads that wait for messages, for anything else
//! requests     a word per peer: its request to the server, and the result
//! log          a word per entry: place + 1 (low 32 bits, above) | what it is (32)
//! broadcasts   a word per message: number + 1 (low 32 bits, above) | its cell (32)
//! cells        128 bytes each: a message's description and up to 80 bytes of it, or details of an entry
//! page words   whose a page is
//! snapshots    the state that follows from the entries up to a place, written by a process that got there
//! pages        messages longer than that
//! ```
//!
//! All of it is zero to begin with, which is a group without events.
//!
//! **Acceptance.** An entry is accepted by one exchange of its word, from that of the round before to
//! its own; the memory that it refers to was written before. So a process that dies earlier has done nothing, and
//! later, everything. A process appends the next entry only after it has folded this one; for a message, folding
//! puts it among the broadcasts, unless another process did.
//!
//! **Memory.** A cell or page is free, claimed by a process, or *of* a message or entry, and then free
//! again as soon as all members have taken that message, or a snapshot covers that entry. So no process gives
//! memory back: a process that needs some sees which is free. [`GroupLog::sweep`] finds the claims of dead
//! processes.
//!
//! **Snapshots** let the log go round although some members do not read it: a member that finds its next entry
//! overwritten begins again from the snapshot. Messages that a member has not taken are not in the log but among
//! the broadcasts, which do not go round before all members have taken them.

mod claims;
mod copy;
pub mod entries;
mod lap;
mod requests;
mod roll;
mod snapshots;
#[cfg(test)]
mod tests;
mod words;

use std::sync::atomic::fence;

use landeck_memory::bytes::Bytes;
use landeck_memory::plan::{LINE_BYTES, PAGE_BYTES};
use landeck_memory::segment::Segment;
use landeck_memory::shared_area::SharedArea;
use landeck_memory::sync::{AtomicU64, Ordering, light_barrier};
use landeck_memory::{system, waiter};

pub use claims::{Aside, Claim, Claims, Passed, Reach};
use lap::Lap;
pub use lap::Look;
pub use requests::Progress;
pub use roll::Roll;
use words::Cell;

/// Entries that the log has room for.
pub const LOG_ENTRIES: u64 = 1 << 12;
/// Most members whose places are known.
pub const MARKS: u32 = 1 << 10;
/// Bytes of a message that lie in its cell.
pub const CELL_BYTES: usize = 80;
/// Messages that may wait, at most.
pub const MESSAGES_MAX: u32 = 1 << 16;

/// Cells beyond those that messages and entries can hold: for claims.
const SPARE_CELLS: u64 = 1 << 12;
const CELL_STRIDE: u64 = 128;
const HEAD_BYTES: u64 = PAGE_BYTES;
/// Words of the head, each in a line of its own.
const SNAPSHOT_WORD: usize = 0;
const MESSAGE_WAITERS: usize = 8;
const OTHER_WAITERS: usize = 16;
const HELD: usize = 24;
const ROLL: usize = 32;
const SENT_ON: usize = 40;
const NO_ROOM: usize = 48;

/// How large a group's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupShape {
    messages: u32,
    pages: u32,
    snapshot_words: u32,
}

/// For what a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A message.
    Messages,
    /// Anything else.
    Others,
}

/// The description of a message or of an entry's details: its tag, words, length and place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The message's tag, for its reader.
    pub tag: u32,
    /// Words whose meaning sender and reader have agreed on.
    pub words: [u64; 3],
    /// Bytes of it.
    pub bytes: u64,
    /// The first of the pages with its bytes, if they do not lie in the cell.
    pub first_page: u32,
}

/// A group's log as one process sees it. Any thread may use it.
pub struct GroupLog {
    area: SharedArea,
    segment: Segment,
    shape: GroupShape,
    slot: u32,
    incarnation: u32,
    /// The first of the cells that this process uses in turn.
    home_cell: u32,
    /// Stores and looks of this process are kept apart by fences, not by the barriers of others.
    is_fenced: bool,
    places: Places,
    expected: claims::Expected,
}

/// Where its parts begin, in bytes.
#[derive(Clone, Copy)]
struct Places {
    marks: u64,
    waiting: u64,
    requests: u64,
    log: u64,
    broadcasts: u64,
    cells: u64,
    page_words: u64,
    snapshots: u64,
    pages: u64,
    end: u64,
}

impl GroupShape {
    /// Room for so many messages, of so many bytes together, and for snapshots of so many words. Both
    /// are rounded up; none when they are nothing or too many.
    pub fn new(messages: u32, bytes: u64, snapshot_words: u32) -> Option<Self> {
        let pages = u32::try_from(bytes.div_ceil(PAGE_BYTES)).ok()?;
        let fits = (1..=MESSAGES_MAX).contains(&messages) && pages < u32::MAX;
        fits.then(|| Self { messages: messages.next_power_of_two(), pages, snapshot_words })
    }

    /// How many messages may wait.
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// Bytes of the longest message.
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages) * PAGE_BYTES
    }

    /// Bytes of memory that the group needs among so many peers ([`peers_of`]).
    pub fn memory_bytes(&self, peers: u32) -> u64 {
        self.places(peers).end
    }

    fn cells(&self) -> u64 {
        u64::from(self.messages) + LOG_ENTRIES + SPARE_CELLS
    }

    fn places(&self, peers: u32) -> Places {
        let mut end = HEAD_BYTES;
        let mut next = |bytes: u64| {
            let start = end;
            end += bytes.next_multiple_of(PAGE_BYTES);
            start
        };
        let marks = next(u64::from(MARKS) * LINE_BYTES);
        let waiting = next(u64::from(peers) * 16);
        let requests = next(u64::from(peers) * 8);
        let log = next(LOG_ENTRIES * 8);
        let broadcasts = next(u64::from(self.messages) * 8);
        let cells = next(self.cells() * CELL_STRIDE);
        let page_words = next(u64::from(self.pages) * 8);
        let snapshots = next(snapshots::bytes(self.snapshot_words));
        let pages = next(self.bytes());
        Places {
            marks,
            waiting,
            requests,
            log,
            broadcasts,
            cells,
            page_words,
            snapshots,
            pages,
            end,
        }
    }
}

impl GroupLog {
    /// The log in this memory, for the process of `slot`. None when the memory is too short.
    pub fn open(area: SharedArea, segment: &Segment, slot: u32, shape: GroupShape) -> Option<Self> {
        let slots = segment.plan().slots();
        let is_whole = area.len() as u64 >= shape.memory_bytes(peers_of(segment)) && slot < slots;
        is_whole.then(|| {
            let incarnation = segment.slot_record(slot).incarnation;
            let is_fenced = segment.plan().is_oversubscribed() || !waiter::is_registered();
            let (segment, places) = (segment.clone(), shape.places(peers_of(segment)));
            let home_cell = claims::home_cell(slot, shape.cells() as u32);
            let expected = claims::Expected::default();
            Self { area, segment, shape, slot, incarnation, home_cell, is_fenced, places, expected }
        })
    }

    /// Its shape.
    pub fn shape(&self) -> GroupShape {
        self.shape
    }

    /// The incarnation of this process, which it has for good.
    #[inline]
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Reads a place of the log.
    #[inline]
    pub fn look(&self, place: u64) -> Look {
        self.log().look(place)
    }

    /// Whether the entry for which this place was used before is covered by a snapshot.
    #[inline]
    pub fn has_room(&self, place: u64) -> bool {
        place < LOG_ENTRIES || place - LOG_ENTRIES < self.snapshot_place()
    }

    /// Has an entry accepted at a place, unless another one was, or there is no room.
    #[inline]
    pub fn accept(&self, place: u64, entry: u32) -> bool {
        self.has_room(place) && self.log().set(place, entry)
    }

    /// Records the cell of the message with this number, unless a process did.
    #[inline]
    pub fn put_broadcast(&self, number: u64, cell: u32) {
        self.broadcasts().set(number, cell);
    }

    /// The cell of the message with this number; none when it was not sent, or all have taken it.
    #[inline]
    pub fn broadcast(&self, number: u64) -> Option<u32> {
        match self.broadcasts().look(number) {
            Look::There(cell) if u64::from(cell) < self.shape.cells() => Some(cell),
            _ => None,
        }
    }

    /// Whether the cell of the message with this number was ever recorded.
    pub fn has_broadcast(&self, number: u64) -> bool {
        fence(Ordering::Acquire);
        self.broadcasts().look(number) != Look::Empty
    }

    /// How many messages a member has taken, counted as their numbers; none when it never said.
    #[inline]
    pub fn taken(&self, id: u32, stamp: u32) -> Option<u64> {
        let word = self.mark(id)?.load(Ordering::Acquire);
        (word >> words::TAKEN_BITS == u64::from(stamp)).then_some(word & words::TAKEN_MASK)
    }

    /// Records how many messages a member has taken, for its process only. Senders that are held look again.
    #[inline]
    pub fn set_taken(&self, id: u32, stamp: u32, number: u64) {
        if let Some(mark) = self.mark(id) {
            let word = number & words::TAKEN_MASK | u64::from(stamp) << words::TAKEN_BITS;
            mark.store(word, Ordering::Release);
            stored();
            // Unless this is the dear side of two barriers: `is_held`.
            match self.is_fenced {
                true => fence(Ordering::SeqCst),
                false => light_barrier(),
            }
            if self.head(HELD).load(Ordering::Relaxed) != 0 {
                self.wake(WaitsFor::Others);
            }
        }
    }

    /// How many messages, counted as their numbers, a server has sent on to all their receivers.
    pub fn sent_on(&self) -> u64 {
        self.head(SENT_ON).load(Ordering::SeqCst)
    }

    /// Records how many messages a server has sent on. A server that was stopped meanwhile takes nothing back.
    pub fn set_sent_on(&self, number: u64) {
        self.head(SENT_ON).fetch_max(number, Ordering::SeqCst);
        stored();
    }

    /// The description of the message in a cell. A caller that doubts whether it is still there checks afterwards.
    pub fn described(&self, cell: u32) -> Option<Described> {
        let described = self.cell(cell)?.described();
        fence(Ordering::Acquire);
        Some(described)
    }

    /// The bytes of a message; wrong ones if it was overwritten meanwhile.
    pub fn data(&self, cell: u32, described: &Described) -> Option<Bytes<'_>> {
        let (bytes, place) =
            (usize::try_from(described.bytes).ok()?, self.data_place(cell, described)?);
        Some(self.area.bytes().part(place as usize, bytes))
    }

    /// Where they begin, all of which lie where messages lie.
    fn data_place(&self, cell: u32, described: &Described) -> Option<u64> {
        if described.bytes <= CELL_BYTES as u64 {
            return Some(self.cell_place(cell)? + words::CELL_DATA);
        }
        let end = u64::from(described.first_page) + described.bytes.div_ceil(PAGE_BYTES);
        (end <= u64::from(self.shape.pages))
            .then(|| self.places.pages + u64::from(described.first_page) * PAGE_BYTES)
    }

    /// Whether a cell is, beyond doubt, still of the message with this number. If not, the reader checks whether it is
    /// still a member.
    pub fn is_of(&self, cell: u32, number: u64) -> bool {
        fence(Ordering::Acquire);
        self.cell(cell)
            .is_some_and(|cell| cell.owner.load(Ordering::Relaxed) == words::of_message(number))
    }

    /// Says that a thread of this process begins to wait, or ends it: then it is woken.
    pub fn waits(&self, what: WaitsFor, begins: bool) {
        for word in [self.head(hint(what)), self.waiting(self.slot, what)] {
            if begins {
                word.fetch_add(1, Ordering::SeqCst);
            } else {
                word.fetch_sub(1, Ordering::SeqCst);
            }
            stored();
        }
        // The next look sees everything that was published by processes that have not seen this.
        fence(Ordering::SeqCst);
    }

    /// Says that a broadcast of this process begins to be held, or ends it.
    pub fn is_held(&self, begins: bool) {
        let word = self.head(HELD);
        if begins {
            word.fetch_add(1, Ordering::SeqCst);
            // From here on a process that takes a message sees this, or has recorded it before the next look. If the
            // kernel refuses that, a waiting process looks by itself soon enough.
            if !self.is_fenced {
                let _ = system::barrier_everywhere();
            }
        } else {
            word.fetch_sub(1, Ordering::SeqCst);
        }
        stored();
    }

    /// Records that a held broadcast found no room after all members had taken so many messages, and whether the group
    /// was being destroyed. Returns whether that is news. Records for fewer messages do not count any more.
    pub fn found_no_room(&self, taken: u64, is_last_chance: bool) -> bool {
        let word = (taken + 1) << 1 | u64::from(is_last_chance);
        let is_news = self.head(NO_ROOM).fetch_max(word, Ordering::SeqCst) < word;
        stored();
        is_news
    }

    /// Whether a broadcast that is held has found no room since all members had taken so many messages.
    pub fn has_no_room(&self, taken: u64) -> bool {
        self.head(NO_ROOM).load(Ordering::SeqCst) >> 1 == taken + 1
    }

    /// Wakes all threads that wait for this kind of event, to look for themselves. The event was published by a
    /// sequentially consistent exchange. Hints that dead processes left behind cost a look at the slots.
    #[inline]
    pub fn wake(&self, what: WaitsFor) {
        if self.head(hint(what)).load(Ordering::SeqCst) != 0 {
            self.wake_all(what);
        }
    }

    #[cold]
    fn wake_all(&self, what: WaitsFor) {
        for slot in 0..self.segment.plan().slots() {
            if slot != self.slot && self.waiting(slot, what).load(Ordering::SeqCst) != 0 {
                self.segment.tell_news(slot);
            }
        }
    }

    /// Tells the other threads of this process.
    pub fn wake_own(&self) {
        let waits = |what| self.waiting(self.slot, what).load(Ordering::Relaxed) != 0;
        if waits(WaitsFor::Messages) || waits(WaitsFor::Others) {
            self.segment.tell_news(self.slot);
        }
    }

    fn log(&self) -> Lap<'_> {
        Lap(self.words(self.places.log, LOG_ENTRIES))
    }

    fn broadcasts(&self) -> Lap<'_> {
        Lap(self.words(self.places.broadcasts, u64::from(self.shape.messages)))
    }

    #[inline]
    fn words(&self, place: u64, count: u64) -> &[AtomicU64] {
        let start = (place / 8) as usize;
        &self.area.words()[start..start + count as usize]
    }

    #[inline]
    fn head(&self, word: usize) -> &AtomicU64 {
        &self.area.words()[word]
    }

    #[inline]
    fn mark(&self, id: u32) -> Option<&AtomicU64> {
        let place = self.places.marks + u64::from(id) * LINE_BYTES;
        (id < MARKS).then(|| &self.area.words()[(place / 8) as usize])
    }

    fn waiting(&self, slot: u32, what: WaitsFor) -> &AtomicU64 {
        let place = self.places.waiting + u64::from(slot) * 16 + 8 * (what as u64);
        &self.area.words()[(place / 8) as usize]
    }

    fn cell_place(&self, cell: u32) -> Option<u64> {
        let is_one = u64::from(cell) < self.shape.cells();
        is_one.then(|| self.places.cells + u64::from(cell) * CELL_STRIDE)
    }

    fn cell(&self, cell: u32) -> Option<Cell<'_>> {
        let place = self.cell_place(cell)?;
        Cell::of(self.words(place, words::CELL_HEAD_WORDS))
    }

    fn page_words(&self) -> &[AtomicU64] {
        self.words(self.places.page_words, u64::from(self.shape.pages))
    }
}

/// The processes that may have requests: those of the host, and those of other hosts that it knows.
pub fn peers_of(segment: &Segment) -> u32 {
    let plan = segment.plan();
    plan.slots() + if plan.has_host_tables() { plan.far } else { 0 }
}

/// After each store: here a process dies in tests that have it so.
#[inline]
fn stored() {
    #[cfg(debug_assertions)]
    crate::crash_point::stored();
}

const fn hint(what: WaitsFor) -> usize {
    match what {
        WaitsFor::Messages => MESSAGE_WAITERS,
        WaitsFor::Others => OTHER_WAITERS,
    }
}

impl std::fmt::Debug for GroupLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GroupLog").field("shape", &self.shape).finish_non_exhaustive()
    }
}
