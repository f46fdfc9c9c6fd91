//! The launcher's probe: from which length on one copy of a message by the kernel of the system is faster than two copies.
//!
//! The launcher and a child of it, on a processor each, send messages to and fro as two processes of a job do, over
//! endpoints and memory of their own. Each writes its data before it sends them and reads those that it receives, as
//! programs do. The longest messages come first, and a length for which one copy is slower ends the probe. It takes 5 ms at
//! most. If others use the processors, the time is over before the longest messages were measured, and the probe says so.

use std::hint::black_box;
use std::ptr::NonNull;

use landeck_host::fork::ForkedHelper;
use landeck_host::probed::Finding;
use landeck_kernel::{Area, Endpoint, Peer, RequestId, Started, Wanted};
use landeck_measure::processors::{first_two, keeping_place, pin};
use landeck_memory::process_memory::{allow_readers, name_readers};
use landeck_memory::system::now_ns;
use landeck_memory::{Blocks, Buffer, Bytes, Segment, SegmentPlan, SlotRecord, SlotState, Spread};
use landeck_transports::SharedMemory;
use landeck_wire::way::OneCopy;

/// The lengths, descending. Longer messages take too long, and count as the longest one. Shorter ones stay in two copies:
/// up to 256 KiB a send needs no receive, and no program may depend on a probe for that.
const LENGTHS_KIB: [u64; 2] = [512, 320];
const LONGEST_BYTES: usize = (LENGTHS_KIB[0] << 10) as usize;
/// The time for everything but the end of the child.
const LIMIT_NS: u64 = 4_500_000;
/// The round trips of each length in each way, of which the fastest counts.
const ROUND_TRIPS: usize = 2;
/// One copy is taken where it needs at most so much of the time of two.
const SHARE_MAX: f64 = 0.9;
/// The distance of bytes that the receiver reads: one in each cache line.
const LINE_BYTES: usize = 64;
const HEAP_BYTES: u64 = 4 << 20;
const LAUNCHER: u32 = 0;
const CHILD: u32 = 1;
const CONTEXT: u32 = 1;
const TAG: u32 = 0;

/// Measures this host within 5 ms. The calling process must have one thread.
pub(crate) fn measure() -> Finding {
    // Without two processors, all messages take turns.
    let Some(processors) = first_two() else { return Finding::Never };
    // Each reads the other.
    let with_readers_of = |ancestor| {
        name_readers(ancestor);
        allow_readers();
    };
    with_readers_of(std::process::id());
    // If the old place is refused, the job's processes still get processors of their own.
    let finding = keeping_place(|| measure_on(processors));
    with_readers_of(0);
    finding.unwrap_or(Finding::Disturbed(1))
}

/// Measures on these processors; `None` if the time was over or there was no second process.
fn measure_on([first, second]: [usize; 2]) -> Option<Finding> {
    let end_ns = now_ns() + LIMIT_NS;
    let plan =
        SegmentPlan { heap_bytes_per_process: HEAP_BYTES, cpus: 2, ..SegmentPlan::new(1, 2) };
    let segment = Segment::create(&plan).ok()?;
    for slot in [LAUNCHER, CHILD] {
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
    }
    segment.announce_membership();
    let _child = ForkedHelper::start(|| {
        pin(second);
        let _ = Side::new(&segment, CHILD, end_ns).map(Side::answer_all);
    })
    .ok()?;
    pin(first);
    let mut own = Side::new(&segment, LAUNCHER, end_ns)?;
    finding_of(|kib| own.least_ns(kib))
}

/// The finding from the least times of each length in two copies and in one; `None` if the longest has none.
fn finding_of(mut least_ns: impl FnMut(u64) -> Option<[u64; 2]>) -> Option<Finding> {
    let mut finding = None;
    for kib in LENGTHS_KIB {
        let Some([two, one]) = least_ns(kib) else { break };
        if one as f64 > SHARE_MAX * two as f64 {
            return Some(finding.unwrap_or(Finding::Never));
        }
        finding = Some(Finding::FromKib(kib));
    }
    finding
}

