//! Detects other users of the processors during a measurement.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::launch;

/// A launch during which others took more than this share of all processors is disturbed.
pub(crate) const DISTURBED_SHARE: f64 = 0.04;

/// Processor time used so far, by everybody and by this process with its children.
#[derive(Clone, Copy, Debug)]
struct Usage {
    at: Instant,
    all_s: f64,
    own_s: f64,
}

impl Usage {
    fn now() -> Usage {
        Usage { at: Instant::now(), all_s: all_s().unwrap_or(0.0), own_s: own_s().unwrap_or(0.0) }
    }

    /// The share of all processors that others have used since `earlier`.
    fn others_share_since(&self, earlier: &Usage) -> f64 {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let capacity_s = self.at.duration_since(earlier.at).as_secs_f64() * processors as f64;
        let others_s = (self.all_s - earlier.all_s) - (self.own_s - earlier.own_s);
        // The kernel counts in ticks: short times may come out below zero.
        if capacity_s > 0.0 { (others_s / capacity_s).max(0.0) } else { 0.0 }
    }
}

/// The share of all processors that others used while something was measured, and its outcome.
pub(crate) fn watched<T>(measure: impl FnOnce() -> T) -> (f64, T) {
    let usage = Usage::now();
    let measured = measure();
    (Usage::now().others_share_since(&usage), measured)
}

/// Repeats a launch while others disturb it and there is time; the least disturbed counts.
pub(crate) fn patiently<T, E>(
    patience: Duration,
    mut once: impl FnMut() -> Result<(f64, T), E>,
) -> Result<T, E> {
    let deadline = Instant::now() + patience;
    wait_for_calm(deadline);
    let (mut share, mut best) = once()?;
    while share > DISTURBED_SHARE && Instant::now() < deadline {
        wait_for_calm(deadline);
        let (again_share, again) = once()?;
        if again_share < share {
            (share, best) = (again_share, again);
        }
    }
    Ok(best)
}

/// Waits until nobody else runs, at most until the deadline.
fn wait_for_calm(deadline: Instant) {
    let mut earlier = Usage::now();
    while Instant::now() < deadline {
        thread::sleep(Duration::from_millis(150));
        let now = Usage::now();
        if now.others_share_since(&earlier) <= DISTURBED_SHARE {
            return;
        }
        earlier = now;
    }
}

/// User, nice, system and what the hypervisor took, of all processors. Interrupts count for nobody: those of a job's
/// own packets would count as others'.
fn all_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    busy_ticks(stat.lines().next()?).map(seconds)
}

fn busy_ticks(line: &str) -> Option<u64> {
    let fields: Vec<u64> = line
        .strip_prefix("cpu ")?
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    Some(
        fields
            .get(..8)?
            .iter()
            .enumerate()
            .filter(|(place, _)| ![3, 4, 5, 6].contains(place))
            .map(|(_, ticks)| ticks)
            .sum(),
    )
}

/// This process and all that it started: those that live, such as the first processes of hosts, and those that their
/// parents have waited for.
fn own_s() -> Option<f64> {
    let own = ticks_of("self")?;
    let others = launch::descendants().into_iter();
    let others = others.filter_map(|pid| ticks_of(&pid.as_raw_nonzero().to_string()));
    Some(seconds(own + others.sum::<u64>()))
}

/// A process and its children that have been waited for.
fn ticks_of(process: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(11).take(4);
    Some(fields.filter_map(|field| field.parse::<u64>().ok()).sum())
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_interrupts_are_not_busy() {
        assert_eq!(busy_ticks("cpu  100 20 30 9999 8888 4 5 6 0 0"), Some(156));
        assert_eq!(busy_ticks("intr 1 2"), None);
    }

    #[test]
    fn own_work_is_not_others() {
        let earlier = Usage { at: Instant::now(), all_s: 10.0, own_s: 4.0 };
        let later = Usage { at: earlier.at + Duration::from_secs(1), all_s: 11.0, own_s: 5.0 };
        assert_eq!(later.others_share_since(&earlier), 0.0);
    }
}
