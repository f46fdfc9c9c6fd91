//! Messages in collective operations: their bytes are sent from where they lie and received as
//! messages, without a copy in between.

use std::ptr::NonNull;

use landeck_kernel::Area;
use landeck_layout::Kind;
use landeck_memory::{Buffer, Bytes, NoMemory, room};

use super::encoding::{GRAIN, HEADER_BYTES, decoded, header_of, tag_of_kind};
use super::piece::{Form, Memory, Piece, SHORT_BYTES_MAX};
use super::{Message, MessageError, Result, is_like};

impl Message {
    /// Returns the values as they lie in memory, if they are one or more values of one kind and
    /// nothing else.
    #[inline]
    pub(crate) fn run(&self) -> Result<(Kind, Area)> {
        match self.pieces[..] {
            [piece @ Piece { form: Form::Elements(kind), .. }] => Ok((kind, self.area_of(&piece))),
            _ => self.run_of_several(),
        }
    }

    /// Returns the values as one buffer, if they are one piece of one kind.
    #[inline(always)]
    pub(crate) fn run_in_place(&self) -> Option<(Kind, Buffer)> {
        match self.pieces[..] {
            [piece @ Piece { form: Form::Elements(kind), .. }] => {
                Some((kind, self.buffer_of(&piece)))
            }
            _ => None,
        }
    }

    fn run_of_several(&self) -> Result<(Kind, Area)> {
        let kinds = self.pieces.iter().map(|piece| match piece.form {
            Form::Elements(kind) => Some(kind),
            _ => None,
        });
        let mut kinds = kinds.map(|kind| kind.ok_or(MessageError::NotOneKind));
        let first = kinds.next().ok_or(MessageError::NotOneKind)??;
        for kind in kinds {
            if !is_like(kind?, first) {
                return Err(MessageError::NotOneKind);
            }
        }
        Ok((first, Area::joined(self.pieces.iter().map(|piece| self.area_of(piece)))))
    }

    /// Returns the tag with which the message is sent, and its bytes from where they lie. The
    /// headers between its pieces are written to `headers`, which must live as long as the area is
    /// used.
    pub(crate) fn outgoing_area(&self, headers: &mut Vec<u8>) -> (u32, Area) {
        if let Ok((kind, area)) = self.run() {
            return (tag_of_kind(kind), area);
        }
        headers.clear();
        for piece in &self.pieces {
            headers.extend_from_slice(&header_of(piece));
            headers.resize(headers.len() + padding_of(piece), 0);
        }
        let mut at = 0;
        let mut areas = Vec::with_capacity(3 * self.pieces.len());
        for piece in &self.pieces {
            let padding = padding_of(piece);
            areas.push(part_of(headers, at, HEADER_BYTES));
            areas.push(self.area_of(piece));
            areas.push(part_of(headers, at + HEADER_BYTES, padding));
            at += HEADER_BYTES + padding;
        }
        (super::encoding::ENCODED, Area::joined(areas))
    }

