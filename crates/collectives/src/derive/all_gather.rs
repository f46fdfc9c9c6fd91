//! Allgather: the data of all members go to all members.

use super::know;
use super::{Task, input, output};
use crate::blocks::Blocks;
use crate::plan::Store;
use crate::program::Program;
use crate::rounds::Rounds;

/// In rounds: each tells the other what it lacks.
pub(super) fn plan(program: &mut Program, task: &Task, rounds: &Rounds) {
    if !task.in_place {
        for member in 0..program.size() {
            program.copy(member, input(member), output(member));
        }
    }
    let known = know::own(program.size());
    tell(program, rounds, known);
}

/// An allgather of data in the output, of which each member has the `known` blocks at first.
pub(super) fn tell(program: &mut Program, rounds: &Rounds, known: Vec<Blocks>) {
    know::each_tell(rounds, known, |told| {
        if program.concerns(told.from, told.to) {
            let cells = super::each(Store::Output, &told.blocks);
            program.message(told.from, told.to, cells.clone(), cells);
        }
    });
}
