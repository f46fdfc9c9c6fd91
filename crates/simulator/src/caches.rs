//! The rates of copies, by how much data go round in the caches of a processor.
//!
//! Operations follow each other and touch the same places again. Between two touches of its members' own data, a
//! processor touches all that they touch in an operation: their own data, their deposits, and what they take from
//! other processors. If that is more than a cache holds, the data are no longer in it. So a copy takes what was
//! measured while as much went round. The first member of a processor that takes a deposit fetches it, and the others
//! find it where one member's turn has left it.
//!
//! A processor that several members share forgets the places of their pages, so the first touch of each page in a
//! turn takes longer.
//!
//! A board deposits short data in another place each time, with as many places as operations are under way
//! ([`landeck_board::WINDOW`]), because a place is free when all members are past its operation. So these places
//! are touched after several operations, with more data between. Long data have one place.

use std::collections::BTreeMap;

use landeck_collectives::Calibration;
use landeck_collectives::calibration::FAR_BYTES;

use crate::footprint::{Footprint, PAGE_KIB, part};
use crate::platform::Host;

/// The times of copies of 1 KiB on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// To where another processor has read before, while little goes round.
    deposit_kib_ps: u64,
    /// From where another processor has put it.
    take_kib_ps: u64,
    /// Within this processor.
    copy_kib_ps: u64,
    /// Added where much goes round: for reading a member's own data from before the operation, for writing them, for
    /// reading data just touched, for the place of a deposit, and for the source of a take.
    read_more_ps: u64,
    write_more_ps: u64,
    fresh_more_ps: u64,
    place_more_ps: u64,
    source_more_ps: u64,
    /// Saved where both ends of a copy take longer: for a deposit of own data, a deposit of fresh data, a take, and a
    /// copy within a member.
    deposit_saved_ps: u64,
    fresh_saved_ps: u64,
    take_saved_ps: u64,
    local_saved_ps: u64,
    /// First touches of pages: for a copy, and for one of its ends.
    pages_kib_ps: u64,
    page_kib_ps: u64,
}

/// The processor that has used a place last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This processor.
    Own,
    /// Another processor.
    Others,
    /// This processor, which has read there what another one had put there.
    HandedOver,
}

impl Rates {
    /// The rates of a processor, given the memory that its members touch and that all members of the host touch. The
    /// extra times of both ends were measured separately.
    pub(crate) fn of(host: &Host, touched: &Footprint, all: &Footprint) -> Self {
        let details = &host.details;
        let (reads, writes) = (&details.reads_kib_ps, &details.writes_kib_ps);
        let more =
            |measured, bytes| Calibration::of_rotation(measured, bytes).saturating_sub(measured[0]);
        let bytes = touched.operation_bytes(all);
        let laid_bytes = touched.of_places(touched.rotation_bytes(all));
        // The share of the takes that fetch.
        let first = touched.taken.min(all.laid_down);
        let source_ps = more(reads, all.of_places(bytes));
        let again_ps = source_ps.saturating_sub(more(reads, touched.turn_bytes()));
        let source_ps = source_ps - part(again_ps, touched.taken - first, touched.taken);
        let page_ps = Self::page_ps(details, touched.members, bytes);
        // Both ends of a copy were measured together as well.
        let saved = |one: u64, other: u64| {
            let bytes = one.min(other);
            let (read_ps, write_ps) = (more(reads, bytes), more(writes, bytes));
            let both_ps = more(&details.copies_kib_ps, bytes);
            (read_ps + write_ps).saturating_sub(both_ps).min(read_ps).min(write_ps)
        };
        let of_places = touched.of_places(bytes);
        Self {
            deposit_kib_ps: details.deposit_kib_ps,
            take_kib_ps: host.figures.one_copy_kib_ps,
            copy_kib_ps: details.copies_kib_ps[0],
            read_more_ps: more(reads, bytes),
            write_more_ps: more(writes, bytes),
            fresh_more_ps: more(reads, of_places),
            place_more_ps: more(writes, laid_bytes),
            source_more_ps: source_ps,
            deposit_saved_ps: saved(bytes, laid_bytes),
            fresh_saved_ps: saved(of_places, laid_bytes),
            take_saved_ps: saved(all.of_places(bytes), bytes).min(source_ps),
            local_saved_ps: saved(bytes, bytes),
            pages_kib_ps: touched.pages_of_copied(page_ps),
            page_kib_ps: page_ps / PAGE_KIB,
        }
    }

