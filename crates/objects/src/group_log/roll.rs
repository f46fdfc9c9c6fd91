//! The roll: one word on which members come to a synchronisation while no member joins, leaves or dies.
//!
//! | bits | |
//! |---|---|
//! | 0..24 | the members that have come, one bit for each number |
//! | 24 | whether it is open |
//! | 25..29 | the round of the log that goes on from here when it is closed, low bits |
//! | 29..37 | its turn: one more whenever all have come, and whenever it is opened |
//! | 37..64 | the view that it was opened for, low bits |
//!
//! An arriving member sets its bit by an exchange; the last one begins the next turn with the same exchange. So
//! a synchronisation costs one exchange for each member, and writes nothing that others fold. A process that is
//! about to change the members closes the roll first. That exchange fixes the members that have come, and a
//! process that needs them writes them into the log. After that no member is on the closed roll, which is
//! *settled* and may be opened again for another view. The checks of each member stand in `node`.

use landeck_memory::sync::{AtomicU64, Ordering, prefetch_to_write};

use super::{GroupLog, ROLL};

const OPEN: u64 = 1 << Roll::MEMBERS;
const WHO_MASK: u64 = OPEN - 1;
const ROUND: Field = Field { shift: 25, bits: 4 };
const TURN: Field = Field { shift: 29, bits: 8 };
const VIEW: Field = Field { shift: 37, bits: 27 };

struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    const fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    const fn of(&self, word: u64) -> u64 {
        word >> self.shift & self.mask()
    }

    const fn in_word(&self, value: u64) -> u64 {
        (value & self.mask()) << self.shift
    }
}

/// The value of the roll's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roll(u64);

impl Roll {
    /// Members with lower numbers than this have a place on it.
    pub const MEMBERS: u32 = 24;

    /// Whether members may come.
    #[inline]
    pub const fn is_open(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Whether it is closed, and no member is on it whose arrival is not in the log.
    #[inline]
    pub const fn is_settled(self) -> bool {
        self.0 & (OPEN | WHO_MASK) == 0
    }

    /// The members that have come: a bit for each number.
    #[inline]
    pub const fn who(self) -> u32 {
        (self.0 & WHO_MASK) as u32
    }

    /// Its turn.
    #[inline]
    pub const fn turn(self) -> u8 {
        TURN.of(self.0) as u8
    }

    /// Whether it was opened for the view with this number.
    #[inline]
    pub const fn is_of_view(self, view: u64) -> bool {
        VIEW.of(self.0) == view & VIEW.mask()
    }

    /// Whether this is the round of the log that goes on from here.
    #[inline]
    pub const fn is_of_round(self, round: u64) -> bool {
        ROUND.of(self.0) == round & ROUND.mask()
    }

    /// This roll, opened for a view: no member has come.
    #[inline]
    pub const fn opened(self, view: u64, round: u64) -> Self {
        let turn = TURN.in_word(TURN.of(self.0) + 1);
        Self(OPEN | turn | VIEW.in_word(view) | ROUND.in_word(round))
    }

    /// This roll, with a member that has come.
    #[inline]
    pub const fn with(self, id: u32) -> Self {
        Self(if id < Self::MEMBERS { self.0 | 1 << id } else { self.0 })
    }

    /// This roll at its next turn: all members have come.
    #[inline]
    pub const fn over(self) -> Self {
        let turn = TURN.in_word(TURN.of(self.0) + 1);
        Self(self.0 & !(WHO_MASK | TURN.mask() << TURN.shift) | turn)
    }

    /// This roll, closed.
    #[inline]
    pub const fn closed(self) -> Self {
        Self(self.0 & !OPEN)
    }

    /// This roll, closed, with no member on it.
    #[inline]
    pub const fn settled(self) -> Self {
        Self(self.0 & !(OPEN | WHO_MASK))
    }
}

impl GroupLog {
    /// The value of the roll's word.
    #[inline]
    pub fn roll(&self) -> Roll {
        Roll(self.roll_word().load(Ordering::SeqCst))
    }

    /// Reads the roll's word before an exchange: prefetches its line for writing, so that it moves only once.
    #[inline]
    pub fn roll_to_exchange(&self) -> Roll {
        prefetch_to_write(self.roll_word());
        self.roll()
    }

    /// Puts something else there, if this still is what stands there.
    #[inline]
    pub fn exchange_roll(&self, seen: Roll, new: Roll) -> bool {
        let word = self.roll_word();
        let is_set =
            word.compare_exchange(seen.0, new.0, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        super::stored();
        is_set
    }

    #[inline]
    fn roll_word(&self) -> &AtomicU64 {
        self.head(ROLL)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_over_when_all_have_come_and_the_rest_of_the_word_stays() {
        let none = Roll(0);
        assert!(none.is_settled() && !none.is_open());
        let open = none.opened(u64::MAX - 2, 19);
        assert!(open.is_open() && open.is_of_view(u64::MAX - 2) && open.is_of_round(19));
        assert!(!open.is_of_view(u64::MAX - 1) && !open.is_of_round(20));
        assert_eq!((open.turn(), open.who()), (1, 0));
        let come = open.with(0).with(23);
        assert_eq!((come.who(), come.turn()), (1 | 1 << 23, 1));
        assert_eq!(come.with(24).who(), come.who(), "there is no such place");
        let over = come.over();
        assert!(over.is_open() && over.is_of_view(u64::MAX - 2) && over.is_of_round(19));
        assert_eq!((over.who(), over.turn()), (0, 2));
    }

    #[test]
    fn a_member_that_has_come_stays_on_a_closed_roll_until_it_is_settled() {
        let closed = Roll(0).opened(7, 3).with(5).closed();
        assert!(!closed.is_open() && !closed.is_settled());
        assert_eq!(closed.who(), 1 << 5);
        assert!(closed.settled().is_settled() && closed.settled().is_of_view(7));
        assert_eq!(closed.settled().opened(8, 4).turn(), 2);
    }

    #[test]
    fn turns_go_round() {
        let mut roll = Roll(0).opened(1, 1);
        for _ in 0..256 {
            assert!(roll.is_of_view(1) && roll.is_of_round(1) && roll.is_open());
            roll = roll.with(3).over();
        }
        assert_eq!(roll.turn(), 1);
    }
}
