//! Cancelling receives and sends that have not met their match.
//!
//! A receive without a message and a send without room belong to this process alone. A message that was offered, or
//! whose block fills up and is not drained, is with its receiver: the sender asks for it back, and gets it back if it
//! has met no receive there. Otherwise the operation continues.

use landeck_channel::{Channel, Peer};
use landeck_memory::Bytes;
use landeck_wire::{Header, Kind};

use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::kept::Kept;
use crate::request::{Completion, RequestId};
use crate::status::Status;
use crate::transfer::{Reply, decode_pair, encode_pair};
use crate::work::Work;

/// The kind of a message that was offered: the number is that of the send.
const OFFERED: u32 = 0;
/// The kind of a message in a block: the number is that of its place.
const IN_BLOCK: u32 = 1;

impl<N: Channel> Endpoint<N> {
    /// Cancels an operation that has met no match: a receive without a message, a send without a receive. It then
    /// completes with [`Status::cancelled`], a send perhaps later. Other operations continue.
    pub fn cancel(&mut self, id: RequestId) {
        let status = match self.core.requests.get(id) {
            Some(Work::Posted { wanted, .. }) => {
                cancelled(Peer(wanted.source.unwrap_or(u32::MAX)), wanted.tag.unwrap_or(0))
            }
            Some(Work::Queued { to, header, .. }) => cancelled(*to, header.tag),
            Some(Work::Offered { to, .. }) => {
                return self.ask_back(*to, OFFERED, id.to_bits(), id);
            }
            Some(Work::Filling(filling)) => {
                let (to, place) = (filling.to, filling.lent.place(0));
                return self.ask_back(to, IN_BLOCK, place.offset, id);
            }
            _ => return,
        };
        self.core.end(id, Work::Done(Completion { result: Ok(status), data: None }));
    }

    fn ask_back(&mut self, to: Peer, form: u32, number: u64, id: RequestId) {
        let data = encode_pair(number, id.to_bits());
        let header = Header::user(Kind::Withdraw, data.len() as u32, 0, form);
        self.core.replies.push(Reply::new(to, header, &data));
        self.advance();
    }
}

impl Core {
    /// Handles the request of a sender that asks for a message back.
    #[cold]
    pub(crate) fn arrive_withdraw(&mut self, from: Peer, header: &Header, data: Bytes<'_>) {
        let Some((number, send)) = decode_pair(data) else { return };
        let is_it = |kept: &Kept| match kept {
            Kept::Offer { send, .. } => header.tag == OFFERED && *send == number,
            Kept::Elsewhere { place, .. } => header.tag == IN_BLOCK && place.offset == number,
            Kept::Short { .. }
            | Kept::Long(_)
            | Kept::InCell(_)
            | Kept::Begun(_)
            | Kept::Coming { .. } => false,
        };
        let found = self.matching.take_where(|label, kept| label.source == from.0 && is_it(kept));
        // If the message has met its receive, its sender learns of that.
        let Some((label, kept)) = found else { return };
        self.uncount_kept(label.source, kept.cost_bytes());
        self.return_offer(from, send);
    }

    /// Tells the sender of an offered message that it met no receive, and will meet none.
    #[cold]
    pub(crate) fn return_offer(&mut self, from: Peer, send: u64) {
        let data = encode_pair(send, 0);
        let header = Header::user(Kind::Withdrawn, data.len() as u32, 0, 0);
        self.replies.push(Reply::new(from, header, &data));
    }

    /// Handles the return of a message that this process asked back.
    #[cold]
    pub(crate) fn arrive_withdrawn(&mut self, from: Peer, data: Bytes<'_>) {
        let Some((send, _)) = decode_pair(data) else { return };
        let id = RequestId::from_bits(send);
        let Some(work) = self.requests.get_mut(id) else { return };
        let tag = match std::mem::replace(work, Work::Free) {
            Work::Offered { to, tag, .. } if to == from => tag,
            Work::Filling(filling) if filling.to == from => {
                drop(filling.lent.withdraw());
                self.active.retain(|&active| active != id);
                filling.tag
            }
            other => {
                *work = other;
                return;
            }
        };
        let done = Completion { result: Ok(cancelled(from, tag)), data: None };
        self.requests.put(id, Work::Done(done));
    }
}

fn cancelled(peer: Peer, tag: u32) -> Status {
    Status { peer, tag, bytes: 0, cancelled: true }
}
