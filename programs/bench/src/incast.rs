//! `landeck-bench incast`: many senders answer one receiver, whose port holds little.
//!
//! The experiment of Davies and Matloff, "Network-Specific Performance Enhancements for PVM" (1997): each of 4 to 24
//! processes sends 80,000 or 800,000 bytes to a master. Every process has a host of its own, a network namespace. The
//! cable of each host has a rate, and the port in front of it drops what it cannot hold.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use landeck_testing::hosts::Wish;
use serde::Serialize;

use crate::candidate::{Candidate, Places};
use crate::chart::{Chart, ChartAxis, Line, machine_words};
use crate::cluster::Cluster;
use crate::figure::FigurePart;
use crate::machine::Machine;
use crate::paced::{Paced, name_of, pace};
use crate::plot::colour;
use crate::problem::Problem;
use crate::report::Report;
use crate::statistics::{Middle, short};
use crate::{launch, rounds};

/// The longest time of a launch: starting 25 hosts' processes takes seconds here.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(120);

/// The senders, the port, and the effort.
#[derive(Debug, Args)]
pub(crate) struct IncastOptions {
    /// The numbers of senders
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4,8,12,16,24")]
    senders: Vec<u32>,
    /// The bytes of each sender
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "80000,800000")]
    bytes: Vec<u64>,
    /// The rate of each host's cable in Mb/s
    #[arg(long, value_name = "MBIT", default_value_t = 100)]
    rate: u32,
    /// The bytes that wait for a host at most in the port that its cable ends in
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 10)]
    port_bytes: u32,
    /// Rounds in which everybody runs once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// A short run of at most about six minutes: one round, two gathers of each
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Leave out the gathers on hosts whose ports hold as much as they want
    #[arg(long)]
    small_port_only: bool,
    /// The paces of Landeck that are measured
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,fixed:1,calibrated,credit,tokens:segmentation,tokens:reservation",
        value_parser = pace
    )]
    paces: Vec<String>,
    /// The peers to compare with, of mpich, ompi and impi; or none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "mpich,ompi")]
    with: Vec<String>,
    /// Where results and plots are written
    #[arg(long, value_name = "DIR", default_value = "out/incast")]
    output: PathBuf,
}

/// A row of the paper's Table 3: senders, the programmed wait of sender n in milliseconds, bytes, time in milliseconds.
type PaperRow = (u32, Option<u32>, u64, f64);

/// Table 3, PVM on Ethernet of 10 Mb/s.
const TABLE_3: [PaperRow; 17] = [
    (1, None, 80_000, 466.0),
    (4, None, 80_000, 1_375.0),
    (4, Some(300), 80_000, 1_373.0),
    (4, Some(600), 80_000, 2_281.0),
    (4, None, 800_000, 14_532.0),
    (4, Some(2_000), 800_000, 13_530.0),
    (8, None, 80_000, 2_965.0),
    (8, Some(300), 80_000, 2_714.0),
    (12, None, 80_000, 6_056.0),
    (12, Some(300), 80_000, 3_844.0),
    (16, None, 80_000, 7_714.0),
    (16, Some(150), 80_000, 6_577.0),
    (16, Some(300), 80_000, 5_118.0),
    (16, None, 800_000, 75_526.0),
    (16, Some(2_000), 800_000, 55_879.0),
    (24, None, 80_000, 11_006.0),
    (24, Some(300), 80_000, 8_069.0),
];
/// The rate of the paper's Ethernet in Mb/s.
const PAPER_RATE: f64 = 10.0;

/// The values of one gatherer at one point.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    gatherer: String,
    senders: u32,
    bytes: u64,
    times_ms: Vec<f64>,
    sent_again: Vec<f64>,
    trouble: Option<String>,
}

impl Measured {
    /// The part of the port's rate that carried data, in percent, as a spread.
    fn goodput(&self, rate: u32) -> Option<Middle> {
        let bits = f64::from(self.senders) * self.bytes as f64 * 8.0;
        let percent: Vec<f64> = self
            .times_ms
            .iter()
            .map(|ms| 100.0 * bits / (ms * 1e-3) / (f64::from(rate) * 1e6))
            .collect();
        Middle::of(percent)
    }
}

/// Measures and shows.
///
/// # Errors
/// If hosts cannot be made, nothing can be written, or a launch did not end well.
pub(crate) fn run(options: &IncastOptions, places: &Places) -> Result<(), Problem> {
    let mut report = Report::begin(&options.output)?;
    let gatherers = Paced::all(&options.paces, &options.with, places)?;
    let small = Cluster::of(Wish {
        rate: Some(format!("{}mbit", options.rate)),
        port_bytes: Some(options.port_bytes),
        ..options.hosts()
    })?;
    let measured = options.measure("incast", &small, places, &gatherers, &options.bytes);
    drop(small);
    report.add(&options.table(&gatherers, &measured))?;
    report.add(&paper())?;
    report.keep("incast", &measured)?;
    for &bytes in &options.bytes {
        let chart = options.chart(&gatherers, &measured, bytes);
        report.draw(&format!("incast-{bytes}"), |path| chart.draw(path))?;
    }
    let mut troubles = troubles(&measured);
    if !options.small_port_only {
        troubles += options.without_a_small_port(places, &gatherers, &mut report)?;
    }
    report.end("Tables, values and pictures", troubles)
}

