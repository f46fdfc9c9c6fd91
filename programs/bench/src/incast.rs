//! `landeck-bench incast`: many senders answer one receiver, whose port holds little.
//!
//! The experiment of Davies and Matloff, "Network-Specific Performance Enhancements for PVM" (1997): each of 4 to 24
//! processes sends 80,000 or 800,000 bytes to a master. Every process has a host of its own, a network namespace. The
//! cable of each host has a rate, and the port in front of it drops what it cannot hold.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use landeck::unstable::host::say::say;
use landeck_testing::hosts::Wish;
use plotters::prelude::RGBColor;
use serde::Serialize;

use crate::candidate::{Candidate, Places};
use crate::chart::{Chart, ChartAxis, Line, machine_words};
use crate::cluster::Cluster;
use crate::figure::Part;
use crate::machine::Machine;
use crate::plot::colour;
use crate::problem::Problem;
use crate::report::{Report, leave_out};
use crate::statistics::{Spread, short};
use crate::{launch, over_hosts, rounds};

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
    /// The paces of Landeck that are measured
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,fixed:1,calibrated,credit"
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

/// One of those who gather.
#[derive(Clone, Debug)]
struct Gatherer {
    candidate: Candidate,
    /// Landeck's pace.
    pace: Option<String>,
}

impl Gatherer {
    fn name(&self) -> String {
        match &self.pace {
            Some(pace) => format!("Landeck, {pace}"),
            None => self.candidate.title().to_owned(),
        }
    }

    fn colour(&self) -> RGBColor {
        match self.pace.as_deref() {
            Some("none") => RGBColor(120, 120, 120),
            Some(pace) if pace.starts_with("credit") => RGBColor(0, 84, 166),
            Some("calibrated") => RGBColor(70, 150, 220),
            Some(_) => RGBColor(140, 190, 235),
            None => colour(self.candidate),
        }
    }
}

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
    fn goodput(&self, rate: u32) -> Option<Spread> {
        let bits = f64::from(self.senders) * self.bytes as f64 * 8.0;
        let percent: Vec<f64> = self
            .times_ms
            .iter()
            .map(|ms| 100.0 * bits / (ms * 1e-3) / (f64::from(rate) * 1e6))
            .collect();
        Spread::of(percent)
    }
}

