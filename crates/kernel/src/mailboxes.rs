//! Mailboxes: contexts whose existence one process alone decides.
//!
//! A mailbox is a context that belongs to one process. A message for one that does not exist (any more) is dropped on
//! arrival, and its memory returns to its sender.

use std::collections::HashMap;

/// The first context that is a mailbox; all higher ones are too.
pub const FIRST_MAILBOX: u32 = 3 << 30;

/// A function that is called for each message that waits in a mailbox. It runs within the endpoint, so it must not call
/// it.
pub type Arrival = Box<dyn FnMut() + Send>;

/// The open mailboxes.
#[derive(Default)]
pub(crate) struct Mailboxes {
    pub(crate) open: HashMap<u32, Option<Arrival>>,
    /// The number of watched mailboxes.
    pub(crate) watched: usize,
}

impl Mailboxes {
    /// Whether messages for a context are kept.
    #[inline]
    pub(crate) fn admits(&self, context: u32) -> bool {
        context < FIRST_MAILBOX || self.open.contains_key(&context)
    }

    /// Reports that a message of this context was kept.
    #[inline]
    pub(crate) fn arrived(&mut self, context: u32) {
        if self.watched != 0
            && let Some(Some(arrival)) = self.open.get_mut(&context)
        {
            arrival();
        }
    }
}
