//! Questions at a joining socket and the answers to them, as values and as bytes.
//!
//! | bytes of a question | |  bytes of an answer | |
//! |---|---|---|---|
//! | 0..4 | magic and version | 0..4 | magic and version |
//! | 4, 5 | kind, length of the name | 4 | verdict |
//! | 8..12 | slot | 8..16 | host identity |
//! | 12..16 | incarnation | 16..24 | slot and incarnation of the process that joined |
//! | 16..20 | context | 24..32 | slot and incarnation of the publisher |
//! | 20..84 | name | 32..40 | its PID, its context |

use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use super::format::{MAGIC, word};
use super::name::Name;
use super::verdict::Verdict;

/// The publication under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The process that published it.
    pub process: ProcessId,
    /// Its PID.
    pub pid: u32,
    /// The context that it published, in which messages reach it.
    pub context: u32,
}

/// A question at a joining socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Join the job.
    Join {
        /// The reserved slot; `None` for a guest.
        wanted: Option<Slot>,
    },
    /// Publish a name.
    Publish {
        /// The process that publishes it.
        process: ProcessId,
        /// The context in which messages reach the process.
        context: u32,
        /// The name.
        name: Name,
    },
    /// Take back a name.
    Unpublish {
        /// The process that published it.
        process: ProcessId,
        /// The name.
        name: Name,
    },
    /// Look up the publication here.
    LookUp,
    /// Observe the job without joining it.
    Observe,
    /// Look at the word that a process wrote about itself: it has left, or takes part again.
    Presence {
        /// The process.
        process: ProcessId,
    },
    /// Be watched as a process of the job that joined below the one that was started.
    Found {
        /// The process.
        process: ProcessId,
    },
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The verdict on the question.
    pub verdict: Verdict,
    /// The identity of the asking process from now on, if it was admitted.
    pub joined: ProcessId,
    /// The publication under the name in question.
    pub published: Published,
}

const QUESTION_BYTES: usize = 84;
const ANSWER_BYTES: usize = 40;
const JOIN: u8 = 1;
const PUBLISH: u8 = 2;
const UNPUBLISH: u8 = 3;
const LOOK_UP: u8 = 4;
const OBSERVE: u8 = 5;
const FOUND: u8 = 6;
const PRESENCE: u8 = 7;
/// The slot in a guest's question.
const ANY_SLOT: u32 = u32::MAX;

