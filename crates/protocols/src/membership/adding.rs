//! Processes that are added to a job while it runs.

use super::{Membership, Output, State};

impl Membership {
    /// Reserves a slot for one more process of the job.
    pub(super) fn add(&mut self, rank: u32, out: &mut Vec<Output>) {
        match self.place_for(None) {
            Err(why) => out.push(Output::NotAdded { rank, why }),
            Ok(slot) => {
                self.occupy(slot, State::Reserved, 0, Some(rank), out);
                out.push(Output::Start { slot, rank, number: 0 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use landeck_wire::{SegmentId, Slot};

    use super::super::tests::{GRACE, NOW, ended, membership};
    use super::super::{Input, LastPresence, MembershipPlan, OnFailure, Refusal, ReplacedProcess};
    use super::*;

    #[test]
    fn a_part_without_processes_lasts_until_it_is_released_or_ended() {
        let held = || {
            let plan = MembershipPlan {
                host: SegmentId(7),
                processes: 0,
                guests: 2,
                keeps_ranks: true,
                is_held: true,
                on_failure: OnFailure::Notify,
                grace: GRACE,
            };
            let mut membership = Membership::new(plan);
            assert_eq!(membership.handle(NOW, Input::Tick), []);
            membership
        };
        let mut membership = held();
        membership.handle(NOW, Input::Add { rank: 4 });
        membership.handle(NOW, Input::Started { slot: Slot(0), pid: 70 });
        membership.handle(NOW, ended(0, 0, LastPresence::Finalized));
        assert!(membership.is_running(), "another process may come");
        membership.handle(NOW, Input::Add { rank: 5 });
        membership.handle(NOW, Input::Started { slot: Slot(1), pid: 71 });
        assert!(!membership.handle(NOW, Input::Release).contains(&Output::Over), "one runs");
        let out = membership.handle(NOW, ended(1, 0, LastPresence::Finalized));
        assert!(out.contains(&Output::Over));
        for input in [Input::Release, Input::Kill, Input::End { grace: GRACE }] {
            let out = held().handle(NOW, input);
            assert!(out.contains(&Output::SetEnding) && out.contains(&Output::Over), "{input:?}");
        }
    }

    #[test]
    fn an_added_process_is_the_jobs_own_without_a_rank_of_it() {
        let add = |membership: &mut Membership, rank| membership.handle(NOW, Input::Add { rank });
        let mut membership = membership(OnFailure::Notify);
        let started = Output::Start { slot: Slot(3), rank: 7, number: 0 };
        assert!(add(&mut membership, 7).contains(&started));
        let record = membership.record(Slot(3));
        let replaces = Some(ReplacedProcess { rank: 7, number: 0 });
        assert_eq!((record.state, record.replaces), (State::Reserved, replaces));
        membership.handle(NOW, Input::Started { slot: Slot(3), pid: 70 });
        assert!(add(&mut membership, 8).contains(&Output::Start {
            slot: Slot(4),
            rank: 8,
            number: 0
        }));
        let full = Output::NotAdded { rank: 9, why: Refusal::Full };
        assert!(add(&mut membership, 9).contains(&full));
        // It was not started: nothing follows, and its slot is free.
        let not = membership.handle(NOW, Input::NotStarted { slot: Slot(4) });
        assert!(!not.contains(&Output::SetEnding));
        assert!(add(&mut membership, 10).contains(&Output::Start {
            slot: Slot(4),
            rank: 10,
            number: 0
        }));
        membership.handle(NOW, Input::Started { slot: Slot(4), pid: 71 });
        for slot in 0..4 {
            let out = membership.handle(NOW, ended(slot, 0, LastPresence::Finalized));
            assert!(!out.contains(&Output::Over), "the job lasts until the last has ended");
        }
        let out = membership.handle(NOW, ended(4, 9, LastPresence::Attached));
        assert!(out.contains(&Output::Over));
        let late = Output::NotAdded { rank: 11, why: Refusal::Ending };
        assert!(add(&mut membership, 11).contains(&late));
    }

    #[test]
    fn the_failure_of_an_added_process_counts_and_no_restart_follows() {
        let restart = OnFailure::Restart { times: 3, then_abort: true };
        for (on_failure, ends) in
            [(OnFailure::Abort, true), (OnFailure::Notify, false), (restart, true)]
        {
            let mut membership = membership(on_failure);
            membership.handle(NOW, Input::Add { rank: 7 });
            membership.handle(NOW, Input::Started { slot: Slot(3), pid: 70 });
            let out = membership.handle(NOW, ended(3, 9, LastPresence::Attached));
            assert_eq!(out.contains(&Output::SetEnding), ends, "{on_failure:?}");
            assert!(!out.iter().any(|it| matches!(it, Output::WillRestart { .. })));
        }
    }
}
