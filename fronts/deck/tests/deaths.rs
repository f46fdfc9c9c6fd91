//! kill -9 of one node in the middle of each operation, while the others stay: every one of them is told at once.

use std::process::Command;
use std::time::Duration;

use crate::support::{alone, launcher, launcher_path, libraries, program, watched};
use landeck_testing::deaths::{self, DeathPlace};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::jobs;

/// How long the test may take.
const LIMIT: Duration = Duration::from_secs(1_000);

#[test]
fn the_others_are_told_of_a_death_in_every_operation_while_all_of_them_stay() {
    let _watchdog = watched(LIMIT);
    let program = program("deaths");
    let path = program.to_str().expect("a path of ours");
    let job = |nodes: u64| launcher(&["--on-failure", "notify", "-n", &nodes.to_string(), path]);
    deaths::kill_in_each_operation(&mut alone(&program), DeathPlace::Here, job, |_, _| true);
}

#[test]
fn the_others_are_told_over_hosts_as_well() {
    let _watchdog = watched(LIMIT);
    let program = program("deaths");
    let wish = Wish::hosts(2);
    let Some(hosts) = Hosts::or_skip("the_others_are_told_over_hosts_as_well", &wish) else {
        return;
    };
    let job = |nodes: u64| -> Command {
        let mut job = jobs::run_on(&hosts, launcher_path(), nodes as usize);
        job.args(["--on-failure", "notify", "-n", &nodes.to_string()]).arg(&program);
        job.env("LD_LIBRARY_PATH", libraries());
        job
    };
    deaths::kill_in_each_operation(&mut alone(&program), DeathPlace::Over(&hosts), job, |_, _| {
        true
    });
}
