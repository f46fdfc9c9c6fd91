//! MailboxEvents of a mailbox: messages, and views of the groups that it is a member of, in one order.

use std::time::Duration;

use landeck_named_groups::{Forwarded, MemberIdentity, NewView, TimeLimit};
use landeck_wire::ProcessId;

use super::from_groups::{Asked, Told};
use super::{Mailbox, Taken, if_whole};
use crate::error::{self, Result};
use crate::message::Message;
use crate::message::mailbox_address::MailboxAddress;

pub use landeck_named_groups::Gone;

/// The next thing that a mailbox has to tell.
#[derive(Debug)]
pub enum MailboxEvent {
    /// A message, of a group or posted.
    Message(ToldMessage),
    /// A view of a group. The messages of the group that come behind it were accepted behind it, for all its members.
    View(ToldView),
}

/// A message, with its place in the group that it came from.
#[derive(Debug)]
pub struct ToldMessage {
    message: Message,
    origin: Option<GroupOrigin>,
    poster: Option<ProcessId>,
}

/// The place of a message in its group.
#[derive(Clone, Copy, Debug)]
struct GroupOrigin {
    group: u64,
    member: Option<u32>,
    number: u64,
}

/// A view of a group, in its place among the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldView {
    group: u64,
    number: u64,
    after: u64,
    members: Vec<ViewMember>,
    joined: Vec<ViewMember>,
    departed: Vec<(ViewMember, Gone)>,
    has_missed: bool,
}

/// A member of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewMember {
    /// The number of the member.
    pub id: u32,
    /// The address of its mailbox.
    pub mailbox: MailboxAddress,
}

/// The events of a mailbox, as an iterator that waits for each of them.
pub struct MailboxEvents<'a>(&'a mut Mailbox);

impl Mailbox {
    /// Waits for the next event: a message, or a view of a group in its place among the messages of that group.
    ///
    /// The first event of a group is the view that this member has made when it joined. A view has as reasons the members
    /// that have joined or gone; a lost host makes one view. A mailbox from which only messages are retrieved is told no
    /// views. Where both are used, [`Mailbox::retrieve`] goes past views, which later events tell with the number of
    /// messages that were before them ([`ToldView::after`]). From the first call on, the descriptor announces views too.
    ///
    /// # Errors
    /// As [`Mailbox::retrieve`].
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// use landeck::{MailboxEvent, Job};
    /// let job = Job::join()?;
    /// let group = job.open_group("weather")?;
    /// let mut inbox = job.create_mailbox()?;
    /// let member = group.join(&mut inbox)?;
    /// for event in inbox.events() {
    ///     match event? {
    ///         MailboxEvent::Message(told) => println!("message {:?}", told.number()),
    ///         MailboxEvent::View(view) if view.members().len() == 1 => break,
    ///         MailboxEvent::View(view) => {
    ///             for (member, how) in view.departed() {
    ///                 println!("after {} messages: member {} {how:?}", view.after(), member.id);
    ///             }
    ///         }
    ///     }
    /// }
    /// member.leave()?;
    /// # job.leave()
    /// # }
    /// ```
    pub fn next_event(&mut self) -> Result<MailboxEvent> {
        self.wait_for_event(TimeLimit::Unlimited)
    }

    /// Waits as [`Mailbox::next_event`] does, for at most `time`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TimedOut`], and as [`Mailbox::next_event`].
    pub fn next_event_within(&mut self, time: Duration) -> Result<MailboxEvent> {
        self.wait_for_event(TimeLimit::within(time))
    }

    /// Returns the next event if there is one, and `None` otherwise.
    ///
    /// # Errors
    /// As [`Mailbox::next_event`].
    pub fn try_next_event(&mut self) -> Result<Option<MailboxEvent>> {
        self.announce_views()?;
        let mut message = Message::new();
        loop {
            if let Some(told) = self.take_of_groups(&mut message, Asked::Events)? {
                return Ok(Some(self.event(Some(told), message)));
            }
            match self.look()? {
                None => return Ok(None),
                Some(status) if status.tag == Forwarded::TAG => self.note_forwarded()?,
                Some(status) => match self.take_posted(&mut message, &status, TimeLimit::Now) {
                    Ok(Taken::Lost) => {}
                    taken => {
                        let taken = if_whole(taken)?;
                        return Ok(taken.map(|_| self.event(None, message)));
                    }
                },
            }
        }
    }

