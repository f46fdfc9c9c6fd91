//! Probes of the machine itself, measured in the same run as the figures: these mean nothing
//! without them, because a virtual machine's cores lie near or far from each other, and not for long.
//!
//! All probes are short. Loops here spin on purpose: they measure the hardware and the scheduler,
//! not the library.

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landeck_measure::line::{OwnLine, half_round_trip_ps, poll_until};
use landeck_measure::processors::{allowed, first_two, on_two, pin};
use rustix::thread::futex;
use serde::Serialize;

use crate::statistics::median;

/// One property of the machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

/// Half of the round trip of a cache line between two cores, in nanoseconds: the first two
/// processors that this process may use. None where there is only one. The least of some batches:
/// whatever disturbs makes it longer.
pub(crate) fn line_ns() -> Option<f64> {
    first_two().map(|processors| half_round_trip_ps(processors, 7) / 1e3)
}

/// Every probe, in the order in which they are shown.
pub(crate) fn all() -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut add = |name, unit, value: Option<f64>| {
        if let Some(value) = value {
            probes.push(Probe { name, unit, value });
        }
    };
    add("cache line, half round trip between two cores", "ns", line_ns());
    add("copy of 64 KiB", "GB/s", Some(copy_gigabytes_per_second(64 << 10)));
    add("copy of 1 MiB", "GB/s", Some(copy_gigabytes_per_second(1 << 20)));
    add("copy of 4 MiB", "GB/s", Some(copy_gigabytes_per_second(4 << 20)));
    add("64 KiB through a ring of 8 x 16 KiB, two copies", "us", two_copy_us(64 << 10));
    add("1 MiB through a ring of 8 x 16 KiB, two copies", "us", two_copy_us(1 << 20));
    add("4 MiB through a ring of 8 x 16 KiB, two copies", "us", two_copy_us(4 << 20));
    add("futex wake and wait, one core, half round trip", "us", futex_us(true));
    add("futex wake and wait, two cores, half round trip", "us", futex_us(false));
    add("sched_yield, nobody else there", "ns", Some(yield_alone_ns()));
    add("sched_yield to another process, same core", "ns", yield_switch_ns());
    probes
}

/// The hidden other half of the process switch probe: yields on one processor until the time is up.
pub(crate) fn yield_for(processor: usize, duration: Duration) {
    pin(processor);
    let start = Instant::now();
    while start.elapsed() < duration {
        for _ in 0..100 {
            rustix::thread::sched_yield();
        }
    }
}

fn copy_gigabytes_per_second(bytes: usize) -> f64 {
    let source = vec![1u8; bytes];
    let mut target = vec![0u8; bytes];
    let copies = (64 << 20) / bytes;
    let batches: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..copies {
                target.copy_from_slice(black_box(&source));
                black_box(&mut target);
            }
            (copies * bytes) as f64 / start.elapsed().as_nanos() as f64
        })
        .collect();
    median(&batches).unwrap_or(f64::NAN)
}

const CHUNK_BYTES: usize = 16 << 10;
const CHUNKS: usize = 8;

/// A chunk is free on an even turn and full on an odd one; the lock is never contended.
struct Chunk {
    turn: OwnLine<AtomicU64>,
    data: Mutex<Vec<u8>>,
}

