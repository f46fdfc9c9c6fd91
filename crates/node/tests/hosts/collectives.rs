//! Collective operations of worlds over hosts: all members choose the same way, and get what a naive one gives.

use landeck::unstable::collectives::{Operation, Preset};
use landeck::{Sum, User, World};

use crate::job::{RANKS, on_hosts};

const LENGTHS: [usize; 6] = [1, 7, 100, 3_000, 40_000, 300_000];
/// Ways for an allreduce; the empty one leaves it to the table.
const WAYS: [&str; 10] = [
    "",
    "flat",
    "pipeline",
    "daisy",
    "hierarchy:derived",
    "hypercube",
    "knomial",
    "butterfly",
    "ring",
    "circulant",
];

/// The values of a member.
fn values(rank: usize, length: usize) -> Vec<u64> {
    (0..length as u64).map(|at| at * 7 + rank as u64).collect()
}

fn check(world: &World, length: usize) {
    let (rank, size) = (world.rank(), world.size());
    let own = values(rank, length);
    let all: Vec<u64> = (0..size).flat_map(|rank| values(rank, length)).collect();
    let sums: Vec<u64> = (0..length)
        .map(|at| (0..size).map(|rank| at as u64 * 7 + rank as u64).sum::<u64>())
        .collect();
    world.barrier().unwrap();
    for root in 0..size {
        let mut sent = if rank == root { own.clone() } else { vec![0; length] };
        world.broadcast(&mut sent, root).unwrap();
        assert_eq!(sent, values(root, length));
        let mut gathered = vec![0; if rank == root { size * length } else { 0 }];
        world.gather(&own, &mut gathered, root).unwrap();
        assert!(rank != root || gathered == all);
        let mut part = vec![0; length];
        world.scatter(if rank == root { &all } else { &[] }, &mut part, root).unwrap();
        assert_eq!(part, own);
        let mut reduced = vec![0; if rank == root { length } else { 0 }];
        world.reduce(&own, &mut reduced, Sum, root).unwrap();
        assert!(rank != root || reduced == sums);
    }
    let mut gathered = vec![0; size * length];
    world.all_gather(&own, &mut gathered).unwrap();
    assert_eq!(gathered, all);
    let mut reduced = vec![0; length];
    world.all_reduce_into(&own, &mut reduced, Sum).unwrap();
    assert_eq!(reduced, sums);
    let mut scanned = vec![0; length];
    world.scan(&own, &mut scanned, Sum).unwrap();
    let before: Vec<u64> = (0..length)
        .map(|at| (0..=rank).map(|rank| at as u64 * 7 + rank as u64).sum::<u64>())
        .collect();
    assert_eq!(scanned, before);
    let mut exchanged = vec![0; size * length];
    let sent: Vec<u64> = (0..size).flat_map(|to| values(rank * size + to, length)).collect();
    world.all_to_all(&sent, &mut exchanged).unwrap();
    let wanted: Vec<u64> = (0..size).flat_map(|from| values(from * size + rank, length)).collect();
    assert_eq!(exchanged, wanted);
    let mut part = vec![0; length];
    world.reduce_scatter_block(&all, &mut part, Sum).unwrap();
    let own_times: Vec<u64> = own.iter().map(|value| value * size as u64).collect();
    assert_eq!(part, own_times);
}

#[test]
fn every_operation_gives_what_a_naive_one_gives() {
    on_hosts("collectives::every_operation_gives_what_a_naive_one_gives", |job| {
        let world = job.world();
        let across = world.split(Some(world.rank() as u32 % 2), 0).unwrap().unwrap();
        let turned = world.split(Some(0), -(world.rank() as i64)).unwrap().unwrap();
        let here = world.split_by_host(0).unwrap();
        for length in [1, 7, 3_000, 20_000] {
            for world in [&world, &across, &turned, &here] {
                check(world, length);
            }
        }
    });
}

#[test]
fn every_way_gives_the_same() {
    on_hosts("collectives::every_way_gives_the_same", |job| {
        let world = job.world();
        for way in WAYS {
            let asked = match way.parse::<Preset>() {
                Ok(preset) => world.via(preset.way(Operation::AllReduce)),
                Err(_) => world.clone(),
            };
            for length in LENGTHS {
                let mut sum = values(world.rank(), length);
                asked.all_reduce_in_place(&mut sum, Sum).unwrap();
                let of = |at: usize| RANKS as u64 * 7 * at as u64 + 6;
                assert!((0..length).all(|at| sum[at] == of(at)), "{way} {length}");
            }
        }
    });
}

#[test]
fn the_world_is_divided_by_hosts_on_all_hosts() {
    on_hosts("collectives::the_world_is_divided_by_hosts_on_all_hosts", |job| {
        let world = job.world();
        assert_eq!(world.clusters().unwrap().clusters(), [[0, 1], [2, 3]]);
        let again = world.duplicate().unwrap();
        assert_eq!(again.clusters().unwrap().clusters(), [[0, 1], [2, 3]]);
        let turned = world.split(Some(0), -(world.rank() as i64)).unwrap().unwrap();
        assert_eq!(turned.clusters().unwrap().clusters(), [[0, 1], [2, 3]]);
        let shape = format!("{:?}", world.clusters().unwrap());
        let mut shapes = vec![0u8; RANKS * shape.len()];
        world.all_gather(shape.as_bytes(), &mut shapes).unwrap();
        assert!(shapes.chunks(shape.len()).all(|other| other == shape.as_bytes()));
    });
}

#[test]
fn a_function_that_does_not_commute_combines_in_the_order_of_ranks() {
    on_hosts(
        "collectives::a_function_that_does_not_commute_combines_in_the_order_of_ranks",
        |job| {
            let world = job.world();
            let turned = world.split(Some(0), [0, 2, 1, 3][world.rank()]).unwrap().unwrap();
            for world in [&world, &turned] {
                let digits = User::ordered(|a: u64, b: u64| {
                    let mut power = 1;
                    while power <= b {
                        power *= 10;
                    }
                    a * power + b
                });
                let all = world.all_reduce(world.rank() as u64 + 1, digits).unwrap();
                assert_eq!(all, 1234);
            }
        },
    );
}
