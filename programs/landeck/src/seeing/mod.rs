//! Looking at jobs from outside: `landeck ps`, `landeck why`, `landeck top`, `landeck group`.

pub(crate) mod group;
pub(crate) mod ps;
pub(crate) mod rates;
pub(crate) mod top;
mod traces;
pub(crate) mod why;

use landeck_diagnosis::far::LookedAt;
use landeck_diagnosis::picture::HostInPicture;
use landeck_diagnosis::{JobFacts, Onlooker, Picture};
use landeck_host::say::SayError;
use landeck_joining::address::Address;
use landeck_joining::observe::{self, FindError, ObservedJob};
use landeck_launch::machine::{JobStatus, MachineError, MachineName};
use landeck_launch::machine_call::{self, MachineCall};
use landeck_memory::JobName;
use landeck_wire::JobId;
use serde_json::json;
use std::time::Duration;

/// A job that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeeingError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("{}", .0.kind)]
    Job(#[from] landeck::Error),
    #[error("{0} has no process on this host, only its launcher: call this on one of its hosts")]
    NotHere(String),
    #[error("landeck top needs a terminal: {0}. `landeck top --once` shows a moment without one.")]
    Terminal(std::io::Error),
    #[error(transparent)]
    Traces(#[from] traces::CheckError),
    #[error(transparent)]
    Say(#[from] SayError),
}

/// A job that was found.
pub(crate) struct FoundJob {
    /// The job, as it is seen from here.
    pub(crate) sight: JobSight,
    /// The machine that it runs in, if it is one that stays.
    pub(crate) machine: Option<MachineName>,
}

/// A job as it is seen from this host.
pub(crate) enum JobSight {
    /// By its part here.
    Here(Box<ObservedJob>),
    /// By what its machine says. The daemon at this address shows more.
    Elsewhere(JobStatus, Address),
    /// By its launcher here alone: its processes are on other hosts.
    Launched(JobId, JobName),
}

impl FoundJob {
    /// The identity.
    pub(crate) const fn id(&self) -> JobId {
        match &self.sight {
            JobSight::Here(job) => job.id(),
            JobSight::Elsewhere(status, _) => status.job,
            JobSight::Launched(job, _) => *job,
        }
    }

    /// The name.
    pub(crate) fn name(&self) -> String {
        match &self.sight {
            JobSight::Here(job) => job.segment.plan().name.to_string(),
            JobSight::Elsewhere(status, _) => status.name.clone(),
            JobSight::Launched(_, name) => name.to_string(),
        }
    }

    /// Prepares to look at the job on all its hosts, if this host has a way to them.
    fn onlooker(self) -> Option<Onlooker> {
        match self.sight {
            JobSight::Here(job) => Some(Onlooker::new(*job)),
            JobSight::Elsewhere(status, address) => Some(onlooker_from_elsewhere(status, address)),
            JobSight::Launched(..) => None,
        }
    }
}

/// Finds a job, and prepares to look at it on all its hosts. A name of a job on this host needs no look at others.
fn onlooker(job: Option<&str>) -> Result<Onlooker, SeeingError> {
    match observe::find(job) {
        Ok(job) => Ok(Onlooker::new(job)),
        Err(FindError::NoJob | FindError::Unknown { .. }) => {
            let mut found = jobs();
            let job = found.swap_remove(choose(&found, job)?);
            let shown = format!("{} ({})", job.name(), job.id());
            job.onlooker().ok_or(SeeingError::NotHere(shown))
        }
        Err(error) => Err(error.into()),
    }
}

/// All jobs on this host, and those of machines that this host is in.
fn onlookers() -> Vec<Onlooker> {
    jobs().into_iter().filter_map(FoundJob::onlooker).collect()
}

/// All jobs on this host, those of machines that this host is in, and those whose launchers are here. A machine that does
/// not answer has none.
pub(crate) fn jobs() -> Vec<FoundJob> {
    jobs_and_silence().0
}

/// The jobs that [`jobs`] finds, and why a machine did not answer, if one did not.
pub(crate) fn jobs_and_silence() -> (Vec<FoundJob>, Option<MachineError>) {
    let here = |job| FoundJob { sight: JobSight::Here(Box::new(job)), machine: None };
    let mut all: Vec<FoundJob> = observe::jobs().into_iter().map(here).collect();
    let mut silence = None;
    for name in machine_call::all() {
        let its = jobs_of(name).unwrap_or_else(|error| {
            silence = Some(error);
            Vec::new()
        });
        for job in its {
            match all.iter_mut().find(|known| known.id() == job.id()) {
                Some(known) => known.machine = job.machine,
                None => all.push(job),
            }
        }
    }
    for (job, name) in Address::launched_jobs() {
        if all.iter().all(|known| known.id() != job) {
            all.push(FoundJob { sight: JobSight::Launched(job, name), machine: None });
        }
    }
    (all, silence)
}

/// The jobs of a machine.
pub(crate) fn jobs_of(machine: MachineName) -> Result<Vec<FoundJob>, MachineError> {
    let status = MachineCall::begin(machine.clone())?.status()?;
    let found = |job| FoundJob {
        sight: JobSight::Elsewhere(job, machine.look_address()),
        machine: Some(machine.clone()),
    };
    Ok(status.jobs.into_iter().map(found).collect())
}

/// The place of the job with this name, or whose identity begins so; `None` means the only one.
pub(crate) fn choose(found: &[FoundJob], reference: Option<&str>) -> Result<usize, FindError> {
    if reference == Some("") {
        return Err(FindError::Empty);
    }
    let is_meant = |job: &FoundJob| {
        reference.is_none_or(|reference| {
            job.name() == JobName::new(reference).to_string()
                || job.id().to_string().starts_with(reference)
        })
    };
    let meant: Vec<usize> = (0..found.len()).filter(|&place| is_meant(&found[place])).collect();
    let named = |places: &[usize]| {
        places.iter().map(|&place| (found[place].id(), found[place].name())).collect()
    };
    match meant.as_slice() {
        [only] => Ok(*only),
        _ if found.is_empty() => Err(FindError::NoJob),
        [] => Err(FindError::Unknown {
            reference: reference.unwrap_or_default().to_owned(),
            jobs: named(&(0..found.len()).collect::<Vec<_>>()),
        }),
        several => Err(FindError::Several { jobs: named(several) }),
    }
}

/// Prepares to look at a job of a machine that has no part on this host.
fn onlooker_from_elsewhere(job: JobStatus, address: Address) -> Onlooker {
    let facts = JobFacts {
        id: job.job,
        name: job.name,
        processes: job.hosts.iter().map(|host| host.processes).sum(),
        age: Duration::from_millis(job.age_ms),
        agent_pid: None,
        launcher_pid: None,
        segment: None,
    };
    let hosts = job.hosts.into_iter().map(|host| (host.number, host.name)).collect();
    let looked_at = LookedAt { job: facts.id, hosts };
    Onlooker::from_elsewhere(facts, address, looked_at)
}

/// The hosts of a job without a picture as lines of text, each with the reason.
fn missing_hosts(picture: &Picture) -> String {
    let line = |host: &HostInPicture| match &host.missing {
        Some(why) => format!("  host {}: {why}\n", host.name),
        None => String::new(),
    };
    picture.hosts.iter().map(line).collect()
}

/// The hosts of a job for programs; none on one host.
fn hosts_as_json(picture: &Picture) -> serde_json::Value {
    let host = |host: &HostInPicture| {
        json!({
            "number": host.number,
            "name": host.name,
            "missing": host.missing.as_ref().map(ToString::to_string),
        })
    };
    let spans = picture.names.span_hosts();
    picture.hosts.iter().filter(|_| spans).map(host).collect()
}

fn pause(time: Duration) {
    // A signal may end the wait early, which does not matter.
    let _ = rustix::event::poll(&mut [], rustix::event::Timespec::try_from(time).ok().as_ref());
}
