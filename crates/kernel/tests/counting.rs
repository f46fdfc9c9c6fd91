//! The counters of sent messages agree with the channel's traffic, as the recorder sees it.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_channel::recorder::{Record, Recorder};
use landeck_kernel::mailboxes::FIRST_MAILBOX;
use landeck_kernel::{Area, Endpoint, Peer, Started, Wanted};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::Kind;

type Kernel = Endpoint<Recorder<SharedMemory>>;

fn kernels(segment: &Segment) -> [Kernel; 2] {
    for slot in 0..2 {
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, alive);
    }
    segment.announce_membership();
    [0, 1].map(|slot| {
        let channel = Recorder::new(SharedMemory::new(segment, slot).unwrap());
        Endpoint::new(channel, segment, slot).unwrap()
    })
}

fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the values until the requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

/// Sends one message from 0 to 1.
fn pass(both: &mut [Kernel; 2], length: usize) {
    let (data, into) = (vec![3u8; length], vec![0u8; length]);
    let wanted = Wanted { context: 1, source: Some(0), tag: Some(2) };
    let received = both[1].receive(wanted, area(&into));
    let sent = both[0].send(Peer(1), 1, 2, area(&data)).unwrap();
    let mut is_sent = matches!(sent, Started::Complete(_));
    let mut has_come = false;
    while !(is_sent && has_come) {
        both.iter_mut().for_each(|kernel| {
            kernel.progress();
        });
        if let Started::Pending(id) = sent {
            is_sent |= both[0].take(id).is_some();
        }
        has_come |= both[1].take(received).is_some();
    }
    assert_eq!(into, data);
}

/// The number of messages that have begun; other traffic only concerns them.
fn begun(record: &Record) -> u64 {
    let kinds = [Kind::Eager, Kind::Reference, Kind::InCell, Kind::Offer];
    kinds.into_iter().map(|kind| record.of_kind(kind).messages).sum()
}

#[test]
fn a_message_is_counted_once_whatever_passes_for_it() {
    const ROUNDS: u64 = 20;
    const LENGTHS: [usize; 8] = [0, 8, 48, 49, 4_096, 16_385, 262_145, 1_000_000];
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let plan = SegmentPlan { heap_bytes_per_process: 16 << 20, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&plan);
    let mut both = kernels(&segment);
    for round in 1..=ROUNDS {
        for length in LENGTHS {
            pass(&mut both, length);
        }
        let all = round * LENGTHS.len() as u64;
        assert_eq!(begun(both[0].near_mut().sent()), all);
        assert_eq!(begun(both[1].near_mut().arrived()), all);
        assert_eq!(begun(both[1].near_mut().sent()), 0);
        assert_eq!(segment.counters(0).messages_sent, all);
        assert_eq!(segment.counters(1).messages_received, all);
        assert_eq!(segment.counters(1).messages_sent, 0);
    }
}

/// Checks that messages which wait for room are counted once: messages of a few bytes in contexts of mailboxes, as
/// between a group and its server. Many of them wait for room, and each is tried again and again.
#[test]
fn messages_that_wait_for_room_are_counted_once() {
    const MESSAGES: u64 = 5_000;
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let plan = SegmentPlan { heap_bytes_per_process: 16 << 20, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&plan);
    let mut both = kernels(&segment);
    let mailbox = FIRST_MAILBOX | 1;
    assert!(both[1].open_mailbox(mailbox));
    let (words, into) = ([5u8; 16], [0u8; 16]);
    let length = |number: u64| if number.is_multiple_of(2) { 0 } else { words.len() };
    let mut waiting = Vec::new();
    for number in 0..MESSAGES {
        let started = both[0].send(Peer(1), mailbox, 2, area(&words[..length(number)])).unwrap();
        if let Started::Pending(id) = started {
            waiting.push(id);
        }
    }
    assert!(!waiting.is_empty(), "some had no room");
    assert!(begun(both[0].near_mut().sent()) < MESSAGES);
    for number in 0..MESSAGES {
        let wanted = Wanted { context: mailbox, source: Some(0), tag: Some(2) };
        let received = both[1].receive(wanted, area(&into[..length(number)]));
        while both[1].take(received).is_none() {
            both.iter_mut().for_each(|kernel| {
                kernel.progress();
            });
        }
    }
    waiting.retain(|id| both[0].take(*id).is_none());
    assert!(waiting.is_empty());
    assert_eq!(begun(both[0].near_mut().sent()), MESSAGES);
    assert_eq!(begun(both[1].near_mut().arrived()), MESSAGES);
    assert_eq!(segment.counters(0).messages_sent, MESSAGES);
    assert_eq!(segment.counters(1).messages_received, MESSAGES);
}
