//! The tables for a job on several hosts: processes elsewhere, the ranks of the first world, the hosts' names.
//!
//! ```text
//! far table, 64 bytes a record, written by the daemon alone:
//!   0   state (8 bits) | whether its host is lost (1) | whether it is a guest (7) | host number (16) | incarnation (32)
//!   8   host identity
//!   16  slot (32) | process id (32)
//!   24  rank in the first world, plus one (32) | raw wait status (32)
//!   32  the region of this segment that the relay accesses for this process, or zero
//!   40  the incarnation whose messages the relay takes, or zero (32) | unused (32)
//! world table, written once, by the segment's maker:
//!   peer of rank 0, 1, ..., plus one (32 bits each); rank of peer 0, 1, ..., plus one (32 bits each)
//! hosts, by their numbers, written by the daemon alone: 64 bytes of text each, then
//!   64  cores (16 bits) | whether it takes part no more (8) | unused (8) | number of its site in the job, or zero (16)
//! ```
//!
//! A *peer* is a slot of this segment, or the number of slots plus the place of a far record. The daemon announces
//! changed far records by the generation of the membership, as the agent announces changed slots.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::observed::Observed;
use crate::plan::{HOST_BYTES, JobName, NAME_WORDS, WORLD_ENTRY_BYTES};
use crate::segment::Segment;
use crate::slots::membership::{SlotRecord, SlotState};

/// Where a bit field of a record's first word begins.
const LOST_BIT: u32 = 8;
const GUEST_BIT: u32 = 9;
const HOST_NUMBER_BIT: u32 = 16;
/// Where the site begins in the word of a host.
const HOST_SITE_BIT: u32 = 32;
/// Where a record has the hazard.
const FAR_HAZARD: u64 = 32;
/// Where a record has the incarnation whose messages the relay takes.
const FAR_RELAYED: u64 = 40;

/// A process of the job on another host, as `ProcessId` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarProcess {
    /// The random number of its `SegmentId`.
    pub host: u64,
    /// Its slot there.
    pub slot: u32,
    /// Which process of that slot it is, counted from 1.
    pub incarnation: u32,
}

/// The daemon's record of a process on another host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarRecord {
    /// The process.
    pub process: FarProcess,
    /// The number of its host, which [`Segment::host_name`] knows.
    pub host_number: u16,
    /// Its rank in the first world.
    pub rank: Option<u32>,
    /// Free, alive or gone.
    pub state: SlotState,
    /// The process's number on its host, while it lives and after.
    pub pid: u32,
    /// The raw wait status, once the process is gone; [`SlotRecord::UNKNOWN_STATUS`] where it is not known.
    pub status: i32,
    /// The process is gone because its host is lost.
    pub is_host_lost: bool,
    /// The launcher has not started the process.
    pub is_guest: bool,
}

impl FarRecord {
    /// The record in these words, which may be anything.
    fn from_words([first, host, third, fourth]: [u64; 4]) -> Self {
        let process = FarProcess { host, slot: third as u32, incarnation: (first >> 32) as u32 };
        Self {
            process,
            host_number: (first >> HOST_NUMBER_BIT) as u16,
            rank: (fourth as u32).checked_sub(1),
            state: SlotState::from_bits(first as u8),
            pid: (third >> 32) as u32,
            status: (fourth >> 32) as i32,
            is_host_lost: first >> LOST_BIT & 1 != 0,
            is_guest: first >> GUEST_BIT & 0x7f != 0,
        }
    }

    fn to_words(self) -> [u64; 4] {
        let Self { process, host_number, rank, state, pid, status, is_host_lost, is_guest } = self;
        [
            state as u64
                | u64::from(is_host_lost) << LOST_BIT
                | u64::from(is_guest) << GUEST_BIT
                | u64::from(host_number) << HOST_NUMBER_BIT
                | u64::from(process.incarnation) << 32,
            process.host,
            u64::from(process.slot) | u64::from(pid) << 32,
            u64::from(rank.map_or(0, |rank| rank.wrapping_add(1))) | (status as u32 as u64) << 32,
        ]
    }

