//! The input of a run: an operation, the members, the platform and the faults.

use landeck_collectives::{Group, Task, Way};

use crate::fault::Faults;
use crate::platform::Platform;

/// An operation to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The operation.
    pub task: &'a Task,
    /// Its architecture.
    pub way: &'a Way,
    /// The members.
    pub group: &'a Group,
    /// In gather, scatter, allgather and alltoall the bytes that one member has for another or for all; else all
    /// bytes of a member.
    pub bytes: u64,
}

/// Platform, placement, calls and faults of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The hosts and their network.
    pub platform: &'a Platform,
    /// The placement of the members on hosts.
    pub placement: Placement,
    /// When the members call.
    pub calls: Calls,
    /// The faults.
    pub faults: &'a Faults,
    /// Whether the run keeps a history, for the critical path.
    pub keeps_history: bool,
}

impl<'a> Setting<'a> {
    /// The usual setting: all members call once at the beginning, without faults.
    pub const fn new(platform: &'a Platform, faults: &'a Faults) -> Self {
        let (placement, calls) = (Placement::Usual, Calls::AtOnce);
        Self { platform, placement, calls, faults, keeps_history: false }
    }
}

/// The placement of members on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In order of rank, one for each processor of a host; all on the host where there is no network.
    Usual,
    /// In order of rank, this many on each host.
    PerHost(u32),
    /// One on each host in turn.
    Spread,
}

/// When the members call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// All members call once, at the beginning.
    AtOnce,
    /// Each member calls this often without pause; the time is the mean.
    Repeated(u32),
    /// Each member calls this often, and calls a barrier by butterfly behind each of these calls. The time is the mean, with
    /// that of the barrier: a root does not run ahead.
    BeforeBarriers(u32),
    /// The calls of a measurement over the board of one host: each round is a barrier, some calls, and two reductions
    /// to member 0. The time is the median of the rounds' means.
    Measured {
        /// Rounds.
        rounds: u32,
        /// Calls of each round.
        calls: u32,
    },
}
