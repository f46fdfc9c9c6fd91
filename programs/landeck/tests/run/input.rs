//! Tests of which process gets the standard input.

use super::output::terminal;
use super::*;
use std::fs::File;
use std::io::Write;

fn run_with_input(arguments: &[&str], text: &[u8]) -> Ended {
    let mut running = start(landeck_run(arguments).stdin(Stdio::piped()));
    let mut stdin = running.child.stdin.take().unwrap();
    let text = text.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&text)));
    let ended = running.end();
    writer.join().unwrap();
    ended
}

const READER: &str = "echo $RANK $(cat)";

#[test]
fn rank_0_gets_it_by_default() {
    let ended = run_with_input(&["-n", "3", "sh", "-c", READER], b"text");
    assert_eq!(sorted(&ended.out), ["0 text", "1", "2"]);
}

#[test]
fn another_rank_gets_it() {
    let ended = run_with_input(&["-n", "3", "--stdin", "2", "sh", "-c", READER], b"text");
    assert_eq!(sorted(&ended.out), ["0", "1", "2 text"]);
}

#[test]
fn nobody_gets_it() {
    let ended = run_with_input(&["-n", "2", "--stdin", "none", "sh", "-c", READER], b"text");
    assert_eq!(sorted(&ended.out), ["0", "1"]);
}

#[test]
fn all_get_all_of_it() {
    let text = b"0123456789abcde\n".repeat(64 * 1024);
    let script = "[ $RANK = 1 ] && sleep 0.2; cksum";
    let ended = run_with_input(&["-n", "3", "--stdin", "all", "sh", "-c", script], &text);
    let sums: Vec<&str> = ended.out.lines().collect();
    assert_eq!(sums.len(), 3);
    assert!(sums.iter().all(|sum| *sum == sums[0] && sum.ends_with(&format!(" {}", text.len()))));
}

#[test]
fn all_get_a_file() {
    let mut running = start(
        landeck_run(&["-n", "2", "--stdin", "all", "cksum"])
            .stdin(File::open("/etc/passwd").unwrap()),
    );
    let (one, other) = (running.line(), running.line());
    assert_eq!(one, other);
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn an_early_end_of_the_readers_does_no_harm() {
    let text = b"0123456789abcde\n".repeat(64 * 1024);
    let ended = run_with_input(&["-n", "2", "--stdin", "all", "true"], &text);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn a_rank_that_does_not_exist_is_refused() {
    let ended = run(&["-n", "2", "--stdin", "2", "true"]);
    assert_eq!(ended.code, Some(125));
    assert!(ended.err.contains("there is no such rank"), "{}", ended.err);
}

#[test]
fn a_terminal_is_read_and_its_interrupt_key_is_a_signal() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let trail = Trail::new();
    let (mut ours, theirs) = terminal();
    // A session of its own, whose terminal this is.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_landeck"), "run", "-n", "2", "cat"]);
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let child = trail.spawn(&mut command);
    ours.write_all(b"hello\n").unwrap();
    let mut seen = String::new();
    // The terminal shows what is typed, and rank 0 what it reads.
    while seen.matches("hello").count() < 2 {
        let mut bytes = [0; 256];
        let count = ours.read(&mut bytes).unwrap();
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    ours.write_all(b"\x03").unwrap();
    assert_eq!(trail.finish(child, RUN_MAX).status.code(), Some(130));
    trail.assert_gone(GONE_WITHIN);
}
