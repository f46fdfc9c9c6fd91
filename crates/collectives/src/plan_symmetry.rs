//! The symmetry of plans: members whose plans are equal up to rotation.
//!
//! In many architectures all members play the same part: on a ring each member sends to the next. Their plans are one
//! plan, *turned*: every member in it, and every block that belongs to a member, is shifted by the distance between the
//! two members. Dependencies follow from the blocks that steps touch, so it is enough to compare the statements of a
//! [`Program`](crate::Program). To save memory, checksums of them are compared, of 128 bits.

use std::collections::BTreeMap;

use crate::plan::{Action, Cells, Readers, Store};

/// The checksums of the members' actions.
pub(crate) struct PlanSymmetry {
    sums: Vec<Sum>,
    /// Whether blocks belong to members, and turn with them.
    turns_blocks: bool,
    runs: Vec<(u64, u32, u32)>,
}

impl PlanSymmetry {
    pub(crate) fn new(size: u32, turns_blocks: bool) -> Self {
        Self { sums: vec![Sum::default(); size as usize], turns_blocks, runs: Vec::new() }
    }

    pub(crate) fn size(&self) -> u32 {
        self.sums.len() as u32
    }

    /// Adds an action of a member to its checksum.
    pub(crate) fn add(&mut self, member: u32, action: &Action) {
        let size = self.size();
        let from_here = |other: u32| u64::from(turned(other, size - member, size));
        let what = match action {
            Action::Send { to, cells } => {
                self.add_runs(member, cells);
                [0, from_here(*to), 0]
            }
            Action::Receive { from, cells } => {
                self.add_runs(member, cells);
                [1, from_here(*from), 0]
            }
            Action::Copy { from, into } => {
                self.add_all(member, &[*from, *into]);
                [2, 0, 0]
            }
            Action::Combine { left, right, into } => {
                self.add_all(member, &[*left, *right, *into]);
                [3, 0, 0]
            }
            Action::Deposit { cells, except } => {
                let except = except.map(|block| Cells::new(cells.store, block, 1));
                self.add_all(member, &[*cells]);
                self.add_runs(member, except.as_slice());
                [4, u64::from(except.is_some()), 0]
            }
            Action::Await => [5, 0, 0],
            Action::Take { from, deposited, into, resolved } => {
                self.add_all(member, &[*deposited, *into]);
                [6, from_here(*from), u64::from(*resolved)]
            }
            Action::CombineDeposits { members, deposited, into } => {
                self.add_all(member, &[*deposited, *into]);
                [7, u64::from(*members), 0]
            }
            Action::Resolve { deposited, block } => {
                self.add_all(member, &[*deposited, Cells::new(deposited.store, *block, 1)]);
                [8, 0, 0]
            }
            Action::Together { deposited } => {
                self.add_all(member, &[*deposited]);
                [9, 0, 0]
            }
            Action::TakeResult { into } => {
                self.add_all(member, &[*into]);
                [10, 0, 0]
            }
            Action::Tell { cells, except } => {
                self.add_all(member, &[*cells]);
                if let Some(block) = except {
                    self.add_all(member, &[Cells::new(cells.store, *block, 1)]);
                }
                [11, u64::from(except.is_some()), 0]
            }
            Action::Read { from, told, into, resolved } => {
                self.add_all(member, &[*told, *into]);
                [12, from_here(*from), u64::from(*resolved)]
            }
            Action::AwaitReaders { readers } => match readers {
                Readers::Nobody => [13, 0, 0],
                Readers::One(reader) => [13, 1, from_here(*reader)],
                Readers::Others => [13, 2, 0],
            },
        };
        what.into_iter().for_each(|word| self.sums[member as usize].add(word));
    }

    /// Adds each of these cells separately.
    fn add_all(&mut self, member: u32, cells: &[Cells]) {
        cells.iter().for_each(|cells| self.add_runs(member, std::slice::from_ref(cells)));
    }

