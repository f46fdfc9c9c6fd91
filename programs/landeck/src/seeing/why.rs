//! `landeck why`: the reason why a job is stuck.

use super::{SeeingError, age, two_pictures};
use clap::Args;
use landeck::unstable::diagnosis::{Picture, Report};
use landeck::unstable::host::say::say;
use landeck::unstable::host::{observe, stacks};
use landeck::unstable::memory::SlotState;
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
        let job = observe::find(self.job.as_deref())?;
        let (before, now) = two_pictures(&job);
        let report = Report::of(&job, &before, &now);
        let name = &job.segment.plan().name;
        let text = match self.json {
            true => format!("{:#}\n", as_json(&job.host.to_string(), &name.to_string(), &report)),
            false => format!("{name} ({}), running for {}\n{}", job.host, age(&job), report.text()),
        };
        say(&text)?;
        if self.stacks {
            say(&stacks_of(&now, &report))?;
        }
        Ok(ExitCode::from(u8::from(!report.goes_on())))
    }
}

fn as_json(id: &str, name: &str, report: &Report) -> serde_json::Value {
    let lines = report.lines().iter().map(|line| {
        json!({
            "slots": line.slots,
            "what": line.what,
            "since_s": line.since.map(|since| since.as_secs_f64()),
        })
    });
    json!({
        "job": id,
        "name": name,
        "goes_on": report.goes_on(),
        "verdict": report.verdict(),
        "advice": report.advice(),
        "concerned": report.concerned(),
        "processes": lines.collect::<Vec<_>>(),
    })
}

/// The stacks of the processes in the verdict, or of all if it names none.
fn stacks_of(now: &Picture, report: &Report) -> String {
    let give_up = Instant::now() + STACKS_MAX;
    let concerned = report.concerned();
    let is_shown = |slot: &u32| concerned.is_empty() || concerned.contains(slot);
    let shown: Vec<_> = now
        .members
        .iter()
        .filter(|member| member.record.state == SlotState::Alive && is_shown(&member.slot))
        .collect();
    let mut text = String::new();
    for member in shown.iter().take(STACKS_OF_MAX) {
        let name = now.names.one(member.slot);
        text += &format!("  {name} (pid {}):\n", member.record.pid);
        text += &stacks::of_process(member.record.pid, give_up);
    }
    if shown.len() > STACKS_OF_MAX {
        text += &format!("  and {} more\n", shown.len() - STACKS_OF_MAX);
    }
    text
}
