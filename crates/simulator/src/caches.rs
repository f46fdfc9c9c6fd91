//! What copies take, by how much goes round in the caches of a processor.
//!
//! Operations follow each other, and each touches the same places again. Between two times that a processor
//! touches a place it touches all others that its members have to do with: their own data, what they lay down
//! for others, and what they take that others have laid down elsewhere. If that is more than a cache holds, the
//! place is not there any more. So a copy takes what was measured where as much went round. What several on a
//! processor take is fetched by the first of them; the others find it where one member's turn has left it.
//!
//! Where several share a processor, each finds in its turn that the processor has forgotten where its pages are:
//! the first touch of each takes longer. Of that what counts is what copies did not have to pay where as much
//! went round.
//!
//! A board lays down each time at another place of [`WINDOW`]: what others have just read is written more
//! quickly when it has left their caches. Of long data it is always the same place.

use std::collections::BTreeMap;

use landeck_collectives::Details;
use landeck_memory::board::WINDOW;

/// Deposits up to this have other places each time.
const GO_ROUND_BYTES: u64 = 128 * 1024;
const PAGE_KIB: u64 = 4;

/// What members touch in an operation, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Touched {
    /// How many they are.
    pub(crate) members: u64,
    /// Their own data, each place once.
    pub(crate) own: u64,
    /// What they lay down for others, on the board or in messages, and the places for it.
    pub(crate) laid_down: u64,
    pub(crate) places: u64,
    /// What they take of what others have laid down.
    pub(crate) taken: u64,
}

impl Touched {
    /// A message of so many bytes.
    pub(crate) const fn send(&mut self, bytes: u64) {
        self.laid_down += bytes;
        self.places += bytes;
    }

    /// A deposit of so many bytes on the board.
    pub(crate) const fn deposit(&mut self, bytes: u64) {
        self.laid_down += bytes;
        self.places += if bytes <= GO_ROUND_BYTES { bytes * WINDOW as u64 } else { bytes };
    }

    fn and(self, other: Self) -> Self {
        Self {
            members: self.members + other.members,
            own: self.own.saturating_add(other.own),
            laid_down: self.laid_down.saturating_add(other.laid_down),
            places: self.places.saturating_add(other.places),
            taken: self.taken.saturating_add(other.taken),
        }
    }

    /// What all of these touch.
    pub(crate) fn of_all(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), Self::and)
    }

    /// What goes round on a processor whose members touch this, where all of the host touch that. What they
    /// take lies there already if one of themselves has laid it down.
    fn rotation_bytes(&self, host: &Self) -> u64 {
        let elsewhere = host.laid_down.saturating_sub(self.laid_down);
        let places = host.places.saturating_sub(self.places);
        let fetched = part(places, self.taken.min(elsewhere), elsewhere);
        self.own.saturating_add(self.places).saturating_add(fetched)
    }

    /// What first touches of pages take for each KiB that is copied, given what one takes.
    fn pages_of_copied(&self, page_ps: u64) -> u64 {
        let copied = self.laid_down.saturating_add(self.taken);
        part(page_ps, self.own.saturating_add(copied), copied.saturating_mul(PAGE_KIB))
    }

    /// What goes round in one member's turn.
    fn turn_bytes(&self) -> u64 {
        self.own.saturating_add(self.taken) / self.members.max(1)
    }
}

/// What copies of 1 KiB take on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// To where another processor has read before.
    pub(crate) deposit_kib_ps: u64,
    /// From where another one has put it.
    pub(crate) take_kib_ps: u64,
    /// The same to where little goes round.
    pub(crate) fetch_kib_ps: u64,
    /// By so much longer than where little goes round.
    pub(crate) deposit_more_kib_ps: u64,
    pub(crate) take_more_kib_ps: u64,
    /// What of that is for first touches of pages.
    pages_kib_ps: u64,
}

impl Rates {
    /// Those of a processor whose members touch this, where all of the host touch that. Of what a copy takes
    /// longer half is for either place.
    pub(crate) fn of(details: &Details, touched: &Touched, host: &Touched) -> Self {
        let (deposits, takes) = (&details.deposits_kib_ps, &details.takes_kib_ps);
        let more =
            |measured, bytes| Details::of_rotation(measured, bytes).saturating_sub(measured[0]);
        let rotation_bytes = touched.rotation_bytes(host);
        let (more_ps, in_turn_ps) =
            (more(takes, rotation_bytes), more(takes, touched.turn_bytes()));
        // So much of what is taken is taken by the first one.
        let first = touched.taken.min(host.laid_down);
        let again_ps = more_ps.saturating_sub(in_turn_ps);
        let source_ps = (more_ps - part(again_ps, touched.taken - first, touched.taken)) / 2;
        let page_ps =
            Self::page_ps(details, touched.members, more(&details.pages_ps, rotation_bytes));
        let pages_kib_ps = touched.pages_of_copied(page_ps);
        let deposit_more_kib_ps = more(deposits, rotation_bytes) + pages_kib_ps;
        let take_more_kib_ps = source_ps + more_ps / 2 + pages_kib_ps;
        Self {
            deposit_kib_ps: deposits[0] + deposit_more_kib_ps,
            take_kib_ps: takes[0] + take_more_kib_ps,
            fetch_kib_ps: takes[0] + source_ps + page_ps / PAGE_KIB,
            deposit_more_kib_ps,
            take_more_kib_ps,
            pages_kib_ps,
        }
    }

    /// What the first touch of a page in a turn takes, where copies of as much as goes round have paid so much
    /// for each page.
    fn page_ps(details: &Details, members: u64, paid_ps: u64) -> u64 {
        match members {
            ..=1 => 0,
            _ => Details::of_crowd(&details.crowd_pages_ps, members).saturating_sub(paid_ps),
        }
    }

