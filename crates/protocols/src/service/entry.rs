//! An entry of a group's log, and the word that represents it there.
//!
//! | bits of a word | |
//! |---|---|
//! | 0..28 | a cell with details (18 bits) and the server's epoch (9), a member, or a number |
//! | 28..32 | the kind |

use super::MEMBERS_MAX;

const VALUE_BITS: u32 = 28;
const VALUE_MASK: u32 = (1 << VALUE_BITS) - 1;
const CELL_BITS: u32 = 18;
const CELL_MASK: u32 = (1 << CELL_BITS) - 1;
const HELD_BIT: u32 = 1 << (VALUE_BITS - 1);
/// The number of marks of epochs that entries can hold, without 0.
const EPOCH_MARKS: u32 = HELD_BIT / (CELL_MASK + 1) - 1;
const SLOT_BITS: u32 = 14;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
/// The bits of an incarnation that entries can hold.
const INCARNATION_MASK: u32 = (1 << (VALUE_BITS - SLOT_BITS)) - 1;
const ID_BITS: u32 = MEMBERS_MAX.ilog2();

/// The identity of a member: its number and when this was assigned, so that a former holder of the number is not
/// mistaken for the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The member's number.
    pub id: u32,
    /// The low bits of the place in the log at which it joined.
    pub stamp: u32,
}

impl Seat {
    /// The number of bits of a stamp.
    pub const STAMP_BITS: u32 = VALUE_BITS - ID_BITS;

    /// Creates the seat of a member that joined at this place of the log.
    pub const fn new(id: u32, joined_at: u64) -> Self {
        Self { id, stamp: joined_at as u32 & ((1 << Self::STAMP_BITS) - 1) }
    }

    const fn to_value(self) -> u32 {
        self.id | self.stamp << ID_BITS
    }

    const fn from_value(value: u32) -> Self {
        Self { id: value & (MEMBERS_MAX as u32 - 1), stamp: value >> ID_BITS }
    }
}

/// The word of the log for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryWord {
    /// A message, described in a cell.
    Broadcast {
        /// The cell.
        cell: u32,
        /// The sender has waited, and releases its hold afterwards.
        was_held: bool,
        /// The mark of the server that sends it ([`EntryWord::mark_of`]); 0 without a server.
        by: u32,
    },
    /// A mailbox becomes a member; the cell describes it.
    Join {
        /// The cell.
        cell: u32,
    },
    /// A member leaves.
    Leave(Seat),
    /// A member's process died.
    Died(Seat),
    /// A member's process ended in good order.
    Departed(Seat),
    /// A member is evicted because its mailbox stayed full.
    Evict(Seat),
    /// A member has come to the synchronisation.
    Sync(Seat),
    /// A process waits with a broadcast.
    Hold {
        /// Its slot.
        slot: u32,
        /// The low bits of its incarnation.
        incarnation: u32,
    },
    /// A process that waited does so no longer, or has ended.
    Release {
        /// The low bits of the place of its [`EntryWord::Hold`].
        ticket: u32,
    },
    /// The group is to be destroyed.
    Destroy,
    /// The group is destroyed, whatever is still held.
    End,
    /// The present members take part in the collective operations from this number on.
    Cut {
        /// The low bits of the number.
        number: u32,
    },
    /// A process takes the server's seat; the cell describes it.
    Serve {
        /// The cell.
        cell: u32,
    },
    /// The server has left its seat, or has ended.
    Vacate {
        /// The low bits of its epoch.
        epoch: u32,
    },
    /// The server carries out a client's request; the cell describes it.
    Asked {
        /// The cell.
        cell: u32,
        /// The mark of the server ([`EntryWord::mark_of`]).
        by: u32,
    },
}

impl EntryWord {
    /// Encodes the entry.
    pub const fn to_word(self) -> u32 {
        let (kind, value) = match self {
            Self::Broadcast { cell, was_held, by } => {
                (1, served(cell, by) | if was_held { HELD_BIT } else { 0 })
            }
            Self::Join { cell } => (2, cell),
            Self::Leave(seat) => (3, seat.to_value()),
            Self::Died(seat) => (4, seat.to_value()),
            Self::Departed(seat) => (5, seat.to_value()),
            Self::Evict(seat) => (6, seat.to_value()),
            Self::Sync(seat) => (7, seat.to_value()),
            Self::Hold { slot, incarnation } => {
                (8, slot & SLOT_MASK | (incarnation & INCARNATION_MASK) << SLOT_BITS)
            }
            Self::Release { ticket } => (9, ticket),
            Self::Destroy => (10, 0),
            Self::End => (11, 0),
            Self::Cut { number } => (12, number),
            Self::Serve { cell } => (13, cell),
            Self::Vacate { epoch } => (14, epoch),
            Self::Asked { cell, by } => (15, served(cell, by)),
        };
        kind << VALUE_BITS | value & VALUE_MASK
    }

