//! The first 128 bytes that a daemon writes to the port of another daemon.
//!
//! The door speaks first: the listening daemon sends [`CHALLENGE_BYTES`] random bytes on every connection. The
//! connecting daemon answers with a preamble. It names the purpose of the connection, and for a lane both processes. It
//! ends in a code (MAC) over the challenge and everything before it, under a key of the two hosts. So a recorded
//! preamble is worth nothing on another connection.
//!
//! ```text
//!  byte 0       "LDK1"
//!       4       version of the protocol (16 bits) | purpose (16)
//!       8       machine
//!      16       the process that the lane leads to: host (64), slot (32), incarnation (32)
//!      32       the process that the lane comes from, in the same form
//!      48       number of the lane (32) | generation of the key (32)
//!      56       host that it leads to (16) | host that it comes from (16) | flags (32)
//!      64       job
//!      72       zeros
//!      96       the code, 32 bytes
//! ```
//!
//! All numbers are little-endian. The code of a trunk is zero, because TLS follows and proves more.

use crate::identity::{HostNumber, Incarnation, JobId, MachineId, ProcessId, SegmentId, Slot};

/// The length of the random bytes that the listening side sends first.
pub const CHALLENGE_BYTES: usize = 16;
/// The length of a preamble.
pub const PREAMBLE_BYTES: usize = 128;
/// The length of the code at its end.
pub const CODE_BYTES: usize = 32;
/// The version of everything that daemons say to each other.
pub const PROTOCOL_VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"LDK1";
const SIGNED_BYTES: usize = PREAMBLE_BYTES - CODE_BYTES;

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Purpose {
    /// It connects two daemons. TLS follows.
    Trunk = 1,
    /// It connects two processes. Frames follow.
    Lane = 2,
    /// It connects a process to the relay of another host's daemon. Frames for processes of that host follow.
    Relay = 3,
    /// It connects two daemons that measure the link of their hosts. Bytes without a meaning follow.
    Measure = 4,
    /// A gateway is to pass it on to the next host. The challenge of that host follows.
    Pass = 5,
    /// It connects two daemons, for the streams of their processes. Chunks follow ([`crate::tunnel`]).
    Tunnel = 6,
}

/// The content of a preamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The use of the connection.
    pub purpose: Purpose,
    /// The machine of both hosts.
    pub machine: MachineId,
    /// The job of both processes. Zero on a trunk.
    pub job: JobId,
    /// The process that the lane leads to. Zeros on a trunk.
    pub wanted: ProcessId,
    /// The process that the lane comes from. Zeros on a trunk.
    pub own: ProcessId,
    /// The number of the lane, which grows with each lane of a pair. The number of the round if links are measured, and of
    /// the next host if a gateway is called.
    pub lane: u32,
    /// The key of the two hosts under which the code is made.
    pub key_generation: u32,
    /// The host that the connection leads to.
    pub to: HostNumber,
    /// The host that it comes from. [`HostNumber::NONE`] if it has no number yet.
    pub from: HostNumber,
    /// Whether frames are sent in clear.
    pub is_plain: bool,
    /// Whether gateways pass the connection on, so that the other end of its socket is not that of the connection.
    pub is_passed: bool,
}

/// The reason why 128 bytes are no preamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreambleError {
    /// They do not begin as a preamble does: something else talks to this port.
    #[error("a connection does not begin as one of Landeck does: another program uses this port")]
    Stranger,
    /// The other side speaks another version.
    #[error(
        "a daemon speaks version {found} of the protocol and this one version {PROTOCOL_VERSION}: install \
         one release on all hosts"
    )]
    Version {
        /// The version of the other side.
        found: u16,
    },
    /// The purpose is unknown, an unknown flag is set, or bytes that must be zero are not.
    #[error("a preamble has a field that no daemon of this version writes")]
    Field,
}

/// A process of no host, as a trunk names it.
const NOBODY: ProcessId =
    ProcessId { segment: SegmentId(0), slot: Slot(0), incarnation: Incarnation(0) };
const PLAIN: u32 = 1;
const PASSED: u32 = 2;

impl Preamble {
    /// The preamble of a trunk between these hosts.
    #[must_use]
    pub const fn trunk(machine: MachineId, from: HostNumber, to: HostNumber) -> Self {
        let (job, wanted, own) = (JobId(0), NOBODY, NOBODY);
        let purpose = Purpose::Trunk;
        Self {
            purpose,
            machine,
            job,
            wanted,
            own,
            lane: 0,
            key_generation: 0,
            to,
            from,
            is_plain: false,
            is_passed: false,
        }
    }

    /// The preamble by which a host asks a gateway to pass its connection on to the next host.
    #[must_use]
    pub const fn pass(
        machine: MachineId,
        (from, gateway, next): (HostNumber, HostNumber, HostNumber),
        key_generation: u32,
    ) -> Self {
        let lane = next.0 as u32;
        let purpose = Purpose::Pass;
        Self { purpose, lane, key_generation, ..Self::trunk(machine, from, gateway) }
    }

