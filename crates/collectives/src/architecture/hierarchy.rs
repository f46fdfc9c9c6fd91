//! Levels of groups: every member but one has a superior.
//!
//! ```text
//! clusters in a tree (here binary)         levels (here two hosts of two caches of three)
//!
//!               0 ─ 1,2                     0 ──────────────── 6          hosts
//!         ┌─────┴─────┐                     │                  │
//!         3 ─ 4,5     6 ─ 7,8               0 ───── 3          6 ───── 9  caches
//!      ┌──┴──┐                              │       │          │       │
//!      9     12                             1,2     4,5        7,8     10,11
//!     10,11  13,14
//! ```
//!
//! Source: Erciyes, Dagdeviren, Payli, "Performance Evaluation of Group Communication
//! Architectures in Large Scale Systems using MPI" (2005), section 5. Leaders exchange messages
//! with the level above; each serves its own group. Both drawings are one structure: every member
//! has a superior, but for the one at the top, and a message goes from its root up and down along
//! these edges. The superior of a member is its leader; that of a leader is a leader of the level
//! above. Members with more below them are served first.
//!
//! `n - 1` messages. With clusters of `k` members in `l` levels the paper's bound is `2 * k * l`
//! steps, and `2 * k * log m` for a binary tree of `m` clusters, up and down again. From the top
//! of a full binary tree of `m = 2^l - 1` clusters there are `2 * (l - 1) + k - 1`: leaders relay
//! first, then they serve. With `d` groups in each of `l` levels and `k` members in the innermost
//! groups there are `l * (d - 1) + k - 1`.

use std::collections::BTreeMap;

use super::Architecture;
use crate::blocks::Blocks;
use crate::group::Group;
use crate::tree::Tree;

/// Levels of groups.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// A tree over the clusters in which each has so many below it.
    FanOut(u32),
    /// A tree over the clusters: the parents of clusters 1, 2, ...
    Parents(Vec<u32>),
    /// The members divided in so many parts, each of them in so many, and so on.
    Parts(Vec<u32>),
    /// The group of each member on each level, the outermost first.
    Nested(Vec<Vec<u32>>),
    /// The group of each member on each level that the group knows.
    Derived,
}

/// An invalid hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HierarchyError {
    /// A leader with no member below it relays nothing.
    #[error("a fan-out of 0 reaches nobody; give 1 or more")]
    NoFanOut,
    /// A level of no groups has no members.
    #[error("level {level} has no parts; give 1 or more, or leave it out")]
    NoParts {
        /// The level, from 1.
        level: usize,
    },
    /// Parents come before their children: so there are no circles.
    #[error(
        "cluster {cluster} cannot hang below cluster {parent}: a parent has a smaller number, and \
         cluster 0 is at the top"
    )]
    ParentNotBefore {
        /// The cluster.
        cluster: u32,
        /// The parent given for it.
        parent: u32,
    },
}

impl Hierarchy {
    /// The clusters as a binary tree.
    pub const BINARY: Self = Self { shape: Shape::FanOut(2) };

    /// The levels that the group knows of: sites where there are several, hosts, and caches within them. Where it knows of none,
    /// all members are one group.
    pub const DERIVED: Self = Self { shape: Shape::Derived };

    /// The clusters as a tree in which each has `fan_out` others below it, level by level.
    ///
    /// # Errors
    /// [`HierarchyError::NoFanOut`].
    pub fn tree_of(fan_out: u32) -> Result<Self, HierarchyError> {
        if fan_out == 0 { Err(HierarchyError::NoFanOut) } else { Self::of(Shape::FanOut(fan_out)) }
    }

    /// The clusters as a tree with these parents of clusters 1, 2, ...; clusters that the list does
    /// not reach hang below cluster 0.
    ///
    /// # Errors
    /// [`HierarchyError::ParentNotBefore`].
    pub fn with_parents(parents: Vec<u32>) -> Result<Self, HierarchyError> {
        let wrong = (1..).zip(&parents).find(|(cluster, parent)| *parent >= cluster);
        match wrong {
            Some((cluster, &parent)) => Err(HierarchyError::ParentNotBefore { cluster, parent }),
            None => Self::of(Shape::Parents(parents)),
        }
    }

