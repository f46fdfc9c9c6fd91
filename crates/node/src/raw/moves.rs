//! Prepared copying of items of a layout, for layouts that are packed repeatedly.
//!
//! For some hundred bytes, finding the strips of a layout takes longer than copying them.

use landeck_kernel::area;
use landeck_layout::{Layout, Strip};
use landeck_memory::{Blocks, Spread, copy_spread};

/// Layouts of more strips are walked each time: for these the gain is small.
const STRIPS_MAX: usize = 8;
/// Several strips go over all items one after the other, so these should stay in the nearest cache.
const ACROSS_BYTES: u64 = 16 * 1024;
/// No item is longer, and none reaches further from its base address: then no sum can overflow, whatever
/// the number of items, which has 31 bits.
const REACH_BYTES: u64 = 1 << 31;

/// The prepared copies of a layout: the strips of one item, and of several.
#[derive(Clone, Debug)]
pub struct Moves {
    item_bytes: usize,
    /// Whether any number of items is one run of bytes.
    is_run: bool,
    /// The largest number of items copied this way; zero if none are.
    items_max: u32,
    one: Box<[Move]>,
    /// The strips of several items, each with one block of each item.
    several: Box<[Move]>,
}

/// The copy of one strip.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// The position of its blocks in the items.
    placed: Spread,
    /// The position of its blocks among the packed bytes.
    packed: Spread,
    /// The blocks for packing.
    out: Blocks,
    /// The blocks for unpacking.
    into: Blocks,
}

impl Moves {
    /// Prepares the copies of items of a layout.
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

    /// Returns the packed length of `count` items in bytes; `None` if this number of items cannot
    /// be copied this way.
    #[inline(always)]
    pub fn packed_bytes(&self, count: u64) -> Option<usize> {
        let is_way = count.wrapping_sub(1) < u64::from(self.items_max);
        is_way.then(|| self.item_bytes * count as usize)
    }

    /// Packs `count` items to `room`.
    ///
    /// # Safety
    /// [`Moves::packed_bytes`] returned the length of these items. The items are readable, and
    /// `room` has this many writable bytes that are no part of them.
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

    /// Unpacks `count` items from `bytes`.
    ///
    /// # Safety
    /// As [`Moves::pack`] in the other direction: the items are writable, the packed bytes
    /// readable.
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

    /// The number of blocks: those of one item, or one of each item.
    #[inline(always)]
    fn blocks(&self, items: u64) -> u64 {
        if items == 1 { self.out.count } else { items }
    }
}

/// The strips of this many items, if they are few.
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

#[cfg(test)]
mod tests {
    use landeck_layout::{Bounds, Family, Kind, Member};
    use landeck_testing::{Random, seed};

    use super::*;

    /// Members that lie apart, in any order.
    fn structure(random: &mut Random) -> Layout {
        let mut offset = random.below(80) as i64 - 40;
        let mut members: Vec<Member> = (0..1 + random.below(6))
            .map(|_| {
                let kind = Kind::new(Family::Unsigned, *random.pick(&[1, 2, 4, 8])).unwrap();
                let (count, layout) = (1 + random.below(5), Layout::element(kind));
                offset += random.below(3) as i64 * 5;
                let member = Member { offset, count, layout };
                offset += (count * kind.size_bytes()) as i64;
                member
            })
            .collect();
        for last in (1..members.len()).rev() {
            members.swap(last, random.below(last as u64 + 1) as usize);
        }
        Layout::structure(&members).unwrap()
    }

    /// A random structure, itself or repeated, with gaps between the items or in descending order.
    fn layout(random: &mut Random) -> Layout {
        let mut layout = structure(random);
        if random.once_in(2) {
            let bounds = layout.true_bounds();
            let stride = bounds.upper - bounds.lower + random.below(9) as i64;
            let stride = if random.once_in(3) { -stride } else { stride };
            layout = Layout::vector(1 + random.below(30), 1, stride, &layout).unwrap();
        }
        let Bounds { lower, upper } = layout.true_bounds();
        let extent = upper - lower + random.below(4) as i64 * 3;
        let extent = if random.once_in(4) { -extent } else { extent };
        layout.resized(Bounds { lower, upper: lower + extent })
    }

    #[test]
    fn moves_copy_the_bytes_that_a_walk_of_the_layout_finds() {
        let mut random = Random::new(seed());
        let mut ways = 0;
        for _ in 0..3000 {
            let layout = layout(&mut random);
            let moves = Moves::of(&layout);
            let count = 1 + random.below(40);
            let Some(bytes) = moves.packed_bytes(count) else { continue };
            ways += 1;
            assert_eq!(bytes as u64, layout.packed_bytes(count).unwrap());
            let span = layout.span(count).unwrap();
            let base = span.lower.min(0).unsigned_abs() as usize;
            let memory: Vec<u8> =
                (0..base + span.upper.max(0) as usize).map(|_| random.bits() as u8).collect();
            let (mut packed, mut unpacked) = (Vec::new(), vec![0; memory.len()]);
            let mut cursor = layout.cursor(count).unwrap();
            while let Some(piece) = cursor.next_piece(usize::MAX) {
                let at = (base as i64 + piece.offset) as usize;
                packed.extend_from_slice(&memory[at..at + piece.length]);
                unpacked[at..at + piece.length].copy_from_slice(&memory[at..at + piece.length]);
            }
            let (mut out, mut into) = (vec![0; bytes], vec![0; memory.len()]);
            // SAFETY: the items lie in these vectors, from their base address on, and pack to so many bytes.
            unsafe {
                moves.pack(memory.as_ptr().add(base), count, out.as_mut_ptr());
                moves.unpack(out.as_ptr(), into.as_mut_ptr().add(base), count);
            }
            assert!(out == packed && into == unpacked, "{count} of {layout:?}");
        }
        assert!(ways > 300, "{ways} layouts have moves");
    }

    #[test]
    fn items_that_reach_far_have_no_moves() {
        let byte = Layout::element(Kind::new(Family::Unsigned, 1).unwrap());
        let far = byte.resized(Bounds { lower: 0, upper: (1 << 31) + 1 });
        assert_eq!(Moves::of(&far).packed_bytes(1), None);
        assert_eq!(Moves::of(&byte).packed_bytes(0), None);
        assert_eq!(Moves::of(&byte).packed_bytes(u64::MAX), None);
        assert_eq!(Moves::of(&byte).packed_bytes(3), Some(3));
    }
}
