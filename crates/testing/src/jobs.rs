//! Decides where the jobs of tests run: on this host, or over several hosts if the variable `LANDECK_TEST_HOSTS` says
//! how many. With `LANDECK_TEST_MACHINE=1` they run in one machine that stays.
//!
//! Tests that start jobs take the command of the launcher from here and add options, program and arguments, so no test
//! exists twice. The hosts are those of [`crate::hosts`]; all jobs of a test program share them. What is about one host
//! by its nature stands in a list beside the tests, with the reason ([`OneHost`]).

use std::collections::BTreeSet;
use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::hosts::{Hosts, Wish};

/// The variable that sets over how many hosts the jobs of tests run.
const VARIABLE: &str = "LANDECK_TEST_HOSTS";
/// The variable that has these jobs run in one machine that stays, instead of one made for each job.
const MACHINE: &str = "LANDECK_TEST_MACHINE";
/// The greatest number: more hosts than processes show nothing.
const HOSTS_MAX: usize = 16;

/// Returns over how many hosts the jobs of tests run: 1 unless the variable `LANDECK_TEST_HOSTS` is set.
///
/// # Panics
///
/// If the variable is no number of hosts.
#[must_use]
pub fn hosts() -> usize {
    let Some(value) = env::var_os(VARIABLE) else { return 1 };
    let count = value.to_str().and_then(|text| text.parse().ok());
    let count = count.filter(|count| (1..=HOSTS_MAX).contains(count));
    count.unwrap_or_else(|| panic!("{VARIABLE} is {value:?}; set it to 1 to {HOSTS_MAX}"))
}

/// Returns the command `landeck run` for a job of so many processes, over as many hosts as the variable
/// `LANDECK_TEST_HOSTS` says. The caller adds everything else, `-n` included.
///
/// # Panics
///
/// If the hosts cannot be made.
#[must_use]
pub fn run(launcher: &Path, processes: usize) -> Command {
    static HOSTS: Mutex<Option<Hosts>> = Mutex::new(None);
    let count = hosts();
    if count == 1 {
        return run_here(launcher);
    }
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || Hosts::new(&Wish::hosts(count)).unwrap_or_else(|why| panic!("{why}"));
    let is_first = hosts.is_none();
    let hosts = hosts.get_or_insert_with(made);
    match env::var_os(MACHINE) {
        None => run_on(hosts, launcher, processes),
        Some(_) => run_in_machine(hosts, launcher, is_first),
    }
}

/// Returns the command `landeck run` for a job in a machine of these hosts, which is started for the first of them.
fn run_in_machine(hosts: &Hosts, launcher: &Path, is_first: bool) -> Command {
    if is_first {
        let mut start = hosts.command(0, launcher);
        start.args(["vm", "start", "--name", "tests", "--rsh", "landeck-rsh"]);
        start.args((1..hosts.count()).map(|host| hosts.name(host)));
        let started = start.output().unwrap_or_else(|why| panic!("landeck vm start: {why}"));
        assert!(started.status.success(), "landeck vm start: {started:?}");
    }
    let mut command = hosts.command(0, launcher);
    command.args(["run", "--machine", "tests", "--map-by", "node"]);
    command
}

/// Returns the command `landeck run` for a job on this host, whatever the variable `LANDECK_TEST_HOSTS` says. Its messages go
/// in two copies, whatever the host's figures and probe say, unless the variable `LANDECK_ONE_COPY` is set.
#[must_use]
pub fn run_here(launcher: &Path) -> Command {
    let mut command = Command::new(launcher);
    if env::var_os("LANDECK_ONE_COPY").is_none() {
        command.env("LANDECK_ONE_COPY", "never");
    }
    command.arg("run");
    command
}

/// Returns the command `landeck run` for a job of so many processes on these hosts, started from the first one. Each
/// host has as many slots as the others.
#[must_use]
pub fn run_on(hosts: &Hosts, launcher: &Path, processes: usize) -> Command {
    let mut command = hosts.command(0, launcher);
    command.args(["run", "--rsh", "landeck-rsh", "--host", &host_list(hosts, processes)]);
    command
}

/// The hosts as the option `--host` takes them: `n1:2,n2:2`.
fn host_list(hosts: &Hosts, processes: usize) -> String {
    let slots = processes.div_ceil(hosts.count());
    let hosts = (0..hosts.count()).map(|host| format!("{}:{slots}", hosts.name(host)));
    hosts.collect::<Vec<_>>().join(",")
}

/// A list of programs and tests that are about one host: in each line a name, `#` and the reason. A name that ends in
/// `*` means all names with that beginning.
#[derive(Debug, Clone, Copy)]
pub struct OneHost(&'static str);

impl OneHost {
    /// Creates the list from its text.
    #[must_use]
    pub const fn new(text: &'static str) -> OneHost {
        OneHost(text)
    }

    /// Returns why the jobs of this program or test stay on one host; `None` if they do not, or if all jobs are on one
    /// host anyway. The reason is printed the first time, for the list at the end of a run.
    #[must_use]
    pub fn reason(self, name: &str) -> Option<&'static str> {
        let reason = self.find(name).filter(|_| hosts() > 1)?;
        static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.insert(name.to_owned()) {
            // Past the capture of the test harness.
            let _ = writeln!(io::stdout(), "ON ONE HOST {name}: {reason}");
        }
        Some(reason)
    }

    fn find(self, name: &str) -> Option<&'static str> {
        let entries = self.0.lines().filter_map(|line| line.split_once('#'));
        let entries = entries.map(|(name, reason)| (name.trim(), reason.trim()));
        let mut entries = entries.filter(|(name, _)| !name.is_empty());
        let is_meant = |entry: &str| match entry.strip_suffix('*') {
            Some(beginning) => !beginning.is_empty() && name.starts_with(beginning),
            None => name == entry,
        };
        entries.find(|(entry, _)| is_meant(entry)).map(|(_, reason)| reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: OneHost =
        OneHost::new("# a comment\norder   # files in /tmp\napi::ports* # one door\n");

    #[test]
    fn a_name_is_found_with_its_reason() {
        assert_eq!(LIST.find("order"), Some("files in /tmp"));
        assert_eq!(LIST.find("api::ports::two_jobs_meet"), Some("one door"));
        for other in ["", "orders", "api", "a comment"] {
            assert_eq!(LIST.find(other), None, "{other}");
        }
    }

    #[test]
    fn a_job_here_names_no_host() {
        let command = run_here(Path::new("/landeck"));
        assert_eq!(command.get_program(), "/landeck");
        assert!(command.get_args().eq(["run"]), "{command:?}");
    }
}