    /// The members, in the order of their ranks, in `parts[0]` groups, each of them in `parts[1]`
    /// groups, and so on, as even as can be; the clusters of the group play no part. The leader of an innermost group
    /// serves its members.
    ///
    /// # Errors
    /// [`HierarchyError::NoParts`].
    pub fn of_parts(parts: Vec<u32>) -> Result<Self, HierarchyError> {
        match parts.iter().position(|&count| count == 0) {
            Some(at) => Err(HierarchyError::NoParts { level: at + 1 }),
            None => Self::of(Shape::Parts(parts)),
        }
    }

    /// Groups within groups of any size: for each level, the outermost first, the number of each
    /// member's group (its host, its cache, ...). Members that a level does not reach are in its
    /// group 0; the clusters of the group play no part.
    pub fn nested(levels: Vec<Vec<u32>>) -> Self {
        Self { shape: Shape::Nested(levels) }
    }

    fn of(shape: Shape) -> Result<Self, HierarchyError> {
        Ok(Self { shape })
    }

    /// Returns all members in the order in which they are served if as many are below them: in the order of the
    /// clusters where those count, so that ranks make no difference.
    fn members(&self, group: &Group) -> Vec<u32> {
        match self.shape {
            Shape::FanOut(_) | Shape::Parents(_) => group.clusters().concat(),
            Shape::Parts(_) | Shape::Nested(_) | Shape::Derived => (0..group.size()).collect(),
        }
    }

    /// Returns the superior of each member; none for the top.
    fn superiors(&self, group: &Group) -> Vec<Option<u32>> {
        match &self.shape {
            Shape::FanOut(fan_out) => over_clusters(group, |cluster| (cluster - 1) / fan_out),
            Shape::Parents(parents) => {
                let parent = |cluster: u32| parents.get(cluster as usize - 1);
                over_clusters(group, |cluster| parent(cluster).copied().unwrap_or(0))
            }
            Shape::Parts(parts) => in_levels(group.size(), &levels_of(group.size(), parts)),
            Shape::Nested(levels) => in_levels(group.size(), levels),
            Shape::Derived => {
                let sites = std::iter::once(group.sites()).filter(|sites| !sites.is_empty());
                let levels = sites.map(<[u32]>::to_vec).chain(group.levels().iter().cloned());
                in_levels(group.size(), &levels.collect::<Vec<_>>())
            }
        }
    }
}

impl Architecture for Hierarchy {
    fn name(&self) -> String {
        let list = |numbers: &[u32], between| {
            let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
            texts.join(between)
        };
        match &self.shape {
            Shape::FanOut(2) => "hierarchy".into(),
            Shape::FanOut(fan_out) => format!("hierarchy:{fan_out}-ary"),
            Shape::Parents(parents) => format!("hierarchy:parents:{}", list(parents, "-")),
            Shape::Derived => "hierarchy:derived".into(),
            Shape::Parts(parts) => format!("hierarchy:{}", list(parts, "x")),
            Shape::Nested(levels) => {
                let levels: Vec<String> = levels.iter().map(|level| list(level, "-")).collect();
                format!("hierarchy:levels:{}", levels.join("/"))
            }
        }
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let superiors = self.superiors(group);
        let top = superiors.iter().position(Option::is_none).unwrap_or(0) as u32;
        let edges = (0..).zip(&superiors).filter_map(|(member, above)| Some(((*above)?, member)));
        let subtrees = Tree::new(group.size(), top, edges).subtrees();
        let below: Vec<usize> = subtrees.iter().map(Blocks::len).collect();
        let mut neighbours: Vec<Vec<u32>> =
            superiors.iter().map(|superior| superior.iter().copied().collect()).collect();
        let mut most_first = self.members(group);
        most_first.sort_by_key(|&member| std::cmp::Reverse(below[member as usize]));
        for member in most_first {
            if let Some(superior) = superiors[member as usize] {
                neighbours[superior as usize].push(member);
            }
        }
        Tree::from_neighbours(root, &neighbours)
    }
}

/// Returns the superiors when the clusters are a tree: cluster 0 at its top, `parent` gives the parent of each of the
/// others.
fn over_clusters(group: &Group, parent: impl Fn(u32) -> u32) -> Vec<Option<u32>> {
    let mut superiors = vec![None; group.size() as usize];
    for (number, cluster) in (0..).zip(group.clusters()) {
        for &member in &cluster[1..] {
            superiors[member as usize] = Some(cluster[0]);
        }
        if number > 0 {
            superiors[cluster[0] as usize] = Some(group.leader(parent(number)));
        }
    }
    superiors
}

