//! A forked child that drops inherited lanes neither hangs nor touches the parent's. This is a test program of its own,
//! with one test, so that nothing else runs meanwhile.

mod support;

use std::time::Duration;

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer};
use landeck_memory::waiter::Doorbell;
use landeck_memory::{Bytes, Segment, SegmentPlan};
use landeck_testing::Watchdog;
use landeck_transports::wake_thread::WakeThread;
use landeck_wire::handover::Cipher;
use landeck_wire::{Header, Kind};

use support::{TestDaemon, until};

/// The time after which a child that hangs is ended.
const CHILD_SECONDS: u32 = 10;

#[test]
fn a_child_leaves_the_parents_lanes_and_thread_alone() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let mut daemon = TestDaemon::new(2, Cipher::Aes256Gcm);
    let (mut one, mut other) = (daemon.channel(0), daemon.channel(1));
    daemon.connect(0, 1);
    until("the two are connected", || {
        one.poll(&mut Arrivals::default());
        other.poll(&mut Arrivals::default());
        one.has_lane(Peer(1)) && other.has_lane(Peer(0))
    });
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
    until("both still hear each other", || {
        one.poll(&mut at_one);
        other.poll(&mut at_other);
        !at_one.is_empty() && !at_other.is_empty()
    });
    assert!(!one.is_read_out(Peer(1)) && !other.is_read_out(Peer(0)));
}
