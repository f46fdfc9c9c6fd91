//! Messages within a host: a line, and for more than it has room for, a copy in and a copy out.
//!
//! How long a message takes as a whole was measured, for some sizes; how much of that is whose is
//! not. Data that have room in a ring are copied in and then out, the one as long as the other in
//! proportion to the rates of long copies; of longer ones both go on at once, unless who sends shares its
//! processor.
//!
//! A message keeps its sender busy for longer than until the receiver can have it: what is noted down behind
//! it does not delay that one message, but those that follow.

use landeck_collectives::{Details, Figures};

use crate::platform::bytes_ps;

/// Data up to this travel with their header.
const INLINE_BYTES: u64 = 48;
/// Data up to this lie in a ring as a whole; longer ones pass through a block in such pieces.
const RING_BYTES: u64 = 16 * 1024;

/// What messages within a host take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    figures: Figures,
    details: Details,
}

impl Near {
    pub(crate) const fn new(figures: Figures, details: Details) -> Self {
        Self { figures, details }
    }

    /// How long a sender is busy, and when the receiver can begin.
    pub(crate) fn send_ps(&self, bytes: u64, is_shared: bool) -> (u64, u64) {
        let overhead_ps = self.overhead_ps();
        let busy_ps = overhead_ps.max(self.details.send_ps);
        let begin_ps = overhead_ps + self.figures.line_ps;
        let (rest_ps, out_ps) = (self.rest_ps(bytes), self.out_ps(bytes));
        if bytes <= RING_BYTES {
            let in_ps = rest_ps - out_ps;
            return (busy_ps + in_ps, begin_ps + in_ps);
        }
        let in_ps = bytes_ps(bytes, self.figures.two_copy_kib_ps);
        let ahead_ps = if is_shared { in_ps } else { rest_ps - out_ps };
        (busy_ps + in_ps, begin_ps + ahead_ps)
    }

    /// How long a receiver is busy.
    pub(crate) fn receive_ps(&self, bytes: u64) -> u64 {
        self.overhead_ps() + self.out_ps(bytes)
    }

    /// At each end of every message.
    fn overhead_ps(&self) -> u64 {
        self.figures.message_ps.saturating_sub(self.figures.line_ps) / 2
    }

    /// By so much longer than a message of a line.
    fn rest_ps(&self, bytes: u64) -> u64 {
        if bytes <= INLINE_BYTES {
            return 0;
        }
        self.details.message_ps(&self.figures, bytes).saturating_sub(self.figures.message_ps)
    }

    /// The receiver's part of that.
    fn out_ps(&self, bytes: u64) -> u64 {
        let rest_ps = self.rest_ps(bytes);
        let (both, out) = (self.figures.two_copy_kib_ps, self.figures.one_copy_kib_ps);
        if bytes <= RING_BYTES {
            return bytes_ps(rest_ps, 1024 * out / (both + out).max(1));
        }
        bytes_ps(bytes, out).min(rest_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_BYTES: u64 = 1 << 20;

    #[test]
    fn who_shares_its_processor_has_copied_all_before_the_receiver_begins() {
        let figures = Figures::default();
        let near = Near::new(figures, Details::of(&figures));
        let overhead_ps = (figures.message_ps - figures.line_ps) / 2;
        let in_ps = 1024 * figures.two_copy_kib_ps;
        let busy_ps = figures.message_ps / 2;
        let whole = (busy_ps + in_ps, overhead_ps + figures.line_ps + in_ps);
        assert_eq!(near.send_ps(LONG_BYTES, true), whole);
        assert!(near.send_ps(LONG_BYTES, false).1 < whole.1);
    }

    #[test]
    fn who_sends_several_messages_is_busy_for_longer_than_until_one_is_there() {
        let figures = Figures::default();
        let details = Details { send_ps: 70_000, ..Details::of(&figures) };
        let overhead_ps = (figures.message_ps - figures.line_ps) / 2;
        let there_ps = overhead_ps + figures.line_ps;
        assert_eq!(Near::new(figures, details).send_ps(8, false), (70_000, there_ps));
        let quick = Details { send_ps: 1, ..details };
        assert_eq!(Near::new(figures, quick).send_ps(8, false), (overhead_ps, there_ps));
    }

    #[test]
    fn a_receiver_is_never_busy_for_longer_than_the_message_takes() {
        let usual = Figures::default();
        let figures = Figures { one_copy_kib_ps: 1_000_000, ..usual };
        let details = Details::of(&usual);
        let near = Near::new(figures, details);
        let overhead_ps = (usual.message_ps - usual.line_ps) / 2;
        let rest_ps = details.message_ps(&usual, LONG_BYTES) - usual.message_ps;
        assert_eq!(near.receive_ps(LONG_BYTES), overhead_ps + rest_ps);
    }
}
