//! Runs a test of this program as a job over two hosts, which runs the test again in each process.

use std::process::Output;
use std::time::Duration;

use landeck::{Job, Options};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};

use crate::support::{is_member, launcher, text};

/// Ranks of each host.
pub(crate) const EACH: usize = 2;
/// Ranks of both hosts. The first ones are on n1.
pub(crate) const RANKS: usize = 2 * EACH;
/// The longest time of a job, in seconds.
const RUN_MAX: &str = "120";

/// Runs `body` in every process of a job over two hosts, and checks that all end well.
pub(crate) fn over_hosts(test: &str, body: impl FnOnce(&Job)) {
    over_hosts_with(test, &[], Options::default(), body);
}

/// Runs `body` in every process of a job over two hosts, started with and joined by these options.
pub(crate) fn over_hosts_with(
    test: &str,
    started_with: &[&str],
    options: Options,
    body: impl FnOnce(&Job),
) {
    if is_member() {
        let job = Job::join_with(options).unwrap();
        body(&job);
        return job.leave().unwrap();
    }
    if let Some(ended) = run(test, started_with) {
        assert!(ended.status.success(), "{}", text(&ended));
        assert!(!text(&ended).contains("panicked"), "{}", text(&ended));
    }
}

/// Runs a test of this program as a job over two hosts; `None` where hosts cannot be made.
pub(crate) fn run(test: &str, options: &[&str]) -> Option<Output> {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let launcher = launcher(); // it may have to be built
    let hosts = Hosts::or_skip(test, &Wish::hosts(2))?;
    let mut command = hosts.command(0, "timeout");
    command.args(["-k", "5", RUN_MAX]).arg(launcher).args(["run", "--rsh", "landeck-rsh"]);
    command.args(["--host", &format!("n1:{EACH},n2:{EACH}"), "-n", &RANKS.to_string()]);
    command.args(options).arg(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    Some(command.output().unwrap())
}
