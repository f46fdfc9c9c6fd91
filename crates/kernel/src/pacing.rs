//! The pacing of many-to-one steps between hosts: the receiver's grants of long messages.
//!
//! A long message to another host is offered, and its parts follow when the receiver accepts it. In a many-to-one step
//! the receiver does not accept all offers at once: [`Grants`] say when, and up to which position. An acceptance with a
//! position holds up to there; further ones follow with later positions.
//!
//! An offer is part of such a step if it came in the context of collective operations, and receives from other senders
//! are posted there, or other messages come by grants. This is decided at the end of each look, when all receives of a
//! step are posted. A message that comes alone is accepted whole, and waits for nothing.

use std::collections::HashMap;
use std::time::Duration;

use landeck_channel::Peer;
use landeck_channel::credit::GrowingCredit;
use landeck_channel::grants::{GrantLimits, Grants};
use landeck_channel::incast::{Incast, PaceTrials};
use landeck_channel::tokens::{Priority, TokenWish};
use landeck_wire::ContextId;

use crate::mailboxes::FIRST_MAILBOX;
use crate::request::RequestId;

/// A message that comes by grants.
#[derive(Clone, Copy)]
pub(crate) struct Offered {
    pub(crate) from: Peer,
    pub(crate) context: u32,
    /// The receive that its parts name.
    pub(crate) named: RequestId,
    pub(crate) send: u64,
    pub(crate) bytes: u64,
    /// The position up to which its sender may send.
    pub(crate) told: u64,
}

/// The steps of one wish.
pub(crate) struct Paced {
    wish: Incast,
    pub(crate) grants: Grants<RequestId>,
    calibration: PaceTrials,
    credit: GrowingCredit,
}

/// The pacing of an endpoint's receives.
pub(crate) struct Pacing {
    /// The wish of groups that have none of their own.
    usual: Incast,
    /// The wishes of groups, by their context for collective operations.
    wishes: HashMap<u32, Incast>,
    /// Some wish was for tokens.
    has_tokens: bool,
    /// The senders of a many-to-one step, by the context of a group whose messages need tokens.
    senders: HashMap<u32, u32>,
    pub(crate) paced: Vec<Paced>,
    pub(crate) offered: Vec<Offered>,
    /// The offers at the end of `offered` that are not decided yet.
    pub(crate) undecided: usize,
    /// The bytes that have come since the last look.
    pub(crate) arrived: Vec<(RequestId, u64)>,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            usual: Incast::None,
            wishes: HashMap::new(),
            has_tokens: false,
            senders: HashMap::new(),
            paced: Vec::new(),
            offered: Vec::new(),
            undecided: 0,
            arrived: Vec::new(),
        }
    }
}

impl Pacing {
    /// Sets the wish for groups that have none of their own.
    pub(crate) const fn set_usual(&mut self, wish: Incast) {
        self.has_tokens |= matches!(wish, Incast::Tokens(_));
        self.usual = wish;
    }

    /// Sets the wish for a context of collective operations.
    pub(crate) fn set(&mut self, context: u32, wish: Option<Incast>) {
        self.has_tokens |= matches!(wish, Some(Incast::Tokens(_)));
        self.senders.remove(&context);
        match wish {
            Some(wish) => self.wishes.insert(context, wish),
            None => self.wishes.remove(&context),
        };
    }

    pub(crate) fn wish(&self, context: u32) -> Incast {
        if context >= FIRST_MAILBOX || context & ContextId::COLLECTIVE == 0 {
            return Incast::None;
        }
        self.wishes.get(&context).copied().unwrap_or(self.usual)
    }

    /// The wish of a group whose messages need tokens, for its own context or that of its collective operations.
    #[inline]
    pub(crate) fn tokens(&self, context: u32) -> Option<TokenWish> {
        if self.has_tokens { self.tokens_of(context) } else { None }
    }

    #[cold]
    fn tokens_of(&self, context: u32) -> Option<TokenWish> {
        const INTERNAL: u32 = ContextId::CREATION | ContextId::AGREEMENT;
        if context >= FIRST_MAILBOX || context & INTERNAL != 0 {
            return None;
        }
        match self.wishes.get(&(context | ContextId::COLLECTIVE)).unwrap_or(&self.usual) {
            Incast::Tokens(wish) => Some(*wish),
            _ => None,
        }
    }

