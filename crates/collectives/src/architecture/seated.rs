//! An architecture whose places are taken by members in another order.
//!
//! ```text
//! knomial, seats 2 0 1 3:    2 ──► 1          members 0 and 3 are leaves
//!                            2 ──► 0  1 ──► 3
//! ```
//!
//! Where one of the links between hosts is slow, the order of the hosts decides how many messages pass it. The messages are
//! those of the architecture, in number and order.

use std::sync::Arc;

use super::Architecture;
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// An architecture whose places are taken by members in another order.
#[derive(Clone, Debug)]
pub struct Seated {
    architecture: Arc<dyn Architecture>,
    /// By place: its member.
    seats: Vec<u32>,
    /// Whether the caller's root is that of the tree; else the member of the first place is.
    keeps_root: bool,
}

impl Seated {
    /// Seats all members on the places of an architecture. With `keeps_root` the root of a tree and the member of the first
    /// place change places. Without it, the member of the first place is the root of each tree: that is for operations
    /// without a root. `None` if these are not all members up to some number.
    pub fn new(
        architecture: Arc<dyn Architecture>,
        seats: Vec<u32>,
        keeps_root: bool,
    ) -> Option<Self> {
        let mut sorted = seats.clone();
        sorted.sort_unstable();
        let are_all = (0..).zip(&sorted).all(|(number, &member)| number == member);
        (are_all && !seats.is_empty()).then_some(Self { architecture, seats, keeps_root })
    }

    /// The places of the architecture as a group. None if the group has another size, so that nobody has a seat.
    fn places(&self, group: &Group) -> Option<Group> {
        let size = group.size();
        if self.seats.len() != size as usize {
            return None;
        }
        let clusters = if group.clusters().len() == size as usize { size } else { 1 };
        Group::divided(size, clusters).ok()
    }

    /// Rounds of places as rounds of members.
    fn of_members(&self, rounds: &Rounds) -> Rounds {
        let member = |place: u32| self.seats[place as usize];
        let of_round = |round: &[(u32, u32)]| {
            round.iter().map(|&(from, to)| (member(from), member(to))).collect()
        };
        Rounds::new(rounds.iter().map(of_round))
    }
}

impl Architecture for Seated {
    fn name(&self) -> String {
        let seats: Vec<String> = self.seats.iter().map(u32::to_string).collect();
        format!("{} in order {}", self.architecture.name(), seats.join("-"))
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let Some(places) = self.places(group) else { return self.architecture.tree(group, root) };
        let tree = self.architecture.tree(&places, 0);
        let mut seats = self.seats.clone();
        if self.keeps_root
            && let Some(place) = seats.iter().position(|&member| member == root)
        {
            seats.swap(0, place);
        }
        let member = |place: u32| seats[place as usize];
        let edges = tree.top_down().into_iter().flat_map(|parent| {
            tree.children(parent).iter().map(move |&child| (parent, child)).collect::<Vec<_>>()
        });
        let edges = edges.map(|(parent, child)| (member(parent), member(child)));
        Tree::new(tree.size(), member(tree.root()), edges)
    }

    fn rounds(&self, group: &Group) -> Option<Rounds> {
        let Some(places) = self.places(group) else { return self.architecture.rounds(group) };
        Some(self.of_members(&self.architecture.rounds(&places)?))
    }

    /// A scan goes in the order of members, whatever their seats.
    fn prefix(&self, group: &Group) -> Option<Rounds> {
        self.architecture.prefix(group)
    }

    fn exchange(&self, group: &Group) -> Option<Rounds> {
        let Some(places) = self.places(group) else { return self.architecture.exchange(group) };
        Some(self.of_members(&self.architecture.exchange(&places)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Butterfly, Knomial, Ring};

    fn seated(architecture: impl Architecture + 'static, keeps_root: bool) -> Seated {
        Seated::new(Arc::new(architecture), vec![2, 0, 1, 3], keeps_root).unwrap()
    }

    #[test]
    fn the_drawing() {
        let group = Group::whole(4).unwrap();
        let knomial = seated(Knomial::BINOMIAL, false);
        let tree = knomial.tree(&group, 0);
        assert_eq!((tree.root(), tree.children(2), tree.children(1)), (2, &[1, 0][..], &[3][..]));
        assert_eq!(knomial.name(), "knomial in order 2-0-1-3");
        let of_root = seated(Knomial::BINOMIAL, true).tree(&group, 3);
        assert_eq!(
            (of_root.root(), of_root.children(3), of_root.children(1)),
            (3, &[1, 0][..], &[2][..])
        );
        let rounds = seated(Ring, false).rounds(&group).unwrap();
        assert_eq!(rounds.iter().next().unwrap(), [(2, 0), (0, 1), (1, 3), (3, 2)]);
    }

    #[test]
    fn a_group_of_another_size_has_no_seats() {
        let group = Group::whole(3).unwrap();
        let butterfly = seated(Butterfly, false);
        assert_eq!(butterfly.rounds(&group), Butterfly.rounds(&group));
        assert_eq!(butterfly.tree(&group, 1), Butterfly.tree(&group, 1));
        for wrong in [vec![], vec![0, 0], vec![1, 2]] {
            assert!(Seated::new(Arc::new(Butterfly), wrong, true).is_none());
        }
    }
}
