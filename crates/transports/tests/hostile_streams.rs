//! Hostile data over TCP from strangers and broken peers: they are refused, or reported as broken; no other peer
//! notices, nothing hangs, nothing grows.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use landeck_channel::conformance::Arrivals;
use landeck_channel::{BrokenPeer, Channel, Peer, SendError};
use landeck_memory::Bytes;
use landeck_testing::{Random, Watchdog, seed};
use landeck_transports::tcp::{
    Connection, DATA_BYTES_MAX, HelloError, LinkEnd, Tcp, TcpError, Token, UNSENT_BYTES_MAX,
};
use landeck_wire::{HEADER_BYTES, Header, HeaderError, HostId, Incarnation, Kind, ProcessId, Slot};
use rustix::io::Errno;

const PATIENCE: Duration = Duration::from_secs(60);
/// The length of a hello in one direction.
const HELLO_BYTES: usize = 64;

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(200))
}

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn endpoint(slot: u32, token: &Token) -> Tcp {
    let own =
        ProcessId { host: HostId(slot.into()), slot: Slot(slot), incarnation: Incarnation(0) };
    Tcp::new(own, token.clone(), |process| Some(Peer(process.slot.0))).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
    }
}

/// A receiver, and a connection to it that has completed a valid hello as peer 1 and is now in the test's hands.
struct Possessed {
    receiver: Tcp,
    arrivals: Arrivals,
    stream: TcpStream,
}

impl Possessed {
    fn new() -> Self {
        let token = Token::random().unwrap();
        let (mut receiver, mut sender) = (endpoint(0, &token), endpoint(1, &token));
        let address = receiver.listen(local()).unwrap();
        let between = TcpListener::bind(local()).unwrap();
        sender.connect(between.local_addr().unwrap(), Peer(0), PATIENCE).unwrap();
        let mut from_sender = between.accept().unwrap().0;
        let mut stream = TcpStream::connect(address).unwrap();
        let mut arrivals = Arrivals::default();
        let (mut up, mut down) = (0, 0);
        until("the hello is over", || {
            sender.poll(&mut Arrivals::default());
            receiver.poll(&mut arrivals);
            up += carry(&mut from_sender, &mut stream, HELLO_BYTES - up);
            down += carry(&mut stream, &mut from_sender, HELLO_BYTES - down);
            matches!(receiver.connection(Peer(1)), Connection::Open(_)) && down == HELLO_BYTES
        });
        stream.set_nonblocking(false).unwrap();
        Self { receiver, arrivals, stream }
    }

    fn poll(&mut self) {
        self.receiver.poll(&mut self.arrivals);
    }

    /// Sends until the network accepts no more for a while.
    fn fill(&mut self) {
        let data = vec![1; DATA_BYTES_MAX];
        let header = Header::user(Kind::Part, DATA_BYTES_MAX as u32, 0, 0);
        let (mut taken, mut refused) = (0, 0);
        while refused < 1_000 {
            match self.receiver.try_send(Peer(1), &header, Bytes::from(&data[..])) {
                Ok(()) => taken += DATA_BYTES_MAX,
                Err(error) => {
                    assert_eq!(error, SendError::Full);
                    refused += 1;
                }
            }
            self.poll();
            assert!(taken < UNSENT_BYTES_MAX + (64 << 20), "the system's buffers are finite");
        }
    }

    fn until_gone(&mut self) {
        until("the peer is gone", || {
            self.receiver.poll_thoroughly(&mut self.arrivals);
            self.receiver.is_read_out(Peer(1))
        });
        let header = Header::user(Kind::Eager, 0, 0, 0);
        let sent = self.receiver.try_send(Peer(1), &header, Bytes::EMPTY);
        assert_eq!(sent, Err(SendError::Gone));
    }
}

/// Carries data that have arrived, at most so many bytes.
fn carry(from: &mut TcpStream, to: &mut TcpStream, most: usize) -> usize {
    let mut bytes = vec![0; most];
    from.set_nonblocking(true).unwrap();
    let count = match from.read(&mut bytes) {
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    };
    to.write_all(&bytes[..count]).unwrap();
    count
}

