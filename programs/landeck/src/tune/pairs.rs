//! Measurements of messages between two hosts, by the processes of a job.

use super::instruments::median;
use super::pin_among;
use landeck::{Minimum, Result, Tag, World};
use std::time::Instant;

const TAG: Tag = Tag(0);
const BATCHES: usize = 9;
/// The longest message that goes in one frame. The length of the parts of longer ones.
pub(super) const FRAME_BYTES: usize = 64 << 10;
/// Calls of a batch in which all members take part.
const CROWD_CALLS: u32 = 4;
/// Data of many parts.
const LONG_BYTES: usize = 1 << 20;

/// The figures of messages between two hosts, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    /// Half of a round trip of 8 bytes.
    pub(super) message: u64,
    /// The time of a call that sends 8 bytes.
    pub(super) send: u64,
    /// 1 KiB on the way between the hosts.
    pub(super) kib: u64,
    /// 1 KiB that a processor moves to or from the network, at either end.
    pub(super) copy: u64,
}

/// The number of words of a [`Pair`].
pub(super) const PAIR_WORDS: usize = 4;

impl Pair {
    pub(super) const fn to_words(self) -> [u64; PAIR_WORDS] {
        [self.message, self.send, self.kib, self.copy]
    }

    pub(super) const fn from_words([message, send, kib, copy]: [u64; PAIR_WORDS]) -> Self {
        Self { message, send, kib, copy }
    }
}

/// The times of 1 KiB of long data between two hosts, in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// In one frame, whose parts hardly overlap.
    in_frame: f64,
    /// In one direction, in many parts.
    one_way: f64,
    /// In both directions at once, for each of them.
    both_ways: f64,
}

impl Rates {
    /// The time on the way, and the time that a processor takes at each end.
    ///
    /// A frame passes one end, the way and the other end. Of many parts in one direction the slowest of these counts. In both
    /// directions at once each processor moves two streams, and a way one in each direction. So if both directions take
    /// longer than one, processors are the limit, else the way is. One end of a single stream, and half of two streams, differ
    /// by what the caches hold; the middle counts.
    fn shares(self) -> (f64, f64) {
        const LIMITED_BY_THE_WAY: f64 = 0.75;
        if self.one_way >= LIMITED_BY_THE_WAY * self.both_ways {
            let way = self.one_way;
            return (way, ((self.in_frame - way) / 2.0).clamp(0.0, way / 2.0));
        }
        let copy = (self.one_way + self.both_ways / 2.0) / 2.0;
        ((self.in_frame - 2.0 * copy).clamp(1.0, self.one_way), copy)
    }
}

/// Measures two members. The first one knows the result.
pub(super) fn pair_of(world: &World, one: usize, other: usize) -> Result<Pair> {
    let rank = world.rank();
    if rank != one && rank != other {
        return Ok(Pair::default());
    }
    let ends = Ends { world, is_first: rank == one, peer: if rank == one { other } else { one } };
    ends.half_ps(8, 20)?; // they connect
    let message = ends.half_ps(8, 100)?;
    let of_kib = |ps: f64, bytes: usize| ((ps - message) * 1024.0 / bytes as f64).max(1.0);
    let in_frame = of_kib(ends.half_ps(FRAME_BYTES, 20)?, FRAME_BYTES);
    // Two more messages go before data of several parts.
    let one_way = of_kib(ends.half_ps(LONG_BYTES, 6)? - 2.0 * message, LONG_BYTES);
    let both_ways = of_kib(ends.both_ps(LONG_BYTES, 6)? - 2.0 * message, LONG_BYTES);
    let (way, copy) = Rates { in_frame, one_way, both_ways }.shares();
    let send = ends.send_ps()?;
    let [message, send, kib, copy] = [message, send, way, copy].map(|ps| ps.max(1.0) as u64);
    Ok(Pair { message, send, kib, copy })
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
        let mut halves = Vec::with_capacity(TRIPS);
        for _ in 0..TRIPS {
            let begin = Instant::now();
            ends.round_trip(&mut data)?;
            halves.push(begin.elapsed().as_nanos() as f64 * 1e3 / 2.0);
        }
        turn = (median(halves) as u64).saturating_sub(message_ps).max(1);
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
    let mut times = Vec::with_capacity(BATCHES);
    let (data, mut into) = (vec![0u8; LONG_BYTES], vec![0u8; LONG_BYTES]);
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for _ in 0..BATCHES {
        world.barrier()?;
        let begin = Instant::now();
        for _ in 0..CROWD_CALLS {
            world.send_receive(&data, (next, TAG), &mut into, (last, TAG))?;
        }
        times.push(begin.elapsed().as_nanos() as f64 * 1e3 / f64::from(CROWD_CALLS));
    }
    let kib_ps = median(times) * 1024.0 / LONG_BYTES as f64;
    Ok(Some((kib_ps / 2.0 / sharing as f64).max(1.0) as u64))
}

