//! The owner's handles: a block it alone uses, and one that it has lent.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::control::{CONTROL_BYTES, Control, HEIR, OWNER, control_of};
use super::{BlockRange, returns};
use crate::private::bytes::{Buffer, Bytes};
use crate::segment::Segment;

/// Most bytes put in before the reader is told of them. Telling costs both sides the transfer of a
/// line, so the pieces of a large window are larger.
const PIECE_BYTES: u64 = 16 * 1024;
const LARGE_PIECE_BYTES: u64 = 32 * 1024;
/// A window from which on pieces are large.
const LARGE_WINDOW_BYTES: u64 = 128 * 1024;

/// A block that no other process uses. Dropped, it goes back to its heap.
pub struct Block(pub(super) Handle);

/// A block that readers may hold. Dropped, it is filled no further, and is free again when all
/// readers have given it back.
pub struct Lent {
    handle: Handle,
    /// Bytes put in so far.
    filled: u64,
    /// Bytes taken out so far, as last seen.
    drained: u64,
}

/// A block that was given to one reader, which is still to be told its place. Once this is dropped, the block is the
/// reader's alone: the owner touches its words no more, which the reader is about to write.
#[must_use]
pub struct Given(Handle);

/// The private state that a heap shares with its handle to one block.
pub(super) struct Tie {
    pub(super) segment: Segment,
    pub(super) slot: u32,
    /// Whether there is a handle. While there is one, the block is its owner's, whatever the
    /// shared words say.
    pub(super) held: AtomicBool,
}

/// The owner's hold on one block.
pub(super) struct Handle {
    pub(super) tie: Arc<Tie>,
    /// Where the block begins: its control lines, but for a hardened job, then its data.
    pub(super) begin: NonNull<u8>,
    pub(super) number: u32,
    pub(super) generation: u32,
    /// Where the block begins, in bytes from the start of the heap.
    pub(super) offset: u64,
    /// Bytes of data.
    pub(super) window: u64,
    /// It was given to its reader: this handle gives nothing back.
    pub(super) is_given: bool,
}

// SAFETY: the memory behind a handle is used through atomics, or by the handle alone; `tie` keeps
// it mapped, wherever the handle goes.
unsafe impl Send for Handle {}
// SAFETY: a shared handle gives out shared views only.
unsafe impl Sync for Handle {}

impl Handle {
    #[inline]
    pub(super) fn control(&self) -> &Control {
        let control = control_of(&self.tie.segment, self.tie.slot, self.begin);
        // SAFETY: the control lines stay mapped while `tie` lives and are only used atomically.
        unsafe { control.as_ref() }
    }

    #[inline]
    fn data(&self) -> NonNull<u8> {
        // SAFETY: the data follow the room for the control lines within the block.
        unsafe { self.begin.add(CONTROL_BYTES as usize) }
    }

    /// Where the reader with this number finds the block.
    #[inline]
    fn place(&self, reader: usize) -> BlockRange {
        BlockRange {
            owner: self.tie.slot,
            generation: self.generation,
            offset: self.offset + CONTROL_BYTES + reader as u64,
            window: self.window,
        }
    }

    /// Takes the block back for its owner alone, whichever reader was to get it.
    fn take_back(&mut self) {
        self.control().holders.hand_out(self.generation, OWNER);
        self.tie.held.store(true, Ordering::Release);
        self.is_given = false;
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        if self.is_given {
            return;
        }
        self.tie.held.store(false, Ordering::Release);
        if self.control().holders.give_back(self.generation, OWNER) {
            let head = self.tie.segment.return_word(self.tie.slot);
            returns::push(head, self.number, &self.control().link);
        }
    }
}

impl Block {
    /// Where its data begin, in bytes from the start of the segment.
    #[inline]
    pub fn offset(&self) -> u64 {
        let heap = self.0.tie.segment.plan().heap(self.0.tie.slot);
        heap + self.0.offset + CONTROL_BYTES
    }

