//! Named groups: a process that knows the name joins with a mailbox, broadcasts, synchronises, leaves.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! use landeck::{GroupOptions, Job, Message};
//! let job = Job::join()?;
//! let (rank, size) = (job.world().rank(), job.world().size() as u32);
//! let group = if rank == 0 {
//!     let group = job.create_group("weather", GroupOptions::default().minimum(size))?;
//!     job.world().barrier()?; // from here on the name is there
//!     group
//! } else {
//!     job.world().barrier()?;
//!     job.open_group("weather")?
//! };
//! let mut inbox = job.create_mailbox()?;
//! let mut member = group.join(&mut inbox)?;
//! if rank == 0 {
//!     member.broadcast(Message::new().pack(&[20.5f64, 21.0]))?; // waits until all have joined
//! }
//! let temperatures = inbox.retrieve()?.unpack_all::<f64>();
//! member.sync()?;
//! member.leave()?;
//! # drop(temperatures);
//! job.leave()
//! # }
//! ```
//!
//! - A **member** is a mailbox with its process. It has the smallest number that is free, and keeps it.
//!   The creator of a group is no member of it until it joins. Any process may broadcast.
//! - The **minimum** counts until it is first reached. Before that, broadcasts, synchronisation and
//!   collective operations wait (or return [`GroupError::MinimumNotReached`]).
//! - A **broadcast** goes to the members at the moment of its acceptance, the sender included if it is
//!   one. Before, nobody sees it; afterwards every one of them that lives retrieves it exactly once,
//!   even if the sender dies. All retrieve in one order, in which each sender's messages are as it sent them.
//! - A **synchronisation** is among the processes that are members when the first of them comes to it. A leave counts
//!   as coming. If one died since the last synchronisation, all others are told ([`GroupError::MemberDied`]) once all have
//!   come. All broadcasts that
//!   the members sent before are in all mailboxes then.
//! - After **leave** nothing more enters the mailbox, and the mailbox still yields its messages. The last leave
//!   ends the group unless it is persistent; the end of its creator does not.
//! - **Destroy** ends calls that wait (for the minimum, in a synchronisation, with a join) with
//!   [`GroupError::GroupDestroyed`]; broadcasts that wait for room finish first. Members still retrieve the accepted
//!   messages.
//! - A mailbox that is **full** holds the processes that broadcast to this group, and no others. A thread that would
//!   wait for its own mailbox, from which only it retrieves, gets an error ([`GroupError::Full`]).
//!
//! A group may be made to have a **server** ([`GroupOptions::served_by`]), as DECK's groups had: then processes send
//! their requests to it as messages. The log remains the group's only truth.
//!
//! In a job on several hosts a group has a server on the host of its creator, where its log lies. Processes of that
//! host use the log. Processes of other hosts ask the server by messages, and find the same group.

mod collective;
mod launcher;
mod member;
mod operations;

use std::sync::Arc;
use std::time::Duration;

use landeck_joining::objects::{self, Name, ObjectError};
use landeck_named_groups::{MembersView, Outgoing, Replica, Sender, TimeLimit, ViewedMember};

pub use crate::error::GroupError;
use crate::error::{self, Result};
use crate::job::Job;
use crate::mailbox::ToldView;
use crate::message::Message;
use crate::message::mailbox_address::MailboxAddress;

pub use landeck_named_groups::{GroupOptions, ServedBy, WhenFull};
pub use member::Member;

/// A handle to a named group. A clone is another handle to it. The thread mode of the job
/// determines which threads may use it. A handle to a group that has ended stays unusable, even if
/// another group gets its name.
#[derive(Clone)]
pub struct Group {
    replica: Arc<Replica>,
}

/// A view of a group: its members at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// The number of the view, which grows with each change of the members.
    pub number: u64,
    /// Whether the group has reached its minimum once.
    pub has_started: bool,
    /// The members, in the order of their numbers.
    pub members: Vec<GroupMember>,
}

/// A member of a group at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The number of the member.
    pub id: u32,
    /// The address of its mailbox.
    pub mailbox: MailboxAddress,
    /// Broadcasts that it has not retrieved.
    pub waiting: u64,
}