/// The group of each member on each level when the members are divided evenly, in their order.
fn levels_of(size: u32, parts: &[u32]) -> Vec<Vec<u32>> {
    let mut lengths = vec![size];
    let mut levels = Vec::new();
    for &count in parts {
        let divided = |&length: &u32| {
            let count = count.min(length).max(1);
            (0..count).map(move |part| length / count + u32::from(part < length % count))
        };
        lengths = lengths.iter().flat_map(divided).collect();
        let numbered = (0..).zip(&lengths);
        levels.push(numbered.flat_map(|(part, &length)| vec![part; length as usize]).collect());
    }
    levels
}

/// Superiors when groups stand within groups.
fn in_levels(size: u32, levels: &[Vec<u32>]) -> Vec<Option<u32>> {
    let mut superiors = vec![None; size as usize];
    let all: Vec<u32> = (0..size).collect();
    set_superiors(&all, levels, &mut superiors);
    superiors
}

/// The first of these members is the superior of the first of each group on the next level; on the
/// innermost, of all the others.
fn set_superiors(members: &[u32], levels: &[Vec<u32>], superiors: &mut [Option<u32>]) {
    let Some((level, inner)) = levels.split_first() else {
        for &member in &members[1..] {
            superiors[member as usize] = Some(members[0]);
        }
        return;
    };
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &member in members {
        let of = level.get(member as usize).copied().unwrap_or(0);
        groups.entry(of).or_default().push(member);
    }
    for group in groups.values() {
        if group[0] != members[0] {
            superiors[group[0] as usize] = Some(members[0]);
        }
        set_superiors(group, inner, superiors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_in_a_binary_tree() {
        let tree = Hierarchy::BINARY.tree(&Group::divided(15, 5).unwrap(), 0);
        assert_eq!((tree.children(0), tree.children(3)), (&[3, 6, 1, 2][..], &[9, 12, 4, 5][..]));
        let from_below = Hierarchy::BINARY.tree(&Group::divided(15, 5).unwrap(), 10);
        assert_eq!((from_below.children(10), from_below.children(9)), (&[9][..], &[3, 11][..]));
        assert_eq!(from_below.children(3), [0, 12, 4, 5]);
    }

    #[test]
    fn parents_are_given() {
        let group = Group::divided(8, 4).unwrap();
        let chain = Hierarchy::with_parents(vec![0, 1]).unwrap();
        let tree = chain.tree(&group, 0);
        assert_eq!((tree.children(0), tree.children(2)), (&[2, 6, 1][..], &[4, 3][..]));
        assert_eq!(chain.name(), "hierarchy:parents:0-1");
    }

    #[test]
    fn levels_are_divided_evenly() {
        let group = Group::whole(12).unwrap();
        let tree = Hierarchy::of_parts(vec![2, 2]).unwrap().tree(&group, 0);
        assert_eq!((tree.children(0), tree.children(6)), (&[6, 3, 1, 2][..], &[9, 7, 8][..]));
        assert_eq!(levels_of(7, &[2, 3])[1], [0, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn levels_are_given_in_any_order() {
        let hosts = vec![1, 0, 1, 0, 1, 1];
        let caches = vec![4, 0, 5, 0, 4];
        let tree = Hierarchy::nested(vec![hosts, caches]).tree(&Group::whole(6).unwrap(), 0);
        assert_eq!((tree.children(0), tree.children(1)), (&[1, 2, 4, 5][..], &[3][..]));
        let named = Hierarchy::nested(vec![vec![0, 1], vec![2]]).name();
        assert_eq!(named, "hierarchy:levels:0-1/2");
    }

    #[test]
    fn an_impossible_hierarchy_is_named() {
        assert_eq!(Hierarchy::tree_of(0).unwrap_err(), HierarchyError::NoFanOut);
        let parts = Hierarchy::of_parts(vec![2, 0]).unwrap_err();
        assert_eq!(parts, HierarchyError::NoParts { level: 2 });
        let parents = Hierarchy::with_parents(vec![0, 2]).unwrap_err();
        assert_eq!(parents, HierarchyError::ParentNotBefore { cluster: 2, parent: 2 });
    }
}
