//! `landeck doctor`.

use super::*;

fn doctor(words: &[&str], limit: &str) -> Output {
    let _watchdog = Watchdog::start(TEST_MAX);
    let script = format!("{limit}; exec \"$0\" doctor \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_landeck")]).args(words);
    command.output().unwrap()
}

#[test]
fn here_nothing_is_wrong() {
    let said = doctor(&[], "true");
    assert_eq!(said.status.code(), Some(0), "{}", support::text(&said));
    assert!(support::text(&said).contains("Nothing is wrong"), "{said:?}");
}

#[test]
fn a_limit_that_leaves_no_room_is_wrong_and_the_exit_status_says_so() {
    // Room for the command, none for a job's segment.
    let said = doctor(&["--json"], "ulimit -v 60000");
    assert_eq!(said.status.code(), Some(1), "{}", support::text(&said));
    let findings: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let memory = findings.as_array().unwrap().iter();
    let memory = memory.clone().find(|finding| finding["subject"] == "shared memory").unwrap();
    assert_eq!(memory["health"], "wrong");
    assert!(memory["consequence"].as_str().unwrap().contains("ulimit -v"), "{memory}");
}

#[test]
fn few_open_files_are_said_with_what_follows() {
    let said = support::text(&doctor(&[], "ulimit -n 200"));
    assert!(said.contains("at most 200 (ulimit -Hn)"), "{said}");
    assert!(said.contains("a job can have 27 processes; raise the limit for more"), "{said}");
}
