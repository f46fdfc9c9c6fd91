//! The memory that members touch in an operation, from which the use of caches follows.

use landeck_board::WINDOW;
use landeck_memory::message_cells::CELL_BYTES;
use landeck_memory::plan::RING_BULK_BYTES;
use landeck_memory::ring;

/// Deposits up to this length have another place each time.
const GO_ROUND_BYTES: u64 = 128 * 1024;
pub(crate) const PAGE_KIB: u64 = 4;
pub(crate) const PAGE_BYTES: u64 = PAGE_KIB << 10;
/// Data from this length on travel in a cell, if they fit and the sender has one.
pub(crate) const CELL_BYTES_MIN: u64 = 4 * 1024;

/// How a member deposits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manner {
    /// The member takes nothing.
    pub(crate) only_gives: bool,
    /// Its deposit has one taker, which deposits its next data there.
    pub(crate) hands_over: bool,
}

/// The memory that members touch in an operation, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Footprint {
    /// The number of members.
    pub(crate) members: u64,
    /// Their own data, each place once.
    pub(crate) own: u64,
    /// Their deposits and messages, the places of those, and the places of all operations under way if each has other
    /// ones.
    pub(crate) laid_down: u64,
    pub(crate) places: u64,
    pub(crate) all_places: u64,
    /// The number of copied pieces.
    pub(crate) pieces: u64,
    /// Data that they take from others.
    pub(crate) taken: u64,
}

impl Footprint {
    /// Whether a message of this length lies in a ring, behind the message before it.
    pub(crate) fn goes_round_in_a_ring(bytes: u64) -> bool {
        bytes > ring::INLINE_BYTES as u64 && !fits_cell(bytes) && bytes <= RING_BULK_BYTES / 4
    }

    /// Adds a message. A message without dependencies can be under way with others, so it has a place of its own.
    /// Dependent ones use one place after the other. A ring is used from end to end.
    pub(crate) fn send(&mut self, bytes: u64, waits: bool, is_in_new_ring: bool) {
        self.laid_down += bytes;
        self.pieces += u64::from(bytes > ring::INLINE_BYTES as u64);
        match (Self::goes_round_in_a_ring(bytes), waits) {
            (true, _) => self.places += if is_in_new_ring { RING_BULK_BYTES } else { 0 },
            (false, true) => self.places = self.places.max(bytes),
            (false, false) => self.places += bytes,
        }
    }

    /// Adds a deposit of `bytes` bytes on the board.
    pub(crate) fn deposit(&mut self, bytes: u64, manner: Manner) {
        self.laid_down += bytes;
        self.pieces += 1;
        self.places += bytes;
        let other_places = match () {
            () if manner.hands_over => 0,
            () if bytes <= GO_ROUND_BYTES => WINDOW as u64,
            () => 0,
        };
        self.all_places += bytes * other_places;
    }

