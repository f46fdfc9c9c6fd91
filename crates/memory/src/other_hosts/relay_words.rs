//! The words between the relay of this host and the processes for which it has messages from other hosts.
//!
//! ```text
//! for each slot, 64 bytes, written by the relay alone while there is one:
//!   0   the incarnation whose ring is ready, zero if the ring was never used, or all ones between two relays (32)
//!   4   one while the relay holds messages that found no room in the ring (32)
//! ```
//!
//! The ring of a slot is used by one process of the slot after the other. The relay clears it when the first message for
//! a new process comes, and says so in the first word. A process looks at its ring only then.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::ring::RingMemory;
use crate::segment::Segment;

/// Where the second word is.
const HOLDS: u64 = 4;
/// The first word while the ring is ready for nobody, and was used before.
const WITHDRAWN: u32 = u32::MAX;

/// The words for one slot.
#[derive(Clone, Debug)]
pub struct RelayWords {
    segment: Segment,
    place: u64,
    slot: u32,
}

impl RelayWords {
    /// The words for a slot; `None` where no relay is.
    pub fn of(segment: &Segment, slot: u32) -> Option<Self> {
        let plan = segment.plan();
        let place = plan.relay_words(slot);
        (slot < plan.relay_rings()).then(|| Self { segment: segment.clone(), place, slot })
    }

    fn ready(&self) -> &AtomicU32 {
        self.segment.word(self.place)
    }

    fn holds(&self) -> &AtomicU32 {
        self.segment.word(self.place + HOLDS)
    }

    /// Clears the ring for a process of the slot, and lets that process look at it; for the relay alone.
    pub fn make_ready(&self, incarnation: u32) -> Option<RingMemory> {
        self.ready().store(WITHDRAWN, Ordering::Release);
        let ring = RingMemory::of_relay(&self.segment, self.slot)?;
        ring.clear();
        self.holds().store(0, Ordering::Release);
        self.ready().store(incarnation, Ordering::Release);
        Some(ring)
    }

    /// Takes the ring back from a relay that has ended, before the next one uses it.
    pub fn withdraw(&self) {
        self.ready().store(WITHDRAWN, Ordering::Release);
        self.holds().store(0, Ordering::Release);
    }

    /// Whether a relay has laid anything for a process of the slot.
    pub fn was_used(&self) -> bool {
        self.ready().load(Ordering::Acquire) != 0
    }

    /// Whether the ring is ready for this process of the slot.
    #[inline]
    pub fn is_ready(&self, incarnation: u32) -> bool {
        self.ready().load(Ordering::Acquire) == incarnation
    }

    /// Says whether the relay holds messages for the process; for the relay alone. After it has said so, it must look
    /// for room once more.
    pub fn set_holds(&self, holds: bool) {
        self.holds().store(u32::from(holds), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Whether the relay holds messages for the process.
    #[inline]
    pub fn has_held(&self) -> bool {
        self.holds().load(Ordering::Acquire) != 0
    }

    /// Whether the relay waits for the room that was just made.
    pub fn awaits_room(&self) -> bool {
        fence(Ordering::SeqCst);
        self.has_held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use crate::private::bytes::Bytes;
    use crate::ring::{RingReceiver, RingSender};

    #[test]
    fn a_ring_is_used_by_one_process_of_its_slot_after_the_other() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&SegmentPlan { ranks: 4, far: 2, hosts: 2, ..plan.clone() });
        let words = RelayWords::of(&segment, 1).expect("a relay's words");
        assert!(RelayWords::of(&segment, segment.plan().slots()).is_none());
        assert!(RelayWords::of(&Segment::local(&plan), 1).is_none(), "no relay on one host");
        for incarnation in 1..4 {
            assert!(!words.is_ready(incarnation));
            let mut sender = RingSender::new(words.make_ready(incarnation).expect("a ring"));
            assert!(words.is_ready(incarnation) && !words.is_ready(incarnation + 1));
            let memory = RingMemory::of_relay(&segment, 1).expect("the same ring");
            let mut receiver = RingReceiver::new(memory);
            let length = |_| (3, false);
            assert!(receiver.peek(0, length).expect("sound").is_none(), "nothing is left");
            for sequence in 0..10 {
                let head = sequence | 1 << 17;
                sender.push_inline(head, 7, Bytes::from(&[1, 2, 3][..])).expect("room");
                if sequence < 7 {
                    assert!(receiver.peek(sequence as u16, length).expect("sound").is_some());
                    receiver.consume(0);
                }
            }
        }
        words.set_holds(true);
        assert!(words.has_held() && words.awaits_room());
        words.set_holds(false);
        assert!(!words.awaits_room());
    }
}