/// Whether all members run on one computer: their hosts are namespaces of it.
pub(super) fn are_on_one_computer(world: &World) -> Result<bool> {
    let own = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut first = [0u8; 36];
    let mut here = [0u8; 36];
    here.iter_mut().zip(own.bytes()).for_each(|(place, byte)| *place = byte);
    first.copy_from_slice(&here);
    world.broadcast(&mut first, 0)?;
    let is_same = !own.is_empty() && first == here;
    let mut all = [0u64];
    world.all_reduce_into(&[u64::from(is_same)], &mut all, Minimum)?;
    Ok(all[0] == 1)
}

/// Two members that measure together.
struct Ends<'a> {
    world: &'a World,
    is_first: bool,
    peer: usize,
}

impl Ends<'_> {
    /// The least time of some batches of so many calls.
    fn least_ps(&self, calls: u32, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
        let mut least = f64::MAX;
        for _ in 0..BATCHES {
            let begin = Instant::now();
            (0..calls).try_for_each(|_| call())?;
            least = least.min(begin.elapsed().as_nanos() as f64 * 1e3 / f64::from(calls));
        }
        Ok(least)
    }

    /// Half of a round trip.
    fn half_ps(&self, bytes: usize, trips: u32) -> Result<f64> {
        let mut data = vec![0u8; bytes];
        Ok(self.least_ps(trips, || self.round_trip(&mut data))? / 2.0)
    }

    fn round_trip(&self, data: &mut [u8]) -> Result<()> {
        let Self { world, is_first, peer } = *self;
        if is_first {
            world.send(data, peer, TAG)?;
            world.receive_into(data, peer, TAG)?;
        } else {
            world.receive_into(data, peer, TAG)?;
            world.send(data, peer, TAG)?;
        }
        Ok(())
    }

    /// Data in both directions at once.
    fn both_ps(&self, bytes: usize, calls: u32) -> Result<f64> {
        let (data, mut into) = (vec![0u8; bytes], vec![0u8; bytes]);
        self.least_ps(calls, || {
            self.world.send_receive(&data, (self.peer, TAG), &mut into, (self.peer, TAG)).map(drop)
        })
    }

    /// The time of a call that sends 8 bytes, where many follow each other.
    fn send_ps(&self) -> Result<f64> {
        const MESSAGES: usize = 32;
        let Self { world, is_first, peer } = *self;
        let mut least = f64::MAX;
        let mut data = [0u8; 8];
        for _ in 0..BATCHES {
            if is_first {
                let begin = Instant::now();
                for _ in 0..MESSAGES {
                    world.send(&data, peer, TAG)?;
                }
                least = least.min(begin.elapsed().as_nanos() as f64 * 1e3 / MESSAGES as f64);
                world.receive_into(&mut data, peer, TAG)?;
            } else {
                for _ in 0..MESSAGES {
                    world.receive_into(&mut data, peer, TAG)?;
                }
                world.send(&data, peer, TAG)?;
            }
        }
        Ok(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_part_of_the_way_is_recognised() {
        let shares = |in_frame, one_way, both_ways| Rates { in_frame, one_way, both_ways }.shares();
        assert_eq!(shares(700.0, 300.0, 600.0), (100.0, 300.0), "processors move 1 KiB in 300 ps");
        assert_eq!(shares(500.0, 300.0, 600.0), (1.0, 300.0), "a frame overlaps");
        assert_eq!(shares(1_200.0, 1_000.0, 1_000.0), (1_000.0, 100.0), "a slow way");
        assert_eq!(shares(900.0, 1_000.0, 1_000.0), (1_000.0, 0.0));
    }
}
