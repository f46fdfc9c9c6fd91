//! Endpoints that share memory, each driven by hand or by a thread of its own.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_channel::Channel;
use landeck_channel::loopback::Wires;
use landeck_kernel::{
    Area, Completion, Endpoint, Failure, Peer, Received, RequestId, Started, Wanted,
};
use landeck_layout::{Family, Kind, Layout};
use landeck_memory::{Buffer, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Reference};

use crate::counting_network::CountingNetwork;

type Kernel = Endpoint<SharedMemory>;

fn segment(processes: u32) -> Segment {
    let plan =
        SegmentPlan { heap_bytes_per_process: 16 << 20, cpus: 2, ..SegmentPlan::new(7, processes) };
    let segment = Segment::local(&plan);
    for slot in 0..processes {
        set_state(&segment, slot, SlotState::Alive);
    }
    segment
}

fn set_state(segment: &Segment, slot: u32, state: SlotState) {
    segment.set_slot_record(slot, SlotRecord { state, incarnation: 1, ..SlotRecord::default() });
    segment.announce_membership();
}

fn kernels(segment: &Segment, count: u32) -> Vec<Kernel> {
    let kernel =
        |slot| Endpoint::new(SharedMemory::new(segment, slot).unwrap(), segment, slot).unwrap();
    (0..count).map(kernel).collect()
}

/// The memory of a vector that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn any(context: u32) -> Wanted {
    Wanted { context, source: None, tag: None }
}

fn from(source: u32, tag: u32) -> Wanted {
    Wanted { context: 1, source: Some(source), tag: Some(tag) }
}

/// Lets all kernels make progress until the request is complete.
fn finish(kernels: &mut [Kernel], at: usize, id: RequestId) -> Completion {
    loop {
        for kernel in kernels.iter_mut() {
            kernel.progress();
        }
        if let Some(completion) = kernels[at].take(id) {
            return completion;
        }
    }
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed).wrapping_add((at >> 8) as u8))
        .collect()
}

const LENGTHS: [usize; 16] = [
    0, 1, 8, 47, 48, 49, 64, 1000, 4096, 16_384, 16_385, 65_536, 262_144, 262_145, 1_000_003,
    9_000_000,
];

#[test]
fn every_length_arrives_whole_expected_or_not() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    for round in 0..3u8 {
        for (tag, length) in (0u32..).zip(LENGTHS) {
            for expected in [false, true] {
                let data = pattern(length, round);
                let into = vec![0u8; length];
                let early = expected.then(|| both[1].receive(from(0, tag), area(&into)));
                let sent = both[0].send(Peer(1), 1, tag, area(&data)).unwrap();
                both[1].progress();
                let id = early.unwrap_or_else(|| both[1].receive(from(0, tag), area(&into)));
                let status = finish(&mut both, 1, id).result.unwrap();
                assert_eq!((status.peer, status.tag, status.bytes), (Peer(0), tag, length as u64));
                if let Started::Pending(id) = sent {
                    finish(&mut both, 0, id).result.unwrap();
                }
                assert!(into == data, "{length} bytes, expected {expected}");
            }
        }
    }
}

#[test]
fn messages_of_all_paths_stay_in_order() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    let lengths = [8, 20_000, 8, 100, 300_000, 48, 16_384, 500_000, 1];
    let data: Vec<Vec<u8>> =
        (0..90).map(|number| pattern(lengths[number % lengths.len()], number as u8)).collect();
    let mut sends = Vec::new();
    for data in &data {
        if let Started::Pending(id) = both[0].send(Peer(1), 1, 5, area(data)).unwrap() {
            sends.push(id);
        }
    }
    for expected in &data {
        let into = vec![0u8; expected.len()];
        let id = both[1].receive(from(0, 5), area(&into));
        finish(&mut both, 1, id).result.unwrap();
        assert!(&into == expected);
    }
    for id in sends {
        finish(&mut both, 0, id).result.unwrap();
    }
    assert!(!both[0].has_unfinished_sends());
}

#[test]
fn a_receiver_that_never_receives_bounds_the_sender_and_loses_nothing() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    let data = pattern(8_000, 1);
    let mut pending = Vec::new();
    let mut complete = 0;
    for tag in 0..3_000 {
        match both[0].send(Peer(1), 1, tag, area(&data)).unwrap() {
            Started::Complete(_) => complete += 1,
            Started::Pending(id) => pending.push(id),
        }
        both[1].progress();
    }
    assert!(complete * data.len() < 8 << 20, "{complete} messages were taken without a receive");
    assert!(!pending.is_empty());
    for tag in 0..3_000 {
        let into = vec![0u8; data.len()];
        let id = both[1].receive(from(0, tag), area(&into));
        finish(&mut both, 1, id).result.unwrap();
        assert!(into == data);
    }
    for id in pending {
        finish(&mut both, 0, id).result.unwrap();
    }
}

