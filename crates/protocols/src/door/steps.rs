//! The events of the door, and the actions of its driver.

use landeck_wire::{ProcessId, Slot};

use super::name::Name;
use super::question::{Answer, Reply};
use super::start::{StartAnswer, StartWish};
use crate::membership::{LastPresence, Refusal};

/// A connection at the joining socket. The driver numbers them, and uses no number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Visitor(pub u64);

/// The socket of a published name. The driver numbers them, and uses no number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listener(pub u64);

/// The memory of an object. The driver numbers it, and uses no number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryNumber(pub u64);

/// An event for the door.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A visitor has connected. The answer to its question is a [`DoorAction`] with the same visitor.
    Came {
        /// The connection.
        visitor: Visitor,
        /// The user at its other end.
        uid: u32,
        /// The process at its other end.
        pid: u32,
        /// The published name whose socket it came to; `None` for the job's own.
        by: Option<Listener>,
    },
    /// A visitor has sent these bytes.
    Said {
        /// The connection.
        visitor: Visitor,
        /// The bytes of one packet.
        bytes: &'a [u8],
    },
    /// A connection or its process has ended, or its answer could not be sent.
    Gone {
        /// The connection.
        visitor: Visitor,
    },
    /// Answers [`DoorAction::Allocate`] and [`DoorAction::Expose`].
    Provided {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The memory; `None` if it could not be made.
        memory: Option<MemoryNumber>,
    },
    /// Answers [`DoorAction::Listen`].
    Listening {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The outcome.
        outcome: Listening,
    },
    /// Answers [`DoorAction::Look`].
    Seen {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The word that the process of the slot wrote about itself.
        presence: LastPresence,
    },
    /// Answers [`DoorAction::Ask`]: the membership has let the visitor in.
    Admitted {
        /// The connection.
        visitor: Visitor,
        /// The identity of the visitor from now on.
        process: ProcessId,
    },
    /// Answers [`DoorAction::Ask`]: the membership has not let the visitor in.
    Refused {
        /// The connection.
        visitor: Visitor,
        /// The reason.
        why: Refusal,
    },
    /// A process of the job has ended.
    Ended {
        /// The process.
        process: ProcessId,
    },
    /// Answers [`DoorAction::Start`].
    Started {
        /// The connection whose wish it was.
        visitor: Visitor,
        /// The answer.
        answer: &'a StartAnswer,
    },
    /// Time has passed.
    Tick,
}

/// The outcome of listening under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// The socket was created.
    At(Listener),
    /// Another job has the name.
    InUse,
    /// No socket could be created.
    Failed,
}

/// An action for the driver, which carries out all in the given order. It forgets a visitor with the action that closes
/// its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoorAction {
    /// Send an answer, with a descriptor of the memory if there is one, and close the connection.
    Answer {
        /// The connection.
        visitor: Visitor,
        /// The answer.
        reply: Reply,
        /// The memory.
        memory: Option<MemoryNumber>,
    },
    /// Close a connection without an answer.
    Close {
        /// The connection.
        visitor: Visitor,
    },
    /// Send an answer with the segment, keep the connection, and watch the process at its other end. If the answer
    /// cannot be sent, the visitor is gone.
    Admit {
        /// The connection.
        visitor: Visitor,
        /// The answer.
        answer: Answer,
    },
    /// Send an answer, and watch the process at the other end instead of its connection.
    Watch {
        /// The connection.
        visitor: Visitor,
        /// The answer.
        answer: Answer,
    },
    /// Ask the membership for a slot.
    Ask {
        /// The connection.
        visitor: Visitor,
        /// The reserved slot; `None` for a guest.
        wanted: Option<Slot>,
        /// The PID of the visitor.
        pid: u32,
    },
    /// Tell the membership that a process joined below the one that was started in a slot.
    Found {
        /// The slot.
        slot: Slot,
        /// The PID of the process that joined.
        pid: u32,
    },
    /// Tell the membership that a process says of itself that it has left, or that it takes part again.
    Said {
        /// The slot.
        slot: Slot,
        /// Whether it has left.
        has_left: bool,
    },
    /// An admitted process has left: tell the membership, unless it already knows.
    Left {
        /// The process.
        process: ProcessId,
    },
    /// A process has ended that was watched in place of the one that was started. Its connection is closed next.
    Lost {
        /// The connection.
        visitor: Visitor,
        /// The process.
        process: ProcessId,
    },
    /// Make all processes look at the membership again.
    Announce,
    /// Create memory for an object.
    Allocate {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The number of bytes.
        bytes: u64,
    },
    /// Create a read-only descriptor of the job's segment.
    Expose {
        /// The connection whose question needs it.
        visitor: Visitor,
    },
    /// Free memory that has no users any more.
    Release(MemoryNumber),
    /// Listen under a name.
    Listen {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The name.
        name: Name,
    },
    /// Stop listening.
    Deafen(Listener),
    /// Have a process started, and answer by [`Input::Started`] once, whether or not the visitor is still there.
    Start {
        /// The connection whose wish it is.
        visitor: Visitor,
        /// The wish.
        wish: Box<StartWish>,
    },
    /// Read the word that the process of a slot wrote about itself.
    Look {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The slot.
        slot: Slot,
    },
}
