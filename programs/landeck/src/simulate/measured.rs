//! Measures operations on this host or several, in processes that `landeck run` starts.

use clap::Args;
use landeck::{Job, Maximum, Minimum, Result, Sum, World};
use landeck_collectives::architecture::Butterfly;
use landeck_collectives::{Group, Operation, Preset, Way};
use landeck_host::say::say;
use landeck_measure::clock::{each_ps, look_ps};
use landeck_measure::processors::allowed;
use landeck_measure::{Paged, least};
use landeck_memory::system::now_ns;
use std::io;

use super::study::{Series, calls_in_a_batch};
use crate::tune;
use crate::tune::instruments::{job, round_trip, said_by, usual};

/// Time that a measurement may take, in seconds.
const JOB_S: &str = "90";
/// Calls that do not count, until the members have their connections.
const WARM: u32 = 20;
/// Batches of messages, of which the least counts, as for the figures that it is compared with. Of an operation's
/// batches the median counts.
const BATCHES: usize = 15;
/// The measurement that one of the processes does.
#[derive(Debug, Args)]
pub(crate) struct MeasureWayArguments {
    /// `message`, or an operation
    what: String,
    way: Preset,
    clusters: u32,
    bytes: usize,
    /// The processes are on several hosts, whose clocks differ.
    #[arg(long)]
    hosts: bool,
}

/// A failed measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeasuredError {
    /// A process of our own cannot be started.
    #[error("cannot start processes to measure with: {0}")]
    Start(io::Error),
    /// The processes ended without a result.
    #[error(
        "{processes} processes that were to measure {what} ended without a result ({status}):\n{said}"
    )]
    Job { processes: u32, what: String, status: String, said: String },
}

/// The most calls of a batch.
pub(crate) const CALLS: u32 = 50;

/// Calls between two barriers on one host: one for operations with a root, since the root would run ahead of the others.
pub(crate) const fn calls(operation: Operation) -> u32 {
    if operation.has_root() { 1 } else { CALLS }
}

/// Batches of calls, of which the median counts. There are more of single calls, which differ more.
pub(crate) const fn batches(operation: Operation) -> u32 {
    let batches = BATCHES as u32;
    if calls(operation) > 1 { batches } else { 20 * batches }
}

/// Measures one launch, in microseconds. `what` is an operation, or `message` for half of a round trip. `options` are those of
/// `landeck run` for several hosts; there are none on one host.
pub(crate) fn launch(
    options: &[String],
    what: &str,
    series: &Series,
    processes: u32,
    clusters: u32,
    bytes: u64,
) -> std::result::Result<f64, MeasuredError> {
    let [n, clusters, bytes] =
        [processes.into(), clusters.into(), bytes].map(|number: u64| number.to_string());
    let preset = series.preset.to_string();
    let mut words = vec!["measure-way", what, &preset, &clusters, &bytes];
    words.extend((!options.is_empty()).then_some("--hosts"));
    let options = ["-n", &n].into_iter().chain(options.iter().map(String::as_str));
    let job = job(JOB_S, options, &words);
    let output = job.and_then(|mut job| job.output()).map_err(MeasuredError::Start)?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.lines().find_map(finding) {
        Some(us) if output.status.success() => Ok(us),
        _ => {
            let said = said_by(&output);
            let (what, status) = (format!("{what} by {}", series.name), output.status.to_string());
            Err(MeasuredError::Job { processes, what, status, said })
        }
    }
}

/// Parses a line that rank 0 has printed.
fn finding(line: &str) -> Option<f64> {
    line.parse().ok().filter(|us: &f64| us.is_finite())
}

/// Measures as one of the processes. Rank 0 prints microseconds.
pub(crate) fn run(arguments: &MeasureWayArguments) -> Result<()> {
    let job = Job::join()?;
    let world = job.world();
    tune::pin_among(&allowed(), world.rank());
    let operation = Operation::from_name(&arguments.what);
    let group = Group::divided(world.size() as u32, arguments.clusters.max(1));
    let way = match (operation, group) {
        (Some(operation), Ok(group)) => {
            world.with_clusters(&group)?.via(arguments.way.way(operation))
        }
        _ => world.clone(),
    };
    let us = match operation {
        Some(operation) if arguments.hosts => {
            over_hosts_us(&world, &way, operation, arguments.bytes)?
        }
        Some(operation) => operation_us(&world, &way, operation, arguments.bytes)?,
        None => message_us(&world, arguments.bytes)?,
    };
    if world.rank() == 0 {
        // A process whose output has no reader has nothing else to do.
        let _ = say(&format!("{us:.4}\n"));
    }
    job.leave()
}

