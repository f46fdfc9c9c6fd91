//! Messages that their receiver reads out of the sender's memory: every kind of them, refusals, deaths and lies.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landeck_channel::{BrokenPeer, Channel, Sink, Verdict};
use landeck_kernel::{
    Area, Completion, Endpoint, Failure, Peer, Received, RequestId, Started, Wanted,
};
use landeck_layout::{Bounds, Kind as Element, Layout};
use landeck_memory::{Buffer, Bytes, ProcessMark, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind};

type Kernel = Endpoint<SharedMemory>;

/// All endpoints of these tests have the mark of this process, which some of them retract. So one test runs at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> (MutexGuard<'static, ()>, Watchdog) {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    (one, Watchdog::start(Duration::from_secs(200)))
}

const TAG: u32 = 3;
const LENGTHS: [usize; 5] = [4_096, 16_385, 70_000, 262_145, 3_000_000];

fn segment() -> Segment {
    let plan = SegmentPlan { heap_bytes_per_process: 16 << 20, cpus: 2, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&plan);
    (0..2).for_each(|slot| set_state(&segment, slot, SlotState::Alive));
    segment
}

fn set_state(segment: &Segment, slot: u32, state: SlotState) {
    segment.set_slot_record(slot, SlotRecord { state, incarnation: 1, ..SlotRecord::default() });
    segment.announce_membership();
}

fn kernel(segment: &Segment, slot: u32) -> Kernel {
    let channel = SharedMemory::new(segment, slot).unwrap();
    let mut kernel = Endpoint::new(channel, segment, slot).unwrap();
    kernel.set_one_copy_from(4_096);
    kernel
}

fn both() -> [Kernel; 2] {
    let segment = segment();
    [0, 1].map(|slot| kernel(&segment, slot))
}

/// The memory of a vector that outlives its requests in these tests.
fn buffer(values: &[u8]) -> Buffer {
    // SAFETY: the tests keep the vector until its requests are complete.
    unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) }
}

fn area(values: &[u8]) -> Area {
    Area::contiguous(buffer(values))
}

/// Blocks of `length` bytes with as much between them.
fn apart(values: &[u8], length: u64) -> Area {
    let block = Layout::elements(Element::BYTE, length).unwrap();
    let item = block.resized(Bounds { lower: 0, upper: 2 * length as i64 });
    Area::with_layout(buffer(values), 0, &item, values.len() as u64 / (2 * length)).unwrap()
}

fn wanted() -> Wanted {
    Wanted { context: 1, source: Some(0), tag: Some(TAG) }
}

fn pending(started: Started) -> RequestId {
    match started {
        Started::Pending(id) => id,
        Started::Complete(status) => panic!("it is over: {status:?}"),
    }
}

fn send(kernel: &mut Kernel, area: Area) -> RequestId {
    pending(kernel.send(Peer(1), 1, TAG, area).unwrap())
}

fn look(both: &mut [Kernel; 2]) {
    for _ in 0..8 {
        both.iter_mut().for_each(|kernel| {
            kernel.progress();
        });
    }
}

fn finish(both: &mut [Kernel; 2], at: usize, id: RequestId) -> Completion {
    loop {
        both.iter_mut().for_each(|kernel| {
            kernel.progress();
        });
        if let Some(completion) = both[at].take(id) {
            return completion;
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8)).collect()
}

#[test]
fn a_send_is_complete_when_its_data_are_read_and_not_before() {
    let _alone = alone();
    let mut both = both();
    for (length, is_expected) in
        LENGTHS.iter().flat_map(|&length| [(length, false), (length, true)])
    {
        let (data, into) = (pattern(length), vec![0; length]);
        let early = is_expected.then(|| both[1].receive(wanted(), area(&into)));
        let sent = send(&mut both[0], area(&data));
        assert_eq!(both[0].heap_in_use(), 0, "nothing is copied: {length} bytes");
        if !is_expected {
            look(&mut both);
            assert!(!both[0].is_done(sent) && both[0].has_unfinished_sends(), "{length} bytes");
            assert_eq!(both[1].probe(wanted()).unwrap().bytes, length as u64);
        }
        let receive = early.unwrap_or_else(|| both[1].receive(wanted(), area(&into)));
        let status = finish(&mut both, 1, receive).result.unwrap();
        assert_eq!((status.peer, status.bytes), (Peer(0), length as u64));
        // The receiver makes no further call.
        both[0].progress();
        assert!(both[0].is_done(sent), "{length} bytes");
        both[0].take(sent).unwrap();
        assert!(into == data, "{length} bytes, expected {is_expected}");
    }
    assert!(!both[0].has_unfinished_sends());
}

