//! Processes that are restarted after a failure: how often, when, and with which messages.

use super::*;
use rustix::process::Signal;
use std::time::Instant;

/// Kills rank 1, the first time; every process prints its rank in the end.
const ONCE: &str = "[ $RANK$LANDECK_RESTART = 1 ] && kill -9 $$; echo $RANK:$LANDECK_RESTART";

#[test]
fn a_killed_process_is_started_again_and_the_job_ends_well() {
    let ended = run_shells(3, &["--on-failure", "restart"], ONCE);
    assert_eq!((ended.code, sorted(&ended.out)), (Some(0), vec!["0:", "1:1", "2:"]));
    assert!(ended.err.contains("rank 1 of 3 (pid "), "{}", ended.err);
    assert!(ended.err.contains("It is started again in 0.1 s (1 of at most 3 times)."));
    assert!(ended.err.ends_with("Started again: rank 1 once.\n"), "{}", ended.err);
}

#[test]
fn the_next_process_has_all_that_the_first_one_had() {
    let script = "[ -z $LANDECK_RESTART ] && read line && echo first $line && exit 1
        read line; echo next $line $LANDECK_SLOT $WORLD_SIZE $GIVEN $1 $(pwd)";
    let given = ["-n", "1", "-x", "GIVEN=x", "-C", "/tmp", "--on-failure", "restart"];
    let mut command = landeck_run(&[&given[..], &["sh", "-c", script, "sh", "word"]].concat());
    let mut running = start(command.stdin(Stdio::piped()));
    let mut input = running.child.stdin.take().unwrap();
    // A shell's `read` takes one line and leaves the next one to its successor.
    std::io::Write::write_all(&mut input, b"one\ntwo\n").unwrap();
    let ended = running.end();
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "first one\nnext two 1 1 x word /tmp\n")
    );
}

#[test]
fn files_of_output_go_on() {
    let directory = std::env::temp_dir().join(format!("landeck-restarts-{}", std::process::id()));
    let path = directory.to_str().unwrap().to_owned();
    let script = "echo run $LANDECK_RESTART; [ 0$LANDECK_RESTART = 02 ]";
    let ended = run_shells(1, &["--on-failure", "restart", "--output-dir", &path], script);
    let written = std::fs::read_to_string(directory.join("rank-0.stdout")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!((ended.code, written.as_str()), (Some(0), "run\nrun 1\nrun 2\n"));
    assert!(ended.err.contains("Its last lines: \"run\""), "{}", ended.err);
}

#[test]
fn a_crash_loop_is_slowed_down_and_given_up() {
    let began = Instant::now();
    let script = "[ $RANK = 0 ] && exec sleep 50; echo $LANDECK_RESTART; exit 3";
    let ended = run_shells(2, &["--on-failure", "restart:2"], script);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), "\n1\n2\n"));
    assert!(began.elapsed() >= Duration::from_millis(300), "0.1 s, then 0.2 s");
    for words in [
        "again in 0.1 s (1 of at most 2 times). The other process goes on.",
        "again in 0.2 s (2 of at most 2 times). The other process goes on.",
        "  It had been started again twice before.\n",
        "The other process was ended (--on-failure restart). Exit code 3.\n",
        "Started again: rank 1 twice.\n",
    ] {
        assert!(ended.err.contains(words), "{words}: {}", ended.err);
    }
}

#[test]
fn where_that_was_asked_for_the_others_go_on_without_it() {
    let script = format!("[ $RANK = 1 ] && exit 3; {GOES_ON}");
    let policy = ["--on-failure", "restart:1,notify"];
    let mut running = start_merged(&[&["-n", "2"], &policy[..], &["sh", "-c", &script]].concat());
    running.until(&["ready 0", "The other process goes on (--on-failure restart)."]);
    running.signal(Signal::USR1);
    let ended = running.end();
    assert_eq!((ended.code, ended.out.matches("done\n").count()), (Some(3), 1), "{}", ended.out);
}

#[test]
fn an_end_with_status_zero_is_an_end() {
    let ended = run_shells(2, &["--on-failure", "restart"], "echo once");
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "once\nonce\n", ""));
}

