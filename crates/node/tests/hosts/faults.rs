//! Worlds over hosts agree, revoke, shrink and name those out of step, while members are killed.

use std::thread;
use std::time::Duration;

use landeck::{Error, ErrorKind, Job, Sum, Tag, World};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, seed};

use crate::job::{command, on_hosts};
use crate::support::agreeing::{Belief, arm, next_world};
use crate::support::{is_member, is_soak, kill_myself, launcher, text};

/// Processes on each host.
const EACH: usize = 3;
const BOTH: usize = 2 * EACH;
/// Jobs, with five kills each.
const RUNS: u64 = 8;
const RUNS_SOAK: u64 = 100;
/// The longest time of one job.
const RUN_MAX: Duration = Duration::from_secs(110);
/// Operations in which all meet, after which all have found out who is out of step.
const MEETINGS: u32 = 20;
/// Groups that one host has made before the other one makes any.
const AHEAD: usize = 10;

const SEED: &str = "LANDECK_TEST_SEED";
const DONE: &str = "survivor done";

#[test]
fn those_who_live_agree_across_hosts() {
    let test = "faults::those_who_live_agree_across_hosts";
    if is_member() {
        return agree_until_one_is_left();
    }
    let runs = if is_soak() { RUNS_SOAK } else { RUNS };
    let _watchdog = Watchdog::start(RUN_MAX * runs as u32);
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let (seed, mut sums) = (seed(), [0u64; 2]);
    for number in 0..runs {
        let seed = seed.wrapping_add(number << 32);
        let mut command = command(&hosts, EACH, test, &["--on-failure", "notify"]);
        let said = text(&command.env(SEED, seed.to_string()).output().unwrap());
        assert!(!said.contains("panicked"), "seed {seed}: {said}");
        let told = said.lines().find_map(|line| Some(line.split_once(DONE)?.1));
        let told = told.unwrap_or_else(|| panic!("seed {seed}: no survivor in {said}"));
        let counts = told.split_whitespace().map(|word| word.parse::<u64>().unwrap());
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [agreements, shrinks] = sums;
    assert!(shrinks >= runs && agreements >= shrinks, "{agreements} {shrinks}");
}

fn agree_until_one_is_left() {
    let job = Job::join().unwrap();
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let mut world = job.world();
    // Some may be killed while others are still in it.
    let _ = world.barrier();
    arm(world.rank(), BOTH, seed);
    let mut belief = Belief::default();
    for round in 0.. {
        if world.size() == 1 {
            break;
        }
        world = next_world(&job, world, round, &mut belief);
    }
    println!("{DONE} {} {}", belief.agreements, belief.shrinks);
    job.leave().unwrap();
}

#[test]
fn a_world_of_two_hosts_is_revoked_by_one_that_dies() {
    let test = "faults::a_world_of_two_hosts_is_revoked_by_one_that_dies";
    if is_member() {
        return agree_revoke_and_shrink();
    }
    let _watchdog = Watchdog::start(RUN_MAX);
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let ended = command(&hosts, EACH, test, &["--on-failure", "notify"]).output().unwrap();
    let said = text(&ended);
    assert_eq!(said.matches(DONE).count(), BOTH - 1, "{said}");
}

fn agree_revoke_and_shrink() {
    let job = Job::join().unwrap();
    let group = job.world().split(Some(0), 0).unwrap().unwrap();
    assert_eq!(group.clusters().unwrap().clusters(), [[0, 1, 2], [3, 4, 5]]);
    let smaller = revoked_by_one_that_dies(&job, &group);
    assert_eq!(smaller.size(), BOTH - 1);
    // The division by hosts stays in worlds of fewer.
    assert_eq!(smaller.clusters().unwrap().clusters(), [vec![0, 1], vec![2, 3, 4]]);
    assert_eq!(smaller.all_reduce(1u64, Sum).unwrap(), 5);
    // Those of one host have a board again.
    let here = smaller.split_by_host(0).unwrap();
    assert_eq!(here.agree(1 << here.rank() | 1).unwrap(), 1);
    smaller.barrier().unwrap();
    println!("{DONE}");
    job.leave().unwrap();
}

/// All wait for members that say nothing; rank 1 revokes, and dies.
fn revoked_by_one_that_dies(job: &Job, group: &World) -> World {
    let lost = match group.rank() {
        1 => {
            thread::sleep(Duration::from_millis(100));
            group.revoke().unwrap();
            job.drain().unwrap();
            kill_myself()
        }
        4 => group.barrier().unwrap_err(),
        rank => group.receive::<u8>((rank + 2) % BOTH, Tag(1)).unwrap_err(),
    };
    assert!(
        matches!(lost.kind, ErrorKind::Revoked { .. } | ErrorKind::PeerFailed { .. }),
        "{lost}"
    );
    while !matches!(group.barrier(), Err(Error { kind: ErrorKind::Revoked { .. }, .. })) {
        thread::sleep(Duration::from_millis(1));
    }
    let mut smaller = group.shrink().unwrap();
    // Some agree before they know of the death.
    while smaller.size() == BOTH {
        smaller = smaller.shrink().unwrap();
    }
    smaller
}

/// While all make a group together, the hosts make groups of their own. If hosts counted groups each on its own, one of
/// these would get the context of the common one.
#[test]
fn groups_of_a_host_and_across_hosts_are_told_apart() {
    on_hosts("faults::groups_of_a_host_and_across_hosts_are_told_apart", |job| {
        let all = job.world();
        let own = all.split_by_host(0).unwrap();
        let make = || own.split(Some(0), 0).unwrap().unwrap();
        if all.rank() == own.rank() {
            (0..AHEAD).for_each(|_| drop(make()));
        }
        let begun = all.start_duplicate().unwrap();
        let groups: Vec<World> = (0..4 * AHEAD).map(|_| make()).collect();
        let (next, last) =
            ((own.rank() + 1) % own.size(), (own.rank() + own.size() - 1) % own.size());
        for (number, group) in (0u64..).zip(&groups) {
            group.send(&[number], next, Tag(1)).unwrap();
        }
        let common = begun.finish().unwrap();
        let first = common.rank() - own.rank();
        common.send(&[u64::MAX], first + next, Tag(1)).unwrap();
        assert_eq!(common.receive::<u64>(first + last, Tag(1)).unwrap().0, u64::MAX);
        for (number, group) in (0u64..).zip(&groups) {
            assert_eq!(group.receive::<u64>(last, Tag(1)).unwrap().0, number);
        }
        assert_eq!(common.all_reduce(1u64, Sum).unwrap(), common.size() as u64);
    });
}

/// One member gives what nobody takes, on the one host or the other, while the others give something to it.
#[test]
fn a_member_out_of_step_is_named_across_hosts() {
    on_hosts("faults::a_member_out_of_step_is_named_across_hosts", |job| {
        for (before, odd) in [(0, 3), (3, 1), (9, 2)] {
            let world = job.world().split(Some(0), 0).unwrap().unwrap();
            let mut done = (0..before).try_for_each(|_| world.barrier());
            done = done.and_then(|()| match world.rank() == odd {
                true => world.gather(&[1u8], &mut [], 0),
                false => world.broadcast(&mut [1u8], 0),
            });
            for _ in 0..MEETINGS {
                done = done.and_then(|()| world.barrier());
            }
            let Err(Error {
                kind:
                    ref kind @ ErrorKind::Mismatch { rank, other, number, ref theirs, ref ours, .. },
                ..
            }) = done
            else {
                panic!("{done:?}")
            };
            assert!((rank == odd) != (other == odd) && number == before, "{done:?}");
            assert!(theirs != ours && format!("{theirs} {ours}").contains("gather"), "{done:?}");
            // Each of the two hosts has two ranks.
            for rank in [rank, other] {
                let named = format!("rank {rank} on n{} called ", rank / 2 + 1);
                assert!(kind.to_string().contains(&named), "{kind}");
            }
        }
        job.world().barrier().unwrap();
    });
}
