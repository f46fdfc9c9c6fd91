//! How items of a layout are copied, found out once, for those that are packed again and again.
//!
//! To find the strips of some hundred bytes takes longer than to copy them.

use landeck_kernel::area;
use landeck_layout::{Layout, Strip};
use landeck_memory::{Blocks, Spread, copy_spread};

/// Layouts of more strips are walked each time: with these it matters less.
const STRIPS_MAX: usize = 8;
/// Several strips go over all items one after the other, so these should stay in the nearest cache.
const ACROSS_BYTES: u64 = 16 * 1024;
/// No item is longer, and none reaches further from its base address: then no sum can overflow, whatever
/// the number of items, which has 31 bits.
const REACH_BYTES: u64 = 1 << 31;

/// The strips of an item of a layout, and of several.
#[derive(Clone, Debug)]
pub struct Moves {
    item_bytes: usize,
    /// Any number of items is one run of bytes.
    is_run: bool,
    /// More items go another way; so do all if this is zero.
    items_max: u32,
    one: Box<[Move]>,
    /// Of several items: each strip has one block of each item.
    several: Box<[Move]>,
}

/// A strip, as it is copied.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Where its blocks lie.
    placed: Spread,
    /// Where they lie among the packed bytes.
    packed: Spread,
    /// The blocks on their way out of the items.
    out: Blocks,
    /// The same on their way into them.
    into: Blocks,
}

impl Moves {
    /// The moves of items of a layout.
    pub fn of(layout: &Layout) -> Self {
        let none = || Box::<[Move]>::default();
        let mut moves =
            Self { item_bytes: 0, is_run: false, items_max: 0, one: none(), several: none() };
        let (bounds, size) = (layout.true_bounds(), layout.size_bytes());
        let (Ok(extent), Some(one)) = (layout.extent_bytes(), strips(layout, 1)) else {
            return moves;
        };
        let reach = bounds.lower.unsigned_abs().max(bounds.upper.unsigned_abs());
        let reach = reach.max(extent.unsigned_abs()).max(size);
        if size == 0 || reach > REACH_BYTES {
            return moves;
        }
        moves.item_bytes = size as usize;
        moves.is_run = layout.is_contiguous();
        moves.one = one.iter().map(Move::of).collect();
        moves.items_max = 1;
        // Strips that have a block of each of two items are those of any number, but for that number.
        let of_each = |strip: &Strip| {
            strip.count == 2 && strip.stride == extent && strip.packed_stride == size
        };
        let several = strips(layout, 2).filter(|strips| strips.iter().all(of_each));
        if moves.is_run {
            moves.items_max = i32::MAX as u32;
        } else if let Some(several) = several {
            let items_max = match several.len() {
                1 => i32::MAX as u64,
                _ => ACROSS_BYTES / size.max(extent.unsigned_abs()),
            };
            moves.items_max = (items_max as u32).max(1);
            moves.several = several.iter().map(Move::of).collect();
        }
        moves
    }

    /// How many bytes so many items pack to; none if this is not the way for so many.
    #[inline(always)]
    pub fn packed_bytes(&self, count: u64) -> Option<usize> {
        let is_way = count.wrapping_sub(1) < u64::from(self.items_max);
        is_way.then(|| self.item_bytes * count as usize)
    }

    /// Packs items.
    ///
    /// # Safety
    /// [`Moves::packed_bytes`] said how many bytes these items have. They are readable, and so much room
    /// is writable and no part of them.
    #[inline(always)]
    pub unsafe fn pack(&self, items: *const u8, count: u64, room: *mut u8) {
        if self.is_run {
            // SAFETY: the caller's promise.
            unsafe { items.copy_to_nonoverlapping(room, self.item_bytes * count as usize) };
            return;
        }
        for step in self.steps(count) {
            let blocks = Blocks { count: step.blocks(count), ..step.out };
            // SAFETY: the caller's promise: the strips are those of the layout, of which no block lies
            // outside the items or their packed bytes.
            unsafe { copy_spread((items, step.placed), (room, step.packed), blocks) };
        }
    }

    /// Unpacks items.
    ///
    /// # Safety
    /// As [`Moves::pack`], the other way round: the items are writable, the packed bytes readable.
    #[inline(always)]
    pub unsafe fn unpack(&self, bytes: *const u8, items: *mut u8, count: u64) {
        if self.is_run {
            // SAFETY: the caller's promise.
            unsafe { bytes.copy_to_nonoverlapping(items, self.item_bytes * count as usize) };
            return;
        }
        for step in self.steps(count) {
            let blocks = Blocks { count: step.blocks(count), ..step.into };
            // SAFETY: as in `pack`.
            unsafe { copy_spread((bytes, step.packed), (items, step.placed), blocks) };
        }
    }

    #[inline(always)]
    fn steps(&self, count: u64) -> &[Move] {
        if count == 1 { &self.one } else { &self.several }
    }
}

impl Move {
    fn of(strip: &Strip) -> Self {
        Self {
            placed: Spread { start: strip.offset, stride: strip.stride },
            packed: Spread { start: strip.packed as i64, stride: strip.packed_stride as i64 },
            out: area::out_of(strip),
            into: area::into(strip),
        }
    }

    /// How many blocks there are: those of one item, or one of each.
    #[inline(always)]
    fn blocks(&self, items: u64) -> u64 {
        if items == 1 { self.out.count } else { items }
    }
}

/// The strips of so many items, if they are few.
fn strips(layout: &Layout, count: u64) -> Option<Vec<Strip>> {
    let mut strips = Vec::new();
    let mut number = 0;
    let walked = layout.strips(count, 0..layout.packed_bytes(count).ok()?, |strip| {
        number += 1;
        if number <= STRIPS_MAX {
            strips.push(strip);
        }
    });
    (walked.is_ok() && number <= STRIPS_MAX).then_some(strips)
}
