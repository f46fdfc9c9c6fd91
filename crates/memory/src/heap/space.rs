//! Where in an arena there is room: size classes over free spans. Numbers only, private to the
//! owner, so nothing that happens to the arena can disturb it.
//!
//! Classes: multiples of 64 bytes up to 512, then four to each doubling. Spans: free ranges, the
//! smallest that fits is taken, neighbours are joined; behind the last one the arena grows up to
//! its limit, which is the most memory that it will ever use.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Everything is a multiple of this.
pub(super) const GRAIN: u64 = 64;

/// Classes that are single steps of a grain, and steps per doubling after those.
const SINGLE_STEPS: u64 = 8;
const STEPS: u64 = 4;

/// How many classes there are for capacities up to 2^40 and a little more.
pub(super) const CLASSES: usize = 7 + 4 * 32;

/// The smallest class whose blocks hold so many bytes (at most 2^40).
#[inline]
pub(super) fn class_above(bytes: u64) -> usize {
    let class = class_below(bytes);
    if class_bytes(class) < bytes { class + 1 } else { class }
}

/// The largest class whose blocks need no more than this capacity; the first for less than that.
#[inline]
pub(super) fn class_below(capacity: u64) -> usize {
    let grains = (capacity / GRAIN).max(1);
    if grains <= SINGLE_STEPS {
        return (grains - 1) as usize;
    }
    let doublings = u64::from(grains.ilog2()) - 3;
    let step = (grains >> (doublings + 1)) - STEPS;
    (SINGLE_STEPS - 1 + doublings * STEPS + step) as usize
}

/// Bytes that a block of a class holds.
#[inline]
pub(super) fn class_bytes(class: usize) -> u64 {
    let class = class as u64;
    if class < SINGLE_STEPS {
        return (class + 1) * GRAIN;
    }
    let (doublings, step) = ((class - SINGLE_STEPS) / STEPS, (class - SINGLE_STEPS) % STEPS + 1);
    ((STEPS + step) << (doublings + 1)) * GRAIN
}

/// The free ranges of an arena.
pub(super) struct Spans {
    /// Offset and bytes of each free range below `top`; no two touch, none touches `top`.
    by_offset: BTreeMap<u64, u64>,
    /// Each free range as (bytes, offset), to find one by its length.
    by_bytes: BTreeSet<(u64, u64)>,
    /// The end of the used part: no range from this offset on was given out.
    top: u64,
    /// `top` stays at or below this.
    limit: u64,
}

impl Spans {
    /// An arena between these offsets of which nothing was given out.
    pub(super) fn new(places: Range<u64>) -> Self {
        let Range { start: top, end: limit } = places;
        Self { by_offset: BTreeMap::new(), by_bytes: BTreeSet::new(), top, limit }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Sets how far the arena may grow; what it has grown to stays.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Takes a range of so many bytes; its offset.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let Some(&(span_bytes, offset)) = self.by_bytes.range((bytes, 0)..).next() else {
            let end = self.top.checked_add(bytes).filter(|&end| end <= self.limit)?;
            return Some(std::mem::replace(&mut self.top, end));
        };
        self.remove(offset, span_bytes);
        if span_bytes > bytes {
            self.insert(offset + bytes, span_bytes - bytes);
        }
        Some(offset)
    }

    /// Gives a range back that was taken.
    pub(super) fn give(&mut self, mut offset: u64, mut bytes: u64) {
        let before = self.by_offset.range(..offset).next_back().map(|(&at, &bytes)| (at, bytes));
        if let Some((start, length)) = before.filter(|&(start, length)| start + length == offset) {
            self.remove(start, length);
            (offset, bytes) = (start, length + bytes);
        }
        if let Some(&after) = self.by_offset.get(&(offset + bytes)) {
            self.remove(offset + bytes, after);
            bytes += after;
        }
        if offset + bytes == self.top {
            self.top = offset;
        } else {
            self.insert(offset, bytes);
        }
    }

    fn insert(&mut self, offset: u64, bytes: u64) {
        self.by_offset.insert(offset, bytes);
        self.by_bytes.insert((bytes, offset));
    }

    fn remove(&mut self, offset: u64, bytes: u64) {
        self.by_offset.remove(&offset);
        self.by_bytes.remove(&(bytes, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_grow_and_every_size_has_its_own() {
        assert!((1..CLASSES).all(|class| class_bytes(class) > class_bytes(class - 1)));
        assert!(class_bytes(CLASSES - 1) >= 1 << 40);
        assert!(class_above(1 << 40) < CLASSES);
        for class in 0..CLASSES {
            let bytes = class_bytes(class);
            assert_eq!((class_above(bytes), class_below(bytes)), (class, class));
            assert_eq!(class_above(bytes + 1), class + 1);
            assert_eq!(class_below(bytes + 1), class);
        }
        assert_eq!((class_above(0), class_above(1), class_below(0)), (0, 0, 0));
    }

    #[test]
    fn spans_are_joined_again_in_whatever_order_they_come_back() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let mut spans = Spans::new(0..1000);
            let taken: Vec<u64> = (0..4).map(|_| spans.take(250).unwrap()).collect();
            assert_eq!(spans.take(1), None);
            for at in order {
                spans.give(taken[at], 250);
            }
            assert_eq!(spans.take(1000), Some(0));
        }
    }

    #[test]
    fn spans_that_are_taken_never_overlap_and_all_come_back() {
        let mut random = 1u64;
        let mut next = move |bound: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 33) % bound
        };
        let mut spans = Spans::new(0..1 << 16);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for _ in 0..5_000 {
            if next(2) == 0 || taken.is_empty() {
                let bytes = next(3000) + 1;
                let Some(offset) = spans.take(bytes) else { continue };
                let apart =
                    |&(at, length): &(u64, u64)| offset + bytes <= at || at + length <= offset;
                assert!(taken.iter().all(apart) && offset + bytes <= 1 << 16);
                taken.push((offset, bytes));
            } else {
                let (offset, bytes) = taken.swap_remove(next(taken.len() as u64) as usize);
                spans.give(offset, bytes);
            }
        }
        for (offset, bytes) in taken {
            spans.give(offset, bytes);
        }
        assert_eq!(spans.take(1 << 16), Some(0));
    }

    #[test]
    fn a_lower_limit_stops_growth_only() {
        let mut spans = Spans::new(0..1000);
        let first = spans.take(600).unwrap();
        spans.set_limit(500);
        assert_eq!((spans.limit(), spans.take(1)), (500, None));
        spans.give(first, 600);
        assert_eq!((spans.take(600), spans.take(500)), (None, Some(0)));
    }
}
