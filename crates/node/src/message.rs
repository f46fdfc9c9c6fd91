//! Messages: values packed with their types, and unpacked as the same types.
//!
//! A message knows its content. Unpacking another type, or more values than are left, is an error
//! that leaves the message unchanged. Messages that are cut ([`Message::part`], [`Message::split`])
//! or joined ([`Message::join`]) share their data, which is freed with the last of them. Only the
//! values of messages of at most 256 bytes are copied, which is faster.
//!
//! ```
//! # fn main() -> Result<(), landeck::MessageError> {
//! use landeck::Message;
//! let mut message = Message::new();
//! message.pack_text("temperatures").pack(&[20.5, 21.0, 19.25]);
//! assert_eq!(message.unpack_text()?, "temperatures");
//! assert!(message.unpack::<i64>(&mut [0]).is_err()); // they are no integers
//! let mut values = [0.0; 3];
//! message.unpack(&mut values)?;
//! assert_eq!(values, [20.5, 21.0, 19.25]);
//! # Ok(()) }
//! ```
//!
//! A message belongs to one thread at a time and may be handed to another; it is not tied to a job.

mod encoding;
pub(crate) mod mailbox_address;
mod piece;
mod shared;
mod travel;
pub mod typed;

use std::fmt;
use std::ops::Range;

use landeck_kernel::{Area, Received};
use landeck_layout::{Kind, Layout};
use landeck_memory::plain::{Plain, bytes_of, bytes_of_mut, zero};
use landeck_memory::{Buffer, Bytes, NoMemory, room};

use crate::message::mailbox_address::MailboxAddress;
use crate::message::typed::Typed;
use piece::{Form, Memory, Piece, Storage};

pub(crate) use encoding::{tag_of_kind, tag_of_values};
pub(crate) use shared::Spare;

/// The reason why a message refused a call. The message is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The next values are of another type.
    #[error("the next in the message is {packed}, not {asked}: unpack it as what was packed")]
    OtherType {
        /// The type that was packed there.
        packed: String,
        /// The type that was asked for.
        asked: String,
    },
    /// There are fewer values than were asked for.
    #[error(
        "{asked} values of {kind} were asked for, {left} are left in the message: unpack no more than were packed"
    )]
    BeyondEnd {
        /// The kind of the values.
        kind: String,
        /// The number of values asked for.
        asked: u64,
        /// The number of values of that kind that come next.
        left: u64,
    },
    /// The range asked for reaches beyond the end of the message.
    #[error(
        "values {first} to {end} were asked for, the message has {values}: cut within the message"
    )]
    NoSuchPart {
        /// The first value asked for.
        first: u64,
        /// One more than the last value asked for.
        end: u64,
        /// The number of values in the message.
        values: u64,
    },
    /// The message cannot be divided into this many equal parts.
    #[error("{values} values cannot be divided into {parts} equal parts: cut them with `part`")]
    UnevenParts {
        /// The number of values in the message.
        values: u64,
        /// The number of parts asked for.
        parts: usize,
    },
    /// The layout describes bytes outside the values.
    #[error("the layout describes bytes outside the values of {buffer_bytes} bytes")]
    OutsideBuffer {
        /// Bytes of the values.
        buffer_bytes: usize,
    },
    /// The message cannot be combined or gathered, since its values are not of one kind.
    #[error(
        "the message is empty or holds other things than values of one kind: pack values of one kind, or gather with `gather_any`"
    )]
    NotOneKind,
    /// The next text is not UTF-8.
    #[error(
        "the next in the message is a text that is not UTF-8: the process that packed it is broken"
    )]
    NotUtf8,
    /// The received bytes are not a message.
    #[error(
        "the received bytes are not a message ({what}): the sender is broken, or did not post a message"
    )]
    NotAMessage {
        /// The fault in the bytes.
        what: &'static str,
    },
    /// The process has no memory for the values.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

type Result<T> = std::result::Result<T, MessageError>;

/// The content of a message that is unpacked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcoming {
    /// Nothing: everything was unpacked.
    Nothing,
    /// Values of one kind.
    Elements {
        /// The kind of the values.
        kind: Kind,
        /// The number of values before other content.
        count: u64,
    },
    /// Items of a layout.
    Items,
    /// A text.
    Text {
        /// The length of the text in bytes.
        bytes: usize,
    },
    /// The address of a mailbox.
    Mailbox,
}

