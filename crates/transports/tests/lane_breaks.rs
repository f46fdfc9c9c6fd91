//! Lanes whose connection breaks: at each byte, and again and again. Nothing is lost, nothing comes twice, the order stays.
//!
//! The test is the cable between two channels, and so it knows what each side has when it cuts.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use landeck_channel::conformance::Arrivals;
use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::{Buffer, Bytes};
use landeck_testing::{Random, Watchdog, seed};
use landeck_transports::Lanes;
use landeck_transports::lanes::DATA_BYTES_MAX;
use landeck_wire::handover::{Cipher, Handover};
use landeck_wire::{Class, Flags, Header, Kind};
use rustix::net::sockopt;

use crate::support::{TestDaemon, until};

/// The messages that a side sends: short and eager messages, and messages in parts, the first of which have this length.
enum Sends {
    Eager(usize),
    Urgent(usize),
    Parts(usize, usize),
}

/// The traffic in which each byte is cut once.
const SHORT: [Sends; 6] = [
    Sends::Eager(8),
    Sends::Parts(90, 40),
    Sends::Urgent(20),
    Sends::Eager(0),
    Sends::Parts(60, 60),
    Sends::Eager(63),
];

thread_local! {
    /// Sinks of earlier pairs, as their memory takes long to make.
    static USED: RefCell<Vec<Arrivals>> = const { RefCell::new(Vec::new()) };
}

/// A frame as it was sent.
type Frame = (Header, Vec<u8>);

/// One process.
struct Side {
    channel: Lanes,
    sink: Memory,
    /// The frames to be sent.
    waiting: VecDeque<Frame>,
    /// The marks of long messages that are sent and not received.
    marks: Vec<(u64, (u32, u32))>,
}

/// The arrivals, and the long messages that were sent and may be needed again.
struct Memory {
    arrivals: Arrivals,
    /// The data of each message in parts that were sent so far, by what its parts name.
    sent: Vec<((u32, u32), Vec<u8>)>,
}

impl Sink for Memory {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        self.arrivals.arrive(from, header, data)
    }

    fn place(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        self.arrivals.place(from, header)
    }

    fn placed(&mut self, from: Peer, header: &Header, bytes: usize) {
        self.arrivals.placed(from, header, bytes);
    }

    fn append_part(&mut self, _: Peer, part: &Header, behind: u64, target: &mut Vec<u8>) -> bool {
        let name = (part.context, part.tag);
        let Some((_, data)) = self.sent.iter().find(|(of, _)| *of == name) else { return false };
        let first = data.len() - behind as usize;
        target.extend_from_slice(&data[first..first + part.length as usize]);
        true
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.arrivals.broken(from, what);
    }
}

impl Side {
    fn new(channel: Lanes, waiting: VecDeque<Frame>) -> Self {
        let arrivals = USED.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
            let mut new = Arrivals::default();
            new.give_places();
            new
        });
        let sink = Memory { arrivals, sent: Vec::new() };
        Self { channel, sink, waiting, marks: Vec::new() }
    }

    /// Sends what the channel accepts, and looks.
    fn turn(&mut self, far: Peer) {
        while let Some((header, data)) = self.waiting.front() {
            match self.channel.try_send(far, header, Bytes::from(&data[..])) {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error, SendError::Full);
                    break;
                }
            }
            let (header, data) = self.waiting.pop_front().unwrap();
            let name = (header.context, header.tag);
            if header.kind == Kind::Part {
                match self.sink.sent.iter_mut().find(|(of, _)| *of == name) {
                    Some((_, before)) => before.extend_from_slice(&data),
                    None => self.sink.sent.push((name, data)),
                }
            }
            if header.flags.contains(Flags::LAST) {
                self.marks.push((self.channel.sent_mark(far), name));
            }
        }
        self.channel.poll_thoroughly(&mut self.sink);
        // The memory of a message that is received belongs to the program again.
        let channel = &self.channel;
        let sent = &mut self.sink.sent;
        self.marks.retain(|(mark, name)| {
            let is_received = channel.is_received(far, *mark);
            if is_received {
                sent.retain(|(of, _)| of != name);
            }
            !is_received
        });
    }
}

