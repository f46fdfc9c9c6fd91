//! Looking at jobs from outside: `landeck ps`, `landeck why`, `landeck top`, `landeck group`.

pub(crate) mod group;
pub(crate) mod ps;
pub(crate) mod rates;
pub(crate) mod top;
pub(crate) mod why;

use landeck_diagnosis::far::LookedAt;
use landeck_diagnosis::picture::HostInPicture;
use landeck_diagnosis::{JobFacts, Onlooker, Picture};
use landeck_host::say::SayError;
use landeck_joining::observe::{self, FindError};
use landeck_launch::machine_call::{self, MachineCall};
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
    #[error("landeck top needs a terminal: {0}. `landeck top --once` shows a moment without one.")]
    Terminal(std::io::Error),
    #[error(transparent)]
    Say(#[from] SayError),
}

/// Finds a job, and prepares to look at it on all its hosts. Jobs on this host come first, then those of machines that this
/// host is in.
fn onlooker(job: Option<&str>) -> Result<Onlooker, SeeingError> {
    let error = match observe::find(job) {
        Ok(job) => return Ok(Onlooker::new(job)),
        Err(error @ (FindError::NoJob | FindError::Unknown { .. })) => error,
        Err(error) => return Err(error.into()),
    };
    let is_meant = |facts: &JobFacts| {
        job.is_none_or(|job| facts.name == job || facts.id.to_string().starts_with(job))
    };
    let mut found = elsewhere(&[]);
    found.retain(|onlooker| is_meant(&onlooker.facts()));
    match found.len() {
        1 => Ok(found.remove(0)),
        _ => Err(error.into()),
    }
}

/// All jobs on this host, and those of machines that this host is in.
fn onlookers() -> Vec<Onlooker> {
    let mut all: Vec<Onlooker> = observe::jobs().into_iter().map(Onlooker::new).collect();
    let known: Vec<JobId> = all.iter().map(|onlooker| onlooker.facts().id).collect();
    all.extend(elsewhere(&known));
    all
}

/// The jobs of machines that this host is in, but for these. A machine that does not answer has none.
fn elsewhere(known: &[JobId]) -> Vec<Onlooker> {
    let mut found = Vec::new();
    for machine in machine_call::all() {
        let address = machine.look_address();
        let status = MachineCall::begin(machine).and_then(|mut call| call.status());
        let jobs = status.map(|status| status.jobs).unwrap_or_default();
        for job in jobs.into_iter().filter(|job| !known.contains(&job.job)) {
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
            found.push(Onlooker::from_elsewhere(facts, address.clone(), looked_at));
        }
    }
    found
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
