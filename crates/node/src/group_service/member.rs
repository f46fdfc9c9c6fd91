//! A member of a group: what it does there.

use std::sync::Arc;
use std::time::Duration;

use landeck_groups::service::{EntryWord, Outcome, Seat};

use super::collective::Operations;
use super::coming::Come;
use super::inbox::Subscription;
use super::sending::{Manner, Sender};
use super::{Group, GroupError};
use crate::error::{Error, Result};
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::world::deadline_ns;

/// A membership. Dropped, it leaves. It may be moved to another thread than that of its mailbox.
pub struct Member {
    group: Group,
    subscription: Arc<Subscription>,
    /// A synchronisation that was given up: it has come to that already.
    come: Option<Come>,
    pub(super) operations: Operations,
}

impl Group {
    /// Joins with a mailbox: from now on that retrieves what is broadcast here.
    ///
    /// # Errors
    /// [`GroupError::AlreadyMember`], [`GroupError::TooManyMembers`], [`GroupError::Destroying`],
    /// [`GroupError::GroupDestroyed`], [`GroupError::NoAvailability`], [`Error::Thread`].
    pub fn join(&self, mailbox: &mut Mailbox) -> Result<Member> {
        mailbox.check_can_join()?;
        let address = mailbox.address();
        let live = &self.live;
        let process = address.process();
        let who = u64::from(process.slot.0) | u64::from(process.incarnation.0) << 32;
        let words = [who, u64::from(address.context()), address.place()];
        let (seat, first) = live.with(|mirror| {
            live.check_open(&mirror.state)?;
            let claim = live.claim_details(mirror, words)?;
            let entry = EntryWord::Join { cell: claim.cell() };
            let (place, outcome) =
                live.append(mirror, entry, |mirror| live.check_open(&mirror.state))?;
            claim.becomes_entry(place);
            match outcome {
                Outcome::Joined(id) => {
                    let (seat, all) = (Seat::new(id, place), mirror.state.broadcasts());
                    // More may have been accepted since.
                    Ok((seat, mirror.state.member(seat).map_or(all, |member| member.first)))
                }
                Outcome::AlreadyMember(member) => {
                    Err(GroupError::AlreadyMember { group: live.name.clone(), member }.into())
                }
                Outcome::Full => {
                    Err(GroupError::TooManyMembers { group: live.name.clone() }.into())
                }
                _ => Err(GroupError::GroupDestroyed { group: live.name.clone() }.into()),
            }
        })?;
        let subscription = Arc::new(Subscription::new(live.clone(), seat, first));
        mailbox.subscribe(subscription.clone());
        let operations = Operations::default();
        Ok(Member { group: self.clone(), subscription, come: None, operations })
    }
}

impl Member {
    /// Its number in the group.
    pub fn id(&self) -> u32 {
        self.seat().id
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    pub(super) fn seat(&self) -> Seat {
        self.subscription.seat
    }

    /// Sends a message to all members, this one included; returns when it is accepted.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], and as [`Group::broadcast`].
    pub fn broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, true, Manner::Patient)
    }

    /// The same to all but this one.
    ///
    /// # Errors
    /// As [`Member::broadcast`].
    pub fn broadcast_to_others(&self, message: &Message) -> Result<()> {
        self.send(message, false, Manner::Patient)
    }

    /// Sends a message to all members, for a while; then nothing was sent.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], and as [`Group::broadcast_within`].
    pub fn broadcast_within(&self, message: &Message, time: Duration) -> Result<()> {
        self.send(message, true, Manner::within(time))
    }

    /// Sends a message to all members if that is possible without waiting.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], and as [`Group::try_broadcast`].
    pub fn try_broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, true, Manner::AtOnce)
    }

    fn send(&self, message: &Message, gets_it: bool, manner: Manner) -> Result<()> {
        let sender = Sender::Member { seat: self.seat(), gets_it };
        self.group.live.broadcast(message, sender, manner)
    }

    /// Waits until all who are members when the first of them comes here have come. All broadcasts
    /// that they sent before are in all mailboxes then.
    ///
    /// # Errors
    /// [`GroupError::MemberDied`] (all others have come), [`GroupError::NoMember`],
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`Error::Ended`],
    /// [`Error::Thread`].
    pub fn sync(&mut self) -> Result<()> {
        self.sync_until(None)
    }

    /// The same, for a while. It has come all the same: the next call waits for the same.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`GroupError::MinimumNotReached`], and as [`Member::sync`].
    pub fn sync_within(&mut self, time: Duration) -> Result<()> {
        self.sync_until(Some(time))
    }

    fn sync_until(&mut self, time: Option<Duration>) -> Result<()> {
        let deadline = deadline_ns(time);
        let (live, seat) = (&self.group.live, self.seat());
        let come = match self.come {
            Some(come) => come,
            None => live.come(seat, deadline)?,
        };
        let died = match live.gather(seat, come, deadline) {
            Err(Error::TimedOut(_)) => {
                self.come = Some(come);
                return Err(Error::TimedOut(time.unwrap_or_default()));
            }
            other => other,
        };
        self.come = None;
        match died? {
            None => Ok(()),
            Some(member) => Err(GroupError::MemberDied { group: live.name.clone(), member }.into()),
        }
    }

    /// Leaves. Nothing more of the group enters the mailbox; what is in it can still be retrieved. The
    /// last member ends the group, unless that is persistent.
    ///
    /// # Errors
    /// [`GroupError::NoMember`] when it is none any more, [`GroupError::Broken`], [`Error::Thread`].
    pub fn leave(self) -> Result<()> {
        match self.subscription.leave()? {
            true => Ok(()),
            false => Err(self.group.live.no_member(self.id())),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Who has left, or was put out, is told so when it leaves by name.
        let _ = self.subscription.leave();
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (group, id) = (self.group.name(), self.id());
        formatter
            .debug_struct("Member")
            .field("group", &group)
            .field("id", &id)
            .finish_non_exhaustive()
    }
}
