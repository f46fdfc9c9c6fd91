//! Counts primes with helpers that come and go. Whoever is in the group "primes" takes part in the next round: its
//! members agree how far the count is, share the next numbers, and add up what they have found. Every process but
//! rank 0 goes home now and then, and comes back as a new member; the result does not depend on that.
//!
//! ```text
//! landeck run -n 4 ./elastic [BELOW]
//! ```
//!
//! - Who joins waits in its first `advance` until the others come to theirs; from then on it is one of them.
//! - Who goes home leaves before the barrier that ends the round, and still comes to that. So all others
//!   `advance` behind the leave, and nobody waits in an operation for somebody who is at home.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use landeck::{
    Error, ErrorKind, Group, GroupError, GroupOptions, Job, Mailbox, Maximum, Member, Message, Sum,
};
use landeck_examples::program::{self, Problem, say};

/// Counts primes with helpers that come and go.
#[derive(Debug, Parser)]
#[command(name = "elastic")]
struct Options {
    /// Count the primes below this.
    #[arg(default_value_t = 1_000_000)]
    below: u64,
}

/// Numbers that each member looks at in a round.
const SHARE: u64 = 2_000;
/// Rounds after which a helper goes home.
const ROUNDS: usize = 6;

/// How far the count is. Members agree on the furthest; who comes new knows nothing yet.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Up to here, without it.
    next: u64,
    primes: u64,
}

/// Why a process stops counting.
enum Pause {
    Home,
    Finished,
}

fn main() -> ExitCode {
    program::run(elastic)
}

fn elastic(job: &Job, options: &Options) -> Result<(), Problem> {
    let below = options.below;
    let group = group(job)?;
    let mut inbox = job.create_mailbox()?;
    let (mut count, mut visits) = (Count::default(), 0);
    loop {
        match visit(job, &group, &mut inbox, &mut count, below) {
            Ok(Pause::Home) => visits += 1,
            Ok(Pause::Finished) => break,
            // The others have finished meanwhile, and the last of them has left.
            Err(Error { kind: ErrorKind::Group(GroupError::GroupDestroyed { .. }), .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if job.world().rank() == 0 {
        let went = news(&mut inbox)?;
        let primes = count.primes;
        say(format_args!("{primes} primes below {below}; helpers went home {went} times"))?;
    } else {
        eprintln!("rank {} was at home {visits} times", job.world().rank());
    }
    Ok(())
}

/// The group, which rank 0 makes: it starts when all have joined it once.
fn group(job: &Job) -> landeck::Result<Group> {
    let world = job.world();
    let made = match world.rank() {
        0 => {
            let all = GroupOptions::default().minimum(world.size() as u32);
            Some(job.create_group("primes", all)?)
        }
        _ => None,
    };
    world.barrier()?; // from here on the name is there
    made.map_or_else(|| job.open_group("primes"), Ok)
}

/// One time as a member.
fn visit(
    job: &Job,
    group: &Group,
    inbox: &mut Mailbox,
    count: &mut Count,
    below: u64,
) -> landeck::Result<Pause> {
    let mut member = group.join(inbox)?;
    let is_helper = job.world().rank() != 0;
    for rounds in 1.. {
        member.advance()?;
        round(&mut member, count, below)?;
        if count.next >= below {
            break;
        }
        let world = member.world()?.clone();
        if is_helper && rounds == ROUNDS {
            member.broadcast_to_others(Message::new().pack_text("I go home"))?;
            member.leave()?;
            world.barrier()?;
            return Ok(Pause::Home);
        }
        world.barrier()?;
    }
    member.leave()?;
    Ok(Pause::Finished)
}

/// The members share the next numbers.
fn round(member: &mut Member, count: &mut Count, below: u64) -> landeck::Result<()> {
    let world = member.world()?;
    let next = world.all_reduce(count.next, Maximum)?;
    let before = world.all_reduce(count.primes, Maximum)?;
    let from = next + SHARE * world.rank() as u64;
    let own = (from..from + SHARE).filter(|&number| number < below && is_prime(number)).count();
    let primes = before + world.all_reduce(own as u64, Sum)?;
    *count = Count { next: next + SHARE * world.size() as u64, primes };
    Ok(())
}

/// How often somebody has said that it goes home.
fn news(inbox: &mut Mailbox) -> landeck::Result<usize> {
    let mut times = 0;
    while inbox.try_retrieve()?.is_some() {
        times += 1;
    }
    Ok(times)
}

fn is_prime(number: u64) -> bool {
    let divides = |divisor: &u64| number.is_multiple_of(*divisor);
    number >= 2 && !(2..).take_while(|divisor| divisor * divisor <= number).any(|it| divides(&it))
}