#[test]
fn shorter_messages_and_other_groups_go_their_way() {
    let _alone = alone();
    let mut both = both();
    both[0].set_one_copy_from_in(2, u64::MAX);
    let data = pattern(70_000);
    for (context, length, waits) in [(1, 4_095, false), (1, 70_000, true), (2, 70_000, false)] {
        let started = both[0].send(Peer(1), context, TAG, area(&data[..length])).unwrap();
        assert_eq!(matches!(started, Started::Pending(_)), waits, "{length} bytes in {context}");
        let into = vec![0; length];
        let receive = both[1].receive(Wanted { context, ..wanted() }, area(&into));
        finish(&mut both, 1, receive).result.unwrap();
        assert!(into == data[..length]);
        look(&mut both);
    }
}

#[test]
fn data_that_lie_apart_are_read_on_both_sides() {
    let _alone = alone();
    let mut both = both();
    // The last two have too many places, and go another way.
    for (block, bytes) in
        [(4_096, 65_536), (60_000, 600_000), (1_024, 262_144), (1_024, 3_145_728), (7, 70_000)]
    {
        let (data, into) = (pattern(2 * bytes), vec![0; 2 * bytes]);
        let packed: Vec<u8> =
            data.chunks(2 * block).flat_map(|item| &item[..block]).copied().collect();
        for (from, to) in [(true, false), (false, true), (true, true)] {
            let whole = |values: &[u8], is_apart| match is_apart {
                true => apart(values, block as u64),
                false => area(&values[..bytes]),
            };
            let sent = both[0].send(Peer(1), 1, TAG, whole(&data, from)).unwrap();
            let receive = both[1].receive(wanted(), whole(&into, to));
            let status = finish(&mut both, 1, receive).result.unwrap();
            assert_eq!(status.bytes, bytes as u64);
            if let Started::Pending(id) = sent {
                finish(&mut both, 0, id).result.unwrap();
            }
            let expected = if from { &packed[..] } else { &data[..bytes] };
            let mut got = vec![0; bytes];
            whole(&into, to).pack_slice(0, &mut got);
            assert!(got == expected, "{block} of {bytes} bytes, {from} to {to}");
        }
    }
}

#[test]
fn blocks_of_both_sides_may_have_any_length() {
    let _alone = alone();
    let mut both = both();
    // The kernel gets 64 places in a call, and a look reads 1 MiB: some need several of both.
    for (from, to, bytes) in [
        (3_001, 1_024, 3_001 * 1_000),
        (1_500, 40_001, 1_500 * 700),
        (65_537, 1_023, 65_537 * 33),
        (4_096, 3, 4_096 * 30),
    ] {
        let bytes = bytes / to * to;
        let (data, into) = (pattern(2 * bytes + 2 * from), vec![0xee; 2 * bytes]);
        let source = apart(&data, from as u64).part(0, bytes as u64);
        let mut packed = vec![0; bytes];
        source.pack_slice(0, &mut packed);
        let sent = send(&mut both[0], source);
        assert_eq!(both[0].heap_in_use(), 0, "nothing is copied: {from} to {to}");
        let receive = both[1].receive(wanted(), apart(&into, to as u64));
        for _ in 0..32 {
            both[1].progress();
        }
        // What is read needs nothing more of its sender.
        assert_eq!(both[1].is_done(receive), to >= 1_024, "short places take two copies: {to}");
        assert_eq!(finish(&mut both, 1, receive).result.unwrap().bytes, bytes as u64);
        finish(&mut both, 0, sent).result.unwrap();
        for (item, wanted) in into.chunks(2 * to).zip(packed.chunks(to)) {
            assert!(item[..to] == *wanted, "{from} to {to}");
            assert!(item[to..].iter().all(|&byte| byte == 0xee), "{from} to {to}: between");
        }
    }
}

#[test]
fn messages_without_a_buffer_and_in_too_short_ones_are_read() {
    let _alone = alone();
    let mut both = both();
    let (data, into) = (pattern(3_000_000), vec![0; 2_000_000]);
    for is_apart in [false, true] {
        let from = || if is_apart { apart(&data, 50_000) } else { area(&data[..1_500_000]) };
        let mut packed = vec![0; 1_500_000];
        from().pack_slice(0, &mut packed);
        let sent = send(&mut both[0], from());
        let receive = both[1].receive_own(wanted());
        let Some(Received::Private(own)) = finish(&mut both, 1, receive).data else {
            panic!("it was read")
        };
        finish(&mut both, 0, sent).result.unwrap();
        assert!(own == packed);
        let sent = send(&mut both[0], from());
        let receive = both[1].receive(wanted(), area(&into[..1_000_001]));
        let failure = finish(&mut both, 1, receive).result.unwrap_err();
        assert!(
            matches!(failure, Failure::Truncated { message_bytes: 1_500_000, .. }),
            "{failure}"
        );
        finish(&mut both, 0, sent).result.unwrap();
        assert!(into[..1_000_001] == packed[..1_000_001]);
    }
}

