//! Chunks: the bytes of many streams on the one connection of two daemons, which is called a tunnel.
//!
//! ```text
//!  byte 0   number of the stream (32 bits)
//!       4   kind (16) | zeros (16)
//!       8   length (32)
//!
//!  Open     a preamble follows, whose purpose is a relay: its code covers a challenge for this stream alone
//!  Data     so many bytes of the stream follow
//!  Taken    the other side may send so many bytes more; the first one says that the stream is accepted
//!  Close    nothing more of the stream comes from this side. Both sides say so once
//! ```
//!
//! All numbers are little-endian. The host with the lower number opens streams with odd numbers, the other one such with
//! even ones, and each number is higher than that before. A stream begins with a window of [`WINDOW_BYTES`] towards the side
//! that has opened it, and with none the other way.

use crate::preamble::PREAMBLE_BYTES;

/// The bytes of a stream that may be on their way, or wait for their receiver.
pub const WINDOW_BYTES: u32 = 1 << 20;
/// The most data of a chunk.
pub const CHUNK_BYTES_MAX: u32 = 64 << 10;
/// The length of a chunk's head.
pub const CHUNK_HEAD_BYTES: usize = 12;

const GATHERED_BYTES: usize = CHUNK_HEAD_BYTES + PREAMBLE_BYTES;

/// The kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ChunkKind {
    /// A stream begins.
    Open = 1,
    /// Bytes of a stream.
    Data = 2,
    /// Bytes were taken.
    Taken = 3,
    /// A stream ends.
    Close = 4,
}

/// The head of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    /// The stream.
    pub stream: u32,
    /// The kind.
    pub kind: ChunkKind,
    /// The bytes that follow, or that were taken.
    pub length: u32,
}

/// The reason why bytes are no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The kind is unknown, or bytes that must be zero are not.
    #[error("its chunks have a kind that no daemon sends")]
    Kind,
    /// The length is not one of this kind.
    #[error("its chunks have a length that no daemon sends")]
    Length,
}

/// A chunk, or a piece of the data of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelChunk<'a> {
    /// A stream begins with this preamble.
    Open(u32, [u8; PREAMBLE_BYTES]),
    /// Bytes of a stream.
    Data(u32, &'a [u8]),
    /// So many bytes of a stream were taken.
    Taken(u32, u32),
    /// A stream ends.
    Close(u32),
}

impl ChunkHead {
    /// Encodes the head.
    #[must_use]
    pub fn encode(&self) -> [u8; CHUNK_HEAD_BYTES] {
        let mut bytes = [0; CHUNK_HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.stream.to_le_bytes());
        bytes[4..6].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Decodes a head.
    ///
    /// # Errors
    /// [`ChunkError`].
    pub fn decode(bytes: &[u8; CHUNK_HEAD_BYTES]) -> Result<Self, ChunkError> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (stream, length) = (word(0), word(8));
        let (kind, least, most) = match word(4) {
            1 => (ChunkKind::Open, PREAMBLE_BYTES as u32, PREAMBLE_BYTES as u32),
            2 => (ChunkKind::Data, 1, CHUNK_BYTES_MAX),
            3 => (ChunkKind::Taken, 1, WINDOW_BYTES),
            4 => (ChunkKind::Close, 0, 0),
            _ => return Err(ChunkError::Kind),
        };
        if !(least..=most).contains(&length) {
            return Err(ChunkError::Length);
        }
        Ok(Self { stream, kind, length })
    }
}

/// Finds chunks in bytes that come in pieces of any length.
#[derive(Clone, Debug)]
pub struct ChunkReader {
    /// A head, and a preamble behind it, as far as they have come.
    gathered: [u8; GATHERED_BYTES],
    filled: usize,
    /// The stream whose data come next, and their number.
    data: Option<(u32, u32)>,
}

impl Default for ChunkReader {
    fn default() -> Self {
        Self { gathered: [0; GATHERED_BYTES], filled: 0, data: None }
    }
}

