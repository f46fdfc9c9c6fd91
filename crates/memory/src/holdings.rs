//! Counts of what a process has in other slots: with none left it may drop its reference to a slot.

use std::sync::atomic::AtomicU32;

/// For each slot, how many things in it this process uses.
pub(crate) struct Holdings(Box<[AtomicU32]>);

impl Holdings {
    pub(crate) fn new(slots: u32) -> Self {
        Self((0..slots).map(|_| AtomicU32::new(0)).collect())
    }

    /// The count of a slot.
    pub(crate) fn of(&self, slot: u32) -> Option<&AtomicU32> {
        self.0.get(slot as usize)
    }
}
