//! Tests that run again with their jobs over two hosts, which are namespaces of this computer. The tests are those of
//! other suites: `landeck_testing::jobs` and the scripts of clients read where their jobs run from one variable.

use landeck_testing::hosts::{Hosts, Wish};

use super::clients;
use super::runner::Runner;
use super::side_by_side;
use super::tally::Tally;
use crate::Problem;

/// The variable, and its value here.
const ON_HOSTS: (&str, &str) = ("LANDECK_TEST_HOSTS", "2");

/// The programs of tests in Rust whose jobs can run over hosts.
const RUST: &[&str] = &["api", "collectives", "raw"];
/// The program of tests of each front. Other crates have one of that name.
const FRONTS: &str = "all";
/// The modules of the fronts' tests that start programs in C.
const OF_FRONTS: &[&str] = &["chapters::", "programs::", "interchange::", "tools::", "examples::"];

/// The share of the short form, by parts of tests' names: messages, collective operations, communicators, types.
const SHARE: &[&str] = &[
    "every_chapter_works_with_three_processes",
    "programs::messages",
    "programs::collective_operations",
    "programs::the_abort_of_a_job_is_said_once",
    "mailboxes::long_messages_come_once",
    "mailboxes::a_named_mailbox_gets_what_all_post",
    "messages::time_ends_a_receive_in_the_middle",
    "modes::a_synchronous_send_ends",
    "groups::colors_divide_and_keys_order",
    "groups::a_revoked_world_ends",
    "bridges::a_bridge_stands",
];

/// Runs a share of the tests, and all of them in the long form.
pub(super) fn tests(runner: &Runner) -> Result<Tally, Problem> {
    if let Some(why) = why_not(&Wish::hosts(2)) {
        return Ok(Tally::skipped_one(&format!("hosts: {why}")));
    }
    if !runner.is_soak() {
        return run(runner, &[RUST, &[FRONTS]].concat(), SHARE);
    }
    let mut tally = run(runner, RUST, &[])?;
    tally.add(&run(runner, &[FRONTS], OF_FRONTS)?);
    Ok(tally)
}

/// Runs the tests of these programs whose names contain one of these texts.
fn run(runner: &Runner, programs: &[&str], named: &[&str]) -> Result<Tally, Problem> {
    let selection: Vec<&str> = programs.iter().flat_map(|program| ["--test", *program]).collect();
    side_by_side::run(runner, &selection, named, &[ON_HOSTS])
}

/// The test suite of mpi4py.
pub(super) fn mpi4py(runner: &Runner) -> Result<Tally, Problem> {
    client(runner, "mpi4py", &["2", "4"])
}

/// The tests of hypre.
pub(super) fn hypre(runner: &Runner) -> Result<Tally, Problem> {
    client(runner, "distribution", &["hypre"])
}

/// The parallel tests of PETSc.
pub(super) fn petsc(runner: &Runner) -> Result<Tally, Problem> {
    client(runner, "petsc", &[])
}

/// Runs the script of a client over hosts that reach each other by ssh.
fn client(runner: &Runner, name: &str, arguments: &[&str]) -> Result<Tally, Problem> {
    if let Some(why) = why_not(&Wish { ssh: true, ..Wish::hosts(2) }) {
        return Ok(Tally::skipped_one(&format!("{name} over hosts: {why}")));
    }
    clients::run(runner, name, arguments, &[ON_HOSTS])
}

/// The reason why this computer cannot make such hosts; `None` if it can, or fails for another reason, which the tests
/// then tell.
fn why_not(wish: &Wish) -> Option<String> {
    let why = Hosts::new(wish).err().filter(|why| why.is_of_this_computer())?;
    Some(why.to_string().replace('\n', " "))
}
