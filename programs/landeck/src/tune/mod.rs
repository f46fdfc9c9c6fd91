//! `landeck tune`: measures this host, and shows the ways that collective operations take with these figures.
//!
//! [`probe`] measures what one process can. [`measure`] runs in jobs that this command starts with `landeck run`: two
//! processes with a processor each, two to four with a processor each, two on one processor, and crowds of 2 to 16 on each
//! of two processors.
//!
//! On a busy machine a process switch can take a thousand times as long. So after some time no round begins
//! ([`ROUNDS_MAX`]) and no job repeats anything ([`measure`]). Such figures are not kept unless the user forces it
//! ([`share`]).

mod blocks;
pub(crate) mod hosts;
pub(crate) mod instruments;
pub(crate) mod measure;
mod one_copy;
mod pairs;
pub(crate) mod platform;
mod probe;
mod share;

pub(crate) use share::Share;

use crate::clusters::{self, ClustersError};
use crate::wishes::Wishes;
use hosts::TunedHosts;
use indicatif::{ProgressBar, ProgressStyle};
use instruments::{job, said_by};
use landeck::OneCopy;
use landeck::settings::{self, SettingError};
use landeck::tuning::{self, TuningError};
use landeck_collectives::calibration::{CROWDS, LIGHT_STEP_PS};
use landeck_collectives::{
    Calibration, CostParameters, Facts, Group, Links, Settings, Table, Unit,
};
use landeck_host as host;
use landeck_host::placement::MapBy;
use landeck_host::probed::Finding;
use landeck_host::say::{SayError, complain, say};
use landeck_measure::line::half_round_trip_ps;
use landeck_measure::processors::{allowed, first_two, keeping_place, pin};
use landeck_memory::SegmentPlan;
use landeck_simulator::PlatformError;
use landeck_wire::way::{OneCopyFrom, OneCopySource};
use measure::Subject;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// The time limit of a job, in seconds.
const JOB_S: &str = "180";

