//! How far a member may be ahead of the others.

use std::sync::atomic::Ordering;

use super::WINDOW;
use super::handle::Board;

impl Board {
    /// Whether this member may come to an operation: all members have completed the last one in its lines.
    #[inline]
    pub fn has_room(&mut self, number: u32) -> bool {
        self.is_within_window(number) || self.settle(number)
    }

    fn is_within_window(&self, number: u32) -> bool {
        number.wrapping_sub(self.settled) < WINDOW as u32
    }

    /// Looks how far all members are: at what another member has found, and if that does not help, at the progress
    /// of each. Many members could not afford that in every operation.
    fn settle(&mut self, number: u32) -> bool {
        let found = self.shared().head.settled.0.load(Ordering::Acquire);
        let ahead = found.wrapping_sub(self.settled) as i32;
        // No member is further than this one.
        if ahead > 0 && ahead <= self.over.wrapping_sub(self.settled) as i32 {
            self.settled = found;
        }
        if !self.is_within_window(number) {
            self.look_at_all(number);
        }
        self.deposits.settle(self.settled);
        self.is_within_window(number)
    }

    pub(super) fn look_at_all(&mut self, number: u32) {
        let most = number.wrapping_sub(self.settled) as i32;
        let behind = |progress: u32| (number.wrapping_sub(progress) as i32).clamp(0, most);
        let mut furthest = behind(self.over);
        self.out_of_step = None;
        for member in (0..self.size()).filter(|&member| member != self.own) {
            // Other members may be ahead; progress that went back means scribbled words.
            let progress = self.lines(member).progress.load(Ordering::Acquire);
            furthest = furthest.max(behind(progress as u32));
            self.out_of_step = self.out_of_step.or_else(|| self.compare(member, progress));
        }
        // A line that shows which member is out of step is not used again.
        if self.out_of_step.is_some() {
            return;
        }
        self.settled = number.wrapping_sub(furthest as u32);
        if self.is_held() {
            self.shared().head.settled.0.store(self.settled, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::boards;
    use super::*;
    use crate::neighbours::Neighbours;
    use landeck_memory::heap::Heap;

    const SIGNATURE: u32 = 7;

    #[test]
    fn one_may_be_a_window_ahead_and_no_more() {
        let (segment, mut boards) = boards(2);
        let mut heap = Heap::of(&segment, 0).unwrap();
        let window = WINDOW as u32;
        for number in 1..=window {
            assert!(boards[0].has_room(number));
            let block = heap.allocate(100).unwrap();
            boards[0].come_with(number, (SIGNATURE, 0), block, (100, 100));
            boards[0].end(number);
        }
        assert!(!boards[0].has_room(window + 1));
        assert_eq!(boards[0].kept_bytes(), 100 * WINDOW);
        boards[1].end(2);
        assert!(!boards[0].has_room(window + 1), "the first is not over");
        segment.set_processor(1, 3);
        let neighbours = |boards: &[Board], processor| {
            boards[0].neighbours((window + 1, false), processor, |_| unreachable!("for room"))
        };
        assert_eq!(neighbours(&boards, 3), Neighbours::Awaited);
        assert_eq!(neighbours(&boards, 4), Neighbours::Waiting, "it is on another processor");
        boards[1].end(1);
        assert!(boards[0].has_room(window + 2) && !boards[0].has_room(window + 3));
        assert_eq!(boards[0].kept_bytes(), 100 * (WINDOW - 2));
    }

    #[test]
    fn a_member_that_has_forgotten_a_board_writes_nothing_to_it() {
        let (segment, mut boards) = boards(2);
        let mut heap = Heap::of(&segment, 0).unwrap();
        boards[0].claim(7);
        let block = heap.allocate(100).unwrap();
        boards[0].come_with(1, (SIGNATURE, 0), block, (100, 100));
        boards.iter_mut().for_each(|board| board.end(1));
        boards[0].forget();
        let said = |boards: &[Board]| boards[1].shared().head.settled.0.load(Ordering::Acquire);
        let before = said(&boards);
        boards[0].begin(7);
        boards[0].collect();
        assert_eq!(boards[0].kept_bytes(), 0, "what the other one was over with is back");
        assert_eq!(said(&boards), before);
    }
}
