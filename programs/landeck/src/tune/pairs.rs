//! Measurements of messages between two hosts, by the processes of a job.

use super::instruments::{TAG, round_trip, usual};
use super::pin_among;
use landeck::{Result, Sum, World};
use landeck_measure::clock::{each_ps, thread_ns};
use landeck_measure::least;
use std::time::{Duration, Instant};

const BATCHES: usize = 9;
/// The longest message that goes in one frame. The length of the parts of longer ones.
pub(super) const FRAME_BYTES: usize = 64 << 10;
/// Calls of a batch in which all members take part.
const CROWD_CALLS: u32 = 4;
/// Data of many parts.
const LONG_BYTES: usize = 1 << 20;

/// The times that were measured between two hosts, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    /// Half of a round trip of 8 bytes.
    pub(super) message: u64,
    /// The time of a call that sends 8 bytes.
    pub(super) send: u64,
    /// 1 KiB of data in one frame, whose parts hardly overlap.
    pub(super) in_frame: u64,
    /// 1 KiB of long data in one direction, in many parts.
    pub(super) one_way: u64,
    /// 1 KiB of long data in both directions at once, for each of them.
    pub(super) both_ways: u64,
}

/// The number of words of a [`Pair`].
pub(super) const PAIR_WORDS: usize = 5;

/// Where the time of 1 KiB between two hosts is spent, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// On the way.
    pub(super) way: u64,
    /// At the processor of either end, of data in one frame.
    pub(super) frame_copy: u64,
    /// At the processor of either end, of a part of long data.
    pub(super) part_copy: u64,
}

impl Pair {
    pub(super) const fn to_words(self) -> [u64; PAIR_WORDS] {
        [self.message, self.send, self.in_frame, self.one_way, self.both_ways]
    }

    pub(super) const fn from_words(
        [message, send, in_frame, one_way, both_ways]: [u64; PAIR_WORDS],
    ) -> Self {
        Self { message, send, in_frame, one_way, both_ways }
    }

    /// Where the time is spent.
    ///
    /// A frame passes one end, the way and the other end. Of many parts in one direction the slowest of these counts. In both
    /// directions at once each processor moves two streams, and a way one in each direction. So if two directions take twice
    /// as long as one, processors are the limit, and if they take as long, the way is; the geometric middle divides. One end
    /// of a single stream, and half of two streams, differ by what the caches hold; the middle counts.
    pub(super) fn shares(self) -> Shares {
        let Self { in_frame, one_way, both_ways, .. } = self;
        let is_way_the_limit = u128::from(both_ways).pow(2) < 2 * u128::from(one_way).pow(2);
        let half = |way: u64| in_frame.saturating_sub(way) / 2;
        if is_way_the_limit {
            let copy = half(one_way).min(one_way / 2);
            return Shares { way: one_way, frame_copy: copy, part_copy: copy };
        }
        let part_copy = u64::midpoint(one_way, both_ways / 2);
        let way = in_frame.saturating_sub(2 * part_copy).clamp(1, one_way.max(1));
        Shares { way, frame_copy: half(way), part_copy }
    }
}

/// Measures two members. The first one knows the result.
pub(super) fn pair_of(world: &World, one: usize, other: usize) -> Result<Pair> {
    let rank = world.rank();
    if rank != one && rank != other {
        return Ok(Pair::default());
    }
    let ends = Ends { world, is_first: rank == one, peer: if rank == one { other } else { one } };
    for (bytes, trips) in [(8, 20), (FRAME_BYTES, 20), (LONG_BYTES, 6)] {
        ends.half_ps(bytes, trips)?; // they connect, and learn how much may be under way
    }
    let message = ends.half_ps(8, 100)?;
    let of_kib = |ps: f64, bytes: usize| ((ps - message) * 1024.0 / bytes as f64).max(1.0);
    let in_frame = of_kib(ends.half_ps(FRAME_BYTES, 20)?, FRAME_BYTES);
    // Two more messages go before data of several parts.
    let one_way = of_kib(ends.half_ps(LONG_BYTES, 6)? - 2.0 * message, LONG_BYTES);
    let both_ways = of_kib(ends.both_ps(LONG_BYTES, 6)? - 2.0 * message, LONG_BYTES);
    let send = ends.send_ps()?;
    let words = [message, send, in_frame, one_way, both_ways].map(|ps| ps.max(1.0) as u64);
    Ok(Pair::from_words(words))
}

