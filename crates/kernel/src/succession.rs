//! Slots with a next process. The context decides which process of a slot is meant.
//!
//! A context's members are the processes that had its slots when it was made, or, if so requested, the next ones of
//! those that were gone. When a slot has another process than before, the former one has died, whether or not this
//! process has seen it. Operations that need it end, and in the contexts that it was a member of it stays dead. So no
//! process waits for one that knows nothing of the context, and no message to the dead is delivered to a successor.

use std::collections::{HashMap, HashSet};

use landeck_channel::Peer;

use crate::failure::Failure;

/// The members that contexts have lost for good.
#[derive(Default)]
pub(crate) struct Succession {
    /// By context and slot: whether the process died, as far as this was seen.
    lost: HashMap<(u32, u32), bool>,
    /// By context and slot: the next process of the slot is meant.
    awaited: HashSet<(u32, u32)>,
}

impl Succession {
    /// Whether no context has lost a member.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// The reason why nothing goes to or comes from a slot's process in this context any more.
    pub(crate) fn failure_of(&self, context: u32, peer: Peer) -> Option<Failure> {
        let died = *self.lost.get(&(context, peer.0))?;
        Some(Failure::PeerGone { peer, died })
    }

    /// Begins a context, in which the next processes of these slots are meant.
    pub(crate) fn begin(&mut self, context: u32, awaited: impl Iterator<Item = u32>) {
        self.forget(context);
        self.awaited.extend(awaited.map(|slot| (context, slot)));
    }

    /// Begins a context that has the members of another one: those lost there are lost here.
    pub(crate) fn begin_beside(&mut self, context: u32, other: u32) {
        let lost: Vec<_> = self.lost.iter().filter(|((of, _), _)| *of == other).collect();
        let lost: Vec<_> = lost.into_iter().map(|((_, slot), &died)| (*slot, died)).collect();
        self.lost.extend(lost.into_iter().map(|(slot, died)| ((context, slot), died)));
    }

    /// Forgets a context.
    pub(crate) fn forget(&mut self, context: u32) {
        self.lost.retain(|(of, _), _| *of != context);
        self.awaited.retain(|(of, _)| *of != context);
    }

    /// Records that a slot has its next process; the last one was a member of these contexts.
    pub(crate) fn succeed(&mut self, slot: u32, died: bool, contexts: impl Iterator<Item = u32>) {
        for context in contexts {
            if !self.awaited.remove(&(context, slot)) {
                self.lost.entry((context, slot)).or_insert(died);
            }
        }
    }
}
