//! The numbers that groups get, from which their contexts follow.
//!
//! Numbers are leased in blocks, so that two hosts of a job never give out the same one. A segment has the block that
//! it uses and room for the next one, in the page that belongs to no slot:
//!
//! ```text
//! byte 0  next number (32) | end of the block (32): every process takes numbers, by compare-and-swap
//!      8  the next block: its first number (32) | its end (32), zero while there is none
//! ```
//!
//! A process that finds the block used up takes the next block out of its word before it puts it into the first one.
//! So no block is used twice. If that process dies in between, the block is lost, and the daemon leases another one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

pub use crate::plan::{GROUP_BLOCK, GROUP_NUMBERS};
use crate::segment::Segment;

/// Where the next block is in the common page.
const NEXT_BLOCK: u64 = 8;

impl Segment {
    /// Takes a number for a new group that no other group of the job has had. `None` while this host has none left.
    pub fn take_group_number(&self) -> Option<u32> {
        let current = self.group_numbers();
        let mut word = current.load(Ordering::Acquire);
        loop {
            let block = block_of(word);
            // What is to stand there afterwards, and the number that is taken.
            let (next, number) = match block.is_empty() {
                false => (to_word(&(block.start + 1..block.end)), block.start),
                true => {
                    let Some(block) = self.take_next_block() else {
                        // Another process may have taken it, and put it there by now.
                        let again = current.load(Ordering::Acquire);
                        if again == word {
                            return None;
                        }
                        word = again;
                        continue;
                    };
                    (to_word(&(block.start + 1..block.end)), block.start)
                }
            };
            match current.compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(_) if block.is_empty() => {
                    // Another block is in use already, so this one serves later; if there is no room, it is lost.
                    self.set_group_numbers(number..block_of(next).end);
                    word = current.load(Ordering::Acquire);
                }
                Err(found) => word = found,
            }
        }
    }

    /// Adds a block of numbers behind the one that is used; for the daemon, which got it from the arbiter. Processes
    /// that wait for a number are woken. False if a block waits there already, or if this is none.
    pub fn set_group_numbers(&self, numbers: Range<u32>) -> bool {
        let is_block = !numbers.is_empty() && numbers.start > 0 && numbers.end <= GROUP_NUMBERS;
        let is_added = is_block
            && self
                .next_group_numbers()
                .compare_exchange(0, to_word(&numbers), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if is_added {
            (0..self.plan().slots()).for_each(|slot| self.tell_news(slot));
        }
        is_added
    }

    /// Gives out these numbers alone from now on; for the segment's maker, before any process has made a group.
    pub fn begin_group_numbers(&self, numbers: Range<u32>) {
        self.next_group_numbers().store(0, Ordering::Release);
        self.group_numbers().store(to_word(&numbers), Ordering::Release);
    }

    /// Whether the daemon should add a block: half of the one that is used is gone, and no other waits.
    pub fn needs_group_numbers(&self) -> bool {
        let left = block_of(self.group_numbers().load(Ordering::Acquire)).len();
        left <= GROUP_BLOCK as usize / 2 && self.next_group_numbers().load(Ordering::Acquire) == 0
    }

    fn take_next_block(&self) -> Option<Range<u32>> {
        let next = self.next_group_numbers();
        if next.load(Ordering::Acquire) == 0 {
            return None;
        }
        Some(block_of(next.swap(0, Ordering::AcqRel))).filter(|block| !block.is_empty())
    }

    fn group_numbers(&self) -> &AtomicU64 {
        self.long(self.plan().common_page())
    }

    fn next_group_numbers(&self) -> &AtomicU64 {
        self.long(self.plan().common_page() + NEXT_BLOCK)
    }
}

fn to_word(block: &Range<u32>) -> u64 {
    u64::from(block.start) | u64::from(block.end) << 32
}

