//! Collective operations over the boards of two hosts and messages between their drivers.

use std::process::Command;
use std::thread;
use std::time::Duration;

use landeck::unstable::collectives::{Operation, Preset};
use landeck::{Error, ErrorKind, Job, Persistent, Sum, User, World};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, jobs};

use crate::job::command;
use crate::support::{is_member, job_by, kill_myself, launcher, text};

/// Processes on each host, where a test has more of them than others.
const EACH: usize = 3;
const MANY: usize = 2 * EACH;
/// Elements of eight bytes: nothing, in a line, in a block, in pieces, and a mebibyte.
const LENGTHS: [usize; 7] = [0, 1, 14, 15, 1_000, 20_000, 131_072];
const DONE: &str = "survivor done";
/// The environment variable that names the rank which is killed.
const VICTIM: &str = "LANDECK_TEST_VICTIM";
/// Operations of a group that has lost a member, and of those that count messages.
const ROUNDS: u64 = 30;

pub(crate) fn values(rank: usize, length: usize) -> Vec<u64> {
    (0..length as u64).map(|at| at * 7 + rank as u64 * rank as u64).collect()
}

/// Runs a test of this program in jobs with blocks of ranks on each host, and with ranks in turn.
pub(crate) fn in_both_placements(test: &str, each: usize, body: impl FnOnce(&Job)) {
    if is_member() {
        let job = Job::join().unwrap();
        body(&job);
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    for options in [&[][..], &["--map-by", "node"]] {
        let ended = command(&hosts, each, test, options).output().unwrap();
        assert!(ended.status.success(), "{options:?}: {}", text(&ended));
    }
}

/// All blocking operations with so many values give what naive ones give.
pub(crate) fn check(world: &World, length: usize) {
    let (rank, size) = (world.rank(), world.size());
    let own = values(rank, length);
    let all: Vec<u64> = (0..size).flat_map(|rank| values(rank, length)).collect();
    let sums: Vec<u64> =
        (0..length).map(|at| (0..size).map(|of| all[of * length + at]).sum()).collect();
    world.barrier().unwrap();
    for root in 0..size {
        let mut sent = if rank == root { own.clone() } else { vec![0; length] };
        world.broadcast(&mut sent, root).unwrap();
        assert_eq!(sent, values(root, length), "broadcast {length}");
        let mut gathered = vec![0; if rank == root { size * length } else { 0 }];
        world.gather(&own, &mut gathered, root).unwrap();
        assert!(rank != root || gathered == all, "gather {length}");
        let mut reduced = vec![0; if rank == root { length } else { 0 }];
        world.reduce(&own, &mut reduced, Sum, root).unwrap();
        assert!(rank != root || reduced == sums, "reduce {length}");
    }
    let mut gathered = vec![0; size * length];
    world.all_gather(&own, &mut gathered).unwrap();
    assert_eq!(gathered, all, "allgather {length}");
    let mut reduced = vec![0; length];
    world.all_reduce_into(&own, &mut reduced, Sum).unwrap();
    assert_eq!(reduced, sums, "allreduce {length}");
    let mut in_place = own;
    world.all_reduce_in_place(&mut in_place, Sum).unwrap();
    assert_eq!(in_place, sums, "allreduce in place {length}");
    check_divided(world, length);
}

/// The operations in which members have different results.
fn check_divided(world: &World, length: usize) {
    let (rank, size) = (world.rank(), world.size());
    let all = |from: usize| values(from, size * length);
    let block = |from: usize, of: usize| all(from)[of * length..(of + 1) * length].to_vec();
    let sum = |members: &[Vec<u64>]| -> Vec<u64> {
        (0..length).map(|at| members.iter().map(|member| member[at]).sum()).collect()
    };
    for root in 0..size {
        let mut own = vec![0; length];
        let given = if rank == root { all(root) } else { Vec::new() };
        world.scatter(&given, &mut own, root).unwrap();
        assert_eq!(own, block(root, rank), "scatter {length} from {root}");
    }
    let mut exchanged = vec![0; size * length];
    world.all_to_all(&all(rank), &mut exchanged).unwrap();
    let expected: Vec<u64> = (0..size).flat_map(|from| block(from, rank)).collect();
    assert_eq!(exchanged, expected, "alltoall {length}");
    let mut part = vec![0; length];
    world.reduce_scatter_block(&all(rank), &mut part, Sum).unwrap();
    let members: Vec<_> = (0..size).map(|from| block(from, rank)).collect();
    assert_eq!(part, sum(&members), "reduce-scatter {length}");
    let members: Vec<_> = (0..=rank).map(|from| values(from, length)).collect();
    let mut prefix = vec![0; length];
    world.scan(&values(rank, length), &mut prefix, Sum).unwrap();
    assert_eq!(prefix, sum(&members), "scan {length}");
    let mut before = vec![7; length];
    world.exclusive_scan(&values(rank, length), &mut before, Sum).unwrap();
    let expected = if rank == 0 { vec![7; length] } else { sum(&members[..rank]) };
    assert_eq!(before, expected, "exclusive scan {length}");
    let mut before: Vec<u64> = values(rank, length);
    world.scan_in_place(&mut before, Sum).unwrap();
    assert_eq!(before, prefix, "scan in place {length}");
}

#[test]
fn operations_give_what_naive_ones_give() {
    in_both_placements("across::operations_give_what_naive_ones_give", EACH, |job| {
        let world = job.world();
        let turned = world.split(Some(0), [5, 0, 3, 1, 4, 2][world.rank()]).unwrap().unwrap();
        let few = world.split(Some(u32::from(world.rank() < 4)), 0).unwrap().unwrap();
        for length in LENGTHS {
            for world in [&world, &turned, &few] {
                check(world, length);
            }
        }
    });
}

/// Elements of eight bytes in more than a member deposits on a board at a time.
const LONG: usize = (9 << 20) / 8;

#[test]
fn long_data_go_in_segments_and_once_to_each_host() {
    in_both_placements("across::long_data_go_in_segments_and_once_to_each_host", 2, |job| {
        let world = job.world();
        let (rank, size) = (world.rank(), world.size());
        let own = values(rank, LONG);
        let all: Vec<u64> = (0..size).flat_map(|rank| values(rank, LONG)).collect();
        let sums: Vec<u64> =
            (0..LONG).map(|at| (0..size).map(|of| all[of * LONG + at]).sum()).collect();
        // By one root on each host, of which one is not the first there.
        for root in [0, 3] {
            let mut sent = if rank == root { own.clone() } else { vec![0; LONG] };
            let bytes = bytes_of_job(job, |world| world.broadcast(&mut sent, root).unwrap());
            assert!(sent == values(root, LONG), "broadcast from {root}");
            assert_eq!(bytes, 8 * LONG as u64, "broadcast from {root}");
            let mut gathered = vec![0; if rank == root { size * LONG } else { 0 }];
            let bytes = bytes_of_job(job, |world| world.gather(&own, &mut gathered, root).unwrap());
            assert!(rank != root || gathered == all, "gather to {root}");
            assert_eq!(bytes, 2 * 8 * LONG as u64, "gather to {root}");
            let given = if rank == root { all.clone() } else { Vec::new() };
            let mut scattered = vec![0; LONG];
            let bytes =
                bytes_of_job(job, |world| world.scatter(&given, &mut scattered, root).unwrap());
            assert!(scattered == own, "scatter from {root}");
            assert_eq!(bytes, 2 * 8 * LONG as u64, "scatter from {root}");
            let mut reduced = vec![0; if rank == root { LONG } else { 0 }];
            let bytes =
                bytes_of_job(job, |world| world.reduce(&own, &mut reduced, Sum, root).unwrap());
            assert!(rank != root || reduced == sums, "reduce to {root}");
            assert_eq!(bytes, 8 * LONG as u64, "reduce to {root}");
        }
        let mut gathered = vec![0; size * LONG];
        let bytes = bytes_of_job(job, |world| world.all_gather(&own, &mut gathered).unwrap());
        assert!(gathered == all, "allgather");
        assert_eq!(bytes, 4 * 8 * LONG as u64, "allgather");
        let mut reduced = own.clone();
        let bytes =
            bytes_of_job(job, |world| world.all_reduce_in_place(&mut reduced, Sum).unwrap());
        assert!(reduced == sums, "allreduce");
        assert_eq!(bytes, 2 * 8 * LONG as u64, "allreduce");
        let mut part = vec![0; LONG];
        let blocks: Vec<u64> = all.iter().map(|value| value + rank as u64).collect();
        let bytes = bytes_of_job(job, |world| {
            world.reduce_scatter_block(&blocks, &mut part, Sum).unwrap();
        });
        let expected = |at: usize| size as u64 * own[at] + (0..size as u64).sum::<u64>();
        assert!((0..LONG).all(|at| part[at] == expected(at)), "reduce-scatter");
        assert_eq!(bytes, 4 * 8 * LONG as u64, "reduce-scatter");
        let mut prefix = vec![0; LONG];
        world.scan(&own, &mut prefix, Sum).unwrap();
        let expected = |at: usize| (0..=rank).map(|of| all[of * LONG + at]).sum::<u64>();
        assert!((0..LONG).all(|at| prefix[at] == expected(at)), "scan");
    });
}

/// The bytes that all members send in messages in an operation. A member that waits for long says so in a short one.
pub(crate) fn bytes_of_job(job: &Job, operate: impl FnOnce(&World)) -> u64 {
    let world = job.world();
    world.barrier().unwrap();
    let before = job.counters().bytes_sent;
    operate(&world);
    let sent = job.counters().bytes_sent - before;
    world.all_reduce(sent, Sum).unwrap() / 1_024 * 1_024
}

#[test]
fn every_architecture_serves_between_hosts() {
    in_both_placements("across::every_architecture_serves_between_hosts", 2, |job| {
        let world = job.world();
        for way in ["flat", "ring", "knomial", "butterfly", "circulant", "butterfly+split"] {
            let preset: Preset = format!("hosts:{way}").parse().unwrap();
            let of = |operation| world.via(preset.way(operation));
            for length in [1, 3_000] {
                of(Operation::Barrier).barrier().unwrap();
                let mut sum = values(world.rank(), length);
                of(Operation::AllReduce).all_reduce_in_place(&mut sum, Sum).unwrap();
                assert!((0..length).all(|at| sum[at] == 28 * at as u64 + 14), "{way} {length}");
                let mut data = values(3 * usize::from(world.rank() == 3), length);
                of(Operation::Broadcast).broadcast(&mut data, 3).unwrap();
                assert_eq!(data, values(3, length), "{way}");
            }
        }
    });
}

#[test]
fn results_have_the_same_bits_and_order_for_any_placement() {
    in_both_placements(
        "across::results_have_the_same_bits_and_order_for_any_placement",
        EACH,
        |job| {
            let world = job.world();
            let digits = || {
                User::ordered(|a: u64, b: u64| {
                    let mut power = 1;
                    while power <= b {
                        power *= 10;
                    }
                    a * power + b
                })
            };
            let all = world.all_reduce(world.rank() as u64 + 1, digits()).unwrap();
            assert_eq!(all, 123_456);
            let own: Vec<f64> = (0..1_000)
                .map(|at| 0.1 + 1e9 / f64::from(at * 7 + 1 + world.rank() as i32))
                .collect();
            let bits = |world: &World| {
                let mut sums = vec![0.0; own.len()];
                world.reproducible().all_reduce_into(&own, &mut sums, Sum).unwrap();
                sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u64>>()
            };
            let way = |name: &str| name.parse::<Preset>().unwrap().way(Operation::AllReduce);
            let chosen = bits(&world);
            assert_eq!(chosen, bits(&world.via(way("flat"))));
            assert_eq!(chosen, bits(&world.via(way("hosts:ring"))));
        },
    );
}

/// The bits of reproducible results, as the first process prints them.
const BITS: &str = "BITS ";
/// So many processes that 1, 2, 3 and 4 hosts have equal shares.
const SHARED: usize = 12;
/// All architectures of messages, by which members or hosts combine.
const ARCHITECTURES: [&str; 10] = [
    "flat",
    "pipeline",
    "daisy",
    "hierarchy",
    "hypercube",
    "binary-tree",
    "knomial",
    "butterfly",
    "ring",
    "circulant",
];

/// The results of all reproducible combinations; those of a root are zero elsewhere.
fn combined(world: &World, own: &[f64]) -> [Vec<f64>; 5] {
    let [mut sums, mut at_root, mut prefix, mut before] = [(); 4].map(|()| vec![0.0; own.len()]);
    let mut part = vec![0.0; own.len() / world.size()];
    world.all_reduce_into(own, &mut sums, Sum).unwrap();
    world.reduce(own, &mut at_root, Sum, 0).unwrap();
    world.scan(own, &mut prefix, Sum).unwrap();
    world.exclusive_scan(own, &mut before, Sum).unwrap();
    world.reduce_scatter_block(own, &mut part, Sum).unwrap();
    [sums, at_root, prefix, before, part]
}

/// The results of all reproducible combinations that are started.
fn combined_when_started(world: &World, own: &[f64]) -> [Vec<f64>; 5] {
    let [mut sums, mut at_root, mut prefix, mut before] = [(); 4].map(|()| vec![0.0; own.len()]);
    let mut part = vec![0.0; own.len() / world.size()];
    world
        .scope(|scope| {
            let requests = [
                scope.all_reduce_into(own, &mut sums, Sum)?,
                scope.reduce(own, &mut at_root, Sum, 0)?,
                scope.scan(own, &mut prefix, Sum)?,
                scope.exclusive_scan(own, &mut before, Sum)?,
                scope.reduce_scatter_block(own, &mut part, Sum)?,
            ];
            requests.into_iter().try_for_each(|request| request.wait().map(drop))
        })
        .unwrap();
    [sums, at_root, prefix, before, part]
}

fn bits_of(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn print_bits() {
    let job = Job::join().unwrap();
    let (world, size) = (job.world().reproducible(), job.world().size());
    let rank = world.rank() as i32;
    let own: Vec<f64> =
        (0..40 * size as i32).map(|at| 0.1 + 1e9 / f64::from(at * 7 + 1 + rank * rank)).collect();
    let results = combined(&world, &own);
    let started = combined_when_started(&world, &own);
    assert_eq!(bits_of(&results.concat()), bits_of(&started.concat()), "started");
    for name in ARCHITECTURES {
        for name in [name.to_owned(), format!("hosts:{name}")] {
            let way = name.parse::<Preset>().unwrap().way(Operation::AllReduce);
            let mut sums = vec![0.0; own.len()];
            world.via(way).all_reduce_into(&own, &mut sums, Sum).unwrap();
            assert_eq!(bits_of(&sums), bits_of(&results[0]), "{name}");
        }
    }
    let results = results.concat();
    let mut all = vec![0.0; results.len() * size];
    world.all_gather(&results, &mut all).unwrap();
    if rank == 0 {
        let add = |sum: u64, bits: u64| (sum ^ bits).wrapping_mul(0x100_0000_01b3);
        println!("{BITS}{:x}", bits_of(&all).into_iter().fold(7, add));
    }
    job.leave().unwrap();
}

#[test]
fn reproducible_results_have_the_same_bits_on_any_number_of_hosts() {
    let test = "across::reproducible_results_have_the_same_bits_on_any_number_of_hosts";
    if is_member() {
        return print_bits();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let bits = |run: Command, options: &[&str]| {
        let ended = job_by(run, SHARED, test, options).output().unwrap();
        let said = text(&ended);
        assert!(ended.status.success(), "{options:?}: {said}");
        said.lines().find(|line| line.contains(BITS)).unwrap().trim().to_owned()
    };
    let on_one = bits(jobs::run_here(launcher()), &[]);
    for count in 2..=4 {
        let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(count)) else { return };
        for options in [&[][..], &["--map-by", "node"]] {
            let found = bits(jobs::run_on(&hosts, launcher(), SHARED), options);
            assert_eq!(found, on_one, "{count} hosts, {options:?}");
        }
    }
}

/// Each member in turn computes between the start of operations and its wait for them.
#[test]
fn operations_are_right_whichever_member_computes_meanwhile() {
    let test = "across::operations_are_right_whichever_member_computes_meanwhile";
    in_both_placements(test, EACH, |job| {
        let world = job.world();
        let (own, given) = ([world.rank()], vec![world.rank(); MANY]);
        for busy in 0..MANY {
            let (mut all, mut exchanged, mut sum) = ([0; MANY], [0; MANY], [world.rank()]);
            world
                .scope(|scope| {
                    let gather = scope.all_gather(&own, &mut all)?;
                    let exchange = scope.all_to_all(&given, &mut exchanged)?;
                    let reduce = scope.all_reduce_in_place(&mut sum, Sum)?;
                    if world.rank() == busy {
                        thread::sleep(Duration::from_millis(100));
                    }
                    reduce.wait()?;
                    exchange.wait()?;
                    gather.wait()
                })
                .unwrap();
            assert_eq!((all, exchanged, sum), ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [15]));
        }
    });
}

#[test]
fn operations_go_on_beside_each_other() {
    in_both_placements("across::operations_go_on_beside_each_other", EACH, go_on_beside_each_other);
}

/// Operations that begin one after the other and end in another order, and one that is repeated.
fn go_on_beside_each_other(job: &Job) {
    let world = job.world();
    let (rank, size) = (world.rank() as u64, world.size() as u64);
    let (own, everybody) = ([rank], (0..size).collect::<Vec<_>>());
    let sum_of_all: u64 = everybody.iter().sum();
    for _ in 0..20 {
        let (mut one, mut two) = ([rank], vec![rank; 50_000]);
        let mut all = vec![0; size as usize];
        world
            .scope(|scope| {
                let barrier = scope.barrier()?;
                let sum = scope.all_reduce_in_place(&mut one, Sum)?;
                let long = scope.all_reduce_in_place(&mut two, Sum)?;
                let gather = scope.all_gather(&own, &mut all)?;
                gather.wait()?;
                long.wait()?;
                sum.wait()?;
                barrier.wait()
            })
            .unwrap();
        assert_eq!((one[0], &all), (sum_of_all, &everybody));
        assert_eq!(two, vec![sum_of_all; 50_000]);
    }
    let mut sums = Persistent::all_reduce(&world, vec![0u64; 3], Sum).unwrap();
    for round in 0..40 {
        sums.input_mut().unwrap().fill(round + rank);
        sums.start().unwrap();
        sums.wait().unwrap();
        assert_eq!(sums.output().unwrap(), [size * round + sum_of_all; 3]);
    }
}

/// Messages that all members send in so many operations, for each of them. A member that waits for long says so once: that
/// message is one of the whole, so a broadcast that goes twice to a host still differs from one that goes once.
pub(crate) fn messages(job: &Job, operate: impl Fn(&World)) -> u64 {
    let world = job.world();
    operate(&world);
    let before = job.counters().messages_sent;
    (0..ROUNDS).for_each(|_| operate(&world));
    let sent = job.counters().messages_sent - before;
    world.all_reduce(sent, Sum).unwrap() / ROUNDS
}

#[test]
fn a_broadcast_goes_once_to_each_host() {
    in_both_placements("across::a_broadcast_goes_once_to_each_host", EACH, |job| {
        for length in [1, 1_000] {
            for root in 0..MANY {
                let broadcast = |world: &World| {
                    let mut data = values(world.rank(), length);
                    world.broadcast(&mut data, root).unwrap();
                    assert_eq!(data, values(root, length));
                };
                assert_eq!(messages(job, broadcast), 1, "from {root}");
            }
        }
        check_messages_of_divided(job);
        // Two drivers exchange one message each.
        assert_eq!(messages(job, |world| world.barrier().unwrap()), 2);
        let sum = |world: &World| assert_eq!(world.all_reduce(1u64, Sum).unwrap(), MANY as u64);
        assert_eq!(messages(job, sum), 2);
    });
}

/// Messages between two hosts, whatever the placement of the ranks: one from each driver that has something to send, and in
/// an exchange one from each member.
fn check_messages_of_divided(job: &Job) {
    let own: Vec<u64> = values(job.world().rank(), MANY);
    let scatter = |world: &World| {
        let given = if world.rank() == 1 { &own[..] } else { &[] };
        world.scatter(given, &mut [0], 1).unwrap();
    };
    assert_eq!(messages(job, scatter), 1);
    let gather = |world: &World| {
        let mut all = vec![0; if world.rank() == 1 { MANY } else { 0 }];
        world.gather(&own[..1], &mut all, 1).unwrap();
    };
    assert_eq!(messages(job, gather), 1);
    let all_gather = |world: &World| world.all_gather(&own[..1], &mut [0; MANY]).unwrap();
    assert_eq!(messages(job, all_gather), 2);
    // The usual way depends on the processors that hosts share.
    let boards = "hosts:flat".parse::<Preset>().unwrap().way(Operation::AllToAll);
    let exchange =
        |world: &World| world.via(boards.clone()).all_to_all(&own, &mut [0; MANY]).unwrap();
    assert_eq!(messages(job, exchange), MANY as u64);
    let divide = |world: &World| world.reduce_scatter_block(&own, &mut [0], Sum).unwrap();
    assert_eq!(messages(job, divide), 2);
    let ordered = |world: &World| {
        world.reproducible().reduce_scatter_block(&own, &mut [0], Sum).unwrap();
    };
    assert_eq!(messages(job, ordered), 2);
}

/// Calls operations until one fails because a member is gone, goes on with those who are left, and says so.
fn endure() {
    let job = Job::join().unwrap();
    let victim: usize = std::env::var(VICTIM).unwrap().parse().unwrap();
    let mut world = job.world().duplicate().unwrap();
    if world.rank() == victim {
        thread::spawn(|| {
            thread::sleep(Duration::from_millis(40));
            kill_myself();
        });
    }
    let (mut round, mut left) = (0, u64::MAX);
    while left > 0 {
        let length = [1, 20_000, 64][round % 3];
        let mut sums = vec![1u64; length];
        match world.all_reduce_in_place(&mut sums, Sum) {
            Ok(()) => {
                assert_eq!(sums, vec![world.size() as u64; length]);
                left -= u64::from(world.size() < MANY);
                round += 1;
            }
            Err(Error {
                kind: ErrorKind::PeerFailed { .. } | ErrorKind::Revoked { .. }, ..
            }) => {
                world.revoke().unwrap();
                world = world.shrink().unwrap();
                (left, round) = (ROUNDS, 0);
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(world.size(), MANY - 1);
    println!("{DONE}");
    job.leave().unwrap();
}

#[test]
fn a_member_killed_in_an_operation_is_named_and_the_others_go_on() {
    let test = "across::a_member_killed_in_an_operation_is_named_and_the_others_go_on";
    if is_member() {
        return endure();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    // The driver of the other host, another member there, and the driver of the first host.
    for victim in [EACH, EACH + 1, 0] {
        let mut command = command(&hosts, EACH, test, &["--on-failure", "notify"]);
        let ended = command.env(VICTIM, victim.to_string()).output().unwrap();
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(137), "{victim}: {said}");
        assert!(!said.contains("panicked"), "{victim}: {said}");
        assert_eq!(said.matches(DONE).count(), MANY - 1, "{victim}: {said}");
    }
}

/// Each member in turn calls an allreduce where the others call a barrier, and all wait, or all only test.
#[test]
fn members_that_call_different_operations_are_named_also_to_those_that_only_test() {
    let test =
        "across::members_that_call_different_operations_are_named_also_to_those_that_only_test";
    in_both_placements(test, EACH, |job| {
        for odd in 0..MANY {
            for only_tests in [false, true] {
                let world = job.world().duplicate().unwrap();
                // A member that is still in one of these may be told by those who have found it.
                let failed = (0..3)
                    .try_for_each(|_| world.barrier())
                    .and_then(|()| one_call(&world, world.rank() == odd, only_tests))
                    .and_then(|()| (0..20).try_for_each(|_| one_call(&world, false, only_tests)));
                let failed = failed.unwrap_err().to_string();
                assert!(failed.contains(&format!("rank {odd}")), "{odd}: {failed}");
                assert!(failed.contains("allreduce") && failed.contains("barrier"), "{failed}");
                job.world().barrier().unwrap(); // a process that left tells nobody
            }
        }
    });
}

/// An allreduce or a barrier.
fn one_call(world: &World, is_sum: bool, only_tests: bool) -> landeck::Result<()> {
    let mut sum = [1u64];
    world.scope(|scope| {
        let mut request = match is_sum {
            true => scope.all_reduce_in_place(&mut sum, Sum)?,
            false => scope.barrier()?,
        };
        if only_tests {
            while request.test()?.is_none() {}
            return Ok(());
        }
        request.wait().map(drop)
    })
}
