//! Joint contexts: no member waits for one that has given up because a third one is gone.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Wanted};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;

const JOINT: u32 = 3;
const OTHER: u32 = 5;
/// The member that dies or leaves.
const THIRD: u32 = 2;
/// More than the heap has: the sender fills while the receiver drains.
const LONG_BYTES: usize = 16 << 20;

type End = Endpoint<SharedMemory>;

fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the values until their requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn set_state(segment: &Segment, slot: u32, state: SlotState) {
    segment.set_slot_record(slot, SlotRecord { state, incarnation: 1, ..SlotRecord::default() });
    segment.announce_membership();
}

/// A segment with three processes, and the endpoints of two of them in both contexts.
fn two() -> (Watchdog, Segment, [End; 2]) {
    let plan = SegmentPlan { heap_bytes_per_process: 4 << 20, ..SegmentPlan::new(7, 3) };
    let segment = Segment::local(&plan);
    (0..3).for_each(|slot| set_state(&segment, slot, SlotState::Alive));
    let ends = [0, 1].map(|slot| {
        let near = SharedMemory::new(&segment, slot).unwrap();
        let mut end = Endpoint::new(near, &segment, slot).unwrap();
        let members = [0, 1, THIRD].map(Peer).to_vec();
        end.set_members(JOINT, members.clone());
        end.set_members(OTHER, members);
        end.make_joint(JOINT);
        end
    });
    (Watchdog::start(Duration::from_secs(200)), segment, ends)
}

fn from_first(context: u32, tag: u32) -> Wanted {
    Wanted { context, source: Some(0), tag: Some(tag) }
}

fn pending(started: Started) -> RequestId {
    match started {
        Started::Pending(id) => id,
        Started::Complete(_) => panic!("it should have to wait"),
    }
}

fn is_third(failure: &Failure) -> bool {
    matches!(failure, Failure::PeerGone { peer: Peer(THIRD), died: true })
}

fn names_third(end: &mut End, id: RequestId) -> bool {
    end.refresh();
    end.take(id).is_some_and(|ended| is_third(&ended.result.unwrap_err()))
}

#[test]
fn operations_between_the_living_end_with_the_death_of_a_third_one() {
    let (_watchdog, segment, [mut sender, mut receiver]) = two();
    let (data, into) = (vec![5u8; LONG_BYTES], vec![0u8; LONG_BYTES]);
    let unsent = receiver.receive(from_first(JOINT, 9), area(&into));
    let receives = [1, 2].map(|tag| receiver.receive(from_first(JOINT, tag), area(&into)));
    let sends = [
        pending(sender.send(Peer(1), JOINT, 1, area(&data)).unwrap()),
        pending(sender.send_synchronous(Peer(1), JOINT, 2, area(&data)).unwrap()),
        pending(sender.send(Peer(1), JOINT, 3, area(&data)).unwrap()),
    ];
    let other = receiver.receive(from_first(OTHER, 1), area(&into));
    for _ in 0..4 {
        receiver.progress();
        sender.progress();
    }
    set_state(&segment, THIRD, SlotState::Dead);
    assert!(sends.into_iter().all(|id| names_third(&mut sender, id)));
    assert!(receives.into_iter().chain([unsent]).all(|id| names_third(&mut receiver, id)));
    receiver.refresh();
    assert!(!receiver.is_done(other), "it needs the living alone");
    sender.send(Peer(1), OTHER, 1, area(&[7])).unwrap();
    while !receiver.is_done(other) {
        receiver.progress();
        sender.progress();
    }
}

#[test]
fn messages_that_were_sent_before_the_death_still_count() {
    let (_watchdog, segment, [mut sender, mut receiver]) = two();
    let into = [[0u8; 3]; 2];
    let posted = receiver.receive(from_first(JOINT, 1), area(&into[0]));
    for tag in [1, 2] {
        sender.send(Peer(1), JOINT, tag, area(&[1, 2, 3])).unwrap();
    }
    set_state(&segment, THIRD, SlotState::Dead);
    receiver.refresh();
    let later = receiver.receive(from_first(JOINT, 2), area(&into[1]));
    for id in [posted, later] {
        assert_eq!(receiver.verdict(id), None);
        assert!(receiver.take(id).unwrap().result.is_ok());
    }
    assert_eq!(into, [[1, 2, 3]; 2]);
}

#[test]
fn the_member_that_needs_the_departed_tells_those_that_wait_for_itself() {
    for is_receive in [true, false] {
        let (_watchdog, segment, [mut first, mut second]) = two();
        let into = [0u8; 3];
        let waits = second.receive(from_first(JOINT, 1), area(&into));
        let other = second.receive(from_first(OTHER, 1), area(&into));
        set_state(&segment, THIRD, SlotState::Departed);
        second.progress_thoroughly();
        assert_eq!(second.verdict(waits), None);
        assert!(!second.is_done(waits), "the first may do without the departed");
        let departed = |failure: &Failure| {
            matches!(failure, Failure::PeerGone { peer: Peer(THIRD), died: false })
        };
        if is_receive {
            let wanted = Wanted { context: JOINT, source: Some(THIRD), tag: Some(1) };
            let needs = first.receive(wanted, area(&into));
            assert_eq!(first.verdict_of_look(needs), None);
            assert!(departed(&first.take(needs).unwrap().result.unwrap_err()));
        } else {
            assert!(departed(&first.send(Peer(THIRD), JOINT, 1, area(&[1])).unwrap_err()));
        }
        // The first makes no further call.
        while !second.is_done(waits) {
            second.progress_thoroughly();
        }
        assert!(departed(&second.take(waits).unwrap().result.unwrap_err()));
        let later = second.receive(from_first(JOINT, 2), area(&into));
        assert_eq!(second.verdict_of_look(later), None);
        assert!(departed(&second.take(later).unwrap().result.unwrap_err()));
        assert!(!second.is_done(other));
    }
}

#[test]
fn nothing_begins_after_the_death_and_a_departure_is_none() {
    let (_watchdog, segment, [mut sender, mut receiver]) = two();
    let into = [0u8; 3];
    set_state(&segment, THIRD, SlotState::Departed);
    assert!(sender.send(Peer(1), JOINT, 1, area(&[1, 2, 3])).is_ok());
    let received = receiver.receive(from_first(JOINT, 1), area(&into));
    receiver.progress();
    assert!(receiver.take(received).unwrap().result.is_ok());

    let (_watchdog, segment, [mut sender, mut receiver]) = two();
    set_state(&segment, THIRD, SlotState::Dead);
    assert!(is_third(&sender.send(Peer(1), JOINT, 1, area(&[1])).unwrap_err()));
    assert!(sender.send(Peer(1), OTHER, 1, area(&[1])).is_ok());
    for look in [End::verdict, End::verdict_of_look] {
        let posted = receiver.receive(from_first(JOINT, 2), area(&into));
        assert_eq!(look(&mut receiver, posted), None);
        assert!(names_third(&mut receiver, posted));
    }
}
