//! The part of a lane's frames that the other process is not known to have taken.
//!
//! Bytes that the network has accepted may wait for a long time: in the sockets of both hosts and in a receiver that
//! does not take them. An urgent message would wait behind them. The positions that the receiver reports tell of them.

use std::collections::VecDeque;

/// The urgent messages of one lane that the receiver may not have taken yet. Beyond, a sender waits.
pub(super) const URGENT_AHEAD_MAX: usize = 1_024;
/// So many bytes lie between two marks.
const MARK_BYTES: u64 = 32 * 1024;

/// Frames that were sent and not confirmed. It needs memory only while there are many of them.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// The bytes of all frames that were sent.
    sent_bytes: u64,
    /// The part of them that the receiver is known to have taken.
    taken_bytes: u64,
    /// Positions with the bytes up to them, in order.
    marks: VecDeque<(u64, u64)>,
    /// The positions behind urgent messages, in order.
    urgent: VecDeque<u64>,
}

impl Unconfirmed {
    /// Counts a frame, which ends at this position.
    #[inline]
    pub(super) fn sent(&mut self, position: u64, bytes: usize, is_urgent: bool) {
        self.sent_bytes += bytes as u64;
        let marked = self.marks.back().map_or(self.taken_bytes, |&(_, bytes)| bytes);
        if self.sent_bytes - marked >= MARK_BYTES {
            self.marks.push_back((position, self.sent_bytes));
        }
        if is_urgent {
            self.urgent.push_back(position);
        }
    }

    /// The receiver has taken everything up to a position.
    pub(super) fn taken(&mut self, position: u64) {
        while let Some(&(_, bytes)) = self.marks.front().filter(|(at, _)| *at <= position) {
            self.taken_bytes = bytes;
            self.marks.pop_front();
        }
        while self.urgent.front().is_some_and(|at| *at <= position) {
            self.urgent.pop_front();
        }
    }

    /// The bytes that the receiver is not known to have taken, to within the distance of two marks.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.sent_bytes - self.taken_bytes
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
    fn what_is_taken_no_longer_counts() {
        let mut frames = Unconfirmed::default();
        (1..=100).for_each(|position| frames.sent(position, 10_000, false));
        assert_eq!(frames.bytes(), 1_000_000);
        frames.taken(50);
        assert!((500_000..500_000 + MARK_BYTES + 10_000).contains(&frames.bytes()), "{frames:?}");
        frames.taken(100);
        assert!(frames.bytes() < MARK_BYTES + 10_000, "{frames:?}");
        assert!(frames.marks.is_empty(), "it holds nothing");
        (101..1_000_000).for_each(|position| {
            frames.sent(position, 30, false);
            frames.taken(position - 64);
        });
        assert!(frames.bytes() < 2 * MARK_BYTES, "many short ones: {}", frames.bytes());
    }

    #[test]
    fn urgent_messages_have_a_limit() {
        let mut frames = Unconfirmed::default();
        let mut position = 0;
        while frames.admits_urgent() {
            position += 2;
            frames.sent(position, 40, true);
        }
        assert_eq!(position, 2 * URGENT_AHEAD_MAX as u64);
        frames.taken(1);
        assert!(!frames.admits_urgent());
        frames.taken(2);
        assert!(frames.admits_urgent());
    }
}
