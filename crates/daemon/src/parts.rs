//! The parts of jobs on this host, and what words change in their segments.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use landeck_memory::plan::JobName;
use landeck_memory::{FarProcess, FarRecord, RelayWords, Segment, SlotRecord, SlotState};
use landeck_protocols::hosts::{
    FarChange, FarState, FarSubject, HostStanding, WordFollower, numbers_before,
};
use landeck_wire::word::{HostEntry, LaterProcess, ProcessEnd};
use landeck_wire::{HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};

/// The part of a job on this host.
#[derive(Debug)]
pub(crate) struct PartOfHost {
    /// The segment of the job here.
    pub(crate) segment: Segment,
    /// The processes of the job elsewhere, by their places in the segment's table.
    pub(crate) far: Vec<ProcessId>,
    /// The place of each slot elsewhere. Those of guests have theirs from the beginning.
    places: HashMap<(SegmentId, Slot), u32>,
    /// The request for group numbers that waits for its answer.
    numbers_asked: bool,
    /// The word of the job's end was applied.
    is_ending: bool,
}

impl PartOfHost {
    /// The place of a far process in the segment's table.
    pub(crate) fn place(&self, far: ProcessId) -> Option<u32> {
        self.place_of_slot(far).filter(|&place| self.far.get(place as usize) == Some(&far))
    }

    /// The place of a far process, or of one that had its slot before or has it after.
    fn place_of_slot(&self, far: ProcessId) -> Option<u32> {
        self.places.get(&(far.segment, far.slot)).copied()
    }

    /// Whether a process, or one that had its slot before or has it after, is a far one of the job.
    pub(crate) fn has_slot(&self, far: ProcessId) -> bool {
        self.place_of_slot(far).is_some()
    }

    /// The identity of the segment.
    pub(crate) fn segment_id(&self) -> SegmentId {
        SegmentId(self.segment.plan().host)
    }

    /// The host of a far process.
    pub(crate) fn host_of(&self, place: u32) -> HostNumber {
        HostNumber(self.segment.far_record(place).host_number)
    }

    /// The other hosts with processes of the job.
    pub(crate) fn far_hosts(&self) -> BTreeSet<HostNumber> {
        (0..self.far.len() as u32).map(|place| self.host_of(place)).collect()
    }

    /// The hosts of these far processes.
    pub(crate) fn hosts_of(&self, processes: &[ProcessId]) -> BTreeSet<HostNumber> {
        let places = processes.iter().filter_map(|&process| self.place(process));
        places.map(|place| self.host_of(place)).collect()
    }

    /// Whether a host is lost or has left, and has not come back.
    pub(crate) fn has_lost(&self, host: HostNumber) -> bool {
        self.segment.host_state(host.0).1
    }

    /// Writes the end of a process; returns whether that is news.
    fn note_end(&self, process: ProcessId, end: ProcessEnd) -> bool {
        self.place(process).is_some_and(|place| set_end(&self.segment, place, end))
    }

    /// Writes that a process takes part, as this incarnation of its slot, and whether it is a guest if that is known;
    /// returns whether that is news.
    fn note_coming(&mut self, process: ProcessId, is_guest: Option<bool>) -> bool {
        let Some(place) = self.place_of_slot(process) else { return false };
        let known = &mut self.far[place as usize];
        let record = self.segment.far_record(place);
        let is_guest = is_guest.unwrap_or(record.is_guest);
        let is_next = known.incarnation < process.incarnation;
        if *known == process && record.is_guest != is_guest {
            self.segment.set_far_record(place, FarRecord { is_guest, ..record });
        } else if is_next {
            *known = process;
            let incarnation = process.incarnation.0;
            let process = FarProcess { incarnation, ..record.process };
            let (state, status) = (SlotState::Alive, 0);
            let record = FarRecord { process, state, status, is_guest, ..record };
            self.segment.set_far_record(place, record);
        }
        is_next || record.is_guest != is_guest
    }

    /// Takes a process that may have ended already.
    fn meet(&mut self, process: ProcessId, is_guest: Option<bool>, words: &WordFollower) {
        if self.note_coming(process, is_guest) {
            if let (Some(place), Some(end)) = (self.place(process), words.end_of(process)) {
                set_end(&self.segment, place, end);
            }
            self.segment.announce_membership();
        }
    }

