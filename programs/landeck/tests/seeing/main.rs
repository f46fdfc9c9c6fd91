//! `landeck ps`, `why` and `top` as their users know them: real jobs, stuck in real ways.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod doctor;
mod groups;
mod guests;
mod hosts;
mod index;
mod top;
mod traces;
mod why;

#[path = "../../../../crates/node/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use landeck::{Job, World};
use landeck_testing::{Trail, Watchdog};
use rustix::process::{Pid, Signal, kill_process};

/// No test may take longer.
const TEST_MAX: Duration = Duration::from_secs(200);
/// The expected output has to appear within this time.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// A job that goes on while it is looked at, with an index of its own.
struct Watched {
    child: Option<Child>,
    trail: Trail,
    name: String,
    runtime: PathBuf,
    _watchdog: Watchdog,
}

impl Watched {
    /// Starts `test` of this file as a job of so many processes.
    fn start(processes: usize, test: &str) -> Self {
        Self::start_with(processes, test, &[])
    }

    fn start_with(processes: usize, test: &str, options: &[&str]) -> Self {
        Self::start_in(processes, test, options, &[])
    }

    /// Starts it with these variables in its environment.
    fn start_in(
        processes: usize,
        test: &str,
        options: &[&str],
        variables: &[(&str, &Path)],
    ) -> Self {
        let watchdog = Watchdog::start(TEST_MAX);
        let trail = Trail::new();
        // A job's name has a limit, which those of tests exceed.
        let short: String = test.split("::").last().unwrap_or(test).chars().take(40).collect();
        let name = format!("{short}-{}", std::process::id());
        let runtime = std::env::temp_dir().join(format!("landeck-seeing-{name}"));
        std::fs::create_dir_all(&runtime).unwrap();
        let options = [&["--name", &name, "--grace", "0.2"], options].concat();
        let mut command = support::job_of(processes, test, &options);
        command.env("XDG_RUNTIME_DIR", &runtime).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = Some(trail.spawn(&mut command));
        Self { child, trail, name, runtime, _watchdog: watchdog }
    }

    /// Runs `landeck` with the job's name behind these words.
    fn landeck(&self, words: &[&str]) -> Output {
        self.landeck_command(words).output().unwrap()
    }

    fn landeck_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        command.env("XDG_RUNTIME_DIR", &self.runtime).args(words).arg(&self.name);
        command
    }

    /// Runs `landeck` until its output about the job contains `wanted`; returns the output.
    fn until_said(&self, words: &[&str], wanted: &str) -> String {
        self.until_all_said(words, &[wanted])
    }

    /// Runs `landeck` until its output contains all of `wanted`, since the processes get stuck independently.
    fn until_all_said(&self, words: &[&str], wanted: &[&str]) -> String {
        support::text(&self.until_output(words, wanted))
    }

    /// The output that contains all of `wanted`, with its exit code. On a busy machine the next look may find a thread at work.
    fn until_output(&self, words: &[&str], wanted: &[&str]) -> Output {
        let give_up = Instant::now() + SEEN_WITHIN;
        loop {
            let output = self.landeck(words);
            let said = support::text(&output);
            if wanted.iter().all(|wanted| said.contains(wanted)) {
                return output;
            }
            assert!(Instant::now() < give_up, "{wanted:?} is not in\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process numbers of the ranks.
    fn pids(&self) -> Vec<u32> {
        let said = self.landeck(&["ps", "--json"]);
        let jobs: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        let members = jobs[0]["members"].as_array().unwrap();
        members.iter().map(|member| member["pid"].as_u64().unwrap() as u32).collect()
    }

    /// Ends the job, which must leave nothing.
    fn end(mut self) {
        let child = self.child.take().unwrap();
        signal(child.id(), Signal::TERM);
        self.trail.finish(child, support::RUN_MAX);
        self.trail.assert_gone(support::GONE_WITHIN);
        let left: Vec<_> = std::fs::read_dir(self.runtime.join("landeck")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.runtime);
    }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Runs `body` as a member of a job that gets stuck, until the member is killed.
fn take_part(body: impl FnOnce(&Job, &World)) {
    let job = Job::join().unwrap();
    body(&job, &job.world());
}

/// Waits for nothing, in no call of the library.
fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

fn is_member() -> bool {
    support::is_member()
}