/// Whether the other side has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 256]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Makes the host of this connection deaf, as if it had lost its network.
fn deafen(stream: &TcpStream) {
    let nothing = libc::BPF_RET | libc::BPF_K;
    let mut filter = [libc::sock_filter { code: nothing as u16, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: filter.as_mut_ptr() };
    // SAFETY: the system copies the program, and its one instruction, before the call returns.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
}

fn message(length: usize, tag: u32) -> Vec<u8> {
    let mut bytes = Header::user(Kind::Eager, length as u32, 7, tag).encode().to_vec();
    bytes.resize(HEADER_BYTES + length, tag as u8);
    bytes
}

#[test]
fn strangers_are_sent_away() {
    let _watchdog = watchdog();
    let mut random = Random::new(seed());
    let mut receiver = endpoint(0, &Token::random().unwrap());
    let address = receiver.listen(local()).unwrap();
    for greeting in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 48], &[0xff; 4096], b"LANDECK\n\x02\0\0\0"]
    {
        let mut stranger = TcpStream::connect(address).unwrap();
        let mut greeting = greeting.to_vec();
        greeting.extend((0..48).map(|_| random.bits() as u8));
        stranger.write_all(&greeting).unwrap();
        until("the stranger is sent away", || {
            receiver.poll(&mut Arrivals::default());
            is_closed(&mut stranger)
        });
    }
    assert!(!receiver.has_unsent());
}

#[test]
fn a_hello_that_drips_is_ended_in_time() {
    let _watchdog = watchdog();
    let mut receiver = endpoint(0, &Token::random().unwrap());
    let address = receiver.listen(local()).unwrap();
    let mut stranger = TcpStream::connect(address).unwrap();
    let mut drops = b"LANDECK\n\x01".iter().chain(std::iter::repeat(&0));
    let mut next_drop = Instant::now();
    until("the stranger is sent away", || {
        receiver.poll(&mut Arrivals::default());
        if Instant::now() >= next_drop {
            // A whole hello would take longer than this wait.
            next_drop += Duration::from_millis(1_500);
            let _ = drops.next().map(|drop| stranger.write_all(&[*drop]));
        }
        is_closed(&mut stranger)
    });
}

#[test]
fn strangers_in_numbers_keep_nobody_out() {
    let _watchdog = watchdog();
    let token = Token::random().unwrap();
    let (mut receiver, mut sender) = (endpoint(0, &token), endpoint(1, &token));
    let address = receiver.listen(local()).unwrap();
    let mut strangers: Vec<TcpStream> = Vec::new();
    for _ in 0..200 {
        strangers.push(TcpStream::connect(address).unwrap());
        receiver.poll(&mut Arrivals::default());
    }
    sender.connect(address, Peer(0), PATIENCE).unwrap();
    until("the honest one is connected", || {
        sender.poll(&mut Arrivals::default());
        receiver.poll(&mut Arrivals::default());
        matches!(sender.connection(Peer(0)), Connection::Open(_))
    });
    let closed = strangers.iter_mut().filter_map(|one| is_closed(one).then_some(())).count();
    assert!(closed >= 136, "only {closed} of 200 strangers were sent away for others");
}

#[test]
fn another_job_is_refused_on_both_sides() {
    let _watchdog = watchdog();
    let (mut receiver, mut sender) =
        (endpoint(0, &Token::random().unwrap()), endpoint(1, &Token::random().unwrap()));
    let address = receiver.listen(local()).unwrap();
    sender.connect(address, Peer(0), PATIENCE).unwrap();
    until("the connector is refused", || {
        sender.poll(&mut Arrivals::default());
        receiver.poll(&mut Arrivals::default());
        sender.is_read_out(Peer(0))
    });
    assert_eq!(sender.connection(Peer(0)), Connection::Ended(&LinkEnd::Refused));
    assert_eq!(receiver.connection(Peer(1)), Connection::None);
}

