//! The objects of a job that stand under a name or live until their last user: what is asked of
//! the agent, which keeps them, and what it answers.
//!
//! Names have scope job: two jobs know nothing of each other's. A name stands once for each kind of
//! object. A mailbox's name goes with its owner; a segment and a semaphore are memory that lives
//! until nobody uses it any more; a group is memory that stays until somebody says that the group is
//! over. Each has a number that is never given out again.
//!
//! | bytes of a question | | bytes of an answer | |
//! |---|---|---|---|
//! | 0..4 | magic and version | 0..4 | magic and version |
//! | 4, 5 | 5, what is asked | 4, 5 | verdict, length of the name |
//! | 6, 7 | kind, length of the name | 8..16 | number |
//! | 8..16 | slot and incarnation of who asks | 16..24 | bytes of memory |
//! | 16..24 | number | 24..40 | what its maker says of it |
//! | 24..32 | bytes of memory | 40..48 | slot and incarnation of its owner |
//! | 32..48 | what its maker says of it | 48..52 | its owner's process number |
//! | 48..112 | name | 56..120 | name, where that is asked for |

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_memory::SharedArea;
use landeck_memory::shared_area::AREA_BYTES_MAX;
use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use crate::address::Address;
use crate::report::thousands;
use crate::socket::{self, ExchangeError, Verdict};

/// Most bytes of an object's name.
pub const OBJECT_NAME_BYTES_MAX: usize = 64;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// Where messages are posted to.
    Mailbox = 1,
    /// Memory that several processes use.
    Segment = 2,
    /// What processes take units of.
    Semaphore = 3,
    /// The log of a named group. It stays until somebody says that the group is over.
    Group = 4,
}

impl ObjectKind {
    /// Its name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::Segment => "shared segment",
            Self::Semaphore => "semaphore",
            Self::Group => "group",
        }
    }

    fn from_bits(bits: u8) -> Option<Self> {
        let all = [Self::Mailbox, Self::Segment, Self::Semaphore, Self::Group];
        all.into_iter().find(|&it| it as u8 == bits)
    }
}

impl std::fmt::Display for ObjectKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Why bytes cannot be the name of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectNameError {
    /// There are none.
    #[error("an object's name cannot be empty: give it one of 1 to {OBJECT_NAME_BYTES_MAX} bytes")]
    Empty,
    /// There are too many.
    #[error(
        "the name \"{}\" has {} bytes, at most {OBJECT_NAME_BYTES_MAX} are possible: choose a shorter one", .0.escape_debug(), .0.len()
    )]
    TooLong(String),
    /// They are no text.
    #[error("the name \"{0}\" is no UTF-8: names are texts")]
    NotUtf8(String),
    /// There is a character in it that cannot be seen.
    #[error("the name \"{}\" has a control character in it: choose one that can be read", .0.escape_debug())]
    Control(String),
}

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

/// A name that an object may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// The name with these bytes.
    ///
    /// # Errors
    /// [`ObjectNameError`].
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, ObjectNameError> {
        let bytes = name.as_ref();
        let text = || String::from_utf8_lossy(bytes).into_owned();
        match std::str::from_utf8(bytes) {
            _ if bytes.is_empty() => Err(ObjectNameError::Empty),
            _ if bytes.len() > OBJECT_NAME_BYTES_MAX => Err(ObjectNameError::TooLong(text())),
            Err(_) => Err(ObjectNameError::NotUtf8(text())),
            Ok(name) if name.contains(char::is_control) => Err(ObjectNameError::Control(text())),
            Ok(name) => Ok(Self(name.to_owned())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the agent keeps of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its number, never given out again.
    pub number: u64,
    /// Bytes of its memory; none for a mailbox.
    pub bytes: u64,
    /// What its maker said of it.
    pub words: [u64; 2],
    /// Who made it.
    pub owner: ProcessId,
    /// The process number of that.
    pub pid: u32,
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
    let question = Question::new(process, ObjectKind::Mailbox, Asked::Name).named(name);
    ask(&Question { words, ..question }).map(|(object, _)| object)
}

/// The mailbox under a name.
///
/// # Errors
/// [`ObjectError`].
pub fn find_mailbox(process: ProcessId, name: &ObjectName) -> Result<Object, ObjectError> {
    let question = Question::new(process, ObjectKind::Mailbox, Asked::Find).named(name);
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
    let question = Question { bytes, words, ..Question::new(process, kind, Asked::Make) };
    with_memory(&Question { name: name.cloned(), ..question })
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
    with_memory(&Question::new(process, kind, Asked::Open).named(name))
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
    with_memory(&Question { number, ..Question::new(process, kind, Asked::Open) })
}

/// Takes a mailbox's name back, or ends one use of memory.
///
/// # Errors
/// [`ObjectError`].
pub fn close(process: ProcessId, kind: ObjectKind, number: u64) -> Result<(), ObjectError> {
    ask(&Question { number, ..Question::new(process, kind, Asked::Close) }).map(drop)
}

/// Says that a group is over: its name is free, and nobody opens it any more.
///
/// # Errors
/// [`ObjectError`]; [`ObjectError::Gone`] when somebody had said so.
pub fn retire(process: ProcessId, number: u64) -> Result<(), ObjectError> {
    ask(&Question { number, ..Question::new(process, ObjectKind::Group, Asked::Retire) }).map(drop)
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
    let question = Question::new(process, ObjectKind::Group, Asked::Next);
    match ask_all(&Question { number: after, ..question }) {
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

/// What may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Asked {
    Name = 1,
    Find = 2,
    Make = 3,
    Open = 4,
    Close = 5,
    Retire = 6,
    Next = 7,
}

impl Asked {
    const ALL: [Self; 7] =
        [Self::Name, Self::Find, Self::Make, Self::Open, Self::Close, Self::Retire, Self::Next];
}

/// A question about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    pub(crate) kind: ObjectKind,
    pub(crate) process: ProcessId,
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) words: [u64; 2],
    pub(crate) name: Option<ObjectName>,
}

/// An answer about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) object: Object,
    /// Where it was asked for.
    pub(crate) name: Option<ObjectName>,
}

