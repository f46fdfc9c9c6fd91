//! Measures a study in rounds: in each round every job of it runs once, in an order that rotates.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use landeck::unstable::collectives::Operation;

use crate::candidate::{Candidate, Places};
use crate::disturbance::{self, DISTURBED_SHARE, Usage};
use crate::launch;
use crate::machine::Machine;
use crate::papers::counts::{self, Counts};
use crate::papers::grid::{Launch, Study, USUAL};
use crate::papers::values::{Place, Value, Values};
use crate::results::LaunchValue;
use crate::rounds::summarise;
use crate::statistics::median;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// In each launch.
    pub(crate) batches: usize,
    /// For so long a disturbed launch is repeated.
    pub(crate) patience: Duration,
}

/// A launch that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Every launch in every round.
pub(crate) fn measure(
    study: Study,
    launches: &[Launch],
    places: &Places,
    effort: &Effort,
    progress: &ProgressBar,
) -> Values {
    let machine = Machine::here();
    let (mut values, mut troubles) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        for place in 0..launches.len() {
            let launch = &launches[(place + round) % launches.len()];
            progress.set_message(format!("{} n = {}", study.name(), launch.n));
            match patiently(launch, round, places, effort) {
                Ok(measured) => values.extend(measured),
                Err(trouble) => troubles.push(format!(
                    "{} with {} processes, round {}: {trouble}",
                    launch.preset.unwrap_or(USUAL),
                    launch.n,
                    round + 1
                )),
            }
            progress.inc(1);
        }
    }
    Values { study, title: study.title(), machine, rounds: effort.rounds, values, troubles }
}

/// Repeats a launch while others disturb it and there is time; the least disturbed counts.
fn patiently(
    launch: &Launch,
    round: usize,
    places: &Places,
    effort: &Effort,
) -> Result<Vec<Value>, String> {
    let deadline = Instant::now() + effort.patience;
    disturbance::wait_for_calm(deadline);
    let (mut share, mut best) = once(launch, round, places, effort)?;
    while share > DISTURBED_SHARE && Instant::now() < deadline {
        disturbance::wait_for_calm(deadline);
        let (again_share, again) = once(launch, round, places, effort)?;
        if again_share < share {
            (share, best) = (again_share, again);
        }
    }
    Ok(best)
}

fn once(
    launch: &Launch,
    round: usize,
    places: &Places,
    effort: &Effort,
) -> Result<(f64, Vec<Value>), String> {
    let usage = Usage::now();
    let outcome = launch::run(&mut command(launch, places, effort), TIMEOUT);
    let others_share = Usage::now().others_share_since(&usage);
    if let Some(trouble) = outcome.trouble {
        return Err(trouble);
    }
    let values: Vec<Value> = summarise(outcome.samples, median)
        .into_iter()
        .map(|measured| value(launch, round, others_share, measured))
        .collect();
    if values.is_empty() { Err("printed no value".to_owned()) } else { Ok((others_share, values)) }
}

fn command(launch: &Launch, places: &Places, effort: &Effort) -> Command {
    let sizes: Vec<String> = launch.sizes.iter().map(u64::to_string).collect();
    let figure = match launch.study {
        Study::Sizes | Study::Processes => "delivery",
        repeated => repeated.name(),
    };
    let mut arguments = vec![
        figure.to_owned(),
        format!("bytes={}", sizes.join(",")),
        format!("iterations={}", launch.iterations),
        format!("batches={}", effort.batches),
    ];
    if !launch.arrangements.is_empty() {
        let ways = launch.arrangements.iter().map(|arrangement| arrangement.way());
        let ways: Vec<String> = ways.chain([USUAL.to_owned()]).collect();
        arguments.push(format!("ways={}", ways.join(",")));
    }
    let program = places.points(Candidate::Landeck);
    let mut command = places.command(Candidate::Landeck, launch.n, Path::new(&program), &arguments);
    // The ways that are compared are those that are named here.
    command.env_remove(landeck::tuning::VARIABLE);
    if let Some(preset) = launch.preset {
        command.env(landeck::tuning::VARIABLE, preset);
    }
    command
}

fn value(launch: &Launch, round: usize, others_share: f64, measured: LaunchValue) -> Value {
    let form = measured.point.form;
    let (operation, way) = match launch.study {
        Study::Sizes | Study::Processes => ("broadcast".to_owned(), form),
        _ => (form, launch.preset.unwrap_or(USUAL).to_owned()),
    };
    let place = Place { operation, way, n: measured.point.n, bytes: measured.point.bytes };
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
fn counts_of(place: &Place) -> Option<Counts> {
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

    fn small(study: Study, n: u32, preset: Option<&'static str>) -> Launch {
        let arranged = |architecture| Arrangement { architecture, groups: 2 };
        let arrangements = match study {
            Study::Sizes | Study::Processes => {
                ["pipeline", "daisy", "hierarchy", "hypercube"].map(arranged).to_vec()
            }
            _ => Vec::new(),
        };
        Launch { study, n, preset, arrangements, sizes: vec![4, 400], iterations: 3 }
    }

    #[test]
    fn every_study_runs_with_a_few_processes() {
        let _watchdog = Watchdog::start(Duration::from_secs(300));
        let places = built_places();
        let effort = Effort { rounds: 1, batches: 2, patience: Duration::ZERO };
        for (study, n, preset, expected) in [
            (Study::Sizes, 4, None, 5 * 2),
            (Study::Processes, 3, None, 5 * 2),
            (Study::Service, 2, Some("deck2000"), 2),
            (Study::Collective, 3, Some("mpi2003"), 2 + 2 + 1),
            (Study::Collective, 4, None, 2 + 2 + 1),
        ] {
            let launches = [small(study, n, preset)];
            let values = measure(study, &launches, &places, &effort, &ProgressBar::hidden());
            assert_eq!(values.troubles, Vec::<String>::new());
            assert_eq!(values.values.len(), expected, "{study:?}");
            assert!(values.values.iter().all(|value| value.us > 0.0));
            let is_counted = |value: &Value| value.counts.is_some() != (value.place.way == USUAL);
            assert!(values.values.iter().all(is_counted));
        }
    }
}
