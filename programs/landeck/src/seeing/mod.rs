//! Looking at jobs from outside: `landeck ps`, `landeck why`, `landeck top`, `landeck group`.

pub(crate) mod group;
pub(crate) mod ps;
pub(crate) mod rates;
pub(crate) mod top;
pub(crate) mod why;

use landeck::unstable::diagnosis::Picture;
use landeck::unstable::host::observe::{FindError, ObservedJob};
use landeck::unstable::host::report::duration;
use landeck::unstable::host::say::SayError;
use landeck::unstable::memory::system::now_ns;
use std::time::Duration;

/// Time between the two pictures of a report, in which a process can move.
const BETWEEN: Duration = Duration::from_millis(10);

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

/// Two pictures of a job, a moment apart.
pub(crate) fn two_pictures(job: &ObservedJob) -> (Picture, Picture) {
    let first = Picture::glance(job);
    pause(BETWEEN);
    (first, Picture::take(job))
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
