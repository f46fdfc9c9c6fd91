//! Clusters in a row; leaders pass along, each serves its cluster.
//!
//! ```text
//!      1 2       4 5       7 8      10 11
//!       \|        \|        \|        \|
//!        0 ─────── 3 ─────── 6 ─────── 9      from cluster 1 it goes both ways,
//!           ◄──       ──►       ──►           the longer way first
//! ```
//!
//! Source: Erciyes, Dagdeviren, Payli, "Performance Evaluation of Group Communication
//! Architectures in Large Scale Systems using MPI" (2005), section 3. With `m` clusters of `k`
//! members the paper's bound is `m * k + m - 1` steps, one message after the other; it counts each
//! leader twice. There are `m * k - 1` messages, and a leader passes on before it serves: from the
//! leader at one end of the row `m + k - 2` steps. Segments of long data follow each other along
//! the row.
//!
//! Operations from all to all take three stages: members tell their leaders, two waves run along
//! the row at once, one from each end (`m - 1` rounds, two messages in each), leaders tell their
//! members: `2 * (n - 1)` messages in `2 * (k - 1) + m - 1` steps, two more where `m` is odd and
//! the waves meet in one leader. Where they meet, everything is known: from there on they carry
//! results. Scans follow the row from member to member: `n - 1` messages.

use super::{Architecture, ring};
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// Clusters in a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipeline;

impl Architecture for Pipeline {
    fn name(&self) -> String {
        "pipeline".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let last = group.clusters().len() as u32 - 1;
        let begin = group.cluster_of(root);
        super::clustered(group, root, |cluster| {
            let after = (cluster < last).then(|| cluster + 1);
            let before = cluster.checked_sub(1);
            let after_first = cluster != begin || last - begin >= begin;
            let both = if after_first { [after, before] } else { [before, after] };
            both.into_iter().flatten().collect()
        })
    }

    fn rounds(&self, group: &Group) -> Option<Rounds> {
        let last = group.clusters().len() as u32 - 1;
        let leader = |cluster| group.leader(cluster);
        let waves = (0..last).map(|round| {
            let forth = (leader(round), leader(round + 1));
            let back = (leader(last - round), leader(last - round - 1));
            vec![forth, back]
        });
        Some(super::within_clusters(group, waves))
    }

    fn prefix(&self, group: &Group) -> Option<Rounds> {
        Some(ring::chain(group.size()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_pass_both_ways_the_longer_first() {
        let group = Group::divided(12, 4).unwrap();
        let tree = Pipeline.tree(&group, 3);
        assert_eq!(tree.children(3), [6, 0, 4, 5]);
        assert_eq!((tree.children(6), tree.children(9)), (&[9, 7, 8][..], &[10, 11][..]));
        assert_eq!(Pipeline.tree(&group, 6).children(6), [3, 9, 7, 8]);
    }

    #[test]
    fn a_root_that_does_not_lead_tells_its_leader() {
        let tree = Pipeline.tree(&Group::divided(6, 2).unwrap(), 4);
        assert_eq!((tree.children(4), tree.children(3)), (&[3][..], &[0, 5][..]));
    }

    #[test]
    fn two_waves_run_along_the_row() {
        let rounds = Pipeline.rounds(&Group::divided(6, 3).unwrap()).unwrap();
        let rounds: Vec<_> = rounds.iter().collect();
        assert_eq!(rounds[0], [(1, 0), (3, 2), (5, 4)]);
        assert_eq!(rounds[1..3], [[(0, 2), (4, 2)], [(2, 4), (2, 0)]]);
        assert_eq!(rounds[3], [(0, 1), (2, 3), (4, 5)]);
    }
}