impl ChunkReader {
    /// Takes the next chunk, or a piece of its data, from the begin of `bytes`. `None` if they are used up.
    ///
    /// # Errors
    /// [`ChunkError`]; nothing behind it is valid.
    pub fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<TunnelChunk<'a>>, ChunkError> {
        loop {
            if let Some((stream, left)) = self.data {
                let (now, rest) = bytes.split_at(bytes.len().min(left as usize));
                *bytes = rest;
                let left = left - now.len() as u32;
                self.data = (left > 0).then_some((stream, left));
                return Ok((!now.is_empty()).then_some(TunnelChunk::Data(stream, now)));
            }
            if !self.gather(bytes, CHUNK_HEAD_BYTES) {
                return Ok(None);
            }
            let Some((head, rest)) = self.gathered.split_first_chunk() else { return Ok(None) };
            let ChunkHead { stream, kind, length } = ChunkHead::decode(head)?;
            let chunk = match kind {
                ChunkKind::Data => None,
                ChunkKind::Taken => Some(TunnelChunk::Taken(stream, length)),
                ChunkKind::Close => Some(TunnelChunk::Close(stream)),
                ChunkKind::Open => {
                    let preamble = *rest.first_chunk().unwrap_or(&[0; PREAMBLE_BYTES]);
                    if self.filled < GATHERED_BYTES {
                        if self.gather(bytes, GATHERED_BYTES) {
                            continue;
                        }
                        return Ok(None);
                    }
                    Some(TunnelChunk::Open(stream, preamble))
                }
            };
            self.filled = 0;
            self.data = chunk.is_none().then_some((stream, length));
            if chunk.is_some() {
                return Ok(chunk);
            }
        }
    }

    /// Gathers up to so many bytes; whether they are there.
    fn gather(&mut self, bytes: &mut &[u8], wanted: usize) -> bool {
        let (now, rest) = bytes.split_at(bytes.len().min(wanted.saturating_sub(self.filled)));
        self.gathered[self.filled..self.filled + now.len()].copy_from_slice(now);
        self.filled += now.len();
        *bytes = rest;
        self.filled >= wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(stream: u32, kind: ChunkKind, length: u32) -> [u8; CHUNK_HEAD_BYTES] {
        ChunkHead { stream, kind, length }.encode()
    }

    #[test]
    fn chunks_come_out_whatever_the_pieces() {
        let preamble = std::array::from_fn(|at| at as u8);
        let data: Vec<u8> = (0..300).map(|at| at as u8).collect();
        let bytes = [
            &head(1, ChunkKind::Open, 128)[..],
            &preamble,
            &head(7, ChunkKind::Data, 300),
            &data,
            &head(9, ChunkKind::Taken, WINDOW_BYTES),
            &head(9, ChunkKind::Close, 0),
            &head(7, ChunkKind::Data, 1),
            &[5],
        ]
        .concat();
        for most in [1, 2, 11, 12, 13, 139, 140, 141, bytes.len()] {
            let (mut reader, mut joined, mut others) =
                (ChunkReader::default(), Vec::new(), Vec::new());
            for mut piece in bytes.chunks(most) {
                while let Some(chunk) = reader.next(&mut piece).unwrap() {
                    match chunk {
                        TunnelChunk::Data(7, bytes) => joined.extend_from_slice(bytes),
                        other => others.push((joined.len(), format!("{other:?}"))),
                    }
                }
                assert!(piece.is_empty());
            }
            assert!(joined[..300] == data && joined[300..] == [5], "{most}");
            let expected = [
                (0, TunnelChunk::Open(1, preamble)),
                (300, TunnelChunk::Taken(9, WINDOW_BYTES)),
                (300, TunnelChunk::Close(9)),
            ];
            assert_eq!(others, expected.map(|(at, chunk)| (at, format!("{chunk:?}"))), "{most}");
        }
    }

    #[test]
    fn a_chunk_that_no_daemon_sends_is_refused() {
        use ChunkKind::{Close, Data, Open, Taken};
        let refused = |bytes: [u8; CHUNK_HEAD_BYTES]| {
            ChunkReader::default().next(&mut &bytes[..]).unwrap_err()
        };
        for (kind, length) in [
            (Open, 127),
            (Open, 129),
            (Data, 0),
            (Data, CHUNK_BYTES_MAX + 1),
            (Taken, 0),
            (Taken, WINDOW_BYTES + 1),
            (Close, 1),
        ] {
            assert_eq!(refused(head(1, kind, length)), ChunkError::Length, "{kind:?} {length}");
        }
        for (at, byte) in [(4, 0), (4, 5), (5, 1), (6, 1), (7, 1)] {
            let mut bytes = head(1, Close, 0);
            bytes[at] = byte;
            assert_eq!(refused(bytes), ChunkError::Kind, "{at}");
        }
    }
}
