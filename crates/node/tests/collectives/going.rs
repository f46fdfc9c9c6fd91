//! Operations that go on: several at once, in any order of completion, in several worlds, from
//! threads.

use landeck::unstable::JobInternals;
use landeck::unstable::collectives::architecture::{Flat, Knomial};
use landeck::unstable::collectives::{Operation, Preset};
use landeck::{Job, Maximum, Options, Persistent, Progress, Sum, Tag, ThreadMode, World};
use landeck_testing::{Random, seed};

use crate::support::{in_job, is_member, job_of, run_well, shared_file};

/// A world of some ranks of the first, in a context that all of them name alike.
fn world_of(job: &Job, index: u32, ranks: &[u32]) -> World {
    let all = job.world();
    let members: Vec<_> = ranks.iter().map(|&rank| all.peers()[rank as usize]).collect();
    job.world_of(1 << 20 | index, &members).unwrap()
}

#[test]
fn several_at_once_complete_in_any_order() {
    for n in [2, 3, 5] {
        let name = "going::several_at_once_complete_in_any_order";
        in_job(n, name, ThreadMode::Single, |job| {
            let world = job.world();
            let (rank, size) = (world.rank(), world.size());
            // Each member waits in an order of its own.
            let mut random = Random::new(seed());
            for round in 0..40 {
                let length = [1, 100, 10_000, 200_000][round % 4];
                let own = vec![rank as u64; length];
                let mut total = vec![0u64; length];
                let mut from_last = vec![rank as u64; length];
                let mut all = vec![0u64; length * size];
                let by_messages = world.via(Knomial::BINOMIAL);
                let mut largest = vec![0u64; length];
                world
                    .scope(|scope| {
                        let mut requests = vec![
                            scope.all_reduce_into(&own, &mut total, Sum)?,
                            scope.broadcast(&mut from_last, size - 1)?,
                            scope.all_gather(&own, &mut all)?,
                            scope.all_reduce_into(&own, &mut largest, Maximum.via(Flat))?,
                            scope.barrier()?,
                        ];
                        while !requests.is_empty() {
                            let which = random.below(requests.len() as u64) as usize;
                            if random.once_in(2) {
                                scope.wait_any(&mut requests)?;
                            } else {
                                requests.swap_remove(which).wait()?;
                            }
                        }
                        Ok(())
                    })
                    .unwrap();
                by_messages.barrier().unwrap();
                assert!(total.iter().all(|&sum| sum == (size * (size - 1) / 2) as u64));
                assert!(from_last.iter().all(|&value| value == size as u64 - 1));
                assert!(largest.iter().all(|&value| value == size as u64 - 1));
                let at = |at: usize| (at / length) as u64;
                assert!(all.iter().enumerate().all(|(index, &value)| value == at(index)));
            }
        });
        if is_member() {
            return;
        }
    }
}

/// Starting an operation needs no other member: one process starts far more operations than any
/// window holds before the others call anything.
#[test]
fn starting_waits_for_nobody() {
    in_job(3, "going::starting_waits_for_nobody", ThreadMode::Single, |job| {
        let world = job.world();
        for way in ["board", "butterfly", "flat", "ring"] {
            if way == "board" && job.spans_hosts() {
                continue;
            }
            let preset: Preset = way.parse().unwrap();
            for length in [0, 1, 1_000, 100_000] {
                start_many(&world.via(preset.way(Operation::AllReduce)), length);
            }
        }
    });
}

