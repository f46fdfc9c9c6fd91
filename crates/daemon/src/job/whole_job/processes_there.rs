//! The processes on hosts that were added to a job: guests, and those that were started there. The founder shows them, and
//! lets no host go where there are some.

use std::collections::{BTreeMap, BTreeSet};

use landeck_wire::word::{LaterProcess, WordContent};
use landeck_wire::{HostNumber, ProcessId, SegmentId};

use super::WholeJob;
use crate::context::Context;
use crate::machine_message::MachineMessage;

/// The processes on hosts that were added.
#[derive(Debug, Default)]
pub(super) struct ProcessesThere {
    present: BTreeMap<SegmentId, BTreeSet<ProcessId>>,
    /// Their numbers, as the founder knows them.
    told: BTreeMap<HostNumber, u32>,
}

impl WholeJob {
    /// Takes note of the processes of the job that come and go.
    pub(crate) fn word(&mut self, content: &WordContent) {
        let present = &mut self.processes_there.present;
        match *content {
            // Those of the machine itself are nobody's.
            WordContent::ProcessCame { kind: LaterProcess::Helper, .. } => {}
            WordContent::ProcessCame { process, .. }
            | WordContent::ProcessReturned { process, .. } => {
                present.entry(process.segment).or_default().insert(process);
            }
            WordContent::ProcessEnded { process, .. } => {
                present.entry(process.segment).or_default().remove(&process);
            }
            _ => {}
        }
    }

    /// Tells the founder how many processes of the job are on each host that was added, where that has changed.
    pub(super) fn tell_processes_there(&mut self, context: &mut Context<'_>) {
        if self.gathering.is_some() {
            return;
        }
        let job = self.spec.job;
        for &host in self.awaited.iter().filter(|host| self.growth.is_added(**host)) {
            let Some(place) = self.spec.place_of(host) else { continue };
            let segment = self.spec.hosts[place].segment;
            let there = self.processes_there.present.get(&segment).map_or(0, BTreeSet::len);
            let started = self.growth.processes_on(host);
            let processes = started.max(u32::try_from(there).unwrap_or(u32::MAX));
            let told = self.processes_there.told.entry(host).or_default();
            if std::mem::replace(told, processes) != processes {
                let message = MachineMessage::Processes { job, host, processes };
                context.send_machine(HostNumber::ARBITER, message);
            }
        }
    }

    /// Forgets the processes of a host that is lost.
    pub(super) fn forget_processes_on(&mut self, host: HostNumber) {
        let its = self.spec.hosts.iter().filter(|spec| spec.number == host);
        for spec in its {
            self.processes_there.present.remove(&spec.segment);
        }
        self.processes_there.told.remove(&host);
    }
}
