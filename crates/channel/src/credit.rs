//! The credit of a receiver that learns how much its network bears.
//!
//! Bytes that are granted and not received lie in the port in front of the receiver, or in sockets. 128 KiB fill a port of
//! 1 Gb/s, and a small port holds them. A faster network carries them before the next grants have come, and then it stands
//! still. So the credit is doubled while it is needed, more than 1 Gb/s come ([`FAST`]), the credit is carried within
//! [`SHORT`], and nothing is lost.
//!
//! When something was lost, or when the credit took longer than [`LONG`], it is halved, but never below its beginning. Then
//! it does not grow for a while. That while doubles with each fall, until the credit has passed the height from which it
//! fell. So a port that is fast and small loses packets more and more rarely.
//!
//! An *epoch* is the time in which the credit is received, or 256 KiB if it is less, while messages come by grants.

use std::time::Duration;

use crate::grants::{CREDIT_BYTES, GrantLimits};

/// The most bytes of a credit that has grown.
pub const CREDIT_BYTES_MOST: u64 = 8 << 20;
/// No port of 1 Gb/s carries so many bytes in a second, however its last epoch is cut. Below, the credit does not grow.
pub const FAST: u64 = 160_000_000;
/// A credit that is carried in a longer time does not grow.
pub const SHORT: Duration = Duration::from_millis(4);
/// A credit that is carried in a longer time is halved.
pub const LONG: Duration = Duration::from_millis(16);
/// An epoch has so many bytes at least, as messages come in parts.
const EPOCH_BYTES_LEAST: u64 = 2 * CREDIT_BYTES;
/// After a fall the credit does not grow for so many epochs.
const PAUSE_LEAST: u32 = 8;
const PAUSE_MOST: u32 = 4_096;

/// The counts of an epoch so far.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    bytes: u64,
    /// The time before `since` in which messages came by grants.
    time: Duration,
    /// Since when messages come by grants, if they do.
    since: Option<Duration>,
    /// Some message waited for credit.
    is_needed: bool,
}

/// A credit that grows.
#[derive(Clone, Debug)]
pub struct GrowingCredit {
    bytes: u64,
    epoch: Epoch,
    /// The credit before the last fall.
    fell_from: u64,
    /// The epochs without growth after the next fall, and those that are left of the last one.
    pause: u32,
    rest: u32,
    /// This epoch is the first one after a fall.
    has_fallen: bool,
}

impl Default for GrowingCredit {
    fn default() -> Self {
        Self {
            bytes: CREDIT_BYTES,
            epoch: Epoch::default(),
            fell_from: u64::MAX,
            pause: PAUSE_LEAST,
            rest: 0,
            has_fallen: false,
        }
    }
}

impl GrowingCredit {
    /// The limits of grants at this moment.
    #[must_use]
    pub const fn limits(&self) -> GrantLimits {
        GrantLimits::credit(self.bytes)
    }

    /// The first message of a step comes by grants.
    pub const fn begin(&mut self, now: Duration) {
        self.epoch.since = Some(now);
    }

    /// No message comes by grants any more.
    pub fn end(&mut self, now: Duration) {
        self.epoch.time = self.epoch.until(now);
        self.epoch.since = None;
    }

    /// Counts bytes of the step, and packets that came out of order meanwhile. `is_needed` says that some message waits for
    /// credit. Returns whether the limits are others now.
    pub fn received(&mut self, bytes: u64, lost: u64, is_needed: bool, now: Duration) -> bool {
        let before = self.bytes;
        self.epoch.bytes += bytes;
        self.epoch.is_needed |= is_needed;
        // What is lost of one flight is one loss.
        if lost > 0 && !self.has_fallen {
            self.fall(now);
        } else if self.epoch.bytes >= self.bytes.max(EPOCH_BYTES_LEAST) {
            self.judge(now);
        }
        self.bytes != before
    }

