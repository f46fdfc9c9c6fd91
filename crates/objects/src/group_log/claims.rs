//! The claims of processes on cells and pages.

use std::sync::atomic::AtomicU32;

use landeck_memory::bytes::Bytes;
use landeck_memory::plan::PAGE_BYTES;
use landeck_memory::sync::{AtomicU64, Ordering, prefetch, prefetch_to_write};

use super::words::{Cell, Owner};
use super::{CELL_BYTES, Described, GroupLog, LINE_BYTES};

/// Cells that a process uses in turn while they suffice, so that they stay in its cache.
const HOME_CELLS: u32 = 32;
/// Pages that a process uses in turn: at least as many as four messages need.
const HOME_PAGES: u32 = 32;
const HOME_MESSAGES: u32 = 4;

/// The messages and entries that no member needs any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Messages with lower numbers: all members have taken them.
    pub messages: u64,
    /// Entries at lower places: a snapshot covers them.
    pub entries: u64,
}

/// Where to look for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Where this process has used it before: short ways, and in its cache.
    Home,
    /// Everywhere.
    All,
}

/// Where a process looked last for memory. One for each handle.
#[derive(Debug, Default)]
pub struct Claims {
    cell: AtomicU32,
    page: AtomicU32,
}

/// The likely place of the next message from the last sender, since processes use their memory in turn. It serves
/// only to prefetch, so it may be wrong.
#[derive(Debug, Default)]
pub(super) struct Expected {
    cell: AtomicU32,
    page: AtomicU32,
    /// Bytes of it in pages.
    bytes: AtomicU32,
}

/// Most bytes of a message that is prefetched. Prefetching longer ones would disturb the members that copy them by
/// then.
const EXPECTED_BYTES: u64 = PAGE_BYTES;
/// Bytes of it that are asked for; the processor foresees the others.
const ASKED_BYTES: u64 = 1024;

/// A cell and the pages that this process is about to use; free again when dropped.
#[derive(Debug)]
pub struct Claim<'a> {
    log: &'a GroupLog,
    cell: u32,
    first_page: u32,
    pages: u32,
}

/// A claim that was put aside. Its memory stays claimed until it is taken up again, or this process is
/// gone.
#[derive(Debug)]
pub struct Aside {
    cell: u32,
    first_page: u32,
    pages: u32,
}

/// How many pages a process uses in turn for messages of so many.
fn span(pages: u32) -> u32 {
    HOME_PAGES.max(pages.saturating_mul(HOME_MESSAGES))
}

/// The first of the cells that the process of a slot uses in turn, all of which there are.
pub(super) fn home_cell(slot: u32, cells: u32) -> u32 {
    slot.wrapping_mul(4 * HOME_CELLS) % (cells - HOME_CELLS)
}

