//! Hostile frames from broken peers, and a hostile or dead daemon: no other peer notices, nothing hangs, nothing grows.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use landeck_channel::conformance::Arrivals;
use landeck_channel::{BrokenPeer, Channel, Peer, SendError};
use landeck_memory::Bytes;
use landeck_testing::{Random, Watchdog, seed};
use landeck_transports::Lanes;
use landeck_transports::lanes::DATA_BYTES_MAX;
use landeck_transports::lanes::sealing::Sealing;
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use landeck_wire::{HEADER_BYTES, Header, HeaderError, Kind};

use crate::support::{TestDaemon, keys, tcp_pair, until};

const FAR: Peer = Peer(1);

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(200))
}

/// A channel with a lane whose other end is in the test's hands, as far process 1.
struct Possessed {
    daemon: TestDaemon,
    receiver: Lanes,
    arrivals: Arrivals,
    stream: TcpStream,
}

impl Possessed {
    fn new() -> Self {
        Self::with(Cipher::Plain)
    }

    fn with(cipher: Cipher) -> Self {
        let mut daemon = TestDaemon::new(3, cipher);
        let receiver = daemon.channel(0);
        let stream = daemon.possess(0, FAR.0, 1);
        let mut possessed = Self { daemon, receiver, arrivals: Arrivals::default(), stream };
        until("the lane is there", || {
            possessed.poll();
            possessed.receiver.has_lane(FAR)
        });
        possessed
    }

    fn poll(&mut self) {
        self.receiver.poll(&mut self.arrivals);
    }

    fn until_read_out(&mut self) {
        until("the lane is read out", || {
            self.receiver.poll_thoroughly(&mut self.arrivals);
            self.receiver.is_read_out(FAR)
        });
        let sent = self.receiver.try_send(FAR, &Header::user(Kind::Eager, 0, 0, 0), Bytes::EMPTY);
        assert_eq!(sent, Err(SendError::Full), "nothing here decides that a process is gone");
    }

    /// The breaks that the daemon has heard of.
    fn breaks(&mut self) -> Vec<(u32, u32)> {
        let broken = |(_, message)| match message {
            Handover::Broken { far, lane, .. } => Some((far, lane)),
            _ => None,
        };
        self.daemon.heard().into_iter().filter_map(broken).collect()
    }

    /// Writes these bytes, and expects this fault and nothing else.
    fn expect_fault(mut self, bytes: &[u8], fault: &BrokenPeer) {
        self.stream.write_all(bytes).unwrap();
        self.until_read_out();
        assert_eq!(self.arrivals.broken_peers(), [(FAR, fault.clone())]);
        assert_eq!(self.breaks(), [(FAR.0, 1)]);
        assert!(!self.receiver.has_lane(FAR));
    }
}

/// The frame of a program at this position.
fn message(length: usize, position: u16) -> Vec<u8> {
    let header = Header::user(Kind::Eager, length as u32, 7, 9);
    let mut bytes = Header { sequence: position, ..header }.encode().to_vec();
    bytes.resize(HEADER_BYTES + length, position as u8);
    bytes
}

fn position(kind: Kind, position: u64) -> Vec<u8> {
    [&Header::position(kind).encode()[..], &position.to_le_bytes()].concat()
}

#[test]
fn frames_that_no_sender_sends_break_the_lane() {
    let _watchdog = watchdog();
    let too_long = Header::user(Kind::Part, DATA_BYTES_MAX as u32 + 1, 0, 0).encode();
    let (length, most) = (DATA_BYTES_MAX as u64 + 1, DATA_BYTES_MAX as u64);
    Possessed::new().expect_fault(&too_long, &BrokenPeer::TooLong { length, most });
    let mut unknown = message(3, 0);
    unknown[2] = 0x3f;
    let fault = BrokenPeer::Header(HeaderError::UnknownKind(0x3f));
    Possessed::new().expect_fault(&unknown, &fault);
    let fault = BrokenPeer::Order { found: 5, wanted: 0 };
    Possessed::new().expect_fault(&message(3, 5), &fault);
    let short = Header { length: 7, ..Header::position(Kind::Granted) }.encode();
    Possessed::new().expect_fault(&[&short[..], &[0; 7]].concat(), &BrokenPeer::Form);
    let not_sent = position(Kind::Received, 1);
    Possessed::new().expect_fault(&not_sent, &BrokenPeer::Form);
    let less = [position(Kind::Granted, 9), position(Kind::Granted, 8)].concat();
    Possessed::new().expect_fault(&less, &BrokenPeer::Form);
    let wrong = Header { tag: 7, ..Header::GOODBYE }.encode();
    Possessed::new().expect_fault(&wrong, &BrokenPeer::Form);
}

