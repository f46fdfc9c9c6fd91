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