    /// Whether the word of the job's end was applied.
    pub(crate) const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// The processes of all hosts that are gone, by the records of the segment.
    pub(crate) fn gone_processes(&self) -> Vec<ProcessId> {
        let far = (0..).zip(&self.far).filter(|(place, _)| self.is_over(*place));
        let near = (0..self.segment.plan().slots()).map(|slot| self.process_of(slot));
        let near = near.filter(|it| self.segment.slot_record(it.slot.0).state.is_gone());
        near.chain(far.map(|(_, process)| *process)).collect()
    }

    /// The living processes of this host for which a relay has laid messages.
    pub(crate) fn relay_receivers(&self) -> Vec<ProcessId> {
        let has_ring = |it: &ProcessId| {
            let is_alive = self.segment.slot_record(it.slot.0).state == SlotState::Alive;
            let words = RelayWords::of(&self.segment, it.slot.0);
            is_alive && words.is_some_and(|words| words.was_used())
        };
        let all = (0..self.segment.plan().slots()).map(|slot| self.process_of(slot));
        all.filter(has_ring).collect()
    }

    /// The process that a slot of this host has or had last.
    pub(crate) fn process_of(&self, slot: u32) -> ProcessId {
        let incarnation = Incarnation(self.segment.slot_record(slot).incarnation);
        ProcessId { segment: self.segment_id(), slot: Slot(slot), incarnation }
    }

    /// Whether a far process has ended, or its host is lost.
    pub(crate) fn is_over(&self, place: u32) -> bool {
        self.segment.far_record(place).state.is_gone()
    }
}

/// The processes elsewhere that a segment knows, by their places in its table.
pub(crate) fn far_processes(segment: &Segment) -> Vec<ProcessId> {
    let process = |place: u32| {
        let FarProcess { host, slot, incarnation } = segment.far_record(place).process;
        let (slot, incarnation) = (Slot(slot), Incarnation(incarnation));
        ProcessId { segment: SegmentId(host), slot, incarnation }
    };
    let all = (0..segment.plan().far).map(process);
    // Hosts that may still be added have no places yet.
    all.take_while(|process| process.segment != SegmentId(0)).collect()
}

/// The parts of all jobs.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    parts: BTreeMap<JobId, PartOfHost>,
    requests: u64,
}

impl Parts {
    /// The parts of a daemon in this run, which has none yet. No run before has made the same requests.
    pub(crate) fn of_run(run: u32) -> Self {
        Self { parts: BTreeMap::new(), requests: numbers_before(run) }
    }

    /// The segments of all parts.
    pub(crate) fn segments(&self) -> Vec<SegmentId> {
        self.parts.values().map(PartOfHost::segment_id).collect()
    }

    /// Adds a part. Words that were applied before count too.
    pub(crate) fn add(
        &mut self,
        job: JobId,
        segment: Segment,
        far: Vec<ProcessId>,
        words: &WordFollower,
    ) {
        let places = (0..).zip(&far).map(|(place, it)| ((it.segment, it.slot), place)).collect();
        let part = PartOfHost { segment, far, places, numbers_asked: false, is_ending: false };
        for record in words.hosts() {
            set_host(&part.segment, &record.entry);
            if record.standing != HostStanding::Living {
                lose(&part, record.entry.host);
            }
        }
        for (place, process) in (0..).zip(&part.far) {
            if let Some(end) = words.end_of(*process) {
                set_end(&part.segment, place, end);
            }
        }
        part.segment.announce_membership();
        self.parts.insert(job, part);
        // Those that have come while this host had no copy of the words.
        for (process, kind) in words.came(job) {
            let is_guest = kind.map(LaterProcess::is_guest);
            let part = self.parts.get_mut(&job);
            part.into_iter().for_each(|part| part.meet(process, is_guest, words));
        }
    }

