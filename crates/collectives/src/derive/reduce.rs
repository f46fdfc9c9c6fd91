//! Reduce: the data of all members are combined; the root has the result.

use super::{Order, Paths, Task, gather, input, output, reduce_scatter};
use crate::partial::Partial;
use crate::plan::Store;
use crate::program::Program;
use crate::tree::Tree;

/// Up the tree, segment by segment; or, split, every member combines a part and the root gathers
/// the parts.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let tree = paths.to.tree(paths.group, task.root);
    if paths.split && program.size() > 1 {
        split(program, task, paths, &tree);
        return;
    }
    for segment in 0..task.segments {
        let own_at_root = if task.in_place { output(segment) } else { input(segment) };
        up(program, task.order, &tree, segment, |member| {
            if member == task.root { own_at_root } else { input(segment) }
        });
    }
}

/// One segment up a tree, into the output of its root.
pub(super) fn up(
    program: &mut Program,
    order: Order,
    tree: &Tree,
    segment: u32,
    own: impl Fn(u32) -> crate::plan::Cells,
) {
    let mut partials: Vec<Option<Partial>> =
        (0..tree.size()).map(|member| Some(Partial::own(order, member, own(member)))).collect();
    for member in tree.bottom_up() {
        let Some(partial) = partials[member as usize].take() else { continue };
        match tree.parent(member) {
            Some(parent) => {
                let received = partial.received(program, parent);
                program.message(member, parent, partial.cells(), received.cells());
                partial.release(program, member);
                if let Some(above) = &mut partials[parent as usize] {
                    above.join(program, parent, received);
                }
            }
            None => partial.close(program, member, output(segment)),
        }
    }
}

fn split(program: &mut Program, task: &Task, paths: &Paths<'_>, tree: &Tree) {
    let root = task.root;
    let own = |member| {
        if task.in_place && member == root { Store::Output } else { Store::Input }
    };
    let results = reduce_scatter::results(program, task.order, &paths.rounds(), own);
    let mut at = Vec::new();
    for (member, partial) in (0..).zip(results) {
        let store = if member == root { Store::Output } else { program.scratch(member) };
        let cells = output(member).at(store);
        partial.close(program, member, cells);
        at.push(cells);
    }
    gather::up(program, tree, &at);
}
