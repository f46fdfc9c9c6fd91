//! The times that follow from `--host-timeout`, and the punctuality of looks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The arbiter waits this long beyond T, so that clocks of different rates cannot make a lost host's view valid.
const MARGIN: Duration = Duration::from_millis(100);
/// The shortest lease.
const LEASE_MIN: Duration = Duration::from_secs(10);
/// The arbiter waits this long beyond the lease before it calls a host gone.
const GONE_MARGIN: Duration = Duration::from_secs(1);
/// A connection is not called silent earlier: a packet that was lost is sent again after 200 ms, 400 ms and so on.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// Heartbeats in a host's timeout.
const BEATS: u32 = 10;

/// The times of the hosts of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTiming {
    timeout: Duration,
}

impl HostTiming {
    /// The shortest host timeout that is supported.
    pub const TIMEOUT_MIN: Duration = Duration::from_millis(500);

    /// Creates the times for T, the host timeout. A shorter one than [`Self::TIMEOUT_MIN`] counts as that.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { timeout: timeout.max(Self::TIMEOUT_MIN) }
    }

    /// T: a host's view is valid for this long after the heartbeat that the arbiter echoes.
    #[must_use]
    pub const fn timeout(self) -> Duration {
        self.timeout
    }

    /// The time between two heartbeats of one side. A driver looks at least as often.
    #[must_use]
    pub fn interval(self) -> Duration {
        self.timeout / BEATS
    }

    /// A connection on which bytes wait and none is acknowledged for so long is broken, and another one goes on. It is less
    /// than T, so that the job goes on before a host that is silent as well would be called lost.
    #[must_use]
    pub fn silence(self) -> Duration {
        (self.timeout * 3 / 4).max(SILENCE_MIN)
    }

    /// L: a host ends its part of the job this long after the heartbeat that the arbiter echoed last.
    #[must_use]
    pub fn lease(self) -> Duration {
        LEASE_MIN.max(3 * self.timeout)
    }

    /// The arbiter doubts that a host lives from this long after it last renewed the host's view. While it does, a broken
    /// connection to the host ends no job.
    #[must_use]
    pub fn doubted_after(self) -> Duration {
        self.timeout / 2
    }

    /// The arbiter calls a host lost this long after it last renewed the host's view.
    #[must_use]
    pub fn lost_after(self) -> Duration {
        self.timeout + MARGIN
    }

    /// The arbiter calls a lost host gone this long after it last renewed the host's view.
    #[must_use]
    pub fn gone_after(self) -> Duration {
        self.lease() + GONE_MARGIN
    }
}

/// The looks of a driver, which judge others only while they are punctual.
///
/// A driver that was stopped has messages in its sockets that it has not read. So it judges nobody before it has
/// drained its sockets and looked punctually for a whole T.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Looks {
    last: Duration,
    punctual_since: Duration,
}

impl Looks {
    /// Looks begin now.
    pub(crate) const fn new(now: Duration) -> Self {
        Self { last: now, punctual_since: now }
    }

    /// Looks go on now that somebody else has begun, who was punctual since then.
    pub(crate) const fn resumed(punctual_since: Duration, now: Duration) -> Self {
        Self { last: now, punctual_since }
    }

    /// Records a look. It is late if more than two intervals have passed since the one before.
    pub(crate) fn look(&mut self, now: Duration, drained: bool, timing: HostTiming) {
        let is_late = now.saturating_sub(self.last) > 2 * timing.interval();
        if is_late || !drained {
            self.punctual_since = now;
        }
        self.last = now;
    }

    /// The time of the next punctual look.
    pub(crate) fn due(&self, timing: HostTiming) -> Duration {
        self.last + timing.interval()
    }

    /// Whether all looks of the last T were punctual.
    pub(crate) fn may_judge(&self, timing: HostTiming) -> bool {
        self.last.saturating_sub(self.punctual_since) >= timing.timeout()
    }

    /// The first moment at which a punctual driver may judge.
    pub(crate) fn judges_from(&self, timing: HostTiming) -> Duration {
        self.punctual_since + timing.timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_is_three_timeouts_and_ten_seconds_at_least() {
        let times = |ms| {
            let timing = HostTiming::new(Duration::from_millis(ms));
            [
                timing.timeout(),
                timing.interval(),
                timing.lease(),
                timing.lost_after(),
                timing.gone_after(),
            ]
            .map(|time| time.as_millis())
        };
        assert_eq!(times(3_000), [3_000, 300, 10_000, 3_100, 11_000]);
        assert_eq!(times(60_000), [60_000, 6_000, 180_000, 60_100, 181_000]);
        assert_eq!(times(1), times(500));
    }

    #[test]
    fn a_late_look_and_one_with_full_sockets_begin_a_new_timeout() {
        let timing = HostTiming::new(Duration::from_secs(1));
        let at = Duration::from_millis;
        let mut looks = Looks::new(at(0));
        for now in (100..=1_000).step_by(100) {
            assert!(!looks.may_judge(timing));
            looks.look(at(now), true, timing);
        }
        assert!(looks.may_judge(timing));
        looks.look(at(1_201), true, timing);
        assert!(!looks.may_judge(timing), "more than two intervals late");
        assert_eq!(looks.judges_from(timing), at(2_201));
        (13..=22).for_each(|tenth| looks.look(at(tenth * 100 + 1), true, timing));
        assert!(looks.may_judge(timing));
        looks.look(at(2_300), false, timing);
        assert!(!looks.may_judge(timing), "its sockets are not drained");
    }
}
