//! Everybody has something for everybody.

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
    match paths.to.exchange(paths.group) {
        Some(rounds) => straight(program, &rounds),
        None => routed(program, &paths.rounds()),
    }
}

fn straight(program: &mut Program, rounds: &Rounds) {
    let size = program.size();
    for &(from, to) in rounds.iter().flatten() {
        let block = from * size + to;
        program.message(from, to, vec![input(block)], vec![output(block)]);
    }
}

fn routed(program: &mut Program, rounds: &Rounds) {
    let size = program.size();
    let tells = know::tells(rounds, know::own(size));
    let below = receivers_below(size, &tells);
    let mut relays: Vec<Option<Store>> = vec![None; size as usize];
    let mut number = 0;
    for tell in tells.iter().flatten() {
        let (from, to) = (tell.from, tell.to);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for &source in &tell.blocks {
            for &target in &below[number] {
                let block = source * size + target;
                let mut relayed = |at: u32| {
                    let relay = relays[at as usize].get_or_insert_with(|| program.scratch(at));
                    Cells::new(*relay, block, 1)
                };
                sent.push(if source == from { input(block) } else { relayed(from) });
                received.push(if target == to { output(block) } else { relayed(to) });
            }
            number += 1;
        }
        program.message(from, to, sent, received);
    }
}

/// For every block of every message, in order: who learns of it through that message, directly or
/// later.
fn receivers_below(size: u32, tells: &[Vec<know::Tell>]) -> Vec<Vec<u32>> {
    let count: usize = tells.iter().flatten().map(|tell| tell.blocks.len()).sum();
    let mut below = vec![Vec::new(); count];
    // Who has been reached from `member` with the data of `source`, seen from the end.
    let mut reached: Vec<Vec<u32>> = vec![Vec::new(); (size * size) as usize];
    let mut number = count;
    for tell in tells.iter().rev().flat_map(|round| round.iter().rev()) {
        number -= tell.blocks.len();
        for (at, &source) in tell.blocks.iter().enumerate() {
            let mut all = std::mem::take(&mut reached[(source * size + tell.to) as usize]);
            all.push(tell.to);
            all.sort_unstable();
            reached[(source * size + tell.from) as usize].extend_from_slice(&all);
            below[number + at] = all;
        }
    }
    below
}
