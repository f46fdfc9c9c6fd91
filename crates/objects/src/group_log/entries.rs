//! How the entries of a group are written in its log: a word each, and the details of some in a cell.
//!
//! | bits of a word | |
//! |---|---|
//! | 0..28 | a cell (18 bits) with the mark of the server's epoch (9), a member, or a number |
//! | 28..32 | the kind |
//!
//! Numbers are low bits. The state that the entries before have made says which number they are of.

use landeck_protocols::service::{
    Ask, Asking, GroupEntry, Joining, MEMBERS_MAX, Party, Seat, Serving, State,
};
use landeck_wire::SegmentId;

const VALUE_BITS: u32 = 28;
const VALUE_MASK: u32 = (1 << VALUE_BITS) - 1;
const CELL_BITS: u32 = 18;
const CELL_MASK: u32 = (1 << CELL_BITS) - 1;
const HELD_BIT: u32 = 1 << (VALUE_BITS - 1);
/// The number of marks of epochs, without 0.
const MARKS: u64 = (HELD_BIT >> CELL_BITS) as u64 - 1;
const ID_BITS: u32 = MEMBERS_MAX.ilog2();

const BROADCAST: u32 = 1;
const WITH_DETAILS: u32 = 2;
const ASKED: u32 = 3;
const LEAVE: u32 = 4;
const DIED: u32 = 5;
const DEPARTED: u32 = 6;
const EVICT: u32 = 7;
const SYNC: u32 = 8;
const RELEASE: u32 = 9;
const DESTROY: u32 = 10;
const END: u32 = 11;
const CUT: u32 = 12;
const VACATE: u32 = 13;
const HOST_GONE: u32 = 14;

/// The kinds of details, above the low half of their second word.
const JOIN: u64 = 1 << 32;
const SERVE: u64 = 2 << 32;
const HOLD: u64 = 3 << 32;
const HOST: u64 = 4 << 32;

/// The details of an entry, as a cell holds them.
pub type Details = [u64; 3];

/// The word of an entry. One that is a message or has details refers to a cell.
#[inline]
#[must_use]
pub fn word_of(entry: &GroupEntry, cell: u32) -> u32 {
    let (kind, value) = match *entry {
        GroupEntry::Broadcast { was_held, by } => {
            (BROADCAST, cell_with(cell, by) | if was_held { HELD_BIT } else { 0 })
        }
        GroupEntry::Join(_) | GroupEntry::Serve(_) | GroupEntry::Hold(_) | GroupEntry::Host(_) => {
            (WITH_DETAILS, cell & CELL_MASK)
        }
        GroupEntry::Asked(_, by) => (ASKED, cell_with(cell, Some(by))),
        GroupEntry::Leave(seat) => (LEAVE, seat_value(seat)),
        GroupEntry::Died(seat) => (DIED, seat_value(seat)),
        GroupEntry::Departed(seat) => (DEPARTED, seat_value(seat)),
        GroupEntry::Evict(seat) => (EVICT, seat_value(seat)),
        GroupEntry::Sync(seat) => (SYNC, seat_value(seat)),
        GroupEntry::Release { ticket } => (RELEASE, ticket as u32),
        GroupEntry::Destroy => (DESTROY, 0),
        GroupEntry::End => (END, 0),
        GroupEntry::Cut { number } => (CUT, number as u32),
        GroupEntry::Vacate { epoch } => (VACATE, epoch as u32),
        GroupEntry::HostGone(host) => (HOST_GONE, host.into()),
    };
    kind << VALUE_BITS | value & VALUE_MASK
}

/// The cell that a word refers to, if it is of a message.
#[inline]
#[must_use]
pub const fn message_cell(word: u32) -> Option<u32> {
    if word >> VALUE_BITS == BROADCAST { Some(word & CELL_MASK) } else { None }
}

/// The cell with the details of an entry, if it has some.
#[inline]
#[must_use]
pub const fn details_cell(word: u32) -> Option<u32> {
    match word >> VALUE_BITS {
        WITH_DETAILS | ASKED => Some(word & CELL_MASK),
        _ => None,
    }
}

/// The entry that a word and its details are, after the entries that have made this state. `None` for words that no process
/// writes.
#[inline]
#[must_use]
pub fn entry_of(word: u32, details: Details, state: &State) -> Option<GroupEntry> {
    let value = word & VALUE_MASK;
    let by = || epoch_of((value & !HELD_BIT) >> CELL_BITS, state.epochs());
    Some(match word >> VALUE_BITS {
        BROADCAST => GroupEntry::Broadcast { was_held: value & HELD_BIT != 0, by: by() },
        WITH_DETAILS => return entry_with(details),
        ASKED => GroupEntry::Asked(asking_of(details)?, by()?),
        LEAVE => GroupEntry::Leave(seat_of(value)),
        DIED => GroupEntry::Died(seat_of(value)),
        DEPARTED => GroupEntry::Departed(seat_of(value)),
        EVICT => GroupEntry::Evict(seat_of(value)),
        SYNC => GroupEntry::Sync(seat_of(value)),
        RELEASE => GroupEntry::Release { ticket: last_with(value, state.position()) },
        DESTROY => GroupEntry::Destroy,
        END => GroupEntry::End,
        CUT => GroupEntry::Cut { number: last_with(value, state.cuts_made() + 1) },
        HOST_GONE => GroupEntry::HostGone(u16::try_from(value).ok()?),
        VACATE => GroupEntry::Vacate { epoch: last_with(value, state.epochs()) },
        _ => return None,
    })
}

