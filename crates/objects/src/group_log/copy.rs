//! A log as the copy that a process of another host has: messages lie in the same cells and pages as in the log itself.
//!
//! One process writes a copy, from what the log's host sends it. A cell of the log holds another message only after all
//! members have taken the one before, this process's members included. So nothing that is needed is overwritten here.

use landeck_memory::bytes::Bytes;
use landeck_memory::sync::Ordering;

use super::words::Owner;
use super::{Described, GroupLog};

impl GroupLog {
    /// Puts a message into the copy: its number and cell, its description, and its bytes.
    /// False for a message that fits into no log of this shape.
    pub fn copy_message(
        &self,
        (number, cell): (u64, u32),
        described: &Described,
        bytes: Bytes<'_>,
    ) -> bool {
        let (Some(words), Some(place)) = (self.cell(cell), self.data_place(cell, described)) else {
            return false;
        };
        let own = Owner::Process { slot: self.slot, incarnation: self.incarnation };
        words.owner.store(own.to_word(), Ordering::SeqCst);
        words.describe(described);
        self.area.copy_in(place, bytes.part(0, described.bytes as usize));
        words.owner.store(Owner::Message(number).to_word(), Ordering::SeqCst);
        self.broadcasts().put(number, cell);
        true
    }
}
