//! Reduce-scatter: the data of all members are combined; the result is divided among them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::know;
use super::{Paths, Task, output};
use crate::partial::Partial;
use crate::plan::{Cells, Store};
use crate::program::Program;
use crate::rounds::Rounds;

/// An allgather backwards in time: where it would have told `to` about blocks, `to` now gives away
/// what it has combined of those.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let store = if task.in_place { Store::Output } else { Store::Input };
    let size = program.size();
    let own = |member| Partial::own(task.order, member, Cells::new(store, 0, size));
    let results = results(program, &paths.rounds(), (0..size).map(own).collect());
    close(program, results);
}

/// Every result goes to its member's output.
pub(super) fn close(program: &mut Program, results: Vec<Partial>) {
    for (member, partial) in (0..).zip(results) {
        partial.close(program, member, output(member));
    }
}

/// The partial result of block `m` that member `m` holds in the end: the data of all members are in it. `own` are the
/// values that each member holds at first, of all blocks.
pub(super) fn results(program: &mut Program, rounds: &Rounds, own: Vec<Partial>) -> Vec<Partial> {
    let size = program.size();
    let mut held: Vec<Held> = (0..).zip(own).map(|(member, all)| Held::new(member, all)).collect();
    know::each_tell_backwards(rounds, know::own(size), |told| {
        let (giver, taker) = (told.to, told.from);
        let (mut sent, mut received, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
        let mut given = Vec::new();
        for run in told.blocks.runs() {
            given.extend(held[giver as usize].take(program, run));
        }
        for partial in &given {
            let arrived = partial.received(program, taker);
            sent.extend(partial.cells());
            received.extend(arrived.cells());
            arrivals.push(arrived);
        }
        program.message(giver, taker, sent, received);
        given.into_iter().for_each(|partial| partial.release(program, giver));
        for arrived in arrivals {
            held[taker as usize].join(program, arrived);
        }
    });
    let result = |held: &mut Held| held.take(program, &(held.member..held.member + 1));
    held.iter_mut().flat_map(result).collect()
}

/// The runs of blocks that one member holds, by first block; in each run it holds the data of the same members.
struct Held {
    member: u32,
    runs: BTreeMap<u32, Partial>,
}

impl Held {
    fn new(member: u32, all: Partial) -> Self {
        Self { member, runs: BTreeMap::from([(0, all)]) }
    }

    /// Cuts the run that crosses the start of this block.
    fn cut(&mut self, program: &mut Program, at: u32) {
        let Some((&first, _)) = self.runs.range(..at).next_back() else { return };
        if let Some(partial) = self.runs.remove(&first) {
            if partial.blocks().end > at {
                let (lower, upper) = partial.cut(program, self.member, at);
                self.runs.extend([(first, lower), (at, upper)]);
            } else {
                self.runs.insert(first, partial);
            }
        }
    }

    /// Gives these blocks away.
    fn take(&mut self, program: &mut Program, blocks: &Range<u32>) -> Vec<Partial> {
        self.cut(program, blocks.start);
        self.cut(program, blocks.end);
        let firsts: Vec<u32> = self.runs.range(blocks.clone()).map(|(&first, _)| first).collect();
        firsts.iter().filter_map(|first| self.runs.remove(first)).collect()
    }

    /// Joins an arrived partial result to those of the same blocks.
    fn join(&mut self, program: &mut Program, arrived: Partial) {
        let blocks = arrived.blocks();
        self.cut(program, blocks.start);
        self.cut(program, blocks.end);
        let mut rest = Some(arrived);
        for partial in self.runs.range_mut(blocks).map(|(_, partial)| partial) {
            let Some(left) = rest.take() else { break };
            let end = partial.blocks().end;
            let part = if end < left.blocks().end {
                let (part, others) = left.cut(program, self.member, end);
                rest = Some(others);
                part
            } else {
                left
            };
            partial.join(program, self.member, part);
        }
    }
}
