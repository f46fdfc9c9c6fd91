//! A job's segment as those see it who only look: who is there, what everybody waits for, what was
//! counted, how far the members of a group are.
//!
//! It is read from the file, not mapped: nothing of it is touched that the job has not touched, no
//! address space is needed, and a descriptor that can only be read is enough. No process of the job
//! takes part, so what is wedged, stopped or dead can be looked at as well. All that is read may be
//! anything, also words of two moments: it is data for people, and decides nothing here but what is
//! read next, within bounds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::board::roster::decode;
use crate::board::{LinesPlace, PROGRESS, ROSTER, STRIDE_BYTES, WINDOW, are_lines, leader_of};
use crate::membership::{JobState, SlotRecord};
use crate::page::{
    COUNTER_LINE, COUNTER_WORDS, Counters, Presence, WAIT_LINE, WAIT_WORDS, WAITED_FOR_LINES,
    WaitRecord, WaitedFor,
};
use crate::plan::{LINE_BYTES, MEMBERSHIP_HEAD_BYTES, RECORD_BYTES, SegmentPlan};
use crate::remark::{REMARK_END_WORDS, Remark};
use crate::segment::{SLEEP_WORD, SegmentError, plan_of};
use crate::sleep_word::RAISED;

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

/// What a process says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelfPortrait {
    /// How far its program has come with joining and leaving.
    pub presence: Presence,
    /// What it waits for.
    pub wait: WaitRecord,
    /// What it has counted.
    pub counters: Counters,
    /// Whom it has waited for, longest first.
    pub waited_for: Vec<WaitedFor>,
    /// What it says of this wait, once that has lasted for long.
    pub remark: Option<Remark>,
    /// Whether it sleeps until somebody wakes it.
    pub is_asleep: bool,
}

/// The members of a group that has a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The context of its messages; none for the first world, which is the same in every job.
    pub context: Option<u32>,
    /// Where its members' lines are, in the order of their ranks.
    pub members: Vec<LinesPlace>,
}

