//! Half round trips over the loopback interface: raw sockets, lanes in clear, sealed lanes. Run it alone, with
//! `--release --ignored --nocapture`.
#![expect(clippy::unwrap_used, reason = "a test")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::Bytes;
use landeck_transports::Lanes;
use landeck_transports::lanes::DATA_BYTES_MAX;
use landeck_wire::handover::Cipher;
use landeck_wire::{Header, Kind};

use support::{TestDaemon, tcp_pair};

const RUNS: usize = 9;

/// Copies what arrives to its place, as a kernel does.
struct Target {
    buffer: Vec<u8>,
    filled: usize,
}

impl Sink for Target {
    fn arrive(&mut self, _: Peer, _: &Header, data: Bytes<'_>) -> Verdict {
        data.copy_to_slice(&mut self.buffer[self.filled..]);
        self.filled += data.len();
        Verdict::Taken
    }
    fn broken(&mut self, _: Peer, what: BrokenPeer) {
        panic!("{what}");
    }
}

trait Way: Send {
    fn send(&mut self, bytes: &[u8]);
    fn receive(&mut self, target: &mut Target);
}

impl Way for TcpStream {
    fn send(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }
    fn receive(&mut self, target: &mut Target) {
        while target.filled < target.buffer.len() {
            match self.read(&mut target.buffer[target.filled..]) {
                Ok(count) => target.filled += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }
}

struct Lane(Lanes, Peer);

impl Way for Lane {
    fn send(&mut self, bytes: &[u8]) {
        let mut target = Target { buffer: Vec::new(), filled: 0 };
        for part in bytes.chunks(DATA_BYTES_MAX) {
            let header = Header::user(Kind::Part, part.len() as u32, 0, 0);
            while self.0.try_send(self.1, &header, Bytes::from(part)) == Err(SendError::Full) {
                self.0.poll_peer_into(self.1, &mut target);
            }
        }
    }
    fn receive(&mut self, target: &mut Target) {
        while target.filled < target.buffer.len() {
            self.0.poll_peer_into(self.1, target);
        }
    }
}

/// The half round trip in microseconds.
fn half_round_trip<W: Way>(one: &mut W, other: &mut W, bytes: usize, rounds: u32) -> f64 {
    let data = vec![7; bytes];
    let mut taken = 0.0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut target = Target { buffer: vec![0; bytes], filled: 0 };
            for _ in 0..rounds + 10 {
                target.filled = 0;
                other.receive(&mut target);
                other.send(&data);
            }
        });
        let mut target = Target { buffer: vec![0; bytes], filled: 0 };
        let mut start = Instant::now();
        for round in 0..rounds + 10 {
            if round == 10 {
                start = Instant::now();
            }
            target.filled = 0;
            one.send(&data);
            one.receive(&mut target);
        }
        taken = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds) / 2.0;
    });
    taken
}

fn lanes(cipher: Cipher) -> (Lane, Lane) {
    let mut daemon = TestDaemon::new(2, cipher);
    let (mut one, mut other) = (daemon.channel(0), daemon.channel(1));
    daemon.connect(0, 1);
    let mut target = Target { buffer: Vec::new(), filled: 0 };
    one.poll(&mut target);
    other.poll(&mut target);
    (Lane(one, Peer(1)), Lane(other, Peer(0)))
}

fn raw() -> (TcpStream, TcpStream) {
    let (one, other) = tcp_pair();
    let streams: [TcpStream; 2] = [one.into(), other.into()];
    streams.iter().for_each(|stream| {
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
    });
    let [one, other] = streams;
    (one, other)
}

#[test]
#[ignore = "measures"]
fn half_round_trips() {
    for (bytes, rounds) in [(8, 3_000), (65_536, 1_000), (1 << 20, 100)] {
        let mut figures: [Vec<f64>; 3] = Default::default();
        for _ in 0..RUNS {
            let (mut one, mut other) = raw();
            figures[0].push(half_round_trip(&mut one, &mut other, bytes, rounds));
            for (at, cipher) in [(1, Cipher::Plain), (2, Cipher::Aes256Gcm)] {
                let (mut one, mut other) = lanes(cipher);
                figures[at].push(half_round_trip(&mut one, &mut other, bytes, rounds));
            }
        }
        figures.iter_mut().for_each(|runs| runs.sort_by(f64::total_cmp));
        let [raw, plain, sealed] = figures.map(|runs| (runs[RUNS / 2], runs[0]));
        println!(
            "{bytes:>8} B: raw {:.2} us, plain {:.2} us ({:.2}), sealed {:.2} us ({:.2}); best {:.2} {:.2} {:.2}",
            raw.0,
            plain.0,
            plain.0 / raw.0,
            sealed.0,
            sealed.0 / raw.0,
            raw.1,
            plain.1,
            sealed.1
        );
    }
}
