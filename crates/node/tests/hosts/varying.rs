//! Blocks that differ in length and are known to all members, over the boards of two hosts.

use std::ops::Range;

use landeck::{Job, Sum, World};

use crate::across::{bytes_of_job, in_both_placements, messages, values};

/// Processes on each host.
const EACH: usize = 3;

/// The lengths of the members' blocks: nothing at all, nothing of one member, or much of one.
fn lengths(size: usize, unit: usize) -> [Vec<usize>; 3] {
    [
        vec![0; size],
        (0..size).map(|rank| if rank == 1 { 0 } else { unit * (rank + 1) }).collect(),
        (0..size).map(|rank| if rank == size - 1 { 4 * unit * size } else { rank % 2 }).collect(),
    ]
}

/// The places of blocks in rising order, or with the last block first.
fn parts(lengths: &[usize], is_turned: bool) -> Vec<Range<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    if is_turned {
        order.reverse();
    }
    let (mut parts, mut end) = (vec![0..0; lengths.len()], 0);
    for member in order {
        parts[member] = end..end + lengths[member];
        end += lengths[member];
    }
    parts
}

/// The rows that members bring to a reduce-scatter, by the lengths of the blocks.
fn rows(size: usize, lengths: &[usize]) -> Vec<Vec<u64>> {
    let total = lengths.iter().sum();
    (0..size).map(|rank| values(rank, total)).collect()
}

/// Both operations with blocks of these lengths give what naive ones give, if members wait in the call or later.
fn check(world: &World, lengths: &[usize], is_started: bool) {
    let (rank, size) = (world.rank(), world.size());
    let own = values(rank, lengths[rank]);
    let what = format!("{lengths:?}, started: {is_started}");
    for is_turned in [false, true] {
        let parts = parts(lengths, is_turned);
        let mut all = vec![u64::MAX; lengths.iter().sum()];
        match is_started {
            true => world
                .scope(|scope| scope.all_gather_varying(&own, &mut all, &parts)?.wait().map(drop))
                .unwrap(),
            false => world.all_gather_varying(&own, &mut all, &parts).unwrap(),
        }
        for (from, part) in parts.iter().enumerate() {
            assert!(all[part.clone()] == values(from, lengths[from]), "{from}: {what}");
        }
    }
    let rows = rows(size, lengths);
    let start: usize = lengths[..rank].iter().sum();
    let mut part = vec![u64::MAX; lengths[rank]];
    match is_started {
        true => world
            .scope(|scope| {
                scope.reduce_scatter(&rows[rank], &mut part, lengths, Sum)?.wait().map(drop)
            })
            .unwrap(),
        false => world.reduce_scatter(&rows[rank], &mut part, lengths, Sum).unwrap(),
    }
    let sum = |at: usize| rows.iter().map(|row| row[start + at]).sum::<u64>();
    assert!((0..lengths[rank]).all(|at| part[at] == sum(at)), "reduce-scatter: {what}");
}

#[test]
fn blocks_of_different_lengths_come_whole() {
    in_both_placements("varying::blocks_of_different_lengths_come_whole", EACH, |job| {
        let world = job.world();
        let turned = world.split(Some(0), [5, 0, 3, 1, 4, 2][world.rank()]).unwrap().unwrap();
        let few = world.split(Some(u32::from(world.rank() < 4)), 0).unwrap().unwrap();
        for (unit, worlds) in [(1, &[&world, &turned, &few][..]), (20_000, &[&world, &turned])] {
            for world in worlds {
                for lengths in lengths(world.size(), unit) {
                    check(world, &lengths, false);
                    check(world, &lengths, true);
                }
            }
        }
        costs(job);
    });
}

/// A block goes once to each other host. Started operations with short data go to each member there.
fn costs(job: &Job) {
    for lengths in lengths(job.world().size(), 1) {
        assert_eq!(messages(job, |world| gather(world, &lengths)), 2, "{lengths:?}");
        assert_eq!(messages(job, |world| divide(world, &lengths)), 2, "{lengths:?}");
        let start = |world: &World| {
            let own = values(world.rank(), lengths[world.rank()]);
            let mut all = vec![0; lengths.iter().sum()];
            let parts = parts(&lengths, false);
            world
                .scope(|scope| scope.all_gather_varying(&own, &mut all, &parts)?.wait().map(drop))
                .unwrap();
        };
        assert_eq!(messages(job, start), 2 * EACH as u64, "{lengths:?}");
    }
    for lengths in lengths(job.world().size(), 128 << 10) {
        let total_bytes = 8 * lengths.iter().sum::<usize>() as u64 / 1_024 * 1_024;
        let bytes = bytes_of_job(job, |world| gather(world, &lengths));
        assert_eq!(bytes, total_bytes, "allgather of {lengths:?}");
        let bytes = bytes_of_job(job, |world| divide(world, &lengths));
        assert_eq!(bytes, total_bytes, "reduce-scatter of {lengths:?}");
    }
}

fn gather(world: &World, lengths: &[usize]) {
    let own = values(world.rank(), lengths[world.rank()]);
    let mut all = vec![0; lengths.iter().sum()];
    world.all_gather_varying(&own, &mut all, &parts(lengths, false)).unwrap();
}

fn divide(world: &World, lengths: &[usize]) {
    let all = values(world.rank(), lengths.iter().sum());
    let mut part = vec![0; lengths[world.rank()]];
    world.reduce_scatter(&all, &mut part, lengths, Sum).unwrap();
}

/// A member that brings less than it says itself gets an error, and all members come to an end.
#[test]
fn a_member_that_contradicts_itself_holds_nobody() {
    in_both_placements("varying::a_member_that_contradicts_itself_holds_nobody", 2, |job| {
        let lengths = [3, 2, 4, 1];
        for odd in 0..lengths.len() {
            let world = job.world().duplicate().unwrap();
            let rank = world.rank();
            let own = values(rank, lengths[rank] - usize::from(rank == odd));
            let mut all = vec![0; 10];
            let ended = world.all_gather_varying(&own, &mut all, &parts(&lengths, false));
            assert!(rank != odd || ended.is_err(), "{odd}");
        }
        job.world().barrier().unwrap();
    });
}
