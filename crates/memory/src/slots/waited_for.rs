//! The peers that a process waits for most.

use crate::slots::page::{WAITED_FOR, WaitedFor};

/// The peers that a process has waited for longest. A table of all peers would grow with the square of their number
/// over the job, so only a few are told apart: a new peer takes the entry of the one least waited for, and its time
/// with it. So every peer that takes more than an eighth of the waiting time has an entry. A time is exact as long
/// as there are no more peers than entries, and never too short.
#[derive(Default)]
pub(crate) struct WaitedForMost([WaitedFor; WAITED_FOR]);

impl WaitedForMost {
    /// Adds to the time of a peer; returns its place.
    pub(crate) fn add(&mut self, peer: u32, ns: u64) -> usize {
        let is_peers = |waited: &WaitedFor| waited.peer == peer && waited.ns != 0;
        let place = self.0.iter().position(is_peers).unwrap_or_else(|| self.least());
        let before_ns = self.0[place].ns;
        self.0[place] = WaitedFor { peer, ns: before_ns.saturating_add(ns.max(1)) };
        place
    }

    /// The entry at an index.
    pub(crate) fn at(&self, place: usize) -> WaitedFor {
        self.0[place]
    }

    fn least(&self) -> usize {
        (0..WAITED_FOR).min_by_key(|&place| self.0[place].ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_waited_for_most_keep_their_places() {
        let mut most = WaitedForMost::default();
        for round in 0..10 {
            (0..WAITED_FOR as u32 + 3).for_each(|peer| {
                most.add(peer, if peer == 2 { 1_000 } else { 1 + round });
            });
        }
        let place = most.add(2, 0);
        assert_eq!((most.0[place].peer, most.0[place].ns), (2, 10_001));
        let others: u64 = most.0.iter().map(|waited| waited.ns).sum();
        assert_eq!(others, 10_001 + 10 * 55, "no time is lost");
    }
}
