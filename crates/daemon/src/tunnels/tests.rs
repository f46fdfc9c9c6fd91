//! Tunnels between two threads: streams, windows, ends, and another side that does what no daemon does.

use std::io::{Read, Write};
use std::net::TcpStream;

use landeck_testing::Watchdog;
use landeck_wire::tunnel::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, ChunkHead, ChunkKind, ChunkReader, TunnelChunk, WINDOW_BYTES,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socketpair};

use super::*;
use crate::relay::conformance::{tcp_pair, until};

const LOW: HostNumber = HostNumber(0);
const HIGH: HostNumber = HostNumber(1);
const NUMBER: u32 = 33;
const PREAMBLE: [u8; PREAMBLE_BYTES] = [7; PREAMBLE_BYTES];

/// Two hosts with a tunnel.
pub(crate) struct Pair {
    low: Tunnels,
    high: Tunnels,
    /// The number of the next stream.
    next: u32,
}

fn socket_pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
}

fn started(own: HostNumber) -> Tunnels {
    let mut tunnels = Tunnels::new(own, Duration::from_secs(60));
    tunnels.start().unwrap().expect("it did not run");
    tunnels
}

/// The next event.
fn event(of: &Tunnels) -> TunnelEvent {
    let thread = of.thread.as_ref().expect("it runs");
    thread.events.recv_timeout(Duration::from_secs(60)).expect("an event")
}

impl Pair {
    pub(crate) fn new() -> Self {
        let (low, high) = (started(LOW), started(HIGH));
        let (one, other) = tcp_pair();
        low.begin((HIGH, NUMBER), one);
        high.begin((LOW, NUMBER), other);
        Self { low, high, next: 1 }
    }

    /// The two ends of a new stream, of which the first one has begun it.
    pub(crate) fn stream(&mut self) -> (OwnedFd, OwnedFd) {
        let (own, mine) = socket_pair();
        let name = (HIGH, NUMBER, self.next);
        self.next += 2;
        self.low.open(name, PREAMBLE, own);
        match event(&self.high) {
            TunnelEvent::Opened { name: (LOW, NUMBER, stream), preamble } => {
                assert_eq!((stream, *preamble), (name.2, PREAMBLE));
            }
            other => panic!("{other:?}"),
        }
        let (own, theirs) = socket_pair();
        self.high.answer((LOW, NUMBER, name.2), Some(own));
        assert!(matches!(event(&self.low), TunnelEvent::Accepted(it) if it == name));
        (mine, theirs)
    }
}

/// Sends what a socket takes now. Returns how much.
fn fill(socket: &OwnedFd) -> usize {
    let (data, mut sent) = (vec![5; 1 << 16], 0);
    loop {
        match send(socket, &data, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) => sent += count,
            Err(Errno::AGAIN) => return sent,
            Err(errno) => panic!("{errno}"),
        }
    }
}

/// Reads so many bytes, or up to the end of the stream.
fn read(socket: &OwnedFd, most: usize) -> Vec<u8> {
    let (mut all, mut buffer, mut is_over) = (Vec::new(), vec![0; 1 << 16], false);
    until("bytes come", || {
        let room = buffer.len().min(most - all.len());
        match recv(socket, &mut buffer[..room], RecvFlags::DONTWAIT) {
            // The other end may have closed it with something unread.
            Ok((0, _)) | Err(Errno::CONNRESET) => is_over = true,
            Ok((count, _)) => all.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN) => {}
            Err(errno) => panic!("{errno}"),
        }
        is_over || all.len() == most
    });
    all
}

fn say(socket: &OwnedFd, bytes: &[u8]) {
    assert_eq!(send(socket, bytes, SendFlags::NOSIGNAL), Ok(bytes.len()));
}

#[test]
fn a_receiver_that_takes_nothing_stops_its_own_stream_alone() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut pair = Pair::new();
    let (full, untaken) = pair.stream();
    let (one, other) = pair.stream();
    let (window, mut sent) = (WINDOW_BYTES as usize, 0);
    until("a window is full", || {
        sent += fill(&full);
        sent >= window
    });
    for (from, to) in [(&one, &other), (&other, &one)] {
        for round in 0..100u32 {
            say(from, &round.to_le_bytes());
            assert_eq!(read(to, 4), round.to_le_bytes());
        }
        // More than a window.
        std::thread::scope(|scope| {
            let all = 3 * window;
            scope.spawn(move || {
                let (data, mut left) = (vec![9; 1 << 16], all);
                until("all is sent", || {
                    match send(from, &data[..data.len().min(left)], SendFlags::NOSIGNAL) {
                        Ok(count) => left -= count,
                        Err(Errno::AGAIN) => {}
                        Err(errno) => panic!("{errno}"),
                    }
                    left == 0
                });
            });
            assert_eq!(read(to, all).len(), all);
        });
    }
    sent += fill(&full);
    let buffers_of_the_system = 4 << 20;
    assert!(sent < window + buffers_of_the_system, "{sent}");
    drop(full);
    assert_eq!(read(&untaken, usize::MAX).len(), sent, "all that was sent before its end");
}

