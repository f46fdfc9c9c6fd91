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
use crate::stores::StoredReceive;
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
    Parting(Parting),
    /// A send sends its message in chunks, as far as it has tokens.
    Chunking(Chunking),
    /// A receive collects the parts that it asked for.
    Collecting(Collecting),
    /// A receive reads the sender's memory.
    Reading(Reading),
    /// A receive fetches its data from the store of a host.
    Fetching(Box<StoredReceive>),
    /// Parts that name this request belong to another one.
    Passed { to: RequestId },
    /// A message was taken out for the receive that names this request.
    Held(Waiting<Kept>),
    /// It has ended.
    Done(Completion),
}

/// A send whose receiver asks for its parts.
pub(crate) struct Parting {
    pub(crate) to: Peer,
    pub(crate) context: u32,
    pub(crate) area: Area,
    pub(crate) tag: u32,
    pub(crate) position: u64,
    /// The request of the receiver, which the parts name.
    pub(crate) receive: u64,
    /// The position that the receiver has allowed.
    pub(crate) upto: u64,
    pub(crate) mark: u64,
}

impl Work {
    /// The context of an operation that goes on.
    pub(crate) fn context(&self) -> Option<u32> {
        match self {
            Self::Posted { wanted, .. } => Some(wanted.context),
            Self::Queued { header, .. } => Some(header.context),
            Self::Offered { context, .. } => Some(*context),
            Self::Filling(filling) => Some(filling.context),
            Self::Parting(parting) => Some(parting.context),
            Self::Chunking(chunking) => Some(chunking.context),
            Self::Draining(draining) => Some(draining.context),
            Self::Collecting(collecting) => Some(collecting.context),
            Self::Reading(reading) => Some(reading.context),
            Self::Fetching(receive) => Some(receive.context),
            Self::Free | Self::Passed { .. } | Self::Held(_) | Self::Done(_) => None,
        }
    }

    /// The peer without which the operation cannot complete; `None` for a receive from any source.
    pub(crate) fn depends_on(&self) -> Option<Peer> {
        match self {
            Self::Posted { wanted, .. } => wanted.source.map(Peer),
            Self::Queued { to, .. } | Self::Offered { to, .. } => Some(*to),
            Self::Filling(filling) => Some(filling.to),
            Self::Parting(parting) => Some(parting.to),
            Self::Chunking(chunking) => Some(chunking.to),
            Self::Draining(draining) => Some(draining.status.peer),
            Self::Collecting(collecting) => Some(collecting.status.peer),
            Self::Reading(reading) => Some(reading.status.peer),
            // Its sender may be gone.
            Self::Fetching(_) => None,
            Self::Free | Self::Passed { .. } | Self::Held(_) | Self::Done(_) => None,
        }
    }

    /// The work of a failed request.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Done(Completion { result: Err(failure), data: None })
    }
}