    /// Notes the senders of a many-to-one step.
    pub(crate) fn note_senders(&mut self, context: u32, senders: u32) {
        self.senders.insert(context, senders);
    }

    /// The buffers of one receiver that one message may use: where many answer one, they share the number.
    pub(crate) fn share_of_buffers(&self, context: u32, priority: Priority) -> u32 {
        let senders = self.senders.get(&context).copied().unwrap_or(1);
        (priority.buffers() / senders.max(1)).max(1)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    pub(crate) fn paced(&mut self, wish: Incast) -> &mut Paced {
        let at = self.paced.iter().position(|one| one.wish == wish);
        let at = at.unwrap_or_else(|| {
            let grants = Grants::new(GrantLimits::senders(1));
            let (calibration, credit) = (PaceTrials::default(), GrowingCredit::default());
            self.paced.push(Paced { wish, grants, calibration, credit });
            self.paced.len() - 1
        });
        &mut self.paced[at]
    }
}

impl Paced {
    pub(crate) fn add(&mut self, named: RequestId, bytes: u64, now: Duration) {
        if self.grants.is_empty() {
            self.calibration.begin(now);
            self.credit.begin(now);
            self.grants.set_limits(match self.wish {
                Incast::None | Incast::Tokens(_) => GrantLimits::senders(u32::MAX),
                Incast::Fixed(senders) => GrantLimits::senders(senders),
                Incast::Calibrated => self.calibration.limits(),
                Incast::Credit(bytes) => GrantLimits::credit(bytes),
                Incast::GrowingCredit => self.credit.limits(),
            });
        }
        self.grants.add(named, bytes, now);
    }

    /// Whether the number of packets that came out of order matters.
    pub(crate) fn heeds_disorder(&self, named: RequestId) -> bool {
        self.wish == Incast::GrowingCredit && self.grants.contains(named)
    }

    /// Counts bytes of a message, and packets of its sender that came out of order. Returns whether it is whole with them.
    pub(crate) fn received(
        &mut self,
        named: RequestId,
        (bytes, disorder): (u64, u64),
        now: Duration,
    ) -> bool {
        if !self.grants.contains(named) {
            return false;
        }
        self.calibration.received(bytes);
        self.count_credit(bytes, disorder, now);
        self.grants.received(named, bytes, now);
        if self.grants.is_empty() {
            self.calibration.end(now);
            self.credit.end(now);
        }
        !self.grants.contains(named)
    }

    fn count_credit(&mut self, bytes: u64, disorder: u64, now: Duration) {
        let is_needed = self.grants.has_waiting();
        let is_new = self.credit.received(bytes, disorder, is_needed, now);
        if is_new && self.wish == Incast::GrowingCredit {
            self.grants.set_limits(self.credit.limits());
        }
    }
}

#[cfg(test)]
mod tests {
    use landeck_channel::grants::CREDIT_BYTES;

    use super::*;

    const GROUP: u32 = 1 | ContextId::COLLECTIVE;
    const MIB: u64 = 1 << 20;

    fn named(number: u64) -> RequestId {
        RequestId::from_bits(number)
    }

    /// The time in which 16 KiB come at a rate in bytes a second.
    const fn piece_time(rate: u64) -> Duration {
        Duration::from_nanos((16 << 10) * 1_000_000_000 / rate)
    }

    /// Messages of 16 KiB or a multiple arrive. Returns the limits at the end.
    fn step(paced: &mut Paced, messages: &[u64], rate: u64, now: &mut Duration) -> GrantLimits {
        for (number, bytes) in (0..).zip(messages) {
            paced.add(named(number), *bytes, *now);
        }
        let all = || (0..messages.len() as u64).map(named);
        while !paced.grants.is_empty() {
            while paced.grants.next(*now).is_some() {}
            for named in all().filter(|named| paced.grants.contains(*named)).collect::<Vec<_>>() {
                *now += piece_time(rate);
                let is_whole = paced.received(named, (16 << 10, 0), *now);
                assert_eq!(is_whole, !paced.grants.contains(named));
            }
        }
        paced.grants.limits()
    }

