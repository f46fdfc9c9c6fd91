//! `landeck-bench tokens`: segmentation against reservation, figure 12 of the paper of 1999.
//!
//! Monteil, Garcia, Gauchard and Brun, "Communication Kernel for High Speed Networks in the Parallel Environment
//! LANDA-HSN", let two processes on two hosts send messages to and fro. Messages that are longer than a fixed buffer of
//! 16 KiB go in chunks, or the receiver makes room for all of it first. The figure itself is lost; the text has numbers.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use landeck_testing::hosts::Wish;
use serde::Serialize;

use crate::candidate::Places;
use crate::chart::{Chart, ChartAxis, Line, machine_words};
use crate::cluster::Cluster;
use crate::figure::FigurePart;
use crate::machine::Machine;
use crate::paced::{Paced, name_of, pace};
use crate::problem::Problem;
use crate::report::Report;
use crate::sample::size_label;
use crate::statistics::{Middle, short};
use crate::{launch, rounds};

const LAUNCH_TIMEOUT: Duration = Duration::from_secs(120);
/// The best rate in the paper, in Mb/s, and that of its network without its library.
const PAPER_BEST: f64 = 415.0;
const PAPER_NETWORK: f64 = 560.0;
const SEGMENTATION: &str = "tokens:segmentation";
const RESERVATION: &str = "tokens:reservation";

/// The sizes, the link, and the effort.
#[derive(Debug, Args)]
pub(crate) struct TokensOptions {
    /// The bytes of a message
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "64,256,1024,4096,16384,32768,65536,131072,262144,524288,1048576"
    )]
    bytes: Vec<u64>,
    /// The rate of each host's cable in Mb/s, such as 560 for the paper's network [default: as fast as the machine]
    #[arg(long, value_name = "MBIT")]
    rate: Option<u32>,
    /// Rounds in which everybody runs once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// The time of each size in a round, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100)]
    time: u32,
    /// The paces of Landeck that are measured
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "tokens:segmentation,tokens:reservation,tokens,credit",
        value_parser = pace
    )]
    paces: Vec<String>,
    /// The peers to compare with, of mpich, ompi and impi; or none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "mpich,ompi")]
    with: Vec<String>,
    /// Where results and plots are written
    #[arg(long, value_name = "DIR", default_value = "out/tokens")]
    output: PathBuf,
}

/// The rates of one sender.
#[derive(Clone, Debug, Serialize)]
struct Rates {
    sender: String,
    /// By the sizes of the options, in Mb/s, one of each round.
    rates: Vec<Vec<f64>>,
    trouble: Option<String>,
}

impl Rates {
    fn medians(&self) -> Vec<Option<f64>> {
        let median = |rates: &Vec<f64>| Middle::of(rates.iter().copied()).map(|all| all.median);
        self.rates.iter().map(median).collect()
    }
}

