//! The first process sends and ends; the last one comes late, and gets everything. The data wait on a host meanwhile.
//!
//! ```text
//! landeck run -n 2 --store sender ./late_receiver
//! ```

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use landeck::{ErrorKind, Job, Tag, World};
use landeck_examples::program::{self, Problem, say};

/// The words of a message: 1 MiB.
const WORDS: usize = 128 << 10;
/// No process sends with this tag. A receive with it ends when the other process ends.
const NEVER: Tag = Tag(u16::MAX as u32);

/// Sends to a receiver that is late.
#[derive(Debug, Parser)]
#[command(name = "late_receiver")]
struct Options {
    /// The messages, of 1 MiB each.
    #[arg(default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    messages: u32,
    /// The seconds that the receiver computes when the sender has ended.
    #[arg(long, default_value_t = 2.0)]
    late: f64,
}

fn main() -> ExitCode {
    program::run::<Options>(run)
}

fn run(job: &Job, options: &Options) -> Result<(), Problem> {
    let world = job.world();
    let last = world.size() - 1;
    let host = job.hosts().into_iter().find(landeck::HostOfJob::is_own);
    let own = host.map_or_else(String::new, |host| format!(" on {}", host.name()));
    match world.rank() {
        _ if last == 0 => Err(Problem::Options("start at least two processes".into())),
        0 => {
            let began = Instant::now();
            for number in 0..options.messages {
                world.send(&words(number), last, Tag(number))?;
            }
            let (count, took) = (options.messages, began.elapsed().as_secs_f64());
            say(format!("rank 0{own}: {count} messages of 1 MiB sent after {took:.3} s; it ends"))
        }
        rank if rank == last => receive(&world, options, &format!("rank {rank}{own}")),
        _ => Ok(()),
    }
}

/// Receives everything when the sender has ended, in whatever order: here from the last message to the first.
fn receive(world: &World, options: &Options, name: &str) -> Result<(), Problem> {
    match world.receive::<u8>(0, NEVER) {
        Err(error) if matches!(error.kind, ErrorKind::PeerFailed { .. }) => {}
        other => drop(other?),
    }
    say(format!("{name}: rank 0 has left"))?;
    compute(Duration::try_from_secs_f64(options.late).unwrap_or_default());
    let mut received = vec![0; WORDS];
    for number in (0..options.messages).rev() {
        world.receive_into(&mut received, 0, Tag(number))?;
        if received != words(number) {
            return Err(Problem::Wrong(format!("message {number} is another one")));
        }
    }
    say(format!("{name}: {} messages received, all whole", options.messages))
}

/// Has something else to do for so long, and looks at no message.
fn compute(time: Duration) {
    let began = Instant::now();
    let mut value = 1.0f64;
    while began.elapsed() < time {
        value = std::hint::black_box(value.sqrt() + 1.0);
    }
}

/// The words of a message.
fn words(number: u32) -> Vec<u64> {
    (0..WORDS as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number)).collect()
}