#[test]
fn a_message_that_is_tried_is_sent_whole_or_not_at_all() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for length in [8, 10_000, 1_000_000] {
        let segment = segment(2);
        let mut both = kernels(&segment, 2);
        let data = pattern(length, 2);
        let tries = 0..5_000u32;
        let sent = tries
            .take_while(|&tag| both[0].try_send(Peer(1), 1, tag, (&data[..]).into()).unwrap())
            .count();
        assert!(sent > 0 && sent < 5_000, "{sent} of {length} bytes");
        for tag in 0..sent as u32 {
            let into = vec![0u8; length];
            let id = both[1].receive(from(0, tag), area(&into));
            finish(&mut both, 1, id).result.unwrap();
            assert!(into == data);
        }
        both[1].progress_thoroughly();
        assert!(both[1].probe(any(1)).is_none(), "nothing of the last try");
        assert!(
            both[0].try_send(Peer(1), 1, 0, (&data[..]).into()).unwrap(),
            "there is room again"
        );
        set_state(&segment, 1, SlotState::Dead);
        assert!(both[0].try_send(Peer(1), 1, 0, (&data[..]).into()).is_err());
    }
}

#[test]
fn a_flood_from_one_does_not_hold_up_another() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(3);
    let mut all = kernels(&segment, 3);
    let data = pattern(8_000, 1);
    for tag in 0..3_000 {
        all[0].send(Peer(2), 1, tag, area(&data)).unwrap();
        all[2].progress();
    }
    let into = vec![0u8; 8];
    all[1].send(Peer(2), 1, 7, area(&pattern(8, 9))).unwrap();
    let id = all[2].receive(from(1, 7), area(&into));
    finish(&mut all, 2, id).result.unwrap();
    assert_eq!(into, pattern(8, 9));
}

#[test]
fn a_message_longer_than_its_buffer_is_named_and_cut() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    for length in [16, 1_000, 100_000] {
        let data = pattern(length, 3);
        let mut into = vec![0u8; 10];
        both[0].send(Peer(1), 1, 1, area(&data)).unwrap();
        let id = both[1].receive(from(0, 1), area(&into[..8]));
        let failure = finish(&mut both, 1, id).result.unwrap_err();
        let (peer, message_bytes) = (Peer(0), length as u64);
        let cut = Failure::Truncated { peer, tag: 1, message_bytes, buffer_bytes: 8 };
        assert_eq!(failure, cut);
        assert_eq!(into[..8], data[..8]);
        assert_eq!(into.split_off(8), [0, 0], "beyond the buffer");
    }
}

#[test]
fn contexts_are_worlds_of_their_own() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    both[0].send(Peer(1), 1, 1, area(&[1])).unwrap();
    both[0].send(Peer(1), 2, 1, area(&[2])).unwrap();
    let into = vec![0u8; 1];
    let id = both[1].receive(any(2), area(&into));
    finish(&mut both, 1, id).result.unwrap();
    assert_eq!(into, [2]);
}

#[test]
fn parts_that_lie_apart_travel_packed() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    let byte = Layout::element(Kind::new(Family::Unsigned, 1).unwrap());
    for (blocks, length) in [(4u64, 3u64), (1_000, 7), (50_000, 11)] {
        let layout = Layout::vector(blocks, length, 2 * length as i64, &byte).unwrap();
        let bytes = (blocks * length * 2) as usize;
        let data = pattern(bytes, 5);
        let into = vec![0u8; bytes];
        let strided = |values: &[u8]| {
            // SAFETY: the vectors live until the requests are complete.
            let buffer = unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) };
            Area::with_layout(buffer, 0, &layout, 1).unwrap()
        };
        let sent = both[0].send(Peer(1), 1, 1, strided(&data)).unwrap();
        let id = both[1].receive(from(0, 1), strided(&into));
        let status = finish(&mut both, 1, id).result.unwrap();
        assert_eq!(status.bytes, blocks * length);
        if let Started::Pending(id) = sent {
            finish(&mut both, 0, id).result.unwrap();
        }
        for (at, (&got, &sent)) in into.iter().zip(&data).enumerate() {
            let inside = (at as u64 / length).is_multiple_of(2);
            assert_eq!(got, if inside { sent } else { 0 }, "{at}");
        }
    }
}

