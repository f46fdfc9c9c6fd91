//! A cube of clusters: leaders stand at its corners, each serves its cluster.
//!
//! ```text
//!       6 ────────── 7
//!      /│           /│         eight clusters, numbered in binary; 0 begins:
//!     2 ────────── 3 │         001  to 1, which still serves dimensions 2 and 4
//!     │ │          │ │         010  to 2, which still serves dimension 4
//!     │ 4 ─────────│ 5         100  to 4, which serves nobody
//!     │/           │/
//!     0 ────────── 1
//! ```
//!
//! A message finds its way by itself: it carries a bit string, the dimensions that its receiver
//! still has to serve, and the receiver needs no plan ([`forward`]). Sources: Davies, Matloff,
//! "Network-Specific Performance Enhancements for PVM" (1997), after Hayes and Mudge (1989); for
//! cubes of clusters Erciyes, Dagdeviren, Payli, "Performance Evaluation of Group Communication
//! Architectures in Large Scale Systems using MPI" (2005), section 6.
//!
//! Any number of clusters will do, not only powers of two: for a corner that is missing the lowest
//! number that is there takes over whatever that corner had to serve. Any numbering will do.
//!
//! With `m` clusters of `k` members there are `m * k - 1` messages; the paper's bound is
//! `k * log m` steps, with each cluster served before the next dimension. Here a leader relays
//! first: from a leader `log m + k - 1` steps, the logarithm rounded up. An operation from all to all
//! takes `2 * (k - 1) + log m` steps: members tell their leaders, the leaders of a power of two of
//! clusters meet in `log m` rounds (the logarithm rounded down, and two more rounds, where there
//! are others: see [`super::Butterfly`]), leaders tell their members.

use super::{Architecture, butterfly};
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// A cube of clusters.
#[derive(Clone, Debug, Default)]
pub struct Hypercube {
    keys: Vec<u32>,
}

/// Returns where a message goes on from corner `number` of a cube with `size` corners, when it still has to serve the
/// dimensions whose bits are set in `serve`: the receivers and their bit strings.
///
/// The first corner sets all bits below [`dimensions`]. If every corner follows this function, the message reaches
/// every number below `size` once.
pub fn forward(number: u32, serve: u32, size: u32) -> Vec<(u32, u32)> {
    let mut left = serve;
    let mut next = Vec::new();
    for bit in (0..u32::BITS).map(|dimension| 1 << dimension).filter(|bit| serve & bit != 0) {
        left &= !bit;
        let neighbour = number ^ bit;
        // The lowest number among those that the neighbour would serve.
        let lowest = neighbour & !left;
        if neighbour < size {
            next.push((neighbour, left));
        } else if lowest < size {
            next.push((lowest, left));
        }
    }
    next
}

/// Returns the number of dimensions of a cube that holds `size` corners.
pub fn dimensions(size: u32) -> u32 {
    size.next_power_of_two().ilog2()
}

impl Hypercube {
    /// The clusters get their numbers in the rising order of these keys; clusters without a key
    /// have their own number for one.
    pub fn numbered_by(keys: Vec<u32>) -> Self {
        Self { keys }
    }

    /// The clusters in the order of their numbers.
    fn corners(&self, clusters: u32) -> Vec<u32> {
        let mut corners: Vec<u32> = (0..clusters).collect();
        corners.sort_by_key(|&cluster| *self.keys.get(cluster as usize).unwrap_or(&cluster));
        corners
    }
}