#[test]
fn messages_that_came_before_a_fault_count() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let bytes = [message(20, 0), message(0, 1), message(5, 7)].concat();
    possessed.stream.write_all(&bytes).unwrap();
    possessed.until_read_out();
    assert_eq!(possessed.arrivals.take().len(), 2);
    assert_eq!(possessed.arrivals.broken_peers().len(), 1);
}

#[test]
fn an_unknown_frame_that_may_be_skipped_is_skipped() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let mut unknown = message(300, 99);
    (unknown[2], unknown[3]) = (0x3e, 4);
    let bytes = [message(20, 0), unknown, message(30, 1)].concat();
    for piece in bytes.chunks(7) {
        possessed.stream.write_all(piece).unwrap();
        possessed.poll();
    }
    let mut arrived = Vec::new();
    until("both messages arrive", || {
        possessed.poll();
        arrived.extend(possessed.arrivals.take());
        arrived.len() == 2
    });
    assert_eq!((arrived[0].data.len(), arrived[1].data.len()), (20, 30));
}

#[test]
fn a_sealed_frame_that_was_changed_breaks_the_lane() {
    let _watchdog = watchdog();
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let own = keys(cipher);
        let theirs = LaneKeys { send: own.receive, receive: own.send, ..own };
        let mut sealing = Sealing::new(&theirs).unwrap();
        let mut bytes = message(20, 0);
        sealing.seal_last(&mut bytes, 20).unwrap();
        let mut second = message(20, 1);
        sealing.seal_last(&mut second, 20).unwrap();
        second[30] ^= 1;
        bytes.extend(second);
        let mut possessed = Possessed::with(cipher);
        possessed.stream.write_all(&bytes).unwrap();
        possessed.until_read_out();
        assert_eq!(possessed.arrivals.take().len(), 1, "what came before counts");
        assert_eq!(possessed.arrivals.broken_peers(), [(FAR, BrokenPeer::Seal)]);
        // A frame in clear does not open either.
        let clear = [&message(20, 0)[..], &[0; 16]].concat();
        Possessed::with(cipher).expect_fault(&clear, &BrokenPeer::Seal);
    }
}

#[test]
fn a_goodbye_is_the_last() {
    let _watchdog = watchdog();
    for behind in [&message(3, 1)[..], &[0], &Header::GOODBYE.encode()] {
        let mut possessed = Possessed::new();
        let goodbye = Header::GOODBYE.encode();
        possessed.stream.write_all(&[&message(20, 0), &goodbye[..], behind].concat()).unwrap();
        until("the fault is noticed", || {
            possessed.receiver.poll_thoroughly(&mut possessed.arrivals);
            !possessed.receiver.has_lane(FAR)
        });
        assert_eq!(possessed.arrivals.broken_peers(), [(FAR, BrokenPeer::AfterGoodbye)]);
        assert_eq!(possessed.arrivals.take().len(), 1, "what came before it counts");
        assert_eq!(possessed.breaks(), [(FAR.0, 1)]);
    }
}

#[test]
fn an_end_is_in_order_only_behind_a_goodbye() {
    let _watchdog = watchdog();
    let goodbye = Header::GOODBYE.encode();
    let marker = Header::END_MARKER.encode();
    for (last, is_in_order) in [(&goodbye[..], true), (&marker, true), (&[], false)] {
        let mut possessed = Possessed::new();
        possessed.arrivals.hold(FAR, true);
        possessed.stream.write_all(&[&message(20, 0), last].concat()).unwrap();
        possessed.stream.shutdown(Shutdown::Write).unwrap();
        until("the end is noticed", || {
            possessed.receiver.poll_thoroughly(&mut possessed.arrivals);
            !possessed.receiver.has_lane(FAR)
        });
        assert!(!possessed.receiver.is_read_out(FAR), "a message of it is still here");
        assert_eq!(possessed.breaks(), [], "nobody knows yet how it ended");
        possessed.arrivals.hold(FAR, false);
        possessed.until_read_out();
        assert_eq!(possessed.arrivals.take().len(), 1);
        assert_eq!(possessed.breaks().is_empty(), is_in_order);
        assert_eq!(possessed.arrivals.broken_peers(), []);
    }
}

#[test]
fn random_bytes_break_only_their_sender() {
    let _watchdog = watchdog();
    let mut random = Random::new(seed());
    for _ in 0..50 {
        let mut possessed = Possessed::new();
        let mut bytes = message(random.below(100) as usize, 0);
        bytes.extend((0..random.below(5_000)).map(|_| random.bits() as u8));
        let _ = possessed.stream.write_all(&bytes);
        let _ = possessed.stream.shutdown(Shutdown::Both);
        possessed.until_read_out();
        assert!(possessed.arrivals.broken_peers().len() <= 1);
    }
}

