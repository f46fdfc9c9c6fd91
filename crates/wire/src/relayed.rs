//! Relayed frames: messages for a process that the relay of its host lays into its memory.
//!
//! ```text
//!  to the relay    header: Relayed, class, position, length | receiver's slot | receiver's incarnation
//!                  data:   header of the message (16 bytes) | a piece of its data
//!  in the segment  header: Relayed, class, length | place of the source in the far table | source's incarnation
//!                  data:   unchanged
//!  to the process  header: Granted or Received | receiver's slot | receiver's incarnation
//!                  data:   a position (64 bits)
//! ```
//!
//! A frame of a lane is up to 64 KiB long, and travels in pieces of at most [`relayed_piece_bytes`]. The sequence number
//! in the header of the message is the low 16 bits of the piece's place among the ordered ones of one pair in one
//! direction. Positions count these and the urgent messages, which are one piece each, have no place in the order, and
//! may go [`RELAYED_URGENT_MORE`] pieces further. A frame to the relay has the low 16 bits of its position. The source is named by no frame: it is the process to which the
//! connection belongs.
//!
//! A process sends nothing before the relay has answered its [`Header::RELAY_OPEN`]. Before that answer the relay tells
//! the positions of each direction that it knows: how many pieces it has taken over earlier connections of the process,
//! and the grants. The process goes on behind them. A relay that takes nothing of the process any more answers with
//! [`Header::GOODBYE`]. The goodbye of a process is answered when the relay has taken everything that came before.

use crate::header::{Class, HEADER_BYTES, Header, HeaderError, Kind};

/// The most bytes that a relay holds for one receiver, whatever number of processes sends to it.
pub const RELAYED_HELD_BYTES_MAX: u64 = 4 << 20;
/// The longest piece of a message's data.
pub const RELAYED_PIECE_BYTES_MAX: usize = 16 * 1024 - 64;
/// The shortest limit of such a piece, in jobs with very many processes.
const PIECE_BYTES_MIN: u64 = 1024;
/// The most pieces that a process may send to another one ahead of what that one has taken.
const WINDOW_MAX: u64 = 64;
/// The urgent messages that may go beyond the position up to which a process may send.
pub const RELAYED_URGENT_MORE: u64 = 8;

/// The pieces that a process of a job with so many ranks may send to another one ahead of what that one has taken.
#[must_use]
pub const fn relayed_window(ranks: u32) -> u64 {
    let share = RELAYED_HELD_BYTES_MAX / RELAYED_PIECE_BYTES_MAX as u64 / at_least_one(ranks);
    match share {
        0 => 1,
        WINDOW_MAX.. => WINDOW_MAX,
        share => share,
    }
}

/// The longest piece in a job with so many ranks.
#[must_use]
pub const fn relayed_piece_bytes(ranks: u32) -> usize {
    let share = RELAYED_HELD_BYTES_MAX / at_least_one(ranks) / relayed_window(ranks);
    if share < PIECE_BYTES_MIN {
        PIECE_BYTES_MIN as usize
    } else if share > RELAYED_PIECE_BYTES_MAX as u64 {
        RELAYED_PIECE_BYTES_MAX
    } else {
        share as usize
    }
}

const fn at_least_one(ranks: u32) -> u64 {
    if ranks == 0 { 1 } else { ranks as u64 }
}

/// A piece of a message, as it is in the data of a relayed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayedPiece<'a> {
    /// The header of the message, with the length of all its data.
    pub message: Header,
    /// The piece of the data.
    pub data: &'a [u8],
}

/// The reason why a frame is none that a process sends over a relay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayedError {
    /// The frame has no whole header of a message.
    #[error("a relayed frame of {0} bytes has no message in it: its sender is broken")]
    Short(usize),
    /// The header of the message cannot be.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// No process sends a message of this kind over a relay, or not in this form.
    #[error("a relayed frame has a message of a form that no process sends: its sender is broken")]
    Form,
    /// A piece, or an urgent message, is too long.
    #[error("a relayed piece has {0} bytes, which is more than its sender may send at once")]
    TooLong(usize),
}

impl<'a> RelayedPiece<'a> {
    /// The header of the frame that carries a piece with so many bytes of data, for or from the process that `context`
    /// and `tag` name.
    #[must_use]
    pub const fn frame(class: Class, data_bytes: usize, (context, tag): (u32, u32)) -> Header {
        let length = (HEADER_BYTES + data_bytes) as u32;
        Header { class, ..Header::user(Kind::Relayed, length, context, tag) }
    }

    /// Decodes the data of a relayed frame, whose pieces have at most `piece_max` bytes.
    ///
    /// # Errors
    /// [`RelayedError`]: no process sends such a frame.
    pub fn decode(frame: &Header, data: &'a [u8], piece_max: usize) -> Result<Self, RelayedError> {
        let (head, data) =
            data.split_first_chunk::<HEADER_BYTES>().ok_or(RelayedError::Short(data.len()))?;
        Ok(Self { message: message_of(frame, head, data.len(), piece_max)?, data })
    }
}

