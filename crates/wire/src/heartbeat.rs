//! The heartbeat: a datagram between the arbiter and another host.
//!
//! ```text
//!  byte 0    "LDKh" | host that it comes from (16 bits) | host that it leads to (16)
//!       8    number, which is also the nonce
//!      16    sealed: echo (64) | incarnation of the sender (64) | last word applied (64) | boot identity (128)
//!      56    the tag of the seal, 16 bytes
//! ```
//!
//! The first sixteen bytes are in clear and authenticated. A heartbeat's number is never used twice under one key.

use crate::identity::{HostIncarnation, HostNumber};
use crate::preamble::long;

/// The length of the clear part.
pub const CLEAR_BYTES: usize = 16;
/// The length of the sealed part, without its tag.
pub const SEALED_BYTES: usize = 40;
/// The length of a datagram.
pub const DATAGRAM_BYTES: usize = CLEAR_BYTES + SEALED_BYTES + 16;

const MAGIC: [u8; 4] = *b"LDKh";

/// The clear part of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The host that it comes from.
    pub from: HostNumber,
    /// The host that it leads to.
    pub to: HostNumber,
    /// Its number, which grows by one with each heartbeat of a sender to a receiver, beginning with 1.
    pub number: u64,
}

/// The sealed part of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The number of the last heartbeat that came from the other side; 0 if none has come.
    pub echo: u64,
    /// The incarnation of the sender's daemon.
    pub incarnation: HostIncarnation,
    /// The number of the last word that the sender has applied, or has given if it is the arbiter.
    pub word: u64,
    /// The kernel's boot identity on the sender's host.
    pub boot: u128,
}

impl Envelope {
    /// Encodes the clear part.
    #[must_use]
    pub fn encode(&self) -> [u8; CLEAR_BYTES] {
        let mut bytes = [0; CLEAR_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.to.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// Decodes the clear part of a datagram; `None` if it is no heartbeat.
    #[must_use]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let is_one = datagram.len() == DATAGRAM_BYTES && datagram[..4] == MAGIC;
        let host = |at: usize| HostNumber(u16::from_le_bytes([datagram[at], datagram[at + 1]]));
        is_one.then(|| Self { from: host(4), to: host(6), number: long(datagram, 8) })
    }
}

impl Heartbeat {
    /// Encodes the part that is sealed.
    #[must_use]
    pub fn encode(&self) -> [u8; SEALED_BYTES] {
        let mut bytes = [0; SEALED_BYTES];
        bytes[..8].copy_from_slice(&self.echo.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.incarnation.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.word.to_le_bytes());
        bytes[24..].copy_from_slice(&self.boot.to_le_bytes());
        bytes
    }

    /// Decodes the part that was sealed.
    #[must_use]
    pub fn decode(bytes: &[u8; SEALED_BYTES]) -> Self {
        Self {
            echo: long(bytes, 0),
            incarnation: HostIncarnation(long(bytes, 8)),
            word: long(bytes, 16),
            boot: u128::from(long(bytes, 24)) | u128::from(long(bytes, 32)) << 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_survives_its_encoding() {
        let clear = Envelope { from: HostNumber(2), to: HostNumber::ARBITER, number: 1 << 40 };
        let beat = Heartbeat {
            echo: 9,
            incarnation: HostIncarnation(77),
            word: 1 << 33,
            boot: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
        };
        let datagram = [&clear.encode()[..], &beat.encode(), &[0; 16]].concat();
        assert_eq!(Envelope::decode(&datagram), Some(clear));
        assert_eq!(Heartbeat::decode(&beat.encode()), beat);
        assert_eq!(Envelope::decode(&datagram[1..]), None);
        assert_eq!(Envelope::decode(&[0; DATAGRAM_BYTES]), None);
    }
}
