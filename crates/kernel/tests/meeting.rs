//! Synchronous sends, which complete when they meet their receive; matched probes; and operations that are cancelled
//! because they have met no match.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Status, Wanted};
use landeck_layout::{Bounds, Kind, Layout};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;

type Kernel = Endpoint<SharedMemory>;

fn both() -> [Kernel; 2] {
    let plan = SegmentPlan { heap_bytes_per_process: 16 << 20, cpus: 2, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&plan);
    for slot in 0..2 {
        let state = SlotState::Alive;
        segment
            .set_slot_record(slot, SlotRecord { state, incarnation: 1, ..SlotRecord::default() });
    }
    segment.announce_membership();
    [0, 1].map(|slot| {
        Endpoint::new(SharedMemory::new(&segment, slot).unwrap(), &segment, slot).unwrap()
    })
}

/// The memory of a vector that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn wanted(source: u32, tag: u32) -> Wanted {
    Wanted { context: 1, source: Some(source), tag: Some(tag) }
}

fn pending(started: Started) -> RequestId {
    match started {
        Started::Pending(id) => id,
        Started::Complete(status) => panic!("it is over: {status:?}"),
    }
}

fn look(both: &mut [Kernel; 2]) {
    for _ in 0..4 {
        both.iter_mut().for_each(|kernel| {
            kernel.progress();
        });
    }
}

fn finish(both: &mut [Kernel; 2], at: usize, id: RequestId) -> Result<Status, Failure> {
    loop {
        look(both);
        if let Some(completion) = both[at].take(id) {
            return completion.result;
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8)).collect()
}

const LENGTHS: [usize; 7] = [0, 8, 48, 49, 16_385, 262_145, 3_000_000];

#[test]
fn a_synchronous_send_is_over_when_it_is_received_and_not_before() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    for length in LENGTHS {
        for is_expected in [false, true] {
            let (data, into) = (pattern(length), vec![0; length]);
            let early = is_expected.then(|| both[1].receive(wanted(0, 3), area(&into)));
            let send = pending(both[0].send_synchronous(Peer(1), 1, 3, area(&data)).unwrap());
            if !is_expected {
                look(&mut both);
                assert!(!both[0].is_done(send), "{length} bytes");
                assert!(both[0].has_unfinished_sends());
                assert_eq!(both[1].probe(wanted(0, 3)).unwrap().bytes, length as u64);
            }
            let receive = early.unwrap_or_else(|| both[1].receive(wanted(0, 3), area(&into)));
            let status = finish(&mut both, 1, receive).unwrap();
            assert_eq!((status.peer, status.bytes), (Peer(0), length as u64));
            assert_eq!(finish(&mut both, 0, send).unwrap().bytes, length as u64);
            assert!(into == data, "{length} bytes, expected {is_expected}");
        }
    }
    assert!(!both[0].has_unfinished_sends());
}

#[test]
fn synchronous_and_other_sends_keep_their_order() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    let data: Vec<Vec<u8>> = (0..60u8).map(|number| vec![number; 10]).collect();
    let send = |kernel: &mut Kernel, number: usize| match number % 3 {
        0 => kernel.send_synchronous(Peer(1), 1, 3, area(&data[number])).unwrap(),
        _ => kernel.send(Peer(1), 1, 3, area(&data[number])).unwrap(),
    };
    let sends: Vec<Started> = (0..data.len()).map(|number| send(&mut both[0], number)).collect();
    for expected in &data {
        let into = vec![0; 10];
        let receive = both[1].receive(wanted(0, 3), area(&into));
        finish(&mut both, 1, receive).unwrap();
        assert_eq!(&into, expected);
    }
    for started in sends {
        if let Started::Pending(id) = started {
            finish(&mut both, 0, id).unwrap();
        }
    }
}

#[test]
fn a_message_that_is_held_is_nobody_elses() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    for length in LENGTHS {
        let (first, second) = (pattern(length), vec![7; 5]);
        let started = both[0].send(Peer(1), 1, 3, area(&first)).unwrap();
        both[0].send(Peer(1), 1, 3, area(&second)).unwrap();
        look(&mut both);
        let (held, status) = both[1].hold(wanted(0, 3)).unwrap();
        assert_eq!((status.peer, status.bytes), (Peer(0), length as u64));
        let (into_first, into_second) = (vec![0; length], vec![0; 5]);
        let receive = both[1].receive(wanted(0, 3), area(&into_second));
        assert_eq!(finish(&mut both, 1, receive).unwrap().bytes, 5);
        assert!(!both[1].is_done(held), "{length} bytes");
        both[1].receive_held(held, area(&into_first));
        assert_eq!(finish(&mut both, 1, held).unwrap().bytes, length as u64);
        assert!(into_first == first && into_second == second, "{length} bytes");
        if let Started::Pending(id) = started {
            finish(&mut both, 0, id).unwrap();
        }
    }
    assert!(both[1].hold(wanted(0, 3)).is_none());
}

