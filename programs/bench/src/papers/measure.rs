//! Measures a study in rounds: in each round every job of it runs once, in an order that rotates.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use landeck_collectives::Operation;

use crate::candidate::{self, Candidate, Places};
use crate::disturbance::{patiently, watched};
use crate::figure::FigurePart;
use crate::launch;
use crate::machine::Machine;
use crate::over_hosts;
use crate::papers::counts::{self, Counts};
use crate::papers::grid::{Launch, Program, Study, USUAL};
use crate::papers::values::{Fact, Value, ValuePlace, Values};
use crate::results::LaunchValue;
use crate::rounds::{progress_bar, summarise};
use crate::sample::{Point, Sample};
use crate::standing::Standing;
use crate::statistics::median;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// In each launch.
    pub(crate) batches: usize,
    /// For so long a disturbed launch is repeated.
    pub(crate) patience: Duration,
    /// After so long a launch begins no further batch.
    pub(crate) limit_s: f64,
    /// After so long a study begins no further launch.
    pub(crate) time: Option<Duration>,
}

/// A launch that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Starting processes on 20 hosts takes seconds.
const TIMEOUT_OVER_HOSTS: Duration = Duration::from_secs(100);
/// The library's own broadcast, as bench/papers.c calls it.
pub(super) const MPI: &str = "mpi";
/// The figure whose job has a process more on the first host.
pub(super) const SERVER_OF_ITS_OWN: &str = "service_paper";

/// Every launch in every round.
pub(crate) fn measure(
    study: Study,
    launches: &[Launch],
    places: &Places,
    effort: &Effort,
) -> Values {
    let progress = progress_bar(study.name(), effort.rounds * launches.len());
    let machine = Machine::here();
    let (mut values, mut facts, mut troubles) = (Vec::new(), Vec::new(), Vec::new());
    let mut time = StudyTime::begin(effort.time);
    let mut rounds = 0;
    while rounds < effort.rounds && time.has_round() {
        let round = rounds;
        for place in 0..launches.len() {
            let launch = &launches[(place + round) % launches.len()];
            progress.set_message(launch.to_string());
            if time.is_over() {
                troubles.push(format!("{launch}, round {}: no time was left", round + 1));
                continue;
            }
            match patiently(effort.patience, || once(launch, round, places, effort)) {
                Ok(gained) => {
                    values.extend(gained.values);
                    facts.extend(gained.facts);
                }
                Err(trouble) => {
                    troubles.push(format!("{launch}, round {}: {trouble}", round + 1));
                }
            }
            progress.inc(1);
        }
        rounds += 1;
        time.end_round();
        if progress.is_hidden() {
            say_round(study, (rounds, effort.rounds), time.begun.elapsed());
        }
    }
    progress.finish_and_clear();
    Values { study, title: study.title(), machine, rounds, values, facts, troubles }
}

/// Tells a reader without a progress bar how far a study is.
fn say_round(study: Study, (round, rounds): (usize, usize), time: Duration) {
    eprintln!("{}: round {round} of {rounds} ended after {} s", study.name(), time.as_secs());
}

/// The time of a study.
struct StudyTime {
    begun: Instant,
    round_begun: Instant,
    longest_round: Duration,
    /// None without a limit.
    end: Option<Instant>,
}

impl StudyTime {
    fn begin(limit: Option<Duration>) -> Self {
        let now = Instant::now();
        let end = limit.map(|limit| now + limit);
        Self { begun: now, round_begun: now, longest_round: Duration::ZERO, end }
    }

    /// Whether another round ends in time, if it takes as long as the longest one. The first one begins in any case.
    fn has_round(&self) -> bool {
        let is_first = self.longest_round.is_zero();
        is_first || self.end.is_none_or(|end| Instant::now() + self.longest_round <= end)
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() > end)
    }

    fn end_round(&mut self) {
        self.longest_round = self.longest_round.max(self.round_begun.elapsed());
        self.round_begun = Instant::now();
    }
}

/// The values and counts of one launch.
#[derive(Debug)]
struct Gained {
    values: Vec<Value>,
    facts: Vec<Fact>,
}

