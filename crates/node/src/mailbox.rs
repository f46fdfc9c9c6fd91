//! Mailboxes: any process that knows the mailbox posts to it, and the thread that created it
//! retrieves.
//!
//! A process learns the address from a message ([`crate::Message::pack_mailbox`]), or by a
//! name that the owner has registered and the job's agent keeps. It opens the mailbox
//! ([`Job::open_mailbox_by_address`], [`Job::open_mailbox`]) and posts through the [`Outbox`].
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! use landeck::{Job, Message};
//! let job = Job::join()?;
//! if job.world().rank() == 0 {
//!     let mut inbox = job.create_mailbox()?;
//!     inbox.register("results")?;
//!     job.world().barrier()?; // from here on the name is there
//!     let mut message = inbox.retrieve()?;
//!     println!("{}: {}", message.unpack_text()?, message.unpack_value::<f64>()?);
//! } else {
//!     job.world().barrier()?;
//!     let results = job.open_mailbox("results")?;
//!     results.post(Message::new().pack_text("energy").pack(&[-1.5f64]))?;
//! }
//! job.leave()
//! # }
//! ```
//!
//! A dropped mailbox takes its messages with it. A later post fails with [`MailboxError::Gone`], and a post to a
//! process that is gone with [`ErrorKind::PeerFailed`]. Messages of one sender are retrieved in the order in which
//! they were posted. The messages that may wait are bounded as for all messages; beyond that, the posting process
//! waits.
//!
//! In a job on several hosts a name is found on all hosts, and posts cross to other hosts. A short post to another host
//! does not wait for an answer. If the mailbox is gone, the message is dropped there, and every post after the answer
//! fails with [`MailboxError::GoneElsewhere`].

mod availability;
mod events;
mod from_groups;
pub mod outbox;

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use landeck_joining::job_names;
use landeck_joining::objects::{self, Name, Object, ObjectKind};
use landeck_kernel::{Area, Failure, Peer, Status, Wanted};
use landeck_memory::{Buffer, Mark, Operation, WaitRecord};
use landeck_wire::ProcessId;

pub use crate::error::MailboxError;
use crate::error::{self, Error, ErrorKind, Members, Result};
use crate::job::Job;
use crate::mailbox::outbox::Outbox;
use crate::message::mailbox_address::MailboxAddress;
use crate::message::typed::Typed;
use crate::message::{Message, Spare, tag_of_values};
use crate::peers::process_of;
use crate::store::{self, Store};
use availability::Availability;
pub use events::{Gone, MailboxEvent, MailboxEvents, ToldMessage, ToldView, ViewMember};
use from_groups::FromGroups;
use landeck_engine::{Shared, WaitError};
use landeck_named_groups::{Forwarded, TimeLimit};

/// Returns `None` if only a part of a message has arrived.
fn if_whole<T>(taken: Result<T>) -> Result<Option<T>> {
    match taken {
        Err(Error { kind: ErrorKind::TimedOut(_), .. }) => Ok(None),
        taken => taken.map(Some),
    }
}

/// The end of an attempt to retrieve the first posted message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Whole,
    /// Its poster is gone, of which an earlier call has told.
    Lost,
}

/// A mailbox, from which only the creating thread retrieves. Dropping it destroys it.
pub struct Mailbox {
    shared: Arc<Shared>,
    address: MailboxAddress,
    mark: Option<Mark>,
    /// The names under which it is registered, with the agent's numbers.
    names: Vec<(Name, u64)>,
    availability: Option<Availability>,
    last_poster: Option<ProcessId>,
    /// Processes that are gone with messages that had come in part, of which a call has told.
    told_gone: Vec<ProcessId>,
    groups: FromGroups,
    /// The memory of a message that shares its sender's values, kept for the next message.
    spare: Option<Spare>,
    /// Makes the type not `Send`: only its thread retrieves.
    _of_this_thread: PhantomData<*const ()>,
}

