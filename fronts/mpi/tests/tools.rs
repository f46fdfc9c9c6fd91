//! Tools that people use on programs of MPI, below our launcher: a debugger, a memory checker, a
//! profiler that takes the place of functions.

use std::process::Command;
use std::time::Duration;

use crate::support::{Launcher, Library, interposer, program, run, skip};
use landeck_testing::Watchdog;
use landeck_testing::program::assert_wrote;

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn a_debugger_stops_in_a_function_of_the_library() {
    let _watchdog = Watchdog::start(LIMIT);
    if !is_there_or_skip("gdb", "a_debugger_stops_in_a_function_of_the_library") {
        return;
    }
    let ring = program("ring");
    let name = ring.to_string_lossy();
    let mut arguments = vec!["-q", "-batch", "-nx", "-ex", "set breakpoint pending on"];
    for order in ["break MPI_Send", "run", "backtrace", "delete", "continue"] {
        arguments.extend(["-ex", order]);
    }
    arguments.push(&name);
    let output = run(Launcher::Landeck, Library::Ours, 2, "gdb".as_ref(), &arguments);
    assert_wrote(&output, "ring: 2 processes agree");
    let written = String::from_utf8_lossy(&output.stdout);
    assert_eq!(written.matches("Breakpoint 1, ").count(), 2, "{written}");
    assert_eq!(written.matches(" in main (").count(), 2, "{written}");
}

#[test]
fn a_memory_checker_finds_nothing() {
    let _watchdog = Watchdog::start(LIMIT);
    if !is_there_or_skip("valgrind", "a_memory_checker_finds_nothing") {
        return;
    }
    for name in ["ring", "allreduce"] {
        let program = program(name);
        let arguments =
            ["-q", "--error-exitcode=99", "--leak-check=no", &program.to_string_lossy()];
        let output = run(Launcher::Landeck, Library::Ours, 2, "valgrind".as_ref(), &arguments);
        assert_wrote(&output, &format!("{name}: 2 processes agree"));
    }
}

#[test]
fn a_memory_checker_finds_the_mistake_of_a_program() {
    let _watchdog = Watchdog::start(LIMIT);
    if !is_there_or_skip("valgrind", "a_memory_checker_finds_the_mistake_of_a_program") {
        return;
    }
    let program = program("short_buffer");
    let arguments = ["-q", "--error-exitcode=99", "--leak-check=no", &program.to_string_lossy()];
    let output = run(Launcher::Landeck, Library::Ours, 2, "valgrind".as_ref(), &arguments);
    assert_eq!(output.status.code(), Some(99), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("Invalid write") && errors.contains(": main ("), "{errors}");
}

#[test]
fn the_processor_has_its_name_without_proc() {
    let _watchdog = Watchdog::start(LIMIT);
    let apart = ["--user", "--map-root-user", "--mount"];
    let can = Command::new("unshare").args(apart).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skip("the_processor_has_its_name_without_proc", "mounts are not allowed here");
    }
    let hello = program("hello");
    let hidden = "mount -t tmpfs none /proc && exec \"$0\"";
    let hello = hello.to_string_lossy();
    let arguments = [&apart[..], &["sh", "-c", hidden, &hello]].concat();
    let output = run(Launcher::Landeck, Library::Ours, 2, "unshare".as_ref(), &arguments);
    assert_wrote(&output, "rank 1 of 2");
}

#[test]
fn a_profiler_counts_calls() {
    let _watchdog = Watchdog::start(LIMIT);
    let (profiler, ring) = (interposer("profiler"), program("ring"));
    let preload = format!("LD_PRELOAD={}", profiler.display());
    let arguments = [preload.as_str(), &ring.to_string_lossy()];
    let output = run(Launcher::Landeck, Library::Ours, 2, "env".as_ref(), &arguments);
    assert_wrote(&output, "ring: 2 processes agree");
    for rank in 0..2 {
        assert_wrote(&output, &format!("rank {rank}: 2 sent, 101 received, 1 reduced"));
    }
}

/// Whether a tool is installed. If not, this says that the test is skipped.
fn is_there_or_skip(tool: &str, test: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok();
    if !is_there {
        skip(test, &format!("{tool} is not installed; scripts/bootstrap.sh test installs it"));
    }
    is_there
}