/// The points that did not end well.
fn troubles(measured: &[Measured]) -> usize {
    measured.iter().filter(|one| one.trouble.is_some()).count()
}

/// The paper's Table 3.
fn paper() -> String {
    let mut text = "\nThe paper's Table 3 (PVM, Ethernet of 10 Mb/s), and the part of its rate that carried data\n\n\
                    | senders | bytes of each | wait of sender n | ms | part |\n|---|---|---|---|---|\n"
        .to_owned();
    for (senders, wait, bytes, ms) in TABLE_3 {
        let wait = wait.map_or("none".to_owned(), |wait| format!("{wait} ms * n"));
        let part = f64::from(senders) * bytes as f64 * 8.0 / (ms * 1e-3) / (PAPER_RATE * 1e6);
        let ms = short(ms);
        let _ = writeln!(text, "| {senders} | {bytes} | {wait} | {ms} | {:.0}% |", part * 100.0);
    }
    text
}

impl IncastOptions {
    /// A host for each process.
    fn hosts(&self) -> Wish {
        let most = self.senders.iter().copied().max().unwrap_or(1);
        Wish::hosts(most as usize + 1)
    }

    /// The rounds, and the gathers of one launch that count.
    fn effort(&self) -> (u16, usize) {
        if self.quick { (1, 2) } else { (self.rounds, 3) }
    }

    /// Gathers at all points, everybody in turn.
    fn measure(
        &self,
        name: &'static str,
        cluster: &Cluster,
        places: &Places,
        gatherers: &[Paced],
        bytes: &[u64],
    ) -> Vec<Measured> {
        let mut measured = BTreeMap::new();
        for &bytes in bytes {
            for &senders in &self.senders {
                for (at, gatherer) in gatherers.iter().enumerate() {
                    let gatherer = gatherer.name();
                    let one = Measured { gatherer, senders, bytes, ..Measured::default() };
                    measured.insert((bytes, senders, at), one);
                }
            }
        }
        let (rounds, _) = self.effort();
        let progress =
            rounds::progress_bar(name, usize::from(rounds) * self.senders.len() * gatherers.len());
        for _ in 0..rounds {
            for &senders in &self.senders {
                for (at, gatherer) in gatherers.iter().enumerate() {
                    for bytes in runs(gatherer, bytes) {
                        let of = |bytes: &u64| (*bytes, senders, at);
                        let mut ones: Vec<Measured> =
                            bytes.iter().filter_map(|bytes| measured.remove(&of(bytes))).collect();
                        self.launch(cluster, places, gatherer, &mut ones);
                        measured.extend(bytes.iter().map(of).zip(ones));
                    }
                    progress.inc(1);
                }
            }
        }
        progress.finish_and_clear();
        measured.into_values().collect()
    }

    /// One job that gathers blocks of several sizes.
    fn launch(&self, cluster: &Cluster, places: &Places, gatherer: &Paced, ones: &mut [Measured]) {
        let Some(n) = ones.first().map(|one| one.senders + 1) else { return };
        let part = FigurePart::spread(n, n);
        let (first, then) = (first_gathers(gatherer), self.effort().1);
        let mut arguments = vec![(first + then).to_string()];
        arguments.extend(ones.iter().map(|one| one.bytes.to_string()));
        let mut command = match gatherer.command(cluster, places, &part, ("gather", &arguments)) {
            Ok(command) => command,
            Err(trouble) => {
                return ones.iter_mut().for_each(|one| one.trouble = Some(trouble.clone()));
            }
        };
        let outcome = launch::run(&mut command, LAUNCH_TIMEOUT);
        if outcome.trouble.is_some() {
            cluster.end();
        }
        for one in ones {
            let of_it = outcome.samples.iter().filter(|sample| sample.point.bytes == one.bytes);
            let (again, times): (Vec<_>, Vec<_>) =
                of_it.partition(|sample| !sample.point.form.is_empty());
            one.times_ms.extend(times.iter().skip(first).map(|sample| sample.value));
            one.sent_again.extend(again.iter().skip(first).map(|sample| sample.value));
            one.trouble = one.trouble.take().or_else(|| outcome.trouble.clone());
        }
    }

