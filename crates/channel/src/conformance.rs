//! The conformance suite of channels, as tests over a [`Network`] of connected endpoints.
//!
//! A channel's own tests implement [`Network`] and call [`conformance_tests!`](crate::conformance_tests). One thread
//! drives everything. Sent messages are recorded in plain queues; an arriving message must be the first of its queue.

#![expect(clippy::missing_panics_doc, reason = "tests panic")]

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use landeck_memory::heap::{Block, Heap};
use landeck_memory::{Buffer, Bytes, Segment, SegmentPlan};
use landeck_wire::{Class, Flags, HEADER_BYTES, Header, Kind};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::{BrokenPeer, Channel, Peer, SendError, Sink, URGENT_BYTES_MAX, Verdict};

/// Endpoints of the channel under test, each connected with all others. Endpoint `n` is `Peer(n)` to the others.
pub trait Network: Sized {
    /// The channel under test.
    type Channel: Channel;

    /// Connects so many endpoints, numbered from 0.
    fn connect(count: u32) -> Self;

    /// An endpoint, which exists and has not ended.
    fn endpoint(&mut self, number: u32) -> &mut Self::Channel;

    /// Ends an endpoint, as the death of its process would.
    fn end(&mut self, number: u32);

    /// Ends an endpoint that has left ([`Channel::leave`]) and has nothing unsent, as the end of its process would.
    fn end_well(&mut self, number: u32) {
        self.end(number);
    }

    /// Connects a new endpoint in the place of one that ended and that the others have forgotten.
    fn renew(&mut self, number: u32);
}

/// Defines a test for each rule, for the given [`Network`]. The crate needs `landeck-testing` for its tests.
#[macro_export]
macro_rules! conformance_tests {
    ($network:ty) => {
        $crate::conformance_tests! { $network:
            messages_arrive_in_order, every_length_arrives_whole, every_header_arrives_unchanged,
            both_directions_at_once, many_peers_at_once, full_loses_nothing,
            a_sink_that_holds_stops_only_its_peer, a_held_message_pushes_back,
            a_message_too_long_is_refused, nobody_is_no_peer, an_end_is_noticed,
            a_peer_that_leaves_or_dies_is_read_out, messages_sent_before_a_goodbye_arrive,
            a_place_can_be_used_again, the_thorough_look_delivers_and_gives_credit,
            descriptors_wake, unsent_bytes_leave, places_change_nothing
        }

        #[test]
        fn random_traffic_arrives() {
            let _watchdog = ::landeck_testing::Watchdog::start(std::time::Duration::from_secs(120));
            let mut random = ::landeck_testing::Random::new(::landeck_testing::seed());
            $crate::conformance::random_traffic::<$network>(&mut |bound| random.below(bound));
        }
    };
    ($network:ty: $($test:ident),*) => {$(
        #[test]
        fn $test() {
            let _watchdog = ::landeck_testing::Watchdog::start(std::time::Duration::from_secs(120));
            $crate::conformance::$test::<$network>();
        }
    )*};
}

/// The time limit for steps that take no time when all is well.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes that a channel may accept from a sender whose receiver does nothing.
const UNDER_WAY_BYTES_MAX: usize = 256 << 20;
/// The number of successive refusals after which no message is expected to fit any more.
const REFUSALS: u32 = 2_000;

/// Messages from one endpoint to another, small and large, arrive in the order in which they were sent.
pub fn messages_arrive_in_order<N: Network>() {
    let mut world = World::<N>::new(2);
    for number in 0..3_000 {
        world.send(0, 1, if number % 50 == 49 { 5_000 } else { number % 60 });
        if number % 7 == 0 {
            world.poll(1);
        }
    }
    world.settle();
}

/// Every length up to the longest arrives whole, including the borders of usual buffers and lines.
pub fn every_length_arrives_whole<N: Network>() {
    let mut world = World::<N>::new(2);
    let longest = world.network.endpoint(0).data_bytes_max();
    let powers = (0..usize::BITS).map(|bit| 1 << bit).take_while(|power| *power < longest);
    let borders = powers.flat_map(|power: usize| [power - 1, power, power + 1]);
    let lengths: BTreeSet<usize> = borders.chain(0..130).chain([longest - 1, longest]).collect();
    for length in lengths.into_iter().filter(|length| *length <= longest) {
        world.send(0, 1, length);
        world.send(1, 0, length);
    }
    world.settle();
}