impl Job {
    /// Creates a mailbox, from which only this thread retrieves.
    ///
    /// # Errors
    /// [`ErrorKind::Heap`], [`MailboxError::TooMany`], [`ErrorKind::Thread`].
    pub fn create_mailbox(&self) -> Result<Mailbox> {
        error::call(&self.shared, "create_mailbox", || {
            let process = self.process();
            let mut engine = self.shared.engine.enter()?;
            let block = engine.endpoint.allocate(Mark::BYTES)?;
            let context = engine.new_mailbox();
            // A death ends the posts of one process, and the others go on.
            engine.endpoint.set_members(context, vec![Peer(self.shared.slot)]);
            drop(engine);
            let mut address = MailboxAddress { process, context, store: None, place: 0 };
            let mark =
                Mark::set(&self.shared.segment, self.shared.slot, block, address.mark_number());
            address.place = mark.as_ref().map_or(0, Mark::place);
            Ok(Mailbox {
                shared: self.shared.clone(),
                address,
                mark,
                names: Vec::new(),
                availability: None,
                last_poster: None,
                told_gone: Vec::new(),
                groups: FromGroups::default(),
                spare: None,
                _of_this_thread: PhantomData,
            })
        })
    }

    /// Opens the mailbox with this address, which the process received, for example, in a message.
    ///
    /// # Errors
    /// [`MailboxError::NoAddress`], [`MailboxError::AnotherJob`], [`MailboxError::Gone`] (on this host),
    /// [`MailboxError::GuestElsewhere`], [`ErrorKind::PeerFailed`].
    pub fn open_mailbox_by_address(&self, address: MailboxAddress) -> Result<Outbox> {
        error::call(&self.shared, "open_mailbox_by_address", || Outbox::open(&self.shared, address))
    }

    /// Opens the mailbox that is registered under a name.
    ///
    /// # Errors
    /// [`ErrorKind::Object`] when the bytes are not a name, when no mailbox is registered under it,
    /// or when the agent does not answer; and as [`Job::open_mailbox_by_address`].
    pub fn open_mailbox(&self, name: impl AsRef<[u8]>) -> Result<Outbox> {
        error::call(&self.shared, "open_mailbox", || {
            let name = Name::new(name).map_err(objects::ObjectError::from)?;
            let found = self.find_mailbox(&name)?;
            self.open_mailbox_by_address(MailboxAddress::of_words(found.owner, found.words))
        })
    }

    /// Finds the mailbox with this name: at the agent, or, in a job on several hosts, at the arbiter.
    pub(crate) fn find_mailbox(
        &self,
        name: &Name,
    ) -> std::result::Result<Object, objects::ObjectError> {
        let segment = &self.shared.segment;
        match segment.plan().has_host_tables() {
            true => job_names::find(segment, self.process(), ObjectKind::Mailbox, name),
            false => objects::find_mailbox(self.process(), name),
        }
    }
}

impl Mailbox {
    /// Returns the address, for the processes that are to post to this mailbox.
    pub fn address(&self) -> MailboxAddress {
        self.address
    }

    /// Sets where the data of long messages wait that are posted to this mailbox. It holds for processes that get its address,
    /// or open it by a name, from now on; a poster may wish otherwise ([`Outbox::storing`]). Register it behind this call.
    ///
    /// # Errors
    /// [`ErrorKind::NoStore`].
    pub fn set_store(&mut self, store: Store) -> Result<()> {
        self.address.store = Some(store::checked(&self.shared.segment, store)?);
        Ok(())
    }

    /// Registers the mailbox under a name, by which other processes find it. A mailbox may have
    /// several names.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the bytes are not a name, the name is taken, or the agent does not
    /// answer.
    pub fn register(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let shared = self.shared.clone();
        error::call(&shared, "register", || {
            let name = Name::new(name).map_err(objects::ObjectError::from)?;
            let words = [self.address.context_word(), self.address.place];
            let (segment, process) = (&shared.segment, self.address.process);
            let named = match segment.plan().has_host_tables() {
                true => job_names::publish(segment, process, ObjectKind::Mailbox, &name, words)?,
                false => objects::name_mailbox(process, &name, words)?,
            };
            self.names.push((name, named.number));
            Ok(())
        })
    }

    /// Withdraws a name; the mailbox itself stays.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the mailbox has no such name, or the agent does not answer.
    pub fn unregister(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let shared = self.shared.clone();
        error::call(&shared, "unregister", || {
            let name = Name::new(name).map_err(objects::ObjectError::from)?;
            let Some(at) = self.names.iter().position(|(known, _)| *known == name) else {
                let (kind, name) = (ObjectKind::Mailbox, name.as_str().to_owned());
                return Err(objects::ObjectError::Unknown { kind, name }.into());
            };
            let (_, number) = self.names.swap_remove(at);
            Ok(self.withdraw(number)?)
        })
    }

