//! Messages in chunks between two hosts, each of which is an endpoint driven by hand.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use landeck_channel::incast::Incast;
use landeck_channel::tokens::{Priority, TokenWish};
use landeck_channel::{BrokenPeer, Channel, SendError, Sink, Verdict};
use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Wanted};
use landeck_memory::{
    Buffer, Bytes, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState,
};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{ContextId, Header, Kind};

const CONTEXT: u32 = 1;
/// The context of a group whose messages have high priority.
const URGENT: u32 = 2;
const KIB: usize = 1 << 10;
/// The other host's process, as each of both numbers it.
const FAR: Peer = Peer(1);
/// The most frames on their way.
const FRAMES_MAX: usize = 5;

type Frames = Arc<Mutex<VecDeque<(Header, Vec<u8>)>>>;

/// One end of a network of two processes.
struct Cable {
    out: Frames,
    incoming: Frames,
}

impl Channel for Cable {
    fn data_bytes_max(&self) -> usize {
        64 * KIB
    }

    fn try_send(&mut self, _to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        let mut out = self.out.lock().unwrap();
        if out.len() >= FRAMES_MAX {
            return Err(SendError::Full);
        }
        out.push_back((*header, data.to_vec()));
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let Some((header, data)) = self.incoming.lock().unwrap().pop_front() else { return false };
        assert_eq!(sink.arrive(FAR, &header, (&data[..]).into()), Verdict::Taken);
        true
    }

    fn is_read_out(&self, _peer: Peer) -> bool {
        self.incoming.lock().unwrap().is_empty()
    }

    fn leave(&mut self) {}

    fn forget(&mut self, _peer: Peer) {}
}

struct End {
    kernel: Endpoint<SharedMemory>,
    segment: Segment,
}

impl End {
    fn new(out: &Frames, incoming: &Frames) -> Self {
        let plan = SegmentPlan {
            heap_bytes_per_process: 4 << 20,
            cpus: 2,
            far: 1,
            guests: 0,
            ..SegmentPlan::new(7, 1)
        };
        let segment = Segment::local(&plan);
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(0, alive);
        let near = SharedMemory::new(&segment, 0).unwrap();
        let mut kernel = Endpoint::new(near, &segment, 0).unwrap();
        let (out, incoming) = (Arc::clone(out), Arc::clone(incoming));
        kernel.set_network(Box::new(Cable { out, incoming }));
        let mut end = Self { kernel, segment };
        end.put_far(SlotState::Alive);
        end
    }

    fn put_far(&mut self, state: SlotState) {
        let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
        self.segment.set_far_record(0, FarRecord { process, state, ..FarRecord::default() });
        self.segment.announce_membership();
        self.kernel.refresh();
    }

    fn send(&mut self, context: u32, tag: u32, data: &[u8]) -> Option<RequestId> {
        match self.kernel.send(FAR, context, tag, area(data)).unwrap() {
            Started::Pending(id) => Some(id),
            Started::Complete(_) => None,
        }
    }

    fn receive(&mut self, context: u32, tag: u32, memory: &[u8]) -> RequestId {
        let wanted = Wanted { context, source: Some(FAR.0), tag: Some(tag) };
        self.kernel.receive(wanted, area(memory))
    }
}

/// Two hosts with one process each.
struct Hosts {
    near: End,
    far: End,
    to_far: Frames,
    to_near: Frames,
    /// The chunks that have gone to the far host.
    chunks: usize,
}

impl Hosts {
    fn new(wish: TokenWish) -> Self {
        let (to_far, to_near) = (Frames::default(), Frames::default());
        let mut near = End::new(&to_far, &to_near);
        let far = End::new(&to_near, &to_far);
        near.kernel.set_incast(Incast::Tokens(wish));
        let high = TokenWish { priority: Priority::High, ..wish };
        let of_urgent = URGENT | ContextId::COLLECTIVE;
        near.kernel.set_incast_of(of_urgent, Some(Incast::Tokens(high)));
        Self { near, far, to_far, to_near, chunks: 0 }
    }

