//! Offered messages whose sends end before the receiver asks for the data.
//!
//! A message to another host that is too long for one frame leaves in chunks, as long as the receiver has buffers for
//! them; its send is over when they are out. Behind that, and where a message is offered, the data follow when the
//! receiver asks for them. Two processes that both send first would wait for ever. So before a process sleeps, it copies
//! the data of such sends into its own heap, and they are complete. The data follow from the copy, in a later call. On
//! one host such a message lies in the heap anyway.
//!
//! Messages of collective operations are not copied: their receivers come to the same call.

use landeck_channel::{Channel, Peer};
use landeck_memory::Bytes;
use landeck_wire::ContextId;

use crate::area::Area;
use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::endpoint::sending::{WHOLE_BYTES, sent};
use crate::mailboxes::FIRST_MAILBOX;
use crate::request::RequestId;
use crate::transfer::{CopiedSend, decode_pair};
use crate::work::Work;

impl<N: Channel> Endpoint<N> {
    /// Completes offered sends, and those in chunks, of up to 256 KiB by copies of their data, as far as there is memory. Returns whether any
    /// is complete now.
    #[cold]
    pub(crate) fn copy_offered(&mut self) -> bool {
        self.core.forget_sent_copies();
        let is_meant = |id: &RequestId| match self.core.requests.get(*id) {
            Some(Work::Offered { is_standard, context, area, .. }) => {
                let is_programs = *context >= FIRST_MAILBOX || context & ContextId::COLLECTIVE == 0;
                let stays = self.core.stores.has(*id);
                *is_standard && is_programs && !stays && area.packed_bytes() <= WHOLE_BYTES
            }
            Some(Work::Chunking(chunking)) => {
                !chunking.area.is_of_block() && chunking.area.packed_bytes() <= WHOLE_BYTES
            }
            _ => false,
        };
        let waiting: Vec<RequestId> = self.core.requests.pending().filter(is_meant).collect();
        waiting
            .into_iter()
            .fold(false, |any, id| self.core.copy_of(id) | self.core.copy_of_chunks(id) | any)
    }
}

impl Core {
    /// Completes an offered send by a copy of its data; false if there is no memory for it.
    fn copy_of(&mut self, id: RequestId) -> bool {
        let Some(&Work::Offered { to, context, ref area, tag, .. }) = self.requests.get(id) else {
            return false;
        };
        let bytes = area.packed_bytes();
        let Ok(mut block) = self.heap.allocate(bytes as usize) else { return false };
        area.pack_slice(0, &mut block);
        let area = Area::of_block(block);
        let (is_standard, is_told) = (false, false);
        let copy = Work::Offered { to, context, area, tag, is_standard, is_told };
        let copy = self.requests.insert(copy);
        self.copied.0.push(CopiedSend { named: id, copy });
        self.requests.put(id, Work::Done(sent(to, tag, bytes)));
        true
    }

    /// Forgets copies that are out, or that nobody will ask for.
    fn forget_sent_copies(&mut self) {
        let requests = &mut self.requests;
        self.copied.0.retain(|send| match requests.get(send.copy) {
            Some(Work::Done(_)) => {
                requests.remove(send.copy);
                false
            }
            there => there.is_some(),
        });
    }

    /// Handles the word that an offered message was received and thrown away.
    #[cold]
    pub(crate) fn arrive_done(&mut self, from: Peer, data: Bytes<'_>) {
        let Some((send, _)) = decode_pair(data) else { return };
        let id = self.copied.holder_of(RequestId::from_bits(send));
        if let Some(&Work::Offered { to, ref area, tag, .. }) = self.requests.get(id)
            && to == from
        {
            let end = Work::Done(sent(to, tag, area.packed_bytes()));
            self.requests.put(id, end);
        }
    }
}
