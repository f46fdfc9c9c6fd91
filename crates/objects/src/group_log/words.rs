//! The words of a group's log, and what they mean.

use landeck_memory::sync::{AtomicU64, Ordering};

use super::Described;

/// Words of a cell in front of the bytes of its message, and where those begin.
pub(super) const CELL_HEAD_WORDS: u64 = 6;
pub(super) const CELL_DATA: u64 = CELL_HEAD_WORDS * 8;
/// Bits that count the messages a member has taken; the bits above them name the member.
pub(super) const TAKEN_BITS: u32 = 40;
pub(super) const TAKEN_MASK: u64 = (1 << TAKEN_BITS) - 1;

const OWNER_SHIFT: u32 = 62;
const NUMBER_MASK: u64 = (1 << OWNER_SHIFT) - 1;
const SLOT_SHIFT: u32 = 32;

/// The owner of a cell or page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It has no owner.
    Nobody,
    /// A process is about to use it.
    Process { slot: u32, incarnation: u32 },
    /// Of the message with this number.
    Message(u64),
    /// Of the entry at this place.
    Entry(u64),
}

impl Owner {
    pub(super) const fn to_word(self) -> u64 {
        match self {
            Self::Nobody => 0,
            Self::Process { slot, incarnation } => {
                1 << OWNER_SHIFT | (slot as u64 & 0x3fff_ffff) << SLOT_SHIFT | incarnation as u64
            }
            Self::Message(number) => 2 << OWNER_SHIFT | number & NUMBER_MASK,
            Self::Entry(place) => 3 << OWNER_SHIFT | place & NUMBER_MASK,
        }
    }

    pub(super) const fn from_word(word: u64) -> Self {
        let number = word & NUMBER_MASK;
        match word >> OWNER_SHIFT {
            1 => Self::Process { slot: (number >> SLOT_SHIFT) as u32, incarnation: word as u32 },
            2 => Self::Message(number),
            3 => Self::Entry(number),
            _ => Self::Nobody,
        }
    }
}

pub(super) const fn of_message(number: u64) -> u64 {
    Owner::Message(number).to_word()
}

/// The first words of a cell.
pub(super) struct Cell<'a> {
    pub(super) owner: &'a AtomicU64,
    rest: &'a [AtomicU64],
}

impl<'a> Cell<'a> {
    pub(super) fn of(words: &'a [AtomicU64]) -> Option<Self> {
        let (owner, rest) = words.split_first()?;
        Some(Self { owner, rest })
    }

    /// Bytes; the tag (low half) and the first page; what the parties have agreed on.
    pub(super) fn described(&self) -> Described {
        let word = |at: usize| self.rest[at].load(Ordering::Relaxed);
        let about = word(1);
        Described {
            bytes: word(0),
            tag: about as u32,
            first_page: (about >> 32) as u32,
            words: [word(2), word(3), word(4)],
        }
    }

    pub(super) fn describe(&self, described: &Described) {
        let Described { tag, words, bytes, first_page } = *described;
        let about = u64::from(tag) | u64::from(first_page) << 32;
        for (at, word) in [bytes, about, words[0], words[1], words[2]].into_iter().enumerate() {
            self.rest[at].store(word, Ordering::Relaxed);
            super::stored();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_from_each_other() {
        for owner in [
            Owner::Nobody,
            Owner::Process { slot: 9, incarnation: u32::MAX },
            Owner::Message(0),
            Owner::Entry(1 << 40),
        ] {
            assert_eq!(Owner::from_word(owner.to_word()), owner);
        }
    }
}
