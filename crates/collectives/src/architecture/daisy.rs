//! Leaders around a centre, each with its cluster.
//!
//! ```text
//!      1 2     4 5
//!       \|     |/
//!        0 ─── 3
//!        │ \ / │        the leaders 0, 3, 6 are one group,
//!         \ 6 /         in which the root's leader serves the others;
//!          /|           each leader serves its cluster
//!         7 8
//! ```
//!
//! Source: Erciyes, Dagdeviren, Payli, "Performance Evaluation of Group Communication
//! Architectures in Large Scale Systems using MPI" (2005), section 4. With `m` clusters of `k`
//! members the paper's bound is `3k` steps for `m <= k`: `k` to reach the centre, `k` in it, `k` in
//! the outer clusters. Here a root that leads its cluster needs `m + k - 2`: it serves the other
//! leaders first, and the last of them its cluster afterwards. A root that does not lead tells its
//! leader first: one step more.

use super::Architecture;
use crate::group::Group;
use crate::tree::Tree;

/// Leaders around a centre, each with its cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Daisy;

impl Architecture for Daisy {
    fn name(&self) -> String {
        "daisy".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let centre = group.cluster_of(root);
        let clusters = group.clusters().len() as u32;
        super::clustered(group, root, |cluster| match cluster == centre {
            true => (0..clusters).filter(|&other| other != centre).collect(),
            false => vec![centre],
        })
    }
}
