//! The calls of a member on a board, so that members out of step are found.
//!
//! A member's calls make a running *sum*. Each of its words on the board holds a part of the sum of the calls
//! before, so a member that meets it finds an earlier difference. Its progress word holds the whole sum, which
//! is compared before lines are used again. The sum does not tell which calls differ: the lines themselves do,
//! and they stay until then.
//!
//! One differing call always shows in the whole sum, and in the part of it too unless the numbers of two roots
//! differ by a multiple of 256. Several differing calls show unless they cancel out by chance.

use std::collections::VecDeque;

use super::words::WINDOW;

/// Bits of a signature that name the call. The others belong to the sum.
pub const CALL_BITS: u32 = 19;

/// The lowest of these bits, which name the root.
pub const ROOT_BITS: u32 = 14;

const CALL_MASK: u32 = (1 << CALL_BITS) - 1;
/// Bits of the operation, which a rotation puts below those of the root before both are added.
const FRONT_BITS: u32 = CALL_BITS - ROOT_BITS;
/// Odd: what has once made a difference in the lowest bits never ceases to.
const FACTOR: u32 = 0x9e37_79b1;

/// Recent calls that are kept by number.
const KEPT: usize = 2 * WINDOW;

/// The calls of a member: the last ones, and all that some member has not completed.
pub(super) struct History {
    /// The last ones, by their numbers.
    last: [Call; KEPT],
    /// Earlier calls that some member had not completed when their places were reused, the oldest first, with numbers.
    older: VecDeque<(u32, Call)>,
    /// The number of the next call.
    next: u32,
    /// How many of the last ones there are.
    kept: u32,
    /// Of all calls.
    sum: u32,
}

#[derive(Clone, Copy, Default)]
struct Call {
    /// The sum of those before.
    before: u32,
    call: u32,
}

impl History {
    /// Nothing is called yet; the first call will have this number.
    pub(super) fn new(next: u32) -> Self {
        let last = [Call::default(); KEPT];
        Self { last, older: VecDeque::new(), next, kept: 0, sum: 1 }
    }

    /// Adds the next call; returns its number and its signature. All members have completed the calls before `settled`.
    #[inline]
    pub(super) fn add(&mut self, call: u32, settled: u32) -> (u32, u32) {
        let number = self.next;
        if number.wrapping_sub(settled) >= KEPT as u32 || !self.older.is_empty() {
            self.set_aside(settled);
        }
        let (call, before) = (call & CALL_MASK, self.sum);
        self.last[number as usize % KEPT] = Call { before, call };
        self.next = number.wrapping_add(1);
        self.kept = (self.kept + 1).min(KEPT as u32);
        // The bits that members differ in most are the lowest.
        let spread = (call << FRONT_BITS | call >> (CALL_BITS - FRONT_BITS)) & CALL_MASK;
        self.sum = (before ^ spread).wrapping_mul(FACTOR);
        (number, signature(before, call))
    }

    /// The number of the next call.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The sum of what was called before the call with this number, which may be the next one; none
    /// when that is long ago.
    #[inline]
    pub(super) fn before(&self, number: u32) -> Option<u32> {
        if number == self.next {
            return Some(self.sum);
        }
        self.known(number).map(|call| call.before)
    }

    /// The call with this number; none when it is too long ago.
    pub(super) fn call(&self, number: u32) -> Option<u32> {
        self.known(number).map(|call| call.call)
    }

    /// By how much the roots of one operation after the other move on, as the calls with this number
    /// and the two before it show; none when they are not the same operation, or show nothing.
    pub(super) fn stride(&self, number: u32, size: u32) -> Option<u32> {
        let [last, before, first] = [0, 1, 2].map(|ago| self.call(number.wrapping_sub(ago)));
        let (last, before, first) = (last?, before?, first?);
        if last >> ROOT_BITS != before >> ROOT_BITS || last >> ROOT_BITS != first >> ROOT_BITS {
            return None;
        }
        let root = |call: u32| call & ((1 << ROOT_BITS) - 1);
        let step = |to: u32, from: u32| (root(to) + size).wrapping_sub(root(from)) % size;
        let stride = step(last, before);
        (stride == step(before, first) && stride != 0).then_some(stride)
    }

    #[inline]
    fn known(&self, number: u32) -> Option<Call> {
        let ago = self.next.wrapping_sub(number);
        if ago.wrapping_sub(1) < self.kept {
            return Some(self.last[number as usize % KEPT]);
        }
        self.older.iter().find(|(older, _)| *older == number).map(|(_, call)| *call)
    }

