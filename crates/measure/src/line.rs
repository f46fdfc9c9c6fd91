//! A cache line that two processors write in turn. The loops poll without a pause, because polling is what they measure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::clock::since_ps;
use crate::processors::on_two;

const ROUND_TRIPS: u64 = 10_000;

/// A value alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct OwnLine<T>(pub T);

/// Polls until it is so. A pause would be measured too.
pub fn poll_until(is_so: impl Fn() -> bool) {
    while !is_so() {}
}

/// Half of the round trip of a line between two processors: the least of so many batches, since disturbances only make it
/// longer.
pub fn half_round_trip_ps(processors: [usize; 2], batches: usize) -> f64 {
    crate::least((0..batches).map(|_| batch_ps(processors).unwrap_or(f64::MAX)))
}

fn batch_ps(processors: [usize; 2]) -> Option<f64> {
    let (ping, pong) = <(OwnLine<AtomicU64>, OwnLine<AtomicU64>)>::default();
    let wait_for = |line: &OwnLine<AtomicU64>, turn| {
        poll_until(|| line.0.load(Ordering::Acquire) == turn);
    };
    let exchange = |turn| {
        ping.0.store(turn, Ordering::Release);
        wait_for(&pong, turn);
    };
    let timed = || {
        exchange(1); // it waits for the other thread to start
        let start = Instant::now();
        (2..=ROUND_TRIPS).for_each(exchange);
        since_ps(start) / (ROUND_TRIPS - 1) as f64 / 2.0
    };
    on_two(processors, timed, || {
        for turn in 1..=ROUND_TRIPS {
            wait_for(&ping, turn);
            pong.0.store(turn, Ordering::Release);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processors::first_two;
    use landeck_testing::Watchdog;
    use std::time::Duration;

    #[test]
    fn a_line_takes_some_time_where_there_are_two_processors() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        assert!(first_two().is_none_or(|two| half_round_trip_ps(two, 7) > 1.0));
    }
}
