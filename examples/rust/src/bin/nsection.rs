//! Finds the root of a function: each process looks at its part of the interval, and all go on
//! with the part where the sign changes. Nobody is the master.
//!
//! ```sh
//! landeck run -n 4 nsection --function cosine --trace
//! ```
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use landeck::{Job, Sum, World};
use landeck_examples::nsection::exchange;
use landeck_examples::nsection::function::Function;
use landeck_examples::nsection::interval::{Interval, parts_of};
use landeck_examples::program::{self, Problem, say};

/// Finds the root of a function by N-section.
#[derive(Debug, Parser)]
#[command(name = "nsection")]
struct Options {
    /// Which function.
    #[arg(long, value_enum, default_value_t = Function::Quartic)]
    function: Function,
    /// Where the interval begins [default: one with a root, for each function]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    from: Option<f64>,
    /// Where the interval ends.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    to: Option<f64>,
    /// Go on until the interval is no wider than this.
    #[arg(long, value_name = "WIDTH", default_value_t = 1e-12, value_parser = positive)]
    #[arg(allow_negative_numbers = true)]
    tolerance: f64,
    /// Cut the interval into so many parts in each round [default: one for each process, 2 at
    /// least]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    parts: Option<u32>,
    /// Show every round.
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    program::run(nsection)
}

fn nsection(job: &Job, options: &Options) -> Result<(), Problem> {
    let world = job.world();
    let mut search = Search::new(&world, options)?;
    while search.interval.width() > options.tolerance && search.interval.can_be_cut() {
        let index = search.round()?;
        if options.trace && world.rank() == 0 {
            let Search { rounds, parts, interval, .. } = search;
            let part = index + 1;
            say(format_args!("round {rounds}: part {part} of {parts}, now {interval}"))?;
        }
    }
    let evaluations = world.all_reduce(search.evaluations, Sum)?;
    if world.rank() == 0 {
        let Search { interval, rounds, .. } = search;
        let (root, half) = (interval.middle(), interval.width() / 2.0);
        say(format_args!(
            "root {root} (within {half:.1e}), {rounds} rounds, {evaluations} evaluations"
        ))?;
    }
    Ok(())
}

/// The search as one process sees it. All processes see the same interval.
struct Search<'a> {
    world: &'a World,
    function: Function,
    parts: usize,
    interval: Interval,
    rounds: u32,
    /// How often this process has computed a value of the function.
    evaluations: u64,
}

/// The answer of a process that has found no change of sign in its parts.
const NOTHING: u64 = u64::MAX;

impl<'a> Search<'a> {
    fn new(world: &'a World, options: &Options) -> Result<Self, Problem> {
        let function = options.function;
        let usual = function.interval();
        let (from, to) = (options.from.unwrap_or(usual.from), options.to.unwrap_or(usual.to));
        if !(from < to && (to - from).is_finite()) {
            return Err(Problem::Options(format!(
                "there is no interval from {from} to {to}: --from must be less than --to, and both \
                 must be numbers that can be subtracted"
            )));
        }
        let (low, high) = (function.at(from), function.at(to));
        if (low < 0.0) == (high < 0.0) {
            return Err(Problem::Options(format!(
                "the function is {low} at {from} and {high} at {to}, with the same sign: there \
                 may be no root in between. Choose others with --from and --to"
            )));
        }
        let parts = options.parts.map_or(world.size().max(2), |parts| parts as usize);
        Ok(Self {
            world,
            function,
            parts,
            interval: Interval { from, to },
            rounds: 0,
            evaluations: 2,
        })
    }

    /// One round: look, tell, conclude. Returns which part was taken.
    fn round(&mut self) -> Result<usize, Problem> {
        let own = parts_of(self.world.rank(), self.world.size(), self.parts);
        let found = self.interval.first_change(own, self.parts, |x| {
            self.evaluations += 1;
            self.function.at(x) < 0.0
        });

        let own = found.map_or(NOTHING, |index| index as u64);
        // Several processes have found something if there are several roots. All take the first,
        // so all take the same. One must be there: the ends of the interval have different signs.
        let first = exchange(self.world, own)?.into_iter().min().unwrap_or(NOTHING);
        if first == NOTHING {
            let message =
                "the sign changes nowhere, though it did: this is a mistake in the program";
            return Err(Problem::Wrong(message.into()));
        }
        self.interval = self.interval.part(first as usize, self.parts);
        self.rounds += 1;
        Ok(first as usize)
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("a number above 0 is wanted, such as 1e-9".to_owned()),
    }
}
