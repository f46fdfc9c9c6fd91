//! The objects of a job that stand under a name or live until their last user: what is asked of
//! the agent, which keeps them, and what it answers.
//!
//! Names have scope job: two jobs know nothing of each other's. A name stands once for each kind of
//! object. A mailbox's name goes with its owner; a segment and a semaphore are memory that lives
//! until nobody uses it any more; a group is memory that stays until somebody says that the group is
//! over. Each has a number that is never given out again.

use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_groups::door::{Asked, ObjectAnswer, ObjectQuestion};
pub use landeck_groups::door::{
    OBJECT_NAME_BYTES_MAX, Object, ObjectKind, ObjectName, ObjectNameError,
};
use landeck_memory::SharedArea;
use landeck_memory::shared_area::AREA_BYTES_MAX;
use landeck_wire::ProcessId;

use crate::address::Address;
use crate::report::thousands;
use crate::socket::{self, ExchangeError, Verdict};

/// Why the agent did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The bytes cannot be a name.
    #[error(transparent)]
    Name(#[from] ObjectNameError),
    /// The agent could not be asked.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// There is such an object.
    #[error(
        "the {kind} \"{name}\" is there already, made by process {pid}: open that one, or choose another name"
    )]
    Taken {
        /// What it is.
        kind: ObjectKind,
        /// The name.
        name: String,
        /// Whose it is.
        pid: u32,
    },
    /// There is no such object.
    #[error(
        "no {kind} of this job has the name \"{name}\": make it first, or look at the spelling"
    )]
    Unknown {
        /// What was looked for.
        kind: ObjectKind,
        /// The name.
        name: String,
    },
    /// The object is no more.
    #[error("the {kind} is no more: its last user has gone, or its owner has destroyed it")]
    Gone {
        /// What it was.
        kind: ObjectKind,
    },
    /// It cannot have so many bytes.
    #[error("a {kind} cannot have {} bytes: give it 1 to {}", thousands(*.bytes), thousands(AREA_BYTES_MAX))]
    Size {
        /// What it was to be.
        kind: ObjectKind,
        /// Bytes asked for.
        bytes: u64,
    },
    /// There is no memory for it.
    #[error(
        "there is no memory for a {kind} of {bytes} bytes: make it smaller, or raise the limits of the job"
    )]
    NoMemory {
        /// What it was to be.
        kind: ObjectKind,
        /// Bytes asked for.
        bytes: u64,
    },
    /// The agent said no.
    #[error("the {kind} was refused: {verdict}")]
    Refused {
        /// What it is.
        kind: ObjectKind,
        /// Why.
        verdict: Verdict,
    },
}

/// Puts a mailbox under a name. It stands there until its owner takes it back or is gone.
///
/// # Errors
/// [`ObjectError`].
pub fn name_mailbox(
    process: ProcessId,
    name: &ObjectName,
    words: [u64; 2],
) -> Result<Object, ObjectError> {
    let question = ObjectQuestion::new(process, ObjectKind::Mailbox, Asked::Name).named(name);
    ask(&ObjectQuestion { words, ..question }).map(|(object, _)| object)
}

/// The mailbox under a name.
///
/// # Errors
/// [`ObjectError`].
pub fn find_mailbox(process: ProcessId, name: &ObjectName) -> Result<Object, ObjectError> {
    let question = ObjectQuestion::new(process, ObjectKind::Mailbox, Asked::Find).named(name);
    ask(&question).map(|(object, _)| object)
}

/// Makes memory, under a name if there is one, whose first user is the process.
///
/// # Errors
/// [`ObjectError`].
pub fn make(
    process: ProcessId,
    kind: ObjectKind,
    name: Option<&ObjectName>,
    bytes: u64,
    words: [u64; 2],
) -> Result<(Object, OwnedFd), ObjectError> {
    if !(1..=AREA_BYTES_MAX).contains(&bytes) {
        return Err(ObjectError::Size { kind, bytes });
    }
    let question =
        ObjectQuestion { bytes, words, ..ObjectQuestion::new(process, kind, Asked::Make) };
    with_memory(&ObjectQuestion { name: name.cloned(), ..question })
}

