//! Unexpected messages, which are kept until their receive.

use landeck_memory::heap::BlockRange;
use landeck_memory::{Bytes, InCell};
use landeck_wire::stored::StoredPlace;

use crate::request::RequestId;
use crate::status::Status;
use crate::told::Told;
use crate::transfer::Source;

/// The number of data bytes that are kept in the message itself.
const KEPT_INLINE_BYTES: usize = 48;
/// The cost of a kept message besides its data, in bytes.
const KEPT_OVERHEAD_BYTES: u64 = 128;

/// An unexpected message.
pub(crate) enum Kept {
    Short {
        length: u8,
        data: [u8; KEPT_INLINE_BYTES],
    },
    Long(Vec<u8>),
    Elsewhere {
        place: BlockRange,
        length: u64,
    },
    InCell(InCell),
    Offer {
        length: u64,
        send: u64,
        /// Where its data lie, if this process may read them.
        told: Option<Box<Told>>,
    },
    /// Its data are on a host, from which its receive fetches them.
    Stored {
        stored: StoredPlace,
        length: u64,
    },
    /// A part of it has come for a receive that was given up.
    Begun(Box<Begun>),
    /// A part of it has come for a receive that was given up, and the rest comes by itself: its parts name this
    /// request.
    Coming {
        named: RequestId,
        length: u64,
    },
}

impl Kept {
    pub(crate) fn new(data: Bytes<'_>) -> Self {
        if data.len() > KEPT_INLINE_BYTES {
            return Self::Long(data.to_vec());
        }
        let mut short = [0; KEPT_INLINE_BYTES];
        let length = data.copy_to_slice(&mut short) as u8;
        Self::Short { length, data: short }
    }

    pub(crate) fn message_bytes(&self) -> u64 {
        match self {
            Self::Short { length, .. } => u64::from(*length),
            Self::Long(data) => data.len() as u64,
            Self::Elsewhere { length, .. }
            | Self::Offer { length, .. }
            | Self::Stored { length, .. }
            | Self::Coming { length, .. } => *length,
            Self::InCell(place) => place.bytes.into(),
            Self::Begun(begun) => begun.status.bytes,
        }
    }

    /// The number of bytes of our memory that it takes.
    pub(crate) fn cost_bytes(&self) -> u64 {
        let more = match self {
            Self::Long(data) => data.len() as u64,
            Self::Begun(begun) => begun.cost_bytes(),
            _ => 0,
        };
        KEPT_OVERHEAD_BYTES + more
    }
}

/// A message of which a part has come for a receive that was given up.
pub(crate) struct Begun {
    pub(crate) source: Source,
    pub(crate) status: Status,
    pub(crate) is_whole: bool,
    /// The data that have already left their place.
    pub(crate) has_come: Vec<u8>,
}

impl Begun {
    /// Whether its data are in the heap of a slot.
    pub(crate) fn is_in(&self, slot: u32) -> bool {
        matches!(&self.source, Source::Block(block) if block.owner() == slot)
    }

    /// The number of bytes that are kept here.
    pub(crate) fn cost_bytes(&self) -> u64 {
        self.has_come.len() as u64
    }
}
