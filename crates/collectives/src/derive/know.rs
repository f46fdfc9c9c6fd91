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
pub(crate) fn tells(rounds: &Rounds, known: Vec<Blocks>) -> Vec<Vec<Tell>> {
    let mut knowledge = Knowledge::new(known);
    rounds.iter().map(|round| knowledge.tells(round)).collect()
}

/// The same one after the other: no more than a round of them lies in memory.
pub(crate) fn each_tell(rounds: &Rounds, known: Vec<Blocks>, mut each: impl FnMut(Tell)) {
    let mut knowledge = Knowledge::new(known);
    rounds.iter().for_each(|round| knowledge.tells(round).into_iter().for_each(&mut each));
}

/// The same from the last to the first. What was known is written down before every so many rounds, as
/// many as there are such places; those between are gone through again.
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

/// Who knows whose data.
struct Knowledge {
    known: Vec<Blocks>,
    /// What those who speak in a round knew before it.
    before: Vec<Blocks>,
}

impl Knowledge {
    fn new(known: Vec<Blocks>) -> Self {
        Self { known, before: Vec::new() }
    }

    /// What is told in a round.
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

/// What those who speak in a round know before it; more may stand behind that.
pub(crate) fn remember(before: &mut Vec<Blocks>, known: &[Blocks], round: &[(u32, u32)]) {
    before.resize_with(round.len().max(before.len()), Blocks::default);
    for (before, &(from, _)) in before.iter_mut().zip(round) {
        before.clone_from(&known[from as usize]);
    }
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
