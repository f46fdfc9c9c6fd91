//! Errors of the simulator.

use landeck_collectives::Operation;

/// A run that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The platform has too few hosts.
    #[error(
        "{processes} processes, {per_host} on each host, need {needed} hosts; platform {platform} has \
         {hosts}. Take fewer processes, more on each host, or a platform with more hosts."
    )]
    NoRoom {
        /// Processes.
        processes: u32,
        /// Processes on each host.
        per_host: u32,
        /// Hosts that are needed.
        needed: u32,
        /// The platform.
        platform: String,
        /// Its hosts.
        hosts: u32,
    },
    /// No processes on a host.
    #[error("0 processes on a host are none; give 1 or more")]
    NobodyOnHosts,
    /// A board cannot be shared by several hosts.
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
    /// The run would take too long or too much memory.
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
        /// The architecture.
        way: String,
        /// Members.
        members: u32,
        /// Messages of the run, about.
        messages: u64,
        /// Memory for the run in GiB, about.
        gib: u64,
        /// The most members that can be simulated, about.
        most: u32,
    },
}

fn gib_text(gib: u64) -> String {
    if gib == 0 { "less than 1 GiB".into() } else { format!("{gib} GiB") }
}
