//! When an endpoint looks at its network.
//!
//! A look at a network takes a system call, which would cost more than a message between neighbours. So a look that
//! waits for a neighbour leaves the network alone, but for a small budget. Looks that wait for a far process, or have
//! something to send to one, go to the network each time. Whoever waits for any source of a context with far members
//! goes there now and then. The last look before sleep goes there in any case and does not ask here.

/// Looks of a wait for any source of which one goes to the network.
const LOOKS_FOR_ANY: u32 = 16;
/// Looks in a row that found nothing, of which one goes to the network although nothing is expected from it.
const LOOKS_IN_VAIN: u32 = 256;
/// Looks of which one goes to the network, whatever they find.
const LOOKS_IN_ANY_CASE: u32 = 4096;
/// Looks at the network after which the endpoint finds out again whether it surely expects something from it.
const LOOKS_PER_REVIEW: u32 = 16;

/// How much an endpoint expects from its network, from the least to the most urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interest {
    /// Nothing: only what comes unasked.
    #[default]
    Nothing,
    /// A message that a neighbour may send as well.
    Perhaps,
    /// A message of a far process, or room for one to it.
    Surely,
}

/// Decides which looks go to the network.
#[derive(Debug, Default)]
pub(crate) struct NetworkBudget {
    interest: Interest,
    looks: u32,
    in_vain: u32,
    /// Looks at the network since the last review.
    unreviewed: u32,
}

impl NetworkBudget {
    /// Records that something is expected from the network from now on.
    #[inline]
    pub(crate) fn expect(&mut self, interest: Interest) {
        if interest >= self.interest {
            self.interest = interest;
            self.unreviewed = 0;
        }
    }

    /// Counts a look, which has found something at the neighbours or not. Returns whether it goes to the network.
    #[inline]
    pub(crate) fn is_due(&mut self, has_found: bool) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.in_vain = if has_found { 0 } else { self.in_vain.wrapping_add(1) };
        let is_expected = match self.interest {
            Interest::Nothing => false,
            Interest::Perhaps => self.looks.is_multiple_of(LOOKS_FOR_ANY),
            Interest::Surely => true,
        };
        let is_idle = self.in_vain != 0 && self.in_vain.is_multiple_of(LOOKS_IN_VAIN);
        is_expected || is_idle || self.looks.is_multiple_of(LOOKS_IN_ANY_CASE)
    }

    /// Counts a look at the network. Returns whether the endpoint should find out what it still expects, and say so
    /// ([`NetworkBudget::review`]).
    pub(crate) fn needs_review(&mut self) -> bool {
        self.unreviewed += 1;
        match self.interest {
            Interest::Nothing => false,
            Interest::Perhaps => true,
            Interest::Surely => self.unreviewed >= LOOKS_PER_REVIEW,
        }
    }

    /// Records what is still expected.
    pub(crate) fn review(&mut self, interest: Interest) {
        self.interest = interest;
        self.unreviewed = 0;
    }
}

/// How often a wait for one far process looks at the network in a row, before anything else is looked at.
///
/// A waiter whose core is wanted by another task gives it away after a few polls. Between neighbours these take longer
/// than a message; between hosts a message takes longer. So each poll is several looks here, as long as messages come
/// within them. Where they do not, because the sender waits for this core, one poll is one look.
#[derive(Debug)]
pub(crate) struct FarLooks {
    looks: u32,
    polls: u32,
    /// Polls in a row that found nothing.
    in_vain: u32,
}

impl FarLooks {
    /// The most looks of a poll.
    const MOST: u32 = 16;
    /// Polls in vain after which a poll has half as many looks.
    const PATIENCE: u32 = 8;
    /// One poll in so many has the most looks, to see whether that pays by now.
    const EXPLORE_EVERY: u32 = 16;

    /// How many looks the next poll has.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(Self::EXPLORE_EVERY) { Self::MOST } else { self.looks }
    }

    /// Records that this look of a poll, counted from zero, has found something.
    #[inline]
    pub(crate) fn found(&mut self, look: u32) {
        self.in_vain = 0;
        if look > 0 {
            self.looks = Self::MOST;
        }
    }

    /// Records that a poll with so many looks has found nothing.
    pub(crate) fn failed(&mut self, looks: u32) {
        if looks <= 1 {
            return;
        }
        self.in_vain += 1;
        if self.in_vain >= Self::PATIENCE {
            self.in_vain = 0;
            self.looks = (self.looks / 2).max(1);
        }
    }
}

impl Default for FarLooks {
    fn default() -> Self {
        Self { looks: Self::MOST, polls: 0, in_vain: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_has_several_looks_while_messages_come_within_them() {
        let mut looks = FarLooks::default();
        for _ in 0..100 {
            assert_eq!(looks.next(), FarLooks::MOST);
            looks.found(9);
        }
        (0..1_000).for_each(|_| looks.failed(FarLooks::MOST));
        let tried: Vec<u32> = (0..FarLooks::EXPLORE_EVERY).map(|_| looks.next()).collect();
        assert_eq!(tried.iter().filter(|&&tried| tried == FarLooks::MOST).count(), 1);
        assert_eq!(
            tried.iter().filter(|&&tried| tried == 1).count() as u32,
            FarLooks::EXPLORE_EVERY - 1
        );
        looks.found(0);
        assert_eq!(looks.next(), 1, "the first look would have found it anyway");
        looks.found(1);
        assert_eq!(looks.next(), FarLooks::MOST);
    }

    fn due(budget: &mut NetworkBudget, looks: u32, has_found: bool) -> u32 {
        (0..looks).filter(|_| budget.is_due(has_found)).count() as u32
    }

    #[test]
    fn neighbours_pay_little() {
        let mut budget = NetworkBudget::default();
        assert_eq!(due(&mut budget, 10 * LOOKS_IN_ANY_CASE, true), 10);
        let mut budget = NetworkBudget::default();
        assert_eq!(due(&mut budget, LOOKS_IN_VAIN - 1, false), 0);
        assert_eq!(due(&mut budget, 1, true), 0, "a look that finds something begins anew");
        assert_eq!(due(&mut budget, LOOKS_IN_VAIN, false), 1);
        assert_eq!(due(&mut budget, LOOKS_IN_VAIN, false), 1);
    }

    #[test]
    fn an_expected_message_is_looked_for() {
        let mut budget = NetworkBudget::default();
        budget.expect(Interest::Perhaps);
        assert_eq!(due(&mut budget, 10 * LOOKS_FOR_ANY, true), 10);
        budget.expect(Interest::Surely);
        budget.expect(Interest::Perhaps);
        assert_eq!(due(&mut budget, 10, true), 10, "the more urgent expectation stays");
        budget.review(Interest::Nothing);
        assert_eq!(due(&mut budget, 10, true), 0);
    }

    #[test]
    fn expectations_are_reviewed_now_and_then() {
        let mut budget = NetworkBudget::default();
        assert!((0..100).all(|_| !budget.needs_review()), "nothing is expected");
        budget.expect(Interest::Perhaps);
        assert!(budget.needs_review(), "such looks are rare");
        budget.expect(Interest::Surely);
        assert!((1..LOOKS_PER_REVIEW).all(|_| !budget.needs_review()));
        assert!(budget.needs_review());
        budget.review(Interest::Surely);
        assert!(!budget.needs_review());
    }
}