impl Architecture for Hypercube {
    fn name(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(u32::to_string).collect();
        if keys.is_empty() { "hypercube".into() } else { format!("hypercube:{}", keys.join("-")) }
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let size = group.clusters().len() as u32;
        let corners = self.corners(size);
        let begin = group.cluster_of(root);
        let mut neighbours = vec![Vec::new(); size as usize];
        let first = corners.iter().position(|&cluster| cluster == begin).unwrap_or(0) as u32;
        let mut open = vec![(first, (1 << dimensions(size)) - 1)];
        while let Some((number, serve)) = open.pop() {
            for (next, left) in forward(number, serve, size) {
                let (from, to) = (corners[number as usize], corners[next as usize]);
                neighbours[from as usize].push(to);
                neighbours[to as usize].push(from);
                open.push((next, left));
            }
        }
        super::clustered(group, root, |cluster| neighbours[cluster as usize].clone())
    }

    fn rounds(&self, group: &Group) -> Option<Rounds> {
        let size = group.clusters().len() as u32;
        let corners = self.corners(size);
        let leader = |number: u32| group.leader(corners[number as usize]);
        let among_leaders = butterfly::pairs(size)
            .into_iter()
            .map(|round| round.into_iter().map(|(from, to)| (leader(from), leader(to))).collect());
        Some(super::within_clusters(group, among_leaders))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_string_alone_reaches_everybody_once() {
        for size in 1..=130u32 {
            for root in 0..size {
                let mut reached = vec![0; size as usize];
                let mut messages = vec![(root, (1 << dimensions(size)) - 1, 0)];
                while let Some((number, serve, depth)) = messages.pop() {
                    reached[number as usize] += 1;
                    assert!(depth <= dimensions(size), "{size} from {root}: too deep");
                    let next = forward(number, serve, size);
                    messages.extend(next.into_iter().map(|(to, left)| (to, left, depth + 1)));
                }
                assert!(reached.iter().all(|&times| times == 1), "{size} from {root}: {reached:?}");
            }
        }
    }

    #[test]
    fn a_complete_cube_is_relayed_between_neighbours() {
        assert_eq!(forward(0, 0b111, 8), [(1, 0b110), (2, 0b100), (4, 0)]);
        assert_eq!(forward(5, 0b110, 8), [(7, 0b100), (1, 0)]);
        for number in 0..64u32 {
            for (next, _) in forward(number, 0b11_1111, 64) {
                assert_eq!((next ^ number).count_ones(), 1);
            }
        }
    }

    #[test]
    fn a_missing_corner_is_stood_in_for() {
        // From 3 dimension 4 leads to 7, which is missing in a cube of six; 3 has served the others.
        assert_eq!(forward(3, 0b111, 6), [(2, 0b110), (1, 0b100)]);
        // 2 would hand dimension 4 to 6.
        assert_eq!(forward(2, 0b110, 6), [(0, 0b100)]);
        assert_eq!(forward(0, 0b100, 6), [(4, 0)]);
        assert_eq!(forward(1, 0b100, 6), [(5, 0)]);
        // From 4 dimension 2 leads to 6, missing in a cube of five; nobody is behind it.
        assert_eq!(forward(4, 0b010, 5), []);
        // From 4, dimension 1 leads to 5, and behind it lie 1 and 3: 1 takes over.
        assert_eq!(forward(4, 0b111, 5), [(1, 0b110), (2, 0b100), (0, 0)]);
    }

    #[test]
    fn clusters_are_numbered_as_told() {
        let group = Group::divided(8, 4).unwrap();
        let cube = Hypercube::numbered_by(vec![3, 1, 0, 2]);
        assert_eq!((cube.corners(4), cube.name()), (vec![2, 1, 3, 0], "hypercube:3-1-0-2".into()));
        // Cluster 2 is corner 0: it serves corner 1 (cluster 1) and corner 2 (cluster 3).
        assert_eq!(cube.tree(&group, 4).children(4), [2, 6, 5]);
    }

    #[test]
    fn leaders_relay_before_they_serve() {
        let tree = Hypercube::default().tree(&Group::divided(24, 8).unwrap(), 0);
        assert_eq!(tree.children(0), [3, 6, 12, 1, 2]);
        assert_eq!(tree.children(3), [9, 15, 4, 5]);
    }
}
