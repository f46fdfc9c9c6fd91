//! Retrieving messages of the groups that a mailbox is a member of, beside posted messages.

use std::sync::Arc;
use std::time::Duration;

use landeck_engine::{Engine, Shared};
use landeck_kernel::Status;
use landeck_memory::{Operation, WaitRecord};
use landeck_named_groups::{Forwarded, NextMessage, ServiceError, Subscription, TimeLimit};
use landeck_wire::ProcessId;

use super::availability::Availability;
use super::{Mailbox, Taken};
use crate::error::{self, Error, MailboxError, Result};
use crate::message::typed::Typed;
use crate::message::{Message, tag_of_values};

/// The groups of a mailbox.
#[derive(Default)]
pub(super) struct FromGroups {
    subscriptions: Vec<Arc<Subscription>>,
    /// The group and the member from which the last message came.
    pub(super) last: Option<(u64, Option<u32>)>,
    /// Whether servers may have sent it notices.
    is_served: bool,
    /// Whether it may be a member of groups of other hosts.
    is_far: bool,
    /// Whether the descriptor has announced the last message.
    was_announced: bool,
    /// The group that is read first next time, so that no group is read for ever while others wait.
    next_group: usize,
}

/// The place of the next message.
enum Found {
    Posted(Status),
    InGroup,
    /// Nothing: the server of a group of another host is gone.
    Unserved,
}

impl FromGroups {
    pub(super) fn is_empty(&self) -> bool {
        self.subscriptions.is_empty() && !self.is_served
    }

    /// Leaves all groups with the mailbox.
    pub(super) fn leave(&mut self) {
        for subscription in self.subscriptions.drain(..) {
            // A member that was removed has no need to leave.
            let _ = subscription.leave_directly();
            subscription.close();
        }
    }

    /// Has the mailbox's descriptor announce their messages.
    pub(super) fn watch(&self, shared: &Shared, availability: &Availability) -> Result<()> {
        self.subscriptions.iter().try_for_each(|it| availability.watch(shared, it))
    }

    /// Forgets groups from which nothing more will come.
    fn forget_spent(&mut self) {
        self.subscriptions.retain(|subscription| !subscription.is_spent());
    }

    /// Reads the next message of some group, and takes it if `read` says so. Returns its result and the sender.
    fn read<T>(
        &mut self,
        mut read: impl FnMut(&NextMessage<'_>) -> (T, bool),
    ) -> std::result::Result<Option<(T, ProcessId)>, ServiceError> {
        let count = self.subscriptions.len();
        let first = if self.next_group < count { self.next_group } else { 0 };
        for at in (first..count).chain(0..first) {
            let subscription = &self.subscriptions[at];
            let group = subscription.group();
            let mut with_sender = |next: &NextMessage<'_>| {
                let (result, is_taken) = read(next);
                ((result, next.process, next.member), is_taken)
            };
            if let Some((found, was_announced)) = subscription.read(&mut with_sender)? {
                let (result, process, member) = found;
                self.next_group = at + 1;
                self.was_announced = was_announced;
                self.last = Some((group, member));
                return Ok(Some((result, process)));
            }
        }
        Ok(None)
    }

    /// Exchanges messages with servers of other hosts. False when one of them is gone.
    fn follow(&self, engine: &mut Engine) -> bool {
        !self.is_far || self.subscriptions.iter().all(|subscription| subscription.follow(engine))
    }

    /// Goes on with the next servers of groups of other hosts.
    fn find_servers(&self) -> std::result::Result<(), ServiceError> {
        let mut far = self.subscriptions.iter().filter(|subscription| subscription.is_elsewhere());
        far.try_for_each(|subscription| subscription.find_server())
    }

    fn is_ready(&self) -> bool {
        self.subscriptions.iter().any(|subscription| subscription.is_ready())
    }

