//! Long messages to other hosts in chunks, each of which needs a token for a fixed buffer of the receiver
//! ([`landeck_channel::tokens`]).
//!
//! The offer of such a message names its priority as a third number, and its chunks follow without an answer. They name
//! the send. A chunk whose message has met its receive is copied there from the lane's memory, and its buffer is empty at
//! once. Other chunks stay in their buffers until the message is received or thrown away.
//!
//! Chunks that stay must not keep a later message waiting that has its receive. So while there are some, the receiver
//! asks for the rest of such messages: that comes in parts, as after a reservation. A chunk without data says that all
//! chunks before the parts have come.

use std::collections::HashMap;

use landeck_channel::Peer;
use landeck_channel::tokens::{FixedBuffers, Priority, Tokens};
use landeck_memory::Bytes;

use crate::area::Area;
use crate::request::RequestId;
use crate::transfer::{PAIR_BYTES, TRIPLE_BYTES, decode_pair};

/// A send in chunks.
pub(crate) struct Chunking {
    pub(crate) to: Peer,
    pub(crate) context: u32,
    pub(crate) tag: u32,
    pub(crate) area: Area,
    pub(crate) position: u64,
    /// The send that the chunks name.
    pub(crate) named: RequestId,
    pub(crate) priority: Priority,
    /// The most buffers that it may use at once.
    pub(crate) most: u32,
}

/// Where the chunks of a message go.
pub(crate) enum Destination {
    /// They stay in their buffers.
    Buffers(Vec<Vec<u8>>),
    Receive(RequestId),
    Nowhere,
}

/// A message that comes in chunks.
pub(crate) struct Coming {
    pub(crate) from: Peer,
    pub(crate) send: u64,
    pub(crate) bytes: u64,
    pub(crate) arrived: u64,
    pub(crate) priority: Priority,
    pub(crate) destination: Destination,
    /// Its rest was asked for in parts.
    pub(crate) is_asked: bool,
}

impl Coming {
    pub(crate) const fn is_whole(&self) -> bool {
        self.arrived == self.bytes
    }
}

/// The tokens and the fixed buffers of an endpoint.
#[derive(Default)]
pub(crate) struct Chunks {
    pub(crate) tokens: HashMap<Peer, Tokens>,
    pub(crate) buffers: HashMap<Peer, FixedBuffers>,
    pub(crate) coming: Vec<Coming>,
}

impl Chunks {
    pub(crate) fn position(&self, from: Peer, send: u64) -> Option<usize> {
        self.coming.iter().position(|one| (one.from, one.send) == (from, send))
    }

    /// A message is coming. False if its sender has named the send before, or says that it has no data.
    pub(crate) fn begin(&mut self, from: Peer, send: u64, bytes: u64, priority: Priority) -> bool {
        let is_new = bytes > 0 && self.position(from, send).is_none();
        if is_new {
            let destination = Destination::Buffers(Vec::new());
            let (arrived, is_asked) = (0, false);
            self.coming.push(Coming {
                from,
                send,
                bytes,
                arrived,
                priority,
                destination,
                is_asked,
            });
        }
        is_new
    }

    /// The offer of a message comes again.
    pub(crate) fn take_back(&mut self, from: Peer, send: u64) {
        self.coming.retain(|one| (one.from, one.send) != (from, send));
    }

    /// Forgets a peer that is gone. What has come whole can still be received.
    pub(crate) fn forget(&mut self, peer: Peer) {
        self.tokens.remove(&peer);
        self.buffers.remove(&peer);
        self.coming.retain(|one| one.from != peer || one.is_whole());
    }
}

impl Chunking {
    /// Whether its chunks go before others.
    pub(crate) fn is_high(&self) -> bool {
        self.priority == Priority::High
    }
}

/// Decodes an offer: the length, the send, and the priority of a message that comes in chunks.
pub(crate) fn decode_offer(data: Bytes<'_>) -> Option<(u64, u64, Option<Priority>)> {
    if data.len() == PAIR_BYTES {
        return decode_pair(data).map(|(length, send)| (length, send, None));
    }
    if data.len() != TRIPLE_BYTES {
        return None;
    }
    let (length, send) = decode_pair(data.part(0, PAIR_BYTES))?;
    let mut number = [0; 8];
    data.part(PAIR_BYTES, 8).copy_to_slice(&mut number);
    Some((length, send, Some(Priority::from_number(u64::from_le_bytes(number))?)))
}