    /// Returns memory for a message of this many bytes: that of this message if no other message
    /// shares it. The content of this message is lost.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub(crate) fn room(&mut self, bytes: usize) -> std::result::Result<Vec<u8>, NoMemory> {
        self.pieces.clear();
        self.rewind();
        let own = self.memories.first_mut().and_then(Memory::writable);
        // Not emptied first: what is as long as before is not written twice.
        let mut room = own.map(std::mem::take).unwrap_or_default();
        self.memories.clear();
        room::resize(&mut room, bytes)?;
        Ok(room)
    }

    /// Returns room for a short message to receive ([`Message::receive_here`]), as
    /// [`Message::own_room`] does.
    ///
    /// # Errors
    /// [`NoMemory`].
    #[inline]
    pub(crate) fn short_room(&mut self) -> std::result::Result<&mut [u8], NoMemory> {
        self.own_room(SHORT_BYTES_MAX)
    }

    /// Returns memory of this many bytes for a message to receive: the message's own memory where
    /// it has any, as most messages have that were received into before. The content of the message
    /// is lost.
    ///
    /// # Errors
    /// [`NoMemory`].
    #[inline(always)]
    pub(crate) fn own_room(&mut self, bytes: usize) -> std::result::Result<&mut [u8], NoMemory> {
        let is_there = matches!(&self.memories[..], [Memory::Short(own)] if own.len() == bytes);
        if !is_there {
            return self.other_room(bytes);
        }
        self.pieces.clear();
        self.rewind();
        Ok(match self.memories.first_mut() {
            Some(Memory::Short(own)) => own,
            _ => &mut [],
        })
    }

    /// Returns memory of this many bytes for a message whose memory is shared, or of another
    /// length.
    #[inline(never)]
    fn other_room(&mut self, bytes: usize) -> std::result::Result<&mut [u8], NoMemory> {
        let is_there = match &self.memories[..] {
            [memory] => memory.is_writable() && memory.bytes().len() == bytes,
            _ => false,
        };
        if is_there {
            self.pieces.clear();
            self.rewind();
        } else {
            let room = self.room(bytes)?;
            self.memories.push(Memory::of(room));
        }
        Ok(match self.memories.first_mut().and_then(Memory::writable) {
            Some(bytes) => bytes,
            None => &mut [],
        })
    }

    /// Takes the data received in all of [`Message::own_room`], which are values of one kind.
    #[inline]
    pub(crate) fn receive_run(&mut self, kind: Kind, length: usize) {
        if length > 0 {
            self.pieces.push(Piece { memory: 0, start: 0, length, form: Form::Elements(kind) });
        }
    }

    /// Takes the data received in the first bytes of [`Message::own_room`].
    ///
    /// # Errors
    /// [`MessageError::NotAMessage`]; nothing is in the message then.
    #[inline]
    pub(crate) fn receive_here(&mut self, tag: u32, length: usize) -> Result<()> {
        let Self { memories, pieces, .. } = self;
        let came = memories.first().map_or(Bytes::EMPTY, |memory| memory.bytes().part(0, length));
        let found = decoded(tag, came, pieces);
        found.map_err(|what| {
            pieces.clear();
            MessageError::NotAMessage { what }
        })
    }

    /// Replaces the content of the message by the data received in `room`, from `start` on.
    ///
    /// # Errors
    /// [`MessageError::NotAMessage`]; nothing is in the message then.
    pub(crate) fn receive_part(
        &mut self,
        tag: u32,
        room: Vec<u8>,
        start: usize,
        length: usize,
    ) -> Result<()> {
        self.receive_in(tag, Memory::of(room), |bytes| bytes.part(start, length))?;
        for piece in &mut self.pieces {
            piece.start += start;
        }
        Ok(())
    }

    /// Replaces the content of the message by the data received in a part of some memory.
    pub(super) fn receive_in(
        &mut self,
        tag: u32,
        memory: Memory,
        part: impl for<'a> FnOnce(Bytes<'a>) -> Bytes<'a>,
    ) -> Result<()> {
        self.pieces.clear();
        self.rewind();
        self.memories.clear();
        let found = decoded(tag, part(memory.bytes()), &mut self.pieces);
        self.memories.push(memory);
        found.map_err(|what| {
            self.pieces.clear();
            MessageError::NotAMessage { what }
        })
    }

    #[inline]
    fn area_of(&self, piece: &Piece) -> Area {
        Area::contiguous(self.buffer_of(piece))
    }

    #[inline]
    fn buffer_of(&self, piece: &Piece) -> Buffer {
        let bytes = self.bytes_of(piece);
        // SAFETY: a piece lies within its storage, which the message keeps; the user of the buffer
        // borrows the message until then.
        unsafe { Buffer::new(bytes.start(), bytes.len()) }
    }
}

/// Bytes behind a piece up to the next header.
fn padding_of(piece: &Piece) -> usize {
    piece.length.next_multiple_of(GRAIN) - piece.length
}

