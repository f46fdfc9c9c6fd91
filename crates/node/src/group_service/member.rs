//! Members of a group, and their calls.

use std::sync::Arc;
use std::time::Duration;

use landeck_named_groups::{PendingSync, Sender, Subscription, TimeLimit};
use landeck_protocols::service::Seat;

use super::Group;
use super::operations::Operations;
use crate::error::{GroupError, Result};
use crate::mailbox::Mailbox;
use crate::message::Message;

/// A membership in a group. Dropping it leaves the group. It may be moved to another thread than
/// that of its mailbox.
pub struct Member {
    group: Group,
    subscription: Arc<Subscription>,
    /// The synchronisation at which it has arrived, and which was not complete in the time given.
    pending_sync: Option<PendingSync>,
    pub(super) operations: Operations,
}

impl Group {
    /// Joins the group with a mailbox, which retrieves the group's broadcasts from now on.
    ///
    /// # Errors
    /// [`GroupError::AlreadyMember`], [`GroupError::TooManyMembers`], [`GroupError::Destroying`],
    /// [`GroupError::GroupDestroyed`], [`GroupError::NoServer`], [`crate::MailboxError::NoDescriptor`] for a
    /// mailbox that has one, [`crate::ErrorKind::Thread`].
    pub fn join(&self, mailbox: &mut Mailbox) -> Result<Member> {
        self.call("join", |replica| {
            let address = mailbox.address();
            let subscription = replica.join(address.context(), address.place())?;
            mailbox.subscribe(subscription.clone())?;
            let operations = Operations::default();
            Ok(Member { group: self.clone(), subscription, pending_sync: None, operations })
        })
    }
}

impl Member {
    /// Returns the number of the member in the group.
    pub fn id(&self) -> u32 {
        self.seat().id
    }

    /// Returns the group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    pub(crate) fn seat(&self) -> Seat {
        self.subscription.seat()
    }

    /// Sends a message to all members, this one included; returns when it is accepted.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], and as [`Group::broadcast`].
    pub fn broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, true, TimeLimit::Unlimited)
    }

    /// Sends a message to all members but this one.
    ///
    /// # Errors
    /// As [`Member::broadcast`].
    pub fn broadcast_to_others(&self, message: &Message) -> Result<()> {
        self.send(message, false, TimeLimit::Unlimited)
    }

    /// Sends a message to all members within `time`. After an error nothing was sent.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], and as [`Group::broadcast_within`].
    pub fn broadcast_within(&self, message: &Message, time: Duration) -> Result<()> {
        self.send(message, true, TimeLimit::within(time))
    }

    /// Sends a message to all members if this is possible without waiting.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], and as [`Group::try_broadcast`].
    pub fn try_broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, true, TimeLimit::Now)
    }

    fn send(&self, message: &Message, receives: bool, limit: TimeLimit) -> Result<()> {
        let sender = Sender::Member { seat: self.seat(), receives };
        self.group.send(message, sender, limit)
    }

    /// Synchronises the group (a barrier): waits until all members have called it that were members
    /// when the first of them did. All broadcasts that they sent before are in all mailboxes then.
    ///
    /// # Errors
    /// [`GroupError::MemberDied`] (all other members have called it), [`GroupError::NoMember`],
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`crate::ErrorKind::Ended`],
    /// [`crate::ErrorKind::Thread`].
    pub fn sync(&mut self) -> Result<()> {
        self.sync_until(TimeLimit::Unlimited)
    }

    /// Synchronises as [`Member::sync`] does, waiting for at most `time`. After a timeout the
    /// member still counts as arrived, and the next call waits for the same synchronisation. If a
    /// server did not begin with it in that time, [`Member::has_come`] is false.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TimedOut`], [`GroupError::MinimumNotReached`], and as [`Member::sync`].
    pub fn sync_within(&mut self, time: Duration) -> Result<()> {
        self.sync_until(TimeLimit::within(time))
    }

    /// Returns whether the member has arrived at a synchronisation that did not complete in the
    /// given time. That synchronisation waits for all members of its beginning, and the death of
    /// one ends it.
    pub fn has_come(&self) -> bool {
        self.pending_sync.is_some()
    }

    fn sync_until(&mut self, limit: TimeLimit) -> Result<()> {
        let Self { group, subscription, pending_sync, .. } = self;
        let seat = subscription.seat();
        group.call("sync", |replica| Ok(replica.sync(seat, pending_sync, limit)?))
    }

    /// Leaves the group. No further message of the group enters the mailbox, which still yields
    /// those it has. The group ends with its last member, unless it is persistent.
    ///
    /// # Errors
    /// [`GroupError::NoMember`] when it is no longer a member, [`GroupError::Broken`],
    /// [`crate::ErrorKind::Thread`].
    pub fn leave(self) -> Result<()> {
        self.group.call("leave", |replica| match self.subscription.leave()? {
            true => Ok(()),
            false => {
                let (group, member) = (replica.name().to_owned(), self.id());
                Err(GroupError::NoMember { group, member }.into())
            }
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // A member that has left, or was removed, has learnt that elsewhere.
        let _ = self.subscription.leave_directly();
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
