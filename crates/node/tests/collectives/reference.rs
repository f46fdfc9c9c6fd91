//! Every operation against a naive reference: all members know what everybody brings, so each can
//! say by itself what it is to have.

use std::fmt::Debug;
use std::ops::Range;

use landeck::layout::{Kind, Layout};
use landeck::unstable::collectives::{Group, Operation, Preset};
use landeck::unstable::memory::Plain;
use landeck::{Combine, Element, Maximum, Part, Sum, ThreadMode, User, World};
use landeck_testing::{Random, seed};

use crate::support::{in_job, is_member, is_soak};

const ROUNDS: u64 = 300;
const SIZES: [usize; 5] = [1, 2, 3, 5, 8];

#[test]
fn every_operation_gives_what_a_naive_one_gives() {
    let jobs = if is_soak() { 10 } else { 1 };
    for n in SIZES.into_iter().flat_map(|n| std::iter::repeat_n(n, jobs)) {
        in_job(
            n,
            "reference::every_operation_gives_what_a_naive_one_gives",
            ThreadMode::Single,
            |job| {
                let world = job.world();
                let mut random = Random::new(shared_seed(&world));
                let worlds = divided(&world, &mut random);
                for number in 0..ROUNDS {
                    let round = Round::draw(&mut random, &worlds, number, !job.spans_hosts());
                    round.run(random.below(5));
                }
            },
        );
        if is_member() {
            return;
        }
    }
}

/// The seed of rank 0.
fn shared_seed(world: &World) -> u64 {
    let mut seed = [if world.rank() == 0 { seed() } else { 0 }];
    world.broadcast(&mut seed, 0).unwrap();
    seed[0]
}

/// The world as it is, and the same members in clusters drawn at random.
fn divided(world: &World, random: &mut Random) -> Vec<World> {
    let size = world.size() as u64;
    let mut worlds = vec![world.clone()];
    for _ in 0..3 {
        let of: Vec<u64> = (0..size).map(|_| random.below(size)).collect();
        let clusters = Group::by(size as u32, |member| of[member as usize]).unwrap();
        worlds.push(world.with_clusters(&clusters).unwrap());
    }
    worlds
}

/// Every way by its name; an empty one leaves it to the table.
const WAYS: [&str; 31] = [
    "",
    "flat",
    "pipeline",
    "daisy",
    "hierarchy",
    "hierarchy:3-ary",
    "hierarchy:2x2",
    "hierarchy:derived",
    "hypercube",
    "binary-tree",
    "knomial",
    "knomial:3",
    "knomial:nearest-first",
    "butterfly",
    "ring",
    "circulant",
    "board:each",
    "board:divided",
    "board:together",
    "board:told",
    "deck2000",
    "deck2003",
    "mpi2003",
    "flat+split",
    "pipeline+split",
    "daisy+split",
    "hypercube+split",
    "knomial+split",
    "butterfly+split",
    "ring+split",
    "circulant+split",
];

/// The operation that a number stands for here, for the presets.
fn kind_of(operation: u64) -> Operation {
    match operation {
        0 => Operation::Barrier,
        1 => Operation::Broadcast,
        2 | 16 => Operation::Gather,
        3 | 17 => Operation::Scatter,
        4 | 18 => Operation::AllGather,
        5 | 19 | 20 => Operation::AllToAll,
        6..=9 => Operation::Reduce,
        12 | 13 => Operation::Scan,
        14 | 15 => Operation::ReduceScatter,
        _ => Operation::AllReduce,
    }
}

/// One operation, drawn alike by all members.
struct Round {
    world: World,
    root: usize,
    /// Values of one member, or of one block.
    length: usize,
    /// Values of each member, where they differ.
    lengths: Vec<usize>,
    operation: u64,
    number: u64,
    what: String,
}

