//! Why there is no run.

use landeck_collectives::Operation;

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
