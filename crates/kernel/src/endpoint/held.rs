//! Matched probes: messages that were found and taken out, so that no other receive gets them.

use landeck_channel::{Channel, Peer};

use crate::area::Area;
use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::matching::{Label, Wanted};
use crate::request::RequestId;
use crate::status::Status;
use crate::transfer::Target;
use crate::work::Work;

impl<N: Channel> Endpoint<N> {
    /// Takes out the message that a receive would get. From now on only [`Endpoint::receive_held`] with this identifier
    /// gets it.
    pub fn hold(&mut self, wanted: Wanted) -> Option<(RequestId, Status)> {
        let held = self.core.matching.take(&wanted)?;
        let (peer, tag) = (Peer(held.label.source), held.label.tag);
        let bytes = held.message.message_bytes();
        let id = self.core.requests.insert(Work::Held(held));
        Some((id, Status { peer, tag, bytes, cancelled: false }))
    }

    /// Receives a held message into an area. Its identifier is from now on that of the receive. Returns false if it
    /// identifies no held message.
    pub fn receive_held(&mut self, id: RequestId, area: Area) -> bool {
        let Some(work) = self.core.requests.get_mut(id) else { return false };
        let held = match std::mem::replace(work, Work::Free) {
            Work::Held(held) => held,
            other => {
                *work = other;
                return false;
            }
        };
        let Label { context, source, tag } = held.label;
        let (source, tag) = (Some(source), Some(tag));
        *work =
            Work::Posted { wanted: Wanted { context, source, tag }, target: Target::Area(area) };
        self.core.receive_kept(id, held);
        if self.core.is_busy() {
            self.advance();
        }
        true
    }
}

impl Core {
    /// Drops a held message that nobody will receive.
    pub(crate) fn let_held_go(&mut self, id: RequestId) {
        let Some(work) = self.requests.get_mut(id) else { return };
        if let Work::Held(held) = std::mem::replace(work, Work::Free) {
            self.let_go(held.label, &held.message);
            self.uncount_kept(held.label.source, held.message.cost_bytes());
        }
    }
}