/// The time of a turn of a member that waits for a message, where two members share one of these processors. The first two
/// members know it. How often a member looks at its network in a turn depends on what it has found before, so the least
/// time says little: the median counts.
pub(super) fn turn_ps(world: &World, processors: &[usize], message_ps: u64) -> Result<u64> {
    const TRIPS: usize = 200;
    let rank = world.rank();
    let mut turn = 0;
    if rank < 2 {
        pin_among(processors, 0);
        let ends = Ends { world, is_first: rank == 0, peer: 1 - rank };
        let mut data = [0u8; 8];
        let half_ps = usual_ps(TRIPS, 2, || ends.round_trip(&mut data))?;
        turn = (half_ps as u64).saturating_sub(message_ps).max(1);
        pin_among(processors, rank);
    }
    world.barrier()?;
    Ok(turn)
}

/// The time in which a processor moves 1 KiB to or from the network, where several members share one of so many processors
/// and all of them send and receive at once: then less is left in the caches. `None` where each has its own. The first member
/// knows it.
pub(super) fn crowd_copy_ps(world: &World, processors: usize) -> Result<Option<u64>> {
    let (rank, size) = (world.rank(), world.size());
    let sharing = size.div_ceil(processors.max(1));
    if sharing < 2 {
        return Ok(None);
    }
    let (data, mut into) = (vec![0u8; LONG_BYTES], vec![0u8; LONG_BYTES]);
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut call = || world.send_receive(&data, (next, TAG), &mut into, (last, TAG)).map(drop);
    let mut times_ps = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        world.barrier()?;
        times_ps.push(each_ps(CROWD_CALLS, || (0..CROWD_CALLS).try_for_each(|_| call()))?);
    }
    let kib_ps = usual(&times_ps) * 1024.0 / LONG_BYTES as f64;
    Ok(Some((kib_ps / 2.0 / sharing as f64).max(1.0) as u64))
}

/// The processors that all members' hosts have together, if they share them: then all of them, computing at once with a
/// thread for each of their processors, get clearly less than one after the other. Members must not be bound yet. Other
/// programs only hide how much less that is, so of some rounds the fewest count.
pub(super) fn shared_processors(world: &World, own: usize) -> Result<Option<usize>> {
    const ROUNDS: usize = 3;
    let mut found: Option<usize> = None;
    for _ in 0..ROUNDS {
        let sums = computed(world, own)?;
        let now = together_of(sums, world.size());
        found = found.into_iter().chain(now).min();
    }
    Ok(found)
}

/// Sums over all members: the processors that a member may use, those that it gets when it computes alone, and those that it
/// gets while all members compute.
fn computed(world: &World, own: usize) -> Result<[f64; 3]> {
    let mut alone = 0.0;
    for rank in 0..world.size() {
        world.barrier()?;
        if world.rank() == rank {
            alone = processors_of(own);
        } else {
            // Asleep in the kernel, a member does not look at its network meanwhile.
            std::thread::sleep(COMPUTED);
        }
    }
    world.barrier()?;
    let mut sums = [0.0; 3];
    world.all_reduce_into(&[own as f64, alone, processors_of(own)], &mut sums, Sum)?;
    Ok(sums)
}

/// The processors that so many hosts have together, if they share them: from the sums of those that each may use, of those
/// that each got alone, and of those that each got with all others. Other programs take a part of the processors in both
/// cases, so the share counts and not the number. No host has more than all of them.
fn together_of([own, alone, together]: [f64; 3], hosts: usize) -> Option<usize> {
    const CLEARLY: f64 = 0.75;
    let least = own / hosts as f64;
    (together < CLEARLY * alone)
        .then(|| (own * together / alone).max(least).round().max(1.0) as usize)
}

/// How long members compute to find the processors that they get.
const COMPUTED: Duration = Duration::from_millis(20);