fn once(
    launch: &Launch,
    round: usize,
    places: &Places,
    effort: &Effort,
) -> Result<(f64, Gained), String> {
    let timeout = if launch.hosts > 0 { TIMEOUT_OVER_HOSTS } else { TIMEOUT };
    let mut command = command(launch, places, effort)?;
    let ran = standing(launch, places).and_then(|_standing| {
        let (others_share, outcome) = watched(|| launch::run(&mut command, timeout));
        outcome.trouble.map_or(Ok((others_share, outcome.samples)), Err)
    });
    let (others_share, samples) = ran.inspect_err(|_| {
        if let Some(cluster) = places.cluster.as_ref().filter(|_| launch.hosts > 0) {
            cluster.end();
        }
    })?;
    let (timed, counted): (Vec<Sample>, Vec<Sample>) =
        samples.into_iter().partition(|sample| sample.unit == "ns");
    let values: Vec<Value> = summarise(timed, median)
        .into_iter()
        .map(|measured| value(launch, round, others_share, measured))
        .collect();
    let fact = |sample: Sample| Fact {
        place: place(launch, sample.point),
        unit: sample.unit,
        value: sample.value,
    };
    let facts: Vec<Fact> = counted.into_iter().map(fact).collect();
    if values.is_empty() && facts.is_empty() {
        return Err("printed no value".to_owned());
    }
    Ok((others_share, Gained { values, facts }))
}

/// The machine in which a launch runs, for its turn alone.
fn standing<'a>(launch: &Launch, places: &'a Places) -> Result<Option<Standing<'a>>, String> {
    let cluster = places.cluster.as_deref();
    let described = cluster.zip(launch.machine);
    described.map(|(cluster, text)| Standing::start_described(cluster, places, text)).transpose()
}

fn command(launch: &Launch, places: &Places, effort: &Effort) -> Result<Command, String> {
    let sizes: Vec<String> = launch.sizes.iter().map(u64::to_string).collect();
    let mut arguments = vec![
        launch.figure.to_owned(),
        format!("iterations={}", launch.iterations),
        format!("batches={}", effort.batches),
        format!("limit_s={}", effort.limit_s),
    ];
    if !sizes.is_empty() {
        arguments.push(format!("bytes={}", sizes.join(",")));
    }
    if !launch.arrangements.is_empty() {
        let own = if launch.program == Program::Points { USUAL } else { MPI };
        let ways = launch.arrangements.iter().map(|arrangement| arrangement.way());
        let ways: Vec<String> = ways.chain([own.to_owned()]).collect();
        arguments.push(format!("ways={}", ways.join(",")));
    }
    let program = match launch.program {
        Program::Points => places.points(Candidate::Landeck),
        Program::Mpi => places.papers(launch.by),
        Program::Deck => places.program(Candidate::Landeck, candidate::Program::Deck),
    };
    let mut command = match &places.cluster {
        Some(cluster) if launch.hosts > 0 => {
            let extra = u32::from(launch.figure == SERVER_OF_ITS_OWN);
            let part = FigurePart { extra, ..FigurePart::spread(launch.n, launch.hosts) };
            over_hosts::command(cluster, places, launch.by, &part, &program, &arguments)?
        }
        _ => places.command(launch.by, launch.n, Path::new(&program), &arguments),
    };
    // The ways that are compared are those that are named here.
    command.env_remove(landeck::settings::COLLECTIVES);
    if let Some(preset) = launch.preset {
        command.env(landeck::settings::COLLECTIVES, preset);
    }
    command.env_remove(landeck::settings::PATH).env_remove(landeck::settings::STORE);
    if let Some(path) = launch.path {
        command.env(landeck::settings::PATH, path);
    }
    Ok(command)
}

/// The case that a point of a launch is one of.
fn place(launch: &Launch, point: Point) -> ValuePlace {
    let (operation, way) = match launch.study {
        Study::Sizes | Study::Processes => ("broadcast".to_owned(), point.form),
        Study::Roots => ("roots".to_owned(), point.form),
        _ => (point.form, launch.way.to_owned()),
    };
    let (who, hosts) = (launch.by.name(), launch.hosts);
    ValuePlace { operation, way, who, hosts, n: point.n, bytes: point.bytes }
}

fn value(launch: &Launch, round: usize, others_share: f64, measured: LaunchValue) -> Value {
    let place = place(launch, measured.point);
    Value {
        counts: counts_of(&place),
        place,
        round,
        us: measured.value / 1e3,
        batches: measured.batches,
        batches_min_us: measured.batches_min / 1e3,
        batches_max_us: measured.batches_max / 1e3,
        others_share,
    }
}

