//! `landeck bench papers`: what three papers on group communication measured, on this machine.
//!
//! | file | what |
//! |---|---|
//! | `grid.rs` | what they measured |
//! | `measure.rs` | measuring it, in rounds |
//! | `counts.rs` | messages and steps of the plans |
//! | `values.rs` | what was measured |
//! | `paper2005.rs` | what the paper of 2005 says in numbers |
//! | `tables.rs`, `pictures.rs` | what is shown |
//! | `on_hosts/` | the same on several hosts, beside other libraries |

mod counts;
mod grid;
mod measure;
mod on_hosts;
mod paper2005;
mod pictures;
mod tables;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::candidate::{Candidate, Places};
use crate::chart::Chart;
use crate::problem::Problem;
use crate::report::Report;
use grid::Study;
use measure::Effort;
use values::Values;

/// The selection of the papers' studies, and the duration of the measurement.
#[derive(Debug, Args)]
pub(crate) struct PapersOptions {
    /// Measure this study only; may be repeated
    #[arg(long = "study", value_name = "NAME", value_enum)]
    studies: Vec<Study>,
    /// A run of two minutes: fewer rounds, and every second number of members in the study of 2003
    #[arg(long)]
    quick: bool,
    /// Rounds in which everything is measured once [default: 15, quick: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Repeat a launch that others disturbed for so many seconds, and keep the least disturbed
    /// [default: 3, quick: 0]
    #[arg(long, value_name = "S")]
    patience: Option<u64>,
    /// Measure jobs on two to so many hosts, which are made of network namespaces, beside MPICH and Open MPI
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=20))]
    hosts: Option<u32>,
    /// The peers to compare with over hosts, of mpich, ompi and impi; or none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "mpich,ompi")]
    with: Vec<String>,
    /// Over hosts, a study ends after so many minutes: no round begins that would last longer [default: 10, quick: 3]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(1..))]
    minutes: Option<u16>,
    /// So many processes instead of 24 and 48, over hosts
    #[arg(long, value_name = "N", hide = true)]
    processes: Option<u32>,
    /// Where results and plots are written
    #[arg(long, value_name = "DIR", default_value = "out/papers")]
    output: PathBuf,
}

/// Measures the studies and shows them.
pub(crate) fn run(options: &PapersOptions, places: &Places) -> Result<(), Problem> {
    if let Some(path) = places.missing(Candidate::Landeck) {
        return Err(Problem::NotBuilt { path });
    }
    if let Some(hosts) = options.hosts {
        return on_hosts::run(options, hosts, places);
    }
    let effort = options.effort();
    let mut report = Report::begin(&options.output)?;
    let mut measured: Vec<Values> = Vec::new();
    let of_hosts = [Study::Roots, Study::Deliveries];
    if let Some(study) = of_hosts.into_iter().find(|study| options.studies.contains(study)) {
        return Err(Problem::StudyNeedsHosts { name: study.name() });
    }
    for study in options.studies(Study::ALL) {
        let launches = study.launches(options.quick);
        let values = measure::measure(study, &launches, places, &effort);
        report.add(&tables::study(&values))?;
        keep(&report, &values, pictures::pictures(&values))?;
        measured.push(values);
    }
    let of = |study| measured.iter().find(|values| values.study == study);
    if let (Some(sizes), Some(processes)) = (of(Study::Sizes), of(Study::Processes)) {
        report.add(&tables::table_1(sizes, processes))?;
    }
    report.end("Tables, values and pictures", 0)
}

impl PapersOptions {
    /// Whether other libraries are measured as well.
    pub(crate) fn has_peers(&self) -> bool {
        let is_alone = matches!(self.studies[..], [Study::Deliveries]);
        self.hosts.is_some() && !is_alone
    }

    /// The wanted ones of these studies.
    fn studies(&self, all: impl IntoIterator<Item = Study>) -> impl Iterator<Item = Study> {
        all.into_iter().filter(|study| self.studies.is_empty() || self.studies.contains(study))
    }

    fn effort(&self) -> Effort {
        let (rounds, batches, patience_s, limit_s, minutes) = match (self.hosts, self.quick) {
            (None, false) => (15, 5, 3, 20.0, None),
            (None, true) => (5, 3, 0, 20.0, None),
            (Some(_), false) => (3, 5, 0, 3.0, Some(10)),
            (Some(_), true) => (1, 2, 0, 1.0, Some(3)),
        };
        let minutes = minutes.map(|minutes| self.minutes.unwrap_or(minutes));
        Effort {
            rounds: usize::from(self.rounds.unwrap_or(rounds)),
            batches,
            patience: Duration::from_secs(self.patience.unwrap_or(patience_s)),
            limit_s,
            time: minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes))),
        }
    }
}

fn keep(report: &Report, values: &Values, pictures: Vec<(String, Chart)>) -> Result<(), Problem> {
    report.keep(values.study.name(), values)?;
    pictures.iter().try_for_each(|(name, chart)| report.draw(name, |path| chart.draw(path)))
}
