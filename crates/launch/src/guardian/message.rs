//! The messages between launcher and guardian, each sent whole, in one piece.

use landeck_memory::Presence;
use landeck_protocols::door::WISH_BYTES_MAX;
use landeck_wire::ControlMessage;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Command, Event};

/// A message of the guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The guardian of a server is there.
    Present {
        /// Its PID.
        pid: u32,
    },
    /// Everything is told again behind this, as [`Command::TellAgain`] with this number has asked.
    Again {
        /// The PID of the guardian.
        pid: u32,
        /// The number.
        asked: u64,
    },
    /// An event of the job. What a process waited in is not written: its page has that.
    Event(Event),
}

impl ControlMessage for Report {
    const NAME: &'static str = "a report of the guardian";
    const BYTES_MAX: usize = WISH_BYTES_MAX + 64;
}

impl ControlMessage for Command {
    const NAME: &'static str = "a command for the guardian";
    const BYTES_MAX: usize = 1024;
}

/// The form of a [`Presence`] in a message: the word that stands in the page.
pub(super) mod presence {
    use super::{Deserialize, Deserializer, Presence, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        presence: &Presence,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(presence.to_bits())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Presence, D::Error> {
        u32::deserialize(deserializer).map(Presence::from_bits)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use landeck_memory::WaitRecord;
    use landeck_protocols::restarts::Restart;

    use super::*;
    use landeck_host::process::{StartError, StartStep};
    use landeck_protocols::door::{StartAnswer, StartRefusal, StartWish};
    use landeck_protocols::membership::Refusal;
    use landeck_wire::{HostNumber, Incarnation, ProcessId, SegmentId, Slot};

    /// A wish that is as long as a question to an agent may be.
    fn longest_wish() -> StartWish {
        let (slot, incarnation) = (Slot(u32::MAX), Incarnation(u32::MAX));
        StartWish {
            asker: ProcessId { segment: SegmentId(u64::MAX), slot, incarnation },
            host: HostNumber::NONE,
            program: vec![b'p'; WISH_BYTES_MAX - 64],
            arguments: Vec::new(),
            variables: Vec::new(),
            directory: None,
            join_ms: u64::MAX,
        }
    }

    #[test]
    fn the_longest_messages_survive_their_encoding() {
        let (slot, rank, pid, at) = (u32::MAX, u32::MAX, u32::MAX, Duration::MAX);
        let again = Some(Restart { number: u32::MAX, after: Duration::MAX });
        let error = StartError { step: StartStep::Execute, errno: i32::MIN };
        let (status, presence, wait) = (i32::MIN, Presence::Aborted(255), WaitRecord::default());
        for report in [
            Report::Present { pid },
            Report::Again { pid, asked: u64::MAX },
            Report::Event(Event::NotStarted { slot, rank, error, again }),
            Report::Event(Event::Ended { slot, pid, status, at, wait, presence, again }),
            Report::Event(Event::NotAdded { rank, why: Refusal::Ending }),
            Report::Event(Event::StartAsked { request: u64::MAX, wish: Box::new(longest_wish()) }),
        ] {
            assert_eq!(Report::decode(&report.encode()), Ok(report));
        }
        let refused = StartAnswer::refused(StartRefusal::Program("p".repeat(9_999)));
        for command in [
            Command::Signal(i32::MIN),
            Command::End { grace: at },
            Command::Kill,
            Command::Release,
            Command::TellAgain { asked: u64::MAX },
            Command::Start { rank },
            Command::AnswerStart { request: u64::MAX, answer: refused },
        ] {
            assert_eq!(Command::decode(&command.encode()), Ok(command));
        }
        assert!(Command::decode(&[77]).is_err() && Report::decode(&[]).is_err());
    }
}
