//! The links between the hosts of a job, as its daemons have measured them: one table, equal on all hosts.
//!
//! The words are opaque here. A reader that takes them from a segment checks them.

use std::sync::atomic::Ordering;

use crate::plan::{LINK_HOSTS_MAX, LINK_WORDS};
use crate::segment::Segment;

impl Segment {
    /// The number of the host of this segment in its machine; `None` without tables for other hosts.
    pub fn own_host_number(&self) -> Option<u16> {
        if !self.plan().has_host_tables() {
            return None;
        }
        let word = self.long(self.plan().links()).load(Ordering::Acquire) as u32;
        u16::try_from(word.checked_sub(1)?).ok()
    }

    /// The place of this host in the list of the job's hosts.
    pub fn own_host_place(&self) -> u32 {
        match self.plan().has_host_tables() {
            true => (self.long(self.plan().links()).load(Ordering::Acquire) >> 32) as u32,
            false => 0,
        }
    }

    /// Writes the number of this host, and its place in the list of the job's hosts; for the segment's maker alone, before a
    /// process attaches.
    pub fn set_own_host(&self, number: u16, place: u32) {
        if self.plan().has_host_tables() {
            let word = (u64::from(number) + 1) | (u64::from(place) << 32);
            self.long(self.plan().links()).store(word, Ordering::Release);
        }
    }

    /// The words of the link between two hosts; zeros if it was not measured.
    pub fn link(&self, one: u16, other: u16) -> [u64; LINK_WORDS] {
        let word = |place| self.long(place).load(Ordering::Acquire);
        self.link_places(one, other).map_or([0; LINK_WORDS], |places| places.map(word))
    }

    /// Writes the link between two hosts; for the segment's maker alone, before a process attaches. Nothing happens for
    /// hosts for which there is no room.
    pub fn set_link(&self, one: u16, other: u16, words: [u64; LINK_WORDS]) {
        [one, other].into_iter().for_each(|number| self.add_linked_host(number));
        if let Some(places) = self.link_places(one, other) {
            let all = places.into_iter().zip(words);
            all.for_each(|(place, word)| self.long(place).store(word, Ordering::Release));
        }
    }

    fn link_places(&self, one: u16, other: u16) -> Option<[u64; LINK_WORDS]> {
        let (one, other) = (self.linked_host(one)?, self.linked_host(other)?);
        let (low, high) = (one.min(other), one.max(other));
        let pair = (low < high).then(|| high * (high - 1) / 2 + low)?;
        let first = self.linked_hosts() + (LINK_HOSTS_MAX + pair * LINK_WORDS as u64) * 8;
        Some(std::array::from_fn(|word| first + word as u64 * 8))
    }

    /// The place of a host among those with links.
    fn linked_host(&self, number: u16) -> Option<u64> {
        let is_it = |place: &u64| self.linked_number(*place) == u64::from(number) + 1;
        self.link_host_places().find(is_it)
    }

    /// Gives a host a place among those with links, if there is one.
    fn add_linked_host(&self, number: u16) {
        let free = self.link_host_places().find(|place| self.linked_number(*place) == 0);
        if let (None, Some(place)) = (self.linked_host(number), free) {
            let word = self.long(self.linked_hosts() + place * 8);
            word.store(u64::from(number) + 1, Ordering::Release);
        }
    }

    fn link_host_places(&self) -> std::ops::Range<u64> {
        0..if self.plan().has_host_tables() { LINK_HOSTS_MAX } else { 0 }
    }

    /// The number of the host at a place, plus one.
    fn linked_number(&self, place: u64) -> u64 {
        self.long(self.linked_hosts() + place * 8).load(Ordering::Acquire)
    }

    /// Where the numbers of the hosts with links begin.
    fn linked_hosts(&self) -> u64 {
        self.plan().links() + 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    #[test]
    fn links_are_read_as_written() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&SegmentPlan { ranks: 4, ..plan.clone() });
        assert_eq!((segment.own_host_number(), segment.link(0, 1)), (None, [0; 3]));
        segment.set_own_host(0, 7);
        // The job may be on any hosts of a large machine.
        let hosts = 100..100 + LINK_HOSTS_MAX as u16;
        for high in hosts.clone() {
            (100..high).for_each(|low| segment.set_link(low, high, [1, low.into(), high.into()]));
        }
        for none in [(103, 103), (100, hosts.end), (u16::MAX, 101)] {
            segment.set_link(none.0, none.1, [9; 3]);
            assert_eq!(segment.link(none.0, none.1), [0; 3]);
        }
        for high in hosts {
            let is_right = |low: u16| segment.link(high, low) == [1, low.into(), high.into()];
            assert!((100..high).all(is_right), "{high}");
        }
        assert_eq!((segment.own_host_number(), segment.own_host_place()), (Some(0), 7));
        let plan = segment.plan();
        assert_eq!(plan.links() + plan.links_bytes(), plan.relay_words(0));
        let alone = Segment::local(&SegmentPlan { ranks: 2, ..plan.clone() });
        alone.set_own_host(1, 1);
        alone.set_link(0, 1, [1; 3]);
        assert_eq!((alone.own_host_number(), alone.link(0, 1)), (None, [0; 3]));
        assert_eq!(alone.own_host_place(), 0);
        assert_eq!(alone.plan().links_bytes(), 0);
    }
}
