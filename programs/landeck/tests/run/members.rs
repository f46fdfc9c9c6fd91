//! Tests of the launcher with processes that have joined the job. A test runs itself again as the program: under
//! the launcher it is a member.

use super::*;
use landeck::unstable::JobInternals;
use landeck::{Job, Tag};
use std::time::Instant;

fn is_member() -> bool {
    std::env::var_os("LANDECK_SLOT").is_some()
}

/// Runs a test of this file as the program of a job of two.
fn run_members(test: &str, options: &[&str]) -> Ended {
    run_below(&[], test, options)
}

/// Runs a test of this file as the program of a job of two, with a command before the program.
fn run_below(command: &[&str], test: &str, options: &[&str]) -> Ended {
    let program = std::env::current_exe().unwrap();
    let test = format!("members::{test}");
    let program = [program.to_str().unwrap(), &test, "--exact", "--nocapture", "--test-threads=1"];
    run(&[&["-n", "2"], options, command, &program].concat())
}

/// A shell that runs the program and goes on after it: for long, where that is rank 1.
const SHELL: [&str; 4] = ["sh", "-c", "\"$@\"; [ $RANK = 0 ] || exec sleep 100", "sh"];
/// Nothing that waits for a process may go on for longer after its death: the shell above it does.
const AT_ONCE: Duration = Duration::from_secs(50);

#[test]
fn the_report_says_what_the_dead_waited_for() {
    if !is_member() {
        let ended = run_members("the_report_says_what_the_dead_waited_for", &[]);
        assert_eq!(ended.code, Some(137));
        let line = "  It was in: receive from rank 1, tag 7, group world, for ";
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
        let lines =
            ["): receive from rank 1, tag 7, group world, for ", "): receive from any rank"];
        let verdict = |ended: &Ended| ended.err.lines().nth(1).unwrap_or_default().to_owned();
        // On a busy machine the processes may come later than the first limit, or be seen while they look whether there
        // is something to do.
        let ended = ["8", "60"].into_iter().find_map(|limit| {
            let ended = run_members(test, &["--timeout", limit, "--grace", "0.1"]);
            assert_eq!(ended.code, Some(124));
            let is_said = lines.iter().all(|line| ended.err.contains(line));
            let is_stuck = verdict(&ended).starts_with("Stuck for ");
            (limit == "60" || is_said && is_stuck).then_some(ended)
        });
        let ended = ended.unwrap();
        for line in lines {
            assert!(ended.err.contains(line), "{}", ended.err);
        }
        assert!(verdict(&ended).starts_with("Stuck for "), "{}", ended.err);
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
fn a_process_that_exits_without_leaving_has_failed() {
    if !is_member() {
        let ended = run_members("a_process_that_exits_without_leaving_has_failed", &[]);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(
            ended.err.contains("exited without calling MPI_Finalize (or deck_done, Job::leave)"),
            "{}",
            ended.err
        );
        return;
    }
    let _job = Job::join().unwrap();
    std::process::exit(0);
}

#[test]
fn a_death_below_a_shell_is_told_at_once() {
    if !is_member() {
        let began = Instant::now();
        let test = "a_death_below_a_shell_is_told_at_once";
        let ended = run_below(&SHELL, test, &["--on-failure", "notify"]);
        assert_eq!(ended.code, Some(137), "{}", ended.err);
        // The test's own name may stand in the same line.
        let line = ended.out.lines().find_map(|line| line.split_once("noticed ")).unwrap().1;
        let (pid, error) = line.split_once(' ').unwrap();
        let told = format!("rank 1 (pid {pid}) was killed by signal 9");
        assert!(error.contains(&told), "{error}");
        let report = format!("rank 1 of 2 (pid {pid}, host ");
        assert!(ended.err.contains(&report), "{}", ended.err);
        assert!(ended.err.contains(") was killed by signal 9 (kill) after "), "{}", ended.err);
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        return;
    }
    let job = Job::join().unwrap();
    let world = job.world();
    if world.rank() == 1 {
        world.send(&[std::process::id()], 0, Tag(1)).unwrap();
        send(std::process::id(), rustix::process::Signal::KILL);
    }
    let (pid, _) = world.receive::<u32>(1, Tag(1)).unwrap();
    println!("noticed {pid} {}", world.receive::<u32>(1, Tag(2)).unwrap_err());
    job.leave().unwrap();
}

#[test]
fn an_abort_ends_the_job_whatever_a_failure_means() {
    if !is_member() {
        let test = "an_abort_ends_the_job_whatever_a_failure_means";
        for policy in ["abort", "notify", "restart", "restart:2,notify"] {
            for command in [&[][..], &SHELL] {
                let began = Instant::now();
                let ended = run_below(command, test, &["--on-failure", policy]);
                assert_eq!(ended.code, Some(3), "{policy}: {}", ended.err);
                assert!(ended.err.contains(") ended the job with exit code 3 after "), "{policy}");
                let end = "The other process was ended. Exit code 3.\n";
                assert!(ended.err.ends_with(end), "{policy}: {}", ended.err);
                assert!(began.elapsed() < AT_ONCE, "{policy}: {:?}", began.elapsed());
            }
        }
        return;
    }
    let job = Job::join().unwrap();
    if job.world().rank() == 1 {
        job.abort(3, "enough");
    }
    std::thread::sleep(2 * AT_ONCE);
}

#[test]
fn an_abort_with_a_code_that_exits_cut_off_is_no_success() {
    if !is_member() {
        let test = "an_abort_with_a_code_that_exits_cut_off_is_no_success";
        let ended = run_members(test, &["--on-failure", "notify"]);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains(") ended the job with exit code 1 after "), "{}", ended.err);
        return;
    }
    Job::join().unwrap().abort(256, "");
}

#[test]
fn a_guest_may_end_the_job() {
    if !is_member() {
        for (command, words) in
            [(&[][..], "rank 1 of 2 (pid "), (&SHELL, "A guest of the job (pid ")]
        {
            let ended = run_below(command, "a_guest_may_end_the_job", &["--on-failure", "notify"]);
            assert_eq!(ended.code, Some(4), "{}", ended.err);
            assert!(ended.err.contains(words), "{words}: {}", ended.err);
            assert!(ended.err.ends_with(" Exit code 4.\n"), "{}", ended.err);
        }
        return;
    }
    if std::env::var("RANK").unwrap() == "1" {
        let job = std::env::var("LANDECK_JOB").unwrap();
        Job::join_running(&job, landeck::Options::default()).unwrap().abort(4, "");
    }
    let _job = Job::join().unwrap();
    std::thread::sleep(2 * AT_ONCE);
}
