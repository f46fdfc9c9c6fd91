//! `landeck run` as its users know it: the built command, real processes, real signals.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod descriptions;
mod detached;
mod exit;
mod faults;
mod input;
mod linkage;
mod members;
mod mpiexec;
mod options;
mod output;
mod restarts;
mod signals;
#[path = "../../../../crates/node/tests/support/mod.rs"]
mod support;
mod tuning;

use landeck_testing::{Trail, Watchdog};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// No test may take longer.
const TEST_MAX: Duration = Duration::from_secs(400);
/// No run may take longer.
const RUN_MAX: Duration = Duration::from_secs(150);
/// Nothing may be left longer than this after a run.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// A run that ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

/// A run that goes on.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    trail: Trail,
    _watchdog: Watchdog,
}

/// The command `landeck run` with these arguments.
fn landeck_run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    command.arg("run").args(arguments);
    command
}

/// Runs a job to its end, and checks that nothing is left of it.
fn run(arguments: &[&str]) -> Ended {
    run_command(&mut landeck_run(arguments))
}

fn run_command(command: &mut Command) -> Ended {
    let _watchdog = Watchdog::start(TEST_MAX);
    let trail = Trail::new();
    let ended = Ended::from(trail.run(command, RUN_MAX));
    trail.assert_gone(GONE_WITHIN);
    ended
}

/// Runs a job of `n` shells to its end.
fn run_shells(n: u32, options: &[&str], script: &str) -> Ended {
    let n = n.to_string();
    run(&[&["-n", &n], options, &["sh", "-c", script]].concat())
}

/// Starts a job of `n` shells, and waits until each has written the line `ready`.
fn start_shells(n: u32, options: &[&str], script: &str) -> Running {
    let n_text = n.to_string();
    let arguments = [&["-n", &n_text], options, &["sh", "-c", script]].concat();
    let mut running = start(landeck_run(&arguments).stdin(Stdio::null()));
    (0..n).for_each(|_| assert_eq!(running.line(), "ready"));
    running
}

fn start(command: &mut Command) -> Running {
    let watchdog = Watchdog::start(TEST_MAX);
    let trail = Trail::new();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = trail.spawn(command);
    let lines = BufReader::new(child.stdout.take().unwrap());
    Running { child, lines, trail, _watchdog: watchdog }
}

/// Starts a job whose launcher writes both of its streams into one pipe.
fn start_merged(arguments: &[&str]) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 2>&1", "sh", env!("CARGO_BIN_EXE_landeck"), "run"]);
    start(command.args(arguments).stdin(Stdio::null()))
}

/// A shell that goes on until it gets USR1, and says so. It is ready when it has said its rank.
const GOES_ON: &str =
    "trap 'echo done; exit 0' USR1; echo ready $RANK; while :; do sleep 0.05; done";

impl Running {
    /// Reads lines until all of these words have come.
    fn until(&mut self, words: &[&str]) {
        let mut said = String::new();
        while !words.iter().all(|words| said.contains(words)) {
            assert_ne!(self.lines.read_line(&mut said).unwrap(), 0, "{words:?} is not in {said}");
        }
    }

    /// The next line on standard output.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        send(self.child.id(), signal);
    }

    /// Waits for the end, and checks that nothing is left.
    fn end(self) -> Ended {
        let Running { child, mut lines, trail, .. } = self;
        let mut out = String::new();
        let ended = trail.finish(child, RUN_MAX);
        lines.read_to_string(&mut out).unwrap();
        trail.assert_gone(GONE_WITHIN);
        Ended { out, ..Ended::from(ended) }
    }

    /// The processes of the job: those whose parent is the guardian.
    fn members(&self) -> Vec<u32> {
        let guardian = self.guardian();
        let processes = self.trail.processes().into_iter();
        processes.map(|(pid, _)| pid).filter(|pid| parent(*pid) == Some(guardian)).collect()
    }

    /// The guardian: the launcher's child.
    fn guardian(&self) -> u32 {
        let mut processes = self.trail.processes().into_iter();
        let launcher = self.child.id();
        processes.find(|(pid, _)| parent(*pid) == Some(launcher)).expect("there is a guardian").0
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A field of /proc/PID/status.
fn status_field(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches(':').trim().to_owned())
}

fn parent(pid: u32) -> Option<u32> {
    status_field(pid, "PPid")?.parse().ok()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
