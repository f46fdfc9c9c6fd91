//! An object of a job: its kind, its name, and the questions and answers about it, also as bytes.
//!
//! | bytes of a question | | bytes of an answer | |
//! |---|---|---|---|
//! | 0..4 | magic and version | 0..4 | magic and version |
//! | 4, 5 | 5, the request | 4, 5 | verdict, length of the name |
//! | 6, 7 | kind, length of the name | 8..16 | number |
//! | 8..16 | slot and incarnation of the asking process | 16..24 | bytes of memory |
//! | 16..24 | number | 24..40 | words of its maker |
//! | 24..32 | bytes of memory | 40..48 | slot and incarnation of its owner |
//! | 32..48 | words of its maker | 48..52 | its owner's PID |
//! | 48..112 | name | 56..120 | name, if it was asked for |

use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use super::format::{MAGIC, long, process, word};
use super::name::{NAME_BYTES_MAX, Name};
use super::verdict::Verdict;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// A mailbox, to which messages are posted.
    Mailbox = 1,
    /// Memory that several processes use.
    Segment = 2,
    /// A semaphore, of which processes take units.
    Semaphore = 3,
    /// The log of a named group. It stays until the group is retired.
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

/// The agent's record of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Asked {
    /// Give a mailbox a name.
    Name = 1,
    /// Find a mailbox by its name.
    Find = 2,
    /// Create memory, whose first user is the asking process.
    Make = 3,
    /// Become a user of memory.
    Open = 4,
    /// Take a mailbox's name back, or end one use of memory.
    Close = 5,
    /// Retire a group.
    Retire = 6,
    /// Find the group with the next number.
    Next = 7,
}

impl Asked {
    /// All requests.
    pub const ALL: [Self; 7] =
        [Self::Name, Self::Find, Self::Make, Self::Open, Self::Close, Self::Retire, Self::Next];
}

/// A question about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectQuestion {
    /// The request.
    pub asked: Asked,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAnswer {
    /// The verdict on the request.
    pub verdict: Verdict,
    /// The object.
    pub object: Object,
    /// Its name, if that was asked for.
    pub name: Option<Name>,
}

/// The length of a question about an object, in bytes.
pub const OBJECT_QUESTION_BYTES: usize = 112;
const OBJECT_ANSWER_BYTES: usize = 56 + NAME_BYTES_MAX;
/// The mark of these questions, at the place where others have their kind.
const OBJECT: u8 = 5;

impl ObjectQuestion {
    /// Creates a question with these fields alone.
    pub fn new(process: ProcessId, kind: ObjectKind, asked: Asked) -> Self {
        Self { asked, kind, process, number: 0, bytes: 0, words: [0; 2], name: None }
    }

    /// Adds the name of the object to the question.
    pub fn named(self, name: &Name) -> Self {
        Self { name: Some(name.clone()), ..self }
    }

    /// Encodes the question.
    pub fn encode(&self) -> [u8; OBJECT_QUESTION_BYTES] {
        let name = self.name.as_ref().map_or("", Name::as_str);
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

    /// Decodes a question to the job of `host`; `None` if the bytes are not valid.
    pub fn decode(bytes: &[u8], host: HostId) -> Option<Self> {
        let bytes: &[u8; OBJECT_QUESTION_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC || bytes[4] != OBJECT {
            return None;
        }
        let name = match usize::from(bytes[7]) {
            0 => None,
            length => Some(Name::new(bytes[48..].get(..length)?).ok()?),
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
    /// Creates an answer with these fields alone.
    pub fn bare(host: HostId, verdict: Verdict) -> Self {
        let owner = ProcessId { host, slot: Slot(0), incarnation: Incarnation(0) };
        let object = Object { number: 0, bytes: 0, words: [0; 2], owner, pid: 0 };
        Self { verdict, object, name: None }
    }

    /// Encodes the answer.
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
        let name = self.name.as_ref().map_or("", Name::as_str);
        bytes[5] = name.len() as u8;
        bytes[56..56 + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    /// Decodes an answer from the job of `host`; `None` if the bytes are not valid.
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
            length => Some(Name::new(bytes[56..].get(..length)?).ok()?),
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
        let name = Name::new("n".repeat(NAME_BYTES_MAX)).unwrap();
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
        let name = Name::new("n".repeat(NAME_BYTES_MAX)).ok();
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
}