    /// Whether there is a process that is not gone, or that is being started.
    pub fn is_there(&self) -> bool {
        self.state != SlotState::Free && !self.state.is_gone()
    }

    /// How the process stands, in the words of a slot's record.
    pub fn as_slot(&self) -> SlotRecord {
        SlotRecord {
            state: self.state,
            incarnation: self.process.incarnation,
            pid: self.pid,
            status: self.status,
            ..SlotRecord::default()
        }
    }
}

impl Segment {
    /// Whether other hosts take part in the job, or have: from the beginning, or since they were added. The places of the
    /// first host that is added are the first of the far table.
    pub fn knows_other_hosts(&self) -> bool {
        let is_added = || self.plan().takes_hosts && self.far_record(0).process.host != 0;
        self.plan().world_spans_hosts() || is_added()
    }

    /// Reads the daemon's record of a process on another host. A record outside the table is free.
    pub fn far_record(&self, far: u32) -> FarRecord {
        if far >= self.plan().far {
            return FarRecord::default();
        }
        let place = self.plan().far_record(far);
        // In this order: a process whose state is known is the one that the other words name.
        let words = [0, 8, 16, 24].map(|at| self.long(place + at).load(Ordering::Acquire));
        FarRecord::from_words(words)
    }

    /// Writes the record of a process on another host; for the daemon alone. The identity is there before the state.
    /// Processes are told by [`Segment::announce_membership`]. Nothing happens outside the table.
    pub fn set_far_record(&self, far: u32, record: FarRecord) {
        if far >= self.plan().far {
            return;
        }
        let place = self.plan().far_record(far);
        let words = record.to_words();
        if self.far_record(far).process != record.process {
            self.long(place).store(SlotState::Free as u64, Ordering::Release);
        }
        for (at, word) in [0, 8, 16, 24].into_iter().zip(words).rev() {
            self.long(place + at).store(word, Ordering::Release);
        }
    }

    /// The word in which this host's relay says which region it accesses for a process on another host. A number outside
    /// the table means the last record; without far processes there is no relay.
    pub fn far_hazard(&self, far: u32) -> &AtomicU64 {
        let last = self.plan().far.saturating_sub(1);
        self.long(self.plan().far_record(far.min(last)) + FAR_HAZARD)
    }

    /// The word in which this host's relay says that it takes messages of a process on another host: that process's
    /// incarnation, or zero when it takes no more. A number outside the table means the last record.
    pub fn far_relayed(&self, far: u32) -> &AtomicU32 {
        let last = self.plan().far.saturating_sub(1);
        self.word(self.plan().far_record(far.min(last)) + FAR_RELAYED)
    }

    /// The record of a peer, whether it is a slot or a process on another host, as that of a slot.
    pub fn peer_record(&self, peer: u32) -> SlotRecord {
        match peer.checked_sub(self.plan().slots()) {
            Some(far) => self.far_record(far).as_slot(),
            None => self.slot_record(peer),
        }
    }

    /// The peer that has a rank in the first world; `u32::MAX` if none has.
    pub fn peer_of_rank(&self, rank: u32) -> u32 {
        let plan = self.plan();
        if rank >= plan.ranks {
            return u32::MAX;
        }
        if !plan.world_spans_hosts() {
            return rank;
        }
        let entry = self.word(self.entry(rank)).load(Ordering::Acquire).wrapping_sub(1);
        if entry < plan.slots() + plan.far { entry } else { u32::MAX }
    }

    /// The rank that a peer had in the first world when the job began: later processes of its slot have none
    /// ([`Segment::rank_of`]).
    pub fn rank_of_peer(&self, peer: u32) -> Option<u32> {
        let plan = self.plan();
        if !plan.world_spans_hosts() {
            return (peer < plan.processes).then_some(peer);
        }
        if peer >= plan.slots() + plan.far {
            return None;
        }
        let entry = self.word(self.entry(plan.ranks + peer)).load(Ordering::Acquire);
        entry.checked_sub(1).filter(|&rank| rank < plan.ranks)
    }

