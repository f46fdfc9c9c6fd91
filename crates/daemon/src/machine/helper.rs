//! The helper of this host: a process that is a guest of the machine's own job. It publishes the load of the host, and serves
//! the groups whose logs lie here.
//!
//! It is this program, executed anew, so it has neither keys nor sockets of the daemon. The daemon writes the load of the host
//! to its standard input once a second, and the helper ends with that. A helper that has ended is started again.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use landeck_protocols::hosts::LoadReport;
use landeck_wire::JobId;
use rustix::io::ioctl_fionbio;
use tracing::info;

/// How often a helper may be started within a minute: once, and three times again.
const STARTS_MAX: usize = 4;
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
        match self.process.as_mut().map(HelperProcess::status) {
            Some(Some(status)) => {
                info!("the helper of this host has ended: {status}");
                self.process = None;
            }
            Some(None) => return self.tell(report),
            None => {}
        }
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

    fn tell(&mut self, report: &LoadReport) {
        let input = self.process.as_mut().and_then(|process| process.0.stdin.as_mut());
        if let Some(input) = input {
            // One that is stopped misses it, and one that has ended is seen to have.
            let _ = writeln!(input, "{report}");
        }
    }
}

impl HelperProcess {
    fn start(job: JobId) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("landeckd").args(["helper", "--job", &job.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Self(command.spawn()?);
        if let Some(input) = &process.0.stdin {
            ioctl_fionbio(input, true)?;
        }
        Ok(process)
    }

    /// The status, if it has ended.
    fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
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
