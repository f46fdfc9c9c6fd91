//! A heap is full of messages that nobody receives yet: messages sent past them to others must arrive.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_kernel::{Area, Endpoint, Peer, RequestId, Started, Wanted};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;

type Kernel = Endpoint<SharedMemory>;

const LENGTH: usize = 1 << 20;
/// The number of messages, each in a context of its own: more than the heap has windows for.
const MESSAGES: u32 = 80;
const LIMIT: Duration = Duration::from_secs(200);

fn three() -> [Kernel; 3] {
    let plan = SegmentPlan { heap_bytes_per_process: 4 << 20, cpus: 3, ..SegmentPlan::new(7, 3) };
    let segment = Segment::local(&plan);
    for slot in 0..3 {
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
    }
    segment.announce_membership();
    [0, 1, 2].map(|slot| {
        let near = SharedMemory::new(&segment, slot).unwrap();
        Endpoint::new(near, &segment, slot).unwrap()
    })
}

/// The memory of a vector that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn send(kernel: &mut Kernel, to: u32, context: u32, values: &[u8]) -> Option<RequestId> {
    match kernel.send(Peer(to), context, 0, area(values)).unwrap() {
        Started::Complete(_) => None,
        Started::Pending(id) => Some(id),
    }
}

fn receive(kernel: &mut Kernel, context: u32, values: &mut [u8]) -> RequestId {
    kernel.receive(Wanted { context, source: Some(0), tag: Some(0) }, area(values))
}

#[test]
fn a_message_to_another_goes_past_those_that_fill_the_heap() {
    let _watchdog = Watchdog::start(LIMIT);
    let [mut sender, mut late, mut other] = three();
    let values: Vec<Vec<u8>> = (0..=MESSAGES).map(|number| vec![number as u8; LENGTH]).collect();
    let sent: Vec<_> = (0..MESSAGES)
        .filter_map(|context| send(&mut sender, 1, context, &values[context as usize]))
        .collect();
    let past = send(&mut sender, 2, 0, &values[MESSAGES as usize]).expect("it has no room");
    let mut came = vec![0; LENGTH];
    let expected = receive(&mut other, 0, &mut came);
    while !other.is_done(expected) {
        // A process does this before it sleeps.
        sender.progress_thoroughly();
        other.progress();
    }
    assert_eq!(came, values[MESSAGES as usize]);
    while !sender.is_done(past) {
        sender.progress();
    }
    assert!(sent.iter().all(|&id| !sender.is_done(id)), "nobody has received them");
    // Then the others, in whatever order they are received.
    for context in (0..MESSAGES).rev() {
        let expected = receive(&mut late, context, &mut came);
        while !late.is_done(expected) {
            sender.progress_thoroughly();
            late.progress();
        }
        assert!(late.take(expected).unwrap().result.is_ok());
        assert_eq!(came, values[context as usize]);
    }
    while !sent.iter().all(|&id| sender.is_done(id)) {
        sender.progress();
    }
    assert!(!sender.has_unfinished_sends());
}
