//! The words of the arbiter: everything that all hosts of a job must learn in one order.
//!
//! The arbiter numbers its words from 1. Each host applies them in that order, none twice and none left out. The first
//! word on an incarnation of a process is final, but that it is away.

use serde::{Deserialize, Serialize};

use crate::identity::{HostIncarnation, HostNumber, JobId, ProcessId};

/// A word with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Its number, counted from 1.
    pub number: u64,
    /// Its content.
    pub content: WordContent,
}

/// The content of a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WordContent {
    /// A host belongs to the machine from now on.
    HostJoined(HostEntry),
    /// This host has other addresses from now on.
    HostMoved {
        /// The host.
        host: HostNumber,
        /// Its incarnation.
        incarnation: HostIncarnation,
        /// The addresses at which its daemon listens, best first.
        addresses: Vec<core::net::SocketAddr>,
        /// Its place with these addresses. The arbiter fills it in.
        place: HostPlace,
    },
    /// Calls that need this host's processes fail from now on. The host may still run.
    HostLost {
        /// The host.
        host: HostNumber,
        /// Its incarnation.
        incarnation: HostIncarnation,
        /// The time without an answer, in milliseconds.
        silent_ms: u64,
    },
    /// Nothing of this host runs any more: its names are free, and its processes may be started again elsewhere.
    HostGone {
        /// The host.
        host: HostNumber,
        /// Its incarnation.
        incarnation: HostIncarnation,
    },
    /// A process of a job takes part no more.
    ProcessEnded {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessId,
        /// Its end.
        end: ProcessEnd,
    },
    /// A process that the job did not begin with takes part.
    ProcessCame {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessId,
        /// Its kind.
        kind: LaterProcess,
    },
    /// A process that was away takes part again, as this next incarnation.
    ProcessReturned {
        /// The job.
        job: JobId,
        /// The process, as it is now.
        process: ProcessId,
    },
    /// The job is being ended. Only the first such word of a job counts.
    JobEnds {
        /// The job.
        job: JobId,
        /// The exit code of the job.
        code: u8,
        /// The cause, in a sentence for people.
        cause: String,
    },
    /// Nothing of the job is left on any host, and nobody needs to know about it any more.
    JobOver {
        /// The job.
        job: JobId,
    },
}

/// The kind of a process that its job did not begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaterProcess {
    /// The launcher has started it.
    Started,
    /// It has joined by itself.
    Guest,
    /// It is the helper of a host of the machine, or a thread of it, in the machine's own job: no user has started it.
    Helper,
}

impl LaterProcess {
    /// Whether it has joined by itself.
    #[must_use]
    pub const fn is_guest(self) -> bool {
        !matches!(self, Self::Started)
    }
}

impl WordContent {
    /// The job that it is about, if it is about one.
    #[must_use]
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::ProcessEnded { job, .. }
            | Self::ProcessCame { job, .. }
            | Self::ProcessReturned { job, .. }
            | Self::JobEnds { job, .. }
            | Self::JobOver { job } => Some(*job),
            Self::HostJoined(_)
            | Self::HostMoved { .. }
            | Self::HostLost { .. }
            | Self::HostGone { .. } => None,
        }
    }
}

/// A host as the host table has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// Its number.
    pub host: HostNumber,
    /// The incarnation of its daemon.
    pub incarnation: HostIncarnation,
    /// The name by which its user asked for it.
    pub name: String,
    /// The SHA-256 hash of its daemon's public key.
    pub key: [u8; 32],
    /// The addresses at which its daemon listens, best first.
    pub addresses: Vec<core::net::SocketAddr>,
    /// The cores that its user's processes may use; 0 if they are not known yet.
    pub cores: u16,
    /// Its place in the networks of the machine.
    pub place: HostPlace,
}

/// The place of a host in the networks of its machine, which follows from the machine's description and the host's addresses.
/// A host that no description places is in no network: it is taken to reach all others, and to be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlace {
    /// Its site; empty if it has none.
    pub site: String,
    /// Whether it passes connections on from one of its networks to another.
    pub is_gateway: bool,
    /// Its networks.
    pub networks: Vec<NetworkPlace>,
}

/// The attachment of a host to a network: two hosts with a network in common reach each other there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPlace {
    /// The number of the network in the description.
    pub network: u16,
    /// The addresses of the host in it.
    pub addresses: Vec<core::net::IpAddr>,
    /// The physical links from the host on upwards: its own cable, then those of the switches.
    pub links: Vec<PhysicalLink>,
}

/// A physical link on the way up from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalLink {
    /// The number of the switch that it leads to. `None` if no switch is described.
    pub switch: Option<u16>,
    /// The time that 1 KiB takes on it, in nanoseconds.
    pub ns_per_kib: u32,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessEnd {
    /// It left in good order.
    Left,
    /// It left in good order and runs on: it may come back, as the next incarnation.
    Away,
    /// It ended without a goodbye, with this raw wait status.
    Died {
        /// Its process number on its host.
        pid: u32,
        /// The raw wait status; -1 if only its parent knows it.
        status: i32,
    },
}

impl ProcessEnd {
    /// Whether calls that need the process fail because it died.
    #[must_use]
    pub const fn is_death(self) -> bool {
        matches!(self, Self::Died { .. })
    }

    /// Whether nothing follows on this incarnation.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Away)
    }
}