#[test]
fn held_cancelled_and_synchronous_messages_are_those_of_offers() {
    let _alone = alone();
    let mut both = both();
    let (data, into) = (pattern(300_000), vec![0; 300_000]);
    let sent = send(&mut both[0], area(&data));
    look(&mut both);
    let (held, status) = both[1].hold(wanted()).unwrap();
    assert_eq!(status.bytes, 300_000);
    assert!(both[1].receive_held(held, area(&into)));
    finish(&mut both, 1, held).result.unwrap();
    finish(&mut both, 0, sent).result.unwrap();
    assert!(into == data);

    let sent = send(&mut both[0], area(&data));
    look(&mut both);
    both[0].cancel(sent);
    assert!(finish(&mut both, 0, sent).result.unwrap().cancelled);
    assert!(both[1].probe(wanted()).is_none());

    let sent = pending(both[0].send_synchronous(Peer(1), 1, TAG, area(&data)).unwrap());
    look(&mut both);
    assert!(!both[0].is_done(sent));
    let receive = both[1].receive(wanted(), area(&into));
    finish(&mut both, 1, receive).result.unwrap();
    finish(&mut both, 0, sent).result.unwrap();
}

#[test]
fn a_message_that_is_put_back_is_read_again() {
    let _alone = alone();
    let mut both = both();
    let (data, into) = (pattern(3_000_000), vec![0; 3_000_000]);
    let sent = send(&mut both[0], area(&data));
    let receive = both[1].receive(wanted(), area(&into));
    both[1].progress();
    assert!(!both[1].is_done(receive), "it takes several looks");
    assert!(both[1].put_back(receive));
    into_zero(&into);
    look(&mut both);
    assert!(!both[0].is_done(sent));
    let receive = both[1].receive(wanted(), area(&into));
    assert_eq!(finish(&mut both, 1, receive).result.unwrap().bytes, 3_000_000);
    finish(&mut both, 0, sent).result.unwrap();
    assert!(into == data);
}

fn into_zero(values: &[u8]) {
    buffer(values).write(0, Bytes::from(&vec![0; values.len()][..]));
}

#[test]
fn the_rest_of_an_abandoned_send_is_never_received() {
    let _alone = alone();
    let segment = segment();
    let mut both = [0, 1].map(|slot| kernel(&segment, slot));
    let (data, into) = (pattern(3_000_000), vec![0; 3_000_000]);
    let sent = send(&mut both[0], area(&data));
    let receive = both[1].receive(wanted(), area(&into));
    both[1].progress();
    // The send ends, and the program uses its memory again.
    both[0].abandon(sent);
    into_zero(&data);
    look(&mut both);
    assert!(!both[1].is_done(receive), "a part of it is not the message");
    set_state(&segment, 0, SlotState::Dead);
    both[1].refresh();
    let failure = both[1].take(receive).unwrap().result.unwrap_err();
    assert_eq!(failure, Failure::PeerGone { peer: Peer(0), died: true });
}

/// A process that sends and receives as it likes.
struct Raw {
    channel: SharedMemory,
    got: Vec<(Header, Vec<u8>)>,
}

impl Raw {
    fn new(segment: &Segment, slot: u32) -> Self {
        Self { channel: SharedMemory::new(segment, slot).unwrap(), got: Vec::new() }
    }

    fn tell(&mut self, to: u32, header: Header, words: &[u64]) {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = Header { length: data.len() as u32, ..header };
        self.channel.try_send(Peer(to), &header, (&data[..]).into()).unwrap();
    }

    /// Offers a message whose data are told to be somewhere.
    fn offer(&mut self, length: u64, mark: ProcessMark, places: &[u64]) {
        let ProcessMark { pid, address, word } = mark;
        let words = [&[length, 77, u64::from(pid), address, word], places].concat();
        self.tell(1, Header::user(Kind::Offer, 0, 1, TAG), &words);
    }

    fn next(&mut self) -> Option<(Header, Vec<u64>)> {
        let mut sink = Gather(&mut self.got);
        self.channel.poll(&mut sink);
        let (header, data) = (!self.got.is_empty()).then(|| self.got.remove(0))?;
        let words = data.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        Some((header, words.collect()))
    }
}