/// Kind, class, flags, context and tag arrive as they were sent.
pub fn every_header_arrives_unchanged<N: Network>() {
    let mut world = World::<N>::new(2);
    for length in [0, 32, 1_000] {
        for kind in [
            Kind::Eager,
            Kind::Reference,
            Kind::Offer,
            Kind::Accept,
            Kind::Part,
            Kind::Done,
            Kind::Control,
            Kind::InCell,
            Kind::Chunk,
            Kind::Emptied,
            Kind::Stored,
        ] {
            for class in [Class::User, Class::Kernel, Class::Urgent] {
                let may_be_urgent = kind == Kind::Eager && length as usize <= URGENT_BYTES_MAX;
                if class == Class::Urgent && !may_be_urgent {
                    continue;
                }
                for flags in [Flags::NONE, Flags::LOAN] {
                    let header = Header::user(kind, length, u32::MAX, u32::MAX - length);
                    world.send_as(0, 1, Header { class, flags, ..header });
                }
            }
        }
    }
    world.settle();
}

/// Two endpoints that send to each other do not disturb each other.
pub fn both_directions_at_once<N: Network>() {
    let mut world = World::<N>::new(2);
    for number in 0..2_000 {
        world.send(0, 1, number % 300);
        world.send(1, 0, number * 7 % 9_000);
    }
    world.settle();
}

/// All endpoints send to all others.
pub fn many_peers_at_once<N: Network>() {
    const PEERS: u32 = 6;
    let mut world = World::<N>::new(PEERS);
    for round in 0..100 {
        for from in 0..PEERS {
            for to in (0..PEERS).filter(|to| *to != from) {
                world.send(from, to, (round * 31 + from as usize * 7) % 500);
            }
        }
    }
    world.settle();
}

/// A receiver that does nothing makes the sender stop. No accepted message is lost, no refused message arrives, and
/// afterwards the traffic continues.
pub fn full_loses_nothing<N: Network>() {
    for length in [8, 2_000] {
        let mut world = World::<N>::new(2);
        world.fill(0, 1, length, |_| {});
        world.settle();
        for _ in 0..100 {
            world.send(0, 1, length);
        }
        world.settle();
    }
}

/// Messages of one peer that the sink holds stay in order and delay no other peer.
pub fn a_sink_that_holds_stops_only_its_peer<N: Network>() {
    let mut world = World::<N>::new(3);
    world.send(0, 2, 10);
    world.settle();
    world.hold(2, 0, true);
    for number in 0..5 {
        world.send(0, 2, number * 20);
    }
    for number in 0..1_000 {
        world.send(1, 2, number % 200);
    }
    world.settle_from(&[1]);
    assert_eq!(world.pending(0, 2), 5, "a held message was delivered");
    world.hold(2, 0, false);
    world.send(0, 2, 7);
    world.settle();
}

/// A sink that holds everything makes the sender stop in the end, and nothing is lost.
pub fn a_held_message_pushes_back<N: Network>() {
    let mut world = World::<N>::new(2);
    world.hold(1, 0, true);
    world.fill(0, 1, 1_500, |world| world.poll(1));
    assert!(world.pending(0, 1) > 0);
    world.hold(1, 0, false);
    world.settle();
}

/// A message longer than the channel carries is refused and leaves no trace.
pub fn a_message_too_long_is_refused<N: Network>() {
    let mut world = World::<N>::new(2);
    for _ in 0..20 {
        let length = world.network.endpoint(0).data_bytes_max() + 1;
        let header = Header::user(Kind::Eager, length as u32, 1, 1);
        let refused =
            world.network.endpoint(0).try_send(Peer(1), &header, Bytes::from(&vec![0; length][..]));
        assert_eq!(refused, Err(SendError::TooLong));
        world.send(0, 1, 100);
    }
    world.settle();
}

