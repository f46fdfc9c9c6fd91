//! A process without spare descriptors refuses connections instead of being woken by them for ever. This is a test
//! program of its own because the limit applies to the whole process.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer};
use landeck_testing::Watchdog;
use landeck_transports::tcp::{Connection, Tcp, Token};
use landeck_wire::{HostId, Incarnation, ProcessId, Slot};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PATIENCE: Duration = Duration::from_secs(100);
const STRANGERS: usize = 20;

#[test]
fn without_descriptors_connections_are_refused() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let token = Token::random().unwrap();
    let (mut receiver, mut sender) = (endpoint(0, &token), endpoint(1, &token));
    let address = receiver.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let mut strangers: Vec<TcpStream> =
        (0..STRANGERS).map(|_| TcpStream::connect(address).unwrap()).collect();
    strangers.iter().for_each(|stranger| stranger.set_nonblocking(true).unwrap());

    let before = getrlimit(Resource::Nofile);
    let none = Rlimit { current: Some(first_unused()), ..before };
    setrlimit(Resource::Nofile, none).unwrap();
    until("every connection is refused", || {
        receiver.poll(&mut Arrivals::default());
        strangers.iter_mut().all(is_closed)
    });
    assert!(!is_readable(&receiver), "it would be woken for ever");

    setrlimit(Resource::Nofile, before).unwrap();
    sender.connect(address, Peer(0), PATIENCE).unwrap();
    until("with descriptors there are connections", || {
        sender.poll(&mut Arrivals::default());
        receiver.poll(&mut Arrivals::default());
        matches!(sender.connection(Peer(0)), Connection::Open(_))
    });
}

fn endpoint(slot: u32, token: &Token) -> Tcp {
    let own =
        ProcessId { host: HostId(slot.into()), slot: Slot(slot), incarnation: Incarnation(0) };
    Tcp::new(own, token.clone(), |process| Some(Peer(process.slot.0))).unwrap()
}

/// The lowest number above those of all open descriptors; lower free ones are opened and left open.
fn first_unused() -> u64 {
    let numbers = || -> Vec<u64> {
        let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let highest = numbers().into_iter().max().unwrap();
    loop {
        let descriptor = rustix::io::dup(std::io::stdin()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&descriptor) as u64;
        if number > highest {
            return number;
        }
        std::mem::forget(descriptor);
    }
}

fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 16]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn is_readable(channel: &Tcp) -> bool {
    let descriptors = channel.wake_descriptors();
    let mut polled = [PollFd::new(&descriptors[0], PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&at_once)).unwrap() > 0
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
    }
}
