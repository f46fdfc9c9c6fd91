//! The steps that move data.
//!
//! Data up to the channel's limit travel with their header. Longer ones go through a block of the
//! sender's heap: the reference travels, the sender fills the block, the receiver drains it, both
//! at once. A block with room for the whole message never makes the sender wait; a smaller one is
//! a window that both move along. What fits into a cell goes from hand to hand in one, while there are any. Where no memory is shared, the message is offered, and its
//! parts follow when the receiver has accepted.

use landeck_channel::Peer;
use landeck_memory::heap::{Borrowed, Lent};
use landeck_memory::{Bytes, InCell, MessageCells, NoMemory, room};
use landeck_wire::Header;

use crate::area::Area;
use crate::request::{Completion, Received, RequestId};
use crate::status::Status;

/// Where a receive puts its data.
pub(crate) enum Target {
    /// Into the user's memory.
    Area(Area),
    /// Nowhere of the user's: the completion brings them.
    Own(Vec<u8>),
    /// Behind what had come for a receive that was given up; all goes to this one's target at the end.
    Through(Box<(Vec<u8>, Target)>),
    /// Nowhere: its receive has ended, and its sender waits for somebody to take it.
    Nowhere,
    /// Nowhere: there is no memory for it, which its receive finds in the end.
    Missing(NoMemory),
}

impl Target {
    /// Takes the bytes of packed position `position`.
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

    /// The result of a receive of `status.bytes` bytes that were all offered to the target.
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
    /// Puts in what the window has room for; true when that was anything.
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

/// Where the data of a receive come from.
pub(crate) enum Source {
    Block(Borrowed),
    /// The process has the cell when it has drained it.
    Cell(InCell),
}

/// A receive through a block or a cell.
pub(crate) struct Draining {
    pub(crate) context: u32,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) status: Status,
    pub(crate) position: u64,
    /// The block has room for the whole message: nobody waits for us to drain it.
    pub(crate) is_whole: bool,
    /// Where the message would stand among those that wait.
    pub(crate) number: u64,
}

/// A receive of parts.
pub(crate) struct Collecting {
    pub(crate) context: u32,
    pub(crate) target: Target,
    pub(crate) status: Status,
    pub(crate) position: u64,
    /// The request that the parts name.
    pub(crate) named: RequestId,
    /// As in [`Draining`].
    pub(crate) number: u64,
}

/// Bytes drained before the sender is told, so that it can go on meanwhile.
const DRAIN_BYTES: u64 = 32 * 1024;
/// Of these, out of a window before anything else is looked at.
const PIECES_AT_ONCE: usize = 64;

impl Draining {
    /// Takes out what is there; true when that was anything.
    pub(crate) fn advance(&mut self, cells: &MessageCells) -> bool {
        if let Some(block) = self.kept_block() {
            return block.filled() >= self.status.bytes;
        }
        let before = self.position;
        // A window is bounded here, for its words may say without end that there is more; a whole
        // block ends by itself.
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

    /// Without a buffer of the user's the block itself is what was received.
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

    /// What has come; its cell is this process's.
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

/// The two numbers of an offer or an acceptance, as they travel.
pub(crate) fn encode_pair(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

/// The two numbers of [`encode_pair`].
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

/// Something to be said to a peer as soon as its channel has room.
pub(crate) struct Reply {
    pub(crate) to: Peer,
    pub(crate) header: Header,
    pub(crate) data: [u8; 16],
}

/// A request that moves data.
pub(crate) type Active = Vec<RequestId>;
