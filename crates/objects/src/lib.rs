//! Shared objects of the processes of one host: regions, semaphores and the logs of named groups.
//!
//! Each lies in a segment or in an area of its own ([`landeck_memory::shared_area`]), and stays intact if a process
//! that uses it dies. As there, everything read is checked.
//!
//! | module | what |
//! |---|---|
//! | [`region`] | memory that others put to and get from |
//! | [`semaphore`] | units that processes hold, and the recovery of units whose holder died |
//! | [`group_log`] | the events of a named group, each accepted by one exchange |

// The model checker's build leaves out what it has no models of.
#![cfg_attr(loom, allow(dead_code, unreachable_pub))]

#[cfg(all(debug_assertions, not(loom)))]
pub mod crash_point;
#[cfg(not(loom))]
pub mod group_log;
#[cfg(loom)]
mod group_log {
    mod lap;

    fn stored() {}
}
#[cfg(not(loom))]
pub mod region;
#[cfg(not(loom))]
pub mod semaphore;