#[test]
fn a_peer_that_does_not_read_costs_one_frame() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let data = vec![1; DATA_BYTES_MAX];
    let header = Header::user(Kind::Part, DATA_BYTES_MAX as u32, 0, 0);
    let (mut taken, mut refused) = (0, 0);
    while refused < 1_000 {
        match possessed.receiver.try_send(FAR, &header, Bytes::from(&data[..])) {
            Ok(()) => taken += DATA_BYTES_MAX,
            Err(error) => {
                assert_eq!(error, SendError::Full);
                refused += 1;
            }
        }
        possessed.poll();
        assert!(taken < 64 << 20, "the system's buffers are finite");
    }
    let urgent =
        Header { class: landeck_wire::Class::Urgent, ..Header::user(Kind::Eager, 0, 0, 0) };
    let sent = possessed.receiver.try_send(FAR, &urgent, Bytes::EMPTY);
    assert_eq!(sent, Err(SendError::Full), "64 KiB and more are unsent");
    assert!(possessed.receiver.has_unsent());
    drop(possessed.stream);
    until("the lane is read out", || {
        possessed.receiver.poll(&mut possessed.arrivals);
        possessed.receiver.is_read_out(FAR)
    });
    assert!(possessed.receiver.has_unsent(), "nothing is lost: another lane may come");
    possessed.receiver.forget(FAR);
    assert!(!possessed.receiver.has_unsent());
}

#[test]
fn lanes_that_no_daemon_hands_over_are_closed() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let lane = |far, lane| Handover::Lane { far, incarnation: 0, lane, keys: keys(Cipher::Plain) };
    let mut closed = Vec::new();
    // A process that does not exist, a number that was seen, and a socket beside another message.
    for message in [lane(3, 1), lane(u32::MAX, 1), lane(1, 1), lane(1, 0), Handover::Numbers] {
        let (mine, theirs) = tcp_pair();
        possessed.daemon.hand(0, &message, Some(theirs.as_fd()));
        closed.push(TcpStream::from(mine));
    }
    possessed.daemon.hand_bytes(0, b"noise", None);
    possessed.daemon.hand_bytes(0, &[9; 200], None);
    for stream in &mut closed {
        stream.set_nonblocking(true).unwrap();
        until("it is closed", || {
            possessed.receiver.poll_thoroughly(&mut possessed.arrivals);
            !matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        });
    }
    possessed.stream.write_all(&message(3, 0)).unwrap();
    until("the lane goes on", || {
        possessed.poll();
        possessed.arrivals.take().len() == 1
    });
}

#[test]
fn a_further_lane_goes_on_where_the_last_one_was_received() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    for lane in 2..5 {
        let mut next = possessed.daemon.possess(0, FAR.0, lane);
        next.write_all(&message(3, lane as u16 - 2)).unwrap();
        until("the further lane is used", || {
            possessed.receiver.poll_thoroughly(&mut possessed.arrivals);
            possessed.arrivals.take().len() == 1
        });
        let mut said = [0; HEADER_BYTES + 8];
        next.read_exact(&mut said).unwrap();
        assert_eq!(said[..], position(Kind::Received, u64::from(lane) - 2)[..]);
        // The earlier one is closed; if it had something unread, it is reset.
        assert!(!matches!(possessed.stream.read(&mut [0]), Ok(1..)));
        possessed.stream = next;
    }
    assert_eq!(possessed.breaks(), []);
    // A sender that repeats what was received is broken, and gets no further lane.
    possessed.stream.write_all(&message(3, 2)).unwrap();
    until("the lane is broken", || {
        possessed.poll();
        !possessed.receiver.has_lane(FAR)
    });
    assert_eq!(possessed.breaks(), [(FAR.0, 4)]);
    let mut refused = possessed.daemon.possess(0, FAR.0, 5);
    refused.set_nonblocking(true).unwrap();
    until("another lane is closed", || {
        possessed.receiver.poll_thoroughly(&mut possessed.arrivals);
        matches!(refused.read(&mut [0]), Ok(0))
    });
    possessed.until_read_out();
}

#[test]
fn without_a_daemon_lanes_go_on_and_wants_stay_unanswered() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    possessed.daemon.end(0);
    let header = Header::user(Kind::Eager, 3, 0, 0);
    for round in 0..3 {
        possessed.poll();
        possessed.receiver.poll_thoroughly(&mut possessed.arrivals);
        let data = Bytes::from(&b"abc"[..]);
        assert_eq!(possessed.receiver.try_send(Peer(2), &header, data), Err(SendError::Full));
        assert_eq!(possessed.receiver.try_send(FAR, &header, data), Ok(()));
        possessed.stream.write_all(&message(9, round)).unwrap();
        until("the lane goes on", || {
            possessed.poll();
            possessed.arrivals.take().len() == 1
        });
    }
    possessed.receiver.ask_for_group_numbers();
    assert!(possessed.receiver.is_read_out(Peer(2)) && !possessed.receiver.has_unsent());
}