/// A message: values that are sent together, each with its type.
#[derive(Clone, Default)]
pub struct Message {
    memories: Vec<Memory>,
    pieces: Vec<Piece>,
    /// The index of the piece that is unpacked next, and the bytes of it that were unpacked.
    next: usize,
    taken: usize,
}

impl Message {
    /// Creates an empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty message with room for `bytes` bytes of values.
    pub fn with_capacity(bytes: usize) -> Self {
        let memories = vec![Memory::Short(Vec::with_capacity(bytes))];
        Self { memories, ..Self::default() }
    }

    /// Creates an empty message with room for `bytes` bytes of values, or reports that there is no
    /// memory.
    ///
    /// # Errors
    /// [`MessageError::NoMemory`].
    pub fn try_with_capacity(bytes: usize) -> Result<Self> {
        let memories = vec![Memory::Short(room::list(bytes)?)];
        Ok(Self { memories, ..Self::default() })
    }

    /// Appends a copy of values.
    ///
    /// # Panics
    /// Panics when there is no memory for the values; [`Message::try_pack`] returns an error
    /// instead.
    #[inline]
    pub fn pack<T: Typed>(&mut self, values: &[T]) -> &mut Self {
        packed(self.try_pack(values).map(drop));
        self
    }

    /// Appends a copy of values, or reports that there is no memory.
    ///
    /// # Errors
    /// [`MessageError::NoMemory`]; the message is as before.
    #[inline]
    pub fn try_pack<T: Typed>(&mut self, values: &[T]) -> Result<&mut Self> {
        let bytes = Bytes::from(bytes_of(values));
        if !self.begin(T::KIND, bytes) {
            self.append_elements(T::KIND, bytes)?;
        }
        Ok(self)
    }

    /// Appends a text, which is unpacked as a whole.
    ///
    /// # Panics
    /// As [`Message::pack`].
    pub fn pack_text(&mut self, text: &str) -> &mut Self {
        packed(self.try_pack_text(text).map(drop));
        self
    }

    /// Appends a text, or reports that there is no memory.
    ///
    /// # Errors
    /// As [`Message::try_pack`].
    pub fn try_pack_text(&mut self, text: &str) -> Result<&mut Self> {
        self.append(Form::Text, Bytes::from(text.as_bytes()))?;
        Ok(self)
    }

    /// Appends the address of a mailbox, so that the process that unpacks it can post to the
    /// mailbox.
    ///
    /// # Panics
    /// As [`Message::pack`].
    pub fn pack_mailbox(&mut self, address: MailboxAddress) -> &mut Self {
        packed(self.try_pack_mailbox(address).map(drop));
        self
    }

    /// Appends the address of a mailbox, or reports that there is no memory.
    ///
    /// # Errors
    /// As [`Message::try_pack`].
    pub fn try_pack_mailbox(&mut self, address: MailboxAddress) -> Result<&mut Self> {
        self.append(Form::Mailbox, Bytes::from(bytes_of(&address.to_words())))?;
        Ok(self)
    }

    /// Appends `count` items of a layout, whose offset zero lies at the start of `values`. Items of
    /// one kind of element are unpacked like any elements of that kind; other items are unpacked
    /// together, by a layout of the same signature.
    ///
    /// # Errors
    /// [`MessageError::OutsideBuffer`], [`MessageError::NoMemory`].
    pub fn pack_layout<T: Plain>(
        &mut self,
        values: &[T],
        layout: &Layout,
        count: u64,
    ) -> Result<&mut Self> {
        // SAFETY: the area is used during this call only, and only read.
        let buffer = unsafe { Buffer::of(values) };
        let area = area(buffer, layout, count)?;
        let form = Form::of_items(layout, count);
        let length = usize::try_from(area.packed_bytes()).unwrap_or(usize::MAX);
        self.extend(form, length, |storage| area.append_to(0, usize::MAX, storage))?;
        Ok(self)
    }

    /// Unpacks `into.len()` values, all of which must be in the message.
    ///
    /// # Errors
    /// [`MessageError::OtherType`], [`MessageError::BeyondEnd`].
    #[inline]
    pub fn unpack<T: Typed>(&mut self, into: &mut [T]) -> Result<()> {
        let into = bytes_of_mut(into);
        match self.take_within_piece(T::KIND, into) {
            true => Ok(()),
            false => self.take_elements(T::KIND, into),
        }
    }

