//! A set of blocks, as runs of consecutive numbers.
//!
//! The blocks that a member knows are mostly contiguous: a subtree, a half of the group. As runs such a set is small at
//! any group size.

use std::ops::Range;

/// Blocks, as runs in rising order that do not touch each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks(Vec<Range<u32>>);

impl Clone for Blocks {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    /// Reuses the memory of this set.
    fn clone_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }
}

impl Blocks {
    /// One run.
    pub(crate) fn run(run: Range<u32>) -> Self {
        Self(if run.is_empty() { Vec::new() } else { vec![run] })
    }

    /// One block.
    pub(crate) fn one(block: u32) -> Self {
        Self::run(block..block + 1)
    }

    /// These runs, in any order.
    pub(crate) fn of(runs: impl IntoIterator<Item = Range<u32>>) -> Self {
        let mut runs: Vec<Range<u32>> = runs.into_iter().filter(|run| !run.is_empty()).collect();
        runs.sort_unstable_by_key(|run| run.start);
        let mut joined: Vec<Range<u32>> = Vec::with_capacity(runs.len());
        for run in runs {
            match joined.last_mut() {
                Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
                _ => joined.push(run),
            }
        }
        Self(joined)
    }

    /// The runs, in rising order.
    pub(crate) fn runs(&self) -> &[Range<u32>] {
        &self.0
    }

    /// All blocks, in rising order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().cloned().flatten()
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|run| run.len()).sum()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the blocks that are not in the other set.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut others = other.0.iter().peekable();
        for run in &self.0 {
            let mut start = run.start;
            while let Some(hole) = others.peek().filter(|hole| hole.start < run.end) {
                if hole.end > start {
                    left.extend((hole.start > start).then_some(start..hole.start));
                    start = hole.end;
                }
                if hole.end > run.end {
                    break; // it reaches into the next run
                }
                others.next();
            }
            left.extend((start < run.end).then_some(start..run.end));
        }
        Self(left)
    }

    /// Adds all blocks of the other set.
    pub(crate) fn unite(&mut self, other: &Self) {
        const FEW: usize = 4;
        if other.0.len() > FEW {
            *self =
                Self::of(std::mem::take(&mut self.0).into_iter().chain(other.0.iter().cloned()));
            return;
        }
        for run in &other.0 {
            self.insert(run);
        }
    }

    /// Adds a run, merged with those that it touches.
    fn insert(&mut self, run: &Range<u32>) {
        let first = self.0.partition_point(|own| own.end < run.start);
        let touched = self.0[first..].iter().take_while(|own| own.start <= run.end).count();
        if touched == 0 {
            self.0.insert(first, run.clone());
            return;
        }
        let last = first + touched - 1;
        self.0[first] = self.0[first].start.min(run.start)..self.0[last].end.max(run.end);
        self.0.drain(first + 1..=last);
    }

    /// Whether no block is in both.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(one), Some(two)) = (own.peek(), others.peek()) {
            if one.start < two.end && two.start < one.end {
                return false;
            }
            if one.end <= two.end {
                own.next()
            } else {
                others.next()
            };
        }
        true
    }

    /// Whether every block of the other is here.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.without(self).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sets of numbers below 6, as runs.
    fn sets() -> Vec<(u32, Blocks)> {
        let singles = |bits: u32| (0..6).filter(move |bit| bits >> bit & 1 == 1);
        (0..64).map(|bits| (bits, Blocks::of(singles(bits).map(|bit| bit..bit + 1)))).collect()
    }

    fn bits(blocks: &Blocks) -> u32 {
        blocks.iter().map(|block| 1 << block).sum()
    }

    #[test]
    fn runs_are_what_sets_of_numbers_are() {
        for (own_bits, own) in sets() {
            assert_eq!((bits(&own), own.len()), (own_bits, own_bits.count_ones() as usize));
            for (other_bits, other) in sets() {
                assert_eq!(bits(&own.without(&other)), own_bits & !other_bits, "{own:?} {other:?}");
                assert_eq!(own.is_apart_from(&other), own_bits & other_bits == 0);
                assert_eq!(own.covers(&other), other_bits & !own_bits == 0);
                let mut both = own.clone();
                both.unite(&other);
                assert_eq!(bits(&both), own_bits | other_bits);
                assert!(both.runs().windows(2).all(|pair| pair[0].end < pair[1].start), "{both:?}");
            }
        }
    }

    #[test]
    fn a_run_is_one_however_long() {
        let all = Blocks::of([5..9, 0..3, 2..5]);
        assert_eq!((all.runs().len(), all.len()), (1, 9));
        assert_eq!(all.without(&Blocks::one(4)).runs(), [0..4, 5..9]);
        assert!(Blocks::run(3..3).is_empty());
    }
}
