//! The memory of this process that a group is made of.

use landeck_memory::heap::Block;

/// The memory of this process that a group is made of.
#[derive(Default)]
pub(crate) struct Holdings {
    /// The member's own lines.
    pub(crate) lines: Option<Block>,
    /// The page with the words that all members write; at the first member.
    pub(crate) board: Option<u64>,
    /// The list of members, for readers from outside; at the first member.
    pub(crate) roster: Option<Block>,
}
