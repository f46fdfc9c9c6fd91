//! The conformance suite over shared memory, and over lanes on the loopback interface.
#![expect(clippy::unwrap_used, reason = "a test")]

use landeck_channel::conformance::Network;
use landeck_memory::{Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_transports::{Lanes, SharedMemory};
use landeck_wire::handover::Cipher;

use crate::support::TestDaemon;

/// Processes that share a segment, all played by one.
struct Neighbours {
    segment: Segment,
    channels: Vec<Option<SharedMemory>>,
}

impl Network for Neighbours {
    type Channel = SharedMemory;

    fn connect(count: u32) -> Self {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, count) };
        let segment = Segment::local(&plan);
        (0..count).for_each(|slot| set_state(&segment, slot, SlotState::Alive, 0));
        let channels = (0..count).map(|slot| SharedMemory::new(&segment, slot)).collect();
        Self { segment, channels }
    }

    fn endpoint(&mut self, number: u32) -> &mut SharedMemory {
        self.channels[number as usize].as_mut().unwrap()
    }

    fn end(&mut self, number: u32) {
        self.end_as(number, SlotState::Dead);
    }

    fn end_well(&mut self, number: u32) {
        self.end_as(number, SlotState::Departed);
    }

    fn renew(&mut self, number: u32) {
        let incarnation = self.segment.slot_record(number).incarnation + 1;
        self.segment.clear_slot(number);
        set_state(&self.segment, number, SlotState::Alive, incarnation);
        self.channels[number as usize] = SharedMemory::new(&self.segment, number);
    }
}

impl Neighbours {
    fn end_as(&mut self, number: u32, state: SlotState) {
        self.channels[number as usize] = None;
        let incarnation = self.segment.slot_record(number).incarnation;
        set_state(&self.segment, number, state, incarnation);
    }
}

fn set_state(segment: &Segment, slot: u32, state: SlotState, incarnation: u32) {
    segment.set_slot_record(slot, SlotRecord { state, incarnation, ..SlotRecord::default() });
    segment.announce_membership();
}

/// Processes on hosts of their own, all played by one, whose lanes have this cipher.
struct FarHosts<const CIPHER: u8> {
    daemon: TestDaemon,
    channels: Vec<Option<Lanes>>,
}

impl<const CIPHER: u8> Network for FarHosts<CIPHER> {
    type Channel = Lanes;

    fn connect(count: u32) -> Self {
        let ciphers = [Cipher::Plain, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
        let mut daemon = TestDaemon::new(count, ciphers[usize::from(CIPHER)]);
        let channels = (0..count).map(|number| Some(daemon.channel(number))).collect();
        Self { daemon, channels }
    }

    fn endpoint(&mut self, number: u32) -> &mut Lanes {
        self.daemon.serve();
        self.channels[number as usize].as_mut().unwrap()
    }

    fn end(&mut self, number: u32) {
        self.channels[number as usize] = None;
        self.daemon.end(number);
    }

    fn renew(&mut self, number: u32) {
        self.channels[number as usize] = Some(self.daemon.channel(number));
    }
}

mod shared_memory {
    landeck_channel::conformance_tests!(super::Neighbours);
}

mod plain_lanes {
    landeck_channel::conformance_tests!(super::FarHosts<{ super::Cipher::Plain as u8 }>);
}

mod sealed_lanes {
    landeck_channel::conformance_tests!(super::FarHosts<{ super::Cipher::Aes256Gcm as u8 }>);
}

mod lanes_sealed_otherwise {
    landeck_channel::conformance_tests!(super::FarHosts<{ super::Cipher::ChaCha20Poly1305 as u8 }>);
}
