//! A circulant graph: all members send over the same distances, and any size takes as few rounds as can be.
//!
//! ```text
//! eleven members, distances 1, 2, 3, 6 (eleven halved, rounded up, and again):
//!
//! round 1   0 ─► 1     1 ─► 2     2 ─► 3   ...   10 ─► 0      everybody knows 2
//! round 2   0 ───► 2   1 ───► 3   ...            10 ───► 1    3 (of 4 told, one was known)
//! round 3   0 ─────► 3 ...                                    6
//! round 4   0 ───────────► 6 ...                              11
//! ```
//!
//! The logarithm of the size, rounded up, in rounds, for any size: where [`super::Butterfly`]
//! needs two rounds more. Each round has `n` messages, each block goes once to every member: `n - 1`
//! blocks received by each. Data from each to each take the same rounds. Sources: Bruck, Ho,
//! Kipnis, Upfal, Weathersby, "Efficient Algorithms for All-to-All Communications in
//! Multiport Message-Passing Systems" (1997); the distances from Träff, "Optimal, Non-pipelined
//! Reduce-scatter and Allreduce Algorithms" (2024).
//!
//! From a root the same distances give a tree, the largest first: each member serves a run of
//! others, `n - 1` messages, the logarithm in steps. Scans double the distance in each round.

use super::{Architecture, butterfly};
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// A circulant graph: all members send over the same distances.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circulant;

impl Architecture for Circulant {
    fn name(&self) -> String {
        "circulant".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let size = group.size();
        // The members that have the data, each with the number of members from itself on that it serves.
        let mut runs = vec![(0, size)];
        let mut edges = Vec::new();
        for distance in distances(size).into_iter().rev() {
            for at in 0..runs.len() {
                let (holder, length) = runs[at];
                if length > distance {
                    runs[at].1 = distance;
                    runs.push((holder + distance, length - distance));
                    edges.push((holder, holder + distance));
                }
            }
        }
        Tree::new(size, 0, edges).turned(root)
    }

    fn rounds(&self, group: &Group) -> Option<Rounds> {
        let size = group.size();
        let to = |member: u32, distance| (member + distance) % size;
        Some(Rounds::new(
            distances(size)
                .into_iter()
                .map(|distance| (0..size).map(|member| (member, to(member, distance))).collect()),
        ))
    }

    fn prefix(&self, group: &Group) -> Option<Rounds> {
        Some(butterfly::doubling_prefix(group.size()))
    }
}

/// The size halved and rounded up until one is left, in rising order.
fn distances(size: u32) -> Vec<u32> {
    let mut distances = Vec::new();
    let mut reach = size;
    while reach > 1 {
        reach = reach.div_ceil(2);
        distances.push(reach);
    }
    distances.reverse();
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_rounds_as_can_be_for_any_size() {
        assert_eq!(distances(11), [1, 2, 3, 6]);
        for size in 1..=200u32 {
            assert_eq!(distances(size).len() as u32, size.next_power_of_two().ilog2(), "{size}");
        }
    }

    #[test]
    fn a_tree_of_runs() {
        let tree = Circulant.tree(&Group::whole(11).unwrap(), 0);
        assert_eq!((tree.children(0), tree.children(6)), (&[6, 3, 2, 1][..], &[9, 8, 7][..]));
        for subtree in tree.subtrees() {
            assert_eq!(subtree.runs().len(), 1, "{subtree:?}");
        }
    }
}
