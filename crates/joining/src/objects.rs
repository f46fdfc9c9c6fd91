//! Requests to the agent for the objects of a job that have a name or live until their last user. The agent keeps them.
//!
//! Names have scope job: two jobs know nothing of each other's. Each kind of object has names of its own. A mailbox's
//! name disappears with its owner. A segment and a semaphore are memory that lives until its last user ends. A group is
//! memory that stays until it is retired. Each object has a number that is never given out again.

use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_host::report::thousands;
use landeck_memory::SharedArea;
use landeck_memory::shared_area::AREA_BYTES_MAX;
pub use landeck_protocols::door::{NAME_BYTES_MAX, Name, NameError, Object, ObjectKind};
use landeck_protocols::door::{ObjectAnswer, ObjectQuestion, ObjectRequest};
use landeck_wire::ProcessId;

use crate::address::Address;
use crate::socket::{self, ExchangeError, Verdict};

/// The reason why the agent did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The bytes cannot be a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The agent could not be reached.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The name is taken.
    #[error(
        "the {kind} \"{name}\" is there already, made by process {pid}: open that one, or choose another name"
    )]
    Taken {
        /// The kind of the object.
        kind: ObjectKind,
        /// The name.
        name: String,
        /// The PID of its maker.
        pid: u32,
    },
    /// The name is taken by a process of another host.
    #[error(
        "the {kind} \"{name}\" is there already, made by process {pid} on {host}: open that one, or choose another name"
    )]
    TakenElsewhere {
        /// The kind of the object.
        kind: ObjectKind,
        /// The name.
        name: String,
        /// The PID of its maker.
        pid: u32,
        /// The host of its maker.
        host: String,
    },
    /// There is no such object.
    #[error(
        "no {kind} of this job has the name \"{name}\"{}: create it first, or check the spelling", scope(*.kind)
    )]
    Unknown {
        /// The kind that was looked for.
        kind: ObjectKind,
        /// The name.
        name: String,
    },
    /// There is no such object on this host, and those of the job's other hosts cannot be used.
    #[error(
        "no {kind} of this job has the name \"{name}\" on this host, and those of {hosts} cannot be used here: create it here, or have processes of several hosts use mailboxes or groups"
    )]
    UnknownHere {
        /// The kind that was looked for.
        kind: ObjectKind,
        /// The name.
        name: String,
        /// The other hosts.
        hosts: String,
    },
    /// The object no longer exists.
    #[error("the {kind} no longer exists{}", why_gone(*.kind))]
    Gone {
        /// The kind of the object.
        kind: ObjectKind,
    },
    /// An object cannot have so many bytes.
    #[error("a {kind} cannot have {} bytes: give it 1 to {}", thousands(*.bytes), thousands(AREA_BYTES_MAX))]
    Size {
        /// The kind of the object.
        kind: ObjectKind,
        /// Bytes asked for.
        bytes: u64,
    },
    /// There is not enough memory for the object.
    #[error(
        "there is no memory for a {kind} of {bytes} bytes: make it smaller, or raise the limits of the job"
    )]
    NoMemory {
        /// The kind of the object.
        kind: ObjectKind,
        /// Bytes asked for.
        bytes: u64,
    },
    /// The agent refused.
    #[error("the {kind} was refused: {verdict}")]
    Refused {
        /// The kind of the object.
        kind: ObjectKind,
        /// The reason.
        verdict: Verdict,
    },
}

/// Where the names of a kind of object are valid, in the words of an error.
const fn scope(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Mailbox | ObjectKind::Group | ObjectKind::Abort | ObjectKind::Port => "",
        ObjectKind::Segment | ObjectKind::Semaphore => " on this host",
    }
}

/// The end of the sentence about an object that is no more.
const fn why_gone(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Mailbox | ObjectKind::Abort | ObjectKind::Port => {
            ": its last user has left, or its owner has destroyed it"
        }
        ObjectKind::Segment | ObjectKind::Semaphore | ObjectKind::Group => {
            " on this host: its last user has left, or its owner has destroyed it; other hosts do not find it"
        }
    }
}

/// Gives a mailbox a name, which lasts until its owner takes it back or ends.
///
/// # Errors
/// [`ObjectError`].
pub fn name_mailbox(
    process: ProcessId,
    name: &Name,
    words: [u64; 2],
) -> Result<Object, ObjectError> {
    let question =
        ObjectQuestion::new(process, ObjectKind::Mailbox, ObjectRequest::Name).named(name);
    ask(&ObjectQuestion { words, ..question }).map(|(object, _)| object)
}

/// Finds the mailbox with this name.
///
/// # Errors
/// [`ObjectError`].
pub fn find_mailbox(process: ProcessId, name: &Name) -> Result<Object, ObjectError> {
    let question =
        ObjectQuestion::new(process, ObjectKind::Mailbox, ObjectRequest::Find).named(name);
    ask(&question).map(|(object, _)| object)
}

/// Creates memory, with a name if one is given, whose first user is the process.
///
/// # Errors
/// [`ObjectError`].
pub fn make(
    process: ProcessId,
    kind: ObjectKind,
    name: Option<&Name>,
    bytes: u64,
    words: [u64; 2],
) -> Result<(Object, OwnedFd), ObjectError> {
    if !(1..=AREA_BYTES_MAX).contains(&bytes) {
        return Err(ObjectError::Size { kind, bytes });
    }
    let question =
        ObjectQuestion { bytes, words, ..ObjectQuestion::new(process, kind, ObjectRequest::Make) };
    with_memory(&ObjectQuestion { name: name.cloned(), ..question })
}

