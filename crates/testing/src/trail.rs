//! Finds what a test leaves behind: processes that outlive it, and files in /dev/shm.
//!
//! Every command of a test carries a mark in its environment, which all its descendants inherit. A process whose
//! environment contains the mark belongs to the test, whatever its parent is by now.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that carries the mark.
const MARK: &str = "LANDECK_TEST_TRAIL";

/// The number of trails of this test process.
static TRAILS: AtomicU32 = AtomicU32::new(0);

/// A trail, which follows the processes that a test starts.
#[derive(Debug)]
pub struct Trail {
    mark: String,
}

impl Trail {
    /// Creates a trail without processes.
    #[allow(clippy::new_without_default)] // two trails differ
    pub fn new() -> Trail {
        let number = TRAILS.fetch_add(1, Ordering::Relaxed);
        Trail { mark: format!("{}{number}", mark_of_this_process()) }
    }

    /// Puts a command, and all its descendants that keep their environment, on the trail.
    pub fn mark<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(MARK, &self.mark)
    }

    /// Starts a command on the trail, in a process group of its own. Its standard input is empty and its output goes
    /// into pipes, unless the command says otherwise.
    ///
    /// # Panics
    /// If the command cannot be started.
    pub fn spawn(&self, command: &mut Command) -> Child {
        self.mark(command).process_group(0);
        command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
    }

    /// Runs a command on the trail to its end and returns its output. Its standard input is empty.
    ///
    /// # Panics
    /// If it does not end within `limit`: it is killed, with every process on the trail, and the message contains its
    /// output so far.
    pub fn run(&self, command: &mut Command, limit: Duration) -> Output {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn(command);
        self.finish(child, limit)
    }

    /// Waits for the end of a process that was started with its output in pipes.
    ///
    /// # Panics
    /// If the process does not end within `limit`, as for [`Trail::run`].
    pub fn finish(&self, mut child: Child, limit: Duration) -> Output {
        let stdout = read_aside(child.stdout.take());
        let stderr = read_aside(child.stderr.take());
        let in_time = wait_for_end(&child, limit);
        if !in_time {
            self.kill();
        }
        let status = child.wait().expect("a child can be waited for");
        let output = Output { status, stdout: stdout.join(), stderr: stderr.join() };
        assert!(
            in_time,
            "the command did not end within {limit:?}; it wrote {:?} and {:?}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        output
    }

    /// The processes that are on the trail now, with PID and name.
    pub fn processes(&self) -> Vec<(u32, String)> {
        marked_processes(&format!("{MARK}={}", self.mark), true)
    }

    /// Kills every process on the trail.
    pub fn kill(&self) {
        kill_marked(&format!("{MARK}={}", self.mark), true);
    }

    /// Checks that every process on the trail ends, within a time that starts now.
    ///
    /// # Panics
    /// If a process is left; all are killed then.
    pub fn assert_gone(&self, within: Duration) {
        let deadline = Instant::now() + within;
        loop {
            let left = self.processes();
            let Some((first, _)) = left.first() else { return };
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                self.kill();
                panic!("left behind after {within:?}: {left:?}");
            }
            // A process that cannot be opened has ended meanwhile.
            if let Some(pidfd) = open_process(*first) {
                wait_readable(&pidfd, remaining);
            }
        }
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if thread::panicking() {
            self.kill();
        }
    }
}

/// Everything that tests of this process have left behind: processes on any of its trails, and files of ours in
/// /dev/shm, which should never exist. It is empty if all is well.
pub fn leftovers() -> Vec<String> {
    let mark = format!("{MARK}={}", mark_of_this_process());
    let processes = marked_processes(&mark, false).into_iter();
    let mut left: Vec<String> =
        processes.map(|(pid, name)| format!("process {pid} ({name})")).collect();
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    left.extend(
        files
            .map(|file| file.path().display().to_string())
            .filter(|path| path.to_ascii_lowercase().contains("landeck")),
    );
    left
}

pub(crate) fn kill_all_of_this_process() {
    kill_marked(&format!("{MARK}={}", mark_of_this_process()), false);
}

fn mark_of_this_process() -> String {
    format!("{}.", std::process::id())
}

/// Kills all processes with the mark. Processes that start others meanwhile are found in the next round.
fn kill_marked(mark: &str, exact: bool) {
    for _ in 0..100 {
        let left = marked_processes(mark, exact);
        if left.is_empty() {
            return;
        }
        for (pid, _) in left {
            let pidfd = open_process(pid);
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = kill_process(pid, Signal::KILL);
            }
            if let Some(pidfd) = pidfd {
                wait_readable(&pidfd, Duration::from_secs(1));
            }
        }
    }
}

fn marked_processes(mark: &str, exact: bool) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let hit = environment.split(|&byte| byte == 0).any(|variable| match exact {
                true => variable == mark.as_bytes(),
                false => variable.starts_with(mark.as_bytes()),
            });
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            hit.then(|| (pid, name.trim_end().to_owned()))
        })
        .collect()
}

fn open_process(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()
}

fn wait_for_end(child: &Child, limit: Duration) -> bool {
    open_process(child.id()).is_none_or(|pidfd| wait_readable(&pidfd, limit))
}

fn wait_readable(fd: &OwnedFd, limit: Duration) -> bool {
    let timeout = Timespec::try_from(limit).ok();
    matches!(poll(&mut [PollFd::new(fd, PollFlags::IN)], timeout.as_ref()), Ok(count) if count > 0)
}

/// Reads a pipe to its end in a thread of its own, so that two full pipes cannot block each other.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Aside {
    Aside(pipe.map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    }))
}

struct Aside(Option<thread::JoinHandle<Vec<u8>>>);

impl Aside {
    fn join(self) -> Vec<u8> {
        self.0.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Watchdog;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_runs_to_its_end() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let trail = Trail::new();
        let output =
            trail.run(&mut shell("echo out; echo err >&2; exit 3"), Duration::from_secs(100));
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
        trail.assert_gone(Duration::from_secs(60));
    }

    #[test]
    fn an_orphan_is_found_and_killed() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let trail = Trail::new();
        let output =
            trail.run(&mut shell("sleep 100 >/dev/null 2>&1 & echo $!"), Duration::from_secs(100));
        let orphan: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        // While a process becomes its program it has no environment.
        while !trail.processes().iter().any(|(pid, _)| *pid == orphan) {
            thread::yield_now();
        }
        assert!(leftovers().iter().any(|left| left.contains(&orphan.to_string())));
        trail.kill();
        trail.assert_gone(Duration::from_secs(60));
    }

    #[test]
    #[should_panic(expected = "did not end within")]
    fn a_command_that_hangs_is_killed() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        Trail::new().run(&mut shell("sleep 100"), Duration::from_millis(100));
    }
}
