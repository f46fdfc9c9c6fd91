//! Chooses the vacated slot for the next process: one in which no living process may still need anything.

use std::collections::BTreeSet;

use landeck_wire::Slot;

use super::Agent;

impl Agent {
    /// Finds the next vacated slot to give away, and tells the membership which ones before it must be kept.
    pub(super) fn look_for_vacancy(&mut self) {
        let since = |slot: &Slot| self.gone_since.get(slot).copied().unwrap_or_default();
        let is_kept = |slot: &Slot| self.segment.is_referenced(slot.0, since(slot));
        let kept: BTreeSet<Slot> = self.membership.vacated().take_while(is_kept).collect();
        self.membership.keep(kept);
    }
}

#[cfg(test)]
mod tests {
    use landeck_memory::{Presence, Segment, SlotState};

    use super::super::tests::{GUESTS, PATIENCE, host, limited, segment, wait_for};
    use super::*;
    use crate::agent_thread::serve_in_thread;
    use crate::socket::{self, JoinError, Verdict};

    #[test]
    fn a_process_that_leaves_the_first_world_makes_room() {
        let _watchdog = limited();
        let segment = segment(3);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        segment.set_presence(0, Presence::Attached);
        let leaving = socket::join_as(host(&segment), Slot(2), PATIENCE).unwrap();
        let third = socket::join_as(host(&segment), Slot(1), PATIENCE).unwrap();
        let theirs = Segment::attach(leaving.segment).unwrap();
        theirs.set_presence(2, Presence::Finalized);
        drop(leaving.connection);
        wait_for(&segment, 2, SlotState::Departed);
        let guests: Vec<_> =
            (0..GUESTS).map(|_| socket::join(host(&segment), PATIENCE).unwrap()).collect();
        let refused = socket::join(host(&segment), PATIENCE);
        let full = matches!(refused, Err(JoinError::Refused(Verdict::Full)));
        assert!(full, "the others may look at what it left: {refused:?}");
        // Slot 1 has not joined yet, and may be behind with the first world.
        Segment::attach(third.segment).unwrap().set_presence(1, Presence::Finalized);
        segment.release_vacant(0, 2, false);
        segment.set_seen(0, segment.membership_generation());
        let next = socket::join(host(&segment), PATIENCE).unwrap();
        assert_eq!((next.process.slot.0, next.process.incarnation.0), (2, 2));
        assert_eq!((segment.rank_of(2), guests.len() as u32), (None, GUESTS));
    }
}
