//! Peers and processes: a peer is a number of one segment, so whatever goes to another host names processes.

use landeck_kernel::{Failure, Peer};
use landeck_memory::{FarRecord, Segment, SlotState};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use crate::error::{ErrorKind, MailboxError, Members};
pub(crate) use landeck_engine::peers::{peer_of, process_of};

/// Words of a process in a message.
pub(crate) const PROCESS_WORDS: usize = 2;

/// The peer of a process that owns something on another host, or the error that no peer is the process.
pub(crate) fn far_owner(segment: &Segment, owner: ProcessId) -> Result<Peer, ErrorKind> {
    if let Some(peer) = peer_of(segment, owner) {
        return Ok(peer);
    }
    let records = (0..segment.plan().far).map(|far| segment.far_record(far));
    let numbered = (segment.plan().slots()..).zip(records);
    let mut there = numbered.filter(|(_, record)| record.process.host == owner.segment.0);
    let Some((number, first)) = there.next() else { return Err(MailboxError::AnotherJob.into()) };
    let is_its = |(_, record): &(u32, FarRecord)| record.process.slot == owner.slot.0;
    match Some((number, first)).into_iter().chain(there).find(is_its) {
        Some((peer, _)) => Err(ErrorKind::process_gone(segment, owner, Peer(peer))),
        None => {
            Err(MailboxError::GuestElsewhere { host: segment.host_in_words(first.host_number) }
                .into())
        }
    }
}

/// The error for a far process that is gone; `None` while it is there.
pub(crate) fn far_failure(segment: &Segment, peer: Peer) -> Option<ErrorKind> {
    let record = segment.far_record(peer.0.checked_sub(segment.plan().slots())?);
    let died = record.state == SlotState::Dead;
    let gone = || ErrorKind::of(Failure::PeerGone { peer, died }, segment, Members::OF_JOB);
    record.state.is_gone().then(gone)
}

/// The words of a process, for a message.
pub(crate) fn to_words(process: ProcessId) -> [u64; PROCESS_WORDS] {
    [process.segment.0, u64::from(process.slot.0) | u64::from(process.incarnation.0) << 32]
}

/// The process in these words.
pub(crate) fn from_words([host, place]: [u64; PROCESS_WORDS]) -> ProcessId {
    let (slot, incarnation) = (Slot(place as u32), Incarnation((place >> 32) as u32));
    ProcessId { segment: SegmentId(host), slot, incarnation }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::{FarProcess, SegmentPlan, SlotRecord};

    #[test]
    fn peers_and_processes_find_each_other() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        let slots = plan.slots();
        segment.set_slot_record(1, SlotRecord { incarnation: 3, ..SlotRecord::default() });
        for (far, slot) in [(0, 1), (5, 0)] {
            let process = FarProcess { host: 2, slot, incarnation: 1 };
            let state = SlotState::Dead;
            segment.set_far_record(far, FarRecord { process, state, ..FarRecord::default() });
        }
        for peer in [0, 1, slots, slots + 5].map(Peer) {
            let process = process_of(&segment, peer);
            assert_eq!(peer_of(&segment, from_words(to_words(process))), Some(peer));
        }
        assert_eq!(process_of(&segment, Peer(1)).incarnation, Incarnation(3));
        let unknown = |host, slot| {
            let process = ProcessId {
                segment: SegmentId(host),
                slot: Slot(slot),
                incarnation: Incarnation(1),
            };
            peer_of(&segment, process)
        };
        assert_eq!([unknown(2, 7), unknown(3, 1), unknown(0, 0), unknown(1, slots)], [None; 4]);
    }
}