#[test]
fn who_is_not_expected_is_refused() {
    let _watchdog = watchdog();
    let token = Token::random().unwrap();
    let own = ProcessId { host: HostId(0), slot: Slot(0), incarnation: Incarnation(0) };
    let mut receiver = Tcp::new(own, token.clone(), |_| None).unwrap();
    let mut sender = endpoint(1, &token);
    let address = receiver.listen(local()).unwrap();
    sender.connect(address, Peer(0), PATIENCE).unwrap();
    until("the connector is refused", || {
        sender.poll(&mut Arrivals::default());
        receiver.poll(&mut Arrivals::default());
        sender.connection(Peer(0)) == Connection::Ended(&LinkEnd::Refused)
    });
}

#[test]
fn an_impostor_that_listens_learns_and_becomes_nothing() {
    let _watchdog = watchdog();
    let impostor = TcpListener::bind(local()).unwrap();
    let mut sender = endpoint(1, &Token::random().unwrap());
    sender.connect(impostor.local_addr().unwrap(), Peer(0), PATIENCE).unwrap();
    let mut stream = impostor.accept().unwrap().0;
    let header = Header::user(Kind::Eager, 3, 0, 0);
    sender.try_send(Peer(0), &header, Bytes::from(&b"abc"[..])).unwrap();
    let mut greeting = [0; 48];
    until("the greeting is there", || {
        sender.poll(&mut Arrivals::default());
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut greeting).is_ok_and(|count| count == 48)
    });
    stream.read_exact(&mut greeting).unwrap();
    stream.write_all(&greeting).unwrap(); // an echo is no proof
    let mut said = Vec::new();
    until("the impostor is given up", || {
        sender.poll(&mut Arrivals::default());
        let mut bytes = [0; 100];
        if let Ok(count) = stream.read(&mut bytes) {
            said.extend_from_slice(&bytes[..count]);
            let _ = stream.write_all(&bytes[..count]);
        }
        sender.is_read_out(Peer(0))
    });
    let other_job = LinkEnd::Hello(HelloError::OtherJob);
    assert_eq!(sender.connection(Peer(0)), Connection::Ended(&other_job));
    assert_eq!(said.len(), 16, "a proof for this one hello, and no message");
}

#[test]
fn nobody_there_is_said_and_silence_ends() {
    let _watchdog = watchdog();
    let mut sender = endpoint(1, &Token::random().unwrap());
    let unused = TcpListener::bind(local()).unwrap().local_addr().unwrap();
    let silent = TcpListener::bind(local()).unwrap();
    sender.connect(unused, Peer(0), PATIENCE).unwrap();
    let patience = Duration::from_millis(200);
    sender.connect(silent.local_addr().unwrap(), Peer(2), patience).unwrap();
    let again = sender.connect(unused, Peer(0), PATIENCE);
    assert!(matches!(again, Err(TcpError::InUse { peer: Peer(0) })));
    until("both attempts have failed", || {
        sender.poll(&mut Arrivals::default());
        sender.is_read_out(Peer(0)) && sender.is_read_out(Peer(2))
    });
    assert!(matches!(sender.connection(Peer(0)), Connection::Ended(LinkEnd::Network(_))));
    assert_eq!(sender.connection(Peer(2)), Connection::Ended(&LinkEnd::TimedOut));
    sender.forget(Peer(0));
    assert_eq!(sender.connection(Peer(0)), Connection::None);
}

#[test]
fn who_is_expected_is_late_and_not_gone() {
    let _watchdog = watchdog();
    let token = Token::random().unwrap();
    let (mut receiver, mut sender) = (endpoint(0, &token), endpoint(1, &token));
    let address = receiver.listen(local()).unwrap();
    receiver.expect(Peer(1), PATIENCE).unwrap();
    receiver.expect(Peer(2), Duration::from_millis(100)).unwrap();
    assert!(!receiver.is_read_out(Peer(1)) && receiver.is_read_out(Peer(3)));
    let header = Header::user(Kind::Eager, 3, 0, 0);
    for _ in 0..3 {
        receiver.try_send(Peer(1), &header, Bytes::from(&b"abc"[..])).unwrap();
    }
    sender.connect(address, Peer(0), PATIENCE).unwrap();
    let (mut arrivals, mut arrived) = (Arrivals::default(), 0);
    until("what was sent before the peer came arrives, and who does not come is gone", || {
        receiver.poll(&mut Arrivals::default());
        sender.poll(&mut arrivals);
        arrived += arrivals.take().len();
        arrived == 3 && receiver.is_read_out(Peer(2))
    });
    assert!(matches!(receiver.connection(Peer(1)), Connection::Open(_)));
    assert_eq!(receiver.connection(Peer(2)), Connection::Ended(&LinkEnd::TimedOut));
}