    /// Adds a take.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.taken += bytes;
        self.pieces += u64::from(bytes > 0);
    }

    /// The footprint if only some of the operations at the board are this one.
    pub(crate) const fn in_every(self, some: u32, of: u32) -> Self {
        Self { all_places: self.all_places * some as u64 / of as u64, ..self }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            members: self.members + other.members,
            own: self.own.saturating_add(other.own),
            laid_down: self.laid_down.saturating_add(other.laid_down),
            places: self.places.saturating_add(other.places),
            all_places: self.all_places.saturating_add(other.all_places),
            pieces: self.pieces.saturating_add(other.pieces),
            taken: self.taken.saturating_add(other.taken),
        }
    }

    /// The footprint of several members.
    pub(crate) fn of_all(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), Self::and)
    }

    /// Bytes that go round on a processor in an operation, given the footprint of all members of the host. Data that
    /// a member of this processor has deposited are there already.
    pub(crate) fn operation_bytes(&self, host: &Self) -> u64 {
        let (here, all) = (self.places.min(self.laid_down), host.places.min(host.laid_down));
        self.going_round(here, all, host)
    }

    /// Bytes that go round between two deposits at one place.
    pub(crate) fn rotation_bytes(&self, host: &Self) -> u64 {
        self.going_round(self.places.max(self.all_places), host.places.max(host.all_places), host)
    }

    fn going_round(&self, here: u64, all: u64, host: &Self) -> u64 {
        let elsewhere = host.laid_down.saturating_sub(self.laid_down);
        let places = all.saturating_sub(here);
        let fetched = part(places, self.taken.min(elsewhere), elsewhere);
        self.own.saturating_add(here).saturating_add(fetched)
    }

    /// The time of first touches of pages for each copied KiB, given that of one page. Each piece has at least one
    /// page.
    pub(crate) fn pages_of_copied(&self, page_ps: u64) -> u64 {
        let copied = self.laid_down.saturating_add(self.taken);
        let pages = (self.own / PAGE_BYTES).saturating_add(self.pieces.max(copied / PAGE_BYTES));
        part(page_ps, pages.saturating_mul(1024), copied)
    }

    /// Bytes that go round between two touches of a deposit's place, given the bytes of an operation. Deposits under
    /// way at one time have different places, and later ones use the same places again.
    pub(crate) fn of_places(&self, bytes: u64) -> u64 {
        part(bytes, self.places.min(self.laid_down), self.laid_down)
    }

    /// Bytes that go round in one member's turn.
    pub(crate) fn turn_bytes(&self) -> u64 {
        self.own.saturating_add(self.taken) / self.members.max(1)
    }
}

/// Whether a message of this length travels in a cell if the sender has one.
pub(crate) const fn fits_cell(bytes: u64) -> bool {
    bytes >= CELL_BYTES_MIN && bytes <= CELL_BYTES
}

/// `whole * some / all`.
pub(crate) fn part(whole: u64, some: u64, all: u64) -> u64 {
    (u128::from(whole) * u128::from(some) / u128::from(all.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(own: u64, laid_down: u64, places: u64, taken: u64) -> Footprint {
        Footprint { members: 2, own, laid_down, places, taken, ..Footprint::default() }
    }

    #[test]
    fn own_data_are_touched_once_in_an_operation_and_places_when_all_are_over_with_it() {
        let here = Footprint { all_places: 60, ..touched(50, 10, 10, 10) };
        let all = Footprint { all_places: 120, ..touched(100, 20, 20, 20) };
        assert_eq!(here.operation_bytes(&all), 50 + 10 + 10);
        assert_eq!(here.rotation_bytes(&all), 50 + 60 + 60);
        let some = |this: &Footprint| Footprint { all_places: 7, ..*this };
        assert_eq!(some(&here).rotation_bytes(&some(&all)), 70, "one is there at least");
        let takes_half = Footprint { taken: 5, ..some(&here) };
        assert_eq!(takes_half.rotation_bytes(&some(&all)), 50 + 10 + 5, "here as elsewhere");
        assert_eq!(here.in_every(1, 4).all_places, 15);
    }

    #[test]
    fn taken_data_go_round_once_wherever_they_were_laid_down() {
        let here = touched(5, 3, 6, 20);
        let on_host = |laid_down| here.rotation_bytes(&touched(0, laid_down, 2 * laid_down, 0));
        assert_eq!(on_host(3), 11, "all of it here");
        assert_eq!(on_host(10), 25, "seven elsewhere, in 14 places, of which all take");
        assert_eq!(on_host(43), 51, "half of what lies elsewhere");
    }

    #[test]
    fn short_deposits_go_round_and_long_ones_have_one_place() {
        let places = |bytes| {
            let mut touched = Footprint::default();
            touched.deposit(bytes, Manner::default());
            (touched.laid_down, touched.places, touched.all_places)
        };
        let mut handed_over = Footprint::default();
        handed_over.deposit(100, Manner { hands_over: true, ..Manner::default() });
        let cells = (handed_over.places, handed_over.all_places);
        assert_eq!(cells, (100, 0), "always the cell that was just read");
        assert_eq!(places(100), (100, 100, 100 * WINDOW as u64));
        assert_eq!(places(GO_ROUND_BYTES).2, GO_ROUND_BYTES * WINDOW as u64);
        assert_eq!(places(GO_ROUND_BYTES + 1).2, 0);
    }
}
