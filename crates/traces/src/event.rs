//! Members, messages, views, and the events of a trace.

use std::fmt;

/// The name of a member, which no other member of the group ever has: its number, and the view in which it came. A number
/// alone is given again when its member has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberName {
    /// The number of the member in the group.
    pub id: u32,
    /// The number of the first view that it saw itself in.
    pub since: u64,
}

impl fmt::Display for MemberName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.id, self.since)
    }
}

/// The name of a message: its sender, and its number among the messages of that sender, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageName {
    /// The member that sent it.
    pub sender: MemberName,
    /// Its number.
    pub number: u64,
}

/// The level of order of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLevel {
    /// The call returns when the message is queued.
    Fifo,
    /// The call returns when the group has accepted the message.
    Total,
    /// The call returns, and the message is delivered, when each host of the group has stored it.
    Safe,
}

/// The reason why a member is no longer in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartureCause {
    /// It left, or its process ended in good order.
    Left,
    /// Its process died.
    Died,
    /// The group put it out.
    Evicted,
    /// Its host was lost.
    Lost,
    /// The group did not tell the cause.
    Gone,
}

/// A view as a member saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedView {
    /// Its number.
    pub number: u64,
    /// The number of the last message of the group before the view, if the view came as an event of the stream. A view that the
    /// program asked for has no place among the messages.
    pub after: Option<u64>,
    /// The numbers of its members, in the order of their ranks.
    pub members: Vec<u32>,
    /// The members that came since the view that this member saw before.
    pub joined: Vec<u32>,
    /// The members that went since then.
    pub departed: Vec<(u32, DepartureCause)>,
}

/// The reason why a membership ended, as the member learnt it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// It left.
    Left,
    /// The group put it out.
    Evicted,
    /// The group was destroyed.
    Destroyed,
    /// No complete copy of the group was left.
    Lost,
}

/// An event of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A view.
    View(TracedView),
    /// The call that sends a message begins.
    Send {
        /// The number of the message.
        number: u64,
        /// Its level.
        level: TraceLevel,
        /// The checksum of its bytes.
        sum: u32,
    },
    /// The call that sent the message with this number returned without an error.
    Sent(u64),
    /// The call that was to send this message returned an error that says it was not sent.
    Refused(u64),
    /// A message was retrieved.
    Delivered {
        /// The message.
        message: MessageName,
        /// Its level.
        level: TraceLevel,
        /// The checksum of the bytes that came.
        sum: u32,
        /// Its number among all messages of the group, if the group tells it.
        at: Option<u64>,
    },
    /// The member comes to the synchronisation that the program gave this number.
    Syncing(u64),
    /// That synchronisation is complete.
    Synced(u64),
    /// No message waits in the member's mailbox.
    Empty,
    /// The membership has ended.
    Ended(TraceEnd),
}

/// The member that a trace is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHead {
    /// The group.
    pub group: String,
    /// The member.
    pub member: MemberName,
    /// The rank of its process.
    pub rank: u32,
    /// The host of its process.
    pub host: String,
}

/// A trace: the events that one member saw, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTrace {
    /// The file or program that it comes from, as messages name it.
    pub source: String,
    /// The member.
    pub head: TraceHead,
    /// The events.
    pub events: Vec<TraceEvent>,
}

impl GroupTrace {
    /// Returns the views, each with the number of events before it.
    pub fn views(&self) -> impl Iterator<Item = (usize, &TracedView)> {
        self.events.iter().enumerate().filter_map(|(at, event)| match event {
            TraceEvent::View(view) => Some((at, view)),
            _ => None,
        })
    }

    /// Returns how the membership ended, if the trace says so.
    pub fn end(&self) -> Option<TraceEnd> {
        self.events.iter().find_map(|event| match event {
            TraceEvent::Ended(end) => Some(*end),
            _ => None,
        })
    }
}
