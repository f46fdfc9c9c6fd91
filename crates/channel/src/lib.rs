//! The trait of every network.
//!
//! A new network is one new file that implements [`Channel`] and passes the suite of [`conformance`]. The kernel picks
//! a channel per message. It is generic over its nearest one (shared memory), so that path is inlined; it calls the
//! others through the object-safe trait.
//!
//! # Contract
//! - Messages from one sender to one receiver arrive whole, once, in order, or not at all. After the first that does
//!   not arrive, none does, and the path from the peer has ended.
//! - A channel does not decide who is gone: the membership does. It only says when nothing more can arrive from a peer
//!   ([`Channel::is_read_out`]). So no end of a process overtakes what that process has sent.
//! - Everything that a peer sent before it left in good order ([`Channel::leave`]) arrives.
//! - No call blocks. A message that cannot be accepted now is refused with [`SendError::Full`].
//! - A channel has bounded buffers. A message that the sink holds back stays in the channel, together with those behind
//!   it from the same peer; other peers continue.
//! - Everything that comes from outside is validated before the sink sees it.
//! - The length in the header is that of the data beside it. A part may arrive as several shorter ones
//!   ([`Sink::place`]), whose data are those of the part, in order.
//!
//! | module | content |
//! |---|---|
//! | [`conformance`] | tests that every channel must pass |
//! | [`loopback`] | endpoints of one process, including the sender itself |
//! | [`faulty`] | another channel with injected faults |
//! | [`grants`] | the grants of one receiver to many senders |
//! | [`incast`] | the wish for many-to-one steps, and the trial runs of its calibration |
//! | [`pair`] | the positions of two processes on different hosts |
//! | [`recorder`] | another channel with counts of its messages |
//! | [`relay_requests`] | requests to the relay of a host, and how it answers them |
//! | [`silence`] | how long a connection has carried nothing |
//! | [`tokens`] | tokens for the fixed buffers of a receiver |

#![forbid(unsafe_code)]

pub mod conformance;
pub mod credit;
pub mod faulty;
pub mod grants;
pub mod incast;
pub mod loopback;
pub mod pair;
pub mod recorder;
pub mod relay_requests;
pub mod silence;
pub mod tokens;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use landeck_memory::{Buffer, Bytes, LaneRecord, Segment};
use landeck_wire::way::MessageWay;
use landeck_wire::{Class, Header, HostNumber};

use relay_requests::RelayRequests;

/// A process in an endpoint's tables: a slot of the home segment, or the number of its slots plus the place of a record
/// in its far table. Numbers behind these are for processes of other jobs that have no slot yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer(pub u32);

/// The sink's answer to an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The sink has taken it.
    Taken,
    /// The sink has no room: the channel keeps the message and offers it again later.
    Held,
}

/// The receiver of arriving messages.
pub trait Sink {
    /// Offers a message. `data` are valid during the call only.
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict;

    /// The place for the data of a part ([`landeck_wire::Kind::Part`]) that is arriving, exactly as long as the header says;
    /// the channel writes there from the beginning before it calls this sink again, says with [`Sink::placed`] how much it
    /// wrote, and brings the rest as a shorter part, into another place or through [`Sink::arrive`].
    ///
    /// So a place is asked for again before each write, and no write follows the end of its receive.
    fn place(&mut self, _from: Peer, _header: &Header) -> Option<Buffer> {
        None
    }

    /// Records that the first `bytes` bytes of a part are in its place. The header is that of [`Sink::place`].
    fn placed(&mut self, _from: Peer, _header: &Header, _bytes: usize) {}

    /// Appends the data of a part that was sent before, because its path has broken. `behind` is the number of bytes of its
    /// message that were sent from this part on. False if the send has ended, so nobody needs the message any more.
    ///
    /// The channel asks only for parts behind the mark that the peer has received ([`Channel::is_received`]).
    fn append_part(
        &mut self,
        _to: Peer,
        _header: &Header,
        _behind: u64,
        _target: &mut Vec<u8>,
    ) -> bool {
        false
    }

    /// Reports that a peer sent something that no sender sends. The channel has dropped it and will not listen to the
    /// peer again.
    fn broken(&mut self, from: Peer, what: BrokenPeer);
}

