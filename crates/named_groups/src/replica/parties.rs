//! The processes of a group, as this process reaches them.
//!
//! The log names a process by the number of its host in the group, its slot and its incarnation, which are the same for
//! everybody. This process reaches it by a peer number of its own.

use std::collections::HashMap;
use std::sync::Mutex;

use landeck_engine::peers::{peer_of_slot, process_of};
use landeck_kernel::Peer;
use landeck_memory::Segment;
use landeck_protocols::service::{Party, State};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use crate::replica::Replica;
use crate::server_handle::lock;

/// The peer numbers of slots on other hosts that were looked for.
#[derive(Default)]
pub(crate) struct FarPeers(Mutex<HashMap<(SegmentId, Slot), Peer>>);

impl FarPeers {
    /// The peer that has this slot of another host. `None` if this host knows no such slot yet.
    fn find(&self, segment: &Segment, host: SegmentId, slot: Slot) -> Option<Peer> {
        let mut known = lock(&self.0);
        let is_still = |peer: &&Peer| {
            let process = process_of(segment, **peer);
            (process.segment, process.slot) == (host, slot)
        };
        if let Some(peer) = known.get(&(host, slot)).filter(is_still) {
            return Some(*peer);
        }
        let found = peer_of_slot(segment, host, slot)?;
        known.insert((host, slot), found);
        Some(found)
    }
}

impl Replica {
    /// The segment of this process.
    pub(crate) fn own_segment(&self) -> SegmentId {
        SegmentId(self.shared.segment.plan().host)
    }

    /// This process. Its host has no number yet where the log has not heard of it; then it has that of the log's.
    pub(crate) fn own_party(&self, state: &State) -> Party {
        let host = state.host_number(self.own_segment()).unwrap_or(0);
        let (slot, incarnation) = (self.shared.slot as u16, self.log.incarnation());
        Party { host, slot, incarnation }
    }

    /// Whether a process is on this host.
    pub(crate) fn is_near(&self, state: &State, process: Party) -> bool {
        state.hosts().get(usize::from(process.host)) == Some(&self.own_segment())
    }

    /// The number by which this process reaches another one, whichever incarnation has the slot. `None` if this host does
    /// not know it yet.
    pub(crate) fn peer(&self, state: &State, process: Party) -> Option<u32> {
        let host = *state.hosts().get(usize::from(process.host))?;
        let (segment, slot) = (&self.shared.segment, Slot(process.slot.into()));
        let peer = match host == self.own_segment() {
            true => peer_of_slot(segment, host, slot),
            false => self.far_peers.find(segment, host, slot),
        };
        peer.map(|peer| peer.0)
    }

    /// The identity of a process in the job.
    pub(crate) fn process(&self, state: &State, process: Party) -> Option<ProcessId> {
        let host = *state.hosts().get(usize::from(process.host))?;
        Some(process_on(host, process))
    }

    /// The identity of the process that has sent a message.
    #[inline]
    pub(crate) fn sender_process(&self, process: Party) -> ProcessId {
        let host = match process.host {
            0 => None,
            _ => self
                .local
                .enter_in_turn()
                .ok()
                .and_then(|local| local.state.hosts().get(usize::from(process.host)).copied()),
        };
        process_on(host.unwrap_or(self.log_host), process)
    }
}

fn process_on(segment: SegmentId, process: Party) -> ProcessId {
    let Party { slot, incarnation, .. } = process;
    ProcessId { segment, slot: Slot(slot.into()), incarnation: Incarnation(incarnation) }
}
