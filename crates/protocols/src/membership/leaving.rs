//! Processes that say goodbye and run on, and those that take part again.

use landeck_wire::Slot;

use super::{Membership, Output, Phase, Record, State};

impl Membership {
    /// Records that a process has said goodbye, and runs on: nobody waits for it any more.
    pub(super) fn left(&mut self, slot: Slot, out: &mut Vec<Output>) {
        let before = self.record(slot);
        if before.state == State::Alive && self.rank_of(slot).is_some() {
            self.set(slot, Record { state: State::Left, ..before }, out);
        }
    }

    /// Records that a process that had left takes part again, unless the job ends.
    pub(super) fn returned(&mut self, slot: Slot, out: &mut Vec<Output>) {
        let before = self.record(slot);
        let may_return = self.phase == Phase::Running && before.incarnation < u32::MAX;
        if before.state == State::Left && may_return {
            let (incarnation, returns) = (before.incarnation + 1, before.returns + 1);
            self.set(slot, Record { state: State::Alive, incarnation, returns, ..before }, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{GRACE, NOW, ended, membership};
    use super::super::{Input, LastPresence, OnFailure};
    use super::*;

    #[test]
    fn a_process_that_has_left_runs_on_and_may_come_back() {
        let mut membership = membership(OnFailure::Abort);
        let first = membership.process(Slot(1));
        let out = membership.handle(NOW, Input::Left { slot: Slot(1) });
        assert_eq!(membership.record(Slot(1)).state, State::Left);
        assert!(out.contains(&Output::Announce) && out.contains(&Output::NewView));
        assert!(!membership.is_alive(first) && membership.view().rank_of(first).is_none());
        assert!(membership.vacated().next().is_none(), "it has its slot still");
        assert!(membership.handle(NOW, Input::Left { slot: Slot(1) }).is_empty());
        membership.handle(NOW, Input::Returned { slot: Slot(1) });
        let record = membership.record(Slot(1));
        assert_eq!((record.state, record.incarnation, record.returns), (State::Alive, 2, 1));
        assert_eq!((record.pid, membership.rank_of(Slot(1))), (101, Some(1)));
        assert!(!membership.is_alive(first), "what it was a member of before is over");
        assert!(membership.handle(NOW, Input::Returned { slot: Slot(1) }).is_empty());
        membership.handle(NOW, Input::Left { slot: Slot(1) });
        let failed = membership.handle(NOW, ended(1, 3 << 8, LastPresence::Finalized));
        assert!(failed.contains(&Output::SetEnding), "its end counts, also after it has left");
        let asked = membership.handle(NOW, Input::Returned { slot: Slot(2) });
        assert!(asked.is_empty() && membership.record(Slot(2)).incarnation == 1);
    }

    #[test]
    fn a_job_is_over_when_the_last_that_has_left_has_ended() {
        let mut membership = membership(OnFailure::Notify);
        for slot in 0..3 {
            let out = membership.handle(NOW, Input::Left { slot: Slot(slot) });
            assert!(!out.contains(&Output::Over));
        }
        for slot in 0..3 {
            let out = membership.handle(NOW, ended(slot, 0, LastPresence::Finalized));
            assert_eq!(out.contains(&Output::Over), slot == 2);
            assert_eq!(membership.record(Slot(slot)).state, State::Departed);
        }
    }

    #[test]
    fn the_end_of_a_job_reaches_those_that_have_left() {
        let mut membership = membership(OnFailure::Abort);
        membership.handle(NOW, Input::Left { slot: Slot(0) });
        let out = membership.handle(NOW, Input::End { grace: GRACE });
        assert!(out.contains(&Output::Terminate { slot: Slot(0) }));
        assert!(membership.handle(NOW, Input::Returned { slot: Slot(0) }).is_empty());
    }
}