pub(crate) const QUESTION_BYTES: usize = 112;
const ANSWER_BYTES: usize = 56 + OBJECT_NAME_BYTES_MAX;
/// Where other questions say what they are.
const OBJECT: u8 = 5;

impl Question {
    fn new(process: ProcessId, kind: ObjectKind, asked: Asked) -> Self {
        Self { asked, kind, process, number: 0, bytes: 0, words: [0; 2], name: None }
    }

    fn named(self, name: &ObjectName) -> Self {
        Self { name: Some(name.clone()), ..self }
    }

    fn encode(&self) -> [u8; QUESTION_BYTES] {
        let name = self.name.as_ref().map_or("", ObjectName::as_str);
        let mut bytes = [0; QUESTION_BYTES];
        bytes[..4].copy_from_slice(&socket::MAGIC);
        bytes[4..8].copy_from_slice(&[OBJECT, self.asked as u8, self.kind as u8, name.len() as u8]);
        bytes[8..12].copy_from_slice(&self.process.slot.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.process.incarnation.0.to_le_bytes());
        let longs = [self.number, self.bytes, self.words[0], self.words[1]];
        for (place, long) in bytes[16..48].chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&long.to_le_bytes());
        }
        bytes[48..48 + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    /// The question in these bytes, to the job of `host`; none when there is no sense in them.
    pub(crate) fn decode(bytes: &[u8], host: HostId) -> Option<Self> {
        let bytes: &[u8; QUESTION_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != socket::MAGIC || bytes[4] != OBJECT {
            return None;
        }
        let name = match usize::from(bytes[7]) {
            0 => None,
            length => Some(ObjectName::new(bytes[48..].get(..length)?).ok()?),
        };
        Some(Self {
            asked: Asked::ALL.into_iter().find(|&asked| asked as u8 == bytes[5])?,
            kind: ObjectKind::from_bits(bytes[6])?,
            process: process(host, bytes, 8),
            number: long(bytes, 16),
            bytes: long(bytes, 24),
            words: [long(bytes, 32), long(bytes, 40)],
            name,
        })
    }
}

impl Answer {
    /// An answer that says nothing but this.
    pub(crate) fn bare(host: HostId, verdict: Verdict) -> Self {
        let owner = ProcessId { host, slot: Slot(0), incarnation: Incarnation(0) };
        let object = Object { number: 0, bytes: 0, words: [0; 2], owner, pid: 0 };
        Self { verdict, object, name: None }
    }

    pub(crate) fn send(
        &self,
        connection: &OwnedFd,
        passed: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        socket::send_answer(connection, &self.encode(), passed)
    }

    fn encode(&self) -> [u8; ANSWER_BYTES] {
        let Object { number, bytes: of_memory, words, owner, pid } = self.object;
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..4].copy_from_slice(&socket::MAGIC);
        bytes[4] = self.verdict as u8;
        let longs = [number, of_memory, words[0], words[1]];
        for (place, long) in bytes[8..40].chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&long.to_le_bytes());
        }
        for (place, word) in
            bytes[40..52].chunks_exact_mut(4).zip([owner.slot.0, owner.incarnation.0, pid])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let name = self.name.as_ref().map_or("", ObjectName::as_str);
        bytes[5] = name.len() as u8;
        bytes[56..56 + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8], host: HostId) -> Option<Self> {
        let bytes: &[u8; ANSWER_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != socket::MAGIC {
            return None;
        }
        let object = Object {
            number: long(bytes, 8),
            bytes: long(bytes, 16),
            words: [long(bytes, 24), long(bytes, 32)],
            owner: process(host, bytes, 40),
            pid: socket::word(bytes, 48),
        };
        let name = match usize::from(bytes[5]) {
            0 => None,
            length => Some(ObjectName::new(bytes[56..].get(..length)?).ok()?),
        };
        Some(Self { verdict: Verdict::from_bits(bytes[4])?, object, name })
    }
}