    /// Forgets a part.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<PartOfHost> {
        self.parts.remove(&job)
    }

    /// The part of a job.
    pub(crate) fn get(&self, job: JobId) -> Option<&PartOfHost> {
        self.parts.get(&job)
    }

    /// The part with this segment.
    pub(crate) fn with_segment(&self, segment: SegmentId) -> Option<(JobId, &PartOfHost)> {
        let found = self.parts.iter().find(|(_, part)| part.segment_id() == segment);
        found.map(|(job, part)| (*job, part))
    }

    /// Takes a guest of another host that processes of a segment may need from now on, whether or not the word on it has
    /// come. The processes that a job began with are known already.
    pub(crate) fn meet(&mut self, segment: SegmentId, guest: ProcessId, words: &WordFollower) {
        let mut parts = self.parts.values_mut();
        if let Some(part) = parts.find(|part| part.segment_id() == segment) {
            part.meet(guest, None, words);
        }
    }

    /// Takes processes that came on other hosts before this one had a part of their job, each with whether it is a guest.
    pub(crate) fn meet_all(
        &mut self,
        job: JobId,
        guests: &[(ProcessId, bool)],
        words: &WordFollower,
    ) {
        if let Some(part) = self.parts.get_mut(&job) {
            guests.iter().for_each(|&(guest, is_guest)| part.meet(guest, Some(is_guest), words));
        }
    }

    /// Adds the places of guests of one more host, behind those of all others.
    pub(crate) fn add_far(&mut self, job: JobId, guests: Vec<ProcessId>) {
        let Some(part) = self.parts.get_mut(&job) else { return };
        let first = part.far.len() as u32;
        let places = (first..).zip(&guests).map(|(place, it)| ((it.segment, it.slot), place));
        part.places.extend(places);
        part.far.extend(guests);
        part.segment.announce_membership();
    }

    /// The jobs with a part here.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.parts.keys().copied()
    }

    /// Writes the record of a host that takes part into all segments, and announces it.
    pub(crate) fn note_host(&self, entry: &HostEntry) {
        for part in self.parts.values() {
            set_host(&part.segment, entry);
            part.segment.announce_membership();
        }
    }

    /// Notes that a job ends. Its guardian here is told to end it, and then all calls fail because of that. Processes
    /// that end elsewhere meanwhile must not be taken for the cause, so their ends are written no more.
    pub(crate) fn end(&mut self, job: JobId) {
        if let Some(part) = self.parts.get_mut(&job) {
            part.is_ending = true;
        }
    }

    /// Writes a change into the far records of all segments that have the process, and announces it.
    pub(crate) fn write(&mut self, change: &FarChange) {
        for part in self.parts.values_mut().filter(|part| !part.is_ending) {
            let is_changed = match (change.subject, change.state) {
                (FarSubject::Process(process), FarState::Left) => {
                    part.note_end(process, ProcessEnd::Left)
                }
                (FarSubject::Process(process), FarState::Away) => {
                    part.note_end(process, ProcessEnd::Away)
                }
                (FarSubject::Process(process), FarState::Died { pid, status }) => {
                    part.note_end(process, ProcessEnd::Died { pid, status })
                }
                (FarSubject::Process(process), FarState::Came { is_guest }) => {
                    part.note_coming(process, Some(is_guest))
                }
                (FarSubject::Process(process), FarState::Back) => part.note_coming(process, None),
                (FarSubject::Process(process), FarState::Lost { .. } | FarState::Gone) => {
                    part.place(process).is_some_and(|place| set_lost(&part.segment, place))
                }
                (FarSubject::Host(host, _), _) => lose(part, host),
            };
            if is_changed {
                part.segment.announce_membership();
            }
        }
    }

    /// Takes a process that another host has named and that may have come or returned: the word of that may come later.
    pub(crate) fn meet_returned(&mut self, host: HostNumber, process: ProcessId) {
        let is_there = |part: &PartOfHost| {
            part.place_of_slot(process).is_some_and(|place| part.host_of(place) == host)
        };
        if self.parts.values().any(is_there) {
            let subject = FarSubject::Process(process);
            self.write(&FarChange { subject, state: FarState::Back });
        }
    }

    /// The parts that need numbers for groups and have not asked, each with the number of its request.
    pub(crate) fn ask_numbers(&mut self) -> Vec<(JobId, u64)> {
        let mut asked = Vec::new();
        for (job, part) in &mut self.parts {
            if !part.numbers_asked && part.segment.needs_group_numbers() {
                part.numbers_asked = true;
                self.requests += 1;
                asked.push((*job, self.requests));
            }
        }
        asked
    }

    /// Writes numbers for groups into a segment.
    pub(crate) fn take_numbers(&mut self, job: JobId, numbers: std::ops::Range<u32>) {
        if let Some(part) = self.parts.get_mut(&job) {
            part.numbers_asked = false;
            part.segment.set_group_numbers(numbers);
        }
    }
}

