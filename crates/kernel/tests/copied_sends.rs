//! Sends to another host that end before their receive, because their data were copied. The other end is in the test's
//! hands.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;

use landeck_channel::Channel;
use landeck_channel::incast::Incast;
use landeck_channel::loopback::{Loopback, Wires};
use landeck_channel::tokens::{Priority, TokenWish};
use landeck_kernel::{Area, Endpoint, Peer, RequestId, Started};
use landeck_memory::{
    Buffer, Bytes, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState,
};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind};
use std::time::Duration;

use crate::seen::Seen;

const CONTEXT: u32 = 1;
const TAG: u32 = 4;
/// The number that the receiver gives to its receive.
const RECEIVE: u64 = 99;

/// An endpoint whose only far process is played by the test.
struct Played {
    kernel: Endpoint<SharedMemory>,
    far: Peer,
    other: Loopback,
    seen: Seen,
}

impl Played {
    fn new() -> Self {
        let plan = SegmentPlan {
            heap_bytes_per_process: 4 << 20,
            cpus: 2,
            far: 1,
            ..SegmentPlan::new(7, 1)
        };
        let segment = Segment::local(&plan);
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(0, alive);
        let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
        let record = FarRecord { process, state: SlotState::Alive, ..FarRecord::default() };
        segment.set_far_record(0, record);
        segment.announce_membership();
        let near = SharedMemory::new(&segment, 0).unwrap();
        let mut kernel = Endpoint::new(near, &segment, 0).unwrap();
        let (wires, far) = (Wires::new(1 << 16), Peer(plan.slots()));
        kernel.set_network(Box::new(wires.endpoint(Peer(0))));
        let other = wires.endpoint(far);
        Self { kernel, far, other, seen: Seen::default() }
    }

    /// An endpoint that offers all longer messages.
    fn that_offers() -> Self {
        let mut played = Self::new();
        played.kernel.set_incast(Incast::Tokens(TokenWish::RESERVATION));
        played
    }

    /// The bytes that come of a message in chunks, without any answer.
    fn chunks(&mut self) -> Vec<u8> {
        for _ in 0..100 {
            self.kernel.progress();
            self.other.poll(&mut self.seen);
        }
        let is_chunk = |(header, _): &(Header, Vec<u8>)| header.kind == Kind::Chunk;
        self.seen.0.drain(..).filter(is_chunk).flat_map(|(_, data)| data).collect()
    }

    fn send(&mut self, data: &[u8]) -> RequestId {
        match self.begin(data) {
            Started::Pending(id) => id,
            Started::Complete(_) => panic!("it is too long for one message"),
        }
    }

    fn begin(&mut self, data: &[u8]) -> Started {
        // SAFETY: the tests keep the data until the request is complete.
        let area = Area::contiguous(unsafe { Buffer::new(NonNull::from(data).cast(), data.len()) });
        self.kernel.send(self.far, CONTEXT, TAG, area).unwrap()
    }

    /// The number that the next offer names.
    fn offered(&mut self) -> u64 {
        while self.seen.0.is_empty() {
            self.kernel.progress();
            self.other.poll(&mut self.seen);
        }
        let (header, data) = self.seen.0.remove(0);
        assert_eq!((header.kind, header.tag), (Kind::Offer, TAG));
        u64::from_le_bytes(data[8..].try_into().unwrap())
    }

    fn answer(&mut self, kind: Kind, why: u32, pair: [u64; 2]) {
        let data = pair.map(u64::to_le_bytes).concat();
        let header = Header::user(kind, data.len() as u32, 0, why);
        self.other.try_send(Peer(0), &header, (&data[..]).into()).unwrap();
        for _ in 0..100 {
            self.kernel.progress();
        }
    }
}

#[test]
fn a_message_that_fits_goes_to_another_host_in_the_first_attempt() {
    let data = vec![7u8; 1 << 16];
    let sends_now = |played: &mut Played, bytes: usize| {
        let sent = played.kernel.send_now(played.far, CONTEXT, TAG, data[..bytes].into());
        for _ in 0..9 {
            played.kernel.progress();
            played.other.poll(&mut played.seen);
        }
        assert_eq!(played.seen.0.drain(..).count(), usize::from(sent));
        sent
    };
    let mut played = Played::new();
    let most = played.other.data_bytes_max();
    assert!([0, 8, most].iter().all(|&bytes| sends_now(&mut played, bytes)));
    assert!(!sends_now(&mut played, most + 1), "it goes in chunks");
    let mut played = Played::that_offers();
    assert!(!sends_now(&mut played, 8), "it needs a token");
}

