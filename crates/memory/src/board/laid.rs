//! What members have laid down, as others read it.

use std::sync::atomic::Ordering;

use super::INLINE_BYTES;
use super::handle::{Board, BoardBroken};
use super::words::{IN_CELL, IN_HEAP, INLINE_WORDS, Line};
use crate::bytes::Bytes;

/// What stands on the board.
#[derive(Clone, Copy)]
pub enum Deposit<'a> {
    /// Short data.
    Inline {
        /// The words they stand in.
        words: [u64; INLINE_WORDS],
        /// How many bytes of them.
        bytes: usize,
    },
    /// Data in a block.
    Block {
        /// The block.
        bytes: Bytes<'a>,
        /// How many of them are there, from the start.
        filled: usize,
        /// How many bytes of a result have been put into the place kept for it.
        resolved: usize,
    },
}

impl Board {
    /// What a member has deposited; only after it came.
    ///
    /// # Errors
    /// [`BoardBroken`] when it names what cannot be.
    #[inline]
    pub fn deposit(&self, member: u32, number: u32) -> Result<Deposit<'_>, BoardBroken> {
        self.read(self.line(member, number), member)
    }

    #[inline]
    pub(super) fn read(&self, line: &Line, member: u32) -> Result<Deposit<'_>, BoardBroken> {
        let length = line.about.load(Ordering::Relaxed) as u32;
        if length as usize <= INLINE_BYTES {
            let bytes = length as usize;
            return Ok(Deposit::Inline { words: line.words(bytes), bytes });
        }
        let in_cell = length == IN_CELL;
        let [place, length, filled, resolved] = match length {
            IN_HEAP | IN_CELL => {
                [0, 1, 2, 3].map(|at: usize| line.data[at].load(Ordering::Acquire))
            }
            _ => return Err(BoardBroken { member }),
        };
        let bytes = match in_cell {
            true => self.cell_bytes(place, length),
            false => self.heap_bytes(member, place, length),
        };
        let bytes = bytes.ok_or(BoardBroken { member })?;
        let filled = filled.min(length) as usize;
        let resolved = resolved.min(length) as usize;
        Ok(Deposit::Block { bytes, filled, resolved })
    }

    /// Bytes in the heap of a member.
    pub(super) fn heap_bytes(&self, member: u32, offset: u64, length: u64) -> Option<Bytes<'_>> {
        let (plan, slot) = (self.segment().plan(), self.slot_of(member)?);
        let (start, end) = (plan.heap(slot), plan.heap(slot + 1));
        let fits = (start..end).contains(&offset)
            && offset.is_multiple_of(64)
            && offset.checked_add(length).is_some_and(|last| last <= end);
        if !fits {
            return None;
        }
        let place = self.segment().place(offset, 8);
        // SAFETY: the range was just checked to lie within the member's heap in the segment, which
        // stays mapped while `self` is borrowed.
        Some(unsafe { Bytes::from_raw(place, length as usize) })
    }
}