/// Measures and shows.
///
/// # Errors
/// If hosts cannot be made, or nothing can be written.
pub(crate) fn run(options: &TokensOptions, places: &Places) -> Result<(), Problem> {
    let mut report = Report::begin(&options.output)?;
    let senders = Paced::all(&options.paces, &options.with, places)?;
    let wish = Wish { rate: options.rate.map(|rate| format!("{rate}mbit")), ..Wish::hosts(2) };
    let cluster = Cluster::of(wish)?;
    let progress = rounds::progress_bar("tokens", senders.len() * usize::from(options.rounds));
    let none = |sender: &Paced| Rates {
        sender: sender.name(),
        rates: vec![Vec::new(); options.bytes.len()],
        trouble: None,
    };
    let mut measured: Vec<Rates> = senders.iter().map(none).collect();
    for _ in 0..options.rounds {
        for (sender, rates) in senders.iter().zip(&mut measured) {
            options.launch(&cluster, places, sender, rates);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    report.add(&options.table(&measured))?;
    report.keep("tokens", &measured)?;
    report.draw("tokens", |path| options.chart(&senders, &measured).draw(path))?;
    let troubles = measured.iter().filter(|rates| rates.trouble.is_some()).count();
    report.end("Table, values and picture", troubles)
}

impl TokensOptions {
    fn launch(&self, cluster: &Cluster, places: &Places, sender: &Paced, rates: &mut Rates) {
        let sizes = self.bytes.iter().map(u64::to_string);
        let arguments: Vec<String> = std::iter::once(self.time.to_string()).chain(sizes).collect();
        let part = FigurePart::spread(2, 2);
        let mut command = match sender.command(cluster, places, &part, ("echo", &arguments)) {
            Ok(command) => command,
            Err(trouble) => return rates.trouble = Some(trouble),
        };
        let outcome = launch::run(&mut command, LAUNCH_TIMEOUT);
        if outcome.trouble.is_some() {
            rates.trouble = outcome.trouble;
            cluster.end();
        }
        for sample in outcome.samples {
            if let Some(at) = self.bytes.iter().position(|bytes| *bytes == sample.point.bytes) {
                rates.rates[at].push(sample.value);
            }
        }
    }

    fn table(&self, measured: &[Rates]) -> String {
        let network = self.rate.map_or_else(String::new, |rate| format!(" of {rate} Mb/s"));
        let mut text = format!(
            "Two hosts{network}: messages to and fro, in Mb/s (sent and received, as the paper counts). Medians of {} \
             rounds.\n\n| |",
            self.rounds
        );
        for rates in measured {
            let _ = write!(text, " {} |", rates.sender);
        }
        text += &format!("\n|---|{}\n", "---|".repeat(measured.len()));
        let medians: Vec<_> = measured.iter().map(Rates::medians).collect();
        for (at, bytes) in self.bytes.iter().enumerate() {
            let _ = write!(text, "| {} |", size_label(*bytes));
            for of_one in &medians {
                let _ = write!(text, " {} |", of_one[at].map_or_else(|| "-".to_owned(), short));
            }
            text.push('\n');
        }
        for rates in measured {
            if let Some(trouble) = &rates.trouble {
                let _ = writeln!(text, "\n{}: {trouble}", rates.sender);
            }
        }
        text + &self.beside_the_paper(measured)
    }

    /// The paper's numbers and its claim, with ours beside them.
    fn beside_the_paper(&self, measured: &[Rates]) -> String {
        let find = |pace: &str| {
            let name = name_of(pace);
            measured.iter().find(|rates| rates.sender == name).map(Rates::medians)
        };
        let mut text = format!(
            "\nThe paper (Myrinet with GM, two PCs at 233 MHz): best {PAPER_BEST} Mb/s of the network's {PAPER_NETWORK}, \
             {:.0}%.\nIts claim: segmentation is preferable for small messages, reservation for big ones.\n",
            100.0 * PAPER_BEST / PAPER_NETWORK
        );
        let (Some(chunks), Some(reserved)) = (find(SEGMENTATION), find(RESERVATION)) else {
            return text;
        };
        let best = chunks.iter().chain(&reserved).flatten().copied().fold(0.0, f64::max);
        let _ = writeln!(text, "Here: best {} Mb/s.", short(best));
        let _ = writeln!(text, "{}", self.crossing(&chunks, &reserved));
        text
    }

    /// From which size on reservation is the faster way.
    fn crossing(&self, chunks: &[Option<f64>], reserved: &[Option<f64>]) -> String {
        let is_better = |(chunks, reserved): (&Option<f64>, &Option<f64>)| reserved >= chunks;
        let better: Vec<bool> = chunks.iter().zip(reserved).map(is_better).collect();
        let last_of_chunks = better.iter().rposition(|is_better| !is_better);
        match last_of_chunks {
            None => "Reservation is faster for all sizes.".to_owned(),
            Some(at) if at + 1 == better.len() => {
                "Segmentation is faster for the longest.".to_owned()
            }
            Some(at) => format!(
                "Reservation is faster from {} on; segmentation up to {}.",
                size_label(self.bytes[at + 1]),
                size_label(self.bytes[at])
            ),
        }
    }

    fn chart(&self, senders: &[Paced], measured: &[Rates]) -> Chart {
        let line = |(sender, rates): (&Paced, &Rates)| {
            let values = self.bytes.iter().zip(&rates.rates);
            Line::along(sender.name(), sender.style(), values, |(bytes, rates)| {
                Some((*bytes as f64, Middle::of(rates.iter().copied())?))
            })
        };
        let lines = senders.iter().zip(measured).map(line);
        Chart {
            title: "Segmentation against reservation: messages to and fro between two hosts"
                .to_owned(),
            note: machine_words(&Machine::here()),
            unit: "Mb/s".to_owned(),
            axis: ChartAxis {
                name: "bytes",
                is_logarithmic: true,
                label: |bytes| size_label(bytes as u64),
            },
            lines: lines.filter(|line| !line.values.is_empty()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        options: TokensOptions,
    }

    fn options() -> TokensOptions {
        CommandLine::parse_from(["tokens", "--bytes", "16,1024,65536"]).options
    }

    #[test]
    fn the_sizes_at_which_the_ways_are_equal_are_found() {
        let crossing = |chunks: [f64; 3], reserved: [f64; 3]| {
            options().crossing(&chunks.map(Some), &reserved.map(Some))
        };
        assert_eq!(
            crossing([5.0, 6.0, 7.0], [1.0, 2.0, 9.0]),
            "Reservation is faster from 64 KiB on; segmentation up to 1 KiB."
        );
        assert_eq!(crossing([1.0; 3], [2.0; 3]), "Reservation is faster for all sizes.");
        assert_eq!(crossing([1.0, 1.0, 3.0], [2.0; 3]), "Segmentation is faster for the longest.");
    }

    #[test]
    fn the_table_has_the_papers_numbers_and_ours() {
        let of = |pace: &str, rate: f64| Rates {
            sender: name_of(pace),
            rates: vec![vec![rate], vec![rate, 3.0 * rate], vec![rate]],
            trouble: None,
        };
        let table = options().table(&[of(SEGMENTATION, 100.0), of(RESERVATION, 150.0)]);
        assert!(table.contains("| 1 KiB | 200 | 300 |") && table.contains("415 Mb/s"), "{table}");
        assert!(table.contains("Here: best 300 Mb/s."), "{table}");
    }
}