/// The header of the message of which a relayed frame brings a piece with so many bytes, at most `piece_max`.
///
/// # Errors
/// [`RelayedError`]: no process sends such a frame.
pub fn message_of(
    frame: &Header,
    head: &[u8; HEADER_BYTES],
    piece_bytes: usize,
    piece_max: usize,
) -> Result<Header, RelayedError> {
    const URGENT_BYTES_MAX: usize = 48;
    let message = Header::decode(head)?;
    let is_urgent = frame.class == Class::Urgent;
    if piece_bytes > piece_max || is_urgent && piece_bytes > URGENT_BYTES_MAX {
        return Err(RelayedError::TooLong(piece_bytes));
    }
    let bytes = message.length as usize;
    let is_possible = if is_urgent { bytes == piece_bytes } else { bytes >= piece_bytes };
    if frame.kind != Kind::Relayed || message.class != frame.class || !is_possible {
        return Err(RelayedError::Form);
    }
    if message.kind.is_of_channels() { Err(RelayedError::Form) } else { Ok(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_has_four_mebibytes_whatever_number_sends() {
        for ranks in [0, 1, 2, 4, 64, 255, 256, 257, 1_000, 4_096] {
            let bytes = relayed_window(ranks) * relayed_piece_bytes(ranks) as u64;
            assert!(bytes * u64::from(ranks) <= RELAYED_HELD_BYTES_MAX, "{ranks} ranks");
            assert!(bytes >= 1024, "{ranks} ranks");
        }
        assert_eq!((relayed_window(4), relayed_piece_bytes(4)), (64, RELAYED_PIECE_BYTES_MAX));
        assert_eq!((relayed_window(1 << 20), relayed_piece_bytes(1 << 20)), (1, 1024));
    }

    fn encoded(message: &Header, data: &[u8]) -> (Header, Vec<u8>) {
        let frame = RelayedPiece::frame(message.class, data.len(), (3, 4));
        (frame, [&message.encode()[..], data].concat())
    }

    #[test]
    fn pieces_survive_their_encoding() {
        let message = Header { sequence: 9, ..Header::user(Kind::Eager, 70_000, 5, 6) };
        let (frame, bytes) = encoded(&message, &[7; 1_000]);
        assert_eq!((frame.length as usize, frame.context, frame.tag), (bytes.len(), 3, 4));
        let piece = RelayedPiece::decode(&frame, &bytes, 1_000).expect("a piece");
        assert_eq!((piece.message, piece.data), (message, &[7; 1_000][..]));
    }

    #[test]
    fn a_relayed_piece_that_no_process_sends_is_refused() {
        let message = Header::user(Kind::Eager, 10, 5, 6);
        let (frame, bytes) = encoded(&message, &[7; 10]);
        let decode = |frame: &Header, bytes: &[u8]| RelayedPiece::decode(frame, bytes, 64).err();
        assert_eq!(decode(&frame, &bytes), None);
        assert_eq!(decode(&frame, &bytes[..15]), Some(RelayedError::Short(15)));
        assert_eq!(decode(&frame, &[&bytes[..], &[0]].concat()), Some(RelayedError::Form));
        let urgent = Header { class: Class::Urgent, ..frame };
        assert_eq!(decode(&urgent, &bytes), Some(RelayedError::Form), "another class within");
        let (frame, bytes) = encoded(&Header { length: 65, ..message }, &[7; 65]);
        assert_eq!(decode(&frame, &bytes), Some(RelayedError::TooLong(65)));
        let message = Header { class: Class::Urgent, ..message };
        let (frame, bytes) = encoded(&Header { length: 49, ..message }, &[7; 49]);
        assert_eq!(decode(&frame, &bytes), Some(RelayedError::TooLong(49)));
        let (frame, bytes) = encoded(&message, &[7; 9]);
        assert_eq!(decode(&frame, &bytes), Some(RelayedError::Form), "half an urgent message");
        for kind in [Kind::Goodbye, Kind::RelayPut, Kind::Relayed, Kind::RingOpen, Kind::Granted] {
            let (frame, bytes) = encoded(&Header::user(kind, 10, 5, 6), &[7; 10]);
            assert_eq!(decode(&frame, &bytes), Some(RelayedError::Form), "{kind:?}");
        }
        let (frame, mut bytes) = encoded(&Header::user(Kind::Eager, 10, 5, 6), &[7; 10]);
        bytes[2] = 0x3f;
        assert_eq!(decode(&frame, &bytes), Some(HeaderError::UnknownKind(0x3f).into()));
    }
}