    /// Says which peer has a rank in the first world; for the segment's maker alone, before a process attaches. Nothing
    /// happens on one host, and outside the tables.
    pub fn set_peer_of_rank(&self, rank: u32, peer: u32) {
        let plan = self.plan();
        if plan.world_spans_hosts() && rank < plan.ranks && peer < plan.slots() + plan.far {
            self.word(self.entry(rank)).store(peer + 1, Ordering::Release);
            self.word(self.entry(plan.ranks + peer)).store(rank + 1, Ordering::Release);
        }
    }

    /// The name of a host; empty if it is not known.
    pub fn host_name(&self, number: u16) -> JobName {
        if u32::from(number) >= self.plan().hosts {
            return JobName::default();
        }
        let place = self.plan().host_name(number.into());
        let word = |at: usize| self.long(place + at as u64 * 8).load(Ordering::Acquire);
        JobName::from_words(std::array::from_fn::<_, NAME_WORDS, _>(word))
    }

    /// Writes the name of a host; for the daemon alone. Nothing happens if there is no room for so many hosts.
    pub fn set_host_name(&self, number: u16, name: JobName) {
        const { assert!(HOST_BYTES as usize == NAME_WORDS * 8 + 8) }
        if u32::from(number) < self.plan().hosts {
            let place = self.plan().host_name(number.into());
            for (at, word) in (0..).zip(name.to_words()) {
                self.long(place + at * 8).store(word, Ordering::Release);
            }
        }
    }

    /// The cores of a host, 0 if they are not known, and whether it is lost or has left.
    pub fn host_state(&self, number: u16) -> (u16, bool) {
        if u32::from(number) >= self.plan().hosts {
            return (0, false);
        }
        let word = self.long(self.host_word(number)).load(Ordering::Acquire);
        (word as u16, word >> 16 & 0xff != 0)
    }

    /// Writes the cores of a host, and whether it takes part no more; for the daemon alone. Nothing happens if there is no
    /// room for so many hosts.
    pub fn set_host_state(&self, number: u16, cores: u16, is_gone: bool) {
        if u32::from(number) < self.plan().hosts {
            let word = self.long(self.host_word(number));
            let site = word.load(Ordering::Relaxed) >> HOST_SITE_BIT << HOST_SITE_BIT;
            word.store(site | u64::from(cores) | u64::from(is_gone) << 16, Ordering::Release);
        }
    }

    /// The number of the site of a host in this job, from 1; 0 if it has none, or this is not known.
    pub fn host_site(&self, number: u16) -> u16 {
        if u32::from(number) >= self.plan().hosts {
            return 0;
        }
        (self.long(self.host_word(number)).load(Ordering::Acquire) >> HOST_SITE_BIT) as u16
    }

    /// Writes the number of the site of a host; for the daemon alone. Nothing happens if there is no room for so many hosts.
    pub fn set_host_site(&self, number: u16, site: u16) {
        if u32::from(number) < self.plan().hosts {
            let word = self.long(self.host_word(number));
            let state = word.load(Ordering::Relaxed) & ((1 << HOST_SITE_BIT) - 1);
            word.store(state | u64::from(site) << HOST_SITE_BIT, Ordering::Release);
        }
    }

    fn host_word(&self, number: u16) -> u64 {
        self.plan().host_name(number.into()) + HOST_BYTES - 8
    }

    /// The place of an entry of the world table.
    fn entry(&self, entry: u32) -> u64 {
        self.plan().world_table() + u64::from(entry) * WORLD_ENTRY_BYTES
    }
}

impl Observed {
    /// The daemon's records of processes on other hosts, by their places; those of no process are free.
    pub fn far_records(&self) -> Vec<FarRecord> {
        let record = |far: u32| {
            let mut words = [0; 4];
            self.read(self.plan().far_record(far), &mut words);
            FarRecord::from_words(words)
        };
        (0..self.plan().far).map(record).collect()
    }

