//! Sends that have had no room yet: for each receiver and context those that wait, oldest first.
//!
//! Only the first of each can begin next, so a look costs as many tries as there are such lines,
//! however many sends wait in them. Each context has a line of its own, because order holds within it
//! alone: what one waits for may be received only after what comes in another.

use std::collections::VecDeque;

use landeck_channel::Peer;

use crate::request::RequestId;

/// A receiver, and the context of what is sent to it.
pub(crate) type Line = (Peer, u32);

/// Sends that have had no room yet.
#[derive(Default)]
pub(crate) struct Backlog {
    /// None is empty.
    queues: Vec<(Line, VecDeque<RequestId>)>,
    /// Sends that have begun since there is a backlog.
    begun: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether anything waits for room there.
    pub(crate) fn has_any_in(&self, line: Line) -> bool {
        self.queues.iter().any(|&(other, _)| other == line)
    }

    pub(crate) fn push(&mut self, line: Line, id: RequestId) {
        match self.queues.iter_mut().find(|(other, _)| *other == line) {
            Some((_, queue)) => queue.push_back(id),
            None => self.queues.push((line, VecDeque::from([id]))),
        }
    }

    /// Takes a send out, wherever it stands.
    pub(crate) fn remove(&mut self, line: Line, id: RequestId) {
        if let Some((_, queue)) = self.queues.iter_mut().find(|(other, _)| *other == line) {
            queue.retain(|&queued| queued != id);
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
    }

    /// How many sends have begun that had waited here.
    pub(crate) fn begun_in_all(&self) -> u64 {
        self.begun
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> usize {
        self.queues.len()
    }

    /// The receiver of the line with this number, and the send that is to begin next there.
    pub(crate) fn next(&self, number: usize) -> Option<(Peer, RequestId)> {
        let ((peer, _), queue) = self.queues.get(number)?;
        Some((*peer, *queue.front()?))
    }

    /// That send has begun. False when none is left in its line, whose number is another's now.
    pub(crate) fn begun(&mut self, number: usize) -> bool {
        self.begun += 1;
        let Some((_, queue)) = self.queues.get_mut(number) else { return false };
        queue.pop_front();
        if !queue.is_empty() {
            return true;
        }
        self.queues.swap_remove(number);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_receiver_and_context_has_its_order() {
        let id = RequestId::from_bits;
        let line = |to, context| (Peer(to), context);
        let mut backlog = Backlog::default();
        for (to, context, number) in
            [(1, 5, 10), (2, 5, 20), (1, 5, 11), (1, 5, 12), (2, 5, 21), (1, 6, 30)]
        {
            backlog.push(line(to, context), id(number));
        }
        backlog.remove(line(1, 5), id(11));
        assert_eq!(backlog.next(0), Some((Peer(1), id(10))));
        assert!(backlog.begun(0));
        assert_eq!(backlog.next(0), Some((Peer(1), id(12))));
        assert!(!backlog.begun(0));
        assert!(!backlog.has_any_in(line(1, 5)) && backlog.has_any_in(line(1, 6)));
        assert_eq!(
            (backlog.next(0), backlog.next(1)),
            (Some((Peer(1), id(30))), Some((Peer(2), id(20))))
        );
        backlog.remove(line(2, 5), id(20));
        backlog.remove(line(2, 5), id(21));
        backlog.remove(line(1, 6), id(30));
        assert!(backlog.is_empty());
    }
}
