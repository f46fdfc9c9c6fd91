//! Named groups: whoever knows the name joins with a mailbox, broadcasts, synchronises, leaves.
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
//!   Who creates a group is no member of it until it joins; anybody may broadcast.
//! - The **minimum** counts until it is first reached: before that, broadcasts, synchronisation and
//!   collective operations wait (or say [`GroupError::MinimumNotReached`]).
//! - A **broadcast** goes to the members at the moment of its acceptance, the sender included if it is
//!   one. Before, nobody sees it; afterwards every one of them that lives retrieves it exactly once,
//!   whoever dies. All retrieve in one order, in which each sender's messages are as it sent them.
//! - A **synchronisation** is of those who are members when the first comes to it. A leave counts as
//!   coming; when one died, all others are told ([`GroupError::MemberDied`]) once all have come. All
//!   broadcasts of those who took part, sent before, are in all mailboxes then.
//! - After **leave** nothing more enters the mailbox; what is in it is still retrieved. The last leave
//!   ends the group unless it is persistent; the end of its creator does not.
//! - What **destroy** finds waiting (for the minimum, in a synchronisation, with a join) ends with
//!   [`GroupError::GroupDestroyed`]; broadcasts that wait for room finish first. What was accepted is
//!   still retrieved.
//! - A mailbox that is **full** holds those who broadcast to this group, and nobody else. Where the
//!   only thread of a process would wait for its own mailbox, it is told ([`GroupError::Full`]).
//!
//! A group may be made to have a **server** ([`GroupOptions::served_by`]), as DECK had it: then the same is
//! asked of it by messages. The log remains what a group is.
//!
//! All processes of a group are on one host; on another, no group has the name.

mod collective;
mod launcher;
mod member;
mod operations;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use landeck_groups::service::{EntryWord, MemberRecord, Phase};
use landeck_host::objects::{self, Object, ObjectError, ObjectKind, ObjectName};
use landeck_wire::HostId;

pub use crate::error::GroupError;
use crate::error::{self, Error, ErrorKind, Result};
use crate::job::Job;
use crate::mailbox_address::MailboxAddress;
use crate::message::Message;
use crate::named_group::answer::Answer;
use crate::named_group::live::{Live, Mirror, nobody};
use crate::named_group::sending::{Manner, Sender};
use crate::named_group::server_client::ServerClient;
use crate::unstable::JobInternals;
use landeck_engine::deadline_ns;

pub use crate::named_group::options::{GroupOptions, ServedBy, WhenFull};
pub use member::Member;

/// Times that a name is tried which others give to groups that are over at once.
const ATTEMPTS: u32 = 16;

/// A group. A clone is another handle to it; threads may use it as the thread mode says. A handle
/// to a group that is over stays dead, even if there is another one of its name.
#[derive(Clone)]
pub struct Group {
    live: Arc<Live>,
}

/// Who is in a group at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Its number: each change of the members makes the next.
    pub number: u64,
    /// Whether there were as many members once as it takes.
    pub has_started: bool,
    /// The members, in the order of their numbers.
    pub members: Vec<GroupMember>,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Its number.
    pub id: u32,
    /// Its mailbox.
    pub mailbox: MailboxAddress,
    /// Broadcasts that it has not retrieved.
    pub waiting: u64,
}

