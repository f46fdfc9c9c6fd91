//! `landeck why`: the reason why a job is stuck.

use super::{SeeingError, age, hosts_as_json, onlooker};
use clap::Args;
use landeck_diagnosis::report::LaneLine;
use landeck_diagnosis::{Member, Onlooker, Picture, Report};
use landeck_host::say::say;
use landeck_launch::stacks;
use landeck_memory::SlotState;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

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
    /// Write JSON
    #[arg(long, conflicts_with = "stacks")]
    json: bool,
}

impl WhyArguments {
    /// Prints the report.
    pub(crate) fn run(&self) -> Result<ExitCode, SeeingError> {
        let mut onlooker = onlooker(self.job.as_deref())?;
        let (now, report) = onlooker.report();
        let job = onlooker.job();
        let name = &job.segment.plan().name;
        let text = match self.json {
            true => {
                let json = as_json(&job.id().to_string(), &name.to_string(), &now, &report);
                format!("{json:#}\n")
            }
            false => format!("{name} ({}), running for {}\n{}", job.id(), age(job), report.text()),
        };
        say(&text)?;
        if self.stacks {
            say(&stacks_of(&mut onlooker, &now, &report))?;
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

/// The stacks of the processes in the verdict, or of all if it names none.
fn stacks_of(onlooker: &mut Onlooker, now: &Picture, report: &Report) -> String {
    let own = onlooker.job().host;
    let give_up = Instant::now() + STACKS_MAX;
    let concerned = report.concerned();
    let is_shown = |place: &u32| concerned.is_empty() || concerned.contains(place);
    let shown = (0..).zip(&now.members).filter(|(place, _)| is_shown(place));
    let shown: Vec<&Member> = shown
        .map(|(_, member)| member)
        .filter(|member| member.is_seen && member.record.state == SlotState::Alive)
        .collect();
    let far = shown.iter().take(STACKS_OF_MAX).map(|member| member.process);
    let far = onlooker.far_stacks(far.filter(|process| process.segment != own).collect());
    let mut text = String::new();
    for member in shown.iter().take(STACKS_OF_MAX) {
        let name = now.names.one(member.process);
        if member.process.segment == own {
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