/// The details of an entry that has some.
#[must_use]
pub fn details_of(entry: &GroupEntry) -> Option<Details> {
    Some(match *entry {
        GroupEntry::Join(Joining { process, context, place }) => {
            [process.to_word(), JOIN | u64::from(context), place]
        }
        GroupEntry::Serve(Serving { process, context }) => {
            [process.to_word(), SERVE | u64::from(context), 0]
        }
        GroupEntry::Hold(process) => [process.to_word(), HOLD, 0],
        GroupEntry::Host(SegmentId(host)) => [host, HOST, 0],
        GroupEntry::Asked(asking, _) => asking_details(&asking),
        _ => return None,
    })
}

fn entry_with([first, second, place]: Details) -> Option<GroupEntry> {
    let (process, context) = (Party::from_word(first), second as u32);
    Some(match second & !u64::from(u32::MAX) {
        JOIN => GroupEntry::Join(Joining { process, context, place }),
        SERVE => GroupEntry::Serve(Serving { process, context }),
        HOLD => GroupEntry::Hold(process),
        HOST => GroupEntry::Host(SegmentId(first)),
        _ => return None,
    })
}

/// A request as words: its process; number (24 bits), kind (8), a context or member (32); a place or number.
#[must_use]
pub const fn asking_details(asking: &Asking) -> Details {
    let (kind, value, place) = match asking.what {
        Ask::Join { context, place } => (1, context, place),
        Ask::Leave { seat, kept } => (2, seat_value(seat), kept),
        Ask::Sync(seat) => (3, seat_value(seat), 0),
        Ask::Destroy => (4, 0, 0),
        Ask::Hold => (5, 0, 0),
        Ask::Release { ticket } => (6, 0, ticket),
        Ask::Evict(seat) => (7, seat_value(seat), 0),
        Ask::End => (8, 0, 0),
        Ask::Cut { number } => (9, 0, number),
    };
    let number = asking.number & ((1 << Asking::NUMBER_BITS) - 1);
    let what = number as u64 | kind << Asking::NUMBER_BITS | (value as u64) << 32;
    [asking.process.to_word(), what, place]
}

/// The request of the words of [`asking_details`]. `None` for invalid ones.
#[must_use]
pub const fn asking_of([process, what, place]: Details) -> Option<Asking> {
    let value = (what >> 32) as u32;
    let asked = match (what as u32) >> Asking::NUMBER_BITS {
        1 => Ask::Join { context: value, place },
        2 => Ask::Leave { seat: seat_of(value), kept: place },
        3 => Ask::Sync(seat_of(value)),
        4 => Ask::Destroy,
        5 => Ask::Hold,
        6 => Ask::Release { ticket: place },
        7 => Ask::Evict(seat_of(value)),
        8 => Ask::End,
        9 => Ask::Cut { number: place },
        _ => return None,
    };
    let number = what as u32 & ((1 << Asking::NUMBER_BITS) - 1);
    Some(Asking { process: Party::from_word(process), number, what: asked })
}

/// A cell, and the mark of the server that appends it.
#[inline]
fn cell_with(cell: u32, by: Option<u64>) -> u32 {
    cell & CELL_MASK | by.map_or(0, |epoch| mark_of(epoch) as u32) << CELL_BITS
}

/// The mark of an epoch, counted from 1. The same mark comes again after [`MARKS`] epochs.
const fn mark_of(epoch: u64) -> u64 {
    1 + epoch.wrapping_sub(1) % MARKS
}

/// The last epoch with a mark, of so many; 0 if there was none. `None` for no mark.
#[inline]
fn epoch_of(mark: u32, epochs: u64) -> Option<u64> {
    let mark = (mark != 0).then_some(u64::from(mark))?;
    let since = (mark_of(epochs) + MARKS - mark) % MARKS;
    Some(epochs.saturating_sub(since))
}

/// The last number up to `last` with these low bits.
const fn last_with(low: u32, last: u64) -> u64 {
    let since = (last as u32).wrapping_sub(low) & VALUE_MASK;
    last.saturating_sub(since as u64)
}

const fn seat_value(seat: Seat) -> u32 {
    seat.id | seat.stamp << ID_BITS
}