#[test]
fn a_lane_is_asked_for_once() {
    let _watchdog = watchdog();
    let mut daemon = TestDaemon::new(2, Cipher::Plain);
    let mut channel = daemon.channel(0);
    let header = Header::user(Kind::Eager, 0, 0, 0);
    for _ in 0..5 {
        assert_eq!(channel.try_send(FAR, &header, Bytes::EMPTY), Err(SendError::Full));
        channel.poll(&mut Arrivals::default());
    }
    channel.ask_for_group_numbers();
    let heard: Vec<Handover> = daemon.heard().into_iter().map(|(_, message)| message).collect();
    let hello = Handover::Hello { slot: 0, incarnation: 0, lanes_max: 0 };
    assert_eq!(heard, [hello, Handover::Want { far: 1 }, Handover::Numbers]);
}

#[test]
fn a_process_that_has_left_says_so_on_a_late_lane() {
    let _watchdog = watchdog();
    let mut daemon = TestDaemon::new(2, Cipher::Plain);
    let mut channel = daemon.channel(0);
    channel.leave();
    let mut stream = daemon.possess(0, FAR.0, 1);
    until("the goodbye has arrived", || {
        channel.poll_thoroughly(&mut Arrivals::default());
        channel.has_lane(FAR) && !channel.has_unsent()
    });
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    assert_eq!(said, Header::GOODBYE.encode());
}

#[test]
fn the_sender_learns_how_much_was_received() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let bytes: Vec<u8> = (0..64).flat_map(|position| message(1, position)).collect();
    possessed.stream.write_all(&bytes).unwrap();
    let (mut said, mut piece) = (Vec::new(), [0; 100]);
    possessed.stream.set_nonblocking(true).unwrap();
    until("a report comes", || {
        possessed.poll();
        let count = possessed.stream.read(&mut piece).unwrap_or(0);
        said.extend_from_slice(&piece[..count]);
        said.len() >= HEADER_BYTES + 8
    });
    assert_eq!(said, position(Kind::Received, 64));
}

/// The number of segments with data that have come on a connection.
fn segments(stream: &TcpStream) -> u32 {
    // SAFETY: zeroes are a valid value of this structure of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    let place = (&raw mut info).cast();
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the system writes at most `bytes` bytes, which is the size of the structure.
    let result =
        unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, place, &raw mut bytes) };
    assert_eq!(result, 0);
    info.tcpi_data_segs_in
}

#[test]
fn the_first_messages_go_at_once_and_the_rest_of_a_burst_together() {
    let _watchdog = watchdog();
    let header = Header::user(Kind::Eager, 8, 0, 0);
    for cipher in [Cipher::Plain, Cipher::Aes256Gcm] {
        let mut possessed = Possessed::with(cipher);
        let send = |possessed: &mut Possessed| {
            possessed.receiver.try_send(FAR, &header, Bytes::from(&[1; 8][..])).unwrap();
        };
        for round in 0..10 {
            send(&mut possessed);
            possessed.poll();
            until("a single message goes at once", || segments(&possessed.stream) > round);
        }
        assert_eq!(segments(&possessed.stream), 10);
        (0..3).for_each(|_| send(&mut possessed));
        until("the first of a burst go at once", || segments(&possessed.stream) >= 13);
        assert!(!possessed.receiver.has_unsent());
        (0..200).for_each(|_| send(&mut possessed));
        // The thread sends some of them if this test is slow.
        assert!(possessed.receiver.has_unsent());
        possessed.poll();
        assert!(!possessed.receiver.has_unsent());
        let frame = HEADER_BYTES + 8 + if cipher == Cipher::Plain { 0 } else { 16 };
        let mut all = vec![0; 213 * frame];
        possessed.stream.read_exact(&mut all).unwrap();
        let segments = segments(&possessed.stream);
        assert!(segments < 13 + 100, "{segments} for 200 messages");
    }
}

#[test]
fn a_burst_arrives_though_its_sender_makes_no_further_call() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let header = Header::user(Kind::Eager, 8, 0, 0);
    let mut sent = 0;
    for round in 0..2_000 {
        let (count, data) = (1 + round % 40, [round as u8; 8]);
        for _ in 0..count {
            possessed.receiver.try_send(FAR, &header, Bytes::from(&data[..])).unwrap();
        }
        let mut all = vec![0; count * (HEADER_BYTES + 8)];
        possessed.stream.read_exact(&mut all).unwrap();
        assert!(all.ends_with(&data), "{all:?}");
        sent += count as u64;
        possessed.stream.write_all(&position(Kind::Received, sent)).unwrap();
        if round % 2 == 0 {
            possessed.poll(); // the next ones are the first again
        }
    }
}