    /// Draws the consequence of an epoch without loss.
    fn judge(&mut self, now: Duration) {
        let epoch = self.epoch;
        let rate = epoch.bytes as f64 / epoch.until(now).as_secs_f64().max(1e-9);
        let carried = Duration::from_secs_f64(self.bytes as f64 / rate);
        if carried > LONG && self.bytes > CREDIT_BYTES {
            return self.fall(now);
        }
        self.begin_epoch(now);
        self.has_fallen = false;
        if self.bytes >= self.fell_from {
            (self.pause, self.fell_from) = (PAUSE_LEAST, u64::MAX);
        }
        if self.rest > 0 {
            self.rest -= 1;
        } else if epoch.is_needed && rate > FAST as f64 && carried < SHORT {
            self.bytes = (2 * self.bytes).min(CREDIT_BYTES_MOST);
        }
    }

    fn fall(&mut self, now: Duration) {
        self.fell_from = self.bytes;
        self.bytes = (self.bytes / 2).max(CREDIT_BYTES);
        self.rest = self.pause;
        self.pause = (2 * self.pause).min(PAUSE_MOST);
        self.has_fallen = true;
        self.begin_epoch(now);
    }

    fn begin_epoch(&mut self, now: Duration) {
        let since = self.epoch.since.map(|_| now);
        self.epoch = Epoch { since, ..Epoch::default() };
    }
}

impl Epoch {
    /// The time in which messages came by grants.
    fn until(&self, now: Duration) -> Duration {
        self.time + self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: u64 = 12_500_000;
    const QUICK: u64 = 4_000_000_000;

    /// Receives so many bytes at a rate, 16 KiB at a time; a packet is lost while the credit is above `held`.
    fn receive(
        credit: &mut GrowingCredit,
        now: &mut Duration,
        (bytes, rate): (u64, u64),
        held: u64,
    ) -> u32 {
        const PIECE: u64 = 16 << 10;
        let mut losses = 0;
        credit.begin(*now);
        for _ in 0..bytes / PIECE {
            *now += Duration::from_nanos(PIECE * 1_000_000_000 / rate);
            let lost = u64::from(credit.bytes > held);
            losses += lost as u32;
            credit.received(PIECE, lost, true, *now);
        }
        credit.end(*now);
        losses
    }

    #[test]
    fn a_fast_network_has_the_most_credit_and_a_slow_one_the_least() {
        for (rate, bytes) in [
            (SLOW, CREDIT_BYTES),
            (125_000_000, CREDIT_BYTES),
            // 1 MiB is carried within 4 ms, and 2 MiB are not.
            (400_000_000, 2 << 20),
            (QUICK, CREDIT_BYTES_MOST),
        ] {
            let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
            receive(&mut credit, &mut now, (64 << 20, rate), u64::MAX);
            assert_eq!(credit.bytes, bytes, "{rate} bytes a second");
            assert_eq!(credit.limits(), GrantLimits::credit(bytes));
        }
    }

    #[test]
    fn a_port_that_is_fast_and_small_loses_more_and_more_rarely() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        let mut of = || receive(&mut credit, &mut now, (64 << 20, QUICK), CREDIT_BYTES);
        let (first, second, third) = (of(), of(), of());
        assert!(first > 0 && second < first && third < first, "{first}, {second}, {third}");
        assert!(credit.bytes <= 2 * CREDIT_BYTES);
        assert!(credit.pause > 8 * PAUSE_LEAST, "{credit:?}");
    }