impl Job {
    /// Makes a group under a name. Who makes it is no member of it.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the bytes are no name, the name is taken, there is no memory, the agent does
    /// not answer; [`GroupError::Options`]; [`GroupError::NoServer`].
    pub fn create_group(&self, name: impl AsRef<[u8]>, options: GroupOptions) -> Result<Group> {
        error::call(&self.shared, "create_group", || {
            let name = ObjectName::new(name).map_err(ObjectError::from)?;
            let launcher = self.serving_launcher(&name, options)?;
            let options = options
                .made_by(self.shared.slot, launcher.as_ref().map(launcher::ServingLauncher::place));
            let shape = options.check()?;
            let (process, words) = (self.process(), options.to_words());
            let bytes = shape.memory_bytes(self.segment().plan().slots());
            for _ in 0..ATTEMPTS {
                match objects::make(process, ObjectKind::Group, Some(&name), bytes, words) {
                    Err(ObjectError::Taken { .. }) if self.is_over(&name)? => {}
                    made => {
                        let group = self.group(&name, made?)?;
                        launcher.map_or(Ok(()), |launcher| launcher.is_told_of(&name))?;
                        return Ok(group);
                    }
                }
            }
            let name = name.as_str().to_owned();
            Err(ObjectError::Taken { kind: ObjectKind::Group, name, pid: 0 }.into())
        })
    }

    /// Opens the group under a name.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the bytes are no name, nobody has made it, the agent does not answer;
    /// [`GroupError::GroupDestroyed`].
    pub fn open_group(&self, name: impl AsRef<[u8]>) -> Result<Group> {
        error::call(&self.shared, "open_group", || {
            let name = ObjectName::new(name).map_err(ObjectError::from)?;
            let process = self.process();
            let opened = objects::open(process, ObjectKind::Group, &name)?;
            let group = self.group(&name, opened)?;
            match group.phase()? {
                Phase::Ended => {
                    group.live.retire();
                    Err(GroupError::GroupDestroyed { group: group.name().to_owned() }.into())
                }
                _ => Ok(group),
            }
        })
    }

    /// The names of the groups of this job on this host, in the order in which they were made.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the agent does not answer.
    pub fn group_names(&self) -> Result<Vec<String>> {
        let (mut names, mut last) = (Vec::new(), 0);
        while let Some((object, name)) = objects::next_group(self.process(), last)? {
            names.push(name.as_str().to_owned());
            last = object.number;
        }
        Ok(names)
    }

    /// Whether the group of a name that is taken is over, and the name free by now: whoever ended it
    /// did not live to say so.
    fn is_over(&self, name: &ObjectName) -> Result<bool> {
        match self.open_group(name.as_str()) {
            Ok(_) => Ok(false),
            Err(Error { kind: ErrorKind::Object(ObjectError::Unknown { .. }), .. }) => Ok(true),
            Err(Error { kind: ErrorKind::Group(GroupError::GroupDestroyed { .. }), .. }) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

impl Job {
    /// The group whose memory was made or opened; this process serves it first if it is to.
    fn group(&self, name: &ObjectName, memory: (Object, OwnedFd)) -> Result<Group> {
        let live = Live::open(&self.shared, &self.employment, name, memory)?;
        live.serve_first()?;
        Ok(Group { live })
    }
}

impl Group {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.live.name
    }

    /// Its number in the job, never that of another group.
    pub fn number(&self) -> u64 {
        self.live.object.number()
    }

    /// How it was made.
    pub fn options(&self) -> GroupOptions {
        self.live.options
    }

    /// Who is in it now.
    ///
    /// # Errors
    /// [`GroupError::Broken`], [`ErrorKind::Thread`].
    pub fn view(&self) -> Result<GroupView> {
        self.live.with(|mirror| Ok(self.view_of(mirror)))
    }

    /// Waits until the view has another number than this, for a while.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], [`GroupError::GroupDestroyed`], [`GroupError::Broken`], [`ErrorKind::Ended`],
    /// [`ErrorKind::Thread`].
    pub fn view_after_within(&self, number: u64, time: Duration) -> Result<GroupView> {
        let next = self.live.wait(deadline_ns(Some(time)), nobody, |mirror| {
            if mirror.state.view() != number {
                return Ok(Some(self.view_of(mirror)));
            }
            self.live.check_goes_on(&mirror.state).map(|()| None)
        });
        match next {
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {
                Err(ErrorKind::TimedOut(time).into())
            }
            other => other,
        }
    }

    /// How many broadcasts were accepted so far.
    ///
    /// # Errors
    /// [`GroupError::Broken`], [`ErrorKind::Thread`].
    pub fn broadcasts(&self) -> Result<u64> {
        self.live.with(|mirror| Ok(mirror.state.broadcasts()))
    }

    fn view_of(&self, mirror: &Mirror) -> GroupView {
        let (host, state) = (HostId(self.live.shared.segment.plan().host), &mirror.state);
        GroupView {
            number: state.view(),
            has_started: state.has_started(),
            members: state
                .members()
                .iter()
                .map(|member| GroupMember {
                    waiting: state.broadcasts() - self.live.taken(mirror, member),
                    ..member_of(host, member)
                })
                .collect(),
        }
    }

    /// Waits until there were as many members once as it takes.
    ///
    /// # Errors
    /// [`GroupError::GroupDestroyed`], [`GroupError::Destroying`], [`ErrorKind::Ended`],
    /// [`ErrorKind::Thread`].
    pub fn wait_started(&self) -> Result<()> {
        self.live.wait_started(None)
    }

    /// The same, for a while.
    ///
    /// # Errors
    /// [`GroupError::MinimumNotReached`], and as [`Group::wait_started`].
    pub fn wait_started_within(&self, time: Duration) -> Result<()> {
        self.live.wait_started(deadline_ns(Some(time)))
    }

    /// Sends a message to all who are members when it is accepted; returns then. Who calls it need not
    /// be a member. It waits until the group has started, and while there is no room.
    ///
    /// # Errors
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`GroupError::TooLong`],
    /// [`GroupError::Full`] where the group was made to say so, [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, Sender::Stranger, Manner::Patient)
    }