#[test]
fn a_program_that_is_not_there_is_not_tried_again() {
    let ended =
        run(&["-n", "2", "--on-failure", "restart", "sh", "-c", "exit 0", ":", "/bin/nope"]);
    assert_eq!(ended.code, Some(127), "{}", ended.err);
}

#[test]
fn children_of_a_failed_process_do_not_meet_its_successor() {
    let script = "[ $LANDECK_RESTART ] && sleep 4 && exit 0
        (trap '' HUP TERM; sleep 3; echo of the first) & exit 1";
    let ended = run_shells(1, &["--on-failure", "restart"], script);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
}

#[test]
fn a_signal_to_the_launcher_ends_all_and_starts_nobody_again() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 143)] {
        let running = start_shells(2, &["--on-failure", "restart:9"], "echo ready; exec sleep 50");
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.code, ended.out.as_str()), (Some(code), ""), "{}", ended.err);
        assert!(!ended.err.contains("again"), "{}", ended.err);
    }
}

#[test]
fn a_signal_while_somebody_is_to_come_ends_all() {
    let script = "[ $RANK = 1 ] && exit 1; echo ready; exec sleep 50";
    let arguments = ["-n", "2", "--on-failure", "restart:30", "sh", "-c", script];
    let mut running = start(&mut landeck_run(&arguments));
    assert_eq!(running.line(), "ready");
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{}", ended.err);
}

#[test]
fn a_signal_while_all_are_to_come_is_what_ended_the_job() {
    let script = "[ \"$LANDECK_RESTART\" = 4 ] && echo last; exit 5";
    let arguments = ["-n", "1", "--on-failure", "restart:30", "sh", "-c", script];
    let cases = [
        (Signal::TERM, "SIGTERM", 143),
        (Signal::INT, "SIGINT", 130),
        (Signal::HUP, "SIGHUP", 129),
        (Signal::QUIT, "SIGQUIT", 131),
    ];
    let running: Vec<Running> = cases.iter().map(|_| start(&mut landeck_run(&arguments))).collect();
    for ((signal, name, code), mut running) in cases.into_iter().zip(running) {
        assert_eq!(running.line(), "last");
        // It is started again 1.6 s after it has ended.
        while !running.members().is_empty() {
            std::thread::yield_now();
        }
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        let said = format!("The job was ended by {name}. Exit code {code}.");
        assert!(ended.err.contains(&said), "{said} {}", ended.err);
    }
}

#[test]
fn a_killed_launcher_or_guardian_leaves_nobody_who_starts_again() {
    for of_guardian in [false, true] {
        let script = "[ $RANK = 1 ] && exit 1; echo ready; exec sleep 50";
        let arguments = ["-n", "2", "--on-failure", "restart:30", "sh", "-c", script];
        let mut running = start(&mut landeck_run(&arguments));
        assert_eq!(running.line(), "ready");
        match of_guardian {
            true => send(running.guardian(), Signal::KILL),
            false => running.signal(Signal::KILL),
        }
        assert_ne!(running.end().code, Some(0));
    }
}

#[test]
fn a_time_limit_ends_a_job_that_starts_again_and_again() {
    let ended = run_shells(2, &["--on-failure", "restart:1000", "--timeout", "1"], "exit 1");
    assert_eq!(ended.code, Some(124), "{}", ended.err);
}

#[test]
fn many_kills_of_many_processes_are_made_good() {
    let script = "[ \"$LANDECK_RESTART\" = 4 ] || kill -9 $$; echo done";
    let began = Instant::now();
    let ended = run_shells(3, &["--on-failure", "restart:4"], script);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "done\ndone\ndone\n"), "{}", ended.err);
    let each = "Started again: rank 0 4 times, rank 1 4 times, rank 2 4 times.\n";
    assert!(ended.err.ends_with(each), "{}", ended.err);
    assert!(began.elapsed() >= Duration::from_millis(1_500), "0.1, 0.2, 0.4 and 0.8 s");
}
