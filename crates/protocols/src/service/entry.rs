//! The entries of a group's log: what each of them means. The log knows how they are written.

use landeck_wire::SegmentId;

/// A process that takes part in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    /// The number of its host in the group ([`State::hosts`](super::State::hosts)).
    pub host: u16,
    /// Its slot there.
    pub slot: u16,
    /// The incarnation of the slot.
    pub incarnation: u32,
}

impl Party {
    /// Encodes the process as one word.
    pub const fn to_word(self) -> u64 {
        self.slot as u64 | (self.host as u64) << 16 | (self.incarnation as u64) << 32
    }

    /// Decodes a word of [`Party::to_word`].
    pub const fn from_word(word: u64) -> Self {
        Self { host: (word >> 16) as u16, slot: word as u16, incarnation: (word >> 32) as u32 }
    }
}

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
    pub const STAMP_BITS: u32 = 18;

    /// Creates the seat of a member that joined at this place of the log.
    pub const fn new(id: u32, joined_at: u64) -> Self {
        Self { id, stamp: joined_at as u32 & ((1 << Self::STAMP_BITS) - 1) }
    }
}

/// An entry of a group's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEntry {
    /// A host takes part. It has the next number.
    Host(SegmentId),
    /// A host is lost, with all processes there.
    HostGone(u16),
    /// A message.
    Broadcast {
        /// The sender has waited, and releases its hold afterwards.
        was_held: bool,
        /// The epoch of the server that sends it. `None` without a server.
        by: Option<u64>,
    },
    /// A mailbox becomes a member.
    Join(Joining),
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
    Hold(Party),
    /// A process that waited does so no longer, or has ended.
    Release {
        /// The place of its [`GroupEntry::Hold`].
        ticket: u64,
    },
    /// The group is to be destroyed.
    Destroy,
    /// The group is destroyed, whatever is still held.
    End,
    /// The present members take part in the collective operations from this number on.
    Cut {
        /// The number.
        number: u64,
    },
    /// A process takes the server's seat.
    Serve(Serving),
    /// The server has left its seat, or has ended.
    Vacate {
        /// Its epoch.
        epoch: u64,
    },
    /// The server of an epoch carries out a client's request.
    Asked(Asking, u64),
}

/// A mailbox that wants to be a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining {
    /// Its process.
    pub process: Party,
    /// Its context.
    pub context: u32,
    /// The address of its mark.
    pub place: u64,
}

/// A process that waits with a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingSender {
    /// The place of its [`GroupEntry::Hold`].
    pub ticket: u64,
    /// The process.
    pub process: Party,
}

/// A process that takes the server's seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The process.
    pub process: Party,
    /// The context of the mailbox to which requests go.
    pub context: u32,
}

/// A numbered request of a client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The client.
    pub process: Party,
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
    /// The client waits with a broadcast.
    Hold,
    /// As [`GroupEntry::Release`].
    Release {
        /// The place of the hold.
        ticket: u64,
    },
    /// A member is to be evicted.
    Evict(Seat),
    /// As [`GroupEntry::End`].
    End,
    /// As [`GroupEntry::Cut`].
    Cut {
        /// The number.
        number: u64,
    },
}

impl Ask {
    /// The request for an entry that a process on another host would append itself if it had the log.
    pub const fn of(entry: GroupEntry) -> Option<Self> {
        Some(match entry {
            GroupEntry::Hold(_) => Self::Hold,
            GroupEntry::Release { ticket } => Self::Release { ticket },
            GroupEntry::Evict(seat) => Self::Evict(seat),
            GroupEntry::End => Self::End,
            GroupEntry::Cut { number } => Self::Cut { number },
            _ => return None,
        })
    }
}

impl Asking {
    /// The number of bits of a request's number.
    pub const NUMBER_BITS: u32 = 24;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_words() {
        for process in [
            Party { host: 0, slot: 0, incarnation: 1 },
            Party { host: u16::MAX, slot: 7, incarnation: u32::MAX },
            Party { host: 3, slot: u16::MAX, incarnation: 0 },
        ] {
            assert_eq!(Party::from_word(process.to_word()), process);
        }
    }
}
