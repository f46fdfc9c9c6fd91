//! Everything that the words of a machine have said, for a host that has no copy of them yet.

use landeck_wire::word::{HostEntry, LaterProcess, ProcessEnd};
use landeck_wire::{JobId, ProcessId};
use serde::{Deserialize, Serialize};

/// The state of a host, as words say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostStanding {
    /// It takes part.
    Living,
    /// Calls that need its processes fail.
    Lost,
    /// Nothing of it runs any more.
    Gone,
}

/// Everything that the words up to one number have said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the last word.
    pub number: u64,
    /// The newest incarnation of each host.
    pub hosts: Vec<(HostEntry, HostStanding)>,
    /// The processes that have come or returned and take part, each with its kind if a word says that.
    pub came: Vec<(ProcessId, JobId, Option<LaterProcess>)>,
    /// The processes that have ended.
    pub ended: Vec<(ProcessId, JobId, ProcessEnd)>,
    /// The jobs that end, with code and cause.
    pub ending: Vec<(JobId, u8, String)>,
}