    /// Encodes everything but the code, which stays zero.
    #[must_use]
    pub fn encode(&self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&PROTOCOL_VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&(self.purpose as u16).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.machine.0.to_le_bytes());
        put_process(&mut bytes[16..32], self.wanted);
        put_process(&mut bytes[32..48], self.own);
        bytes[48..52].copy_from_slice(&self.lane.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.key_generation.to_le_bytes());
        bytes[56..58].copy_from_slice(&self.to.0.to_le_bytes());
        bytes[58..60].copy_from_slice(&self.from.0.to_le_bytes());
        let flags = (u32::from(self.is_plain) * PLAIN) | (u32::from(self.is_passed) * PASSED);
        bytes[60..64].copy_from_slice(&flags.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.job.0.to_le_bytes());
        bytes
    }

    /// Decodes a preamble. The code is not checked here: [`signed_part`] and [`code`] give what that needs.
    ///
    /// # Errors
    /// [`PreambleError`].
    pub fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Result<Self, PreambleError> {
        if bytes[..4] != MAGIC {
            return Err(PreambleError::Stranger);
        }
        let version = short(bytes, 4);
        if version != PROTOCOL_VERSION {
            return Err(PreambleError::Version { found: version });
        }
        let purpose = match short(bytes, 6) {
            1 => Purpose::Trunk,
            2 => Purpose::Lane,
            3 => Purpose::Relay,
            4 => Purpose::Measure,
            5 => Purpose::Pass,
            6 => Purpose::Tunnel,
            _ => return Err(PreambleError::Field),
        };
        let flags = word(bytes, 60);
        if flags & !(PLAIN | PASSED) != 0 || bytes[72..SIGNED_BYTES].iter().any(|&byte| byte != 0) {
            return Err(PreambleError::Field);
        }
        Ok(Self {
            purpose,
            machine: MachineId(long(bytes, 8)),
            wanted: process(bytes, 16),
            own: process(bytes, 32),
            lane: word(bytes, 48),
            key_generation: word(bytes, 52),
            to: HostNumber(short(bytes, 56)),
            from: HostNumber(short(bytes, 58)),
            is_plain: flags & PLAIN != 0,
            is_passed: flags & PASSED != 0,
            job: JobId(long(bytes, 64)),
        })
    }
}

/// The part of an encoded preamble that its code covers, behind the challenge.
#[must_use]
pub fn signed_part(bytes: &[u8; PREAMBLE_BYTES]) -> &[u8] {
    &bytes[..SIGNED_BYTES]
}

/// The code at the end of an encoded preamble.
#[must_use]
pub fn code(bytes: &[u8; PREAMBLE_BYTES]) -> [u8; CODE_BYTES] {
    std::array::from_fn(|at| bytes[SIGNED_BYTES + at])
}

/// Writes the code into an encoded preamble.
pub fn set_code(bytes: &mut [u8; PREAMBLE_BYTES], code: &[u8; CODE_BYTES]) {
    bytes[SIGNED_BYTES..].copy_from_slice(code);
}

pub(crate) fn put_process(bytes: &mut [u8], process: ProcessId) {
    bytes[..8].copy_from_slice(&process.segment.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&process.slot.0.to_le_bytes());
    bytes[12..16].copy_from_slice(&process.incarnation.0.to_le_bytes());
}

pub(crate) fn process(bytes: &[u8], at: usize) -> ProcessId {
    ProcessId {
        segment: SegmentId(long(bytes, at)),
        slot: Slot(word(bytes, at + 8)),
        incarnation: Incarnation(word(bytes, at + 12)),
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> Preamble {
        let of = |host| ProcessId {
            segment: SegmentId(host),
            slot: Slot(3),
            incarnation: Incarnation(2),
        };
        Preamble {
            purpose: Purpose::Lane,
            machine: MachineId(0x0102_0304_0506_0708),
            job: JobId(77),
            wanted: of(10),
            own: of(11),
            lane: 5,
            key_generation: 1,
            to: HostNumber(1),
            from: HostNumber(2),
            is_plain: true,
            is_passed: false,
        }
    }

    #[test]
    fn a_preamble_survives_its_encoding() {
        let trunk = Preamble::trunk(MachineId(9), HostNumber::NONE, HostNumber::ARBITER);
        let pass = Preamble::pass(MachineId(9), (HostNumber(1), HostNumber(2), HostNumber(3)), 4);
        let passed = Preamble { is_plain: false, is_passed: true, ..lane() };
        let tunnel = Preamble { purpose: Purpose::Tunnel, ..lane() };
        for preamble in [lane(), passed, trunk, pass, tunnel] {
            let mut bytes = preamble.encode();
            assert_eq!(code(&bytes), [0; CODE_BYTES]);
            set_code(&mut bytes, &[7; CODE_BYTES]);
            assert_eq!(Preamble::decode(&bytes), Ok(preamble));
            assert_eq!((code(&bytes), signed_part(&bytes).len()), ([7; CODE_BYTES], 96));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = lane().encode();
            bytes[at] = byte;
            Preamble::decode(&bytes)
        };
        assert_eq!(changed(0, b'G'), Err(PreambleError::Stranger));
        assert_eq!(changed(4, 9), Err(PreambleError::Version { found: 9 }));
        assert_eq!(changed(6, 7), Err(PreambleError::Field));
        assert_eq!(changed(61, 1), Err(PreambleError::Field));
        assert_eq!(changed(95, 1), Err(PreambleError::Field));
    }
}
