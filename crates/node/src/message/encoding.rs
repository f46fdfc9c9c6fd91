//! The wire format of messages.
//!
//! Elements of one kind are sent as they are: the tag names the kind. Any other message is written
//! piece by piece, each after a header, at multiples of eight bytes:
//!
//! | bytes of a header | |
//! |---|---|
//! | 0 | form: 1 elements, 2 items, 3 text, 4 address of a mailbox |
//! | 2..4 | the kind of elements |
//! | 8..16 | bytes of the piece |
//! | 16..24 | the fingerprint of items |

use std::sync::Arc;

use landeck_layout::Kind;
use landeck_memory::{Bytes, NoMemory, room};

use super::piece::{Form, Memory, Piece, Storage};
use super::{Message, Result};
use crate::message::mailbox_address::MailboxAddress;
use crate::message::typed::{Typed, code_of, kind_of};

/// The tag of a message whose pieces have headers.
pub(super) const ENCODED: u32 = 0;
/// The tag of elements of one kind, with the code of the kind in its low bits.
const ELEMENTS: u32 = 1 << 16;

pub(super) const HEADER_BYTES: usize = 24;
pub(super) const GRAIN: usize = 8;

const OF_ELEMENTS: u8 = 1;
const OF_ITEMS: u8 = 2;
const OF_TEXT: u8 = 3;
const OF_MAILBOX: u8 = 4;

/// The tag of a message that consists of values of this type only.
pub(crate) const fn tag_of_values<T: Typed>() -> u32 {
    const { assert!(size_of::<T>() < 256) };
    tag_of_kind(T::KIND)
}

pub(crate) const fn tag_of_kind(kind: Kind) -> u32 {
    ELEMENTS | code_of(kind) as u32
}

impl Message {
    /// Returns the tag with which the message is sent, and its bytes. The bytes are written to
    /// `scratch`, unless they lie in one piece already.
    ///
    /// # Errors
    /// [`MessageError::NoMemory`](super::MessageError::NoMemory).
    #[inline]
    pub(crate) fn outgoing<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Result<(u32, Bytes<'a>)> {
        if let Some(outgoing) = self.outgoing_piece() {
            return Ok(outgoing);
        }
        self.encode(scratch)?;
        Ok((ENCODED, Bytes::from(&scratch[..])))
    }

    /// Returns the tag and the bytes of a message that lies in one piece as it is sent; `None` for
    /// any other message.
    #[inline]
    pub(crate) fn outgoing_piece(&self) -> Option<(u32, Bytes<'_>)> {
        match self.pieces[..] {
            [piece] => match piece.form {
                Form::Elements(kind) => Some((tag_of_kind(kind), self.bytes_of(&piece))),
                _ => None,
            },
            _ => None,
        }
    }

    #[inline(never)]
    fn encode(&self, scratch: &mut Vec<u8>) -> std::result::Result<(), NoMemory> {
        scratch.clear();
        let of = |piece: &Piece| HEADER_BYTES + piece.length.next_multiple_of(GRAIN);
        room::grow(scratch, self.pieces.iter().map(of).sum())?;
        for piece in &self.pieces {
            scratch.extend_from_slice(&header_of(piece));
            self.bytes_of(piece).append_to(scratch);
            scratch.resize(scratch.len().next_multiple_of(GRAIN), 0);
        }
        Ok(())
    }

    /// Replaces the content of the message by a received message.
    ///
    /// # Errors
    /// [`MessageError::NotAMessage`](super::MessageError::NotAMessage); nothing is in the message then.
    pub(crate) fn receive(&mut self, tag: u32, storage: Storage) -> Result<()> {
        self.receive_in(tag, Memory::Shared(Arc::new(storage)), |bytes| bytes)
    }

    /// Replaces the content of the message by a message that was received as bytes of this process.
    ///
    /// # Errors
    /// As [`Message::receive`].
    pub(crate) fn receive_own(&mut self, tag: u32, bytes: Vec<u8>) -> Result<()> {
        let length = bytes.len();
        self.receive_part(tag, bytes, 0, length)
    }
}

pub(super) fn header_of(piece: &Piece) -> [u8; HEADER_BYTES] {
    let (form, code, fingerprint) = match piece.form {
        Form::Elements(kind) => (OF_ELEMENTS, code_of(kind), 0),
        Form::Items(fingerprint) => (OF_ITEMS, 0, fingerprint),
        Form::Text => (OF_TEXT, 0, 0),
        Form::Mailbox => (OF_MAILBOX, 0, 0),
    };
    let mut header = [0; HEADER_BYTES];
    header[0] = form;
    header[2..4].copy_from_slice(&code.to_le_bytes());
    header[8..16].copy_from_slice(&(piece.length as u64).to_le_bytes());
    header[16..].copy_from_slice(&fingerprint.to_le_bytes());
    header
}

/// Returns the pieces that were received with a tag.
#[inline]
pub(super) fn decoded(
    tag: u32,
    data: Bytes<'_>,
    pieces: &mut Vec<Piece>,
) -> std::result::Result<(), &'static str> {
    if tag == ENCODED { decode(data, pieces) } else { elements(tag, data, pieces) }
}

