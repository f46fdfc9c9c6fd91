//! Signals that the launcher gets.

use super::*;
use rustix::process::Signal;

#[test]
fn an_interrupt_is_passed_on() {
    let running = start_shells(
        2,
        &[],
        "trap 'echo got; exit 0' INT; echo ready; while :; do sleep 0.05; done",
    );
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "got\ngot\n"));
}

#[test]
fn an_interrupt_that_is_not_caught_is_130() {
    let running = start_shells(2, &[], "echo ready; exec sleep 50");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130));
    assert_eq!(ended.err, "The job was ended by SIGINT. Exit code 130.\n");
}

#[test]
fn two_interrupts_kill() {
    let mut running =
        start_shells(2, &[], "trap 'echo got' INT; echo ready; while :; do sleep 0.05; done");
    running.signal(Signal::INT);
    assert_eq!((running.line(), running.line()), ("got".into(), "got".into()));
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(137));
}

#[test]
fn termination_gives_time_and_then_kills() {
    let kind = "trap 'echo got; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let running = start_shells(2, &[], kind);
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "got\ngot\n"));

    let stubborn = "trap 'echo got' TERM; echo ready; while :; do sleep 0.05; done";
    let running = start_shells(2, &["--grace", "3"], stubborn);
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(137), "got\ngot\n"));
}

#[test]
fn user_signals_are_passed_on() {
    let script = "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; trap 'echo size' WINCH
        echo ready; while :; do sleep 0.05; done";
    let mut running = start_shells(2, &[], script);
    for (signal, word) in [(Signal::USR1, "one"), (Signal::WINCH, "size"), (Signal::USR2, "two")] {
        running.signal(signal);
        assert_eq!((running.line(), running.line()), (word.into(), word.into()));
    }
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn a_stop_stops_everybody_and_a_continuation_continues() {
    let mut running = start_shells(
        2,
        &[],
        "trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.05; done",
    );
    let (launcher, members) = (running.child.id(), running.members());
    running.signal(Signal::TSTP);
    // A shell whose child is stopped before it has become its program waits for it as for a disk.
    let is_halted =
        |pid: u32| status_field(pid, "State").is_some_and(|s| s.starts_with(['T', 'D']));
    while !is_halted(launcher) || !members.iter().all(|pid| is_halted(*pid)) {
        std::thread::yield_now();
    }
    running.signal(Signal::CONT);
    running.signal(Signal::USR1);
    assert_eq!((running.line(), running.line()), ("got".into(), "got".into()));
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let script = "trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.05; done";
    let line = format!("trap '' HUP; exec {launcher} run -n 1 sh -c \"{script}\"");
    let mut running = start(Command::new("sh").args(["-c", &line]));
    assert_eq!(running.line(), "ready");
    running.signal(Signal::HUP);
    running.signal(Signal::USR1);
    assert_eq!(running.line(), "got");
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn a_signal_reaches_what_a_script_started() {
    let running = start_shells(1, &[], "sleep 50 & echo ready; wait; exit 0");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(130));
}

#[test]
fn signals_that_a_parent_has_blocked_or_ignored_hold_nobody_up() {
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let masks = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let changed = ["--ignore-signal=CHLD", "--block-signal=USR1,TERM,CHLD"];
    let understands = Command::new("env").args(changed).arg("true").output();
    if !understands.is_ok_and(|output| output.status.success()) {
        return crate::support::skipped(
            "signals_that_a_parent_has_blocked_or_ignored_hold_nobody_up",
            "`env` cannot block signals here",
        );
    }
    let bare = run_command(Command::new("env").args(changed).args(["sh", "-c", masks]));
    let under = |script: &str| {
        let mut command = Command::new("env");
        command.args(changed).args([launcher, "run", "-n", "1", "sh", "-c", script]);
        command
    };
    let ended = run_command(&mut under(masks));
    assert_eq!((ended.code, ended.out), (Some(0), bare.out), "the program has what the user had");
    // The launcher hears of its children and of signals all the same.
    let script = "trap 'echo got; exit 0' USR2; echo ready; while :; do sleep 0.05; done";
    let mut running = start(&mut under(script));
    assert_eq!(running.line(), "ready");
    running.signal(Signal::USR2);
    assert_eq!((running.line(), running.end().code), ("got".into(), Some(0)));
    let mut running = start(&mut under("echo ready; exec sleep 100"));
    assert_eq!(running.line(), "ready");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(130));
}

#[test]
fn no_umask_takes_the_index_from_its_user() {
    use std::os::unix::fs::PermissionsExt;
    let directory = std::env::temp_dir().join(format!("landeck-umask-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let line = format!("umask 777; exec {launcher} run -n 1 sh -c 'echo ready; read line'");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("XDG_RUNTIME_DIR", &directory).stdin(Stdio::piped());
    let mut running = start(&mut command);
    assert_eq!(running.line(), "ready");
    let index = directory.join("landeck");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let entry = std::fs::read_dir(&index).unwrap().next().unwrap().unwrap();
    assert_eq!((mode(&index), mode(&entry.path())), (0o700, 0o600));
    drop(running.child.stdin.take());
    running.end();
    std::fs::remove_dir_all(&directory).unwrap();
}
