//! Peers and processes: a peer is a number of one segment, so whatever goes to another host names processes.

use landeck_channel::Peer;
use landeck_memory::{FarProcess, Segment, SlotState};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

/// The process that a peer stands for.
#[must_use]
pub fn process_of(segment: &Segment, peer: Peer) -> ProcessId {
    let far = peer.0.checked_sub(segment.plan().slots());
    let FarProcess { host, slot, incarnation } = match far {
        Some(far) => segment.far_record(far).process,
        None => FarProcess {
            host: segment.plan().host,
            slot: peer.0,
            incarnation: segment.incarnation(peer.0),
        },
    };
    ProcessId { segment: SegmentId(host), slot: Slot(slot), incarnation: Incarnation(incarnation) }
}

/// The peer that has this slot of a host here, whichever process has the slot. `None` if this host knows no such slot.
#[must_use]
pub fn peer_of_slot(segment: &Segment, host: SegmentId, slot: Slot) -> Option<Peer> {
    let plan = segment.plan();
    if host.0 == plan.host {
        return (slot.0 < plan.slots()).then_some(Peer(slot.0));
    }
    let is_it = |&far: &u32| {
        let FarProcess { host: of, slot: at, .. } = segment.far_record(far).process;
        (SegmentId(of), Slot(at)) == (host, slot)
    };
    (0..plan.far).find(is_it).map(|far| Peer(plan.slots() + far))
}

/// The peer that a process is here. `None` if this host knows no such process.
#[must_use]
pub fn peer_of(segment: &Segment, process: ProcessId) -> Option<Peer> {
    let plan = segment.plan();
    if process.segment.0 == plan.host {
        return (process.slot.0 < plan.slots()).then_some(Peer(process.slot.0));
    }
    let is_it = |&far: &u32| {
        let record = segment.far_record(far);
        let FarProcess { host, slot, incarnation } = record.process;
        let place = (SegmentId(host), Slot(slot), Incarnation(incarnation));
        record.state != SlotState::Free
            && place == (process.segment, process.slot, process.incarnation)
    };
    (0..plan.far).find(is_it).map(|far| Peer(plan.slots() + far))
}
