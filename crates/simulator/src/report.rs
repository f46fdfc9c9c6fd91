//! What came of a run, and how far one is.

use crate::history::History;
use crate::time::Time;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the first call to the last return of those who returned, of each round.
    pub spans_ps: Vec<u64>,
    /// How often each called in a round.
    pub calls: u32,
    /// What became of each member.
    pub outcomes: Vec<Outcome>,
    /// Messages that were sent.
    pub messages: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Messages that were on their way, or waiting for their receiver, at most at once.
    pub most_in_flight: u32,
    /// How long messages waited behind others at cards and switches, all together.
    pub waited_ps: u64,
    /// Events of the run.
    pub events: u64,
    /// A number that all that happened goes into: equal for equal runs.
    pub hash: u64,
    /// What was done when.
    pub history: History,
}

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done then.
    Done(Time),
    /// It ended before it was done.
    Died(Time),
    /// It cannot be done without a member that ended: its call returns `PeerFailed`.
    Failed {
        /// When it returned.
        at: Time,
        /// When it heard of that.
        heard: Time,
        /// The member that ended.
        dead: u32,
    },
    /// It waits for what never comes.
    Never,
}

impl Report {
    /// From the first call to the last return of those who returned; the mean of all calls, and the
    /// median of all rounds.
    pub fn time(&self) -> Time {
        let mut spans_ps = self.spans_ps.clone();
        spans_ps.sort_unstable();
        let median_ps = spans_ps.get(spans_ps.len() / 2).copied().unwrap_or(0);
        Time::from_ps(median_ps / u64::from(self.calls.max(1)))
    }

    /// The members that are not done: they, or some that they wait for, have ended before.
    pub fn left(&self) -> Vec<u32> {
        let is_left = |outcome: &Outcome| !matches!(outcome, Outcome::Done(_));
        let numbered = (0..).zip(&self.outcomes);
        numbered.filter_map(|(member, outcome)| is_left(outcome).then_some(member)).collect()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// So much is done.
    pub done: u64,
    /// Of so much. While plans are made it is another number than afterwards: how many steps they have is not known yet.
    pub all: u64,
}
