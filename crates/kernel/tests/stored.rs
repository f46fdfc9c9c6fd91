//! Messages whose data stay on a host, as an endpoint sends and receives them. The other process and the relays are in the
//! test's hands. On one host the data stay in the heap.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::collections::HashMap;
use std::ptr::NonNull;

use landeck_channel::loopback::{Loopback, Wires};
use landeck_channel::relay_requests::RelayRequests;
use landeck_channel::{BrokenPeer, Channel, SendError, Sink};
use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Wanted};
use landeck_memory::{
    Buffer, Bytes, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState,
};
use landeck_transports::SharedMemory;
use landeck_wire::relay::{RELAY_PART_BYTES, RelayOutcome, RelayRequest};
use landeck_wire::stored::{StoreWish, StoredNotice, StoredPlace, StoredRequest};
use landeck_wire::{Header, HostNumber, Kind, ProcessId};

use crate::seen::Seen;

const CONTEXT: u32 = 1;
const TAG: u32 = 4;
const HERE: HostNumber = HostNumber(0);
const THERE: HostNumber = HostNumber(3);
const LENGTH: usize = 100_000;
const NUMBER: u64 = 1 << 12;
const PLACE: u64 = 4096;

/// A network with connections to relays, which answer as the test says.
struct Relayed {
    inner: Loopback,
    relays: HashMap<HostNumber, RelayRequests>,
}

impl Channel for Relayed {
    fn data_bytes_max(&self) -> usize {
        self.inner.data_bytes_max()
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        self.inner.try_send(to, header, data)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.poll(sink)
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.inner.is_read_out(peer)
    }

    fn leave(&mut self) {}

    fn forget(&mut self, _peer: Peer) {}

    fn store_requests(&mut self, host: HostNumber) -> Option<&mut RelayRequests> {
        Some(self.relays.entry(host).or_insert_with(|| {
            let mut requests = RelayRequests::default();
            requests.connected(1);
            requests
        }))
    }
}

/// An endpoint on host 0. The test plays its only far process, on host 3, and the relays of both hosts.
struct Played {
    segment: Segment,
    kernel: Endpoint<SharedMemory>,
    far: Peer,
    other: Loopback,
    data: Vec<u8>,
}

impl Played {
    fn new() -> Self {
        let plan = SegmentPlan { heap_bytes_per_process: 4 << 20, ..SegmentPlan::new(7, 1) };
        let plan = SegmentPlan { cpus: 2, far: 1, hosts: 4, takes_hosts: true, ..plan };
        let segment = Segment::local(&plan);
        segment.set_own_host(HERE.0, 0);
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(0, alive);
        let near = SharedMemory::new(&segment, 0).unwrap();
        let mut kernel = Endpoint::new(near, &segment, 0).unwrap();
        let (wires, far) = (Wires::new(1 << 20), Peer(plan.slots()));
        let inner = wires.endpoint(Peer(0));
        kernel.set_network(Box::new(Relayed { inner, relays: HashMap::new() }));
        let data = (0..LENGTH).map(|at| (at * 7 + at / 251) as u8).collect();
        let played = Self { segment, kernel, far, other: wires.endpoint(far), data };
        played.set_far(SlotState::Alive);
        played
    }

    fn set_far(&self, state: SlotState) {
        let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
        let host_number = THERE.0;
        self.segment
            .set_far_record(0, FarRecord { process, host_number, state, ..FarRecord::default() });
        self.segment.announce_membership();
    }

