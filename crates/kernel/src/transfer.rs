//! The steps that move data.
//!
//! Data up to the channel's limit travel with their header. Longer ones go through a block of the sender's heap: the
//! reference travels, the sender fills the block, and the receiver drains it at the same time. A block with room for
//! the whole message never makes the sender wait; a smaller one is a window that both move along. A message that fits
//! into a handoff buffer (cell) travels in one, if one is free. Without shared memory the message is offered, and its
//! parts follow when the receiver has accepted.

use landeck_channel::Peer;
use landeck_memory::heap::{Borrowed, Lent};
use landeck_memory::{Bytes, InCell, MessageCells, NoMemory, room};
use landeck_wire::Header;

use crate::area::Area;
use crate::request::{Completion, Received, RequestId};
use crate::status::Status;

/// The target of a receive's data.
pub(crate) enum Target {
    /// Into the user's memory.
    Area(Area),
    /// No memory of the user's: the completion brings the data.
    Own(Vec<u8>),
    /// A buffer behind data that had come for a receive that was given up; at the end everything goes to the inner
    /// target.
    Through(Box<(Vec<u8>, Target)>),
    /// Nowhere: the receive has ended, but the sender waits until its data are taken.
    Nowhere,
    /// Nowhere: there is no memory for the data, which the receive reports in the end.
    Missing(NoMemory),
}

impl Target {
    /// Accepts the bytes of packed position `position`.
    #[inline]
    pub(crate) fn write(&mut self, position: u64, bytes: Bytes<'_>) {
        let own = match self {
            Self::Area(area) => return area.write(position, bytes),
            Self::Nowhere | Self::Missing(_) => return,
            Self::Own(own) => own,
            Self::Through(through) => &mut through.0,
        };
        match room::grow(own, bytes.len()) {
            Ok(()) => bytes.append_to(own),
            Err(no_memory) => *self = Self::Missing(no_memory),
        }
    }

    /// The result of a receive of `status.bytes` bytes that were all written to the target.
    #[inline]
    pub(crate) fn complete(self, status: Status) -> Completion {
        match self {
            Self::Area(area) if area.packed_bytes() < status.bytes => {
                Completion { result: Err(area.truncates(status)), data: None }
            }
            Self::Area(_) => Completion { result: Ok(status), data: None },
            Self::Own(own) => Completion { result: Ok(status), data: Some(Received::Private(own)) },
            Self::Through(through) => {
                let (own, mut target) = *through;
                target.write(0, Bytes::from(&own[..]));
                target.complete(status)
            }
            Self::Nowhere => Completion { result: Ok(status), data: None },
            Self::Missing(no_memory) => Completion { result: Err(no_memory.into()), data: None },
        }
    }
}

/// A send through a block.
pub(crate) struct Filling {
    pub(crate) to: Peer,
    pub(crate) context: u32,
    pub(crate) tag: u32,
    pub(crate) lent: Lent,
    pub(crate) area: Area,
    pub(crate) position: u64,
}

impl Filling {
    /// Writes as much as the window has room for; returns whether that was anything.
    pub(crate) fn advance(&mut self) -> bool {
        let before = self.position;
        let (area, lent, position) = (&self.area, &mut self.lent, &mut self.position);
        let Some(bytes) = area.one_piece() else {
            while let packed @ 1.. = lent.fill_with(|room| area.pack(*position, room)) {
                *position += packed as u64;
            }
            return self.position != before;
        };
        *position += lent.fill(bytes.part(before as usize, usize::MAX)) as u64;
        self.position != before
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.position >= self.area.packed_bytes()
    }

    pub(crate) fn status(&self) -> Status {
        let bytes = self.area.packed_bytes();
        Status { peer: self.to, tag: self.tag, bytes, cancelled: false }
    }
}

/// The source of a receive's data.
pub(crate) enum Source {
    Block(Borrowed),
    /// A cell, which belongs to this process once it is drained.
    Cell(InCell),
}

/// A receive through a block or a cell.
pub(crate) struct Draining {
    pub(crate) context: u32,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) status: Status,
    pub(crate) position: u64,
    /// Whether the block has room for the whole message: then its sender does not wait for this drain.
    pub(crate) is_whole: bool,
    /// The position of the message among the unexpected ones.
    pub(crate) number: u64,
}

/// A receive of parts.
pub(crate) struct Collecting {
    pub(crate) context: u32,
    pub(crate) target: Target,
    pub(crate) status: Status,
    pub(crate) position: u64,
    /// The send that was asked for them.
    pub(crate) send: u64,
    /// The request that the parts name.
    pub(crate) named: RequestId,
    /// The position of the message among the unexpected ones.
    pub(crate) number: u64,
}

/// The number of bytes drained before the sender is told, so that it can continue meanwhile.
const DRAIN_BYTES: u64 = 32 * 1024;
/// The number of such pieces taken out of a window before anything else is looked at.
const PIECES_AT_ONCE: usize = 64;