    /// Gathers where nothing is dropped: grants must not cost time there.
    fn without_a_small_port(
        &self,
        places: &Places,
        gatherers: &[Paced],
        report: &mut Report,
    ) -> Result<usize, Problem> {
        let is_meant = |one: &&Paced| matches!(one.pace.as_deref(), Some("none" | "credit"));
        let both: Vec<Paced> = gatherers.iter().filter(is_meant).cloned().collect();
        let bytes = self.bytes.iter().copied().max().unwrap_or_default();
        let open = Cluster::of(self.hosts())?;
        let measured = self.measure("open", &open, places, &both, &[bytes]);
        let mut text = format!(
            "\nHosts whose ports hold as much as they want: {bytes} bytes of each. Time in ms (least to most).\n\n\
             | senders | none | credit | none / credit |\n|---|---|---|---|\n"
        );
        for &senders in &self.senders {
            let find = |pace: &str| {
                let name = name_of(pace);
                let one =
                    measured.iter().find(|one| one.gatherer == name && one.senders == senders);
                one.and_then(|one| Middle::of(one.times_ms.iter().copied()))
            };
            let (Some(none), Some(credit)) = (find("none"), find("credit")) else { continue };
            let of = |all: Middle| {
                format!("{} ({} to {})", short(all.median), short(all.min), short(all.max))
            };
            let ratio = none.median / credit.median;
            let _ = writeln!(text, "| {senders} | {} | {} | {ratio:.2} |", of(none), of(credit));
        }
        report.add(&text)?;
        report.keep("open", &measured)?;
        Ok(troubles(&measured))
    }

    fn table(&self, gatherers: &[Paced], measured: &[Measured]) -> String {
        let mut text = format!(
            "Many senders and one receiver: hosts with cables of {} Mb/s, ports that hold {} bytes.\n\
             Each field: the time in ms, the part of the port's rate that carried data, segments sent again. Medians.\n",
            self.rate, self.port_bytes
        );
        for &bytes in &self.bytes {
            let _ = write!(text, "\n{bytes} bytes of each\n\n| senders |");
            for gatherer in gatherers {
                let _ = write!(text, " {} |", gatherer.name());
            }
            let _ = writeln!(text, "\n|---|{}", "---|".repeat(gatherers.len()));
            for &senders in &self.senders {
                let _ = write!(text, "| {senders} |");
                for gatherer in gatherers {
                    let name = gatherer.name();
                    let one = measured.iter().find(|one| {
                        one.gatherer == name && one.senders == senders && one.bytes == bytes
                    });
                    let field = one.map_or_else(String::new, |one| self.field(one));
                    let _ = write!(text, " {field} |");
                }
                text.push('\n');
            }
        }
        for one in measured {
            if let Some(trouble) = &one.trouble {
                let (gatherer, senders, bytes) = (&one.gatherer, one.senders, one.bytes);
                let _ =
                    writeln!(text, "\n{gatherer}, {senders} senders of {bytes} bytes: {trouble}");
            }
        }
        text
    }

    fn field(&self, one: &Measured) -> String {
        let (Some(time), Some(goodput), Some(again)) = (
            Middle::of(one.times_ms.iter().copied()),
            one.goodput(self.rate),
            Middle::of(one.sent_again.iter().copied()),
        ) else {
            return "-".to_owned();
        };
        format!("{}, {:.0}%, {:.0}", short(time.median), goodput.median, again.median)
    }

    fn chart(&self, gatherers: &[Paced], measured: &[Measured], bytes: u64) -> Chart {
        let line = |gatherer: &Paced| {
            let name = gatherer.name();
            let of_it = measured.iter().filter(|one| one.gatherer == name && one.bytes == bytes);
            Line::along(&name, gatherer.style(), of_it, |one| {
                Some((f64::from(one.senders), Middle::of(one.times_ms.iter().copied())?))
            })
        };
        let port_style = (colour(Candidate::Bare), false);
        let port = Line::along("the port's rate", port_style, &self.senders, |&senders| {
            let ms = f64::from(senders) * bytes as f64 * 8.0 / (f64::from(self.rate) * 1e3);
            Some((f64::from(senders), Middle::one(ms)))
        });
        let lines = gatherers.iter().map(line).filter(|line| !line.values.is_empty());
        Chart {
            title: format!(
                "A gather of {} KB of each through a port that holds little",
                bytes / 1_000
            ),
            note: format!(
                "{} Mb/s, port of {} KiB. {}",
                self.rate,
                self.port_bytes >> 10,
                machine_words(&Machine::here())
            ),
            unit: "ms".to_owned(),
            axis: ChartAxis { name: "senders", is_logarithmic: false, label: short },
            lines: lines.chain([port]).collect(),
        }
    }
}

/// Whether the first steps of a job are trial runs, which hold for all sizes of the job.
fn is_calibrated(gatherer: &Paced) -> bool {
    gatherer.pace.as_deref() == Some("calibrated")
}

/// The gathers that do not count: those that open connections, and the trial runs.
fn first_gathers(gatherer: &Paced) -> usize {
    if is_calibrated(gatherer) { 18 } else { 1 }
}

/// The sizes of each job.
fn runs(gatherer: &Paced, bytes: &[u64]) -> Vec<Vec<u64>> {
    match is_calibrated(gatherer) {
        true => bytes.iter().map(|bytes| vec![*bytes]).collect(),
        false => vec![bytes.to_vec()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_the_rate_follows_from_time() {
        let one = Measured {
            senders: 10,
            bytes: 1_000_000,
            times_ms: vec![1_000.0, 800.0],
            ..Measured::default()
        };
        let spread = one.goodput(100).expect("two values");
        assert_eq!((spread.min, spread.max), (80.0, 100.0));
    }
}