/// The fault of a broken peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenPeer {
    /// The header is invalid.
    #[error(transparent)]
    Header(#[from] landeck_wire::HeaderError),
    /// The data lie outside their place.
    #[error(transparent)]
    Ring(#[from] landeck_memory::ring::RingBroken),
    /// The length exceeds the limit of the channel.
    #[error(
        "a message of {length} bytes arrived where at most {most} can be: its sender is broken"
    )]
    TooLong {
        /// The length in the message.
        length: u64,
        /// The most bytes of a message in this channel.
        most: u64,
    },
    /// The message is not the next of its sender.
    #[error(
        "message {found} arrived instead of message {wanted}: one before it was lost, or its sender is broken"
    )]
    Order {
        /// The number of the message, modulo 65,536.
        found: u16,
        /// The number of the next one.
        wanted: u16,
    },
    /// Something follows a goodbye.
    #[error(
        "a message arrived after its sender's goodbye, which must be the last: its sender is broken"
    )]
    AfterGoodbye,
    /// The kind of the message, or the way it came, does not allow it.
    #[error("a message arrived that no process sends this way: its sender is broken")]
    Form,
    /// A sealed frame does not open.
    #[error(
        "a frame does not open under the key of its lane: it was changed on its way, or its sender is broken"
    )]
    Seal,
    /// The reference names a block that does not exist (any more).
    #[error(
        "a message refers to a block of shared memory that does not exist: its sender is broken"
    )]
    Reference,
    /// The sender has no memory where it told that the data are.
    #[error(
        "it has released the memory of a message before the message was received: a send's memory must stay until the \
         send is complete"
    )]
    Unmapped,
}

/// The reason why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no room now; try again after progress.
    #[error("no room for the message now")]
    Full,
    /// There is no path to the peer (any more).
    #[error("there is no path to the peer")]
    Gone,
    /// The message is longer than [`Channel::data_bytes_max`]; or it is urgent and longer than [`URGENT_BYTES_MAX`].
    #[error("the message is longer than the channel carries in one piece")]
    TooLong,
}

/// The longest data of an urgent message, in bytes. Such a message is whole ([`landeck_wire::Kind::Eager`]), and
/// travels in one line past waiting messages.
pub const URGENT_BYTES_MAX: usize = 48;

/// The traffic of a process on its connections to other hosts, since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames of messages that were sent: messages, and parts, offers and acceptances of long ones.
    pub frames: u64,
    /// Frames that were sent about positions, and goodbyes.
    pub reports: u64,
    /// Bytes that the system has taken, with headers and seals.
    pub bytes: u64,
    /// System calls that sent.
    pub sends: u64,
    /// System calls that received, those that found nothing among them.
    pub receives: u64,
    /// System calls that asked which connections have something.
    pub looks: u64,
}

impl Traffic {
    /// Returns the traffic since an earlier moment.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            reports: self.reports.saturating_sub(before.reports),
            bytes: self.bytes.saturating_sub(before.bytes),
            sends: self.sends.saturating_sub(before.sends),
            receives: self.receives.saturating_sub(before.receives),
            looks: self.looks.saturating_sub(before.looks),
        }
    }
}

/// A network.
pub trait Channel: Send {
    /// The longest data of one message, in bytes. The kernel divides longer ones.
    fn data_bytes_max(&self) -> usize;

    /// The segment that contains the blocks of a peer's heap, and in which the peer finds ours. `None` without shared
    /// memory: then data travel in parts.
    fn heap_segment(&self, _peer: Peer) -> Option<&Segment> {
        None
    }

    /// Sends a message. When it returns `Ok`, the channel has copied `data`. Those of a part
    /// ([`landeck_wire::Kind::Part`]) it may ask for again ([`Sink::append_part`]) until they are received
    /// ([`Channel::is_received`]). It fills in the header's sequence number. Messages to one peer arrive in order.
    /// Urgent ones are not ordered with others, and may overtake them.
    ///
    /// # Errors
    /// [`SendError`]; after an error nothing of the message was sent.
    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError>;

    /// A mark behind everything that was sent to a peer so far.
    fn sent_mark(&self, _peer: Peer) -> u64 {
        0
    }

    /// Whether the peer has received everything before a mark, or the channel needs none of it any more.
    fn is_received(&self, _peer: Peer, _mark: u64) -> bool {
        true
    }

    /// Whether bytes for this peer wait in the channel for the network to accept them.
    fn has_unsent_to(&self, _peer: Peer) -> bool {
        false
    }

    /// The channel that a message to this peer takes now, if more than one can carry it.
    fn way_to(&self, _peer: Peer, _class: Class, _bytes: u64) -> Option<MessageWay> {
        None
    }

