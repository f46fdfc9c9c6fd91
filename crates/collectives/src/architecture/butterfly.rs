//! Pairs at doubling distances, each telling the other all it knows.
//!
//! ```text
//! 0 1 2 3 4 5 6 7
//! └┬┘ └┬┘ └┬┘ └┬┘     round 1
//! └─┼─┘ │ └─┼─┘ │     round 2: 0 with 2, 1 with 3, ...
//!   └───┘   └───┘
//! └───────┘ ...       round 3: 0 with 4, ...
//! ```
//!
//! The logarithm of the size in rounds when that is a power of two. Else the members beyond the
//! largest power of two first tell one below it, and are told the outcome at the end: two rounds
//! more. Recursive doubling; reduce-scatter by it is recursive halving, and both together are
//! Rabenseifner's allreduce (Thakur, Rabenseifner, Gropp 2005). `n * log n` messages for a power of
//! two. Scans take the logarithm, rounded up, in rounds over doubling distances. From a root it is
//! the binomial tree: the messages of the butterfly that the root needs.

use super::{Architecture, Knomial};
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// Pairs at doubling distances.
#[derive(Clone, Copy, Debug, Default)]
pub struct Butterfly;

impl Architecture for Butterfly {
    fn name(&self) -> String {
        "butterfly".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        Knomial::BINOMIAL.tree(group, root)
    }

    fn rounds(&self, group: &Group) -> Option<Rounds> {
        Some(Rounds::new(pairs(group.size())))
    }

    fn prefix(&self, group: &Group) -> Option<Rounds> {
        Some(doubling_prefix(group.size()))
    }
}

/// The rounds of a butterfly as pairs of places, whichever members stand there.
pub(super) fn pairs(size: u32) -> Vec<Vec<(u32, u32)>> {
    let even = (size + 1).next_power_of_two() / 2; // the largest power of two up to the size
    let beyond = || even..size;
    let mut rounds = vec![beyond().map(|member| (member, member - even)).collect()];
    rounds.extend(
        doubling_up_to(even).map(|distance| {
            (0..even).map(|member| (member, member ^ distance)).collect::<Vec<_>>()
        }),
    );
    rounds.push(beyond().map(|member| (member - even, member)).collect());
    rounds.retain(|round| !round.is_empty());
    rounds
}

/// In each round each member tells the one that is twice as far behind it as in the round before, after Hillis and
/// Steele (1986).
pub(super) fn doubling_prefix(size: u32) -> Rounds {
    Rounds::new(
        doubling_up_to(size)
            .map(|distance| (distance..size).map(|member| (member - distance, member)).collect()),
    )
}

fn doubling_up_to(end: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|bit| 1 << bit).take_while(move |&distance| distance < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_beyond_the_power_of_two_joins_and_is_told() {
        let all = vec![(0, 1), (1, 0)];
        assert_eq!(pairs(3), [vec![(2, 0)], all.clone(), vec![(0, 2)]]);
        assert_eq!((pairs(2), pairs(1)), (vec![all], vec![]));
    }

    #[test]
    fn scans_reach_back_twice_as_far_each_round() {
        let rounds = doubling_prefix(5);
        assert_eq!(rounds.iter().map(<[_]>::len).collect::<Vec<_>>(), [4, 3, 1]);
    }
}
