//! `landeck ps`: the jobs of this user on this host, and their processes.

use super::{SeeingError, age};
use clap::Args;
use landeck::unstable::diagnosis::Picture;
use landeck::unstable::diagnosis::picture::{Doing, Member};
use landeck::unstable::host::observe::{self, ObservedJob};
use landeck::unstable::host::report::duration;
use landeck::unstable::host::say::say;
use landeck::unstable::memory::system::now_ns;
use landeck::unstable::memory::{JobState, SlotState};
use serde_json::json;
use std::process::ExitCode;

/// Processes that are listed of a job that was not named.
const LISTED_MAX: usize = 16;

/// List the jobs of this user on this host, and the state of their processes.
///
/// States: run (computes), spin and sleep (wait in a call, polling or asleep), wait (waits for something else, such
/// as a file), stopped (by a signal or a debugger), left and dead (gone).
#[derive(Debug, Args)]
pub(crate) struct PsArguments {
    /// Only this job, with all of its processes: its name, or the first digits of its identity
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl PsArguments {
    /// Prints the list.
    pub(crate) fn run(&self) -> Result<ExitCode, SeeingError> {
        let jobs: Vec<ObservedJob> = match &self.job {
            Some(_) => vec![observe::find(self.job.as_deref())?],
            // A job that has ended meanwhile is not among them.
            None => {
                observe::jobs().into_iter().filter_map(|host| observe::observe(host).ok()).collect()
            }
        };
        let most = if self.job.is_some() { usize::MAX } else { LISTED_MAX };
        let text = match self.json {
            true => format!("{:#}\n", jobs.iter().map(as_json).collect::<serde_json::Value>()),
            false if jobs.is_empty() => "No job of this user runs on this host.\n".to_owned(),
            false => jobs.iter().map(|job| listed(job, most)).collect(),
        };
        say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn listed(job: &ObservedJob, most: usize) -> String {
    let picture = Picture::take(job);
    let plan = job.segment.plan();
    let agent = job
        .agent_pid
        .map_or_else(|| "its agent does not answer".to_owned(), |pid| format!("agent pid {pid}"));
    let ending = if picture.state == JobState::Ending { ", ending" } else { "" };
    let processes = if plan.processes == 1 { "process" } else { "processes" };
    let mut text = format!(
        "{}  {}, {} {processes}: {}; running for {}, {agent}{ending}\n",
        job.host,
        plan.name,
        plan.processes,
        counted(&picture),
        age(job),
    );
    text += &format!("  {:<13} {:<11} {:<9}{}\n", "PROCESS", "PID", "STATE", "PROCESSOR TIME");
    for member in picture.members.iter().take(most) {
        let name = picture.names.one(member.slot);
        text += &format!(
            "  {name:<13} {:<11} {:<9}{}\n",
            pid_of(member),
            member.doing().as_str(),
            computed(member)
        );
    }
    if picture.members.len() > most {
        let left = picture.members.len() - most;
        text += &format!("  and {left} more: landeck ps {}\n", job.host);
    }
    text
}

/// Counts the processes by what they do.
fn counted(picture: &Picture) -> String {
    let mut counts: Vec<(Doing, usize)> = Vec::new();
    for doing in picture.members.iter().map(Member::doing) {
        match counts.iter_mut().find(|(known, _)| *known == doing) {
            Some((_, count)) => *count += 1,
            None => counts.push((doing, 1)),
        }
    }
    let counts = counts.iter().map(|(doing, count)| format!("{count} {}", doing.as_str()));
    counts.collect::<Vec<_>>().join(", ")
}

fn pid_of(member: &Member) -> String {
    match member.record.pid {
        0 => "-".to_owned(),
        pid => pid.to_string(),
    }
}

fn computed(member: &Member) -> String {
    let figures = member.figures.map(|figures| figures.computed);
    figures.map_or_else(String::new, duration)
}

fn as_json(job: &ObservedJob) -> serde_json::Value {
    let picture = Picture::take(job);
    let plan = job.segment.plan();
    let members = picture.members.iter().map(|member| {
        json!({
            "slot": member.slot,
            "name": picture.names.one(member.slot),
            "pid": member.record.pid,
            "state": member.doing().as_str(),
            "is_alive": member.record.state == SlotState::Alive,
            "computed_s": member.figures.map(|figures| figures.computed.as_secs_f64()),
        })
    });
    json!({
        "job": job.host.to_string(),
        "name": plan.name.to_string(),
        "processes": plan.processes,
        "agent_pid": job.agent_pid,
        "is_ending": picture.state == JobState::Ending,
        "age_s": now_ns().saturating_sub(plan.began_ns) as f64 / 1e9,
        "members": members.collect::<Vec<_>>(),
    })
}
