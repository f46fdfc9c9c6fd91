//! What one process can find out about its host: a line between two processors, a copy, a
//! reduction.
//!
//! Each is the least of some batches: whatever disturbs makes it longer. The loops here poll
//! without a pause, because that is what they measure.

use landeck::arithmetic::{Element, Operation, Reduction};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

const BATCHES: usize = 9;
const ROUND_TRIPS: u64 = 10_000;
/// Data that fit into a second cache with room to spare.
const DATA_BYTES: usize = 128 * 1024;
const PASSES: u32 = 200;

/// Half of the round trip of a cache line between two processors.
pub(crate) fn line_ps(first: usize, second: usize) -> u64 {
    least((0..BATCHES).map(|_| line_batch_ps(first, second)))
}

/// 1 KiB copied from one place to another.
pub(super) fn copy_kib_ps() -> u64 {
    let source = vec![1u8; DATA_BYTES];
    let mut target = vec![0u8; DATA_BYTES];
    kib_ps(|| {
        // Somebody may look at the target: a copy that nobody could see is left out.
        black_box(&mut target).copy_from_slice(black_box(&source));
    })
}

/// 1 KiB of numbers added to another.
pub(super) fn reduction_kib_ps() -> Option<u64> {
    let sum = Reduction::new(Operation::Sum, Element::F64).ok()?;
    let input = vec![0u8; DATA_BYTES];
    let mut total = vec![0u8; DATA_BYTES];
    sum.apply(&mut total, &input).ok()?;
    Some(kib_ps(|| {
        // The first call has shown that it can be done.
        let _ = sum.apply(black_box(&mut total), black_box(&input));
    }))
}

/// Picoseconds per KiB of a pass over the data.
fn kib_ps(mut pass: impl FnMut()) -> u64 {
    least((0..BATCHES).map(|_| {
        let start = Instant::now();
        (0..PASSES).for_each(|_| pass());
        let passes_ps = start.elapsed().as_nanos() as f64 * 1e3;
        passes_ps / f64::from(PASSES) / (DATA_BYTES as f64 / 1024.0)
    }))
}

/// The least of some times, and at least something.
fn least(times: impl Iterator<Item = f64>) -> u64 {
    (times.fold(f64::MAX, f64::min) as u64).max(1)
}

/// Alone on its pair of cache lines.
#[repr(align(128))]
struct Line(AtomicU64);

fn line_batch_ps(first: usize, second: usize) -> f64 {
    let (ping, pong) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(second);
            for turn in 1..=ROUND_TRIPS {
                poll_until(&ping, turn);
                pong.0.store(turn, Ordering::Release);
            }
        });
        let timed = scope.spawn(|| {
            pin(first);
            // The first exchange waits for the other thread to start.
            let exchange = |turn| {
                ping.0.store(turn, Ordering::Release);
                poll_until(&pong, turn);
            };
            exchange(1);
            let start = Instant::now();
            (2..=ROUND_TRIPS).for_each(exchange);
            start.elapsed().as_nanos() as f64 * 1e3 / (ROUND_TRIPS - 1) as f64 / 2.0
        });
        timed.join().unwrap_or(f64::MAX)
    })
}

fn poll_until(line: &Line, turn: u64) {
    while line.0.load(Ordering::Acquire) != turn {}
}

/// Best effort: on a wrong processor the figure is wrong, but that is no reason to stop.
fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_testing::Watchdog;
    use std::time::Duration;

    #[test]
    fn everything_takes_some_time() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        assert!(copy_kib_ps() > 1 && reduction_kib_ps().is_some_and(|ps| ps > 1));
        if let [first, second, ..] = crate::tune::processors()[..] {
            assert!(line_ps(first, second) > 1);
        }
    }

    #[test]
    fn the_least_is_taken_and_is_never_nothing() {
        assert_eq!(least([7.9, 3.2, 5.0].into_iter()), 3);
        assert_eq!(least([0.0].into_iter()), 1);
    }
}
