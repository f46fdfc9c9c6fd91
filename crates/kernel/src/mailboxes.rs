//! Mailboxes: contexts whose existence one process alone decides.
//!
//! A mailbox is a context that belongs to one process. A message for one that does not exist (any more) is dropped on
//! arrival, and its memory returns to its sender.

use std::collections::{HashMap, VecDeque};

use landeck_wire::ContextId;

/// The first context that is a mailbox; all higher ones are too.
pub const FIRST_MAILBOX: u32 = 3 << 30;

/// Whether a message is a program's: those of collective operations go to receivers in the same call.
pub(crate) fn is_of_programs(context: u32) -> bool {
    const WITHIN_CALLS: u32 = ContextId::COLLECTIVE | ContextId::CREATION | ContextId::AGREEMENT;
    context >= FIRST_MAILBOX || context & WITHIN_CALLS == 0
}

/// The most mailboxes of other hosts that a process remembers to be gone.
const GONE_MAX: usize = 256;

/// A function that is called for each message that waits in a mailbox. It runs within the endpoint, so it must not call
/// it.
pub type Arrival = Box<dyn FnMut() + Send>;

/// The open mailboxes.
#[derive(Default)]
pub(crate) struct Mailboxes {
    pub(crate) open: HashMap<u32, Option<Arrival>>,
    /// The number of watched mailboxes.
    pub(crate) watched: usize,
    /// Mailboxes of other hosts that are gone, as their processes have said: peer and context.
    gone: VecDeque<(u32, u32)>,
}

impl Mailboxes {
    /// Whether messages for a context are kept.
    #[inline]
    pub(crate) fn admits(&self, context: u32) -> bool {
        context < FIRST_MAILBOX || self.open.contains_key(&context)
    }

    /// Whether the process of another host has said that this mailbox is gone.
    #[inline]
    pub(crate) fn is_gone(&self, peer: u32, context: u32) -> bool {
        !self.gone.is_empty() && self.gone.contains(&(peer, context))
    }

    /// Keeps in mind that a mailbox of another host is gone. One that is forgotten is learnt of again.
    pub(crate) fn note_gone(&mut self, peer: u32, context: u32) {
        if self.is_gone(peer, context) {
            return;
        }
        if self.gone.len() == GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back((peer, context));
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
