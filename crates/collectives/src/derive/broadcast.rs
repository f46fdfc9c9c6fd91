//! Broadcast: the root's data go to all members.

use super::{Paths, Task, all_gather, output};
use crate::program::Program;
use crate::tree::Tree;

/// Down the tree, segment by segment; or, split, every member gets a part of the data down the
/// tree and the parts are then told around.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let tree = paths.to.tree(paths.group, task.root);
    if paths.split && program.size() > 1 {
        split(program, &tree);
        all_gather::tell(program, &paths.rounds(), tree.subtrees());
        return;
    }
    segments(program, &tree, task.segments);
}

/// Segments of data, all in the output of the tree's root, go to all members.
pub(super) fn segments(program: &mut Program, tree: &Tree, segments: u32) {
    let order = tree.top_down();
    for segment in 0..segments {
        for &member in &order {
            for &child in tree.children(member) {
                if program.concerns(member, child) {
                    program.message(member, child, vec![output(segment)], vec![output(segment)]);
                }
            }
        }
    }
}

/// The data in as many segments as there are members, each to its member by way of those above it,
/// which keep what they pass on: then each has those of its subtree.
fn split(program: &mut Program, tree: &Tree) {
    let subtrees = tree.subtrees();
    for member in tree.top_down() {
        for &child in tree.children(member) {
            let cells = super::each(crate::plan::Store::Output, &subtrees[child as usize]);
            program.message(member, child, cells.clone(), cells);
        }
    }
}
