//! Counts of messages in the running jobs, beside those of the papers and of the plans.

use std::fmt;

use crate::papers::grid::USUAL;
use crate::papers::measure::counts_of;
use crate::papers::values::{ValuePlace, Values};

/// Longer data may need messages beside those of the plan, by which a sender and a receiver agree.
const COUNTED_BYTES_MAX: u64 = 10_000;

/// A count with the number that it must be.
#[derive(Clone, Debug)]
pub(super) struct Count {
    place: ValuePlace,
    pub(super) found: f64,
    pub(super) expected: u64,
}

/// All counts for which there is an expected number.
pub(super) fn check(values: &Values) -> Vec<Count> {
    let of = values.facts.iter().filter(|fact| fact.unit == "messages");
    of.filter_map(|fact| {
        let (place, found) = (fact.place.clone(), fact.value);
        expected(&place).map(|expected| Count { place, found, expected })
    })
    .collect()
}

/// Returns the number of messages of an operation: of all processes, each message counted where it is sent.
fn expected(place: &ValuePlace) -> Option<u64> {
    let n = u64::from(place.n);
    if place.bytes > COUNTED_BYTES_MAX {
        return None;
    }
    match (place.way.as_str(), place.operation.as_str()) {
        // The paper of 2000. Names are looked up without messages.
        ("paper", "join" | "leave" | "destroy") => Some(2),
        ("paper", "broadcast") => Some(1 + n),
        ("paper", "sync") => Some(2 * n),
        ("relay", _) => Some(n - 1),
        (USUAL, _) => None,
        _ => counts_of(place).map(|counts| counts.messages),
    }
}

impl Count {
    /// Whether it is the number that it must be. A count is a mean over some operations, beside which the library may have
    /// sent a message of its own, such as a repeated offer.
    pub(super) fn is_right(&self) -> bool {
        self.found.round() == self.expected as f64
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { place, found, expected } = self;
        let ValuePlace { operation, way, n, hosts, bytes, .. } = place;
        write!(
            f,
            "{way}, {operation} of {bytes} B by {n} processes on {hosts} hosts has {found} messages, and not {expected}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(way: &str, operation: &str, n: u32) -> Option<u64> {
        expected(&ValuePlace { hosts: n, ..ValuePlace::here(operation, way, n, 100) })
    }

    #[test]
    fn the_papers_numbers() {
        assert_eq!(at("paper", "join", 4), Some(2));
        assert_eq!(at("paper", "broadcast", 4), Some(5));
        assert_eq!(at("paper", "sync", 4), Some(8));
        assert_eq!(at("deck2003", "reduce", 20), Some(19));
        assert_eq!(at("mpi2003", "barrier", 4), Some(8));
        assert_eq!(at("daisy@8", "broadcast", 24), Some(23));
        assert_eq!(at("relay", "roots", 6), Some(5));
        let long = ValuePlace { bytes: 40_000, ..ValuePlace::here("broadcast", "daisy@8", 24, 4) };
        assert_eq!(expected(&long), None);
        assert_eq!((at("landeck", "barrier", 4), at("calls", "served: sync", 4)), (None, None));
    }

    #[test]
    fn another_number_is_wrong() {
        let place = ValuePlace::here("sync", "paper", 4, 0);
        let count = |found| Count { place: place.clone(), found, expected: 8 };
        assert!(count(8.0).is_right() && count(8.125).is_right());
        assert!(!count(9.0).is_right());
    }
}