#[test]
fn a_loan_is_read_where_it_was_written() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    for length in [1usize, 100, 1 << 20] {
        let mut block = both[0].allocate(length).unwrap();
        block.copy_from_slice(&pattern(length, 8));
        let place = block.as_ptr();
        both[0].send_loan(Peer(1), 1, 1, block).unwrap();
        let id = both[1].receive_own(from(0, 1));
        let completion = finish(&mut both, 1, id);
        let Some(Received::Borrowed { block, length: received }) = completion.data else {
            panic!("a loan is read in place");
        };
        let bytes = block.piece(0, received);
        assert_eq!(bytes.start().as_ptr().cast_const(), place);
        assert!(bytes.to_vec() == pattern(length, 8));
    }
}

#[test]
fn a_message_in_a_cell_is_answered_in_it() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let (mut both, cells) = (kernels(&segment, 2), segment.plan().cells_each() as usize);
    for length in [4_096, 16_384, 20_000, 131_072] {
        let data = pattern(length, 3);
        // Each cell comes back, so there is always one.
        for turn in 0..3 * cells {
            let (at, to) = (turn % 2, 1 - turn % 2);
            let into = vec![0u8; length];
            let sent = both[at].send(Peer(to as u32), 1, 1, area(&data)).unwrap();
            assert!(matches!(sent, Started::Complete(_)), "nobody waits for who receives");
            assert_eq!(both[at].heap_in_use(), 0, "no block is needed");
            let id = both[to].receive(from(at as u32, 1), area(&into));
            finish(&mut both, to, id).result.unwrap();
            assert!(into == data, "{length} bytes, turn {turn}");
        }
    }
}

#[test]
fn a_sender_that_has_no_cell_sends_without_one_in_order() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let (mut both, cells) = (kernels(&segment, 2), segment.plan().cells_each());
    for round in 0..3u8 {
        let data: Vec<Vec<u8>> =
            (0..3 * cells).map(|at| pattern(5_000 + 7_000 * (at as usize % 8), at as u8)).collect();
        let sent: Vec<Started> =
            data.iter().map(|data| both[0].send(Peer(1), 1, 1, area(data)).unwrap()).collect();
        for (at, data) in data.iter().enumerate() {
            let into = vec![0u8; data.len()];
            let id = both[1].receive(from(0, 1), area(&into));
            assert_eq!(finish(&mut both, 1, id).result.unwrap().bytes, data.len() as u64);
            assert!(into == *data, "message {at} of round {round}");
        }
        for sent in sent {
            if let Started::Pending(id) = sent {
                finish(&mut both, 0, id).result.unwrap();
            }
        }
    }
    // All cells have gone to the other process by now, and come back one by one.
    let data = pattern(9_000, 5);
    for _ in 0..2 * cells {
        both[1].send(Peer(0), 1, 1, area(&data)).unwrap();
        let into = vec![0u8; data.len()];
        let id = both[0].receive(from(1, 1), area(&into));
        finish(&mut both, 0, id).result.unwrap();
        assert!(into == data);
    }
}

#[test]
fn a_message_in_a_cell_is_cut_kept_held_and_let_go_as_any() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    for length in [6_000usize, 60_000] {
        let data = pattern(length, 9);
        let short = vec![0u8; 100];
        both[0].send(Peer(1), 1, 1, area(&data)).unwrap();
        let id = both[1].receive(from(0, 1), area(&short));
        let failure = finish(&mut both, 1, id).result.unwrap_err();
        assert!(matches!(failure, Failure::Truncated { .. }), "{failure}");
        assert!(short == data[..100]);
        both[0].send(Peer(1), 1, 2, area(&data)).unwrap();
        let id = both[1].receive_own(from(0, 2));
        let Some(Received::Private(own)) = finish(&mut both, 1, id).data else {
            panic!("a cell is read where it is needed next")
        };
        assert!(own == data);
        both[0].send(Peer(1), 1, 3, area(&data)).unwrap();
        both[1].progress();
        assert_eq!(both[1].probe(from(0, 3)).unwrap().bytes, length as u64);
        let (held, status) = both[1].hold(from(0, 3)).unwrap();
        assert_eq!(status.bytes, length as u64);
        let into = vec![0u8; length];
        assert!(both[1].receive_held(held, area(&into)));
        finish(&mut both, 1, held).result.unwrap();
        assert!(into == data);
        both[0].send(Peer(1), 2, 1, area(&data)).unwrap();
        both[1].progress();
        both[1].revoke(2);
        let id = both[1].receive(any(1), area(&into));
        both[0].send(Peer(1), 1, 4, area(&[4])).unwrap();
        assert_eq!(finish(&mut both, 1, id).result.unwrap().tag, 4);
    }
}

