//! The obligations of every architecture: trees that reach every member, rounds after which all know all, prefixes
//! without gaps, exchanges in which all members meet each other; for every size up to 64, every root, and clusters
//! given in many ways.
#![allow(clippy::unwrap_used)] // tests may

use std::sync::Arc;
use std::time::Duration;

use landeck_collectives::architecture::{
    BinaryTree, Butterfly, Circulant, Daisy, Flat, Hierarchy, Hypercube, Knomial, Pipeline, Ring,
    Seated,
};
use landeck_collectives::{Architecture, Group, Rounds};
use landeck_testing::Watchdog;

const SIZE_MAX: u32 = 64;

fn architectures() -> Vec<Box<dyn Architecture>> {
    let hosts = (0..SIZE_MAX).map(|member| member % 3).collect();
    let caches = (0..SIZE_MAX / 2).map(|member| member * 7 % 5).collect(); // not for everybody
    vec![
        Box::new(Flat),
        Box::new(Pipeline),
        Box::new(Daisy),
        Box::new(Hierarchy::BINARY),
        Box::new(Hierarchy::tree_of(1).unwrap()),
        Box::new(Hierarchy::tree_of(5).unwrap()),
        Box::new(Hierarchy::with_parents(vec![0, 1, 1, 0, 4]).unwrap()),
        Box::new(Hierarchy::of_parts(vec![2, 3, 4]).unwrap()),
        Box::new(Hierarchy::of_parts(vec![]).unwrap()),
        Box::new(Hierarchy::nested(vec![hosts, caches])),
        Box::new(Hypercube::default()),
        Box::new(Hypercube::numbered_by(vec![6, 2, 9, 2, 0])),
        Box::new(BinaryTree),
        Box::new(Knomial::BINOMIAL),
        Box::new(Knomial::NEAREST_FIRST),
        Box::new(Knomial::new(4)),
        Box::new(Butterfly),
        Box::new(Ring),
        Box::new(Circulant),
        Box::new(Seated::new(Arc::new(Ring), vec![3, 0, 4, 1, 2], true).unwrap()),
        Box::new(Seated::new(Arc::new(Knomial::BINOMIAL), vec![5, 2, 0, 1, 4, 3], true).unwrap()),
    ]
}

/// Returns groups of one cluster, of one member in each, of even and uneven clusters, and of clusters whose members are
/// scattered or reversed.
fn groups(size: u32) -> Vec<Group> {
    let unequal: Vec<u32> = (0..size).scan(0, |sum, next| taken(sum, next % 7 + 1, size)).collect();
    let backwards = (0..size).rev().collect::<Vec<u32>>();
    let mut groups = vec![
        Group::whole(size),
        Group::divided(size, size),
        Group::divided(size, 4),
        Group::of_lengths(&unequal),
        Group::rows(size, 5),
        Group::columns(size, 5),
        Group::by(size, |member| member * member % 11),
        Group::of(backwards.chunks(6).map(<[u32]>::to_vec).collect()),
    ];
    groups.dedup();
    groups.into_iter().map(Result::unwrap).collect()
}

fn taken(sum: &mut u32, length: u32, size: u32) -> Option<u32> {
    let length = length.min(size - *sum);
    *sum += length;
    (length > 0).then_some(length)
}

/// Calls `check` for every architecture and group.
fn for_all(check: impl Fn(&dyn Architecture, &Group)) {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    for architecture in architectures() {
        for size in 1..=SIZE_MAX {
            groups(size).iter().for_each(|group| check(&*architecture, group));
        }
    }
}

#[test]
fn trees_reach_everybody_once_from_every_root() {
    for_all(|architecture, group| {
        for root in 0..group.size() {
            // A tree that misses a member, or reaches one twice, is not made.
            let tree = architecture.tree(group, root);
            let name = architecture.name();
            assert_eq!((tree.root(), tree.size()), (root, group.size()), "{name} {group:?}");
        }
    });
}

#[test]
fn after_its_rounds_all_know_all() {
    for_all(|architecture, group| {
        let rounds = match architecture.rounds(group) {
            Some(rounds) => rounds,
            None => Rounds::up_and_down(&architecture.tree(group, 0)),
        };
        let all = u64::MAX >> (64 - group.size());
        let mut known: Vec<u64> = (0..group.size()).map(|member| 1 << member).collect();
        for round in rounds.iter() {
            let before = known.clone();
            for &(from, to) in round {
                assert_ne!(from, to, "{}: {group:?}", architecture.name());
                known[to as usize] |= before[from as usize];
            }
        }
        let name = architecture.name();
        assert!(known.iter().all(|&known| known == all), "{name}: {group:?}");
    });
}

#[test]
fn prefixes_grow_without_gaps_to_the_first_member() {
    for_all(|architecture, group| {
        let Some(rounds) = architecture.prefix(group) else { return };
        let mut first: Vec<u32> = (0..group.size()).collect();
        for round in rounds.iter() {
            let before = first.clone();
            for &(from, to) in round {
                let name = architecture.name();
                assert_eq!(from + 1, before[to as usize], "{name}: {group:?}");
                first[to as usize] = before[from as usize];
            }
        }
        assert!(first.iter().all(|&first| first == 0), "{}: {group:?}", architecture.name());
    });
}

#[test]
fn in_an_exchange_everybody_meets_everybody_once() {
    for_all(|architecture, group| {
        let Some(rounds) = architecture.exchange(group) else { return };
        let mut pairs: Vec<(u32, u32)> = rounds.iter().flatten().copied().collect();
        pairs.sort_unstable();
        let all = |from| (0..group.size()).map(move |to| (from, to));
        let wanted = (0..group.size()).flat_map(all).filter(|(from, to)| from != to);
        assert!(pairs.into_iter().eq(wanted), "{}: {group:?}", architecture.name());
    });
}
