//! The members that take part in the collective operations of a group from a number on.

use landeck_protocols::service::{Cut, CutMember, GroupEntry, Seat, State};

use crate::error::Result;
use crate::group_error::GroupError;
use crate::replica::{Replica, no_peer};
use crate::time_limit::TimeLimit;

/// The members that take part in collective operations, in the order of their ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participants {
    /// The number of the first operation that they take part in.
    pub first_operation: u64,
    /// The number of the first participant before these that died, if one did.
    pub died: Option<u32>,
    /// The members.
    pub members: Vec<Participant>,
}

/// A member that takes part in collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    /// The number of the member.
    pub id: u32,
    /// The number by which this process reaches its process.
    pub peer: u32,
}

impl Replica {
    /// The participants of operation `number`. The first member that comes to the operation fixes them.
    ///
    /// # Errors
    /// [`GroupError::LeftBehind`], [`GroupError::NoMember`], [`GroupError::Destroying`],
    /// [`GroupError::GroupDestroyed`], [`GroupError::Broken`], [`crate::ServiceError::Thread`].
    pub fn participants(&self, number: u64, seat: Seat) -> Result<Participants> {
        self.catch_up(TimeLimit::Unlimited)?;
        self.fix_participants(number, seat)?;
        self.wait(TimeLimit::Unlimited, no_peer, |local| {
            let left_behind = || GroupError::LeftBehind { group: self.name.clone(), number };
            let cut = local.state.cut(number).ok_or_else(left_behind)?;
            Ok(self.reach(&local.state, cut))
        })
    }

    /// The first participants that include this member. It waits until the other members come to their
    /// next operation.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], [`GroupError::Destroying`], [`GroupError::GroupDestroyed`],
    /// [`GroupError::Broken`], [`crate::ServiceError::Ended`], [`crate::ServiceError::Thread`].
    pub fn first_participants(&self, seat: Seat) -> Result<Participants> {
        self.catch_up(TimeLimit::Unlimited)?;
        loop {
            let found = self.wait(TimeLimit::Unlimited, no_peer, |local| {
                self.check_not_destroyed(&local.state)?;
                self.check_member(&local.state, seat)?;
                let state = &local.state;
                let last = state.cuts_made();
                let is_there = |seat| state.member(seat).is_some();
                // If none of the members that would fix the next participants is left, any member does.
                let is_abandoned = state.cut(last).is_none_or(|cut| !cut.seats().any(is_there));
                if is_abandoned {
                    return Ok(Some(Err(last + 1)));
                }
                let own = state.cut(last).filter(|cut| cut.seats().any(|it| it == seat));
                Ok(own.and_then(|cut| self.reach(state, cut)).map(Ok))
            })?;
            match found {
                Ok(participants) => return Ok(participants),
                Err(next) => self.fix_participants(next, seat)?,
            }
        }
    }

    /// Fixes the participants of an operation, unless they are.
    fn fix_participants(&self, number: u64, seat: Seat) -> Result<()> {
        let is_fixed = self.with(|local| {
            self.check_member(&local.state, seat)?;
            Ok(local.state.cuts_made() >= number)
        })?;
        if !is_fixed {
            self.put(GroupEntry::Cut { number }, |local| self.check_open(&local.state))?;
        }
        Ok(())
    }

    fn check_member(&self, state: &State, seat: Seat) -> Result<()> {
        self.check_open(state)?;
        state.member(seat).map(drop).ok_or_else(|| self.no_member(seat.id))
    }

    /// The participants of a cut. `None` while this host does not know a process of theirs: the log may be faster than the
    /// word of a host that was added.
    fn reach(&self, state: &State, cut: &Cut) -> Option<Participants> {
        let participant = |&CutMember { id, process, .. }: &CutMember| {
            Some(Participant { id, peer: self.peer(state, process)? })
        };
        let members = cut.members.iter().map(participant).collect::<Option<_>>()?;
        Some(Participants { first_operation: cut.number, died: cut.died, members })
    }
}
