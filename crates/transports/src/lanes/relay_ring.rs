//! The ring on which the relay of a host lays pieces of messages for one process of that host.
//!
//! It is a ring of the segment like those of processes. Its sender is the relay, for all processes of other hosts
//! together, so each piece names its source.

use landeck_channel::BrokenPeer;
use landeck_memory::ring::{INLINE_BYTES, RingFull, RingReceiver, RingSender};
use landeck_memory::waiter::Doorbell;
use landeck_memory::{Bytes, RelayWords, Segment};
use landeck_wire::relayed::{RELAYED_PIECE_BYTES_MAX, RelayedPiece};
use landeck_wire::{Class, Flags, HEADER_BYTES, Header};

use crate::shared_memory::{DATA_BYTES_MAX, data_place};

/// The relay's end.
pub struct RelayRingSender {
    words: RelayWords,
    ring: RingSender,
    sequence: u16,
    bell: Doorbell,
}

/// The process's end.
pub(super) struct RelayRingReceiver {
    segment: Segment,
    slot: u32,
    incarnation: u32,
    words: RelayWords,
    /// `None` until the relay has something for this process.
    ring: Option<RingReceiver>,
    sequence: u16,
    is_broken: bool,
}

impl RelayRingSender {
    /// Clears the ring to a process of this host. `None` if there is no such slot.
    pub fn new(segment: &Segment, slot: u32, incarnation: u32) -> Option<Self> {
        let words = RelayWords::of(segment, slot)?;
        let bell = Doorbell::of(segment, slot)?;
        let ring = RingSender::new(words.make_ready(incarnation)?);
        Some(Self { words, ring, sequence: 0, bell })
    }

    /// Lays the data of a relayed frame, at most a header and a piece, and wakes the process. `source` is the place of
    /// the sender in the far table, and its incarnation.
    ///
    /// # Errors
    /// [`RingFull`].
    pub fn try_push(
        &mut self,
        source: (u32, u32),
        class: Class,
        data: &[u8],
    ) -> Result<(), RingFull> {
        const { assert!(RELAYED_PIECE_BYTES_MAX + HEADER_BYTES <= DATA_BYTES_MAX) }
        let frame = RelayedPiece::frame(class, data.len().saturating_sub(HEADER_BYTES), source);
        let frame = Header { sequence: self.sequence, ..frame };
        if data.len() <= INLINE_BYTES {
            self.ring.push_inline(frame.head(), frame.label(), Bytes::from(data))?;
        } else {
            let frame = Header { flags: frame.flags.with(Flags::BULK), ..frame };
            self.ring.push_bulk(frame.head(), frame.label(), Bytes::from(data))?;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.bell.ring_fenced();
        Ok(())
    }

    /// Says whether the relay holds pieces that found no room. After it has said so, it must try once more.
    pub fn set_holds(&self, holds: bool) {
        self.words.set_holds(holds);
        self.bell.ring_fenced();
    }
}

impl RelayRingReceiver {
    /// The end of a process; `None` where no relay is.
    pub(super) fn new(segment: &Segment, slot: u32, incarnation: u32) -> Option<Self> {
        let words = RelayWords::of(segment, slot)?;
        let segment = segment.clone();
        let (ring, sequence, is_broken) = (None, 0, false);
        Some(Self { segment, slot, incarnation, words, ring, sequence, is_broken })
    }

    /// The header and the data of the next relayed frame. After an error there is none any more.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<Option<(Header, Bytes<'_>)>, BrokenPeer> {
        if self.ring.is_none() && !self.attach() {
            return Ok(None);
        }
        let Some(ring) = &self.ring else { return Ok(None) };
        let message = match ring.peek(self.sequence, data_place) {
            Ok(None) => return Ok(None),
            Ok(Some(message)) => message,
            Err(broken) => {
                self.is_broken = true;
                return Err(broken.into());
            }
        };
        match Header::from_words(message.head, message.label) {
            Ok(header) => Ok(Some((header, message.data))),
            Err(broken) => {
                self.is_broken = true;
                Err(broken.into())
            }
        }
    }

    /// Looks whether the ring is ready for this process.
    #[inline]
    fn attach(&mut self) -> bool {
        if self.is_broken || !self.words.is_ready(self.incarnation) {
            return false;
        }
        let memory = landeck_memory::ring::RingMemory::of_relay(&self.segment, self.slot);
        self.ring = memory.map(RingReceiver::new);
        self.ring.is_some()
    }

    /// Continues behind the frame that [`RelayRingReceiver::peek`] has returned. Whether the relay waits for its room.
    pub(super) fn consume(&mut self, frame: &Header) -> bool {
        let Some(ring) = &mut self.ring else { return false };
        self.sequence = self.sequence.wrapping_add(1);
        let is_bulk = frame.flags.contains(Flags::BULK);
        let told = ring.consume(if is_bulk { frame.length as usize } else { 0 });
        told && self.words.awaits_room()
    }

    /// The relay has ended, so it holds nothing any more.
    pub(super) fn end_sender(&self) {
        self.words.set_holds(false);
    }

    /// Lets the next relay begin with an empty ring. What the one before has laid is taken.
    pub(super) fn begin_again(&mut self) {
        (self.ring, self.sequence) = (None, 0);
        self.words.withdraw();
    }

    /// Takes no more from the ring.
    pub(super) fn close(&mut self) {
        self.is_broken = true;
        self.ring = None;
    }

    /// Whether nothing lies in the ring, and the relay holds nothing for it.
    pub(super) fn is_empty(&self) -> bool {
        if self.is_broken {
            return true;
        }
        let holds = self.words.has_held();
        !holds
            && match &self.ring {
                Some(ring) => matches!(ring.peek(self.sequence, data_place), Ok(None)),
                None => !self.words.is_ready(self.incarnation),
            }
    }
}

impl std::fmt::Debug for RelayRingSender {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RelayRingSender")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