    /// Looks on both hosts. The far one looks later, so that frames wait.
    fn turn(&mut self) {
        // Without a reason it goes to the network at every 256th look. It does not sleep, so it copies nothing.
        for _ in 0..300 {
            self.near.kernel.progress();
        }
        let is_chunk = |frame: &&(Header, Vec<u8>)| frame.0.kind == Kind::Chunk;
        let before = self.to_far.lock().unwrap().iter().filter(is_chunk).count();
        self.far.kernel.progress_thoroughly();
        self.chunks += before - self.to_far.lock().unwrap().iter().filter(is_chunk).count();
    }

    /// Looks until a message is there, and returns its length.
    fn received(&mut self, id: RequestId) -> Result<u64, Failure> {
        for _ in 0..1_000 {
            if let Some(completion) = self.far.kernel.take(id) {
                return completion.result.map(|status| status.bytes);
            }
            self.turn();
        }
        panic!("the message does not come");
    }

    fn settle(&mut self) {
        (0..100).for_each(|_| self.turn());
        assert!(self.to_far.lock().unwrap().is_empty() && self.to_near.lock().unwrap().is_empty());
    }

    /// All tokens are there again: a message that fills all buffers comes.
    fn expect_all_tokens(&mut self) {
        let (data, memory) = (pattern(128 * KIB, 77), vec![0; 128 * KIB]);
        self.settle();
        self.chunks = 0;
        let sent = self.near.send(CONTEXT, 99, &data);
        self.settle();
        assert_eq!(self.chunks, 8, "of a message without a receive");
        let id = self.far.receive(CONTEXT, 99, &memory);
        assert_eq!(self.received(id), Ok(128 << 10));
        assert!(content(&memory) == data);
        self.take(sent);
    }

    /// Ends a send that is complete.
    fn take(&mut self, sent: Option<RequestId>) {
        let Some(sent) = sent else { return };
        (0..100).for_each(|_| self.turn());
        self.near.kernel.take(sent).expect("the send is complete").result.unwrap();
    }
}

/// The memory of a slice that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the memory until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + (at >> 8) * 7 + salt) as u8).collect()
}

/// The content of the memory; the compiler does not know that the endpoint writes there.
fn content(memory: &[u8]) -> Vec<u8> {
    std::hint::black_box(memory).to_vec()
}

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(200))
}

#[test]
fn messages_of_all_lengths_come_in_the_way_of_their_size() {
    let _watchdog = watchdog();
    let lengths = [0, 1, 16 * KIB, 16 * KIB + 1, 65_537, 128 * KIB, 128 * KIB + 1, 1 << 20];
    let by_size = [0, 0, 0, 2, 5, 8, 0, 0];
    let all = [0, 0, 0, 2, 5, 8, 9, 64];
    for (wish, chunks) in [
        (TokenWish::default(), by_size),
        (TokenWish::SEGMENTATION, all),
        (TokenWish::RESERVATION, [0; 8]),
    ] {
        let mut hosts = Hosts::new(wish);
        for (length, chunks) in lengths.into_iter().zip(chunks) {
            for is_posted in [true, false] {
                let (data, memory) = (pattern(length, length), vec![0; length]);
                hosts.chunks = 0;
                let early = is_posted.then(|| hosts.far.receive(CONTEXT, 3, &memory));
                let sent = hosts.near.send(CONTEXT, 3, &data);
                (0..100).for_each(|_| hosts.turn());
                let id = early.unwrap_or_else(|| hosts.far.receive(CONTEXT, 3, &memory));
                assert_eq!(hosts.received(id), Ok(length as u64));
                assert!(content(&memory) == data, "{wish:?}, {length} bytes");
                assert_eq!(hosts.chunks, chunks, "{wish:?}, {length} bytes");
                hosts.take(sent);
            }
        }
        if wish != TokenWish::RESERVATION {
            hosts.expect_all_tokens();
        }
    }
}

#[test]
fn high_priority_comes_past_full_buffers() {
    let _watchdog = watchdog();
    let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
    let (bulk, memory) = (pattern(1 << 20, 1), vec![0; 1 << 20]);
    let (urgent, urgent_memory) = (pattern(200 * KIB, 2), vec![0; 200 * KIB]);
    let sent = hosts.near.send(CONTEXT, 3, &bulk);
    hosts.settle();
    assert_eq!(hosts.chunks, 8, "as many as there are buffers, and nobody receives them");
    let id = hosts.far.receive(URGENT, 3, &urgent_memory);
    let sent_urgently = hosts.near.send(URGENT, 3, &urgent);
    assert_eq!(hosts.received(id), Ok(200 << 10));
    assert!(content(&urgent_memory) == urgent);
    assert_eq!(hosts.chunks, 8 + 13, "the rest of the others still waits");
    let id = hosts.far.receive(CONTEXT, 3, &memory);
    assert_eq!(hosts.received(id), Ok(1 << 20));
    assert!(content(&memory) == bulk);
    [sent, sent_urgently].into_iter().for_each(|sent| hosts.take(sent));
    hosts.expect_all_tokens();
}

