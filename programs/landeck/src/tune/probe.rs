//! Measurements by one process: copies, a reduction, pages.
//!
//! Each is the least of some batches, since disturbances only make it longer.

use landeck_arithmetic::{Element, Operation, Reduction};
use landeck_collectives::calibration::{ROTATION_BYTES, named};
use landeck_measure::clock::{look_ps, since_ps};
use landeck_measure::processors::pin;
use landeck_measure::{PAGE_BYTES, Paged, least};
use landeck_memory::Bytes;
use std::hint::black_box;
use std::iter;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::instruments::usual;

const BATCHES: usize = 9;
/// Data that fit into a second cache with room to spare.
const DATA_BYTES: usize = 128 * 1024;
const PASSES: u32 = 200;
/// Bytes that are exchanged of each size, within a least and a most number of rounds.
const EXCHANGED_BYTES: usize = 2 << 20;
const EXCHANGES_MIN: usize = 2;
const EXCHANGES_MAX: usize = 40;
/// Blocks of a heap begin with a line, and long memory of the usual allocator this far behind the beginning of a
/// page. Where both begin with a line the processor copies in another way.
const USUAL_START: usize = 16;
/// A board's copies are published in such pieces.
const PIECE_BYTES: usize = 64 * 1024;

/// 1 KiB copied from one place to another.
pub(super) fn copy_kib_ps() -> u64 {
    let source = vec![1u8; DATA_BYTES];
    let mut target = vec![0u8; DATA_BYTES];
    kib_ps(|| {
        // A copy that is never read would be optimised away.
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
        // The first call has shown that it works.
        let _ = sum.apply(black_box(&mut total), black_box(&input));
    }))
}

/// The time of copies for each KiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// To where the other processor has read before.
    pub(super) deposit_kib_ps: u64,
    /// From where the other processor has put the data.
    pub(super) take_kib_ps: u64,
}

/// The receiver of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Others,
    Oneself,
}

/// Each of two processors at once copies its data to a place, then the other one's data from theirs. A single
/// processor does both with itself. So four ranges go round in each: its data, their place, the other place and the
/// target. Data for oneself have three.
pub(super) fn exchange(processors: &[usize], rotation_bytes: u64, whom: For) -> Exchange {
    let bytes = (rotation_bytes / if whom == For::Others { 4 } else { 3 }) as usize / PAGE_BYTES
        * PAGE_BYTES;
    let rounds = (EXCHANGED_BYTES / bytes).clamp(EXCHANGES_MIN, EXCHANGES_MAX);
    let processors = &processors[..processors.len().min(2)];
    let places: Vec<_> = processors.iter().map(|_| Mutex::new(Paged::new(1u8, bytes, 0))).collect();
    let [deposit_kib_ps, take_kib_ps] = on_all(processors, bytes, |number, barrier| {
        let [source, mut target] = [(); 2].map(|()| Paged::new(1u8, bytes, USUAL_START));
        let other = if whom == For::Others { (number + 1) % processors.len() } else { number };
        let (mut deposits_ps, mut takes_ps) = (Vec::new(), Vec::new());
        for _ in 0..=rounds {
            barrier.wait();
            deposits_ps.push(copy_ps(&source, &mut locked(&places[number])));
            barrier.wait();
            takes_ps.push(copy_ps(&locked(&places[other]), &mut target));
        }
        // The first round has created the pages.
        [deposits_ps.split_off(1), takes_ps.split_off(1)]
    });
    Exchange { deposit_kib_ps, take_kib_ps }
}

/// 1 KiB copied from data untouched while other data went round, and 1 KiB copied to such data, on two processors at
/// once.
pub(super) fn one_sided(processors: &[usize], rotation_bytes: u64) -> [u64; 2] {
    const BYTES: usize = 32 << 10;
    let processors = &processors[..processors.len().min(2)];
    let places = (rotation_bytes as usize / BYTES).max(2);
    let rounds = (EXCHANGED_BYTES / (places * BYTES)).clamp(1, EXCHANGES_MAX);
    on_all(processors, BYTES, |_, barrier| {
        let [mut near, mut rest] = [1, places].map(|of| Paged::new(1u8, of * BYTES, 0));
        let (mut reads_ps, mut writes_ps) = (Vec::new(), Vec::new());
        barrier.wait();
        for _ in 0..=rounds {
            for place in rest.chunks(BYTES) {
                reads_ps.push(copy_ps(place, &mut near));
            }
            for place in rest.chunks_mut(BYTES) {
                writes_ps.push(copy_ps(&near, place));
            }
        }
        // In the first round nothing has gone round.
        [reads_ps.split_off(places), writes_ps.split_off(places)]
    })
}