    /// By so much longer a copy takes of which both places are the processor's own.
    pub(crate) const fn more_kib_ps(&self) -> u64 {
        self.deposit_more_kib_ps + self.take_more_kib_ps - self.pages_kib_ps
    }
}

/// `whole * some / all`.
fn part(whole: u64, some: u64, all: u64) -> u64 {
    (u128::from(whole) * u128::from(some) / u128::from(all.max(1))) as u64
}

/// The rates of each processor, given its host and what its members touch.
pub(crate) fn rates(details: &Details, processors: &[(u32, Touched)]) -> Vec<Rates> {
    let mut hosts: BTreeMap<u32, Touched> = BTreeMap::new();
    for (host, touched) in processors {
        let all = hosts.entry(*host).or_default();
        *all = all.and(*touched);
    }
    processors.iter().map(|(host, touched)| Rates::of(details, touched, &hosts[host])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::Figures;

    const MIB: u64 = 1 << 20;

    fn details() -> Details {
        let usual = Details::of(&Figures::default());
        let deposits_kib_ps = [10, 10, 10, 12, 14, 14, 14, 30, 50, 80];
        let takes_kib_ps = [11, 11, 11, 11, 17, 17, 17, 31, 41, 71];
        Details { deposits_kib_ps, takes_kib_ps, ..usual }
    }

    fn touched(own: u64, laid_down: u64, places: u64, taken: u64) -> Touched {
        Touched { members: 2, own, laid_down, places, taken }
    }

    #[test]
    fn what_is_taken_goes_round_once_wherever_it_was_laid_down() {
        let here = touched(5, 3, 6, 20);
        let on_host = |laid_down| here.rotation_bytes(&touched(0, laid_down, 2 * laid_down, 0));
        assert_eq!(on_host(3), 11, "all of it here");
        assert_eq!(on_host(10), 25, "seven elsewhere, in 14 places, of which all take");
        assert_eq!(on_host(43), 51, "half of what lies elsewhere");
    }

    #[test]
    fn short_deposits_go_round_and_long_ones_have_one_place() {
        let places = |bytes| {
            let mut touched = Touched::default();
            touched.deposit(bytes);
            (touched.laid_down, touched.places)
        };
        assert_eq!(places(100), (100, 100 * WINDOW as u64));
        assert_eq!(places(GO_ROUND_BYTES).1, WINDOW as u64 * GO_ROUND_BYTES);
        assert_eq!(places(GO_ROUND_BYTES + 1).1, GO_ROUND_BYTES + 1);
    }

    #[test]
    fn each_processor_has_the_rates_of_what_goes_round_there() {
        let little = touched(1024, 0, 0, 0);
        let rates_of = |processors: &[(u32, Touched)]| rates(&details(), processors);
        assert_eq!(
            rates_of(&[(0, little)])[0],
            Rates {
                deposit_kib_ps: 10,
                take_kib_ps: 11,
                fetch_kib_ps: 11,
                deposit_more_kib_ps: 0,
                take_more_kib_ps: 0,
                pages_kib_ps: 0,
            }
        );
        // The first lays down, the second takes all of it once; on another host nobody does.
        let (giver, taker) = (touched(MIB, MIB, MIB, 0), touched(MIB, 0, 0, MIB));
        let rates = rates_of(&[(0, giver), (0, taker), (1, taker)]);
        let much = Rates {
            deposit_kib_ps: 14,
            take_kib_ps: 17,
            fetch_kib_ps: 14,
            deposit_more_kib_ps: 4,
            take_more_kib_ps: 6,
            pages_kib_ps: 0,
        };
        assert_eq!(rates[..2], [much; 2]);
        assert_eq!((much.more_kib_ps(), rates[2].deposit_kib_ps), (10, 12));
    }

    #[test]
    fn what_several_take_is_fetched_once() {
        // 64 MiB go round in all, half of a MiB in a turn, and each byte is taken four times.
        let here = touched(64 * MIB, 0, 0, 1024);
        let rates = Rates::of(&details(), &here, &touched(64 * MIB, 256, 256, 1024));
        let of_turn = Details::of_rotation(&details().takes_kib_ps, here.turn_bytes()) - 11;
        assert_eq!(of_turn, 30, "32 MiB are of each");
        assert_eq!(rates.fetch_kib_ps, 11 + (60 - 30 * 3 / 4) / 2);
        assert_eq!(rates.take_kib_ps, rates.fetch_kib_ps + 30);
    }

    #[test]
    fn pages_are_found_anew_in_each_turn_where_copies_have_not_paid_for_that() {
        let mut details = details();
        details.crowd_pages_ps = [40, 40, 80, 80];
        (details.pages_ps, details.pages_ps[9]) = ([5; 10], 35);
        let rates = |members, own| {
            let here = Touched { members, ..touched(own, 8, 8, 8) };
            let rates = Rates::of(&details, &here, &here);
            (rates.deposit_more_kib_ps, rates.fetch_kib_ps - 11)
        };
        assert_eq!(rates(1, 16).0, 0, "nobody else has had it");
        assert_eq!(
            rates(2, 16),
            (2 * 40 / 4, 40 / 4),
            "each byte copied from one place to another"
        );
        assert_eq!(rates(8, 0), (80 / 4, 80 / 4), "always the same source");
        let much = rates(8, 64 * MIB).1;
        let caches = (71 - 11) / 2;
        assert_eq!(much, caches + (80 - 30) / 4, "30 of it are in what copies took there");
    }
}