/// One of the two processes.
struct Side {
    kernel: Endpoint<SharedMemory>,
    other: u32,
    own: Vec<u8>,
    others: Vec<u8>,
    /// A byte of each line that was read.
    lines: Vec<u8>,
    end_ns: u64,
}

impl Side {
    fn new(segment: &Segment, slot: u32, end_ns: u64) -> Option<Self> {
        let channel = SharedMemory::new(segment, slot)?;
        let kernel = Endpoint::new(channel, segment, slot)?;
        let other = LAUNCHER + CHILD - slot;
        // The memory is touched before anything is measured.
        let touched = || vec![1; LONGEST_BYTES];
        let lines = vec![1; LONGEST_BYTES / LINE_BYTES];
        Some(Self { kernel, other, own: touched(), others: touched(), lines, end_ns })
    }

    /// Answers all messages of the launcher; `None` if the time was over before.
    fn answer_all(mut self) -> Option<()> {
        for length in LENGTHS_KIB.map(bytes_of) {
            for from in [OneCopy::NEVER, 1].repeat(ROUND_TRIPS) {
                self.receive(length)?;
                self.send(length, from)?;
            }
        }
        Some(())
    }

    /// The least times of a round trip in two copies and in one; `None` if the time is over.
    fn least_ns(&mut self, kib: u64) -> Option<[u64; 2]> {
        let mut least_ns = [u64::MAX; 2];
        for _ in 0..ROUND_TRIPS {
            for (least_ns, from) in least_ns.iter_mut().zip([OneCopy::NEVER, 1]) {
                let began_ns = now_ns();
                self.send(bytes_of(kib), from)?;
                self.receive(bytes_of(kib))?;
                *least_ns = (now_ns() - began_ns).min(*least_ns);
            }
        }
        Some(least_ns)
    }

    /// Writes data and sends them, in one copy from a length on.
    fn send(&mut self, length: usize, from: u64) -> Option<()> {
        self.kernel.set_one_copy_from(from);
        let data = &mut self.own[..length];
        data.fill(black_box(data[0].wrapping_add(1)));
        let area = area(data);
        match self.kernel.send(Peer(self.other), CONTEXT, TAG, area).ok()? {
            Started::Complete(_) => Some(()),
            Started::Pending(id) => self.finish(id),
        }
    }

    /// Receives data and reads a byte of each line.
    fn receive(&mut self, length: usize) -> Option<()> {
        let wanted = Wanted { context: CONTEXT, source: Some(self.other), tag: Some(TAG) };
        let id = self.kernel.receive(wanted, area(&mut self.others[..length]));
        self.finish(id)?;
        let count = length / LINE_BYTES;
        let at = |stride| Spread { start: 0, stride };
        let blocks = Blocks { length: 1, count: count as u64, beside: None };
        let lines = &mut self.lines[..count];
        let data = Bytes::from(&self.others[..length]);
        data.copy_blocks_to_slice(at(LINE_BYTES as i64), lines, at(1), blocks);
        black_box(lines);
        Some(())
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

const fn bytes_of(kib: u64) -> usize {
    (kib << 10) as usize
}

/// The area of data of a [`Side`].
fn area(data: &mut [u8]) -> Area {
    // SAFETY: the side's endpoint drops all requests before the side drops its data, and nothing else uses them before the
    // request is complete or the side is dropped.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(&mut *data).cast(), data.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_copy_is_taken_where_it_is_faster_for_all_longer_messages() {
        let over = None;
        let times = |two, one| Some([two, one]);
        for (of, finding) in [
            ([times(100, 90), times(100, 50)], Some(Finding::FromKib(320))),
            ([times(100, 90), times(100, 91)], Some(Finding::FromKib(512))),
            ([times(100, 91), times(100, 50)], Some(Finding::Never)),
            ([times(100, 90), over], Some(Finding::FromKib(512))),
            ([over, over], None),
        ] {
            let mut left = of.into_iter();
            assert_eq!(finding_of(|_| left.next()?), finding, "{of:?}");
        }
    }
}
