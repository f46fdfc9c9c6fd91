//! The blocks that each member knows, round by round: the basis of all operations that go in rounds.

use crate::blocks::Blocks;
use crate::rounds::Rounds;

/// One message of an exchange: its sender, its receiver and its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tell {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The members whose data it carries.
    pub(crate) blocks: Blocks,
}

/// Returns the messages of an allgather, round by round: each sender tells its receiver the blocks that it lacks, and
/// no member is told anything twice. `known` contains the blocks that each member knows at first.
pub(crate) fn tells(rounds: &Rounds, known: Vec<Blocks>) -> Vec<Vec<Tell>> {
    let mut knowledge = Knowledge::new(known);
    rounds.iter().map(|round| knowledge.tells(round)).collect()
}

/// Calls `each` with the messages of an allgather in order. No more than a round of them is in memory.
pub(crate) fn each_tell(rounds: &Rounds, known: Vec<Blocks>, mut each: impl FnMut(Tell)) {
    let mut knowledge = Knowledge::new(known);
    rounds.iter().for_each(|round| knowledge.tells(round).into_iter().for_each(&mut each));
}

/// Calls `each` with the messages of an allgather from the last to the first. The known blocks are saved before every
/// stretch of rounds, with about as many stretches as rounds in one; a stretch is computed again when its turn comes.
pub(crate) fn each_tell_backwards(rounds: &Rounds, known: Vec<Blocks>, mut each: impl FnMut(Tell)) {
    let rounds: Vec<&[(u32, u32)]> = rounds.iter().collect();
    let stretch = rounds.len().isqrt().max(1);
    let mut knowledge = Knowledge::new(known);
    let mut before = Vec::new();
    for stretch in rounds.chunks(stretch) {
        before.push(knowledge.known.clone());
        stretch.iter().for_each(|round| drop(knowledge.tells(round)));
    }
    for (stretch, known) in rounds.chunks(stretch).zip(before).rev() {
        let mut knowledge = Knowledge::new(known);
        let tells: Vec<_> = stretch.iter().map(|round| knowledge.tells(round)).collect();
        tells.into_iter().flatten().rev().for_each(&mut each);
    }
}

/// The blocks that each member knows.
struct Knowledge {
    known: Vec<Blocks>,
    /// The blocks that the senders of a round knew before it.
    before: Vec<Blocks>,
}

impl Knowledge {
    fn new(known: Vec<Blocks>) -> Self {
        Self { known, before: Vec::new() }
    }

    /// Returns the messages of a round.
    fn tells(&mut self, round: &[(u32, u32)]) -> Vec<Tell> {
        remember(&mut self.before, &self.known, round);
        let mut tells = Vec::new();
        for (&(from, to), before) in round.iter().zip(&self.before) {
            let blocks = before.without(&self.known[to as usize]);
            if !blocks.is_empty() {
                self.known[to as usize].unite(&blocks);
                tells.push(Tell { from, to, blocks });
            }
        }
        tells
    }
}

/// Stores the blocks that the senders of a round know before it. More entries may follow, which mean nothing.
pub(crate) fn remember(before: &mut Vec<Blocks>, known: &[Blocks], round: &[(u32, u32)]) {
    before.resize_with(round.len().max(before.len()), Blocks::default);
    for (before, &(from, _)) in before.iter_mut().zip(round) {
        before.clone_from(&known[from as usize]);
    }
}

/// The spread of data among members: for each source the tree over which its data go.
pub(crate) struct Spread {
    size: u32,
    /// By source and member: the last member that this one told, and the member that the teller of this one told before
    /// it; the member itself for none.
    last: Vec<u32>,
    before: Vec<u32>,
}

impl Spread {
    /// Returns the spread by these messages, where each member knows its own data at first.
    pub(crate) fn of(size: u32, tells: &[Vec<Tell>]) -> Self {
        let nobody: Vec<u32> = (0..size).cycle().take(size as usize * size as usize).collect();
        let mut spread = Self { size, last: nobody.clone(), before: nobody };
        for tell in tells.iter().flatten() {
            for source in tell.blocks.iter() {
                let (from, to) = (spread.at(source, tell.from), spread.at(source, tell.to));
                if spread.last[from] != tell.from {
                    spread.before[to] = spread.last[from];
                }
                spread.last[from] = tell.to;
            }
        }
        spread
    }

    fn at(&self, source: u32, member: u32) -> usize {
        source as usize * self.size as usize + member as usize
    }

    /// Returns the members that learn of a source's data through a member, itself among them, in rising order.
    pub(crate) fn through(&self, source: u32, member: u32) -> Vec<u32> {
        let mut all = vec![member];
        let mut seen = 0;
        while let Some(&from) = all.get(seen) {
            let (mut told, mut teller) = (self.last[self.at(source, from)], from);
            while told != teller {
                all.push(told);
                (teller, told) = (told, self.before[self.at(source, told)]);
            }
            seen += 1;
        }
        all.sort_unstable();
        all
    }
}

/// Returns the blocks that the members know at first: each its own.
pub(crate) fn own(size: u32) -> Vec<Blocks> {
    (0..size).map(Blocks::one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_and_backwards_the_same_is_told() {
        let ring = |size: u32| (0..size).map(|from| (from, (from + 1) % size)).collect();
        for size in 1..12 {
            let rounds = Rounds::repeated(ring(size), size as usize - 1);
            let all: Vec<Tell> = tells(&rounds, own(size)).into_iter().flatten().collect();
            assert_eq!(all.len() as u32, size * (size - 1));
            let (mut forwards, mut backwards) = (Vec::new(), Vec::new());
            each_tell(&rounds, own(size), |tell| forwards.push(tell));
            each_tell_backwards(&rounds, own(size), |tell| backwards.push(tell));
            backwards.reverse();
            assert_eq!((&forwards, &backwards), (&all, &all), "{size}");
        }
    }
}