/// A later message is received first, while the chunks of an earlier one are in all buffers.
#[test]
fn messages_that_wait_in_their_buffers_keep_no_later_one_waiting() {
    let _watchdog = watchdog();
    for is_posted in [true, false] {
        let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
        let data = [pattern(1 << 20, 1), pattern(300 * KIB, 2), pattern(500 * KIB, 3)];
        let memory = data.each_ref().map(|data| vec![0; data.len()]);
        let early = is_posted.then(|| hosts.far.receive(CONTEXT, 1, &memory[1]));
        let sent: Vec<_> =
            (0..3).map(|tag| hosts.near.send(CONTEXT, tag as u32, &data[tag])).collect();
        (0..100).for_each(|_| hosts.turn());
        let id = early.unwrap_or_else(|| hosts.far.receive(CONTEXT, 1, &memory[1]));
        assert_eq!(hosts.received(id), Ok(300 << 10));
        for tag in [2, 0] {
            let id = hosts.far.receive(CONTEXT, tag as u32, &memory[tag]);
            assert_eq!(hosts.received(id), Ok(data[tag].len() as u64));
        }
        assert!(memory.iter().map(|memory| content(memory)).eq(data), "{is_posted}");
        sent.into_iter().for_each(|sent| hosts.take(sent));
        hosts.expect_all_tokens();
    }
}

#[test]
fn a_message_that_nobody_receives_leaves_its_buffers() {
    let _watchdog = watchdog();
    let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
    let (data, memory) = (pattern(1 << 20, 1), vec![0; 1 << 20]);
    // A receive ends while its message comes.
    let id = hosts.far.receive(CONTEXT, 3, &memory);
    let sent = hosts.near.send(CONTEXT, 3, &data);
    (0..10).for_each(|_| hosts.turn());
    hosts.far.kernel.abandon(id);
    hosts.settle();
    hosts.take(sent);
    hosts.expect_all_tokens();
    // A message that has begun to come is dropped with its context.
    let sent = hosts.near.send(CONTEXT, 3, &data);
    hosts.settle();
    hosts.far.kernel.forget_context(CONTEXT);
    hosts.settle();
    hosts.take(sent);
    hosts.expect_all_tokens();
}

#[test]
fn a_process_that_sleeps_has_copied_what_it_sends() {
    let _watchdog = watchdog();
    let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
    let (mut data, memory) = (pattern(200 * KIB, 1), vec![0; 200 * KIB]);
    let expected = data.clone();
    let sent = hosts.near.send(CONTEXT, 3, &data).expect("it waits for buffers");
    hosts.settle();
    assert!(!hosts.near.kernel.is_done(sent));
    assert!(hosts.near.kernel.progress_thoroughly());
    assert!(
        hosts.near.kernel.take_well(sent).is_some() && hosts.near.kernel.has_unfinished_sends()
    );
    data.fill(0);
    let id = hosts.far.receive(CONTEXT, 3, &memory);
    assert_eq!(hosts.received(id), Ok(200 << 10));
    assert!(content(&memory) == expected);
    hosts.near.kernel.progress_thoroughly();
    assert!(hosts.near.kernel.is_idle() && !hosts.near.kernel.has_unfinished_sends());
    // A longer one stays in the program's memory.
    let (data, memory) = (pattern(257 * KIB, 1), vec![0; 257 * KIB]);
    let sent = hosts.near.send(CONTEXT, 3, &data).expect("it waits for buffers");
    hosts.near.kernel.progress_thoroughly();
    assert!(!hosts.near.kernel.is_done(sent));
    let id = hosts.far.receive(CONTEXT, 3, &memory);
    assert_eq!(hosts.received(id), Ok(257 << 10));
    hosts.take(Some(sent));
}