impl Round {
    fn draw(random: &mut Random, worlds: &[World], number: u64, has_board: bool) -> Self {
        let (world, name) = (random.pick(worlds), *random.pick(&WAYS));
        let most = *random.pick(&[1, 10, 100, 3_000, 40_000]);
        let (size, root) = (world.size(), random.below(world.size() as u64) as usize);
        let length = random.below(most) as usize;
        let lengths: Vec<usize> = (0..size).map(|_| random.below(most) as usize).collect();
        let operation = random.below(OPERATIONS);
        let what = format!("round {number}: {operation} by {name:?} root {root}, {length}");
        let world = match name.parse::<Preset>() {
            Ok(_) if name.starts_with("board") && !has_board => world.clone(),
            Ok(preset) => world.via(preset.way(kind_of(operation))),
            Err(_) => world.clone(),
        };
        let world = if random.once_in(4) { world.reproducible() } else { world };
        Self { world, root, length, lengths, operation, number, what }
    }

    fn run(&self, kind: u64) {
        match kind {
            0 => self.of::<u8>(),
            1 => self.of::<i32>(),
            2 => self.of::<f64>(),
            3 => self.of::<u16>(),
            _ => self.of::<u64>(),
        }
    }

    fn of<T: Sample>(&self) {
        match self.operation {
            0 => self.world.barrier().unwrap(),
            1 => self.broadcast::<T>(),
            2 => self.gather::<T>(),
            3 => self.scatter::<T>(),
            4 => self.all_gather::<T>(),
            5 => self.all_to_all::<T>(),
            6 => self.reduce::<T, _>(Sum, T::sum),
            7 => self.reduce::<T, _>(Maximum, T::larger),
            8 => self.reduce::<T, _>(User::commutative(T::sum), T::sum),
            9 => self.reduce::<[u32; 2], _>(User::ordered(after), after),
            10 => self.all_reduce::<T, _>(Sum, T::sum),
            11 => self.all_reduce::<[u32; 2], _>(User::ordered(after), after),
            12 => self.scans::<T, _>(Sum, T::sum),
            13 => self.scans::<[u32; 2], _>(User::ordered(after), after),
            14 => self.reduce_scatter::<T, _>(Sum, T::sum),
            15 => self.reduce_scatter::<[u32; 2], _>(User::ordered(after), after),
            16 => self.gather_varying::<T>(),
            17 => self.scatter_varying::<T>(),
            18 => self.all_gather_varying::<T>(),
            19 => self.all_to_all_varying::<T>(),
            20 => self.all_to_all_layouts(),
            21 => self.in_place::<T, _>(Sum, T::sum),
            _ => self.in_place::<[u32; 2], _>(User::ordered(after), after),
        }
    }

    /// The values that a member contributes.
    fn values<T: Value>(&self, rank: usize, count: usize) -> Vec<T> {
        (0..count).map(|at| T::of(self.number * 31 + rank as u64 * 7 + at as u64)).collect()
    }

    fn own<T: Value>(&self, count: usize) -> Vec<T> {
        self.values(self.world.rank(), count)
    }

    /// The combined values of some members.
    fn folded<T: Value>(&self, ranks: Range<usize>, count: usize, op: fn(T, T) -> T) -> Vec<T> {
        let all = ranks.map(|rank| self.values::<T>(rank, count));
        all.reduce(|left, right| left.into_iter().zip(right).map(|(l, r)| op(l, r)).collect())
            .unwrap_or_default()
    }

    fn check<T: PartialEq + Debug>(&self, got: &[T], expected: &[T]) {
        assert_eq!(got.len(), expected.len(), "{}", self.what);
        if let Some(at) = (0..got.len()).find(|&at| got[at] != expected[at]) {
            let (got, expected) = (&got[at], &expected[at]);
            panic!(
                "{} on rank {}, at {at}: {got:?} for {expected:?}",
                self.what,
                self.world.rank()
            );
        }
    }

    fn is_root(&self) -> bool {
        self.world.rank() == self.root
    }