/// Writes the record of a host that takes part.
fn set_host(segment: &Segment, entry: &HostEntry) {
    segment.set_host_name(entry.host.0, JobName::new(&entry.name));
    segment.set_host_state(entry.host.0, entry.cores, false);
}

/// Writes the end of a process, if it has none.
fn set_end(segment: &Segment, place: u32, end: ProcessEnd) -> bool {
    let record = segment.far_record(place);
    let is_known = if end.is_final() { record.state.has_ended() } else { record.state.is_gone() };
    if is_known {
        return false;
    }
    let record = match end {
        ProcessEnd::Left => FarRecord { state: SlotState::Departed, status: 0, ..record },
        ProcessEnd::Away => FarRecord { state: SlotState::Left, status: 0, ..record },
        ProcessEnd::Died { pid, status } => {
            FarRecord { state: SlotState::Dead, pid, status, ..record }
        }
    };
    segment.set_far_record(place, record);
    true
}

/// Writes that a process is gone with its host, if it has no end of its own.
fn set_lost(segment: &Segment, place: u32) -> bool {
    let record = segment.far_record(place);
    match record.state {
        SlotState::Free => return false,
        SlotState::Left => return set_end(segment, place, ProcessEnd::Left),
        state if state.has_ended() => return false,
        _ => {}
    }
    let status = SlotRecord::UNKNOWN_STATUS;
    segment.set_far_record(
        place,
        FarRecord { state: SlotState::Dead, status, is_host_lost: true, ..record },
    );
    true
}