    /// The events of this mailbox. The iterator waits for each event as [`Mailbox::next_event`] does, and does not end by
    /// itself.
    pub fn events(&mut self) -> MailboxEvents<'_> {
        MailboxEvents(self)
    }

    fn wait_for_event(&mut self, limit: TimeLimit) -> Result<MailboxEvent> {
        self.announce_views()?;
        let mut message = Message::new();
        let told = self.take_any(&mut message, Asked::Events, limit)?;
        Ok(self.event(told, message))
    }

    fn announce_views(&mut self) -> Result<()> {
        let Self { shared, groups, availability, .. } = self;
        error::call(shared, "next_event", || groups.announce_views(shared, availability.as_ref()))
    }

    fn event(&self, told: Option<Told<()>>, message: Message) -> MailboxEvent {
        if let Some(Told::View(group, view)) = told {
            return MailboxEvent::View(ToldView::new(group, view));
        }
        let from_group = told.and(self.groups.last);
        let number = self.groups.last_number;
        let origin = from_group.map(|(group, member)| GroupOrigin { group, member, number });
        MailboxEvent::Message(ToldMessage { message, origin, poster: self.last_poster })
    }
}

impl Iterator for MailboxEvents<'_> {
    type Item = Result<MailboxEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_event())
    }
}

impl ToldMessage {
    /// The message.
    pub fn message(&mut self) -> &mut Message {
        &mut self.message
    }

    /// The message itself.
    pub fn into_message(self) -> Message {
        self.message
    }

    /// The number of messages that the group had accepted before; none for a posted message. All members see the same
    /// numbers.
    pub fn number(&self) -> Option<u64> {
        self.origin.map(|origin| origin.number)
    }

    /// The number of the group ([`crate::Group::number`]) that it came from; none for a posted message.
    pub fn group(&self) -> Option<u64> {
        self.origin.map(|origin| origin.group)
    }

    /// The number of the member that has sent it, if a member has.
    pub fn member(&self) -> Option<u32> {
        self.origin.and_then(|origin| origin.member)
    }

    /// The process that has sent it.
    pub fn poster(&self) -> Option<ProcessId> {
        self.poster
    }
}

impl ToldView {
    pub(crate) fn new(group: u64, view: NewView) -> Self {
        let NewView { number, after, members, joined, departed, has_missed } = view;
        Self {
            group,
            number,
            after,
            members: members.into_iter().map(view_member).collect(),
            joined: joined.into_iter().map(view_member).collect(),
            departed: departed.into_iter().map(|(it, gone)| (view_member(it), gone)).collect(),
            has_missed,
        }
    }

    /// The number of the group ([`crate::Group::number`]).
    pub fn group(&self) -> u64 {
        self.group
    }

    /// The number of the view, as all members see it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The number of messages that the group had accepted before the view.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The members, in the order of their numbers. Members that stay keep their order.
    pub fn members(&self) -> &[ViewMember] {
        &self.members
    }

    /// The members that have joined with this view.
    pub fn joined(&self) -> &[ViewMember] {
        &self.joined
    }

    /// The members that have gone with this view, and how.
    pub fn departed(&self) -> &[(ViewMember, Gone)] {
        &self.departed
    }

    /// Whether this member was late: the group remembers its last 256 changes, and views before this one are missing.
    pub fn has_missed(&self) -> bool {
        self.has_missed
    }
}

fn view_member(member: MemberIdentity) -> ViewMember {
    let MemberIdentity { id, process, context, place } = member;
    ViewMember { id, mailbox: MailboxAddress { process, context, store: None, place } }
}
