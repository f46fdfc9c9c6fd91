//! Every member that has the data passes them on, to `radix - 1` members in each round.
//!
//! ```text
//! radix 2, eight members:   0 ──► 4         round 1
//!                           0 ──► 2  4 ──► 6        round 2
//!                           0 ──► 1  2 ──► 3  4 ──► 5  6 ──► 7   round 3
//! ```
//!
//! `size - 1` messages; with radix 2 the rounds are the logarithm of the size, rounded up. Each
//! subtree is a run of members, so parts of scattered data lie together. Nearest first, the rounds
//! go the other way round (0 to 1; 0 to 2 and 1 to 3; ...), as in the broadcast of MPI that the
//! DECK paper of 2003 draws in its figure 2.

use super::Architecture;
use crate::group::Group;
use crate::tree::Tree;

/// Every member that has the data passes them on.
#[derive(Clone, Copy, Debug)]
pub struct Knomial {
    radix: u32,
    nearest_first: bool,
}

impl Knomial {
    /// The tree of radix 2: the binomial tree.
    pub const BINOMIAL: Self = Self { radix: 2, nearest_first: false };
    /// The binomial tree whose first messages go to the nearest.
    pub const NEAREST_FIRST: Self = Self { radix: 2, nearest_first: true };

    /// Returns the tree of any radix, at least 2.
    pub const fn new(radix: u32) -> Self {
        Self { radix: if radix < 2 { 2 } else { radix }, nearest_first: false }
    }

    /// The distances between members that communicate in the same round, the largest first.
    fn distances(self, size: u32) -> Vec<u32> {
        let powers = std::iter::successors(Some(1u32), |power| power.checked_mul(self.radix));
        let mut distances: Vec<u32> = powers.take_while(|&power| power < size).collect();
        distances.reverse();
        distances
    }
}

impl Architecture for Knomial {
    fn name(&self) -> String {
        match (self.radix, self.nearest_first) {
            (2, false) => "knomial".into(),
            (2, true) => "knomial:nearest-first".into(),
            (radix, _) => format!("knomial:{radix}"),
        }
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let size = group.size();
        let mut distances = self.distances(size);
        if self.nearest_first {
            distances.reverse();
        }
        let mut edges = Vec::new();
        for &distance in &distances {
            // The members that have the data: multiples of the distances before, or all up to this distance.
            let stride = if self.nearest_first { 1 } else { distance * self.radix };
            let end = if self.nearest_first { distance } else { size };
            for holder in (0..end).step_by(stride as usize) {
                let others = (1..self.radix).map(|times| holder + times * distance);
                edges.extend(others.filter(|&other| other < size).map(|other| (holder, other)));
            }
        }
        Tree::new(size, 0, edges).turned(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(architecture: Knomial, size: u32, member: u32) -> Vec<u32> {
        architecture.tree(&Group::whole(size).unwrap(), 0).children(member).to_vec()
    }

    #[test]
    fn the_drawing() {
        assert_eq!(children(Knomial::BINOMIAL, 8, 0), [4, 2, 1]);
        assert_eq!(children(Knomial::BINOMIAL, 8, 4), [6, 5]);
        assert_eq!(children(Knomial::NEAREST_FIRST, 8, 0), [1, 2, 4]);
        assert_eq!(children(Knomial::NEAREST_FIRST, 8, 1), [3, 5]);
    }

    #[test]
    fn a_higher_radix_serves_more_in_each_round() {
        assert_eq!(children(Knomial::new(4), 16, 0), [4, 8, 12, 1, 2, 3]);
        assert_eq!(children(Knomial::new(4), 16, 8), [9, 10, 11]);
    }
}