/// Makes the process a user of the memory with this name.
///
/// # Errors
/// [`ObjectError`].
pub fn open(
    process: ProcessId,
    kind: ObjectKind,
    name: &Name,
) -> Result<(Object, OwnedFd), ObjectError> {
    with_memory(&ObjectQuestion::new(process, kind, ObjectRequest::Open).named(name))
}

/// Makes the process a user of the memory with this number.
///
/// # Errors
/// [`ObjectError`].
pub fn open_number(
    process: ProcessId,
    kind: ObjectKind,
    number: u64,
) -> Result<(Object, OwnedFd), ObjectError> {
    with_memory(&ObjectQuestion {
        number,
        ..ObjectQuestion::new(process, kind, ObjectRequest::Open)
    })
}

/// Takes a mailbox's name back, or ends one use of memory.
///
/// # Errors
/// [`ObjectError`].
pub fn close(process: ProcessId, kind: ObjectKind, number: u64) -> Result<(), ObjectError> {
    ask(&ObjectQuestion { number, ..ObjectQuestion::new(process, kind, ObjectRequest::Close) })
        .map(drop)
}

/// Retires a group: its name is free, and no process opens it any more.
///
/// # Errors
/// [`ObjectError`]; [`ObjectError::Gone`] if it was retired before.
pub fn retire(process: ProcessId, number: u64) -> Result<(), ObjectError> {
    ask(&ObjectQuestion {
        number,
        ..ObjectQuestion::new(process, ObjectKind::Group, ObjectRequest::Retire)
    })
    .map(drop)
}

/// The first group of the job whose number is larger than `after`, with its name; `None` if there is none.
///
/// # Errors
/// [`ObjectError`].
pub fn next_group(process: ProcessId, after: u64) -> Result<Option<(Object, Name)>, ObjectError> {
    let question = ObjectQuestion::new(process, ObjectKind::Group, ObjectRequest::Next);
    match ask_all(&ObjectQuestion { number: after, ..question }) {
        Ok((answer, _)) => Ok(answer.name.map(|name| (answer.object, name))),
        Err(ObjectError::Gone { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// This process's use of memory that the agent keeps. Dropping it ends the use.
pub struct Use {
    process: ProcessId,
    kind: ObjectKind,
    number: u64,
}

impl Use {
    /// Records that this process has created or opened the object.
    pub fn new(process: ProcessId, kind: ObjectKind, number: u64) -> Self {
        Self { process, kind, number }
    }

    /// The object's number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // If this fails, the use ends with the process.
        let _ = close(self.process, self.kind, self.number);
    }
}

/// Maps memory that the agent has handed out.
///
/// # Errors
/// [`ObjectError::NoMemory`].
pub fn map(file: &OwnedFd, object: &Object) -> Result<SharedArea, ObjectError> {
    let Object { bytes, .. } = *object;
    let kind = ObjectKind::Segment;
    SharedArea::map(file, bytes).map_err(|_| ObjectError::NoMemory { kind, bytes })
}

fn with_memory(question: &ObjectQuestion) -> Result<(Object, OwnedFd), ObjectError> {
    let (object, passed) = ask(question)?;
    let memory = passed.ok_or(ObjectError::Refused {
        kind: question.kind,
        verdict: Verdict::Senseless, // granted without the memory that was asked for
    })?;
    Ok((object, memory))
}

fn ask(question: &ObjectQuestion) -> Result<(Object, Option<OwnedFd>), ObjectError> {
    ask_all(question).map(|(answer, passed)| (answer.object, passed))
}

fn ask_all(question: &ObjectQuestion) -> Result<(ObjectAnswer, Option<OwnedFd>), ObjectError> {
    ask_within(question, socket::AGENT_TIME)
}

fn ask_within(
    question: &ObjectQuestion,
    time: Duration,
) -> Result<(ObjectAnswer, Option<OwnedFd>), ObjectError> {
    let address = Address::of_job(question.process.segment);
    let (answer, passed) = socket::exchange_about(&address, question, time)?;
    Ok((granted(question, answer)?, passed))
}

/// The answer to a question if it was granted.
pub(crate) fn granted(
    question: &ObjectQuestion,
    answer: ObjectAnswer,
) -> Result<ObjectAnswer, ObjectError> {
    let kind = question.kind;
    let name = || question.name.as_ref().map_or_else(String::new, |name| name.as_str().to_owned());
    match answer.verdict {
        Verdict::Granted => Ok(answer),
        Verdict::InUse => Err(ObjectError::Taken { kind, name: name(), pid: answer.object.pid }),
        Verdict::Unknown if question.name.is_some() => {
            Err(ObjectError::Unknown { kind, name: name() })
        }
        Verdict::Unknown => Err(ObjectError::Gone { kind }),
        Verdict::NoMemory => Err(ObjectError::NoMemory { kind, bytes: question.bytes }),
        verdict => Err(ObjectError::Refused { kind, verdict }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    #[test]
    fn an_agent_that_does_not_answer_is_an_error_when_the_time_is_over() {
        // A process that connects cannot tell this from an agent that is stopped.
        let host = SegmentId(u64::from(std::process::id()) << 32 | 0xdea1);
        let _silent = Address::of_job(host).listen().unwrap();
        let process = ProcessId { segment: host, slot: Slot(3), incarnation: Incarnation(9) };
        let time = Duration::from_millis(50);
        for asked in ObjectRequest::ALL {
            let question = ObjectQuestion::new(process, ObjectKind::Semaphore, asked);
            let refused = ask_within(&question, time);
            let is_silent = matches!(
                &refused,
                Err(ObjectError::Exchange(socket::ExchangeError::Silent { timeout, .. }))
                    if *timeout == time
            );
            assert!(is_silent, "{refused:?}");
        }
    }
}
