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
//! Rabenseifner's allreduce (Thakur, Rabenseifner, Gropp 2005).

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
        let size = group.size();
        let even = (size + 1).next_power_of_two() / 2; // the largest power of two up to the size
        let beyond = || even..size;
        let mut rounds = vec![beyond().map(|member| (member, member - even)).collect()];
        let distances = (0..).map(|bit| 1u32 << bit).take_while(|&distance| distance < even);
        rounds.extend(distances.map(|distance| {
            (0..even).map(|member| (member, member ^ distance)).collect::<Vec<_>>()
        }));
        rounds.push(beyond().map(|member| (member - even, member)).collect());
        Some(Rounds::new(rounds))
    }

    fn prefix(&self, group: &Group) -> Option<Rounds> {
        let size = group.size();
        let distances = (0..).map(|bit| 1u32 << bit).take_while(|&distance| distance < size);
        Some(Rounds::new(
            distances.map(|distance| {
                (distance..size).map(|member| (member - distance, member)).collect()
            }),
        ))
    }
}
