//! The messages of an endpoint whose data stay on hosts: the wishes, the sends that are being stored, and what is to be freed.
//!
//! [`crate::endpoint`] makes their steps.

use std::collections::{HashMap, HashSet};

use landeck_channel::Peer;
use landeck_wire::stored::{StoreWish, StoredPlace};
use landeck_wire::{HostNumber, ProcessId};

use crate::request::RequestId;
use crate::status::Status;
use crate::stored::{Fetching, Storing};
use crate::transfer::Target;

/// The messages of an endpoint whose data stay on hosts.
#[derive(Default)]
pub(crate) struct Stores {
    /// The wish for messages without another one.
    pub(crate) usual: StoreWish,
    /// The wishes for contexts.
    pub(crate) by_context: HashMap<u32, StoreWish>,
    /// The peers that were late: they had not taken a message when this process was about to sleep.
    pub(crate) late: HashSet<Peer>,
    /// The wishes of sends that have not begun.
    pub(crate) wishes: Vec<(RequestId, StoreWish)>,
    pub(crate) sends: Vec<StoredSend>,
    /// The messages that were fetched, or will not be.
    pub(crate) frees: Vec<StoredPlace>,
    /// Requests whose answers nobody takes.
    pub(crate) forgotten: Vec<(HostNumber, u32)>,
    pub(crate) least_loaded: Option<(HostNumber, u32)>,
}

/// A send whose data are being stored.
pub(crate) struct StoredSend {
    pub(crate) id: RequestId,
    pub(crate) receiver: ProcessId,
    pub(crate) bytes: u64,
    pub(crate) step: SendStep,
    /// The requests to its relay so far, of all sends.
    pub(crate) asked: u64,
}

pub(crate) enum SendStep {
    /// Asks the hosts for their loads: the hosts with their requests.
    Looking(Vec<(HostNumber, Option<u32>)>, Vec<(u64, u64, HostNumber)>),
    Storing(HostNumber, Storing),
    /// Tells the receiver.
    Telling(StoredPlace),
}

/// The receive of a message whose data are on a host.
pub(crate) struct StoredReceive {
    pub(crate) context: u32,
    pub(crate) target: Target,
    pub(crate) status: Status,
    pub(crate) stored: StoredPlace,
    pub(crate) fetching: Fetching,
    /// The position of the message among the unexpected ones.
    pub(crate) number: u64,
}

impl Stores {
    pub(crate) const fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.frees.is_empty() && self.forgotten.is_empty()
    }

    /// Whether all data go to the receivers.
    pub(crate) fn has_no_wishes(&self) -> bool {
        self.usual == StoreWish::Receiver && self.by_context.is_empty() && self.wishes.is_empty()
    }

    /// The wish for a send.
    pub(crate) fn wish(&self, id: RequestId, context: u32) -> StoreWish {
        let own = self.wishes.iter().find(|(of, _)| *of == id).map(|(_, wish)| wish);
        *own.or_else(|| self.by_context.get(&context)).unwrap_or(&self.usual)
    }

    /// Whether a send is being stored.
    pub(crate) fn has(&self, id: RequestId) -> bool {
        self.sends.iter().any(|one| one.id == id)
    }

    /// A peer has asked for a message that was offered.
    #[inline]
    pub(crate) fn heard_of(&mut self, peer: Peer) {
        if !self.late.is_empty() {
            self.late.remove(&peer);
        }
    }

    /// Has the store free a message that was fetched, or will not be.
    pub(crate) fn free(&mut self, stored: StoredPlace) {
        self.frees.push(stored);
    }

    /// Needs the answers of a receive no more.
    pub(crate) fn forget(&mut self, receive: &StoredReceive) {
        let host = receive.stored.host;
        self.forgotten.extend(receive.fetching.waiting().map(|number| (host, number)));
    }
}
