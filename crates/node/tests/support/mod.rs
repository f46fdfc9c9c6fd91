//! Helpers for tests of whole jobs: a test runs itself again as the program. Under the launcher it
//! is a member of the job and does its part; otherwise it starts the launcher and checks the
//! output. The tests of the command `landeck` use this module too.
#![allow(dead_code, unused_imports)] // no test target needs all of it

pub(crate) mod agreeing;
mod count;
pub(crate) mod named_groups;
mod seeded;
mod small_group;
mod survivors;

pub(crate) use count::Count;
pub(crate) use seeded::{run_each, seed_of_job, seeded_job_of};
pub(crate) use small_group::SmallGroup;
pub(crate) use survivors::{Survivors, stay_until_told};

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use landeck::{Job, Options, ThreadMode};
use landeck_testing::jobs::{self, OneHost};
use landeck_testing::program::build;
use landeck_testing::{Trail, Watchdog};

/// No run may take longer: none takes a tenth of it where it has the processors to itself.
pub(crate) const RUN_MAX: Duration = Duration::from_secs(150);
/// Nothing may be left longer than this after a run.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(60);
/// Deaths are noticed within 100 ms where processors are free. Tests tell that from a wait for a time limit, also
/// where others compute and a process waits for its turn for seconds.
pub(crate) const NOTICED_WITHIN: Duration = Duration::from_secs(30);

/// Whether this process is a member of a job: then it does its part.
pub(crate) fn is_member() -> bool {
    std::env::var_os("LANDECK_SLOT").is_some()
}

/// Whether the tests are to take their time.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("LANDECK_SOAK").is_some()
}

/// The launcher. Cargo has built it for the tests of its own package; other tests build it at their first job.
pub(crate) fn launcher() -> &'static Path {
    static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();
    LAUNCHER.get_or_init(|| match option_env!("CARGO_BIN_EXE_landeck") {
        Some(built) => built.into(),
        None => build(env!("CARGO")).join("landeck"),
    })
}

/// The tests whose jobs stay on one host when those of the others run over several.
const ONE_HOST: OneHost = OneHost::new(include_str!("../one-host.txt"));

/// Why the jobs of a test stay on one host; `None` if they go where all go.
fn one_host(test: &str) -> Option<&'static str> {
    ONE_HOST.reason(&format!("{}::{test}", env!("CARGO_CRATE_NAME")))
}

/// The command that runs `test` of this file in a job of `processes`, on the hosts where the jobs of tests run.
pub(crate) fn job_of(processes: usize, test: &str, options: &[&str]) -> Command {
    let command = match one_host(test) {
        Some(_) => jobs::run_here(launcher()),
        None => jobs::run(launcher(), processes),
    };
    job_by(command, processes, test, options)
}

/// Completes the command of a job that runs `test` of this file.
pub(crate) fn job_by(mut run: Command, processes: usize, test: &str, options: &[&str]) -> Command {
    run.args(["-n", &processes.to_string()]).args(options).arg(std::env::current_exe().unwrap());
    run.args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    run
}

/// Runs `body` in every process of a job, and checks that all end well and leave nothing.
pub(crate) fn in_job(processes: usize, test: &str, threads: ThreadMode, body: impl FnOnce(&Job)) {
    in_job_with(processes, test, Options { threads, ..Options::default() }, body);
}

/// Runs `body` in every process of a job that joins with these options, and checks that all end
/// well and leave nothing. Over several hosts, a test about one host does nothing.
pub(crate) fn in_job_with(processes: usize, test: &str, options: Options, body: impl FnOnce(&Job)) {
    if is_member() {
        let job = Job::join_with(options).unwrap();
        body(&job);
        job.leave().unwrap();
        return;
    }
    if one_host(test).is_none() {
        run_well(&mut job_of(processes, test, &[]));
    }
}

/// Runs `body` in every process of a job that goes on after a failure; all but one of them end by
/// saying `survivor done`. Over several hosts, a test about one host does nothing.
pub(crate) fn in_enduring_job(processes: usize, test: &str, code: i32, body: impl FnOnce(Job)) {
    in_enduring_job_with(processes, test, ThreadMode::Single, code, body);
}

/// Runs `body` as [`in_enduring_job`] does, in processes that call with these threads.
pub(crate) fn in_enduring_job_with(
    processes: usize,
    test: &str,
    threads: ThreadMode,
    code: i32,
    body: impl FnOnce(Job),
) {
    if is_member() {
        return body(Job::join_with(Options { threads, ..Options::default() }).unwrap());
    }
    if one_host(test).is_some() {
        return;
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let ended = trail.run(&mut job_of(processes, test, &["--on-failure", "notify"]), RUN_MAX);
    assert_eq!(ended.status.code(), Some(code), "{}", text(&ended));
    let output = text(&ended);
    assert_eq!(output.matches("survivor done").count(), processes - 1, "{output}");
    trail.assert_gone(GONE_WITHIN);
}

/// The folder of files that all hosts of a job see; their /tmp is their own.
pub(crate) fn shared_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The path of a file for all members of a job, on all hosts. All of the job call this.
pub(crate) fn shared_file(job: &Job, name: &str) -> PathBuf {
    let mut number = [job.process().segment.0];
    job.world().broadcast(&mut number, 0).unwrap();
    shared_folder().join(format!("landeck-{:x}-{name}", number[0]))
}

/// Ends this process as a fault would.
pub(crate) fn kill_myself() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
    unreachable!("killed")
}

/// Runs a job that must end well and leave nothing.
pub(crate) fn run_well(command: &mut Command) {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let ended = trail.run(command, RUN_MAX);
    assert!(ended.status.success(), "{}", text(&ended));
    trail.assert_gone(GONE_WITHIN);
}

/// Says that a test cannot run here, past the capture of the test harness.
pub(crate) fn skipped(test: &str, why: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "SKIPPED {test}: {why}").unwrap();
}

/// All that a run has said.
pub(crate) fn text(ended: &Output) -> String {
    format!(
        "{:?}\n{}\n{}",
        ended.status,
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    )
}

/// Files of ours in /dev/shm, and sockets of the job with this identity: there should be none when
/// it is over.
pub(crate) fn names_left_by(job: &str) -> Vec<String> {
    let files = landeck_testing::leftovers().into_iter().filter(|left| left.contains("/dev/shm"));
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    let address = format!("-{job}");
    let sockets = sockets.lines().filter(|line| line.contains("@landeck-"));
    files.chain(sockets.filter(|line| line.ends_with(&address)).map(str::to_owned)).collect()
}
