//! Joining a group, and a view of its members.

use std::sync::Arc;

use landeck_protocols::service::{GroupEntry, Joining, MemberRecord, Outcome, Seat};
use landeck_wire::ProcessId;

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::replica::{LocalState, Replica};
use crate::subscription::Subscription;
use crate::thread_members;
use crate::time_limit::TimeLimit;

/// The members of a group at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersView {
    /// The number of the view: each change of the members makes the next.
    pub number: u64,
    /// Whether the group has reached its minimum once.
    pub has_started: bool,
    /// The members, in the order of their numbers.
    pub members: Vec<ViewedMember>,
}

/// A member of a group at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewedMember {
    /// The number of the member.
    pub id: u32,
    /// Its process.
    pub process: ProcessId,
    /// The context of its mailbox.
    pub context: u32,
    /// The address of the mailbox's mark.
    pub place: u64,
    /// Broadcasts that it has not retrieved.
    pub waiting: u64,
}

/// A new member: its place in the log, and the first broadcast that it receives.
struct Joined {
    seat: Seat,
    first: u64,
}

impl Replica {
    /// Makes a mailbox of the calling thread a member. `context` and `place` are those of its address.
    ///
    /// # Errors
    /// [`GroupError::AlreadyMember`], [`GroupError::TooManyMembers`], [`GroupError::Destroying`],
    /// [`GroupError::GroupDestroyed`], [`GroupError::NoServer`], [`GroupError::Broken`],
    /// [`ServiceError::Thread`], [`ServiceError::Ended`].
    pub fn join(self: &Arc<Self>, context: u32, place: u64) -> Result<Arc<Subscription>> {
        self.catch_up(TimeLimit::Unlimited)?;
        let Joined { seat, first } = match &self.server_client {
            None => self.join_directly(context, place)?,
            Some(client) => {
                self.with(|local| self.check_open(&local.state))?;
                let record = self
                    .request_to_join(client, context, place)?
                    .map_err(|answer| self.not_joined(answer))?;
                Joined { seat: record.seat(), first: record.first }
            }
        };
        let subscription = Arc::new(Subscription::new(self.clone(), seat, first));
        thread_members::add(&subscription);
        Ok(subscription)
    }

    fn join_directly(&self, context: u32, place: u64) -> Result<Joined> {
        self.with(|local| {
            self.check_open(&local.state)?;
            let process = self.own_party(&local.state);
            let entry = GroupEntry::Join(Joining { process, context, place });
            let accepted = self.append(local, entry, |local| self.check_open(&local.state))?;
            match accepted.outcome {
                Outcome::Joined(id) => {
                    let (seat, all) = (Seat::new(id, accepted.place), local.state.broadcasts());
                    // More may have been accepted since.
                    let first = local.state.member(seat).map_or(all, |member| member.first);
                    Ok(Joined { seat, first })
                }
                other => Err(self.not_joined(Answer::of(other))),
            }
        })
    }

    fn not_joined(&self, answer: Answer) -> ServiceError {
        let group = self.name.clone();
        match answer {
            Answer::AlreadyMember(member) => GroupError::AlreadyMember { group, member },
            Answer::Full => GroupError::TooManyMembers { group },
            _ => GroupError::GroupDestroyed { group },
        }
        .into()
    }

    /// The members now.
    ///
    /// # Errors
    /// [`GroupError::Broken`], [`ServiceError::Thread`].
    pub fn view(&self) -> Result<MembersView> {
        self.catch_up(TimeLimit::Unlimited)?;
        self.with(|local| Ok(self.view_of(local)))
    }

    fn view_of(&self, local: &LocalState) -> MembersView {
        let state = &local.state;
        let viewed = |record: &MemberRecord| {
            let MemberRecord { id, context, place, .. } = *record;
            let process = self.process(state, record.process)?;
            let waiting = state.broadcasts() - self.taken(local, record);
            Some(ViewedMember { id, process, context, place, waiting })
        };
        let members = state.members().iter().filter_map(viewed).collect();
        MembersView { number: state.view(), has_started: state.has_started(), members }
    }
}
