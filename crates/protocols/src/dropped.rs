//! The messages of other hosts that a machine has dropped.

/// How many messages a machine has dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedMessages {
    /// Those that cannot be.
    pub garbled: u64,
    /// Those of another term or epoch.
    pub old: u64,
    /// Those of hosts that have no part, or are not in the place to send them.
    pub foreign: u64,
}
