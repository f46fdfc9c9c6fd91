//! Who knows what, round by round: the common ground of everything that goes in rounds.

use crate::rounds::Rounds;

/// One message of an exchange: who tells whom about whose data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tell {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whose data, in rising order.
    pub(crate) blocks: Vec<u32>,
}

/// The messages of an allgather, round by round: each tells the other what it lacks, and nobody is
/// told anything twice. `known` says what each member knows at first.
pub(crate) fn tells(rounds: &Rounds, mut known: Vec<Blocks>) -> Vec<Vec<Tell>> {
    let mut told = Vec::with_capacity(rounds.len());
    for round in rounds.iter() {
        let before = known.clone();
        let mut tells = Vec::new();
        for &(from, to) in round {
            let blocks = before[from as usize].without(&known[to as usize]);
            if !blocks.is_empty() {
                known[to as usize].add(&blocks);
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
            for &source in &tell.blocks {
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
    (0..size).map(|member| Blocks::of(size, &[member])).collect()
}

/// A set of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks(Vec<u64>);

impl Blocks {
    pub(crate) fn of(size: u32, blocks: &[u32]) -> Self {
        let mut set = Self(vec![0; size.div_ceil(64) as usize]);
        set.add(blocks);
        set
    }

    pub(crate) fn add(&mut self, blocks: &[u32]) {
        for &block in blocks {
            self.0[block as usize / 64] |= 1 << (block % 64);
        }
    }

    fn without(&self, other: &Self) -> Vec<u32> {
        let mut blocks = Vec::new();
        for (at, (&own, &others)) in (0..).zip(self.0.iter().zip(&other.0)) {
            let mut bits = own & !others;
            while bits != 0 {
                blocks.push(at * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        blocks
    }

    /// Whether no block is in both.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, others)| own & others == 0)
    }

    /// Whether every block of the other is here.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, others)| others & !own == 0)
    }

    /// Takes all blocks of the other.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, others)| *own |= others);
    }
}