/// The frames of this traffic.
fn frames(traffic: &[Sends]) -> VecDeque<Frame> {
    let mut frames = VecDeque::new();
    let pattern = |tag: usize, length: usize| -> Vec<u8> {
        (0..length).map(|at| (at * 7 + tag * 31 + at / 251) as u8).collect()
    };
    for (tag, sends) in traffic.iter().enumerate() {
        let eager = |length: usize| Header::user(Kind::Eager, length as u32, 3, tag as u32);
        match *sends {
            Sends::Eager(length) => frames.push_back((eager(length), pattern(tag, length))),
            Sends::Urgent(length) => {
                let header = Header { class: Class::Urgent, ..eager(length) };
                frames.push_back((header, pattern(tag, length)));
            }
            Sends::Parts(first, last) => {
                let whole = pattern(tag, first + last);
                let header = |length: usize| Header::user(Kind::Part, length as u32, 4, tag as u32);
                frames.push_back((header(first), whole[..first].to_vec()));
                let header = Header { flags: Flags::LAST, ..header(last) };
                frames.push_back((header, whole[first..].to_vec()));
            }
        }
    }
    frames
}

/// When the next connection comes.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Before anybody has noticed the break.
    AtOnce,
    /// When both have asked for it.
    Wanted,
}

struct Pair {
    daemon: TestDaemon,
    sides: [Side; 2],
    sent: [Vec<Frame>; 2],
    lane: u32,
    cable: [TcpStream; 2],
    /// The bytes that have passed on this cable, by the side that sent them.
    passed: [usize; 2],
}

impl Pair {
    fn new(cipher: Cipher, first_lane: u32, traffic: [VecDeque<Frame>; 2]) -> Self {
        let mut daemon = TestDaemon::new(2, cipher);
        let sent = [0, 1].map(|side: usize| traffic[side].iter().cloned().collect());
        let mut numbers = 0..;
        let sides =
            traffic.map(|frames| Side::new(daemon.channel(numbers.next().unwrap()), frames));
        let cable = daemon.cable(first_lane);
        for end in &cable {
            end.set_nonblocking(true).unwrap();
        }
        Self { daemon, sides, sent, lane: first_lane, cable, passed: [0; 2] }
    }

    fn turn(&mut self) {
        let [one, other] = &mut self.sides;
        one.turn(Peer(1));
        other.turn(Peer(0));
    }

    /// Passes on what has come, in each direction at most up to these numbers of bytes in all.
    fn pass(&mut self, most: [usize; 2]) {
        for (from, most) in most.into_iter().enumerate() {
            let mut room = vec![0; (most - self.passed[from]).min(100_000)];
            let count = match self.cable[from].read(&mut room) {
                Ok(count) => count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    continue;
                }
            };
            let mut left = &room[..count];
            while !left.is_empty() {
                match self.cable[1 - from].write(left) {
                    Ok(count) => left = &left[count..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.turn(),
                    Err(error) => panic!("{error}"),
                }
            }
            self.passed[from] += count;
        }
    }

    /// Resets both connections, and makes the next one.
    fn cut(&mut self, next: Next) {
        for end in &self.cable {
            sockopt::set_socket_linger(end, Some(Duration::ZERO)).unwrap();
        }
        self.lane += 1;
        // Dropping the old one resets it.
        if let Next::Wanted = next {
            let (mine, theirs) = crate::support::tcp_pair();
            self.cable = [mine.into(), theirs.into()];
            let mut wanted = [false; 2];
            until("both want another one", || {
                self.turn();
                for (number, message) in self.daemon.heard() {
                    wanted[number as usize] |= matches!(message, Handover::Want { .. });
                }
                wanted == [true; 2]
            });
        }
        self.cable = self.daemon.cable(self.lane);
        for end in &self.cable {
            end.set_nonblocking(true).unwrap();
        }
        self.passed = [0; 2];
    }

    /// Goes on to the end, and checks what has arrived.
    fn finish(&mut self, what: &str) {
        until(what, || {
            self.turn();
            self.pass([usize::MAX; 2]);
            self.sides.iter().all(|side| side.waiting.is_empty() && side.marks.is_empty())
        });
        for side in &mut self.sides {
            side.channel.leave();
        }
        until(what, || {
            self.turn();
            self.pass([usize::MAX; 2]);
            let [one, other] = &self.sides;
            let has_unsent = one.channel.has_unsent() || other.channel.has_unsent();
            let is_read_out =
                one.channel.is_read_out(Peer(1)) && other.channel.is_read_out(Peer(0));
            is_read_out && !has_unsent
        });
        for (side, sent) in self.sides.iter_mut().zip([&self.sent[1], &self.sent[0]]) {
            assert_eq!(side.sink.arrivals.broken_peers(), [], "{what}");
            let arrivals = side.sink.arrivals.take();
            let name = |header: &Header| (header.kind, header.class, header.context, header.tag);
            for (arrival, (header, data)) in arrivals.iter().zip(sent) {
                assert_eq!(name(&arrival.header), name(header), "{what}");
                assert!(arrival.data == *data, "{what}: the data of {header:?}");
            }
            assert_eq!(arrivals.len(), sent.len(), "{what}");
            USED.with_borrow_mut(|used| used.push(std::mem::take(&mut side.sink.arrivals)));
        }
    }
}

