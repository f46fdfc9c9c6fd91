//! What a run is of: an operation, where, when, and what goes wrong.

use landeck_collectives::{Group, Task, Way};

use crate::fault::Faults;
use crate::platform::Platform;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The operation.
    pub task: &'a Task,
    /// How.
    pub way: &'a Way,
    /// By whom.
    pub group: &'a Group,
    /// Bytes of what one member has for another or for all (gather, scatter, allgather, alltoall),
    /// else of all data of one member.
    pub bytes: u64,
}

/// Where and when, and what goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The hosts and their network.
    pub platform: &'a Platform,
    /// Which process is where.
    pub placement: Placement,
    /// When they call.
    pub calls: Calls,
    /// What goes wrong.
    pub faults: &'a Faults,
    /// Whether what was done is written down, for the critical path.
    pub keeps_history: bool,
}

impl<'a> Setting<'a> {
    /// A platform as it is usual: all call once and at once, and nothing goes wrong.
    pub const fn new(platform: &'a Platform, faults: &'a Faults) -> Self {
        let (placement, calls) = (Placement::Usual, Calls::AtOnce);
        Self { platform, placement, calls, faults, keeps_history: false }
    }
}

/// Which process is where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One after the other, as many on a host as it has processors; all on it where there is no
    /// network.
    Usual,
    /// One after the other, so many on each host.
    PerHost(u32),
    /// One on each host in turn.
    Spread,
}

/// When the members call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// All at the beginning.
    AtOnce,
    /// So often, one call after the other; the time is the mean.
    Repeated(u32),
    /// As a measurement does it: a barrier, so many calls, two reductions to member 0, and all that
    /// so often; the time is the median of the rounds' means. Over the board of one host.
    Measured {
        /// How often all that.
        rounds: u32,
        /// Calls of each round.
        calls: u32,
    },
}
