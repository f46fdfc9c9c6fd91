//! A non-blocking allreduce beside a computation that takes as long as one does alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

use landeck::{Maximum, Result, Sum, World};

use crate::collective::{Blocks, Operation};
use crate::{Bench, Measured};

/// The figure is one of so many processes.
pub(crate) const PROCESSES: u32 = 2;

/// The part of a batch that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// The part of the operation that the computation did not hide, in percent.
    NotHidden,
    /// The time in the call that starts it.
    Call,
}

/// Every size.
pub(crate) fn measure(bench: &Bench, share: Share) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    let mut blocks = Blocks::new(bench);
    for &bytes in &settings.bytes {
        blocks.check(bench, Operation::AllReduce, 0, bytes)?;
        let plan = Plan::make(bench, &mut blocks, bytes)?;
        let begun = Instant::now();
        for batch in 1.. {
            let took = plan.batch(world, &mut blocks, bytes)?;
            if world.rank() == 0 {
                let (unit, value) = match share {
                    Share::NotHidden => {
                        ("%", 100.0 * (took.together - took.computing) / took.alone)
                    }
                    Share::Call => ("ns", 1e9 * took.starting / plan.iterations as f64),
                };
                bench.print("", bytes, unit, value);
            }
            if batch >= settings.batches || !bench.goes_on(begun)? {
                break;
            }
        }
        if !blocks.holds_sums(world.size(), 0, bytes) {
            return Err(bench.wrong("a wrong sum"));
        }
    }
    Ok(())
}

/// As rank 0 finds them: iterations that fill a batch, and turns of the computation that take as
/// long as one operation.
struct Plan {
    iterations: u64,
    turns: u64,
}

/// The time of a batch in the slowest process: seconds for all of its iterations.
struct Took {
    alone: f64,
    computing: f64,
    together: f64,
    starting: f64,
}

impl Plan {
    fn make(bench: &Bench, blocks: &mut Blocks, bytes: usize) -> Result<Plan> {
        const TRIALS: u64 = 10;
        const TURNS: u64 = 1_000_000;
        let mut alone_s = 0.0;
        // The first one warms up.
        for _ in 0..2 {
            bench.world.barrier()?;
            alone_s = reduce_beside(&bench.world, blocks, TRIALS, 0, bytes)?.0 / TRIALS as f64;
        }
        let turns = 1 + (alone_s / compute(TURNS) * TURNS as f64) as u64;
        let mut plan = [1 + (1e-3 * bench.settings.batch_ms / alone_s) as u64, turns];
        bench.world.broadcast(&mut plan, 0)?;
        Ok(Plan { iterations: plan[0], turns: plan[1] })
    }

    fn batch(&self, world: &World, blocks: &mut Blocks, bytes: usize) -> Result<Took> {
        world.barrier()?;
        let (alone, _) = reduce_beside(world, blocks, self.iterations, 0, bytes)?;
        world.barrier()?;
        let computing: f64 = (0..self.iterations).map(|_| compute(self.turns)).sum();
        world.barrier()?;
        let (together, starting) =
            reduce_beside(world, blocks, self.iterations, self.turns, bytes)?;
        let mut slowest = [0.0; 4];
        world.all_reduce_into(&[alone, computing, together, starting], &mut slowest, Maximum)?;
        let [alone, computing, together, starting] = slowest;
        Ok(Took { alone, computing, together, starting })
    }
}

/// Allreduces, each with so many turns of computation between its start and its wait: the seconds
/// of all, and of the calls that started them.
fn reduce_beside(
    world: &World,
    blocks: &mut Blocks,
    iterations: u64,
    turns: u64,
    bytes: usize,
) -> Result<(f64, f64)> {
    let mut starting = Duration::ZERO;
    let begin = Instant::now();
    for _ in 0..iterations {
        let (terms, sums) = (&blocks.terms[..bytes / 8], &mut blocks.sums[..bytes / 8]);
        world.scope(|scope| {
            let start = Instant::now();
            let request = scope.all_reduce_into(terms, sums, Sum)?;
            starting += start.elapsed();
            if turns > 0 {
                compute(turns);
            }
            request.wait().map(drop)
        })?;
    }
    Ok((begin.elapsed().as_secs_f64(), starting.as_secs_f64()))
}

/// Keeps a core busy and touches no memory; the seconds that it took.
fn compute(turns: u64) -> f64 {
    let start = Instant::now();
    let mut value = 1.0;
    for _ in 0..turns {
        value = value * 0.999_999 + 1e-6;
    }
    black_box(value);
    start.elapsed().as_secs_f64()
}
