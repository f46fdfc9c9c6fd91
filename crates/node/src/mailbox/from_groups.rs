//! What a mailbox retrieves from the groups that it is a member of, beside what is posted to it.

use std::sync::Arc;
use std::time::Duration;

use landeck_kernel::Status;
use landeck_memory::{Operation, WaitRecord};

use super::availability::Availability;
use super::{Limit, Mailbox};
use crate::error::{MailboxError, Result};
use crate::message::{Message, tag_of_values};
use crate::named_group::{FORWARDED, Front, Subscription, bytes_of};
use crate::typed::Typed;
use landeck_engine::Shared;

/// The groups of a mailbox.
#[derive(Default)]
pub(super) struct FromGroups {
    subscriptions: Vec<Arc<Subscription>>,
    /// Where what was retrieved last came from.
    pub(super) last: Option<(u64, Option<u32>)>,
    /// Whether servers may have sent it messages.
    is_served: bool,
    /// Whether the descriptor has told of what was retrieved last.
    was_told: bool,
    /// Where the next look begins, so that nobody is heard for ever while others wait.
    turn: usize,
}

/// Where a message is.
enum Found {
    Posted(Status),
    InGroup,
}

impl FromGroups {
    pub(super) fn is_empty(&self) -> bool {
        self.subscriptions.is_empty() && !self.is_served
    }

    /// Leaves all groups: the mailbox goes.
    pub(super) fn leave(&mut self) {
        for subscription in self.subscriptions.drain(..) {
            // Who was put out has no need to leave.
            let _ = subscription.leave();
            subscription.close();
        }
    }

    /// Has the mailbox's descriptor tell of what they bring.
    pub(super) fn watch(&self, shared: &Shared, availability: &Availability) -> Result<()> {
        self.subscriptions.iter().try_for_each(|it| availability.watch(shared, it))
    }

    /// Groups that nothing will come from any more are forgotten.
    fn forget_spent(&mut self) {
        self.subscriptions.retain(|subscription| !subscription.is_spent());
    }

    /// Reads the first message of a group, and takes it if that is said.
    fn read<T>(
        &mut self,
        mut read: impl FnMut(&Front<'_>) -> (T, bool),
    ) -> Result<Option<(T, landeck_wire::ProcessId)>> {
        let count = self.subscriptions.len();
        let first = if self.turn < count { self.turn } else { 0 };
        for at in (first..count).chain(0..first) {
            let subscription = &self.subscriptions[at];
            let group = subscription.group();
            let mut with_sender = |front: &Front<'_>| {
                let (result, is_taken) = read(front);
                ((result, front.process, front.member), is_taken)
            };
            if let Some((found, was_told)) = subscription.read(&mut with_sender)? {
                let (result, process, member) = found;
                self.turn = at + 1;
                self.was_told = was_told;
                self.last = Some((group, member));
                return Ok(Some((result, process)));
            }
        }
        Ok(None)
    }

    fn is_ready(&self) -> bool {
        self.subscriptions.iter().any(|subscription| subscription.is_ready())
    }