    /// A deposit. It is fresh if this member has just touched the data.
    pub(crate) const fn deposit_ps(&self, place: Whose, is_fresh: bool) -> u64 {
        let place_ps = match place {
            Whose::Own | Whose::HandedOver => self.copy_kib_ps,
            Whose::Others => self.deposit_kib_ps,
        };
        place_ps + self.deposit_more_ps(is_fresh)
    }

    /// The extra time of a deposit where much goes round.
    pub(crate) const fn deposit_more_ps(&self, is_fresh: bool) -> u64 {
        let saved_ps = if is_fresh { self.fresh_saved_ps } else { self.deposit_saved_ps };
        self.read_more_ps(is_fresh) + self.place_more_ps - saved_ps
    }

    /// The extra time of reading a member's data.
    pub(crate) const fn read_more_ps(&self, is_fresh: bool) -> u64 {
        (if is_fresh { self.fresh_more_ps } else { self.read_more_ps }) + self.pages_kib_ps
    }

    /// The extra time of writing a member's data.
    pub(crate) const fn write_more_ps(&self) -> u64 {
        self.write_more_ps + self.pages_kib_ps
    }

    /// A take.
    pub(crate) fn take_ps(&self, source: Whose) -> u64 {
        match source {
            Whose::Own => self.local_ps(),
            Whose::Others | Whose::HandedOver => self.take_kib_ps + self.take_more_ps(),
        }
    }

    /// The extra time of a take where much goes round.
    pub(crate) const fn take_more_ps(&self) -> u64 {
        self.source_more_ps + self.write_more_ps() - self.take_saved_ps
    }

    /// Overwriting a member's data without reading.
    pub(crate) const fn overwrite_ps(&self) -> u64 {
        self.copy_kib_ps + self.write_more_ps()
    }

    /// A copy within a member.
    pub(crate) const fn local_ps(&self) -> u64 {
        self.copy_kib_ps + self.more_ps()
    }

    /// The extra time of combining a deposit in its place.
    pub(crate) const fn source_more_ps(&self) -> u64 {
        self.source_more_ps + self.page_kib_ps
    }

    /// The first touch of a page in a turn, while this many bytes go round.
    fn page_ps(details: &Calibration, members: u64, bytes: u64) -> u64 {
        if members <= 1 {
            return 0;
        }
        let near_ps = Calibration::of_crowd(&details.crowd_pages_ps, members);
        // A large read touches pages at both ends.
        let read_ps = Calibration::of_crowd(&details.crowd_reads_kib_ps, members);
        let alone_ps = Calibration::of_rotation(&details.reads_kib_ps, members * FAR_BYTES);
        let far_ps = read_ps.saturating_sub(alone_ps) * PAGE_KIB / 2;
        let (each, more_ps) = ((bytes / members).min(FAR_BYTES), far_ps.saturating_sub(near_ps));
        near_ps + part(more_ps, each, FAR_BYTES)
    }

    /// The extra time of a copy within a member.
    pub(crate) const fn more_ps(&self) -> u64 {
        self.read_more_ps + self.write_more_ps + self.pages_kib_ps - self.local_saved_ps
    }
}

