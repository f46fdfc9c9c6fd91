//! Simulated time in whole picoseconds, and the queue of events.
//!
//! Events of equal time happen in the order in which they were planned. So a run depends on its input alone.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Add;

/// A moment: picoseconds since the beginning, for up to 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// The moment this many picoseconds after the beginning.
    pub const fn from_ps(picoseconds: u64) -> Self {
        Self(picoseconds)
    }

    /// Picoseconds since the beginning.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Microseconds since the beginning.
    pub fn us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Picoseconds from an earlier moment to this one; 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Time {
    type Output = Self;

    /// The moment this many picoseconds later.
    fn add(self, picoseconds: u64) -> Self {
        Self(self.0.saturating_add(picoseconds))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} us", self.us())
    }
}

/// Planned events, the next one first.
#[derive(Debug)]
pub struct Events<E> {
    heap: BinaryHeap<Planned<E>>,
    planned: u64,
}

#[derive(Debug)]
struct Planned<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}

impl<E> Events<E> {
    /// Plans an event.
    pub fn plan(&mut self, at: Time, event: E) {
        let number = self.planned;
        self.planned += 1;
        self.heap.push(Planned { at, number, event });
    }

    /// Removes the next event and returns it with its time.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|planned| (planned.at, planned.event))
    }

    /// The number of planned events that have not happened yet.
    pub fn waiting(&self) -> usize {
        self.heap.len()
    }

    /// The number of all events that have been planned.
    pub const fn planned(&self) -> u64 {
        self.planned
    }
}

impl<E> Ord for Planned<E> {
    /// The earliest event is the greatest, since the heap pops its greatest element.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Planned<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_of_equals_the_first_planned() {
        let mut events = Events::default();
        for (at, name) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            events.plan(Time::from_ps(at), name);
        }
        assert_eq!(events.waiting(), 4);
        let order: String = std::iter::from_fn(|| events.pop()).map(|(_, name)| name).collect();
        assert_eq!((order.as_str(), events.planned()), ("abcd", 4));
    }

    #[test]
    fn time_does_not_run_backwards() {
        let (early, late) = (Time::from_ps(2), Time::from_ps(7));
        assert_eq!((late.since(early), early.since(late)), (5, 0));
        assert_eq!((Time::from_ps(u64::MAX) + 1).ps(), u64::MAX);
        assert_eq!(Time::from_ps(1_500_000).to_string(), "1.500 us");
    }
}