    /// The same, for a while; then nothing was sent.
    ///
    /// # Errors
    /// [`GroupError::MinimumNotReached`], [`GroupError::Full`]; [`ErrorKind::TimedOut`] where the group has a
    /// server that did not do it in time; and as [`Group::broadcast`].
    pub fn broadcast_within(&self, message: &Message, time: Duration) -> Result<()> {
        self.send(message, Sender::Stranger, Manner::within(time))
    }

    /// The same if that is possible without waiting: a server is given a second to answer.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] where it did not, and as [`Group::broadcast_within`].
    pub fn try_broadcast(&self, message: &Message) -> Result<()> {
        self.send(message, Sender::Stranger, Manner::AtOnce)
    }

    /// Waits until all that was accepted here so far is in all mailboxes: who looks there then finds it at
    /// once. Without a server that is so as soon as it is accepted.
    ///
    /// # Errors
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn wait_delivered(&self) -> Result<()> {
        self.delivered_until(None)
    }

    /// The same, for a while.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], and as [`Group::wait_delivered`].
    pub fn wait_delivered_within(&self, time: Duration) -> Result<()> {
        self.delivered_until(Some(time))
    }

    fn delivered_until(&self, time: Option<Duration>) -> Result<()> {
        let live = &self.live;
        let accepted = live.with(|mirror| {
            live.check_open(&mirror.state)?;
            Ok(mirror.state.broadcasts())
        })?;
        if live.desk.is_none() {
            return Ok(());
        }
        let server = |mirror: &Mirror| mirror.state.server().map(|server| server.who.slot);
        let delivered = live.wait(deadline_ns(time), server, |mirror| {
            // Of a server that is gone, members take all that was accepted.
            if mirror.state.unserved().max(live.log.sent_on()) >= accepted {
                return Ok(Some(()));
            }
            live.check_goes_on(&mirror.state).map(|()| None)
        });
        match delivered {
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {
                Err(ErrorKind::TimedOut(time.unwrap_or_default()).into())
            }
            other => other,
        }
    }

    #[inline]
    pub(crate) fn send(&self, message: &Message, sender: Sender, manner: Manner) -> Result<()> {
        self.live.broadcast(message, sender, manner)
    }