impl Job {
    /// Creates a group under a name. Its creator is not a member of it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the bytes are not a name, the name is taken, there is no
    /// memory, or the agent does not answer; [`GroupError::Options`]; [`GroupError::NoServer`];
    /// [`GroupError::NoServingLauncher`].
    pub fn create_group(&self, name: impl AsRef<[u8]>, options: GroupOptions) -> Result<Group> {
        error::call(&self.shared, "create_group", || {
            let name = Name::new(name).map_err(ObjectError::from)?;
            let launcher = self.serving_launcher(&name, options)?;
            let options = match &launcher {
                Some(launcher) => options.served_by(launcher.place()),
                None => options,
            };
            let replica = Replica::create(&self.shared, &self.server_handle, &name, options)?;
            launcher.map_or(Ok(()), |launcher| launcher.tell_of(&name))?;
            Ok(Group { replica })
        })
    }

    /// Opens the group with this name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the bytes are not a name, no group has it, or the agent does
    /// not answer; [`GroupError::GroupDestroyed`]; [`GroupError::NoServer`].
    pub fn open_group(&self, name: impl AsRef<[u8]>) -> Result<Group> {
        error::call(&self.shared, "open_group", || {
            let name = Name::new(name).map_err(ObjectError::from)?;
            let replica = Replica::find(&self.shared, &self.server_handle, &name)?;
            Ok(Group { replica })
        })
    }

    /// Returns the names of the groups of this job whose logs lie on this host, in the order in which
    /// they were created.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the agent does not answer.
    pub fn group_names(&self) -> Result<Vec<String>> {
        let (mut names, mut last) = (Vec::new(), 0);
        while let Some((object, name)) = objects::next_group(self.process(), last)? {
            names.push(name.as_str().to_owned());
            last = object.number;
        }
        Ok(names)
    }
}

impl Group {
    /// Returns the name of the group.
    pub fn name(&self) -> &str {
        self.replica.name()
    }

    /// Returns the number of the group in the job, which no other group has.
    pub fn number(&self) -> u64 {
        self.replica.number()
    }

    /// Returns the options that the group was created with.
    pub fn options(&self) -> GroupOptions {
        self.replica.options()
    }

    /// Returns the current members.
    ///
    /// # Errors
    /// [`GroupError::Broken`], [`crate::ErrorKind::Thread`].
    pub fn view(&self) -> Result<GroupView> {
        self.call("view", |replica| Ok(self.view_of(replica.view()?)))
    }