impl Draining {
    /// Takes out the available data; returns whether there were any.
    pub(crate) fn advance(&mut self, cells: &MessageCells) -> bool {
        if let Some(block) = self.kept_block() {
            return block.filled() >= self.status.bytes;
        }
        let before = self.position;
        // A window is bounded here, for its words may claim without end that there is more; a whole block ends by
        // itself.
        let pieces = if self.is_whole { usize::MAX } else { PIECES_AT_ONCE };
        for _ in 0..pieces {
            let left = self.status.bytes.saturating_sub(self.position);
            let most = left.min(DRAIN_BYTES) as usize;
            let piece = match &self.source {
                Source::Block(block) => block.piece(self.position, most),
                Source::Cell(place) => cells.piece(*place, self.position as usize).part(0, most),
            };
            if piece.is_empty() {
                break;
            }
            self.target.write(self.position, piece);
            self.position += piece.len() as u64;
            if let Source::Block(block) = &self.source
                && !self.is_whole
            {
                block.set_drained(self.position);
            }
        }
        self.position != before
    }

    /// The block itself, if it is the result because there is no buffer of the user's.
    fn kept_block(&self) -> Option<&Borrowed> {
        match &self.source {
            Source::Block(block) if self.is_whole && matches!(self.target, Target::Own(_)) => {
                Some(block)
            }
            _ => None,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        let there = self.kept_block().map_or(self.position, Borrowed::filled);
        there >= self.status.bytes
    }

    /// The completion of the receive; its cell now belongs to this process.
    pub(crate) fn complete(self, cells: &mut MessageCells) -> Completion {
        match (self.source, self.target) {
            (Source::Block(block), Target::Own(_)) if self.is_whole => {
                let length = self.status.bytes as usize;
                let data = Some(Received::Borrowed { block, length });
                Completion { result: Ok(self.status), data }
            }
            (source, target) => {
                if let Source::Cell(place) = source {
                    cells.take_over(place);
                }
                target.complete(self.status)
            }
        }
    }
}

/// Encodes the two numbers of an offer or an acceptance.
pub(crate) fn encode_pair(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

/// Decodes the two numbers of [`encode_pair`].
pub(crate) fn decode_pair(bytes: Bytes<'_>) -> Option<(u64, u64)> {
    let mut pair = [0; 16];
    if bytes.len() != pair.len() {
        return None;
    }
    bytes.copy_to_slice(&mut pair);
    let [first, second] = [0, 8].map(|at| {
        let mut word = [0; 8];
        word.copy_from_slice(&pair[at..at + 8]);
        u64::from_le_bytes(word)
    });
    Some((first, second))
}

/// The bytes of an offer or an acceptance, and of one with a third number: the priority, or the position up to which the
/// send may go.
pub(crate) const PAIR_BYTES: usize = 16;
pub(crate) const TRIPLE_BYTES: usize = PAIR_BYTES + 8;

/// Decodes an acceptance: the send, the receive, and the position up to which the send may go.
pub(crate) fn decode_acceptance(data: Bytes<'_>) -> Option<(u64, u64, u64)> {
    let (send, receive) = decode_pair(data.part(0, PAIR_BYTES))?;
    match data.len() {
        PAIR_BYTES => Some((send, receive, u64::MAX)),
        TRIPLE_BYTES => {
            let mut upto = [0; 8];
            data.part(PAIR_BYTES, 8).copy_to_slice(&mut upto);
            Some((send, receive, u64::from_le_bytes(upto)))
        }
        _ => None,
    }
}

/// A message to be sent to a peer as soon as its channel has room.
#[derive(PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) to: Peer,
    pub(crate) header: Header,
    data: [u8; TRIPLE_BYTES],
}

impl Reply {
    /// A reply with data that are as long as the header says.
    pub(crate) fn new(to: Peer, header: Header, bytes: &[u8]) -> Self {
        let mut data = [0; TRIPLE_BYTES];
        data[..bytes.len()].copy_from_slice(bytes);
        Self { to, header, data }
    }

    pub(crate) fn data(&self) -> Bytes<'_> {
        Bytes::from(&self.data[..self.header.length as usize])
    }
}

/// The requests that move data.
pub(crate) type Active = Vec<RequestId>;

/// An offered message whose data were copied.
pub(crate) struct CopiedSend {
    /// The request that the offer names. Its operation has ended.
    pub(crate) named: RequestId,
    /// The request that has the copy.
    pub(crate) copy: RequestId,
}

/// The messages whose data were copied.
#[derive(Default)]
pub(crate) struct CopiedSends(pub(crate) Vec<CopiedSend>);

impl CopiedSends {
    /// The request that has the data of an offer that names this one.
    #[inline]
    pub(crate) fn holder_of(&self, named: RequestId) -> RequestId {
        self.0.iter().find(|send| send.named == named).map_or(named, |send| send.copy)
    }
}
