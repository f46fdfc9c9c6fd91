//! A mark: a word in its owner's heap that says that an object of the owner is there, such as a mailbox or memory
//! for one-sided access. Other processes read the mark before they use the object.
//!
//! The word holds a number that the owner gives out once. When the mark goes, the word becomes zero and its block
//! may become anything. A stale view then finds another number, or at worst, by a stray write, the same one: then
//! the owner, which knows its objects, refuses.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::block::Block;
use crate::plan::LINE_BYTES;
use crate::segment::Segment;

/// The owner's hold on a mark, which is gone when this is dropped.
#[derive(Debug)]
pub struct Mark {
    block: Block,
    place: u64,
}

/// Another process's view of a mark.
pub struct MarkView {
    word: NonNull<AtomicU64>,
    number: u64,
    _segment: Segment,
}

// SAFETY: the word is an atomic that stays mapped while the segment handle lives.
unsafe impl Send for MarkView {}
// SAFETY: as above.
unsafe impl Sync for MarkView {}

impl Mark {
    /// Bytes of the block that a mark needs.
    pub const BYTES: usize = size_of::<u64>();

    /// Sets a mark with this number, which is not zero, in a block of the heap of `slot`. None
    /// when the block is too short.
    pub fn set(segment: &Segment, slot: u32, block: Block, number: u64) -> Option<Self> {
        let place = block.offset().checked_sub(segment.plan().heap(slot))?;
        let mark = (block.len() >= Self::BYTES).then_some(Self { block, place })?;
        mark.word().store(number, Ordering::Release);
        Some(mark)
    }

    /// Where it is, in bytes from the start of its owner's heap.
    pub fn place(&self) -> u64 {
        self.place
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the block has eight bytes at least, begins on a line, and is only used
        // atomically while there is a mark in it.
        unsafe { &*self.block.as_ptr().cast::<AtomicU64>() }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.word().store(0, Ordering::SeqCst);
    }
}

impl MarkView {
    /// A look at the mark with this number at a place in the heap of `slot`; none when there can
    /// be no mark. Nothing of this is trusted.
    pub fn of(segment: &Segment, slot: u32, place: u64, number: u64) -> Option<Self> {
        let plan = segment.plan();
        let end = place.checked_add(LINE_BYTES)?;
        let is_possible = slot < plan.slots()
            && number != 0
            && place.is_multiple_of(LINE_BYTES)
            && end <= plan.heap_bytes_per_process;
        let word = is_possible.then(|| segment.long(plan.heap(slot) + place))?;
        Some(Self { word: NonNull::from(word), number, _segment: segment.clone() })
    }

    /// Whether it is there.
    #[inline]
    pub fn is_set(&self) -> bool {
        // SAFETY: `of` got the word from the segment, which stays mapped with `_segment`.
        unsafe { self.word.as_ref() }.load(Ordering::Acquire) == self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::plan::SegmentPlan;

    #[test]
    fn a_mark_is_seen_while_it_is_there_and_by_its_number() {
        let plan =
            SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        let mut heap = Heap::of(&segment, 1).unwrap();
        let block = heap.allocate(Mark::BYTES).unwrap();
        let mark = Mark::set(&segment, 1, block, 77).unwrap();
        let place = mark.place();
        let view = MarkView::of(&segment, 1, place, 77).unwrap();
        assert!(view.is_set());
        assert!(!MarkView::of(&segment, 1, place, 78).unwrap().is_set());
        assert!(!MarkView::of(&segment, 0, place, 77).unwrap().is_set());
        drop(mark);
        assert!(!view.is_set());
    }

    #[test]
    fn places_that_cannot_be_are_none() {
        let plan =
            SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        for (slot, place, number) in
            [(2, 64, 1), (0, 7, 1), (0, 1 << 20, 1), (0, u64::MAX, 1), (u32::MAX, 64, 1), (0, 0, 0)]
        {
            assert!(MarkView::of(&segment, slot, place, number).is_none());
        }
    }
}
