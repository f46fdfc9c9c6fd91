//! Retrieving messages of the groups that a mailbox is a member of, beside posted messages.

use std::sync::Arc;
use std::time::Duration;

use landeck_engine::{Engine, Shared};
use landeck_kernel::Status;
use landeck_memory::{Operation, WaitRecord};
use landeck_named_groups::{
    Forwarded, NewView, NextMessage, NextTold, ServiceError, Subscription, TimeLimit,
};
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
    /// The group and the member from which the last message came, and its number there.
    pub(super) last: Option<(u64, Option<u32>)>,
    pub(super) last_number: u64,
    /// Whether the descriptor announces views.
    announces_views: bool,
    /// Whether servers may have sent it notices.
    is_served: bool,
    /// Whether it may be a member of groups of other hosts.
    is_far: bool,
    /// How often the descriptor has announced what was told last.
    announced: u64,
    /// The group that is read first next time, so that no group is read for ever while others wait.
    next_group: usize,
}

/// The things that a caller asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Messages,
    /// Messages, and views in their places among them.
    Events,
}

/// A thing that a group had to tell.
pub(super) enum Told<T> {
    /// A message, and its sender.
    Message(T, ProcessId),
    /// A view of the group with this number.
    View(u64, NewView),
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
        self.subscriptions.iter().try_for_each(|it| self.watch_one(shared, availability, it))
    }

    fn watch_one(
        &self,
        shared: &Shared,
        availability: &Availability,
        subscription: &Arc<Subscription>,
    ) -> Result<()> {
        availability.watch(shared, subscription)?;
        if self.announces_views { availability.watch_views(shared, subscription) } else { Ok(()) }
    }

    /// Has the descriptor announce views from now on, if there is one.
    pub(super) fn announce_views(
        &mut self,
        shared: &Shared,
        availability: Option<&Availability>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.announces_views, true) {
            return Ok(());
        }
        let Some(availability) = availability else { return Ok(()) };
        self.subscriptions.iter().try_for_each(|it| availability.watch_views(shared, it))
    }

    /// Forgets groups from which nothing more will come.
    fn forget_spent(&mut self) {
        self.subscriptions.retain(|subscription| !subscription.is_spent());
    }

    /// Reads the next message of some group, and takes it if `read` says so; or a view before it, if the caller asks for
    /// such.
    fn read<T>(
        &mut self,
        asked: Asked,
        mut read: impl FnMut(&NextMessage<'_>) -> (T, bool),
    ) -> std::result::Result<Option<Told<T>>, ServiceError> {
        let count = self.subscriptions.len();
        let first = if self.next_group < count { self.next_group } else { 0 };
        for at in (first..count).chain(0..first) {
            let subscription = &self.subscriptions[at];
            let group = subscription.group();
            let until = match asked {
                Asked::Messages => u64::MAX,
                Asked::Events => match subscription.next_told()? {
                    NextTold::MessageBefore(number) => number,
                    NextTold::View(view, announced) => {
                        self.announced = announced;
                        return Ok(Some(Told::View(group, view)));
                    }
                },
            };
            let mut with_sender = |next: &NextMessage<'_>| {
                let (result, is_taken) = read(next);
                ((result, next.process, next.member, next.number), is_taken)
            };
            if let Some((found, was_announced)) = subscription.read(until, &mut with_sender)? {
                let (result, process, member, number) = found;
                self.next_group = at + 1;
                self.announced = u64::from(was_announced);
                self.last = Some((group, member));
                self.last_number = number;
                return Ok(Some(Told::Message(result, process)));
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

    fn is_ready_by_log(&self, asked: Asked) -> std::result::Result<bool, ServiceError> {
        for subscription in &self.subscriptions {
            if subscription.is_ready_by_log(asked == Asked::Events)? {
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
            self.groups.watch_one(&self.shared, availability, &subscription)?;
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

    /// Counts down the descriptor if it has announced what was told.
    fn count_down_announced(&self) {
        (0..self.groups.announced).for_each(|_| self.count_down());
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
        self.take_of_groups(message, Asked::Messages).map(|told| told.is_some())
    }

    /// Takes a message of a group, or tells a view.
    pub(super) fn take_of_groups(
        &mut self,
        message: &mut Message,
        asked: Asked,
    ) -> Result<Option<Told<()>>> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        self.follow_groups()?;
        let spare = &mut self.spare;
        let read = self.groups.read(asked, |next| {
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
        let (copied, process) = match read {
            None => return Ok(None),
            Some(Told::View(group, view)) => {
                self.count_down_announced();
                return Ok(Some(Told::View(group, view)));
            }
            Some(Told::Message(copied, process)) => (copied.transpose()?, process),
        };
        self.tell_taken()?;
        self.count_down_announced();
        self.last_poster = Some(process);
        if let Some((tag, length)) = copied {
            message.receive_here(tag, length)?;
        }
        Ok(Some(Told::Message((), process)))
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
        let read = self.groups.read(Asked::Messages, |next| {
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
        let Some(Told::Message(count, process)) = read else { return Ok(None) };
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
        self.take_any(message, Asked::Messages, limit).map(drop)
    }

    /// Waits for a message, of a group or posted, or for a view, if the caller asks for such. None for a posted message.
    pub(super) fn take_any(
        &mut self,
        message: &mut Message,
        asked: Asked,
        limit: TimeLimit,
    ) -> Result<Option<Told<()>>> {
        loop {
            let told = self.take_of_groups(message, asked)?;
            if told.is_some() {
                return Ok(told);
            }
            match self.wait_for_any(asked, limit)? {
                Found::Posted(status) if status.tag == Forwarded::TAG => self.note_forwarded()?,
                Found::Posted(status) => {
                    if let Taken::Whole = self.take_posted(message, &status, limit)? {
                        self.groups.last = None;
                        return Ok(None);
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
            match self.wait_for_any(Asked::Messages, limit)? {
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

    fn wait_for_any(&mut self, asked: Asked, limit: TimeLimit) -> Result<Found> {
        self.groups.forget_spent();
        let (shared, groups) = (self.shared.clone(), &self.groups);
        if shared.spin_once(|| groups.is_ready())? {
            return Ok(Found::InGroup);
        }
        let for_views = asked == Asked::Events;
        let waits = groups.subscriptions.iter().map(|it| it.announce_wait(for_views));
        let waits: Vec<_> = waits.collect();
        let record = WaitRecord {
            operation: Operation::Receive,
            context: self.address.context,
            ..WaitRecord::default()
        };
        let wanted = self.wanted(None);
        let found = shared.wait_until(&record, limit.deadline_ns(), |engine| {
            // First, so that this look finds what it brings.
            let is_followed = groups.follow(engine);
            match groups.is_ready_by_log(asked) {
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
