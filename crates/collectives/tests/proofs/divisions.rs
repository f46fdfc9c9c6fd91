//! Divisions into clusters: consecutive ones, and divisions at all.
//!
//! | members | consecutive, in a test | in a soak | at all, in a test | in a soak |
//! |---|---|---|---|---|
//! | 1 to 7 | all, by all operations and roots | in all cases | all, by one operation for each root | in all cases |
//! | 8, 9 | all, by one operation for each root | by all, in all cases | drawn | all |
//! | 10 | every fifth, by one operation for each root | by all, in all cases | drawn | all |
//! | 11, 12 | every 11th and 13th, by one operation for each root | in parts: as of 10 | drawn | in parts: all |
//!
//! At all, a division of 8 members or more meets every architecture once, with an operation and a
//! root that change; of 11 and 12 with one that combines in the order of the ranks. The others are
//! proven of consecutive clusters, and why that is enough is in `renaming`.

use std::sync::Arc;

use landeck_collectives::{Architecture, Group, Operation};
use landeck_testing::{Random, seed};

use crate::cases::{Part, case, clustered, is_soak, operations, part, prove_one, proven, watchdog};
use crate::renaming;
use crate::sizes::prove_all;

/// All ways to write a number as a sum in order: the lengths of consecutive clusters.
fn compositions(size: u32) -> impl Iterator<Item = Vec<u32>> {
    (0..1u32 << (size - 1)).map(move |cuts| {
        let mut lengths = vec![1];
        for at in 0..size - 1 {
            match lengths.last_mut() {
                Some(last) if cuts >> at & 1 == 0 => *last += 1,
                _ => lengths.push(1),
            }
        }
        lengths
    })
}

/// All divisions into clusters led by their lowest members: each member joins the cluster of an earlier one, or founds
/// one.
pub(crate) struct Divisions {
    /// The cluster of each member; empty after the last division.
    of: Vec<u32>,
}

impl Divisions {
    pub(crate) fn new(size: u32) -> Self {
        Self { of: vec![0; size as usize] }
    }

    /// To the next division: the last member that can changes to the next cluster, and all behind
    /// it go back to the first.
    fn step(&mut self) {
        let clusters_before = |at: usize| self.of[..at].iter().max().map_or(0, |last| last + 1);
        match (1..self.of.len()).rev().find(|&at| self.of[at] < clusters_before(at)) {
            Some(at) => {
                self.of[at] += 1;
                self.of[at + 1..].fill(0);
            }
            None => self.of.clear(),
        }
    }
}

impl Iterator for Divisions {
    type Item = Vec<Vec<u32>>;

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.of.iter().max()? + 1;
        let mut clusters = vec![Vec::new(); count as usize];
        (0..).zip(&self.of).for_each(|(member, &of)| clusters[of as usize].push(member));
        self.step();
        Some(clusters)
    }

    /// Those in between are not made.
    fn nth(&mut self, number: usize) -> Option<Self::Item> {
        (0..number).for_each(|_| self.step());
        self.next()
    }
}

/// Every root once, each with another operation; and one operation without a root.
fn prove_some(architecture: &Arc<dyn Architecture>, group: &Group, number: u32) {
    let (rooted, others): (Vec<_>, Vec<_>) =
        (operations(true).collect(), operations(false).collect());
    for root in 0..group.size() {
        let operation = rooted[(root + number) as usize % rooted.len()];
        prove_one(architecture, group, operation, root, number / 4 + root);
    }
    let operation = others[number as usize % others.len()];
    prove_one(architecture, group, operation, 0, number / 7);
}