#[test]
fn cells_that_cannot_be_are_named_and_harm_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let cells = u64::from(segment(2).plan().cells());
    for (cell, bytes) in [(cells, 8), (u64::MAX, 8), (1 << 32, 8), (0, 1 << 17 | 1), (0, u64::MAX)]
    {
        let segment = segment(2);
        let mut receiver = kernels(&segment, 2).remove(1);
        let mut sender = SharedMemory::new(&segment, 0).unwrap();
        let told = [cell.to_le_bytes(), bytes.to_le_bytes()].concat();
        let header = Header::user(landeck_wire::Kind::InCell, told.len() as u32, 1, 1);
        sender.try_send(Peer(1), &header, (&told[..]).into()).unwrap();
        let into = vec![0u8; 8];
        let id = receiver.receive(from(0, 1), area(&into));
        while !receiver.is_done(id) {
            receiver.progress();
        }
        let failure = receiver.take(id).unwrap().result.unwrap_err();
        assert!(matches!(failure, Failure::PeerBroken { peer: Peer(0), .. }), "{failure}");
    }
}

#[test]
fn a_sender_that_dies_while_it_fills_a_cell_is_told_of() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for is_posted in [true, false] {
        let segment = segment(2);
        let mut receiver = kernels(&segment, 2).remove(1);
        let mut sender = SharedMemory::new(&segment, 0).unwrap();
        // The cell was announced, but is not filled yet.
        let told = [0u64.to_le_bytes(), 60_000u64.to_le_bytes()].concat();
        let header = Header::user(landeck_wire::Kind::InCell, told.len() as u32, 1, 1);
        let into = vec![0u8; 60_000];
        let posted = is_posted.then(|| receiver.receive(from(0, 1), area(&into)));
        sender.try_send(Peer(1), &header, (&told[..]).into()).unwrap();
        receiver.progress();
        let id = posted.unwrap_or_else(|| receiver.receive(from(0, 1), area(&into)));
        receiver.progress();
        assert!(!receiver.is_done(id), "it may come yet");
        set_state(&segment, 0, SlotState::Dead);
        while !receiver.is_done(id) {
            receiver.refresh();
            receiver.progress();
        }
        let failure = receiver.take(id).unwrap().result.unwrap_err();
        assert_eq!(failure, Failure::PeerGone { peer: Peer(0), died: true });
    }
}

/// Checks that a process does not wait for a death that no membership would report: its own.
#[test]
fn a_message_seemingly_not_sent_to_oneself_is_not_waited_for() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    // One process alone has no cells.
    let segment = segment(2);
    let mut receiver = kernels(&segment, 1).remove(0);
    let into = vec![0u8; 400_000];
    // The word of a full cell was overwritten with that of an unused one.
    let told = [0u64.to_le_bytes(), 60_000u64.to_le_bytes()].concat();
    let header = Header::user(landeck_wire::Kind::InCell, told.len() as u32, 1, 1);
    receiver.near_mut().try_send(Peer(0), &header, (&told[..]).into()).unwrap();
    let id = receiver.receive(from(0, 1), area(&into));
    while !receiver.is_done(id) {
        receiver.progress();
    }
    let failure = receiver.take(id).unwrap().result.unwrap_err();
    assert!(matches!(failure, Failure::PeerBroken { peer: Peer(0), .. }), "{failure}");
    // Messages that it does send arrive, however long they are.
    for length in [60_000, 131_072, 400_000] {
        let data = pattern(length, 7);
        let sent = receiver.send(Peer(0), 1, 1, area(&data)).unwrap();
        let id = receiver.receive(from(0, 1), area(&into[..length]));
        while !receiver.is_done(id) {
            receiver.progress();
        }
        receiver.take(id).unwrap().result.unwrap();
        assert!(into[..length] == data);
        if let Started::Pending(sent) = sent {
            receiver.take(sent).unwrap().result.unwrap();
        }
    }
}

#[test]
fn references_to_what_does_not_exist_are_named_and_harm_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut receiver = kernels(&segment, 2).remove(1);
    let mut sender = SharedMemory::new(&segment, 0).unwrap();
    for (owner, offset) in [(0, 0), (0, u64::MAX), (1, 64), (u32::MAX, 1 << 40)] {
        let length = u64::MAX;
        let reference =
            Reference { owner, generation: 1, offset, length, window: u64::MAX }.encode();
        let header = Header::user(landeck_wire::Kind::Reference, reference.len() as u32, 1, 1);
        sender.try_send(Peer(1), &header, (&reference[..]).into()).unwrap();
        let into = vec![0u8; 8];
        let id = receiver.receive(from(0, 1), area(&into));
        while !receiver.is_done(id) {
            receiver.progress();
        }
        let failure = receiver.take(id).unwrap().result.unwrap_err();
        assert!(matches!(failure, Failure::PeerBroken { peer: Peer(0), .. }), "{failure}");
    }
}

