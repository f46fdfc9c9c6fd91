//! The reader's handle: a block in another process's heap.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::control::{CONTROL_BYTES, Control, HEIR, OWNER, control_of};
use super::space::GRAIN;
use super::{BlockRange, returns};
use crate::plan::LINE_BYTES;
use crate::private::bytes::Bytes;
use crate::segment::Segment;
use crate::sync;

/// A block that its owner has lent to this process. Dropped, it is given back.
pub struct Borrowed {
    segment: Segment,
    owner: u32,
    /// Where the block begins: its control lines, but for a hardened job, then its data.
    begin: NonNull<u8>,
    generation: u32,
    /// This reader's bit among the holders.
    bit: u32,
    window: u64,
    /// Bytes taken out so far, in private memory that no other process can overwrite.
    drained: AtomicU64,
}

// SAFETY: the shared memory is used through atomics and copied out of as `Bytes`; the segment
// handle keeps it mapped.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}

/// Why a place leads to no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockRangeError {
    /// No owner lends such a place.
    #[error(
        "a reference to {window} bytes at {offset} of the heap of slot {owner} lies outside that heap: its sender is broken"
    )]
    Impossible {
        /// The slot named.
        owner: u32,
        /// The offset named.
        offset: u64,
        /// The bytes named.
        window: u64,
    },
    /// The block is not lent to this reader, or not any more.
    #[error(
        "a reference to the heap of slot {owner} is stale: its block was taken back, or this reader has given it back"
    )]
    Stale {
        /// The slot named.
        owner: u32,
    },
}

impl Borrowed {
    /// Opens the block at a place that its owner sent to this reader.
    ///
    /// # Errors
    /// [`BlockRangeError`].
    #[inline]
    pub fn open(segment: &Segment, place: BlockRange) -> Result<Self, BlockRangeError> {
        let (reader, start) = (place.offset % GRAIN, place.offset / GRAIN * GRAIN);
        let plan = segment.plan();
        let end = start.checked_add(place.window);
        let possible = place.owner < plan.slots()
            && reader <= HEIR as u64
            && start >= CONTROL_BYTES
            && end.is_some_and(|end| end <= plan.heap_bytes_per_process);
        if !possible {
            let BlockRange { owner, offset, window, .. } = place;
            return Err(BlockRangeError::Impossible { owner, offset, window });
        }
        let offset = start - CONTROL_BYTES;
        let at = plan.heap(place.owner) + offset;
        let begin = segment.place(at, CONTROL_BYTES + place.window);
        let control = control_of(segment, place.owner, begin);
        fetch_lines(control, begin);
        if plan.is_hardened && !is_of(control, offset) {
            return Err(BlockRangeError::Stale { owner: place.owner });
        }
        let borrowed = Self {
            begin,
            segment: segment.clone(),
            owner: place.owner,
            generation: place.generation,
            bit: 1 << reader,
            window: place.window,
            drained: AtomicU64::new(0),
        };
        segment.hold(place.owner);
        if borrowed.bit != OWNER {
            sync::prefetch_to_write(segment.return_word(place.owner));
        }
        if borrowed.control().holders.who(borrowed.generation, borrowed.bit) == 0 {
            return Err(BlockRangeError::Stale { owner: place.owner });
        }
        Ok(borrowed)
    }

    /// The slot whose heap the block is in.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Bytes of the transfer that are or were in the block.
    #[inline]
    pub fn filled(&self) -> u64 {
        let drained = self.drained.load(Ordering::Relaxed);
        let filled = self.control().filled.0.load(Ordering::Acquire);
        filled.clamp(drained, drained.saturating_add(self.window))
    }

    /// The bytes from `position` of the transfer, at most `length`: as many as are there and lie
    /// together. None before what was drained.
    #[inline]
    pub fn piece(&self, position: u64, length: usize) -> Bytes<'_> {
        let there = self.filled().saturating_sub(position);
        if there == 0 || position < self.drained.load(Ordering::Relaxed) {
            return Bytes::EMPTY;
        }
        let at = if position < self.window { position } else { position % self.window };
        let length = (length as u64).min(there).min(self.window - at);
        // SAFETY: `at + length` is at most `window`, which `open` checked to lie within the heap; the
        // borrow of `self` keeps the segment mapped.
        unsafe {
            let start = self.begin.add((CONTROL_BYTES + at) as usize);
            Bytes::from_raw(start, length as usize)
        }
    }

    /// Tells the owner that the first `position` bytes were taken out: their room may be used
    /// again. Positions only grow, and not beyond what was filled.
    #[inline]
    pub fn set_drained(&self, position: u64) {
        let position = position.min(self.filled());
        let before = self.drained.fetch_max(position, Ordering::Relaxed);
        if position > before {
            self.control().drained.0.store(position, Ordering::Release);
        }
    }

    #[inline]
    fn control(&self) -> &Control {
        // SAFETY: `open` checked that the control lines lie within the segment, aligned;
        // they stay mapped while the segment handle lives and are only used atomically.
        unsafe { control_of(&self.segment, self.owner, self.begin).as_ref() }
    }
}

/// Whether control lines, in a hardened job, are those of the block at this offset: other places lead
/// to them too.
#[cold]
fn is_of(control: NonNull<Control>, offset: u64) -> bool {
    // SAFETY: `control_of` has found the lines within the segment, aligned; they are only used
    // atomically.
    unsafe { control.as_ref() }.offset.load(Ordering::Relaxed) == offset
}

/// Prefetches together all lines that a reader of little data needs and the owner wrote last: each of
/// them takes as long as a message.
#[inline]
fn fetch_lines(control: NonNull<Control>, begin: NonNull<u8>) {
    let line = control.cast::<[u8; LINE_BYTES as usize]>().as_ptr();
    sync::prefetch_to_write_at(line.cast());
    sync::prefetch_at(line.wrapping_add(1).cast());
    sync::prefetch_at(begin.as_ptr().wrapping_add(CONTROL_BYTES as usize).cast());
}

impl Drop for Borrowed {
    #[inline]
    fn drop(&mut self) {
        let control = self.control();
        // Read before the owner can have it back and use it anew.
        let number = control.number.load(Ordering::Relaxed);
        if control.holders.give_back(self.generation, self.bit) {
            if self.bit != OWNER {
                returns::push(self.segment.return_word(self.owner), number, &control.link);
            }
            // It may be waiting for room.
            self.segment.wake(self.owner);
        }
        self.segment.release(self.owner);
    }
}

impl std::fmt::Debug for Borrowed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Borrowed")
            .field("owner", &self.owner)
            .field("generation", &self.generation)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
