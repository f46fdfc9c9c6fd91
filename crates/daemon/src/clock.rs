//! The clock of a daemon: the time that its host has been up, also asleep. All runs of a daemon have the same.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootClock;

impl BootClock {
    /// The time since the host was started. CLOCK_BOOTTIME, unlike CLOCK_MONOTONIC, goes on while the computer sleeps. Other
    /// hosts do not wait for it either.
    pub(crate) fn now(self) -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        Duration::new(time.tv_sec.max(0).unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}
