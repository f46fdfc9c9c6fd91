//! Processes leave while others have not received everything, and abort.

use std::thread;
use std::time::{Duration, Instant};

use landeck::{ErrorKind, Job, Tag};

use crate::job::{EACH, RANKS, on_hosts, run};
use crate::support::{is_member, kill_myself, text};

#[test]
fn everything_arrives_from_a_process_that_has_left() {
    on_hosts("leaving::everything_arrives_from_a_process_that_has_left", |job| {
        const SMALL: u32 = 500;
        let world = job.world();
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        if rank < EACH {
            for number in 0..SMALL {
                world.send(&[number], far, Tag(1)).unwrap();
            }
            return world.send(&vec![rank as u32; 300_000], far, Tag(2)).unwrap();
        }
        let long = world.receive_vec::<u32>(far, Tag(2)).unwrap().0;
        assert!(long.len() == 300_000 && long.iter().all(|&value| value == far as u32));
        let gone = world.receive::<u8>(far, Tag(3)).unwrap_err();
        let ErrorKind::PeerFailed { rank, who, how } = gone.kind else { panic!("{gone}") };
        assert_eq!((rank, &how[..]), (Some(far), "has left the job"));
        assert!(who.contains(" on n1"), "{who}");
        for number in 0..SMALL {
            assert_eq!(world.receive::<u32>(far, Tag(1)).unwrap().0, number);
        }
        let gone = world.send(&[1u8], far, Tag(1)).unwrap_err();
        assert!(matches!(gone.kind, ErrorKind::PeerFailed { .. }), "{gone}");
    });
}

/// A process that leaves and runs on holds nobody up: all members of an operation that needs it are told, on both hosts,
/// and of that one. What it sent before is received all the same.
#[test]
fn all_are_told_at_once_of_a_process_that_leaves_and_runs_on() {
    const STAYS: Duration = Duration::from_millis(3_000);
    const TOLD: Duration = Duration::from_millis(2_000);
    let test = "leaving::all_are_told_at_once_of_a_process_that_leaves_and_runs_on";
    if is_member() {
        let job = Job::join().unwrap();
        let world = job.world();
        world.barrier().unwrap();
        if world.rank() == 1 {
            thread::sleep(Duration::from_millis(100));
            world.send(&[7u8], RANKS - 1, Tag(1)).unwrap();
            job.leave().unwrap();
            return thread::sleep(STAYS);
        }
        let begun = Instant::now();
        let gone = world.barrier().unwrap_err();
        let late = begun.elapsed();
        assert!(late < TOLD, "{late:?}: {gone}");
        let has_left = |kind: &ErrorKind| match kind {
            ErrorKind::PeerFailed { rank: Some(1), how, .. } => how == "has left the job",
            _ => false,
        };
        assert!(has_left(&gone.kind), "{gone}");
        if world.rank() == RANKS - 1 {
            assert_eq!(world.receive::<u8>(1, Tag(1)).unwrap().0, 7);
        }
        let gone = world.receive::<u8>(1, Tag(2)).unwrap_err();
        assert!(has_left(&gone.kind), "{gone}");
        let gone = world.barrier().unwrap_err();
        assert!(has_left(&gone.kind), "the group is over: {gone}");
        let late = begun.elapsed();
        assert!(late < TOLD, "{late:?}");
        // Whoever waits for this one, and not for the one that has left, is not told by its end.
        thread::sleep(TOLD.saturating_sub(late));
        return job.leave().unwrap();
    }
    if let Some(ended) = run(test, &[]) {
        assert!(ended.status.success(), "{}", text(&ended));
    }
}

#[test]
fn a_process_leaves_that_has_only_sent() {
    on_hosts("leaving::a_process_leaves_that_has_only_sent", |job| {
        let world = job.world();
        if world.rank() != 0 {
            return world.send(&[world.rank()], 0, Tag(1)).unwrap();
        }
        thread::sleep(Duration::from_millis(300));
        let sum: usize =
            (1..RANKS).map(|from| world.receive::<usize>(from, Tag(1)).unwrap().0).sum();
        assert_eq!(sum, 6);
    });
}

#[test]
fn an_abort_ends_all_hosts() {
    let test = "leaving::an_abort_ends_all_hosts";
    if is_member() {
        let job = Job::join().unwrap();
        let world = job.world();
        // Rank 3 may be through the barrier, and end the job, before all others are.
        let outcome = world.barrier();
        if world.rank() == 3 {
            outcome.unwrap();
            job.abort(41, "enough");
        }
        let ended = outcome.and_then(|()| world.receive::<u8>(3, Tag(1))).unwrap_err();
        assert!(matches!(ended.kind, ErrorKind::Ended | ErrorKind::PeerFailed { .. }), "{ended}");
        thread::sleep(Duration::from_secs(30)); // the guardian is faster
        return;
    }
    let Some(ended) = run(test, &[]) else { return };
    assert_eq!(ended.status.code(), Some(41), "{}", text(&ended));
    assert!(!text(&ended).contains("panicked"), "{}", text(&ended));
}

#[test]
fn connections_of_an_ending_job_are_no_strangers() {
    let test = "leaving::connections_of_an_ending_job_are_no_strangers";
    if is_member() {
        let job = Job::join().unwrap();
        let world = job.world();
        // Lanes are asked for in all directions, and one process ends the job before they are there.
        let far = (0..RANKS).filter(|rank| rank / EACH != world.rank() / EACH);
        for to in far {
            let _ = world.try_send(&[1u8], to, Tag(1));
        }
        if world.rank() == 3 {
            match std::env::var("LANDECK_TEST_END").as_deref() {
                Ok("exit") => std::process::exit(42),
                Ok("kill") => kill_myself(),
                _ => job.abort(41, "enough"),
            }
        }
        let _ = world.receive::<u8>(3, Tag(2));
        thread::sleep(Duration::from_secs(30)); // the guardian is faster
        return;
    }
    for (end, code) in [("abort", 41), ("exit", 42), ("kill", 137), ("abort", 41)] {
        let variable = format!("LANDECK_TEST_END={end}");
        // The run itself looks for words about strangers.
        let Some(ended) = run(test, &["-x", &variable]) else { return };
        assert_eq!(ended.status.code(), Some(code), "{}", text(&ended));
    }
}