/// How far a member of a group is with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not come; how many operations it is behind, 0 if this is its next.
    NotYet {
        /// How many.
        behind: u32,
    },
    /// It has come for this: the signature of its call.
    Here(u32),
    /// It is over with it.
    Past,
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
        let record = |words: &[u64]| SlotRecord::from_words([words[0], words[1], words[2]]);
        (state, words[head..].chunks_exact(words_each).map(record).collect())
    }

    /// What the process of a slot says of itself. None when there is no such slot.
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
            counters: Counters::from_words(part::<COUNTER_WORDS>(&words, from(COUNTER_LINE))),
            waited_for: WaitedFor::from_words(part(&words, from(WAITED_FOR_LINES))),
            is_asleep: self.word(self.plan.shared_page(slot) + SLEEP_WORD) as u32 == RAISED,
        })
    }

    /// The members of the group whose board has its shared words at this place; none when nothing
    /// is said of them there.
    pub fn roster(&self, board: u64) -> Option<Roster> {
        let leader = leader_of(&self.plan, board)?;
        if board == self.plan.board(0, 0) {
            let lines = |slot| LinesPlace { slot, offset: self.plan.world_lines(slot) };
            return Some(Roster {
                context: None,
                members: (0..self.plan.processes).map(lines).collect(),
            });
        }
        let mut words = [0; 2];
        self.read(board + ROSTER, &mut words);
        let [about, place] = words;
        let count = (about >> 32).min(u64::from(self.plan.slots()));
        let end = place.checked_add(count * 8)?;
        let is_there = place >= self.plan.heap(leader) && end <= self.plan.heap(leader + 1);
        if count == 0 || !is_there {
            return None;
        }
        let mut list = vec![0; count as usize];
        self.read(place, &mut list);
        let members: Vec<_> = list.into_iter().map(decode).collect();
        let are_members = members.iter().all(|&place| are_lines(&self.plan, place));
        are_members.then_some(Roster { context: Some(about as u32), members })
    }

    /// How far a member of a group is with an operation.
    pub fn standing(&self, member: LinesPlace, number: u32) -> Standing {
        if !are_lines(&self.plan, member) {
            return Standing::NotYet { behind: 0 };
        }
        // Its progress stands behind the lines of the operations that can be under way.
        let progress = self.word(member.offset + PROGRESS) as u32;
        let behind = number.wrapping_sub(progress);
        let line = self.word(member.offset + u64::from(number) % WINDOW as u64 * STRIDE_BYTES);
        match () {
            () if line as u32 == number && behind as i32 >= 0 => {
                Standing::Here((line >> 32) as u32)
            }
            () if (behind as i32) < 0 => Standing::Past,
            // A member that has done nothing yet says nothing: its progress is as good as 1.
            () if progress == 0 => Standing::NotYet { behind: number.saturating_sub(1) },
            () => Standing::NotYet { behind },
        }
    }

    fn word(&self, offset: u64) -> u64 {
        let mut word = [0];
        self.read(offset, &mut word);
        word[0]
    }

    /// Reads words; zeroes where there are none.
    fn read(&self, offset: u64, words: &mut [u64]) {
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
    use crate::board::{Board, BoardPool, LINES_BYTES, roster_bytes};
    use crate::bytes::Bytes;
    use crate::heap::Heap;
    use crate::membership::SlotState;
    use crate::page::{Operation, Tally};
    use crate::segment::Segment;
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

    #[test]
    fn the_members_of_a_group_and_how_far_they_are_can_be_seen() {
        let segment = segment();
        let observed = observed(&segment);
        let mut heaps: Vec<Heap> = (0..3).map(|slot| Heap::of(&segment, slot).unwrap()).collect();
        let mut block = |slot: usize, bytes| heaps[slot].allocate(bytes).unwrap();
        let mut own = [2, 0].map(|slot| block(slot, LINES_BYTES as usize));
        let lines = [segment.lines_of(2, &mut own[0]), segment.lines_of(0, &mut own[1])];
        let place = BoardPool::new(&segment, 2).take().unwrap();
        assert_eq!(observed.roster(place), None, "nothing is said yet");
        let mut boards = [0, 1].map(|own| Board::open(&segment, place, &lines, own).unwrap());
        let mut list = block(2, roster_bytes(2));
        boards[0].enroll(77, &lines, &mut list);
        let roster = Roster { context: Some(77), members: lines.to_vec() };
        assert_eq!(observed.roster(place), Some(roster));
        assert_eq!(observed.roster(segment.world_board()).unwrap().members.len(), 3);
        let [(first, _), (second, _)] = boards.each_mut().map(|board| board.begin(9));
        assert_eq!(observed.standing(lines[0], first), Standing::NotYet { behind: 0 });
        boards[0].come(first, 9, 0, Bytes::EMPTY);
        assert_eq!(observed.standing(lines[0], first), Standing::Here(9));
        assert_eq!(observed.standing(lines[1], second), Standing::NotYet { behind: 0 });
        boards[0].end(first);
        assert_eq!(observed.standing(lines[0], first), Standing::Past);
        assert_eq!(observed.standing(lines[0], first + 3), Standing::NotYet { behind: 2 });
    }

    #[test]
    fn scribbled_words_lead_nowhere() {
        let segment = segment();
        let observed = observed(&segment);
        let place = segment.plan().board(1, 3);
        for word in [u64::MAX, 1 << 40, segment.plan().heap(1)] {
            segment.long(place + ROSTER).store(word, Ordering::Relaxed);
            for list in [0, u64::MAX, segment.plan().heap(1), segment.plan().heap(2) - 8] {
                segment.long(place + ROSTER + 8).store(list, Ordering::Relaxed);
                assert_eq!(observed.roster(place), None);
            }
        }
        for place in [0, u64::MAX, segment.plan().heap(0), place + 8] {
            assert_eq!(observed.roster(place), None);
        }
        let nowhere = LinesPlace { slot: 0, offset: u64::MAX };
        assert_eq!(observed.standing(nowhere, 1), Standing::NotYet { behind: 0 });
    }
}
