//! A network of a test in which each process plays the daemon of its host: it records in the far table what its TCP
//! connections tell.

use std::os::fd::BorrowedFd;

use landeck::Peer;
use landeck::unstable::channel::{Channel, SendError, Sink};
use landeck::unstable::memory::{Bytes, FarProcess, FarRecord, Segment, SlotRecord, SlotState};
use landeck::unstable::tcp::{Connection, LinkEnd, Tcp};
use landeck::unstable::wire::Header;

/// TCP, with the far records of its peers.
pub(crate) struct PlayedDaemon {
    tcp: Tcp,
    segment: Segment,
    peers: Vec<Peer>,
    /// This process leaves: the ends of its connections say nothing of the others.
    is_leaving: bool,
}

impl PlayedDaemon {
    /// Records that these processes live. A neighbour may have recorded more already.
    pub(crate) fn new(tcp: Tcp, segment: &Segment, peers: &[Peer]) -> Self {
        let played =
            Self { tcp, segment: segment.clone(), peers: peers.to_vec(), is_leaving: false };
        for &peer in peers {
            if played.record(peer).state == SlotState::Free {
                played.put(peer, SlotState::Alive);
            }
        }
        played
    }

    fn far(&self, peer: Peer) -> u32 {
        peer.0 - self.segment.plan().slots()
    }

    fn record(&self, peer: Peer) -> FarRecord {
        self.segment.far_record(self.far(peer))
    }

    fn put(&self, peer: Peer, state: SlotState) {
        let record = FarRecord { state, status: SlotRecord::UNKNOWN_STATUS, ..self.record(peer) };
        self.segment.set_far_record(self.far(peer), record);
        self.segment.announce_membership();
    }

    /// Records what the connections have told.
    fn note(&self) {
        if self.is_leaving {
            return;
        }
        for &peer in &self.peers {
            let record = self.record(peer);
            if record.state.is_gone() {
                continue;
            }
            match self.tcp.connection(peer) {
                Connection::Open(process) if record.process == FarProcess::default() => {
                    let process = FarProcess {
                        host: process.host.0,
                        slot: process.slot.0,
                        incarnation: process.incarnation.0,
                    };
                    self.segment.set_far_record(self.far(peer), FarRecord { process, ..record });
                    self.segment.announce_membership();
                }
                Connection::Ended(LinkEnd::Left) => self.put(peer, SlotState::Departed),
                Connection::Ended(_) => self.put(peer, SlotState::Dead),
                _ => {}
            }
        }
    }
}

impl Channel for PlayedDaemon {
    fn data_bytes_max(&self) -> usize {
        self.tcp.data_bytes_max()
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        self.tcp.try_send(to, header, data)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let any = self.tcp.poll(sink);
        self.note();
        any
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        let any = self.tcp.poll_thoroughly(sink);
        self.note();
        any
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.tcp.is_read_out(peer)
    }

    fn leave(&mut self) {
        self.is_leaving = true;
        self.tcp.leave();
    }

    fn forget(&mut self, peer: Peer) {
        self.tcp.forget(peer);
    }

    fn wake_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.tcp.wake_descriptors()
    }

    fn has_unsent(&self) -> bool {
        self.tcp.has_unsent()
    }
}