#[test]
fn cancelled_operations_complete_and_others_go_on() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    let (first, second) = (vec![0u8; 1], vec![0u8; 1]);
    let doomed = both[1].receive(from(0, 1), area(&first));
    let lives = both[1].receive(from(0, 1), area(&second));
    both[1].cancel(doomed);
    assert!(both[1].take(doomed).unwrap().result.unwrap().cancelled);
    both[0].send(Peer(1), 1, 1, area(&[9])).unwrap();
    assert!(!finish(&mut both, 1, lives).result.unwrap().cancelled);
    assert_eq!((first[0], second[0]), (0, 9));
    both[1].cancel(lives);
    assert_eq!(both[1].take(lives).unwrap().result, Err(Failure::Gone));
}

#[test]
fn a_receive_is_not_given_up_once_its_message_has_come() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    for length in [8, 100_000] {
        let (data, into) = (pattern(length, 4), vec![0u8; length]);
        let id = both[1].receive(from(0, 1), area(&into));
        both[0].send(Peer(1), 1, 1, area(&data)).unwrap();
        both[1].progress();
        assert!(both[1].give_up(id), "its message has come");
        finish(&mut both, 1, id).result.unwrap();
        assert!(into == data);
        assert!(!both[1].give_up(id), "it is no more");
    }
    let nothing = vec![0u8; 1];
    let id = both[1].receive(from(0, 2), area(&nothing));
    assert!(!both[1].give_up(id));
    assert_eq!(both[1].take(id).unwrap().result, Err(Failure::Gone));
}

#[test]
fn a_probe_tells_and_leaves() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    assert!(both[1].probe(any(1)).is_none());
    both[0].send(Peer(1), 1, 4, area(&pattern(70_000, 1))).unwrap();
    both[1].progress();
    for _ in 0..2 {
        let status = both[1].probe(any(1)).unwrap();
        assert_eq!((status.peer, status.tag, status.bytes), (Peer(0), 4, 70_000));
    }
}

#[test]
fn the_death_of_a_peer_ends_what_depends_on_it_and_nothing_else() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(3);
    let mut all = kernels(&segment, 3);
    let (one, two, three) = (vec![0u8; 1], vec![0u8; 1], vec![0u8; 1]);
    all[1].send(Peer(0), 1, 1, area(&[5])).unwrap();
    let sent_before = all[0].receive(from(1, 1), area(&one));
    let hopeless = all[0].receive(from(1, 2), area(&two));
    let anybody = all[0].receive(Wanted { context: 1, source: None, tag: Some(3) }, area(&three));
    set_state(&segment, 1, SlotState::Dead);
    assert!(all[0].verdict(sent_before).is_none(), "what it sent before still counts");
    assert!(all[0].take(sent_before).unwrap().result.is_ok());
    assert!(all[0].verdict(hopeless).is_none());
    let died = Failure::PeerGone { peer: Peer(1), died: true };
    assert_eq!(all[0].take(hopeless).unwrap().result, Err(died.clone()));
    assert_eq!(all[0].failure_of_pending(anybody), Some(died.clone()), "reported once");
    assert_eq!(all[0].acknowledge_failures(), [Peer(1)]);
    assert_eq!(all[0].failure_of_pending(anybody), None, "resumes after acknowledgement");
    all[2].send(Peer(0), 1, 3, area(&[6])).unwrap();
    finish(&mut all, 0, anybody).result.unwrap();
    assert_eq!(all[0].send(Peer(1), 1, 1, area(&[1])).unwrap_err(), died);
}

#[test]
fn a_death_that_is_recorded_is_found_before_it_is_announced() {
    let segment = segment(2);
    let mut all = kernels(&segment, 2);
    let members = [Peer(0), Peer(1)];
    let dead = SlotRecord { state: SlotState::Dead, incarnation: 1, ..SlotRecord::default() };
    all[0].refresh();
    segment.set_slot_record(1, dead);
    all[0].refresh();
    assert_eq!(all[0].failure_of_group(1, &members), None, "nothing was announced");
    all[0].refresh_from_records();
    let died = Failure::PeerGone { peer: Peer(1), died: true };
    assert_eq!(all[0].failure_of_group(1, &members), Some(died.clone()));
    segment.announce_membership();
    all[0].refresh();
    assert_eq!(all[0].acknowledge_failures(), [Peer(1)], "it counts once");
    assert_eq!(all[0].failure_of_group(1, &members), Some(died));
}

