//! A tree: from one member to all others, each reached once.

use crate::blocks::Blocks;

/// A rooted spanning tree of a group. The order of the children is the order in which they are
/// served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    root: u32,
    parents: Vec<Option<u32>>,
    children: Vec<Vec<u32>>,
}

impl Tree {
    /// The tree with these (parent, child) edges. Edges of one parent are in the order of service.
    ///
    /// # Panics
    /// When the edges are not a spanning tree from `root`: an architecture is wrong then.
    pub fn new(size: u32, root: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut tree = Self {
            root,
            parents: vec![None; size as usize],
            children: vec![Vec::new(); size as usize],
        };
        for (parent, child) in edges {
            assert!(child != root, "the root {root} is nobody's child");
            let before = tree.parents[child as usize].replace(parent);
            assert!(before.is_none(), "member {child} is served twice");
            tree.children[parent as usize].push(child);
        }
        assert_eq!(tree.top_down().len(), size as usize, "not all are reached from {root}");
        tree
    }

    /// The tree from `root` over the edges of an undirected tree. A member serves its neighbours
    /// in the order of its list.
    ///
    /// # Panics
    /// When the neighbours are not those of a tree over all members.
    pub fn from_neighbours(root: u32, neighbours: &[Vec<u32>]) -> Self {
        let mut edges = Vec::new();
        let mut open = vec![(root, root)];
        while let Some((member, from)) = open.pop() {
            for &next in neighbours[member as usize].iter().filter(|&&next| next != from) {
                assert!(edges.len() < neighbours.len(), "the neighbours make a circle");
                edges.push((member, next));
                open.push((next, member));
            }
        }
        Self::new(neighbours.len() as u32, root, edges)
    }

    /// Returns the tree with member `(m + by) % size` in the place of `m`.
    #[must_use]
    pub fn turned(&self, by: u32) -> Self {
        let size = self.size();
        let turn = |member: u32| ((u64::from(member) + u64::from(by)) % u64::from(size)) as u32;
        let edges = self.top_down().into_iter().flat_map(|parent| {
            self.children(parent).iter().map(move |&child| (turn(parent), turn(child)))
        });
        Self::new(size, turn(self.root), edges)
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.parents.len() as u32
    }

    /// The root.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The parent of a member; none for the root.
    pub fn parent(&self, member: u32) -> Option<u32> {
        self.parents[member as usize]
    }

    /// The children of a member, in the order of service.
    pub fn children(&self, member: u32) -> &[u32] {
        &self.children[member as usize]
    }

    /// All members, parents before their children, level by level.
    pub fn top_down(&self) -> Vec<u32> {
        let mut order = vec![self.root];
        let mut at = 0;
        while at < order.len() && order.len() <= self.parents.len() {
            order.extend_from_slice(self.children(order[at]));
            at += 1;
        }
        order
    }

    /// All members, children before their parents.
    pub fn bottom_up(&self) -> Vec<u32> {
        let mut order = self.top_down();
        order.reverse();
        order
    }

    /// For every member, all members from it downwards, itself among them.
    pub(crate) fn subtrees(&self) -> Vec<Blocks> {
        let mut subtrees: Vec<Blocks> = (0..self.size()).map(Blocks::one).collect();
        for member in self.bottom_up() {
            let below = self.children(member).iter().map(|&child| &subtrees[child as usize]);
            let all = below.chain([&subtrees[member as usize]]).flat_map(Blocks::runs).cloned();
            subtrees[member as usize] = Blocks::of(all);
        }
        subtrees
    }

    /// The distance of every member from the root.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.parents.len()];
        for member in self.top_down() {
            for &child in self.children(member) {
                depths[child as usize] = depths[member as usize] + 1;
            }
        }
        depths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_subtrees() {
        let tree = Tree::new(5, 1, [(1, 3), (1, 0), (3, 4), (3, 2)]);
        assert_eq!(tree.top_down(), [1, 3, 0, 4, 2]);
        assert_eq!(tree.subtrees()[3], Blocks::run(2..5));
        assert_eq!(tree.depths(), [1, 0, 2, 1, 2]);
        assert_eq!(tree.parent(4), Some(3));
    }

    #[test]
    fn a_turned_tree_has_another_root() {
        let tree = Tree::new(3, 0, [(0, 1), (1, 2)]).turned(2);
        assert_eq!((tree.root(), tree.children(2), tree.children(0)), (2, &[0][..], &[1][..]));
    }

    #[test]
    fn a_tree_from_neighbours_serves_in_their_order() {
        let line = [vec![1], vec![0, 2], vec![1]];
        let tree = Tree::from_neighbours(1, &line);
        assert_eq!((tree.root(), tree.children(1)), (1, &[0, 2][..]));
    }

    #[test]
    #[should_panic(expected = "served twice")]
    fn an_architecture_that_serves_twice_is_wrong() {
        Tree::new(3, 0, [(0, 1), (0, 2), (1, 2)]);
    }

    #[test]
    #[should_panic(expected = "not all are reached")]
    fn an_architecture_that_forgets_somebody_is_wrong() {
        Tree::new(4, 0, [(0, 1), (2, 3), (3, 2)]);
    }
}