/// Four times as many operations as members may be apart, of each kind.
fn start_many(world: &World, length: usize) {
    const EACH: usize = 32;
    let (rank, size) = (world.rank(), world.size());
    let own = vec![rank as u64 + 1; length];
    let mut sums = vec![vec![0u64; length]; EACH];
    let mut told = vec![vec![rank as u64; length]; EACH];
    let mut all = vec![vec![0u64; length * size]; EACH];
    world
        .scope(|scope| {
            if rank != 0 {
                world.receive::<u64>(0, Tag(9))?;
            }
            let mut requests = Vec::new();
            for ((sum, told), all) in sums.iter_mut().zip(&mut told).zip(&mut all) {
                requests.push(scope.barrier()?);
                requests.push(scope.all_reduce_into(&own, sum, Sum)?);
                requests.push(scope.broadcast(told, 0)?);
                requests.push(scope.all_gather(&own, all)?);
            }
            if rank == 0 {
                (1..size).try_for_each(|to| world.send(&[0u64], to, Tag(9)))?;
            }
            requests.into_iter().try_for_each(|request| request.wait().map(|_| ()))
        })
        .unwrap();
    let total = (size * (size + 1) / 2) as u64;
    assert!(sums.iter().flatten().all(|&sum| sum == total));
    assert!(told.iter().flatten().all(|&value| value == 0));
    let in_order = |(at, &value): (usize, &u64)| value == (at / length) as u64 + 1;
    assert!(all.iter().all(|all| all.iter().enumerate().all(in_order)));
}

#[test]
fn messages_and_collectives_are_waited_for_alike() {
    in_job(2, "going::messages_and_collectives_are_waited_for_alike", ThreadMode::Single, |job| {
        let world = job.world();
        let (rank, other) = (world.rank(), 1 - world.rank());
        let (mut word, mut sum) = ([0u32], [rank as u32 + 1]);
        world
            .scope(|scope| {
                let mut requests = vec![
                    scope.receive_into(&mut word, other, Tag(5))?,
                    scope.all_reduce_in_place(&mut sum, Sum.via(Flat))?,
                    scope.send(&[7u32], other, Tag(5))?,
                ];
                let mut done = 0;
                while !requests.is_empty() {
                    done += scope.wait_some(&mut requests)?.len();
                }
                assert_eq!(done, 3);
                Ok(())
            })
            .unwrap();
        assert_eq!((word, sum), ([7], [3]));
        // One that nobody waits for is waited for by the scope.
        let mut left = [rank as u64];
        world.scope(|scope| scope.broadcast(&mut left, 1).map(drop)).unwrap();
        assert_eq!(left, [1]);
    });
}

#[test]
fn a_persistent_operation_is_begun_any_number_of_times() {
    for n in [1, 3] {
        let name = "going::a_persistent_operation_is_begun_any_number_of_times";
        in_job(n, name, ThreadMode::Single, |job| {
            let world = job.world();
            let (rank, size) = (world.rank() as u64, world.size() as u64);
            for length in [3, 40_000] {
                let values = || vec![rank; length];
                let mut sum = Persistent::all_reduce(&world, values(), Sum).unwrap();
                let mut words = Persistent::broadcast(&world, values(), 0);
                let mut barrier = Persistent::barrier(&world);
                let mut exchange = Persistent::all_to_all(&world, vec![rank; 2 * size as usize]);
                let mut prefix = Persistent::scan(&world.via(Flat), values(), Sum).unwrap();
                for round in 0..20 {
                    sum.input_mut().unwrap().fill(round + rank);
                    words.input_mut().unwrap().fill(round * rank + round);
                    exchange.input_mut().unwrap().fill(round + 7 * rank);
                    prefix.start().unwrap();
                    sum.start().unwrap();
                    words.start().unwrap();
                    exchange.start().unwrap();
                    barrier.start().unwrap();
                    while !words.test().unwrap() {}
                    assert!(words.output().unwrap().iter().all(|&word| word == round));
                    let total = size * round + size * (size - 1) / 2;
                    assert!(sum.output().unwrap().iter().all(|&value| value == total));
                    let from = |at: usize| round + 7 * (at as u64 / 2);
                    let exchanged = exchange.output().unwrap();
                    assert!(exchanged.iter().enumerate().all(|(at, &value)| value == from(at)));
                    assert_eq!(prefix.output().unwrap()[2], rank * (rank + 1) / 2);
                    barrier.wait().unwrap();
                }
            }
        });
        if is_member() {
            return;
        }
    }
}

