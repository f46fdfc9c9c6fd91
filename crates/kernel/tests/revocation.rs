//! A revocation ends operations on both sides, keeps nothing, and is noticed even if its revoker dies.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use landeck_board::{Board, LinesPlace};
use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Wanted};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;

const CONTEXT: u32 = 3;
const COLLECTIVE: u32 = 4;
const OTHER: u32 = 5;
const HEAP_BYTES: u64 = 4 << 20;
/// More than the heap has: the sender fills while the receiver drains.
const LONG_BYTES: usize = 16 << 20;

type End = Endpoint<SharedMemory>;

fn area(values: &[u8]) -> Area {
    // SAFETY: the test keeps the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn alive() -> SlotRecord {
    SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() }
}

/// A segment with three processes, the endpoints of two, and the board of their context.
fn two() -> (Segment, [End; 2], Board) {
    let plan = SegmentPlan { heap_bytes_per_process: HEAP_BYTES, ..SegmentPlan::new(7, 3) };
    let segment = Segment::local(&plan);
    (0..3).for_each(|slot| segment.set_slot_record(slot, alive()));
    let ends = [0, 1].map(|slot| {
        let near = SharedMemory::new(&segment, slot).unwrap();
        let mut end = Endpoint::new(near, &segment, slot).unwrap();
        end.set_board(CONTEXT, COLLECTIVE, segment.plan().world_board());
        end
    });
    let lines: Vec<_> = (0..3).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
    let board = Board::open(&segment, segment.plan().world_board(), &lines, 2).unwrap();
    (segment, ends, board)
}

fn pending(started: Started) -> RequestId {
    match started {
        Started::Pending(id) => id,
        Started::Complete(_) => panic!("it should have to wait"),
    }
}

fn is_revoked(end: &mut End, id: RequestId) -> bool {
    end.refresh();
    end.take(id).is_some_and(|ended| matches!(ended.result, Err(Failure::Revoked)))
}

#[test]
fn transfers_in_the_middle_end_on_both_sides_and_give_back_what_they_took() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (_segment, [mut sender, mut receiver], board) = two();
    let (data, into) = (vec![5u8; LONG_BYTES], vec![0u8; LONG_BYTES]);
    let asked =
        receiver.receive(Wanted { context: CONTEXT, source: Some(0), tag: Some(1) }, area(&into));
    let sends = [1, 2].map(|tag| pending(sender.send(Peer(1), CONTEXT, tag, area(&data)).unwrap()));
    let asked_for_parts =
        receiver.receive(Wanted { context: CONTEXT, source: Some(0), tag: Some(3) }, area(&into));
    let in_parts = pending(sender.send_synchronous(Peer(1), CONTEXT, 3, area(&data)).unwrap());
    let collective =
        receiver.receive(Wanted { context: COLLECTIVE, source: None, tag: None }, area(&into));
    let other =
        receiver.receive(Wanted { context: OTHER, source: Some(0), tag: Some(9) }, area(&into));
    (0..4).for_each(|_| {
        receiver.progress();
        sender.progress();
    });
    board.revoke();
    assert!(sends.into_iter().chain([in_parts]).all(|id| is_revoked(&mut sender, id)));
    assert!(
        [asked, asked_for_parts, collective].into_iter().all(|id| is_revoked(&mut receiver, id))
    );
    assert!(matches!(sender.send(Peer(1), COLLECTIVE, 1, area(&data)), Err(Failure::Revoked)));
    (0..4).for_each(|_| {
        receiver.progress_thoroughly();
        sender.progress_thoroughly();
    });
    assert_eq!(sender.heap_in_use(), 0, "nobody holds any of it");
    assert!(!receiver.is_done(other), "what is not revoked goes on");
    sender.send(Peer(1), OTHER, 9, area(&[7])).unwrap();
    while !receiver.is_done(other) {
        receiver.progress();
    }
}

#[test]
fn a_message_in_a_revoked_context_is_not_kept() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (_segment, [mut sender, mut receiver], board) = two();
    let data = vec![5u8; 100_000];
    sender.send(Peer(1), CONTEXT, 1, area(&[1, 2, 3])).unwrap();
    sender.send(Peer(1), CONTEXT, 2, area(&data)).unwrap();
    board.revoke();
    receiver.refresh();
    (0..4).for_each(|_| {
        receiver.progress_thoroughly();
        sender.progress_thoroughly();
    });
    assert_eq!(receiver.probe(Wanted { context: CONTEXT, source: None, tag: None }), None);
    assert_eq!(sender.heap_in_use(), 0);
}

#[test]
fn a_revoker_that_dies_before_it_has_told_anybody_is_noticed_by_its_death() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (segment, [mut end, _], board) = two();
    let into = vec![0u8; 8];
    let id = end.receive(Wanted { context: CONTEXT, source: Some(1), tag: None }, area(&into));
    end.refresh();
    // The revoker has only done this one store.
    const REVOKED_WORD: u64 = 64;
    let place =
        segment.bytes().part((segment.plan().world_board() + REVOKED_WORD) as usize, 4).start();
    // SAFETY: four aligned bytes of the segment, which lives; all use them atomically.
    unsafe { place.cast::<AtomicU32>().as_ref() }.store(1, Ordering::SeqCst);
    assert!(board.is_revoked());
    assert!(!is_revoked(&mut end, id), "nothing has made it look");
    segment.set_slot_record(2, SlotRecord { state: SlotState::Dead, ..alive() });
    segment.announce_membership();
    assert!(is_revoked(&mut end, id));
}
