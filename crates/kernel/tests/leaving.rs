//! An endpoint that leaves while messages of other hosts are on their way.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::time::Duration;

use landeck_channel::loopback::Wires;
use landeck_channel::{Channel, SendError, Sink, Verdict};
use landeck_kernel::mailboxes::FIRST_MAILBOX;
use landeck_kernel::{Endpoint, Peer};
use landeck_memory::{Bytes, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind};

const OWN: Peer = Peer(0);
/// The process of another host.
const FAR: Peer = Peer(1);

/// A network by which one message comes, and that has no path back: the sender has closed it.
struct OneWay {
    incoming: Option<(Header, Vec<u8>)>,
}

impl Channel for OneWay {
    fn data_bytes_max(&self) -> usize {
        1 << 10
    }

    fn try_send(&mut self, _to: Peer, _header: &Header, _data: Bytes<'_>) -> Result<(), SendError> {
        Err(SendError::Full)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let Some((header, data)) = self.incoming.take() else { return false };
        assert_eq!(sink.arrive(FAR, &header, (&data[..]).into()), Verdict::Taken);
        true
    }

    fn is_read_out(&self, _peer: Peer) -> bool {
        self.incoming.is_none()
    }

    fn leave(&mut self) {}

    fn forget(&mut self, _peer: Peer) {}
}

/// An endpoint on a network, of a process that knows one of another host.
struct Own {
    kernel: Endpoint<SharedMemory>,
    segment: Segment,
}

impl Own {
    fn on(network: Box<dyn Channel>) -> Self {
        let plan = SegmentPlan { far: 1, guests: 0, ..SegmentPlan::new(7, 1) };
        let segment = Segment::local(&plan);
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(OWN.0, alive);
        let near = SharedMemory::new(&segment, OWN.0).unwrap();
        let mut kernel = Endpoint::new(near, &segment, OWN.0).unwrap();
        kernel.set_network(network);
        let mut own = Self { kernel, segment };
        own.put_far(SlotState::Alive);
        own
    }

    fn put_far(&mut self, state: SlotState) {
        let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
        self.segment.set_far_record(0, FarRecord { process, state, ..FarRecord::default() });
        self.segment.announce_membership();
        self.kernel.refresh();
    }
}

/// A message to a mailbox that is closed, which gets a reply.
fn message() -> (Header, Vec<u8>) {
    (Header::user(Kind::Eager, 3, FIRST_MAILBOX, 1), vec![1, 2, 3])
}

/// After the goodbye no reply can be sent, and the process would wait for that without end.
#[test]
fn a_message_that_comes_after_the_goodbye_holds_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(60));
    let wires = Wires::new(1 << 20);
    let mut far = wires.endpoint(FAR);
    let Own { mut kernel, .. } = Own::on(Box::new(wires.endpoint(OWN)));
    let (header, data) = message();

    kernel.receive_no_more();
    far.try_send(OWN, &header, Bytes::from(&data[..])).unwrap();
    kernel.progress_thoroughly();
    assert!(!kernel.has_unfinished_sends(), "before the goodbye the reply is sent");

    far.try_send(OWN, &header, Bytes::from(&data[..])).unwrap();
    assert!(kernel.say_goodbye());
    kernel.progress_thoroughly();
    assert!(!kernel.has_unfinished_sends(), "it waits to send a reply");
}

#[test]
fn a_reply_to_a_process_that_is_gone_holds_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(60));
    let mut own = Own::on(Box::new(OneWay { incoming: Some(message()) }));
    own.kernel.progress_thoroughly();
    assert!(own.kernel.has_unfinished_sends(), "there is no way for the reply so far");
    own.put_far(SlotState::Departed);
    own.kernel.progress_thoroughly();
    assert!(!own.kernel.has_unfinished_sends(), "it waits to send a reply");
}