    fn size(&self) -> usize {
        self.world.size()
    }

    /// Everybody's values, one after the other.
    fn all<T: Value>(&self, count: usize) -> Vec<T> {
        (0..self.size()).flat_map(|rank| self.values(rank, count)).collect()
    }

    fn broadcast<T: Value>(&self) {
        let mut data: Vec<T> = self.own(self.length);
        self.world.broadcast(&mut data, self.root).unwrap();
        self.check(&data, &self.values(self.root, self.length));
    }

    fn gather<T: Value>(&self) {
        let mut all: Vec<T> = zeroes(if self.is_root() { self.size() * self.length } else { 0 });
        self.world.gather(&self.own(self.length), &mut all, self.root).unwrap();
        if self.is_root() {
            self.check(&all, &self.all(self.length));
        }
    }

    fn scatter<T: Value>(&self) {
        let values: Vec<T> = if self.is_root() { self.all(self.length) } else { Vec::new() };
        let mut own: Vec<T> = zeroes(self.length);
        self.world.scatter(&values, &mut own, self.root).unwrap();
        self.check(&own, &self.own(self.length));
    }

    fn all_gather<T: Value>(&self) {
        let mut all: Vec<T> = zeroes(self.size() * self.length);
        self.world.all_gather(&self.own(self.length), &mut all).unwrap();
        self.check(&all, &self.all(self.length));
        let mut all: Vec<T> = zeroes(self.size() * self.length);
        let at = self.world.rank() * self.length;
        all[at..at + self.length].copy_from_slice(&self.own(self.length));
        self.world.all_gather_in_place(&mut all).unwrap();
        self.check(&all, &self.all(self.length));
    }

    fn all_to_all<T: Value>(&self) {
        let (size, rank) = (self.size(), self.world.rank());
        let length = self.length / size;
        let values: Vec<T> = self.own(size * length);
        let mut into: Vec<T> = zeroes(size * length);
        self.world.all_to_all(&values, &mut into).unwrap();
        let part = |from| self.values(from, size * length)[rank * length..][..length].to_vec();
        let expected: Vec<T> = (0..size).flat_map(part).collect();
        self.check(&into, &expected);
        let mut values = values;
        self.world.all_to_all_in_place(&mut values).unwrap();
        self.check(&values, &expected);
    }

    fn reduce<T: Value, C: Combine<T> + Clone>(&self, combine: C, op: fn(T, T) -> T) {
        let mut into: Vec<T> = zeroes(if self.is_root() { self.length } else { 0 });
        self.world.reduce(&self.own(self.length), &mut into, combine, self.root).unwrap();
        if self.is_root() {
            self.check(&into, &self.folded(0..self.size(), self.length, op));
        }
    }

    fn all_reduce<T: Value, C: Combine<T> + Clone>(&self, combine: C, op: fn(T, T) -> T) {
        let mut into: Vec<T> = zeroes(self.length);
        let own = self.own(self.length);
        self.world.all_reduce_into(&own, &mut into, combine.clone()).unwrap();
        self.check(&into, &self.folded(0..self.size(), self.length, op));
        let single = self.world.all_reduce(self.own(1)[0], combine).unwrap();
        self.check(&[single], &self.folded(0..self.size(), 1, op));
    }

    fn in_place<T: Value, C: Combine<T> + Clone>(&self, combine: C, op: fn(T, T) -> T) {
        let mut values: Vec<T> = self.own(self.length);
        self.world.all_reduce_in_place(&mut values, combine.clone()).unwrap();
        self.check(&values, &self.folded(0..self.size(), self.length, op));
        let rank = self.world.rank();
        let mut values: Vec<T> = self.own(self.length);
        self.world.scan_in_place(&mut values, combine.clone()).unwrap();
        self.check(&values, &self.folded(0..rank + 1, self.length, op));
        let mut values: Vec<T> = self.own(self.length);
        self.world.exclusive_scan_in_place(&mut values, combine).unwrap();
        if rank > 0 {
            self.check(&values, &self.folded(0..rank, self.length, op));
        }
    }

