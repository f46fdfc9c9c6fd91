//! Windows of receives that are begun while their messages arrive: each gets the message that it would get if all had
//! been posted before, however sending, receiving and progress alternate.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Status, Wanted};
use landeck_memory::{Buffer, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use proptest::prelude::*;

type Kernel = Endpoint<SharedMemory>;

const CONTEXT: u32 = 1;
/// Lengths of messages that travel in place, in several pieces of a ring, and through the heap.
const LENGTHS: [usize; 5] = [0, 8, 100, 20_000, 40_000];

/// Both ends of a pair.
fn both() -> [Kernel; 2] {
    let plan = SegmentPlan { heap_bytes_per_process: 4 << 20, cpus: 2, ..SegmentPlan::new(7, 2) };
    let segment = Segment::local(&plan);
    for slot in 0..2 {
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
    }
    segment.announce_membership();
    [0, 1].map(|slot| {
        let near = SharedMemory::new(&segment, slot).unwrap();
        Endpoint::new(near, &segment, slot).unwrap()
    })
}

/// The memory of a vector that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the vector until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Send { tag: u32, length: usize },
    Receive { source: Option<u32>, tag: Option<u32>, length: usize },
    Progress,
}

fn turn() -> impl Strategy<Value = Turn> {
    let length = || prop::sample::select(&LENGTHS[..]);
    let source = prop_oneof![4 => Just(Some(0)), 1 => Just(None)];
    let tag = prop_oneof![6 => Just(Some(0)), 1 => Just(Some(1)), 1 => Just(None)];
    let sent = prop_oneof![5 => Just(0u32), 1 => Just(1)];
    prop_oneof![
        8 => (sent, length()).prop_map(|(tag, length)| Turn::Send { tag, length }),
        8 => (source, tag, length())
            .prop_map(|(source, tag, length)| Turn::Receive { source, tag, length }),
        1 => Just(Turn::Progress),
    ]
}

struct Sent {
    tag: u32,
    data: Vec<u8>,
    is_received: bool,
}

/// A receive as it was begun.
struct Begun {
    wanted: Wanted,
    into: Vec<u8>,
    started: Started,
}

impl Begun {
    /// The result of the receive; `None` if it is still pending, and then it is given up.
    fn end(&self, kernel: &mut Kernel) -> Option<Result<Status, Failure>> {
        let id = match self.started {
            Started::Complete(status) => return Some(Ok(status)),
            Started::Pending(id) => id,
        };
        let completion = kernel.take(id);
        kernel.abandon(id);
        Some(completion?.result)
    }

    /// Checks that it got the first matching message that no earlier receive got.
    fn check(&self, sent: &mut [Sent], end: Option<Result<Status, Failure>>) {
        let tag = self.wanted.tag;
        let is_for_it = |one: &&mut Sent| !one.is_received && tag.is_none_or(|tag| tag == one.tag);
        let Some(message) = sent.iter_mut().find(is_for_it) else {
            return assert!(end.is_none(), "{end:?}, and nothing is left for {:?}", self.wanted);
        };
        message.is_received = true;
        let (data, into) = (&message.data, &self.into);
        match end.expect("a message is left for it") {
            Ok(status) => {
                assert_eq!((status.tag, status.bytes), (message.tag, data.len() as u64));
                assert!(into.starts_with(data));
            }
            Err(failure) => {
                assert!(matches!(failure, Failure::Truncated { .. }), "{failure}");
                assert!(data.len() > into.len() && data.starts_with(into));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_receive_gets_the_message_that_is_its_own(turns in prop::collection::vec(turn(), 1..100)) {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let mut both = both();
        let (mut sent, mut begun): (Vec<Sent>, Vec<Begun>) = (Vec::new(), Vec::new());
        let mut sends: Vec<RequestId> = Vec::new();
        for (number, turn) in turns.into_iter().enumerate() {
            match turn {
                Turn::Send { tag, length } => {
                    let data: Vec<u8> = (0..length).map(|at| (at * 7 + number * 31) as u8).collect();
                    let started = both[0].send(Peer(1), CONTEXT, tag, area(&data)).unwrap();
                    if let Started::Pending(id) = started {
                        sends.push(id);
                    }
                    sent.push(Sent { tag, data, is_received: false });
                }
                Turn::Receive { source, tag, length } => {
                    let (wanted, into) = (Wanted { context: CONTEXT, source, tag }, vec![0; length]);
                    let started = both[1].begin_receive(wanted, area(&into));
                    begun.push(Begun { wanted, into, started });
                }
                Turn::Progress => drop(both.each_mut().map(|kernel| kernel.progress())),
            }
        }
        // Messages in flight arrive, or wait for a receive that nobody begins.
        while both.iter_mut().fold(false, |any, kernel| kernel.progress_thoroughly() | any) {}
        for one in begun {
            let end = one.end(&mut both[1]);
            one.check(&mut sent, end);
        }
        for id in sends {
            both[0].abandon(id);
        }
    }
}
