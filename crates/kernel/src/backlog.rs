//! Sends that have had no room yet: for each receiver those that wait, oldest first.
//!
//! Only the first of each can begin next, so a look costs as many tries as there are receivers
//! without room, however many sends wait for them.

use std::collections::VecDeque;

use landeck_channel::Peer;

use crate::request::RequestId;

/// Sends that have had no room yet.
#[derive(Default)]
pub(crate) struct Backlog {
    /// None is empty.
    queues: Vec<(Peer, VecDeque<RequestId>)>,
}

impl Backlog {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether anything waits for room at this receiver.
    pub(crate) fn has_any_to(&self, to: Peer) -> bool {
        self.queues.iter().any(|&(peer, _)| peer == to)
    }

    pub(crate) fn push(&mut self, to: Peer, id: RequestId) {
        match self.queues.iter_mut().find(|(peer, _)| *peer == to) {
            Some((_, queue)) => queue.push_back(id),
            None => self.queues.push((to, VecDeque::from([id]))),
        }
    }

    /// Takes a send out, wherever it stands.
    pub(crate) fn remove(&mut self, to: Peer, id: RequestId) {
        if let Some((_, queue)) = self.queues.iter_mut().find(|(peer, _)| *peer == to) {
            queue.retain(|&queued| queued != id);
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
    }

    /// How many receivers there are without room.
    pub(crate) fn receivers(&self) -> usize {
        self.queues.len()
    }

    /// The receiver with this number, and the send that is to begin next there.
    pub(crate) fn next(&self, number: usize) -> Option<(Peer, RequestId)> {
        let (peer, queue) = self.queues.get(number)?;
        Some((*peer, *queue.front()?))
    }

    /// That send has begun. False when none is left to its receiver, whose number is another's now.
    pub(crate) fn begun(&mut self, number: usize) -> bool {
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
    fn each_receiver_has_its_order() {
        let id = RequestId::from_bits;
        let mut backlog = Backlog::default();
        for (to, number) in [(1, 10), (2, 20), (1, 11), (1, 12), (2, 21)] {
            backlog.push(Peer(to), id(number));
        }
        backlog.remove(Peer(1), id(11));
        assert_eq!(backlog.next(0), Some((Peer(1), id(10))));
        assert!(backlog.begun(0));
        assert_eq!(backlog.next(0), Some((Peer(1), id(12))));
        assert!(!backlog.begun(0));
        assert!(!backlog.has_any_to(Peer(1)));
        assert_eq!((backlog.next(0), backlog.next(1)), (Some((Peer(2), id(20))), None));
        backlog.remove(Peer(2), id(20));
        backlog.remove(Peer(2), id(21));
        assert!(backlog.is_empty());
    }
}
