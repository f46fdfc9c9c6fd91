//! Looks at one job repeatedly, on all its hosts: pictures of this host from its segment, those of others from their
//! daemons.

use std::time::Duration;

use landeck_joining::observe::ObservedJob;
use landeck_wire::ProcessId;
use rustix::event::{Timespec, poll};

use crate::conduct::LASTING;
use crate::far::{FarAnswers, FarPictures, not_asked};
use crate::host_picture::HostPicture;
use crate::picture::{MissingHost, Picture};
use crate::report::Report;

/// Time between the two pictures of a report, in which a process can move.
const BETWEEN: Duration = Duration::from_millis(10);

/// An observer of one job.
#[derive(Debug)]
pub struct Onlooker {
    job: ObservedJob,
    /// The way to the other hosts, if there are any.
    far: Option<FarPictures>,
}

impl Onlooker {
    /// Prepares to look at a job that was found on this host.
    pub fn new(job: ObservedJob) -> Self {
        let far = job.segment.plan().spans_hosts().then(|| FarPictures::new(job.host));
        Self { job, far }
    }

    /// The job on this host.
    pub const fn job(&self) -> &ObservedJob {
        &self.job
    }

    /// Takes a picture of the job.
    pub fn take(&mut self) -> Picture {
        // Other hosts come first, so that all pictures are as close together as possible.
        let answers = self.far.as_mut().map(|far| far.ask(false));
        let own = HostPicture::take(&self.job.segment, self.job.agent_is_seen);
        joined(own, answers)
    }

    /// Takes a picture of the job without the kernel's figures about each process, which suffices for the first of the
    /// two pictures of a report.
    pub fn glance(&mut self) -> Picture {
        let answers = self.far.as_mut().map(|far| far.ask(true));
        joined(HostPicture::glance(&self.job.segment), answers)
    }

    /// Takes two pictures a moment apart, and makes the report. The second picture is returned too.
    pub fn report(&mut self) -> (Picture, Report) {
        let before = self.glance();
        pause(BETWEEN);
        let now = self.take();
        let report = self.report_on(&before, &now);
        (now, report)
    }

    /// The stacks of processes on other hosts, of those that were found within a limited time.
    pub fn far_stacks(&mut self, processes: Vec<ProcessId>) -> Vec<(ProcessId, String)> {
        let far = self.far.as_mut().filter(|_| !processes.is_empty());
        far.map_or_else(Vec::new, |far| far.ask_for_stacks(processes).stacks)
    }

    /// The logs of all daemons of the job, of those that answer within a limited time; `None` if one host has all of the
    /// job, which needs no daemon.
    pub fn logs(&mut self) -> Option<FarAnswers> {
        self.far.as_mut().map(FarPictures::ask_for_logs)
    }

    /// Makes the report on two pictures.
    pub fn report_on(&mut self, before: &Picture, now: &Picture) -> Report {
        Report::of(before, now, &mut || {
            // Gives members time to move that are about to.
            pause(LASTING);
            self.take()
        })
    }
}

fn joined(own: HostPicture, answers: Option<FarAnswers>) -> Picture {
    let Some(answers) = answers else { return Picture::join(vec![own], Vec::new()) };
    let unasked: Vec<MissingHost> = match answers.own_daemon_silent {
        Some(silent) => not_asked(&own, &answers, silent),
        None => Vec::new(),
    };
    let FarAnswers { pictures, mut missing, .. } = answers;
    missing.extend(unasked);
    Picture::join([vec![own], pictures].concat(), missing)
}

fn pause(time: Duration) {
    // A signal may end the wait early, which does not matter.
    let _ = poll(&mut [], Timespec::try_from(time).ok().as_ref());
}