    const FAST: u64 = 4_000_000_000;
    const SLOW: u64 = 12_500_000;

    #[test]
    fn a_growing_credit_is_that_of_the_next_step() {
        let (mut pacing, mut now) = (Pacing::default(), Duration::ZERO);
        let paced = pacing.paced(Incast::GrowingCredit);
        assert_eq!(step(paced, &[MIB; 4], SLOW, &mut now), GrantLimits::credit(CREDIT_BYTES));
        // No message waits for it, so nobody needs more.
        for _ in 0..64 {
            let limits = step(paced, &[16 << 10; 4], FAST, &mut now);
            assert_eq!(limits, GrantLimits::credit(CREDIT_BYTES));
        }
        let grown = step(paced, &[MIB; 4], FAST, &mut now);
        assert!(grown.bytes > Some(2 * CREDIT_BYTES), "{grown:?}");
        paced.add(named(0), MIB, now);
        assert_eq!(paced.grants.limits(), grown);
    }

    #[test]
    fn the_time_of_all_steps_of_an_epoch_counts_and_not_that_between_them() {
        for (rate, grows) in [(100_000_000, false), (FAST, true)] {
            let (mut pacing, mut now) = (Pacing::default(), Duration::ZERO);
            let paced = pacing.paced(Incast::GrowingCredit);
            for _ in 0..8 {
                step(paced, &[32 << 10; 5], rate, &mut now);
                now += Duration::from_secs(1);
            }
            let bytes = paced.credit.limits().bytes;
            assert_eq!(bytes > Some(CREDIT_BYTES), grows, "{rate} bytes a second: {bytes:?}");
        }
    }

    #[test]
    fn other_wishes_keep_their_limits() {
        let (mut pacing, mut now) = (Pacing::default(), Duration::ZERO);
        for (wish, limits) in [
            (Incast::Credit(CREDIT_BYTES), GrantLimits::credit(CREDIT_BYTES)),
            (Incast::Fixed(3), GrantLimits::senders(3)),
            (Incast::None, GrantLimits::senders(u32::MAX)),
        ] {
            assert_eq!(step(pacing.paced(wish), &[4 * MIB; 4], FAST, &mut now), limits);
        }
        assert_eq!(pacing.paced.len(), 3);
    }

    #[test]
    fn packets_out_of_order_matter_to_a_credit_that_grows_alone() {
        let mut pacing = Pacing::default();
        for wish in [Incast::GrowingCredit, Incast::Credit(CREDIT_BYTES)] {
            let paced = pacing.paced(wish);
            paced.add(named(1), MIB, Duration::ZERO);
            assert_eq!(paced.heeds_disorder(named(1)), wish == Incast::GrowingCredit);
            assert!(!paced.heeds_disorder(named(2)), "it is no message of this step");
        }
    }

    #[test]
    fn a_calibration_finds_the_number_that_was_fastest() {
        let (mut pacing, mut now) = (Pacing::default(), Duration::from_secs(1));
        let paced = pacing.paced(Incast::Calibrated);
        for _ in 0..18 {
            // The pause before a trial is no part of it.
            let (rate, pause) = match paced.calibration.limits().places {
                4 => (FAST, Duration::from_secs(9)),
                _ => (SLOW, Duration::ZERO),
            };
            now += pause;
            step(paced, &[MIB], rate, &mut now);
        }
        paced.add(named(0), MIB, now);
        assert_eq!(paced.grants.limits(), GrantLimits::senders(4));
    }

    #[test]
    fn only_collective_operations_have_a_wish() {
        let mut pacing = Pacing::default();
        pacing.set_usual(Incast::Fixed(1));
        pacing.set(GROUP, Some(Incast::Fixed(2)));
        let wishes = [GROUP, GROUP + 1, GROUP & !ContextId::COLLECTIVE, FIRST_MAILBOX | GROUP];
        let expected = [Incast::Fixed(2), Incast::Fixed(1), Incast::None, Incast::None];
        assert_eq!(wishes.map(|context| pacing.wish(context)), expected);
        pacing.set(GROUP, None);
        assert_eq!(pacing.wish(GROUP), Incast::Fixed(1));
    }
}