struct Gather<'a>(&'a mut Vec<(Header, Vec<u8>)>);

impl Sink for Gather<'_> {
    fn arrive(&mut self, _from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        self.0.push((*header, data.to_vec()));
        Verdict::Taken
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        panic!("{from:?}: {what}");
    }
}

const CANNOT_READ: u32 = 1;

#[test]
fn a_message_that_cannot_be_read_comes_in_parts() {
    let _alone = alone();
    let segment = segment();
    let (mut sender, mut receiver) = (Raw::new(&segment, 0), kernel(&segment, 1));
    let (own, data, into) = (ProcessMark::own(), pattern(10_000), vec![0; 10_000]);
    let address = data.as_ptr().addr() as u64;
    // Another process has the number, as in a container; the second message is not even tried.
    for mark in [ProcessMark { word: own.word ^ 1 << 62, ..own }, own] {
        let receive = receiver.receive(wanted(), area(&into));
        sender.offer(10_000, mark, &[address]);
        receiver.progress();
        assert!(!receiver.is_done(receive));
        let (answer, words) = sender.next().unwrap();
        assert_eq!((answer.kind, answer.tag, words[0]), (Kind::Accept, CANNOT_READ, 77));
        let part = Header::user(Kind::Part, 10_000, words[1] as u32, (words[1] >> 32) as u32);
        sender.channel.try_send(Peer(1), &part, (&data[..]).into()).unwrap();
        receiver.progress();
        assert_eq!(receiver.take(receive).unwrap().result.unwrap().bytes, 10_000);
        assert!(into == data);
        into_zero(&into);
    }
}

#[test]
fn a_sender_that_cannot_be_read_uses_its_heap_from_then_on() {
    let _alone = alone();
    let segment = segment();
    let (mut sender, mut receiver) = (kernel(&segment, 0), Raw::new(&segment, 1));
    let data = pattern(200_000);
    let first = send(&mut sender, area(&data));
    let (offer, words) = receiver.next().unwrap();
    assert_eq!((offer.kind, words.len(), words[0]), (Kind::Offer, 6, 200_000));
    assert_eq!(words[5], data.as_ptr().addr() as u64);
    receiver.tell(0, Header::user(Kind::Accept, 0, 0, CANNOT_READ), &[words[1], 5]);
    let mut got = Vec::new();
    while got.len() < data.len() || !sender.is_done(first) {
        sender.progress();
        receiver.channel.poll(&mut Gather(&mut receiver.got));
        got.extend(receiver.got.drain(..).flat_map(|(_, data)| data));
    }
    assert!(got == data);
    assert!(matches!(sender.send(Peer(1), 1, TAG, area(&data)), Ok(Started::Complete(_))));
    assert_eq!(receiver.next().unwrap().0.kind, Kind::Reference);
}

#[test]
fn memory_that_its_sender_has_released_is_an_error_of_the_receive() {
    let _alone = alone();
    let segment = segment();
    let (mut sender, mut receiver) = (Raw::new(&segment, 0), kernel(&segment, 1));
    let into = vec![0; 10_000];
    let receive = receiver.receive(wanted(), area(&into));
    sender.offer(10_000, ProcessMark::own(), &[4_096]);
    receiver.progress();
    let failure = receiver.take(receive).unwrap().result.unwrap_err();
    assert_eq!(failure, Failure::PeerBroken { peer: Peer(0), what: BrokenPeer::Unmapped });
    let (answer, words) = sender.next().unwrap();
    assert_eq!((answer.kind, words[0]), (Kind::Done, 77), "the send ends as well");
}

#[test]
fn places_with_another_length_than_announced_are_broken() {
    let _alone = alone();
    let data = pattern(10_000);
    let at = data.as_ptr().addr() as u64;
    for places in [
        &[at, 4_000, at, 6_001][..],
        &[at, 4_000, at, 5_999],
        &[at, 10_000, at, 0],
        &[at, u64::MAX, at, 10_001],
        &[at, 4_000, at],
        &[],
    ] {
        let segment = segment();
        let (mut sender, mut receiver) = (Raw::new(&segment, 0), kernel(&segment, 1));
        let into = vec![0; 20_000];
        let receive = receiver.receive(wanted(), area(&into));
        sender.offer(10_000, ProcessMark::own(), places);
        receiver.progress();
        receiver.verdict(receive);
        let failure = receiver.take(receive).unwrap().result.unwrap_err();
        assert_eq!(failure, Failure::PeerBroken { peer: Peer(0), what: BrokenPeer::Reference });
        assert!(into.iter().all(|&byte| byte == 0), "{places:?}");
    }
}
