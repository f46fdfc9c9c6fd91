//! Guests of this host that have left their daemon. A guest that other hosts know needs a word on its end, like the
//! processes that a guardian has started.

use std::time::Duration;

use landeck_memory::{SlotRecord, SlotState};
use landeck_wire::word::ProcessEnd;
use landeck_wire::{JobId, ProcessId};

use super::{LaneTools, Lanes, LanesEvent};

/// A guest's connection may end a moment before the agent has recorded its end.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The guests whose connections have ended, and whose ends were not told.
#[derive(Debug, Default)]
pub(super) struct LeavingGuests {
    guests: Vec<(JobId, ProcessId)>,
    next_look: Duration,
}

impl LeavingGuests {
    /// Adds a process; one that is no guest is dropped at the next look.
    pub(super) fn add(&mut self, job: JobId, process: ProcessId) {
        self.guests.push((job, process));
        self.next_look = Duration::ZERO;
    }

    /// Forgets the guests of a job.
    pub(super) fn forget(&mut self, job: JobId) {
        self.guests.retain(|(of, _)| *of != job);
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Option<Duration> {
        (!self.guests.is_empty()).then_some(self.next_look)
    }
}

impl Lanes {
    /// Tells the ends that the agent has recorded.
    pub(super) fn look_at_leaving_guests(&mut self, tools: &LaneTools) {
        self.leaving.next_look = tools.now + LOOK_INTERVAL;
        let Self { leaving, events, .. } = self;
        leaving.guests.retain(|&(job, process)| {
            let Some(part) = tools.parts.get(job) else { return false };
            let slot = process.slot.0;
            if slot < part.segment.plan().processes {
                return false;
            }
            let end = end_of(&part.segment.slot_record(slot), process.incarnation.0);
            events.extend(end.map(|end| LanesEvent::GuestEnded { job, process, end }));
            end.is_none()
        });
    }
}

/// The end of the guest with this incarnation; `None` while the record says that it lives.
fn end_of(record: &SlotRecord, incarnation: u32) -> Option<ProcessEnd> {
    let (pid, status) = (record.pid, record.status);
    match record.state {
        _ if record.incarnation != incarnation => {
            Some(ProcessEnd::Died { pid: 0, status: SlotRecord::UNKNOWN_STATUS })
        }
        SlotState::Departed => Some(ProcessEnd::Left),
        SlotState::Dead => Some(ProcessEnd::Died { pid, status }),
        _ => None,
    }
}