    fn send(&mut self, wish: StoreWish) -> RequestId {
        let stored = (area(&self.data), wish);
        match self.kernel.send_stored(self.far, CONTEXT, TAG, stored).unwrap() {
            Started::Pending(id) => id,
            Started::Complete(_) => panic!("it has met nothing yet"),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> RequestId {
        let wanted = Wanted { context: CONTEXT, source: Some(self.far.0), tag: Some(TAG) };
        self.kernel.receive(wanted, area(into))
    }

    /// The messages for the other process.
    fn heard(&mut self) -> Vec<(Header, Vec<u8>)> {
        let mut seen = Seen::default();
        // Where nothing is expected, each 256th look goes to the network.
        for _ in 0..600 {
            self.kernel.progress();
            self.other.poll(&mut seen);
        }
        seen.0
    }

    fn say(&mut self, kind: Kind, data: &[u8]) {
        let header = Header::user(kind, data.len() as u32, CONTEXT, TAG);
        self.other.try_send(Peer(0), &header, data.into()).unwrap();
        self.heard();
    }

    /// Offers a message as the other process does, under the number of its send.
    fn offer(&mut self, send: u64) {
        self.say(Kind::Offer, &[LENGTH as u64, send].map(u64::to_le_bytes).concat());
    }

    fn notice(&mut self, send: u64, length: usize) {
        let stored = StoredPlace { host: THERE, number: NUMBER, place: PLACE };
        let notice = StoredNotice { send, stored, length: length as u64 };
        self.say(Kind::Stored, &notice.encode());
    }

    /// The next request to the relay of a host.
    fn asked(&mut self, host: HostNumber) -> Option<(u32, StoredRequest, Vec<u8>)> {
        self.heard();
        let requests = self.kernel.network_mut().unwrap().store_requests(host).unwrap();
        let (header, data) = requests.next_to_send()?;
        let (request, bytes) = StoredRequest::decode(header, data).unwrap();
        Some((header.context, request, bytes.to_vec()))
    }

    fn answer(&mut self, host: HostNumber, number: u32, outcome: RelayOutcome, data: &[u8]) {
        let requests = self.kernel.network_mut().unwrap().store_requests(host).unwrap();
        requests.answer(&RelayRequest::answer(number, outcome, data.len()), data).unwrap();
        self.heard();
    }

    /// Answers the request for room.
    fn give_room(&mut self, host: HostNumber) {
        let (number, request, _) = self.asked(host).unwrap();
        let receiver = ProcessId {
            segment: landeck_wire::SegmentId(9),
            slot: landeck_wire::Slot(0),
            incarnation: landeck_wire::Incarnation(1),
        };
        assert_eq!(request, StoredRequest::Store { receiver, bytes: LENGTH as u64 });
        let words = [NUMBER, PLACE].map(u64::to_le_bytes).concat();
        self.answer(host, number, RelayOutcome::Done, &words);
    }

    fn result(&mut self, id: RequestId) -> Option<Result<u64, Failure>> {
        self.kernel.take(id).map(|done| done.result.map(|status| status.bytes))
    }
}

/// The memory of a slice that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep it until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

const FREE: StoredRequest = StoredRequest::Free { number: NUMBER };

#[test]
fn a_sender_offers_writes_seals_and_tells() {
    let mut played = Played::new();
    let id = played.send(StoreWish::Sender);
    let (offer, named) = played.heard().remove(0);
    assert_eq!((offer.kind, offer.tag), (Kind::Offer, TAG));
    played.give_room(HERE);
    // A process of the host writes by itself.
    let there = played.segment.stored_data(PLACE, LENGTH as u64).unwrap().to_vec();
    assert!(there == played.data);
    let (number, request, _) = played.asked(HERE).unwrap();
    assert_eq!(request, StoredRequest::Seal { number: NUMBER });
    assert!(!played.kernel.is_done(id) && played.kernel.has_unfinished_sends());
    let mut seen = Seen::default();
    let requests = played.kernel.network_mut().unwrap().store_requests(HERE).unwrap();
    requests.answer(&RelayRequest::answer(number, RelayOutcome::Done, 0), &[]).unwrap();
    played.kernel.progress();
    played.other.poll(&mut seen);
    let (header, told) = seen.0.remove(0);
    assert_eq!((header.kind, header.context, header.tag), (Kind::Stored, CONTEXT, TAG));
    let notice = StoredNotice::decode(told[..].try_into().unwrap()).unwrap();
    let stored = StoredPlace { host: HERE, number: NUMBER, place: PLACE };
    let send = u64::from_le_bytes(named[8..].try_into().unwrap());
    assert_eq!(notice, StoredNotice { send, stored, length: LENGTH as u64 });
    assert_eq!(played.result(id), Some(Ok(LENGTH as u64)));
    assert!(!played.kernel.has_unfinished_sends());
}

#[test]
fn data_for_another_host_go_there_in_parts() {
    let mut played = Played::new();
    played.send(StoreWish::Host(THERE));
    played.give_room(THERE);
    let mut came = Vec::new();
    for offset in [0, RELAY_PART_BYTES] {
        let (_, request, bytes) = played.asked(THERE).unwrap();
        assert_eq!(request, StoredRequest::Put { number: NUMBER, offset: offset as u64 });
        came.extend(bytes);
    }
    assert!(came == played.data);
    let seal = played.asked(THERE).unwrap().1;
    assert_eq!(seal, StoredRequest::Seal { number: NUMBER });
}

#[test]
fn a_receiver_that_takes_the_message_at_once_gets_it_from_the_sender() {
    let mut played = Played::new();
    let id = played.send(StoreWish::Sender);
    let named = played.heard().remove(0).1;
    // It asks before the store has answered.
    let send: [u8; 8] = named[8..].try_into().unwrap();
    played.say(Kind::Accept, &[send, 99u64.to_le_bytes()].concat());
    assert_eq!(played.result(id), Some(Ok(LENGTH as u64)));
    played.give_room(HERE);
    assert_eq!(played.asked(HERE).unwrap().1, FREE, "nobody wants it there");
    assert!(!played.kernel.has_unfinished_sends());
}

#[test]
fn without_room_in_the_store_the_sender_waits_for_its_receiver() {
    let mut played = Played::new();
    let id = played.send(StoreWish::Sender);
    let named = played.heard().remove(0).1;
    let number = played.asked(HERE).unwrap().0;
    played.answer(HERE, number, RelayOutcome::NoRoom, &[]);
    assert!(!played.kernel.is_done(id) && played.asked(HERE).is_none());
    let send: [u8; 8] = named[8..].try_into().unwrap();
    played.say(Kind::Accept, &[send, 99u64.to_le_bytes()].concat());
    assert_eq!(played.result(id), Some(Ok(LENGTH as u64)));
}

#[test]
fn a_receiver_fetches_from_a_sender_that_is_gone() {
    for is_posted in [false, true] {
        let mut played = Played::new();
        let mut into = vec![0; LENGTH];
        let posted = is_posted.then(|| played.receive(&mut into));
        played.offer(5);
        played.notice(5, LENGTH);
        played.set_far(SlotState::Departed);
        let id = posted.unwrap_or_else(|| played.receive(&mut into));
        let data = played.data.clone();
        for part in data.chunks(RELAY_PART_BYTES) {
            let (number, request, _) = played.asked(THERE).unwrap();
            let StoredRequest::Get { bytes, .. } = request else { panic!("{request:?}") };
            assert_eq!(bytes as usize, part.len());
            assert!(!played.kernel.is_done(id));
            played.answer(THERE, number, RelayOutcome::Done, part);
        }
        assert_eq!(played.asked(THERE).unwrap().1, FREE);
        assert_eq!(played.result(id), Some(Ok(LENGTH as u64)));
        assert!(into == data, "posted: {is_posted}");
    }
}

#[test]
fn a_store_that_is_lost_or_does_not_know_the_message_fails_the_receive() {
    let lost = Some(Err(Failure::StoreLost { peer: Peer(17), host: THERE.0 }));
    for is_host_lost in [false, true] {
        let mut played = Played::new();
        let mut into = vec![0; LENGTH];
        assert_eq!(played.far, Peer(17));
        played.offer(5);
        played.notice(5, LENGTH);
        let id = played.receive(&mut into);
        let number = played.asked(THERE).unwrap().0;
        match is_host_lost {
            true => {
                played.segment.set_host_state(THERE.0, 1, true);
                played.heard();
            }
            false => played.answer(THERE, number, RelayOutcome::Gone, &[]),
        }
        assert_eq!(played.result(id), lost, "host lost: {is_host_lost}");
    }
}

#[test]
fn a_receive_that_ends_too_early_leaves_the_message_for_the_next_one() {
    let mut played = Played::new();
    let mut into = vec![0; LENGTH];
    played.offer(5);
    played.notice(5, LENGTH);
    let first = played.receive(&mut into);
    let number = played.asked(THERE).unwrap().0;
    assert!(played.kernel.put_back(first));
    played.answer(THERE, number, RelayOutcome::Done, &[1; RELAY_PART_BYTES]);
    let _second = played.receive(&mut into);
    let again = std::iter::from_fn(|| played.asked(THERE)).map(|(_, request, _)| request);
    let first = StoredRequest::Get { number: NUMBER, offset: 0, bytes: RELAY_PART_BYTES as u64 };
    assert!(again.collect::<Vec<_>>().contains(&first), "from its beginning");
}

#[test]
fn what_nobody_receives_is_freed() {
    let mut played = Played::new();
    played.notice(77, LENGTH);
    assert_eq!(played.asked(THERE).unwrap().1, FREE, "there is no such offer");
    let mut played = Played::new();
    played.offer(5);
    played.notice(5, LENGTH);
    played.kernel.forget_context(CONTEXT);
    assert_eq!(played.asked(THERE).unwrap().1, FREE, "nobody is in the context any more");
    let mut played = Played::new();
    played.offer(5);
    played.notice(5, LENGTH - 1);
    assert_eq!(played.asked(THERE).unwrap().1, FREE, "it is not the offer's length");
}

#[test]
fn a_notice_that_no_process_sends_breaks_its_sender() {
    let mut played = Played::new();
    let mut into = vec![0; LENGTH];
    let id = played.receive(&mut into);
    played.say(Kind::Stored, &[1; 39]);
    played.kernel.refresh();
    let broken = |end: Option<Result<u64, Failure>>| {
        matches!(end, Some(Err(Failure::PeerBroken { what: BrokenPeer::Reference, .. })))
    };
    assert!(broken(played.result(id)));
}

#[test]
fn on_one_host_data_stay_in_a_quarter_of_the_heap() {
    let plan = SegmentPlan { heap_bytes_per_process: 8 << 20, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&SegmentPlan { cpus: 2, ..plan });
    for slot in 0..2 {
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
    }
    segment.announce_membership();
    let [mut sender, mut receiver] = [0, 1].map(|slot| {
        let near = SharedMemory::new(&segment, slot).unwrap();
        Endpoint::new(near, &segment, slot).unwrap()
    });
    let data: Vec<Vec<u8>> = (0..3).map(|number| vec![number; 900_000]).collect();
    let send = |sender: &mut Endpoint<SharedMemory>, number: usize| {
        sender.send(Peer(1), CONTEXT, TAG, area(&data[number])).unwrap()
    };
    sender.set_store(StoreWish::Sender);
    for number in 0..2 {
        assert!(matches!(send(&mut sender, number), Started::Complete(_)), "{number}");
    }
    let Started::Pending(last) = send(&mut sender, 2) else { panic!("there is no more room") };
    for expected in &data {
        let mut into = vec![9; expected.len()];
        let wanted = Wanted { context: CONTEXT, source: Some(0), tag: Some(TAG) };
        let id = receiver.receive(wanted, area(&into));
        while !receiver.is_done(id) {
            sender.progress_thoroughly();
            receiver.progress();
        }
        assert!(receiver.take(id).unwrap().result.is_ok() && into == *expected);
        into.clear();
    }
    while !sender.is_done(last) {
        sender.progress();
    }
    assert!(!sender.has_unfinished_sends());
}
