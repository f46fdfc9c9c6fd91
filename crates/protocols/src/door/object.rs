//! An object of a job: its kind, its name, and the questions and answers about it.

use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

use super::name::Name;
use super::verdict::Verdict;

/// The process of an answer that is about none.
pub(super) const NOBODY: ProcessId =
    ProcessId { segment: SegmentId(0), slot: Slot(0), incarnation: Incarnation(0) };

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A mailbox, to which messages are posted.
    Mailbox,
    /// Memory that several processes use.
    Segment,
    /// A semaphore, of which processes take units.
    Semaphore,
    /// The log of a named group. It stays until the group is retired.
    Group,
    /// The claim of a process to say why it aborts its job on several hosts. It stays until the job is over.
    Abort,
    /// A port, at which processes of other jobs connect. Its name is one of the whole machine.
    Port,
}

impl ObjectKind {
    /// Its name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::Segment => "shared segment",
            Self::Semaphore => "semaphore",
            Self::Group => "group",
            Self::Abort => "abort",
            Self::Port => "port",
        }
    }
}

impl std::fmt::Display for ObjectKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The agent's record of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its number, never given out again.
    pub number: u64,
    /// The length of its memory; 0 for a mailbox.
    pub bytes: u64,
    /// Two words that its maker stored with it.
    pub words: [u64; 2],
    /// The process that made it.
    pub owner: ProcessId,
    /// The PID of that process.
    pub pid: u32,
}

/// A request about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectRequest {
    /// Give a mailbox a name.
    Name,
    /// Find a mailbox by its name.
    Find,
    /// Create memory, whose first user is the asking process.
    Make,
    /// Become a user of memory.
    Open,
    /// Take a mailbox's name back, or end one use of memory.
    Close,
    /// Retire a group.
    Retire,
    /// Find the group with the next number.
    Next,
}

impl ObjectRequest {
    /// All requests.
    pub const ALL: [Self; 7] =
        [Self::Name, Self::Find, Self::Make, Self::Open, Self::Close, Self::Retire, Self::Next];
}

/// A question about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectQuestion {
    /// The request.
    pub asked: ObjectRequest,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The asking process.
    pub process: ProcessId,
    /// The number of the object, if it is identified by that.
    pub number: u64,
    /// The length of the memory, if it is created.
    pub bytes: u64,
    /// The two words of its maker.
    pub words: [u64; 2],
    /// The name of the object, if it has one or is identified by it.
    pub name: Option<Name>,
}

/// An answer about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectAnswer {
    /// The verdict on the request.
    pub verdict: Verdict,
    /// The object.
    pub object: Object,
    /// Its name, if that was asked for.
    pub name: Option<Name>,
}

impl ObjectQuestion {
    /// Creates a question with these fields alone.
    pub fn new(process: ProcessId, kind: ObjectKind, asked: ObjectRequest) -> Self {
        Self { asked, kind, process, number: 0, bytes: 0, words: [0; 2], name: None }
    }

    /// Adds the name of the object to the question.
    pub fn named(self, name: &Name) -> Self {
        Self { name: Some(name.clone()), ..self }
    }
}

impl ObjectAnswer {
    /// Creates an answer with a verdict alone.
    pub const fn bare(verdict: Verdict) -> Self {
        let object = Object { number: 0, bytes: 0, words: [0; 2], owner: NOBODY, pid: 0 };
        Self { verdict, object, name: None }
    }

    /// Creates the answer that grants a request about this object.
    pub fn granted(object: Object) -> Self {
        Self { object, ..Self::bare(Verdict::Granted) }
    }
}
