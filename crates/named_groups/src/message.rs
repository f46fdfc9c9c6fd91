//! A message on its way into a group.
//!
//! The crate knows no encoding: a message is a tag with bytes. The face that encodes it decodes it again, and keeps
//! its own type behind [`SharedValues`].

use std::any::Any;
use std::sync::Arc;

use landeck_memory::Bytes;
use landeck_protocols::service::Seat;

/// The sender of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A process that is not a member.
    NonMember,
    /// A member.
    Member {
        /// Its place in the group.
        seat: Seat,
        /// Whether it receives the message itself.
        receives: bool,
    },
}

impl Sender {
    /// The number of the sending member.
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            Self::NonMember => None,
            Self::Member { seat, .. } => Some(seat.id),
        }
    }

    /// The number of the member that does not receive its own message.
    pub(crate) fn left_out(self) -> Option<u32> {
        match self {
            Self::Member { seat, receives: false } => Some(seat.id),
            Self::Member { receives: true, .. } | Self::NonMember => None,
        }
    }

    /// Whether it is a member that receives its own message.
    pub(crate) fn receives(self) -> bool {
        matches!(self, Self::Member { receives: true, .. })
    }
}

/// The values of a sent message, where a mailbox of the same process can use them without a copy.
pub struct SharedValues {
    /// The memory that they lie in. The face that sends knows its type.
    pub memory: Arc<dyn Any + Send + Sync>,
    /// Where they begin in that memory. Their tag and length are those of the message.
    pub start: usize,
}

/// A message that a process sends to a group.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// The tag, which the receiver gets with the bytes.
    pub tag: u32,
    /// The encoded message.
    pub bytes: Bytes<'a>,
    /// Shares the message's values with a mailbox of this process; none where they cannot be shared.
    pub share: &'a dyn Fn() -> Option<SharedValues>,
}

/// A broadcast: a message, its sender, and the ticket if it is held.
#[derive(Clone, Copy)]
pub(crate) struct Broadcast<'a> {
    pub(crate) tag: u32,
    pub(crate) bytes: Bytes<'a>,
    pub(crate) sender: Sender,
    /// The number under which the log holds it; none before it found no room.
    pub(crate) ticket: Option<u64>,
}

impl Broadcast<'_> {
    pub(crate) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
}
