//! Runs test programs of the workspace some at a time. Cargo runs one after the other, and jobs of several processes,
//! with deaths and time limits, wait more than they compute.

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde::Deserialize;

use super::runner::Runner;
use super::tally::Tally;
use crate::Problem;

/// How many programs run at a time. Each runs some tests at a time itself.
const AT_A_TIME: usize = 2;

/// How many tests of a program run at a time, as the test harness reads it.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// The programs that take longest, longest first. They start first, so that none of them runs alone at the end.
const LONGEST: [&str; 10] = [
    "fronts/mpi all",
    "programs/landeck hosts",
    "fronts/deck all",
    "crates/node faults",
    "crates/collectives proofs",
    "crates/node api",
    "programs/bench hosts",
    "crates/node hosts",
    "programs/bench landeck_bench",
    "examples/rust launched",
];

/// A test program that cargo has built.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// The folder of its package below the root, and the name of its target.
    name: String,
    /// The folder of its package, which it runs in.
    folder: PathBuf,
    executable: PathBuf,
}

/// A line that cargo prints for each unit that it has built; other lines have other fields.
#[derive(Deserialize)]
struct Built {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds the test programs that cargo selects by `selection`, as the workspace as a whole has them, and runs each:
/// the tests whose names contain one of the texts `named`, or all tests if there is none, with these variables.
pub(super) fn run(
    runner: &Runner,
    selection: &[&str],
    named: &[&str],
    variables: &[(&str, &str)],
) -> Result<Tally, Problem> {
    // The whole workspace, so that nothing is built again with other features.
    let mut build = runner.cargo(&["test", "--locked", "--workspace", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics").args(selection);
    let mut programs = Vec::new();
    let (status, _) = runner.lines(build, |line| match line.strip_prefix('{') {
        Some(_) => programs.extend(Program::read(runner.root(), line)),
        None => say!("{line}"),
    })?;
    if !status.success() {
        return Ok(Tally::one(false));
    }
    programs.sort_by_key(Program::place);
    let waiting = Mutex::new(VecDeque::from(programs));
    let sum = Mutex::new(Tally::default());
    let next = || lock(&waiting).pop_front();
    let work = || -> Result<(), Problem> {
        while let Some(program) = next() {
            let mut command = program.command(runner);
            command.args(named).envs(variables.iter().copied());
            let start = Instant::now();
            let (mut tally, mut lines) = (Tally::default(), Vec::new());
            let (status, computed) = runner.lines(command, |line| {
                tally.read(line);
                lines.push(line.to_owned());
            })?;
            // The lines of two programs do not mix.
            let mut sum = lock(&sum);
            let (took, computed) = (start.elapsed().as_secs_f64(), computed.as_secs_f64());
            say!("     Running {} ({took:.1} s, processor {computed:.1} s)", program.name);
            for line in lines {
                say!("{line}");
            }
            sum.add(&tally.close(status.success()));
        }
        Ok(())
    };
    let ends: Vec<Result<(), Problem>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(work)).collect();
        let end = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(end).collect()
    });
    ends.into_iter().collect::<Result<(), Problem>>()?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Program {
    /// Reads a line of cargo, if it is about a test program.
    fn read(root: &Path, line: &str) -> Option<Self> {
        let built: Built = serde_json::from_str(line).ok()?;
        let executable = built.executable.filter(|_| built.profile.test)?;
        let folder = built.manifest_path.parent()?.to_owned();
        let below = folder.strip_prefix(root).unwrap_or(&folder).display();
        let name = format!("{below} {}", built.target.name);
        Some(Self { name, folder, executable })
    }

    /// Its place in the order of starts.
    fn place(&self) -> usize {
        LONGEST.iter().position(|name| *name == self.name).unwrap_or(LONGEST.len())
    }

    /// The command that runs it, as cargo would.
    fn command(&self, runner: &Runner) -> Command {
        let mut command = runner.command(&self.executable);
        command.current_dir(&self.folder);
        if std::env::var_os(TEST_THREADS).is_none() {
            let processors = thread::available_parallelism().map_or(1, NonZero::get);
            command.env(TEST_THREADS, (2 * processors).to_string());
        }
        command
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_read_from_what_cargo_prints() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/node/Cargo.toml",
                "target":{{"name":"api","kind":["test"]}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let program = Program::read(Path::new("/r"), &line(true, r#""/r/target/api-1""#)).unwrap();
        assert_eq!(program.name, "crates/node api");
        assert_eq!(program.folder, Path::new("/r/crates/node"));
        assert_eq!(program.executable, Path::new("/r/target/api-1"));
        assert_eq!(Program::read(Path::new("/r"), &line(false, r#""/r/target/api""#)), None);
        assert_eq!(Program::read(Path::new("/r"), &line(true, "null")), None);
        assert_eq!(Program::read(Path::new("/r"), r#"{"reason":"build-finished"}"#), None);
    }
}
