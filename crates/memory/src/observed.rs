//! A job's segment as observers see it: its processes, their waits and their counters.
//!
//! It is read from the file, not mapped: pages that the job has not touched stay untouched, no address space is
//! needed, and a read-only descriptor is enough. No process of the job takes part, so wedged, stopped and dead
//! processes can be observed too. Every word may have any value, also of two moments: it is data for people, and
//! decides nothing here but the next reads, within bounds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::lanes_page::LaneRecord;
use crate::plan::{LINE_BYTES, MEMBERSHIP_HEAD_BYTES, RECORD_BYTES, SegmentPlan};
use crate::remark::{REMARK_END_WORDS, Remark};
use crate::segment::{SLEEP_WORD, SegmentError, plan_of};
use crate::sleep_word::RAISED;
use crate::slots::membership::{JobState, SlotRecord};
use crate::slots::page::{
    COUNTER_LINE, COUNTER_WORDS, Counters, Presence, WAIT_LINE, WAIT_WORDS, WAITED_FOR_LINES,
    WaitRecord, WaitedFor,
};

/// Words of a process's own page that are looked at.
const PAGE_WORDS: usize = REMARK_END_WORDS;
/// Words of a line.
const LINE_WORDS: usize = (LINE_BYTES / 8) as usize;

/// A segment that is only looked at.
#[derive(Debug)]
pub struct Observed {
    file: OwnedFd,
    plan: SegmentPlan,
}

/// The state that a process publishes in its own page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelfPortrait {
    /// How far its program has come with joining and leaving.
    pub presence: Presence,
    /// Its current wait.
    pub wait: WaitRecord,
    /// Its counters.
    pub counters: Counters,
    /// The processes it has waited for, longest first.
    pub waited_for: Vec<WaitedFor>,
    /// Its remark on this wait, once the wait is long.
    pub remark: Option<Remark>,
    /// Its lanes with unsent bytes during this wait, once the wait is long.
    pub lanes: Vec<LaneRecord>,
    /// Whether it sleeps until it is woken.
    pub is_asleep: bool,
}

impl Observed {
    /// Looks at the segment in this file, after checking that it is one. The descriptor need not be
    /// writable.
    ///
    /// # Errors
    /// [`SegmentError::NotASegment`].
    pub fn open(file: OwnedFd) -> Result<Self, SegmentError> {
        let plan = plan_of(&file)?;
        Ok(Self { file, plan })
    }

    /// The plan, as it was read once.
    pub const fn plan(&self) -> &SegmentPlan {
        &self.plan
    }

    /// The file.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the job goes on, and what the agent says of each slot.
    pub fn membership(&self) -> (JobState, Vec<SlotRecord>) {
        let head = MEMBERSHIP_HEAD_BYTES as usize / 8;
        let words_each = RECORD_BYTES as usize / 8;
        let mut words = vec![0; head + self.plan.slots() as usize * words_each];
        self.read(self.plan.membership(), &mut words);
        let state = match words[0] >> 32 {
            0 => JobState::Running,
            _ => JobState::Ending,
        };
        let record =
            |words: &[u64]| SlotRecord::from_words([words[0], words[1], words[2], words[3]]);
        (state, words[head..].chunks_exact(words_each).map(record).collect())
    }

    /// Reads the state that the process of a slot publishes. None when there is no such slot.
    pub fn portrait(&self, slot: u32) -> Option<SelfPortrait> {
        if slot >= self.plan.slots() {
            return None;
        }
        let mut words = [0; PAGE_WORDS];
        self.read(self.plan.own_page(slot), &mut words);
        let from = |line: u64| (line / 8) as usize;
        let wait = WaitRecord::from_words(part::<WAIT_WORDS>(&words, from(WAIT_LINE)));
        Some(SelfPortrait {
            presence: Presence::from_bits(words[0] as u32),
            wait,
            remark: Remark::of_wait(&words, wait.since_ns),
            lanes: LaneRecord::of_wait(&words, wait.since_ns),
            counters: Counters::from_words(part::<COUNTER_WORDS>(&words, from(COUNTER_LINE))),
            waited_for: WaitedFor::from_words(part(&words, from(WAITED_FOR_LINES))),
            is_asleep: self.word(self.plan.shared_page(slot) + SLEEP_WORD) as u32 == RAISED,
        })
    }

    /// The 64-bit word at an offset; zero where there is none.
    pub fn word(&self, offset: u64) -> u64 {
        let mut word = [0];
        self.read(offset, &mut word);
        word[0]
    }

    /// Reads 64-bit words, the first one at an offset; zeroes where there are none.
    pub fn read(&self, offset: u64, words: &mut [u64]) {
        let mut bytes = vec![0; words.len() * 8];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::io::pread(&self.file, &mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut place = [0; 8];
            place.copy_from_slice(chunk);
            *word = u64::from_ne_bytes(place);
        }
    }
}

fn part<const WORDS: usize>(words: &[u64], from: usize) -> [u64; WORDS] {
    std::array::from_fn(|at| words[from + at])
}

const _: () = assert!(WAIT_WORDS <= LINE_WORDS && COUNTER_WORDS <= LINE_WORDS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;
    use crate::slots::membership::SlotState;
    use crate::slots::page::{Operation, Tally};
    use std::sync::atomic::Ordering;

    fn segment() -> Segment {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(7, 3) };
        Segment::create(&plan).unwrap()
    }

    fn observed(segment: &Segment) -> Observed {
        use std::os::fd::AsRawFd;
        let number = segment.descriptor().unwrap().as_raw_fd();
        let path = format!("/proc/self/fd/{number}");
        Observed::open(std::fs::File::open(path).unwrap().into()).unwrap()
    }

    #[test]
    fn a_descriptor_for_reading_is_enough_and_shows_what_the_process_says() {
        let segment = segment();
        let observed = observed(&segment);
        assert_eq!(observed.plan(), segment.plan());
        let wait = WaitRecord {
            operation: Operation::Receive,
            peer: Some(2),
            since_ns: 5,
            ..WaitRecord::default()
        };
        segment.set_wait_record(1, &wait);
        segment.set_presence(1, Presence::Attached);
        segment.set_waited_for(1, 3, WaitedFor { peer: 2, ns: 9 });
        segment.sleep_word(1).store(RAISED, Ordering::Relaxed);
        Tally::of(&segment, 1).sent(100);
        let portrait = observed.portrait(1).unwrap();
        assert_eq!((portrait.presence, portrait.wait), (Presence::Attached, wait));
        assert_eq!((portrait.counters.bytes_sent, portrait.is_asleep), (100, true));
        assert_eq!(portrait.waited_for, [WaitedFor { peer: 2, ns: 9 }]);
        assert_eq!(observed.portrait(0), Some(SelfPortrait::default()));
        assert_eq!(observed.portrait(u32::MAX), None);
        let record = SlotRecord { state: SlotState::Alive, pid: 4711, ..SlotRecord::default() };
        segment.set_slot_record(2, record);
        segment.set_job_state(JobState::Ending);
        let (state, records) = observed.membership();
        assert_eq!((state, records.len(), records[2]), (JobState::Ending, 19, record));
    }
}