    /// Keeps the call whose place the next one takes, unless all members have completed it.
    #[cold]
    fn set_aside(&mut self, settled: u32) {
        let is_over = |number: u32| (settled.wrapping_sub(number) as i32) > 0;
        while self.older.front().is_some_and(|(number, _)| is_over(*number)) {
            self.older.pop_front();
        }
        let number = self.next.wrapping_sub(KEPT as u32);
        if self.kept == KEPT as u32 && !is_over(number) {
            self.older.push_back((number, self.last[number as usize % KEPT]));
        }
    }
}

/// The signature of a call with this sum before it.
#[inline]
pub(super) fn signature(before: u32, call: u32) -> u32 {
    before << CALL_BITS | call
}

/// The call within a signature.
#[inline]
pub(super) fn call_of(signature: u32) -> u32 {
    signature & CALL_MASK
}

/// Whether a signature may be that of a member with this sum before it.
#[inline]
pub(super) fn follows(signature: u32, before: u32) -> bool {
    signature & !CALL_MASK == before << CALL_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(calls: impl IntoIterator<Item = u32>) -> History {
        let mut history = History::new(1);
        for call in calls {
            history.add(call, history.next());
        }
        history
    }

    #[test]
    fn one_call_that_differs_shows_for_ever() {
        let of = |operation: u32, root: u32| operation << 14 | root;
        let usual = of(3, 7);
        for other in [of(3, 6), of(3, 7 + 128), of(2, 7), of(19, 7), of(0, 0), of(11, 255)] {
            for place in [0, 1, 50, 99] {
                let calls = |which| (0..100).map(move |at| if at == place { which } else { usual });
                let (first, second) = (called(calls(usual)), called(calls(other)));
                assert!(!follows(signature(first.sum, 0), second.sum), "{other} at {place}");
            }
        }
        let far = [usual, usual + 256].map(|call| called([call, usual]).sum);
        assert_ne!(far[0], far[1], "the whole sum has every bit of a root");
    }

    #[test]
    fn calls_that_change_places_show() {
        for (one, other) in (0..30u32).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let [one, other] = [one << 14, other << 14];
            assert_ne!(called([one, other]).sum, called([other, one]).sum);
        }
    }

    #[test]
    fn unfinished_calls_are_kept_however_many_they_are() {
        let first = u32::MAX - 5;
        let mut history = History::new(first);
        for after in 0..100 {
            assert_eq!(history.add(after, first).0, first.wrapping_add(after));
        }
        let known = |history: &History, after| history.call(first.wrapping_add(after));
        assert!((0..100).all(|after| known(&history, after) == Some(after)));
        assert_eq!(history.before(first), Some(1));
        assert_eq!(history.before(first.wrapping_add(100)), Some(history.sum));
        assert_eq!(history.before(first.wrapping_sub(1)), None, "it was not called");
        history.add(100, first.wrapping_add(50));
        assert_eq!([49, 50, 100].map(|after| known(&history, after)), [None, Some(50), Some(100)]);
        history.add(101, first.wrapping_add(101));
        let kept = 102 - KEPT as u32;
        let at_edge = [kept - 2, kept - 1, kept].map(|after| known(&history, after));
        assert_eq!(at_edge, [None, None, Some(kept)]);
    }

    #[test]
    fn roots_that_move_on_are_foreseen() {
        let stride = |roots: &[u32]| {
            let history = called(roots.iter().map(|root| 2 << ROOT_BITS | root));
            history.stride(history.next() - 1, 5)
        };
        assert_eq!(
            (stride(&[2, 3, 4]), stride(&[3, 4, 0]), stride(&[2, 1, 0])),
            (Some(1), Some(1), Some(4))
        );
        assert_eq!((stride(&[3, 3, 3]), stride(&[0, 2, 3]), stride(&[3, 4])), (None, None, None));
        let others = called([2 << ROOT_BITS, 3 << ROOT_BITS | 1, 2 << ROOT_BITS | 2]);
        assert_eq!(others.stride(3, 5), None, "not the same operation");
        assert_eq!(called([2, 3, 4]).stride(9, 5), None, "it was not called");
    }

    #[test]
    fn a_signature_says_what_is_called() {
        let mut history = called([5, 6]);
        let before = history.sum;
        let (number, signature) = history.add(7, 3);
        assert_eq!(number, 3);
        assert_eq!(call_of(signature), 7);
        assert!(follows(signature, before) && !follows(signature, before + 1));
    }
}
