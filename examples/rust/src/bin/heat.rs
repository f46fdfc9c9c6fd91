//! The heat equation on a plate, computed by any number of processes.
//!
//! ```sh
//! landeck run -n 4 heat --size 512 --steps 2000 --check
//! ```
//!
//! The module `heat` describes the computation and the division of the plate.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use indicatif::HumanCount;
use landeck::{Job, World};
use landeck_examples::gather::gather;
use landeck_examples::heat::block::Block;
use landeck_examples::heat::division::Division;
use landeck_examples::heat::halo::Halo;
use landeck_examples::heat::picture::Picture;
use landeck_examples::heat::plate::Plate;
use landeck_examples::heat::{alone, assemble, checksum};
use landeck_examples::program::{self, Problem, say};
use landeck_examples::progress::Progress;
use landeck_examples::summary::summary;

/// Computes how heat spreads on a plate, and draws a picture of it.
#[derive(Debug, Parser)]
#[command(name = "heat")]
struct Options {
    /// Cells of the plate: rows and columns (512), or both (512x256).
    #[arg(long, default_value = "512", value_name = "CELLS")]
    size: Plate,
    /// Steps in time.
    #[arg(long, default_value_t = 2_000)]
    steps: u64,
    /// Where the picture goes (PNG).
    #[arg(long, default_value = "out/heat.png", value_name = "FILE")]
    output: PathBuf,
    /// Compute everything once more on rank 0 alone, and compare every bit.
    #[arg(long)]
    check: bool,
    /// Write a checksum of the result into a file.
    #[arg(long, value_name = "FILE")]
    checksum_file: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::run(heat)
}

fn heat(job: &Job, options: &Options) -> Result<(), Problem> {
    let world = job.world();
    let division = divide(options.size, world.size())?;
    if world.rank() == 0 {
        // Better now than after a long computation.
        prepare(&options.output)?;
        options.checksum_file.as_deref().map_or(Ok(()), prepare)?;
    }

    let start = Instant::now();
    let (block, change) = compute(&world, &division, options.steps)?;
    let changes = gather(&world, change)?;
    let cost = summary(job, start.elapsed())?;
    let cells = assemble(&world, &division, &block)?;

    // Only rank 0 has got something; the others are done.
    let (Some(changes), Some(cost), Some(cells)) = (changes, cost, cells) else {
        return Ok(());
    };
    say(&cost)?;
    let change = changes.into_iter().fold(0.0, f64::max);
    let sum = checksum(&cells);
    say(format_args!("largest change in the last step: {change:.6} °C, checksum {sum:016x}"))?;
    if options.check {
        check(options, &cells)?;
    }
    write(options, division, &cost, &cells)
}

fn divide(plate: Plate, processes: usize) -> Result<Division, Problem> {
    Division::new(plate, processes).ok_or_else(|| {
        Problem::Options(format!(
            "a plate of {plate} cells cannot be divided into {processes} blocks: take a larger \
             --size, or fewer processes"
        ))
    })
}

/// The block of this process after so many steps, and the largest change in the last of them.
fn compute(world: &World, division: &Division, steps: u64) -> Result<(Block, f64), Problem> {
    let mut now = Block::new(division.plate(), &division.part(world.rank()));
    let mut next = now.clone();
    let mut halo = Halo::new(world, division, &now);
    let mut progress = (world.rank() == 0)
        .then(|| Progress::new(&format!("heat {}", division.plate()), steps, world.size()));

    for step in 1..=steps {
        halo.exchange(world, &mut now, |now| now.step_inside(&mut next))?;
        now.step_rim(&mut next);
        std::mem::swap(&mut now, &mut next);
        if let Some(progress) = &mut progress {
            progress.reached(step);
        }
    }
    if let Some(progress) = progress {
        progress.finish();
    }
    // The step before the last is still in `next`.
    let change = now.largest_difference(&next);
    Ok((now, change))
}

/// Compares with what one process computes.
fn check(options: &Options, cells: &[f64]) -> Result<(), Problem> {
    let wanted = alone(options.size, options.steps);
    let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
    match cells.iter().zip(&wanted).position(differs) {
        None => say("checked: one process alone gets the same, bit for bit"),
        Some(at) => {
            let (row, column) = (at / options.size.columns, at % options.size.columns);
            Err(Problem::Wrong(format!(
                "row {row}, column {column} has {:e} °C, but one process alone gets {:e} °C: \
                 please report this, with the options",
                cells[at], wanted[at]
            )))
        }
    }
}

fn write(options: &Options, division: Division, cost: &str, cells: &[f64]) -> Result<(), Problem> {
    if let Some(path) = &options.checksum_file {
        let line = format!("{:016x}\n", checksum(cells));
        fs::write(path, line).map_err(|error| cannot_write(path, &error))?;
    }
    let picture = Picture {
        division,
        cells,
        heading: format!(
            "Warm and cold discs on a plate, {} steps later",
            HumanCount(options.steps)
        ),
        below: format!("{} cells. {cost}", options.size),
    };
    picture.draw(&options.output).map_err(|error| cannot_write(&options.output, &error))?;
    say(format_args!("picture: {}", options.output.display()))
}

/// Makes sure that a file can be written.
fn prepare(path: &Path) -> Result<(), Problem> {
    let folder = path.parent().unwrap_or(path);
    let open = || File::options().create(true).append(true).open(path);
    match fs::create_dir_all(folder).and_then(|()| open()) {
        Ok(_) => Ok(()),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Problem {
    let path = path.display();
    Problem::Own(format!(
        "cannot write {path}: {error}. Name a file in a folder that you may write"
    ))
}
