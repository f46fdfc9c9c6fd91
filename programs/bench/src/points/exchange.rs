//! Messages to and fro: between two ranks alone, in a crowd that waits, in many pairs, by loan.

use std::time::{Duration, Instant};

use landeck::{Result, World};
use landeck_measure::Paged;

use crate::batches::Batches;
use crate::collective::{fill, holds};
use crate::settings::Settings;
use crate::words::{receive_word, send_word, tags};
use crate::{Bench, Measured};

/// Ranks 0 and 1, every size.
pub(crate) fn round(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    let mut buffers = Buffers::new(&bench.settings, 1);
    for &bytes in &bench.settings.bytes {
        buffers.check(bench, bytes)?;
        batches(bench, bytes, 1, false)
            .run(|iterations| to_and_fro(&bench.world, &mut buffers, iterations, bytes))?;
    }
    Ok(())
}

/// Round trips between two ranks while all other ranks wait in a receive.
pub(crate) fn crowd(bench: &Bench) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    bench.needs(world.size() >= 2, "at least 2 processes")?;
    let mut buffers = Buffers::new(settings, 1);
    if world.rank() >= 2 {
        send_word(world, 0, 0, tags::REPORT)?;
        receive_word(world, 0, tags::CONTROL)?;
        return Ok(());
    }
    buffers.check(bench, settings.bytes[0])?;
    if world.rank() == 0 {
        (2..world.size())
            .try_for_each(|other| receive_word(world, other, tags::REPORT).map(drop))?;
    }
    for &bytes in &settings.bytes {
        batches(bench, bytes, 1, false)
            .run(|iterations| to_and_fro(world, &mut buffers, iterations, bytes))?;
    }
    if world.rank() == 0 {
        (2..world.size()).try_for_each(|other| send_word(world, 0, other, tags::CONTROL))?;
    }
    Ok(())
}

/// Round trips in all pairs (0, 1), (2, 3), ... at once; the slowest pair counts.
pub(crate) fn pairs(bench: &Bench) -> Measured {
    let size = bench.world.size();
    bench.needs(size.is_multiple_of(2), "an even number of processes")?;
    let mut buffers = Buffers::new(&bench.settings, 1);
    for &bytes in &bench.settings.bytes {
        buffers.check(bench, bytes)?;
        batches(bench, bytes, size - 1, true)
            .run(|iterations| to_and_fro(&bench.world, &mut buffers, iterations, bytes))?;
    }
    Ok(())
}

/// Ranks 0 and 1, every size, but only references travel: each loan is allocated, marked at its
/// ends, given away, looked at and returned.
pub(crate) fn loan(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    for &bytes in &bench.settings.bytes {
        let mut wrong = false;
        batches(bench, bytes, 1, false).run(|iterations| {
            let start = Instant::now();
            for turn in 0..iterations {
                if bench.world.rank() == 0 {
                    give(bench, bytes, turn as u8)?;
                }
                wrong |= take(&bench.world, bytes)? != turn as u8;
                if bench.world.rank() == 1 {
                    give(bench, bytes, turn as u8)?;
                }
            }
            Ok(start.elapsed())
        })?;
        if wrong {
            return Err(bench.wrong("another loan than the one that was sent"));
        }
    }
    Ok(())
}

fn give(bench: &Bench, bytes: usize, mark: u8) -> Result<()> {
    let mut loan = bench.job.loan::<u8>(bytes)?;
    loan[0] = mark;
    loan[bytes - 1] = mark;
    bench.world.send_loan(loan, bench.world.rank() ^ 1, tags::DATA)
}

/// The mark at the end of the next loan.
fn take(world: &World, bytes: usize) -> Result<u8> {
    let (loaned, _) = world.receive_loan::<u8>(world.rank() ^ 1, tags::DATA)?;
    Ok(loaned.get(bytes - 1).unwrap_or_default())
}

fn batches(bench: &Bench, bytes: usize, followers: usize, slowest_counts: bool) -> Batches<'_> {
    Batches { followers, slowest_counts, divisor: 2.0, ..bench.batches("", bytes) }
}

fn to_and_fro(
    world: &World,
    buffers: &mut Buffers,
    iterations: u64,
    bytes: usize,
) -> Result<Duration> {
    let (partner, is_new) = (world.rank() ^ 1, buffers.is_new);
    let (outgoing, incoming) = (&mut buffers.outgoing[..bytes], &mut buffers.incoming[..bytes]);
    let renew = |data: &mut [u8], turn| {
        if is_new {
            data.fill((turn % 64) as u8);
        }
    };
    let start = Instant::now();
    if world.rank() < partner {
        for turn in 0..iterations {
            renew(outgoing, turn);
            world.send(&*outgoing, partner, tags::DATA)?;
            world.receive_into(incoming, partner, tags::DATA)?;
        }
    } else {
        for turn in 0..iterations {
            world.receive_into(incoming, partner, tags::DATA)?;
            renew(outgoing, turn);
            world.send(&*outgoing, partner, tags::DATA)?;
        }
    }
    Ok(start.elapsed())
}

/// Private memory, touched before anything is measured.
pub(crate) struct Buffers {
    pub(crate) outgoing: Paged<u8>,
    pub(crate) incoming: Paged<u8>,
    /// Whether the sent data are written anew each time, after they were checked.
    is_new: bool,
}

impl Buffers {
    pub(crate) fn new(settings: &Settings, blocks: usize) -> Buffers {
        let bytes = settings.largest() * blocks;
        let memory = |value| Paged::new(value, bytes, settings.offset);
        Buffers { outgoing: memory(1), incoming: memory(2), is_new: settings.is_new }
    }

    /// One exchange in which every byte is looked at.
    pub(crate) fn check(&mut self, bench: &Bench, bytes: usize) -> Measured {
        let (own, partner) = (bench.world.rank(), bench.world.rank() ^ 1);
        fill(&mut self.outgoing[..bytes], own, 0);
        self.incoming[..bytes].fill(0);
        let is_new = std::mem::replace(&mut self.is_new, false);
        let done = to_and_fro(&bench.world, self, 1, bytes);
        self.is_new = is_new;
        done?;
        if holds(&self.incoming[..bytes], partner, 0) {
            Ok(())
        } else {
            Err(bench.wrong("wrong bytes"))
        }
    }
}