/// The rates of each processor, given its host and the memory that its members touch.
pub(crate) fn rates(host: &Host, processors: &[(u32, Footprint)]) -> Vec<Rates> {
    let mut hosts: BTreeMap<u32, Footprint> = BTreeMap::new();
    for (number, touched) in processors {
        let all = hosts.entry(*number).or_default();
        *all = all.and(*touched);
    }
    processors.iter().map(|(number, touched)| Rates::of(host, touched, &hosts[number])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::footprint::PAGE_BYTES;
    use landeck_collectives::CostParameters;
    use landeck_memory::plan::RING_BULK_BYTES;

    const MIB: u64 = 1 << 20;

    fn host(details: Calibration) -> Host {
        let figures = CostParameters { one_copy_kib_ps: 11, ..CostParameters::default() };
        Host { processors: 2, figures, details }
    }

    fn details() -> Calibration {
        let usual = Calibration::of(&CostParameters::default());
        let copies_kib_ps = [5, 5, 5, 6, 10, 10, 10, 18, 40, 71]; // as both ends by themselves
        let reads_kib_ps = [4, 4, 4, 5, 6, 6, 6, 10, 20, 30];
        let writes_kib_ps = [5, 5, 5, 5, 8, 8, 8, 12, 24, 45];
        let usual = Calibration { reads_kib_ps, writes_kib_ps, ..usual };
        Calibration { crowd_reads_kib_ps: [0; 4], deposit_kib_ps: 10, copies_kib_ps, ..usual }
    }

    fn touched(own: u64, laid_down: u64, places: u64, taken: u64) -> Footprint {
        Footprint { members: 2, own, laid_down, places, taken, ..Footprint::default() }
    }

    #[test]
    fn messages_under_way_at_once_have_places_of_their_own() {
        let places = |sends: &[(u64, bool, bool)]| {
            let mut touched = Footprint::default();
            sends.iter().for_each(|&(bytes, waits, is_new)| touched.send(bytes, waits, is_new));
            (touched.laid_down, touched.places)
        };
        const LONG: u64 = 64 << 10;
        let at_once = [(LONG, false, false); 3];
        assert_eq!(places(&at_once), (3 * LONG, 3 * LONG));
        let behind_each_other = [(LONG, false, false), (LONG, true, false), (LONG, true, false)];
        assert_eq!(places(&behind_each_other), (3 * LONG, LONG), "a cell goes on");
        let in_rings = [(1024, false, true), (1024, false, false), (1024, true, true)];
        assert_eq!(places(&in_rings), (3 * 1024, 2 * RING_BULK_BYTES));
        assert_eq!(places(&[(8, false, true)]).1, 8, "beside its header");
    }

    #[test]
    fn each_processor_has_the_rates_of_what_goes_round_there() {
        let little = touched(1024, 0, 0, 0);
        let rates_of = |processors: &[(u32, Footprint)]| rates(&host(details()), processors);
        let places = [Whose::Own, Whose::Others, Whose::HandedOver];
        let few = rates_of(&[(0, little)])[0];
        assert_eq!(places.map(|place| few.deposit_ps(place, false)), [5, 10, 5]);
        assert_eq!([Whose::Own, Whose::Others].map(|source| few.take_ps(source)), [5, 11]);
        // The first member deposits, the second takes all of it once; on another host no member does.
        let (giver, taker) = (touched(MIB, MIB, MIB, 0), touched(MIB, 0, 0, MIB));
        let rates = rates_of(&[(0, giver), (0, taker), (1, taker)]);
        for much in &rates[..2] {
            let takes = [Whose::Own, Whose::Others].map(|source| much.take_ps(source));
            assert_eq!(takes, [5 + 2 + 3, 11 + 2 + 3]);
        }
        let deposits = [false, true].map(|is_fresh| rates[0].deposit_ps(Whose::Others, is_fresh));
        assert_eq!(deposits, [10 + 2 + 3, 10 + 2 + 3], "all that goes round is its own");
        let much = touched(64 * MIB, 8 * MIB, MIB, 0);
        let much = rates_of(&[(0, much)])[0];
        let deposits = [false, true].map(|is_fresh| much.deposit_ps(Whose::Others, is_fresh));
        assert_eq!(deposits, [10 + 26 + 3, 10 + 2 + 3], "the own data of before, or of just now");
        assert_eq!(rates[2].take_ps(Whose::Own), 5 + 1, "a MiB of its own");
    }

    #[test]
    fn where_both_ends_take_longer_at_once_a_copy_takes_what_it_took_with_both() {
        let copies_kib_ps = [5, 5, 5, 6, 8, 8, 8, 9, 11, 50];
        let host = host(Calibration { copies_kib_ps, ..details() });
        let much = touched(64 * MIB, MIB, MIB, MIB);
        let rates = Rates::of(&host, &much, &much);
        let pages_ps = rates.pages_kib_ps;
        assert_eq!(rates.local_ps() - pages_ps, 50, "measured");
        assert_eq!(rates.take_ps(Whose::Others) - pages_ps, 11 + 45);
        let deposits = [false, true].map(|is_fresh| rates.deposit_ps(Whose::Others, is_fresh));
        assert_eq!(deposits, [10 + 45 + pages_ps; 2]);
        let little_laid = touched(64 * MIB, 64 * MIB, 1, 0);
        let rates = Rates::of(&host, &little_laid, &little_laid);
        let deposit_ps = rates.deposit_ps(Whose::Others, false) - rates.pages_kib_ps;
        assert_eq!(deposit_ps, 10 + 26, "one end alone");
        let quick = Calibration { copies_kib_ps: [5; 10], ..details() };
        let rates = Rates::of(&self::host(quick), &much, &much);
        assert_eq!(rates.local_ps() - rates.pages_kib_ps, 5 + 40, "no less than one end");
    }

    #[test]
    fn data_that_several_members_take_are_fetched_once() {
        // 64 MiB go round in all, half of a MiB in a turn, and each byte is taken four times.
        let here = touched(64 * MIB, 0, 0, 1024);
        let all = touched(64 * MIB, 256, 256, 1024);
        let rates = Rates::of(&host(details()), &here, &all);
        let (of_turn, of_all) = (16, 26);
        assert_eq!(here.turn_bytes() >> 20, 32, "of each");
        let page_kib_ps = rates.page_kib_ps;
        assert_eq!(rates.source_more_ps() - page_kib_ps, of_all - (of_all - of_turn) * 3 / 4);
        let source_ps = rates.source_more_ps() - page_kib_ps;
        assert_eq!(rates.take_ps(Whose::Others), 11 + source_ps + 40 + rates.pages_kib_ps);
    }

    #[test]
    fn pages_are_found_anew_in_each_turn() {
        let mut details = details();
        details.crowd_reads_kib_ps = [0; 4];
        details.crowd_pages_ps = [40, 40, 80, 80];
        let page_ps = |members, bytes| Rates::page_ps(&details, members, bytes);
        assert_eq!(page_ps(1, 16), 0, "nobody else has had it");
        assert_eq!((page_ps(2, 16), page_ps(8, 16)), (40, 80));
        // A KiB of much takes 40 alone and 100 in a crowd: that are two pages for four KiB.
        (details.crowd_reads_kib_ps, details.reads_kib_ps) = ([100; 4], [40; 10]);
        let page_ps = |bytes| Rates::page_ps(&details, 8, bytes);
        assert_eq!([0, 8 * FAR_BYTES / 2, 8 * FAR_BYTES].map(page_ps), [80, 100, 120]);
    }

    #[test]
    fn each_piece_has_a_page() {
        let mut touched = Footprint { own: 2 * PAGE_BYTES, ..Footprint::default() };
        (0..3).for_each(|_| touched.take(1024));
        assert_eq!(touched.pages_of_copied(30), 30 * 5 / 3, "two of its own, and one of each");
        touched.take(61 << 10);
        assert_eq!(touched.pages_of_copied(64), 2 + 16, "of much as many as it has");
    }
}
