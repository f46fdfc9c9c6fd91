//! The members that take part in collective operations.

use super::entry::{Party, Seat};

/// The members of the collective operations from a number on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The number of the first operation.
    pub number: u64,
    /// The number of the view.
    pub view: u64,
    /// The first member of the cut before whose process has died since that cut.
    pub died: Option<u32>,
    /// The members.
    pub members: Vec<CutMember>,
}

/// A member that takes part in collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutMember {
    /// Its number.
    pub id: u32,
    /// Its process.
    pub process: Party,
    /// The place in the log at which it joined.
    pub joined_at: u64,
}

impl Cut {
    /// The seats of its members.
    pub fn seats(&self) -> impl Iterator<Item = Seat> + '_ {
        self.members.iter().map(|member| Seat::new(member.id, member.joined_at))
    }

    pub(super) fn has(&self, seat: Seat) -> bool {
        self.seats().any(|own| own == seat)
    }
}
