//! The part of a lane's frames that the other process is not known to have taken.
//!
//! Bytes that the network has accepted may wait for a long time: in the sockets of both hosts and in a receiver that
//! does not take them. An urgent message would wait behind them. The positions that the receiver reports tell of them.
//!
//! A receiver that takes 1 GB/s is through with them before a relay has woken up. One that computes between its receives
//! is not, so the time counts as well, since the oldest of them was sent.

use std::collections::VecDeque;

/// The urgent messages of one lane that the receiver may not have taken yet. Beyond, a sender waits.
pub(super) const URGENT_AHEAD_MAX: usize = 1_024;
/// The sender learns of so many received bytes at the latest.
pub(super) const REPORT_BYTES: u64 = 128 * 1024;
/// So many bytes lie between two marks.
const MARK_BYTES: u64 = 32 * 1024;
/// An urgent message takes another way where more bytes are not known to have been taken.
const AHEAD_OF_URGENT_MAX: u64 = 2 * REPORT_BYTES;
/// A receiver that has taken everything need not have said so of fewer bytes.
const UNTOLD_BYTES_MAX: u64 = REPORT_BYTES + 2 * MARK_BYTES;
/// A receiver is slow if it has not taken for so long what was sent.
const SLOW_NS: u64 = 500_000;

/// A place among the frames.
#[derive(Clone, Copy, Debug)]
struct Mark {
    position: u64,
    /// The bytes of all frames up to here.
    bytes: u64,
    /// The time at which it was sent.
    sent_ns: u64,
}

/// Frames that were sent and not confirmed. It needs memory only while there are many of them.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// The bytes of all frames that were sent.
    sent_bytes: u64,
    /// The part of them that the receiver is known to have taken.
    taken_bytes: u64,
    /// Some places, in order.
    marks: VecDeque<Mark>,
    /// The positions behind urgent messages, in order.
    urgent: VecDeque<u64>,
}

impl Unconfirmed {
    /// Counts a frame, which ends at this position. `clock` gives the time.
    #[inline]
    pub(super) fn sent(
        &mut self,
        position: u64,
        bytes: usize,
        is_urgent: bool,
        clock: impl FnOnce() -> u64,
    ) {
        self.sent_bytes += bytes as u64;
        let marked = self.marks.back().map_or(self.taken_bytes, |mark| mark.bytes);
        if self.sent_bytes - marked >= MARK_BYTES {
            self.marks.push_back(Mark { position, bytes: self.sent_bytes, sent_ns: clock() });
        }
        if is_urgent {
            self.urgent.push_back(position);
        }
    }

    /// The receiver has taken everything up to a position.
    pub(super) fn taken(&mut self, position: u64) {
        while let Some(mark) = self.marks.front().filter(|mark| mark.position <= position) {
            self.taken_bytes = mark.bytes;
            self.marks.pop_front();
        }
        while self.urgent.front().is_some_and(|at| *at <= position) {
            self.urgent.pop_front();
        }
    }

    /// The bytes that the receiver is not known to have taken, to within the distance of two marks.
    fn bytes(&self) -> u64 {
        self.sent_bytes - self.taken_bytes
    }

    /// Whether an urgent message would wait for long behind them: they are many, or the receiver is slow. `clock` gives the
    /// time.
    pub(super) fn is_much(&self, clock: impl FnOnce() -> u64) -> bool {
        let bytes = self.bytes();
        let is_old = |mark: &Mark| clock().saturating_sub(mark.sent_ns) > SLOW_NS;
        bytes > AHEAD_OF_URGENT_MAX
            || bytes > UNTOLD_BYTES_MAX && self.marks.front().is_some_and(is_old)
    }

    /// Whether one more urgent message may be sent.
    pub(super) fn admits_urgent(&self) -> bool {
        self.urgent.len() < URGENT_AHEAD_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_taken_no_longer_count() {
        let mut frames = Unconfirmed::default();
        (1..=100).for_each(|position| frames.sent(position, 10_000, false, || 0));
        assert_eq!(frames.bytes(), 1_000_000);
        let most = 1_000_000 / MARK_BYTES as usize;
        assert!(frames.marks.len() <= most, "a mark for each frame: {}", frames.marks.len());
        frames.taken(50);
        assert!((500_000..500_000 + MARK_BYTES + 10_000).contains(&frames.bytes()), "{frames:?}");
        frames.taken(100);
        assert!(frames.bytes() < MARK_BYTES + 10_000, "{frames:?}");
        frames.sent(101, 10_000, false, || 0);
        assert!(frames.marks.is_empty(), "it holds nothing");
        (102..1_000_000).for_each(|position| {
            frames.sent(position, 30, false, || 0);
            frames.taken(position - 64);
        });
        assert!(frames.bytes() < 2 * MARK_BYTES, "many short ones: {}", frames.bytes());
    }

    #[test]
    fn a_receiver_is_slow_if_it_takes_nothing_for_long() {
        let mut frames = Unconfirmed::default();
        let later = || SLOW_NS + 1;
        (1..=12).for_each(|position| frames.sent(position, 16_384, false, || 0));
        assert!(!frames.is_much(later), "it may have taken all of this");
        (13..=16).for_each(|position| frames.sent(position, 16_384, false, || 0));
        assert!(!frames.is_much(|| SLOW_NS), "not yet");
        assert!(frames.is_much(later));
        frames.taken(2);
        (17..=18).for_each(|position| frames.sent(position, 16_384, false, later));
        assert!(frames.is_much(later), "what was sent after the first ones waits as well");
        frames.taken(16);
        (19..=32).for_each(|position| frames.sent(position, 16_384, false, later));
        assert!(!frames.is_much(later), "it has taken all that is old");
        (33..=40).for_each(|position| frames.sent(position, 16_384, false, later));
        assert!(frames.is_much(later), "these are many, new or not");
    }

    #[test]
    fn urgent_messages_have_a_limit() {
        let mut frames = Unconfirmed::default();
        let mut position = 0;
        while frames.admits_urgent() && position < 4 * URGENT_AHEAD_MAX as u64 {
            position += 2;
            frames.sent(position, 40, true, || 0);
        }
        assert_eq!(position, 2 * URGENT_AHEAD_MAX as u64);
        frames.taken(1);
        assert!(!frames.admits_urgent());
        frames.taken(2);
        assert!(frames.admits_urgent());
    }
}
