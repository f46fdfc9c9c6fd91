//! Receives whose time passes while their message arrives: nothing is lost, and nothing waits for it.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_channel::Channel;
use landeck_kernel::{Area, Endpoint, Failure, Peer, Received, RequestId, Started, Wanted};
use landeck_memory::heap::{Heap, Lent};
use landeck_memory::message_cells::{Filling, MessageCells};
use landeck_memory::{Buffer, Bytes, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::{Random, Watchdog, seed};
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind, Reference};

type Kernel = Endpoint<SharedMemory>;

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
    Endpoint::new(SharedMemory::new(segment, slot).unwrap(), segment, slot).unwrap()
}

/// The memory of a vector that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    (0..length).map(|at| (at as u64 * 31 + seed + (at as u64 >> 8)) as u8).collect()
}

const TAG: u32 = 4;

fn wanted() -> Wanted {
    Wanted { context: 1, source: Some(0), tag: Some(TAG) }
}

/// The ways in which a message comes in pieces.
#[derive(Clone, Copy, Debug)]
enum Path {
    /// In a cell that is being filled.
    Cell,
    /// In a block that is being filled and has room for all of it.
    Block,
    /// Through a block that is a window.
    Window,
    /// In parts that follow when it was accepted.
    Parts,
}

const PATHS: [Path; 4] = [Path::Cell, Path::Block, Path::Window, Path::Parts];

/// A sender that has sent a part of a message and stops there for now.
enum Sender {
    Cell { cells: MessageCells, filling: Option<Filling> },
    Block { lent: Box<Lent>, _heap: Box<Heap> },
    Kernel { kernel: Box<Kernel>, sent: Option<RequestId> },
}

impl Sender {
    /// Begins to send.
    fn begin(segment: &Segment, path: Path, data: &[u8]) -> Self {
        let tell = |kind, told: &[u8]| {
            let header = Header::user(kind, told.len() as u32, 1, TAG);
            let mut channel = SharedMemory::new(segment, 0).unwrap();
            channel.try_send(Peer(1), &header, told.into()).unwrap();
        };
        match path {
            Path::Cell => {
                let mut cells = MessageCells::of(segment, 0);
                let filling = cells.begin(data.into()).unwrap();
                let place = filling.place();
                let numbers = [u64::from(place.cell), u64::from(place.bytes)];
                tell(Kind::InCell, &numbers.map(u64::to_le_bytes).concat());
                Self::Cell { cells, filling: Some(filling) }
            }
            Path::Block => {
                let mut heap = Heap::of(segment, 0).unwrap();
                let block = heap.allocate(data.len()).unwrap();
                let mut lent = heap.lend(block, &[1], 0).unwrap();
                lent.fill(Bytes::from(&data[..data.len() / 3]));
                let place = lent.place(0);
                let reference = Reference {
                    owner: place.owner,
                    generation: place.generation,
                    offset: place.offset,
                    length: data.len() as u64,
                    window: place.window,
                };
                tell(Kind::Reference, &reference.encode());
                Self::Block { lent: Box::new(lent), _heap: Box::new(heap) }
            }
            Path::Window | Path::Parts => {
                let mut kernel = kernel(segment, 0);
                let send = match path {
                    Path::Parts => Kernel::send_synchronous,
                    _ => Kernel::send,
                };
                let sent = match send(&mut kernel, Peer(1), 1, TAG, area(data)).unwrap() {
                    Started::Pending(id) => Some(id),
                    Started::Complete(_) => None,
                };
                Self::Kernel { kernel: Box::new(kernel), sent }
            }
        }
    }

    /// Makes progress, if the sender has an endpoint.
    fn go_on(&mut self) {
        if let Self::Kernel { kernel, .. } = self {
            kernel.progress();
        }
    }

    /// Sends the rest.
    fn send_rest(&mut self, data: &[u8]) {
        match self {
            Self::Cell { cells, filling } => {
                if let Some(filling) = filling.take() {
                    assert!(cells.finish(filling, data.into()));
                }
            }
            Self::Block { lent, .. } => {
                let filled = lent.filled() as usize;
                lent.fill(Bytes::from(&data[filled..]));
            }
            Self::Kernel { kernel, .. } => {
                kernel.progress();
            }
        }
    }

    fn has_ended(&mut self) -> bool {
        let Self::Kernel { kernel, sent: Some(id) } = self else { return true };
        let id = *id;
        let Some(completion) = kernel.take(id) else { return false };
        completion.result.unwrap();
        true
    }
}