/// Returns the counts of the plans of a place.
pub(super) fn counts_of(place: &ValuePlace) -> Option<Counts> {
    let (preset, groups) = match place.way.split_once('@') {
        Some((preset, groups)) => (preset, groups.parse().ok()?),
        None => (place.way.as_str(), 1),
    };
    let of = |operation| counts::counts(operation, preset, place.n, groups);
    match place.operation.as_str() {
        "broadcast" => of(Operation::Broadcast),
        "broadcast-sync" => counts::sum([of(Operation::Broadcast), of(Operation::Barrier)]),
        "scatter-gather" => counts::sum([of(Operation::Scatter), of(Operation::Gather)]),
        "reduce" => of(Operation::Reduce),
        "barrier" => of(Operation::Barrier),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use landeck_testing::Watchdog;

    use super::*;
    use crate::papers::grid::Arrangement;

    /// The programs of this build beside the tests: what is not there yet is built.
    fn built_places() -> Places {
        let mut places = Places::of_this_build();
        let deps = std::env::current_exe().unwrap();
        places.programs = deps.parent().unwrap().parent().unwrap().to_owned();
        let mut build = Command::new(env!("CARGO"));
        landeck_testing::program::forget_package(&mut build);
        // Of the whole workspace, the libraries have the features that they have in other tests: nothing is built again.
        build.current_dir(&places.root).args(["build", "--quiet", "--workspace"]);
        build.args(["--bin", "landeck", "--bin", "landeck-points"]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        // A launch: other tests end and reap whatever belongs to no launch.
        assert_eq!(launch::run(&mut build, Duration::from_secs(240)).trouble, None);
        places
    }

    fn effort(time: Option<Duration>) -> Effort {
        Effort { rounds: 1, batches: 2, patience: Duration::ZERO, limit_s: 20.0, time }
    }

    #[test]
    fn no_launch_begins_after_the_time_of_a_study() {
        let mut time = StudyTime::begin(Some(Duration::from_secs(1_000)));
        assert!(time.has_round() && !time.is_over());
        time.longest_round = Duration::from_secs(2_000);
        assert!(!time.has_round() && !time.is_over());
        time.end_round();
        assert!(!time.has_round(), "the longest round counts");
        assert!(StudyTime::begin(None).has_round());

        let places = Places::of_this_build();
        let launches = [small(Study::Service, 2, None)];
        let effort = effort(Some(Duration::ZERO));
        let values = measure(Study::Service, &launches, &places, &effort);
        assert_eq!(values.troubles, ["landeck, landeck, 2 processes, round 1: no time was left"]);
    }

    fn small(study: Study, n: u32, preset: Option<&'static str>) -> Launch {
        let arranged = |architecture| Arrangement { architecture, groups: 2 };
        let arrangements = match study {
            Study::Sizes | Study::Processes => {
                ["pipeline", "daisy", "hierarchy", "hypercube"].map(arranged).to_vec()
            }
            _ => Vec::new(),
        };
        let (sizes, way) = (vec![4, 400], preset.unwrap_or(USUAL));
        Launch { n, preset, way, arrangements, sizes, iterations: 3, ..Launch::of(study) }
    }

    #[test]
    fn every_study_runs_with_a_few_processes() {
        let _watchdog = Watchdog::start(Duration::from_secs(300));
        let places = built_places();
        let effort = effort(None);
        for (study, n, preset, expected) in [
            (Study::Sizes, 4, None, 5 * 2),
            (Study::Processes, 3, None, 5 * 2),
            (Study::Service, 2, Some("deck2000"), 2),
            (Study::Collective, 3, Some("mpi2003"), 2 + 2 + 1),
            (Study::Collective, 4, None, 2 + 2 + 1),
        ] {
            let launches = [small(study, n, preset)];
            let values = measure(study, &launches, &places, &effort);
            assert_eq!(values.troubles, Vec::<String>::new());
            assert_eq!(values.values.len(), expected, "{study:?}");
            assert!(values.values.iter().all(|value| value.us > 0.0));
            let is_counted = |value: &Value| value.counts.is_some() != (value.place.way == USUAL);
            assert!(values.values.iter().all(is_counted));
        }
    }
}
