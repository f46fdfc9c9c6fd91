//! One launch of a program: started, watched, ended in time, with nothing of it left behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, set_child_subreaper,
};

use crate::sample::Sample;

/// The outcome of a launch.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) samples: Vec<Sample>,
    /// From before the start to the end of the launcher.
    pub(crate) wall: Duration,
    /// Why the samples should not be trusted, if so.
    pub(crate) trouble: Option<String>,
}

/// Loops without end that take processors from a job, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    /// Starts so many.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub(crate) fn start(count: u32) -> io::Result<BusyLoops> {
        let mut loops = BusyLoops::default();
        for _ in 0..count {
            loops.0.push(Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for busy in &mut self.0 {
            // It may have been ended with a launch that hung.
            let _ = busy.kill().and_then(|()| busy.wait());
        }
    }
}

/// Orphans of launchers come to this process, so that they can be found and ended.
pub(crate) fn adopt_orphans() {
    // Without it only the cleaning up after a hanging peer is less thorough.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Launches never overlap: they would disturb each other's figures, and cleaning up after one
/// would hit the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the command to its end, or ends it when the time is over.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> Outcome {
    let _alone = ONE_AT_A_TIME.lock();
    let shared_before = shared_memory_names();
    let start = Instant::now();
    let mut child = match command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
    {
        Ok(child) => child,
        Err(error) => {
            let program = Path::new(command.get_program()).display();
            return Outcome {
                samples: Vec::new(),
                wall: start.elapsed(),
                trouble: Some(format!("{program}: {error}")),
            };
        }
    };
    let output = child.stdout.take();
    let errors = child.stderr.take();
    let (samples, last_words, status, wall) = thread::scope(|scope| {
        let samples = scope.spawn(move || output.map(read_samples).unwrap_or_default());
        let last_words = scope.spawn(move || errors.map(read_last_words).unwrap_or_default());
        let status = wait_until(&mut child, start + timeout);
        let wall = start.elapsed();
        if status.is_none_or(|status| !status.success()) {
            end_everything();
            let _ = child.wait();
        }
        reap_orphans();
        (samples.join().unwrap_or_default(), last_words.join().unwrap_or_default(), status, wall)
    });
    let trouble = describe_end(status, timeout, &last_words);
    if trouble.is_some() {
        remove_shared_memory_since(&shared_before);
    }
    Outcome { samples, wall, trouble }
}

fn read_samples(output: impl Read) -> Vec<Sample> {
    BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| Sample::parse(&line))
        .collect()
}

/// The last few lines: what a program says before it fails.
fn read_last_words(errors: impl Read) -> String {
    let mut lines: Vec<String> = BufReader::new(errors)
        .lines()
        .map_while(Result::ok)
        .filter(|line| !line.trim().is_empty() && !line.starts_with("---"))
        .collect();
    let start = lines.len().saturating_sub(3);
    lines.split_off(start).join(" | ")
}

/// The status, or none when the deadline passed first.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    let pid = Pid::from_child(child);
    if let Ok(ended) = pidfd_open(pid, PidfdFlags::empty()) {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return child.try_wait().ok().flatten();
            }
            let timeout =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
    }
    child.wait().ok()
}

fn describe_end(status: Option<ExitStatus>, timeout: Duration, last_words: &str) -> Option<String> {
    let what = match status {
        Some(status) if status.success() => return None,
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
        },
        None => format!("did not end within {} s and was killed", timeout.as_secs()),
    };
    Some(if last_words.is_empty() { what } else { format!("{what}: {last_words}") })
}

/// Kills every descendant of this process, again and again until none is left that could fork.
fn end_everything() {
    for _ in 0..50 {
        let descendants = descendants();
        if descendants.is_empty() {
            return;
        }
        for pid in descendants {
            let _ = kill_process(pid, Signal::KILL);
        }
        reap_orphans();
        thread::yield_now();
    }
}

/// Takes the status of adopted processes; the launched child itself is waited for elsewhere.
fn reap_orphans() {
    for pid in descendants() {
        let zombie =
            fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).is_ok_and(|stat| {
                stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
            });
        if zombie {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
        }
    }
}

/// All living processes that this one started, directly or not.
pub(crate) fn descendants() -> Vec<Pid> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut family = BTreeSet::from([std::process::id() as i32]);
    loop {
        let before = family.len();
        family.extend(
            parents
                .iter()
                .filter(|(_, parent)| family.contains(parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    family.remove(&(std::process::id() as i32));
    family.into_iter().filter_map(Pid::from_raw).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

fn shared_memory_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Peers that are killed leave their segments in /dev/shm: hundreds of megabytes after a while.
/// Only names that peers are known to use, and only those that this launch brought.
fn remove_shared_memory_since(before: &BTreeSet<String>) {
    const PREFIXES: [&str; 4] = ["mpich_shm_", "sm_segment.", "Intel_MPI_", "shm-impi"];
    for name in shared_memory_names().difference(before) {
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            let _ = fs::remove_file(Path::new("/dev/shm").join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use landeck_testing::Watchdog;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn says_what_a_failed_program_said() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let outcome = run(&mut shell("echo no luck >&2; exit 3"), Duration::from_secs(100));
        assert_eq!(outcome.trouble.unwrap(), "ended with exit code 3: no luck");
    }

    #[test]
    fn a_hanging_program_is_ended() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let outcome = run(&mut shell("sleep 1000"), Duration::from_millis(200));
        assert!(outcome.trouble.unwrap().starts_with("did not end within"));
    }

    #[test]
    fn collects_samples_between_other_lines() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let line =
            r#"{"figure":"wait","form":"","n":2,"bytes":8,"pending":0,"unit":"%","value":0.1}"#;
        let outcome =
            run(&mut shell(&format!("echo hello; echo '{line}'")), Duration::from_secs(100));
        assert_eq!(outcome.samples.len(), 1);
        assert!(outcome.trouble.is_none());
    }
}
