//! Which process of a job says why the job is aborted, so that a user reads it once, on however many hosts the job runs.
//!
//! On each host the word of the segment has the first process ([`Segment::claim_abort`]). In a job on several hosts the
//! first processes of the hosts ask the arbiter, which keeps the claim of the first of all like a name of the job.

use landeck_memory::Segment;
use landeck_memory::abort::{AbortClaim, SAYING_LIMIT, digest};
use landeck_protocols::door::Object;
use landeck_wire::ProcessId;

use crate::job_names;

/// The claim of a process to say why it aborts its job.
#[derive(Clone, Debug)]
pub struct AbortWord {
    segment: Segment,
    process: ProcessId,
}

impl AbortWord {
    /// Returns the word of a job for this process of its segment.
    #[must_use]
    pub fn new(segment: Segment, process: ProcessId) -> Self {
        Self { segment, process }
    }

    /// Claims the word: the process is about to abort the job for this cause. If another process was first, waits for at
    /// most half a second until that has said its message or has ended, since the job ends as soon as this process does.
    #[must_use]
    pub fn claim(&self, cause: &str) -> AbortClaim {
        let claim = self.segment.claim_abort(self.process.slot.0, cause);
        if claim != AbortClaim::First || !self.segment.plan().has_host_tables() {
            return claim;
        }
        let words = [u64::from(digest(cause)), 0];
        // A daemon that does not answer in time keeps no process from saying why.
        match job_names::claim_abort(&self.segment, self.process, words, SAYING_LIMIT) {
            Ok(Err(first)) => self.behind(&first, words),
            Ok(Ok(_)) | Err(_) => AbortClaim::First,
        }
    }

    /// Records that the first process has said its message: the others of this host need not wait for it.
    pub fn said(&self) {
        self.segment.abort_said();
    }

    /// The claim of a process that is behind one of another host: that one ends when it has said its message. The others of
    /// this host wait as long as this process does.
    fn behind(&self, first: &Object, words: [u64; 2]) -> AbortClaim {
        job_names::wait_until_over(&self.segment, first.owner, SAYING_LIMIT);
        self.said();
        if first.words == words { AbortClaim::Said } else { AbortClaim::OtherCause }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use landeck_memory::{FarProcess, FarRecord, SegmentPlan, SlotState};
    use landeck_wire::{Incarnation, SegmentId, Slot};

    fn process(host: u64, slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(host), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    #[test]
    fn a_process_behind_one_of_another_host_waits_for_its_end_and_learns_whether_it_has_its_cause()
    {
        let segment = Segment::local(&SegmentPlan { far: 1, ranks: 2, ..SegmentPlan::new(1, 1) });
        let process_there = FarProcess { host: 2, slot: 0, incarnation: 1 };
        let record = FarRecord { process: process_there, ..FarRecord::default() };
        segment.set_far_record(0, record);
        let word = AbortWord::new(segment.clone(), process(1, 0));
        let first = Object { number: 1, bytes: 0, words: [7, 0], owner: process(2, 0), pid: 77 };
        let began = Instant::now();
        assert_eq!(word.behind(&first, [7, 0]), AbortClaim::Said);
        assert!(began.elapsed() >= SAYING_LIMIT);
        segment.set_far_record(0, FarRecord { state: SlotState::Dead, ..record });
        assert_eq!(word.behind(&first, [8, 0]), AbortClaim::OtherCause);
    }

    #[test]
    fn on_one_host_nobody_else_is_asked() {
        let segment = Segment::local(&SegmentPlan::new(1, 2));
        let [one, other] = [0, 1].map(|slot| AbortWord::new(segment.clone(), process(1, slot)));
        assert_eq!(one.claim("a"), AbortClaim::First);
        one.said();
        assert_eq!(
            [other.claim("a"), other.claim("b")],
            [AbortClaim::Said, AbortClaim::OtherCause]
        );
    }

    #[test]
    fn a_process_whose_daemon_is_not_there_says_why_itself() {
        let plan = SegmentPlan { far: 1, ranks: 2, ..SegmentPlan::new(0x5bad_1dea, 1) };
        let word = AbortWord::new(Segment::local(&plan), process(0x5bad_1dea, 0));
        assert_eq!(word.claim("a"), AbortClaim::First);
    }
}
