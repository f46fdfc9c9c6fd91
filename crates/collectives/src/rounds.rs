//! Rounds: pairs of members that exchange messages at the same time.

use std::sync::Arc;

use crate::tree::Tree;

/// Rounds of (from, to) pairs. The messages of a round are concurrent: a member sends only what it knew before the
/// round. Equal rounds may share memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rounds(Vec<Arc<[(u32, u32)]>>);

impl Rounds {
    /// These rounds; empty ones are left out.
    pub fn new(rounds: impl IntoIterator<Item = Vec<(u32, u32)>>) -> Self {
        Self(rounds.into_iter().filter(|round| !round.is_empty()).map(Arc::from).collect())
    }

    /// Returns a round repeated `times` times, or no rounds if it is empty. It takes the memory of one.
    pub fn repeated(round: Vec<(u32, u32)>, times: usize) -> Self {
        let times = if round.is_empty() { 0 } else { times };
        Self(vec![Arc::from(round); times])
    }

    /// Returns the rounds up a tree, level by level, and down again: the way up is the way down backwards in time.
    pub fn up_and_down(tree: &Tree) -> Self {
        let depths = tree.depths();
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let level = |depth: u32| -> Vec<(u32, u32)> {
            let parents = tree.top_down().into_iter();
            let edges = parents
                .flat_map(|parent| tree.children(parent).iter().map(move |&child| (parent, child)));
            edges.filter(|&(_, child)| depths[child as usize] == depth).collect()
        };
        let up = (1..=deepest).rev().map(|depth| {
            level(depth).into_iter().rev().map(|(parent, child)| (child, parent)).collect()
        });
        let down = (1..=deepest).map(level);
        Self::new(up.chain(down).collect::<Vec<_>>())
    }

    /// Returns the rounds in which each member sends to each other: in round `r` member `m` to member `m + r`.
    pub fn everybody(size: u32) -> Self {
        let to = |member, round| (member + round) % size;
        Self::new(
            (1..size).map(|round| (0..size).map(|member| (member, to(member, round))).collect()),
        )
    }

    /// Returns the pairs of [`Rounds::everybody`] that contain one member.
    pub fn everybody_and(member: u32, size: u32) -> Self {
        Self::new((1..size).map(|round| {
            let mut pairs =
                vec![(member, (member + round) % size), ((member + size - round) % size, member)];
            pairs.sort_unstable();
            pairs
        }))
    }

    /// Returns the pairs of these rounds that contain one member.
    pub fn of_member(&self, member: u32) -> Self {
        let concerns = |&(from, to): &(u32, u32)| from == member || to == member;
        let of = |round: &[(u32, u32)]| round.iter().copied().filter(concerns).collect();
        Self::new(self.iter().map(of))
    }

    /// The rounds.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[(u32, u32)]> {
        self.0.iter().map(|round| &**round)
    }

    /// The number of rounds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_climbed_from_the_deepest_level() {
        let tree = Tree::new(4, 0, [(0, 1), (0, 2), (2, 3)]);
        let rounds = Rounds::up_and_down(&tree);
        let expected = [vec![(3, 2)], vec![(2, 0), (1, 0)], vec![(0, 1), (0, 2)], vec![(2, 3)]];
        assert_eq!(rounds, Rounds::new(expected));
    }

    #[test]
    fn a_round_that_is_repeated_lies_in_memory_once() {
        let round = vec![(0, 1), (1, 0)];
        let rounds = Rounds::repeated(round.clone(), 3);
        assert_eq!(rounds, Rounds::new(vec![round; 3]));
        assert!(Arc::ptr_eq(&rounds.0[0], &rounds.0[2]));
        assert!(Rounds::repeated(Vec::new(), 3).is_empty());
    }

    #[test]
    fn everybody_meets_everybody_once() {
        let pairs: Vec<(u32, u32)> = Rounds::everybody(5).iter().flatten().copied().collect();
        let mut unique = pairs.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!((pairs.len(), unique.len()), (20, 20));
        assert!(Rounds::everybody(1).is_empty());
        for (member, size) in [(0, 1), (0, 2), (1, 2), (0, 5), (3, 5), (4, 6)] {
            let expected = Rounds::everybody(size).of_member(member);
            assert_eq!(Rounds::everybody_and(member, size), expected);
        }
    }
}
