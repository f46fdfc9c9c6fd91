//! Alltoall: each member has a block for each member.

use super::know;
use super::{Paths, input, output};
use crate::plan::{Cells, Store};
use crate::program::Program;
use crate::rounds::Rounds;

/// Each piece takes the way that its sender's data take in an allgather; where the architecture
/// has an exchange of its own, straight to its receiver. Input and output do not share memory
/// here: where a user wants that, the input is a copy.
pub(super) fn plan(program: &mut Program, paths: &Paths<'_>) {
    let size = program.size();
    for member in 0..size {
        let own = member * size + member;
        program.copy(member, input(own), output(own));
    }
    let exchange = match program.only() {
        Some(member) => paths.to.exchange_of(paths.group, member),
        None => paths.to.exchange(paths.group),
    };
    match exchange {
        Some(rounds) => straight(program, &rounds),
        None => routed(program, &paths.rounds()),
    }
}

fn straight(program: &mut Program, rounds: &Rounds) {
    let size = program.size();
    for &(from, to) in rounds.iter().flatten() {
        if program.concerns(from, to) {
            let block = from * size + to;
            program.message(from, to, vec![input(block)], vec![output(block)]);
        }
    }
}

fn routed(program: &mut Program, rounds: &Rounds) {
    let size = program.size();
    let tells = know::tells(rounds, know::own(size));
    let spread = know::Spread::of(size, &tells);
    let mut relays: Vec<Option<Store>> = vec![None; size as usize];
    for tell in tells.iter().flatten() {
        let (from, to) = (tell.from, tell.to);
        if !program.concerns(from, to) {
            continue;
        }
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for source in tell.blocks.iter() {
            for target in spread.through(source, to) {
                let block = source * size + target;
                let mut relayed = |at: u32| {
                    let relay = relays[at as usize].get_or_insert_with(|| program.scratch(at));
                    Cells::new(*relay, block, 1)
                };
                sent.push(if source == from { input(block) } else { relayed(from) });
                received.push(if target == to { output(block) } else { relayed(to) });
            }
        }
        program.message(from, to, sent, received);
    }
}
