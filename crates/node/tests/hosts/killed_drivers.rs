//! The driver of a host is killed at a step of an operation over two hosts. Nobody hangs, all who fail learn who is gone,
//! and the others shrink and go on. Those who want one outcome for all agree on it.

use std::time::Duration;

use landeck::unstable::objects::crash_point;
use landeck::{Agreement, ErrorKind, Job, Result, Sum, World};
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
/// The kinds of operations below; each of them is blocking and started.
const KINDS: usize = 8;
pub(crate) const OPERATIONS: usize = 2 * KINDS;
/// More steps than any of them has.
const STEPS: usize = 14;

/// One operation of a few values. Whoever succeeds has the right ones.
pub(crate) fn operate(world: &World, operation: usize) -> Result<()> {
    let (rank, size) = (world.rank() as u64, world.size() as u64);
    let (is_started, kind) = (operation >= KINDS, operation % KINDS);
    let (own, row, mut all) = ([rank], vec![7u64; size as usize], vec![0u64; size as usize]);
    let mut one = [u64::from(kind != 1 || rank == 0)]; // the root's is broadcast
    if is_started {
        world.scope(|scope| {
            let request = match kind {
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
        })?;
    } else {
        match kind {
            0 => world.all_reduce_in_place(&mut one, Sum),
            1 => world.broadcast(&mut one, 0),
            2 => world.barrier(),
            3 => world.all_gather(&own, &mut all),
            4 => world.all_to_all(&row, &mut all),
            5 => world.reduce(&own, &mut one, Sum, 0),
            6 => world.gather(&own, &mut all, 0),
            _ => world.scan(&own, &mut one, Sum),
        }?;
    }
    let (is_root, ranks) = (rank == 0, (0..size).collect::<Vec<_>>());
    match kind {
        0 => assert_eq!(one, [size]),
        1 => assert_eq!(one, [1]),
        4 => assert_eq!(all, row),
        5 if is_root => assert_eq!(one, [ranks.iter().sum()]),
        3 => assert_eq!(all, ranks),
        6 if is_root => assert_eq!(all, ranks),
        7 => assert_eq!(one, [(0..=rank).sum()]),
        _ => {}
    }
    Ok(())
}

/// The operation and the step at which a victim dies.
fn fate(first: (usize, usize), round: usize) -> (usize, usize) {
    let (operation, step) = first;
    ((operation + round * 9) % OPERATIONS, (step + round * 3) % STEPS)
}

/// The operation and the step at which the first victim of a job dies.
fn first_fate() -> (usize, usize) {
    let first = std::env::var(FIRST).unwrap();
    let (operation, step) = first.split_once(' ').unwrap();
    (operation.parse().unwrap(), step.parse().unwrap())
}

/// The victim of a round dies in an operation; the others get its result.
fn operate_or_die(world: &World, is_victim: bool, (operation, step): (usize, usize)) -> Result<()> {
    check(world, 1); // there is a connection between all drivers
    // A slow member may still be in it when others have gone on, and revoke the world.
    let ready = world.barrier();
    if is_victim {
        crash_point::die_at_step(step as u64);
        let _ = operate(world, operation);
        kill_myself(); // it has fewer steps
    }
    ready.and_then(|()| operate(world, operation))
}

fn endure() {
    let job = Job::join().unwrap();
    let first = first_fate();
    let (own, mut world) = (job.world().rank(), job.world().duplicate().unwrap());
    for (round, victim) in VICTIMS.into_iter().enumerate() {
        let (operation, step) = fate(first, round);
        // Some may have what they need; then the next operation fails, for it needs all.
        let outcome = operate_or_die(&world, own == victim, (operation, step));
        let outcome = outcome.and_then(|()| world.barrier());
        let error = outcome.unwrap_err();
        let is_expected =
            matches!(error.kind, ErrorKind::PeerFailed { .. } | ErrorKind::Revoked { .. });
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
    run_jobs(test, &[(0, 1), (8, 2)]);
}

/// Runs jobs in which five members are killed, and returns what the survivors have said. In soak each step of each
/// operation is the first.
fn run_jobs(test: &str, short: &[(usize, usize)]) -> Vec<String> {
    let _watchdog = Watchdog::start(Duration::from_secs(if is_soak() { 3_600 } else { 300 }));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return Vec::new() };
    let all = (0..OPERATIONS).flat_map(|operation| (0..STEPS).map(move |step| (operation, step)));
    let firsts: Vec<_> = if is_soak() { all.collect() } else { short.to_vec() };
    let mut told = Vec::new();
    for (operation, step) in firsts {
        let mut command = command(&hosts, EACH, test, &["--on-failure", "notify"]);
        let ended = command.env(FIRST, format!("{operation} {step}")).output().unwrap();
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(137), "{operation} {step}: {said}");
        assert!(!said.contains("panicked"), "{operation} {step}: {said}");
        let done: Vec<String> =
            said.lines().filter(|line| line.contains(DONE)).map(str::to_owned).collect();
        assert_eq!(done.len(), 2 * EACH - VICTIMS.len(), "{operation} {step}: {said}");
        told.extend(done);
    }
    told
}

/// The others agree on the outcome of the operation.
fn agree_and_endure() {
    let job = Job::join().unwrap();
    let first = first_fate();
    let (own, mut world) = (job.world().rank(), job.world().duplicate().unwrap());
    let (mut mixed, mut whole) = (0, 0);
    for (round, victim) in VICTIMS.into_iter().enumerate() {
        let (operation, step) = fate(first, round);
        let done = operate_or_die(&world, own == victim, (operation, step));
        if done.is_err() {
            world.revoke().unwrap(); // so that nobody stays in it
        }
        let Agreement { flags, gone, .. } =
            world.agree_on_failures(u32::from(done.is_ok())).unwrap();
        if flags == 1 {
            whole += 1;
            assert!(world.barrier().is_err(), "{operation}, step {step}: it needs the dead");
            world.revoke().unwrap();
        }
        world = world.shrink().unwrap();
        assert_eq!(world.size(), 2 * EACH - 1 - round, "{operation}, step {step}");
        let gone = gone.iter().fold(0, |all, rank| all | 1u64 << rank);
        let mut all = vec![0; 3 * world.size()];
        world.all_gather(&[u64::from(done.is_ok()), flags.into(), gone], &mut all).unwrap();
        let mut members = all.chunks(3);
        assert!(members.clone().all(|one| one[1..] == all[1..3]), "{operation} {step}: {all:?}");
        assert_eq!(flags == 1, members.clone().all(|one| one[0] == 1), "{operation} {step}");
        mixed += u32::from(members.any(|one| one[0] != all[0]));
    }
    check(&world, 20);
    println!("{DONE}: {mixed} mixed, {whole} whole");
    job.leave().unwrap();
}

/// The outcome of an operation differs between members where one dies in it: a member that has all it needs succeeds.
/// By `agree` all have one outcome.
#[test]
fn those_who_agree_on_an_outcome_have_the_same_one() {
    if is_member() {
        return agree_and_endure();
    }
    let test = "killed_drivers::those_who_agree_on_an_outcome_have_the_same_one";
    let told = run_jobs(test, &[(3, 2), (9, 1)]);
    println!("{}", told.join("\n"));
    let is_mixed = told.iter().any(|line| !line.contains(" 0 mixed"));
    assert!(!is_soak() || is_mixed, "it was the same without an agreement: {told:?}");
}
