//! Scatter: the root's data are divided among all members.

use super::{Task, input, output};
use crate::plan::{Cells, Store};
use crate::program::Program;
use crate::tree::Tree;

/// Down the tree: a member gets its own block and those of all below it, and passes these on
/// straight from where they lie.
pub(super) fn plan(program: &mut Program, task: &Task, tree: &Tree) {
    let root = tree.root();
    if !task.in_place {
        program.copy(root, input(root), output(root));
    }
    let own: Vec<Cells> = (0..tree.size()).map(output).collect();
    down(program, tree, &own);
}

/// The root's data down the tree, block `m` to where member `m` wants it; the root keeps its own.
pub(super) fn down(program: &mut Program, tree: &Tree, own: &[Cells]) {
    let subtrees = tree.subtrees();
    let mut passing = vec![Store::Input; subtrees.len()];
    for member in tree.top_down() {
        for &child in tree.children(member) {
            let blocks = &subtrees[child as usize];
            if blocks.len() > 1 {
                passing[child as usize] = program.scratch(child);
            }
            let sent = super::each(passing[member as usize], blocks);
            let store = passing[child as usize];
            program.message(
                member,
                child,
                sent,
                super::each_but(store, blocks, own[child as usize]),
            );
        }
    }
}