    fn scans<T: Value, C: Combine<T> + Clone>(&self, combine: C, op: fn(T, T) -> T) {
        let (rank, own) = (self.world.rank(), self.own(self.length));
        let mut into: Vec<T> = zeroes(self.length);
        self.world.scan(&own, &mut into, combine.clone()).unwrap();
        self.check(&into, &self.folded(0..rank + 1, self.length, op));
        let mut into: Vec<T> = zeroes(self.length);
        self.world.exclusive_scan(&own, &mut into, combine).unwrap();
        let before =
            if rank == 0 { zeroes(self.length) } else { self.folded(0..rank, self.length, op) };
        self.check(&into, &before);
    }

    fn reduce_scatter<T: Value, C: Combine<T> + Clone>(&self, combine: C, op: fn(T, T) -> T) {
        let (size, rank) = (self.size(), self.world.rank());
        let length = self.length / size;
        let mut into: Vec<T> = zeroes(length);
        let own = self.own(size * length);
        self.world.reduce_scatter_block(&own, &mut into, combine.clone()).unwrap();
        let all = self.folded(0..size, size * length, op);
        self.check(&into, &all[rank * length..][..length]);
        let total: usize = self.lengths.iter().sum();
        let mut into: Vec<T> = zeroes(self.lengths[rank]);
        self.world.reduce_scatter(&self.own(total), &mut into, &self.lengths, combine).unwrap();
        let all = self.folded(0..size, total, op);
        self.check(&into, &all[self.parts()[rank].clone()]);
    }

    /// Parts of the members' lengths, in the order of ranks.
    fn parts(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let part = |&length: &usize| {
            start += length;
            start - length..start
        };
        self.lengths.iter().map(part).collect()
    }

    /// Parts of the members' lengths in descending order of ranks, with a gap before each.
    fn scattered_parts(&self) -> (Vec<Range<usize>>, usize) {
        let mut start = 0;
        let mut parts: Vec<Range<usize>> = Vec::new();
        for &length in self.lengths.iter().rev() {
            start += 1;
            parts.push(start..start + length);
            start += length;
        }
        parts.reverse();
        (parts, start)
    }

    fn gather_varying<T: Value>(&self) {
        let (parts, total) = self.scattered_parts();
        let mut into: Vec<T> = zeroes(total);
        let own = self.own(self.lengths[self.world.rank()]);
        self.world.gather_varying(&own, &mut into, &parts, self.root).unwrap();
        if self.is_root() {
            self.check(&into, &self.spread(&parts, total));
        }
    }

    /// Everybody's values in these parts.
    fn spread<T: Value>(&self, parts: &[Range<usize>], total: usize) -> Vec<T> {
        let mut all = zeroes(total);
        for (rank, part) in parts.iter().enumerate() {
            all[part.clone()].copy_from_slice(&self.values(rank, part.len()));
        }
        all
    }

    fn scatter_varying<T: Value>(&self) {
        let (parts, total) = self.scattered_parts();
        let values = if self.is_root() { self.spread(&parts, total) } else { Vec::new() };
        let mut into: Vec<T> = zeroes(self.lengths[self.world.rank()]);
        self.world.scatter_varying(&values, &parts, &mut into, self.root).unwrap();
        self.check(&into, &self.own(into.len()));
    }

    fn all_gather_varying<T: Value>(&self) {
        let (parts, total) = self.scattered_parts();
        let mut into: Vec<T> = zeroes(total);
        let own = self.own(self.lengths[self.world.rank()]);
        self.world.all_gather_varying(&own, &mut into, &parts).unwrap();
        self.check(&into, &self.spread(&parts, total));
    }

