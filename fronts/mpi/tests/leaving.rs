//! A rank that leaves with MPI_Finalize while others are in an operation with it: all of them are told at once, also
//! where it runs on.

use std::process::{Command, Output};
use std::time::Duration;

use crate::support::{self, Launcher, Library, command, program, run_command};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, jobs};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(600);
/// The ranks of the program: three that stay, and one that leaves for each operation.
const RANKS: u32 = 14;
const OPERATIONS: usize = 11;
/// The jobs whose processes have one lane each. Before their relays were asked for again, one in fourteen did not end.
const RETURNS: usize = 20;
/// When each is told at the latest: ten times what it takes over hosts, and less than the leaver stays.
const TOLD_MS: u64 = 2_000;

#[test]
fn all_are_told_at_once_of_a_rank_that_leaves_and_runs_on() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("leavers");
    check(&run_command(&mut command(Launcher::LandeckHere, Library::Ours, RANKS, &program)));
}

#[test]
fn all_are_told_at_once_over_hosts_of_a_rank_that_leaves_and_runs_on() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "all_are_told_at_once_over_hosts_of_a_rank_that_leaves_and_runs_on";
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    check(&run_command(&mut over(&hosts, RANKS, "leavers")));
}

#[test]
fn an_end_without_finalize_fails_the_job_also_behind_a_session() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "an_end_without_finalize_fails_the_job_also_behind_a_session";
    let program = program("ends_in_mpi");
    let mut here = command(Launcher::LandeckHere, Library::Ours, 4, &program);
    let mut outputs = vec![run_command(&mut here)];
    let hosts = Hosts::or_skip(test, &Wish::hosts(2));
    outputs.extend(hosts.map(|hosts| run_command(&mut over(&hosts, 4, "ends_in_mpi"))));
    for output in outputs {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("rank 1 of 4") && errors.contains("without calling MPI_Finalize"),
            "{errors}"
        );
    }
}

/// Processes that leave and return are new ones on every path: the last messages of the former are read, those to the next
/// wait for it, and a connection that is refused to the former is asked for again.
#[test]
fn processes_that_leave_return_over_hosts_on_every_path() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "processes_that_leave_return_over_hosts_on_every_path";
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    for (variable, value) in [("LANDECK_PATH", "lane"), ("LANDECK_PATH", "relay")] {
        returns(&hosts, variable, value);
    }
    // Which pair has the lane is chance.
    (0..RETURNS).for_each(|_| returns(&hosts, "LANDECK_LANES", "1"));
}

/// Runs a job whose processes leave and return twice. Nothing that its own processes do is a warning.
fn returns(hosts: &Hosts, variable: &str, value: &str) {
    let output = run_command(over(hosts, 4, "chapters/session_later").env(variable, value));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{variable}={value}: {errors}");
}

/// The command that runs a program over hosts, half of its ranks on each.
fn over(hosts: &Hosts, ranks: u32, name: &str) -> Command {
    let mut command = jobs::run_on(hosts, support::launcher(), ranks as usize);
    command.args(["-n", &ranks.to_string()]).arg(program(name));
    command.env("LD_LIBRARY_PATH", support::libraries());
    command
}

/// Checks that each of the three that stay was told in time, in each operation, and of the right rank.
fn check(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let all = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{all}");
    let told: Vec<&str> = said.lines().filter(|line| line.contains(" told ")).collect();
    assert_eq!(told.len(), 3 * OPERATIONS, "{all}");
    for line in told {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (is_told, leaver, ms) = (words[4], words[6], words[8]);
        assert_eq!(is_told, "1", "{all}");
        assert!(ms.parse::<u64>().expect("a time") < TOLD_MS, "{line}\n{all}");
        // As members of their group the one that leaves is behind rank 0, or behind all that stay.
        let in_group = if leaver.parse::<u32>().expect("a rank") < RANKS / 2 { 1 } else { 3 };
        let named = format!("rank {in_group} ");
        assert!(line.contains(&named) && line.contains("has left the job"), "{line}");
    }
}
