//! A job over two hosts.

use std::process::{Command, Output};
use std::time::Duration;

use landeck::{Job, Options};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, jobs};

use crate::support::{is_member, job_by, launcher, text};

/// The number of ranks; the first half of them is on host n1, the other on n2.
pub(crate) const RANKS: usize = 4;
pub(crate) const EACH: usize = RANKS / 2;
/// No job may take longer, in seconds.
const RUN_MAX: &str = "100";

/// Runs `body` in every process of a job over two hosts. All processes must end well.
pub(crate) fn on_hosts(test: &str, body: impl FnOnce(&Job)) {
    on_hosts_with(test, Options::default(), body);
}

/// Runs `body` in every process of a job over two hosts, which joins with these options.
pub(crate) fn on_hosts_with(test: &str, options: Options, body: impl FnOnce(&Job)) {
    if is_member() {
        let job = Job::join_with(options).unwrap();
        body(&job);
        return job.leave().unwrap();
    }
    if let Some(ended) = run(test, &[]) {
        assert!(ended.status.success(), "{}", text(&ended));
    }
}

/// Runs a test of this program as a job over two hosts; `None` where hosts cannot be made.
pub(crate) fn run(test: &str, options: &[&str]) -> Option<Output> {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let hosts = Hosts::or_skip(test, &Wish::hosts(2))?;
    let ended = command(&hosts, EACH, test, options).output().unwrap();
    let said = text(&ended);
    // However a job ends, its own connections are no strangers.
    assert!(!said.contains("landeckd refused"), "{said}");
    Some(ended)
}

/// The command that runs a test of this program as a job with `each` ranks on each of two hosts.
pub(crate) fn command(hosts: &Hosts, each: usize, test: &str, options: &[&str]) -> Command {
    let run = jobs::run_on(hosts, launcher(), 2 * each);
    job_by(run, 2 * each, test, &[&["--timeout", RUN_MAX], options].concat())
}