    /// Takes back a name by its number.
    fn withdraw(&self, number: u64) -> std::result::Result<(), objects::ObjectError> {
        let (segment, process) = (&self.shared.segment, self.address.process);
        match segment.plan().has_host_tables() {
            true => job_names::withdraw(segment, process, ObjectKind::Mailbox, number),
            false => objects::close(process, ObjectKind::Mailbox, number),
        }
    }

    /// Waits for a message, and removes and returns it.
    ///
    /// A message whose poster died before all of it was here is lost. The first one is told as
    /// [`ErrorKind::PeerFailed`], once for each process that is gone; the next call goes on with
    /// what others have posted.
    ///
    /// # Errors
    /// [`ErrorKind::Ended`], [`ErrorKind::Thread`], [`ErrorKind::PeerFailed`] when messages were
    /// lost with their poster, [`ErrorKind::Message`] when the received bytes are not a message.
    pub fn retrieve(&mut self) -> Result<Message> {
        let mut message = Message::new();
        self.retrieve_into(&mut message)?;
        Ok(message)
    }

    /// Waits as [`Mailbox::retrieve`] does, for at most `time`. A message that has arrived only in
    /// part by then is retrieved by the next call.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], and as [`Mailbox::retrieve`].
    pub fn retrieve_within(&mut self, time: Duration) -> Result<Message> {
        let mut message = Message::new();
        self.take_message(&mut message, Some(time))?;
        Ok(message)
    }

    /// Retrieves as [`Mailbox::retrieve`] does, into a message whose memory is reused.
    ///
    /// # Errors
    /// As [`Mailbox::retrieve`].
    #[inline]
    pub fn retrieve_into(&mut self, message: &mut Message) -> Result<()> {
        self.take_message(message, None)
    }

    /// Retrieves a message if one has arrived completely; returns `None` otherwise.
    ///
    /// # Errors
    /// As [`Mailbox::retrieve`].
    pub fn try_retrieve(&mut self) -> Result<Option<Message>> {
        let mut message = Message::new();
        loop {
            if self.take_message_of_groups(&mut message)? {
                return Ok(Some(message));
            }
            match self.look()? {
                None => return Ok(None),
                Some(status) if status.tag == Forwarded::TAG => self.note_forwarded()?,
                Some(status) => match self.take_posted(&mut message, &status, TimeLimit::Now) {
                    Ok(Taken::Lost) => {}
                    taken => return if_whole(taken.map(|_| message)),
                },
            }
        }
    }

    /// Waits for a message that consists of values of this type, and copies them to `into`. Returns
    /// their number, which may be less than `into.len()`.
    ///
    /// # Errors
    /// [`MailboxError::OtherType`], [`MailboxError::TooLong`] (the message stays in the mailbox),
    /// and as [`Mailbox::retrieve`].
    pub fn retrieve_values<T: Typed>(&mut self, into: &mut [T]) -> Result<usize> {
        self.take_values(into, None)
    }

