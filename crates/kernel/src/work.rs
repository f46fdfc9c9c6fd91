//! The present work of a request.

use landeck_channel::Peer;
use landeck_memory::heap::Block;
use landeck_wire::Header;

use crate::area::Area;
use crate::chunks::Chunking;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::matching::{Waiting, Wanted};
use crate::reading::Reading;
use crate::request::{Completion, RequestId};
use crate::transfer::{Collecting, Draining, Filling, Target};

/// The present work of a request.
pub(crate) enum Work {
    /// Nothing: the place is free.
    Free,
    /// A receive waits for its message.
    Posted { wanted: Wanted, target: Target },
    /// A send has had no room yet.
    Queued { to: Peer, header: Header, area: Area, loan: Option<Block> },
    /// A send fills its block.
    Filling(Filling),
    /// A receive drains a block.
    Draining(Draining),
    /// A send has offered its message and waits for the acceptance. A standard one may end before. The receiver of one
    /// that is told reads its data.
    Offered { to: Peer, context: u32, area: Area, tag: u32, is_standard: bool, is_told: bool },
    /// A send sends the requested parts up to the position that the receiver has allowed. Then it waits until they are
    /// received before a mark of the channel.
    Parting { to: Peer, area: Area, tag: u32, position: u64, receive: u64, upto: u64, mark: u64 },
    /// A send sends its message in chunks, as far as it has tokens.
    Chunking(Chunking),
    /// A receive collects the parts that it asked for.
    Collecting(Collecting),
    /// A receive reads the sender's memory.
    Reading(Reading),
    /// Parts that name this request belong to another one.
    Passed { to: RequestId },
    /// A message was taken out for the receive that names this request.
    Held(Waiting<Kept>),
    /// It has ended.
    Done(Completion),
}

impl Work {
    /// The peer without which the operation cannot complete; `None` for a receive from any source.
    pub(crate) fn depends_on(&self) -> Option<Peer> {
        match self {
            Self::Posted { wanted, .. } => wanted.source.map(Peer),
            Self::Queued { to, .. } | Self::Offered { to, .. } | Self::Parting { to, .. } => {
                Some(*to)
            }
            Self::Filling(filling) => Some(filling.to),
            Self::Chunking(chunking) => Some(chunking.to),
            Self::Draining(draining) => Some(draining.status.peer),
            Self::Collecting(collecting) => Some(collecting.status.peer),
            Self::Reading(reading) => Some(reading.status.peer),
            Self::Free | Self::Passed { .. } | Self::Held(_) | Self::Done(_) => None,
        }
    }

    /// The work of a failed request.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Done(Completion { result: Err(failure), data: None })
    }
}