fn part_of(headers: &mut [u8], start: usize, length: usize) -> Area {
    let part = &mut headers[start..start + length];
    // SAFETY: the caller of `outgoing_area` keeps the headers as long as the area is used.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(part).cast(), length) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travel(message: &Message, before: usize) -> Message {
        let mut headers = Vec::new();
        let (tag, area) = message.outgoing_area(&mut headers);
        let mut bytes = vec![0xaa; before];
        area.append_to(0, usize::MAX, &mut bytes);
        let mut arrived = Message::new();
        let length = bytes.len() - before;
        arrived.receive_part(tag, bytes, before, length).unwrap();
        arrived
    }

    #[test]
    fn a_message_has_the_same_bytes_in_areas_and_in_one_piece() {
        let mut message = Message::new();
        message.pack(&[1u8, 2, 3]).pack_text("four").pack(&[5.0f64]);
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch).unwrap();
        let bytes = bytes.to_vec();
        let mut headers = Vec::new();
        let (same_tag, area) = message.outgoing_area(&mut headers);
        let mut same = Vec::new();
        area.append_to(0, usize::MAX, &mut same);
        assert_eq!((same_tag, same), (tag, bytes));
    }

    #[test]
    fn messages_arrive_anywhere_in_memory() {
        let mut message = Message::new();
        message.pack(&[1u8, 2, 3]).pack_text("four").pack(&[5.0f64]);
        for before in [0, 16, 17] {
            let mut arrived = travel(&message, before);
            assert_eq!(arrived.unpack_all::<u8>(), [1, 2, 3]);
            assert_eq!(arrived.unpack_text().unwrap(), "four");
            assert_eq!(arrived.unpack_value::<f64>().unwrap(), 5.0);
        }
        assert!(travel(&Message::new(), 16).is_empty());
    }

    #[test]
    fn short_messages_come_into_the_memory_that_is_there() {
        let mut message = Message::new();
        for text in ["one", "two and more", ""] {
            let mut sent = Message::new();
            sent.pack(&[7u16]).pack_text(text);
            let mut scratch = Vec::new();
            let (tag, bytes) = sent.outgoing(&mut scratch).unwrap();
            let room = message.short_room().unwrap();
            assert_eq!(room.len(), SHORT_BYTES_MAX);
            let length = bytes.copy_to_slice(room);
            message.receive_here(tag, length).unwrap();
            assert_eq!(message.unpack_value::<u16>().unwrap(), 7);
            assert_eq!(message.unpack_text().unwrap(), text);
            assert!(message.is_unpacked());
        }
        message.short_room().unwrap()[0] = 9;
        assert!(message.receive_here(1, 5).is_err(), "no kind has this tag");
        assert!(message.is_empty() && message.is_unpacked());
        let place = message.short_room().unwrap().as_ptr();
        assert_eq!(message.short_room().unwrap().as_ptr(), place);
        message.pack(&[1u8]);
        assert_eq!(message.bytes(), 1, "what was received is not packed behind");
    }

    #[test]
    fn joined_values_of_one_kind_are_one_run() {
        let mut message = Message::new();
        message.pack(&[1i32, 2]);
        let mut other = Message::new();
        other.pack(&[3i32]);
        message.join(&other);
        let (kind, area) = message.run().unwrap();
        assert_eq!((kind.size_bytes(), area.packed_bytes()), (4, 12));
        assert_eq!(travel(&message, 16).unpack_all::<i32>(), [1, 2, 3]);
        message.pack(&[4.0f32]);
        assert!(matches!(message.run(), Err(MessageError::NotOneKind)));
        assert!(matches!(Message::new().run(), Err(MessageError::NotOneKind)));
    }

    #[test]
    fn room_is_the_messages_own_memory_unless_it_is_shared() {
        let mut message = Message::with_capacity(1000);
        message.pack(&[7u8; 1000]);
        let place = message.run().unwrap().1.as_buffer().unwrap().bytes().start();
        let room = message.room(1000).unwrap();
        assert_eq!(room.as_ptr(), place.as_ptr().cast_const());
        message.receive_part(tag_of_kind(Kind::BYTE), room, 0, 1000).unwrap();
        let shared = message.clone();
        assert_eq!(message.room(8).unwrap(), [0; 8]);
        assert_eq!(shared.len(), 1000);
    }
}
