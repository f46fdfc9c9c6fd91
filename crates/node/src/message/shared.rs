//! Values that two messages of one process have, in the same memory.

use std::sync::Arc;

use super::Message;
use super::piece::{Memory, Piece, Storage};

/// The values of a message that is one piece of one kind, in memory that messages share.
pub(crate) struct SharedValues {
    storage: Arc<Storage>,
    piece: Piece,
}

/// Memory that a message had for itself before it got to share others', for the next one that has none.
pub(crate) struct Spare(Memory);

impl Message {
    /// Its values, for another message of this process; none where they are few, of several forms, or
    /// in memory that is not this process's own.
    pub(crate) fn shared_values(&self) -> Option<SharedValues> {
        let [piece] = self.pieces[..] else { return None };
        match &self.memories[piece.memory] {
            Memory::Shared(storage)
                if piece.form.is_elements() && matches!(**storage, Storage::Own(_)) =>
            {
                Some(SharedValues { storage: storage.clone(), piece })
            }
            _ => None,
        }
    }

    /// Replaces what is in the message by values that another one has as well. Gives back the memory that
    /// was its own.
    pub(crate) fn receive_shared(&mut self, values: SharedValues) -> Option<Spare> {
        let SharedValues { storage, piece } = values;
        self.pieces.clear();
        self.rewind();
        let own = self.memories.pop().filter(Memory::is_writable);
        self.memories.clear();
        self.memories.push(Memory::Shared(storage));
        self.pieces.push(Piece { memory: 0, ..piece });
        own.map(Spare)
    }

    /// Takes memory for what is to come, where the message has none for itself. What is in it is gone then.
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

    #[test]
    fn shared_values_stay_whatever_becomes_of_the_message_that_had_them_first() {
        let (mut first, mut second) = (Message::new(), Message::new());
        first.pack(&[7u32; 1000]);
        second.pack(&[1u8; 500]);
        assert!(second.receive_shared(first.shared_values().unwrap()).is_some());
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
        let mut spare = second.receive_shared(first.shared_values().unwrap());
        second.take_spare(&mut spare);
        assert_eq!(second.own_room(1000).unwrap().as_ptr(), place);
        assert!(spare.is_none() && second.is_empty());
        assert_eq!(first.unpack_all::<u8>(), [7; 1000]);
        // Who has memory of its own keeps it.
        let mut spare = Some(Spare(Memory::of(vec![0; 1000])));
        second.take_spare(&mut spare);
        assert_eq!(second.own_room(1000).unwrap().as_ptr(), place);
        assert!(spare.is_some());
    }

    #[test]
    fn what_is_short_or_of_several_forms_is_not_shared() {
        let mut message = Message::new();
        message.pack(&[7u8; 100]);
        assert!(message.shared_values().is_none());
        message.pack(&[7u8; 1000]);
        assert!(message.shared_values().is_some());
        message.pack_text("more");
        assert!(message.shared_values().is_none());
    }
}
