//! `landeck ps`: the jobs of this user on this host, and their processes.

use super::{SeeingError, hosts_as_json, missing_hosts, onlooker, onlookers};
use clap::Args;
use landeck_diagnosis::picture::{Doing, Member};
use landeck_diagnosis::{Onlooker, Picture};
use landeck_host::report::duration;
use landeck_host::say::say;
use landeck_memory::{JobState, Presence, SlotState};
use serde_json::json;
use std::process::ExitCode;

/// Processes that are listed of a job that was not named.
const LISTED_MAX: usize = 16;

/// List the jobs of this user on this host, and the state of their processes.
///
/// A job on several hosts is listed whole on each of them, and a job of a machine on each host of that.
///
/// States: run (computes), spin and sleep (wait in a call, polling or asleep), wait (waits for something else, such
/// as a file), stopped (by a signal or a debugger), left and dead (gone), unseen (its host does not answer).
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
        let jobs: Vec<Onlooker> = match &self.job {
            Some(_) => vec![onlooker(self.job.as_deref())?],
            // A job that has ended meanwhile is not among them.
            None => onlookers(),
        };
        let jobs = jobs.into_iter();
        let most = if self.job.is_some() { usize::MAX } else { LISTED_MAX };
        let text = match self.json {
            true => format!("{:#}\n", jobs.map(as_json).collect::<serde_json::Value>()),
            false if jobs.len() == 0 => "No job of this user runs on this host.\n".to_owned(),
            false => jobs.map(|job| listed(job, most)).collect(),
        };
        say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A picture without the helpers of a machine, which are nobody's processes.
fn taken(onlooker: &mut Onlooker) -> Picture {
    let mut picture = onlooker.take();
    picture.members.retain(|member| member.presence != Presence::Helping);
    picture
}

fn listed(mut onlooker: Onlooker, most: usize) -> String {
    let picture = taken(&mut onlooker);
    let job = onlooker.facts();
    let agent = match (job.segment, job.agent_pid) {
        (None, _) => "not on this host".to_owned(),
        (Some(_), None) => "its agent does not answer".to_owned(),
        (Some(_), Some(pid)) => format!("agent pid {pid}"),
    };
    let launcher = job.launcher_pid.map(|pid| format!("launcher pid {pid}, "));
    let agent = launcher.unwrap_or_default() + &agent;
    let ending = if picture.state == JobState::Ending { ", ending" } else { "" };
    // The own job of a machine has no processes but those that join it.
    let (count, processes) = match (job.processes, picture.members.len()) {
        (0, 1) => (1, "guest"),
        (0, guests) => (guests, "guests"),
        (1, _) => (1, "process"),
        (processes, _) => (processes as usize, "processes"),
    };
    let spans = picture.names.span_hosts();
    let hosts = match spans {
        true => format!(" on {} hosts", picture.hosts.len()),
        false => String::new(),
    };
    let mut text = format!(
        "{}  {}, {count} {processes}{hosts}: {}; running for {}, {agent}{ending}\n",
        job.id,
        job.name,
        counted(&picture),
        duration(job.age),
    );
    let shown = || picture.members.iter().take(most);
    let host_of = |member: &Member| picture.names.host(member.process).to_owned();
    let width = shown().map(|member| host_of(member).chars().count()).max().unwrap_or(0).max(4) + 1;
    let on_host = |host: &str| if spans { format!("{host:<width$}") } else { String::new() };
    text += &format!(
        "  {:<13} {}{:<11} {:<9}{}\n",
        "PROCESS",
        on_host("HOST"),
        "PID",
        "STATE",
        "PROCESSOR TIME"
    );
    for member in shown() {
        let name = picture.names.short(member.process);
        text += &format!(
            "  {name:<13} {}{:<11} {:<9}{}\n",
            on_host(&host_of(member)),
            pid_of(member),
            member.doing().as_str(),
            computed(member)
        );
    }
    if picture.members.len() > most {
        let left = picture.members.len() - most;
        text += &format!("  and {left} more: landeck ps {}\n", job.id);
    }
    text + &missing_hosts(&picture)
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

fn as_json(mut onlooker: Onlooker) -> serde_json::Value {
    let picture = taken(&mut onlooker);
    let job = onlooker.facts();
    let spans = picture.names.span_hosts();
    let members = picture.members.iter().map(|member| {
        let mut object = json!({
            "slot": member.process.slot.0,
            "name": picture.names.short(member.process),
            "pid": member.record.pid,
            "state": member.doing().as_str(),
            "is_alive": member.record.state == SlotState::Alive,
            "computed_s": member.figures.map(|figures| figures.computed.as_secs_f64()),
        });
        if spans {
            object["host"] = picture.names.host(member.process).into();
        }
        object
    });
    let mut object = json!({
        "job": job.id.to_string(),
        "name": job.name,
        "processes": job.processes,
        "agent_pid": job.agent_pid,
        "launcher_pid": job.launcher_pid,
        "is_ending": picture.state == JobState::Ending,
        "age_s": job.age.as_secs_f64(),
        "members": members.collect::<Vec<_>>(),
    });
    if spans {
        object["hosts"] = hosts_as_json(&picture);
    }
    object
}
