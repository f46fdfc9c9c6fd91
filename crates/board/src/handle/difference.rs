//! Finds the member that has called something else than this one, and which call it was.

use std::sync::atomic::Ordering;

use super::Board;
use crate::WINDOW;
use crate::history::{call_of, follows};

/// An operation at which another member's call differs from this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The member.
    pub member: u32,
    /// The operation.
    pub number: u32,
    /// That member's call.
    pub theirs: u32,
    /// This member's call.
    pub ours: u32,
}

impl Board {
    /// This member's progress word: the operations it has completed, and the sum of its calls in them.
    #[inline]
    pub(crate) fn progress(&self) -> u64 {
        let sum = self.history.before(self.over).unwrap_or(0);
        u64::from(self.over) | u64::from(sum) << 32
    }

    /// Compares a member's calls, as far as it has completed them, with this one's.
    #[inline]
    pub(crate) fn compare(&self, member: u32, progress: u64) -> Option<Difference> {
        let (over, sum) = (progress as u32, (progress >> 32) as u32);
        let is_same = match self.history.before(over) {
            Some(before) => before == sum,
            // A member that is ahead has come to an operation not completed here, and stays in it.
            None if over.wrapping_sub(self.history.next()) as i32 > 0 => {
                let theirs = self.line(member, self.over).published(self.over);
                let ours = self.history.before(self.over);
                theirs.zip(ours).is_none_or(|(theirs, ours)| follows(theirs, ours))
            }
            None => true,
        };
        if is_same { None } else { self.difference(member) }
    }

    /// The first recent operation that a member called otherwise than this one, by its lines. The lines hold no
    /// operation from before the window that ends at the settled ones, and none from behind the window that begins
    /// at this member's first incomplete one, however many it has begun.
    #[cold]
    pub fn difference(&self, member: u32) -> Option<Difference> {
        let window = WINDOW as u32;
        let first = self.settled.wrapping_sub(window);
        let last = self.over.wrapping_add(window);
        (0..last.wrapping_sub(first)).find_map(|after| {
            let number = first.wrapping_add(after);
            let ours = self.history.call(number)?;
            let theirs = call_of(self.line(member, number).published(number)?);
            (theirs != ours).then_some(Difference { member, number, theirs, ours })
        })
    }

    /// The member that has called something else, found while waiting for room: there will be none.
    pub fn out_of_step(&self) -> Option<Difference> {
        self.out_of_step
    }

    /// Finds a member that has called something else, as far as its lines show. Called at the end, when no member
    /// will wait for another.
    pub fn look_for_difference(&self) -> Option<Difference> {
        (0..self.size()).filter(|&member| member != self.own()).find_map(|member| {
            self.compare(member, self.lines(member).progress.load(Ordering::Acquire))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Came;
    use crate::fixture::boards;
    use landeck_memory::bytes::Bytes;

    /// A member begins an operation, comes to it and completes it.
    fn call(board: &mut Board, call: u32) -> u32 {
        let (number, signature) = board.begin(call);
        board.come(number, signature, 0, Bytes::EMPTY);
        board.end(number);
        number
    }

    #[test]
    fn a_member_with_another_call_is_found_when_members_meet() {
        for apart in 0..WINDOW - 2 {
            let (_segment, mut boards) = boards(3);
            let begin = |board: &mut Board, own: u32| {
                call(board, 1);
                let differs = call(board, own);
                (0..apart).for_each(|_| {
                    call(board, 3);
                });
                (differs, board.begin(4))
            };
            let begun = [(0, 2), (1, 5), (2, 2)].map(|(at, own)| begin(&mut boards[at], own));
            let (differs, (number, _)) = begun[0];
            for (board, (_, (_, signature))) in boards.iter_mut().zip(begun) {
                board.come(number, signature, 0, Bytes::EMPTY);
            }
            let ((_, (_, first)), (_, (_, second))) = (begun[0], begun[1]);
            assert_eq!(boards[0].came(2, number, first), Came::Here);
            assert_eq!(boards[0].came(1, number, first), Came::Otherwise(second));
            let named = |member, theirs, ours| Difference { member, number: differs, theirs, ours };
            assert_eq!(boards[0].difference(1), Some(named(1, 5, 2)), "{apart}");
            assert_eq!(boards[1].difference(2), Some(named(2, 2, 5)), "{apart}");
            assert_eq!(boards[0].difference(2), None);
        }
    }

    #[test]
    fn a_member_with_another_call_is_found_before_its_line_is_used_again() {
        for differs in 1..40 {
            for ahead in 0..WINDOW as u32 {
                let (_segment, mut boards) = boards(2);
                let mut came = |which: usize, number: u32| {
                    let other = u32::from(number == differs && which == 1);
                    let board = &mut boards[which];
                    let has_room = board.has_room(number);
                    if has_room {
                        assert_eq!(call(board, 1 + other), number);
                    }
                    has_room.then_some(()).ok_or(board.out_of_step())
                };
                // Whatever the one does in which it sees nothing of the other, and the reverse.
                let mut number = [1, 1];
                let found = loop {
                    let which = usize::from(number[0] > number[1] + ahead);
                    match came(which, number[which]) {
                        Ok(()) => number[which] += 1,
                        Err(Some(found)) => break found,
                        Err(None) => {
                            assert!(came(1 - which, number[1 - which]).is_ok(), "one has room");
                            number[1 - which] += 1;
                        }
                    }
                    assert!(number[0] <= differs + WINDOW as u32 + 1, "{differs} {ahead}");
                };
                assert_eq!(found.number, differs);
                assert_eq!(found.theirs + found.ours, 3);
            }
        }
    }

    #[test]
    fn a_member_with_another_call_is_found_however_many_calls_began_since() {
        let window = WINDOW as u32;
        for begun in [1, window - 2, window + 1, 100] {
            for differs in 1..window {
                let (_segment, mut boards) = boards(2);
                for number in 1..=window {
                    assert!(boards[0].has_room(number));
                    call(&mut boards[0], 1);
                }
                (1..=differs).for_each(|number| _ = call(&mut boards[1], 1 + number / differs));
                (0..begun).for_each(|_| _ = boards[0].begin(1));
                assert!(!boards[0].has_room(window + 1), "the line shows what differs");
                let expected = Difference { member: 1, number: differs, theirs: 2, ours: 1 };
                assert_eq!(boards[0].out_of_step(), Some(expected), "{begun}");
            }
        }
    }

    #[test]
    fn a_member_with_another_call_is_found_in_the_end() {
        let (_segment, mut boards) = boards(2);
        for board in &mut boards {
            call(board, 1);
        }
        assert_eq!(boards[0].look_for_difference(), None);
        call(&mut boards[0], 2);
        call(&mut boards[1], 3);
        call(&mut boards[1], 4);
        let found = |board: &Board| board.look_for_difference().map(|found| found.number);
        assert_eq!((found(&boards[0]), found(&boards[1])), (Some(2), Some(2)), "one is ahead");
        let sum = boards[1].progress() ^ 1 << 40;
        boards[1].own_lines().progress.store(sum, Ordering::Relaxed);
        boards[1].own_line(2).publish(2, boards[0].own_line(2).published(2).unwrap());
        assert_eq!(found(&boards[0]), None, "a sum is no proof: it may have been overwritten");
    }
}