    /// Destroys the group for all: what waits for it ends with [`GroupError::GroupDestroyed`], but for
    /// broadcasts that wait for room, which finish first. Members still retrieve what was accepted.
    ///
    /// # Errors
    /// [`GroupError::DestroyedWithLoss`] when they wait for a mailbox of this process, whose only thread
    /// does not retrieve while it is here: retrieve before; [`GroupError::Destroying`], [`GroupError::GroupDestroyed`] when somebody else does or did,
    /// [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn destroy(&self) -> Result<()> {
        self.destroy_until(None)
    }

    /// The same, where broadcasts that wait for room have so much time to finish.
    ///
    /// # Errors
    /// [`GroupError::DestroyedWithLoss`]: it is destroyed, but some did not finish; and as
    /// [`Group::destroy`].
    pub fn destroy_within(&self, time: Duration) -> Result<()> {
        self.destroy_until(Some(time))
    }

    fn destroy_until(&self, time: Option<Duration>) -> Result<()> {
        let live = &self.live;
        let deadline_ns = deadline_ns(time);
        let has_drained = match &live.desk {
            None => {
                self.begin_to_destroy()?;
                live.wait(deadline_ns, nobody, |mirror| Ok(self.has_drained(mirror)))
            }
            Some(desk) => self.destroy_by_server(desk, deadline_ns)?,
        };
        let ended = match has_drained {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error { kind: ErrorKind::TimedOut(_), .. }) => self.end_with_loss(),
            Err(error) => Err(error),
        };
        live.retire();
        ended
    }

    /// Has the server destroy it: whether all that was held has finished, once it has begun.
    fn destroy_by_server(
        &self,
        desk: &ServerClient,
        deadline_ns: Option<u64>,
    ) -> Result<Result<bool>> {
        let live = &self.live;
        live.with(|mirror| live.check_open(&mirror.state))?;
        match live.ask_to_destroy(desk, deadline_ns) {
            Ok((Answer::Destroying, asked)) => {
                Ok(live.wait_for_reply(&asked, desk, deadline_ns, |mirror, told| {
                    Ok(self.has_drained(mirror).filter(|has_ended| told || !has_ended))
                }))
            }
            Ok(_) => {
                let why = live.with(|mirror| live.check_open(&mirror.state)).err();
                Err(why.unwrap_or(ErrorKind::WouldBlock.into()))
            }
            // The server did not in time: it is done without.
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {
                self.begin_to_destroy().map(|()| Ok(false))
            }
            Err(error) => Err(error),
        }
    }

    fn begin_to_destroy(&self) -> Result<()> {
        let live = &self.live;
        live.with(|mirror| {
            live.append(mirror, EntryWord::Destroy, |mirror| live.check_open(&mirror.state))
        })?;
        Ok(())
    }

    /// Whether what was held has finished; false where that waits for this thread.
    fn has_drained(&self, mirror: &Mirror) -> Option<bool> {
        let has_ended = mirror.state.phase() == Phase::Ended;
        (has_ended || self.live.is_in_the_way(mirror)).then_some(has_ended)
    }

    /// Ends what is held.
    fn end_with_loss(&self) -> Result<()> {
        let live = &self.live;
        let lost = live.with(|mirror| {
            let (slow, _) = live.slowest(mirror);
            let is_held = !mirror.state.held().is_empty();
            live.append(mirror, EntryWord::End, |_| Ok(()))?;
            Ok(is_held.then(|| slow.iter().map(|member| member.id).collect()))
        })?;
        match lost {
            None => Ok(()),
            Some(members) => {
                let group = live.name.clone();
                Err(GroupError::DestroyedWithLoss { group, members }.into())
            }
        }
    }

    fn phase(&self) -> Result<Phase> {
        self.live.with(|mirror| Ok(mirror.state.phase()))
    }
}

fn member_of(host: HostId, member: &MemberRecord) -> GroupMember {
    let process = u64::from(member.slot) | u64::from(member.incarnation) << 32;
    let words = [host.0, process, u64::from(member.context), member.place];
    GroupMember { id: member.id, mailbox: MailboxAddress::from_words(words), waiting: 0 }
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
