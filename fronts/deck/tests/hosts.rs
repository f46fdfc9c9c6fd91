//! Programs in C over two hosts, which are namespaces of this computer.

use std::time::Duration;

use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::program::assert_wrote;

use crate::support::{launcher_path, libraries, program, watched};

/// How long one test may take, once the launcher and the libraries are built.
const LIMIT: Duration = Duration::from_secs(400);
/// No job may take longer, in seconds.
const RUN_MAX: &str = "100";

/// Runs a program with one process and with two on each of two hosts.
fn agrees(name: &str, arguments: &[&str]) {
    let _watchdog = watched(LIMIT);
    let program = program(name);
    let Some(hosts) = Hosts::or_skip(name, &Wish::hosts(2)) else { return };
    for each in [1, 2] {
        let mut command = hosts.command(0, "timeout");
        command.args(["-k", "5", RUN_MAX]).arg(launcher_path());
        command.args(["run", "--rsh", "landeck-rsh", "--host", &format!("n1:{each},n2:{each}")]);
        command.args(["-n", &(2 * each).to_string()]).arg(&program).args(arguments);
        let output = command.env("LD_LIBRARY_PATH", libraries()).output().expect("it starts");
        assert_wrote(&output, &format!("{name}: {} nodes agree", 2 * each));
    }
}

#[test]
fn groups_over_both_hosts() {
    agrees("groups", &[]);
}

#[test]
fn members_of_both_hosts_that_send_and_take_in_turn_never_wait_for_themselves() {
    agrees("drains", &[]);
}

#[test]
fn groups_with_a_server_over_both_hosts() {
    agrees("served", &["hosts"]);
}

#[test]
fn semaphores_and_segments_of_another_host_are_refused_by_name() {
    agrees("elsewhere", &[]);
}
