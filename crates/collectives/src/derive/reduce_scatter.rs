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
    close(program, results);
}

/// Every result goes to its member's output.
pub(super) fn close(program: &mut Program, results: Vec<Option<Partial>>) {
    for (member, partial) in (0..).zip(results) {
        if let Some(partial) = partial {
            partial.close(program, member, output(member));
        }
    }
}

/// The partial result of block `m` that member `m` holds in the end: everybody's data are in it.
/// None for members whose plans nobody asks for.
pub(super) fn results(
    program: &mut Program,
    order: Order,
    rounds: &Rounds,
    own: impl Fn(u32, u32) -> Cells,
) -> Vec<Option<Partial>> {
    let size = program.size();
    let first = |member, block| Some(Partial::own(order, member, own(member, block)));
    let row = |member| match program.is_kept(member) {
        true => (0..size).map(|block| first(member, block)).collect(),
        false => Vec::new(),
    };
    let mut partials: Vec<Vec<Option<Partial>>> = (0..size).map(row).collect();
    let tells = know::tells(rounds, know::own(size));
    let spread = know::Spread::of(size, &tells);
    for told in tells.iter().rev().flat_map(|round| round.iter().rev()) {
        let (giver, taker) = (told.to, told.from);
        if !program.is_kept(giver) && !program.is_kept(taker) {
            continue;
        }
        let (mut sent, mut received, mut given) = (Vec::new(), Vec::new(), Vec::new());
        for &block in &told.blocks {
            let partial = match partials[giver as usize].get_mut(block as usize) {
                Some(held) => held.take(),
                None => {
                    let members = spread.through(block, giver);
                    Some(Partial::of(order, &members, own(giver, block)))
                }
            };
            let Some(partial) = partial else { continue };
            let arrived = partial.received(program, taker);
            sent.extend(partial.cells());
            received.extend(arrived.cells());
            given.push((block, partial, arrived));
        }
        program.message(giver, taker, sent, received);
        for (block, partial, arrived) in given {
            partial.release(program, giver);
            if let Some(Some(held)) = partials[taker as usize].get_mut(block as usize) {
                held.join(program, taker, arrived);
            }
        }
    }
    let own = |(member, row): (usize, Vec<Option<Partial>>)| row.into_iter().nth(member).flatten();
    partials.into_iter().enumerate().map(own).collect()
}
