//! Each talks to the next, the last to the first.
//!
//! ```text
//!   ┌──► 0 ──► 1 ──► 2 ─┐
//!   └─── 5 ◄── 4 ◄── 3 ◄┘      six members; clusters lie together on the ring
//! ```
//!
//! From a root: a chain, `n - 1` messages in `n - 1` steps; `s` segments follow each other in
//! `n - 2 + s`. From all to all: `n - 1` rounds in which each member tells the next what it learned
//! in the round before, `n * (n - 1)` messages of one block, and no member sends a byte more than it
//! must. An allreduce that is split is the reduce-scatter and the allgather of this ring
//! (`2 * (n - 1)` rounds): the most bytes per second for long data, the slowest for short ones
//! (Patarasuk, Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations",
//! 2009).

use super::Architecture;
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// Each talks to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring;

impl Architecture for Ring {
    fn name(&self) -> String {
        "ring".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let mut order = cluster_by_cluster(group);
        let place = order.iter().position(|&member| member == root).unwrap_or(0);
        order.rotate_left(place);
        Tree::new(group.size(), root, order.windows(2).map(|pair| (pair[0], pair[1])))
    }

    fn rounds(&self, group: &Group) -> Option<Rounds> {
        let order = cluster_by_cluster(group);
        let next = order.iter().cycle().skip(1);
        let round: Vec<(u32, u32)> = order.iter().copied().zip(next.copied()).collect();
        Some(Rounds::repeated(round, order.len() - 1))
    }

    fn prefix(&self, group: &Group) -> Option<Rounds> {
        Some(chain(group.size()))
    }
}

/// From each member to the next in the order of ranks, one after the other.
pub(super) fn chain(size: u32) -> Rounds {
    Rounds::new((1..size).map(|member| vec![(member - 1, member)]))
}

fn cluster_by_cluster(group: &Group) -> Vec<u32> {
    group.clusters().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_lie_together() {
        let group = Group::columns(6, 2).unwrap();
        let tree = Ring.tree(&group, 2);
        assert_eq!(tree.top_down(), [2, 4, 1, 3, 5, 0]);
        let rounds = Ring.rounds(&group).unwrap();
        assert_eq!(rounds.len(), 5);
        let first = rounds.iter().next().unwrap();
        assert_eq!(first, [(0, 2), (2, 4), (4, 1), (1, 3), (3, 5), (5, 0)]);
    }

    #[test]
    fn one_member_has_nobody_to_talk_to() {
        let alone = Group::whole(1).unwrap();
        assert!(Ring.rounds(&alone).unwrap().is_empty() && chain(1).is_empty());
    }
}
