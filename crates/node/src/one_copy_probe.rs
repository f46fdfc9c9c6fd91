//! The launcher's probe: from which length on one copy of a message by the kernel of the system is faster than two copies.
//!
//! The launcher and a child of it, on a processor each, exchange messages as two processes of a job do, over endpoints and
//! memory of their own. The sender writes all data before each message and the receiver reads them, as programs do. The
//! least time of a length counts. The probe takes 5 ms at most. If others use the processors, the time is over before
//! enough messages were exchanged, and the probe says so.

use std::hint::black_box;
use std::ptr::NonNull;

use landeck_host::probed::Finding;
use landeck_host::twin::Twin;
use landeck_kernel::{Area, Endpoint, Peer, RequestId, Started, Wanted};
use landeck_memory::system::now_ns;
use landeck_memory::{Blocks, Buffer, Bytes, Segment, SegmentPlan, SlotRecord, SlotState, Spread};
use landeck_transports::SharedMemory;
use landeck_wire::way::OneCopy;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The lengths, ascending. Longer messages take too long, and count as the longest one.
const LENGTHS_KIB: [u64; 3] = [64, 256, 1_024];
/// The time for everything but the end of the child.
const LIMIT_NS: u64 = 4_500_000;
/// The rounds of all lengths. The first one touches the memory.
const ROUNDS: usize = 6;
/// The rounds that a finding needs.
const ROUNDS_MIN: usize = 4;
/// One copy is taken where it needs at most so much of the time of two.
const SHARE_MAX: f64 = 0.9;
/// The distance of bytes that the receiver reads: one in each cache line.
const LINE_BYTES: usize = 64;
const HEAP_BYTES: u64 = 4 << 20;
const RECEIVER: u32 = 0;
const SENDER: u32 = 1;
const CONTEXT: u32 = 1;
const TAG: u32 = 0;

/// The least times of the lengths, in two copies and in one.
type Times = [[u64; 2]; LENGTHS_KIB.len()];

/// Measures this host within 5 ms. The calling process must have one thread.
pub(crate) fn measure() -> Finding {
    let Ok(allowed) = sched_getaffinity(None) else { return Finding::Never };
    let mut processors = (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor));
    let (Some(first), Some(second)) = (processors.next(), processors.next()) else {
        return Finding::Never; // without two processors, all messages take turns
    };
    let times = times_on([first, second]);
    // If it is refused, the job's processes still get processors of their own.
    let _ = sched_setaffinity(None, &allowed);
    times.map_or(Finding::Disturbed(1), finding_of)
}

/// The least times of two processes on these processors; `None` if there are too few.
fn times_on([first, second]: [usize; 2]) -> Option<Times> {
    let end_ns = now_ns() + LIMIT_NS;
    let plan =
        SegmentPlan { heap_bytes_per_process: HEAP_BYTES, cpus: 2, ..SegmentPlan::new(1, 2) };
    let segment = Segment::create(&plan).ok()?;
    for slot in [RECEIVER, SENDER] {
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
    }
    segment.announce_membership();
    let _sender = Twin::start(|| {
        pin(second);
        let _ = Side::new(&segment, SENDER, end_ns).map(Side::send_all);
    })
    .ok()?;
    pin(first);
    Side::new(&segment, RECEIVER, end_ns)?.receive_all()
}

/// The shortest length from which on one copy is faster for all lengths.
fn finding_of(times: Times) -> Finding {
    let is_faster = |[two, one]: [u64; 2]| one as f64 <= SHARE_MAX * two as f64;
    let faster = times.iter().rev().take_while(|&&times| is_faster(times)).count();
    match faster {
        0 => Finding::Never,
        _ => Finding::FromKib(LENGTHS_KIB[LENGTHS_KIB.len() - faster]),
    }
}

/// Binds this thread to a processor. If that is refused, the probe is of wherever it runs.
fn pin(processor: usize) {
    let mut one = CpuSet::new();
    one.set(processor);
    let _ = sched_setaffinity(None, &one);
}

/// One of the two processes.
struct Side {
    kernel: Endpoint<SharedMemory>,
    data: Vec<u8>,
    /// A byte of each line that was read.
    lines: Vec<u8>,
    end_ns: u64,
}

impl Side {
    fn new(segment: &Segment, slot: u32, end_ns: u64) -> Option<Self> {
        let channel = SharedMemory::new(segment, slot)?;
        let kernel = Endpoint::new(channel, segment, slot)?;
        let longest = (LENGTHS_KIB[LENGTHS_KIB.len() - 1] << 10) as usize;
        let (data, lines) = (vec![0; longest], vec![0; longest / LINE_BYTES]);
        Some(Self { kernel, data, lines, end_ns })
    }

