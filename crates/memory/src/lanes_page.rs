//! The lanes of a process that waits: what it has sent to processes on other hosts and they have not read.
//!
//! A process with far peers publishes them while it waits for long, after each sleep but at most once in
//! [`LANES_EVERY_NS`], so messages pay nothing for it. They are said of one wait, as a remark is, so nothing outdated
//! is read. Only lanes with unsent bytes have an entry, those with the most bytes first.
//!
//! ```text
//! own page, byte 320   since (64 bits): the wait that the rest is said of
//!               328    how many entries
//!               336    entries of four words, at most 5:
//!                      peer (32) | messages that are not known to be received (32)
//!                      unsent bytes
//!                      since when none of them has moved
//!                      since when the network acknowledges nothing; 0 if it does
//! ```

use std::sync::atomic::Ordering;

use crate::plan::LINE_BYTES;
use crate::segment::Segment;

/// Where it begins in the own page.
const LANES: u64 = 5 * LINE_BYTES;
/// Words in front of the entries, and words of an entry.
const HEAD_WORDS: usize = 2;
const ENTRY_WORDS: usize = 4;
/// The most entries.
pub const LANES_MAX: usize = 5;
/// A process publishes its lanes at most once in this time, in nanoseconds.
pub const LANES_EVERY_NS: u64 = 100_000_000;
/// Words up to its end, from the start of the page.
const END_WORDS: usize = LANES as usize / 8 + HEAD_WORDS + LANES_MAX * ENTRY_WORDS;

/// A lane with unsent bytes, as its process describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneRecord {
    /// The far process.
    pub peer: u32,
    /// The messages that were sent and are not known to be received there: the open grant.
    pub open_messages: u32,
    /// The bytes that wait in the process or in its system, because the other host has not taken them.
    pub unsent_bytes: u64,
    /// Since when none of them has moved, in nanoseconds of the monotonic clock.
    pub since_ns: u64,
    /// Since when the other host has acknowledged none of them, though it could; 0 if it does.
    pub silent_since_ns: u64,
}

impl LaneRecord {
    /// The lanes in the words of an own page, which may be anything, if they are said of the wait since then.
    pub(crate) fn of_wait(page: &[u64], since_ns: u64) -> Vec<Self> {
        let Some(words) = page.get(LANES as usize / 8..END_WORDS) else { return Vec::new() };
        if words[0] != since_ns || since_ns == 0 {
            return Vec::new();
        }
        let count = (words[1] as usize).min(LANES_MAX);
        let entries = words[HEAD_WORDS..].chunks_exact(ENTRY_WORDS).take(count);
        let entry = |words: &[u64]| Self {
            peer: words[0] as u32,
            open_messages: (words[0] >> 32) as u32,
            unsent_bytes: words[1],
            since_ns: words[2],
            silent_since_ns: words[3],
        };
        entries.map(entry).collect()
    }
}

impl Segment {
    /// Publishes the lanes of a slot's process during the wait that began at `wait_ns`; for that process only. Of many,
    /// those with the most unsent bytes count.
    pub fn set_lanes(&self, slot: u32, wait_ns: u64, mut lanes: Vec<LaneRecord>) {
        lanes.sort_by_key(|lane| std::cmp::Reverse(lane.unsent_bytes));
        lanes.truncate(LANES_MAX);
        let place = self.plan().own_page(slot) + LANES;
        let set = |at: usize, word| self.long(place + at as u64 * 8).store(word, Ordering::Release);
        set(0, 0);
        for (number, lane) in lanes.iter().enumerate() {
            let first = u64::from(lane.peer) | u64::from(lane.open_messages) << 32;
            let words = [first, lane.unsent_bytes, lane.since_ns, lane.silent_since_ns];
            let at = HEAD_WORDS + number * ENTRY_WORDS;
            (at..).zip(words).for_each(|(at, word)| set(at, word));
        }
        set(1, lanes.len() as u64);
        set(0, wait_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    fn page(segment: &Segment, slot: u32) -> Vec<u64> {
        let start = segment.plan().own_page(slot);
        let words = (0..END_WORDS as u64).map(|at| segment.long(start + at * 8));
        words.map(|word| word.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn lanes_are_read_as_published_and_of_their_wait_alone() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        let lane = |peer, unsent_bytes| LaneRecord {
            peer,
            open_messages: u32::MAX,
            unsent_bytes,
            since_ns: 3,
            silent_since_ns: 4,
        };
        segment.set_lanes(1, 5, vec![lane(20, 1 << 40), lane(u32::MAX, 1 << 50)]);
        let read = LaneRecord::of_wait(&page(&segment, 1), 5);
        assert_eq!(read, [lane(u32::MAX, 1 << 50), lane(20, 1 << 40)], "most bytes first");
        assert_eq!(LaneRecord::of_wait(&page(&segment, 1), 6), []);
        assert_eq!(LaneRecord::of_wait(&page(&segment, 0), 0), []);
        segment.set_lanes(1, 9, (0..20).map(|peer| lane(peer, u64::from(peer))).collect());
        let read = LaneRecord::of_wait(&page(&segment, 1), 9);
        assert_eq!((read.len(), read[0].peer, read[4].peer), (LANES_MAX, 19, 15));
        let counters = segment.counters(1);
        assert_eq!((counters.messages_sent, segment.waited_for(1)), (0, vec![]), "its neighbours");
        assert_eq!(LaneRecord::of_wait(&[u64::MAX; END_WORDS], u64::MAX).len(), LANES_MAX);
    }

    const _: () = assert!(END_WORDS * 8 <= crate::plan::WORLD_LINES as usize);
}
