//! The reasons why an operation cannot complete, with the process at fault and the remedy.

use landeck_channel::{BrokenPeer, Peer};
use landeck_memory::NoMemory;

/// The reason why an operation did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The process that it depends on is gone. Or, for a receive from any source, a possible sender is gone and its
    /// death is not acknowledged yet.
    #[error("process {} {}", peer.0, if *died { "died" } else { "has left the job" })]
    PeerGone {
        /// The process, as this endpoint numbers it.
        peer: Peer,
        /// Whether it died; otherwise it left in good order.
        died: bool,
    },
    /// The process that it depends on sent something that no process sends.
    #[error("process {} is broken: {what}", peer.0)]
    PeerBroken {
        /// The process.
        peer: Peer,
        /// The fault.
        what: BrokenPeer,
    },
    /// The message was longer than the room for it. The part that fitted was received.
    #[error(
        "the message from process {} has {message_bytes} bytes, the buffer {buffer_bytes}: the rest is lost; receive into a larger one", peer.0
    )]
    Truncated {
        /// Its sender.
        peer: Peer,
        /// Its tag.
        tag: u32,
        /// The length of the message.
        message_bytes: u64,
        /// The length of the buffer.
        buffer_bytes: u64,
    },
    /// The operation's context was revoked.
    #[error("the communicator was revoked by one of its members")]
    Revoked,
    /// The data lie outside the buffer that the layout describes.
    #[error("the layout describes bytes outside the buffer of {buffer_bytes} bytes")]
    OutsideBuffer {
        /// The length of the buffer.
        buffer_bytes: usize,
    },
    /// The data of the message were stored on a host that is lost, or has lost them.
    #[error("the message from process {} was stored on host {host}, which is lost or has lost it", peer.0)]
    StoreLost {
        /// The sender of the message.
        peer: Peer,
        /// The number of the host.
        host: u16,
    },
    /// There is no memory for the message: it is lost.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The request was completed before, or never existed.
    #[error("the request does not exist (any more): it was completed, freed or never started")]
    Gone,
}

impl Failure {
    /// Whether a process has only left, in good order: everything before that is complete.
    pub fn is_departure(&self) -> bool {
        matches!(self, Self::PeerGone { died: false, .. })
    }
}
