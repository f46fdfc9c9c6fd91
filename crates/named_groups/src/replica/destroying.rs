//! Destroying a group for all members.

use landeck_protocols::service::{GroupEntry, Phase};

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::replica::{LocalState, Replica, no_peer};
use crate::server_client::ServerClient;
use crate::time_limit::TimeLimit;

/// Whether the broadcasts have finished that were held when the destruction began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drained {
    /// All have finished, and the group has ended.
    All,
    /// Some wait for room that only this thread could make, or the time has passed.
    NotAll,
}

impl Replica {
    /// Destroys the group for all members. Held broadcasts finish first, within the limit.
    ///
    /// # Errors
    /// [`GroupError::DestroyedWithLoss`], [`GroupError::Destroying`], [`GroupError::GroupDestroyed`],
    /// [`GroupError::NoServer`], [`GroupError::Broken`], [`ServiceError::Ended`], [`ServiceError::Thread`].
    pub fn destroy(&self, limit: TimeLimit) -> Result<()> {
        self.catch_up(limit)?;
        let drained = match &self.server_client {
            None => {
                self.begin_to_destroy()?;
                self.wait(limit, no_peer, |local| Ok(self.drained(local)))
            }
            Some(client) => {
                self.with(|local| self.check_open(&local.state))?;
                match self.request_destruction(client, limit) {
                    Ok(drain) => drain,
                    // The server did not answer in time, so this process does it.
                    Err(ServiceError::TimedOut(_)) if self.copy().is_none() => {
                        self.begin_to_destroy()?;
                        Ok(Drained::NotAll)
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let ended = match drained {
            Ok(Drained::All) => Ok(()),
            Ok(Drained::NotAll) | Err(ServiceError::TimedOut(_)) => self.end_with_loss(),
            Err(error) => Err(error),
        };
        self.retire();
        ended
    }

    /// Has the server destroy the group. The outer result is that of the request, the inner one that of the wait
    /// for held broadcasts.
    fn request_destruction(
        &self,
        client: &ServerClient,
        limit: TimeLimit,
    ) -> Result<Result<Drained>> {
        let (request, answer) = self.request_destroy(client, limit)?;
        if answer != Answer::Destroying {
            let why = self.with(|local| self.check_open(&local.state)).err();
            return Err(why.unwrap_or(ServiceError::WouldBlock));
        }
        Ok(self.wait_for_reply(&request, client, limit, |local, is_told| {
            Ok(self.drained(local).filter(|&drained| is_told || drained == Drained::NotAll))
        }))
    }

    fn begin_to_destroy(&self) -> Result<()> {
        self.with(|local| {
            self.append(local, GroupEntry::Destroy, |local| self.check_open(&local.state)).map(drop)
        })
    }

    /// Whether the held broadcasts have finished; none while they go on.
    fn drained(&self, local: &LocalState) -> Option<Drained> {
        match local.state.phase() {
            Phase::Ended => Some(Drained::All),
            _ => self.blocks_held_broadcasts(local).then_some(Drained::NotAll),
        }
    }

    /// Ends the group with the broadcasts that are held.
    fn end_with_loss(&self) -> Result<()> {
        let mut lost = None;
        self.put(GroupEntry::End, |local| {
            let is_held = !local.state.held().is_empty();
            lost = is_held.then(|| self.slowest(local).ids());
            Ok(())
        })?;
        match lost {
            None => Ok(()),
            Some(members) => {
                Err(GroupError::DestroyedWithLoss { group: self.name.clone(), members }.into())
            }
        }
    }
}