/// A number that no endpoint has is no peer.
pub fn nobody_is_no_peer<N: Network>() {
    let mut world = World::<N>::new(2);
    let nobody = Peer(u32::MAX);
    let channel = world.network.endpoint(0);
    let header = Header::user(Kind::Eager, 0, 1, 1);
    assert_eq!(channel.try_send(nobody, &header, Bytes::EMPTY), Err(SendError::Gone));
    assert!(channel.is_read_out(nobody));
    channel.nudge(nobody);
    channel.forget(nobody);
    world.send(0, 1, 1);
    world.settle();
}

/// The end of a peer is noticed, both by senders and by endpoints that only poll. Its messages arrive in order up to
/// some message, and the other peers continue.
pub fn an_end_is_noticed<N: Network>() {
    let mut world = World::<N>::new(4);
    for number in 0..30 {
        for from in 0..4 {
            world.send(from, (from + 1) % 4, number * 10);
        }
    }
    world.settle();
    world.send(1, 2, 100);
    world.end(1);
    world.until_gone(2, 1);
    let header = Header::user(Kind::Eager, 0, 1, 1);
    world.until("a send to a dead peer fails or leads nowhere", |world| {
        let sent = world.network.endpoint(0).try_send(Peer(1), &header, Bytes::EMPTY);
        world.poll(0);
        sent == Err(SendError::Gone) || world.network.endpoint(0).is_read_out(Peer(1))
    });
    for number in 0..30 {
        world.send(0, 3, number);
        world.send(2, 3, number);
        world.send(3, 2, number);
    }
    world.settle();
    assert!(world.network.endpoint(2).is_read_out(Peer(1)), "who is gone stays gone");
}

/// A peer that says goodbye is read out in the end, as one that ends without a goodbye, whether the others hear it
/// asleep or awake.
pub fn a_peer_that_leaves_or_dies_is_read_out<N: Network>() {
    let mut world = World::<N>::new(4);
    for from in 0..4 {
        world.send(from, (from + 1) % 4, 100);
        world.send(from, (from + 2) % 4, 3_000);
    }
    world.settle();
    world.send(1, 2, 100);
    for (other, peer) in [(2, 1), (2, 0), (3, 1)] {
        let is_early = world.network.endpoint(other).is_read_out(Peer(peer));
        assert!(!is_early, "{peer} lives, and is read out to {other}");
    }
    world.leave(1);
    world.end(0);
    for other in [2, 3] {
        for peer in [1, 0] {
            world.until_gone(other, peer);
        }
    }
    world.settle_from(&[1, 2, 3]);
    world.send(2, 3, 50);
    world.settle();
}

/// Messages sent before a goodbye arrive whole. This holds even if the receiver sends to the peer that has left before
/// it polls, and if more messages wait than fit.
pub fn messages_sent_before_a_goodbye_arrive<N: Network>() {
    let mut world = World::<N>::new(3);
    for length in [100, 2_000] {
        world.send(0, 1, length);
        world.send(1, 0, length);
    }
    world.settle();
    (0..100).for_each(|number| world.send(0, 1, number));
    world.fill(0, 2, 1_000, |_| {});
    world.network.endpoint(0).leave();
    let header = Header::user(Kind::Eager, 500, 1, 1);
    let data = pattern(1, 500);
    let mut is_over = false;
    world.until("everything has left that was sent before the goodbye", |world| {
        // The first of these goes to an endpoint that has left and still exists, the later ones to none.
        let _ = world.network.endpoint(1).try_send(Peer(0), &header, Bytes::from(&data[..]));
        let channel = world.network.endpoint(2);
        let _ = channel.try_send(Peer(0), &header, Bytes::from(&data[..]));
        world.poll(2);
        is_over = is_over || {
            let channel = world.network.endpoint(0);
            channel.poll(&mut Arrivals::default());
            !channel.has_unsent()
        };
        is_over
    });
    world.end_well(0);
    for _ in 0..10 {
        for sender in [1, 2] {
            let channel = world.network.endpoint(sender);
            let _ = channel.try_send(Peer(0), &header, Bytes::from(&data[..]));
        }
    }
    for other in [1, 2] {
        world.until("what was sent before the goodbye arrives", |world| {
            world.poll(other);
            world.pending(0, other) == 0
        });
        world.until_gone(other, 0);
    }
}

