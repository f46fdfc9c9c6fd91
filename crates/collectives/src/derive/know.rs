//! Who knows what, round by round: the common ground of everything that goes in rounds.

use crate::blocks::Blocks;
use crate::rounds::Rounds;

/// One message of an exchange: who tells whom about whose data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tell {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whose data.
    pub(crate) blocks: Blocks,
}

/// The messages of an allgather, round by round: each tells the other what it lacks, and nobody is
/// told anything twice. `known` says what each member knows at first.
pub(crate) fn tells(rounds: &Rounds, mut known: Vec<Blocks>) -> Vec<Vec<Tell>> {
    let mut told = Vec::with_capacity(rounds.len());
    for round in rounds.iter() {
        let before: Vec<Blocks> =
            round.iter().map(|&(from, _)| known[from as usize].clone()).collect();
        let mut tells = Vec::new();
        for (&(from, to), before) in round.iter().zip(&before) {
            let blocks = before.without(&known[to as usize]);
            if !blocks.is_empty() {
                known[to as usize].unite(&blocks);
                tells.push(Tell { from, to, blocks });
            }
        }
        told.push(tells);
    }
    told
}

/// Who learns of whose data through whom: for each source the tree over which its data spread.
pub(crate) struct Spread {
    size: u32,
    /// By source and member: who was told last by that member, and who was told before this one by
    /// the same; the member itself for nobody.
    last: Vec<u32>,
    before: Vec<u32>,
}

impl Spread {
    /// That of these messages, in which everybody knows its own at first.
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

    /// Who learns of a source's data through a member, itself among them, in rising order.
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

/// Everybody knows its own at first.
pub(crate) fn own(size: u32) -> Vec<Blocks> {
    (0..size).map(Blocks::one).collect()
}