/// Measures copies on these processors and reports each by its name.
pub(super) fn caches(processors: &[usize], mut report: impl FnMut(&str, u64)) {
    if processors.is_empty() {
        return;
    }
    for bytes in ROTATION_BYTES {
        let mut of = |name: &str, kib_ps| report(&named(name, bytes), kib_ps);
        let alone = exchange(processors, bytes, For::Oneself);
        of("copy_kib_in_#_ps", u64::midpoint(alone.deposit_kib_ps, alone.take_kib_ps));
        let [read_kib_ps, write_kib_ps] = one_sided(processors, bytes);
        of("read_kib_in_#_ps", read_kib_ps);
        of("write_kib_in_#_ps", write_kib_ps);
    }
    let between = exchange(processors, ROTATION_BYTES[0], For::Others);
    report("deposit_kib_in_128k_ps", between.deposit_kib_ps);
}

/// The mean time of both kinds of copies of so many bytes for each KiB, which a thread on each processor measures at
/// once.
fn on_all(
    processors: &[usize],
    bytes: usize,
    own: impl Fn(usize, &Barrier) -> [Vec<f64>; 2] + Sync,
) -> [u64; 2] {
    let (barrier, clock_ps) = (Barrier::new(processors.len()), look_ps());
    let pinned = |number: usize| {
        pin(processors[number]);
        own(number, &barrier).map(|times_ps| usual(&times_ps) - clock_ps)
    };
    let pinned = &pinned;
    let all: Vec<[f64; 2]> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..processors.len()).map(|number| scope.spawn(move || pinned(number))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let kib = (all.len().max(1) * bytes) as f64 / 1024.0;
    [0, 1].map(|which| {
        let sum_ps: f64 = all.iter().map(|times_ps| times_ps[which]).sum();
        ((sum_ps / kib) as u64).max(1)
    })
}

/// Pages of which one word each is touched. Each word has the place of the next, so that none is fetched early.
pub(super) struct Pages {
    room: Vec<u64>,
    /// The place of the first word.
    first: usize,
    count: usize,
}

impl Pages {
    const WORDS: usize = PAGE_BYTES / size_of::<u64>();
    const LINE_WORDS: usize = 64 / size_of::<u64>();

    /// Makes pages of this many bytes in all.
    pub(super) fn of(bytes: u64) -> Self {
        let count = bytes as usize / PAGE_BYTES;
        let mut room = vec![0u64; bytes as usize / size_of::<u64>()];
        // The words lie in different lines of their pages, since equal ones would have few places in a cache. Their
        // order is one that a processor does not foresee.
        let word = |page: usize| page * Self::WORDS + page * 7 % 64 * Self::LINE_WORDS;
        let step = (count * 3 / 8) | 1;
        let mut at = 0;
        for _ in 0..count {
            let next = (at + step) % count;
            room[word(at)] = word(next) as u64;
            at = next;
        }
        Self { room, first: word(0), count }
    }

    /// Touches all pages once, and returns the mean time.
    pub(super) fn round_ps(&self) -> f64 {
        let start = Instant::now();
        let mut at = self.first;
        for _ in 0..self.count {
            at = self.room[at] as usize;
        }
        black_box(at);
        since_ps(start) / self.count as f64
    }
}

fn locked(place: &Mutex<Paged<u8>>) -> MutexGuard<'_, Paged<u8>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time of a copy in pieces as on a board, including a look at the clock.
fn copy_ps(source: &[u8], target: &mut [u8]) -> f64 {
    let start = Instant::now();
    for (source, target) in source.chunks(PIECE_BYTES).zip(target.chunks_mut(PIECE_BYTES)) {
        Bytes::from(source).copy_to_slice(black_box(target));
    }
    since_ps(start)
}

/// The time of a pass for each KiB, in picoseconds.
fn kib_ps(mut pass: impl FnMut()) -> u64 {
    let passes = || {
        let start = Instant::now();
        (0..PASSES).for_each(|_| pass());
        since_ps(start) / f64::from(PASSES)
    };
    let pass_ps = least(iter::repeat_with(passes).take(BATCHES));
    ((pass_ps / (DATA_BYTES as f64 / 1024.0)) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_measure::processors::allowed;
    use landeck_testing::Watchdog;
    use std::time::Duration;

    #[test]
    fn everything_takes_some_time() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        assert!(copy_kib_ps() > 1 && reduction_kib_ps().is_some_and(|ps| ps > 1));
        assert!(crate::tune::line_ps().is_none_or(|ps| ps > 1));
        let processors = allowed();
        for processors in [&processors[..], &processors[..1]] {
            let Exchange { deposit_kib_ps, take_kib_ps } =
                exchange(processors, 256 << 10, For::Others);
            assert!(deposit_kib_ps > 1 && take_kib_ps > 1, "{processors:?}");
        }
    }
}
