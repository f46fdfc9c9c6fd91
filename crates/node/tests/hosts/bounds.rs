//! The frames and bytes of collective operations over four hosts, as their connections count them.

use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::collectives::{Operation, Preset, Way};
use landeck::{Job, Sum, World};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, jobs};

use crate::support::{is_member, job_by, launcher, text};

/// The hosts, and the processes on each.
const HOSTS: u64 = 4;
const EACH: u64 = 2;
const SIZE: usize = (HOSTS * EACH) as usize;
/// The messages of a butterfly between so many hosts.
const BUTTERFLY: u64 = HOSTS * 2;
/// Operations that are counted together. They hide the frames of a barrier and of some members that say that they wait for
/// long.
const ROUNDS: u64 = 16;
/// The attempts, of which the least counts: such words only add to it.
const ATTEMPTS: usize = 2;
const LONG: usize = 1 << 20;
/// The least blocks that are no short data in a group of this size.
const NOT_SHORT: usize = (64 << 10) / SIZE + 8;

/// The frames and the bytes that all members together send in one operation.
fn traffic(job: &Job, rounds: u64, mut operate: impl FnMut(&World)) -> (u64, u64) {
    let world = job.world();
    operate(&world); // connections are made
    let mut least = [u64::MAX; 2];
    for _ in 0..ATTEMPTS {
        world.barrier().unwrap();
        let before = job.traffic().unwrap();
        (0..rounds).for_each(|_| operate(&world));
        // Whoever has passed it has all data: nothing waits to be sent.
        world.barrier().unwrap();
        let own = job.traffic().unwrap().since(before);
        let mut sums = [own.frames, own.bytes];
        world.all_reduce_in_place(&mut sums, Sum).unwrap();
        least = [least[0].min(sums[0] / rounds), least[1].min(sums[1] / rounds)];
    }
    (least[0], least[1])
}

/// Some bytes, and what their headers, seals and words about positions may add.
fn little_more_than(bytes: usize) -> std::ops::RangeInclusive<u64> {
    let bytes = bytes as u64;
    bytes..=bytes + bytes / 50
}

/// A way over hosts, by its name.
fn way(name: &str, operation: Operation) -> Way {
    format!("hosts:{name}").parse::<Preset>().unwrap().way(operation)
}

fn broadcast(job: &Job, root: usize) {
    let once = HOSTS - 1;
    let mut word = [0u64];
    let (frames, _) = traffic(job, ROUNDS, |world| {
        word = [if world.rank() == root { 7 } else { 0 }];
        world.broadcast(&mut word, root).unwrap();
        assert_eq!(word, [7]);
    });
    assert_eq!(frames, once, "broadcast from {root}");
    let mut data = vec![0u8; LONG];
    let expected = little_more_than(once as usize * LONG);
    let (_, bytes) = traffic(job, 1, |world| world.broadcast(&mut data, root).unwrap());
    assert!(expected.contains(&bytes), "from {root}: {bytes}");
    for name in ["flat", "ring", "knomial", "butterfly+split", "ring+split"] {
        let way = way(name, Operation::Broadcast);
        let (_, bytes) = traffic(job, 1, |world| {
            world.via(way.clone()).broadcast(&mut data, root).unwrap();
        });
        assert!(expected.contains(&bytes), "{name} from {root}: {bytes}");
    }
    started(job, root);
}

/// A started broadcast of short data takes a copy to each member of another host, and one of other data a copy to each host.
fn started(job: &Job, root: usize) {
    let mut word = [0u64];
    let (frames, _) = traffic(job, ROUNDS, |world| {
        world.scope(|scope| scope.broadcast(&mut word, root)?.wait().map(drop)).unwrap();
    });
    assert_eq!(frames, SIZE as u64 - EACH, "started broadcast from {root}");
    let mut data = vec![0u8; NOT_SHORT];
    let (_, bytes) = traffic(job, ROUNDS, |world| {
        world.scope(|scope| scope.broadcast(&mut data, root)?.wait().map(drop)).unwrap();
    });
    let once = (HOSTS - 1) as usize * NOT_SHORT;
    assert!(little_more_than(once).contains(&bytes), "started broadcast from {root}: {bytes}");
}

fn others(job: &Job) {
    let (frames, _) = traffic(job, ROUNDS, |world| world.barrier().unwrap());
    assert!((HOSTS - 1..=BUTTERFLY).contains(&frames), "barrier: {frames}");
    let (frames, _) = traffic(job, ROUNDS, |world| {
        assert_eq!(world.all_reduce(1u64, Sum).unwrap(), SIZE as u64);
    });
    assert!((HOSTS - 1..=BUTTERFLY).contains(&frames), "allreduce: {frames}");
    let mut sums = vec![0u64; LONG / 8];
    let most = *little_more_than(BUTTERFLY as usize * LONG).end();
    for name in ["butterfly", "butterfly+split"] {
        let way = way(name, Operation::AllReduce);
        let (_, bytes) = traffic(job, 1, |world| {
            world.via(way.clone()).all_reduce_in_place(&mut sums, Sum).unwrap();
        });
        assert!(bytes <= most, "allreduce by {name}: {bytes} of at most {most}");
    }
    let block = vec![1u8; LONG / SIZE];
    let mut all = vec![0u8; LONG];
    let (_, bytes) = traffic(job, 1, |world| world.all_gather(&block, &mut all).unwrap());
    assert!(little_more_than((HOSTS - 1) as usize * LONG).contains(&bytes), "allgather: {bytes}");
    let (frames, _) =
        traffic(job, ROUNDS, |world| world.all_to_all(&[1u8; SIZE], &mut [0; SIZE]).unwrap());
    assert_eq!(frames, SIZE as u64 * (HOSTS - 1), "alltoall");
    let given = vec![1u8; LONG];
    let (_, bytes) = traffic(job, 1, |world| world.all_to_all(&given, &mut all).unwrap());
    let elsewhere = SIZE * (SIZE - EACH as usize) * (LONG / SIZE);
    assert!(little_more_than(elsewhere).contains(&bytes), "alltoall: {bytes}");
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
