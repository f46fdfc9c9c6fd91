//! The driver of a host is killed at a step of an operation over two hosts. Nobody hangs, all who fail learn who is gone,
//! and the others shrink and go on.

use std::time::Duration;

use landeck::unstable::objects::crash_point;
use landeck::{ErrorKind, Job, Result, Sum, World};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};

use crate::across::check;
use crate::job::command;
use crate::support::{is_member, is_soak, kill_myself, launcher, text};

const DONE: &str = "survivor done";
/// The environment variable that names the first operation and the first step.
const FIRST: &str = "LANDECK_TEST_FIRST";
/// Processes on each host.
const EACH: usize = 4;
/// Those who are killed, by their ranks at first, one after the other: always the first of a host.
const VICTIMS: [usize; 5] = [EACH, 0, EACH + 1, 1, EACH + 2];
/// The operations below, blocking and started, and more steps than any of them has.
const OPERATIONS: usize = 16;
const STEPS: usize = 14;

/// One operation of a few values.
fn operate(world: &World, operation: usize) -> Result<()> {
    let (own, size) = ([world.rank() as u64], world.size());
    let (row, mut all, mut one) = (vec![7u64; size], vec![0u64; size], [1u64]);
    let is_started = operation >= OPERATIONS / 2;
    if !is_started {
        return match operation {
            0 => world.all_reduce_in_place(&mut one, Sum),
            1 => world.broadcast(&mut one, 0),
            2 => world.barrier(),
            3 => world.all_gather(&own, &mut all),
            4 => world.all_to_all(&row, &mut all),
            5 => world.reduce(&own, &mut one, Sum, 0),
            6 => world.gather(&own, &mut all, 0),
            _ => world.scan(&own, &mut one, Sum),
        };
    }
    world.scope(|scope| {
        let request = match operation - OPERATIONS / 2 {
            0 => scope.all_reduce_in_place(&mut one, Sum),
            1 => scope.broadcast(&mut one, 0),
            2 => scope.barrier(),
            3 => scope.all_gather(&own, &mut all),
            4 => scope.all_to_all(&row, &mut all),
            5 => scope.reduce(&own, &mut one, Sum, 0),
            6 => scope.gather(&own, &mut all, 0),
            _ => scope.scan(&own, &mut one, Sum),
        };
        request?.wait().map(drop)
    })
}

/// The operation and the step at which a victim dies.
fn fate(first: (usize, usize), round: usize) -> (usize, usize) {
    let (operation, step) = first;
    ((operation + round * 9) % OPERATIONS, (step + round * 3) % STEPS)
}

fn endure() {
    let job = Job::join().unwrap();
    let first = std::env::var(FIRST).unwrap();
    let (operation, step) = first.split_once(' ').unwrap();
    let first = (operation.parse().unwrap(), step.parse().unwrap());
    let (own, mut world) = (job.world().rank(), job.world().duplicate().unwrap());
    for (round, victim) in VICTIMS.into_iter().enumerate() {
        let (operation, step) = fate(first, round);
        check(&world, 1); // there is a connection between all drivers
        // A slow member may still be in it when others have gone on, and revoke the world.
        let ready = world.barrier();
        if own == victim {
            crash_point::die_at_step(step as u64);
            let _ = operate(&world, operation);
            kill_myself(); // it has fewer steps
        }
        // Some may have what they need; then the next operation fails, for it needs all.
        let outcome =
            ready.and_then(|()| operate(&world, operation)).and_then(|()| world.barrier());
        let error = outcome.unwrap_err();
        let is_expected = matches!(error.kind, ErrorKind::PeerFailed { .. } | ErrorKind::Revoked);
        assert!(is_expected, "{operation}, step {step}: {error}");
        world.revoke().unwrap();
        world = world.shrink().unwrap();
        assert_eq!(world.size(), 2 * EACH - 1 - round, "{operation}, step {step}");
    }
    check(&world, 20);
    println!("{DONE}");
    job.leave().unwrap();
}

#[test]
fn whoever_drives_is_killed_at_a_step_and_the_others_go_on() {
    if is_member() {
        return endure();
    }
    let test = "killed_drivers::whoever_drives_is_killed_at_a_step_and_the_others_go_on";
    let _watchdog = Watchdog::start(Duration::from_secs(if is_soak() { 3_600 } else { 300 }));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let all = (0..OPERATIONS).flat_map(|operation| (0..STEPS).map(move |step| (operation, step)));
    let firsts: Vec<_> = if is_soak() { all.collect() } else { vec![(0, 1), (8, 2)] };
    for (operation, step) in firsts {
        let mut command = command(&hosts, EACH, test, &["--on-failure", "notify"]);
        let ended = command.env(FIRST, format!("{operation} {step}")).output().unwrap();
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(137), "{operation} {step}: {said}");
        assert!(!said.contains("panicked"), "{operation} {step}: {said}");
        let survivors = 2 * EACH - VICTIMS.len();
        assert_eq!(said.matches(DONE).count(), survivors, "{operation} {step}: {said}");
    }
}
