//! Questions at a joining socket and the answers to them.

use landeck_wire::{ControlMessage, ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

use super::name::Name;
use super::object::{NOBODY, ObjectAnswer, ObjectQuestion};
use super::start::{StartAnswer, StartWish, WISH_BYTES_MAX, cut};
use super::verdict::Verdict;

/// The first bytes of each message. The last one is the version: programs of two installations may meet at a name.
const MARK: &[u8] = b"LDK\x02";

/// The publication under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The process that published it.
    pub process: ProcessId,
    /// Its PID.
    pub pid: u32,
    /// The context that it published, in which messages reach it.
    pub context: u32,
}

/// A question at a joining socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Do something with an object.
    Object(ObjectQuestion),
    /// Have a process started.
    Start(Box<StartWish>),
    /// Have a part of a job made on this host, if there is none: at the daemon of a machine.
    Part {
        /// The name of the job, or the first digits of its identity.
        job: String,
    },
}

/// An answer about the job or a published name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The verdict on the question.
    pub verdict: Verdict,
    /// The identity of the asking process from now on, if it was admitted.
    pub joined: ProcessId,
    /// The publication under the name in question.
    pub published: Published,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// About the job or a published name.
    Plain(Answer),
    /// About an object.
    Object(ObjectAnswer),
    /// About a process that was to be started.
    Start(StartAnswer),
    /// About a part of a job.
    Part(PartAnswer),
}

/// An answer about the part of a job on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartAnswer {
    /// It is there, with this segment.
    There(SegmentId),
    /// The machine has no such job.
    Unknown,
    /// There is none, for this reason.
    Refused(String),
}

impl PartAnswer {
    /// The answer with a text that fits into a message.
    #[must_use]
    pub fn cut(self) -> Self {
        match self {
            Self::Refused(why) => Self::Refused(cut(why)),
            other => other,
        }
    }
}

impl ControlMessage for Question {
    const NAME: &'static str = "a question at a joining socket";
    const BYTES_MAX: usize = WISH_BYTES_MAX;
    const MARK: &'static [u8] = MARK;
}

impl ControlMessage for Reply {
    const NAME: &'static str = "an answer of a joining socket";
    const BYTES_MAX: usize = 768;
    const MARK: &'static [u8] = MARK;
}

impl Answer {
    /// Creates an answer with a verdict alone.
    pub const fn bare(verdict: Verdict) -> Self {
        let published = Published { process: NOBODY, pid: 0, context: 0 };
        Self { verdict, joined: NOBODY, published }
    }
}

#[cfg(test)]
mod tests {
    use super::super::name::NAME_BYTES_MAX;
    use super::super::object::{Object, ObjectKind, ObjectRequest};
    use super::*;
    use landeck_wire::Incarnation;

    const LAST: ProcessId = ProcessId {
        segment: SegmentId(u64::MAX),
        slot: Slot(u32::MAX),
        incarnation: Incarnation(u32::MAX),
    };

    fn longest() -> Name {
        Name::new("n".repeat(NAME_BYTES_MAX)).unwrap()
    }

    #[test]
    fn the_longest_questions_survive_their_encoding() {
        let question = ObjectQuestion {
            number: u64::MAX,
            bytes: u64::MAX,
            words: [u64::MAX; 2],
            ..ObjectQuestion::new(LAST, ObjectKind::Group, ObjectRequest::Next).named(&longest())
        };
        let nameless = ObjectQuestion { name: None, ..question.clone() };
        for question in [
            Question::Join { wanted: None },
            Question::Join { wanted: Some(Slot(u32::MAX)) },
            Question::Publish { process: LAST, context: u32::MAX, name: longest() },
            Question::Unpublish { process: LAST, name: Name::new("ü").unwrap() },
            Question::LookUp,
            Question::Observe,
            Question::Found { process: LAST },
            Question::Presence { process: LAST },
            Question::Object(question),
            Question::Object(nameless),
            Question::Part { job: "j".repeat(NAME_BYTES_MAX) },
        ] {
            assert_eq!(Question::decode(&question.encode()), Ok(question));
        }
    }

    #[test]
    fn senseless_questions_are_refused() {
        let name = Name::new("name").unwrap();
        let good = Question::Publish { process: LAST, context: 9, name }.encode();
        let at = good.len() - 4;
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Question::decode(&bytes)
        };
        assert!(with(at, b'N').is_ok());
        assert!(with(0, b'l').is_err(), "another mark");
        assert!(with(3, 1).is_err(), "another version");
        assert!(with(4, 77).is_err(), "an unknown question");
        assert!(with(at - 1, 0).is_err(), "no name");
        assert!(with(at - 1, 200).is_err(), "a name longer than the message");
        assert!(with(at, 0).is_err(), "a control character");
        assert!(with(at, 0xff).is_err(), "no UTF-8");
        assert!(Question::decode(&good[1..]).is_err(), "shorter");
        let longer = [&good[..at - 1], &[65], &[b'n'; 65]].concat();
        assert!(Question::decode(&longer).is_err(), "a name that is too long");
    }

    #[test]
    fn the_longest_answers_survive_their_encoding() {
        let published = Published { process: LAST, pid: u32::MAX, context: u32::MAX };
        let plain = Answer { verdict: Verdict::NoMemory, joined: LAST, published };
        let [number, bytes] = [u64::MAX; 2];
        let object = Object { number, bytes, words: [u64::MAX; 2], owner: LAST, pid: u32::MAX };
        let about = ObjectAnswer { name: Some(longest()), ..ObjectAnswer::granted(object) };
        for reply in [Reply::Plain(plain), Reply::Object(about)] {
            assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
        let mut unknown = Reply::Plain(Answer::bare(Verdict::Full)).encode();
        unknown[5] = 99;
        assert!(Reply::decode(&unknown).is_err());
    }
}