#[test]
fn every_division_into_consecutive_clusters_up_to_twelve() {
    let _watchdog = watchdog();
    let part = part();
    let sizes = if part.is_some() { 11..=12 } else { 1..=12 };
    for architecture in clustered() {
        for size in sizes.clone() {
            // No number of operations, orders or segments divides these steps, so each meets all.
            let step = match size {
                _ if is_soak() => 1,
                1..=9 => 1,
                10 => 5,
                11 => 11,
                _ => 13,
            };
            let all_cases = is_soak() && (size <= 10 || part.is_some());
            for (number, lengths) in (0..).zip(compositions(size)).step_by(step) {
                if !part.is_none_or(|part| part.has(u64::from(number))) {
                    continue;
                }
                let group = Group::of_lengths(&lengths).unwrap();
                if size <= 7 || all_cases {
                    prove_all(&architecture, &group, number);
                } else {
                    prove_some(&architecture, &group, number);
                }
            }
        }
    }
}

#[test]
fn every_division_at_all_up_to_seven() {
    let _watchdog = watchdog();
    for architecture in clustered() {
        for size in 1..=7 {
            for (number, clusters) in (0..).zip(Divisions::new(size)) {
                prove_some(&architecture, &Group::of(clusters).unwrap(), number);
            }
        }
    }
}

/// One case for each architecture: the next operation, root and form each time. Of eleven members
/// and more one that combines in the order of the ranks: what does not is proven elsewhere.
fn prove_next(architectures: &[Arc<dyn Architecture>], group: &Group, number: u32) {
    let by_rank = group.size() > 10;
    let operations: Vec<_> =
        Operation::ALL.into_iter().filter(|operation| !by_rank || operation.reduces()).collect();
    for (number, architecture) in (number..).zip(architectures) {
        let operation = operations[number as usize % operations.len()];
        let root = if operation.has_root() { number / 11 % group.size() } else { 0 };
        let pick = if by_rank { number / 5 % 6 * 3 + 1 + number % 2 } else { number / 5 };
        let (way, task) = case(architecture, operation, root, pick, number.is_multiple_of(7));
        proven(&task, &way, group);
    }
}

/// The sizes, each with the number of its divisions, and of how many of them a test proves one.
const SIZES: [(u32, u32, u64); 5] = [
    (8, 4_140, 5),
    (9, 21_147, 31),
    (10, 115_975, 181),
    (11, 678_570, 1_039),
    (12, 4_213_597, 6_247),
];

/// Which of the divisions of a size are proven: those of a part, in a soak all up to ten, else drawn
/// ones at equal distances.
fn share(size: u32, sample: u64, random: &mut Random) -> Option<Part> {
    match part() {
        Some(part) => (size > 10).then_some(part),
        None if is_soak() && size <= 10 => Some(Part::ALL),
        None => Some(Part { number: random.below(sample), of: sample }),
    }
}

#[test]
fn divisions_at_all_of_eight_to_twelve() {
    let _watchdog = watchdog();
    let mut random = Random::new(seed());
    for (size, total, sample) in SIZES {
        let Some(share) = share(size, sample, &mut random) else { continue };
        let expected = (0..u64::from(total)).filter(|&number| share.has(number)).count();
        assert_eq!(prove_share(size, share), expected, "of {size} members");
    }
}

/// Proves a share of the divisions of so many members, on all processors; returns their number.
fn prove_share(size: u32, share: Part) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let architectures = clustered();
    let prove_own = |thread: usize| {
        let mut consecutive = renaming::Consecutive::default();
        let (first, stride) = (share.number as usize, share.of as usize);
        let (first, stride) = (first + thread * stride, stride * threads);
        let own = Divisions::new(size).skip(first).step_by(stride);
        let mut count = 0;
        for (number, clusters) in (first as u32..).step_by(stride).zip(own) {
            let group = Group::of(clusters).unwrap();
            consecutive.compare(&architectures, &group);
            prove_next(&architectures, &group, number);
            count += 1;
        }
        count
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || prove_own(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn divisions_are_as_many_as_there_are() {
    let count = |size| Divisions::new(size).count();
    assert_eq!([1, 2, 3, 4, 7, 8, 9].map(count), [1, 2, 5, 15, 877, 4_140, 21_147]); // Bell's numbers
    let mut all: Vec<_> = Divisions::new(6).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 203);
}