    /// Waits for the view behind the one with a number, for at most `time`, and returns it with its reasons. The first view
    /// of a group has number 1. A group remembers its last 256 changes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TimedOut`], [`GroupError::GroupDestroyed`], [`GroupError::Broken`],
    /// [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn next_view_within(&self, number: u64, time: Duration) -> Result<ToldView> {
        self.call("next_view", |replica| {
            let view = replica.next_view(number, TimeLimit::within(time))?;
            Ok(ToldView::new(self.number(), view))
        })
    }

    /// Returns how many broadcasts the group has accepted.
    ///
    /// # Errors
    /// [`GroupError::Broken`], [`crate::ErrorKind::Thread`].
    pub fn broadcasts(&self) -> Result<u64> {
        self.call("broadcasts", |replica| Ok(replica.broadcasts()?))
    }

    fn view_of(&self, view: MembersView) -> GroupView {
        let members = view.members.iter().map(member_of).collect();
        GroupView { number: view.number, has_started: view.has_started, members }
    }

    /// Waits until the group has had its minimum of members once.
    ///
    /// # Errors
    /// [`GroupError::GroupDestroyed`], [`GroupError::Destroying`], [`crate::ErrorKind::Ended`],
    /// [`crate::ErrorKind::Thread`].
    pub fn wait_started(&self) -> Result<()> {
        self.call("wait_started", |replica| Ok(replica.wait_started(TimeLimit::Unlimited)?))
    }

    /// Waits as [`Group::wait_started`] does, for at most `time`.
    ///
    /// # Errors
    /// [`GroupError::MinimumNotReached`], and as [`Group::wait_started`].
    pub fn wait_started_within(&self, time: Duration) -> Result<()> {
        self.call("wait_started", |replica| Ok(replica.wait_started(TimeLimit::within(time))?))
    }

    /// Sends a message to all members at the moment of its acceptance, and returns then. The caller
    /// need not be a member. The call waits until the group has started and there is room.
    ///
    /// # Errors
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`GroupError::TooLong`], [`GroupError::Full`]
    /// where the group was made to refuse or a mailbox of this thread is full, [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, Sender::NonMember, TimeLimit::Unlimited)
    }

    /// Sends as [`Group::broadcast`] does, within `time`. After an error nothing was sent.
    ///
    /// # Errors
    /// [`GroupError::MinimumNotReached`], [`GroupError::Full`]; [`crate::ErrorKind::TimedOut`] where the group has a
    /// server that did not do it in time; and as [`Group::broadcast`].
    pub fn broadcast_within(&self, message: &Message, time: Duration) -> Result<()> {
        self.send(message, Sender::NonMember, TimeLimit::within(time))
    }

    /// Sends as [`Group::broadcast`] does, if that is possible without waiting. A server has a second to answer.
    ///
    /// # Errors
    /// [`crate::ErrorKind::WouldBlock`] where it did not answer, and as [`Group::broadcast_within`].
    pub fn try_broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, Sender::NonMember, TimeLimit::Now)
    }

    /// Waits until all broadcasts accepted so far are in all mailboxes, so that members find them
    /// at once. In a group without a server they are there as soon as they are accepted.
    ///
    /// # Errors
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`crate::ErrorKind::Ended`],
    /// [`crate::ErrorKind::Thread`].
    pub fn wait_delivered(&self) -> Result<()> {
        self.call("wait_delivered", |replica| Ok(replica.wait_delivered(TimeLimit::Unlimited)?))
    }

    /// Waits as [`Group::wait_delivered`] does, for at most `time`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TimedOut`], and as [`Group::wait_delivered`].
    pub fn wait_delivered_within(&self, time: Duration) -> Result<()> {
        self.call("wait_delivered", |replica| Ok(replica.wait_delivered(TimeLimit::within(time))?))
    }

    #[inline]
    pub(crate) fn send(&self, message: &Message, sender: Sender, limit: TimeLimit) -> Result<()> {
        self.call("broadcast", |replica| {
            let mut scratch = Vec::new();
            let (tag, bytes) = message.outgoing(&mut scratch)?;
            let outgoing = Outgoing { tag, bytes, share: &|| message.shared_values() };
            Ok(replica.broadcast(&outgoing, sender, limit)?)
        })
    }

    /// Destroys the group for all processes. Waiting calls end with [`GroupError::GroupDestroyed`],
    /// except broadcasts that wait for room, which finish first. Members still retrieve the
    /// accepted messages.
    ///
    /// # Errors
    /// [`GroupError::DestroyedWithLoss`] when broadcasts wait for a mailbox of this thread, which cannot
    /// retrieve during this call: retrieve before; [`GroupError::Destroying`], [`GroupError::GroupDestroyed`]
    /// when another process destroys it or has destroyed it, [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn destroy(&self) -> Result<()> {
        self.call("destroy", |replica| Ok(replica.destroy(TimeLimit::Unlimited)?))
    }

    /// Destroys the group as [`Group::destroy`] does. Broadcasts that wait for room have `time` to finish.
    ///
    /// # Errors
    /// [`GroupError::DestroyedWithLoss`]: it is destroyed, but some did not finish; and as
    /// [`Group::destroy`].
    pub fn destroy_within(&self, time: Duration) -> Result<()> {
        self.call("destroy", |replica| Ok(replica.destroy(TimeLimit::within(time))?))
    }

    /// Runs the body of a call, and adds the call to its errors.
    #[inline]
    fn call<T>(
        &self,
        name: &'static str,
        call: impl FnOnce(&Arc<Replica>) -> Result<T>,
    ) -> Result<T> {
        error::call(self.replica.shared(), name, || call(&self.replica))
    }
}

fn member_of(member: &ViewedMember) -> GroupMember {
    let ViewedMember { id, process, context, place, waiting } = *member;
    GroupMember { id, mailbox: MailboxAddress { process, context, store: None, place }, waiting }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, number) = (self.name(), self.number());
        formatter
            .debug_struct("Group")
            .field("name", &name)
            .field("number", &number)
            .finish_non_exhaustive()
    }
}
