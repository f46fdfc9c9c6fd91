//! Gather: the data of all members go to the root.

use super::{Task, input, output};
use crate::plan::{Cells, Store};
use crate::program::Program;
use crate::tree::Tree;

/// Data go up the tree, from the input of each member.
pub(super) fn plan(program: &mut Program, task: &Task, tree: &Tree) {
    let root = tree.root();
    if !task.in_place {
        program.copy(root, input(root), output(root));
    }
    let own: Vec<Cells> = (0..tree.size()).map(input).collect();
    up(program, tree, &own);
}

/// Block `m` from where member `m` has it to the root's output; the root's own is there. A member
/// sends what has come from below it together with its own, straight from where it lies.
pub(super) fn up(program: &mut Program, tree: &Tree, own: &[Cells]) {
    let (root, subtrees) = (tree.root(), tree.subtrees());
    let mut below: Vec<Option<Store>> = vec![None; own.len()];
    below[root as usize] = Some(Store::Output);
    for member in tree.bottom_up() {
        let Some(parent) = tree.parent(member) else { continue };
        let store = *below[parent as usize].get_or_insert_with(|| program.scratch(parent));
        let blocks = &subtrees[member as usize];
        let passed = below[member as usize].unwrap_or(Store::Input);
        let sent = super::each_but(passed, blocks, own[member as usize]);
        program.message(member, parent, sent, super::each(store, blocks));
    }
}
