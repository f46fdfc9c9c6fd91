//! Values in memory that two messages of one process share.

use landeck_named_groups::SharedValues;

use super::Message;
use super::encoding::kind_of_tag;
use super::piece::{Form, Memory, Piece, Storage};

/// Memory that a message owned before it came to share another's, for the next message that has none.
pub(crate) struct Spare(Memory);

impl Message {
    /// The values of the message, for another message of this process. None where they are few, of several forms, or
    /// in memory of another process.
    pub(crate) fn shared_values(&self) -> Option<SharedValues> {
        let [piece] = self.pieces[..] else { return None };
        match &self.memories[piece.memory] {
            Memory::Shared(storage)
                if piece.form.is_elements() && matches!(**storage, Storage::Own(_)) =>
            {
                Some(SharedValues { memory: storage.clone(), start: piece.start })
            }
            _ => None,
        }
    }

    /// Replaces the content of the message by the values of another message, whose tag and length are given. The
    /// message's own memory becomes the spare one. False when the values are not those of a message.
    pub(crate) fn receive_shared(
        &mut self,
        values: SharedValues,
        tag: u32,
        length: usize,
        spare: &mut Option<Spare>,
    ) -> bool {
        let SharedValues { memory, start } = values;
        let (Ok(storage), Some(kind)) = (memory.downcast::<Storage>(), kind_of_tag(tag)) else {
            return false;
        };
        self.pieces.clear();
        self.rewind();
        let own = self.memories.pop().filter(Memory::is_writable);
        self.memories.clear();
        self.memories.push(Memory::Shared(storage));
        self.pieces.push(Piece { memory: 0, start, length, form: Form::Elements(kind) });
        *spare = own.map(Spare).or(spare.take());
        true
    }

    /// Takes the spare memory for the next content, if the message has none of its own. Its content is lost then.
    pub(crate) fn take_spare(&mut self, spare: &mut Option<Spare>) {
        let has_own = matches!(&self.memories[..], [memory] if memory.is_writable());
        if !has_own && let Some(Spare(memory)) = spare.take() {
            self.pieces.clear();
            self.rewind();
            self.memories.clear();
            self.memories.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive_shared(into: &mut Message, from: &Message, spare: &mut Option<Spare>) {
        let mut scratch = Vec::new();
        let (tag, bytes) = from.outgoing(&mut scratch).unwrap();
        let values = from.shared_values().unwrap();
        assert!(into.receive_shared(values, tag, bytes.len(), spare));
    }

    #[test]
    fn shared_values_stay_whatever_becomes_of_the_message_that_had_them_first() {
        let (mut first, mut second) = (Message::new(), Message::new());
        first.pack(&[7u32; 1000]);
        second.pack(&[1u8; 500]);
        let mut spare = None;
        receive_shared(&mut second, &first, &mut spare);
        assert!(spare.is_some());
        first.pack(&[8u32; 3]);
        second.pack(&[9u32; 2]);
        assert_eq!(second.unpack_all::<u32>(), [vec![7; 1000], vec![9; 2]].concat());
        assert_eq!(first.unpack_all::<u32>(), [vec![7; 1000], vec![8; 3]].concat());
        first.clear();
        first.pack(&[5u32; 1000]);
        second.rewind();
        assert_eq!(second.unpack_all::<u32>()[..1000], [7; 1000]);
    }

    #[test]
    fn memory_that_was_a_messages_own_is_the_next_ones_that_has_none() {
        let (mut first, mut second) = (Message::new(), Message::new());
        first.pack(&[7u8; 1000]);
        second.pack(&[1u8; 1000]);
        let place = second.own_room(1000).unwrap().as_ptr();
        let mut spare = None;
        receive_shared(&mut second, &first, &mut spare);
        second.take_spare(&mut spare);
        assert_eq!(second.own_room(1000).unwrap().as_ptr(), place);
        assert!(spare.is_none() && second.is_empty());
        assert_eq!(first.unpack_all::<u8>(), [7; 1000]);
        // A message with memory of its own keeps it.
        let mut spare = Some(Spare(Memory::of(vec![0; 1000])));
        second.take_spare(&mut spare);
        assert_eq!(second.own_room(1000).unwrap().as_ptr(), place);
        assert!(spare.is_some());
    }

    #[test]
    fn a_short_or_mixed_message_is_not_shared() {
        let mut message = Message::new();
        message.pack(&[7u8; 100]);
        assert!(message.shared_values().is_none());
        message.pack(&[7u8; 1000]);
        assert!(message.shared_values().is_some());
        message.pack_text("more");
        assert!(message.shared_values().is_none());
    }
}