/// Writes that a host takes part no more; returns whether that is news.
fn lose(part: &PartOfHost, host: HostNumber) -> bool {
    let (cores, was_gone) = part.segment.host_state(host.0);
    part.segment.set_host_state(host.0, cores, true);
    let its = (0..part.far.len() as u32).filter(|place| part.host_of(*place) == host);
    // All of them, not only the first that changes.
    its.filter(|place| set_lost(&part.segment, *place)).count() > 0 || !was_gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::SegmentPlan;
    use landeck_protocols::hosts::Snapshot;
    use landeck_wire::word::HostPlace;
    use landeck_wire::{HostIncarnation, Incarnation};

    const JOB: JobId = JobId(7);

    fn far(slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(99), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    fn parts(words: &WordFollower) -> (Parts, Segment) {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 1) };
        let segment = Segment::local(&SegmentPlan { ranks: 4, far: 3, hosts: 4, ..plan });
        for place in 0..3 {
            let process = FarProcess { host: 99, slot: place, incarnation: 1 };
            let host_number = if place == 2 { 2 } else { 1 };
            let state = SlotState::Alive;
            segment.set_far_record(
                place,
                FarRecord { process, host_number, state, ..FarRecord::default() },
            );
        }
        let mut parts = Parts::default();
        parts.add(JOB, segment.clone(), (0..3).map(far).collect(), words);
        (parts, segment)
    }

    fn change(subject: FarSubject, state: FarState) -> FarChange {
        FarChange { subject, state }
    }

    #[test]
    fn the_first_word_on_a_process_stands_in_its_record() {
        let (mut parts, segment) = parts(&WordFollower::new(Snapshot::default()));
        let generation = segment.membership_generation();
        let died = FarState::Died { pid: 4711, status: 9 };
        parts.write(&change(FarSubject::Process(far(0)), died));
        let record = segment.far_record(0);
        assert_eq!((record.state, record.pid, record.status), (SlotState::Dead, 4711, 9));
        assert_ne!(segment.membership_generation(), generation);
        let generation = segment.membership_generation();
        parts.write(&change(FarSubject::Process(far(0)), FarState::Left));
        parts.write(&change(FarSubject::Process(far(8)), died));
        assert_eq!((segment.far_record(0), segment.membership_generation()), (record, generation));
    }

    #[test]
    fn a_process_that_was_away_returns_to_its_place() {
        let (mut parts, segment) = parts(&WordFollower::new(Snapshot::default()));
        let back = ProcessId { incarnation: Incarnation(2), ..far(0) };
        let state_and_incarnation = || {
            let record = segment.far_record(0);
            (record.state, record.process.incarnation)
        };
        parts.write(&change(FarSubject::Process(far(0)), FarState::Away));
        assert_eq!(state_and_incarnation(), (SlotState::Left, 1));
        parts.meet_returned(HostNumber(2), back);
        assert_eq!(state_and_incarnation(), (SlotState::Left, 1), "it is of another host");
        // Its call may come before the words.
        parts.meet_returned(HostNumber(1), back);
        assert_eq!(state_and_incarnation(), (SlotState::Alive, 2));
        parts.write(&change(FarSubject::Process(far(0)), FarState::Left));
        parts.write(&change(FarSubject::Process(back), FarState::Back));
        assert_eq!(state_and_incarnation(), (SlotState::Alive, 2));
        let part = parts.get(JOB).unwrap();
        assert_eq!((part.place(far(0)), part.place(back), part.far[0]), (None, Some(0), back));
        parts.write(&change(FarSubject::Process(back), FarState::Away));
        parts.write(&change(FarSubject::Process(back), FarState::Left));
        assert_eq!(state_and_incarnation(), (SlotState::Departed, 2));
        let host = FarSubject::Host(HostNumber(1), HostIncarnation(3));
        parts.write(&change(FarSubject::Process(far(1)), FarState::Away));
        parts.write(&change(host, FarState::Lost { silent_ms: 3_100 }));
        assert_eq!(segment.far_record(1).state, SlotState::Departed, "it had left before");
    }

    #[test]
    fn ends_behind_the_end_of_the_job_are_not_written() {
        let (mut parts, segment) = parts(&WordFollower::new(Snapshot::default()));
        let died =
            |slot| change(FarSubject::Process(far(slot)), FarState::Died { pid: 1, status: 15 });
        parts.end(JobId(99));
        parts.write(&died(0));
        parts.end(JOB);
        parts.write(&died(1));
        let states = [0, 1].map(|place| segment.far_record(place).state);
        assert_eq!(states, [SlotState::Dead, SlotState::Alive]);
    }

    #[test]
    fn a_lost_host_takes_its_living_processes_along() {
        let (mut parts, segment) = parts(&WordFollower::new(Snapshot::default()));
        parts.write(&change(FarSubject::Process(far(1)), FarState::Left));
        let host = FarSubject::Host(HostNumber(1), HostIncarnation(3));
        parts.write(&change(host, FarState::Lost { silent_ms: 3_100 }));
        let seen = [0, 1, 2].map(|place| {
            let record = segment.far_record(place);
            (record.state, record.is_host_lost)
        });
        assert_eq!(
            seen,
            [(SlotState::Dead, true), (SlotState::Departed, false), (SlotState::Alive, false)]
        );
    }

    #[test]
    fn guests_have_places_that_their_incarnations_take_in_turn() {
        let words = WordFollower::new(Snapshot::default());
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 1) };
        let segment = Segment::local(&SegmentPlan { ranks: 2, far: 2, hosts: 2, ..plan });
        let process = FarProcess { host: 99, slot: 0, incarnation: 1 };
        let rank = FarRecord { process, host_number: 1, rank: Some(1), ..FarRecord::default() };
        segment.set_far_record(0, FarRecord { state: SlotState::Alive, ..rank });
        let process = FarProcess { host: 99, slot: 5, incarnation: 0 };
        let free = FarRecord { process, host_number: 1, is_guest: true, ..FarRecord::default() };
        segment.set_far_record(1, free);
        let mut parts = Parts::default();
        let guest = |incarnation| ProcessId { incarnation: Incarnation(incarnation), ..far(5) };
        parts.add(JOB, segment.clone(), vec![far(0), guest(0)], &words);
        let strange = ProcessId { segment: SegmentId(77), ..far(5) };
        for met in [far(0), strange, guest(1), far(6)] {
            parts.meet(SegmentId(1), met, &words);
        }
        let places = |parts: &Parts, of: [ProcessId; 4]| {
            of.map(|process| parts.get(JOB).unwrap().place(process))
        };
        assert_eq!(
            places(&parts, [guest(1), strange, far(6), guest(0)]),
            [Some(1), None, None, None]
        );
        let record = segment.far_record(1);
        let (number, rank) = (record.host_number, record.rank);
        assert_eq!(
            (record.process.slot, number, rank, record.state),
            (5, 1, None, SlotState::Alive)
        );
        parts.write(&change(FarSubject::Process(guest(1)), FarState::Left));
        assert_eq!(segment.far_record(1).state, SlotState::Departed);
        // The word on the second one was not needed here, and that on the third comes late.
        parts.meet(SegmentId(1), guest(3), &words);
        assert!(segment.far_record(1).is_guest, "nothing else is known");
        for incarnation in [2, 3] {
            let came = FarState::Came { is_guest: false };
            parts.write(&change(FarSubject::Process(guest(incarnation)), came));
        }
        let record = segment.far_record(1);
        assert_eq!((record.process.incarnation, record.is_guest), (3, false));
        assert_eq!(places(&parts, [guest(1), guest(2), guest(3), far(0)])[2..], [Some(1), Some(0)]);
    }

    #[test]
    fn the_loss_of_a_host_says_nothing_of_guests_that_never_came() {
        let words = WordFollower::new(Snapshot::default());
        let (mut parts, segment) = parts(&words);
        let record = segment.far_record(1);
        segment.set_far_record(1, FarRecord { state: SlotState::Free, ..record });
        let host = FarSubject::Host(HostNumber(1), HostIncarnation(3));
        parts.write(&change(host, FarState::Lost { silent_ms: 3_100 }));
        assert_eq!(segment.far_record(0).state, SlotState::Dead);
        assert_eq!(segment.far_record(1).state, SlotState::Free);
        assert!(segment.host_state(1).1, "the host is gone");
    }

    #[test]
    fn words_from_before_a_part_count() {
        let entry = HostEntry {
            host: HostNumber(2),
            incarnation: HostIncarnation(5),
            name: "c".into(),
            key: [0; 32],
            addresses: Vec::new(),
            cores: 1,
            place: HostPlace::default(),
        };
        let next = ProcessId { incarnation: Incarnation(2), ..far(1) };
        let words = WordFollower::new(Snapshot {
            number: 5,
            hosts: vec![(entry, HostStanding::Lost)],
            came: [(next, JOB), (far(2), JobId(8))]
                .map(|(process, job)| (process, job, Some(LaterProcess::Guest)))
                .to_vec(),
            ended: vec![(far(0), JOB, ProcessEnd::Left)],
            ending: Vec::new(),
        });
        let (parts, segment) = parts(&words);
        assert_eq!(segment.far_record(0).state, SlotState::Departed);
        let came = segment.far_record(1);
        assert_eq!((came.state, came.process.incarnation), (SlotState::Alive, 2));
        assert!(came.is_guest && !segment.far_record(2).is_guest);
        assert_eq!(parts.get(JOB).unwrap().place(next), Some(1));
        assert!(segment.far_record(2).is_host_lost);
        assert_eq!(segment.host_name(2).to_string(), "c");
        assert!(parts.with_segment(SegmentId(1)).is_some());
    }

    #[test]
    fn numbers_are_asked_for_once() {
        let (mut parts, segment) = parts(&WordFollower::new(Snapshot::default()));
        assert_eq!(parts.ask_numbers(), [(JOB, 1)]);
        assert_eq!(parts.ask_numbers(), [], "the answer is on its way");
        parts.take_numbers(JOB, 4_096..8_192);
        assert_eq!(segment.take_group_number(), Some(4_096));
        assert_eq!(parts.ask_numbers(), []);
        let words = WordFollower::new(Snapshot::default());
        let mut next = Parts { parts: self::parts(&words).0.parts, ..Parts::of_run(1) };
        assert_eq!(next.ask_numbers(), [(JOB, (1 << 32) + 1)], "1 was that of the run before");
    }
}