/// A peer that is forgotten leaves nothing behind for the next one in its place.
pub fn a_place_can_be_used_again<N: Network>() {
    let mut world = World::<N>::new(3);
    for _ in 0..5 {
        for number in 0..40 {
            world.send(0, 1, number * 40);
            world.send(1, 0, number * 40);
            world.send(2, 1, number);
            world.send(1, 2, number);
        }
        world.settle();
        world.send(0, 1, 7);
        world.send(1, 0, 7);
        world.end(1);
        for other in [0, 2] {
            world.until_gone(other, 1);
            world.network.endpoint(other).forget(Peer(1));
        }
        world.network.renew(1);
        world.forget(1);
    }
    world.send(1, 2, 9);
    world.settle();
}

/// The last poll before sleep delivers everything that has arrived, and returns the room that this frees to the
/// senders.
pub fn the_thorough_look_delivers_and_gives_credit<N: Network>() {
    let mut world = World::<N>::new(2);
    world.fill(0, 1, 40, |_| {});
    world.until("thorough looks deliver everything", |world| {
        world.poll_by(1, |channel, sink| channel.poll_thoroughly(sink));
        let _ = world.network.endpoint(0).poll_thoroughly(&mut Arrivals::default());
        world.pending(0, 1) == 0
    });
    world.until("the sender has room again without a further poll of the receiver", |world| {
        let _ = world.network.endpoint(0).poll(&mut Arrivals::default());
        world.try_send(0, 1, 40) == Ok(())
    });
    world.settle();
}

/// A channel with descriptors makes one readable when something arrives. It becomes unreadable when there is nothing to
/// do, whether the sink takes messages or holds them.
pub fn descriptors_wake<N: Network>() {
    let mut world = World::<N>::new(2);
    if world.network.endpoint(1).wake_descriptors().is_empty() {
        return;
    }
    for round in 0..20 {
        for number in 0..50 {
            world.send(1, 0, number);
        }
        world.settle();
        world.until("descriptors rest when nothing is there", |world| {
            world.poll(1);
            !is_readable(world.network.endpoint(1), Duration::ZERO)
        });
        let is_held = round % 2 == 0;
        world.hold(1, 0, is_held);
        world.send(0, 1, 40);
        assert!(is_readable(world.network.endpoint(1), PATIENCE), "an arrival woke nobody");
        if is_held {
            world.until("descriptors rest while the sink holds", |world| {
                world.poll(1);
                !is_readable(world.network.endpoint(1), Duration::ZERO)
            });
            world.hold(1, 0, false);
        }
        world.settle();
    }
}

/// Bytes that the network did not accept at once leave with later polls.
pub fn unsent_bytes_leave<N: Network>() {
    let mut world = World::<N>::new(2);
    world.fill(0, 1, 4_000, |_| {});
    world.until("unsent bytes leave", |world| {
        world.poll(0);
        world.poll(1);
        !world.network.endpoint(0).has_unsent()
    });
    world.settle();
}

/// A sink that gives places for parts sees the bytes that one without places sees, whichever of the parts have one.
pub fn places_change_nothing<N: Network>() {
    let mut world = World::<N>::new(3);
    world.arrivals[1].give_places();
    let longest = world.network.endpoint(0).data_bytes_max();
    for number in 0..600 {
        let length = match number % 6 {
            0 => longest,
            1 => longest - number,
            2 => number,
            _ => number * 53 % longest,
        };
        let kind = if number % 7 == 6 { Kind::Eager } else { Kind::Part };
        for to in [1, 2] {
            world.send_as(0, to, Header::user(kind, length as u32, 3, number as u32));
        }
        if number % 50 == 20 {
            world.hold(1, 0, true);
            world.poll_all();
            world.hold(1, 0, false);
        }
    }
    world.settle();
}

