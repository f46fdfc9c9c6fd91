//! The identity of a group: its contexts, its members, and which of them this process is.

use std::sync::Arc;

use landeck_channel::Peer;

/// A group, as a handle of one of its members names it.
#[derive(Clone, Copy)]
pub struct GroupRef<'a> {
    /// The context of the group's own messages.
    pub context: u32,
    /// The processes, in the order of ranks.
    pub members: &'a Arc<[Peer]>,
    /// The rank of this process.
    pub rank: usize,
}

impl GroupRef<'_> {
    /// How many members there are.
    #[inline(always)]
    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }
}

/// A group, as the engine keeps it.
#[derive(Clone, Debug)]
pub(crate) struct GroupIdentity {
    /// The context of the group's own messages.
    pub(crate) context: u32,
    /// The context of its collective operations.
    pub(crate) collective_context: u32,
    /// The processes, in the order of ranks.
    pub(crate) members: Arc<[Peer]>,
    /// The rank of this process.
    pub(crate) member: u32,
}
