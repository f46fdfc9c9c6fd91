//! `landeck tune`: measures what this host can do, and shows which ways collective operations take
//! with these figures.
//!
//! What one process can find out is measured here ([`probe`]); what takes two, by jobs of two
//! processes that this command starts with `landeck run` ([`measure`]): once with a processor for
//! each, once with one for both; and by jobs of two and of eight on each of two processors.
//!
//! On a machine that is busy otherwise a switch of processes can take a thousand times as long. So after some
//! time no round begins ([`ROUNDS_MAX`]), and in each job nothing is repeated ([`measure`]). What was found
//! then is not kept unless it is asked for ([`share`]).

pub(crate) mod instruments;
pub(crate) mod measure;
mod probe;
mod share;

pub(crate) use probe::line_ps;
pub(crate) use share::Share;

use crate::clusters::{self, ClustersError};
use crate::wishes::Wishes;
use indicatif::{ProgressBar, ProgressStyle};
use landeck::tuning::{self, TuningError, VariableError};
use landeck::unstable::collectives::calibration::{
    CELL_MESSAGE_BYTES, CROWDS, MESSAGE_BYTES, ROTATION_BYTES,
};
use landeck::unstable::collectives::{Calibration, CostParameters, Facts, OverridesError, Table};
use landeck::unstable::host;
use landeck::unstable::host::placement::MapBy;
use landeck::unstable::host::say::{SayError, complain, say};
use landeck::unstable::memory::SegmentPlan;
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
    #[error(transparent)]
    Say(#[from] SayError),
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

/// Measures this host, and keeps the figures: where others were busy on it, only if `is_forced`.
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
        + &details.lines().map(line_of).collect::<String>()
        + &format!("\n{kept}");
    Ok(say(&text)?)
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
            complain(format_args!("landeck: {trouble}"));
            String::new()
        }
        (None, Ok(path)) if path.exists() => {
            format!("CostParameters of this host, from {}:\n", path.display())
        }
        (None, _) => "The usual figures; `landeck tune` measures those of this host:\n".to_owned(),
    };
    text += &figures_text(&settings.figures);
    let processors = landeck::unstable::memory::processors::usable();
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
    Ok(say(&text)?)
}

fn figures_text(figures: &CostParameters) -> String {
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
    pub(crate) figures: CostParameters,
    pub(crate) details: Calibration,
    /// Of the processors' time: the least of the jobs of a round, and the most of some rounds.
    pub(crate) share: Share,
}

impl Found {
    /// The least share of all jobs counts.
    fn note_share(&mut self, findings: &[(String, u64)]) {
        for (_, permille) in findings.iter().filter(|(name, _)| name == "share") {
            self.share = self.share.min(Share::of_permille(*permille));
        }
    }
}