/// The processors that so many threads of this process get, which compute for a while.
fn processors_of(threads: usize) -> f64 {
    let begin = Instant::now();
    let compute = || {
        while begin.elapsed() < COMPUTED {
            std::hint::spin_loop();
        }
        thread_ns() as f64 * 1e-9
    };
    let computed: f64 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(compute)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    computed / begin.elapsed().as_secs_f64()
}

/// The median time of each of so many things that a batch does, of some batches: as of the operations that are compared.
fn usual_ps(batches: usize, things: u32, mut batch: impl FnMut() -> Result<()>) -> Result<f64> {
    let times_ps: Result<Vec<f64>> = (0..batches).map(|_| each_ps(things, &mut batch)).collect();
    Ok(usual(&times_ps?))
}

/// Two members that measure together.
struct Ends<'a> {
    world: &'a World,
    is_first: bool,
    peer: usize,
}

impl Ends<'_> {
    /// Half of a round trip.
    fn half_ps(&self, bytes: usize, trips: u32) -> Result<f64> {
        let mut data = vec![0u8; bytes];
        usual_ps(BATCHES, 2 * trips, || (0..trips).try_for_each(|_| self.round_trip(&mut data)))
    }

    fn round_trip(&self, data: &mut [u8]) -> Result<()> {
        round_trip(self.world, (self.is_first, self.peer), data)
    }

    /// Data in both directions at once.
    fn both_ps(&self, bytes: usize, calls: u32) -> Result<f64> {
        let (data, mut into, peer) = (vec![0u8; bytes], vec![0u8; bytes], (self.peer, TAG));
        let mut call = || self.world.send_receive(&data, peer, &mut into, peer).map(drop);
        usual_ps(BATCHES, calls, || (0..calls).try_for_each(|_| call()))
    }

    /// The time of a call that sends 8 bytes, where many follow each other.
    fn send_ps(&self) -> Result<f64> {
        const MESSAGES: u32 = 32;
        let Self { world, is_first, peer } = *self;
        let (mut times_ps, mut data) = (Vec::with_capacity(BATCHES), [0u8; 8]);
        for _ in 0..BATCHES {
            if is_first {
                let send = |_| world.send(&data, peer, TAG);
                times_ps.push(each_ps(MESSAGES, || (0..MESSAGES).try_for_each(send))?);
                world.receive_into(&mut data, peer, TAG)?;
            } else {
                (0..MESSAGES)
                    .try_for_each(|_| world.receive_into(&mut data, peer, TAG).map(drop))?;
                world.send(&data, peer, TAG)?;
            }
        }
        Ok(least(times_ps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_part_of_the_way_is_recognised() {
        let shares = |in_frame, one_way, both_ways| {
            let Shares { way, frame_copy, part_copy } =
                Pair { in_frame, one_way, both_ways, ..Pair::default() }.shares();
            (way, frame_copy, part_copy)
        };
        assert_eq!(shares(700, 300, 600), (100, 300, 300), "processors move 1 KiB in 300 ps");
        assert_eq!(shares(500, 300, 600), (1, 249, 300), "a frame is moved more quickly");
        assert_eq!(shares(1_200, 1_000, 1_000), (1_000, 100, 100), "a slow way");
        assert_eq!(shares(900, 1_000, 1_000), (1_000, 0, 0));
        assert_eq!(shares(0, 0, 0), (1, 0, 0));
    }

    #[test]
    fn hosts_that_get_less_together_share_processors() {
        assert_eq!(together_of([4.0, 3.9, 2.0], 2), Some(2));
        assert_eq!(together_of([8.0, 7.9, 2.0], 4), Some(2));
        assert_eq!(together_of([4.0, 2.1, 1.0], 2), Some(2), "others take half of the time");
        assert_eq!(together_of([4.0, 3.9, 0.5], 2), Some(2), "as many as each has alone");
        assert_eq!(together_of([4.0, 3.9, 3.8], 2), None);
        assert_eq!(together_of([16.0, 16.0, 10.0], 2), Some(10), "some in common");
        assert_eq!(together_of([0.0; 3], 2), None);
    }

    #[test]
    fn a_thread_that_computes_gets_a_processor_or_less() {
        let found = processors_of(1);
        assert!(found > 0.0 && found < 1.2, "{found}");
    }
}