/// Makes the process a user of memory that stands under a name.
///
/// # Errors
/// [`ObjectError`].
pub fn open(
    process: ProcessId,
    kind: ObjectKind,
    name: &ObjectName,
) -> Result<(Object, OwnedFd), ObjectError> {
    with_memory(&ObjectQuestion::new(process, kind, Asked::Open).named(name))
}

/// Makes the process a user of memory by its number.
///
/// # Errors
/// [`ObjectError`].
pub fn open_number(
    process: ProcessId,
    kind: ObjectKind,
    number: u64,
) -> Result<(Object, OwnedFd), ObjectError> {
    with_memory(&ObjectQuestion { number, ..ObjectQuestion::new(process, kind, Asked::Open) })
}

/// Takes a mailbox's name back, or ends one use of memory.
///
/// # Errors
/// [`ObjectError`].
pub fn close(process: ProcessId, kind: ObjectKind, number: u64) -> Result<(), ObjectError> {
    ask(&ObjectQuestion { number, ..ObjectQuestion::new(process, kind, Asked::Close) }).map(drop)
}

/// Says that a group is over: its name is free, and nobody opens it any more.
///
/// # Errors
/// [`ObjectError`]; [`ObjectError::Gone`] when somebody had said so.
pub fn retire(process: ProcessId, number: u64) -> Result<(), ObjectError> {
    ask(&ObjectQuestion {
        number,
        ..ObjectQuestion::new(process, ObjectKind::Group, Asked::Retire)
    })
    .map(drop)
}

/// The first group of the job whose number is larger than this, with its name; none when there is
/// none.
///
/// # Errors
/// [`ObjectError`].
pub fn next_group(
    process: ProcessId,
    after: u64,
) -> Result<Option<(Object, ObjectName)>, ObjectError> {
    let question = ObjectQuestion::new(process, ObjectKind::Group, Asked::Next);
    match ask_all(&ObjectQuestion { number: after, ..question }) {
        Ok((answer, _)) => Ok(answer.name.map(|name| (answer.object, name))),
        Err(ObjectError::Gone { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// This process's use of memory that the agent keeps. Dropped, it is one user less.
pub struct Use {
    process: ProcessId,
    kind: ObjectKind,
    number: u64,
}

impl Use {
    /// This process has made the object, or opened it.
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
        // The use ends with the process in any case.
        let _ = close(self.process, self.kind, self.number);
    }
}

/// The memory that the agent has handed out, mapped.
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
        verdict: Verdict::Senseless, // granted without what was asked for
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
    let host = question.process.host;
    let address = Address::of_job(host);
    let (bytes, passed) = socket::exchange_bytes(&address, &question.encode(), time)?;
    let answer =
        ObjectAnswer::decode(&bytes, host).ok_or_else(|| ExchangeError::garbled(&address))?;
    let kind = question.kind;
    let name = || question.name.as_ref().map_or_else(String::new, |name| name.as_str().to_owned());
    match answer.verdict {
        Verdict::Granted => Ok((answer, passed)),
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
    use landeck_wire::{HostId, Incarnation, Slot};

    const HOST: HostId = HostId(7);

    fn question() -> ObjectQuestion {
        let process = ProcessId { host: HOST, slot: Slot(3), incarnation: Incarnation(9) };
        let name = ObjectName::new("n".repeat(OBJECT_NAME_BYTES_MAX)).unwrap();
        ObjectQuestion {
            number: u64::MAX,
            bytes: 1 << 40,
            words: [5, 6],
            ..ObjectQuestion::new(process, ObjectKind::Semaphore, Asked::Open).named(&name)
        }
    }

    #[test]
    fn an_agent_that_does_not_answer_is_an_error_when_the_time_is_over() {
        // Who connects cannot tell it from an agent that is stopped.
        let host = HostId(u64::from(std::process::id()) << 32 | 0xdea1);
        let _silent = Address::of_job(host).listen().unwrap();
        let process = ProcessId { host, ..question().process };
        let time = Duration::from_millis(50);
        for asked in Asked::ALL {
            let refused = ask_within(&ObjectQuestion { asked, process, ..question() }, time);
            let is_silent = matches!(
                &refused,
                Err(ObjectError::Exchange(socket::ExchangeError::Silent { timeout, .. }))
                    if *timeout == time
            );
            assert!(is_silent, "{refused:?}");
        }
    }
}
