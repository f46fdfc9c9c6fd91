//! The hosts of a job: how users and allocations name them, and which rank runs on which.
//!
//! This crate is pure: the environment and the contents of files are arguments.
//!
//! | module | content |
//! |---|---|
//! | [`host_list`] | hosts with their slots, from a command line or a hostfile |
//! | [`allocation`] | hosts from the environment of Slurm, PBS, LSF and SGE |
//! | [`placement`] | the host and the slot of each rank |

#![forbid(unsafe_code)]

pub mod allocation;
pub mod host_list;
pub mod placement;

pub use allocation::{Allocation, AllocationError, BatchSystem};
pub use host_list::{HOSTS_MAX, HostListError, HostRequest, SLOTS_EACH_MAX};
pub use placement::{HostPlacement, HostPlacementError, RANKS_MAX, RankPlace, RanksBy};