    /// Decodes a word; `None` for one that no process has written.
    pub const fn from_word(word: u32) -> Option<Self> {
        let value = word & VALUE_MASK;
        let (cell, seat) = (value & CELL_MASK, Seat::from_value(value));
        let by = (value & !HELD_BIT) >> CELL_BITS;
        Some(match word >> VALUE_BITS {
            1 => Self::Broadcast { cell, was_held: value & HELD_BIT != 0, by },
            2 => Self::Join { cell },
            3 => Self::Leave(seat),
            4 => Self::Died(seat),
            5 => Self::Departed(seat),
            6 => Self::Evict(seat),
            7 => Self::Sync(seat),
            8 => Self::Hold { slot: value & SLOT_MASK, incarnation: value >> SLOT_BITS },
            9 => Self::Release { ticket: value },
            10 => Self::Destroy,
            11 => Self::End,
            12 => Self::Cut { number: value },
            13 => Self::Serve { cell: value },
            14 => Self::Vacate { epoch: value },
            15 => Self::Asked { cell, by },
            _ => return None,
        })
    }

    /// The low bits of a place or number, as a word holds them.
    pub const fn low_bits(number: u64) -> u32 {
        number as u32 & VALUE_MASK
    }

    /// The mark in the entries of the server of an epoch, counted from 1. The same mark comes again after 511 epochs.
    pub const fn mark_of(epoch: u64) -> u32 {
        1 + (epoch.wrapping_sub(1) % EPOCH_MARKS as u64) as u32
    }
}

/// A cell, and the mark of the server that appends it.
const fn served(cell: u32, by: u32) -> u32 {
    cell & CELL_MASK | (by & EPOCH_MARKS) << CELL_BITS
}

/// A mailbox that wants to be a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining {
    /// The slot of its process.
    pub slot: u32,
    /// The incarnation of the process.
    pub incarnation: u32,
    /// Its context.
    pub context: u32,
    /// The address of its mark.
    pub place: u64,
}

/// A process that waits with a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingSender {
    /// The low bits of the place of its [`EntryWord::Hold`].
    pub ticket: u32,
    /// The slot of the process.
    pub slot: u32,
    /// The low bits of its incarnation.
    pub incarnation: u32,
}

impl WaitingSender {
    /// Whether it belongs to the user of its slot with this incarnation.
    pub const fn is_of(&self, incarnation: u32) -> bool {
        self.incarnation == incarnation & INCARNATION_MASK
    }
}

/// A process that takes the server's seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The slot of the process.
    pub slot: u32,
    /// The incarnation of the process.
    pub incarnation: u32,
    /// The context of the mailbox to which requests go.
    pub context: u32,
}

/// A numbered request of a client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The client's peer number on the log's host: its slot, if it is there.
    pub slot: u32,
    /// The incarnation of the client.
    pub incarnation: u32,
    /// The number of the request among those of the client: 24 bits.
    pub number: u32,
    /// The request.
    pub what: Ask,
}

/// A request to the server other than a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A mailbox of the client is to become a member.
    Join {
        /// Its context.
        context: u32,
        /// The address of its mark.
        place: u64,
    },
    /// A member leaves.
    Leave {
        /// The member.
        seat: Seat,
        /// The number of the first broadcast that it holds no copy of. If it cannot leave before that, it does not
        /// leave.
        kept: u64,
    },
    /// A member has come to the synchronisation.
    Sync(Seat),
    /// The group is to be destroyed.
    Destroy,
    /// An entry without details that the client would append itself if it had the log.
    Entry(EntryWord),
}

impl Asking {
    /// The number of bits of a request's number.
    pub const NUMBER_BITS: u32 = 24;

