//! Scans: member `m` has the combined data of the members up to it, or of those before it.

use std::collections::BTreeMap;

use super::{Order, Paths, Task};
use crate::operation::Operation;
use crate::partial::Partial;
use crate::plan::{Cells, Store};
use crate::program::Program;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// In the architecture's own rounds for it; else all goes to member 0, which combines and hands
/// the results out.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let own = if task.in_place { Store::Output } else { Store::Input };
    let all = vec![(own, Store::Output); program.size() as usize];
    of_values(program, task, paths, &all);
}

/// A scan of values that members hold at first. For each member: the store of its value, which may be overwritten
/// unless that is its input, and the store of its result.
pub(super) fn of_values(
    program: &mut Program,
    task: &Task,
    paths: &Paths<'_>,
    stores: &[(Store, Store)],
) {
    let prefix = paths.to.prefix(paths.group);
    for segment in 0..task.segments {
        let scan =
            Scan { is_exclusive: task.operation == Operation::ExclusiveScan, segment, stores };
        match &prefix {
            Some(rounds) => scan.in_rounds(program, task.order, rounds),
            None => scan.by_root(program, &paths.to.tree(paths.group, 0)),
        }
    }
}

/// The scan of one segment.
struct Scan<'a> {
    is_exclusive: bool,
    segment: u32,
    /// By member: where its value is, and where its result goes.
    stores: &'a [(Store, Store)],
}

/// The data that a member knows: its own and those of the members directly before it.
struct Known {
    /// The first member it knows of.
    first: u32,
    inclusive: Partial,
    /// The partial result without its own data.
    before: Option<Partial>,
}

impl Scan<'_> {
    /// The segment in a store.
    fn at(&self, store: Store) -> Cells {
        Cells::new(store, self.segment, 1)
    }

    /// A member's value.
    fn own(&self, member: u32) -> Cells {
        self.at(self.stores[member as usize].0)
    }

    /// The place of a member's result.
    fn result(&self, member: u32) -> Cells {
        self.at(self.stores[member as usize].1)
    }

    fn in_rounds(&self, program: &mut Program, order: Order, rounds: &Rounds) {
        let size = program.size();
        let inclusive = |member| Partial::own(order, member, self.own(member));
        let mut known: Vec<Known> = (0..size)
            .map(|first| Known { first, inclusive: inclusive(first), before: None })
            .collect();
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
                self.add(program, &mut known[to as usize], to, first, received);
            }
        }
        for (member, known) in (0..).zip(known) {
            let result = if self.is_exclusive { known.before } else { Some(known.inclusive) };
            if let Some(result) = result {
                result.close(program, member, self.result(member));
            }
        }
    }

    fn add(
        &self,
        program: &mut Program,
        known: &mut Known,
        member: u32,
        first: u32,
        received: Partial,
    ) {
        known.first = first;
        if self.is_exclusive {
            let copy = received.copied(program, member);
            match &mut known.before {
                Some(before) => before.join(program, member, copy),
                None => known.before = Some(copy),
            }
        }
        known.inclusive.join(program, member, received);
    }

    /// The data of all members go up the tree, not combined. The root shows each prefix in turn and sends it to its member
    /// down the tree.
    fn by_root(&self, program: &mut Program, tree: &Tree) {
        let mut held: Vec<Vec<(u32, Cells)>> =
            (0..tree.size()).map(|member| vec![(member, self.own(member))]).collect();
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
        let results = self.prefixes(program, tree.root(), &gathered);
        self.hand_out(program, tree, results);
    }

    /// The prefixes at the root, one after the other, each in a scratch store; none for the first
    /// member of an exclusive scan.
    fn prefixes(
        &self,
        program: &mut Program,
        root: u32,
        gathered: &[(u32, Cells)],
    ) -> Vec<Option<Cells>> {
        let mut running: Option<Partial> = None;
        let mut results = Vec::new();
        let mut shown = |program: &mut Program, running: &Option<Partial>| {
            results.push(running.as_ref().map(|partial| self.shown(program, root, partial)));
        };
        for &(of, cells) in gathered {
            if self.is_exclusive {
                shown(program, &running);
            }
            match &mut running {
                Some(partial) => {
                    partial.join(program, root, Partial::own(Order::Canonical, of, cells));
                }
                // Combining changes the first value: it works on a copy.
                None => {
                    running = Some(Partial::own(Order::Canonical, of, cells).copied(program, root));
                }
            }
            if !self.is_exclusive {
                shown(program, &running);
            }
        }
        if let Some(running) = running {
            running.release(program, root);
        }
        results
    }

    fn shown(&self, program: &mut Program, root: u32, partial: &Partial) -> Cells {
        let place = self.at(program.scratch(root));
        partial.show(program, root, place);
        place
    }

    fn hand_out(&self, program: &mut Program, tree: &Tree, results: Vec<Option<Cells>>) {
        let subtrees = tree.subtrees();
        let mut held: Vec<BTreeMap<u32, Cells>> = vec![BTreeMap::new(); tree.size() as usize];
        let numbered = (0..).zip(results);
        held[tree.root() as usize] =
            numbered.filter_map(|(of, cells)| Some((of, cells?))).collect();
        for member in tree.top_down() {
            let own = std::mem::take(&mut held[member as usize]);
            for &child in tree.children(member) {
                let mut arrived = BTreeMap::new();
                let (mut sent, mut received) = (Vec::new(), Vec::new());
                for of in subtrees[child as usize].iter() {
                    let Some(&cells) = own.get(&of) else { continue };
                    let place = if of == child {
                        self.result(child)
                    } else {
                        self.at(program.scratch(child))
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
                program.copy(member, cells, self.result(member));
            }
            for (of, cells) in own {
                if of != member || member == tree.root() {
                    program.release(member, cells.store);
                }
            }
        }
    }
}
