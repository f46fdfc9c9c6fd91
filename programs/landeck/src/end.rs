//! `landeck end`: ends jobs from outside.

use clap::Args;
use landeck_host::process::has_ended_within;
use landeck_host::report::duration;
use landeck_host::signals::end_by_command;
use landeck_joining::address::Address;
use landeck_joining::observe::FindError;
use landeck_joining::peer;
use landeck_launch::machine::{MachineError, MachineQuestion};
use landeck_launch::machine_call::{self, MachineCall};
use landeck_launch::request::{LAUNCHER_FAILED, TIMED_OUT};
use landeck_memory::JobName;
use landeck_wire::JobId;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::seeing::{self, FoundJob, JobSight};
use crate::values::time;
use crate::{WRONG_USAGE, failed};

/// The longest wait, as no clock runs so long.
const TIME_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// End jobs, as TERM to their launchers does: their processes are asked to end, and killed after the grace time.
///
/// Finds the jobs of this user on this host, and those of a machine on each of its hosts. Returns when the jobs are over.
#[derive(Debug, Args)]
pub(crate) struct EndArguments {
    /// The jobs: their names, or the first digits of their identities
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
    /// Only jobs of this machine
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// The longest wait for the end of the jobs; exit code 124 after it
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        allow_negative_numbers = true,
        default_value = "60"
    )]
    timeout: Duration,
}

/// The reason why a job is not ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(
        "the launcher of {job} is not seen from here: it runs on another host, in a container, or is none of Landeck. \
         Call landeck end there"
    )]
    NoLauncher { job: String },
    #[error("the launcher of {job} (pid {pid}) cannot be told: {source}")]
    Launcher { job: String, pid: u32, source: std::io::Error },
    #[error("{job} has not ended within {} (--timeout); landeck ps shows what is left", duration(*.time))]
    Late { job: String, time: Duration },
}

/// The way in which a job is ended.
enum EndWay {
    /// Its machine tells its launcher, wherever that is.
    Machine(MachineCall),
    /// Its launcher is on this host.
    Launcher { pid: u32, process: OwnedFd },
}

/// A job that is to end.
struct Ending {
    id: JobId,
    /// Its name and identity.
    shown: String,
    way: EndWay,
}

impl EndError {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Find(_) | Self::NoLauncher { .. } => WRONG_USAGE,
            Self::Machine(_) | Self::Launcher { .. } => LAUNCHER_FAILED,
            Self::Late { .. } => TIMED_OUT,
        }
    }
}

impl EndArguments {
    /// Ends the jobs.
    pub(crate) fn run(&self) -> ExitCode {
        match self.end_all() {
            Ok(code) => code,
            Err(error) => failed(&error, error.exit_code()),
        }
    }

    fn end_all(&self) -> Result<ExitCode, EndError> {
        let (found, mut silence) = match &self.machine {
            Some(name) => (seeing::jobs_of(machine_call::find(Some(name))?)?, None),
            None => seeing::jobs_and_silence(),
        };
        let mut endings: Vec<Ending> = Vec::new();
        for reference in &self.jobs {
            let job = &found[seeing::choose(&found, Some(reference))?];
            if endings.iter().all(|known| known.id != job.id()) {
                // The machine that did not answer may be that of the job.
                endings.push(Ending::of(job).map_err(|error| match (error, silence.take()) {
                    (EndError::NoLauncher { .. }, Some(silence)) => silence.into(),
                    (error, _) => error,
                })?);
            }
        }
        // None is ended before all were found.
        for ending in &mut endings {
            ending.ask()?;
        }
        let until = Instant::now() + self.timeout.min(TIME_MAX);
        let mut code = ExitCode::SUCCESS;
        for mut ending in endings {
            if !ending.is_over_by(until)? {
                let late = EndError::Late { job: ending.shown, time: self.timeout };
                code = failed(&late, late.exit_code());
            }
        }
        Ok(code)
    }
}

impl Ending {
    fn of(job: &FoundJob) -> Result<Self, EndError> {
        let shown = format!("{} ({})", job.name(), job.id());
        let way = match (&job.machine, &job.sight) {
            (Some(machine), _) => Some(EndWay::Machine(MachineCall::begin(machine.clone())?)),
            (None, JobSight::Here(job)) => way_by_launcher(|| job.launcher_pid()),
            (None, JobSight::Launched(job, name)) => way_by_launcher(|| listener(*job, name)),
            (None, JobSight::Elsewhere(..)) => None,
        };
        let Some(way) = way else { return Err(EndError::NoLauncher { job: shown }) };
        Ok(Self { id: job.id(), shown, way })
    }

    /// Asks for the job's end.
    fn ask(&mut self) -> Result<(), EndError> {
        match &mut self.way {
            EndWay::Machine(call) => {
                // A job that is over by now is no error.
                let _ = call.ask_to(MachineQuestion::End { job: self.id })?;
                Ok(())
            }
            EndWay::Launcher { pid, process } => {
                let is_over = || has_ended_within(process.as_fd(), Duration::ZERO);
                // Its number may be another process's when it is over.
                let told = if is_over() { Ok(()) } else { end_by_command(*pid) };
                told.or_else(|source| if is_over() { Ok(()) } else { Err(source) }).map_err(
                    |source| EndError::Launcher { job: self.shown.clone(), pid: *pid, source },
                )
            }
        }
    }

    /// Waits until the job is over, or this time has come; returns whether it is over.
    fn is_over_by(&mut self, until: Instant) -> Result<bool, MachineError> {
        let time = until.saturating_duration_since(Instant::now());
        match &mut self.way {
            EndWay::Machine(call) => call.wait_for_end(self.id, time),
            EndWay::Launcher { process, .. } => Ok(has_ended_within(process.as_fd(), time)),
        }
    }
}

/// The launcher that listens here for a job on other hosts.
fn listener(job: JobId, name: &JobName) -> Option<u32> {
    let stream = Address::of_launcher(job, name).connect_stream().ok()?;
    peer::credentials(&stream).ok().map(|(_, pid)| pid).filter(|&pid| pid != 0)
}

/// The way by a launcher, if it is seen here.
fn way_by_launcher(launcher: impl Fn() -> Option<u32>) -> Option<EndWay> {
    let pid = launcher()?;
    let process = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
    // It was no other process that has got the number of one that has ended.
    (launcher() == Some(pid)).then_some(EndWay::Launcher { pid, process })
}
