//! A member of a group: what it does there.

use std::sync::Arc;
use std::time::Duration;

use landeck_groups::service::Seat;

use super::Group;
use super::operations::Operations;
use crate::error::{Error, ErrorKind, GroupError, Result};
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::named_group::Subscription;
use crate::named_group::answer::Answer;
use crate::named_group::asking::Asked;
use crate::named_group::coming::Come;
use crate::named_group::sending::{Manner, Sender};
use landeck_engine::deadline_ns;

/// A membership. Dropped, it leaves. It may be moved to another thread than that of its mailbox.
pub struct Member {
    group: Group,
    subscription: Arc<Subscription>,
    /// A synchronisation that was given up: it has come to that already.
    round: Option<Coming>,
    pub(super) operations: Operations,
}

/// A synchronisation that a member has come to.
#[derive(Clone, Copy)]
enum Coming {
    /// By itself.
    Come(Come),
    /// By a request to the server, which is a round of the log.
    Asked { round: u64, asked: Asked },
}

impl Group {
    /// Joins with a mailbox: from now on that retrieves what is broadcast here.
    ///
    /// # Errors
    /// [`GroupError::AlreadyMember`], [`GroupError::TooManyMembers`], [`GroupError::Destroying`],
    /// [`GroupError::GroupDestroyed`], [`GroupError::NoServer`], [`crate::MailboxError::NoDescriptor`] for a
    /// mailbox that has one, [`ErrorKind::Thread`].
    pub fn join(&self, mailbox: &mut Mailbox) -> Result<Member> {
        let address = mailbox.address();
        let live = &self.live;
        let process = address.process();
        let who = u64::from(process.slot.0) | u64::from(process.incarnation.0) << 32;
        let words = [who, u64::from(address.context()), address.place()];
        let (seat, first) = match &live.desk {
            None => live.join(words)?,
            Some(desk) => {
                live.with(|mirror| live.check_open(&mirror.state))?;
                match live.ask_to_join(desk, address.context(), address.place())? {
                    Ok(record) => (record.seat(), record.first),
                    Err(answer) => return Err(live.not_joined(answer)),
                }
            }
        };
        let subscription = Arc::new(Subscription::new(live.clone(), seat, first));
        mailbox.subscribe(subscription.clone())?;
        let operations = Operations::default();
        Ok(Member { group: self.clone(), subscription, round: None, operations })
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

    pub(crate) fn seat(&self) -> Seat {
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
        self.group.send(message, sender, manner)
    }

    /// Waits until all who are members when the first of them comes here have come. All broadcasts
    /// that they sent before are in all mailboxes then.
    ///
    /// # Errors
    /// [`GroupError::MemberDied`] (all others have come), [`GroupError::NoMember`],
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`ErrorKind::Ended`],
    /// [`ErrorKind::Thread`].
    pub fn sync(&mut self) -> Result<()> {
        self.sync_until(None)
    }

    /// The same, for a while. It has come all the same, and the next call waits for the same; where a
    /// server did not begin with it in that time, [`Member::has_come`] says that it has not.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], [`GroupError::MinimumNotReached`], and as [`Member::sync`].
    pub fn sync_within(&mut self, time: Duration) -> Result<()> {
        self.sync_until(Some(time))
    }

    /// Whether it has come to a synchronisation that was not over in the time given. All who are members
    /// by then are waited for, and the death of one ends it.
    pub fn has_come(&self) -> bool {
        self.round.is_some()
    }

    fn sync_until(&mut self, time: Option<Duration>) -> Result<()> {
        let deadline = deadline_ns(time);
        let coming = match self.round.take() {
            Some(coming) => coming,
            None => match self.come(deadline) {
                Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {
                    return Err(ErrorKind::TimedOut(time.unwrap_or_default()).into());
                }
                coming => coming?,
            },
        };
        let (live, seat) = (&self.group.live, self.seat());
        let died = match (&live.desk, coming) {
            (Some(desk), Coming::Asked { round, asked }) => {
                live.wait_for_reply(&asked, desk, deadline, |mirror, told| {
                    Ok(live.how_round_ended(mirror, seat, round)?.filter(|_| told))
                })
            }
            (None, Coming::Asked { .. }) => Err(live.broken("it has no server any more")),
            (_, Coming::Come(come)) => live.gather(seat, come, deadline),
        };
        let died = match died {
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {
                self.round = Some(coming);
                return Err(ErrorKind::TimedOut(time.unwrap_or_default()).into());
            }
            other => other,
        };
        match died? {
            None => Ok(()),
            Some(member) => Err(GroupError::MemberDied { group: live.name.clone(), member }.into()),
        }
    }

    /// Comes to the synchronisation, by the server if there is one.
    fn come(&self, deadline_ns: Option<u64>) -> Result<Coming> {
        let (live, seat) = (&self.group.live, self.seat());
        let Some(desk) = &live.desk else { return live.come(seat, deadline_ns).map(Coming::Come) };
        live.wait_started(deadline_ns)?;
        live.with(|mirror| {
            live.check_open(&mirror.state)?;
            match mirror.state.member(seat) {
                None => Err(live.no_member(seat.id)),
                Some(_) => Ok(()),
            }
        })?;
        let (answer, round, asked) = live.ask_to_sync(desk, seat, deadline_ns)?;
        match answer {
            Answer::Come(_) => Ok(Coming::Asked { round, asked }),
            Answer::Closed => {
                let closed = live.with(|mirror| live.check_goes_on(&mirror.state)).err();
                Err(closed.unwrap_or_else(|| live.no_member(seat.id)))
            }
            _ => Err(live.no_member(seat.id)),
        }
    }

    /// Leaves. Nothing more of the group enters the mailbox; what is in it can still be retrieved. The
    /// last member ends the group, unless that is persistent.
    ///
    /// # Errors
    /// [`GroupError::NoMember`] when it is none any more, [`GroupError::Broken`], [`ErrorKind::Thread`].
    pub fn leave(self) -> Result<()> {
        match self.subscription.leave_politely()? {
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
