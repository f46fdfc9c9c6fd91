//! The parts of a message: pieces of one form each, and the memory that they lie in.

use std::fmt;
use std::sync::Arc;

use landeck_layout::{Kind, Layout};
use landeck_memory::{Borrowed, Bytes};

use super::is_like;

/// Memory that pieces lie in.
#[derive(Clone)]
pub(super) enum Memory {
    /// So few bytes that to copy them takes less time than to share them: one message's alone.
    Short(Vec<u8>),
    /// Messages share it.
    Shared(Arc<Storage>),
}

/// Most bytes that are copied and not shared.
pub(super) const SHORT_BYTES_MAX: usize = 256;

/// Memory that messages share.
pub(crate) enum Storage {
    /// Bytes of this process.
    Own(Vec<u8>),
    /// A block in the heap of its sender, read in place.
    Borrowed {
        /// The block.
        block: Borrowed,
        /// Bytes of it that are the message.
        length: usize,
    },
}

impl Memory {
    /// Bytes of this process.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let mut memory = Self::Short(bytes);
        memory.share_if_long();
        memory
    }

    #[inline]
    pub(super) fn bytes(&self) -> Bytes<'_> {
        let storage = match self {
            Self::Short(bytes) => return Bytes::from(&bytes[..]),
            Self::Shared(storage) => storage,
        };
        match &**storage {
            Storage::Own(own) => Bytes::from(&own[..]),
            Storage::Borrowed { block, length } => block.piece(0, *length),
        }
    }

    /// Whether it is this storage.
    pub(super) fn is(&self, storage: &Arc<Storage>) -> bool {
        matches!(self, Self::Shared(own) if Arc::ptr_eq(own, storage))
    }

    /// Whether it is one message's alone, and this process's.
    pub(super) fn is_writable(&self) -> bool {
        match self {
            Self::Short(_) => true,
            Self::Shared(storage) => {
                Arc::strong_count(storage) == 1 && matches!(**storage, Storage::Own(_))
            }
        }
    }

    /// Its bytes, to write more behind them, where they are one message's alone.
    pub(super) fn writable(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Short(bytes) => Some(bytes),
            Self::Shared(storage) => match Arc::get_mut(storage)? {
                Storage::Own(own) => Some(own),
                Storage::Borrowed { .. } => None,
            },
        }
    }

    /// Truncates the memory to a length.
    pub(super) fn cut(&mut self, length: usize) {
        if let Some(bytes) = self.writable() {
            bytes.truncate(length);
        }
    }

    /// Makes memory that has become long shareable.
    pub(super) fn share_if_long(&mut self) {
        if let Self::Short(bytes) = self
            && bytes.len() > SHORT_BYTES_MAX
        {
            *self = Self::Shared(Arc::new(Storage::Own(std::mem::take(bytes))));
        }
    }

    /// Makes memory without pieces private again; false where another message shares it.
    pub(super) fn make_short(&mut self) -> bool {
        if let Self::Shared(_) = self {
            let Some(bytes) = self.writable() else { return false };
            *self = Self::Short(std::mem::take(bytes));
        }
        true
    }
}

/// The form in which a piece is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Elements of one kind, any number at a time.
    Elements(Kind),
    /// Items whose signature has this fingerprint, together.
    Items(u64),
    /// A text, as a whole.
    Text,
    /// The address of a mailbox.
    Mailbox,
}

impl Form {
    /// Returns the form of this many items.
    pub(super) fn of_items(layout: &Layout, count: u64) -> Self {
        match layout.uniform_kind() {
            Some(kind) => Self::Elements(kind),
            None => Self::Items(layout.signature(count).fingerprint()),
        }
    }

    pub(super) fn is_elements(self) -> bool {
        matches!(self, Self::Elements(_))
    }

    /// Whether one is unpacked as the other.
    pub(super) fn is_like(self, other: Self) -> bool {
        match (self, other) {
            (Self::Elements(kind), Self::Elements(other)) => is_like(kind, other),
            _ => self == other,
        }
    }

    /// Bytes of a value of which there can be several in a piece.
    pub(super) fn value_bytes(self) -> usize {
        match self {
            Self::Elements(kind) => kind.size_bytes() as usize,
            Self::Items(_) | Self::Text | Self::Mailbox => 1,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elements(kind) => kind.fmt(formatter),
            Self::Items(_) => formatter.write_str("items of a layout"),
            Self::Text => formatter.write_str("text"),
            Self::Mailbox => formatter.write_str("the address of a mailbox"),
        }
    }
}

/// Bytes of one form in one memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Which memory of the message.
    pub(super) memory: usize,
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) form: Form,
}

impl Piece {
    /// How many values it counts as.
    pub(super) fn values(&self) -> u64 {
        match self.form {
            Form::Elements(kind) => self.length as u64 / kind.size_bytes(),
            Form::Items(_) | Form::Text | Form::Mailbox => 1,
        }
    }

    /// Whether values of a form that lie there are more of the same.
    pub(super) fn goes_on_with(&self, form: Form, memory: usize, start: usize) -> bool {
        self.form == form
            && form.is_elements()
            && (self.memory, self.start + self.length) == (memory, start)
    }

    /// Its values from one number to before another.
    pub(super) fn cut(&self, from: u64, to: u64) -> Self {
        if !self.form.is_elements() {
            return *self;
        }
        let bytes = |values: u64| values as usize * self.form.value_bytes();
        Self { start: self.start + bytes(from), length: bytes(to - from), ..*self }
    }
}
