//! Looking at jobs from outside: `landeck ps`, `landeck why`, `landeck top`, `landeck group`.

pub(crate) mod group;
pub(crate) mod ps;
pub(crate) mod rates;
pub(crate) mod top;
pub(crate) mod why;

use landeck_diagnosis::picture::HostInPicture;
use landeck_diagnosis::{Onlooker, Picture};
use landeck_host::report::duration;
use landeck_host::say::SayError;
use landeck_joining::observe::{self, FindError, ObservedJob};
use landeck_memory::system::now_ns;
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

/// Finds a job, and prepares to look at it on all its hosts.
fn onlooker(job: Option<&str>) -> Result<Onlooker, SeeingError> {
    Ok(Onlooker::new(observe::find(job)?))
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

/// The run time of a job as text.
fn age(job: &ObservedJob) -> String {
    let began_ns = job.segment.plan().began_ns;
    duration(Duration::from_nanos(now_ns().saturating_sub(began_ns)))
}
