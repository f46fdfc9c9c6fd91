//! The reason why proofs for consecutive clusters hold for all: a division is one into consecutive clusters of the same
//! lengths whose members have other names.
//!
//! 1. An architecture that looks at clusters asks for their number, their lengths and the places of
//!    members in them, never for a member's rank. So the tree and the rounds of renamed members are
//!    the renamed tree and rounds. Tested for each division that is proven, from every root.
//! 2. A plan is made of a tree or of rounds. Where nothing is combined, or in free order, ranks
//!    decide nothing but the order in which blocks stand in a message. So messages, blocks and steps
//!    are the same, and what each member sends is what the member of the other name sends. Tested up
//!    to six members, in a soak to seven.
//! 3. In canonical and late order it is the set of members that decides how many values travel. What
//!    a member holds of a set does not depend on how it came together: `partial` tests that for every
//!    two sets of up to twelve.
//!
//! Member 0, from which what has no root goes, keeps its name: it leads the first cluster. A scan
//! ends at a member as soon as the data of those before it are there, so its steps depend on ranks;
//! its messages do not. The pipeline's scan goes from rank to rank, whatever the clusters are.

use std::collections::HashMap;
use std::sync::Arc;

use landeck_collectives::check::Facts;
use landeck_collectives::{Architecture, Group, Operation, Order, Rounds, Tree};

use crate::cases::{case, clustered, is_soak, proven, watchdog};
use crate::divisions::Divisions;

/// The trees and rounds of consecutive clusters, made on demand.
#[derive(Default)]
pub(crate) struct Consecutive(HashMap<Vec<u32>, Vec<Paths>>);

/// The tree from each root, and the rounds.
#[derive(PartialEq)]
struct Paths {
    trees: Vec<Tree>,
    rounds: Option<Rounds>,
}

impl Consecutive {
    /// The trees and rounds of a group are those of consecutive clusters, renamed.
    pub(crate) fn compare(&mut self, architectures: &[Arc<dyn Architecture>], group: &Group) {
        let names = names(group);
        let known = self.0.entry(lengths(group)).or_insert_with_key(|lengths| {
            let group = Group::of_lengths(lengths).unwrap();
            architectures.iter().map(|architecture| paths(&**architecture, &group)).collect()
        });
        for (architecture, known) in architectures.iter().zip(known) {
            let what = || format!("{} in {:?}", architecture.name(), group.clusters());
            for (root, tree) in (0..).zip(&known.trees) {
                let own = architecture.tree(group, names[root]);
                assert!(is_renamed(tree, &own, &names), "{} from {}", what(), names[root]);
            }
            let rounds = known.rounds.as_ref().map(|rounds| renamed(rounds, &names));
            assert!(rounds == architecture.rounds(group), "{}", what());
        }
    }
}

/// The lengths of the clusters.
fn lengths(group: &Group) -> Vec<u32> {
    group.clusters().iter().map(|cluster| cluster.len() as u32).collect()
}

/// The members, cluster by cluster: the name of the member at each place of consecutive clusters.
fn names(group: &Group) -> Vec<u32> {
    group.clusters().concat()
}

fn paths(architecture: &dyn Architecture, group: &Group) -> Paths {
    let trees = (0..group.size()).map(|root| architecture.tree(group, root));
    Paths { trees: trees.collect(), rounds: architecture.rounds(group) }
}

fn is_renamed(tree: &Tree, other: &Tree, names: &[u32]) -> bool {
    let serves_alike = |member: usize| {
        let children = tree.children(member as u32).iter().map(|&child| names[child as usize]);
        children.eq(other.children(names[member]).iter().copied())
    };
    names[tree.root() as usize] == other.root() && (0..names.len()).all(serves_alike)
}

fn renamed(rounds: &Rounds, names: &[u32]) -> Rounds {
    let pair = |&(from, to): &(u32, u32)| (names[from as usize], names[to as usize]);
    Rounds::new(rounds.iter().map(|round| round.iter().map(pair).collect()))
}

#[test]
fn renamed_members_have_renamed_trees_and_rounds() {
    let _watchdog = watchdog();
    let (architectures, mut consecutive) = (clustered(), Consecutive::default());
    for size in 1..=8 {
        for clusters in Divisions::new(size) {
            consecutive.compare(&architectures, &Group::of(clusters).unwrap());
        }
    }
}

#[test]
fn renamed_members_send_as_much_where_ranks_decide_nothing() {
    let _watchdog = watchdog();
    let architectures = clustered();
    for size in 1..=if is_soak() { 7 } else { 6 } {
        for (number, clusters) in (0..).zip(Divisions::new(size)) {
            let group = Group::of(clusters).unwrap();
            let roots = if is_soak() { 0..size } else { number % size..number % size + 1 };
            for root in roots {
                for architecture in &architectures {
                    compare_facts(architecture, &group, root, number);
                }
            }
        }
    }
}

/// Every operation costs the same in consecutive clusters, from the root that stands in the same
/// place.
fn compare_facts(architecture: &Arc<dyn Architecture>, group: &Group, place: u32, number: u32) {
    let (names, consecutive) = (names(group), Group::of_lengths(&lengths(group)).unwrap());
    for operation in Operation::ALL {
        let place = if operation.has_root() { place } else { 0 };
        // The first of three orders is free.
        let cost = |group, root| {
            let split = number.is_multiple_of(2);
            let (way, task) = case(architecture, operation, root, number * 3, split);
            assert_eq!(task.order, Order::Free);
            proven(&task, &way, group)
        };
        let is_scan = matches!(operation, Operation::Scan | Operation::ExclusiveScan);
        if is_scan && architecture.prefix(group).is_some() {
            continue;
        }
        let (own, other) = (cost(group, names[place as usize]), cost(&consecutive, place));
        let sent = names.iter().map(|&member| own.sent[member as usize]).collect();
        let steps = if is_scan { other.steps } else { own.steps };
        let own = Facts { sent, steps, ..own };
        assert_eq!(own, other, "{operation} by {architecture:?} in {group:?}");
    }
}