/// One part of the measurement: it fills in what it finds out.
type Part = (&'static str, fn(&mut Found) -> Result<(), TuneError>);

const PARTS: [Part; 9] = [
    ("a line", line),
    ("copies", copies),
    ("caches", caches),
    ("messages", messages),
    ("a process switch", switch),
    ("two on a processor", |found| crowd(0, found)),
    ("four on a processor", |found| crowd(1, found)),
    ("eight on a processor", |found| crowd(2, found)),
    ("sixteen on a processor", |found| crowd(3, found)),
];

/// Each part is measured some times, and [`Calibration::typical`] says what counts.
const ROUNDS: u64 = 12;
/// So often at most a round begins anew, where the processors move.
const ROUND_ATTEMPTS: u32 = 4;
/// On a machine that is very busy no further round begins after this time.
const ROUNDS_MAX: Duration = Duration::from_secs(5);
/// No part of what was measured takes less: it is a difference of two times.
const PART_MIN_PS: u64 = 10_000;

/// Measures this host.
pub(crate) fn measured() -> Result<Found, TuneError> {
    let bar = bar(ROUNDS * PARTS.len() as u64);
    let began = Instant::now();
    let found = rounds_of(|| round(&bar), || began.elapsed())?;
    bar.finish_and_clear();
    Ok(parts_of(found, processors().len() > 1))
}

/// What some rounds say together: one at least, and none that would begin too late. Where the processors have
/// moved between two of them, those before do not count: some figures are the least, others the middle, and they
/// would be of different places.
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

/// The near and far placement of processors is told apart by this factor of a line's time.
const MOVED: f64 = 1.25;

/// Whether processors between which a line took so long before are at another distance now.
pub(crate) fn is_moved(before_ps: u64, now_ps: u64) -> bool {
    let (before, now) = (before_ps.max(1) as f64, now_ps.max(1) as f64);
    (now / before).max(before / now) > MOVED
}

/// What was measured as a whole is taken apart when the least of it is known: a difference of two times of
/// which one was disturbed may be anything.
fn parts_of(whole: Found, has_messages: bool) -> Found {
    let Found { mut figures, mut details, share } = whole;
    let barrier_ps = figures.deposit_ps;
    let less = |whole_ps: u64, part_ps: u64| whole_ps.saturating_sub(part_ps).max(PART_MIN_PS);
    // Each of those on a processor has a turn in a barrier, in which it does what it does there of two that
    // have one each.
    details.turns_ps = details.turns_ps.map(|whole_ps| less(whole_ps, barrier_ps));
    if has_messages {
        // In the model a barrier of two is a word and a line; one over messages is a call and a message, an
        // allgather copies besides, and an allreduce copies and combines.
        figures.deposit_ps = less(barrier_ps, figures.line_ps);
        details.step_ps = less(details.step_ps, details.copy_step_ps);
        details.copy_step_ps = less(details.copy_step_ps, details.call_ps);
        details.call_ps = less(details.call_ps, figures.message_ps);
        // The same at the board, where an allgather copies and an allreduce combines.
        details.board_step_ps = less(details.board_step_ps, details.board_call_ps);
        details.board_copy_ps = less(details.board_copy_ps, details.board_call_ps);
        details.board_call_ps = less(details.board_call_ps, barrier_ps);
    }
    Found { figures, details, share }
}

/// Each part once, anew where the processors have moved meanwhile.
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

/// Of what [`parts_of`] takes apart it has the whole.
fn all_parts(bar: &ProgressBar) -> Result<Found, TuneError> {
    let processors = u64::from(landeck::unstable::memory::processors::usable());
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

/// What copies take by how much goes round: a process of its own finds that, since where its memory lies is chance.
fn caches(found: &mut Found) -> Result<(), TuneError> {
    let details = &mut found.details;
    for (name, value_ps) in findings_of(1, Subject::Caches)? {
        let (kind, bytes) = name.split_once(' ').unwrap_or((&name, ""));
        let place = ROTATION_BYTES.iter().position(|of| bytes == of.to_string());
        match (kind, place) {
            ("deposit", Some(place)) => details.deposits_kib_ps[place] = value_ps,
            ("take", Some(place)) => details.takes_kib_ps[place] = value_ps,
            ("copy", Some(place)) => details.copies_kib_ps[place] = value_ps,
            ("read", Some(place)) => details.reads_kib_ps[place] = value_ps,
            ("write", Some(place)) => details.writes_kib_ps[place] = value_ps,
            ("handed", _) => details.handed_kib_ps = value_ps,
            ("fetched", _) => details.fetched_reduction_kib_ps = value_ps,
            ("past", _) => details.past_caches_kib_ps = value_ps,
            _ => {}
        }
    }
    Ok(())
}

fn messages(found: &mut Found) -> Result<(), TuneError> {
    if processors().len() < 2 {
        return Ok(()); // all of these need two that run at once
    }
    let all = job_of(2, Subject::Messages, found)?;
    let Found { figures, details, .. } = found;
    for (name, value_ps) in all {
        match name.as_str() {
            "barrier-over-messages" => details.call_ps = value_ps,
            "allgather-over-messages" => details.copy_step_ps = value_ps,
            "allreduce-over-messages" => details.step_ps = value_ps,
            "barrier-at-board" => details.board_call_ps = value_ps,
            "allgather-at-board" => details.board_copy_ps = value_ps,
            "allreduce-at-board" => details.board_step_ps = value_ps,
            "message" => figures.message_ps = value_ps,
            "send" => details.send_ps = value_ps,
            "one-copy" => figures.one_copy_kib_ps = value_ps,
            "two-copy" => figures.two_copy_kib_ps = value_ps,
            "barrier" => figures.deposit_ps = value_ps,
            other => {
                let is = |name: &str, bytes: u64| other == format!("{name}-{bytes}");
                let of_message = |bytes: &u64| is("message", *bytes);
                let of_one_way = |bytes: &u64| is("one-way", *bytes);
                if let Some(number) = MESSAGE_BYTES.iter().position(of_message) {
                    details.messages_ps[number] = value_ps;
                } else if let Some(number) = CELL_MESSAGE_BYTES.iter().position(of_one_way) {
                    details.one_ways_ps[number] = value_ps;
                }
            }
        }
    }
    Ok(())
}

/// Two processes on one processor: who sends must stop running before its answer can come. One of them looks how
/// pages are found as well: here that would change where the data of later copies lie.
fn switch(found: &mut Found) -> Result<(), TuneError> {
    for (name, value_ps) in on_one_processor(|| job_of(2, Subject::Switch, found))? {
        let is_of = |bytes: &u64| name == format!("page-{bytes}");
        if let Some(number) = ROTATION_BYTES.iter().position(is_of) {
            found.details.pages_ps[number] = value_ps;
        } else if name == "switch" {
            found.figures.switch_ps = value_ps;
        }
    }
    Ok(())
}

/// What a crowd of this number among [`CROWDS`] finds, on each of two processors or on the only one.
fn crowd(number: usize, found: &mut Found) -> Result<(), TuneError> {
    let details = &mut found.details;
    let places = [
        ("turn", &mut details.turns_ps[number]),
        ("switch", &mut details.switches_ps[number]),
        ("call", &mut details.crowd_calls_ps[number]),
        ("take", &mut details.crowd_takes_ps[number]),
        ("deposit", &mut details.crowd_deposits_ps[number]),
        ("send", &mut details.crowd_sends_ps[number]),
        ("receive", &mut details.crowd_receives_ps[number]),
        ("send-far", &mut details.crowd_sends_far_ps[number]),
        ("receive-far", &mut details.crowd_receives_far_ps[number]),
        ("keep", &mut details.crowd_keeps_ps[number]),
        ("call-again", &mut details.crowd_calls_again_ps[number]),
        ("send-again", &mut details.crowd_sends_again_ps[number]),
        ("receive-again", &mut details.crowd_receives_again_ps[number]),
        ("find", &mut details.crowd_finds_ps[number]),
        ("lend", &mut details.crowd_lends_ps[number]),
        ("drain", &mut details.crowd_drains_ps[number]),
        ("page", &mut details.crowd_pages_ps[number]),
        ("read", &mut details.crowd_reads_kib_ps[number]),
    ];
    let findings = findings_of(crowded() * CROWDS[number] as u32, Subject::Crowd)?;
    for (name, place) in places {
        if let Some((_, value_ps)) = findings.iter().find(|(finding, _)| finding == name) {
            *place = *value_ps;
        }
    }
    found.note_share(&findings);
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

/// How many processors a crowd is measured on.
pub(crate) fn crowded() -> u32 {
    processors().len().clamp(1, 2) as u32
}

/// The processors that this process may use.
pub(crate) fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// What so many processes have found out; the share that they had is noted.
fn job_of(
    processes: u32,
    subject: Subject,
    found: &mut Found,
) -> Result<Vec<(String, u64)>, TuneError> {
    let findings = findings_of(processes, subject)?;
    found.note_share(&findings);
    Ok(findings)
}

fn findings_of(processes: u32, subject: Subject) -> Result<Vec<(String, u64)>, TuneError> {
    let own = std::env::current_exe().map_err(TuneError::Start)?;
    // Who is in a crowd, or goes from one processor to another, chooses by itself: the launcher would give each its own.
    let output = Command::new(&own)
        .args(["run", "-n", &processes.to_string(), "--stdin", "none", "--timeout", JOB_S])
        .args(matches!(subject, Subject::Caches | Subject::Crowd).then_some("--bind-to=none"))
        .arg("--")
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
    fn what_was_measured_as_a_whole_is_taken_apart() {
        let mut whole = usual();
        (whole.figures.deposit_ps, whole.figures.line_ps) = (90_000, 50_000);
        whole.figures.message_ps = 75_000;
        whole.details.call_ps = 355_000;
        (whole.details.copy_step_ps, whole.details.step_ps) = (435_000, 515_000);
        whole.details.board_call_ps = 130_000;
        (whole.details.board_copy_ps, whole.details.board_step_ps) = (150_000, 160_000);
        whole.details.turns_ps = [1_500_000, 1_600_000, 1_900_000, 0];
        let Found { figures, details, .. } = parts_of(whole, true);
        assert_eq!(figures.deposit_ps, 40_000);
        assert_eq!(details.turns_ps, [1_410_000, 1_510_000, 1_810_000, PART_MIN_PS]);
        let steps = (details.call_ps, details.copy_step_ps, details.step_ps);
        assert_eq!(steps, (280_000, 80_000, 80_000));
        let at_board = (details.board_call_ps, details.board_copy_ps, details.board_step_ps);
        assert_eq!(at_board, (40_000, 20_000, 30_000));
        whole.details.step_ps = 435_000;
        let nothing = parts_of(whole, true).details.step_ps;
        assert_eq!(nothing, PART_MIN_PS, "a difference of nothing");
        assert_eq!(parts_of(whole, false).details.call_ps, 355_000, "it was not measured");
    }

    #[test]
    fn the_table_has_a_line_for_every_operation() {
        let settings = tuning::settings().unwrap().0;
        let group = clusters::here(4, MapBy::default(), None, settings.nearness).unwrap();
        let (processes, processors, board_bytes) = (4, 2, u64::MAX);
        let facts = Facts { group, processes, processors, has_board: true, board_bytes, settings };
        let text = Table::new(facts).to_string();
        for operation in landeck::unstable::collectives::Operation::ALL {
            assert!(text.contains(operation.as_str()), "{operation}: {text}");
        }
    }
}
