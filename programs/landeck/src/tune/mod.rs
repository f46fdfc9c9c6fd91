//! `landeck tune`: measures what this host can do, and shows which ways collective operations take
//! with these figures.
//!
//! What one process can find out is measured here ([`probe`]); what takes two, by jobs of two
//! processes that this command starts with `landeck run` ([`measure`]): once with a processor for
//! each, once with one for both; and one of eight on each of two.

pub(crate) mod measure;
mod probe;

pub(crate) use probe::line_ps;

use crate::cli::Wishes;
use crate::clusters::{self, ClustersError};
use crate::say::say;
use indicatif::{ProgressBar, ProgressStyle};
use landeck::collectives::details::MESSAGE_BYTES;
use landeck::collectives::{Details, Facts, Figures, OverridesError, Table};
use landeck::host::placement::MapBy;
use landeck::memory::SegmentPlan;
use landeck::tuning::{self, TuningError, VariableError};
use measure::Subject;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time that a job of two processes may take to be measured, in seconds.
const JOB_S: &str = "60";

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TuneError {
    /// What is kept cannot be used, or nothing can be kept.
    #[error(transparent)]
    Tuning(#[from] TuningError),
    /// The environment asks for what there is not.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// More is asked for than there is room for.
    #[error("--collectives: {0}")]
    Overrides(#[from] OverridesError),
    /// So many processes have no place here.
    #[error(transparent)]
    Clusters(#[from] ClustersError),
    /// Nobody can be told of them.
    #[error("cannot write to standard output: {0}")]
    Say(io::Error),
    /// A process of our own cannot be started.
    #[error("cannot start processes to measure with: {0}")]
    Start(io::Error),
    /// They were started and did not measure.
    #[error("processes that were to measure this host ended without a result ({status}):\n{said}")]
    Job {
        /// How they ended.
        status: String,
        /// What they wrote.
        said: String,
    },
}

/// Measures this host, and keeps the figures.
pub(crate) fn run() -> Result<(), TuneError> {
    let Found { figures, details } = measured()?;
    let path = tuning::write(figures, details)?;
    let text = figures_text(&figures)
        + "For the simulator:\n"
        + &details.lines().map(line_of).collect::<String>()
        + &format!(
            "\nKept in {}; every job that is started from now on computes with them.\n",
            path.display()
        );
    say(&text).map_err(TuneError::Say)
}

/// Shows the figures and the table for so many processes.
pub(crate) fn show(processes: Option<u32>, wishes: Wishes) -> Result<(), TuneError> {
    let (mut settings, trouble) = tuning::settings()?;
    if let Some(asked) = wishes.overrides {
        settings.overrides = settings.overrides.then(asked)?;
    }
    settings.nearness = wishes.nearness.unwrap_or(settings.nearness);
    let mut text = match (&trouble, tuning::place()) {
        (Some(trouble), _) => {
            eprintln!("landeck: {trouble}");
            String::new()
        }
        (None, Ok(path)) if path.exists() => {
            format!("Figures of this host, from {}:\n", path.display())
        }
        (None, _) => "The usual figures; `landeck tune` measures those of this host:\n".to_owned(),
    };
    text += &figures_text(&settings.figures);
    let processors = landeck::memory::processors::usable();
    let processes = processes.unwrap_or(processors);
    text += &format!(
        "\n{processes} processes on {processors} processors; sizes of what each member has for another \
         or for all:\n"
    );
    let group = clusters::here(processes, MapBy::default(), None, settings.nearness)?;
    text += &format!("{}\n", clusters::line(&group, settings.nearness));
    let board_bytes = SegmentPlan::new(0, processes).deposit_bytes();
    let facts = Facts { group, processes, processors, has_board: true, board_bytes, settings };
    text += &Table::new(facts).to_string();
    say(&text).map_err(TuneError::Say)
}

fn figures_text(figures: &Figures) -> String {
    figures.lines().map(line_of).collect()
}

fn line_of((name, about, value): (&str, &str, u64)) -> String {
    match name {
        "processors" => format!("  {value:>14}     {about}\n"),
        _ => format!("  {:>14.3} ns  {about}\n", value as f64 / 1e3),
    }
}

/// What was found out about this host.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) figures: Figures,
    pub(crate) details: Details,
}

/// One part of the measurement: it fills in what it finds out.
type Part = (&'static str, fn(&mut Found) -> Result<(), TuneError>);

const PARTS: [Part; 5] = [
    ("a line", line),
    ("copies", copies),
    ("messages", messages),
    ("a process switch", switch),
    ("switches in a crowd", crowd),
];

/// Each part is measured some times, and the least counts: whatever disturbs makes it longer.
const ROUNDS: u64 = 12;
/// On a machine that is very busy no further round begins after this time.
const ROUNDS_MAX: Duration = Duration::from_secs(5);
/// No word on the board takes less: it is a difference of two times.
const DEPOSIT_MIN_PS: u64 = 10_000;

/// Measures this host.
pub(crate) fn measured() -> Result<Found, TuneError> {
    let bar = bar(ROUNDS * PARTS.len() as u64);
    let began = Instant::now();
    let mut least = round(&bar)?;
    for _ in 1..ROUNDS {
        if began.elapsed() < ROUNDS_MAX {
            let next = round(&bar)?;
            least.figures = least.figures.least(next.figures);
            least.details = least.details.least(next.details);
        }
    }
    bar.finish_and_clear();
    if processors().len() > 1 {
        // In the model a barrier of two is a word and a line.
        let figures = &mut least.figures;
        let word_ps = figures.deposit_ps.saturating_sub(figures.line_ps);
        figures.deposit_ps = word_ps.max(DEPOSIT_MIN_PS);
    }
    Ok(least)
}

/// Each part once; a barrier stands for the word in it.
fn round(bar: &ProgressBar) -> Result<Found, TuneError> {
    let processors = u64::from(landeck::memory::processors::usable());
    let figures = Figures { processors, ..Figures::default() };
    let mut found = Found { figures, details: Details::of(&figures) };
    for (name, part) in PARTS {
        bar.set_message(name);
        part(&mut found)?;
        bar.inc(1);
    }
    Ok(found)
}

/// On a terminal; nothing is drawn elsewhere.
fn bar(parts: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("tune [{bar:28}] {pos} of {len}  {msg}");
    ProgressBar::new(parts).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn line(found: &mut Found) -> Result<(), TuneError> {
    if let [first, second, ..] = processors()[..] {
        found.figures.line_ps = line_ps(first, second);
    }
    Ok(())
}

fn copies(found: &mut Found) -> Result<(), TuneError> {
    let figures = &mut found.figures;
    figures.local_copy_kib_ps = probe::copy_kib_ps();
    if let Some(kib_ps) = probe::reduction_kib_ps() {
        figures.reduction_kib_ps = kib_ps;
    }
    Ok(())
}

fn messages(found: &mut Found) -> Result<(), TuneError> {
    if processors().len() < 2 {
        return Ok(()); // all of these need two that run at once
    }
    let Found { figures, details } = found;
    for (name, value_ps) in job_of(2, Subject::Messages)? {
        match name.as_str() {
            "call" => details.call_ps = value_ps,
            "step" => details.step_ps = value_ps,
            "message" => figures.message_ps = value_ps,
            "one-copy" => figures.one_copy_kib_ps = value_ps,
            "two-copy" => figures.two_copy_kib_ps = value_ps,
            "barrier" => figures.deposit_ps = value_ps,
            other => {
                let is_other = |bytes: &u64| other == format!("message-{bytes}");
                if let Some(number) = MESSAGE_BYTES.iter().position(is_other) {
                    details.messages_ps[number] = value_ps;
                }
            }
        }
    }
    Ok(())
}

/// Two processes on one processor: who sends must stop running before its answer can come.
fn switch(found: &mut Found) -> Result<(), TuneError> {
    let switches = on_one_processor(|| job_of(2, Subject::Switch))?;
    if let Some((_, value_ps)) = switches.into_iter().find(|(name, _)| name == "switch") {
        found.figures.switch_ps = value_ps;
    }
    Ok(())
}

/// The same with so many that what each needs is no longer in the processor's caches when its turn
/// comes.
fn crowd(found: &mut Found) -> Result<(), TuneError> {
    let processors = processors().len().min(2) as u32;
    let switches = job_of(processors * Subject::CROWD, Subject::Crowd)?;
    if let Some((_, value_ps)) = switches.into_iter().find(|(name, _)| name == "crowd-switch") {
        found.details.crowd_switch_ps = value_ps;
    }
    Ok(())
}

/// Runs with the first usable processor alone, which whoever is started inherits.
fn on_one_processor<T>(body: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None);
    let mut one = CpuSet::new();
    processors().first().into_iter().for_each(|&first| one.set(first));
    // Where it is refused, the processes have a processor each, and the figure is too small.
    let _ = sched_setaffinity(None, &one);
    let done = body();
    if let Ok(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    done
}

/// Keeps this process on the usable processor of this number, as the simulator deals processes out: one
/// after the other, and again from the first. Where that is refused it runs where it likes.
pub(crate) fn pin(number: usize) {
    let processors = processors();
    let Some(&processor) = processors.get(number % processors.len().max(1)) else { return };
    let mut one = CpuSet::new();
    one.set(processor);
    let _ = sched_setaffinity(None, &one);
}

/// The processors that this process may use.
pub(crate) fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// What so many processes have found out.
fn job_of(processes: u32, subject: Subject) -> Result<Vec<(String, u64)>, TuneError> {
    let own = std::env::current_exe().map_err(TuneError::Start)?;
    let output = Command::new(&own)
        .args(["run", "-n", &processes.to_string(), "--stdin", "none", "--timeout", JOB_S, "--"])
        .arg(&own)
        .args(["measure", subject.as_str()])
        .env_remove(tuning::VARIABLE)
        .stdin(Stdio::null())
        .output()
        .map_err(TuneError::Start)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let found: Vec<(String, u64)> = said.lines().filter_map(finding).collect();
    if !output.status.success() || found.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = format!("{said}{errors}").trim_end().to_owned();
        return Err(TuneError::Job { status: output.status.to_string(), said });
    }
    Ok(found)
}

/// A line that [`measure`] writes.
fn finding(line: &str) -> Option<(String, u64)> {
    let (name, value_ps) = line.split_once(' ')?;
    Some((name.to_owned(), value_ps.parse().ok().filter(|&value_ps| value_ps > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_names_and_times() {
        assert_eq!(finding("message 85000"), Some(("message".into(), 85_000)));
        for line in ["", "message", "message fast", "message 0", "message -3"] {
            assert_eq!(finding(line), None, "{line}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_every_operation() {
        let settings = tuning::settings().unwrap().0;
        let group = clusters::here(4, MapBy::default(), None, settings.nearness).unwrap();
        let (processes, processors, board_bytes) = (4, 2, u64::MAX);
        let facts = Facts { group, processes, processors, has_board: true, board_bytes, settings };
        let text = Table::new(facts).to_string();
        for operation in landeck::collectives::Operation::ALL {
            assert!(text.contains(operation.as_str()), "{operation}: {text}");
        }
    }
}