#[test]
fn a_stream_that_was_refused_or_closed_is_followed_by_others() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut pair = Pair::new();
    let name = (HIGH, NUMBER, pair.next);
    pair.next += 2;
    let (own, mine) = socket_pair();
    pair.low.open(name, PREAMBLE, own);
    assert!(matches!(event(&pair.high), TunnelEvent::Opened { .. }));
    pair.high.answer((LOW, NUMBER, name.2), None);
    assert!(matches!(event(&pair.low), TunnelEvent::Refused(it) if it == name));
    assert_eq!(read(&mine, 1), []);
    // Each side closes first.
    for is_first in [true, false] {
        let (one, other) = pair.stream();
        say(&one, b"last");
        let (closes, stays) = if is_first { (one, other) } else { (other, one) };
        say(&stays, b"unread");
        drop(closes);
        let expected: &[u8] = if is_first { b"last" } else { b"" };
        assert_eq!(read(&stays, usize::MAX), expected);
    }
    let (one, other) = pair.stream();
    say(&other, b"goes on");
    assert_eq!(read(&one, 7), b"goes on");
    // A stream of a tunnel that there is no more.
    pair.low.open((HIGH, 1, 99), PREAMBLE, socket_pair().0);
    assert!(matches!(event(&pair.low), TunnelEvent::Refused((HIGH, 1, 99))));
}

#[test]
fn a_tunnel_that_ends_takes_its_streams_along() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut pair = Pair::new();
    let streams = [pair.stream(), pair.stream()];
    pair.low.end((HIGH, NUMBER));
    let broken = event(&pair.high);
    assert!(
        matches!(broken, TunnelEvent::Broken { host: LOW, tunnel: NUMBER, fault: None, .. }),
        "{broken:?}"
    );
    for (one, other) in &streams {
        assert_eq!((read(one, 1), read(other, 1)), (vec![], vec![]));
    }
}

/// Another side in the test's hands.
struct Hostile {
    tunnels: Tunnels,
    connection: TcpStream,
}

impl Hostile {
    fn new() -> Self {
        let (tunnels, (mine, theirs)) = (started(HIGH), tcp_pair());
        tunnels.begin((LOW, NUMBER), theirs);
        let connection = TcpStream::from(mine);
        connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { tunnels, connection }
    }

    fn say(&mut self, stream: u32, kind: ChunkKind, length: u32, data: &[u8]) {
        self.connection.write_all(&ChunkHead { stream, kind, length }.encode()).unwrap();
        self.connection.write_all(data).unwrap();
    }

    /// Begins a stream, which is accepted.
    fn begin(&mut self, stream: u32) -> OwnedFd {
        self.say(stream, ChunkKind::Open, PREAMBLE_BYTES as u32, &PREAMBLE);
        assert!(matches!(event(&self.tunnels), TunnelEvent::Opened { .. }));
        let (own, theirs) = socket_pair();
        self.tunnels.answer((LOW, NUMBER, stream), Some(own));
        let (mut reader, mut head) = (ChunkReader::default(), [0; CHUNK_HEAD_BYTES]);
        self.connection.read_exact(&mut head).unwrap();
        let chunk = reader.next(&mut &head[..]).unwrap();
        assert_eq!(chunk, Some(TunnelChunk::Taken(stream, WINDOW_BYTES)));
        theirs
    }

    /// Waits until the tunnel has ended, for this reason.
    fn assert_refused(mut self, reason: &str) {
        match event(&self.tunnels) {
            TunnelEvent::Broken { host: LOW, tunnel: NUMBER, fault: Some(fault), .. } => {
                assert!(fault.contains(reason), "{fault}");
            }
            other => panic!("{other:?}"),
        }
        // Its end may come as a reset.
        let _ = self.connection.read_to_end(&mut Vec::new());
    }
}

#[test]
fn a_side_that_does_what_no_daemon_does_loses_its_tunnel() {
    use ChunkKind::{Close, Data, Open, Taken};
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    type Deed = fn(&mut Hostile);
    let deeds: [(&str, Deed); 11] = [
        ("a kind", |it| it.connection.write_all(&[9; CHUNK_HEAD_BYTES]).unwrap()),
        ("a length", |it| it.say(1, Data, CHUNK_BYTES_MAX + 1, &[])),
        ("not open", |it| it.say(1, Data, 1, &[0])),
        ("not open", |it| it.say(1, Taken, 1, &[])),
        ("not open", |it| it.say(1, Close, 0, &[])),
        ("a number", |it| it.say(2, Open, PREAMBLE_BYTES as u32, &PREAMBLE)),
        ("a number", |it| {
            drop(it.begin(3));
            it.say(3, Open, PREAMBLE_BYTES as u32, &PREAMBLE);
        }),
        ("more of a stream", |it| {
            // It is not accepted.
            it.say(1, Open, PREAMBLE_BYTES as u32, &PREAMBLE);
            assert!(matches!(event(&it.tunnels), TunnelEvent::Opened { .. }));
            it.say(1, Data, 1, &[0]);
        }),
        ("more of a stream", |it| {
            let untaken = it.begin(1);
            let data = vec![0; CHUNK_BYTES_MAX as usize];
            // The socket of the stream takes some.
            let more = 64;
            for _ in 0..WINDOW_BYTES / CHUNK_BYTES_MAX + more {
                let head = ChunkHead { stream: 1, kind: Data, length: CHUNK_BYTES_MAX };
                let mut say = |bytes: &[u8]| it.connection.write_all(bytes).is_ok();
                if !say(&head.encode()) || !say(&data) {
                    break;
                }
            }
            std::mem::forget(untaken);
        }),
        ("has room", |it| {
            std::mem::forget(it.begin(1));
            it.say(1, Taken, 1, &[]);
        }),
        ("not open", |it| {
            std::mem::forget(it.begin(1));
            it.say(1, Close, 0, &[]);
            it.say(1, Data, 1, &[0]);
        }),
    ];
    for (reason, deed) in deeds {
        let mut hostile = Hostile::new();
        deed(&mut hostile);
        hostile.assert_refused(reason);
    }
}
