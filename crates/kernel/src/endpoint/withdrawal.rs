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
use crate::failure::Failure;
use crate::kept::Kept;
use crate::matching::Label;
use crate::request::{Completion, RequestId};
use crate::status::Status;
use crate::transfer::{Reply, decode_pair, encode_pair};
use crate::work::Work;

/// The kind of a message that was offered: the number is that of the send.
const OFFERED: u32 = 0;
/// The kind of a message in a block: the number is that of its place.
const IN_BLOCK: u32 = 1;

/// Why a message comes back: its sender has asked for it,
const ASKED_BACK: u32 = 0;
/// or there is no such mailbox, whose context is in the header,
const NO_MAILBOX: u32 = 1;
/// or the receiver leaves.
const LEAVES: u32 = 2;
/// No send waits for the message: it came whole.
const NO_SEND: u64 = u64::MAX;

impl<N: Channel> Endpoint<N> {
    /// Cancels an operation that has met no match: a receive without a message, a send without a receive. It then
    /// completes with [`Status::cancelled`], a send perhaps later. Other operations continue.
    pub fn cancel(&mut self, id: RequestId) {
        let status = match self.core.requests.get(id) {
            Some(Work::Posted { wanted, .. }) => {
                cancelled(Peer(wanted.source.unwrap_or(u32::MAX)), wanted.tag.unwrap_or(0))
            }
            Some(Work::Queued { to, header, .. }) => cancelled(*to, header.tag),
            Some(&Work::Offered { to, .. }) => {
                if let Some(Work::Offered { is_standard, .. }) = self.core.requests.get_mut(id) {
                    *is_standard = false; // a copy could no longer come back
                }
                return self.ask_back(to, OFFERED, id.to_bits(), id);
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
            | Kept::Stored { .. }
            | Kept::Begun(_)
            | Kept::Coming { .. } => false,
        };
        let found = self.matching.take_out(|label, kept| label.source == from.0 && is_it(kept));
        // If the message has met its receive, its sender learns of that.
        let Some(found) = found else { return };
        self.uncount_kept(found.label.source, found.message.cost_bytes());
        self.return_message(from, send, ASKED_BACK, 0);
    }

    /// Whether messages of a sender are refused, since this process leaves.
    pub(crate) fn refuses(&self, source: u32) -> bool {
        self.leaves && source >= self.segment.plan().slots()
    }

    /// Tells a sender on another host that its message is dropped. A sender on this host reads that from shared memory.
    /// `send` is the number of an offered message's send.
    #[cold]
    pub(crate) fn tell_poster(&mut self, label: Label, send: Option<u64>) {
        if label.source < self.segment.plan().slots() {
            return;
        }
        let to = Peer(label.source);
        match send {
            _ if !self.mailboxes.admits(label.context) => {
                self.return_message(to, send.unwrap_or(NO_SEND), NO_MAILBOX, label.context);
            }
            Some(send) if self.leaves => self.return_message(to, send, LEAVES, 0),
            // The revocation itself ends the send.
            Some(_) if self.membership.is_revoked(label.context) => {}
            Some(send) => self.reply(to, Header::user(Kind::Done, 0, 0, 0), send),
            None => {}
        }
    }

    /// Tells the sender of a message that it met no receive, will meet none, and why.
    fn return_message(&mut self, to: Peer, send: u64, why: u32, context: u32) {
        self.reply(to, Header::user(Kind::Withdrawn, 0, context, why), send);
    }

    fn reply(&mut self, to: Peer, header: Header, send: u64) {
        let data = encode_pair(send, 0);
        let header = Header { length: data.len() as u32, ..header };
        let reply = Reply::new(to, header, &data);
        // One word is enough for many short messages.
        if send != NO_SEND || !self.replies.contains(&reply) {
            self.replies.push(reply);
        }
    }

    /// Handles the return of a message that met no receive.
    #[cold]
    pub(crate) fn arrive_withdrawn(&mut self, from: Peer, header: &Header, data: Bytes<'_>) {
        let Some((send, _)) = decode_pair(data) else { return };
        if header.tag == NO_MAILBOX {
            self.mailboxes.note_gone(from.0, header.context);
        }
        let id = self.copied.holder_of(RequestId::from_bits(send));
        let Some(work) = self.requests.get_mut(id) else { return };
        let tag = match std::mem::replace(work, Work::Free) {
            // A send from the program's memory ends with the receiver's departure, which has a record.
            Work::Offered { to, ref area, tag, .. }
                if to == from && (header.tag != LEAVES || area.is_of_block()) =>
            {
                tag
            }
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
        let end = match header.tag {
            LEAVES => Work::failed(Failure::PeerGone { peer: from, died: false }),
            _ => Work::Done(Completion { result: Ok(cancelled(from, tag)), data: None }),
        };
        self.requests.put(id, end);
    }
}

fn cancelled(peer: Peer, tag: u32) -> Status {
    Status { peer, tag, bytes: 0, cancelled: true }
}