/// Four endpoints send, poll in every possible way, hold and release at random. `below` returns random numbers below a
/// bound.
pub fn random_traffic<N: Network>(below: &mut dyn FnMut(u64) -> u64) {
    const PEERS: u64 = 4;
    let mut world = World::<N>::new(PEERS as u32);
    world.arrivals[0].give_places();
    world.arrivals[2].give_places();
    let longest = world.network.endpoint(0).data_bytes_max() as u64;
    for _ in 0..20_000 {
        let (one, other) = (below(PEERS) as u32, below(PEERS) as u32);
        match below(10) {
            0..5 if one != other => {
                let length = match below(20) {
                    0 => below(longest + 1),
                    1..5 => below(longest.min(2_000)),
                    _ => below(64),
                };
                let kind = if below(3) == 0 { Kind::Part } else { Kind::Eager };
                let header = Header::user(kind, length as u32, one, world.sent);
                let _ = world.try_send_as(one, other, header);
            }
            5 => world.poll_by(one, |channel, sink| channel.poll_thoroughly(sink)),
            6 => world.poll_by(one, |channel, sink| channel.poll_into(sink)),
            7 => world.poll_by(one, |channel, sink| channel.poll_peer_into(Peer(other), sink)),
            8 if one != other => world.hold(one, other, below(4) == 0),
            _ => world.poll(one),
        }
    }
    for one in 0..PEERS as u32 {
        (0..PEERS as u32).for_each(|other| world.hold(one, other, false));
    }
    world.settle();
}

/// A message that arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its sender.
    pub from: Peer,
    /// Its header.
    pub header: Header,
    /// Its data.
    pub data: Vec<u8>,
}

/// A sink that stores arriving messages.
#[derive(Debug, Default)]
pub struct Arrivals {
    taken: Vec<Arrival>,
    broken: Vec<(Peer, BrokenPeer)>,
    held: BTreeSet<Peer>,
    places: Option<Places>,
}

/// Memory for arriving parts.
struct Places {
    heap: Heap,
    /// The part of each peer that has begun to arrive, and how much of it has.
    begun: BTreeMap<Peer, (Block, usize)>,
    asked: u32,
}

impl std::fmt::Debug for Places {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Places").finish_non_exhaustive()
    }
}

impl Places {
    /// One in so many parts that ask for a place gets none.
    const REFUSED: u32 = 5;

    fn new() -> Self {
        let plan = SegmentPlan { heap_bytes_per_process: 4 << 20, ..SegmentPlan::new(1, 1) };
        let heap = Heap::of(&Segment::local(&plan), 0).expect("a new segment has the slot");
        Self { heap, begun: BTreeMap::new(), asked: 0 }
    }

    fn place(&mut self, from: Peer, length: usize) -> Option<Buffer> {
        self.asked += 1;
        if self.asked.is_multiple_of(Self::REFUSED) {
            return None;
        }
        let (block, filled) = match self.begun.entry(from) {
            Entry::Occupied(begun) => begun.into_mut(),
            Entry::Vacant(vacant) => vacant.insert((self.heap.allocate(length).ok()?, 0)),
        };
        assert_eq!(length, block.len() - *filled, "a place was asked for another part");
        Some(block.buffer().part(*filled, length))
    }
}

impl Arrivals {
    /// From now on gives places for most parts.
    pub fn give_places(&mut self) {
        self.places = Some(Places::new());
    }

    /// The whole message of which these are the last bytes.
    fn joined(&mut self, from: Peer, header: &Header, last: Bytes<'_>) -> Arrival {
        let mut data = Vec::new();
        if header.kind == Kind::Part
            && let Some(places) = &mut self.places
            && let Some((block, filled)) = places.begun.remove(&from)
        {
            data.extend_from_slice(&block[..filled]);
        }
        last.append_to(&mut data);
        Arrival { from, header: Header { length: data.len() as u32, ..*header }, data }
    }

    /// From now on holds, or takes, the messages of a peer.
    pub fn hold(&mut self, from: Peer, hold: bool) {
        if hold {
            self.held.insert(from);
        } else {
            self.held.remove(&from);
        }
    }

    /// The messages that were taken since the last call.
    pub fn take(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.taken)
    }

    /// Whether no message was taken since the last [`Arrivals::take`].
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// The peers that were reported as broken, and the reasons.
    pub fn broken_peers(&self) -> &[(Peer, BrokenPeer)] {
        &self.broken
    }
}

