//! The root of a function by N-section, over and over: bench/papers.c does the same over MPI.
//!
//! All members tell each other what they have found (`landeck`), or a master collects that and the next interval goes
//! through a hypercube in messages that carry the dimensions still to serve (`relay`).

use std::time::Instant;

use landeck::{Any, Minimum, Result, Sum, Tag, World};

use crate::{Bench, Measured};

/// The relayed messages.
const RELAYED: Tag = Tag(7);
const TOLERANCE: f64 = 1e-12;
/// The interval of the first round.
const WHOLE: [f64; 2] = [2.0, 4.0];

/// Both forms, batch by batch.
pub(crate) fn measure(bench: &Bench) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    for form in Form::ALL {
        let (rounds, sent) = search(bench, form)?;
        let sent = world.all_reduce(sent, Sum)?;
        if world.rank() == 0 {
            let say = |unit, value| bench.print(form.name(), 0, unit, value);
            if form == Form::Relay {
                say("messages", sent as f64 / f64::from(rounds));
            }
            say("rounds", f64::from(rounds));
        }
    }
    for _ in 0..settings.batches {
        for form in Form::ALL {
            world.barrier()?;
            let (start, mut rounds) = (Instant::now(), 0);
            for _ in 0..settings.iterations {
                rounds += search(bench, form)?.0;
            }
            let mean_ns = start.elapsed().as_nanos() as f64 / f64::from(rounds);
            if world.rank() == 0 {
                bench.print(form.name(), 0, "ns", mean_ns);
            }
        }
    }
    Ok(())
}

/// The way by which members learn of the next interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    All,
    Relay,
}

impl Form {
    const ALL: [Form; 2] = [Form::All, Form::Relay];

    fn name(self) -> &'static str {
        match self {
            Form::All => "landeck",
            Form::Relay => "relay",
        }
    }
}

/// Returns the number of rounds, and of the messages that this process has relayed.
fn search(bench: &Bench, form: Form) -> Measured<(u32, u64)> {
    let world = &bench.world;
    let parts = world.size().max(2);
    let (mut now, mut rounds, mut sent) = (WHOLE, 0, 0);
    while now[1] - now[0] > TOLERANCE {
        let own =
            first_change(now, world.rank()..parts.min(world.rank() + parts / world.size()), parts);
        let next = match form {
            Form::All => part_of(now, world.all_reduce(own as u64, Minimum)?, parts),
            Form::Relay => {
                let mut first = [0];
                world.reduce(&[own as u64], &mut first, Minimum, 0)?;
                let mut next = part_of(now, first[0], parts);
                sent += relay(world, &mut next)?;
                next
            }
        };
        rounds += 1;
        if next == now {
            break; // no numbers in between
        }
        now = next;
    }
    if quartic(now[0]) * quartic(now[1]) > 0.0 {
        return Err(bench.wrong("an interval without a root"));
    }
    Ok((rounds, sent))
}

/// A polynomial of the fourth degree.
fn quartic(x: f64) -> f64 {
    ((x - 3.0) * x * x + 1.0) * x - 2.0
}

fn point(whole: [f64; 2], part: usize, parts: usize) -> f64 {
    if part == parts {
        whole[1]
    } else {
        whole[0] + (whole[1] - whole[0]) * part as f64 / parts as f64
    }
}

fn part_of(whole: [f64; 2], part: u64, parts: usize) -> [f64; 2] {
    let part = (part as usize).min(parts - 1);
    [point(whole, part, parts), point(whole, part + 1, parts)]
}

/// The first of these parts in which the sign changes, or `parts`.
fn first_change(whole: [f64; 2], own: std::ops::Range<usize>, parts: usize) -> usize {
    let is_negative = |part| quartic(point(whole, part, parts)) < 0.0;
    own.into_iter().find(|&part| is_negative(part) != is_negative(part + 1)).unwrap_or(parts)
}

/// Brings the interval from rank 0 to everybody. Returns the number of messages that this process has sent.
///
/// Each message names its node of the cube and carries the dimensions that the node still has to serve. A neighbour that
/// does not exist is left out, and so are those behind it, which do not exist either.
fn relay(world: &World, interval: &mut [f64; 2]) -> Result<u64> {
    let size = world.size() as u64;
    let (node, mut to_serve) = if world.rank() == 0 {
        (0, size.next_power_of_two() - 1)
    } else {
        let mut message = [0u64; 4];
        world.receive_into(&mut message, Any, RELAYED)?;
        *interval = [f64::from_bits(message[2]), f64::from_bits(message[3])];
        (message[0], message[1])
    };
    let mut sent = 0;
    while to_serve > 0 {
        let bit = to_serve & to_serve.wrapping_neg();
        to_serve &= !bit;
        let other = node | bit;
        if other < size {
            let message = [other, to_serve, interval[0].to_bits(), interval[1].to_bits()];
            world.send(&message, other as usize, RELAYED)?;
            sent += 1;
        }
    }
    Ok(sent)
}
