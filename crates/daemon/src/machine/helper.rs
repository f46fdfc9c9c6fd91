//! The helper of this host: a process that is a guest of the machine's own job. It publishes the load of the host, and serves
//! the groups whose logs lie here.
//!
//! It is this program, executed anew, so it has neither keys nor sockets of the daemon. The daemon writes the load of the host
//! to its standard input once a second, and the helper ends with that. A helper that has ended is started again.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landeck_protocols::hosts::LoadReport;
use landeck_wire::JobId;
use rustix::io::ioctl_fionbio;
use tracing::info;

/// How often a helper may be started within a minute: once, and three times again.
const STARTS_MAX: usize = 4;
/// The bytes of its last words that are noted.
const SAID_MAX: u64 = 1024;
const MINUTE: Duration = Duration::from_secs(60);

/// The helper of this host.
#[derive(Debug, Default)]
pub(crate) struct Helper {
    /// The machine's own job, as long as it exists.
    job: Option<JobId>,
    process: Option<HelperProcess>,
    starts: Starts,
}

/// A process. It is killed when this is dropped: nothing depends on what it would do at its end.
#[derive(Debug)]
struct HelperProcess(Child);

/// The times of the starts within the last minute.
#[derive(Debug, Default)]
struct Starts(Vec<Duration>);

impl Helper {
    /// Starts a helper in this job.
    pub(crate) fn begin(&mut self, now: Duration, job: JobId) {
        self.end_all();
        self.job = Some(job);
        self.start(now);
    }

    /// Ends the helper of a job that is over.
    pub(crate) fn end(&mut self, job: JobId) {
        if self.job == Some(job) {
            self.end_all();
        }
    }

    /// Tells the load to the helper, or starts it again if it has ended.
    pub(crate) fn go_on(&mut self, now: Duration, report: &LoadReport) {
        match self.process.as_mut() {
            Some(process) => match process.end() {
                None => return process.tell(report),
                Some(end) => info!("the helper of this host has ended: {end}"),
            },
            None if self.job.is_none() => return,
            None => {}
        }
        self.process = None;
        self.start(now);
    }

    fn end_all(&mut self) {
        *self = Self::default();
    }

    fn start(&mut self, now: Duration) {
        let Some(job) = self.job else { return };
        if self.starts.take(now) {
            match HelperProcess::start(job) {
                Ok(process) => self.process = Some(process),
                Err(error) => info!("the helper of this host cannot be started: {error}"),
            }
        }
    }
}

impl HelperProcess {
    fn start(job: JobId) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("landeckd").args(["helper", "--job", &job.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let process = Self(command.spawn()?);
        if let Some(input) = &process.0.stdin {
            ioctl_fionbio(input, true)?;
        }
        Ok(process)
    }

    /// Tells it the load.
    fn tell(&mut self, report: &LoadReport) {
        if let Some(input) = &mut self.0.stdin {
            // One that is stopped misses it, and one that has ended is seen to have.
            let _ = writeln!(input, "{report}");
        }
    }

    /// Its end in words, if it has ended.
    fn end(&mut self) -> Option<String> {
        let status = self.0.try_wait().ok().flatten()?;
        let mut said = Vec::new();
        if let Some(errors) = &mut self.0.stderr {
            // The pipe has no other writer.
            let _ = errors.take(SAID_MAX).read_to_end(&mut said);
        }
        Some(format!("{status}: {}", String::from_utf8_lossy(&said).trim()))
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        // One that has ended is reaped all the same.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Starts {
    /// Whether another start is allowed, which counts then.
    fn take(&mut self, now: Duration) -> bool {
        self.0.retain(|at| now < *at + MINUTE);
        let is_allowed = self.0.len() < STARTS_MAX;
        if is_allowed {
            self.0.push(now);
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_is_started_again_three_times_a_minute() {
        let mut starts = Starts::default();
        let at = Duration::from_secs;
        assert!([0, 1, 2, 3].iter().all(|second| starts.take(at(*second))));
        assert!(!starts.take(at(4)) && !starts.take(at(59)));
        assert!(starts.take(at(60)) && !starts.take(at(60)));
    }
}