impl Sink for Arrivals {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        if self.held.contains(&from) {
            return Verdict::Held;
        }
        let arrival = self.joined(from, header, data);
        self.taken.push(arrival);
        Verdict::Taken
    }

    fn place(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        assert_eq!(header.kind, Kind::Part, "only parts have a place");
        if self.held.contains(&from) {
            return None;
        }
        self.places.as_mut()?.place(from, header.length as usize)
    }

    fn placed(&mut self, from: Peer, header: &Header, bytes: usize) {
        let begun = self.places.as_mut().and_then(|places| places.begun.get_mut(&from));
        let (block, filled) = begun.expect("this sink has given a place");
        *filled += bytes;
        if *filled == block.len() {
            let arrival = self.joined(from, header, Bytes::EMPTY);
            self.taken.push(arrival);
        }
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.broken.push((from, what));
    }
}

/// A message as it was sent.
type Sent = (Header, Vec<u8>);

/// A network, and the messages that were sent on it and have not arrived yet.
struct World<N> {
    network: N,
    arrivals: Vec<Arrivals>,
    ended: BTreeSet<u32>,
    /// The messages under way, by sender and receiver; urgent ones apart, since they are not ordered with the rest.
    under_way: BTreeMap<(u32, u32, bool), VecDeque<Sent>>,
    sent: u32,
}

impl<N: Network> World<N> {
    fn new(count: u32) -> Self {
        Self {
            network: N::connect(count),
            arrivals: (0..count).map(|_| Arrivals::default()).collect(),
            ended: BTreeSet::new(),
            under_way: BTreeMap::new(),
            sent: 0,
        }
    }

    fn try_send(&mut self, from: u32, to: u32, length: usize) -> Result<(), SendError> {
        let header = Header::user(Kind::Eager, length as u32, from, self.sent);
        self.try_send_as(from, to, header)
    }

    fn try_send_as(&mut self, from: u32, to: u32, header: Header) -> Result<(), SendError> {
        let original = pattern(self.sent, header.length as usize);
        let mut data = original.clone();
        self.network.endpoint(from).try_send(Peer(to), &header, Bytes::from(&data[..]))?;
        data.fill(0xee); // the memory belongs to the sender again
        let is_urgent = header.class == Class::Urgent;
        self.under_way.entry((from, to, is_urgent)).or_default().push_back((header, original));
        self.sent += 1;
        Ok(())
    }

    fn send(&mut self, from: u32, to: u32, length: usize) {
        self.send_as(from, to, Header::user(Kind::Eager, length as u32, from, self.sent));
    }

    /// Sends as soon as there is room.
    fn send_as(&mut self, from: u32, to: u32, header: Header) {
        self.until("there is room for a message", |world| {
            match world.try_send_as(from, to, header) {
                Ok(()) => true,
                Err(SendError::Full) => {
                    world.poll_all();
                    false
                }
                Err(error) => panic!("{from} cannot send to {to}: {error}"),
            }
        });
    }

    /// Sends until the channel refuses many times in a row.
    fn fill(&mut self, from: u32, to: u32, length: usize, mut when_full: impl FnMut(&mut Self)) {
        let mut refusals = 0;
        while refusals < REFUSALS {
            match self.try_send(from, to, length) {
                Ok(()) => refusals = 0,
                Err(SendError::Full) => {
                    refusals += 1;
                    when_full(self);
                    let _ = self.network.endpoint(from).poll(&mut Arrivals::default());
                }
                Err(error) => panic!("{from} cannot send to {to}: {error}"),
            }
            let bytes = self.pending(from, to) * (length + HEADER_BYTES);
            assert!(bytes < UNDER_WAY_BYTES_MAX, "the channel takes {bytes} bytes without an end");
        }
    }

    fn hold(&mut self, at: u32, from: u32, hold: bool) {
        self.arrivals[at as usize].hold(Peer(from), hold);
    }

    fn poll(&mut self, at: u32) {
        self.poll_by(at, |channel, sink| channel.poll(sink));
    }

    fn poll_all(&mut self) {
        for at in (0..self.arrivals.len() as u32)
            .filter(|at| !self.ended.contains(at))
            .collect::<Vec<_>>()
        {
            self.poll(at);
        }
    }

