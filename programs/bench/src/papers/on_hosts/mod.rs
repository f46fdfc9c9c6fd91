//! The papers' studies on several hosts: Landeck beside other libraries, in the same rounds.
//!
//! | file | what |
//! |---|---|
//! | `grid.rs` | what is measured |
//! | `counts.rs` | counts of messages, which must be those of the papers and of the plans |
//! | `deliveries.rs` | all of the study of deliveries, which has hosts and a picture of its own |
//! | `tables.rs`, `pictures.rs` | what is shown |

mod counts;
mod deliveries;
mod grid;
mod pictures;
mod tables;

use std::process::Command;
use std::rc::Rc;

use landeck_host::say::say;
use landeck_testing::hosts::Wish;

use super::grid::Study;
use super::measure;
use super::{PapersOptions, keep};
use crate::candidate::{Candidate, Places};
use crate::cluster::Cluster;
use crate::problem::Problem;
use crate::report::{Report, present};
use grid::Grid;

/// Measures on two to `hosts` hosts.
pub(super) fn run(options: &PapersOptions, hosts: u32, places: &Places) -> Result<(), Problem> {
    if options.studies.contains(&Study::Processes) {
        return Err(Problem::StudyNeedsOneHost { name: Study::Processes.name() });
    }
    if hosts < deliveries::HOSTS && options.studies.contains(&Study::Deliveries) {
        return Err(Problem::StudyNeedsSites { name: Study::Deliveries.name() });
    }
    let mut report = Report::begin(&options.output)?;
    let mut places = places.clone();
    let grid = Grid {
        hosts,
        is_quick: options.quick,
        processes: options.processes,
        libraries: if options.has_peers() { libraries(options, &places)? } else { Vec::new() },
    };
    let effort = options.effort();
    let (mut checked, mut troubles) = (Vec::new(), 0);
    let mut studies = vec![Study::Service, Study::Sizes, Study::Collective, Study::Roots];
    if hosts >= deliveries::HOSTS {
        studies.push(Study::Deliveries);
    }
    for study in options.studies(studies) {
        let wish = match study {
            Study::Deliveries => Some(deliveries::wish()),
            _ if places.cluster.is_none() => Some(Wish::hosts(hosts as usize)),
            _ => None,
        };
        if let Some(wish) = wish {
            // First the others go.
            places.cluster = None;
            places.cluster = Some(Rc::new(Cluster::of(wish)?));
        }
        let launches = grid.launches(study);
        say(&format!(
            "{}: up to {} rounds of {} launches, {} minutes at most\n",
            study.name(),
            effort.rounds,
            launches.len(),
            effort.time.map_or(0, |time| time.as_secs() / 60)
        ))?;
        let values = measure::measure(study, &launches, &places, &effort);
        let counted = counts::check(&values);
        report.add(&tables::study(&values, &counted))?;
        if study == Study::Sizes && options.processes.is_none() {
            report.add(&simulated(options, &places)?)?;
        }
        keep(&report, &values, pictures::pictures(&values))?;
        if study == Study::Deliveries {
            let strips = deliveries::strips(&values);
            report.draw("hosts-deliveries", |path| strips.draw(path))?;
        }
        checked.extend(counted);
        troubles += values.troubles.len();
    }
    let ended = report.end("Tables, values and pictures", troubles);
    let wrong: Vec<_> = checked.iter().filter(|count| !count.is_right()).collect();
    match wrong.first() {
        Some(first) => Err(Problem::OtherCounts {
            wrong: wrong.len(),
            all: checked.len(),
            first: first.to_string(),
        }),
        None => ended,
    }
}

/// The libraries that run bench/papers.c: Landeck's MPI and its peers.
fn libraries(options: &PapersOptions, places: &Places) -> Result<Vec<Candidate>, Problem> {
    let is_wanted = |candidate: &Candidate| {
        candidate.peer().is_none_or(|peer| options.with.iter().any(|with| with == peer))
    };
    let all =
        [Candidate::LandeckMpi, Candidate::OpenMpi, Candidate::IntelMpi, Candidate::MpichThrottled];
    present(all.into_iter().filter(is_wanted), |&candidate| {
        let needed = [places.launcher(candidate), places.papers(candidate)];
        Some((candidate, needed.into_iter().find(|path| !path.exists())?))
    })
}

/// The whole grid of the paper of 2005, up to 120 processes, by the simulator.
fn simulated(options: &PapersOptions, places: &Places) -> Result<String, Problem> {
    let launcher = places.launcher(Candidate::Landeck);
    let folder = options.output.join("simulated");
    let mut simulate = Command::new(&launcher);
    simulate.args(["simulate", "broadcast", "--paper", "--platform", "myrinet2000", "--out"]);
    match simulate.arg(&folder).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(format!(
                "\n2005: the whole grid, simulated on the paper's network; pictures: {}\n{}",
                folder.display(),
                said
            ))
        }
        Err(error) => Err(Problem::NotStarted { program: launcher, error }),
    }
}
