//! Which vacated slot somebody gets, and who waits for one: those in which something may still be needed
//! are given to nobody.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use landeck_groups::membership::Input;
use landeck_wire::Slot;

use super::{Agent, Connection, Standing};
use crate::socket::Verdict;

/// How long somebody waits for a slot until all have looked who may need what is in it, and how often it
/// is looked whether they have.
const VACANCY_TIME: Duration = Duration::from_millis(500);
pub(super) const VACANCY_LOOK: Duration = Duration::from_millis(1);

impl Agent {
    /// Finds the vacated slot that is given away next, and says which ones before it are kept.
    pub(super) fn look_for_vacancy(&mut self) {
        let since = |slot: &Slot| self.gone_since.get(slot).copied().unwrap_or_default();
        let is_kept = |slot: &Slot| self.segment.is_kept(slot.0, since(slot));
        let kept: BTreeSet<Slot> = self.membership.vacated().take_while(is_kept).collect();
        self.membership.keep(kept);
    }

    /// There is no slot for somebody. Where that is so only because others may need what is in one, they
    /// are made to look, and it waits for them a little.
    pub(super) fn defer(&mut self, connection: u64) {
        let keeps_any = self.membership.keeps_any();
        let Some(found) = self.connections.get_mut(&connection) else { return };
        match found.standing {
            Standing::Asking { .. } if keeps_any => {
                let until = Instant::now() + VACANCY_TIME;
                found.standing = Standing::Waiting { until };
                self.unannounced = true;
            }
            Standing::Waiting { until } if keeps_any && Instant::now() < until => {}
            _ => self.refuse(connection, Verdict::Full),
        }
    }

    /// Asks again for those who wait for a slot.
    pub(super) fn ask_again(&mut self) {
        let waiting = self.connections.iter().filter(|(_, connection)| connection.is_waiting());
        let waiting: Vec<(u64, u32)> = waiting.map(|(&token, of)| (token, of.pid)).collect();
        for (request, pid) in waiting {
            self.tell(Input::Asked { request, wanted: None, pid });
        }
    }
}

impl Connection {
    fn is_waiting(&self) -> bool {
        matches!(self.standing, Standing::Waiting { .. })
    }
}

#[cfg(test)]
mod tests {
    use landeck_memory::{Presence, Segment, SlotState};

    use super::super::tests::{GUESTS, PATIENCE, host, limited, segment, wait_for};
    use super::*;
    use crate::agent_thread::serve_in_thread;
    use crate::socket::{self, JoinError};

    #[test]
    fn who_leaves_the_first_world_makes_room() {
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
        segment.settle(0, 2, false);
        segment.set_seen(0, segment.membership_generation());
        let next = socket::join(host(&segment), PATIENCE).unwrap();
        assert_eq!((next.process.slot.0, next.process.incarnation.0), (2, 2));
        assert_eq!((segment.rank_of(2), guests.len() as u32), (None, GUESTS));
    }
}
