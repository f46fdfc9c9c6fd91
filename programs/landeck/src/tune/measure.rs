//! What two processes find out about their host by talking to each other.
//!
//! Rank 0 writes each finding as a line: its name and picoseconds. [`super`] reads them.

use clap::ValueEnum;
use landeck::collectives::Way;
use landeck::collectives::architecture::Butterfly;
use landeck::collectives::details::MESSAGE_BYTES;
use landeck::{Job, Result, Sum, Tag, World};
use std::hint::black_box;
use std::time::Instant;

const TAG: Tag = Tag(0);
const BATCHES: usize = 9;
const LONG_BYTES: usize = 512 * 1024;
const LENT_BYTES: usize = 64 * 1024;

/// What is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Messages between two processors.
    Messages,
    /// From one process to another on one processor.
    Switch,
    /// From one process to the next where many share a processor.
    Crowd,
}

impl Subject {
    /// How many are a crowd on a processor.
    pub(crate) const CROWD: u32 = 8;

    /// Its name on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Switch => "switch",
            Self::Crowd => "crowd",
        }
    }
}

/// Measures as one of two processes, or of a crowd.
pub(crate) fn run(subject: Subject) -> Result<()> {
    let job = Job::join()?;
    let world = job.world();
    match (subject, world.size()) {
        (Subject::Messages, 2) => messages(&job, &world)?,
        (Subject::Switch, 2) => report(&world, "switch", half_round_trip_ps(&world, 8, 500)?),
        // Who comes last to a barrier goes on to the next; all others have a turn before that.
        (Subject::Crowd, 3..) => {
            super::pin(world.rank() % world.size().div_ceil(Subject::CROWD as usize));
            let turns = f64::from(Subject::CROWD - 1);
            report(&world, "crowd-switch", calls_ps(&world, 200, World::barrier)? / turns);
        }
        _ => {}
    }
    job.leave()
}

fn messages(job: &Job, world: &World) -> Result<()> {
    let short = half_round_trip_ps(world, 8, 5_000)?;
    let long = half_round_trip_ps(world, LONG_BYTES, 40)?;
    let lent = lent_ps(job, world)?;
    let barrier = calls_ps(world, 5_000, World::barrier)?;
    report(world, "message", short);
    for (bytes, round_trips) in MESSAGE_BYTES.into_iter().zip([4_000, 3_000, 1_500, 500, 150]) {
        let ps = half_round_trip_ps(world, bytes as usize, round_trips)?;
        report(world, &format!("message-{bytes}"), ps);
    }
    calls(world, short)?;
    report(world, "two-copy", per_kib(long - short, LONG_BYTES));
    report(world, "one-copy", per_kib(lent, LENT_BYTES));
    report(world, "barrier", barrier);
    Ok(())
}

fn report(world: &World, name: &str, ps: f64) {
    if world.rank() == 0 {
        println!("{name} {}", ps.max(1.0) as u64);
    }
}

fn per_kib(ps: f64, bytes: usize) -> f64 {
    ps / (bytes as f64 / 1024.0)
}

/// Half of the time in which a message goes there and back: the least of some batches.
fn half_round_trip_ps(world: &World, bytes: usize, round_trips: u32) -> Result<f64> {
    let mut data = vec![1u8; bytes];
    let other = 1 - world.rank();
    let mut least_ps = f64::MAX;
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..round_trips {
            if world.rank() == 0 {
                world.send(&data, other, TAG)?;
                world.receive_into(&mut data, other, TAG)?;
            } else {
                world.receive_into(&mut data, other, TAG)?;
                world.send(&data, other, TAG)?;
            }
        }
        let batch_ps = start.elapsed().as_nanos() as f64 * 1e3;
        least_ps = least_ps.min(batch_ps / f64::from(round_trips) / 2.0);
    }
    Ok(least_ps)
}

/// What a call over messages takes beside its message, and what each of an allreduce's two steps
/// takes that a barrier does not have: a copy and a combination.
fn calls(world: &World, message: f64) -> Result<()> {
    const CALLS: u32 = 2_000;
    let barriers = world.via(Way::by(Butterfly));
    let barrier = calls_ps(&barriers, CALLS, World::barrier)?;
    let sums = world.via(Way::by(Butterfly));
    let mut sum = [0u64];
    let each = calls_ps(&sums, CALLS, |world| world.all_reduce_into(&[1], &mut sum, Sum))?;
    report(world, "call", barrier - message);
    report(world, "step", (each - barrier) / 2.0);
    Ok(())
}

/// The time of a call: the least of some batches.
fn calls_ps(world: &World, calls: u32, mut call: impl FnMut(&World) -> Result<()>) -> Result<f64> {
    let mut least_ps = f64::MAX;
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..calls {
            call(world)?;
        }
        least_ps = least_ps.min(start.elapsed().as_nanos() as f64 * 1e3 / f64::from(calls));
    }
    Ok(least_ps)
}

/// Rank 1 fills memory and lends it to rank 0, which copies it out and says that it has.
fn lent_ps(job: &Job, world: &World) -> Result<f64> {
    let mut target = vec![0u8; LENT_BYTES];
    let mut least_ps = f64::MAX;
    for _ in 0..20 * BATCHES {
        if world.rank() == 1 {
            let mut loan = job.loan::<u8>(LENT_BYTES)?;
            loan.fill(1);
            world.send_loan(loan, 0, TAG)?;
            world.receive::<u8>(0, TAG)?;
            continue;
        }
        let (lent, _) = world.receive_loan::<u8>(1, TAG)?;
        let start = Instant::now();
        lent.bytes().copy_to_slice(black_box(&mut target)); // somebody may look at it
        least_ps = least_ps.min(start.elapsed().as_nanos() as f64 * 1e3);
        world.send(&[1u8], 1, TAG)?;
    }
    Ok(least_ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_the_names_that_the_command_line_knows() {
        for subject in Subject::value_variants() {
            assert_eq!(Subject::from_str(subject.as_str(), false), Ok(*subject));
        }
    }
}
