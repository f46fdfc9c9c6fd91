//! `landeck why`: the reason why a job is stuck.

use super::{SeeingError, hosts_as_json, onlooker};
use clap::Args;
use landeck_diagnosis::far::{FarAnswers, LogLine};
use landeck_diagnosis::report::LaneLine;
use landeck_diagnosis::{Member, Onlooker, Picture, Report};
use landeck_host::report::duration;
use landeck_host::say::say;
use landeck_launch::stacks;
use landeck_memory::SlotState;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time limit for all stacks together.
const STACKS_MAX: Duration = Duration::from_secs(30);
/// Processes whose stacks are shown.
const STACKS_OF_MAX: usize = 16;

/// Explain why a job is stuck: who waits for whom, for how long, and what the cause is.
///
/// Works at any time, without preparation, also for processes that are stopped, wedged or dead. Exit code: 0 if the
/// job makes progress as far as can be seen, 1 if it does not.
#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// The job: its name, or the first digits of its identity [default: the only one that runs]
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Show the stacks of the processes in the explanation
    #[arg(long)]
    stacks: bool,
    /// Show what the daemons of the job's hosts have noted last: connections, hosts, ends of processes
    #[arg(long)]
    log: bool,
    /// Write JSON
    #[arg(long, conflicts_with_all = ["stacks", "log"])]
    json: bool,
}

impl WhyArguments {
    /// Prints the report.
    pub(crate) fn run(&self) -> Result<ExitCode, SeeingError> {
        let mut onlooker = onlooker(self.job.as_deref())?;
        let (now, report) = onlooker.report();
        let job = onlooker.facts();
        let name = &job.name;
        let text = match self.json {
            true => {
                let json = as_json(&job.id.to_string(), name, &now, &report);
                format!("{json:#}\n")
            }
            false => {
                format!("{name} ({}), running for {}\n{}", job.id, duration(job.age), report.text())
            }
        };
        say(&text)?;
        if self.stacks {
            say(&stacks_of(&mut onlooker, &now, &report))?;
        }
        if self.log {
            say(&logs_of(&mut onlooker))?;
        }
        Ok(ExitCode::from(u8::from(!report.goes_on())))
    }
}

fn as_json(id: &str, name: &str, now: &Picture, report: &Report) -> serde_json::Value {
    let spans = now.names.span_hosts();
    // A slot names a process on one host; on several hosts its place in the list of all does.
    let slots = |places: &[u32]| -> Vec<u32> {
        let slot = |&at: &u32| now.members.get(at as usize).map(|one| one.process.slot.0);
        if spans { places.to_vec() } else { places.iter().filter_map(slot).collect() }
    };
    let lines = report.lines().iter().map(|line| {
        let mut object = json!({
            "slots": slots(&line.places),
            "what": line.what,
            "since_s": line.since.map(|since| since.as_secs_f64()),
        });
        if spans {
            object["names"] = line.places.iter().filter_map(|&at| name_at(now, at)).collect();
        }
        object
    });
    let mut object = json!({
        "job": id,
        "name": name,
        "goes_on": report.goes_on(),
        "verdict": report.verdict(),
        "advice": report.advice(),
        "concerned": slots(report.concerned()),
        "processes": lines.collect::<Vec<_>>(),
    });
    if spans {
        object["hosts"] = hosts_as_json(now);
        let lane = |line: &LaneLine| {
            json!({
                "from": line.place,
                "to": now.place(line.lane.to),
                "unsent_bytes": line.lane.unsent_bytes,
                "open_messages": line.lane.open_messages,
                "since_s": line.since.as_secs_f64(),
            })
        };
        object["lanes"] = report.lanes().iter().map(lane).collect();
    }
    object
}

fn name_at(now: &Picture, place: u32) -> Option<String> {
    now.members.get(place as usize).map(|member| now.names.one(member.process))
}

/// The lines of all daemons' logs in the order of their time, by the clocks of their hosts.
fn logs_of(onlooker: &mut Onlooker) -> String {
    let Some(FarAnswers { logs, missing, own_daemon_silent, .. }) = onlooker.logs() else {
        return "  This job has no daemons: one host has all of it.\n".to_owned();
    };
    let of_host = |(host, lines): (String, Vec<LogLine>)| {
        lines.into_iter().map(move |line| (line.at_ns, host.clone(), line.text))
    };
    let lines: Vec<(u64, String, String)> = logs.into_iter().flat_map(of_host).collect();
    let mut text = String::from("Logs of the daemons, in seconds before now:\n");
    text += &log_lines(lines);
    for host in missing {
        text += &format!("  host {} has sent no log\n", host.name);
    }
    if own_daemon_silent.is_some() {
        text += "  The daemon of this host does not answer.\n";
    }
    text
}

/// The lines of logs in the order of their time, each with its host, as a text for people.
pub(crate) fn log_lines(mut lines: Vec<(u64, String, String)>) -> String {
    let now_ns = u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX);
    lines.sort();
    let line = |(at_ns, host, line): (u64, String, String)| {
        let ago = Duration::from_nanos(now_ns.saturating_sub(at_ns)).as_secs_f64();
        format!("  {ago:>9.3} {host}: {line}\n")
    };
    lines.into_iter().map(line).collect()
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The stacks of the processes in the verdict, or of all if it names none.
fn stacks_of(onlooker: &mut Onlooker, now: &Picture, report: &Report) -> String {
    let own = onlooker.facts().segment;
    let give_up = Instant::now() + STACKS_MAX;
    let concerned = report.concerned();
    let is_shown = |place: &u32| concerned.is_empty() || concerned.contains(place);
    let shown = (0..).zip(&now.members).filter(|(place, _)| is_shown(place));
    let shown: Vec<&Member> = shown
        .map(|(_, member)| member)
        .filter(|member| member.is_seen && member.record.state == SlotState::Alive)
        .collect();
    let far = shown.iter().take(STACKS_OF_MAX).map(|member| member.process);
    let far = onlooker.far_stacks(far.filter(|process| Some(process.segment) != own).collect());
    let mut text = String::new();
    for member in shown.iter().take(STACKS_OF_MAX) {
        let name = now.names.one(member.process);
        if Some(member.process.segment) == own {
            let pid = match now.names.span_hosts() {
                true => String::new(),
                false => format!(" (pid {})", member.record.pid),
            };
            text += &format!("  {name}{pid}:\n");
            text += &stacks::of_process(member.record.pid, give_up);
        } else {
            let found = far.iter().find(|(process, _)| *process == member.process);
            let stack = found.map_or("    its host has sent no stack\n", |(_, stack)| stack);
            text += &format!("  {name}:\n{stack}");
        }
    }
    if shown.len() > STACKS_OF_MAX {
        text += &format!("  and {} more\n", shown.len() - STACKS_OF_MAX);
    }
    text
}
