//! The membership words: the state of each slot and of the job. The agent writes them, all processes read them.
//!
//! ```text
//! byte 0  generation: grows with every announced change; sleepers look again when it does
//! byte 4  job state: 0 running, 1 ending
//! 128 + 32 * slot   state (8 bits) | stopped (8) | cache (16) | incarnation (32)
//!            + 8    process id (32) | raw wait status (32)
//!            + 16   rank of the process that this one replaces, plus one (32) | which new start it is (32): 0 for one that was
//!                   started while the job ran, and has its number in place of a rank
//!            + 24   how often a process that had left came back to the slot (32) | unused (32)
//! ```

use std::sync::atomic::Ordering;

use crate::plan::{MEMBERSHIP_HEAD_BYTES, RECORD_BYTES};
use crate::segment::Segment;

/// Where the cache stands in the first word of a record.
const CACHE_BIT: u32 = 16;
const CACHE_BITS: u64 = (u16::MAX as u64) << CACHE_BIT;

/// The agent's record of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotRecord {
    /// Free, alive or gone.
    pub state: SlotState,
    /// The incarnation: which process of the slot this is, counted from 1.
    pub incarnation: u32,
    /// The process, while it lives and after.
    pub pid: u32,
    /// Stopped by a signal or a debugger: shown, not failed.
    pub stopped: bool,
    /// The raw wait status, once the process is gone; [`SlotRecord::UNKNOWN_STATUS`] where the
    /// agent was not its parent.
    pub status: i32,
    /// The process that it replaces, if it was started again after a failure. A process that was started while the job
    /// ran has its number there, and no new start ([`SlotRecord::is_added`]).
    pub replaces: Option<Replaced>,
    /// How often a process that had left came back to the slot. Each time is an incarnation of its own.
    pub returns: u32,
}

/// The process that a restarted process replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The rank that its first predecessor had.
    pub rank: u32,
    /// Which new start of that rank it is: 1 is the first.
    pub number: u32,
}

impl SlotRecord {
    /// The status of a process whose wait status the agent does not know. No wait status has all bits set.
    pub const UNKNOWN_STATUS: i32 = -1;

    /// The record in these words, which may be anything.
    #[inline]
    pub(crate) fn from_words([first, second, third, fourth]: [u64; 4]) -> Self {
        let replaces = (third as u32).checked_sub(1);
        Self {
            returns: fourth as u32,
            replaces: replaces.map(|rank| Replaced { rank, number: (third >> 32) as u32 }),
            state: SlotState::from_bits(first as u8),
            incarnation: (first >> 32) as u32,
            pid: second as u32,
            stopped: first >> 8 & 0xff != 0,
            status: (second >> 32) as i32,
        }
    }

    /// Whether the process was started while the job ran, and replaces none: its record has its number and no new start.
    #[inline]
    pub const fn is_added(&self) -> bool {
        matches!(self.replaces, Some(Replaced { number: 0, .. }))
    }

    /// Which process of the slot this is, counted from 1, whether or not it has left and come back: what lies in the
    /// slot's memory is of one tenancy.
    #[inline]
    pub const fn tenancy(&self) -> u32 {
        self.incarnation.wrapping_sub(self.returns)
    }
}

/// The life of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotState {
    /// No process has it.
    #[default]
    Free = 0,
    /// Promised to a process that is being started.
    Reserved = 1,
    /// Its process lives.
    Alive = 2,
    /// Its process said goodbye and ended well.
    Departed = 3,
    /// Its process ended without a goodbye, or badly.
    Dead = 4,
    /// Its process said goodbye, and runs on. It may come back, as the slot's next incarnation.
    Left = 5,
}

impl SlotState {
    /// Whether a process of the slot takes part no more: it has left, or ended.
    #[inline]
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Left | Self::Departed | Self::Dead)
    }

    /// Whether a process of the slot is no more: nobody has or uses its memory.
    #[inline]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Departed | Self::Dead)
    }

    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::Reserved,
            2 => Self::Alive,
            3 => Self::Departed,
            4 => Self::Dead,
            5 => Self::Left,
            _ => Self::Free,
        }
    }
}

/// The agent's state of the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// The job runs.
    Running,
    /// The job is being ended: every wait ends too.
    Ending,
}

impl Segment {
    /// Grows with every announced change of the membership.
    #[inline]
    pub fn membership_generation(&self) -> u32 {
        self.word(self.plan().membership()).load(Ordering::Acquire)
    }

    /// Reads the agent's record of a slot. A slot outside the segment is free.
    #[inline]
    pub fn slot_record(&self, slot: u32) -> SlotRecord {
        if slot >= self.plan().slots() {
            return SlotRecord::default();
        }
        let place = self.record(slot);
        let first = self.long(place).load(Ordering::Acquire);
        let second = self.long(place + 8).load(Ordering::Acquire);
        let third = self.long(place + 16).load(Ordering::Acquire);
        let fourth = self.long(place + 24).load(Ordering::Acquire);
        SlotRecord::from_words([first, second, third, fourth])
    }

    /// The incarnation of a slot's process, counted from 1: the value of its record, in one load.
    #[inline]
    pub fn incarnation(&self, slot: u32) -> u32 {
        match slot < self.plan().slots() {
            true => (self.long(self.record(slot)).load(Ordering::Acquire) >> 32) as u32,
            false => 0,
        }
    }