#[test]
fn messages_in_single_bytes_arrive() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    possessed.stream.set_nodelay(true).unwrap();
    for byte in [message(5, 1), message(0, 2), message(100, 3)].concat() {
        possessed.stream.write_all(&[byte]).unwrap();
        possessed.poll();
    }
    let mut arrived = Vec::new();
    until("three messages arrive", || {
        possessed.poll();
        arrived.extend(possessed.arrivals.take());
        arrived.len() == 3
    });
    let shapes: Vec<_> = arrived.iter().map(|one| (one.header.tag, one.data.len())).collect();
    assert_eq!(shapes, [(1, 5), (2, 0), (3, 100)]);
}

#[test]
fn what_no_sender_sends_is_named_and_ends_the_peer() {
    let _watchdog = watchdog();
    let too_long = DATA_BYTES_MAX as u32 + 1;
    let mut unknown = message(0, 0);
    unknown[2] = 0x3f;
    let cases = [
        (unknown, BrokenPeer::Header(HeaderError::UnknownKind(0x3f))),
        (
            Header::user(Kind::Eager, too_long, 0, 0).encode().to_vec(),
            BrokenPeer::TooLong { length: too_long.into(), most: DATA_BYTES_MAX as u64 },
        ),
    ];
    for (bytes, broken) in cases {
        let mut possessed = Possessed::new();
        possessed.stream.write_all(&[message(9, 1), bytes, message(9, 2)].concat()).unwrap();
        possessed.until_gone();
        assert_eq!(possessed.arrivals.broken_peers(), [(Peer(1), broken.clone())]);
        assert_eq!(possessed.arrivals.take().len(), 1, "what came before it counts");
        let end = LinkEnd::Broken(broken);
        assert_eq!(possessed.receiver.connection(Peer(1)), Connection::Ended(&end));
    }
}

#[test]
fn a_stream_cut_anywhere_is_an_end() {
    let _watchdog = watchdog();
    let whole = [message(20, 1), message(30, 2)].concat();
    for cut in [0, 1, 15, 16, 35, 36, 37, 52, 81] {
        let mut possessed = Possessed::new();
        possessed.stream.write_all(&whole[..cut]).unwrap();
        possessed.stream.shutdown(Shutdown::Write).unwrap(); // half open from now on
        possessed.until_gone();
        assert_eq!(possessed.arrivals.take().len(), usize::from(cut >= 36), "cut at {cut}");
        assert_eq!(possessed.arrivals.broken_peers(), []);
    }
}

#[test]
fn only_a_whole_goodbye_at_the_end_is_a_departure() {
    let _watchdog = watchdog();
    let goodbye = Header::GOODBYE.encode();
    let whole = [&message(20, 1)[..], &goodbye].concat();
    for cut in [36, 37, 38, 51, 52] {
        let mut possessed = Possessed::new();
        possessed.stream.write_all(&whole[..cut]).unwrap();
        possessed.stream.shutdown(Shutdown::Write).unwrap();
        possessed.until_gone();
        let left = cut == whole.len();
        assert_eq!(possessed.receiver.has_left(Peer(1)), left, "cut at {cut}");
        let end = if left { LinkEnd::Left } else { LinkEnd::Closed };
        assert_eq!(possessed.receiver.connection(Peer(1)), Connection::Ended(&end), "cut at {cut}");
        assert_eq!(possessed.arrivals.take().len(), 1, "what came before it counts");
        assert_eq!(possessed.arrivals.broken_peers(), []);
    }
}

