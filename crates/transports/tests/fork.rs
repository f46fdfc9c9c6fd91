//! A forked child that drops inherited objects neither hangs nor touches the parent's connections. This is a test
//! program of its own, with one test, so that nothing else runs meanwhile.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer};
use landeck_memory::waiter::Doorbell;
use landeck_memory::{Bytes, Segment, SegmentPlan};
use landeck_testing::Watchdog;
use landeck_transports::tcp::{Connection, Tcp, Token};
use landeck_transports::wake_thread::WakeThread;
use landeck_wire::{Header, HostId, Incarnation, Kind, ProcessId, Slot};

/// The time after which a child that hangs is ended.
const CHILD_SECONDS: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(100);

#[test]
fn a_child_leaves_the_parents_connections_and_thread_alone() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (mut one, mut other) = connected();
    let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 1) };
    let bell = Doorbell::of(&Segment::local(&plan), 0).unwrap();
    let wake = WakeThread::start(bell, &one.wake_descriptors()).unwrap();

    // SAFETY: the child allocates, closes and exits; the allocator is usable in a child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: both are plain system calls.
        unsafe { libc::alarm(CHILD_SECONDS) };
        drop(wake);
        drop(one);
        // SAFETY: ends the child without the test harness's exit handlers.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is local memory.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child hung or failed");

    wake.arm().unwrap();
    let header = Header::user(Kind::Eager, 3, 1, 2);
    one.try_send(Peer(1), &header, Bytes::from(&b"abc"[..])).unwrap();
    other.try_send(Peer(0), &header, Bytes::from(&b"abc"[..])).unwrap();
    let (mut at_one, mut at_other) = (Arrivals::default(), Arrivals::default());
    until("both still hear each other", || one.poll(&mut at_one) | other.poll(&mut at_other));
    assert!(!one.is_read_out(Peer(1)) && !other.is_read_out(Peer(0)));
}

fn connected() -> (Tcp, Tcp) {
    let token = Token::random().unwrap();
    let endpoint = |slot: u32| {
        let host = HostId(slot.into());
        let own = ProcessId { host, slot: Slot(slot), incarnation: Incarnation(0) };
        Tcp::new(own, token.clone(), |process| Some(Peer(process.slot.0))).unwrap()
    };
    let (mut one, mut other) = (endpoint(0), endpoint(1));
    let address = one.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    other.connect(address, Peer(0), PATIENCE).unwrap();
    until("the two are connected", || {
        one.poll(&mut Arrivals::default());
        other.poll(&mut Arrivals::default());
        matches!(one.connection(Peer(1)), Connection::Open(_))
            && matches!(other.connection(Peer(0)), Connection::Open(_))
    });
    (one, other)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
    }
}