fn length_of(path: Path) -> usize {
    match path {
        Path::Cell => 60_000,
        Path::Block => 200_000,
        Path::Window | Path::Parts => 3_000_000,
    }
}

/// A message that has begun to arrive for a receive that is then given up.
fn given_up(path: Path, data: &[u8], into: &[u8]) -> (Segment, Sender, Kernel) {
    let segment = segment();
    let mut receiver = kernel(&segment, 1);
    let mut sender = Sender::begin(&segment, path, data);
    let id = receiver.receive(wanted(), area(into));
    for _ in 0..2 {
        receiver.progress();
        sender.go_on();
    }
    receiver.progress();
    assert!(!receiver.is_done(id), "{path:?}: it has begun to come, and no more");
    assert!(receiver.put_back(id));
    if !matches!(path, Path::Parts) {
        assert_eq!(receiver.take(id).unwrap().result, Err(Failure::Gone), "it is no more");
    }
    (segment, sender, receiver)
}

#[test]
fn a_message_that_has_begun_to_come_is_the_next_receives() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for path in PATHS {
        for is_own in [false, true] {
            let data = pattern(length_of(path), 3);
            let first = vec![0u8; data.len()];
            let (_segment, mut sender, mut receiver) = given_up(path, &data, &first);
            drop(first);
            for more in 0..3 {
                let status = receiver.probe(wanted()).unwrap();
                assert_eq!((status.peer, status.bytes), (Peer(0), data.len() as u64));
                let into = vec![0u8; data.len()];
                let id = receiver.receive(wanted(), area(&into));
                assert!(receiver.probe(wanted()).is_none());
                receiver.progress();
                if more != 0 {
                    sender.go_on();
                }
                assert!(receiver.put_back(id), "{path:?} {more}");
            }
            let into = vec![0u8; data.len()];
            let id = match is_own {
                true => receiver.receive_own(wanted()),
                false => receiver.receive(wanted(), area(&into)),
            };
            while !receiver.is_done(id) {
                sender.send_rest(&data);
                receiver.progress();
            }
            assert!(!receiver.put_back(id), "it has come meanwhile");
            let completion = receiver.take(id).unwrap();
            assert_eq!(completion.result.unwrap().bytes, data.len() as u64);
            match completion.data {
                None => assert!(into == data, "{path:?}"),
                Some(Received::Private(own)) => assert!(own == data, "{path:?}"),
                Some(Received::Borrowed { block, length }) => {
                    let mut own = vec![0; length];
                    block.piece(0, length).copy_to_slice(&mut own);
                    assert!(own == data, "{path:?}");
                }
            }
            while !sender.has_ended() {
                sender.go_on();
            }
            assert!(receiver.probe(wanted()).is_none(), "{path:?}: once");
        }
    }
}

#[test]
fn a_receive_that_was_posted_meanwhile_gets_it() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for path in PATHS {
        let data = pattern(length_of(path), 5);
        let segment = segment();
        let mut receiver = kernel(&segment, 1);
        let mut sender = Sender::begin(&segment, path, &data);
        let [first, second] = [(); 2].map(|()| vec![0u8; data.len()]);
        let doomed = receiver.receive(wanted(), area(&first));
        receiver.progress();
        let next = receiver.receive(Wanted { tag: None, ..wanted() }, area(&second));
        receiver.progress();
        assert!(receiver.put_back(doomed));
        while !receiver.is_done(next) {
            sender.send_rest(&data);
            receiver.progress();
        }
        assert_eq!(receiver.take(next).unwrap().result.unwrap().tag, TAG);
        assert!(second == data, "{path:?}");
    }
}

#[test]
fn a_sender_that_stops_for_good_fails_the_next_receive_when_it_is_gone() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for path in PATHS {
        for is_asked_before in [false, true] {
            let data = pattern(length_of(path), 6);
            let into = vec![0u8; data.len()];
            let (segment, _sender, mut receiver) = given_up(path, &data, &into);
            let mut next = is_asked_before.then(|| receiver.receive(wanted(), area(&into)));
            set_state(&segment, 0, SlotState::Dead);
            receiver.refresh();
            let id = *next.get_or_insert_with(|| receiver.receive(wanted(), area(&into)));
            while !receiver.is_done(id) {
                receiver.progress();
                receiver.verdict(id);
            }
            let failure = receiver.take(id).unwrap().result.unwrap_err();
            assert_eq!(failure, Failure::PeerGone { peer: Peer(0), died: true }, "{path:?}");
        }
    }
}

