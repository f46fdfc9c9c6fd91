//! A process without spare descriptors tells the daemon that it could not take a lane. This is a test program of its own
//! because the limit applies to the whole process.
#![expect(clippy::unwrap_used, reason = "a test")]

mod support;

use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer};
use landeck_testing::Watchdog;
use landeck_wire::handover::{Cipher, Handover};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use support::{TestDaemon, keys, tcp_pair, until};

#[test]
fn without_descriptors_a_lane_counts_as_broken() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut daemon = TestDaemon::new(2, Cipher::Plain);
    let mut channel = daemon.channel(0);
    let (mine, theirs) = tcp_pair();
    let lane = |lane| Handover::Lane { far: 1, incarnation: 0, lane, keys: keys(Cipher::Plain) };

    let before = getrlimit(Resource::Nofile);
    let none = Rlimit { current: Some(first_unused()), ..before };
    setrlimit(Resource::Nofile, none).unwrap();
    daemon.hand(0, &lane(1), Some(theirs.as_fd()));
    let mut heard = Vec::new();
    until("the daemon is told", || {
        channel.poll_thoroughly(&mut Arrivals::default());
        heard.extend(daemon.heard());
        heard.contains(&(
            0,
            Handover::Broken { far: 1, incarnation: 0, lane: 1, errno: libc::EMFILE },
        ))
    });
    assert!(!channel.has_lane(Peer(1)) && channel.is_read_out(Peer(1)));
    drop(theirs);
    assert_eq!(std::net::TcpStream::from(mine).read(&mut [0]).unwrap(), 0, "it is closed");

    setrlimit(Resource::Nofile, before).unwrap();
    let _stream = daemon.possess(0, 1, 2);
    until("with descriptors there are lanes", || {
        channel.poll_thoroughly(&mut Arrivals::default());
        channel.has_lane(Peer(1))
    });
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
