//! How long a call may wait.

use std::time::Duration;

use landeck_engine::deadline_ns;

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// Until it completes.
    Unlimited,
    /// Until a deadline.
    Within {
        /// The deadline, on the system's monotonic clock.
        deadline_ns: u64,
        /// The time from the beginning of the call to the deadline.
        time: Duration,
    },
    /// Not at all.
    Now,
}

impl TimeLimit {
    /// A limit that begins now and ends after `time`; without a time there is none.
    pub fn of(time: Option<Duration>) -> Self {
        match (time, deadline_ns(time)) {
            (Some(time), Some(deadline_ns)) => Self::Within { deadline_ns, time },
            _ => Self::Unlimited,
        }
    }

    /// A limit that begins now and ends after `time`.
    pub fn within(time: Duration) -> Self {
        Self::of(Some(time))
    }

    /// The deadline, if there is one; zero for a call that may not wait.
    #[inline]
    pub fn deadline_ns(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Within { deadline_ns, .. } => Some(deadline_ns),
            Self::Now => Some(0),
        }
    }

    /// The time that the call may take; zero where there is no limit or no wait.
    pub fn time(self) -> Duration {
        match self {
            Self::Within { time, .. } => time,
            Self::Unlimited | Self::Now => Duration::ZERO,
        }
    }
}
