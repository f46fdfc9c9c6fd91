//! Processes of this host that have left, and need a word on that before their guardian reports their end: those that a
//! guardian has started and that run on, and guests, whose ends it does not report.
//!
//! In a part that an earlier run of this daemon had, a process may have left or ended while there was no daemon. Nobody tells
//! of that, so the records do, until the process has connected.

use std::time::Duration;

use landeck_memory::{SlotRecord, SlotState};
use landeck_wire::word::ProcessEnd;
use landeck_wire::{JobId, ProcessId};

use super::{LaneTools, Lanes, LanesEvent};
use crate::parts::PartOfHost;

/// A process may tell, or a guest's connection end, a moment before the agent has recorded it.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The time between two looks at the records of processes that have not connected again.
const EXPECTED_INTERVAL: Duration = Duration::from_secs(1);

/// The processes that have said that they left, and the guests whose connections have ended, as long as no word was
/// asked for.
#[derive(Debug, Default)]
pub(super) struct Leavers {
    leavers: Vec<Leaver>,
    next_look: Duration,
    /// The processes of an earlier run that lived when this one began, and have not connected.
    expected: Vec<(JobId, ProcessId)>,
    next_expected: Duration,
}

#[derive(Debug)]
struct Leaver {
    job: JobId,
    process: ProcessId,
    /// It has said so itself, so it may be one that a guardian has started.
    has_said_so: bool,
}

impl Leavers {
    /// Adds a process. One that is no guest and has not said that it left is dropped at the next look.
    pub(super) fn add(&mut self, job: JobId, process: ProcessId, has_said_so: bool) {
        self.leavers.push(Leaver { job, process, has_said_so });
        self.next_look = Duration::ZERO;
    }

    /// Forgets a process that has come back.
    pub(super) fn drop(&mut self, process: ProcessId) {
        self.leavers.retain(|leaver| leaver.process != process);
    }

    /// Adds the processes of a part that an earlier run had: those that are gone, whose ends may not have been told, and those
    /// that will connect again.
    pub(super) fn resume(&mut self, job: JobId, part: &PartOfHost) {
        for slot in 0..part.segment.plan().slots() {
            let record = part.segment.slot_record(slot);
            let is_guest = slot >= part.segment.plan().processes;
            let process = part.process_of(slot);
            // The one before has ended, unless it is the same one that has come back.
            if is_guest && record.returns == 0 && record.incarnation > 1 {
                process.before().into_iter().for_each(|before| self.add(job, before, true));
            }
            match record.state {
                SlotState::Alive => self.expected.push((job, process)),
                state => self.add_gone((job, process), state),
            }
        }
    }

    /// Adds a process that is gone by its record. The guardian tells the ends of those that it has started.
    fn add_gone(&mut self, (job, process): (JobId, ProcessId), state: SlotState) {
        if state.is_gone() {
            self.add(job, process, state == SlotState::Left);
        }
    }

    /// A process has connected: it is expected no more.
    pub(super) fn connected(&mut self, process: ProcessId) {
        self.expected.retain(|(_, expected)| *expected != process);
    }

    /// Takes the expected processes that are gone by their records.
    fn look_at_expected(&mut self, tools: &LaneTools) {
        self.next_expected = tools.now + EXPECTED_INTERVAL;
        for (job, process) in std::mem::take(&mut self.expected) {
            let Some(part) = tools.parts.get(job) else { continue };
            let record = part.segment.slot_record(process.slot.0);
            match record.state {
                // Another process has its slot.
                _ if record.incarnation != process.incarnation.0 => self.add(job, process, true),
                SlotState::Alive => self.expected.push((job, process)),
                state => self.add_gone((job, process), state),
            }
        }
    }

    /// The ends of the guests of a part that is over.
    pub(super) fn ends_of_guests(&self, job: JobId, part: &PartOfHost) -> Vec<LanesEvent> {
        let first = part.segment.plan().processes;
        let leavers = self.leavers.iter().map(|one| (one.job, one.process));
        let all = leavers.chain(self.expected.iter().copied());
        let its = all.filter(|(of, process)| *of == job && process.slot.0 >= first);
        let end = |(job, process): (JobId, ProcessId)| {
            let record = part.segment.slot_record(process.slot.0);
            let end = end_of(&record, process.incarnation.0, true);
            let unknown = ProcessEnd::Died { pid: record.pid, status: SlotRecord::UNKNOWN_STATUS };
            LanesEvent::Ended { job, process, end: end.unwrap_or(unknown) }
        };
        its.map(end).collect()
    }

    /// Forgets the processes of a job.
    pub(super) fn forget(&mut self, job: JobId) {
        self.leavers.retain(|leaver| leaver.job != job);
        self.expected.retain(|(of, _)| *of != job);
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Option<Duration> {
        let leavers = (!self.leavers.is_empty()).then_some(self.next_look);
        let expected = (!self.expected.is_empty()).then_some(self.next_expected);
        leavers.into_iter().chain(expected).min()
    }
}

impl Lanes {
    /// Tells what the agent has recorded.
    pub(super) fn look_at_leavers(&mut self, tools: &LaneTools) {
        if !self.leaving.expected.is_empty() && tools.now >= self.leaving.next_expected {
            self.leaving.look_at_expected(tools);
        }
        self.leaving.next_look = tools.now + LOOK_INTERVAL;
        let Self { leaving, events, .. } = self;
        leaving.leavers.retain(|&Leaver { job, process, has_said_so }| {
            let Some(part) = tools.parts.get(job) else { return false };
            let slot = process.slot.0;
            let is_guest = slot >= part.segment.plan().processes;
            if !is_guest && !has_said_so {
                return false;
            }
            let end = end_of(&part.segment.slot_record(slot), process.incarnation.0, is_guest);
            events.extend(end.map(|end| LanesEvent::Ended { job, process, end }));
            end.is_none()
        });
    }
}

/// The end of the process with this incarnation; `None` while the record says that it lives.
fn end_of(record: &SlotRecord, incarnation: u32, is_guest: bool) -> Option<ProcessEnd> {
    let (pid, status) = (record.pid, record.status);
    match record.state {
        // It has said that it left, and has returned.
        _ if record.incarnation != incarnation && !is_guest => Some(ProcessEnd::Away),
        _ if record.incarnation != incarnation => {
            Some(ProcessEnd::Died { pid: 0, status: SlotRecord::UNKNOWN_STATUS })
        }
        SlotState::Left if !is_guest => Some(ProcessEnd::Away),
        SlotState::Left | SlotState::Departed => Some(ProcessEnd::Left),
        SlotState::Dead => Some(ProcessEnd::Died { pid, status }),
        _ => None,
    }
}
