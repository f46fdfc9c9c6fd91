//! A binary tree: each member serves two.
//!
//! ```text
//!            0
//!        ┌───┴───┐
//!        1       2
//!      ┌─┴─┐   ┌─┴─┐
//!      3   4   5   6         ranks count from the root: member `r + i` stands at place `i`
//! ```
//!
//! Source: Silva, Avila, Barreto, Navaux, "Comunicação Coletiva no Ambiente de Programação
//! Paralela DECK" (2003), section 3, for barrier, broadcast, allgather and allreduce. `n - 1`
//! messages. The member at place `i` is reached after as many steps as `i + 1` has binary
//! digits behind the first one, a one counting twice: with `n = 2^l - 1` members that is at most
//! `2 * (l - 1)`, for any `n` at most twice the logarithm. More than with the binomial tree
//! ([`super::Knomial`]), but no member serves more than two.

use super::Architecture;
use crate::group::Group;
use crate::tree::Tree;

/// A binary tree: each member serves two.
#[derive(Clone, Copy, Debug, Default)]
pub struct BinaryTree;

impl Architecture for BinaryTree {
    fn name(&self) -> String {
        "binary-tree".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let size = group.size();
        Tree::new(size, 0, (1..size).map(|place| ((place - 1) / 2, place))).turned(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing() {
        let tree = BinaryTree.tree(&Group::whole(7).unwrap(), 0);
        assert_eq!([0, 1, 2].map(|member| tree.children(member)), [[1, 2], [3, 4], [5, 6]]);
        let turned = BinaryTree.tree(&Group::whole(4).unwrap(), 3);
        assert_eq!((turned.children(3), turned.children(0)), (&[0, 1][..], &[2][..]));
    }
}
