//! Processes of this host that have left, and need a word on that before their guardian reports their end: those that a
//! guardian has started and that run on, and guests, whose ends it does not report.

use std::time::Duration;

use landeck_memory::{SlotRecord, SlotState};
use landeck_wire::word::ProcessEnd;
use landeck_wire::{JobId, ProcessId};

use super::{LaneTools, Lanes, LanesEvent};
use crate::parts::PartOfHost;

/// A process may tell, or a guest's connection end, a moment before the agent has recorded it.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The processes that have said that they left, and the guests whose connections have ended, as long as no word was
/// asked for.
#[derive(Debug, Default)]
pub(super) struct Leavers {
    leavers: Vec<Leaver>,
    next_look: Duration,
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

    /// Takes a process that has come back; returns whether it has said that it left, and no word was asked for.
    pub(super) fn take(&mut self, process: ProcessId) -> bool {
        let its = self.leavers.extract_if(.., |leaver| leaver.process == process);
        its.fold(false, |has_said_so, leaver| has_said_so | leaver.has_said_so)
    }

    /// The ends of the guests of a part that is over.
    pub(super) fn ends_of_guests(&self, job: JobId, part: &PartOfHost) -> Vec<LanesEvent> {
        let first = part.segment.plan().processes;
        let its = self.leavers.iter().filter(|one| one.job == job && one.process.slot.0 >= first);
        let end = |&Leaver { job, process, .. }: &Leaver| {
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
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Option<Duration> {
        (!self.leavers.is_empty()).then_some(self.next_look)
    }
}

impl Lanes {
    /// Tells what the agent has recorded.
    pub(super) fn look_at_leavers(&mut self, tools: &LaneTools) {
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
