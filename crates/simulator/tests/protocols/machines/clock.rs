//! The boot-time clock of a simulated host.

use std::time::Duration;

/// A clock with a rate and an offset of its own. It stands still while its host is paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostClock {
    /// A moment of the simulation, and what the clock showed then.
    base: (Duration, Duration),
    parts_per_million: u32,
    is_fast: bool,
    is_paused: bool,
}

impl HostClock {
    /// A clock that shows `offset` now, and is fast or slow by so many millionths.
    pub(super) const fn new(
        now: Duration,
        offset: Duration,
        parts_per_million: u32,
        is_fast: bool,
    ) -> Self {
        Self { base: (now, offset), parts_per_million, is_fast, is_paused: false }
    }

    /// The time that the clock shows.
    pub(super) fn shows(&self, now: Duration) -> Duration {
        let (then, shown) = self.base;
        if self.is_paused {
            return shown;
        }
        let elapsed = now.saturating_sub(then).as_nanos() as u64;
        let deviation =
            (u128::from(elapsed) * u128::from(self.parts_per_million) / 1_000_000) as u64;
        let local = if self.is_fast { elapsed + deviation } else { elapsed - deviation };
        shown + Duration::from_nanos(local)
    }

    /// The moment of the simulation at which the clock shows a time, as far as it is not paused.
    pub(super) fn moment_of(&self, shown: Duration, now: Duration) -> Duration {
        let wait = shown.saturating_sub(self.shows(now)).as_nanos() as u64;
        let deviation = (u128::from(wait) * u128::from(self.parts_per_million) / 1_000_000) as u64;
        // One microsecond beyond: a rounded wait must not end before its time.
        let real = if self.is_fast { wait } else { wait + deviation + deviation / 1_000 };
        now + Duration::from_nanos(real + 1_000)
    }

    pub(super) fn pause(&mut self, now: Duration) {
        self.base = (now, self.shows(now));
        self.is_paused = true;
    }

    pub(super) fn resume(&mut self, now: Duration) {
        self.base = (now, self.base.1);
        self.is_paused = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_at_its_rate_and_stands_still_in_a_pause() {
        let at = Duration::from_secs;
        let mut clock = HostClock::new(at(0), at(100), 1_000, true);
        assert_eq!(clock.shows(at(10)), at(110) + Duration::from_millis(10));
        clock.pause(at(10));
        clock.resume(at(50));
        assert_eq!(clock.shows(at(50)), at(110) + Duration::from_millis(10));
        for is_fast in [false, true] {
            let clock = HostClock::new(at(0), at(7), 100, is_fast);
            let moment = clock.moment_of(at(1_000), at(3));
            assert!(clock.shows(moment) >= at(1_000));
            assert!(clock.shows(moment) < at(1_000) + Duration::from_millis(200));
        }
    }
}
