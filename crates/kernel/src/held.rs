//! Messages that were found and taken out, so that nobody else receives them: matched probes.

use landeck_channel::{Channel, Peer};

use crate::area::Area;
use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::matching::Wanted;
use crate::request::{RequestId, Status};
use crate::transfer::{Target, Work};

impl<N: Channel> Endpoint<N> {
    /// What a receive would get; from now on only [`Endpoint::receive_held`] of this name gets it.
    pub fn hold(&mut self, wanted: Wanted) -> Option<(RequestId, Status)> {
        let (label, kept) = self.core.matching.take(&wanted)?;
        let (peer, tag, bytes) = (Peer(label.source), label.tag, kept.message_bytes());
        let id = self.core.requests.insert(Work::Held { label, kept });
        Some((id, Status { peer, tag, bytes, cancelled: false }))
    }

    /// Receives a message that is held into an area. Its name is from now on that of the receive.
    /// False when it names no message that is held.
    pub fn receive_held(&mut self, id: RequestId, area: Area) -> bool {
        let Some(work) = self.core.requests.get_mut(id) else { return false };
        let (label, kept) = match std::mem::replace(work, Work::Free) {
            Work::Held { label, kept } => (label, kept),
            other => {
                *work = other;
                return false;
            }
        };
        let (context, source, tag) = (label.context, Some(label.source), Some(label.tag));
        *work =
            Work::Posted { wanted: Wanted { context, source, tag }, target: Target::Area(area) };
        self.core.receive_kept(id, label, kept);
        if self.core.is_busy() {
            self.advance();
        }
        true
    }
}

impl Core {
    /// Drops a message that is held: nobody will receive it.
    pub(crate) fn let_held_go(&mut self, id: RequestId) {
        let Some(work) = self.requests.get_mut(id) else { return };
        if let Work::Held { label, kept } = std::mem::replace(work, Work::Free) {
            self.let_go(label, &kept);
            self.uncount_kept(label.source, kept.cost_bytes());
        }
    }
}
