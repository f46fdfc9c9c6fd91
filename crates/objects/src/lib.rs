//! What processes of one host share beside messages and collective operations.
//!
//! Each lies in memory of a segment or in an area of its own ([`landeck_memory::shared_area`]), and stays whole
//! whatever becomes of a process that uses it. As there, everything read is checked.
//!
//! | module | what |
//! |---|---|
//! | [`region`] | memory that others put to and get from |
//! | [`semaphore`] | units that processes hold, and what becomes of those of the dead |
//! | [`group_log`] | what happens to a named group, accepted by one exchange each |

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
