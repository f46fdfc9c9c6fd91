//! What a message consists of: pieces of one form each, and the memory that they lie in.

use std::fmt;

use landeck_layout::{Kind, Layout};
use landeck_memory::{Borrowed, Bytes};

use super::is_like;

/// Memory that pieces lie in; messages share it.
pub(crate) enum Storage {
    /// Bytes of this process.
    Own(Vec<u8>),
    /// A block in the heap of whoever sent it, read in place.
    Borrowed {
        /// The block.
        block: Borrowed,
        /// Bytes of it that are the message.
        length: usize,
    },
}

impl Storage {
    pub(super) fn bytes(&self) -> Bytes<'_> {
        match self {
            Self::Own(own) => Bytes::from(&own[..]),
            Self::Borrowed { block, length } => block.piece(0, *length),
        }
    }

    pub(super) fn own_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Own(own) => Some(own),
            Self::Borrowed { .. } => None,
        }
    }

    pub(super) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

/// What a piece is unpacked as.
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
    /// The form of so many items.
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

/// Bytes of one form in one storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Which storage of the message.
    pub(super) storage: usize,
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
    pub(super) fn goes_on_with(&self, form: Form, storage: usize, start: usize) -> bool {
        self.form == form
            && form.is_elements()
            && (self.storage, self.start + self.length) == (storage, start)
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