    /// The rank that the first process of each slot had in the first world.
    pub fn ranks_of_slots(&self) -> Vec<Option<u32>> {
        let plan = self.plan();
        if !plan.world_spans_hosts() {
            return (0..plan.slots()).map(|slot| (slot < plan.processes).then_some(slot)).collect();
        }
        // Two entries of 32 bits are one word; the first one of the slots may be its second half.
        let first = u64::from(plan.ranks) * WORLD_ENTRY_BYTES;
        let mut words = vec![0; plan.slots() as usize / 2 + 1];
        self.read(plan.world_table() + first / 8 * 8, &mut words);
        let halves = words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
        let entries =
            halves.skip(usize::from(!first.is_multiple_of(8))).take(plan.slots() as usize);
        entries.map(|entry| entry.checked_sub(1).filter(|&rank| rank < plan.ranks)).collect()
    }

    /// The names of the hosts of the machine that have one, with their numbers.
    pub fn host_names(&self) -> Vec<(u16, JobName)> {
        let name = |number: u32| {
            let mut words = [0; NAME_WORDS];
            self.read(self.plan().host_name(number), &mut words);
            (number as u16, JobName::from_words(words))
        };
        let all = (0..self.plan().hosts).map(name);
        all.filter(|(_, name)| *name != JobName::default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    fn segment(ranks: u32) -> Segment {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        Segment::local(&SegmentPlan { ranks, far: 3, hosts: 2, guests: 1, ..plan })
    }

    #[test]
    fn far_records_are_read_as_written() {
        let segment = segment(2);
        let record = FarRecord {
            process: FarProcess { host: u64::MAX - 1, slot: 7, incarnation: 3 },
            host_number: u16::MAX,
            rank: Some(9),
            state: SlotState::Dead,
            pid: 4711,
            status: -11,
            is_host_lost: true,
            is_guest: false,
        };
        segment.set_far_record(2, record);
        segment.set_far_record(3, record); // there is none
        assert_eq!(segment.far_record(2), record);
        for none in [0, 1, 3, u32::MAX] {
            assert_eq!(segment.far_record(none), FarRecord::default());
        }
        let other =
            FarRecord { rank: None, state: SlotState::Alive, is_host_lost: false, ..record };
        let other = FarRecord { is_guest: true, ..other };
        segment.set_far_record(2, other);
        assert_eq!(segment.far_record(2), other);
        let as_slot = segment.peer_record(segment.plan().slots() + 2);
        assert_eq!((as_slot.state, as_slot.pid, as_slot.status), (SlotState::Alive, 4711, -11));
    }

    #[test]
    fn a_job_on_one_host_knows_others_when_they_have_places() {
        let alone = segment(2);
        let plan = SegmentPlan { takes_hosts: true, ..alone.plan().clone() };
        let growing = Segment::local(&plan);
        let process = FarProcess { host: 9, slot: 0, incarnation: 0 };
        for segment in [&alone, &growing] {
            assert!(!segment.knows_other_hosts());
            segment.set_far_record(0, FarRecord { process, ..FarRecord::default() });
        }
        assert!(growing.knows_other_hosts() && !alone.knows_other_hosts());
        assert_eq!((growing.peer_of_rank(1), growing.rank_of_peer(4)), (1, None));
        // No number of a group comes twice: the arbiter leases the lower half to all others.
        assert_eq!(growing.take_group_number(), Some(crate::plan::GROUP_NUMBERS / 2));
        let added = Segment::local(&SegmentPlan { processes: 0, ..plan });
        assert!(added.knows_other_hosts() && added.take_group_number().is_none());
    }

    #[test]
    fn a_host_has_a_name_and_a_state_beside_it() {
        let segment = segment(2);
        segment.set_host_name(1, JobName::new("n"));
        segment.set_host_name(0, JobName::new(&"x".repeat(64)));
        assert_eq!([0, 1].map(|host| segment.host_state(host)), [(0, false); 2]);
        segment.set_host_state(1, u16::MAX, true);
        segment.set_host_state(0, 3, false);
        segment.set_host_state(2, 4, true); // there is no room
        let states = [0, 1, 2].map(|host| segment.host_state(host));
        assert_eq!(states, [(3, false), (u16::MAX, true), (0, false)]);
        segment.set_host_site(1, u16::MAX);
        segment.set_host_site(2, 1); // there is no room
        segment.set_host_state(1, 5, false);
        segment.set_host_site(0, 2);
        assert_eq!([0, 1, 2].map(|host| segment.host_site(host)), [2, u16::MAX, 0]);
        assert_eq!([0, 1].map(|host| segment.host_state(host)), [(3, false), (5, false)]);
        assert_eq!(segment.host_name(1).to_string(), "n");
        assert_eq!(segment.host_name(0).to_string().len(), 64);
    }

    #[test]
    fn a_rank_is_a_slot_on_one_host() {
        let segment = segment(2);
        segment.set_peer_of_rank(0, 1);
        assert_eq!([0, 1, 2].map(|rank| segment.peer_of_rank(rank)), [0, 1, u32::MAX]);
        assert_eq!([0, 1, 2].map(|peer| segment.rank_of_peer(peer)), [Some(0), Some(1), None]);
    }

    #[test]
    fn ranks_and_peers_of_several_hosts_find_each_other() {
        let segment = segment(5);
        let peers = [3, 0, 5, 1, 4]; // slots 0 to 2, far records 3 to 5
        (0..).zip(peers).for_each(|(rank, peer)| segment.set_peer_of_rank(rank, peer));
        segment.set_peer_of_rank(5, 2);
        segment.set_peer_of_rank(0, 6);
        for (rank, peer) in (0..).zip(peers) {
            assert_eq!(
                (segment.peer_of_rank(rank), segment.rank_of_peer(peer)),
                (peer, Some(rank))
            );
        }
        assert_eq!((segment.rank_of_peer(2), segment.rank_of_peer(6)), (None, None));
        assert_eq!(segment.rank_of(0), Some(1));
        segment.set_slot_record(0, SlotRecord { incarnation: 2, ..SlotRecord::default() });
        assert_eq!(segment.rank_of(0), None, "another process has the slot");
        let record = FarRecord { rank: Some(2), ..FarRecord::default() };
        segment.set_far_record(2, record);
        assert_eq!(segment.rank_of(5), Some(2));
        segment.set_far_record(2, FarRecord { rank: None, ..record });
        assert_eq!(segment.rank_of(5), None, "another process has the record");
    }

    #[test]
    fn words_that_somebody_overwrote_name_nobody() {
        let segment = segment(5);
        let plan = segment.plan().clone();
        for at in (plan.world_table()..plan.total_bytes()).step_by(4) {
            segment.word(at).store(u32::MAX - 1, Ordering::Relaxed);
        }
        assert_eq!((segment.peer_of_rank(4), segment.rank_of_peer(0)), (u32::MAX, None));
        assert!(!segment.host_name(1).to_string().contains('\0'));
    }

    #[test]
    fn observers_read_the_tables() {
        for ranks in [5, 6] {
            let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(1, 2) };
            let plan = SegmentPlan { ranks, far: 4, hosts: 3, guests: 1, ..plan };
            let segment = Segment::create(&plan).unwrap();
            (0..)
                .zip([3, 0, 5, 1, 4])
                .for_each(|(rank, peer)| segment.set_peer_of_rank(rank, peer));
            let record = FarRecord { host_number: 2, pid: 9, ..FarRecord::default() };
            segment.set_far_record(1, record);
            segment.set_host_name(2, JobName::new("n2"));
            let file = segment.descriptor().unwrap().try_clone_to_owned().unwrap();
            let observed = Observed::open(file).unwrap();
            assert_eq!(observed.ranks_of_slots(), [Some(1), Some(3), None]);
            assert_eq!(observed.far_records()[..2], [FarRecord::default(), record]);
            assert_eq!(observed.host_names(), [(2, JobName::new("n2"))]);
        }
    }

    #[test]
    fn hosts_have_names() {
        let segment = segment(2);
        segment.set_host_name(1, JobName::new("n2"));
        segment.set_host_name(2, JobName::new("n3"));
        let names = [0, 1, 2].map(|number| segment.host_name(number).to_string());
        assert_eq!(names, ["", "n2", ""]);
    }
}
