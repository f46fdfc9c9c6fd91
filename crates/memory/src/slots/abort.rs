//! The abort word, by which one process of a host reports why its job is aborted, so that a user reads it once.
//!
//! The word has four parts: whether the claiming process has said its message (bit 0), its slot plus one
//! (bits 1 to 31), a digest of the cause (32 high bits). A stray write to it costs a message at worst: no process
//! waits for the word without a bound.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::segment::Segment;

/// The byte in the shared page of slot 0 where the word is.
const ABORT_WORD: u64 = 640;
const SAID: u64 = 1;
/// For how long another process may take to say its message once it has claimed the word.
pub const SAYING_LIMIT: Duration = Duration::from_millis(500);

/// Whether a process is the first that aborts its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortClaim {
    /// The process is the first: it says that the job is aborted, and then calls [`Segment::abort_said`].
    First,
    /// The cause has been said, or this process has said another one.
    Said,
    /// Another process has aborted the job for another cause.
    OtherCause,
}

impl Segment {
    /// Claims the word for the process of a slot, which aborts the job for this cause. If another process was
    /// first, waits for a moment until that has said its message: the job ends as soon as this process does.
    pub fn claim_abort(&self, slot: u32, cause: &str) -> AbortClaim {
        let word = self.long(self.plan().shared_page(0) + ABORT_WORD);
        let own = u64::from(digest(cause)) << 32 | u64::from(slot + 1) << 1;
        let claimed = match word.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return AbortClaim::First,
            Err(claimed) => claimed & !SAID,
        };
        // Another thread of this process was first.
        if claimed as u32 == own as u32 {
            return AbortClaim::Said;
        }
        let began = Instant::now();
        while word.load(Ordering::Acquire) & SAID == 0 && began.elapsed() < SAYING_LIMIT {
            thread::sleep(Duration::from_millis(1));
        }
        match claimed >> 32 == own >> 32 {
            true => AbortClaim::Said,
            false => AbortClaim::OtherCause,
        }
    }

    /// Records that the first process has said its message: the others need not wait for it.
    pub fn abort_said(&self) {
        let word = self.long(self.plan().shared_page(0) + ABORT_WORD);
        word.fetch_or(SAID, Ordering::AcqRel);
    }
}

/// A number that two causes hardly ever share (FNV-1a).
pub fn digest(cause: &str) -> u32 {
    cause.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    fn segment() -> Segment {
        Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(4, 0) })
    }

    #[test]
    fn one_process_is_first_and_the_others_hear_whether_they_have_its_cause() {
        let segment = segment();
        assert_eq!(segment.claim_abort(2, "a rank is 9"), AbortClaim::First);
        segment.abort_said();
        let began = Instant::now();
        assert_eq!(segment.claim_abort(0, "a rank is 9"), AbortClaim::Said);
        assert_eq!(segment.claim_abort(3, "a tag is -7"), AbortClaim::OtherCause);
        assert_eq!(segment.claim_abort(2, "a tag is -7"), AbortClaim::Said);
        assert!(began.elapsed() < SAYING_LIMIT);
    }

    #[test]
    fn a_process_that_never_says_its_message_is_not_waited_for_without_end() {
        let segment = segment();
        assert_eq!(segment.claim_abort(2, "a"), AbortClaim::First);
        let began = Instant::now();
        assert_eq!(segment.claim_abort(1, "a"), AbortClaim::Said);
        assert!(began.elapsed() >= SAYING_LIMIT);
    }
}
