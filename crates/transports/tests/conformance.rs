//! The conformance suite over shared memory, and over lanes and TCP on the loopback interface.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use landeck_channel::conformance::{Arrivals, Network};
use landeck_channel::{Channel, Peer};
use landeck_memory::{Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_transports::tcp::{Connection, Tcp, Token};
use landeck_transports::{Lanes, SharedMemory};
use landeck_wire::handover::Cipher;
use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

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

/// Processes connected by TCP, all played by one. Each listens; later ones connect to earlier ones.
struct Hosts {
    token: Token,
    channels: Vec<Option<(Tcp, SocketAddr)>>,
    incarnations: u32,
}

impl Hosts {
    fn place(&mut self, number: u32) {
        let process = ProcessId {
            host: HostId(number.into()),
            slot: Slot(number),
            incarnation: Incarnation(self.incarnations),
        };
        self.incarnations += 1;
        let number_of = |process: ProcessId| Some(Peer(process.slot.0));
        let mut channel = Tcp::new(process, self.token.clone(), number_of).unwrap();
        let address = channel.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        for (other, place) in self.channels.iter().enumerate() {
            if let Some((_, address)) = place {
                let patience = Duration::from_secs(10);
                channel.connect(*address, Peer(other as u32), patience).unwrap();
            }
        }
        self.channels[number as usize] = Some((channel, address));
        while !self.is_connected() {}
    }

    /// Polls all processes once; returns whether all are connected with each other.
    fn is_connected(&mut self) -> bool {
        for (channel, _) in self.channels.iter_mut().flatten() {
            channel.poll(&mut Arrivals::default());
        }
        let there = |number: &usize| self.channels[*number].is_some();
        let is_open = |own: usize, other: usize| {
            let channel = self.channels[own].as_ref().map(|(channel, _)| channel);
            let connection = channel.map(|channel| channel.connection(Peer(other as u32)));
            matches!(connection, Some(Connection::Open(_)))
        };
        let all = || (0..self.channels.len()).filter(there);
        all().all(|own| all().all(|other| own == other || is_open(own, other)))
    }
}

impl Network for Hosts {
    type Channel = Tcp;

    fn connect(count: u32) -> Self {
        let mut hosts = Self {
            token: Token::random().unwrap(),
            channels: (0..count).map(|_| None).collect(),
            incarnations: 0,
        };
        (0..count).for_each(|number| hosts.place(number));
        hosts
    }

    fn endpoint(&mut self, number: u32) -> &mut Tcp {
        &mut self.channels[number as usize].as_mut().unwrap().0
    }

    fn end(&mut self, number: u32) {
        self.channels[number as usize] = None;
    }

    fn renew(&mut self, number: u32) {
        self.place(number);
    }
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

mod tcp {
    landeck_channel::conformance_tests!(super::Hosts);
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
