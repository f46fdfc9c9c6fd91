//! Who takes part in the operations of a group, and where their messages go.

use std::sync::Arc;

use landeck_channel::Peer;

/// Who takes part, and where their messages go.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The context of the group's own messages.
    pub(crate) context: u32,
    /// The context of its collective operations.
    pub(crate) twin: u32,
    pub(crate) members: Arc<[Peer]>,
    /// Which of them this process is.
    pub(crate) member: u32,
}