/// Half of a round trip between the first two processes.
fn message_us(world: &World, bytes: usize) -> Result<f64> {
    let (rank, mut data) = (world.rank(), Paged::new(1u8, bytes, 0));
    let mut trip = || match rank {
        0 | 1 => round_trip(world, (rank == 0, 1 - rank), &mut data),
        _ => Ok(()),
    };
    let usual = if bytes <= 16_384 { 2_000 } else { 50 };
    let trips = in_a_batch(world, usual, &mut trip)?;
    let batch_ps = |_| each_ps(2 * trips, || (0..trips).try_for_each(|_| trip()));
    Ok(least((0..BATCHES).map(batch_ps).collect::<Result<Vec<_>>>()?) / 1e6)
}

/// The calls of a batch, by rank 0's clock, after some calls that do not count.
fn in_a_batch(world: &World, usual: u32, mut call: impl FnMut() -> Result<()>) -> Result<u32> {
    let call_us = each_ps(WARM, || (0..WARM).try_for_each(|_| call()))? / 1e6;
    let mut count = [calls_in_a_batch(usual, call_us)];
    world.broadcast(&mut count, 0)?;
    Ok(count[0])
}

/// The time of one call, from batches of [`calls`] or fewer on a busy host.
fn operation_us(world: &World, way: &World, operation: Operation, bytes: usize) -> Result<f64> {
    let mut blocks = Blocks::new(operation, bytes, world.size());
    let calls = in_a_batch(world, calls(operation), || blocks.call(way, operation))?;
    let (batches, clock_us) = (batches(operation), look_ps() / 1e6);
    let mut spans_us = Vec::with_capacity(batches as usize);
    for _ in 0..batches {
        world.barrier()?;
        let begin_us = now_us();
        (0..calls).try_for_each(|_| blocks.call(way, operation))?;
        let end_us = now_us();
        let (mut first_us, mut last_us) = ([0.0], [0.0]);
        world.reduce(&[begin_us], &mut first_us, Minimum, 0)?;
        world.reduce(&[end_us], &mut last_us, Maximum, 0)?;
        // The last member looks at the clock after its last call.
        spans_us.push((last_us[0] - first_us[0] - clock_us) / f64::from(calls));
    }
    Ok(usual(&spans_us))
}

/// The time of one call over hosts, by the clock of rank 0. Behind each call of an operation with a root there is a barrier,
/// lest the root run ahead; the time of the barrier alone goes off.
fn over_hosts_us(world: &World, way: &World, operation: Operation, bytes: usize) -> Result<f64> {
    let mut blocks = Blocks::new(operation, bytes, world.size());
    let barriers = world.via(Way::by(Butterfly));
    let barrier = || if operation.has_root() { barriers.barrier() } else { Ok(()) };
    let mut call = || blocks.call(way, operation).and_then(|()| barrier());
    let calls = in_a_batch(world, CALLS, &mut call)?;
    let (mut both_ps, mut barrier_ps) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        barriers.barrier()?;
        both_ps.push(each_ps(calls, || (0..calls).try_for_each(|_| call()))?);
        barrier_ps.push(each_ps(calls, || (0..calls).try_for_each(|_| barrier()))?);
    }
    Ok((usual(&both_ps) - usual(&barrier_ps)) / 1e6)
}

/// The memory of an operation.
struct Blocks {
    outgoing: Vec<f64>,
    incoming: Vec<f64>,
    /// Values of a block.
    count: usize,
}

impl Blocks {
    /// Blocks of this many bytes, rounded up to whole numbers of eight.
    fn new(operation: Operation, bytes: usize, size: usize) -> Self {
        let count = bytes.div_ceil(8);
        let all = match operation {
            Operation::Gather | Operation::Scatter | Operation::AllGather | Operation::AllToAll => {
                count * size
            }
            _ => count,
        };
        Self { outgoing: vec![1.0; all], incoming: vec![0.0; all], count }
    }

    fn call(&mut self, world: &World, operation: Operation) -> Result<()> {
        let (outgoing, incoming, count) = (&self.outgoing, &mut self.incoming, self.count);
        match operation {
            Operation::Broadcast => world.broadcast(&mut incoming[..], 0),
            Operation::Reduce => world.reduce(outgoing, incoming, Sum, 0),
            Operation::AllReduce => world.all_reduce_into(outgoing, incoming, Sum),
            Operation::Gather => world.gather(&outgoing[..count], incoming, 0),
            Operation::Scatter => world.scatter(outgoing, &mut incoming[..count], 0),
            Operation::AllGather => world.all_gather(&outgoing[..count], incoming),
            Operation::AllToAll => world.all_to_all(outgoing, incoming),
            _ => world.barrier(),
        }
    }
}

fn now_us() -> f64 {
    now_ns() as f64 * 1e-3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_time() {
        assert_eq!(finding("0.5"), Some(0.5));
        assert_eq!([finding("8 0.5"), finding("x"), finding(""), finding("inf")], [None; 4]);
    }
}
