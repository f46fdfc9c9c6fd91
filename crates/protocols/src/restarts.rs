//! Decides which of a job's processes are restarted after a failure, how often, and when.
//!
//! Each process may be restarted so many times in the life of the job. The first restart comes [`DELAY`] after the
//! failure. Each further one of the same process waits twice as long as the one before, at most [`DELAY_MAX`], so a
//! program that fails at once does not burn processor time. If a process had run for longer than [`DELAY_MAX`], the
//! delay begins with [`DELAY`] again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The time between a failure and the first restart.
pub const DELAY: Duration = Duration::from_millis(100);
/// The longest time between a failure and a restart.
pub const DELAY_MAX: Duration = Duration::from_secs(10);

/// A restart that is due later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The number of the restart of this process: 1 is the first.
    pub number: u32,
    /// The time after the failure.
    pub after: Duration,
}

/// The process that a restarted one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplacedProcess {
    /// The rank as which the process was first started.
    pub rank: u32,
    /// The number of the restart: 1 is the first.
    pub number: u32,
}

/// The state of the restarts of a job's processes, which are identified by their ranks.
#[derive(Clone, Debug)]
pub(crate) struct Restarts {
    /// The largest number of restarts of each.
    most: u32,
    processes: Vec<Process>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// The number of its last restart, done or due.
    number: u32,
    /// When it began to run.
    began: Duration,
    /// The delay of its last restart.
    delay: Duration,
    /// When it is to be started.
    due: Option<Duration>,
}

impl Restarts {
    /// Creates the restarts of so many processes, each with at most `most` restarts.
    pub(crate) fn new(most: u32, processes: u32) -> Self {
        Self { most, processes: vec![Process::default(); processes as usize] }
    }

    /// Records that a process runs.
    pub(crate) fn began(&mut self, rank: u32, now: Duration) {
        if let Some(process) = self.processes.get_mut(rank as usize) {
            process.began = now;
        }
    }

    /// Records that a process failed. Returns `None` if it is not restarted.
    pub(crate) fn failed(&mut self, rank: u32, now: Duration) -> Option<Restart> {
        let most = self.most;
        let process = self.processes.get_mut(rank as usize).filter(|of| of.number < most)?;
        let is_loop = process.number > 0 && now.saturating_sub(process.began) <= DELAY_MAX;
        process.delay = if is_loop { (2 * process.delay).min(DELAY_MAX) } else { DELAY };
        process.number += 1;
        process.due = Some(now + process.delay);
        Some(Restart { number: process.number, after: process.delay })
    }

    /// The number of the last restart ordered for the process; 0 is none.
    pub(crate) fn number(&self, rank: u32) -> u32 {
        self.processes.get(rank as usize).map_or(0, |process| process.number)
    }

    /// Takes a process whose restart is due, if there is one.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<u32> {
        if self.most == 0 {
            return None;
        }
        let is_due = |process: &Process| process.due.is_some_and(|due| due <= now);
        let rank = self.processes.iter().position(is_due)?;
        self.processes[rank].due = None;
        Some(rank as u32)
    }

    /// Postpones a restart for which there is no slot.
    pub(crate) fn postpone(&mut self, rank: u32, now: Duration) {
        if let Some(process) = self.processes.get_mut(rank as usize) {
            process.due = Some(now + DELAY_MAX);
        }
    }

    /// When the next restart is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        if self.most == 0 {
            return None;
        }
        self.processes.iter().filter_map(|process| process.due).min()
    }

    /// Cancels all restarts, from now on.
    pub(crate) fn stop(&mut self) {
        self.most = 0;
        self.processes.iter_mut().for_each(|process| process.due = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_process_that_fails_at_once_waits_longer_each_time_and_gives_up() {
        let mut restarts = Restarts::new(9, 2);
        let mut now = SECOND;
        let mut delays = Vec::new();
        while let Some(restart) = restarts.failed(1, now) {
            assert_eq!(restarts.next_due(), Some(now + restart.after));
            assert_eq!(restarts.take_due(now), None);
            now += restart.after;
            assert_eq!((restarts.take_due(now), restarts.take_due(now)), (Some(1), None));
            restarts.began(1, now);
            delays.push(restart.after.as_millis());
        }
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!((restarts.number(0), restarts.number(1)), (0, 9));
    }

    #[test]
    fn a_process_that_ran_for_long_is_in_no_loop() {
        let mut restarts = Restarts::new(9, 1);
        (0..4).for_each(|_| assert!(restarts.failed(0, SECOND).is_some()));
        restarts.began(0, SECOND);
        let still = restarts.clone().failed(0, SECOND + DELAY_MAX);
        assert_eq!(still.map(|restart| restart.after), Some(16 * DELAY), "not longer than that");
        let after = SECOND + DELAY_MAX + Duration::from_nanos(1);
        assert_eq!(restarts.failed(0, after), Some(Restart { number: 5, after: DELAY }));
    }

    #[test]
    fn one_without_a_place_comes_later_and_after_a_stop_nobody_comes() {
        let mut restarts = Restarts::new(9, 1);
        restarts.failed(0, SECOND);
        assert_eq!(restarts.take_due(2 * SECOND), Some(0));
        restarts.postpone(0, 2 * SECOND);
        assert_eq!(restarts.next_due(), Some(2 * SECOND + DELAY_MAX));
        restarts.stop();
        assert_eq!((restarts.next_due(), restarts.failed(0, SECOND)), (None, None));
        assert_eq!(restarts.failed(7, SECOND), None, "there is no such rank");
    }
}
