//! The messages between launcher and guardian, each sent whole, in one piece.

use std::time::Duration;

use landeck_groups::restarts::Restart;

use super::Command;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message {
    pub(super) kind: u32,
    pub(super) slot: u32,
    pub(super) number: i32,
    pub(super) detail: u32,
    pub(super) time_ns: u64,
    /// The number of the restart that this process is or will be; 0 for none.
    pub(super) restart: u32,
    /// The time until that restart.
    pub(super) delay_ms: u32,
}

impl Message {
    pub(super) const BYTES: usize = 32;
    pub(super) const STARTED: u32 = 1;
    pub(super) const NOT_STARTED: u32 = 2;
    pub(super) const ENDED: u32 = 3;
    pub(super) const STOPPED: u32 = 4;
    pub(super) const CONTINUED: u32 = 5;
    pub(super) const ALL_ENDED: u32 = 6;
    pub(super) const SIGNAL: u32 = 7;
    pub(super) const END: u32 = 8;
    pub(super) const KILL: u32 = 9;
    pub(super) const GUEST_ABORTED: u32 = 10;
    /// The guardian of a server is there; the number is its PID.
    pub(super) const PRESENT: u32 = 11;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.slot.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.detail.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.restart.to_le_bytes());
        bytes[28..].copy_from_slice(&self.delay_ms.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            kind: word(0),
            slot: word(4),
            number: word(8).cast_signed(),
            detail: word(12),
            time_ns: u64::from(word(16)) | u64::from(word(20)) << 32,
            restart: word(24),
            delay_ms: word(28),
        }
    }

    /// Adds the restart that follows.
    pub(super) fn followed_by(self, again: Option<Restart>) -> Self {
        let Some(Restart { number, after }) = again else { return self };
        let delay_ms = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
        Self { restart: number, delay_ms, ..self }
    }

    /// The restart that follows, if any.
    pub(super) fn again(&self) -> Option<Restart> {
        let after = Duration::from_millis(u64::from(self.delay_ms));
        (self.restart > 0).then_some(Restart { number: self.restart, after })
    }
}

impl From<Command> for Message {
    fn from(command: Command) -> Self {
        match command {
            Command::Signal(number) => Self { kind: Self::SIGNAL, number, ..Self::default() },
            Command::End { grace } => {
                let time_ns = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX / 2);
                Self { kind: Self::END, time_ns, ..Self::default() }
            }
            Command::Kill => Self { kind: Self::KILL, ..Self::default() },
        }
    }
}
