//! The control lines of a block: its holders, and how far it is filled and drained. They stand in front of its
//! data; in a hardened job outside the heap, because readers write some of them, and the heap is read-only for
//! readers.
//!
//! ```text
//! line 0   holders (8): generation (32 high bits) | the owner (bit 31) | readers (bits 0 to 30)
//!          number (4): the block's number in its owner's private table
//!          link (4): the next block on the return stack, plus one
//!          offset (8): in a hardened job, where the block begins in its heap
//! line 1   filled (8): bytes of the transfer put in so far
//! line 2   drained (8): bytes of the transfer taken out so far
//! ```
//!
//! A holder gives the block back by clearing its own bit, once; the holder that clears the last one puts the
//! block on its owner's return stack. Each holder has a bit, rather than all a count, so that the owner can clear
//! the bit of a reader that died, whether or not the reader had done it before.

#[cfg(not(loom))]
use crate::sync::AtomicU32;
use crate::sync::{AtomicU64, Ordering};
#[cfg(not(loom))]
use crate::{plan::BLOCK_BYTES_MIN, segment::Segment};
#[cfg(not(loom))]
use std::ptr::NonNull;

/// Most readers that may hold one block at a time.
pub const READERS_MAX: usize = 31;

#[cfg(not(loom))]
pub(super) use crate::plan::CONTROL_BYTES;

/// The bit of the owner's own handle.
pub(super) const OWNER: u32 = 1 << 31;

/// The number of the reader that a block was given to. The reader has the owner's bit and gives the block back
/// without telling the owner, which checks the blocks that it gave away.
#[cfg(not(loom))]
pub(super) const HEIR: usize = 31;
#[cfg(not(loom))]
const _: () = assert!(1 << HEIR == OWNER && HEIR == READERS_MAX);

/// The control lines of one block, all of them shared.
#[cfg(not(loom))]
#[repr(C, align(64))]
pub(super) struct Control {
    pub(super) holders: Holders,
    pub(super) number: AtomicU32,
    pub(super) link: AtomicU32,
    pub(super) offset: AtomicU64,
    pub(super) filled: OwnLine,
    pub(super) drained: OwnLine,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() as u64 == CONTROL_BYTES);

/// The control lines of the block that begins at `begin` in the heap of `slot`, which has room for them there.
#[cfg(not(loom))]
#[inline]
pub(super) fn control_of(segment: &Segment, slot: u32, begin: NonNull<u8>) -> NonNull<Control> {
    match segment.plan().is_hardened {
        false => begin.cast(),
        true => apart(segment, slot, begin),
    }
}

/// The control lines of a block in a hardened job, outside the heap. Blocks begin so far apart that no two share lines.
#[cfg(not(loom))]
#[cold]
#[inline(never)]
fn apart(segment: &Segment, slot: u32, begin: NonNull<u8>) -> NonNull<Control> {
    let plan = segment.plan();
    let heap = segment.place(plan.heap(slot), CONTROL_BYTES);
    let offset = (begin.addr().get() - heap.addr().get()) as u64;
    let place = plan.controls(slot) + offset / BLOCK_BYTES_MIN * CONTROL_BYTES;
    segment.place(place, CONTROL_BYTES).cast()
}

/// A word that has a line to itself: one side writes it, the other polls it.
#[cfg(not(loom))]
#[repr(C, align(64))]
pub(super) struct OwnLine(pub(super) AtomicU64);

/// The generation of a block's use, and the holders that it still has.
pub(super) struct Holders(AtomicU64);

impl Holders {
    /// No process holds it.
    #[cfg(loom)]
    pub(super) fn none() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Sets the holders. The owner calls it while it is the only holder.
    #[inline]
    pub(super) fn hand_out(&self, generation: u32, holders: u32) {
        self.0.store(u64::from(generation) << 32 | u64::from(holders), Ordering::Release);
    }

    /// Clears the bit of one holder. True when it was the last: then the block must be pushed on
    /// the return stack. A word of another generation, or without the bit, is left alone.
    #[inline]
    pub(super) fn give_back(&self, generation: u32, holder: u32) -> bool {
        let alone = u64::from(generation) << 32 | u64::from(holder);
        let mut seen = self.0.load(Ordering::Acquire);
        if seen == alone {
            // No other holder has a bit to clear: no need for the dearer exchange.
            self.0.store(seen & !u64::from(holder), Ordering::Release);
            return true;
        }
        // Every other holder changes the word once at most; more changes are stray writes.
        for _ in 0..=READERS_MAX {
            if (seen >> 32) as u32 != generation || seen as u32 & holder == 0 {
                return false;
            }
            let left = seen & !u64::from(holder);
            match self.0.compare_exchange(seen, left, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return left as u32 == 0,
                Err(other) => seen = other,
            }
        }
        false
    }

    /// The bits of `holders` that still hold the block; zero when the word belongs to another generation.
    #[inline]
    pub(super) fn who(&self, generation: u32, holders: u32) -> u32 {
        let seen = self.0.load(Ordering::Acquire);
        if (seen >> 32) as u32 == generation { seen as u32 & holders } else { 0 }
    }
}
