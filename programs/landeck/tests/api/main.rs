//! The Rust API as programs use it: several processes under the built launcher.
//!
//! A test runs itself again as the program: under the launcher it is a member of the job and does
//! its part; otherwise it starts the launcher and looks at what comes out.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod faults;
mod messages;
mod ports;
mod threads;

use std::process::{Command, Output};
use std::time::Duration;

use landeck::{Job, Options, ThreadMode};
use landeck_testing::{Trail, Watchdog};

/// No run may take longer.
const RUN_MAX: Duration = Duration::from_secs(60);
/// Nothing may be left longer than this after a run.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// Whether this process is a member of a job: then it does its part.
fn is_member() -> bool {
    std::env::var_os("LANDECK_SLOT").is_some()
}

/// The command that runs `test` of this file in a job of `processes`.
fn job_of(processes: usize, test: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    command.args(["run", "-n", &processes.to_string()]).args(options);
    command.arg(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// Runs `body` in every process of a job, and checks that all end well and leave nothing.
fn in_job(processes: usize, test: &str, threads: ThreadMode, body: impl FnOnce(&Job)) {
    if is_member() {
        let job = Job::join_with(Options { threads }).unwrap();
        body(&job);
        job.leave().unwrap();
        return;
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let ended = trail.run(&mut job_of(processes, test, &[]), RUN_MAX);
    assert!(ended.status.success(), "{}", text(&ended));
    trail.assert_gone(GONE_WITHIN);
}

fn text(ended: &Output) -> String {
    format!(
        "{:?}\n{}\n{}",
        ended.status,
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    )
}
