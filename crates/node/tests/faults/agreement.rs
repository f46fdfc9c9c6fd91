//! kill -9 of all but one, one after the other at any moment, while they agree, make groups and go
//! on in smaller ones: those that live hold the same for true all the time.

use std::thread;
use std::time::{Duration, Instant};

use landeck::{Any, Error, ErrorKind, Job, Tag};
use landeck_testing::{Trail, Watchdog, seed};

use crate::support::agreeing::{Belief, arm, next_world};
use crate::support::{
    GONE_WITHIN, NOTICED_WITHIN, RUN_MAX, is_member, is_soak, job_of, kill_myself, run_each,
    seed_of_job, seeded_job_of, text,
};

/// Five kills each.
const JOBS: u64 = 40;
const JOBS_SOAK: u64 = 400;
const PROCESSES: usize = 6;
/// On the average.
const JOB_MAX: Duration = Duration::from_secs(10);

const DONE: &str = "survivor done";

const TEST: &str = "agreement::those_who_live_agree_whoever_dies_whenever";

#[test]
fn those_who_live_agree_whoever_dies_whenever() {
    if is_member() {
        return take_part();
    }
    let jobs = if is_soak() { JOBS_SOAK } else { JOBS };
    let _watchdog = Watchdog::start(JOB_MAX * jobs as u32 + RUN_MAX);
    let seed = seed();
    let began = Instant::now();
    let told = run_each(jobs, |number| run(seed.wrapping_add(number << 32)));
    let [agreements, shrinks] = [0, 1].map(|what| told.iter().map(|job| job[what]).sum::<u64>());
    let kills = jobs * (PROCESSES as u64 - 1);
    println!("{kills} kills in {:?}: {agreements} agreements, {shrinks} shrinks", began.elapsed());
    assert!(shrinks >= jobs && agreements >= shrinks);
}

/// One job; how often its survivor has agreed and shrunk.
fn run(seed: u64) -> [u64; 2] {
    let trail = Trail::new();
    let ended = trail.run(&mut seeded_job_of(PROCESSES, TEST, seed), RUN_MAX);
    let output = text(&ended);
    assert_eq!(ended.status.code(), Some(137), "seed {seed}: {output}");
    assert!(!output.contains("panicked"), "seed {seed}: {output}");
    trail.assert_gone(GONE_WITHIN);
    let told = output.lines().find_map(|line| Some(line.split_once(DONE)?.1));
    let told = told.unwrap_or_else(|| panic!("seed {seed}: no survivor in {output}"));
    let mut counts = told.split_whitespace().map(|word| word.parse().unwrap());
    [counts.next().unwrap(), counts.next().unwrap()]
}

fn take_part() {
    let job = Job::join().unwrap();
    let seed = seed_of_job();
    let mut world = job.world();
    world.barrier().unwrap();
    arm(job.slot() as usize, PROCESSES, seed);
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

/// A member that sleeps in a revoked world learns of it, even if the revoker is dead by then.
#[test]
fn a_revoker_that_dies_at_once_has_revoked() {
    if !is_member() {
        let _watchdog = Watchdog::start(2 * RUN_MAX);
        let trail = Trail::new();
        let name = "agreement::a_revoker_that_dies_at_once_has_revoked";
        let ended = trail.run(&mut job_of(4, name, &["--on-failure", "notify"]), RUN_MAX);
        assert_eq!(ended.status.code(), Some(137), "{}", text(&ended));
        assert_eq!(text(&ended).matches(DONE).count(), 3, "{}", text(&ended));
        return trail.assert_gone(GONE_WITHIN);
    }
    let job = Job::join().unwrap();
    let first = job.world();
    // The one who dies is no member of what the others wait for, but for the group itself.
    let group = first.duplicate().unwrap();
    first.barrier().unwrap();
    let began = Instant::now();
    let wait = Duration::from_millis(200);
    let error = match group.rank() {
        0 => {
            thread::sleep(wait);
            group.revoke().unwrap();
            kill_myself()
        }
        1 => group.receive::<u8>(2, Tag(1)).unwrap_err(),
        2 => group.receive::<u8>(1, Tag(1)).unwrap_err(),
        _ => group.receive_vec::<u8>(1, Any).unwrap_err(),
    };
    assert!(matches!(error.kind, ErrorKind::Revoked { .. }), "{error}");
    assert!(began.elapsed() < NOTICED_WITHIN);
    while !matches!(
        first.send(&[0u8], 0, Tag(2)),
        Err(Error { kind: ErrorKind::PeerFailed { .. }, .. })
    ) {
        thread::sleep(Duration::from_millis(1));
    }
    let smaller = group.shrink().unwrap();
    assert_eq!((smaller.size(), smaller.rank() + 1), (3, group.rank()));
    // Nobody has acknowledged the death; then all have.
    let agreement = group.agree_on_failures(5).unwrap();
    assert_eq!((agreement.flags, &agreement.gone[..]), (5, &[0][..]));
    assert!(!agreement.are_acknowledged);
    job.acknowledge_failures().unwrap();
    assert!(group.agree_on_failures(5).unwrap().are_acknowledged);
    smaller.barrier().unwrap();
    println!("{DONE}");
    job.leave().unwrap();
}