    /// Adds the blocks of these cells as one set: turned, a run may begin at another place of its circle, or be two.
    fn add_runs(&mut self, member: u32, cells: &[Cells]) {
        let size = self.size();
        let by = if self.turns_blocks { size - member } else { 0 };
        let mut runs = std::mem::take(&mut self.runs);
        runs.clear();
        for cells in cells.iter().filter(|cells| cells.count > 0) {
            let first = match by {
                0 => cells.first,
                _ if cells.count == size => 0,
                by => turned(cells.first, by, size),
            };
            runs.push((number(cells.store), first, cells.count));
        }
        if runs.len() > 1 && by > 0 {
            join_circle(&mut runs, size);
        }
        let sum = &mut self.sums[member as usize];
        sum.add(runs.len() as u64);
        for &(store, first, count) in &runs {
            sum.add(store);
            sum.add(u64::from(first) << 32 | u64::from(count));
        }
        self.runs = runs;
    }

    /// Returns the classes of members whose plans are equal up to rotation, each in rising order.
    pub(crate) fn kin(&self) -> Vec<Vec<u32>> {
        let mut by_sum: BTreeMap<&Sum, Vec<u32>> = BTreeMap::new();
        for (member, sum) in (0..).zip(&self.sums) {
            by_sum.entry(sum).or_default().push(member);
        }
        by_sum.into_values().collect()
    }
}

/// Returns the member or block that stands `by` places further in a circle of `size`.
pub(crate) fn turned(place: u32, by: u32, size: u32) -> u32 {
    ((u64::from(place) + u64::from(by)) % u64::from(size.max(1))) as u32
}

fn number(store: Store) -> u64 {
    match store {
        Store::Input => 0,
        Store::Output => 1,
        Store::Scratch(number) => 2 + u64::from(number),
    }
}

/// Joins runs that touch each other, also the last and the first.
fn join_circle(runs: &mut Vec<(u64, u32, u32)>, size: u32) {
    runs.sort_unstable();
    let touches = |one: &(u64, u32, u32), two: &(u64, u32, u32)| {
        one.0 == two.0 && (one.1 + one.2) % size == two.1
    };
    runs.dedup_by(|next, last| {
        let is_one = touches(last, next);
        if is_one {
            last.2 += next.2;
        }
        is_one
    });
    // The last run of each store may go on with the first of that store.
    let mut first = 0;
    while first < runs.len() {
        let count = runs[first..].iter().take_while(|run| run.0 == runs[first].0).count();
        let last = first + count - 1;
        if count > 1 && touches(&runs[last], &runs[first]) {
            runs[last].2 += runs[first].2;
            runs.remove(first);
            first = last;
        } else {
            if count == 1 && runs[first].2 == size {
                runs[first].1 = 0;
            }
            first = last + 1;
        }
    }
}

/// A checksum of words in their order.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sum([u64; 2]);

impl Sum {
    fn add(&mut self, word: u64) {
        const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
        for (own, factor) in self.0.iter_mut().zip(FACTORS) {
            let product = u128::from(*own ^ word.wrapping_add(factor)) * u128::from(factor);
            *own = ((product >> 64) as u64 ^ product as u64).rotate_left(23).wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_all_around() {
        let joined = |runs: &[(u64, u32, u32)]| {
            let mut runs = runs.to_vec();
            join_circle(&mut runs, 10);
            runs
        };
        assert_eq!(joined(&[(0, 0, 2), (0, 8, 2)]), [(0, 8, 4)]);
        assert_eq!(joined(&[(0, 3, 2), (0, 0, 2), (0, 5, 1), (0, 9, 1)]), [(0, 3, 3), (0, 9, 3)]);
        assert_eq!(joined(&[(0, 0, 2), (1, 2, 8)]), [(0, 0, 2), (1, 2, 8)], "of two stores");
        assert_eq!(joined(&[(0, 4, 6), (0, 0, 4), (1, 9, 1), (1, 0, 1)]), [(0, 0, 10), (1, 9, 2)]);
    }

    #[test]
    fn members_that_do_the_same_from_their_own_places_are_alike() {
        let cells = |first, count| vec![Cells::new(Store::Output, first, count)];
        let mut likeness = PlanSymmetry::new(5, true);
        for member in 0..5 {
            let to = if member == 3 { 3 } else { (member + 1) % 5 };
            likeness.add(member, &Action::Send { to, cells: cells(member, 1) });
        }
        assert_eq!(likeness.kin().iter().map(Vec::len).max(), Some(4));
        likeness.add(2, &Action::Await);
        assert!(likeness.kin().contains(&vec![2]) && likeness.kin().contains(&vec![0, 1, 4]));
    }
}
