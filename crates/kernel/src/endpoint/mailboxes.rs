//! Opens, watches and closes mailboxes.

use std::collections::HashSet;

use landeck_channel::{Channel, Peer};

use super::Endpoint;
use crate::mailboxes::{Arrival, FIRST_MAILBOX};

impl<N: Channel> Endpoint<N> {
    /// Opens a mailbox: from now on messages for this context are kept. Returns false if the context is not a
    /// mailbox's, or is open already.
    pub fn open_mailbox(&mut self, context: u32) -> bool {
        let is_new = context >= FIRST_MAILBOX && !self.core.mailboxes.open.contains_key(&context);
        if is_new {
            self.core.mailboxes.open.insert(context, None);
        }
        is_new
    }

    /// Calls `arrival` for each message that waits in a mailbox from now on; returns how many already wait there.
    pub fn watch_mailbox(&mut self, context: u32, arrival: Arrival) -> usize {
        let waiting = self.kept_in(context).count();
        let mailboxes = &mut self.core.mailboxes;
        if let Some(before) = mailboxes.open.get_mut(&context) {
            mailboxes.watched += usize::from(before.replace(arrival).is_none());
        }
        waiting
    }

    /// Drops the messages that wait in a mailbox, and those that come for it from now on.
    pub fn close_mailbox(&mut self, context: u32) {
        let mailboxes = &mut self.core.mailboxes;
        if let Some(Some(_)) = mailboxes.open.remove(&context) {
            mailboxes.watched -= 1;
        }
        let posters: HashSet<u32> = self.kept_in(context).map(|(peer, _)| peer.0).collect();
        self.forget_context(context);
        // The senders may wait for these messages to be retrieved.
        for poster in posters {
            self.near.nudge(Peer(poster));
        }
        // Posters on other hosts are told before whatever this process sends next.
        if !self.core.replies.is_empty() {
            self.advance();
        }
    }

    /// Whether the process of another host has said that a mailbox of its is gone.
    #[inline]
    pub fn is_mailbox_gone(&self, of: Peer, context: u32) -> bool {
        self.core.mailboxes.is_gone(of.0, context)
    }

    /// Whether any mailbox is watched.
    #[inline]
    pub fn has_watched_mailboxes(&self) -> bool {
        self.core.mailboxes.watched != 0
    }
}
