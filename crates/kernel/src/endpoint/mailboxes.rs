//! Opening, watching and closing mailboxes.

use std::collections::HashSet;

use landeck_channel::{Channel, Peer};

use super::Endpoint;
use crate::mailboxes::{Arrival, FIRST_MAILBOX};

impl<N: Channel> Endpoint<N> {
    /// From now on messages for this context are kept. False when it is no mailbox's, or there is
    /// one already.
    pub fn open_mailbox(&mut self, context: u32) -> bool {
        let is_new = context >= FIRST_MAILBOX && !self.core.mailboxes.open.contains_key(&context);
        if is_new {
            self.core.mailboxes.open.insert(context, None);
        }
        is_new
    }

    /// Tells `arrival` of each message that waits in a mailbox from now on; returns how many wait
    /// there already.
    pub fn watch_mailbox(&mut self, context: u32, arrival: Arrival) -> usize {
        let waiting = self.kept_in(context).count();
        let mailboxes = &mut self.core.mailboxes;
        if let Some(before) = mailboxes.open.get_mut(&context) {
            mailboxes.watched += usize::from(before.replace(arrival).is_none());
        }
        waiting
    }

    /// Drops what waits in a mailbox, and what comes for it from now on.
    pub fn close_mailbox(&mut self, context: u32) {
        let mailboxes = &mut self.core.mailboxes;
        if let Some(Some(_)) = mailboxes.open.remove(&context) {
            mailboxes.watched -= 1;
        }
        let posters: HashSet<u32> = self.kept_in(context).map(|(peer, _)| peer.0).collect();
        self.forget_context(context);
        // They may wait for these to be retrieved.
        for poster in posters {
            self.near.nudge(Peer(poster));
        }
    }

    /// Whether somebody is to be told of arrivals.
    #[inline]
    pub fn has_watched_mailboxes(&self) -> bool {
        self.core.mailboxes.watched != 0
    }
}