#[test]
fn a_send_ends_before_sleep_and_its_data_follow_from_the_copy() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut played = Played::that_offers();
    for round in 0..50u8 {
        let mut data: Vec<u8> = (0..200_000).map(|at| (at / 3) as u8 ^ round).collect();
        let expected = data.clone();
        let id = played.send(&data);
        let send = played.offered();
        assert!(!played.kernel.is_done(id), "it may be received at any moment");
        assert!(played.kernel.progress_thoroughly());
        assert_eq!(played.kernel.take_well(id).unwrap().bytes, 200_000);
        data.fill(0); // the memory is the program's again
        assert!(played.kernel.has_unfinished_sends());
        played.answer(Kind::Accept, 0, [send, RECEIVE]);
        let mut got = Vec::new();
        while got.len() < expected.len() {
            played.kernel.progress();
            played.other.poll(&mut played.seen);
            for (header, part) in played.seen.0.drain(..) {
                assert_eq!((header.kind, header.context), (Kind::Part, RECEIVE as u32));
                got.extend(part);
            }
        }
        assert!(got == expected, "round {round}");
        while played.kernel.has_unfinished_sends() {
            played.kernel.progress();
        }
        played.kernel.progress_thoroughly();
        assert_eq!(played.kernel.heap_in_use(), 0, "the copy is gone");
    }
}

#[test]
fn a_send_ends_when_the_network_has_its_data() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut played = Played::new();
    let data: Vec<u8> = (0..200_000).map(|at| (at / 3) as u8).collect();
    let begun = played.begin(&data);
    assert!(played.chunks() == data);
    if let Started::Pending(id) = begun {
        assert_eq!(played.kernel.take_well(id).unwrap().bytes, 200_000);
    }
    assert!(!played.kernel.has_unfinished_sends());
    assert_eq!(played.kernel.heap_in_use(), 0, "nothing was copied");
}

#[test]
fn a_send_without_a_buffer_of_its_receiver_ends_by_a_copy() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut played = Played::new();
    let mut data = vec![7; 200_000];
    let (mut done, mut came) = (0, 0);
    // As many as there are buffers for.
    let last = loop {
        let begun = played.begin(&data);
        came += played.chunks().len();
        match begun {
            Started::Pending(id) if !played.kernel.is_done(id) => break id,
            Started::Pending(id) => drop(played.kernel.take_well(id).unwrap()),
            Started::Complete(_) => {}
        }
        done += 1;
    };
    let buffers = Priority::Unasked.buffers();
    let chunks = data.len().div_ceil(played.other.data_bytes_max().min(64 << 10)) as u32;
    assert_eq!(done, buffers / chunks);
    assert!(played.kernel.progress_thoroughly());
    assert_eq!(played.kernel.take_well(last).unwrap().bytes, 200_000);
    data.fill(0); // the memory is the program's again
    assert!(played.kernel.has_unfinished_sends());
    let emptied = Header::user(Kind::Emptied, 0, 0, buffers << 16);
    played.other.try_send(Peer(0), &emptied, Bytes::EMPTY).unwrap();
    let rest = played.chunks();
    assert_eq!(came + rest.len(), (done as usize + 1) * 200_000);
    assert!(rest.iter().all(|&byte| byte == 7) && !played.kernel.has_unfinished_sends());
}

#[test]
fn some_sends_wait_for_their_receive() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut played = Played::that_offers();
    let (long, data) = (vec![1; (256 << 10) + 1], vec![1; 200_000]);
    let too_long = played.send(&long);
    played.offered();
    let cancelled = played.send(&data);
    let send = played.offered();
    played.kernel.cancel(cancelled);
    // SAFETY: the data live longer than the request.
    let area =
        Area::contiguous(unsafe { Buffer::new(NonNull::from(&data[..]).cast(), data.len()) });
    let synchronous = played.kernel.send_synchronous(played.far, CONTEXT, TAG, area).unwrap();
    let Started::Pending(synchronous) = synchronous else { panic!("nobody receives") };
    played.kernel.progress_thoroughly();
    for id in [too_long, cancelled, synchronous] {
        assert!(!played.kernel.is_done(id));
    }
    played.answer(Kind::Withdrawn, 0, [send, 0]);
    assert!(played.kernel.take_well(cancelled).unwrap().cancelled);
    for id in [too_long, synchronous] {
        played.kernel.abandon(id);
    }
}

/// A copy is forgotten when its message was thrown away, returned, or its receiver leaves.
#[test]
fn whatever_the_receiver_says_ends_a_copy() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut played = Played::that_offers();
    let data = vec![1; 200_000];
    for (kind, why) in [(Kind::Done, 0), (Kind::Withdrawn, 0), (Kind::Withdrawn, 2)] {
        let id = played.send(&data);
        let send = played.offered();
        played.kernel.progress_thoroughly();
        played.kernel.take_well(id).unwrap();
        assert!(played.kernel.has_unfinished_sends());
        played.answer(kind, why, [send, 0]);
        assert!(!played.kernel.has_unfinished_sends(), "{kind:?} {why}");
        played.kernel.progress_thoroughly();
        assert_eq!(played.kernel.heap_in_use(), 0, "{kind:?} {why}");
    }
    // The program's own memory stays in use until the receiver's end is recorded.
    let long = vec![1; 300_000];
    let id = played.send(&long);
    let send = played.offered();
    played.answer(Kind::Withdrawn, 2, [send, 0]);
    assert!(!played.kernel.is_done(id));
    played.kernel.abandon(id);
}