/// The block in this word, which may be anything: an empty one if no host has it.
fn block_of(word: u64) -> Range<u32> {
    let (start, end) = (word as u32, (word >> 32) as u32);
    if start > 0 && end <= GROUP_NUMBERS { start..end } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    fn segment(ranks: u32) -> Segment {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        Segment::local(&SegmentPlan { ranks, ..plan })
    }

    #[test]
    fn one_host_has_all_numbers_in_one_block() {
        let segment = segment(2);
        let taken = [(); 3].map(|()| segment.take_group_number());
        assert_eq!(taken, [Some(1), Some(2), Some(3)]);
        assert!(!segment.needs_group_numbers());
        segment.begin_group_numbers(GROUP_NUMBERS - 1..GROUP_NUMBERS);
        assert_eq!(segment.take_group_number(), Some(GROUP_NUMBERS - 1));
        assert_eq!(segment.take_group_number(), None, "they have run out, and none comes twice");
    }

    #[test]
    fn a_host_of_several_gives_out_what_it_has_leased() {
        let segment = segment(5);
        assert!(segment.needs_group_numbers());
        assert_eq!(segment.take_group_number(), None);
        assert!(segment.set_group_numbers(100..100 + GROUP_BLOCK));
        assert!(!segment.set_group_numbers(9_000..9_001), "one block waits at a time");
        assert!(!segment.needs_group_numbers());
        assert_eq!(segment.take_group_number(), Some(100));
        assert!(!segment.needs_group_numbers(), "it has just begun");
        for number in 101..100 + GROUP_BLOCK / 2 {
            assert_eq!(segment.take_group_number(), Some(number));
        }
        assert!(segment.needs_group_numbers(), "half of it is used");
        let news = segment.news(1);
        assert!(segment.set_group_numbers(9_000..9_002) && segment.news(1) != news);
        assert!(!segment.needs_group_numbers());
        let mut last = None;
        while let Some(number) = segment.take_group_number() {
            last = Some(number);
        }
        assert_eq!(last, Some(9_001));
        assert!(segment.needs_group_numbers());
    }

    #[test]
    fn no_block_but_a_block_is_added_or_believed() {
        let segment = segment(5);
        for none in [0..5, 7..7, 5..GROUP_NUMBERS + 1] {
            assert!(!segment.set_group_numbers(none));
        }
        for word in [u64::MAX, 5 | 3 << 32, u64::from(GROUP_NUMBERS + 1) << 32 | 7] {
            segment.group_numbers().store(word, Ordering::Release);
            segment.next_group_numbers().store(word, Ordering::Release);
            assert_eq!(segment.take_group_number(), None, "{word:x}");
        }
    }

    #[test]
    fn threads_get_each_number_once_over_many_blocks() {
        const BLOCKS: u32 = 200;
        const EACH: u32 = 3;
        let segment = segment(5);
        let is_over = AtomicBool::new(false);
        let taken = || {
            let mut taken = Vec::new();
            while !is_over.load(Ordering::Acquire) {
                match segment.take_group_number() {
                    Some(number) => taken.push(number),
                    None => std::thread::yield_now(),
                }
            }
            taken
        };
        let all = std::thread::scope(|scope| {
            let takers = [(); 3].map(|()| scope.spawn(taken));
            for block in 0..BLOCKS {
                let first = 1 + block * EACH;
                while !segment.set_group_numbers(first..first + EACH) {
                    std::thread::yield_now();
                }
            }
            while block_of(segment.group_numbers().load(Ordering::Acquire)).start
                != BLOCKS * EACH + 1
            {
                std::thread::yield_now();
            }
            is_over.store(true, Ordering::Release);
            takers.map(|taker| taker.join().unwrap()).concat()
        });
        assert!(all.len() > (BLOCKS * EACH / 2) as usize, "blocks are lost only by chance");
        let once: BTreeSet<u32> = all.iter().copied().collect();
        assert_eq!(once.len(), all.len(), "a number came twice");
        assert!(once.iter().all(|number| (1..=BLOCKS * EACH).contains(number)));
    }
}
