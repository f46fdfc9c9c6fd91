//! Mailboxes: contexts of which this process alone says whether they are there.
//!
//! A mailbox is a context that belongs to one process. What comes for one that is not (any more)
//! there is dropped on arrival: it stays nobody's, and its memory goes back to its sender.

use std::collections::HashMap;

/// Contexts from this one on are mailboxes.
pub const FIRST_MAILBOX: u32 = 3 << 30;

/// Told of each message that waits in a mailbox. It runs within the endpoint, which it does not
/// call.
pub type Arrival = Box<dyn FnMut() + Send>;

/// The mailboxes that are there.
#[derive(Default)]
pub(crate) struct Mailboxes {
    pub(crate) open: HashMap<u32, Option<Arrival>>,
    /// How many of them are watched.
    pub(crate) watched: usize,
}

impl Mailboxes {
    /// Whether messages for a context are kept.
    #[inline]
    pub(crate) fn admits(&self, context: u32) -> bool {
        context < FIRST_MAILBOX || self.open.contains_key(&context)
    }

    /// A message of this context was kept.
    #[inline]
    pub(crate) fn arrived(&mut self, context: u32) {
        if self.watched != 0
            && let Some(Some(arrival)) = self.open.get_mut(&context)
        {
            arrival();
        }
    }
}
