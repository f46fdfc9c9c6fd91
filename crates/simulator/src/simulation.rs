//! A run: all members of a group do an operation, each by its own plan, walked by the product's
//! executor; what arrives is matched by the kernel's matching.
//!
//! | what | by |
//! |---|---|
//! | plans | [`landeck_collectives::plans`], as for a real group |
//! | which step may begin | [`landeck_collectives::Execution`] |
//! | which message goes to which receive | `landeck_kernel::matching` |
//! | when | [`crate::time`], [`crate::network`], [`crate::processors`], [`crate::board`] |
//!
//! All members call at once, at the beginning of time. The run is over when none has anything left
//! to do.

use landeck_collectives::{Group, Operation, Task, Walk, Way};

use crate::fault::Faults;
use crate::history::History;
use crate::platform::Platform;
use crate::time::Time;
use crate::world::World;

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

/// Where, and what goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The hosts and their network.
    pub platform: &'a Platform,
    /// Processes on a host, one after the other. None: as many as it has processors; all of them
    /// where there is no network.
    pub per_host: Option<u32>,
    /// What goes wrong.
    pub faults: &'a Faults,
    /// Whether what was done is written down, for the critical path.
    pub keeps_history: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// When each member was done; none for those that never were.
    pub ends: Vec<Option<Time>>,
    /// Messages that were sent.
    pub messages: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Messages that were on their way, or waiting for their receiver, at most at once.
    pub most_in_flight: u32,
    /// How long messages waited behind others at cards and switches, all together.
    pub waited_ps: u64,
    /// Events of the run.
    pub events: u64,
    /// A number that all that happened goes into: equal for equal runs.
    pub hash: u64,
    /// What was done when.
    pub history: History,
}

impl Report {
    /// From the first call to the last return of those who returned.
    pub fn time(&self) -> Time {
        self.ends.iter().flatten().copied().max().unwrap_or(Time::ZERO)
    }

    /// The members that are not done: they, or some that they wait for, have ended before.
    pub fn left(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.ends);
        numbered.filter_map(|(member, end)| end.is_none().then_some(member)).collect()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Steps that are over.
    pub done: u64,
    /// All steps of all plans.
    pub steps: u64,
}

/// Why there is no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// More processes than there is room for.
    #[error(
        "{processes} processes, {per_host} on each host, need {needed} hosts; platform {platform} has \
         {hosts}. Take fewer processes, more on each host, or a platform with more hosts."
    )]
    NoRoom {
        /// Processes.
        processes: u32,
        /// Of them on a host.
        per_host: u32,
        /// Hosts for them.
        needed: u32,
        /// The platform.
        platform: String,
        /// Its hosts.
        hosts: u32,
    },
    /// No host has no processes.
    #[error("0 processes on a host are none; give 1 or more")]
    NobodyOnHosts,
    /// A board is memory that all share.
    #[error(
        "the board is memory that all members share, and these {processes} are on {hosts} hosts. \
         Choose an architecture of messages, or put all on one host."
    )]
    NoBoard {
        /// Processes.
        processes: u32,
        /// Their hosts.
        hosts: u32,
    },
    /// Where everybody has a block for everybody, or the data are cut into a part for each, the
    /// plans grow with the square of the members.
    #[error(
        "{operation} by {way} divides the data among {members} members: all their plans together \
         grow with the square of that, so at most {most} can be simulated. Take fewer, or a way that \
         does not divide."
    )]
    TooMany {
        /// The operation.
        operation: Operation,
        /// The way.
        way: String,
        /// Members.
        members: u32,
        /// The most.
        most: u32,
    },
}

/// Members at most where plans grow with the square of their number.
pub const DIVIDED_MAX: u32 = 1024;

/// Simulates an operation. `tell` is told from time to time how far it is.
///
/// # Errors
/// [`SimulationError`].
pub fn run(
    work: &Work<'_>,
    setting: &Setting<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Report, SimulationError> {
    let size = work.group.size();
    let hosts = place(work, setting)?;
    if size > DIVIDED_MAX && is_divided(work) {
        return Err(SimulationError::TooMany {
            operation: work.task.operation,
            way: work.way.to_string(),
            members: size,
            most: DIVIDED_MAX,
        });
    }
    let plans = landeck_collectives::plans(work.task, work.way, work.group);
    let steps = plans.iter().map(|plan| plan.steps.len() as u64).sum();
    let walks = plans.into_iter().map(Walk::new).collect();
    let mut world = World::new(work, setting, hosts, walks);
    world.run(|done| tell(Progress { done, steps }));
    Ok(world.report())
}

/// Processes on each host.
fn place(work: &Work<'_>, setting: &Setting<'_>) -> Result<u32, SimulationError> {
    let (size, platform) = (work.group.size(), setting.platform);
    let usual = match platform.network {
        Some(_) => platform.host.processors,
        None => size,
    };
    let per_host = setting.per_host.unwrap_or(usual);
    if per_host == 0 {
        return Err(SimulationError::NobodyOnHosts);
    }
    let (needed, hosts) = (size.div_ceil(per_host), platform.hosts());
    if needed > hosts {
        let platform = platform.name.clone();
        return Err(SimulationError::NoRoom { processes: size, per_host, needed, platform, hosts });
    }
    if needed > 1 && matches!(work.way, Way::Board(_)) {
        return Err(SimulationError::NoBoard { processes: size, hosts: needed });
    }
    Ok(per_host)
}

fn is_divided(work: &Work<'_>) -> bool {
    let divides = matches!(
        work.task.operation,
        Operation::AllGather
            | Operation::AllToAll
            | Operation::ReduceScatter
            | Operation::Gather
            | Operation::Scatter
    );
    divides || matches!(work.way, Way::Messages { split: true, .. })
}
