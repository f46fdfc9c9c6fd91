//! Why an operation cannot complete: whose fault it is, and what to do now.

use landeck_channel::{BrokenPeer, Peer};
use landeck_memory::NoMemory;

/// Why an operation did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The process it depends on is gone, or, for a receive from anybody, one that might have
    /// sent is gone and nobody has acknowledged it yet.
    #[error("process {} {}", peer.0, if *died { "died" } else { "has left the job" })]
    PeerGone {
        /// The process, as this endpoint numbers it.
        peer: Peer,
        /// Whether it died; otherwise it left in good order.
        died: bool,
    },
    /// The process it depends on sent what no process sends.
    #[error("process {} is broken: {what}", peer.0)]
    PeerBroken {
        /// The process.
        peer: Peer,
        /// What it did.
        what: BrokenPeer,
    },
    /// The message was longer than the room for it. What fitted was received.
    #[error(
        "the message from process {} has {message_bytes} bytes, the buffer {buffer_bytes}: the rest is lost; receive into a larger one", peer.0
    )]
    Truncated {
        /// Its sender.
        peer: Peer,
        /// Its tag.
        tag: u32,
        /// Bytes of the message.
        message_bytes: u64,
        /// Bytes of the buffer.
        buffer_bytes: u64,
    },
    /// The operation's context was revoked.
    #[error("the communicator was revoked by one of its members")]
    Revoked,
    /// The data lie outside the buffer that the layout describes.
    #[error("the layout describes bytes outside the buffer of {buffer_bytes} bytes")]
    OutsideBuffer {
        /// Bytes of the buffer.
        buffer_bytes: usize,
    },
    /// There is no memory for what came: it is lost.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The request was completed before, or never was.
    #[error("the request is not there (any more): it was completed, freed or never started")]
    Gone,
}

impl Failure {
    /// Whether somebody has only left, in good order: what went before is whole.
    pub fn is_departure(&self) -> bool {
        matches!(self, Self::PeerGone { died: false, .. })
    }
}
