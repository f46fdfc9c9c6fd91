//! Starts the command of a suite, passes its output on as it comes, and counts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use landeck_testing::program::forget_package;

use super::tally::{LATE, Tally};
use crate::{Problem, processor_time};

/// No suite runs longer than this, whatever its tests do: several times as long as the longest takes on two
/// processors, because others may use these as well.
const SUITE_LIMIT_S: u32 = 45 * 60;
const SOAK_SUITE_LIMIT_S: u32 = 60 * 60;

/// Where the limit and the program stand among the arguments of a command under the watchdog.
const LIMIT_PLACE: usize = 4;
const PROGRAM_PLACE: usize = 5;

/// `timeout` ends with this exit code when the limit was met.
const LIMIT_CODE: i32 = 124;

/// A script says with this exit code that the machine cannot run it.
const SKIPPED_CODE: i32 = 77;

/// Runs commands in the repository.
pub(super) struct Runner {
    root: PathBuf,
    soak: bool,
    client_arguments: Vec<String>,
    part: Option<String>,
    named: Vec<String>,
}

impl Runner {
    pub(super) fn new(root: &Path, soak: bool) -> Self {
        let (client_arguments, named) = (Vec::new(), Vec::new());
        Self { root: root.to_owned(), soak, client_arguments, part: None, named }
    }

    /// Sets the arguments of a client's script.
    pub(super) fn for_client(self, arguments: &[String]) -> Self {
        Self { client_arguments: arguments.to_vec(), ..self }
    }

    /// Selects a part of a suite that runs in parts.
    pub(super) fn for_part(self, part: Option<&str>) -> Self {
        Self { part: part.map(str::to_owned), ..self }
    }

    /// Selects tests by parts of their names, in a suite that can run some of its tests.
    pub(super) fn for_named(self, named: &[String]) -> Self {
        Self { named: named.to_vec(), ..self }
    }

    /// Parts of the names of the tests that are wanted; none if all are.
    pub(super) fn named(&self) -> &[String] {
        &self.named
    }

    /// The part that is wanted, if not all are.
    pub(super) fn part(&self) -> Option<&str> {
        self.part.as_deref()
    }

    /// The arguments of a client's script.
    pub(super) fn client_arguments(&self) -> &[String] {
        &self.client_arguments
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn is_soak(&self) -> bool {
        self.soak
    }

    /// A cargo command.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(Path::new("cargo"));
        command.args(arguments);
        command
    }

    /// A command under a watchdog, which also ends it when this process is ended.
    pub(super) fn command(&self, program: &Path) -> Command {
        self.limited_command(program, if self.soak { SOAK_SUITE_LIMIT_S } else { SUITE_LIMIT_S })
    }

    /// A command that takes as long as those of a soak, whether this is one or not.
    pub(super) fn long_command(&self, program: &Path) -> Command {
        self.limited_command(program, SOAK_SUITE_LIMIT_S)
    }

