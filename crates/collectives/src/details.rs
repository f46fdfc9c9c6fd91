//! More about a host than choosing needs: what the simulator wants to know beside [`Figures`].
//!
//! `landeck tune` measures it with them. It is kept in the same file, and never reaches a segment.

use std::array;

use crate::figures::Figures;

/// Sizes of messages that are measured, in bytes: a word more than its line has room for, a few
/// lines, a page, all that a ring takes at once, and several pieces.
pub const MESSAGE_BYTES: [u64; 5] = [64, 512, 4096, 16_384, 65_536];

/// What a host can do, in detail. Times are in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// What a call of a collective operation over messages takes beside them.
    pub call_ps: u64,
    /// What a step of its plan takes that copies or combines a few bytes.
    pub step_ps: u64,
    /// From one process to the other on a processor that two share and wait at a board.
    pub turn_ps: u64,
    /// The same to the next of eight.
    pub crowd_switch_ps: u64,
    /// Messages of [`MESSAGE_BYTES`] between two processes: half of a round trip.
    pub messages_ps: [u64; MESSAGE_BYTES.len()],
}

/// The names of the details in a file, in the order of [`Details::words`], and what they are.
pub(crate) const NAMES: [(&str, &str); Details::WORDS] = [
    ("call_ps", "a call over messages, beside them"),
    ("step_ps", "a step that copies or combines a few bytes"),
    ("turn_ps", "to the other of two processes on the same processor, at a board"),
    ("crowd_switch_ps", "to the next of eight processes on the same processor"),
    ("message_64_ps", "a message of 64 bytes"),
    ("message_512_ps", "a message of 512 bytes"),
    ("message_4096_ps", "a message of 4,096 bytes"),
    ("message_16384_ps", "a message of 16,384 bytes"),
    ("message_65536_ps", "a message of 65,536 bytes"),
];

impl Details {
    /// How many words they are.
    pub(crate) const WORDS: usize = 4 + MESSAGE_BYTES.len();

    /// What is to be expected of a host with these figures, where nobody has measured it: a copy into
    /// shared memory and one out of it, both at once where data come in pieces.
    pub fn of(figures: &Figures) -> Self {
        const RING_KIB: u64 = 16;
        /// After so many bytes a processor fetches the lines of a copy before they are asked for.
        const FIRST_BYTES: u64 = 2048;
        let Figures { message_ps, deposit_ps, line_ps, switch_ps, .. } = *figures;
        let (both_ps, out_ps) = (figures.two_copy_kib_ps, figures.one_copy_kib_ps);
        let message = |bytes: u64| {
            let first_ps = line_ps * bytes.min(FIRST_BYTES) / FIRST_BYTES;
            let copies_ps = match bytes / 1024 {
                0..=RING_KIB => (both_ps + out_ps) * bytes / 1024,
                _ => both_ps * (bytes / 1024 + RING_KIB),
            };
            message_ps + deposit_ps + first_ps + copies_ps
        };
        Self {
            call_ps: 300_000,
            step_ps: 80_000,
            turn_ps: switch_ps,
            crowd_switch_ps: switch_ps * 4 / 3,
            messages_ps: MESSAGE_BYTES.map(message),
        }
    }

    /// As words.
    pub(crate) fn words(&self) -> [u64; Self::WORDS] {
        let first = [self.call_ps, self.step_ps, self.turn_ps, self.crowd_switch_ps];
        let mut all = first.into_iter().chain(self.messages_ps);
        array::from_fn(|_| all.next().unwrap_or(0))
    }

    /// From words.
    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [call_ps, step_ps, turn_ps, crowd_switch_ps, messages_ps @ ..] = words;
        Self { call_ps, step_ps, turn_ps, crowd_switch_ps, messages_ps }
    }

    /// The smaller one of each.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let (own, others) = (self.words(), other.words());
        Self::from_words(array::from_fn(|number| own[number].min(others[number])))
    }

    /// Their names, what they are, and their values, in order.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        NAMES.into_iter().zip(self.words()).map(|((name, about), value)| (name, about, value))
    }

    /// How long a message of more bytes than its line has room for takes, given the figures they
    /// were measured with: between two that were measured, in proportion.
    pub fn message_ps(&self, figures: &Figures, bytes: u64) -> u64 {
        let measured = MESSAGE_BYTES.into_iter().zip(self.messages_ps);
        let (mut before_bytes, mut before_ps) = (0, self.messages_ps[0]);
        for (at_bytes, at_ps) in measured {
            if bytes <= at_bytes {
                let more_ps = at_ps.saturating_sub(before_ps);
                let part = (bytes - before_bytes) * more_ps / (at_bytes - before_bytes);
                return before_ps + part;
            }
            (before_bytes, before_ps) = (at_bytes, at_ps);
        }
        let more_ps = u128::from(bytes - before_bytes) * u128::from(figures.two_copy_kib_ps) / 1024;
        before_ps.saturating_add(u64::try_from(more_ps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_between_two_that_were_measured_are_in_proportion() {
        let figures = Figures { two_copy_kib_ps: 1024, ..Figures::default() };
        let messages_ps = [100, 200, 1_000, 5_000, 9_000];
        let details = Details { messages_ps, ..Details::of(&figures) };
        let of = |bytes| details.message_ps(&figures, bytes);
        assert_eq!([of(49), of(64), of(288), of(16_384)], [100, 100, 150, 5_000]);
        assert_eq!([of(65_536), of(65_536 + 1024)], [9_000, 9_000 + 1024]);
    }

    #[test]
    fn words_lead_back_and_the_least_is_taken_of_each() {
        let details = Details::of(&Figures::default());
        assert_eq!(Details::from_words(details.words()), details);
        let other = Details { call_ps: 1, step_ps: u64::MAX, ..details };
        assert_eq!(details.least(other), Details { call_ps: 1, ..details });
    }
}