impl GroupLog {
    /// Goes on with a claim that was put aside, here.
    pub fn take_up(&self, aside: Aside) -> Claim<'_> {
        let Aside { cell, first_page, pages } = aside;
        Claim { log: self, cell, first_page, pages }
    }

    /// Claims a cell and, for a long message, pages. None when there are none now.
    #[inline]
    pub fn claim(
        &self,
        claims: &Claims,
        bytes: u64,
        passed: &Passed,
        reach: Reach,
    ) -> Option<Claim<'_>> {
        let cell = self.claim_cell(claims, passed, reach)?;
        let mut claim = Claim { log: self, cell, first_page: 0, pages: 0 };
        if bytes > CELL_BYTES as u64 {
            let pages = u32::try_from(bytes.div_ceil(PAGE_BYTES)).ok()?;
            claim.first_page = self.claim_pages(claims, pages, passed, reach)?;
            claim.pages = pages;
        }
        Some(claim)
    }

    fn claim_cell(&self, claims: &Claims, passed: &Passed, reach: Reach) -> Option<u32> {
        let turn = claims.cell.load(Ordering::Relaxed);
        claims.cell.store(turn.wrapping_add(1), Ordering::Relaxed);
        // Threads that look at once find different cells, since each takes what it finds.
        let next = self.home_cell + turn % HOME_CELLS;
        match self.take_cell(next, passed) {
            true => Some(next),
            false => self.search_cell(turn, passed, reach),
        }
    }

    #[cold]
    fn search_cell(&self, turn: u32, passed: &Passed, reach: Reach) -> Option<u32> {
        let (cells, home) = (self.shape.cells() as u32, self.home_cell);
        let near = (1..HOME_CELLS).map(|step| home + turn.wrapping_add(step) % HOME_CELLS);
        let others = if reach == Reach::All { cells } else { 0 };
        let far = (0..others).map(|step| (home + HOME_CELLS + step) % cells);
        near.chain(far).find(|&cell| self.take_cell(cell, passed))
    }

    /// Prefetches the lines of a message that a process sent before it synchronised with this one: the place of the
    /// log, the broadcast, and the message at its expected place. They are needed one after the other, and arrive
    /// together.
    #[inline]
    pub fn foresee(&self, place: u64, number: u64) {
        let Expected { cell, page, bytes } = &self.expected;
        let bytes = u64::from(bytes.load(Ordering::Relaxed));
        if bytes > EXPECTED_BYTES {
            return;
        }
        prefetch(self.log().word(place));
        prefetch(self.broadcasts().word(number));
        if let Some(place) = self.cell_place(cell.load(Ordering::Relaxed)) {
            prefetch(&self.area.words()[(place / 8) as usize]);
            prefetch(&self.area.words()[((place + LINE_BYTES) / 8) as usize]);
        }
        let first = self.places.pages + u64::from(page.load(Ordering::Relaxed)) * PAGE_BYTES;
        let lines = (first..first + bytes.min(ASKED_BYTES)).step_by(LINE_BYTES as usize);
        for word in lines.filter_map(|place| self.area.words().get((place / 8) as usize)) {
            prefetch(word);
        }
    }

    /// A message of the process of a slot lay here: the next one will lie behind it.
    #[inline]
    pub fn expect_next(&self, slot: u32, cell: u32, described: &Described) {
        let cells = self.shape.cells() as u32;
        let home = home_cell(slot, cells);
        let next = home + cell.wrapping_sub(home).wrapping_add(1) % HOME_CELLS;
        self.expected.cell.store(next, Ordering::Relaxed);
        let mut bytes = 0;
        if described.bytes > CELL_BYTES as u64 {
            let pages = described.bytes.div_ceil(PAGE_BYTES) as u32;
            let home = self.home_page(slot);
            let used = described.first_page.wrapping_sub(home).wrapping_add(pages);
            let next = if used.saturating_add(pages) > span(pages) { 0 } else { used };
            self.expected.page.store(home.wrapping_add(next), Ordering::Relaxed);
            bytes = u32::try_from(described.bytes).unwrap_or(u32::MAX);
        }
        self.expected.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The first of the pages that the process of a slot uses in turn, as far as there are so many.
    fn home_page(&self, slot: u32) -> u32 {
        let count = self.shape.pages.max(1);
        (u64::from(slot) * 61 * u64::from(HOME_PAGES) % u64::from(count)) as u32
    }

    /// Prefetches together the lines that are written when a message is accepted at this place of the log and under
    /// this number, since other processes wrote there last.
    #[inline]
    pub fn prepare(&self, claims: &Claims, place: u64, number: u64) {
        prefetch_to_write(self.log().word(place));
        prefetch_to_write(self.broadcasts().word(number));
        let next = self.home_cell + claims.cell.load(Ordering::Relaxed) % HOME_CELLS;
        if let Some(cell) = self.cell(next) {
            prefetch_to_write(cell.owner);
        }
    }

    #[inline]
    fn take_cell(&self, cell: u32, passed: &Passed) -> bool {
        self.cell(cell).is_some_and(|cell| self.take(cell.owner, passed))
    }

    fn claim_pages(
        &self,
        claims: &Claims,
        wanted: u32,
        passed: &Passed,
        reach: Reach,
    ) -> Option<u32> {
        let pages = self.page_words();
        let count = pages.len() as u32;
        let last = count.checked_sub(wanted)?;
        let (home, span) = (self.home_page(self.slot), span(wanted));
        let next = claims.page.load(Ordering::Relaxed);
        let next = if next.saturating_add(wanted) > span { 0 } else { next };
        let mut at = home.saturating_add(next).min(last);
        let mut looked = 0;
        while looked < 2 * u64::from(count) {
            match self.take_pages(at, wanted, passed) {
                Ok(()) => {
                    let used = at.wrapping_sub(home).wrapping_add(wanted);
                    claims.page.store(if used < span { used } else { 0 }, Ordering::Relaxed);
                    return Some(at);
                }
                Err(_) if reach == Reach::Home => return None,
                Err(in_the_way) => {
                    looked += u64::from(in_the_way + 1);
                    at += in_the_way + 1;
                    if at > last {
                        looked += u64::from(count - at.min(count));
                        at = 0;
                    }
                }
            }
        }
        None
    }

    /// Takes pages that follow each other, or none and says which of them is in the way.
    fn take_pages(&self, first: u32, wanted: u32, passed: &Passed) -> Result<(), u32> {
        let pages = &self.page_words()[first as usize..(first + wanted) as usize];
        match pages.iter().position(|page| !self.take(page, passed)) {
            None => Ok(()),
            Some(in_the_way) => {
                pages[..in_the_way].iter().for_each(give_back);
                Err(in_the_way as u32)
            }
        }
    }

    #[inline]
    fn take(&self, word: &AtomicU64, passed: &Passed) -> bool {
        let seen = word.load(Ordering::Acquire);
        let is_free = match Owner::from_word(seen) {
            Owner::Nobody => true,
            Owner::Message(number) => number < passed.messages,
            Owner::Entry(place) => place < passed.entries,
            Owner::Process { .. } => false,
        };
        let own = Owner::Process { slot: self.slot, incarnation: self.incarnation }.to_word();
        let is_taken = is_free
            && word.compare_exchange(seen, own, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_taken {
            super::stored();
        }
        is_taken
    }

    /// Whether dead processes have claims on memory. A process that finds some folds the log to its end and then
    /// recovers the memory by [`GroupLog::sweep`].
    pub fn is_claimed_by_the_dead(&self) -> bool {
        let cells = (0..self.shape.cells() as u32).filter_map(|cell| self.cell(cell));
        let mut words = cells.map(|cell| cell.owner).chain(self.page_words());
        words.any(|word| self.is_of_the_dead(word.load(Ordering::Acquire)))
    }

    /// Has all memory back that is claimed by processes that are no more, but for what messages and
    /// entries from `passed` on use, of which these `cells` are all.
    pub fn sweep(&self, messages: std::ops::Range<u64>, entries: &[(u64, u32)]) {
        for number in messages {
            if let Some(cell) = self.broadcast(number) {
                self.settle(cell, Owner::Message(number));
            }
        }
        for &(place, cell) in entries {
            self.settle(cell, Owner::Entry(place));
        }
        let cells = (0..self.shape.cells() as u32).filter_map(|cell| self.cell(cell));
        for word in cells.map(|cell| cell.owner).chain(self.page_words()) {
            let seen = word.load(Ordering::Acquire);
            if self.is_of_the_dead(seen) {
                let nobody = Owner::Nobody.to_word();
                // A faster process did the same.
                let _ = word.compare_exchange(seen, nobody, Ordering::AcqRel, Ordering::Relaxed);
                super::stored();
            }
        }
    }

    /// Writes whose a cell and its pages are, for an owner that died before it did.
    fn settle(&self, cell: u32, owner: Owner) {
        let Some(words) = self.cell(cell) else { return };
        let described = words.described();
        let pages = if described.bytes > CELL_BYTES as u64 {
            let first = described.first_page as usize;
            let count = usize::try_from(described.bytes.div_ceil(PAGE_BYTES)).unwrap_or(usize::MAX);
            self.page_words().get(first..first.saturating_add(count)).unwrap_or_default()
        } else {
            &[]
        };
        for word in pages.iter().chain([words.owner]) {
            let seen = word.load(Ordering::Acquire);
            if self.is_of_the_dead(seen) {
                let _ = word.compare_exchange(
                    seen,
                    owner.to_word(),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                super::stored();
            }
        }
    }

    pub(super) fn is_of_the_dead(&self, word: u64) -> bool {
        let Owner::Process { slot, incarnation } = Owner::from_word(word) else { return false };
        let record = self.segment.slot_record(slot);
        record.incarnation != incarnation || record.state.is_gone()
    }
}

impl Claim<'_> {
    /// The number of the cell.
    pub fn cell(&self) -> u32 {
        self.cell
    }

    /// Writes what the cell describes, and the bytes of the message.
    pub fn fill(&self, tag: u32, words: [u64; 3], data: Bytes<'_>) {
        self.describe(tag, words, data.len() as u64);
        self.fill_part(data.len() as u64, 0, data);
    }

    /// Writes what the cell describes: a message of so many bytes, or details.
    pub fn describe(&self, tag: u32, words: [u64; 3], bytes: u64) {
        if let Some(cell) = self.words() {
            cell.describe(&Described { tag, words, bytes, first_page: self.first_page });
        }
    }

    /// Writes some of the bytes of a message of so many bytes, from byte `offset` on; nothing where it
    /// has none.
    pub fn fill_part(&self, bytes: u64, offset: u64, data: Bytes<'_>) {
        let is_part = offset.checked_add(data.len() as u64).is_some_and(|end| end <= bytes);
        let described = Described { bytes, first_page: self.first_page, ..Described::default() };
        let place = self.log.data_place(self.cell, &described).filter(|_| is_part);
        if let Some(place) = place {
            self.log.area.copy_in(place + offset, data);
            super::stored();
        }
    }

    /// Keeps the memory, to go on later ([`GroupLog::take_up`]).
    pub fn put_aside(self) -> Aside {
        let Self { cell, first_page, pages, .. } = self;
        self.end();
        Aside { cell, first_page, pages }
    }

    /// Marks all the claimed memory as of the accepted message with this number. The claim has ended, and is to be
    /// forgotten ([`Claim::end`]).
    #[inline]
    pub fn set_message(&self, number: u64) {
        self.set_owner(Owner::Message(number));
    }

    /// Ends a claim whose memory is a message's.
    #[inline]
    pub fn end(self) {
        std::mem::forget(self);
    }

    /// Says of which message all this is now, and ends the claim.
    #[inline]
    pub fn becomes_message(self, number: u64) {
        self.set_message(number);
        self.end();
    }

    /// Says of which entry all this is now: it was accepted.
    pub fn becomes_entry(self, place: u64) {
        self.set_owner(Owner::Entry(place));
        self.end();
    }

    #[inline]
    fn set_owner(&self, owner: Owner) {
        let word = owner.to_word();
        for page in self.pages() {
            page.store(word, Ordering::Release);
            super::stored();
        }
        if let Some(cell) = self.words() {
            cell.owner.store(word, Ordering::Release);
            super::stored();
        }
    }

    #[cfg(test)]
    pub(super) fn first_page(&self) -> u32 {
        self.first_page
    }

    fn words(&self) -> Option<Cell<'_>> {
        self.log.cell(self.cell)
    }

    fn pages(&self) -> &[AtomicU64] {
        let first = self.first_page as usize;
        self.log.page_words().get(first..first + self.pages as usize).unwrap_or_default()
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.pages().iter().for_each(give_back);
        if let Some(cell) = self.words() {
            give_back(cell.owner);
        }
    }
}

fn give_back(word: &AtomicU64) {
    word.store(Owner::Nobody.to_word(), Ordering::Release);
    super::stored();
}
