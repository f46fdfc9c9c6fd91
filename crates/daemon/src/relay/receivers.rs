//! The processes of this host for which the relay has messages, each with the ring that they go into.
//!
//! Pieces that find no room in a ring are held for that process alone. They are bounded, as senders go only as far as the receiver
//! has granted. A process that has made room says so, and the relay goes on. No piece passes another one, not even an urgent
//! one: a process tells the next run of its daemon how many have come, and they must be the first.

use std::collections::{HashMap, VecDeque};

use landeck_memory::{Segment, SlotState};
use landeck_transports::lanes::relay_ring::RelayRingSender;
use landeck_wire::{Class, ProcessId, SegmentId};

/// The processes, by segment and slot.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    all: HashMap<(u64, u32), RelayReceiver>,
}

/// A process of this host.
#[derive(Debug)]
struct RelayReceiver {
    incarnation: u32,
    ring: RelayRingSender,
    held: VecDeque<HeldPiece>,
}

/// The data of a relayed frame for which the ring had no room.
#[derive(Debug)]
struct HeldPiece {
    /// The place of the source in the far table, and its incarnation.
    source: (u32, u32),
    class: Class,
    data: Box<[u8]>,
}

impl Receivers {
    /// Lays the data of a frame for a process, or holds them. Nothing happens if the process is not there any more.
    pub(super) fn lay(
        &mut self,
        segment: &Segment,
        (slot, incarnation): (u32, u32),
        source: (u32, u32),
        class: Class,
        data: &[u8],
    ) {
        let key = (segment.plan().host, slot);
        if !is_there(segment, slot, incarnation) {
            return;
        }
        let is_known = self.all.get(&key).is_some_and(|it| it.incarnation == incarnation);
        if !is_known {
            let Some(ring) = RelayRingSender::new(segment, slot, incarnation) else { return };
            self.all.insert(key, RelayReceiver { incarnation, ring, held: VecDeque::new() });
        }
        if let Some(receiver) = self.all.get_mut(&key) {
            receiver.lay(source, class, data);
        }
    }

    /// A process of this host has made room.
    pub(super) fn has_room(&mut self, process: ProcessId) {
        let receiver = self.all.get_mut(&(process.segment.0, process.slot.0));
        if let Some(receiver) = receiver.filter(|it| it.incarnation == process.incarnation.0) {
            receiver.lay_held();
        }
    }

    /// A process has ended. What is held for it is dropped.
    pub(super) fn process_ended(&mut self, process: ProcessId) {
        let key = (process.segment.0, process.slot.0);
        if self.all.get(&key).is_some_and(|it| it.incarnation == process.incarnation.0)
            && let Some(receiver) = self.all.remove(&key)
        {
            receiver.ring.set_holds(false);
        }
    }

    /// The part of a job with this segment is over.
    pub(super) fn part_over(&mut self, segment: SegmentId) {
        self.all.retain(|(of, _), _| *of != segment.0);
    }
}

/// Whether this process of a slot is alive, or the next one that the slot will have. Processes of other hosts may know that
/// one before this host has started it.
pub(super) fn is_there(segment: &Segment, slot: u32, incarnation: u32) -> bool {
    if slot >= segment.plan().slots() {
        return false;
    }
    let record = segment.slot_record(slot);
    let is_vacant = record.state == SlotState::Free || record.state.is_gone();
    let there = if is_vacant { record.incarnation.wrapping_add(1) } else { record.incarnation };
    incarnation == there
}

impl RelayReceiver {
    fn lay(&mut self, source: (u32, u32), class: Class, data: &[u8]) {
        if self.held.is_empty() && self.ring.try_push(source, class, data).is_ok() {
            return;
        }
        self.held.push_back(HeldPiece { source, class, data: data.into() });
        self.ring.set_holds(true);
        self.lay_held(); // room that was made before the process could see this
    }

    /// Lays what is held, as far as there is room.
    fn lay_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        while let Some(piece) = self.held.front() {
            if self.ring.try_push(piece.source, piece.class, &piece.data).is_err() {
                return;
            }
            self.held.pop_front();
        }
        self.ring.set_holds(false);
    }
}

#[cfg(test)]
mod tests {
    use landeck_memory::{RelayWords, SegmentPlan, SlotRecord};

    use super::*;

    #[test]
    fn a_message_waits_for_a_process_that_has_not_started() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(2, 1) };
        let segment = Segment::local(&SegmentPlan { ranks: 3, far: 1, hosts: 2, ..plan });
        let mut receivers = Receivers::default();
        let mut lay = |to| receivers.lay(&segment, to, (0, 1), Class::User, &[1; 24]);
        let words = RelayWords::of(&segment, 0).unwrap();
        lay((0, 1));
        assert!(words.is_ready(1), "the slot will have its first process");
        let state = SlotState::Alive;
        segment.set_slot_record(0, SlotRecord { incarnation: 1, state, ..SlotRecord::default() });
        lay((0, 2));
        assert!(words.is_ready(1), "no other process takes the ring of a living one");
    }
}
