//! The status of a message.

use landeck_channel::Peer;

/// The status of a message that was received, probed or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The other process.
    pub peer: Peer,
    /// The tag.
    pub tag: u32,
    /// The length of the message in bytes.
    pub bytes: u64,
    /// Whether the operation was cancelled before it began.
    pub cancelled: bool,
}

impl Status {
    /// The status of no message, to be overwritten.
    pub const NONE: Self = Self { peer: Peer(0), tag: 0, bytes: 0, cancelled: false };
}