#[test]
fn a_death_in_the_middle_of_a_transfer_ends_it_on_both_sides() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for dead in [0, 1] {
        let segment = segment(2);
        let mut both = kernels(&segment, 2);
        let (data, into) = (pattern(9_000_000, 1), vec![0u8; 9_000_000]);
        let Started::Pending(send) = both[0].send(Peer(1), 1, 1, area(&data)).unwrap() else {
            panic!("a message longer than its window waits");
        };
        let receive = both[1].receive(from(0, 1), area(&into));
        both[1].progress();
        let (survivor, id) = if dead == 0 { (1, receive) } else { (0, send) };
        set_state(&segment, dead, SlotState::Dead);
        let _ = both[survivor].verdict(id);
        assert!(both[survivor].take(id).unwrap().result.is_err());
    }
}

#[test]
fn a_revoked_context_ends_what_is_in_it() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let segment = segment(2);
    let mut both = kernels(&segment, 2);
    let into = vec![0u8; 1];
    let id = both[0].receive(any(1), area(&into));
    let other = both[0].receive(any(2), area(&into));
    both[0].revoke(1);
    assert_eq!(both[0].take(id).unwrap().result, Err(Failure::Revoked));
    assert!(!both[0].is_done(other));
    assert_eq!(both[0].send(Peer(1), 1, 1, area(&[1])).unwrap_err(), Failure::Revoked);
    both[0].abandon(other);
}

#[test]
fn the_look_before_sleep_finds_all_that_has_come() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    const EACH: usize = 30;
    let segment = segment(4);
    let mut all = kernels(&segment, 4);
    // The first messages of a pair lie in the mailbox, the others in a ring.
    for sender in 1..4u8 {
        for number in 0..EACH {
            let data = [sender, number as u8];
            let sent = all[sender as usize].send(Peer(0), 1, sender.into(), area(&data)).unwrap();
            assert!(matches!(sent, Started::Complete(_)));
        }
    }
    let into = [[0u8; 2]; 3 * EACH];
    let posted = |(at, into): (usize, &[u8; 2])| {
        let sender = 1 + (at / EACH) as u32;
        all[0].receive(from(sender, sender), area(into))
    };
    let receives: Vec<RequestId> = into.iter().enumerate().map(posted).collect();
    assert!(all[0].progress_thoroughly());
    assert!(receives.iter().all(|&id| all[0].is_done(id)), "nobody rings for them again");
    for (at, (into, id)) in into.iter().zip(receives).enumerate() {
        all[0].take(id).unwrap().result.unwrap();
        assert_eq!(*into, [1 + (at / EACH) as u8, (at % EACH) as u8]);
    }
    assert!(!all[0].progress_thoroughly());
}