#[test]
fn many_senders_share_the_number_of_buffers() {
    let _watchdog = watchdog();
    for (senders, chunks) in [(1, 8), (3, 2), (24, 1)] {
        let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
        let (data, memory) = (pattern(1 << 20, 1), vec![0; 1 << 20]);
        let context = CONTEXT | ContextId::COLLECTIVE;
        let started = hosts.near.kernel.send_of_many(FAR, context, 3, (area(&data), senders));
        assert!(matches!(started, Ok(Started::Pending(_))));
        hosts.settle();
        assert_eq!(hosts.chunks, chunks, "{senders} senders");
        let id = hosts.far.receive(context, 3, &memory);
        assert_eq!(hosts.received(id), Ok(1 << 20));
        assert!(content(&memory) == data);
    }
}

#[test]
fn a_message_that_has_come_whole_outlives_its_sender() {
    let _watchdog = watchdog();
    let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
    let (data, memory) = (pattern(100 * KIB, 1), vec![0; 100 * KIB]);
    let (long, long_memory) = (pattern(1 << 20, 1), vec![0; 1 << 20]);
    let sent = [hosts.near.send(CONTEXT, 3, &data), hosts.near.send(CONTEXT, 4, &long)];
    hosts.settle();
    hosts.far.put_far(SlotState::Dead);
    hosts.far.kernel.progress_thoroughly();
    let id = hosts.far.receive(CONTEXT, 3, &memory);
    assert_eq!(hosts.far.kernel.take(id).unwrap().result.unwrap().bytes, 100 << 10);
    assert!(content(&memory) == data);
    let id = hosts.far.receive(CONTEXT, 4, &long_memory);
    hosts.far.kernel.verdict(id);
    let result = hosts.far.kernel.take(id).unwrap().result;
    assert!(matches!(result, Err(Failure::PeerGone { peer: FAR, died: true })), "{result:?}");
    sent.into_iter().flatten().for_each(|id| hosts.near.kernel.abandon(id));
}

/// Frames that no sender sends break their sender, and write nothing.
#[test]
fn a_hostile_sender_is_broken() {
    let _watchdog = watchdog();
    let offer = |bytes: u64, send: u64, priority: u64| {
        let data = [bytes, send, priority].map(u64::to_le_bytes).concat();
        (Header::user(Kind::Offer, data.len() as u32, CONTEXT, 3), data)
    };
    let chunk = |send: u32, length: usize| {
        (Header::user(Kind::Chunk, length as u32, send, 0), vec![1; length])
    };
    let emptied = |low, high| (Header::user(Kind::Emptied, 0, low, high), Vec::new());
    let mut nine = vec![offer(1 << 20, 5, 0)];
    nine.extend((0..9).map(|_| chunk(5, 100)));
    let form = BrokenPeer::Form;
    for (frames, expected) in [
        (vec![chunk(5, 100)], form.clone()),
        (vec![offer(100_000, 5, 0), chunk(6, 100)], form.clone()),
        (vec![offer(100_000, 5, 0), chunk(5, 0)], form.clone()),
        (
            vec![offer(100_000, 5, 0), chunk(5, 16_385)],
            BrokenPeer::TooLong { length: 16_385, most: 16_384 },
        ),
        (vec![offer(50, 5, 0), chunk(5, 51)], BrokenPeer::TooLong { length: 51, most: 50 }),
        (vec![offer(0, 5, 0)], BrokenPeer::Reference),
        (vec![offer(9, 5, 3)], BrokenPeer::Reference),
        (vec![offer(9, 5, 0), offer(9, 5, 1)], BrokenPeer::Reference),
        (vec![emptied(1, 0)], form.clone()),
        (vec![emptied(0, 1)], form.clone()),
        (nine, form),
    ] {
        let mut hosts = Hosts::new(TokenWish::SEGMENTATION);
        hosts.to_far.lock().unwrap().extend(frames.clone());
        let memory = vec![0; 8];
        let id = hosts.far.receive(CONTEXT, 9, &memory);
        (0..20).for_each(|_| hosts.turn());
        hosts.far.segment.announce_membership();
        hosts.far.kernel.verdict(id);
        let found = hosts.far.kernel.take(id).map(|completion| completion.result);
        let is_it =
            matches!(&found, Some(Err(Failure::PeerBroken { what, .. })) if *what == expected);
        assert!(is_it, "{frames:?}: {found:?}");
    }
}