/// The kind that the tag of elements names.
#[inline]
pub(super) fn kind_of_tag(tag: u32) -> Option<Kind> {
    (tag & !0xffff == ELEMENTS).then(|| kind_of(tag as u16)).flatten()
}

/// Elements of the kind that a tag names.
#[inline]
fn elements(
    tag: u32,
    data: Bytes<'_>,
    pieces: &mut Vec<Piece>,
) -> std::result::Result<(), &'static str> {
    let kind = kind_of_tag(tag).ok_or("its tag names no kind of element")?;
    let length = data.len();
    if !length.is_multiple_of(kind.size_bytes() as usize) {
        return Err("it is no whole number of elements");
    }
    if length > 0 {
        pieces.push(Piece { memory: 0, start: 0, length, form: Form::Elements(kind) });
    }
    Ok(())
}

/// Returns the pieces in the order in which they lie. Each header is read once, and checked.
fn decode(data: Bytes<'_>, pieces: &mut Vec<Piece>) -> std::result::Result<(), &'static str> {
    let mut at = 0;
    while at < data.len() {
        let mut header = [0; HEADER_BYTES];
        if data.part(at, HEADER_BYTES).copy_to_slice(&mut header) < HEADER_BYTES {
            return Err("it ends within a header");
        }
        at += HEADER_BYTES;
        let length = usize::try_from(number(&header, 8)).map_err(|_| "a piece is too long")?;
        if length > data.len() - at {
            return Err("a piece is longer than the message");
        }
        let form = form_of(&header, length)?;
        pieces.push(Piece { memory: 0, start: at, length, form });
        at += length.next_multiple_of(GRAIN);
    }
    Ok(())
}

fn form_of(header: &[u8; HEADER_BYTES], length: usize) -> std::result::Result<Form, &'static str> {
    match header[0] {
        OF_ELEMENTS => {
            let kind = kind_of(u16::from_le_bytes([header[2], header[3]]));
            let kind = kind.ok_or("a piece is of no kind of element")?;
            let is_whole = length.is_multiple_of(kind.size_bytes() as usize);
            is_whole.then_some(Form::Elements(kind)).ok_or("a piece is no whole number of elements")
        }
        OF_ITEMS => Ok(Form::Items(number(header, 16))),
        OF_TEXT => Ok(Form::Text),
        OF_MAILBOX if length == 8 * MailboxAddress::WORDS => Ok(Form::Mailbox),
        OF_MAILBOX => Err("an address has another length"),
        _ => Err("a piece has no form"),
    }
}

fn number(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::super::MessageError;
    use super::*;

    fn travel(message: &Message) -> Message {
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch).unwrap();
        let mut arrived = Message::new();
        arrived.receive_own(tag, bytes.to_vec()).unwrap();
        arrived
    }

    #[test]
    fn messages_arrive_as_they_were_packed() {
        let mut message = Message::new();
        message.pack(&[1u8, 2, 3]).pack_text("ü").pack(&[4.5f32]);
        message.join(&message.clone().part(0..3).unwrap());
        let mut arrived = travel(&message);
        assert_eq!(arrived.len(), message.len());
        assert_eq!(arrived.unpack_all::<u8>(), [1, 2, 3]);
        assert_eq!(arrived.unpack_text().unwrap(), "ü");
        assert_eq!(arrived.unpack_value::<f32>().unwrap(), 4.5);
        assert_eq!(arrived.unpack_all::<u8>(), [1, 2, 3]);
        assert!(arrived.is_unpacked());
        assert!(travel(&Message::new()).is_empty());
    }

    #[test]
    fn elements_of_one_kind_travel_bare() {
        let mut message = Message::new();
        message.pack(&[1u64]);
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch).unwrap();
        assert_eq!((tag, bytes.len()), (tag_of_values::<u64>(), 8));
        assert_eq!(tag, tag_of_kind(u64::KIND));
        assert_eq!(travel(&message).unpack_value::<u64>().unwrap(), 1);
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let mut message = Message::new();
        message.pack_text("abc").pack(&[1u32]);
        let mut good = Vec::new();
        message.outgoing(&mut good).unwrap();
        let refused = |tag: u32, bytes: &[u8]| {
            let refused = Message::new().receive_own(tag, bytes.to_vec());
            matches!(refused, Err(MessageError::NotAMessage { .. }))
        };
        assert!(!refused(ENCODED, &good));
        assert!(refused(ENCODED, &good[..good.len() - 5]));
        assert!(refused(ENCODED, &good[..10]));
        for (at, byte) in [(0, 0), (0, 9), (8, 255), (15, 255), (0, OF_ELEMENTS), (0, OF_MAILBOX)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(refused(ENCODED, &bad), "{at} {byte}");
        }
        for tag in [1, u32::MAX, ELEMENTS, ELEMENTS | 0xff08] {
            assert!(refused(tag, &good), "{tag:#x}");
        }
        assert!(refused(tag_of_values::<u64>(), &good[..7]));
    }
}