#[test]
fn a_message_that_is_held_and_given_up_takes_no_room() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    let data = pattern(100_000);
    for _ in 0..300 {
        both[0].send(Peer(1), 1, 3, area(&data)).unwrap();
        look(&mut both);
        let (held, _) = both[1].hold(wanted(0, 3)).unwrap();
        both[1].abandon(held);
    }
    both[1].progress_thoroughly();
    assert!(both[0].heap_in_use() < 1_000_000, "{}", both[0].heap_in_use());
}

#[test]
fn a_send_that_has_met_nobody_is_taken_back() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    for length in LENGTHS {
        let data = pattern(length);
        let send = pending(both[0].send_synchronous(Peer(1), 1, 3, area(&data)).unwrap());
        look(&mut both);
        both[0].cancel(send);
        assert!(finish(&mut both, 0, send).unwrap().cancelled, "{length} bytes");
        assert!(both[1].probe(wanted(0, 3)).is_none(), "{length} bytes");
    }
    let data = pattern(3_000_000);
    let send = pending(both[0].send(Peer(1), 1, 3, area(&data)).unwrap());
    look(&mut both);
    both[0].cancel(send);
    assert!(finish(&mut both, 0, send).unwrap().cancelled);
    assert!(both[1].probe(wanted(0, 3)).is_none());
    assert_eq!(both[0].heap_in_use(), 0);
}

#[test]
fn a_send_that_has_met_its_receive_goes_on() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    for (length, is_held) in [(8, false), (8, true), (3_000_000, false)] {
        let (data, into) = (pattern(length), vec![0; length]);
        let send = pending(both[0].send_synchronous(Peer(1), 1, 3, area(&data)).unwrap());
        look(&mut both);
        let receive = if is_held {
            both[1].hold(wanted(0, 3)).unwrap().0
        } else {
            both[1].receive(wanted(0, 3), area(&into))
        };
        both[0].cancel(send);
        look(&mut both);
        both[1].receive_held(receive, area(&into));
        assert!(!finish(&mut both, 1, receive).unwrap().cancelled);
        assert!(!finish(&mut both, 0, send).unwrap().cancelled);
        assert!(into == data);
    }
}

#[test]
fn a_send_that_has_met_nobody_ends_with_its_context() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    let data = pattern(8);
    let send = pending(both[0].send_synchronous(Peer(1), 1, 3, area(&data)).unwrap());
    look(&mut both);
    both[0].revoke(1);
    assert_eq!(finish(&mut both, 0, send), Err(Failure::Revoked));
}

#[test]
fn parts_that_lie_apart_travel_on_every_path() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    let triple = Layout::elements(Kind::BYTE, 3).unwrap().resized(Bounds { lower: 0, upper: 7 });
    for count in [1u64, 10, 16, 17, 5_000, 6_000, 400_000] {
        let (data, into) = (pattern(7 * count as usize), vec![0; 7 * count as usize]);
        let spread = |values: &[u8]| {
            let buffer = area(values).as_buffer().unwrap();
            Area::with_layout(buffer, 0, &triple, count).unwrap()
        };
        for is_synchronous in [false, true] {
            let (from, to) = (spread(&data), spread(&into));
            let started = match is_synchronous {
                true => both[0].send_synchronous(Peer(1), 1, 3, from).unwrap(),
                false => both[0].send(Peer(1), 1, 3, from).unwrap(),
            };
            let receive = both[1].receive(wanted(0, 3), to);
            assert_eq!(finish(&mut both, 1, receive).unwrap().bytes, 3 * count);
            if let Started::Pending(id) = started {
                finish(&mut both, 0, id).unwrap();
            }
            let is_right =
                |(at, (&got, &sent)): (usize, (&u8, &u8))| got == if at % 7 < 3 { sent } else { 0 };
            assert!(into.iter().zip(&data).enumerate().all(is_right), "{count} items");
        }
    }
}

#[test]
fn every_end_is_a_change() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut both = both();
    let into = vec![0; 300_000];
    for length in [0, 8, 300_000] {
        let data = pattern(length);
        let receive = both[1].receive(wanted(0, 3), area(&into));
        let before = both[1].changes();
        both[0].send(Peer(1), 1, 3, area(&data)).unwrap();
        while both[1].changes() == before {
            assert!(!both[1].is_done(receive), "{length} bytes");
            both.iter_mut().for_each(|kernel| {
                kernel.progress();
            });
        }
        both[1].take(receive).unwrap();
    }
    let receive = both[1].receive(wanted(0, 3), area(&into));
    let before = both[1].changes();
    both[1].cancel(receive);
    assert_ne!(both[1].changes(), before);
}