    fn is_ready_by_log(&self) -> std::result::Result<bool, ServiceError> {
        for subscription in &self.subscriptions {
            if subscription.is_ready_by_log()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Mailbox {
    /// Adds a group from which the mailbox retrieves.
    pub(crate) fn subscribe(&mut self, subscription: Arc<Subscription>) -> Result<()> {
        self.groups.forget_spent();
        self.groups.is_served |= subscription.is_served();
        self.groups.is_far |= subscription.is_elsewhere();
        if let Some(availability) = &self.availability {
            availability.watch(&self.shared, &subscription)?;
        }
        self.groups.subscriptions.push(subscription);
        Ok(())
    }

    /// Takes a server's notice that a message of a group is there. A notice for a member that has left is dropped.
    pub(super) fn note_forwarded(&mut self) -> Result<()> {
        let id =
            self.shared.engine.enter()?.endpoint.receive_own(self.wanted(Some(Forwarded::TAG)));
        // The descriptor announces the message itself from now on.
        self.count_down();
        let completion = self.shared.wait_or_abandon(id.into(), None);
        let completion = completion.map_err(|error| self.error(error, TimeLimit::Unlimited))?;
        if let Some(received) = &completion.data {
            let Forwarded { group, message } = Forwarded::from_received(received);
            let mut groups = self.groups.subscriptions.iter();
            if let Some(subscription) = groups.find(|it| it.group() == group && !it.is_spent()) {
                subscription.forward(message);
            }
        }
        self.shared.engine.enter()?.have_watched();
        Ok(())
    }

    /// Takes what servers of other hosts have sent.
    fn follow_groups(&self) -> Result<()> {
        if self.groups.is_far {
            let mut engine = self.shared.engine.enter()?;
            engine.look();
            self.groups.follow(&mut engine);
        }
        Ok(())
    }

    /// Tells servers of other hosts that a message was taken: others may wait for its room, and this process may not
    /// call again for long.
    fn tell_taken(&self) -> Result<()> {
        if self.groups.is_far {
            self.groups.follow(&mut *self.shared.engine.enter()?);
        }
        Ok(())
    }

    /// Counts down the descriptor if it has announced the message that was taken.
    fn count_down_announced(&self) {
        if self.groups.was_announced {
            self.count_down();
        }
    }

    /// The error of a group. It may report that a member was removed, whose announced messages are lost then.
    #[cold]
    fn group_error(&self, error: ServiceError) -> Error {
        let lost = self.groups.subscriptions.iter().map(|it| it.take_vain_announcements());
        (0..lost.sum()).for_each(|_| self.count_down());
        error::in_call(&self.shared, "retrieve", error.into())
    }

    /// Takes a message of a group, if there is one.
    pub(super) fn take_message_of_groups(&mut self, message: &mut Message) -> Result<bool> {
        if self.groups.is_empty() {
            return Ok(false);
        }
        self.follow_groups()?;
        let spare = &mut self.spare;
        let read = self.groups.read(|next| {
            let length = next.bytes.len();
            if next.is_long() {
                if let Some(values) = next.take_values()
                    && message.receive_shared(values, next.tag, length, spare)
                {
                    return (None, true);
                }
                message.take_spare(spare);
            }
            match message.own_room(length) {
                Ok(room) => (Some(Ok((next.tag, next.bytes.copy_to_slice(room)))), true),
                Err(no_memory) => (Some(Err(no_memory)), false),
            }
        });
        let read = read.map_err(|error| self.group_error(error))?;
        let Some((copied, process)) = read else { return Ok(false) };
        let copied = copied.transpose()?;
        self.tell_taken()?;
        self.count_down_announced();
        self.last_poster = Some(process);
        if let Some((tag, length)) = copied {
            message.receive_here(tag, length)?;
        }
        Ok(true)
    }

    /// Takes a message of a group into values, if it consists of such.
    pub(super) fn take_values_of_groups<T: Typed>(
        &mut self,
        into: &mut [T],
    ) -> Result<Option<usize>> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        self.follow_groups()?;
        let buffer_bytes = size_of_val(into);
        let into = landeck_memory::plain::bytes_of_mut(into);
        let read = self.groups.read(|next| {
            let message_bytes = next.bytes.len();
            if next.tag != tag_of_values::<T>() {
                return (Err(MailboxError::OtherType { asked: std::any::type_name::<T>() }), false);
            }
            if message_bytes > buffer_bytes {
                let message_bytes = message_bytes as u64;
                return (Err(MailboxError::TooLong { message_bytes, buffer_bytes }), false);
            }
            next.bytes.copy_to_slice(into);
            (Ok(message_bytes / size_of::<T>()), true)
        });
        let read = read.map_err(|error| self.group_error(error))?;
        let Some((count, process)) = read else { return Ok(None) };
        let count = count?;
        self.tell_taken()?;
        self.count_down_announced();
        self.last_poster = Some(process);
        Ok(Some(count))
    }

    /// Waits for a message, of a group or posted, and takes it.
    pub(super) fn take_message_of_any(
        &mut self,
        message: &mut Message,
        time: Option<Duration>,
    ) -> Result<()> {
        let limit = TimeLimit::of(time);
        loop {
            if self.take_message_of_groups(message)? {
                return Ok(());
            }
            match self.wait_for_any(limit)? {
                Found::Posted(status) if status.tag == Forwarded::TAG => self.note_forwarded()?,
                Found::Posted(status) => {
                    if let Taken::Whole = self.take_posted(message, &status, limit)? {
                        self.groups.last = None;
                        return Ok(());
                    }
                }
                Found::InGroup => {}
                Found::Unserved => self.find_servers()?,
            }
        }
    }

    /// Waits for a message, of a group or posted, and takes it into values.
    pub(super) fn take_values_of_any<T: Typed>(
        &mut self,
        into: &mut [T],
        time: Option<Duration>,
    ) -> Result<usize> {
        let limit = TimeLimit::of(time);
        loop {
            if let Some(count) = self.take_values_of_groups(into)? {
                return Ok(count);
            }
            match self.wait_for_any(limit)? {
                Found::Posted(status) if status.tag == Forwarded::TAG => self.note_forwarded()?,
                Found::Posted(status) => {
                    if let Some(count) = self.take_posted_values(into, &status, limit)? {
                        self.groups.last = None;
                        return Ok(count);
                    }
                }
                Found::InGroup => {}
                Found::Unserved => self.find_servers()?,
            }
        }
    }

    fn find_servers(&self) -> Result<()> {
        self.groups.find_servers().map_err(|error| self.group_error(error))
    }

    fn wait_for_any(&mut self, limit: TimeLimit) -> Result<Found> {
        self.groups.forget_spent();
        let (shared, groups) = (self.shared.clone(), &self.groups);
        if shared.spin_once(|| groups.is_ready())? {
            return Ok(Found::InGroup);
        }
        let waits: Vec<_> = groups.subscriptions.iter().map(|it| it.announce_wait()).collect();
        let record = WaitRecord {
            operation: Operation::Receive,
            context: self.address.context,
            ..WaitRecord::default()
        };
        let wanted = self.wanted(None);
        let found = shared.wait_until(&record, limit.deadline_ns(), |engine| {
            // First, so that this look finds what it brings.
            let is_followed = groups.follow(engine);
            match groups.is_ready_by_log() {
                Ok(false) => {}
                Ok(true) => return Some(Ok(Found::InGroup)),
                Err(error) => return Some(Err(error)),
            }
            engine.endpoint.refresh();
            let posted = engine.endpoint.probe(wanted).map(|status| Ok(Found::Posted(status)));
            posted.or((!is_followed).then_some(Ok(Found::Unserved)))
        });
        drop(waits);
        let found = found.map_err(|error| self.error(error, limit))?;
        found.map_err(|error| self.group_error(error))
    }
}
