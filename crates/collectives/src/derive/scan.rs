//! Scans: member `m` has the combined data of the members up to it, or of those before it.

use std::collections::BTreeMap;

use super::{Order, Paths, Task, input, output};
use crate::operation::Operation;
use crate::partial::Partial;
use crate::plan::Cells;
use crate::program::Program;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// In the architecture's own rounds for it; else all goes to member 0, which combines and hands
/// the results out.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let prefix = paths.to.prefix(paths.group);
    for segment in 0..task.segments {
        match &prefix {
            Some(rounds) => in_rounds(program, task, rounds, segment),
            None => by_root(program, task, &paths.to.tree(paths.group, 0), segment),
        }
    }
}

/// The data that a member knows: its own and those of the members directly before it.
struct Known {
    /// The first member it knows of.
    first: u32,
    inclusive: Partial,
    /// The partial result without its own data.
    before: Option<Partial>,
}

fn in_rounds(program: &mut Program, task: &Task, rounds: &Rounds, segment: u32) {
    let own = own_cells(task, segment);
    let size = program.size();
    let inclusive = |member| Partial::own(task.order, member, own);
    let mut known: Vec<Known> =
        (0..size).map(|first| Known { first, inclusive: inclusive(first), before: None }).collect();
    let exclusive = task.operation == Operation::ExclusiveScan;
    for round in rounds.iter() {
        let mut arrivals = Vec::new();
        for &(from, to) in round {
            assert_eq!(from + 1, known[to as usize].first, "a prefix grows without a gap");
            let partial = known[from as usize].inclusive.clone();
            let received = partial.received(program, to);
            program.message(from, to, partial.cells(), received.cells());
            arrivals.push((to, known[from as usize].first, received));
        }
        for (to, first, received) in arrivals {
            add(program, &mut known[to as usize], to, first, received, exclusive);
        }
    }
    for (member, known) in (0..).zip(known) {
        let result = if exclusive { known.before } else { Some(known.inclusive) };
        if let Some(result) = result {
            result.close(program, member, output(segment));
        }
    }
}

fn add(
    program: &mut Program,
    known: &mut Known,
    member: u32,
    first: u32,
    received: Partial,
    exclusive: bool,
) {
    known.first = first;
    if exclusive {
        let copy = received.copied(program, member);
        match &mut known.before {
            Some(before) => before.join(program, member, copy),
            None => known.before = Some(copy),
        }
    }
    known.inclusive.join(program, member, received);
}

fn own_cells(task: &Task, segment: u32) -> Cells {
    if task.in_place { output(segment) } else { input(segment) }
}

/// The data of all members go up the tree, not combined. The root shows each prefix in turn and sends it to its member
/// down the tree.
fn by_root(program: &mut Program, task: &Task, tree: &Tree, segment: u32) {
    let own = own_cells(task, segment);
    let mut held: Vec<Vec<(u32, Cells)>> =
        (0..tree.size()).map(|member| vec![(member, own)]).collect();
    for member in tree.bottom_up() {
        let Some(parent) = tree.parent(member) else { continue };
        let passed = std::mem::take(&mut held[member as usize]);
        let arrived: Vec<(u32, Cells)> =
            passed.iter().map(|&(of, cells)| (of, cells.at(program.scratch(parent)))).collect();
        let cells = |list: &[(u32, Cells)]| list.iter().map(|&(_, cells)| cells).collect();
        program.message(member, parent, cells(&passed), cells(&arrived));
        for (_, cells) in passed {
            program.release(member, cells.store);
        }
        held[parent as usize].extend(arrived);
    }
    let mut gathered = std::mem::take(&mut held[tree.root() as usize]);
    gathered.sort_unstable_by_key(|&(of, _)| of);
    let results = prefixes(program, task, tree.root(), &gathered, segment);
    hand_out(program, tree, results, segment);
}

/// The prefixes at the root, one after the other, each in a scratch store; none for the first
/// member of an exclusive scan.
fn prefixes(
    program: &mut Program,
    task: &Task,
    root: u32,
    gathered: &[(u32, Cells)],
    segment: u32,
) -> Vec<Option<Cells>> {
    let exclusive = task.operation == Operation::ExclusiveScan;
    let mut running: Option<Partial> = None;
    let mut results = Vec::new();
    for &(of, cells) in gathered {
        if exclusive {
            results.push(running.as_ref().map(|partial| shown(program, root, partial, segment)));
        }
        match &mut running {
            Some(partial) => {
                partial.join(program, root, Partial::own(Order::Canonical, of, cells));
            }
            // Combining changes the first value: it works on a copy.
            None => running = Some(Partial::own(Order::Canonical, of, cells).copied(program, root)),
        }
        if !exclusive {
            results.push(running.as_ref().map(|partial| shown(program, root, partial, segment)));
        }
    }
    if let Some(running) = running {
        running.release(program, root);
    }
    results
}

fn shown(program: &mut Program, root: u32, partial: &Partial, segment: u32) -> Cells {
    let place = output(segment).at(program.scratch(root));
    partial.show(program, root, place);
    place
}

fn hand_out(program: &mut Program, tree: &Tree, results: Vec<Option<Cells>>, segment: u32) {
    let subtrees = tree.subtrees();
    let mut held: Vec<BTreeMap<u32, Cells>> = vec![BTreeMap::new(); tree.size() as usize];
    let numbered = (0..).zip(results);
    held[tree.root() as usize] = numbered.filter_map(|(of, cells)| Some((of, cells?))).collect();
    for member in tree.top_down() {
        let own = std::mem::take(&mut held[member as usize]);
        for &child in tree.children(member) {
            let mut arrived = BTreeMap::new();
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for of in subtrees[child as usize].iter() {
                let Some(&cells) = own.get(&of) else { continue };
                let place = if of == child {
                    output(segment)
                } else {
                    output(segment).at(program.scratch(child))
                };
                arrived.insert(of, place);
                sent.push(cells);
                received.push(place);
            }
            program.message(member, child, sent, received);
            held[child as usize] = arrived;
        }
        if member == tree.root()
            && let Some(&cells) = own.get(&member)
        {
            program.copy(member, cells, output(segment));
        }
        for cells in own.into_values() {
            program.release(member, cells.store);
        }
    }
}
