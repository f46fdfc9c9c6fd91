//! An object of a job: its kind, its name, and what is asked and answered about it, as bytes too.
//!
//! | bytes of a question | | bytes of an answer | |
//! |---|---|---|---|
//! | 0..4 | magic and version | 0..4 | magic and version |
//! | 4, 5 | 5, what is asked | 4, 5 | verdict, length of the name |
//! | 6, 7 | kind, length of the name | 8..16 | number |
//! | 8..16 | slot and incarnation of the asking process | 16..24 | bytes of memory |
//! | 16..24 | number | 24..40 | what its maker says of it |
//! | 24..32 | bytes of memory | 40..48 | slot and incarnation of its owner |
//! | 32..48 | what its maker says of it | 48..52 | its owner's process number |
//! | 48..112 | name | 56..120 | name, where that is asked for |

use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use super::format::{MAGIC, long, process, word};
use super::verdict::Verdict;

/// Most bytes of an object's name.
pub const OBJECT_NAME_BYTES_MAX: usize = 64;

/// The kind of an object.
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

/// What may be asked about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Asked {
    /// To put a mailbox under a name.
    Name = 1,
    /// To find a mailbox by its name.
    Find = 2,
    /// To make memory, whose first user is the process that asks.
    Make = 3,
    /// To become a user of memory.
    Open = 4,
    /// To take a mailbox's name back, or to end one use of memory.
    Close = 5,
    /// To say that a group is over.
    Retire = 6,
    /// To find the group with the next number.
    Next = 7,
}

impl Asked {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Name, Self::Find, Self::Make, Self::Open, Self::Close, Self::Retire, Self::Next];
}

/// A question about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectQuestion {
    /// What is asked.
    pub asked: Asked,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The process that asks.
    pub process: ProcessId,
    /// The number of the object, where it is meant by its number.
    pub number: u64,
    /// Bytes of memory, where it is made.
    pub bytes: u64,
    /// What its maker says of it.
    pub words: [u64; 2],
    /// The name of the object, where it has one or is meant by it.
    pub name: Option<ObjectName>,
}

/// An answer about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAnswer {
    /// Whether it was done.
    pub verdict: Verdict,
    /// The object.
    pub object: Object,
    /// Its name, where that was asked for.
    pub name: Option<ObjectName>,
}

/// Bytes of a question about an object.
pub const OBJECT_QUESTION_BYTES: usize = 112;
const OBJECT_ANSWER_BYTES: usize = 56 + OBJECT_NAME_BYTES_MAX;
/// Where other questions say what they are.
const OBJECT: u8 = 5;

impl ObjectQuestion {
    /// A question about an object that says nothing but this.
    pub fn new(process: ProcessId, kind: ObjectKind, asked: Asked) -> Self {
        Self { asked, kind, process, number: 0, bytes: 0, words: [0; 2], name: None }
    }

    /// The same question about the object with this name.
    pub fn named(self, name: &ObjectName) -> Self {
        Self { name: Some(name.clone()), ..self }
    }

    /// It as bytes.
    pub fn encode(&self) -> [u8; OBJECT_QUESTION_BYTES] {
        let name = self.name.as_ref().map_or("", ObjectName::as_str);
        let mut bytes = [0; OBJECT_QUESTION_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
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
    pub fn decode(bytes: &[u8], host: HostId) -> Option<Self> {
        let bytes: &[u8; OBJECT_QUESTION_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC || bytes[4] != OBJECT {
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

impl ObjectAnswer {
    /// An answer that says nothing but this.
    pub fn bare(host: HostId, verdict: Verdict) -> Self {
        let owner = ProcessId { host, slot: Slot(0), incarnation: Incarnation(0) };
        let object = Object { number: 0, bytes: 0, words: [0; 2], owner, pid: 0 };
        Self { verdict, object, name: None }
    }

    /// It as bytes.
    pub fn encode(&self) -> [u8; OBJECT_ANSWER_BYTES] {
        let Object { number, bytes: of_memory, words, owner, pid } = self.object;
        let mut bytes = [0; OBJECT_ANSWER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
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

    /// The answer in these bytes, from the job of `host`; none when there is no sense in them.
    pub fn decode(bytes: &[u8], host: HostId) -> Option<Self> {
        let bytes: &[u8; OBJECT_ANSWER_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let object = Object {
            number: long(bytes, 8),
            bytes: long(bytes, 16),
            words: [long(bytes, 24), long(bytes, 32)],
            owner: process(host, bytes, 40),
            pid: word(bytes, 48),
        };
        let name = match usize::from(bytes[5]) {
            0 => None,
            length => Some(ObjectName::new(bytes[56..].get(..length)?).ok()?),
        };
        Some(Self { verdict: Verdict::from_bits(bytes[4])?, object, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn questions_and_answers_survive_their_encoding() {
        let question = question();
        for asked in Asked::ALL {
            let question = ObjectQuestion { asked, ..question.clone() };
            assert_eq!(ObjectQuestion::decode(&question.encode(), HOST), Some(question));
        }
        let nameless = ObjectQuestion { name: None, ..question };
        assert_eq!(ObjectQuestion::decode(&nameless.encode(), HOST), Some(nameless.clone()));
        let bare = ObjectAnswer::bare(HOST, Verdict::Unknown);
        let object = Object { number: 4, bytes: 8, words: [1, 2], pid: 77, ..bare.object };
        let name = ObjectName::new("n".repeat(OBJECT_NAME_BYTES_MAX)).ok();
        let answer =
            ObjectAnswer { object: Object { owner: nameless.process, ..object }, name, ..bare };
        assert_eq!(ObjectAnswer::decode(&answer.encode(), HOST), Some(answer));
    }

    #[test]
    fn senseless_questions_are_none() {
        let good = question().encode();
        for (at, byte) in
            [(0, 0), (4, 4), (5, 0), (5, 8), (6, 0), (6, 5), (7, 65), (48, 0), (48, 255)]
        {
            let mut bad = good;
            bad[at] = byte;
            assert!(ObjectQuestion::decode(&bad, HOST).is_none(), "{at} {byte}");
        }
        assert!(ObjectQuestion::decode(&good[1..], HOST).is_none());
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