impl Question {
    /// Encodes the question.
    pub fn encode(&self) -> [u8; QUESTION_BYTES] {
        let mut bytes = [0; QUESTION_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let mut about = |kind: u8, slot: u32, incarnation: u32, context: u32, name: &str| {
            bytes[4] = kind;
            bytes[5] = name.len() as u8;
            bytes[8..12].copy_from_slice(&slot.to_le_bytes());
            bytes[12..16].copy_from_slice(&incarnation.to_le_bytes());
            bytes[16..20].copy_from_slice(&context.to_le_bytes());
            bytes[20..20 + name.len()].copy_from_slice(name.as_bytes());
        };
        match self {
            Self::Join { wanted } => about(JOIN, wanted.map_or(ANY_SLOT, |slot| slot.0), 0, 0, ""),
            Self::Publish { process, context, name } => {
                about(PUBLISH, process.slot.0, process.incarnation.0, *context, name.as_str());
            }
            Self::Unpublish { process, name } => {
                about(UNPUBLISH, process.slot.0, process.incarnation.0, 0, name.as_str());
            }
            Self::LookUp => about(LOOK_UP, 0, 0, 0, ""),
            Self::Observe => about(OBSERVE, 0, 0, 0, ""),
            Self::Found { process } => about(FOUND, process.slot.0, process.incarnation.0, 0, ""),
            Self::Presence { process } => {
                about(PRESENCE, process.slot.0, process.incarnation.0, 0, "");
            }
        }
        bytes
    }

    /// Decodes a question to the job of `host`; `None` if the bytes are not valid.
    pub fn decode(bytes: &[u8], host: HostId) -> Option<Self> {
        let bytes: &[u8; QUESTION_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let slot = Slot(word(bytes, 8));
        let process = ProcessId { host, slot, incarnation: Incarnation(word(bytes, 12)) };
        let name = || {
            let name = bytes[20..].get(..usize::from(bytes[5]))?;
            Name::new(std::str::from_utf8(name).ok()?).ok()
        };
        match bytes[4] {
            JOIN => Some(Self::Join { wanted: (slot.0 != ANY_SLOT).then_some(slot) }),
            PUBLISH => Some(Self::Publish { process, context: word(bytes, 16), name: name()? }),
            UNPUBLISH => Some(Self::Unpublish { process, name: name()? }),
            LOOK_UP => Some(Self::LookUp),
            OBSERVE => Some(Self::Observe),
            FOUND => Some(Self::Found { process }),
            PRESENCE => Some(Self::Presence { process }),
            _ => None,
        }
    }
}

impl Answer {
    /// Creates an answer with these fields alone.
    pub fn bare(host: HostId, verdict: Verdict) -> Self {
        let nobody = ProcessId { host, slot: Slot(0), incarnation: Incarnation(0) };
        let published = Published { process: nobody, pid: 0, context: 0 };
        Self { verdict, joined: nobody, published }
    }

    /// Encodes the answer.
    pub fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.verdict as u8;
        bytes[8..16].copy_from_slice(&self.joined.host.0.to_le_bytes());
        let words = [
            self.joined.slot.0,
            self.joined.incarnation.0,
            self.published.process.slot.0,
            self.published.process.incarnation.0,
            self.published.pid,
            self.published.context,
        ];
        for (place, word) in bytes[16..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes an answer; `None` if the bytes are not valid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ANSWER_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let host = HostId(u64::from(word(bytes, 8)) | u64::from(word(bytes, 12)) << 32);
        let process = |at: usize| ProcessId {
            host,
            slot: Slot(word(bytes, at)),
            incarnation: Incarnation(word(bytes, at + 4)),
        };
        let published =
            Published { process: process(24), pid: word(bytes, 32), context: word(bytes, 36) };
        Some(Self { verdict: Verdict::from_bits(bytes[4])?, joined: process(16), published })
    }
}

#[cfg(test)]
mod tests {
    use super::super::name::NAME_BYTES_MAX;
    use super::*;

    const HOST: HostId = HostId(0x0123_4567_89ab_cdef);

    fn process(slot: u32) -> ProcessId {
        ProcessId { host: HOST, slot: Slot(slot), incarnation: Incarnation(3) }
    }

    #[test]
    fn questions_survive_their_encoding() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        for question in [
            Question::Join { wanted: None },
            Question::Join { wanted: Some(Slot(7)) },
            Question::Publish {
                process: process(2),
                context: 9,
                name: Name::new(&longest).unwrap(),
            },
            Question::Unpublish { process: process(2), name: Name::new("ü").unwrap() },
            Question::LookUp,
            Question::Observe,
            Question::Found { process: process(2) },
            Question::Presence { process: process(2) },
        ] {
            assert_eq!(Question::decode(&question.encode(), HOST), Some(question));
        }
    }

    #[test]
    fn senseless_questions_are_none() {
        let good =
            Question::Publish { process: process(2), context: 9, name: Name::new("name").unwrap() }
                .encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            Question::decode(&bytes, HOST)
        };
        assert!(with(0, b'l').is_none(), "other magic");
        assert!(with(3, 2).is_none(), "other version");
        assert!(with(4, 77).is_none(), "unknown question");
        assert!(with(5, 0).is_none(), "no name");
        assert!(with(5, 200).is_none(), "a name longer than the message");
        assert!(with(20, 0).is_none(), "a control character");
        assert!(with(20, 0xff).is_none(), "no UTF-8");
        assert!(Question::decode(&good[1..], HOST).is_none(), "shorter");
    }

    #[test]
    fn answers_survive_their_encoding() {
        for verdict in Verdict::ALL {
            let published = Published { process: process(1), pid: 4711, context: 5 };
            let answer = Answer { verdict, joined: process(9), published };
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        let mut unknown = Answer::bare(HOST, Verdict::Full).encode();
        unknown[4] = 99;
        assert_eq!(Answer::decode(&unknown), None);
    }
}