#[test]
fn groups_that_overlap_do_not_disturb_each_other() {
    let name = "going::groups_that_overlap_do_not_disturb_each_other";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        let rank = world.rank() as u32;
        let evens = [0, 2];
        let first = [2, 1, 0];
        let a = evens.contains(&rank).then(|| world_of(job, 7, &evens));
        let b = first.contains(&rank).then(|| world_of(job, 8, &first));
        for round in 0..200u64 {
            let (mut in_a, mut in_b, mut in_all) = ([round], [round + u64::from(rank)], [1u64]);
            world
                .scope(|all| {
                    let total = all.all_reduce_in_place(&mut in_all, Sum)?;
                    if let Some(a) = &a {
                        a.all_reduce_in_place(&mut in_a, Sum)?;
                    }
                    if let Some(b) = &b {
                        b.scope(|scope| scope.broadcast(&mut in_b, 0)?.wait())?;
                    }
                    total.wait()
                })
                .unwrap();
            assert_eq!(in_all, [4]);
            assert_eq!(in_a[0], if a.is_some() { 2 * round } else { round });
            // The root of `b` is the process of rank 2.
            assert_eq!(in_b[0], round + if b.is_some() { 2 } else { u64::from(rank) });
        }
    });
}

#[test]
fn threads_have_a_world_each() {
    const THREADS: u32 = 3;
    for n in [2, 3] {
        in_job(n, "going::threads_have_a_world_each", ThreadMode::Multiple, |job| {
            let ranks: Vec<u32> = (0..job.world().size() as u32).collect();
            std::thread::scope(|threads| {
                for thread in 0..THREADS {
                    let world = world_of(job, 20 + thread, &ranks);
                    threads.spawn(move || {
                        let size = world.size() as u64;
                        for round in 0..200u64 {
                            let length = [1usize, 500, 20_000][(round % 3) as usize];
                            let mut values = vec![round + u64::from(thread); length];
                            world.all_reduce_in_place(&mut values, Sum).unwrap();
                            let expected = size * (round + u64::from(thread));
                            assert!(values.iter().all(|&value| value == expected));
                            world.via(Knomial::BINOMIAL).barrier().unwrap();
                        }
                    });
                }
            });
        });
        if is_member() {
            return;
        }
    }
}

/// Long enough to go on after it was begun.
const LONG: usize = 1 << 17;

#[test]
fn a_thread_advances_what_nobody_waits_for() {
    let name = "going::a_thread_advances_what_nobody_waits_for";
    if !is_member() {
        (2..=3).for_each(|n| run_well(&mut job_of(n, name, &[])));
        return;
    }
    let job = Job::join_with(Options { progress: Progress::Thread, ..Options::default() }).unwrap();
    let world = job.world();
    let told = shared_file(&job, "going");
    for by_messages in [false, true] {
        let world = if by_messages { world.via(Flat) } else { world.clone() };
        beside_a_program_that_never_calls(&world, &told);
    }
    beside_calls(&world);
    job.leave().unwrap();
}

/// Rank 0 does not call before rank 1 has the result, which it has no part in giving by itself.
fn beside_a_program_that_never_calls(world: &World, told: &std::path::Path) {
    let (own, mut sums) = (vec![1u64; LONG], vec![0; LONG]);
    world
        .scope(|scope| {
            let request = scope.all_reduce_into(&own, &mut sums, Sum)?;
            while world.rank() == 0 && !told.exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            request.wait()
        })
        .unwrap();
    if world.rank() == 1 {
        std::fs::write(told, "over").unwrap();
    }
    assert!(sums.iter().all(|&sum| sum == world.size() as u64));
    world.barrier().unwrap();
    let _ = std::fs::remove_file(told);
    world.barrier().unwrap();
}

/// The thread and the callers take turns.
fn beside_calls(world: &World) {
    let size = world.size() as u64;
    for round in 0..200 {
        let (own, mut sums) = (vec![round; LONG / 16], vec![0; LONG / 16]);
        world
            .scope(|scope| {
                let request = scope.all_reduce_into(&own, &mut sums, Sum)?;
                for _ in 0..3 {
                    world.barrier()?;
                    assert_eq!(world.all_reduce(round, Sum)?, round * size);
                }
                request.wait()
            })
            .unwrap();
        assert!(sums.iter().all(|&sum| sum == round * size));
    }
}
