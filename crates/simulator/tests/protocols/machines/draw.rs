//! The random numbers of a run.

use std::time::Duration;

/// A small generator (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 if the bound is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True in so many of a thousand cases.
    pub(super) fn permille(&mut self, part: u32) -> bool {
        self.below(1_000) < u64::from(part)
    }

    /// A time of at least `least` and below `most`.
    pub(super) fn time(&mut self, least: Duration, most: Duration) -> Duration {
        least + Duration::from_nanos(self.below(most.saturating_sub(least).as_nanos() as u64))
    }

    /// A time of this mean: the spread is that of a uniform distribution.
    pub(super) fn about(&mut self, mean: Duration) -> Duration {
        self.time(mean / 10, 2 * mean)
    }

    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}
