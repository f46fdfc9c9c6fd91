//! The cost of being in a job: processor time, memory, instructions.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{Result, World};
use landeck_measure::clock::process_ns;

use crate::words::{receive_value, receive_word, send_value, send_word, tags};
use crate::{Bench, Measured, Trouble};

/// Processor time of rank 1 while it waits in a receive for rank 0, which sleeps.
pub(crate) fn wait(bench: &Bench) -> Measured {
    let world = &bench.world;
    bench.needs(world.size() == 2, "exactly 2 processes")?;
    if world.rank() == 0 {
        receive_word(world, 1, tags::REPORT)?;
        thread::sleep(Duration::from_millis(bench.settings.wait_ms));
        send_word(world, 0, 1, tags::DATA)?;
        bench.print("", 8, "%", receive_value(world, 1)?);
    } else {
        send_word(world, 0, 0, tags::REPORT)?;
        let (start, used_ns) = (Instant::now(), process_ns());
        receive_word(world, 0, tags::DATA)?;
        let used_ns = (process_ns() - used_ns) as f64;
        send_value(world, 100.0 * used_ns / start.elapsed().as_nanos() as f64, 0)?;
    }
    Ok(())
}

/// The proportional share of memory of every process, when all are there.
pub(crate) fn memory(bench: &Bench) -> Measured {
    let world = &bench.world;
    while_all_are_there(world, || {
        let own = own_pss_kib()?;
        if world.rank() > 0 {
            return Ok(send_value(world, own, 0)?);
        }
        bench.print("", 0, "KiB", own);
        for other in 1..world.size() {
            bench.print("", 0, "KiB", receive_value(world, other)?);
        }
        Ok(())
    })
}

/// Measures how much of the job's segment is in memory when all processes have talked to four neighbours often
/// enough to have rings with them.
pub(crate) fn shared(bench: &Bench) -> Measured {
    const MESSAGES: u64 = 40;
    let (world, size) = (&bench.world, bench.world.size());
    bench.needs(size >= 5, "at least 5 processes")?;
    for message in 0..MESSAGES {
        for distance in [1, 2] {
            let (right, left) =
                ((world.rank() + distance) % size, (world.rank() + size - distance) % size);
            for (to, from) in [(right, left), (left, right)] {
                send_word(world, message, to, tags::DATA)?;
                if receive_word(world, from, tags::DATA)? != message {
                    return Err(bench.wrong("a neighbour's messages out of order"));
                }
            }
        }
    }
    while_all_are_there(world, || {
        if world.rank() == 0 {
            let resident =
                bench.job.segment().descriptor().and_then(|memory| rustix::fs::fstat(memory).ok());
            let bytes = resident.map_or(f64::NAN, |status| status.st_blocks as f64 * 512.0);
            bench.print("", 0, "MiB", bytes / f64::from(1 << 20));
        }
        Ok(())
    })
}

/// Bursts of messages, received after they have been sent: their calls are counted from outside.
pub(crate) fn burst(bench: &Bench) -> Measured {
    const BURST: u64 = 8;
    let (world, flag) = (&bench.world, &bench.settings.flag);
    bench.needs(world.size() == 2, "exactly 2 processes")?;
    for burst in 0..bench.settings.batches as u64 {
        if world.rank() == 0 {
            (0..BURST).try_for_each(|word| counted_send(world, &[word]))?;
            tell_sent(flag).map_err(|error| Trouble::NotUsed { path: flag.clone(), error })?;
            receive_word(world, 1, tags::MARKER)?;
            continue;
        }
        await_sent(flag, burst + 1);
        for word in 0..BURST {
            let mut got = [0];
            counted_receive(world, &mut got)?;
            if got != [word] {
                return Err(bench.wrong("the wrong message"));
            }
        }
        send_word(world, 0, 0, tags::MARKER)?;
    }
    Ok(())
}

/// The file grows by a byte with every burst that has been sent: no message is needed to say so.
fn tell_sent(flag: &Path) -> io::Result<()> {
    fs::OpenOptions::new().create(true).append(true).open(flag)?.write_all(b".")
}

fn await_sent(flag: &Path, bursts: u64) {
    while fs::metadata(flag).map_or(0, |status| status.len()) < bursts {
        thread::sleep(Duration::from_millis(1));
    }
}

/// One call, found by name from outside.
#[inline(never)]
fn counted_send(world: &World, word: &[u64; 1]) -> Result<()> {
    world.send(word, 1, tags::DATA)
}

/// One call, found by name from outside.
#[inline(never)]
fn counted_receive(world: &World, word: &mut [u64; 1]) -> Result<()> {
    world.receive_into(word, 0, tags::DATA).map(drop)
}

/// Runs something after everybody has arrived and before anybody leaves.
fn while_all_are_there(world: &World, body: impl FnOnce() -> Measured) -> Measured {
    let others = 1..world.size();
    if world.rank() > 0 {
        send_word(world, 0, 0, tags::MARKER)?;
        receive_word(world, 0, tags::CONTROL)?;
        body()?;
        receive_word(world, 0, tags::CONTROL)?;
        return Ok(());
    }
    others.clone().try_for_each(|other| receive_word(world, other, tags::MARKER).map(drop))?;
    others.clone().try_for_each(|other| send_word(world, 0, other, tags::CONTROL))?;
    body()?;
    Ok(others.into_iter().try_for_each(|other| send_word(world, 0, other, tags::CONTROL))?)
}

fn own_pss_kib() -> Measured<f64> {
    let path = Path::new("/proc/self/smaps_rollup");
    let rollup = fs::read_to_string(path)
        .map_err(|error| Trouble::NotUsed { path: path.to_owned(), error })?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse().unwrap_or(f64::NAN))
}
