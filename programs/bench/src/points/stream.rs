//! A stream of small messages in one direction: windows of them, each acknowledged by one message.

use std::time::{Duration, Instant};

use landeck::{Result, World};

use crate::batches::Batches;
use crate::exchange::Buffers;
use crate::words::{receive_word, send_word, tags};
use crate::{Bench, Measured};

const WINDOW: usize = 64;

/// Rank 0 sends, rank 1 receives: by requests that are waited for together, then by plain calls.
pub(crate) fn measure(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    let mut buffers = Buffers::new(&bench.settings, WINDOW);
    for &bytes in &bench.settings.bytes {
        buffers.check(bench, bytes)?;
        batches(bench, "requests", bytes)
            .run(|windows| of_requests(&bench.world, &mut buffers, windows, bytes))?;
        batches(bench, "calls", bytes)
            .run(|windows| of_calls(&bench.world, &mut buffers, windows, bytes))?;
    }
    Ok(())
}

fn batches<'a>(bench: &'a Bench, form: &'a str, bytes: usize) -> Batches<'a> {
    let divisor = WINDOW as f64;
    Batches { followers: 1, slowest_counts: false, divisor, ..bench.batches(form, bytes) }
}

fn of_requests(
    world: &World,
    buffers: &mut Buffers,
    windows: u64,
    bytes: usize,
) -> Result<Duration> {
    let (outgoing, incoming) = (&buffers.outgoing[..bytes], &mut buffers.incoming);
    let start = Instant::now();
    for window in 0..windows {
        world.scope(|scope| {
            if world.rank() == 0 {
                for _ in 0..WINDOW {
                    let _goes_on = scope.send(outgoing, 1, tags::DATA)?;
                }
            } else {
                for piece in incoming.chunks_exact_mut(bytes).take(WINDOW) {
                    let _goes_on = scope.receive_into(piece, 0, tags::DATA)?;
                }
            }
            scope.wait_all()
        })?;
        acknowledge(world, window)?;
    }
    Ok(start.elapsed())
}

fn of_calls(world: &World, buffers: &mut Buffers, windows: u64, bytes: usize) -> Result<Duration> {
    let (outgoing, incoming) = (&buffers.outgoing[..bytes], &mut buffers.incoming[..bytes]);
    let start = Instant::now();
    for window in 0..windows {
        for _ in 0..WINDOW {
            if world.rank() == 0 {
                world.send(outgoing, 1, tags::DATA)?;
            } else {
                world.receive_into(incoming, 0, tags::DATA)?;
            }
        }
        acknowledge(world, window)?;
    }
    Ok(start.elapsed())
}

fn acknowledge(world: &World, window: u64) -> Result<()> {
    if world.rank() == 0 {
        receive_word(world, 1, tags::MARKER).map(drop)
    } else {
        send_word(world, window, 0, tags::MARKER)
    }
}
