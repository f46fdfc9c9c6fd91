//! The processes on hosts that were added to a job: guests, and those that were started there. The founder shows them, and
//! lets no host go where there are some.

use std::collections::{BTreeMap, BTreeSet};

use landeck_protocols::hosts::WordFollower;
use landeck_wire::word::{LaterProcess, WordContent};
use landeck_wire::{HostNumber, JobId, ProcessId, SegmentId};

use super::WholeJob;
use crate::context::Context;
use crate::machine_message::MachineMessage;

/// The processes on hosts that were added.
#[derive(Debug, Default)]
pub(super) struct ProcessesThere {
    present: BTreeMap<SegmentId, BTreeSet<ProcessId>>,
    /// Their numbers, as this run of the daemon has told the founder.
    told: BTreeMap<HostNumber, u32>,
}

impl ProcessesThere {
    /// The processes of a job, as words have told of them.
    pub(super) fn of_job(job: JobId, words: &WordFollower) -> Self {
        let mut there = Self::default();
        for (process, kind) in words.came(job) {
            there.came(process, kind);
        }
        there
    }

    /// A process takes part. Those of the machine itself are nobody's.
    fn came(&mut self, process: ProcessId, kind: Option<LaterProcess>) {
        if kind != Some(LaterProcess::Helper) {
            self.present.entry(process.segment).or_default().insert(process);
        }
    }
}

impl WholeJob {
    /// Takes note of the processes of the job that come and go.
    pub(crate) fn word(&mut self, content: &WordContent) {
        let there = &mut self.processes_there;
        match *content {
            WordContent::ProcessCame { process, kind, .. } => there.came(process, Some(kind)),
            WordContent::ProcessReturned { process, .. } => there.came(process, None),
            WordContent::ProcessEnded { process, .. } => {
                there.present.entry(process.segment).or_default().remove(&process);
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
            if self.processes_there.told.insert(host, processes) != Some(processes) {
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
