//! Everybody's data are combined; the result is divided among all.

use super::know;
use super::{Order, Paths, Task, input, output};
use crate::partial::Partial;
use crate::plan::Cells;
use crate::program::Program;
use crate::rounds::Rounds;

/// An allgather backwards in time: where it would have told `to` about a block, `to` now gives
/// away what it has combined of that block.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let own = |_, block| if task.in_place { output(block) } else { input(block) };
    let results = results(program, task.order, &paths.rounds(), own);
    for (member, partial) in (0..).zip(results) {
        partial.close(program, member, output(member));
    }
}

/// The partial result of block `m` that member `m` holds in the end: everybody's data are in it.
pub(super) fn results(
    program: &mut Program,
    order: Order,
    rounds: &Rounds,
    own: impl Fn(u32, u32) -> Cells,
) -> Vec<Partial> {
    let size = program.size();
    let own = |member, block| Some(Partial::own(order, member, own(member, block)));
    let row = |member| (0..size).map(|block| own(member, block)).collect();
    let mut partials: Vec<Vec<Option<Partial>>> = (0..size).map(row).collect();
    let tells = know::tells(rounds, know::own(size));
    for told in tells.iter().rev().flat_map(|round| round.iter().rev()) {
        let (giver, taker) = (told.to, told.from);
        let mut sent = Vec::new();
        let mut received = Vec::new();
        let mut given = Vec::new();
        for &block in &told.blocks {
            let Some(partial) = partials[giver as usize][block as usize].take() else { continue };
            let arrived = partial.received(program, taker);
            sent.extend(partial.cells());
            received.extend(arrived.cells());
            given.push((block, partial, arrived));
        }
        program.message(giver, taker, sent, received);
        for (block, partial, arrived) in given {
            partial.release(program, giver);
            if let Some(held) = &mut partials[taker as usize][block as usize] {
                held.join(program, taker, arrived);
            }
        }
    }
    let own = |(member, mut row): (usize, Vec<Option<Partial>>)| row.swap_remove(member);
    partials.into_iter().enumerate().filter_map(own).collect()
}