    /// Sends what the receiver asks for; `None` if the time was over before.
    fn send_all(mut self) -> Option<()> {
        for round in 0..ROUNDS {
            for (length, from) in LENGTHS_KIB.into_iter().flat_map(both_ways) {
                self.receive(0, RECEIVER)?;
                self.kernel.set_one_copy_from(from);
                self.data[..length].fill(black_box(round as u8));
                let area = self.area(length);
                match self.kernel.send(Peer(RECEIVER), CONTEXT, TAG, area).ok()? {
                    Started::Complete(_) => {}
                    Started::Pending(id) => self.finish(id)?,
                }
            }
        }
        Some(())
    }

    /// Asks for all messages and receives them; returns the least times, or `None` if there are too few.
    fn receive_all(mut self) -> Option<Times> {
        let mut least_ns = [[u64::MAX; 2]; LENGTHS_KIB.len()];
        for round in 0..ROUNDS {
            let Some(times_ns) = self.receive_round() else {
                return (round >= ROUNDS_MIN).then_some(least_ns);
            };
            if round > 0 {
                let all = least_ns.iter_mut().flatten().zip(times_ns.into_iter().flatten());
                all.for_each(|(least, time)| *least = time.min(*least));
            }
        }
        Some(least_ns)
    }

    fn receive_round(&mut self) -> Option<Times> {
        let mut times_ns = [[0; 2]; LENGTHS_KIB.len()];
        for (times_ns, kib) in times_ns.iter_mut().zip(LENGTHS_KIB) {
            for (time_ns, (length, _)) in times_ns.iter_mut().zip(both_ways(kib)) {
                let began_ns = now_ns();
                self.kernel.try_send(Peer(SENDER), CONTEXT, TAG, (&[][..]).into()).ok()?;
                self.receive(length, SENDER)?;
                self.read_lines(length);
                *time_ns = now_ns() - began_ns;
            }
        }
        Some(times_ns)
    }

    /// Reads a byte of each line of the data.
    fn read_lines(&mut self, length: usize) {
        let count = length / LINE_BYTES;
        let (from, to) =
            (Spread { start: 0, stride: LINE_BYTES as i64 }, Spread { start: 0, stride: 1 });
        let blocks = Blocks { length: 1, count: count as u64, beside: None };
        let lines = &mut self.lines[..count];
        Bytes::from(&self.data[..length]).copy_blocks_to_slice(from, lines, to, blocks);
        black_box(lines);
    }

    fn receive(&mut self, length: usize, from: u32) -> Option<()> {
        let wanted = Wanted { context: CONTEXT, source: Some(from), tag: Some(TAG) };
        let area = self.area(length);
        let id = self.kernel.receive(wanted, area);
        self.finish(id)
    }

    fn area(&mut self, length: usize) -> Area {
        let data = NonNull::from(&mut self.data[..length]);
        // SAFETY: the data are as long as the endpoint, which drops all requests before them, and nothing else uses them
        // before the request is complete or its endpoint is dropped.
        Area::contiguous(unsafe { Buffer::new(data.cast(), length) })
    }

    /// Makes progress until a request is complete; `None` if it failed or the time is over. Both processes poll: each has
    /// its processor, and a sleeping one would be measured as well.
    fn finish(&mut self, id: RequestId) -> Option<()> {
        while now_ns() < self.end_ns {
            self.kernel.progress();
            if let Some(completion) = self.kernel.take(id) {
                return completion.result.ok().map(drop);
            }
        }
        None
    }
}

/// A length in bytes, with the lengths from which one copy is taken: first never, then always.
fn both_ways(kib: u64) -> [(usize, u64); 2] {
    [OneCopy::NEVER, 1].map(|from| ((kib << 10) as usize, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_copy_is_taken_where_it_is_faster_for_all_longer_messages() {
        for (times, finding) in [
            ([[100, 50], [100, 50], [100, 90]], Finding::FromKib(64)),
            ([[100, 50], [100, 91], [100, 90]], Finding::FromKib(1_024)),
            ([[100, 200], [100, 60], [100, 80]], Finding::FromKib(256)),
            ([[100, 50], [100, 50], [100, 91]], Finding::Never),
            ([[u64::MAX, u64::MAX]; 3], Finding::Never),
        ] {
            assert_eq!(finding_of(times), finding, "{times:?}");
        }
    }
}
