//! The last events of a run, and its failure.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The events that a failure shows.
const SHOWN: usize = 60;

/// The last events of a run.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    last: VecDeque<(Duration, String)>,
    /// A number that depends on everything that happened.
    hash: u64,
}

impl EventLog {
    pub(super) fn note(&mut self, now: Duration, event: String) {
        self.hash = event.bytes().fold(self.hash ^ now.as_nanos() as u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back((now, event));
    }

    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn failure(
        &mut self,
        seed: u64,
        property: &'static str,
        text: String,
    ) -> ProtocolFailure {
        ProtocolFailure { seed, property, text, events: std::mem::take(&mut self.last).into() }
    }
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolFailure {
    /// The seed of the run.
    pub(crate) seed: u64,
    /// The name of the property.
    pub(crate) property: &'static str,
    /// The observation.
    pub(crate) text: String,
    /// The last events with their times.
    pub(crate) events: Vec<(Duration, String)>,
}

impl fmt::Display for ProtocolFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, event) in &self.events {
            writeln!(formatter, "{:>12.4} s  {event}", at.as_secs_f64())?;
        }
        writeln!(formatter, "property \"{}\": {}", self.property, self.text)?;
        write!(formatter, "replay with LANDECK_SEED={}", self.seed)
    }
}