#[test]
fn whatever_follows_a_goodbye_is_named() {
    let _watchdog = watchdog();
    let goodbye = Header::GOODBYE.encode().to_vec();
    for behind in [vec![0], message(3, 2), goodbye.clone()] {
        for pause in [false, true] {
            let mut possessed = Possessed::new();
            possessed.stream.write_all(&[&message(20, 1)[..], &goodbye].concat()).unwrap();
            if pause {
                until("the message is there", || {
                    possessed.poll();
                    !possessed.arrivals.is_empty()
                });
                assert!(!possessed.receiver.is_read_out(Peer(1)), "who said goodbye closes");
            }
            possessed.stream.write_all(&behind).unwrap();
            possessed.stream.shutdown(Shutdown::Write).unwrap();
            possessed.until_gone();
            let broken = BrokenPeer::AfterGoodbye;
            assert_eq!(possessed.arrivals.broken_peers(), [(Peer(1), broken.clone())]);
            let end = LinkEnd::Broken(broken);
            assert_eq!(possessed.receiver.connection(Peer(1)), Connection::Ended(&end));
            assert!(!possessed.receiver.has_left(Peer(1)));
            assert_eq!(possessed.arrivals.take().len(), 1, "what came before it counts");
        }
    }
    let mut possessed = Possessed::new();
    let wrong = Header { tag: 7, ..Header::GOODBYE };
    possessed.stream.write_all(&wrong.encode()).unwrap();
    possessed.until_gone();
    assert_eq!(possessed.arrivals.broken_peers(), [(Peer(1), BrokenPeer::Form)]);
}

#[test]
fn what_came_before_a_goodbye_waits_for_the_sink() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    possessed.arrivals.hold(Peer(1), true);
    let goodbye = Header::GOODBYE.encode();
    possessed.stream.write_all(&[&message(20, 1)[..], &goodbye].concat()).unwrap();
    possessed.stream.shutdown(Shutdown::Both).unwrap();
    until("the end is noticed", || {
        possessed.poll();
        matches!(possessed.receiver.connection(Peer(1)), Connection::Ended(_))
    });
    assert!(!possessed.receiver.is_read_out(Peer(1)) && !possessed.receiver.has_left(Peer(1)));
    possessed.arrivals.hold(Peer(1), false);
    possessed.until_gone();
    assert!(possessed.receiver.has_left(Peer(1)));
    assert_eq!(possessed.arrivals.take().len(), 1);
}

#[test]
fn a_goodbye_is_heard_while_its_channel_is_there() {
    let _watchdog = watchdog();
    let token = Token::random().unwrap();
    let (mut receiver, mut leaver) = (endpoint(0, &token), endpoint(1, &token));
    let address = receiver.listen(local()).unwrap();
    leaver.connect(address, Peer(0), PATIENCE).unwrap();
    let header = Header::user(Kind::Eager, 3, 0, 0);
    leaver.try_send(Peer(0), &header, Bytes::from(&b"abc"[..])).unwrap();
    leaver.leave(); // before the hello is complete
    leaver.leave();
    assert_eq!(leaver.try_send(Peer(0), &header, Bytes::from(&b"abc"[..])), Err(SendError::Gone));
    let mut arrivals = Arrivals::default();
    until("the goodbye is heard and has arrived", || {
        leaver.poll(&mut Arrivals::default());
        receiver.poll(&mut arrivals);
        receiver.has_left(Peer(1)) && !leaver.has_unsent()
    });
    assert_eq!(arrivals.take().len(), 1);
    until("who is left alone closes", || {
        leaver.poll(&mut Arrivals::default());
        leaver.is_read_out(Peer(0))
    });
    assert_eq!(leaver.connection(Peer(0)), Connection::Ended(&LinkEnd::Left));
}

#[test]
fn a_goodbye_ends_what_goes_on_in_time() {
    let _watchdog = watchdog();
    let token = Token::random().unwrap();
    let mut leaver = endpoint(0, &token);
    let silent = TcpListener::bind(local()).unwrap();
    leaver.connect(silent.local_addr().unwrap(), Peer(1), PATIENCE * 10).unwrap();
    leaver.expect(Peer(2), PATIENCE * 10).unwrap();
    leaver.leave();
    until("nobody is waited for", || {
        leaver.poll(&mut Arrivals::default());
        !leaver.has_unsent()
    });
    let header = Header::user(Kind::Eager, 0, 0, 0);
    for peer in [Peer(1), Peer(2)] {
        assert!(leaver.is_read_out(peer));
        assert_eq!(leaver.try_send(peer, &header, Bytes::EMPTY), Err(SendError::Gone));
    }
}

