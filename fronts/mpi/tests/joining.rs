//! How a program finds its job, and fails by name where it cannot: never n jobs of one.

use std::process::{Command, Output};
use std::time::Duration;

use crate::support::{self, Launcher, Library, mpich_or_skip, program, run, skip};
use landeck_testing::program::assert_wrote;
use landeck_testing::{Trail, Watchdog};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn a_program_whose_descriptor_was_closed_joins_over_the_socket() {
    let _watchdog = Watchdog::start(LIMIT);
    let ring = program("ring");
    let script = "eval \"exec $LANDECK_SEGMENT>&-\"; exec \"$0\"";
    let output = shell(Launcher::Landeck, 2, &[script, &ring.to_string_lossy()]);
    assert_wrote(&output, "ring: 2 processes agree");
}

#[test]
fn a_program_below_a_shell_is_the_process_of_its_shell() {
    let _watchdog = Watchdog::start(LIMIT);
    let ring = program("ring");
    let output = shell(Launcher::Landeck, 2, &["\"$0\" & wait $!", &ring.to_string_lossy()]);
    assert_wrote(&output, "ring: 2 processes agree");
}

#[test]
fn a_second_program_in_the_same_process_is_refused() {
    let _watchdog = Watchdog::start(LIMIT);
    let hello = program("hello");
    let output = shell(Launcher::Landeck, 2, &["\"$0\" && \"$0\"", &hello.to_string_lossy()]);
    assert_failed(&output, &["MPI_Init failed", "has left it, and cannot come back"]);
}

#[test]
fn a_program_that_is_none_of_the_processes_is_refused() {
    let _watchdog = Watchdog::start(LIMIT);
    let hello = program("hello");
    let script = "env -u LANDECK_SLOT -u LANDECK_SEGMENT \"$0\"";
    let output = shell(Launcher::Landeck, 1, &[script, &hello.to_string_lossy()]);
    assert_failed(&output, &["MPI_Init failed", "LANDECK_SLOT does not say which"]);
}

#[test]
fn a_variable_that_is_empty_is_named() {
    let _watchdog = Watchdog::start(LIMIT);
    let hello = program("hello");
    for (variables, words) in [
        ("LANDECK_JOB=", "LANDECK_JOB is empty: unset it"),
        ("PMI_SIZE=", "PMI_SIZE is \"\", which is no number of processes"),
        ("PMI_FD= PMI_RANK=0 PMI_SIZE=2", "PMI_FD does not lead to the launcher: \"\""),
        ("PMI_FD=$(printf '\\377') PMI_RANK=0 PMI_SIZE=2", "PMI_FD does not lead to the launcher"),
        ("PMI_PORT= PMI_ID=1", "the launcher does not answer at PMI_PORT \"\""),
        ("PMIX_RANK=", "PMIX_RANK is \"\""),
        ("PMIX_RANK=0 PMIX_NAMESPACE=", "PMIX_NAMESPACE is \"\""),
        ("LANDECK_MPI_INITIAL_ERRHANDLER=", "LANDECK_MPI_INITIAL_ERRHANDLER is \"\""),
    ] {
        let script = format!("{variables} exec \"$0\"");
        let output = shell(Launcher::None, 1, &[&script, &hello.to_string_lossy()]);
        assert_failed(&output, &["MPI_Init failed", words]);
    }
    for name in ["LANDECK_JOB", "LANDECK_SLOT", "LANDECK_SEGMENT"] {
        let script = format!("{name}= exec \"$0\"");
        let output = shell(Launcher::Landeck, 1, &[&script, &hello.to_string_lossy()]);
        assert_failed(&output, &["MPI_Init failed", name]);
    }
}

#[test]
fn a_long_variable_is_not_repeated_whole() {
    let _watchdog = Watchdog::start(LIMIT);
    let hello = program("hello");
    let script = "LANDECK_SLOT=$(head -c 50000 /dev/zero | tr '\\0' 9) exec \"$0\"";
    let output = shell(Launcher::Landeck, 1, &[script, &hello.to_string_lossy()]);
    assert_failed(&output, &["MPI_Init failed", "LANDECK_SLOT is \"999", "bytes left out"]);
    assert!(output.stderr.len() < 5_000, "{output:?}");
}