    /// The channel by which messages of this peer come, if more than one can bring them.
    fn way_from(&self, _peer: Peer) -> Option<MessageWay> {
        None
    }

    /// Offers arrived messages to the sink; returns whether any was taken.
    fn poll(&mut self, sink: &mut dyn Sink) -> bool;

    /// Polls like [`Channel::poll`], inlined into the caller.
    fn poll_into<S: Sink>(&mut self, sink: &mut S) -> bool
    where
        Self: Sized,
    {
        self.poll(sink)
    }

    /// Polls one peer, if looking for its messages alone is cheaper.
    fn poll_peer_into<S: Sink>(&mut self, _peer: Peer, sink: &mut S) -> bool
    where
        Self: Sized,
    {
        self.poll(sink)
    }

    /// Polls for the last time before sleep. In contrast to [`Channel::poll`] it looks everywhere, and sends all credit
    /// and all buffered bytes that others may wait for.
    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll(sink)
    }

    /// Wakes the peer if it sleeps, after something was changed for it outside this channel (a block of the heap).
    /// Channels that wake by their messages have nothing to do.
    fn nudge(&mut self, _peer: Peer) {}

    /// Whether nothing more can arrive from this peer: its path has ended and everything that came was taken, or there
    /// never was a path.
    fn is_read_out(&self, peer: Peer) -> bool;

    /// Whether messages of an earlier process in a peer's place, which has said goodbye, are not taken yet, now that its
    /// process is the one of this incarnation.
    fn holds_before(&self, _peer: Peer, _incarnation: u32) -> bool {
        false
    }

    /// The time of a clock that is never set, for grants; zero in a channel without a clock.
    fn clock(&self) -> Duration {
        Duration::ZERO
    }

    /// Asks the daemon for further numbers of groups. Channels without a daemon have nothing to do.
    fn ask_for_group_numbers(&mut self) {}

    /// Tells the daemon of this host that this process has left the job: behind its goodbye, and when the agent has been
    /// told.
    fn tell_departure(&mut self) {}

    /// Says goodbye to all peers, behind everything that was sent: this process sends nothing more. It may end when
    /// nothing is unsent ([`Channel::has_unsent`]).
    fn leave(&mut self);

    /// Forgets everything about a peer whose process is gone, so that its place can be used again.
    fn forget(&mut self, peer: Peer);

    /// Forgets earlier processes in a peer's place, now that its process is the one of this incarnation. Messages that
    /// have already come from that one stay.
    fn forget_before(&mut self, peer: Peer, _incarnation: u32) {
        self.forget(peer);
    }

    /// Descriptors that become readable when something arrives, for a process that sleeps. Empty if the sender itself
    /// wakes the receiver.
    fn wake_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Describes each path on which bytes wait that the other host has not taken, for observers. A process calls this
    /// now and then while it waits for long; `now_ns` is the time of the monotonic clock.
    fn describe_lanes(&mut self, _now_ns: u64, _tell: &mut dyn FnMut(LaneRecord)) {}

    /// The traffic on its connections so far. Channels without connections have none.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// The packets of a peer that came out of their order since the last call, a sign that others were lost. A channel
    /// that loses nothing has none.
    fn take_disorder(&mut self, _peer: Peer) -> u64 {
        0
    }

    /// The requests to the relay of a peer's host about regions, for a caller that asks about one of this peer. What it asks
    /// goes with the next poll, which also brings answers. `None` if there is no relay, or this process has left.
    fn relay_requests(&mut self, _owner: Peer) -> Option<&mut RelayRequests> {
        None
    }

    /// The requests to the relay of a host, this one included, about data that stay there, as [`Channel::relay_requests`] gives
    /// them. `None` also where no address has led to the relay for long.
    fn store_requests(&mut self, _host: HostNumber) -> Option<&mut RelayRequests> {
        None
    }

    /// Sends the requests about a peer's regions and sleeps, for so long at most, until their connection is ready. Nothing else
    /// wakes this process meanwhile, and an answer does so sooner than over [`Channel::wake_descriptors`]. False if there
    /// is no connection.
    fn sleep_for_answers(&mut self, _owner: Peer, _longest: Duration) -> bool {
        false
    }

    /// Whether bytes wait in the channel for the network to accept them. After [`Channel::leave`], also whether some
    /// are not known to have arrived.
    fn has_unsent(&self) -> bool {
        false
    }
}
