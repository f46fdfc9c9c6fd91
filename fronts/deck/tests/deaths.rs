//! kill -9 of one node in the middle of each operation, while the others stay: every one of them is told at once.

use std::time::Duration;

use crate::support::{alone, launcher, program, watched};
use landeck_testing::deaths;

/// How long the test may take.
const LIMIT: Duration = Duration::from_secs(1_000);

#[test]
fn the_others_are_told_of_a_death_in_every_operation_while_all_of_them_stay() {
    let _watchdog = watched(LIMIT);
    let program = program("deaths");
    let path = program.to_str().expect("a path of ours");
    let job = |nodes: u64| launcher(&["--on-failure", "notify", "-n", &nodes.to_string(), path]);
    deaths::kill_in_each_operation(&mut alone(&program), job, |_, _| true);
}
