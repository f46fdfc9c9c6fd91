//! Looks at one job repeatedly, on all its hosts: pictures of this host from its segment, those of others from their
//! daemons.

use std::time::{Duration, Instant};

use landeck_joining::address::Address;
use landeck_joining::observe::ObservedJob;
use landeck_memory::system::now_ns;
use landeck_wire::{JobId, ProcessId, SegmentId};
use rustix::event::{Timespec, poll};

use crate::conduct::LASTING;
use crate::far::{FarAnswers, FarPictures, LookedAt, not_asked};
use crate::host_picture::HostPicture;
use crate::picture::{MissingHost, Picture};
use crate::report::Report;

/// Time between the two pictures of a report, in which a process can move.
const BETWEEN: Duration = Duration::from_millis(10);

/// An observer of one job.
#[derive(Debug)]
pub struct Onlooker {
    /// The job's part on this host, if it has one.
    own: Option<ObservedJob>,
    facts: JobFacts,
    /// When the facts were found.
    found: Instant,
    /// The way to the other hosts, if there are any.
    far: Option<FarPictures>,
}

/// The facts about a job that stand in no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFacts {
    /// Its identity.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// The processes of its first world.
    pub processes: u32,
    /// The time since it has begun.
    pub age: Duration,
    /// The PID of the agent on this host; `None` if there is none, or it does not answer.
    pub agent_pid: Option<u32>,
    /// The PID of the launcher, if it is on this host.
    pub launcher_pid: Option<u32>,
    /// The segment on this host, if the job has a part here.
    pub segment: Option<SegmentId>,
}

impl Onlooker {
    /// Prepares to look at a job that was found on this host.
    pub fn new(job: ObservedJob) -> Self {
        let far = job.segment.plan().has_host_tables().then(|| FarPictures::new(job.host));
        let plan = job.segment.plan();
        let facts = JobFacts {
            id: job.id(),
            name: plan.name.to_string(),
            processes: plan.ranks,
            age: Duration::from_nanos(now_ns().saturating_sub(plan.began_ns)),
            agent_pid: job.agent_pid,
            launcher_pid: job.launcher_pid(),
            segment: Some(job.host),
        };
        Self { own: Some(job), facts, found: Instant::now(), far }
    }

    /// Prepares to look at a job of a machine that has no part on this host. Its daemon listens at this address.
    pub fn from_elsewhere(facts: JobFacts, address: Address, job: LookedAt) -> Self {
        let far = Some(FarPictures::in_machine(address, job));
        Self { own: None, facts, found: Instant::now(), far }
    }

    /// The facts about the job that stand in no picture.
    pub fn facts(&self) -> JobFacts {
        JobFacts { age: self.facts.age + self.found.elapsed(), ..self.facts.clone() }
    }

    /// Takes a picture of the job.
    pub fn take(&mut self) -> Picture {
        // Other hosts come first, so that all pictures are as close together as possible.
        let answers = self.far.as_mut().map(|far| far.ask(false));
        let own = self.own.as_ref().map(|job| HostPicture::take(&job.segment, job.agent_is_seen));
        joined(own, answers)
    }

    /// Takes a picture of the job without the kernel's figures about each process, which suffices for the first of the
    /// two pictures of a report.
    pub fn glance(&mut self) -> Picture {
        let answers = self.far.as_mut().map(|far| far.ask(true));
        joined(self.own.as_ref().map(|job| HostPicture::glance(&job.segment)), answers)
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

fn joined(own: Option<HostPicture>, answers: Option<FarAnswers>) -> Picture {
    let Some(answers) = answers else {
        return Picture::join(own.into_iter().collect(), Vec::new());
    };
    let unasked: Vec<MissingHost> = match (answers.own_daemon_silent, &own) {
        (Some(silent), Some(own)) => not_asked(own, &answers, silent),
        _ => Vec::new(),
    };
    let FarAnswers { pictures, mut missing, .. } = answers;
    missing.extend(unasked);
    Picture::join(own.into_iter().chain(pictures).collect(), missing)
}

fn pause(time: Duration) {
    // A signal may end the wait early, which does not matter.
    let _ = poll(&mut [], Timespec::try_from(time).ok().as_ref());
}