#[test]
fn threads_exchange_without_loss_in_a_crowd() {
    let _watchdog = Watchdog::start(Duration::from_secs(120));
    const PROCESSES: u32 = 4;
    const ROUNDS: u32 = 300;
    let segment = segment(PROCESSES);
    let threads: Vec<_> = kernels(&segment, PROCESSES)
        .into_iter()
        .zip(0u32..)
        .map(|(kernel, rank)| std::thread::spawn(move || exchange(kernel, rank, PROCESSES, ROUNDS)))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// All processes send to all others and receive from any source, with the lengths of all paths mixed.
fn exchange(mut kernel: Kernel, rank: u32, processes: u32, rounds: u32) {
    let length = |from: u32, round: u32| LENGTHS[((from * 7 + round) as usize) % 14];
    let others: Vec<u32> = (0..processes).filter(|&other| other != rank).collect();
    let mut next = vec![0u32; processes as usize];
    for round in 0..rounds {
        let data = pattern(length(rank, round), (rank + round) as u8);
        let mut sends = Vec::new();
        for &to in &others {
            if let Started::Pending(id) = kernel.send(Peer(to), 1, round, area(&data)).unwrap() {
                sends.push(id);
            }
        }
        for _ in &others {
            let wanted = Wanted { context: 1, source: None, tag: Some(round) };
            let id = kernel.receive_own(wanted);
            let completion = drive(&mut kernel, id);
            let status = completion.result.unwrap();
            let source = status.peer.0;
            assert_eq!(std::mem::replace(&mut next[source as usize], round + 1), round);
            let bytes = match completion.data.unwrap() {
                Received::Private(own) => own,
                Received::Borrowed { block, length } => block.piece(0, length).to_vec(),
            };
            assert!(bytes == pattern(length(source, round), (source + round) as u8));
        }
        for id in sends {
            drive(&mut kernel, id).result.unwrap();
        }
    }
    while kernel.has_unfinished_sends() {
        kernel.progress_thoroughly();
        std::thread::yield_now();
    }
    kernel.progress_thoroughly();
}

fn drive(kernel: &mut Kernel, id: RequestId) -> Completion {
    loop {
        if let Some(completion) = kernel.take(id) {
            return completion;
        }
        if !kernel.progress() {
            kernel.progress_thoroughly();
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_slot_that_is_given_out_late_or_again_is_heard_from_its_first_word() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(7, 2) };
    let segment = Segment::create(&plan).unwrap();
    let put = |state, incarnation| {
        segment.set_slot_record(2, SlotRecord { state, incarnation, ..SlotRecord::default() });
        segment.announce_membership();
    };
    let mut kernel = kernels(&segment, 1).remove(0);
    for incarnation in 1..4 {
        // Its messages may arrive before its membership is noticed.
        put(SlotState::Alive, incarnation);
        let file = segment.descriptor().unwrap().try_clone_to_owned().unwrap();
        let own = Segment::attach(file).unwrap();
        let near = SharedMemory::new(&own, 2).unwrap();
        let mut guest = Endpoint::new(near, &own, 2).unwrap();
        for number in 0..20u8 {
            guest.send(Peer(0), 1, 1, area(&[number])).unwrap();
            if number == 10 {
                kernel.refresh();
            }
            let into = vec![0u8; 1];
            let id = kernel.receive(from(2, 1), area(&into));
            while !kernel.is_done(id) {
                kernel.progress();
            }
            kernel.take(id).unwrap().result.unwrap();
            assert_eq!(into, [number], "incarnation {incarnation}");
        }
        drop(guest);
        put(SlotState::Departed, incarnation);
        segment.clear_slot(2);
    }
}

/// The daemon's record of a process that is a far peer of an endpoint.
fn put_far(segment: &Segment, peer: Peer, state: SlotState) {
    let far = peer.0 - segment.plan().slots();
    let process = FarProcess { host: 9, slot: far, incarnation: 1 };
    segment.set_far_record(far, FarRecord { process, state, ..FarRecord::default() });
    segment.announce_membership();
}

/// The far record says how a process ended, and nothing that it sent is overtaken by that.
#[test]
fn a_peer_that_left_over_a_network_is_told_from_one_that_died() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for is_recorded_first in [false, true] {
        let (segment, wires) = (segment(1), Wires::new(1 << 16));
        let mut kernel = kernels(&segment, 1).remove(0);
        kernel.refresh();
        kernel.set_network(Box::new(wires.endpoint(Peer(0))));
        let first = segment.plan().slots();
        for (peer, died) in [(Peer(first), false), (Peer(first + 9), true)] {
            put_far(&segment, peer, SlotState::Alive);
            let mut other = wires.endpoint(peer);
            let header = Header::user(landeck_wire::Kind::Eager, 1, 1, 9);
            other.try_send(Peer(0), &header, (&[7u8][..]).into()).unwrap();
            let (first, second) = ([0u8], [0u8]);
            let waits = kernel.receive(from(peer.0, 8), area(&first));
            let end = if died { SlotState::Dead } else { SlotState::Departed };
            if is_recorded_first {
                put_far(&segment, peer, end);
                kernel.refresh();
                assert_eq!(kernel.is_gone(peer), None, "its message is not read yet");
                drop(other);
            } else {
                drop(other);
                while !kernel.progress() {}
                kernel.refresh();
                assert_eq!(kernel.is_gone(peer), None, "a broken path is no end");
                assert_eq!(kernel.try_send(peer, 1, 1, (&[1u8][..]).into()), Ok(false));
                put_far(&segment, peer, end);
            }
            kernel.progress_thoroughly();
            kernel.refresh();
            assert_eq!(kernel.is_gone(peer), Some(died));
            let gone = Failure::PeerGone { peer, died };
            assert_eq!(kernel.try_send(peer, 1, 1, (&[1u8][..]).into()), Err(gone.clone()));
            assert_eq!(kernel.try_send_urgent(peer, 1, 1, (&[1u8][..]).into()), Err(gone.clone()));
            assert_eq!(kernel.send(peer, 1, 1, area(&first)).unwrap_err(), gone);
            let came = kernel.receive(from(peer.0, 9), area(&second));
            assert!(
                kernel.take(came).unwrap().result.is_ok() && second == [7],
                "it was sent before"
            );
            let _ = kernel.verdict(waits);
            assert_eq!(kernel.take(waits).unwrap().result, Err(gone));
        }
        assert_eq!(kernel.acknowledge_failures(), [Peer(first + 9)]);
    }
}

/// A send to a living process whose path is broken waits, and goes on over the next path.
#[test]
fn a_send_waits_while_the_path_to_a_living_process_is_broken() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (segment, wires) = (segment(1), Wires::new(1 << 16));
    let mut kernel = kernels(&segment, 1).remove(0);
    let peer = Peer(segment.plan().slots());
    kernel.set_network(Box::new(wires.endpoint(Peer(0))));
    let data = [5u8];
    assert!(kernel.try_send(peer, 1, 1, (&data[..]).into()).is_err(), "nobody is there");
    put_far(&segment, peer, SlotState::Alive);
    let Ok(Started::Pending(id)) = kernel.send(peer, 1, 1, area(&data)) else { panic!() };
    kernel.progress_thoroughly();
    assert!(!kernel.is_done(id) && kernel.has_unfinished_sends());
    let mut other = wires.endpoint(peer);
    while !kernel.is_done(id) {
        kernel.progress();
    }
    kernel.take(id).unwrap().result.unwrap();
    let mut arrivals = landeck_channel::conformance::Arrivals::default();
    assert!(other.poll(&mut arrivals));
    drop(other);
    let Ok(Started::Pending(id)) = kernel.send(peer, 1, 1, area(&data)) else { panic!() };
    put_far(&segment, peer, SlotState::Dead);
    kernel.refresh();
    let gone = Failure::PeerGone { peer, died: true };
    assert_eq!(kernel.take(id).map(|ended| ended.result), Some(Err(gone)));
}