#[test]
fn what_arrived_before_the_end_waits_for_the_sink() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    possessed.arrivals.hold(Peer(1), true);
    possessed.stream.write_all(&message(20, 1)).unwrap();
    possessed.stream.shutdown(Shutdown::Both).unwrap();
    until("the end is noticed", || {
        possessed.poll();
        matches!(possessed.receiver.connection(Peer(1)), Connection::Ended(_))
    });
    assert!(!possessed.receiver.is_read_out(Peer(1)), "a message of it is still here");
    possessed.arrivals.hold(Peer(1), false);
    possessed.until_gone();
    assert_eq!(possessed.arrivals.take().len(), 1);
}

#[test]
fn a_host_that_answers_no_more_is_gone_in_time() {
    let _watchdog = watchdog();
    for is_full in [false, true] {
        let mut possessed = Possessed::new();
        possessed.receiver.set_silence_max(Duration::from_secs(1));
        possessed.arrivals.hold(Peer(1), true);
        possessed.stream.write_all(&message(20, 1)).unwrap();
        if is_full {
            possessed.fill();
        }
        deafen(&possessed.stream);
        let header = Header::user(Kind::Eager, 0, 0, 0);
        let _ = possessed.receiver.try_send(Peer(1), &header, Bytes::EMPTY);
        until("the end is noticed", || {
            possessed.poll();
            matches!(possessed.receiver.connection(Peer(1)), Connection::Ended(_))
        });
        let end = LinkEnd::Network(Errno::TIMEDOUT);
        assert_eq!(possessed.receiver.connection(Peer(1)), Connection::Ended(&end));
        possessed.arrivals.hold(Peer(1), false);
        possessed.until_gone();
        assert!(!possessed.receiver.has_left(Peer(1)));
        assert_eq!(possessed.arrivals.take().len(), 1, "what came before counts");
    }
}

#[test]
fn a_process_that_is_stopped_for_long_loses_nothing() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    let longest = Duration::from_secs(1);
    possessed.receiver.set_silence_max(longest);
    possessed.fill();
    let stopped = Instant::now();
    while stopped.elapsed() < 5 * longest {
        possessed.poll();
        sleep(Duration::from_millis(10));
        assert!(matches!(possessed.receiver.connection(Peer(1)), Connection::Open(_)));
    }
    possessed.stream.set_nonblocking(true).unwrap();
    let mut bytes = vec![0; 1 << 20];
    until("all is read", || {
        possessed.poll();
        let _ = possessed.stream.read(&mut bytes);
        !possessed.receiver.has_unsent()
    });
}

#[test]
fn random_bytes_break_only_their_sender() {
    let _watchdog = watchdog();
    let mut random = Random::new(seed());
    for _ in 0..50 {
        let mut possessed = Possessed::new();
        let mut bytes = message(random.below(100) as usize, 1);
        bytes.extend((0..random.below(5_000)).map(|_| random.bits() as u8));
        let _ = possessed.stream.write_all(&bytes);
        let _ = possessed.stream.shutdown(Shutdown::Both);
        possessed.until_gone();
        assert!(possessed.arrivals.broken_peers().len() <= 1);
    }
}

#[test]
fn a_peer_that_does_not_read_costs_bounded_memory() {
    let _watchdog = watchdog();
    let mut possessed = Possessed::new();
    possessed.fill();
    assert!(possessed.receiver.has_unsent());
    possessed.stream.shutdown(Shutdown::Both).unwrap();
    drop(possessed.stream);
    until("the peer is gone", || {
        possessed.receiver.poll(&mut possessed.arrivals);
        possessed.receiver.is_read_out(Peer(1))
    });
    assert!(!possessed.receiver.has_unsent());
}