    #[test]
    fn losses_of_one_flight_halve_the_credit_once() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        receive(&mut credit, &mut now, (64 << 20, QUICK), u64::MAX);
        for _ in 0..9 {
            credit.received(1_448, 1, true, now);
        }
        assert_eq!(credit.bytes, CREDIT_BYTES_MOST / 2);
    }

    #[test]
    fn a_credit_that_became_too_long_is_halved() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        receive(&mut credit, &mut now, (64 << 20, QUICK), u64::MAX);
        receive(&mut credit, &mut now, (64 << 20, SLOW), u64::MAX);
        assert_eq!(credit.bytes, CREDIT_BYTES);
    }

    #[test]
    fn a_credit_that_nobody_needed_does_not_grow() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        for _ in 0..100 {
            credit.begin(now);
            now += Duration::from_micros(10);
            assert!(!credit.received(CREDIT_BYTES, 0, false, now));
            credit.end(now);
            // The time between two steps does not count.
            now += Duration::from_secs(1);
        }
        assert!(!credit.received(CREDIT_BYTES, 0, true, now));
        assert!(credit.received(CREDIT_BYTES, 0, true, now), "{credit:?}");
    }

    #[test]
    fn a_credit_that_passes_the_height_of_its_fall_is_as_before() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        receive(&mut credit, &mut now, (64 << 20, QUICK), 256 << 10);
        assert!(credit.pause > PAUSE_LEAST);
        receive(&mut credit, &mut now, (512 << 20, QUICK), u64::MAX);
        assert_eq!((credit.bytes, credit.pause), (CREDIT_BYTES_MOST, PAUSE_LEAST));
        // Also one that fell from the greatest height.
        assert!(credit.received(1, 1, true, now));
        receive(&mut credit, &mut now, (512 << 20, QUICK), u64::MAX);
        assert_eq!((credit.bytes, credit.pause), (CREDIT_BYTES_MOST, PAUSE_LEAST));
    }

    /// Receives one whole epoch of a fast network.
    fn epoch(credit: &mut GrowingCredit, now: &mut Duration) {
        *now += Duration::from_micros(100);
        credit.received(credit.bytes.max(EPOCH_BYTES_LEAST), 0, true, *now);
    }

    #[test]
    fn a_credit_rests_after_a_fall_for_twice_as_long_as_after_the_last_one() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        credit.begin(now);
        (0..2).for_each(|_| epoch(&mut credit, &mut now));
        let mut rest = PAUSE_LEAST;
        for _ in 0..12 {
            assert_eq!(credit.bytes, 4 * CREDIT_BYTES);
            assert!(credit.received(1, 1, true, now));
            for _ in 0..rest {
                epoch(&mut credit, &mut now);
                assert_eq!(credit.bytes, 2 * CREDIT_BYTES, "it rests for {rest} epochs");
            }
            epoch(&mut credit, &mut now);
            rest = (2 * rest).min(PAUSE_MOST);
        }
        assert_eq!(rest, PAUSE_MOST);
    }

    #[test]
    fn an_epoch_has_the_bytes_of_a_credit_and_the_least_bytes() {
        let (mut credit, now) = (GrowingCredit::default(), Duration::ZERO);
        credit.begin(now);
        let at = Duration::from_micros(100);
        assert!(!credit.received(EPOCH_BYTES_LEAST - 1, 0, true, at));
        assert!(credit.received(1, 0, false, at), "some message waited in this epoch");
        assert!(credit.received(EPOCH_BYTES_LEAST, 0, true, 2 * at));
        assert!(!credit.received(4 * CREDIT_BYTES - 1, 0, true, 3 * at));
        assert!(credit.received(1, 0, true, 3 * at));
        assert_eq!(credit.bytes, 8 * CREDIT_BYTES);
    }

    #[test]
    fn the_time_of_all_steps_of_an_epoch_counts() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        for step in 0..64 {
            credit.begin(now);
            now += Duration::from_millis(1);
            // 64 MB/s, and the last of four steps alone would be 256 MB/s.
            assert!(!credit.received(EPOCH_BYTES_LEAST / 4, 0, true, now), "step {step}");
            credit.end(now);
        }
    }

    #[test]
    fn a_fall_begins_an_epoch_and_a_rest() {
        let (mut credit, mut now) = (GrowingCredit::default(), Duration::ZERO);
        credit.begin(now);
        assert!(!credit.received(EPOCH_BYTES_LEAST - 1, 0, true, now));
        assert!(!credit.received(1, 1, true, now), "it is never less than at its beginning");
        assert_eq!((credit.bytes, credit.rest), (CREDIT_BYTES, PAUSE_LEAST));
        credit.received(1, 0, true, now);
        assert_eq!(credit.rest, PAUSE_LEAST, "what came before the loss is no part of an epoch");
        let (mut credit, last) = (GrowingCredit::default(), Duration::from_secs(1));
        credit.begin(now);
        (0..2).for_each(|_| epoch(&mut credit, &mut now));
        assert!(credit.received(credit.bytes, 0, true, now + last), "it took too long");
        assert_eq!((credit.bytes, credit.rest), (2 * CREDIT_BYTES, PAUSE_LEAST));
    }
}
