//! The clock of a daemon: the time that its host has been up, also asleep, since the daemon began.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootClock {
    began: Duration,
}

impl BootClock {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        Self { began: since_boot() }
    }

    /// The time since the start.
    pub(crate) fn now(self) -> Duration {
        since_boot().saturating_sub(self.began)
    }
}

/// CLOCK_BOOTTIME, unlike CLOCK_MONOTONIC, goes on while the computer sleeps. Other hosts do not wait for it either.
fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.max(0).unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
