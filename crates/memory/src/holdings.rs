//! What a process has of others: counted, so that it can say when it needs nothing of a slot any more.

use std::sync::atomic::AtomicU32;

/// What this process has of others, by their slots.
pub(crate) struct Holdings(Box<[AtomicU32]>);

impl Holdings {
    pub(crate) fn new(slots: u32) -> Self {
        Self((0..slots).map(|_| AtomicU32::new(0)).collect())
    }

    /// How much of a slot's.
    pub(crate) fn of(&self, slot: u32) -> Option<&AtomicU32> {
        self.0.get(slot as usize)
    }
}