    /// Unpacks one value.
    ///
    /// # Errors
    /// As [`Message::unpack`].
    pub fn unpack_value<T: Typed>(&mut self) -> Result<T> {
        let mut value = [zero()];
        self.unpack(&mut value)?;
        Ok(value[0])
    }

    /// Unpacks all values of the type that come next; returns an empty vector if the next content
    /// is of another type.
    pub fn unpack_all<T: Typed>(&mut self) -> Vec<T> {
        let left = self.left_of(Form::Elements(T::KIND));
        let mut values = vec![zero(); left / size_of::<T>()];
        // Exactly what is there was asked for.
        let _ = self.unpack(&mut values);
        values
    }

    /// Unpacks a text.
    ///
    /// # Errors
    /// [`MessageError::OtherType`], [`MessageError::BeyondEnd`], [`MessageError::NotUtf8`],
    /// [`MessageError::NoMemory`].
    pub fn unpack_text(&mut self) -> Result<String> {
        let mut bytes = room::zeroes(self.whole_of(Form::Text)?)?;
        let before = (self.next, self.taken);
        self.take(Form::Text, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| {
            (self.next, self.taken) = before;
            MessageError::NotUtf8
        })
    }

    /// Unpacks the address of a mailbox.
    ///
    /// # Errors
    /// [`MessageError::OtherType`], [`MessageError::BeyondEnd`].
    pub fn unpack_mailbox(&mut self) -> Result<MailboxAddress> {
        let mut words = [0; MailboxAddress::WORDS];
        self.whole_of(Form::Mailbox)?;
        self.take(Form::Mailbox, bytes_of_mut(&mut words))?;
        Ok(MailboxAddress::from_words(words))
    }

    /// Unpacks `count` items of a layout, whose offset zero lies at the start of `into`.
    ///
    /// # Errors
    /// As [`Message::unpack`], and [`MessageError::OutsideBuffer`].
    pub fn unpack_layout<T: Plain>(
        &mut self,
        into: &mut [T],
        layout: &Layout,
        count: u64,
    ) -> Result<()> {
        // SAFETY: the area is used during this call only, and the values are borrowed mutably.
        let buffer = unsafe { Buffer::of_mut(into) };
        let area = area(buffer, layout, count)?;
        let form = Form::of_items(layout, count);
        if let Form::Items(_) = form {
            self.whole_of(form)?;
        }
        let mut position = 0;
        self.take_with(form, area.packed_bytes() as usize, |bytes| {
            area.write(position, bytes);
            position += bytes.len() as u64;
        })
    }

    /// Rewinds the message: the next value unpacked is the first one.
    pub fn rewind(&mut self) {
        (self.next, self.taken) = (0, 0);
    }

