//! The result of a run, and its progress.

use crate::history::History;
use crate::time::Time;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct SimulationReport {
    /// The time from the first call to the last return of each round, among the members that returned.
    pub spans_ps: Vec<u64>,
    /// Calls of each member in a round.
    pub calls: u32,
    /// The outcome of each member.
    pub outcomes: Vec<Outcome>,
    /// Messages that were sent.
    pub messages: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// The most messages that were under way or unreceived at one time.
    pub most_in_flight: u32,
    /// The total time for which messages queued at cards and switches.
    pub waited_ps: u64,
    /// Events of the run.
    pub events: u64,
    /// A hash of all events; equal for equal runs.
    pub hash: u64,
    /// The history, if the setting asks for one.
    pub history: History,
}

/// The outcome of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It finished at this moment.
    Done(Time),
    /// It ended before it was done.
    Died(Time),
    /// It needed a member that ended: its call returned `PeerFailed`.
    Failed {
        /// When its call returned.
        at: Time,
        /// When it heard of the death.
        heard: Time,
        /// The member that ended.
        dead: u32,
    },
    /// It waits forever.
    Never,
}

impl SimulationReport {
    /// The time from the first call to the last return, among the members that returned: the mean of all calls, and
    /// the median of all rounds.
    pub fn time(&self) -> Time {
        let mut spans_ps = self.spans_ps.clone();
        spans_ps.sort_unstable();
        let median_ps = spans_ps.get(spans_ps.len() / 2).copied().unwrap_or(0);
        Time::from_ps(median_ps / u64::from(self.calls.max(1)))
    }

    /// The members that did not finish.
    pub fn left(&self) -> Vec<u32> {
        let is_left = |outcome: &Outcome| !matches!(outcome, Outcome::Done(_));
        let numbered = (0..).zip(&self.outcomes);
        numbered.filter_map(|(member, outcome)| is_left(outcome).then_some(member)).collect()
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationProgress {
    /// Work that is done.
    pub done: u64,
    /// All work. It changes after the plans are made, since their number of steps is unknown before.
    pub all: u64,
}
