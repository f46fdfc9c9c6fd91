//! A run: all members of a group do an operation, each by its own plan, walked by the product's
//! executor; what arrives is matched by the kernel's matching.
//!
//! | what | by |
//! |---|---|
//! | plans | [`landeck_collectives::plans`], as for a real group |
//! | which step may begin | [`landeck_collectives::Execution`] |
//! | which message goes to which receive | `landeck_kernel::matching` |
//! | when | [`crate::time`], `network`, `processors`, `board` |
//!
//! All members call at once, or as [`Calls`] says. The run is over when none has anything left to do.

use landeck_collectives::{Group, Operation, Task, Way};

use crate::fault::Faults;
use crate::history::History;
use crate::platform::Platform;
use crate::stages::Stages;
use crate::time::Time;
use crate::volume::{self, TooMuch};
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

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the first call to the last return of those who returned, of each round.
    pub spans_ps: Vec<u64>,
    /// How often each called in a round.
    pub calls: u32,
    /// What became of each member.
    pub outcomes: Vec<Outcome>,
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

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done then.
    Done(Time),
    /// It ended before it was done.
    Died(Time),
    /// It cannot be done without a member that ended: its call returns `PeerFailed`.
    Failed {
        /// When it returned.
        at: Time,
        /// When it heard of that.
        heard: Time,
        /// The member that ended.
        dead: u32,
    },
    /// It waits for what never comes.
    Never,
}

impl Report {
    /// From the first call to the last return of those who returned; the mean of all calls, and the
    /// median of all rounds.
    pub fn time(&self) -> Time {
        let mut spans_ps = self.spans_ps.clone();
        spans_ps.sort_unstable();
        let median_ps = spans_ps.get(spans_ps.len() / 2).copied().unwrap_or(0);
        Time::from_ps(median_ps / u64::from(self.calls.max(1)))
    }

    /// The members that are not done: they, or some that they wait for, have ended before.
    pub fn left(&self) -> Vec<u32> {
        let is_left = |outcome: &Outcome| !matches!(outcome, Outcome::Done(_));
        let numbered = (0..).zip(&self.outcomes);
        numbered.filter_map(|(member, outcome)| is_left(outcome).then_some(member)).collect()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// So much is done.
    pub done: u64,
    /// Of so much. While plans are made it is another number than afterwards: how many steps they have is not known yet.
    pub all: u64,
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
    /// So many messages as nobody has time or memory for.
    #[error(
        "{operation} by {way} among {members} members takes about {:.0} million messages and {} of \
         memory; more than an hour, or than 4 GiB, is not begun. About {most} members can be simulated: take \
         fewer, or another architecture (butterfly and knomial send the fewest).",
        *messages as f64 / 1e6,
        gib_text(*gib)
    )]
    TooMany {
        /// The operation.
        operation: Operation,
        /// The way.
        way: String,
        /// Members.
        members: u32,
        /// About so many messages.
        messages: u64,
        /// About so much memory.
        gib: u64,
        /// About so many members can be simulated.
        most: u32,
    },
}

fn gib_text(gib: u64) -> String {
    if gib == 0 { "less than 1 GiB".into() } else { format!("{gib} GiB") }
}

/// Simulates an operation. `tell` is told from time to time how far it is.
///
/// # Errors
/// [`SimulationError`].
pub fn run(
    work: &Work<'_>,
    setting: &Setting<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Report, SimulationError> {
    let hosts = Hosts::of(work, setting)?;
    if let Some(TooMuch { messages, gib, most }) = volume::too_much(work, setting) {
        let (operation, way) = (work.task.operation, work.way.to_string());
        let members = work.group.size();
        return Err(SimulationError::TooMany { operation, way, members, messages, gib, most });
    }
    let sharing = hosts.sharing(work.group.size(), setting.platform);
    let stages = Stages::planned(work, setting.calls, sharing, tell);
    let mut world = World::new(setting, hosts, stages);
    world.run(tell);
    Ok(world.report())
}

/// Which member is on which host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    /// Members on each host, but perhaps on the last.
    pub(crate) per_host: u32,
    /// Hosts with members.
    pub(crate) count: u32,
    /// Whether neighbours are on different hosts.
    is_spread: bool,
}

impl Hosts {
    pub(crate) fn of(work: &Work<'_>, setting: &Setting<'_>) -> Result<Self, SimulationError> {
        let (size, platform) = (work.group.size(), setting.platform);
        let hosts = platform.hosts();
        let per_host = match (setting.placement, &platform.network) {
            (Placement::PerHost(per_host), _) => per_host,
            (Placement::Spread, _) => size.div_ceil(hosts),
            (Placement::Usual, Some(_)) => platform.host.processors,
            (Placement::Usual, None) => size,
        };
        if per_host == 0 {
            return Err(SimulationError::NobodyOnHosts);
        }
        let is_spread = setting.placement == Placement::Spread;
        let count = if is_spread { size.min(hosts) } else { size.div_ceil(per_host) };
        if count > hosts {
            let (needed, platform) = (count, platform.name.clone());
            return Err(SimulationError::NoRoom {
                processes: size,
                per_host,
                needed,
                platform,
                hosts,
            });
        }
        let needs_board =
            matches!(work.way, Way::Board(_)) || matches!(setting.calls, Calls::Measured { .. });
        if count > 1 && needs_board {
            return Err(SimulationError::NoBoard { processes: size, hosts: count });
        }
        Ok(Self { per_host, count, is_spread })
    }

    /// So many members share a processor, of so many in all.
    pub(crate) fn sharing(self, size: u32, platform: &Platform) -> u32 {
        self.per_host.min(size).div_ceil(platform.host.processors.max(1))
    }

    /// The members of a host, of so many.
    pub(crate) fn members(self, host: u32, size: u32) -> impl Iterator<Item = u32> {
        let (first, step, end) = match self.is_spread {
            true => (host, self.count, size),
            false => (host * self.per_host, 1, size.min((host + 1).saturating_mul(self.per_host))),
        };
        (first..end).step_by(step as usize)
    }

    /// The host of a member.
    pub(crate) const fn host(&self, member: u32) -> u32 {
        if self.is_spread { member % self.count } else { member / self.per_host }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_members_say_the_same() {
        for (is_spread, of_host_one) in [(true, vec![1, 5]), (false, vec![2, 3])] {
            let hosts = Hosts { per_host: 2, count: 4, is_spread };
            assert_eq!(hosts.members(1, 7).collect::<Vec<_>>(), of_host_one);
            for host in 0..4 {
                assert!(hosts.members(host, 7).all(|member| hosts.host(member) == host));
            }
        }
    }
}