/// One message of so many bytes, copied into a ring by one core and out of it by another,
/// with an acknowledgement at the end.
fn two_copy_us(bytes: usize) -> Option<f64> {
    let processors = first_two()?;
    let chunks: Vec<Chunk> = (0..CHUNKS)
        .map(|_| Chunk { turn: OwnLine::default(), data: Mutex::new(vec![1; CHUNK_BYTES]) })
        .collect();
    let messages = (48 << 20) / bytes + 2;
    let received = OwnLine::<AtomicU64>::default();
    let passed = |message: usize| message * bytes / CHUNK_BYTES;
    let send = || {
        let source = vec![1u8; bytes];
        let mut times = Vec::with_capacity(messages);
        for message in 0..messages {
            let start = Instant::now();
            let pieces = source.chunks_exact(CHUNK_BYTES);
            walk(&chunks, passed(message), 0, pieces, |piece, data| data.copy_from_slice(piece));
            poll_until(|| received.0.load(Ordering::Acquire) > message as u64);
            times.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        times
    };
    let receive = || {
        let mut target = vec![0u8; bytes];
        for message in 0..messages {
            let pieces = target.chunks_exact_mut(CHUNK_BYTES);
            walk(&chunks, passed(message), 1, pieces, |piece, data| piece.copy_from_slice(data));
            black_box(&mut target);
            received.0.store(message as u64 + 1, Ordering::Release);
        }
    };
    median(&on_two(processors, send, receive)?)
}

/// Takes one chunk after the other, each when it is this side's turn: 0 to fill, 1 to empty.
fn walk<P>(
    chunks: &[Chunk],
    passed: usize,
    side: u64,
    pieces: impl Iterator<Item = P>,
    mut copy: impl FnMut(P, &mut [u8]),
) {
    for (place, piece) in pieces.enumerate() {
        let place = passed + place;
        let chunk = &chunks[place % CHUNKS];
        let turn = 2 * (place / CHUNKS) as u64 + side;
        poll_until(|| chunk.turn.0.load(Ordering::Acquire) == turn);
        if let Ok(mut data) = chunk.data.lock() {
            copy(piece, &mut data);
        }
        chunk.turn.0.store(turn + 1, Ordering::Release);
    }
}

fn futex_us(same_core: bool) -> Option<f64> {
    let [first, second] = first_two()?;
    const ROUND_TRIPS: u32 = 1_000;
    let (ping, pong) = <(OwnLine<AtomicU32>, OwnLine<AtomicU32>)>::default();
    let wait_for = |word: &AtomicU32, value: u32| {
        while word.load(Ordering::Acquire) != value {
            // A value that has changed already is what is waited for.
            let _ = futex::wait(word, futex::Flags::empty(), value - 1, None);
        }
    };
    let set = |word: &AtomicU32, value: u32| {
        word.store(value, Ordering::Release);
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    };
    let lead = || {
        let start = Instant::now();
        for turn in 1..=ROUND_TRIPS {
            set(&ping.0, turn);
            wait_for(&pong.0, turn);
        }
        start.elapsed().as_nanos() as f64 / 1e3 / f64::from(ROUND_TRIPS) / 2.0
    };
    on_two([first, if same_core { first } else { second }], lead, || {
        for turn in 1..=ROUND_TRIPS {
            wait_for(&ping.0, turn);
            set(&pong.0, turn);
        }
    })
}

fn yield_alone_ns() -> f64 {
    const YIELDS: u32 = 20_000;
    let start = Instant::now();
    for _ in 0..YIELDS {
        rustix::thread::sched_yield();
    }
    start.elapsed().as_nanos() as f64 / f64::from(YIELDS)
}

/// Two processes yield on one processor; every switch away from this one is a switch back, too.
fn yield_switch_ns() -> Option<f64> {
    let processor = *allowed().first()?;
    let mut other = Command::new(std::env::current_exe().ok()?)
        .args(["yield", &processor.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .ok()?;
    let measured = thread::scope(|scope| {
        let yields = scope.spawn(|| {
            yield_for(processor, Duration::from_millis(30));
            let (start, before) = (Instant::now(), switches()?);
            yield_for(processor, Duration::from_millis(60));
            let (elapsed, after) = (start.elapsed(), switches()?);
            (after > before).then(|| elapsed.as_nanos() as f64 / (after - before) as f64 / 2.0)
        });
        yields.join().ok().flatten()
    });
    let _ = other.wait();
    measured
}

/// How often the calling thread was switched away from while it could have run.
fn switches() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("nonvoluntary_ctxt_switches"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use landeck_testing::Watchdog;

    use super::*;

    #[test]
    fn the_ring_passes_every_byte() {
        let chunks: Vec<Chunk> = (0..CHUNKS)
            .map(|_| Chunk { turn: OwnLine::default(), data: Mutex::new(vec![0; CHUNK_BYTES]) })
            .collect();
        let source: Vec<u8> = (0..CHUNK_BYTES * 4).map(|place| (place * 7 % 251) as u8).collect();
        let mut target = vec![0u8; source.len()];
        walk(&chunks, 0, 0, source.chunks_exact(CHUNK_BYTES), |piece, data| {
            data.copy_from_slice(piece);
        });
        walk(&chunks, 0, 1, target.chunks_exact_mut(CHUNK_BYTES), |piece, data| {
            piece.copy_from_slice(data);
        });
        assert_eq!(source, target);
    }

    #[test]
    fn a_line_takes_some_time_where_there_are_two_processors() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        assert!(line_ns().is_none_or(|ns| ns > 0.0));
    }
}