    fn is_ready_by_now(&self) -> Result<bool> {
        for subscription in &self.subscriptions {
            if subscription.is_ready_by_now()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Mailbox {
    /// From now on retrieves from a group as well.
    pub(crate) fn subscribe(&mut self, subscription: Arc<Subscription>) -> Result<()> {
        self.groups.forget_spent();
        self.groups.is_served |= subscription.is_served();
        if let Some(availability) = &self.availability {
            availability.watch(&self.shared, &subscription)?;
        }
        self.groups.subscriptions.push(subscription);
        Ok(())
    }

    /// Takes what a server has said: that a message of a group is there. One for a member that has left
    /// is nobody's.
    pub(super) fn hear_server(&mut self) -> Result<()> {
        let mut words = [0u64; 2];
        let id = self.shared.kernel.enter()?.receive_own(self.wanted(Some(FORWARDED)));
        // The descriptor tells of the message itself from now on.
        self.one_less();
        let completion = self.shared.wait_or_abandon(id.into(), None);
        let completion = completion.map_err(|error| self.error(error, None))?;
        if let Some(received) = &completion.data {
            bytes_of(received).copy_to_slice(landeck_memory::plain::bytes_of_mut(&mut words));
        }
        let [group, number] = words;
        let mut groups = self.groups.subscriptions.iter();
        if let Some(subscription) = groups.find(|it| it.group() == group && !it.is_spent()) {
            subscription.forward(number);
        }
        self.shared.kernel.enter()?.have_watched();
        Ok(())
    }

    /// A message that the descriptor may have told of was taken.
    fn one_less_of_groups(&self) {
        if self.groups.was_told {
            self.one_less();
        }
    }

    /// That a member was put out was said, by an error: what was told of is not to be had any more.
    fn forget_told(&self) {
        let told: u64 = self.groups.subscriptions.iter().map(|it| it.told_in_vain()).sum();
        (0..told).for_each(|_| self.one_less());
    }

    /// Takes a message of a group, if there is one.
    pub(super) fn take_message_of_groups(&mut self, message: &mut Message) -> Result<bool> {
        if self.groups.is_empty() {
            return Ok(false);
        }
        let spare = &mut self.spare;
        let read = self.groups.read(|front| {
            if front.is_long() {
                if let Some(values) = front.take_values() {
                    *spare = message.receive_shared(values).or(spare.take());
                    return (None, true);
                }
                message.take_spare(spare);
            }
            match message.own_room(front.bytes.len()) {
                Ok(room) => (Some(Ok((front.tag, front.bytes.copy_to_slice(room)))), true),
                Err(no_memory) => (Some(Err(no_memory)), false),
            }
        });
        let read = read.inspect_err(|_| self.forget_told())?;
        let Some((copied, process)) = read else { return Ok(false) };
        let copied = copied.transpose()?;
        self.one_less_of_groups();
        self.last_poster = Some(process);
        if let Some((tag, length)) = copied {
            message.receive_here(tag, length)?;
        }
        Ok(true)
    }

    /// The same into values, if it is such.
    pub(super) fn take_values_of_groups<T: Typed>(
        &mut self,
        into: &mut [T],
    ) -> Result<Option<usize>> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        let buffer_bytes = size_of_val(into);
        let into = landeck_memory::plain::bytes_of_mut(into);
        let read = self.groups.read(|front| {
            let message_bytes = front.bytes.len();
            if front.tag != tag_of_values::<T>() {
                return (Err(MailboxError::OtherType { asked: std::any::type_name::<T>() }), false);
            }
            if message_bytes > buffer_bytes {
                let message_bytes = message_bytes as u64;
                return (Err(MailboxError::TooLong { message_bytes, buffer_bytes }), false);
            }
            front.bytes.copy_to_slice(into);
            (Ok(message_bytes / size_of::<T>()), true)
        });
        let read = read.inspect_err(|_| self.forget_told())?;
        let Some((count, process)) = read else { return Ok(None) };
        let count = count?;
        self.one_less_of_groups();
        self.last_poster = Some(process);
        Ok(Some(count))
    }

    /// Waits for a message, of a group or posted, and takes it.
    pub(super) fn take_message_of_any(
        &mut self,
        message: &mut Message,
        time: Option<Duration>,
    ) -> Result<()> {
        let limit = Limit::of(time);
        loop {
            if self.take_message_of_groups(message)? {
                return Ok(());
            }
            match self.wait_for_any(limit)? {
                Found::Posted(status) if status.tag == FORWARDED => self.hear_server()?,
                Found::Posted(status) => {
                    self.groups.last = None;
                    return self.take_kept(message, status.tag, limit);
                }
                Found::InGroup => {}
            }
        }
    }

    /// The same into values.
    pub(super) fn take_values_of_any<T: Typed>(
        &mut self,
        into: &mut [T],
        time: Option<Duration>,
    ) -> Result<usize> {
        let limit = Limit::of(time);
        loop {
            if let Some(count) = self.take_values_of_groups(into)? {
                return Ok(count);
            }
            match self.wait_for_any(limit)? {
                Found::Posted(status) if status.tag == FORWARDED => self.hear_server()?,
                Found::Posted(status) => {
                    self.groups.last = None;
                    return self.take_kept_values(into, status, limit);
                }
                Found::InGroup => {}
            }
        }
    }

    fn wait_for_any(&mut self, limit: Limit) -> Result<Found> {
        self.groups.forget_spent();
        let (shared, groups) = (self.shared.clone(), &self.groups);
        if shared.spin_once(|| groups.is_ready())? {
            return Ok(Found::InGroup);
        }
        let waits: Vec<_> = groups.subscriptions.iter().map(|it| it.waits()).collect();
        let record = WaitRecord {
            operation: Operation::Receive,
            context: self.address.context,
            ..WaitRecord::default()
        };
        let wanted = self.wanted(None);
        let found = shared.wait_until(&record, limit.deadline_ns, |kernel| {
            match groups.is_ready_by_now() {
                Ok(false) => {}
                Ok(true) => return Some(Ok(Found::InGroup)),
                Err(error) => return Some(Err(error)),
            }
            kernel.refresh();
            kernel.probe(wanted).map(|status| Ok(Found::Posted(status)))
        });
        drop(waits);
        let found = found.map_err(|error| self.error(error, limit.time))?;
        found.inspect_err(|_| self.forget_told())
    }
}