/// The bytes of a cable on which everything goes through.
fn whole_cable(cipher: Cipher) -> [usize; 2] {
    let mut pair = Pair::new(cipher, 1, [frames(&SHORT), frames(&SHORT)]);
    pair.finish("a cable without a cut");
    pair.passed
}

#[test]
fn a_lane_goes_on_wherever_its_connection_breaks() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    for (cipher, step) in [(Cipher::Plain, 1), (Cipher::Aes256Gcm, 5)] {
        let bytes = whole_cable(cipher);
        assert!(bytes[0] > 400, "{bytes:?}");
        for from in 0..2 {
            for at in (0..=bytes[from]).step_by(step) {
                let next = if at % 2 == 0 { Next::AtOnce } else { Next::Wanted };
                // The other direction has nothing, something, or everything.
                let other = bytes[1 - from] * (at % 3) / 2;
                let most = if from == 0 { [at, other] } else { [other, at] };
                let first_lane = 1 + (at / 2 % 2) as u32;
                let mut pair = Pair::new(cipher, first_lane, [frames(&SHORT), frames(&SHORT)]);
                for _ in 0..6 {
                    pair.turn();
                    pair.pass(most);
                }
                pair.turn();
                pair.cut(next);
                pair.finish(&format!("{cipher:?}, {most:?} bytes, {next:?}"));
            }
        }
    }
}

#[test]
fn a_lane_goes_on_however_often_its_connection_breaks() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    const CUTS: usize = 40;
    let mut random = Random::new(seed());
    for cipher in [Cipher::Plain, Cipher::ChaCha20Poly1305] {
        let mut traffic = || -> Vec<Sends> {
            let mut one = || match random.below(12) {
                0 => Sends::Parts(DATA_BYTES_MAX, 1 + random.below(DATA_BYTES_MAX as u64) as usize),
                1 => Sends::Eager(DATA_BYTES_MAX),
                2 => Sends::Urgent(random.below(48) as usize),
                3..8 => Sends::Eager(random.below(5_000) as usize),
                _ => Sends::Eager(random.below(100) as usize),
            };
            (0..400).map(|_| one()).collect()
        };
        let traffic = [frames(&traffic()), frames(&traffic())];
        let mut pair = Pair::new(cipher, 1, traffic);
        let mut done = 0;
        for _ in 0..CUTS {
            let most = [0, 1].map(|_| random.below(60_000) as usize);
            for _ in 0..random.below(30) {
                pair.turn();
                pair.pass(most);
            }
            let is_open = pair.sides.iter().any(|side| !side.waiting.is_empty());
            done += usize::from(is_open);
            pair.cut(if random.once_in(2) { Next::AtOnce } else { Next::Wanted });
        }
        assert!(done > CUTS / 2, "only {done} cuts were under load");
        pair.finish("the end of many cuts");
    }
}

/// A send may end while its parts are under way, as those of a collective operation that fails. Then nobody needs its data,
/// and those of others come all the same.
#[test]
fn parts_that_nobody_has_any_more_do_not_stop_the_next() {
    let _watchdog = Watchdog::start(Duration::from_secs(100));
    let traffic = [Sends::Parts(50, 50), Sends::Eager(9)];
    let mut pair = Pair::new(Cipher::Plain, 1, [frames(&traffic), VecDeque::new()]);
    for _ in 0..3 {
        pair.turn();
        pair.pass([30, 0]);
    }
    pair.sides[0].sink.sent.clear();
    pair.cut(Next::Wanted);
    let arrived = |pair: &mut Pair| {
        pair.turn();
        pair.pass([usize::MAX; 2]);
        pair.sides[1].sink.arrivals.take()
    };
    let mut all = Vec::new();
    until("the last has come", || {
        all.extend(arrived(&mut pair));
        all.len() == 3
    });
    let names: Vec<(u32, u32)> =
        all.iter().map(|one| (one.header.context, one.header.tag)).collect();
    assert_eq!(names, [(u32::MAX, u32::MAX), (u32::MAX, u32::MAX), (3, 1)]);
    assert_eq!(pair.sides[1].sink.arrivals.broken_peers(), []);
}
