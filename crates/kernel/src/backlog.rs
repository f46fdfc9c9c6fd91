//! Sends that have had no room yet: for each receiver and context, the waiting ones, oldest first.
//!
//! Only the first send of each line can begin next, so a look costs as many tries as there are lines, however many
//! sends wait in them. Each context has a line of its own, because order only holds within a context: a send may be
//! received only after one in another context.

use std::collections::VecDeque;

use landeck_channel::Peer;

use crate::request::RequestId;

/// A receiver and a context.
pub(crate) type Line = (Peer, u32);

/// Sends that have had no room yet.
#[derive(Default)]
pub(crate) struct Backlog {
    /// The lines; none is empty.
    queues: Vec<(Line, VecDeque<RequestId>)>,
    /// The number of sends that have begun out of the backlog.
    begun: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether a send waits for room in this line.
    pub(crate) fn has_any_in(&self, line: Line) -> bool {
        self.queues.iter().any(|&(other, _)| other == line)
    }

    pub(crate) fn push(&mut self, line: Line, id: RequestId) {
        match self.queues.iter_mut().find(|(other, _)| *other == line) {
            Some((_, queue)) => queue.push_back(id),
            None => self.queues.push((line, VecDeque::from([id]))),
        }
    }

    /// Removes a send from its line, wherever it stands.
    pub(crate) fn remove(&mut self, line: Line, id: RequestId) {
        if let Some((_, queue)) = self.queues.iter_mut().find(|(other, _)| *other == line) {
            queue.retain(|&queued| queued != id);
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
    }

    /// The number of sends that have begun out of the backlog.
    pub(crate) fn begun_in_all(&self) -> u64 {
        self.begun
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.queues.len()
    }

    /// The receiver of the line with this number, and the send that begins next there.
    pub(crate) fn next(&self, number: usize) -> Option<(Peer, RequestId)> {
        let ((peer, _), queue) = self.queues.get(number)?;
        Some((*peer, *queue.front()?))
    }

    /// Records that the first send of a line has begun. Returns false if its line is empty; another line may have the
    /// number now.
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
