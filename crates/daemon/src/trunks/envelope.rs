//! The envelope around everything that travels through a trunk.
//!
//! ```text
//!  byte 0   source (16 bits) | destination (16)
//!       4   class (8) | hops (8) | zeros (16)
//!       8   length of the content (32)
//! ```
//!
//! All numbers are little-endian. The content of the classes that must not be lost begins with their number in the
//! stream of the two daemons that the trunk connects ([`landeck_channel::pair`]).

use landeck_wire::HostNumber;
use serde::{Deserialize, Serialize};

/// The length of an envelope without its content.
pub(crate) const ENVELOPE_BYTES: usize = 12;
/// The longest content.
pub(crate) const CONTENT_BYTES_MAX: usize = 16 << 20;
/// The largest number of relays that an envelope passes.
pub(crate) const HOPS_MAX: u8 = 8;

/// The kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum EnvelopeClass {
    /// Bytes that show that long packets pass; an empty content confirms them.
    Probe = 1,
    /// The state of both streams, first of all that follows the probe, and a receipt later.
    Receipt = 2,
    /// A message between two daemons. Numbered.
    Daemon = 3,
    /// A message of a job. Numbered.
    Job = 4,
    /// Output or input of a job. Numbered in a stream of its own.
    Bulk = 5,
    /// A heartbeat, where datagrams do not pass.
    Heartbeat = 6,
}

/// The bytes in front of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The host that the content comes from.
    pub(crate) source: HostNumber,
    /// The host that it leads to.
    pub(crate) destination: HostNumber,
    /// The kind of content.
    pub(crate) class: EnvelopeClass,
    /// The number of relays that it has passed.
    pub(crate) hops: u8,
    /// The length of the content.
    pub(crate) length: u32,
}

/// The reason why bytes are no envelope. It ends the trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    /// The class is unknown, or bytes that must be zero are not.
    #[error("an envelope has a field that no daemon of this version writes")]
    Field,
    /// The content is too long.
    #[error("an envelope announces {length} bytes, and at most {CONTENT_BYTES_MAX} may follow")]
    Length {
        /// The announced length.
        length: u32,
    },
    /// It has passed too many relays.
    #[error("an envelope has passed {hops} relays, and at most {HOPS_MAX} are allowed")]
    Hops {
        /// The relays passed.
        hops: u8,
    },
}

impl Envelope {
    /// Encodes the envelope.
    pub(crate) fn encode(&self) -> [u8; ENVELOPE_BYTES] {
        let mut bytes = [0; ENVELOPE_BYTES];
        bytes[..2].copy_from_slice(&self.source.0.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.destination.0.to_le_bytes());
        bytes[4] = self.class as u8;
        bytes[5] = self.hops;
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Decodes an envelope.
    ///
    /// # Errors
    /// [`EnvelopeError`].
    pub(crate) fn decode(bytes: &[u8; ENVELOPE_BYTES]) -> Result<Self, EnvelopeError> {
        let host = |at: usize| HostNumber(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let class = match bytes[4] {
            1 => EnvelopeClass::Probe,
            2 => EnvelopeClass::Receipt,
            3 => EnvelopeClass::Daemon,
            4 => EnvelopeClass::Job,
            5 => EnvelopeClass::Bulk,
            6 => EnvelopeClass::Heartbeat,
            _ => return Err(EnvelopeError::Field),
        };
        if bytes[6..8] != [0, 0] {
            return Err(EnvelopeError::Field);
        }
        let hops = bytes[5];
        if hops > HOPS_MAX {
            return Err(EnvelopeError::Hops { hops });
        }
        let length = u32::from_le_bytes(std::array::from_fn(|byte| bytes[8 + byte]));
        if length as usize > CONTENT_BYTES_MAX {
            return Err(EnvelopeError::Length { length });
        }
        Ok(Self { source: host(0), destination: host(2), class, hops, length })
    }
}

/// Cuts a stream of bytes into envelopes.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    bytes: Vec<u8>,
    /// The first byte that was not yet cut off.
    at: usize,
}

impl Splitter {
    /// Adds bytes that have come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 && self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole envelope with its content, if it has come.
    ///
    /// # Errors
    /// [`EnvelopeError`].
    pub(crate) fn next(&mut self) -> Result<Option<(Envelope, Vec<u8>)>, EnvelopeError> {
        let Some(head) = self.bytes[self.at..].first_chunk::<ENVELOPE_BYTES>() else {
            self.forget();
            return Ok(None);
        };
        let envelope = Envelope::decode(head)?;
        let from = self.at + ENVELOPE_BYTES;
        let Some(content) = self.bytes.get(from..from + envelope.length as usize) else {
            self.forget();
            return Ok(None);
        };
        let content = content.to_vec();
        self.at = from + content.len();
        Ok(Some((envelope, content)))
    }

    /// Gives back the room of what was cut off.
    fn forget(&mut self) {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(length: u32) -> Envelope {
        let (source, destination) = (HostNumber(3), HostNumber(0x0102));
        Envelope { source, destination, class: EnvelopeClass::Bulk, hops: 1, length }
    }

    #[test]
    fn an_envelope_survives_its_encoding() {
        assert_eq!(Envelope::decode(&envelope(77).encode()), Ok(envelope(77)));
    }

    #[test]
    fn other_bytes_are_refused() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = envelope(7).encode();
            bytes[at] = byte;
            Envelope::decode(&bytes)
        };
        assert_eq!(changed(4, 0), Err(EnvelopeError::Field));
        assert_eq!(changed(4, 7), Err(EnvelopeError::Field));
        assert_eq!(changed(7, 1), Err(EnvelopeError::Field));
        assert_eq!(changed(5, 9), Err(EnvelopeError::Hops { hops: 9 }));
        assert!(matches!(changed(11, 1), Err(EnvelopeError::Length { .. })));
    }

    #[test]
    fn a_stream_is_cut_wherever_its_bytes_come_apart() {
        let contents = [&b""[..], b"a", b"several bytes"];
        let whole: Vec<u8> = contents
            .iter()
            .flat_map(|content| [&envelope(content.len() as u32).encode()[..], content].concat())
            .collect();
        for step in 1..whole.len() {
            let (mut splitter, mut found) = (Splitter::default(), Vec::new());
            for piece in whole.chunks(step) {
                splitter.push(piece);
                while let Some((_, content)) = splitter.next().unwrap() {
                    found.push(content);
                }
            }
            assert_eq!(found, contents, "in pieces of {step} bytes");
        }
    }
}