    /// Removes all content. The memory is reused for the next content, unless another message
    /// shares it.
    #[inline]
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.rewind();
        if !matches!(self.memories[..], [] | [Memory::Short(_)]) {
            self.clear_memories();
        }
    }

    fn clear_memories(&mut self) {
        self.memories.truncate(1);
        if self.memories.first_mut().is_some_and(|memory| !memory.make_short()) {
            self.memories.clear();
        }
    }

    /// Returns the length of all values in bytes, unpacked or not.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.length).sum()
    }

    /// Returns the number of values, unpacked or not. A text, the address of a mailbox, and items
    /// that were packed together count as one value each.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(Piece::values).sum()
    }

    /// Returns whether the message is empty.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns whether everything was unpacked.
    pub fn is_unpacked(&self) -> bool {
        self.pieces[self.next..].iter().map(|piece| piece.length).sum::<usize>() == self.taken
    }

    /// Returns the next content in words, such as `float64` or `text`; `None` at the end.
    pub fn next_kind(&self) -> Option<String> {
        self.pieces.get(self.next).map(|piece| piece.form.to_string())
    }

    /// Returns the next content and its amount.
    pub fn upcoming(&self) -> Upcoming {
        let Some(piece) = self.pieces.get(self.next) else { return Upcoming::Nothing };
        match piece.form {
            Form::Elements(kind) => {
                let count = (self.left_of(piece.form) / piece.form.value_bytes()) as u64;
                Upcoming::Elements { kind, count }
            }
            Form::Items(_) => Upcoming::Items,
            Form::Text => Upcoming::Text { bytes: piece.length },
            Form::Mailbox => Upcoming::Mailbox,
        }
    }

    /// Returns the values from number `range.start` to before `range.end`, counted as in
    /// [`Message::len`], as a message that shares their memory.
    ///
    /// # Errors
    /// [`MessageError::NoSuchPart`].
    pub fn part(&self, range: Range<u64>) -> Result<Self> {
        let values = self.len();
        if range.start > range.end || range.end > values {
            let Range { start: first, end } = range;
            return Err(MessageError::NoSuchPart { first, end, values });
        }
        let mut part = Self::new();
        let mut number = 0;
        for piece in &self.pieces {
            let end = number + piece.values();
            let (from, to) = (range.start.max(number), range.end.min(end));
            if from < to {
                part.share(self, piece.cut(from - number, to - number));
            }
            number = end;
        }
        Ok(part)
    }

    /// Divides the message into `parts` messages of equally many values that share its memory, as a
    /// scatter sends them.
    ///
    /// # Errors
    /// [`MessageError::UnevenParts`].
    pub fn split(&self, parts: usize) -> Result<Vec<Self>> {
        let values = self.len();
        let each = values.checked_div(parts as u64).filter(|each| each * parts as u64 == values);
        let each = each.ok_or(MessageError::UnevenParts { values, parts })?;
        (0..parts as u64).map(|number| self.part(number * each..(number + 1) * each)).collect()
    }

    /// Appends the values of another message; their memory is shared.
    pub fn join(&mut self, other: &Self) -> &mut Self {
        for piece in &other.pieces {
            self.share(other, *piece);
        }
        self
    }

    /// Appends a piece of another message.
    fn share(&mut self, other: &Self, piece: Piece) {
        let Memory::Shared(storage) = &other.memories[piece.memory] else {
            return packed(self.append(piece.form, other.bytes_of(&piece)));
        };
        let known = self.memories.iter().rposition(|known| known.is(storage));
        let memory = known.unwrap_or_else(|| {
            self.memories.push(Memory::Shared(storage.clone()));
            self.memories.len() - 1
        });
        self.pieces.push(Piece { memory, ..piece });
    }

    fn append(&mut self, form: Form, bytes: Bytes<'_>) -> Result<()> {
        self.extend(form, bytes.len(), |storage| bytes.append_to(storage))
    }

    #[inline(never)]
    fn append_elements(&mut self, kind: Kind, bytes: Bytes<'_>) -> Result<()> {
        self.append(Form::Elements(kind), bytes)
    }

    /// Packs the first, and most often the only, few bytes into the memory that is there; false where
    /// it takes more.
    ///
    /// The kind is given and not the form, here as where it is unpacked: a form is put together in
    /// memory, word by word, and read as a whole, which a processor cannot forward.
    #[inline]
    fn begin(&mut self, kind: Kind, bytes: Bytes<'_>) -> bool {
        let Self { memories, pieces, .. } = self;
        let [Memory::Short(own)] = &mut memories[..] else { return false };
        let length = bytes.len();
        if !pieces.is_empty() || length == 0 || length > own.len() {
            return false;
        }
        bytes.copy_to_slice(&mut own[..length]);
        own.truncate(length);
        pieces.push(Piece { memory: 0, start: 0, length, form: Form::Elements(kind) });
        true
    }

    /// Appends a new piece, or extends the last one, by the bytes that `write` appends. Without
    /// memory for them the message stays unchanged.
    fn extend(
        &mut self,
        form: Form,
        length: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        if !self.memories.last().is_some_and(Memory::is_writable) {
            self.memories.push(Memory::Short(Vec::new()));
        }
        let number = self.memories.len() - 1;
        let Self { memories, pieces, .. } = self;
        let Some(bytes) = memories[number].writable() else { return Ok(()) };
        if pieces.is_empty() {
            bytes.clear();
        }
        room::grow(bytes, length)?;
        let start = bytes.len();
        write(bytes);
        let length = bytes.len() - start;
        memories[number].share_if_long();
        match pieces.last_mut() {
            Some(last) if last.goes_on_with(form, number, start) => last.length += length,
            _ if length == 0 && form.is_elements() => {}
            _ => {
                room::grow(pieces, 1).inspect_err(|_| memories[number].cut(start))?;
                pieces.push(Piece { memory: number, start, length, form });
            }
        }
        Ok(())
    }

    #[inline]
    fn bytes_of(&self, piece: &Piece) -> Bytes<'_> {
        self.memories[piece.memory].bytes().part(piece.start, piece.length)
    }

    /// Bytes of this form that come next.
    fn left_of(&self, form: Form) -> usize {
        let next = self.pieces[self.next..].iter().take_while(|piece| piece.form.is_like(form));
        next.map(|piece| piece.length).sum::<usize>() - self.taken_of(form)
    }

    /// Bytes that were taken out of the next piece, if it has this form.
    fn taken_of(&self, form: Form) -> usize {
        let is_next = self.pieces.get(self.next).is_some_and(|piece| piece.form.is_like(form));
        if is_next { self.taken } else { 0 }
    }

    /// The length of the next piece, which is to be unpacked as a whole.
    fn whole_of(&self, form: Form) -> Result<usize> {
        match self.pieces.get(self.next) {
            Some(piece) if piece.form.is_like(form) => Ok(piece.length),
            _ => Err(self.refusal(form, 1)),
        }
    }

    /// Takes bytes that the next piece has all of, which is most often so; false where it has not.
    #[inline]
    fn take_within_piece(&mut self, kind: Kind, into: &mut [u8]) -> bool {
        let Some(piece) = self.pieces.get(self.next) else { return false };
        let left = piece.length - self.taken;
        if !piece.form.is_like(Form::Elements(kind)) || into.is_empty() || into.len() > left {
            return false;
        }
        let bytes = self.bytes_of(piece).part(self.taken, into.len());
        if bytes.len() != into.len() {
            return false;
        }
        bytes.copy_to_slice(into);
        match into.len() == left {
            true => (self.next, self.taken) = (self.next + 1, 0),
            false => self.taken += into.len(),
        }
        true
    }

    #[inline(never)]
    fn take_elements(&mut self, kind: Kind, into: &mut [u8]) -> Result<()> {
        self.take(Form::Elements(kind), into)
    }

    fn take(&mut self, form: Form, into: &mut [u8]) -> Result<()> {
        let mut at = 0;
        self.take_with(form, into.len(), |bytes| at += bytes.copy_to_slice(&mut into[at..]))
    }

    /// Hands over the next `length` bytes, all of this form, or none.
    fn take_with(
        &mut self,
        form: Form,
        length: usize,
        mut take: impl FnMut(Bytes<'_>),
    ) -> Result<()> {
        // One piece that has it all is the common case.
        if self.left_of(form) < length {
            return Err(self.refusal(form, (length / form.value_bytes()) as u64));
        }
        let mut left = length;
        while left > 0 || self.is_at_empty(form) {
            let piece = self.pieces[self.next];
            let taken = left.min(piece.length - self.taken);
            take(self.bytes_of(&piece).part(self.taken, taken));
            left -= taken;
            self.taken += taken;
            if self.taken == piece.length {
                (self.next, self.taken) = (self.next + 1, 0);
            }
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Whether the next piece is one of no bytes, such as an empty text.
    fn is_at_empty(&self, form: Form) -> bool {
        let next = self.pieces.get(self.next);
        next.is_some_and(|piece| piece.length == 0 && piece.form.is_like(form))
    }

    #[cold]
    fn refusal(&self, form: Form, asked: u64) -> MessageError {
        match self.pieces.get(self.next) {
            Some(piece) if !piece.form.is_like(form) => {
                let (packed, asked) = (piece.form.to_string(), form.to_string());
                MessageError::OtherType { packed, asked }
            }
            _ => {
                let left = (self.left_of(form) / form.value_bytes()) as u64;
                MessageError::BeyondEnd { kind: form.to_string(), asked, left }
            }
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |piece: &Piece| format!("{} x {}", piece.values(), piece.form);
        formatter.debug_list().entries(self.pieces.iter().map(shown)).finish()
    }
}

/// Panics with an error, in calls that return none.
#[inline]
fn packed(result: Result<()>) {
    if let Err(error) = result {
        panic!("{error}");
    }
}

fn area(buffer: Buffer, layout: &Layout, count: u64) -> Result<Area> {
    let outside = MessageError::OutsideBuffer { buffer_bytes: buffer.len() };
    Area::with_layout(buffer, 0, layout, count).map_err(|_| outside)
}

/// Turns received data into a storage.
impl From<Received> for Storage {
    fn from(received: Received) -> Self {
        match received {
            Received::Private(own) => Self::Own(own),
            Received::Borrowed { block, length } => Self::Borrowed { block, length },
        }
    }
}

/// Whether an element of this kind is one of that type.
pub(crate) fn is_like(kind: Kind, other: Kind) -> bool {
    kind.family() == other.family() && kind.size_bytes() == other.size_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_layout::{Family, LayoutBlock, Member};

    fn three() -> Message {
        let mut message = Message::new();
        message.pack(&[1u32, 2, 3]).pack_text("four").pack(&[5.0f64]);
        message
    }

    #[test]
    fn packed_values_are_unpacked_in_pieces_of_any_length() {
        let mut message = Message::new();
        for value in 0..10u16 {
            message.pack(&[value]);
        }
        assert_eq!((message.len(), message.bytes(), message.pieces.len()), (10, 20, 1));
        let mut first = [0u16; 3];
        message.unpack(&mut first).unwrap();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(message.upcoming(), Upcoming::Elements { kind: u16::KIND, count: 7 });
        assert_eq!(message.unpack_value::<u16>().unwrap(), 3);
        assert_eq!(message.unpack_all::<u16>(), [4, 5, 6, 7, 8, 9]);
        assert!(message.is_unpacked());
        message.rewind();
        assert_eq!(message.unpack_all::<u16>().len(), 10);
    }

    #[test]
    fn another_type_and_the_end_are_errors_that_lose_nothing() {
        let mut message = three();
        let wrong = message.unpack_value::<i32>().unwrap_err();
        assert!(matches!(&wrong, MessageError::OtherType { packed, .. } if packed == "unsigned32"));
        let beyond = message.unpack(&mut [0u32; 4]).unwrap_err();
        assert!(matches!(beyond, MessageError::BeyondEnd { asked: 4, left: 3, .. }), "{beyond}");
        assert_eq!(message.unpack_all::<u32>(), [1, 2, 3]);
        assert!(message.unpack_value::<u32>().is_err());
        assert_eq!(message.unpack_text().unwrap(), "four");
        assert_eq!(message.unpack_value::<f64>().unwrap(), 5.0);
        let end = message.unpack_value::<f64>().unwrap_err();
        assert!(matches!(end, MessageError::BeyondEnd { asked: 1, left: 0, .. }), "{end}");
        assert!(matches!(message.unpack_text(), Err(MessageError::BeyondEnd { .. })));
    }

    #[test]
    fn texts_keep_their_ends_even_empty_ones() {
        let mut message = Message::new();
        message.pack_text("").pack_text("a").pack_text("").pack_text("bc");
        assert_eq!(message.len(), 4);
        for text in ["", "a", "", "bc"] {
            assert_eq!(message.unpack_text().unwrap(), text);
        }
        assert!(message.is_unpacked());
    }

    #[test]
    fn nothing_packed_is_nothing_in_it() {
        let mut message = Message::new();
        message.pack::<f32>(&[]);
        assert!(message.is_empty() && message.is_unpacked());
        message.unpack::<f32>(&mut []).unwrap();
        assert_eq!(message.next_kind(), None);
    }

    #[test]
    fn parts_share_memory_and_live_on_without_the_whole() {
        let mut whole = Message::new();
        whole.pack(&[1i64, 2, 3, 4, 5, 6]);
        let mut parts = whole.split(3).unwrap();
        whole.pack(&[7i64]);
        drop(whole);
        assert_eq!(parts[1].unpack_all::<i64>(), [3, 4]);
        let mut joined = parts.pop().unwrap();
        joined.join(&parts[0]).pack(&[9i64]);
        assert_eq!(joined.unpack_all::<i64>(), [5, 6, 1, 2, 9]);
        assert!(matches!(joined.split(4), Err(MessageError::UnevenParts { values: 5, .. })));
        assert!(matches!(joined.split(0), Err(MessageError::UnevenParts { .. })));
    }

    #[test]
    fn long_data_are_not_copied() {
        let mut whole = Message::new();
        whole.pack(&[7u8; 1000]);
        let place = |message: &Message| message.bytes_of(&message.pieces[0]).start();
        let parts = whole.split(2).unwrap();
        assert_eq!(place(&parts[0]), place(&whole));
        whole.pack(&[8u8; 1000]); // elsewhere: the first are shared now
        let mut joined = Message::new();
        joined.join(&whole).join(&parts[1]);
        assert_eq!((place(&joined), joined.memories.len()), (place(&whole), 2));
        drop((whole, parts));
        let bytes = joined.unpack_all::<u8>();
        assert!(
            bytes.len() == 2500 && bytes[..1000] == [7; 1000] && bytes[1000..2000] == [8; 1000]
        );
    }

    #[test]
    fn parts_are_cut_anywhere_between_values() {
        let message = three();
        let mut part = message.part(2..4).unwrap();
        assert_eq!(part.unpack_value::<u32>().unwrap(), 3);
        assert_eq!(part.unpack_text().unwrap(), "four");
        assert!(part.is_unpacked());
        assert_eq!(message.part(0..0).unwrap().len(), 0);
        let beyond = message.part(2..6).unwrap_err();
        assert_eq!(beyond, MessageError::NoSuchPart { first: 2, end: 6, values: 5 });
    }

    #[test]
    fn a_cleared_message_keeps_its_memory_unless_it_is_shared() {
        for length in [100, 1000] {
            let mut message = Message::with_capacity(1000);
            message.pack(&vec![1u8; length]);
            let place = message.bytes_of(&message.pieces[0]).start();
            message.clear();
            message.pack(&vec![2u8; length]);
            assert_eq!(message.bytes_of(&message.pieces[0]).start(), place);
            let mut copy = message.clone();
            message.clear();
            message.pack(&vec![3u8; length]);
            assert_eq!(copy.unpack_all::<u8>(), vec![2; length]);
            assert_eq!(message.unpack_all::<u8>(), vec![3; length]);
        }
    }

    #[test]
    fn columns_are_elements_and_records_are_whole() {
        let float = Layout::element(f64::KIND);
        let column = Layout::vector(3, 1, 24, &float).unwrap();
        let matrix: Vec<f64> = (0..9).map(f64::from).collect();
        let mut message = Message::new();
        message.pack_layout(&matrix, &column, 1).unwrap();
        assert_eq!(message.clone().unpack_all::<f64>(), [0.0, 3.0, 6.0]);
        let record = Layout::structure(&[
            Member { offset: 0, count: 1, layout: Layout::element(i32::KIND) },
            Member { offset: 8, count: 1, layout: float },
        ])
        .unwrap();
        let values = [[7u64, 1.5f64.to_bits()], [8, 2.5f64.to_bits()]];
        message.pack_layout(&values, &record, 2).unwrap();
        message.unpack_layout(&mut [0.0f64; 9], &column, 1).unwrap();
        let other =
            Layout::indexed(&[LayoutBlock { offset: 0, count: 4 }], &Layout::element(i32::KIND));
        let mut back = [[0u64; 2]; 2];
        let refused = message.unpack_layout(&mut back, &other.unwrap(), 1).unwrap_err();
        assert!(matches!(refused, MessageError::OtherType { .. }), "{refused}");
        let fewer = message.unpack_layout(&mut back, &record, 1).unwrap_err();
        assert!(matches!(fewer, MessageError::OtherType { .. }), "{fewer}");
        message.unpack_layout(&mut back, &record, 2).unwrap();
        assert_eq!(back, values);
        let small = message.pack_layout(&[0u8; 3], &record, 1).unwrap_err();
        assert_eq!(small, MessageError::OutsideBuffer { buffer_bytes: 3 });
    }

    #[test]
    fn a_kind_without_a_rust_type_is_told_by_name() {
        let complex = Layout::element(Kind::new(Family::Complex, 16).unwrap());
        let mut message = Message::new();
        message.pack_layout(&[1.0f64, 2.0], &complex, 1).unwrap();
        assert_eq!(message.next_kind().as_deref(), Some("complex128"));
        assert!(message.unpack_value::<f64>().is_err());
    }
}
