//! The trait of every network.
//!
//! A new network is one new file that implements [`Channel`] and passes the suite of
//! [`conformance`]. The kernel picks a channel per message; it is generic over its nearest one
//! (shared memory), so that path is inlined, and calls the others through the object-safe trait.
//!
//! # Contract
//! - Messages from one sender to one receiver arrive whole, once, in order, or not at all; after
//!   the first that does not arrive, none does, and the peer is reported as gone.
//! - Who leaves in good order ([`Channel::leave`]) is told from who dies, and all that it sent arrives.
//! - No call blocks. What cannot be taken now is refused with [`SendError::Full`].
//! - A channel has bounded buffers. A message that the sink holds back stays in the channel, and
//!   those behind it from the same peer with it; other peers go on.
//! - Everything that comes from outside is validated before the sink sees it.
//! - The length in the header is that of the data beside it.
//!
//! | module | what |
//! |---|---|
//! | [`conformance`] | what every channel must do, as tests |
//! | [`loopback`] | endpoints of one process, the sender itself among them |
//! | [`faulty`] | another channel, and what may go wrong with it |
//! | [`recorder`] | another channel, and counts of what it carries |

#![forbid(unsafe_code)]

pub mod conformance;
pub mod faulty;
pub mod loopback;
pub mod recorder;

use std::os::fd::BorrowedFd;

use landeck_memory::{Bytes, Segment};
use landeck_wire::Header;

/// A process as an endpoint's tables know it: the slot in the home segment for those who have
/// one, a number above all slots for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer(pub u32);

/// What became of an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The sink has it.
    Taken,
    /// The sink has no room: the channel keeps it and offers it again later.
    Held,
}

/// Where arriving messages go.
pub trait Sink {
    /// Offers a message. `data` are valid during the call only.
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict;

    /// Says that a peer sent something that no sender sends. The channel has dropped it and will
    /// not listen to the peer again.
    fn broken(&mut self, from: Peer, what: BrokenPeer);
}

/// What a broken peer did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenPeer {
    /// A header that cannot be.
    #[error(transparent)]
    Header(#[from] landeck_wire::HeaderError),
    /// Data outside their place.
    #[error(transparent)]
    Ring(#[from] landeck_memory::ring::RingBroken),
    /// A length that the channel does not carry.
    #[error(
        "a message of {length} bytes arrived where at most {most} can be: its sender is broken"
    )]
    TooLong {
        /// Bytes claimed.
        length: u64,
        /// Most bytes of this channel.
        most: u64,
    },
    /// A message that is not the next of its sender.
    #[error(
        "message {found} arrived where message {wanted} is the next: one before it was lost, or its sender is broken"
    )]
    Order {
        /// The number that it has, modulo 65,536.
        found: u16,
        /// The number of the next.
        wanted: u16,
    },
    /// More after a goodbye.
    #[error(
        "something arrived after its sender's goodbye, which is the last: its sender is broken"
    )]
    AfterGoodbye,
    /// A message that its kind, or the way it came, does not allow.
    #[error("a message arrived that no process sends this way: its sender is broken")]
    Form,
    /// A reference to a block that does not exist (any more).
    #[error("a message refers to a block of shared memory that is not there: its sender is broken")]
    Reference,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No room now; try again after progress.
    #[error("no room for the message now")]
    Full,
    /// The peer is not there (any more).
    #[error("the peer is gone")]
    Gone,
    /// Longer than [`Channel::data_bytes_max`]; or urgent, and longer than [`URGENT_BYTES_MAX`].
    #[error("the message is longer than the channel carries in one piece")]
    TooLong,
}

/// Longest data of an urgent message, in bytes: it is whole ([`landeck_wire::Kind::Eager`]), and travels
/// in one line past what waits.
pub const URGENT_BYTES_MAX: usize = 48;

/// A network.
pub trait Channel: Send {
    /// Longest data of one message, in bytes. The kernel cuts what is longer.
    fn data_bytes_max(&self) -> usize;

    /// The segment in which blocks of a peer's heap are found, and ours by the peer. None where
    /// no memory is shared: then data travel in parts.
    fn heap_segment(&self, _peer: Peer) -> Option<&Segment> {
        None
    }

    /// Hands a message over. The channel has copied `data` when it returns `Ok`, and it fills in
    /// the header's sequence number. Messages to one peer arrive in order, but for urgent ones, which
    /// stand in no order with others and may overtake them.
    ///
    /// # Errors
    /// [`SendError`]; after an error nothing of the message was sent.
    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError>;

    /// Offers what has arrived to the sink; true when it offered anything that was taken.
    fn poll(&mut self, sink: &mut dyn Sink) -> bool;

    /// The same, inlined into the caller.
    fn poll_into<S: Sink>(&mut self, sink: &mut S) -> bool
    where
        Self: Sized,
    {
        self.poll(sink)
    }

    /// The same for what arrives from one peer, where looking for it alone is cheaper.
    fn poll_peer_into<S: Sink>(&mut self, _peer: Peer, sink: &mut S) -> bool
    where
        Self: Sized,
    {
        self.poll(sink)
    }

    /// The last look before sleep: as [`Channel::poll`], but looks everywhere, and gives all
    /// credit and all buffered bytes out that others may wait for.
    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll(sink)
    }

    /// Wakes the peer if it sleeps, after something was changed for it outside this channel (a
    /// block of the heap). Channels that wake by their messages have nothing to do.
    fn nudge(&mut self, _peer: Peer) {}

    /// Whether the peer cannot be talked to any more.
    fn is_gone(&self, peer: Peer) -> bool;

    /// Whether a peer that is gone has left in good order ([`Channel::leave`] over there): then
    /// nothing that it sent is lost.
    fn has_left(&self, peer: Peer) -> bool;

    /// Says goodbye to all peers, behind all that was sent: this process sends nothing more. It may
    /// end when nothing is unsent ([`Channel::has_unsent`]).
    fn leave(&mut self);

    /// Forgets everything about a peer that is gone, so that its place can be used again.
    fn forget(&mut self, peer: Peer);

    /// Forgets what is known of earlier processes in a peer's place, now that its process is the
    /// one of this incarnation; what has already come from that one stays.
    fn forget_before(&mut self, peer: Peer, _incarnation: u32) {
        self.forget(peer);
    }

    /// Descriptors that become readable when something arrives, for whoever sleeps. Empty where
    /// the sender wakes the receiver itself.
    fn wake_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Whether bytes wait in the channel for the network to take them; after [`Channel::leave`],
    /// also whether some are not known to have arrived.
    fn has_unsent(&self) -> bool {
        false
    }
}
