//! The frames and bytes of collective operations over four hosts, as their connections count them.

use std::ops::RangeInclusive;
use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::collectives::{Operation, Preset, Way};
use landeck::{Job, Sum, World};
use landeck_channel::Traffic;
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, jobs};

use crate::support::{is_member, job_by, launcher, text};

/// The hosts, and the processes on each.
const HOSTS: u64 = 4;
const EACH: u64 = 2;
const SIZE: usize = (HOSTS * EACH) as usize;
/// The messages of a butterfly between so many hosts.
const BUTTERFLY: u64 = HOSTS * 2;
/// Operations that are counted together. They hide the frames of a barrier.
const ROUNDS: u64 = 16;
/// The attempts to stay within a bound. Members that wait for long say so, and such words only add to a count.
const ATTEMPTS: usize = 20;
const LONG: usize = 1 << 20;
/// The least blocks that are no short data in a group of this size.
const NOT_SHORT: usize = (64 << 10) / SIZE + 8;

/// Checks the frames that all members together send in one operation.
fn frames(job: &Job, about: &str, bound: RangeInclusive<u64>, operate: impl FnMut(&World)) {
    traffic(job, about, (ROUNDS, bound), |traffic| traffic.frames, operate);
}

/// Checks the bytes that all members together send in one operation.
fn bytes(
    job: &Job,
    about: &str,
    (rounds, bound): (u64, RangeInclusive<u64>),
    operate: impl FnMut(&World),
) {
    traffic(job, about, (rounds, bound), |traffic| traffic.bytes, operate);
}

fn traffic(
    job: &Job,
    about: &str,
    (rounds, bound): (u64, RangeInclusive<u64>),
    figure: impl Fn(Traffic) -> u64,
    mut operate: impl FnMut(&World),
) {
    let world = job.world();
    operate(&world); // connections are made
    let mut least = u64::MAX;
    for _ in 0..ATTEMPTS {
        world.barrier().unwrap();
        let before = job.traffic().unwrap();
        (0..rounds).for_each(|_| operate(&world));
        // Whoever has passed it has all data: nothing waits to be sent.
        world.barrier().unwrap();
        let own = figure(job.traffic().unwrap().since(before));
        least = least.min(world.all_reduce(own, Sum).unwrap() / rounds);
        if least <= *bound.end() {
            break;
        }
    }
    assert!(bound.contains(&least), "{about}: {least}, not {bound:?}");
}

/// Some bytes, and what their headers, seals and words about positions may add.
fn little_more_than(bytes: usize) -> RangeInclusive<u64> {
    let bytes = bytes as u64;
    bytes..=bytes + bytes / 50
}

/// A way over hosts, by its name.
fn way(name: &str, operation: Operation) -> Way {
    format!("hosts:{name}").parse::<Preset>().unwrap().way(operation)
}

fn broadcast(job: &Job, root: usize) {
    let once = HOSTS - 1;
    let about = format!("broadcast from {root}");
    let mut word = [0u64];
    frames(job, &about, once..=once, |world| {
        word = [if world.rank() == root { 7 } else { 0 }];
        world.broadcast(&mut word, root).unwrap();
        assert_eq!(word, [7]);
    });
    let mut data = vec![0u8; LONG];
    let bound = (1, little_more_than(once as usize * LONG));
    bytes(job, &about, bound.clone(), |world| world.broadcast(&mut data, root).unwrap());
    for name in ["flat", "ring", "knomial", "butterfly+split", "ring+split"] {
        let way = way(name, Operation::Broadcast);
        bytes(job, &format!("{about} by {name}"), bound.clone(), |world| {
            world.via(way.clone()).broadcast(&mut data, root).unwrap();
        });
    }
    started(job, root);
}

/// A started broadcast of short data takes a copy to each member of another host, and one of other data a copy to each host.
fn started(job: &Job, root: usize) {
    let about = format!("started broadcast from {root}");
    let (mut word, far) = ([0u64], SIZE as u64 - EACH);
    frames(job, &about, far..=far, |world| {
        world.scope(|scope| scope.broadcast(&mut word, root)?.wait().map(drop)).unwrap();
    });
    let mut data = vec![0u8; NOT_SHORT];
    let bound = little_more_than((HOSTS - 1) as usize * NOT_SHORT);
    bytes(job, &about, (ROUNDS, bound), |world| {
        world.scope(|scope| scope.broadcast(&mut data, root)?.wait().map(drop)).unwrap();
    });
}

fn others(job: &Job) {
    frames(job, "barrier", HOSTS - 1..=BUTTERFLY, |world| world.barrier().unwrap());
    frames(job, "allreduce", HOSTS - 1..=BUTTERFLY, |world| {
        assert_eq!(world.all_reduce(1u64, Sum).unwrap(), SIZE as u64);
    });
    let mut sums = vec![0u64; LONG / 8];
    let most = *little_more_than(BUTTERFLY as usize * LONG).end();
    for name in ["butterfly", "butterfly+split"] {
        let way = way(name, Operation::AllReduce);
        bytes(job, &format!("allreduce by {name}"), (1, LONG as u64..=most), |world| {
            world.via(way.clone()).all_reduce_in_place(&mut sums, Sum).unwrap();
        });
    }
    let (block, given) = (vec![1u8; LONG / SIZE], vec![1u8; LONG]);
    let mut all = vec![0u8; LONG];
    let once = little_more_than((HOSTS - 1) as usize * LONG);
    bytes(job, "allgather", (1, once), |world| world.all_gather(&block, &mut all).unwrap());
    let each = SIZE as u64 * (HOSTS - 1);
    let boards = way("flat", Operation::AllToAll);
    frames(job, "alltoall over boards", each..=each, |world| {
        world.via(boards.clone()).all_to_all(&[1u8; SIZE], &mut [0; SIZE]).unwrap();
    });
    // Another way may be chosen where hosts share processors, but none with more frames.
    frames(job, "alltoall", 1..=each, |world| {
        world.all_to_all(&[1u8; SIZE], &mut [0; SIZE]).unwrap();
    });
    let elsewhere = little_more_than(SIZE * (SIZE - EACH as usize) * (LONG / SIZE));
    bytes(job, "alltoall", (1, elsewhere), |world| world.all_to_all(&given, &mut all).unwrap());
}

#[test]
fn no_byte_goes_twice_to_a_host_and_frames_stay_within_the_bounds_of_the_plan() {
    if is_member() {
        let job = Job::join().unwrap();
        // The first member of its host, and another one.
        for root in [0, 5] {
            broadcast(&job, root);
        }
        others(&job);
        return job.leave().unwrap();
    }
    let test = "bounds::no_byte_goes_twice_to_a_host_and_frames_stay_within_the_bounds_of_the_plan";
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(HOSTS as usize)) else { return };
    for options in [&["--timeout", "140"][..], &["--timeout", "140", "--map-by", "node"]] {
        let run = jobs::run_on(&hosts, launcher(), SIZE);
        let ended = job_by(run, SIZE, test, options).output().unwrap();
        assert!(ended.status.success(), "{options:?}: {}", text(&ended));
    }
}
