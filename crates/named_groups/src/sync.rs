//! Synchronisation of the members of a group.

pub(crate) mod arrival;
pub(crate) mod sync_wait;

use landeck_protocols::service::Seat;

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::replica::{LocalState, Replica};
use crate::requests::PostedRequest;
use crate::server_client::ServerClient;
use crate::sync::arrival::{SyncArrival, SyncOutcome};
use crate::time_limit::TimeLimit;

/// A synchronisation at which a member has arrived, and which was not complete in the time given.
#[derive(Clone, Copy)]
pub struct PendingSync(Arrived);

/// How a member has arrived.
#[derive(Clone, Copy)]
enum Arrived {
    /// By itself, on the roll or in the log.
    Directly(SyncArrival),
    /// By a request to the server, in this round of the log.
    ByRequest { round: u64, request: PostedRequest },
}

impl Replica {
    /// Waits until all members have arrived at a synchronisation. A call whose time has passed leaves `pending` behind,
    /// which the next call continues.
    ///
    /// # Errors
    /// [`GroupError::MemberDied`] (all other members have arrived), [`GroupError::NoMember`],
    /// [`GroupError::MinimumNotReached`], [`GroupError::Destroying`], [`GroupError::GroupDestroyed`],
    /// [`GroupError::NoServer`], [`GroupError::Broken`], [`ServiceError::TimedOut`], [`ServiceError::Ended`],
    /// [`ServiceError::Thread`].
    pub fn sync(
        &self,
        seat: Seat,
        pending: &mut Option<PendingSync>,
        limit: TimeLimit,
    ) -> Result<()> {
        let arrived = match (pending.take(), &self.server_client) {
            (Some(PendingSync(arrived)), _) => arrived,
            (None, None) => Arrived::Directly(self.arrive(seat, limit)?),
            (None, Some(client)) => self.arrive_by_request(client, seat, limit)?,
        };
        let outcome = match (arrived, &self.server_client) {
            (Arrived::Directly(arrival), _) => self.wait_for_others(seat, arrival, limit),
            (Arrived::ByRequest { round, request }, Some(client)) => {
                self.wait_for_reply(&request, client, limit, |local, is_told| {
                    Ok(self.round_outcome(local, seat, round)?.filter(|_| is_told))
                })
            }
            (Arrived::ByRequest { .. }, None) => Err(self.broken("it has no server any more")),
        };
        if let Err(ServiceError::TimedOut(_)) = outcome {
            *pending = Some(PendingSync(arrived));
        }
        match outcome? {
            SyncOutcome::Complete => Ok(()),
            SyncOutcome::MemberDied(member) => {
                Err(GroupError::MemberDied { group: self.name.clone(), member }.into())
            }
        }
    }

    fn arrive_by_request(
        &self,
        client: &ServerClient,
        seat: Seat,
        limit: TimeLimit,
    ) -> Result<Arrived> {
        self.wait_started(limit)?;
        self.with(|local| {
            self.check_open(&local.state)?;
            local.state.member(seat).map(drop).ok_or_else(|| self.no_member(seat.id))
        })?;
        let (request, answer) = self.request_sync(client, seat, limit)?;
        match answer {
            Answer::Come(low) => {
                let round = self.with(|local| Ok(Answer::nearest(local.state.rounds(), low)))?;
                Ok(Arrived::ByRequest { round, request })
            }
            Answer::Closed => {
                let destroyed = self.with(|local| self.check_not_destroyed(&local.state)).err();
                Err(destroyed.unwrap_or_else(|| self.no_member(seat.id)))
            }
            _ => Err(self.no_member(seat.id)),
        }
    }

    /// The outcome of a round of the log; none while it goes on.
    pub(crate) fn round_outcome(
        &self,
        local: &LocalState,
        seat: Seat,
        round: u64,
    ) -> Result<Option<SyncOutcome>> {
        if let Some(died) = local.state.ended(round) {
            return Ok(Some(SyncOutcome::of(died)));
        }
        self.check_not_destroyed(&local.state)?;
        match local.state.member(seat) {
            None => Err(self.no_member(seat.id)),
            Some(_) => Ok(None),
        }
    }
}
