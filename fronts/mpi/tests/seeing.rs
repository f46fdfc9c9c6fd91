//! Tests of the answers of `landeck why` about an MPI program that is stuck.

#[allow(dead_code)] // the other tests use the rest
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landeck_testing::program::succeed;
use landeck_testing::{Trail, Watchdog};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(600);
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// Runs the program with these words until `landeck why` says all that is wanted.
fn until_said(words: &[&str], wanted: &[&str]) -> String {
    let _watchdog = Watchdog::start(LIMIT);
    let program = support::program("stuck");
    let trail = Trail::new();
    let name = format!("stuck-{}-{}", std::process::id(), words.concat());
    let mut command = Command::new(support::launcher());
    command.args(["run", "-n", "3", "--name", &name, "--grace", "0.1"]).arg(program).args(words);
    command.env("LD_LIBRARY_PATH", support::libraries());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let job = trail.spawn(&mut command);
    let give_up = Instant::now() + SEEN_WITHIN;
    let said = loop {
        // Until the job is there it fails, which says nothing of what is wanted either.
        let said = Command::new(support::launcher()).args(["why", &name]).output();
        let said = said.expect("the launcher can be started");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        if wanted.iter().all(|words| said.contains(words)) {
            break said;
        }
        assert!(Instant::now() < give_up, "{wanted:?} are not in\n{said}");
        std::thread::sleep(Duration::from_millis(50));
    };
    succeed(Command::new("kill").arg(job.id().to_string()));
    trail.finish(job, LIMIT);
    trail.assert_gone(LIMIT);
    said
}

#[test]
fn a_receive_has_the_name_of_its_function() {
    let stuck = "wait for each other in a circle: rank 0 for rank 1";
    until_said(&[], &[stuck, "MPI_Recv: receive from rank 1, tag 7, world"]);
}

#[test]
fn a_wait_for_any_of_several_names_its_peers() {
    let wanted =
        ["MPI_Waitany: wait for any of ranks 1 2", "MPI_Waitany: wait for any of ranks 0 1"];
    until_said(&["any"], &wanted);
}

#[test]
fn a_process_that_is_held_in_an_operation_that_is_over_is_the_cause() {
    let held = "rank 2 does not go on, although nobody is missing where it waits, and ranks 0 1 wait for it.";
    let others = "MPI_Allreduce: allreduce, world, missing rank 2";
    let said = until_said(&["held"], &[held, others]);
    assert!(said.contains("MPI_Allreduce: allreduce, world, missing nobody"), "{said}");
    assert!(said.contains("landeck why --stacks"), "{said}");
}

#[test]
fn a_process_in_a_function_of_the_program_is_not_said_to_be_in_no_call() {
    let said = until_said(&["function"], &["Not stuck", "sleeps outside all waits of ours"]);
    assert!(!said.contains("in no call"), "{said}");
}

#[test]
fn messages_that_are_none_of_the_programs_say_what_they_are_for() {
    let first = "MPI_Comm_create_group: receive from rank 2, to make a group, world";
    let second = "MPI_Comm_create_group: receive from rank 0, to make a group, world";
    let said = until_said(&["group"], &[first, second]);
    assert!(!said.contains("tag"), "{said}");
    let wait = "MPI_Neighbor_allgather: receive from rank 2, for a collective operation, ";
    let said = until_said(&["neighbours"], &[wait]);
    assert!(!said.contains("tag"), "{said}");
}
