//! An endpoint that leaves while messages of other hosts are on their way.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::time::Duration;

use landeck_channel::Channel;
use landeck_channel::loopback::Wires;
use landeck_kernel::mailboxes::FIRST_MAILBOX;
use landeck_kernel::{Endpoint, Peer};
use landeck_memory::{Bytes, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind};

const OWN: Peer = Peer(0);
/// The process of another host.
const FAR: Peer = Peer(1);

/// A message to a mailbox that is closed gets a reply, but not after the goodbye: the reply could never be sent, and the
/// process would wait for that without end.
#[test]
fn a_message_that_comes_after_the_goodbye_holds_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(60));
    let plan = SegmentPlan { far: 1, guests: 0, ..SegmentPlan::new(7, 1) };
    let segment = Segment::local(&plan);
    let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
    segment.set_slot_record(OWN.0, alive);
    let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
    let far = FarRecord { process, state: SlotState::Alive, ..FarRecord::default() };
    segment.set_far_record(0, far);
    segment.announce_membership();

    let wires = Wires::new(1 << 20);
    let mut far = wires.endpoint(FAR);
    let mut own =
        Endpoint::new(SharedMemory::new(&segment, OWN.0).unwrap(), &segment, OWN.0).unwrap();
    own.set_network(Box::new(wires.endpoint(OWN)));
    own.refresh();
    let header = Header::user(Kind::Eager, 3, FIRST_MAILBOX, 1);
    let data = [1, 2, 3];

    // Before the goodbye the reply is sent.
    own.receive_no_more();
    far.try_send(OWN, &header, Bytes::from(&data[..])).unwrap();
    own.progress_thoroughly();
    assert!(!own.has_unfinished_sends());

    far.try_send(OWN, &header, Bytes::from(&data[..])).unwrap();
    assert!(own.say_goodbye());
    own.progress_thoroughly();
    assert!(!own.has_unfinished_sends(), "it waits to send a reply");
}