fn with_memory(question: &Question) -> Result<(Object, OwnedFd), ObjectError> {
    let (object, passed) = ask(question)?;
    let memory = passed.ok_or(ObjectError::Refused {
        kind: question.kind,
        verdict: Verdict::Senseless, // granted without what was asked for
    })?;
    Ok((object, memory))
}

fn ask(question: &Question) -> Result<(Object, Option<OwnedFd>), ObjectError> {
    ask_all(question).map(|(answer, passed)| (answer.object, passed))
}

fn ask_all(question: &Question) -> Result<(Answer, Option<OwnedFd>), ObjectError> {
    ask_within(question, socket::AGENT_TIME)
}

fn ask_within(
    question: &Question,
    time: Duration,
) -> Result<(Answer, Option<OwnedFd>), ObjectError> {
    let host = question.process.host;
    let address = Address::of_job(host);
    let (bytes, passed) = socket::exchange_bytes(&address, &question.encode(), time)?;
    let answer = Answer::decode(&bytes, host).ok_or_else(|| ExchangeError::garbled(&address))?;
    let kind = question.kind;
    let name = || question.name.as_ref().map_or_else(String::new, |name| name.0.clone());
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

fn process(host: HostId, bytes: &[u8], at: usize) -> ProcessId {
    ProcessId {
        host,
        slot: Slot(socket::word(bytes, at)),
        incarnation: Incarnation(socket::word(bytes, at + 4)),
    }
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(socket::word(bytes, at)) | u64::from(socket::word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId(7);

    fn question() -> Question {
        let process = ProcessId { host: HOST, slot: Slot(3), incarnation: Incarnation(9) };
        let name = ObjectName::new("n".repeat(OBJECT_NAME_BYTES_MAX)).unwrap();
        Question {
            number: u64::MAX,
            bytes: 1 << 40,
            words: [5, 6],
            ..Question::new(process, ObjectKind::Semaphore, Asked::Open).named(&name)
        }
    }

    #[test]
    fn questions_and_answers_survive_their_encoding() {
        let question = question();
        for asked in Asked::ALL {
            let question = Question { asked, ..question.clone() };
            assert_eq!(Question::decode(&question.encode(), HOST), Some(question));
        }
        let nameless = Question { name: None, ..question };
        assert_eq!(Question::decode(&nameless.encode(), HOST), Some(nameless.clone()));
        let bare = Answer::bare(HOST, Verdict::Unknown);
        let object = Object { number: 4, bytes: 8, words: [1, 2], pid: 77, ..bare.object };
        let name = ObjectName::new("n".repeat(OBJECT_NAME_BYTES_MAX)).ok();
        let answer = Answer { object: Object { owner: nameless.process, ..object }, name, ..bare };
        assert_eq!(Answer::decode(&answer.encode(), HOST), Some(answer));
    }

    #[test]
    fn an_agent_that_does_not_answer_is_an_error_when_the_time_is_over() {
        // Who connects cannot tell it from an agent that is stopped.
        let host = HostId(u64::from(std::process::id()) << 32 | 0xdea1);
        let _silent = Address::of_job(host).listen().unwrap();
        let process = ProcessId { host, ..question().process };
        let time = Duration::from_millis(50);
        for asked in Asked::ALL {
            let refused = ask_within(&Question { asked, process, ..question() }, time);
            let is_silent = matches!(
                &refused,
                Err(ObjectError::Exchange(socket::ExchangeError::Silent { timeout, .. }))
                    if *timeout == time
            );
            assert!(is_silent, "{refused:?}");
        }
    }

    #[test]
    fn senseless_questions_are_none() {
        let good = question().encode();
        for (at, byte) in
            [(0, 0), (4, 4), (5, 0), (5, 8), (6, 0), (6, 5), (7, 65), (48, 0), (48, 255)]
        {
            let mut bad = good;
            bad[at] = byte;
            assert!(Question::decode(&bad, HOST).is_none(), "{at} {byte}");
        }
        assert!(Question::decode(&good[1..], HOST).is_none());
    }

    #[test]
    fn each_bad_name_has_its_own_error() {
        assert_eq!(ObjectName::new("").unwrap_err(), ObjectNameError::Empty);
        let long = "n".repeat(OBJECT_NAME_BYTES_MAX + 1);
        assert!(matches!(ObjectName::new(&long), Err(ObjectNameError::TooLong(_))));
        assert!(matches!(ObjectName::new([b'a', 0xff]), Err(ObjectNameError::NotUtf8(_))));
        assert!(matches!(ObjectName::new("a\nb"), Err(ObjectNameError::Control(_))));
        assert_eq!(ObjectName::new("Größe 1").unwrap().as_str(), "Größe 1");
    }
}