const fn seat_of(value: u32) -> Seat {
    Seat { id: value & (MEMBERS_MAX as u32 - 1), stamp: value >> ID_BITS }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use landeck_protocols::service::Rules;

    use super::*;

    const PROCESS: Party = Party { host: 5, slot: 16_383, incarnation: u32::MAX };

    /// The state of a group whose server has changed so often.
    fn after(servers: u64) -> State {
        let mut state = State::new(Rules::default(), SegmentId(1));
        for epoch in 1..=servers {
            state.apply(GroupEntry::Serve(Serving { process: PROCESS, context: 1 }));
            state.apply(GroupEntry::Vacate { epoch });
        }
        state
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let state = after(600);
        let seat = Seat::new(1023, u64::MAX - 5);
        let asking = Asking { process: PROCESS, number: 7, what: Ask::Destroy };
        for entry in [
            GroupEntry::Broadcast { was_held: true, by: None },
            GroupEntry::Broadcast { was_held: false, by: Some(600) },
            GroupEntry::Broadcast { was_held: true, by: Some(90) },
            GroupEntry::Join(Joining { process: PROCESS, context: u32::MAX, place: u64::MAX }),
            GroupEntry::Host(SegmentId(u64::MAX)),
            GroupEntry::HostGone(u16::MAX),
            GroupEntry::Leave(seat),
            GroupEntry::Died(seat),
            GroupEntry::Departed(Seat::new(0, 0)),
            GroupEntry::Evict(seat),
            GroupEntry::Sync(seat),
            GroupEntry::Hold(PROCESS),
            GroupEntry::Release { ticket: 1_000 },
            GroupEntry::Destroy,
            GroupEntry::End,
            GroupEntry::Cut { number: 1 },
            GroupEntry::Serve(Serving { process: PROCESS, context: u32::MAX }),
            GroupEntry::Vacate { epoch: 599 },
            GroupEntry::Asked(asking, 511),
        ] {
            let word = word_of(&entry, CELL_MASK);
            let details = details_of(&entry);
            assert_eq!(entry_of(word, details.unwrap_or_default(), &state), Some(entry));
            assert_eq!(details_cell(word), details.map(|_| CELL_MASK));
            let is_message = matches!(entry, GroupEntry::Broadcast { .. });
            assert_eq!(message_cell(word), is_message.then_some(CELL_MASK));
        }
    }

    #[test]
    fn words_that_nobody_writes_are_no_entries() {
        let state = after(1);
        for word in [
            0,
            VALUE_MASK,
            HOST_GONE << VALUE_BITS | 1 << 16,
            15 << VALUE_BITS,
            ASKED << VALUE_BITS,
        ] {
            assert_eq!(entry_of(word, [0, 4 << 24, 0], &state), None, "{word:#x}");
        }
        for second in [0, 5 << 32, u64::MAX] {
            assert_eq!(entry_of(WITH_DETAILS << VALUE_BITS, [0, second, 0], &state), None);
        }
        for kind in [0, 10, 255] {
            assert_eq!(asking_of([1, kind << 24, 0]), None);
        }
    }

    #[test]
    fn servers_that_follow_each_other_have_different_marks() {
        for epoch in [1, 2, 510, 511, 512, u64::MAX - 1] {
            let marks = [epoch, epoch + 1].map(mark_of);
            assert!(marks[0] != marks[1] && !marks.contains(&0), "{epoch}: {marks:?}");
            assert!(marks.iter().all(|&mark| mark <= MARKS));
            for epochs in [epoch, epoch + 1] {
                assert_eq!(epoch_of(mark_of(epoch) as u32, epochs), Some(epoch));
            }
        }
        assert_eq!(epoch_of(0, 7), None);
        assert_eq!(epoch_of(9, 0), Some(0), "there was no server yet");
    }

    #[test]
    fn numbers_are_known_by_their_low_bits() {
        for last in [0u64, 5, 1 << 28, (1 << 28) - 1, (1 << 40) + 3] {
            for number in [last, last.saturating_sub(1), last.saturating_sub(100_000)] {
                assert_eq!(last_with(number as u32 & VALUE_MASK, last), number);
            }
        }
    }

    #[test]
    fn requests_travel_as_words() {
        let seat = Seat::new(7, 99);
        for what in [
            Ask::Join { context: u32::MAX, place: 1 << 40 },
            Ask::Leave { seat, kept: u64::MAX },
            Ask::Sync(seat),
            Ask::Destroy,
            Ask::Hold,
            Ask::Release { ticket: 1 << 50 },
            Ask::Evict(seat),
            Ask::End,
            Ask::Cut { number: u64::MAX },
        ] {
            let asking = Asking { process: PROCESS, number: (1 << 24) - 1, what };
            assert_eq!(asking_of(asking_details(&asking)), Some(asking));
        }
    }
}
