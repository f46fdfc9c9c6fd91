//! What a member has called on a board, so that members out of step are found.
//!
//! All that a member has called makes a running *sum*. Each of its words on the board has a part of
//! the sum of what was called before, so whoever meets it finds that they differed earlier; its
//! progress has the whole of it, which is compared before lines are used again. Neither says in
//! what members differ: that stands in the lines themselves, which are there until then.
//!
//! One call that differs always shows in the whole sum, and in the part of it too unless the
//! numbers of two roots differ by a multiple of 256; several that differ show but for chance.

use super::words::WINDOW;

/// Bits that say what is called. The others of a signature are of the sum.
pub const CALL_BITS: u32 = 19;

const CALL_MASK: u32 = (1 << CALL_BITS) - 1;
/// Bits of roots that stand in front of those of the operation while they are added.
const FRONT_BITS: u32 = CALL_BITS - 14;
/// Odd: what has once made a difference in the lowest bits never ceases to.
const FACTOR: u32 = 0x9e37_79b1;

/// The calls of a member: the last ones, and all that are not over.
pub(super) struct History {
    calls: Box<[Call]>,
    /// Of all calls.
    sum: u32,
}

#[derive(Clone, Copy)]
struct Call {
    number: u32,
    /// The sum of those before.
    before: u32,
    call: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { calls: [Call { number: 0, before: 0, call: 0 }; 2 * WINDOW].into(), sum: 1 }
    }
}

impl History {
    /// Adds a call with its number; calls from `over` on are not over. Returns its signature.
    #[inline]
    pub(super) fn add(&mut self, number: u32, call: u32, over: u32) -> u32 {
        if number.wrapping_sub(over) as usize >= self.calls.len() {
            self.grow();
        }
        let (call, before) = (call & CALL_MASK, self.sum);
        let at = self.at(number);
        self.calls[at] = Call { number, before, call };
        // The bits that members differ in most are the lowest.
        let spread = (call << FRONT_BITS | call >> (CALL_BITS - FRONT_BITS)) & CALL_MASK;
        self.sum = (before ^ spread).wrapping_mul(FACTOR);
        signature(before, call)
    }

    /// The sum of all calls.
    #[inline]
    pub(super) fn sum(&self) -> u32 {
        self.sum
    }

    /// The sum of what was called before the call with this number; none when that is long ago.
    #[inline]
    pub(super) fn before(&self, number: u32) -> Option<u32> {
        self.known(number).map(|call| call.before)
    }

    /// What was called with this number; none when that is long ago.
    pub(super) fn call(&self, number: u32) -> Option<u32> {
        self.known(number).map(|call| call.call)
    }

    #[inline]
    fn known(&self, number: u32) -> Option<Call> {
        let call = self.calls[self.at(number)];
        (call.number == number).then_some(call)
    }

    #[inline]
    fn at(&self, number: u32) -> usize {
        number as usize & (self.calls.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let length = 2 * self.calls.len();
        let before = std::mem::replace(
            &mut self.calls,
            vec![Call { number: 0, before: 0, call: 0 }; length].into(),
        );
        for call in before {
            let at = self.at(call.number);
            self.calls[at] = call;
        }
    }
}

/// The signature of a call with this sum before it.
#[inline]
pub(super) fn signature(before: u32, call: u32) -> u32 {
    before << CALL_BITS | call
}

/// What is called by this signature.
#[inline]
pub fn call_of(signature: u32) -> u32 {
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
        let mut history = History::default();
        for (number, call) in (1..).zip(calls) {
            history.add(number, call, number);
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
                assert!(!follows(signature(first.sum(), 0), second.sum()), "{other} at {place}");
            }
        }
        let far = [usual, usual + 256].map(|call| called([call, usual]).sum());
        assert_ne!(far[0], far[1], "the whole sum has every bit of a root");
    }

    #[test]
    fn calls_that_change_places_show() {
        for (one, other) in (0..30u32).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let [one, other] = [one << 14, other << 14];
            assert_ne!(called([one, other]).sum(), called([other, one]).sum());
        }
    }

    #[test]
    fn what_is_not_over_is_kept_however_much_that_is() {
        let mut history = History::default();
        let first = u32::MAX - 5;
        for number in (0..100).map(|after| first.wrapping_add(after)) {
            history.add(number, number & 0xff, first);
        }
        let known = |number: u32| history.call(number) == Some(number & 0xff);
        assert!((0..100).all(|after| known(first.wrapping_add(after))));
        assert_eq!(history.before(first), Some(1));
        assert_eq!(history.before(first.wrapping_add(100)), None, "it was not called");
    }

    #[test]
    fn a_signature_says_what_is_called() {
        let mut history = called([5, 6]);
        let before = history.sum();
        let signature = history.add(3, 7, 3);
        assert_eq!(call_of(signature), 7);
        assert!(follows(signature, before) && !follows(signature, before + 1));
    }
}
