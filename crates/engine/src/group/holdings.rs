//! What of a process's memory a group is made of.

use landeck_memory::heap::Block;

/// What of this process's memory a group is made of.
#[derive(Default)]
pub(crate) struct Holdings {
    pub lines: Option<Block>,
    pub board: Option<u64>,
    /// Who the members are, for those who look from outside; where this process leads.
    pub roster: Option<Block>,
}
