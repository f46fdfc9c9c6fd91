//! A member of a group, as the fold knows it.

use super::changes::ChangedMember;
use super::entry::{Party, Seat};

/// A member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Its number: the smallest that was free.
    pub id: u32,
    /// Its process.
    pub process: Party,
    /// The context of its mailbox.
    pub context: u32,
    /// The address of the mailbox's mark.
    pub place: u64,
    /// The place in the log at which it joined.
    pub joined_at: u64,
    /// The number of the first broadcast that it gets.
    pub first: u64,
    pub(super) sync: Coming,
}

impl MemberRecord {
    /// Its identity in entries.
    pub const fn seat(&self) -> Seat {
        Seat::new(self.id, self.joined_at)
    }

    /// The member, as changes tell of it.
    pub(super) fn changed(&self) -> ChangedMember {
        let Self { id, process, context, place, joined_at, .. } = *self;
        ChangedMember { id, process, context, place, joined_at }
    }
}

/// The part of a member in the present round of synchronisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Coming {
    /// It does not take part.
    #[default]
    Apart = 0,
    /// The round waits for it.
    Awaited = 1,
    /// It has come.
    Come = 2,
    /// It does not take part, and has come to the next one.
    ComeToNext = 3,
}
