//! Exit codes and failure reports.

use super::*;

#[test]
fn success_is_silent() {
    let ended = run(&["-n", "3", "true"]);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "", ""));
}

#[test]
fn the_exit_code_is_that_of_the_first_to_fail() {
    let ended = run_shells(3, &[], "[ $RANK = 1 ] && exit 6; exec sleep 50");
    assert_eq!(ended.code, Some(6));
    let lines: Vec<&str> = ended.err.lines().collect();
    assert!(lines[0].starts_with("rank 1 of 3 (pid "), "{}", ended.err);
    assert!(lines[0].contains(") ended with exit code 6 after "), "{}", ended.err);
    assert_eq!(lines[1], "The other 2 processes were ended (--on-failure abort). Exit code 6.");
}

#[test]
fn a_signal_is_named_and_becomes_128_more() {
    let ended =
        run_shells(2, &[], "echo reading part 17; [ $RANK = 1 ] && kill -SEGV $$; exec sleep 50");
    assert_eq!(ended.code, Some(139));
    assert!(ended.err.contains("was killed by signal 11 (segmentation fault)"), "{}", ended.err);
    assert!(ended.err.contains("Its last lines: \"reading part 17\""), "{}", ended.err);
}

#[test]
fn the_last_lines_are_those_of_the_failed_process() {
    let script =
        "if [ $RANK = 0 ]; then seq 1 100; echo why >&2; exit 1; fi; echo other; exec sleep 50";
    let ended = run_shells(2, &[], script);
    assert!(ended.err.contains("    99\n"), "{}", ended.err);
    // Lines on standard error stand above already.
    assert_eq!(ended.err.matches("why\n").count(), 1, "{}", ended.err);
    assert!(!ended.err.contains("    95\n") && !ended.err.contains("    other"), "{}", ended.err);
}

#[test]
fn lines_that_stand_above_are_not_said_again() {
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let script = format!("{launcher} run -n 2 sh -c 'echo why; exit 1' 2>&1 | cat");
    let ended = run_command(Command::new("sh").args(["-c", &script]));
    assert!(ended.out.contains(" ended with exit code 1 "), "{}", ended.out);
    assert!(!ended.out.contains("Its last lines") && !ended.out.contains("\"why"), "{}", ended.out);
}

#[test]
fn with_notify_the_others_go_on() {
    let script = format!("[ $RANK = 0 ] && exit 4; {GOES_ON}");
    let mut running = start_merged(&["-n", "3", "--on-failure", "notify", "sh", "-c", &script]);
    running.until(&["rank 0 of 3", "The other 2 processes go on", "ready 1", "ready 2"]);
    running.signal(rustix::process::Signal::USR1);
    let ended = running.end();
    assert_eq!((ended.code, ended.out.matches("done\n").count()), (Some(4), 2), "{}", ended.out);
    assert!(ended.out.ends_with("Exit code 4.\n"), "{}", ended.out);
}

#[test]
fn a_program_that_cannot_be_started_exits_with_126_or_127() {
    let folder = std::env::temp_dir().join(format!("landeck-exit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("no-interpreter");
    std::fs::write(&script, "not a program\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let cases = [
        ("no-such-program", 127, "not found in PATH"),
        ("./no-such-program", 127, "no such file in /"),
        ("./no/such/program", 127, "no folder /"),
        ("/etc/passwd", 126, "chmod +x /etc/passwd"),
        ("/tmp", 126, "is a directory"),
        (script.to_str().unwrap(), 126, "#!/bin/sh"),
    ];
    for (program, code, words) in cases {
        let ended = run(&["-n", "2", program]);
        assert_eq!(ended.code, Some(code), "{program}: {}", ended.err);
        assert!(ended.err.contains(words), "{program}: {}", ended.err);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_time_limit_is_124_and_says_where_everybody_is() {
    let ended = run(&["-n", "2", "--timeout", "3", "--stacks", "sleep", "50"]);
    assert_eq!(ended.code, Some(124));
    assert!(
        ended.err.contains("(--timeout): 2 of its 2 processes have not ended."),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("  rank 1 (pid "), "{}", ended.err);
    assert!(ended.err.contains("    "), "stacks: {}", ended.err);
    assert!(ended.err.ends_with("Exit code 124.\n"), "{}", ended.err);
}

#[test]
fn a_process_that_was_not_started_in_time_has_no_number() {
    let ended = run(&["-n", "2", "--timeout", "0", "sleep", "50"]);
    assert_eq!(ended.code, Some(124));
    // Beside others that compute, it may have been started in time.
    assert!(ended.err.contains("  rank 1"), "{}", ended.err);
    assert!(!ended.err.contains("(pid 0)"), "{}", ended.err);
}

#[test]
fn a_process_that_does_not_want_to_end_is_killed_after_the_grace_time() {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    // On a busy machine the shells may come later than the first limit.
    let ended = ["2", "30"].into_iter().find_map(|limit| {
        let ended = run_shells(2, &["--timeout", limit, "--grace", "0.2"], script);
        assert_eq!(ended.code, Some(124));
        (limit == "30" || ended.out == "ready\nready\n").then_some(ended)
    });
    assert_eq!(ended.unwrap().out, "ready\nready\n");
}

#[test]
fn a_reader_that_is_gone_ends_the_job_quietly() {
    let mut running = start(&mut landeck_run(&["-n", "2", "yes"]));
    assert_eq!(running.line(), "y");
    let Running { child, lines, trail, .. } = running;
    drop(lines);
    let ended = Ended::from(trail.finish(child, RUN_MAX));
    assert_eq!((ended.code, ended.err.as_str()), (Some(141), ""));
    trail.assert_gone(GONE_WITHIN);
}

#[test]
fn the_summary_is_one_line() {
    let ended = run(&["-n", "2", "--summary", "true"]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.err.starts_with("2 processes, "), "{}", ended.err);
    assert!(ended.err.contains(": 0 messages, 0 B, 0% of the time waiting"), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1);
}