    /// Waits as [`Mailbox::retrieve_values`] does, for at most `time`, with the rules of
    /// [`Mailbox::retrieve_within`].
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], and as [`Mailbox::retrieve_values`].
    pub fn retrieve_values_within<T: Typed>(
        &mut self,
        into: &mut [T],
        time: Duration,
    ) -> Result<usize> {
        self.take_values(into, Some(time))
    }

    /// Retrieves values as [`Mailbox::retrieve_values`] does, if a message has arrived; returns
    /// `None` otherwise.
    ///
    /// # Errors
    /// As [`Mailbox::retrieve_values`].
    pub fn try_retrieve_values<T: Typed>(&mut self, into: &mut [T]) -> Result<Option<usize>> {
        loop {
            if let Some(count) = self.take_values_of_groups(into)? {
                return Ok(Some(count));
            }
            match self.look()? {
                None => return Ok(None),
                Some(status) if status.tag == Forwarded::TAG => self.note_forwarded()?,
                Some(status) => match self.take_posted_values(into, &status, TimeLimit::Now) {
                    Ok(None) => {}
                    taken => return if_whole(taken).map(Option::flatten),
                },
            }
        }
    }

    /// Returns the number of the group ([`crate::Group::number`]) that the last message came from,
    /// and the number of the member that sent it, if a member did. Returns `None` if the message
    /// was posted.
    pub fn last_group(&self) -> Option<(u64, Option<u32>)> {
        self.groups.last
    }

    /// Returns the process that posted the last message.
    pub fn last_poster(&self) -> Option<ProcessId> {
        self.last_poster
    }

    /// Returns a file descriptor that is readable while messages wait, posted or from groups, for
    /// programs that wait for several things. Poll it, and retrieve with [`Mailbox::try_retrieve`];
    /// do not read from it. With groups that have a server, it may be readable once without a
    /// message.
    ///
    /// # Errors
    /// [`MailboxError::NoProgressThread`], [`MailboxError::NoDescriptor`], [`ErrorKind::Thread`].
    pub fn descriptor(&mut self) -> Result<BorrowedFd<'_>> {
        Ok(self.availability()?.descriptor())
    }

    /// Calls a function in a thread of its own when a message has arrived, once for several
    /// messages that arrive together. Only the owning thread retrieves, so the function must notify
    /// that thread in a way of the program's. The calls end when the mailbox is dropped or the
    /// function panics.
    ///
    /// # Errors
    /// As [`Mailbox::descriptor`].
    pub fn on_message(&mut self, call: impl FnMut() + Send + 'static) -> Result<()> {
        Ok(self.availability()?.call(Box::new(call)).map_err(MailboxError::NoDescriptor)?)
    }

    fn availability(&mut self) -> Result<&mut Availability> {
        let Self { shared, address, availability, groups, .. } = self;
        match availability {
            Some(availability) => Ok(availability),
            none => {
                let new = none.insert(Availability::new(shared, address.context)?);
                groups.watch(shared, new)?;
                Ok(new)
            }
        }
    }

    #[inline]
    fn take_message(&mut self, message: &mut Message, time: Option<Duration>) -> Result<()> {
        if !self.groups.is_empty() {
            return self.take_message_of_any(message, time);
        }
        // SAFETY: the look ends before the room is used again, and leaves no request behind.
        let area = Area::contiguous(unsafe { Buffer::of_mut(message.short_room()?) });
        let mut status = Status::NONE;
        let found = self.shared.receive_whole_now(&self.wanted(None), &area, &mut status);
        if found? {
            self.note_poster(&status);
            return Ok(message.receive_here(status.tag, status.bytes as usize)?);
        }
        self.wait_and_take(message, time)
    }

    #[inline(never)]
    fn wait_and_take(&mut self, message: &mut Message, time: Option<Duration>) -> Result<()> {
        let limit = TimeLimit::of(time);
        loop {
            let status = self.wait(limit)?;
            if let Taken::Whole = self.take_posted(message, &status, limit)? {
                return Ok(());
            }
        }
    }

    fn take_values<T: Typed>(&mut self, into: &mut [T], time: Option<Duration>) -> Result<usize> {
        if !self.groups.is_empty() {
            return self.take_values_of_any(into, time);
        }
        // SAFETY: `receive_whole_now` leaves no request behind.
        let area = Area::contiguous(unsafe { Buffer::of_mut(into) });
        let wanted = self.wanted(Some(tag_of_values::<T>()));
        let mut status = Status::NONE;
        let found = self.shared.receive_whole_now(&wanted, &area, &mut status);
        if found? {
            self.note_poster(&status);
            return Ok(status.bytes as usize / size_of::<T>());
        }
        let limit = TimeLimit::of(time);
        loop {
            let status = self.wait(limit)?;
            if let Some(count) = self.take_posted_values(into, &status, limit)? {
                return Ok(count);
            }
        }
    }

    /// Retrieves the first posted message, which has this status.
    fn take_posted(
        &mut self,
        message: &mut Message,
        status: &Status,
        limit: TimeLimit,
    ) -> Result<Taken> {
        let id = self.shared.engine.enter()?.endpoint.receive_own(self.wanted(None));
        self.count_down();
        let completion = match self.shared.wait_or_abandon(id.into(), limit.deadline_ns()) {
            Ok(completion) => completion,
            Err(error) => return self.lost(error, limit).map(|()| Taken::Lost),
        };
        if let Ok(status) = &completion.result {
            self.note_poster(status);
        }
        match completion.data {
            Some(received) => message.receive(status.tag, received.into())?,
            None => message.receive_own(status.tag, Vec::new())?,
        }
        Ok(Taken::Whole)
    }

    /// Retrieves the first posted message, which has this status, into values, if it consists of such values. None if
    /// the message is lost and that was told.
    fn take_posted_values<T: Typed>(
        &mut self,
        into: &mut [T],
        status: &Status,
        limit: TimeLimit,
    ) -> Result<Option<usize>> {
        if status.tag != tag_of_values::<T>() {
            return Err(MailboxError::OtherType { asked: std::any::type_name::<T>() }.into());
        }
        let (message_bytes, buffer_bytes) = (status.bytes, size_of_val(into));
        if message_bytes > buffer_bytes as u64 {
            return Err(MailboxError::TooLong { message_bytes, buffer_bytes }.into());
        }
        // SAFETY: `wait_or_abandon` below ends the request, whatever happens; nothing returns before.
        let area = Area::contiguous(unsafe { Buffer::of_mut(into) });
        let id = self.shared.engine.enter()?.endpoint.receive(self.wanted(None), area);
        self.count_down();
        if let Err(error) = self.shared.wait_or_abandon(id.into(), limit.deadline_ns()) {
            return self.lost(error, limit).map(|()| None);
        }
        self.note_poster(status);
        Ok(Some(message_bytes as usize / size_of::<T>()))
    }

    /// The end of a posted message that cannot be retrieved: the error, unless its poster is gone and a call has told of
    /// that.
    #[cold]
    fn lost(&mut self, error: WaitError, limit: TimeLimit) -> Result<()> {
        if let WaitError::Failure(Failure::PeerGone { peer, .. }) = error {
            let poster = process_of(&self.shared.segment, peer);
            if self.told_gone.contains(&poster) {
                return Ok(());
            }
            self.told_gone.push(poster);
        }
        Err(self.error(error, limit))
    }

    /// Waits for a posted message.
    fn wait(&self, limit: TimeLimit) -> Result<Status> {
        let record = WaitRecord {
            operation: Operation::Receive,
            context: self.address.context,
            ..WaitRecord::default()
        };
        let wanted = self.wanted(None);
        let found = self.shared.wait_until(&record, limit.deadline_ns(), |engine| {
            // Processes that are gone come first: this brings in the messages that they posted before.
            engine.endpoint.refresh();
            engine.endpoint.probe(wanted)
        });
        found.map_err(|error| self.error(error, limit))
    }

    /// Returns a posted message if one has arrived.
    fn look(&self) -> Result<Option<Status>> {
        let mut engine = self.shared.engine.enter()?;
        let wanted = self.wanted(None);
        if let Some(status) = engine.endpoint.probe(wanted) {
            return Ok(Some(status));
        }
        engine.look();
        engine.endpoint.refresh();
        Ok(engine.endpoint.probe(wanted))
    }

    #[inline]
    fn wanted(&self, tag: Option<u32>) -> Wanted {
        Wanted { context: self.address.context, source: None, tag }
    }

    /// Takes one message off the count of the descriptor, since an announced message was retrieved.
    fn count_down(&self) {
        if let Some(availability) = &self.availability {
            availability.count_down();
        }
    }

    #[inline]
    fn note_poster(&mut self, status: &Status) {
        self.last_poster = Some(process_of(&self.shared.segment, status.peer));
    }

    #[cold]
    fn error(&self, error: WaitError, limit: TimeLimit) -> Error {
        let error = Error::of_wait(&self.shared, error, Some(limit.time()), Members::OF_JOB);
        error::in_call(&self.shared, "retrieve", error)
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.groups.leave();
        // In this order: no process posts any more, no message is kept any more, no process finds it.
        self.mark = None;
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.endpoint.close_mailbox(self.address.context);
        }
        for (_, number) in std::mem::take(&mut self.names) {
            // The name goes with the process in any case.
            let _ = self.withdraw(number);
        }
    }
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Mailbox").field("address", &self.address).finish_non_exhaustive()
    }
}