/// Measures and shows.
///
/// # Errors
/// If hosts cannot be made, or nothing can be written.
pub(crate) fn run(options: &IncastOptions, places: &Places) -> Result<(), Problem> {
    fs::create_dir_all(&options.output)
        .map_err(|error| Problem::NotWritten { path: options.output.clone(), error })?;
    let mut gatherers = Vec::new();
    for gatherer in options.gatherers() {
        match places.missing(gatherer.candidate) {
            Some(path) => leave_out(gatherer.candidate, &path)?,
            None => gatherers.push(gatherer),
        }
    }
    launch::adopt_orphans();
    let most = options.senders.iter().copied().max().unwrap_or(1);
    let wish = Wish {
        rate: Some(format!("{}mbit", options.rate)),
        port_bytes: Some(options.port_bytes),
        ..Wish::hosts(most as usize + 1)
    };
    let cluster = Cluster::of(wish)?;
    let points = options.senders.iter().flat_map(|n| options.bytes.iter().map(move |b| (*n, *b)));
    let points: Vec<(u32, u64)> = points.collect();
    let launches = points.len() * gatherers.len() * usize::from(options.rounds);
    let progress = rounds::progress_bar("incast", launches);
    let mut measured: BTreeMap<(usize, u32, u64), Measured> = BTreeMap::new();
    for _ in 0..options.rounds {
        for &(senders, bytes) in &points {
            for (at, gatherer) in gatherers.iter().enumerate() {
                let one = measured.entry((at, senders, bytes)).or_insert_with(|| Measured {
                    gatherer: gatherer.name(),
                    senders,
                    bytes,
                    ..Measured::default()
                });
                options.launch(&cluster, places, gatherer, one);
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    let measured: Vec<Measured> = measured.into_values().collect();
    let mut report = Report::begin(&options.output)?;
    report.add(&options.table(&gatherers, &measured))?;
    options.keep(&gatherers, &measured)?;
    Ok(say(&format!("\nTable, values and pictures: {}\n", options.output.display()))?)
}

impl IncastOptions {
    fn gatherers(&self) -> Vec<Gatherer> {
        let ours = self
            .paces
            .iter()
            .map(|pace| Gatherer { candidate: Candidate::LandeckMpi, pace: Some(pace.clone()) });
        let peers = [Candidate::MpichThrottled, Candidate::OpenMpi, Candidate::IntelMpi];
        let is_wanted = |peer: &Candidate| {
            peer.peer().is_some_and(|name| self.with.iter().any(|with| with == name))
        };
        let peers = peers.into_iter().filter(is_wanted);
        ours.chain(peers.map(|candidate| Gatherer { candidate, pace: None })).collect()
    }

    /// The calibration needs its trial runs first.
    fn gathers(gatherer: &Gatherer) -> (usize, usize) {
        if gatherer.pace.as_deref() == Some("calibrated") { (18, 3) } else { (1, 3) }
    }

    fn launch(&self, cluster: &Cluster, places: &Places, gatherer: &Gatherer, one: &mut Measured) {
        let n = one.senders + 1;
        let part = Part::spread(n, n);
        let (first, then) = Self::gathers(gatherer);
        let arguments = [one.bytes.to_string(), (first + then).to_string()];
        let name = gatherer.candidate.peer().unwrap_or("abi");
        let program = places.peers.join(format!("gather.{name}"));
        let made =
            over_hosts::command(cluster, places, gatherer.candidate, &part, &program, &arguments);
        let mut command = match made {
            Ok(command) => command,
            Err(trouble) => return one.trouble = Some(trouble),
        };
        if let Some(pace) = &gatherer.pace {
            // Direct messages to the root, as in the paper.
            command.env("LANDECK_INCAST", pace).env("LANDECK_COLLECTIVES", "gather=flat");
        }
        let outcome = launch::run(&mut command, LAUNCH_TIMEOUT);
        if outcome.trouble.is_some() {
            one.trouble = outcome.trouble;
            cluster.end();
        }
        let (again, times): (Vec<_>, Vec<_>) =
            outcome.samples.iter().partition(|sample| !sample.point.form.is_empty());
        one.times_ms.extend(times.iter().skip(first).map(|sample| sample.value));
        one.sent_again.extend(again.iter().skip(first).map(|sample| sample.value));
    }

    fn table(&self, gatherers: &[Gatherer], measured: &[Measured]) -> String {
        let mut text = format!(
            "Many senders and one receiver: hosts with cables of {} Mb/s, ports that hold {} bytes.\n\
             Each field: the time in ms, the part of the port's rate that carried data, segments sent again.\n",
            self.rate, self.port_bytes
        );
        for &bytes in &self.bytes {
            let _ = write!(text, "\n{bytes} bytes of each\n{:>8}", "senders");
            for gatherer in gatherers {
                let _ = write!(text, " | {:>26}", gatherer.name());
            }
            text.push('\n');
            for &senders in &self.senders {
                let _ = write!(text, "{senders:>8}");
                for gatherer in gatherers {
                    let name = gatherer.name();
                    let one = measured.iter().find(|one| {
                        one.gatherer == name && one.senders == senders && one.bytes == bytes
                    });
                    let _ = write!(
                        text,
                        " | {:>26}",
                        one.map_or_else(String::new, |one| self.field(one))
                    );
                }
                text.push('\n');
            }
        }
        text.push_str("\nThe paper's Table 3 (PVM, Ethernet of 10 Mb/s), and the part of its rate that carried data\n");
        for (senders, wait, bytes, ms) in TABLE_3 {
            let wait = wait.map_or("no wait".to_owned(), |wait| format!("wait {wait} ms * n"));
            let part = f64::from(senders) * bytes as f64 * 8.0 / (ms * 1e-3) / (PAPER_RATE * 1e6);
            let _ = writeln!(
                text,
                "{senders:>8} senders of {bytes:>7} bytes, {wait:>15}: {ms:>8} ms, {:>3.0}%",
                part * 100.0
            );
        }
        text
    }

    fn field(&self, one: &Measured) -> String {
        let (Some(time), Some(goodput), Some(again)) = (
            Spread::of(one.times_ms.iter().copied()),
            one.goodput(self.rate),
            Spread::of(one.sent_again.iter().copied()),
        ) else {
            return one.trouble.clone().unwrap_or_else(|| "nothing".to_owned());
        };
        format!("{:.1}, {:.0}%, {:.0}", time.median, goodput.median, again.median)
    }

    fn keep(&self, gatherers: &[Gatherer], measured: &[Measured]) -> Result<(), Problem> {
        let path = self.output.join("incast.json");
        let text = serde_json::to_string_pretty(measured).map_err(io::Error::from);
        let written = text.and_then(|text| fs::write(&path, text));
        written.map_err(|error| Problem::NotWritten { path, error })?;
        for &bytes in &self.bytes {
            let path = self.output.join(format!("incast-{bytes}.png"));
            let drawn = self.chart(gatherers, measured, bytes).draw(&path);
            drawn.map_err(|error| Problem::NotDrawn { path, error: error.to_string() })?;
        }
        Ok(())
    }

    fn chart(&self, gatherers: &[Gatherer], measured: &[Measured], bytes: u64) -> Chart {
        let line = |gatherer: &Gatherer| {
            let name = gatherer.name();
            let of_it = measured.iter().filter(|one| one.gatherer == name && one.bytes == bytes);
            let values = of_it
                .filter_map(|one| {
                    let times = Spread::of(one.times_ms.iter().copied())?;
                    Some((f64::from(one.senders), times))
                })
                .collect();
            let is_thick = gatherer.pace.is_some();
            Line { name, colour: gatherer.colour(), is_thick, values }
        };
        let port = |senders: &u32| {
            let ms = f64::from(*senders) * bytes as f64 * 8.0 / (f64::from(self.rate) * 1e3);
            (f64::from(*senders), Spread { median: ms, min: ms, max: ms })
        };
        let port = Line {
            name: "the port's rate".to_owned(),
            colour: colour(Candidate::Bare),
            is_thick: false,
            values: self.senders.iter().map(port).collect(),
        };
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