    /// Encodes the request: slot and incarnation; number (24 bits), kind (8), a context or seat (32); a place or a
    /// broadcast.
    pub const fn to_words(self) -> [u64; 3] {
        let (kind, value, place) = match self.what {
            Ask::Join { context, place } => (1, context, place),
            Ask::Leave { seat, kept } => (2, seat.to_value(), kept),
            Ask::Sync(seat) => (3, seat.to_value(), 0),
            Ask::Destroy => (4, 0, 0),
            Ask::Entry(word) => (5, word.to_word(), 0),
        };
        let number = self.number & ((1 << Self::NUMBER_BITS) - 1);
        let who = self.slot as u64 | (self.incarnation as u64) << 32;
        let what = number as u64 | kind << Self::NUMBER_BITS | (value as u64) << 32;
        [who, what, place]
    }

    /// Decodes the words of [`Asking::to_words`]; `None` for invalid ones.
    pub const fn from_words([who, what, place]: [u64; 3]) -> Option<Self> {
        let value = (what >> 32) as u32;
        let asked = match (what as u32) >> Self::NUMBER_BITS {
            1 => Ask::Join { context: value, place },
            2 => Ask::Leave { seat: Seat::from_value(value), kept: place },
            3 => Ask::Sync(Seat::from_value(value)),
            4 => Ask::Destroy,
            5 => match EntryWord::from_word(value) {
                Some(word) => Ask::Entry(word),
                None => return None,
            },
            _ => return None,
        };
        let number = what as u32 & ((1 << Self::NUMBER_BITS) - 1);
        let (slot, incarnation) = (who as u32, (who >> 32) as u32);
        Some(Self { slot, incarnation, number, what: asked })
    }
}

/// An entry with its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEntry {
    /// A mailbox becomes a member.
    Join(Joining),
    /// A process takes the server's seat.
    Serve(Serving),
    /// The server carries out a request. The number is the server's mark, as in [`EntryWord::Asked`].
    Asked(Asking, u32),
    /// An entry that needs no details.
    Plain(EntryWord),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_written() {
        let seat = Seat::new(1023, u64::MAX - 5);
        for entry in [
            EntryWord::Broadcast { cell: CELL_MASK, was_held: true, by: 0 },
            EntryWord::Broadcast { cell: 0, was_held: false, by: EPOCH_MARKS },
            EntryWord::Join { cell: 7 },
            EntryWord::Leave(seat),
            EntryWord::Died(seat),
            EntryWord::Departed(Seat::new(0, 0)),
            EntryWord::Evict(seat),
            EntryWord::Sync(seat),
            EntryWord::Hold { slot: 9, incarnation: 16_383 },
            EntryWord::Release { ticket: EntryWord::low_bits(u64::MAX) },
            EntryWord::Destroy,
            EntryWord::End,
            EntryWord::Cut { number: 3 },
            EntryWord::Serve { cell: 5 },
            EntryWord::Vacate { epoch: EntryWord::low_bits(u64::MAX) },
            EntryWord::Asked { cell: 6, by: EntryWord::mark_of(EPOCH_MARKS.into()) },
        ] {
            assert_eq!(EntryWord::from_word(entry.to_word()), Some(entry));
        }
        for word in [0, VALUE_MASK] {
            assert_eq!(EntryWord::from_word(word), None, "{word:#x}");
        }
    }

    #[test]
    fn servers_that_follow_each_other_have_different_marks() {
        for epoch in [1, 2, 510, 511, 512, u64::MAX - 1] {
            let marks = [epoch, epoch + 1].map(EntryWord::mark_of);
            assert!(marks[0] != marks[1] && !marks.contains(&0), "{epoch}: {marks:?}");
            assert!(marks.iter().all(|&mark| mark <= EPOCH_MARKS));
        }
    }

    #[test]
    fn requests_travel_as_words() {
        let seat = Seat::new(7, 99);
        let join = Ask::Join { context: u32::MAX, place: 1 << 40 };
        let leave = Ask::Leave { seat, kept: u64::MAX };
        let evict = Ask::Entry(EntryWord::Evict(seat));
        for what in [join, leave, Ask::Sync(seat), Ask::Destroy, evict] {
            let asking = Asking { slot: 3, incarnation: u32::MAX, number: (1 << 24) - 1, what };
            assert_eq!(Asking::from_words(asking.to_words()), Some(asking));
        }
        for kind in [0, 5, 6, 255] {
            assert_eq!(Asking::from_words([1, kind << 24, 0]), None);
        }
    }
}