    /// Polls, and compares arriving messages with the sent ones.
    fn poll_by(&mut self, at: u32, poll: impl FnOnce(&mut N::Channel, &mut Arrivals) -> bool) {
        let arrivals = &mut self.arrivals[at as usize];
        let said_any = poll(self.network.endpoint(at), arrivals);
        assert_eq!(arrivals.broken_peers(), [], "nobody here sends what no sender sends");
        let taken = arrivals.take();
        assert!(said_any || taken.is_empty(), "a poll that delivered said that it did not");
        for arrival in taken {
            self.check(at, &arrival);
        }
    }

    fn check(&mut self, at: u32, arrival: &Arrival) {
        let way = (arrival.from.0, at, arrival.header.class == Class::Urgent);
        let first = self.under_way.get_mut(&way).and_then(VecDeque::pop_front);
        let Some((header, data)) = first else {
            panic!("{way:?}: {:?} arrived, and was not sent or had arrived before", arrival.header)
        };
        let flags = arrival.header.flags.without(Flags::BULK);
        let plain = Header { sequence: header.sequence, flags, ..arrival.header };
        assert_eq!(plain, header, "{way:?}: another header was due");
        assert!(arrival.data == data, "{way:?}: the data of {header:?} are not those sent");
    }

    /// The number of messages under way.
    fn pending(&self, from: u32, to: u32) -> usize {
        let left = |is_urgent| self.under_way.get(&(from, to, is_urgent)).map_or(0, VecDeque::len);
        left(false) + left(true)
    }

    /// Polls until all messages between endpoints that have not ended have arrived.
    fn settle(&mut self) {
        let everybody: Vec<u32> = (0..self.arrivals.len() as u32).collect();
        self.settle_from(&everybody);
    }

    fn settle_from(&mut self, senders: &[u32]) {
        self.until("everything that was sent arrives", |world| {
            world.poll_all();
            let ended = &world.ended;
            let mut ways = world.under_way.iter().filter(|((from, to, _), _)| {
                senders.contains(from) && !ended.contains(from) && !ended.contains(to)
            });
            ways.all(|(_, messages)| messages.is_empty())
        });
        self.poll_all();
    }

    fn end(&mut self, number: u32) {
        self.network.end(number);
        self.ended.insert(number);
        self.arrivals[number as usize] = Arrivals::default();
    }

    /// Leaves in good order: no sent message is given up.
    fn leave(&mut self, number: u32) {
        self.network.endpoint(number).leave();
        self.until("what was sent has left", |world| {
            world.poll_all();
            !world.network.endpoint(number).has_unsent()
        });
        self.end_well(number);
    }

    fn end_well(&mut self, number: u32) {
        self.network.end_well(number);
        self.ended.insert(number);
        self.arrivals[number as usize] = Arrivals::default();
    }

    /// Polls until `at` knows that `peer` is gone.
    fn until_gone(&mut self, at: u32, peer: u32) {
        self.until("the end of a peer is noticed", |world| {
            world.poll(at);
            world.network.endpoint(at).is_read_out(Peer(peer))
        });
    }

    /// Forgets the messages from and to an endpoint that was renewed: they do not arrive any more.
    fn forget(&mut self, number: u32) {
        self.ended.remove(&number);
        self.under_way.retain(|(from, to, _), _| *from != number && *to != number);
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            let under_way: Vec<_> =
                self.under_way.iter().filter(|(_, left)| !left.is_empty()).collect();
            assert!(
                Instant::now() < deadline,
                "waited {PATIENCE:?} in vain until {what}; under way: {:?}",
                under_way.iter().map(|(way, left)| (way, left.len())).collect::<Vec<_>>()
            );
        }
    }
}

/// Data that differ from message to message and from place to place.
fn pattern(seed: u32, length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|place| {
            ((place ^ seed.wrapping_mul(0x9e37_79b1)).wrapping_mul(0x85eb_ca6b) >> 24) as u8
        })
        .collect()
}

fn is_readable(channel: &impl Channel, patience: Duration) -> bool {
    let descriptors = channel.wake_descriptors();
    let mut polled: Vec<_> =
        descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(patience).expect("a few seconds");
    rustix::event::poll(&mut polled, Some(&timeout)).expect("descriptors can be polled") > 0
}
