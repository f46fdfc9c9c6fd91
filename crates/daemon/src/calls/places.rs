//! The places for strangers: connections that have not proven yet that they belong to the machine.
//!
//! There are few places, and none is kept longer than a few seconds. Half of them are for addresses of the host table.
//! When no place is free, the oldest stranger that has sent nothing goes. So a port scan does not keep a host from
//! renewing its trunk.

use std::time::Duration;

/// The number of places.
pub(crate) const PLACES: usize = 128;
/// The number of places that addresses outside the host table may have.
pub(crate) const UNKNOWN_MAX: usize = PLACES / 2;
/// The time in which a stranger proves who it is.
pub(crate) const STRANGER_TIME: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct Place {
    stranger: u64,
    since: Duration,
    is_known: bool,
    is_silent: bool,
}

/// The places. Strangers go by their tokens.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The oldest first.
    places: Vec<Place>,
}

impl Places {
    /// Gives a place to a stranger. Returns the one that must go for it.
    #[must_use]
    pub(crate) fn enter(&mut self, stranger: u64, is_known: bool, now: Duration) -> Option<u64> {
        let unknown = self.places.iter().filter(|place| !place.is_known).count();
        let gone = if !is_known && unknown >= UNKNOWN_MAX {
            self.oldest(|place| !place.is_known)
        } else if self.places.len() >= PLACES {
            // Whoever is unknown goes first.
            self.oldest_silent(|place| !place.is_known).or_else(|| self.oldest(|_| true))
        } else {
            None
        };
        let gone = gone.map(|at| self.places.remove(at).stranger);
        self.places.push(Place { stranger, since: now, is_known, is_silent: true });
        gone
    }

    /// Notes that a stranger has sent something.
    pub(crate) fn heard(&mut self, stranger: u64) {
        if let Some(place) = self.places.iter_mut().find(|place| place.stranger == stranger) {
            place.is_silent = false;
        }
    }

    /// Frees the place of a stranger that was recognised or has gone.
    pub(crate) fn leave(&mut self, stranger: u64) {
        self.places.retain(|place| place.stranger != stranger);
    }

    /// Takes the strangers whose time is over.
    pub(crate) fn take_late(&mut self, now: Duration) -> Vec<u64> {
        let is_late = |place: &Place| now >= place.since + STRANGER_TIME;
        let late = self.places.iter().filter(|place| is_late(place));
        let late: Vec<u64> = late.map(|place| place.stranger).collect();
        self.places.retain(|place| !is_late(place));
        late
    }

    /// When the time of the next stranger is over.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.places.first().map(|place| place.since + STRANGER_TIME)
    }

    /// The number of strangers.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    fn oldest(&self, counts: impl Fn(&Place) -> bool + Copy) -> Option<usize> {
        self.oldest_silent(counts).or_else(|| self.places.iter().position(counts))
    }

    fn oldest_silent(&self, counts: impl Fn(&Place) -> bool) -> Option<usize> {
        self.places.iter().position(|place| place.is_silent && counts(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Duration = Duration::ZERO;

    #[test]
    fn the_oldest_silent_stranger_goes() {
        let mut places = Places::default();
        for stranger in 0..UNKNOWN_MAX as u64 {
            assert_eq!(places.enter(stranger, false, ZERO), None);
        }
        places.heard(0);
        assert_eq!(places.enter(1000, false, ZERO), Some(1));
        assert_eq!(places.enter(1001, false, ZERO), Some(2));
        assert_eq!(places.len(), UNKNOWN_MAX);
    }

    #[test]
    fn half_the_places_are_for_hosts() {
        let mut places = Places::default();
        for stranger in 0..10_000 {
            let _ = places.enter(stranger, false, ZERO);
            assert!(places.len() <= UNKNOWN_MAX);
        }
        for stranger in 10_000..10_000 + (PLACES - UNKNOWN_MAX) as u64 {
            assert_eq!(places.enter(stranger, true, ZERO), None, "nobody goes for it");
        }
        assert_eq!(places.enter(20_000, true, ZERO), Some(10_000 - UNKNOWN_MAX as u64));
        assert_eq!(places.len(), PLACES);
    }

    #[test]
    fn those_who_spoke_go_if_nobody_is_silent() {
        let mut places = Places::default();
        for stranger in 0..UNKNOWN_MAX as u64 {
            let _ = places.enter(stranger, false, ZERO);
            places.heard(stranger);
        }
        assert_eq!(places.enter(1000, false, ZERO), Some(0));
    }

    #[test]
    fn a_place_is_kept_for_five_seconds() {
        let mut places = Places::default();
        let _ = places.enter(1, false, ZERO);
        let _ = places.enter(2, true, Duration::from_secs(1));
        assert_eq!(places.deadline(), Some(STRANGER_TIME));
        assert_eq!(places.take_late(Duration::from_millis(4_999)), []);
        assert_eq!(places.take_late(STRANGER_TIME), [1]);
        places.leave(2);
        assert_eq!((places.deadline(), places.len()), (None, 0));
    }
}