    fn limited_command(&self, program: &Path, limit_s: u32) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "timeout", "--kill-after=10", &limit_s.to_string()]);
        command.arg(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        forget_package(&mut command);
        if self.soak {
            command.env("LANDECK_SOAK", "1");
        }
        command
    }

    /// Runs a command that is one test.
    pub(super) fn one(&self, name: &str, command: Command) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        let status = run(command, |line| tally.note_late(line))?;
        say!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
        tally.add(&Tally::one(status.success()));
        Ok(tally)
    }

    /// Runs a command that counts its tests itself.
    pub(super) fn counted(&self, command: Command) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        let status = run(command, |line| tally.read(line))?;
        Ok(tally.close(status.success()))
    }

    /// Runs a script that counts its tests itself, or says in its last line why it cannot run.
    pub(super) fn counted_or_skipped(
        &self,
        name: &str,
        command: Command,
    ) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        let mut last_line = String::new();
        let status = run(command, |line| {
            tally.read(line);
            line.clone_into(&mut last_line);
        })?;
        if status.code() == Some(SKIPPED_CODE) {
            return Ok(Tally::skipped_one(&format!("{name}: {last_line}")));
        }
        Ok(tally.close(status.success()))
    }

    /// Runs a command, shows each line of what it prints to `see`, and prints none. Returns its processor time, too.
    pub(super) fn lines(
        &self,
        command: Command,
        see: impl FnMut(&str),
    ) -> Result<(ExitStatus, Duration), Problem> {
        run_silently(command, see)
    }

    /// Runs a script that is one test.
    pub(super) fn script(&self, script: &Path) -> Result<Tally, Problem> {
        let name = script.strip_prefix(&self.root).unwrap_or(script).display().to_string();
        let (mut tally, mut last_line) = (Tally::default(), String::new());
        let status = run(self.command(script), |line| {
            tally.note_late(line);
            line.clone_into(&mut last_line);
        })?;
        if status.code() == Some(SKIPPED_CODE) {
            say!("test {name} ... skipped");
            return Ok(Tally::skipped_one(&format!("{name}: {last_line}")));
        }
        say!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
        tally.add(&Tally::one(status.success()));
        Ok(tally)
    }

    /// The scripts in a folder, by name.
    pub(super) fn scripts(&self, folder: &str) -> Result<Vec<PathBuf>, Problem> {
        let folder = self.root.join(folder);
        let unreadable = |error| Problem::Read { path: folder.clone(), error };
        let mut scripts = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "sh") {
                scripts.push(path);
            }
        }
        scripts.sort();
        Ok(scripts)
    }

    /// Whether a program of this name can be started.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Whether the compiler can build for a target.
    pub(super) fn has_standard_library(&self, target: &str) -> bool {
        let output =
            Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
        output.is_ok_and(|output| {
            let folder = String::from_utf8_lossy(&output.stdout);
            let files = fs::read_dir(folder.trim()).into_iter().flatten().flatten();
            files
                .map(|file| file.file_name())
                .any(|name| name.to_string_lossy().starts_with("libstd-"))
        })
    }
}

/// Runs a command to its end, printing each line and showing it to `see`.
fn run(command: Command, mut see: impl FnMut(&str)) -> Result<ExitStatus, Problem> {
    let (status, _) = run_silently(command, |line| {
        say!("{line}");
        see(line);
    })?;
    Ok(status)
}

/// Runs a command to its end, showing each line to `see`; returns the processor time of what the watchdog started, too.
fn run_silently(
    mut command: Command,
    mut see: impl FnMut(&str),
) -> Result<(ExitStatus, Duration), Problem> {
    let argument =
        |place| command.get_args().nth(place).unwrap_or_default().to_string_lossy().into_owned();
    let (program, limit_s) = (argument(PROGRAM_PLACE), argument(LIMIT_PLACE));
    let unstartable = |error| Problem::Start { program: program.clone(), error };
    let (reader, writer) = std::io::pipe().map_err(unstartable)?;
    command.stderr(writer.try_clone().map_err(unstartable)?).stdout(writer);
    let mut child = command.spawn().map_err(unstartable)?;
    drop(command); // it holds the writing end
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.map_err(unstartable)?;
        see(&String::from_utf8_lossy(&line));
    }
    let computed = processor_time::below_child(&child);
    let status = child.wait().map_err(unstartable)?;
    if status.code() == Some(LIMIT_CODE) {
        see(&format!("{LATE}\"{program}\" was ended at its limit of {limit_s} s"));
    }
    Ok((status, computed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        let runner = Runner::new(Path::new("/"), false);
        let mut command = runner.command(Path::new("sh"));
        command.args(["-c", text]);
        command
    }

    #[test]
    fn both_outputs_are_seen_and_the_status_counts() {
        let runner = Runner::new(Path::new("/"), false);
        let text = "echo 'test result: ok. 3 passed; 0 failed'; echo 'SKIPPED a: b' >&2; exit 1";
        let tally = runner.counted(shell(text)).unwrap();
        assert_eq!(tally.to_string(), "2 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_command_that_meets_its_limit_says_so() {
        let runner = Runner::new(Path::new("/"), false);
        let mut command = runner.limited_command(Path::new("sleep"), 1);
        command.arg("60");
        let tally = runner.counted(command).unwrap();
        assert_eq!(tally.failed, 1);
        assert_eq!(tally.late, ["\"sleep\" was ended at its limit of 1 s"]);
    }

    #[test]
    fn a_single_test_passes_with_zero() {
        let runner = Runner::new(Path::new("/"), false);
        assert_eq!(runner.one("a", shell("exit 0")).unwrap().passed, 1);
        assert_eq!(runner.one("a", shell("exit 3")).unwrap().failed, 1);
    }
}
