//! What the door is told, and what its driver is to do then.

use landeck_wire::{ProcessId, Slot};

use super::object::ObjectAnswer;
use super::question::{Answer, PublicName};
use crate::membership::{Presence, Refusal};

/// A connection at the joining socket. The driver numbers them, and never twice alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Visitor(pub u64);

/// The socket of a published name. The driver numbers them, and never twice alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listener(pub u64);

/// The memory of an object. The driver numbers it, and never twice alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Memory(pub u64);

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Somebody has connected. The answer to its question is an [`Action`] with the same visitor.
    Came {
        /// The connection.
        visitor: Visitor,
        /// The user at its other end.
        uid: u32,
        /// The process at its other end.
        pid: u32,
        /// The published name whose socket it came to; none for the job's own.
        by: Option<Listener>,
    },
    /// A visitor has sent these bytes.
    Said {
        /// The connection.
        visitor: Visitor,
        /// One packet.
        bytes: &'a [u8],
    },
    /// A connection or its process has ended, or its answer could not be sent.
    Gone {
        /// The connection.
        visitor: Visitor,
    },
    /// Answers [`Action::Allocate`] and [`Action::Expose`].
    Provided {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The memory; none if there is none.
        memory: Option<Memory>,
    },
    /// Answers [`Action::Listen`].
    Listening {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// How that went.
        outcome: Listening,
    },
    /// Answers [`Action::Look`].
    Seen {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// How far the process of the slot has come.
        presence: Presence,
    },
    /// Answers [`Action::Ask`]: the membership has let the visitor in.
    Admitted {
        /// The connection.
        visitor: Visitor,
        /// The process that it is from now on.
        process: ProcessId,
    },
    /// Answers [`Action::Ask`]: the membership has not let the visitor in.
    Refused {
        /// The connection.
        visitor: Visitor,
        /// Why.
        why: Refusal,
    },
    /// A process of the job is no more.
    Ended {
        /// The process.
        process: ProcessId,
    },
    /// Time has passed.
    Tick,
}

/// How it went to listen under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// Here is the socket.
    At(Listener),
    /// Another job has the name.
    InUse,
    /// There is no socket to be had.
    Failed,
}

/// What the driver is to do, in this order. It forgets a visitor with the action that closes its
/// connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send an answer, with a descriptor of the memory if there is one, and close the connection.
    Answer {
        /// The connection.
        visitor: Visitor,
        /// The answer.
        reply: Reply,
        /// The memory.
        memory: Option<Memory>,
    },
    /// Close a connection without an answer.
    Close {
        /// The connection.
        visitor: Visitor,
    },
    /// Send an answer with the segment, keep the connection, and watch the process at its other end.
    /// Where it cannot be sent, the visitor is gone.
    Admit {
        /// The connection.
        visitor: Visitor,
        /// The answer.
        answer: Answer,
    },
    /// Send an answer, and watch the process at the other end in place of its connection.
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
        /// The reserved slot; none for a guest.
        wanted: Option<Slot>,
        /// Its process number.
        pid: u32,
    },
    /// Tell the membership that the process of a slot is another one than was started.
    Found {
        /// The slot.
        slot: Slot,
        /// Its process number.
        pid: u32,
    },
    /// A process has left that was let in: tell the membership, if that does not know it yet.
    Left {
        /// The process.
        process: ProcessId,
    },
    /// A process has ended that was watched in the place of the one that was started. Its connection
    /// is closed next.
    Lost {
        /// The connection.
        visitor: Visitor,
        /// The process.
        process: ProcessId,
    },
    /// Make everybody look at the membership again.
    Announce,
    /// Make memory for an object.
    Allocate {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// How many bytes.
        bytes: u64,
    },
    /// Make a descriptor by which the job's segment can only be read.
    Expose {
        /// The connection whose question needs it.
        visitor: Visitor,
    },
    /// Give back memory that nobody uses any more.
    Release(Memory),
    /// Listen under a name.
    Listen {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The name.
        name: PublicName,
    },
    /// Listen no more.
    Deafen(Listener),
    /// Look how far the process of a slot has come.
    Look {
        /// The connection whose question needs it.
        visitor: Visitor,
        /// The slot.
        slot: Slot,
    },
}

/// An answer of either form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// About the job or a published name.
    Plain(Answer),
    /// About an object.
    Object(ObjectAnswer),
}

impl Reply {
    /// It as bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Plain(answer) => answer.encode().to_vec(),
            Self::Object(answer) => answer.encode().to_vec(),
        }
    }
}