    /// The rank in the first world of the process that a slot or far record has, or had last; none for all others,
    /// also where they have got the slot of one that is gone.
    pub fn rank_of(&self, peer: u32) -> Option<u32> {
        match peer.checked_sub(self.plan().slots()) {
            Some(far) => self.far_record(far).rank,
            None => self.rank_of_peer(peer).filter(|_| self.slot_record(peer).tenancy() <= 1),
        }
    }

    /// Writes the record of a slot; for the agent only. Processes are told by [`Segment::announce_membership`].
    pub fn set_slot_record(&self, slot: u32, record: SlotRecord) {
        let place = self.record(slot);
        let cache = self.long(place).load(Ordering::Relaxed) & CACHE_BITS;
        let first = record.state as u64
            | u64::from(record.stopped) << 8
            | cache
            | u64::from(record.incarnation) << 32;
        let second = u64::from(record.pid) | (record.status as u32 as u64) << 32;
        let third = record
            .replaces
            .map_or(0, |of| u64::from(of.rank.wrapping_add(1)) | u64::from(of.number) << 32);
        self.long(place + 24).store(u64::from(record.returns), Ordering::Release);
        self.long(place + 16).store(third, Ordering::Release);
        self.long(place + 8).store(second, Ordering::Release);
        self.long(place).store(first, Ordering::Release);
    }

    /// The last-level cache that the first process of a slot was bound to when it was started: the
    /// number of the cache's first processor, plus one. 0: it was bound to none, or that is not known.
    pub fn cache_of(&self, slot: u32) -> u16 {
        match slot < self.plan().slots() {
            true => (self.long(self.record(slot)).load(Ordering::Acquire) >> CACHE_BIT) as u16,
            false => 0,
        }
    }

    /// Records which cache the process of a slot will be bound to; for the segment's maker, before any other process
    /// has it.
    pub fn set_cache(&self, slot: u32, cache: u16) {
        let word = self.long(self.record(slot));
        let others = word.load(Ordering::Relaxed) & !CACHE_BITS;
        word.store(others | u64::from(cache) << CACHE_BIT, Ordering::Release);
    }

    /// Announces that records have changed: every sleeper wakes and looks; for the agent only.
    pub fn announce_membership(&self) {
        self.word(self.plan().membership()).fetch_add(1, Ordering::SeqCst);
        for slot in 0..self.plan().slots() {
            self.wake(slot);
        }
    }

    /// Whether the job goes on.
    #[inline]
    pub fn job_state(&self) -> JobState {
        match self.word(self.plan().membership() + 4).load(Ordering::Acquire) {
            0 => JobState::Running,
            _ => JobState::Ending,
        }
    }

    /// Says whether the job goes on; for the agent only. To be announced.
    pub fn set_job_state(&self, state: JobState) {
        let word = u32::from(state == JobState::Ending);
        self.word(self.plan().membership() + 4).store(word, Ordering::Release);
    }

    #[inline]
    fn record(&self, slot: u32) -> u64 {
        self.plan().membership() + MEMBERSHIP_HEAD_BYTES + u64::from(slot) * RECORD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    #[test]
    fn records_are_read_as_written() {
        let segment =
            Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 4) });
        let record = SlotRecord {
            state: SlotState::Dead,
            incarnation: 9,
            pid: 4711,
            stopped: true,
            status: -11,
            replaces: Some(Replaced { rank: 2, number: 7 }),
            returns: 3,
        };
        segment.set_slot_record(3, record);
        assert_eq!(segment.slot_record(3), record);
        assert_eq!(segment.slot_record(2), SlotRecord::default());
        assert_eq!(segment.slot_record(u32::MAX), SlotRecord::default());
    }

    #[test]
    fn a_rank_is_that_of_the_first_process_of_a_slot() {
        let segment =
            Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 4) });
        assert_eq!(
            (segment.rank_of(3), segment.rank_of(4), segment.rank_of(99)),
            (Some(3), None, None)
        );
        segment.set_slot_record(3, SlotRecord { incarnation: 2, returns: 1, ..Default::default() });
        assert_eq!(segment.rank_of(3), Some(3), "it has left and come back");
        segment.set_slot_record(3, SlotRecord { incarnation: 3, returns: 1, ..Default::default() });
        assert_eq!(segment.rank_of(3), None);
    }

    #[test]
    fn a_cache_stays_whatever_becomes_of_the_process() {
        let segment =
            Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 4) });
        segment.set_cache(1, u16::MAX);
        let record = SlotRecord { state: SlotState::Alive, incarnation: 3, ..Default::default() };
        segment.set_slot_record(1, record);
        assert_eq!((segment.cache_of(1), segment.slot_record(1)), (u16::MAX, record));
        segment.set_cache(1, 5);
        assert_eq!((segment.cache_of(1), segment.slot_record(1)), (5, record));
        assert_eq!((segment.cache_of(0), segment.cache_of(u32::MAX)), (0, 0));
    }

    #[test]
    fn an_announcement_changes_the_generation() {
        let segment =
            Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 4) });
        assert_eq!((segment.membership_generation(), segment.job_state()), (0, JobState::Running));
        segment.set_job_state(JobState::Ending);
        segment.announce_membership();
        assert_eq!((segment.membership_generation(), segment.job_state()), (1, JobState::Ending));
    }
}