/// Neighbours of a job on several hosts talk as on one host, and the network is looked at for whoever waits for it.
#[test]
fn the_network_is_looked_at_when_something_is_expected_from_it() {
    const ROUNDS: u32 = 10_000;
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (segment, wires) = (segment(2), Wires::new(1 << 16));
    let mut kernels = kernels(&segment, 2);
    let polls = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let so_far = || polls.load(std::sync::atomic::Ordering::Relaxed);
    let inner = wires.endpoint(Peer(0));
    kernels[0].set_network(Box::new(CountingNetwork { inner, polls: polls.clone() }));
    let far = Peer(segment.plan().slots());
    put_far(&segment, far, SlotState::Alive);
    let mut other = wires.endpoint(far);
    let data = [1u8; 8];
    let mut status = landeck_kernel::Status::NONE;
    for round in 0..ROUNDS {
        assert!(kernels[0].is_quiet(), "direct receives work beside a network");
        kernels[1].send(Peer(0), 1, 1, area(&data)).unwrap();
        match round % 2 {
            0 => while !kernels[0].receive_whole_now(&from(1, 1), &area(&data), &mut status) {},
            _ => {
                let id = kernels[0].receive(from(1, 1), area(&data));
                while !kernels[0].is_done(id) {
                    kernels[0].progress_for(id);
                }
                kernels[0].take(id).unwrap().result.unwrap();
            }
        }
        kernels[0].send(Peer(1), 1, 1, area(&data)).unwrap();
        let id = kernels[1].receive(from(0, 1), area(&data));
        finish(&mut kernels[1..], 0, id);
    }
    assert!(so_far() <= ROUNDS / 1_000, "{} looks at the network", so_far());

    // Whoever waits for a far process, or for anybody, is not kept waiting.
    let header = Header::user(landeck_wire::Kind::Eager, 1, 1, 1);
    kernels[0].set_members(1, vec![Peer(0), Peer(1), far]);
    for (wanted, looks) in [(from(far.0, 1), 1), (any(1), 16)] {
        let id = kernels[0].receive(wanted, area(&data));
        other.try_send(Peer(0), &header, (&[7u8][..]).into()).unwrap();
        (0..looks).for_each(|_| kernels[0].progress_for(id));
        assert_eq!(kernels[0].take(id).unwrap().result.unwrap().peer, far);
        other.try_send(Peer(0), &header, (&[7u8][..]).into()).unwrap();
        let found =
            (0..looks).any(|_| kernels[0].receive_whole_now(&wanted, &area(&data), &mut status));
        let id = (!found).then(|| kernels[0].receive(wanted, area(&data)));
        assert!(id.is_none_or(|id| kernels[0].is_done(id)), "it was looked for");
        id.map(|id| kernels[0].take(id));
    }
    // Afterwards nothing is expected any more.
    (0..32).for_each(|_| _ = kernels[0].progress());
    let before = so_far();
    (0..200).for_each(|_| _ = kernels[0].progress());
    assert!(so_far() - before <= 1, "{} looks", so_far() - before);
    // What comes unasked is found in the end.
    other.try_send(Peer(0), &header, (&[7u8][..]).into()).unwrap();
    (0..256).for_each(|_| _ = kernels[0].progress());
    assert!(kernels[0].probe(from(far.0, 1)).is_some());
}
