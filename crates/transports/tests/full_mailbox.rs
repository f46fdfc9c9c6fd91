//! A process that waits for room in a full mailbox queue is woken when there is room.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::observed::Observed;
use landeck_memory::waiter::Waiting;
use landeck_memory::{
    Bytes, End, Operation, Segment, SegmentPlan, SlotRecord, SlotState, WaitRecord, Waiter,
};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind};

/// A sink that takes everything.
struct Takes;

impl Sink for Takes {
    fn arrive(&mut self, _: Peer, _: &Header, _: Bytes<'_>) -> Verdict {
        Verdict::Taken
    }
    fn broken(&mut self, _: Peer, _: BrokenPeer) {}
}

/// The wait of a process that found the mailbox queue full, until there is room.
struct AwaitsRoom<'a>(&'a AtomicBool);

impl Waiting for AwaitsRoom<'_> {
    fn poll(&mut self) -> bool {
        self.0.load(Ordering::Acquire)
    }
    fn verdict(&mut self) -> Option<End> {
        None
    }
    fn record(&self) -> WaitRecord {
        WaitRecord { operation: Operation::Send, ..WaitRecord::default() }
    }
}

/// Checks that a sleeper is woken when the mailbox queue becomes empty. The waker lowers its sleep word, so the word is
/// down at once. The sleeper also looks by itself after a while, and raises its word again for that: a round in which
/// it does so just then tells nothing, and is followed by another.
#[test]
fn a_poster_that_sleeps_for_room_is_woken_when_the_mailbox_is_empty() {
    let _watchdog = Watchdog::start(Duration::from_secs(120));
    const POSTERS: u32 = 130;
    let segment = Segment::create(&SegmentPlan {
        heap_bytes_per_process: 0,
        ..SegmentPlan::new(1, POSTERS + 2)
    })
    .unwrap();
    let alive = SlotRecord { state: SlotState::Alive, ..SlotRecord::default() };
    (0..POSTERS + 2).for_each(|slot| segment.set_slot_record(slot, alive));
    let path = format!("/proc/self/fd/{}", segment.descriptor().unwrap().as_raw_fd());
    let observed = Observed::open(std::fs::File::open(path).unwrap().into()).unwrap();
    let is_asleep = || observed.portrait(1).unwrap().is_asleep;
    let mut owner = SharedMemory::new(&segment, 0).unwrap();
    let mut posters: Vec<_> =
        (2..POSTERS + 2).map(|slot| SharedMemory::new(&segment, slot).unwrap()).collect();
    let header = Header::user(Kind::Eager, 0, 7, 7);
    let mut was_woken = |_| {
        let sent = posters.iter_mut().map(|one| one.try_send(Peer(0), &header, Bytes::EMPTY));
        assert!(sent.into_iter().any(|sent| sent == Err(SendError::Full)));
        let is_empty = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| Waiter::new(&segment, 1).wait(&mut AwaitsRoom(&is_empty), None));
            while !is_asleep() {
                thread::yield_now();
            }
            is_empty.store(true, Ordering::Release);
            while owner.poll(&mut Takes) {}
            !is_asleep()
        })
    };
    // Each poster opens a ring after some messages.
    assert!((0..6).any(&mut was_woken));
}
