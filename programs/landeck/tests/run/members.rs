//! What the launcher sees of processes that have joined the job. A test runs itself again as the
//! program: under the launcher it is a member.

use super::*;
use landeck::{Job, Tag};

fn is_member() -> bool {
    std::env::var_os("LANDECK_SLOT").is_some()
}

/// Runs a test of this file as the program of a job of two.
fn run_members(test: &str, options: &[&str]) -> Ended {
    let program = std::env::current_exe().unwrap();
    let test = format!("members::{test}");
    let program = [program.to_str().unwrap(), &test, "--exact", "--nocapture", "--test-threads=1"];
    run(&[&["-n", "2"], options, &program].concat())
}

#[test]
fn the_report_says_what_the_dead_waited_for() {
    if !is_member() {
        let ended = run_members("the_report_says_what_the_dead_waited_for", &[]);
        assert_eq!(ended.code, Some(137));
        let line = "  It was in: receive from rank 1, tag 7, group world, since ";
        assert!(ended.err.contains("rank 0 of 2 (pid "), "{}", ended.err);
        assert!(ended.err.contains(line), "{}", ended.err);
        return;
    }
    let job = Job::join().unwrap();
    let world = job.world();
    if world.rank() == 0 {
        world.send(&[std::process::id()], 1, Tag(1)).unwrap();
        let _ = world.receive::<u32>(1, Tag(7));
    } else {
        let (pid, _) = world.receive::<u32>(0, Tag(1)).unwrap();
        while job.segment().wait_record(0).tag != Some(7) {
            std::thread::sleep(Duration::from_millis(1));
        }
        send(pid, rustix::process::Signal::KILL);
        let _ = world.receive::<u32>(0, Tag(1));
    }
}

#[test]
fn the_time_limit_says_who_waits_for_whom() {
    if !is_member() {
        let test = "the_time_limit_says_who_waits_for_whom";
        let ended = run_members(test, &["--timeout", "8", "--grace", "0.1"]);
        assert_eq!(ended.code, Some(124));
        for line in
            ["): receive from rank 1, tag 7, group world, since ", "): receive from any rank"]
        {
            assert!(ended.err.contains(line), "{}", ended.err);
        }
        return;
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let _ = match world.rank() {
        0 => world.receive::<u32>(1, Tag(7)),
        _ => world.receive::<u32>(landeck::Any, landeck::Any),
    };
}

#[test]
fn the_summary_counts_messages() {
    if !is_member() {
        let ended = run_members("the_summary_counts_messages", &["--summary"]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.err.contains(": 20 messages, 800 B, "), "{}", ended.err);
        return;
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let other = 1 - world.rank();
    for _ in 0..10 {
        world.send(&[1_u64; 5], other, Tag(0)).unwrap();
        let mut words = [0_u64; 5];
        world.receive_into(&mut words, other, Tag(0)).unwrap();
    }
    job.leave().unwrap();
}

#[test]
fn who_does_not_leave_has_failed() {
    if !is_member() {
        let ended = run_members("who_does_not_leave_has_failed", &[]);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains("exit code 0 but without leaving the job"), "{}", ended.err);
        return;
    }
    let _job = Job::join().unwrap();
    std::process::exit(0);
}
