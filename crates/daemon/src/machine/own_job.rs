//! The machine's own job, as the founder knows it: one without launcher and without processes of its own. Processes of any
//! host join it, and what they name is known in the whole machine. It begins when it is first asked for, and stays until
//! the machine or somebody ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use landeck_launch::machine::MachineName;
use landeck_launch::spec::JobSpec;
use landeck_memory::plan::SETTINGS_WORDS;
use landeck_wire::{HostNumber, JobId};
use serde::{Deserialize, Serialize};

use crate::figures::{self, OwnFigures};
use crate::random;

/// The machine's own job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OwnJob {
    pub(crate) job: JobId,
    pub(crate) began: Duration,
    /// The processes on each host that has a part of it, without helpers.
    pub(crate) processes: BTreeMap<HostNumber, u32>,
    /// The hosts that were told to start a helper.
    pub(crate) helped: BTreeSet<HostNumber>,
    /// It, until its conductor has it.
    spec: Option<JobSpec>,
}

impl OwnJob {
    /// The own job of a machine that begins at this time.
    ///
    /// # Errors
    /// The kernel's error: it has no identity.
    pub(crate) fn new(machine: &MachineName, now: Duration) -> io::Result<Self> {
        let job = JobId(u64::from_ne_bytes(random::bytes()?));
        let settings = figures::settled(&[0; SETTINGS_WORDS], &[OwnFigures::here()]);
        let spec = JobSpec::of_guests(job, machine.to_string(), settings);
        let (processes, helped) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { job, began: now, processes, helped, spec: Some(spec) })
    }

    /// Takes it, once.
    pub(crate) fn take_spec(&mut self) -> Option<JobSpec> {
        self.spec.take()
    }

    /// Whether a process is in it.
    pub(crate) fn has_processes(&self) -> bool {
        self.processes.values().any(|processes| *processes > 0)
    }

    /// Forgets the processes of a host that is gone, and its helper.
    pub(crate) fn lose(&mut self, host: HostNumber) {
        self.processes.remove(&host);
        self.helped.remove(&host);
    }

    /// The processes on a host.
    pub(crate) fn processes_on(&self, host: HostNumber) -> u32 {
        self.processes.get(&host).copied().unwrap_or(0)
    }
}
