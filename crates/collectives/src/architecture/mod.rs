//! Architectures: the communication patterns of a group.
//!
//! An architecture is a few pure functions of the group. Operations are derived from them
//! ([`crate::derive`]), so one that says only its [`tree`](Architecture::tree) can do everything.
//!
//! | file | architecture | source |
//! |---|---|---|
//! | `flat.rs` | one serves all | |
//! | `pipeline.rs` | clusters in a row | Erciyes et al. 2005 |
//! | `daisy.rs` | leaders around a centre, each with its cluster | Erciyes et al. 2005 |
//! | `hierarchy.rs` | levels of groups | Erciyes et al. 2005 |
//! | `hypercube.rs` | a cube of clusters; messages that find their way | Erciyes et al. 2005; Davies, Matloff 1997 |
//! | `binary_tree.rs` | each member serves two | Silva et al. 2003 |
//! | `knomial.rs` | every member that has the data passes them on | |
//! | `butterfly.rs` | pairs at doubling distances | |
//! | `ring.rs` | each talks to the next | |
//! | `circulant.rs` | all members over the same distances, for any size | Träff 2024 |
//! | `seated.rs` | any of them, with its members in another order | |
//!
//! The board of a host is no architecture: its members exchange no messages ([`crate::derive::BoardStyle`]).

mod binary_tree;
mod butterfly;
mod circulant;
mod daisy;
mod flat;
mod hierarchy;
mod hypercube;
mod knomial;
mod pipeline;
mod ring;
mod seated;

pub use binary_tree::BinaryTree;
pub use butterfly::Butterfly;
pub use circulant::Circulant;
pub use daisy::Daisy;
pub use flat::Flat;
pub use hierarchy::{Hierarchy, HierarchyError};
pub use hypercube::{Hypercube, dimensions, forward};
pub use knomial::Knomial;
pub use pipeline::Pipeline;
pub use ring::Ring;
pub use seated::Seated;

use std::fmt::Debug;

use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// The communication pattern of a group. Implement it to have all operations over your own pattern:
///
/// ```
/// use landeck_collectives::{Architecture, Group, Operation, Task, Tree, Way, plans};
///
/// /// From each to the next, as in a bucket brigade.
/// #[derive(Debug)]
/// struct Brigade;
///
/// impl Architecture for Brigade {
///     fn name(&self) -> String {
///         "brigade".into()
///     }
///     fn tree(&self, group: &Group, root: u32) -> Tree {
///         let size = group.size();
///         Tree::new(size, 0, (1..size).map(|member| (member - 1, member))).turned(root)
///     }
/// }
///
/// let group = Group::whole(5)?;
/// let plans = plans(&Task::new(Operation::AllReduce), &Way::by(Brigade), &group);
/// assert_eq!(plans.len(), 5);
/// # Ok::<(), landeck_collectives::GroupError>(())
/// ```
pub trait Architecture: Debug + Send + Sync {
    /// Its name, with its parameters where it has any: architectures of the same name are taken
    /// for the same.
    fn name(&self) -> String;

    /// The tree over which `root` reaches all members.
    fn tree(&self, group: &Group, root: u32) -> Tree;

    /// Rounds after which every member knows what any member knew. None: up the tree of member 0 and down again.
    fn rounds(&self, _group: &Group) -> Option<Rounds> {
        None
    }

    /// Rounds of a prefix scan: in each, `to` receives the partial result of the members just before those that its own
    /// result covers. In the end every result covers member 0. None: all data go to member 0 and back.
    fn prefix(&self, _group: &Group) -> Option<Rounds> {
        None
    }

    /// Rounds in which each member meets each other, for data that go from each to each. None: they are relayed.
    fn exchange(&self, _group: &Group) -> Option<Rounds> {
        None
    }

    /// Returns the pairs of the exchange that contain one member. Override it where they are known without all pairs.
    fn exchange_of(&self, group: &Group, member: u32) -> Option<Rounds> {
        self.exchange(group).map(|rounds| rounds.of_member(member))
    }
}

/// The tree from `root` over leaders and their clusters: `neighbours` says which clusters a
/// cluster's leader talks to, in the order of service; they come before the members of its own.
fn clustered(group: &Group, root: u32, neighbours: impl Fn(u32) -> Vec<u32>) -> Tree {
    let mut lists = vec![Vec::new(); group.size() as usize];
    for (number, cluster) in (0..).zip(group.clusters()) {
        let leader = cluster[0];
        let others = neighbours(number).into_iter().map(|other| group.leader(other));
        lists[leader as usize] = others.chain(cluster[1..].iter().copied()).collect();
        for &member in &cluster[1..] {
            lists[member as usize] = vec![leader];
        }
    }
    Tree::from_neighbours(root, &lists)
}

/// Rounds among leaders, with one before them in which members tell their leaders, and one after
/// them in which leaders tell their members.
fn within_clusters(
    group: &Group,
    among_leaders: impl IntoIterator<Item = Vec<(u32, u32)>>,
) -> Rounds {
    let clusters = || group.clusters().iter();
    let to_leaders = clusters().flat_map(|all| all[1..].iter().map(|&member| (member, all[0])));
    let to_members = clusters().flat_map(|all| all[1..].iter().map(|&member| (all[0], member)));
    let before = std::iter::once(to_leaders.collect());
    let after = std::iter::once(to_members.collect());
    Rounds::new(before.chain(among_leaders).chain(after))
}
