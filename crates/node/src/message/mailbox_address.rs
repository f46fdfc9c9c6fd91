//! The address of a mailbox.

use landeck_wire::stored::StoreWish;
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

/// The address of a mailbox: a plain value that may be sent in any way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MailboxAddress {
    pub(crate) process: ProcessId,
    pub(crate) context: u32,
    /// Where the data of long messages wait for the owner; `None` for the wish of the poster's job.
    pub(crate) store: Option<StoreWish>,
    /// The place of the mark in the owner's heap that shows that the mailbox exists.
    pub(crate) place: u64,
}

impl MailboxAddress {
    /// The number of words of an address.
    pub const WORDS: usize = 4;

    /// Returns the process that owns the mailbox.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Returns the address as words, for programs that send it in a way of their own.
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let ProcessId { segment: host, slot, incarnation } = self.process;
        let process = u64::from(slot.0) | u64::from(incarnation.0) << 32;
        [host.0, process, self.context_word(), self.place]
    }

    /// Rebuilds an address from the words of [`MailboxAddress::to_words`]. Opening the mailbox
    /// checks it.
    pub fn from_words([host, process, context, place]: [u64; Self::WORDS]) -> Self {
        let (slot, incarnation) = (Slot(process as u32), Incarnation((process >> 32) as u32));
        let process = ProcessId { segment: SegmentId(host), slot, incarnation };
        Self::of_words(process, [context, place])
    }

    /// The address of a mailbox of a process, from the two words under which it is registered.
    pub(crate) fn of_words(process: ProcessId, [context, place]: [u64; 2]) -> Self {
        let store = ((context >> 32) as u32).checked_sub(1).map(StoreWish::from_word);
        Self { process, context: context as u32, store, place }
    }

    /// The context, and in the upper half the wish for a store, plus one.
    pub(crate) fn context_word(&self) -> u64 {
        let store = self.store.map_or(0, |store| store.to_word() + 1);
        u64::from(self.context) | u64::from(store) << 32
    }

    pub(crate) fn context(&self) -> u32 {
        self.context
    }

    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// The number of its mark: never zero, and never that of another mailbox.
    pub(crate) fn mark_number(&self) -> u64 {
        u64::from(self.context) << 32 | u64::from(self.process.incarnation.0)
    }
}
