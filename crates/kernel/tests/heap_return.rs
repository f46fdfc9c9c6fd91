//! Memory that a sender took from its heap returns, even if there was no room for the notice at first.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_kernel::{Area, Endpoint, Peer, Started, Wanted};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;

const HEAP_BYTES: u64 = 8 << 20;
/// Too long for a ring, so each takes a block; there are more messages than a ring has lines.
const MESSAGE_BYTES: usize = 20_000;
const MESSAGES: usize = 300;

fn area(values: &[u8]) -> Area {
    // SAFETY: the test keeps the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

#[test]
fn blocks_come_back_after_a_ring_was_full() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let plan = SegmentPlan { heap_bytes_per_process: HEAP_BYTES, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&plan);
    let [mut sender, mut receiver] = [0, 1].map(|slot| {
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..Default::default() };
        segment.set_slot_record(slot, alive);
        let near = SharedMemory::new(&segment, slot).expect("the slot is there");
        Endpoint::new(near, &segment, slot).expect("nobody has the slot's heap")
    });
    let data = vec![5u8; MESSAGE_BYTES];
    let sends: Vec<_> = (0..MESSAGES)
        .filter_map(|_| match sender.send(Peer(1), 1, 1, area(&data)).unwrap() {
            Started::Pending(id) => Some(id),
            Started::Complete(_) => None,
        })
        .collect();
    assert!(!sends.is_empty(), "the ring is full, so some wait");
    for _ in 0..1_000 {
        sender.progress();
    }
    let into = vec![0u8; MESSAGE_BYTES];
    for _ in 0..MESSAGES {
        let wanted = Wanted { context: 1, source: Some(0), tag: Some(1) };
        let id = receiver.receive(wanted, area(&into));
        while !receiver.is_done(id) {
            sender.progress();
            receiver.progress();
        }
        assert!(receiver.take(id).unwrap().result.is_ok() && into == data);
    }
    assert!(sends.into_iter().all(|id| sender.take(id).is_some_and(|sent| sent.result.is_ok())));
    let most = segment.plan().reserve() as usize - 4096;
    let whole = sender.allocate(most).expect("all blocks have come back");
    assert!(!whole.is_empty());
}
