//! Programs in C as users write them, each of which checks itself.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{RUN_LIMIT, alone, launcher, program, run, watched};
use landeck_testing::Trail;
use landeck_testing::program::assert_wrote;

/// How long one test may take, once the launcher and the libraries are built.
const LIMIT: Duration = Duration::from_secs(400);

fn runs(name: &str) {
    let _watchdog = watched(LIMIT);
    let program = program(name);
    for nodes in ["1", "2", "3", "5"] {
        let output = run(&["-n", nodes, program.to_str().expect("a path of ours")]);
        assert_wrote(&output, &format!("{name}: {nodes} nodes agree"));
    }
    let output = Trail::new().run(&mut alone(&program), RUN_LIMIT);
    assert_wrote(&output, &format!("{name}: 1 nodes agree"));
}

#[test]
fn messages() {
    runs("messages");
}

#[test]
fn mailboxes() {
    runs("mailboxes");
}

#[test]
fn a_descriptor_tells_of_messages() {
    runs("descriptor");
}

#[test]
fn semaphores_and_segments() {
    runs("semaphores");
}

#[test]
fn threads() {
    runs("threads");
}

#[test]
fn collective_operations() {
    runs("collectives");
}

#[test]
fn nodes_without_memory_are_told_so_and_nobody_waits_for_them() {
    let _watchdog = watched(LIMIT);
    let program = program("no_memory");
    let program = program.to_str().expect("a path of ours");
    let ways: [(&str, &[&str]); 5] =
        [("1", &[]), ("2", &[]), ("4", &[]), ("4", &["ring"]), ("2", &["flat"])];
    for (nodes, way) in ways {
        let output = run(&[&["-n", nodes, program], way].concat());
        assert_wrote(&output, &format!("no_memory: {nodes} nodes agree"));
    }
}

#[test]
fn groups() {
    runs("groups");
}

#[test]
fn views() {
    runs("views");
}

#[test]
fn members_that_send_and_take_in_turn_never_wait_for_themselves() {
    runs("drains");
}

#[test]
fn groups_with_a_server() {
    runs("served");
    let _watchdog = watched(LIMIT);
    let program = program("served");
    for nodes in ["1", "2", "4"] {
        let program = program.to_str().expect("a path of ours");
        let output = run(&["--serve-groups", "-n", nodes, program, "launcher"]);
        assert_wrote(&output, &format!("served: {nodes} nodes agree"));
    }
}

#[test]
fn a_process_that_comes_into_a_job_takes_part_in_its_operations() {
    let _watchdog = watched(LIMIT);
    let program = program("elastic");
    let name = format!("deck-elastic-{}", std::process::id());
    let path = program.to_str().expect("a path of ours");
    let trail = Trail::new();
    let mut command = launcher(&["--name", &name, "-n", "2", path]);
    let mut job = trail.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines =
        BufReader::new(job.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let first: Vec<String> = lines.by_ref().take(2).collect();
    assert!(first.iter().all(|line| line.ends_with("is one of 2")), "{first:?}");
    let guest = trail.run(alone(&program).env("LANDECK_JOB", &name), RUN_LIMIT);
    assert_wrote(&guest, "elastic: member 2 is one of 3");
    let rest: Vec<String> = lines.collect();
    let ended = trail.finish(job, RUN_LIMIT);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert!(rest.iter().all(|line| line.ends_with("is one of 3")), "{rest:?}");
}

#[test]
fn an_abort_ends_the_job_whatever_a_failure_means() {
    let _watchdog = watched(LIMIT);
    let program = program("abort");
    let program = program.to_str().expect("a path of ours");
    for policy in ["abort", "notify", "restart"] {
        for (asked, code) in [("7", 7), ("0", 1), ("256", 1)] {
            let output = run(&["--on-failure", policy, "-n", "3", program, asked, "enough"]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{policy}, {asked}: {errors}");
            let said = format!(") called deck_abort with code {asked}: enough\n");
            assert!(errors.contains(&said), "{policy}: {errors}");
            let ended = format!(") ended the job with exit code {code} after ");
            assert!(errors.contains(&ended) && !errors.contains("again"), "{policy}: {errors}");
        }
    }
}

/// Runs a program whose last node dies, and checks what the others say.
fn survives(name: &str, says: impl Fn(u32) -> String) {
    let _watchdog = watched(LIMIT);
    let program = program(name);
    let program = program.to_str().expect("a path of ours");
    for nodes in [2, 4] {
        let count = nodes.to_string();
        let output = run(&["--on-failure", "notify", "-n", &count, program]);
        let written = String::from_utf8_lossy(&output.stdout);
        for line in (0..nodes - 1).map(&says) {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(written.lines().any(|written| written == line), "{line}: {written}\n{errors}");
        }
    }
}

#[test]
fn a_death_is_told_to_all_who_need_the_dead() {
    survives("killed", |node| format!("killed: node {node} was told"));
}

#[test]
fn a_group_goes_on_without_a_dead_member() {
    survives("group_killed", |node| format!("group: node {node} goes on"));
}

/// All functions that give an error, but for those that children may call.
fn functions() -> Vec<String> {
    let header = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("include/deck.h");
    let header = std::fs::read_to_string(header).expect("a file of ours");
    let declared = header.lines().filter_map(|line| line.strip_prefix("int deck_"));
    let named = declared.filter_map(|line| line.split_once('(').map(|(name, _)| name));
    named
        .filter(|name| !["abort", "version"].contains(name))
        .map(|name| format!("deck_{name}"))
        .collect()
}

#[test]
fn a_child_made_by_fork_is_refused_by_every_function() {
    let _watchdog = watched(LIMIT);
    let program = program("forked");
    let functions = functions();
    assert!(functions.len() > 70, "{functions:?}");
    for nodes in ["1", "2"] {
        let mut arguments = vec!["-n", nodes, program.to_str().expect("a path of ours")];
        arguments.extend(functions.iter().map(String::as_str));
        assert_wrote(&run(&arguments), &format!("forked: {nodes} nodes agree"));
    }
}

#[test]
fn a_child_made_by_fork_aborts_alone_and_says_so() {
    let _watchdog = watched(LIMIT);
    let program = program("forked");
    let output = run(&["-n", "2", program.to_str().expect("a path of ours"), "abort"]);
    assert_wrote(&output, "forked: 2 nodes agree");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("deck_abort with code 7: a child gives up. pid "), "{said}");
    assert!(said.contains("was made by fork and ends alone"), "{said}");
    let output = run(&["-n", "2", program.to_str().expect("a path of ours"), "check"]);
    assert_wrote(&output, "forked: 2 nodes agree");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("deck_sem_v: this process was made by fork").count(), 2, "{said}");
}

#[test]
fn a_call_that_fails_ends_the_process_where_it_is_checked() {
    let _watchdog = watched(LIMIT);
    let program = program("checked");
    let program = program.to_str().expect("a path of ours");
    let output = run(&["-n", "2", program]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "up to here\n", "{said}");
    let line = "checked.c:17: node 1: deck_mbox_fetch: ";
    assert!(said.contains(line) && said.contains(" (DECK_EUNKNOWN)\n"), "{said}");
    let output = run(&["-n", "2", program, "known"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("checked.c:15: node 1: the time is over, and nothing was lost"),
        "{said}"
    );
    assert!(said.contains(" (DECK_ETIMEDOUT)\n"), "{said}");
}

#[test]
fn a_killed_program_loses_no_whole_line() {
    let _watchdog = watched(LIMIT);
    let program = program("lines");
    let output = run(&["-n", "1", program.to_str().expect("a path of ours")]);
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
}