#[test]
fn a_process_that_was_started_again_is_refused() {
    let _watchdog = Watchdog::start(LIMIT);
    let hello = program("hello");
    let script = "[ $RANK = 0 ] && exec sleep 50; [ $LANDECK_RESTART ] || kill -9 $$; exec \"$0\"";
    let mut command = Command::new(support::launcher());
    command.args(["run", "-n", "2", "--on-failure", "restart:1", "bash", "-c", script]);
    command.arg(hello).env("LD_LIBRARY_PATH", support::libraries());
    let output = Trail::new().run(&mut command, LIMIT);
    assert_failed(&output, &["MPI_Init failed", "in the place of rank 1", "--on-failure notify"]);
}

#[test]
fn a_launcher_that_is_not_understood_is_named() {
    let _watchdog = Watchdog::start(LIMIT);
    let hello = program("hello");
    for (variables, words) in [
        ("PMIX_RANK=0", "the launcher set PMIX_RANK, but PMIX_NAMESPACE is not set"),
        ("PMIX_RANK=x PMIX_NAMESPACE=a", "PMIX_RANK is \"x\""),
        ("PMIX_RANK=$'\\377' PMIX_NAMESPACE=a", "PMIX_RANK is \"\u{fffd}\""),
        ("PMI_FD=7 PMI_RANK=$'\\377' PMI_SIZE=2", "PMI_RANK is \"\u{fffd}\""),
        ("LANDECK_SLOT=0", "LANDECK_SLOT is set, but LANDECK_JOB is not"),
    ] {
        let script = format!("{variables} exec \"$0\"");
        let output = shell(Launcher::None, 1, &[&script, &hello.to_string_lossy()]);
        assert_failed(&output, &["MPI_Init failed", words]);
    }
    let script = "PMIX_RANK=0 PMIX_NAMESPACE=a exec \"$0\"";
    let output = shell(Launcher::None, 1, &[script, &hello.to_string_lossy()]);
    // Without the launcher's library, or with one that finds no launcher.
    let is_without = String::from_utf8_lossy(&output.stderr).contains("PMIX_RANK is set");
    let words = match is_without {
        true => ["libpmix.so.2", "landeck run"],
        false => {
            ["the launcher, which speaks PMIx, failed to take this process in", "MPI_ERR_OTHER"]
        }
    };
    assert_failed(&output, &words);
    let script = "PMI_FD=77 PMI_RANK=0 PMI_SIZE=2 exec \"$0\"";
    let output = shell(Launcher::None, 1, &[script, &hello.to_string_lossy()]);
    assert_failed(&output, &["PMI_FD", "descriptor 77 is not open"]);
}

#[test]
fn two_hosts_under_mpiexec_are_both_named() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "two_hosts_under_mpiexec_are_both_named";
    let new_network = Command::new("unshare").args(["--net", "true"]).output();
    if !new_network.is_ok_and(|output| output.status.success()) {
        return skip(test, "this user may not make a network namespace");
    }
    if !mpich_or_skip(test) {
        return;
    }
    let hello = program("hello");
    let second = ["--net", "--uts", "sh", "-c", "hostname elsewhere; exec \"$0\""];
    let mut arguments = vec![":", "-n", "1", "unshare"];
    let name = hello.to_string_lossy();
    arguments.extend(second);
    arguments.push(&name);
    let output = run(Launcher::Mpiexec, Library::Ours, 1, &hello, &arguments);
    assert_failed(&output, &["rank 0 runs on host", "rank 1 on host elsewhere", "one host"]);
}

/// Runs a script in processes of a launcher.
fn shell(launcher: Launcher, processes: u32, script: &[&str]) -> Output {
    let arguments = [&["-c"], script].concat();
    run(launcher, Library::Ours, processes, "bash".as_ref(), &arguments)
}

fn assert_failed(output: &Output, words: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    for word in words {
        assert!(errors.contains(word), "no {word:?} in:\n{errors}");
    }
}