/// Checks that a receive which is too short has received what fits: the lost rest cannot be restored.
#[test]
fn of_a_message_that_is_too_long_what_fits_has_come() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for path in [Path::Window, Path::Parts] {
        let data = pattern(length_of(path), 7);
        let segment = segment();
        let mut receiver = kernel(&segment, 1);
        let mut sender = Sender::begin(&segment, path, &data);
        let into = vec![0u8; 1000];
        let id = receiver.receive(wanted(), area(&into));
        for _ in 0..2 {
            receiver.progress();
            sender.go_on();
        }
        receiver.progress();
        assert!(!receiver.is_done(id));
        assert!(!receiver.put_back(id), "{path:?}");
        let failure = receiver.take(id).unwrap().result.unwrap_err();
        let (message_bytes, buffer_bytes) = (data.len() as u64, 1000);
        let expected = Failure::Truncated { peer: Peer(0), tag: TAG, message_bytes, buffer_bytes };
        assert_eq!(failure, expected);
        assert!(into == data[..1000]);
        // The sender is not held up.
        while !sender.has_ended() {
            sender.go_on();
            receiver.progress();
        }
        receiver.progress();
        assert!(receiver.is_idle() && receiver.probe(wanted()).is_none());
    }
}

#[test]
fn nobody_gets_it_whose_world_is_revoked_or_forgotten() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    for path in PATHS {
        let data = pattern(length_of(path), 8);
        let into = vec![0u8; data.len()];
        let (_segment, mut sender, mut receiver) = given_up(path, &data, &into);
        receiver.forget_context(1);
        assert!(receiver.probe(wanted()).is_none());
        sender.send_rest(&data);
        receiver.progress();
        let (_segment, _sender, mut receiver) = given_up(path, &data, &into);
        let id = receiver.receive(wanted(), area(&into));
        receiver.revoke(1);
        assert_eq!(receiver.take(id).unwrap().result, Err(Failure::Revoked), "{path:?}");
    }
}

/// Messages of all paths, and receives that are given up at any point.
#[test]
fn every_message_comes_once_whole_and_in_order_however_often_it_is_given_up() {
    const LENGTHS: [usize; 8] = [0, 8, 1000, 5000, 60_000, 200_000, 700_000, 2_000_000];
    let _watchdog = Watchdog::start(Duration::from_secs(500));
    let mut random = Random::new(seed());
    for _ in 0..20 {
        let segment = segment();
        let (mut sender, mut receiver) = (kernel(&segment, 0), kernel(&segment, 1));
        let messages: Vec<(u32, Vec<u8>)> = (0..20)
            .map(|seed| (random.below(2) as u32, pattern(*random.pick(&LENGTHS), seed)))
            .collect();
        for (tag, data) in &messages {
            match random.once_in(3) {
                true => sender.send_synchronous(Peer(1), 1, *tag, area(data)).unwrap(),
                false => sender.send(Peer(1), 1, *tag, area(data)).unwrap(),
            };
        }
        let mut left: Vec<usize> = (0..messages.len()).collect();
        let mut into = vec![0u8; 2_000_000];
        while !left.is_empty() {
            let tag = (!random.once_in(3)).then(|| random.below(2) as u32);
            let source = random.once_in(2).then_some(0);
            into.fill(0xee);
            let is_own = random.once_in(4);
            let wanted = Wanted { context: 1, source, tag };
            let id = match is_own {
                true => receiver.receive_own(wanted),
                false => receiver.receive(wanted, area(&into)),
            };
            for _ in 0..random.below(8) {
                match random.once_in(2) {
                    true => sender.progress(),
                    false => receiver.progress(),
                };
            }
            if receiver.put_back(id) {
                continue;
            }
            let completion = receiver.take(id).unwrap();
            let status = completion.result.unwrap();
            let at = left.iter().position(|&at| tag.is_none_or(|tag| tag == messages[at].0));
            let (expected_tag, expected) = &messages[left.remove(at.unwrap())];
            assert_eq!((status.tag, status.bytes), (*expected_tag, expected.len() as u64));
            match completion.data {
                None => assert!(into[..expected.len()] == expected[..]),
                Some(Received::Private(own)) => assert!(own == *expected),
                Some(Received::Borrowed { block, length }) => {
                    let mut own = vec![0; length];
                    block.piece(0, length).copy_to_slice(&mut own);
                    assert!(own == *expected);
                }
            }
        }
        while sender.has_unfinished_sends() {
            sender.progress();
            receiver.progress();
        }
        receiver.progress();
        assert!(receiver.is_idle());
        assert!(receiver.probe(Wanted { context: 1, source: None, tag: None }).is_none());
    }
}
