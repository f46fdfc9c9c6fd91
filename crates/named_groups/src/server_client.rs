//! The mailbox where a client's replies arrive, and the messages between a server, its clients and members.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use landeck_engine::{Engine, OperationId, Shared};
use landeck_kernel::{Peer, Received, Wanted};
use landeck_memory::Bytes;
use landeck_memory::plain::bytes_of_mut;
use landeck_protocols::service::Asking;

use crate::error::Result;
use crate::server_handle::lock;

/// The look of a client that follows no more.
pub(crate) const LAST_LOOK: u64 = u64::MAX;
/// The tag of what a server tells a client on another host. Lower tags are the numbers of requests.
pub(crate) const FEED_TAG: u32 = 1 << Asking::NUMBER_BITS;
/// Replies that are kept; older ones belong to requests that were given up.
const REPLIES_MAX: usize = 64;

/// The kind of a request. It travels in the message's tag, above the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Join, leave, synchronise or destroy, as the head says.
    Ask,
    Broadcast,
    /// A broadcast that found no room before.
    HeldBroadcast,
    /// A client on another host wants to be told what the log says.
    Follow,
    /// The news of a client on another host: how far its copy is, and what its members have taken.
    Delivered,
    /// A client on another host takes a request back.
    Withdraw,
}

impl RequestKind {
    /// The tag of request `number`.
    pub(crate) fn tag(self, number: u32) -> u32 {
        let kind = match self {
            Self::Ask => 1,
            Self::Broadcast => 2,
            Self::HeldBroadcast => 3,
            Self::Follow => 4,
            Self::Delivered => 5,
            Self::Withdraw => 6,
        };
        kind << Asking::NUMBER_BITS | number
    }

    /// The kind and the number that a tag has; none for a tag that no client sends.
    pub(crate) fn of_tag(tag: u32) -> Option<(Self, u32)> {
        let kind = match tag >> Asking::NUMBER_BITS {
            1 => Self::Ask,
            2 => Self::Broadcast,
            3 => Self::HeldBroadcast,
            4 => Self::Follow,
            5 => Self::Delivered,
            6 => Self::Withdraw,
            _ => return None,
        };
        Some((kind, tag & ((1 << Asking::NUMBER_BITS) - 1)))
    }
}

/// A server's notice to a member: a broadcast is in the group's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// The number of the group.
    pub group: u64,
    /// The number of the broadcast.
    pub message: u64,
}

impl Forwarded {
    /// The tag of such a notice in a member's mailbox.
    pub const TAG: u32 = 1 << 17;

    /// Reads a notice from a received message.
    pub fn from_received(received: &Received) -> Self {
        let mut words = [0u64; 2];
        bytes_of(received).copy_to_slice(bytes_of_mut(&mut words));
        let [group, message] = words;
        Self { group, message }
    }

    pub(crate) fn to_words(self) -> [u64; 2] {
        [self.group, self.message]
    }
}

/// The mailbox where a client's replies arrive.
pub(crate) struct ServerClient {
    shared: Arc<Shared>,
    pub(crate) context: u32,
    /// Whether a thread of this process has a request at the server.
    pub(crate) is_asking: AtomicBool,
    /// The numbers of the requests that have a reply.
    replies: Mutex<Vec<u32>>,
}

impl ServerClient {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Self> {
        let context = open_context(shared)?;
        let (is_asking, replies) = (AtomicBool::new(false), Mutex::default());
        Ok(Self { shared: shared.clone(), context, is_asking, replies })
    }

    /// Takes the replies that have arrived.
    pub(crate) fn take_replies(&self, engine: &mut Engine) {
        let wanted = Wanted { context: self.context, source: None, tag: None };
        while let Some(status) = engine.endpoint.probe(wanted) {
            let id = engine.endpoint.receive_own(wanted);
            if engine.take(OperationId::from(id)).is_none() {
                engine.abandon(id.into());
            }
            let mut replies = lock(&self.replies);
            if replies.len() == REPLIES_MAX {
                replies.remove(0);
            }
            replies.push(status.tag);
        }
    }

    pub(crate) fn has_reply(&self, number: u32) -> bool {
        lock(&self.replies).contains(&number)
    }
}

impl Drop for ServerClient {
    fn drop(&mut self) {
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.endpoint.close_mailbox(self.context);
        }
    }
}

/// Opens a mailbox without a mark. Only processes that are told its context post there.
pub(crate) fn open_context(shared: &Shared) -> Result<u32> {
    let mut engine = shared.engine.enter()?;
    let context = engine.new_mailbox();
    engine.endpoint.set_members(context, vec![Peer(shared.slot)]);
    Ok(context)
}

/// The bytes of a received message.
pub(crate) fn bytes_of(received: &Received) -> Bytes<'_> {
    match received {
        Received::Private(bytes) => Bytes::from(&bytes[..]),
        Received::Borrowed { block, length } => block.piece(0, *length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_numbers_of_requests_are_read_as_they_were_written() {
        for kind in [
            RequestKind::Ask,
            RequestKind::Broadcast,
            RequestKind::HeldBroadcast,
            RequestKind::Follow,
            RequestKind::Delivered,
            RequestKind::Withdraw,
        ] {
            for number in [0, (1 << Asking::NUMBER_BITS) - 1] {
                assert_eq!(RequestKind::of_tag(kind.tag(number)), Some((kind, number)));
            }
        }
        assert_eq!(RequestKind::of_tag(5), None);
    }
}
