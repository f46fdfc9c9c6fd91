//! A numbered stream of contents between two daemons, which survives the trunk that carries it.
//!
//! The sender keeps each content until the receiver has confirmed it. A new trunk begins with the number that each side
//! has received; the sender goes on behind it. So no content is lost or delivered twice when a trunk is renewed.

use std::collections::VecDeque;

/// The sending end.
#[derive(Debug, Default)]
pub(crate) struct SendingEnd<T> {
    /// The contents that are not confirmed, the oldest first, each with its length in bytes.
    kept: VecDeque<(T, usize)>,
    /// The number of the first kept content, less one: all up to it are confirmed.
    confirmed: u64,
    /// How many of the kept ones the present trunk has taken.
    taken: usize,
    bytes: usize,
}

impl<T: Clone> SendingEnd<T> {
    /// A stream in which nothing was sent.
    pub(crate) const fn new() -> Self {
        Self { kept: VecDeque::new(), confirmed: 0, taken: 0, bytes: 0 }
    }

    /// Adds a content of this many bytes.
    pub(crate) fn push(&mut self, content: T, bytes: usize) {
        self.kept.push_back((content, bytes));
        self.bytes += bytes;
    }

    /// The bytes that the other side has not confirmed.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next content for the present trunk, with its number.
    pub(crate) fn take(&mut self) -> Option<(u64, T)> {
        let (content, _) = self.kept.get(self.taken)?;
        self.taken += 1;
        Some((self.confirmed + self.taken as u64, content.clone()))
    }

    /// Whether the present trunk has something to take.
    pub(crate) fn has_more(&self) -> bool {
        self.taken < self.kept.len()
    }

    /// Notes that the other side has received everything up to this number. `false` if that was never sent.
    #[must_use]
    pub(crate) fn confirm(&mut self, number: u64) -> bool {
        let Some(new) = number.checked_sub(self.confirmed) else {
            return true; // an older receipt
        };
        if new > self.kept.len() as u64 {
            return false;
        }
        for _ in 0..new {
            if let Some((_, bytes)) = self.kept.pop_front() {
                self.bytes -= bytes;
            }
        }
        self.confirmed = number;
        self.taken = self.taken.saturating_sub(new as usize);
        true
    }

    /// Begins another trunk, whose other side has received everything up to this number. `false` if it confirms what
    /// was never sent.
    #[must_use]
    pub(crate) fn resume(&mut self, received: u64) -> bool {
        let is_right = self.confirm(received);
        self.taken = 0;
        is_right
    }
}

/// The receiving end.
#[derive(Debug, Default)]
pub(crate) struct ReceivingEnd {
    received: u64,
    confirmed: u64,
}

/// The meaning of a number that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbered {
    /// It is the next one.
    Next,
    /// It came before, on an earlier trunk.
    Repeated,
    /// One before it is missing: the other side is broken.
    Gap,
}

impl ReceivingEnd {
    /// Judges a content by its number, and counts it if it is the next one.
    pub(crate) fn receive(&mut self, number: u64) -> Numbered {
        match number {
            _ if number == self.received + 1 => {
                self.received = number;
                Numbered::Next
            }
            _ if number <= self.received => Numbered::Repeated,
            _ => Numbered::Gap,
        }
    }

    /// The number of the last content received.
    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    /// The number to confirm, if contents came since this was last asked.
    pub(crate) fn take_unconfirmed(&mut self) -> Option<u64> {
        let is_new = self.received > self.confirmed;
        self.confirmed = self.received;
        is_new.then_some(self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_trunk_sends_again_what_was_not_received() {
        let (mut send, mut receive) = (SendingEnd::new(), ReceivingEnd::default());
        for content in 1..=5_u64 {
            send.push(content, 10);
        }
        let mut came = Vec::new();
        for _ in 0..3 {
            let (number, content) = send.take().unwrap();
            assert_eq!(receive.receive(number), Numbered::Next);
            came.push(content);
        }
        // The trunk takes a fourth, and breaks before it arrives.
        send.take().unwrap();
        assert!(send.resume(receive.received()));
        assert_eq!(send.bytes(), 20);
        while let Some((number, content)) = send.take() {
            assert_eq!(receive.receive(number), Numbered::Next);
            came.push(content);
        }
        assert_eq!(came, [1, 2, 3, 4, 5]);
        assert_eq!(receive.take_unconfirmed(), Some(5));
        assert_eq!(receive.take_unconfirmed(), None);
        assert!(send.confirm(5) && send.bytes() == 0 && !send.has_more());
    }

    #[test]
    fn a_receipt_that_comes_late_or_lies_is_noticed() {
        let mut send = SendingEnd::new();
        send.push('a', 1);
        send.push('b', 1);
        send.take().unwrap();
        assert!(!send.confirm(3), "never sent");
        assert!(send.confirm(1) && send.confirm(1) && send.confirm(0));
        assert_eq!(send.take(), Some((2, 'b')));
    }

    #[test]
    fn repeated_contents_are_told_from_missing_ones() {
        let mut receive = ReceivingEnd::default();
        assert_eq!(receive.receive(2), Numbered::Gap);
        assert_eq!(receive.receive(1), Numbered::Next);
        assert_eq!(receive.receive(1), Numbered::Repeated);
        assert_eq!(receive.receive(0), Numbered::Repeated);
        assert_eq!(receive.receive(3), Numbered::Gap);
    }
}
