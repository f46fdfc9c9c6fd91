//! Reduce: the data of all members are combined; the root has the result.

use std::ops::Range;

use super::{Paths, Task, gather, of as run, output, reduce_scatter};
use crate::partial::Partial;
use crate::plan::Store;
use crate::program::Program;
use crate::tree::Tree;

/// Up the tree, segment by segment; or, split, every member combines a part and the root gathers
/// the parts.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    of_values(program, task, paths, |_, member, blocks| {
        let at_root = task.in_place && member == task.root;
        let store = if at_root { Store::Output } else { Store::Input };
        Partial::own(task.order, member, run(store, &blocks))
    });
}

/// A reduction of values that members hold at first: those of a member for some blocks, as `own` says it.
pub(super) fn of_values(
    program: &mut Program,
    task: &Task,
    paths: &Paths<'_>,
    mut own: impl FnMut(&mut Program, u32, Range<u32>) -> Partial,
) {
    let tree = paths.to.tree(paths.group, task.root);
    if paths.split && program.size() > 1 {
        let all = 0..program.size();
        let values = all.clone().map(|member| own(program, member, all.clone())).collect();
        split(program, task, paths, &tree, values);
        return;
    }
    for segment in 0..task.segments {
        let of_segment = segment..segment + 1;
        let values =
            (0..program.size()).map(|member| own(program, member, of_segment.clone())).collect();
        up(program, &tree, segment, values);
    }
}

/// One segment up a tree, into the output of its root.
pub(super) fn up(program: &mut Program, tree: &Tree, segment: u32, own: Vec<Partial>) {
    let mut partials: Vec<Option<Partial>> = own.into_iter().map(Some).collect();
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

fn split(program: &mut Program, task: &Task, paths: &Paths<'_>, tree: &Tree, values: Vec<Partial>) {
    let root = task.root;
    let results = reduce_scatter::results(program, &paths.rounds(), values);
    let mut at = Vec::new();
    for (member, partial) in (0..).zip(results) {
        let store = if member == root { Store::Output } else { program.scratch(member) };
        let cells = output(member).at(store);
        partial.close(program, member, cells);
        at.push(cells);
    }
    gather::up(program, tree, &at);
}