    /// Values that go from one member to another.
    fn between<T: Value>(&self, from: usize, to: usize) -> Vec<T> {
        let count = (self.lengths[from] * 3 + self.lengths[to]) % 700;
        self.values(from * self.size() + to, count)
    }

    fn all_to_all_varying<T: Value>(&self) {
        let (size, rank) = (self.size(), self.world.rank());
        let out: Vec<Vec<T>> = (0..size).map(|to| self.between(rank, to)).collect();
        let back: Vec<Vec<T>> = (0..size).map(|from| self.between(from, rank)).collect();
        let (values, parts) = packed(&out);
        let (expected, into_parts) = packed(&back);
        let mut into: Vec<T> = zeroes(expected.len());
        self.world.all_to_all_varying(&values, &parts, &mut into, &into_parts).unwrap();
        self.check(&into, &expected);
    }

    /// Every other byte on one side, bytes in a row on the other.
    fn all_to_all_layouts(&self) {
        let (size, rank) = (self.size(), self.world.rank());
        let out: Vec<Vec<u8>> = (0..size).map(|to| self.between(rank, to)).collect();
        let back: Vec<Vec<u8>> = (0..size).map(|from| self.between(from, rank)).collect();
        let (values, parts) = packed(&out);
        let wide: Vec<u8> = values.iter().flat_map(|&value| [value, 0xee]).collect();
        let (expected, into_parts) = packed(&back);
        let byte = Layout::element(Kind::BYTE);
        let pair = |count: u64| Layout::vector(count, 1, 2, &byte).unwrap();
        let wide_part = |part: &Range<usize>| Part {
            layout: pair(part.len() as u64),
            count: 1,
            offset_bytes: 2 * part.start as i64,
        };
        let part = |part: &Range<usize>| Part {
            layout: byte.clone(),
            count: part.len() as u64,
            offset_bytes: part.start as i64,
        };
        let parts: Vec<Part> = parts.iter().map(wide_part).collect();
        let into_parts: Vec<Part> = into_parts.iter().map(part).collect();
        let mut into = vec![0u8; expected.len()];
        self.world.all_to_all_layouts(&wide, &parts, &mut into, &into_parts).unwrap();
        self.check(&into, &expected);
    }
}

const OPERATIONS: u64 = 23;

/// Lists one after the other, and where each is.
fn packed<T: Plain>(lists: &[Vec<T>]) -> (Vec<T>, Vec<Range<usize>>) {
    let mut all = Vec::new();
    let mut parts = Vec::new();
    for list in lists {
        parts.push(all.len()..all.len() + list.len());
        all.extend_from_slice(list);
    }
    (all, parts)
}

fn zeroes<T: Plain>(count: usize) -> Vec<T> {
    vec![landeck::unstable::memory::plain::zero(); count]
}

/// First one, then the other: associative, and not commutative.
fn after(left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
    [left[0].wrapping_mul(right[0]), left[1].wrapping_mul(right[0]).wrapping_add(right[1])]
}

trait Value: Plain + PartialEq + Debug {
    fn of(number: u64) -> Self;
}

impl Value for [u32; 2] {
    fn of(number: u64) -> Self {
        [number as u32 * 2 + 3, number as u32 ^ 0x5555]
    }
}

/// A type that the predefined operations combine; its values are small, so all sums are exact.
trait Sample: Value + Element {
    fn sum(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
}

macro_rules! samples {
    ($($number:ty: $sum:expr,)*) => {
        $(
            impl Value for $number {
                fn of(number: u64) -> Self {
                    (number % 23) as $number
                }
            }
            impl Sample for $number {
                fn sum(self, other: Self) -> Self {
                    $sum(self, other)
                }
                fn larger(self, other: Self) -> Self {
                    if self > other { self } else { other }
                }
            }
        )*
    };
}

samples! {
    u8: u8::wrapping_add,
    u16: u16::wrapping_add,
    i32: i32::wrapping_add,
    u64: u64::wrapping_add,
    f64: |one, other| one + other,
}