/// A failed measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TuneError {
    /// The kept figures cannot be used, or nothing can be kept.
    #[error(transparent)]
    Tuning(#[from] TuningError),
    /// A variable of the environment or an option asks for the impossible.
    #[error(transparent)]
    Variable(#[from] SettingError),
    /// This host has no place for so many processes.
    #[error(transparent)]
    Clusters(#[from] ClustersError),
    /// Standard output cannot be written to.
    #[error(transparent)]
    Say(#[from] SayError),
    /// A process of our own cannot be started.
    #[error("cannot start processes to measure with: {0}")]
    Start(io::Error),
    /// The processes ended without a result.
    #[error("processes that were to measure this host ended without a result ({status}):\n{said}")]
    Job {
        /// The exit status.
        status: String,
        /// Their output.
        said: String,
    },
    /// One host has no links.
    #[error("--hosts {list}: one host has no links; give several, as in --hosts a,b")]
    OneHost {
        /// The host.
        list: String,
    },
    /// The platform file cannot be written.
    #[error("--save {path}: {error}; give a file in a folder that you may write to")]
    Save {
        /// The file.
        path: String,
        /// The error of the system.
        error: io::Error,
    },
    /// Figures that no platform has, because the measurement was disturbed.
    #[error("{0}; measure again")]
    Platform(#[from] PlatformError),
    /// The job on several hosts failed. It has said why.
    #[error("--hosts {list}: no links, since a job on these hosts failed ({status}); see above")]
    Hosts {
        /// The hosts.
        list: String,
        /// The exit status.
        status: String,
    },
}

/// Measures this host and keeps the figures. On a busy host it keeps them only if `is_forced`.
pub(crate) fn run(is_forced: bool) -> Result<(), TuneError> {
    let Found { figures, details, share } = measured()?;
    let trouble = share.trouble();
    let kept = match trouble.is_none() || is_forced {
        true => format!(
            "Kept in {}; every job that is started from now on computes with them.\n",
            tuning::write(figures, details)?.display()
        ),
        false => "Not kept.\n".to_owned(),
    };
    if let Some(trouble) = trouble {
        let cure = match is_forced {
            true => "These figures are kept; measure again when it is free",
            false => "These figures are not kept; measure again when it is free, or with --force",
        };
        complain(format_args!("landeck: {trouble}. {cure}"));
    }
    let text = figures_text(&figures)
        + "For the simulator:\n"
        + &details
            .lines()
            .map(|(_, about, value)| line_of(Unit::Picoseconds, &about, value))
            .collect::<String>()
        + &format!("\n{kept}");
    Ok(say(&text)?)
}

/// Shows the links between hosts, or saves the hosts as a platform.
pub(crate) fn several(wished: &TunedHosts) -> Result<(), TuneError> {
    match &wished.save {
        Some(path) => platform::save(wished, path),
        None => hosts::show(wished),
    }
}

/// Shows the figures and the table for a number of processes.
pub(crate) fn show(processes: Option<u32>, wishes: &Wishes) -> Result<(), TuneError> {
    let (settings, trouble) = tuning::with_figures(wishes.settings([])?);
    let mut text = match (&trouble, tuning::place()) {
        (Some(trouble), _) => {
            complain(format_args!("landeck: {trouble}"));
            String::new()
        }
        (None, Ok(path)) if path.exists() => {
            format!("CostParameters of this host, from {}:\n", path.display())
        }
        (None, _) => "The usual figures; `landeck tune` measures those of this host:\n".to_owned(),
    };
    text += &figures_text(&settings.figures);
    text += &one_copy_text(tuning::one_copy(settings.figures), tuning::finding());
    let processors = landeck_memory::processors::usable();
    let processes = processes.unwrap_or(processors);
    text += &format!(
        "\n{processes} processes on {processors} processors; sizes of what each member has for another \
         or for all:\n"
    );
    let group = clusters::here(processes, MapBy::default(), None, settings.nearness)?;
    text += &format!("{}\n", clusters::line(&group, settings.nearness));
    let board_bytes = SegmentPlan::new(0, processes).deposit_bytes();
    let facts = facts_here(group, (processes, processors), board_bytes, settings);
    text += &Table::new(facts).to_string();
    Ok(say(&text)?)
}

/// The facts of a group on this host alone.
fn facts_here(
    group: Group,
    (processes, processors): (u32, u32),
    board_bytes: u64,
    settings: Settings,
) -> Facts {
    let (has_board, hosts_have_boards, links) = (true, false, Links::default());
    Facts {
        group,
        processes,
        processors,
        sharing_hosts: 1,
        has_board,
        hosts_have_boards,
        board_bytes,
        settings,
        links,
    }
}

fn figures_text(figures: &CostParameters) -> String {
    figures.lines().map(|figure| line_of(figure.unit, figure.about, figure.value)).collect()
}

/// The length from which messages on this host are copied once, and its source.
fn one_copy_text(from: OneCopyFrom, finding: Option<Finding>) -> String {
    let length = match from.bytes {
        OneCopy::NEVER => "never".to_owned(),
        bytes => format!("from {} KiB on", bytes >> 10),
    };
    let source = match (from.source, finding) {
        (OneCopySource::Asked | OneCopySource::Tuned, _) => "the figures of `landeck tune`",
        (_, Some(Finding::FromKib(_) | Finding::Never)) => "the probe of this boot",
        (_, Some(Finding::Disturbed(_))) => "the probes of this boot were disturbed",
        (_, None) => "nothing was measured; the next job probes",
    };
    format!("\nMessages in one copy: {length} ({source})\n")
}

fn line_of(unit: Unit, about: &str, value: u64) -> String {
    match unit {
        Unit::Picoseconds => format!("  {:>14.3} ns  {about}\n", value as f64 / 1e3),
        Unit::FromKib if value == CostParameters::NO_LENGTH_KIB => {
            format!("  {:>14}     {about}\n", "none")
        }
        Unit::Processors | Unit::Kib | Unit::FromKib => format!("  {value:>14}     {about}\n"),
    }
}

/// The result of a measurement.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) figures: CostParameters,
    pub(crate) details: Calibration,
    /// The share of the processors' time: the least among the jobs of a round, and the most among rounds.
    pub(crate) share: Share,
}

impl Found {
    /// Notes the figures among these findings; the other one is the share of the processors.
    fn note(&mut self, findings: &[(String, u64)]) {
        for (name, value) in findings {
            let is_known = self.figures.set(name, *value) || self.details.set(name, *value);
            debug_assert!(is_known || name == "share", "no figure is called {name}");
        }
    }

    /// Notes the share as well, if it is less than those of earlier jobs.
    fn note_with_share(&mut self, findings: &[(String, u64)]) {
        self.note(findings);
        for (_, permille) in findings.iter().filter(|(name, _)| name == "share") {
            self.share = self.share.min(Share::of_permille(*permille));
        }
    }
}

/// One part of the measurement, which fills in its figures.
type TunePart = (&'static str, fn(&mut Found) -> Result<(), TuneError>);

const PARTS: [TunePart; 9] = [
    ("a line", line),
    ("copies", copies),
    ("caches", caches),
    ("messages", messages),
    ("a process switch", switch),
    ("two on a processor", |found| crowd(CROWDS[0], found)),
    ("four on a processor", |found| crowd(CROWDS[1], found)),
    ("eight on a processor", |found| crowd(CROWDS[2], found)),
    ("sixteen on a processor", |found| crowd(CROWDS[3], found)),
];

/// Rounds of all parts. [`Calibration::typical`] combines them.
const ROUNDS: u64 = 12;
/// Attempts at a round in which the processors move.
const ROUND_ATTEMPTS: u32 = 4;
/// No round begins after this time on a very busy machine.
const ROUNDS_MAX: Duration = Duration::from_secs(5);
/// The least difference of two measured times.
const PART_MIN_PS: u64 = 10_000;

/// Measures this host.
pub(crate) fn measured() -> Result<Found, TuneError> {
    let bar = bar(ROUNDS * PARTS.len() as u64 + 1);
    let began = Instant::now();
    let mut found = rounds_of(|| round(&bar), || began.elapsed())?;
    bar.set_message("blocks");
    blocks(&mut found)?;
    bar.finish_and_clear();
    Ok(parts_of(found, allowed().len() > 1))
}

/// Combines rounds: at least one, and none that would begin too late. When the processors have moved, earlier rounds
/// do not count, since the combined figures would be of different places.
fn rounds_of(
    mut round: impl FnMut() -> Result<Found, TuneError>,
    elapsed: impl Fn() -> Duration,
) -> Result<Found, TuneError> {
    let mut found = round()?;
    let mut details = vec![found.details];
    for _ in 1..ROUNDS {
        if elapsed() >= ROUNDS_MAX {
            break;
        }
        let next = round()?;
        if is_moved(found.figures.line_ps, next.figures.line_ps) {
            (found, details) = (next, vec![next.details]);
            continue;
        }
        found.figures = found.figures.least(next.figures);
        found.share = found.share.max(next.share);
        details.push(next.details);
    }
    found.details = Calibration::typical(&details).unwrap_or(found.details);
    Ok(found)
}

/// A line's time changes by this factor when the processors have moved.
const MOVED: f64 = 1.25;

/// Whether the processors have moved, given the time of a line before and now.
pub(crate) fn is_moved(before_ps: u64, now_ps: u64) -> bool {
    let (before, now) = (before_ps.max(1) as f64, now_ps.max(1) as f64);
    (now / before).max(before / now) > MOVED
}

/// Computes differences of the combined rounds. A difference within one round, of which one time was disturbed, could
/// be anything.
fn parts_of(whole: Found, has_messages: bool) -> Found {
    let Found { mut figures, mut details, share } = whole;
    let barrier_ps = figures.deposit_ps;
    let less = |whole_ps: u64, part_ps: u64| whole_ps.saturating_sub(part_ps).max(PART_MIN_PS);
    // In a barrier each member of a crowd has a turn, in which it does as much as each of two members with a
    // processor of their own.
    details.turns_ps = details.turns_ps.map(|whole_ps| less(whole_ps, barrier_ps));
    if has_messages {
        // In the model a barrier of two is a word and a line. One over messages is a call and a message, and an
        // allreduce copies and combines besides.
        figures.deposit_ps = less(barrier_ps, figures.line_ps);
        details.step_ps = less(details.step_ps, details.call_ps + LIGHT_STEP_PS);
        details.call_ps = less(details.call_ps, figures.message_ps);
        // At the board an allgather copies.
        details.board_copy_ps = less(details.board_copy_ps, details.board_call_ps);
        details.board_call_ps = less(details.board_call_ps, barrier_ps);
    }
    Found { figures, details, share }
}

/// Measures each part once, and again if the processors have moved meanwhile.
fn round(bar: &ProgressBar) -> Result<Found, TuneError> {
    for _ in 1..ROUND_ATTEMPTS {
        let (before, found) = (bar.position(), all_parts(bar)?);
        let mut again = found;
        line(&mut again)?;
        if !is_moved(found.figures.line_ps, again.figures.line_ps) {
            return Ok(found);
        }
        bar.set_position(before);
    }
    all_parts(bar)
}

/// Measures each part once, without the differences of [`parts_of`].
fn all_parts(bar: &ProgressBar) -> Result<Found, TuneError> {
    let processors = u64::from(landeck_memory::processors::usable());
    let usual = CostParameters::default();
    let cache_kib = host::cpu_set::CpuSet::of_this_thread()
        .ok()
        .and_then(|processors| host::topology::last_cache_kib(&processors))
        .unwrap_or(usual.cache_kib);
    let figures = CostParameters { processors, cache_kib, ..usual };
    let mut found = Found { figures, details: Calibration::of(&figures), share: Share::WHOLE };
    for (name, part) in PARTS {
        bar.set_message(name);
        part(&mut found)?;
        bar.inc(1);
    }
    Ok(found)
}

/// A progress bar on a terminal; none elsewhere.
fn bar(parts: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("tune [{bar:28}] {pos} of {len}  {msg}");
    ProgressBar::new(parts).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Half of the round trip of a line between the first two processors; `None` with one processor.
pub(crate) fn line_ps() -> Option<u64> {
    const BATCHES: usize = 9;
    first_two().map(|two| (half_round_trip_ps(two, BATCHES) as u64).max(1))
}

fn line(found: &mut Found) -> Result<(), TuneError> {
    found.figures.line_ps = line_ps().unwrap_or(found.figures.line_ps);
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

/// Measures copies in a process of its own, since the place of its memory is chance.
fn caches(found: &mut Found) -> Result<(), TuneError> {
    found.note(&findings_of(1, Subject::Caches)?);
    Ok(())
}

fn messages(found: &mut Found) -> Result<(), TuneError> {
    if allowed().len() < 2 {
        return Ok(()); // all of these need two that run at once
    }
    found.note_with_share(&findings_of(2, Subject::Messages)?);
    Ok(())
}

/// Measures operations whose members may read each other's blocks, once: their lengths are no times of which the least counts.
fn blocks(found: &mut Found) -> Result<(), TuneError> {
    if blocks_members() >= 2 {
        found.note(&findings_of(blocks_members(), Subject::Blocks)?);
    }
    Ok(())
}

/// The members that read each other's blocks: each has a processor.
fn blocks_members() -> u32 {
    (allowed().len() as u32).min(blocks::MEMBERS_MAX)
}

/// Measures two processes on one processor: the sender must stop running before its answer can come.
fn switch(found: &mut Found) -> Result<(), TuneError> {
    let findings = keeping_place(|| {
        allowed().first().copied().into_iter().for_each(pin); // child processes inherit that
        findings_of(2, Subject::Switch)
    })?;
    found.note_with_share(&findings);
    Ok(())
}

/// Measures a crowd on each of two processors, or on the only one.
fn crowd(sharing: u64, found: &mut Found) -> Result<(), TuneError> {
    found.note_with_share(&findings_of(crowded() * sharing as u32, Subject::Crowd)?);
    Ok(())
}

/// Keeps this process on one of these processors, dealt out in order of rank as in the simulator.
pub(crate) fn pin_among(processors: &[usize], number: usize) {
    processors.get(number % processors.len().max(1)).copied().into_iter().for_each(pin);
}

/// The number of processors with a crowd.
pub(crate) fn crowded() -> u32 {
    allowed().len().clamp(1, 2) as u32
}

fn findings_of(processes: u32, subject: Subject) -> Result<Vec<(String, u64)>, TuneError> {
    // These processes choose their processors themselves, but the launcher would give each its own.
    let unbound = matches!(subject, Subject::Caches | Subject::Crowd).then_some("--bind-to=none");
    let processes = processes.to_string();
    let options = ["-n", &processes].into_iter().chain(unbound);
    let mut job = job(JOB_S, options, &["measure", subject.as_str()]).map_err(TuneError::Start)?;
    job.env_remove(settings::COLLECTIVES);
    job.env(settings::ONE_COPY, "never"); // the measurement chooses the way itself
    let output = job.output().map_err(TuneError::Start)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let found: Vec<(String, u64)> = said.lines().filter_map(finding).collect();
    if !output.status.success() || found.is_empty() {
        return Err(TuneError::Job { status: output.status.to_string(), said: said_by(&output) });
    }
    Ok(found)
}

/// Parses a line of [`measure`].
fn finding(line: &str) -> Option<(String, u64)> {
    let (name, value_ps) = line.rsplit_once(' ')?;
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

    fn usual() -> Found {
        let figures = CostParameters::default();
        Found { figures, details: Calibration::of(&figures), share: Share::WHOLE }
    }

    #[test]
    fn no_round_begins_when_the_time_is_over_and_the_first_always_does() {
        let rounds_until = |over_after: u64| {
            let rounds = std::cell::Cell::new(0u64);
            let round = || {
                rounds.set(rounds.get() + 1);
                Ok(usual())
            };
            let is_over = || rounds.get() >= over_after;
            rounds_of(round, || if is_over() { ROUNDS_MAX } else { Duration::ZERO }).unwrap();
            rounds.get()
        };
        assert_eq!([0, 1, 5, 1000].map(rounds_until), [1, 1, 5, ROUNDS]);
    }

    #[test]
    fn rounds_before_the_processors_moved_do_not_count() {
        let mut rounds = [(250_000, 9), (50_000, 30), (52_000, 20), (51_000, 40)].into_iter();
        let round = || {
            let mut found = usual();
            (found.figures.line_ps, found.details.call_ps) = rounds.next().unwrap_or((50_000, 50));
            found.figures.switch_ps = found.figures.line_ps;
            Ok(found)
        };
        let found = rounds_of(round, || Duration::ZERO).unwrap();
        assert_eq!((found.figures.switch_ps, found.details.call_ps), (50_000, 20));
        assert!(
            is_moved(50_000, 250_000) && is_moved(250_000, 50_000) && !is_moved(50_000, 60_000)
        );
    }

    #[test]
    fn the_least_of_each_figure_counts() {
        let mut rounds = [3, 1, 2].into_iter().cycle();
        let round = || {
            let mut found = usual();
            let value_ps = rounds.next().unwrap_or(9);
            (found.figures.deposit_ps, found.details.call_ps) = (value_ps, 10 - value_ps);
            found.share = Share::of_permille(100 * value_ps);
            Ok(found)
        };
        let found = rounds_of(round, || Duration::ZERO).unwrap();
        assert_eq!((found.figures.deposit_ps, found.details.call_ps), (1, 7));
        assert_eq!(found.share, Share::of_permille(300), "one round without others is enough");
    }

    #[test]
    fn a_figure_measured_as_a_whole_is_taken_apart() {
        let mut whole = usual();
        (whole.figures.deposit_ps, whole.figures.line_ps) = (90_000, 50_000);
        whole.figures.message_ps = 75_000;
        whole.details.call_ps = 355_000;
        whole.details.step_ps = 515_000;
        whole.details.board_call_ps = 130_000;
        whole.details.board_copy_ps = 150_000;
        whole.details.turns_ps = [1_500_000, 1_600_000, 1_900_000, 0];
        let Found { figures, details, .. } = parts_of(whole, true);
        assert_eq!(figures.deposit_ps, 40_000);
        assert_eq!(details.turns_ps, [1_410_000, 1_510_000, 1_810_000, PART_MIN_PS]);
        assert_eq!((details.call_ps, details.step_ps), (280_000, 80_000));
        assert_eq!((details.board_call_ps, details.board_copy_ps), (40_000, 20_000));
        whole.details.step_ps = 435_000;
        let nothing = parts_of(whole, true).details.step_ps;
        assert_eq!(nothing, PART_MIN_PS, "a difference of nothing");
        assert_eq!(parts_of(whole, false).details.call_ps, 355_000, "it was not measured");
    }

    #[test]
    fn the_table_has_a_line_for_every_operation() {
        let settings = settings::asked([]).unwrap();
        let group = clusters::here(4, MapBy::default(), None, settings.nearness).unwrap();
        let facts = facts_here(group, (4, 2), u64::MAX, settings);
        let text = Table::new(facts).to_string();
        for operation in landeck_collectives::Operation::ALL {
            assert!(text.contains(operation.as_str()), "{operation}: {text}");
        }
    }
}