    /// Its data as a buffer, which may be used as long as the block is kept.
    #[inline]
    pub fn buffer(&self) -> Buffer {
        // SAFETY: the data are `window` mapped bytes, which this process uses through this handle only.
        unsafe { Buffer::new(self.0.data(), self.0.window as usize) }
    }

    /// Whether it lies in the part of the heap that is left to deposits.
    #[inline]
    pub fn is_reserved(&self) -> bool {
        self.0.offset >= self.0.tie.segment.plan().reserve()
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block's data are `window` mapped bytes, initialised (a fresh page is zero),
        // which this process uses through this handle only.
        unsafe { std::slice::from_raw_parts(self.0.data().as_ptr(), self.0.window as usize) }
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes it the only view.
        unsafe { std::slice::from_raw_parts_mut(self.0.data().as_ptr(), self.0.window as usize) }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Block").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

impl Lent {
    #[inline]
    pub(super) fn new(handle: Handle, filled: u64) -> Self {
        Self { handle, filled, drained: 0 }
    }

    /// Where the reader with this number, in the order of [`super::Heap::lend`], finds the block.
    #[inline]
    pub fn place(&self, reader: usize) -> BlockRange {
        self.handle.place(reader)
    }

    /// Bytes put in so far.
    pub fn filled(&self) -> u64 {
        self.filled
    }

    /// Bytes that the reader has taken out so far. With several readers, of use only when the
    /// window holds the whole transfer.
    pub fn drained(&self) -> u64 {
        let drained = self.handle.control().drained.0.load(Ordering::Acquire);
        // A word outside the valid range is a stray write.
        if (self.drained..=self.filled).contains(&drained) { drained } else { self.drained }
    }

    /// Copies in as much as there is room for, and tells the reader after each piece; says how
    /// much that was.
    pub fn fill(&mut self, bytes: Bytes<'_>) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let copied = self.fill_with(|room| bytes.part(taken, usize::MAX).copy_to(room));
            if copied == 0 {
                break;
            }
            taken += copied;
        }
        taken
    }

    /// Lets `write` put bytes into the next room, at most a piece, and tells the reader; `write`
    /// says how many it put in, which is returned. There may be no room: then it is not called.
    pub fn fill_with(&mut self, write: impl FnOnce(&mut [MaybeUninit<u8>]) -> usize) -> usize {
        let (start, length) = self.room();
        if length == 0 {
            return 0;
        }
        // SAFETY: `room` gives a range of the block that the reader has not been told of or is
        // done with, and `&mut self` makes this the only view of it in this process.
        let room = unsafe { std::slice::from_raw_parts_mut(start.as_ptr().cast(), length) };
        let written = write(room).min(length);
        self.filled += written as u64;
        self.handle.control().filled.0.store(self.filled, Ordering::Release);
        written
    }

    fn room(&mut self) -> (NonNull<u8>, usize) {
        let window = self.handle.window;
        if self.filled - self.drained >= window {
            self.drained = self.drained();
        }
        let free = window - (self.filled - self.drained);
        let at = if self.filled < window { self.filled } else { self.filled % window.max(1) };
        let piece = if window < LARGE_WINDOW_BYTES { PIECE_BYTES } else { LARGE_PIECE_BYTES };
        let length = free.min(window - at).min(piece);
        // SAFETY: `at` lies within the block's data.
        (unsafe { self.handle.data().add(at as usize) }, length as usize)
    }

    /// Whether every reader has given the block back.
    #[inline]
    pub fn is_returned(&self) -> bool {
        self.handle.control().holders.who(self.handle.generation, !OWNER) == 0
    }

    /// Takes the block back from its readers, for a place that never reached any.
    pub fn withdraw(mut self) -> Block {
        self.handle.take_back();
        Block(self.handle)
    }
}

impl Given {
    #[inline]
    pub(super) fn new(mut handle: Handle) -> Self {
        handle.is_given = true;
        handle.tie.held.store(false, Ordering::Release);
        Self(handle)
    }

    /// Where its reader finds it.
    #[inline]
    pub fn place(&self) -> BlockRange {
        self.0.place(HEIR)
    }

    pub(super) fn taken_back(mut self) -> Handle {
        self.0.take_back();
        self.0
    }
}
