//! Sending and receiving messages in chunks ([`crate::chunks`]).

use landeck_channel::tokens::{Priority, TokenWay};
use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink};
use landeck_memory::Bytes;
use landeck_wire::{Header, Kind};

use crate::area::Area;
use crate::arrival::Core;
use crate::chunks::{Chunking, Chunks, Coming, Destination};
use crate::endpoint::Endpoint;
use crate::endpoint::sending::sent;
use crate::request::RequestId;
use crate::transfer::{CopiedSend, PAIR_BYTES, Reply, TRIPLE_BYTES, encode_pair};
use crate::work::{Parting, Work};

/// In the word that tells of emptied buffers: the number of those of high priority has so many bits, behind which those
/// for unasked messages are told.
const UNASKED_BITS: u32 = 16;

impl<N: Channel> Endpoint<N> {
    /// The way of a message to another host whose group wants tokens.
    #[inline]
    pub(crate) fn token_way(
        &self,
        to: Peer,
        context: u32,
        bytes: u64,
    ) -> Option<(TokenWay, Priority)> {
        let wish = self.core.pacing.tokens(context).filter(|_| self.is_far(to))?;
        Some((wish.way(bytes), wish.priority))
    }

    /// Offers a message whose chunks follow at once.
    pub(crate) fn start_chunks(
        &mut self,
        id: RequestId,
        to: Peer,
        (header, priority): (Header, Priority),
        area: Area,
    ) -> Work {
        let (context, tag) = (header.context, header.tag);
        let mut offer = [0; TRIPLE_BYTES];
        offer[..PAIR_BYTES].copy_from_slice(&encode_pair(area.packed_bytes(), id.to_bits()));
        offer[PAIR_BYTES..].copy_from_slice(&(priority as u64).to_le_bytes());
        let header_out = Header { kind: Kind::Offer, length: offer.len() as u32, ..header };
        match self.try_channel(to, &header_out, (&offer[..]).into()) {
            Ok(()) => {
                let most = self.core.pacing.share_of_buffers(context, priority);
                let (position, named) = (0, id);
                Work::Chunking(Chunking { to, context, tag, area, position, named, priority, most })
            }
            Err(SendError::Gone) => Work::failed(self.gone(to)),
            Err(_) => Work::Queued { to, header, area, loan: None },
        }
    }

    /// Sends the chunks for which there are tokens; returns whether there were any, and whether more follow.
    pub(crate) fn move_chunks(&mut self, id: RequestId) -> (bool, bool) {
        let Some(work) = self.core.requests.get_mut(id) else { return (false, false) };
        let mut chunking = match std::mem::replace(work, Work::Free) {
            Work::Chunking(chunking) => chunking,
            other => {
                *work = other;
                return (false, false);
            }
        };
        let (to, total) = (chunking.to, chunking.area.packed_bytes());
        let (before, mut outcome) = (chunking.position, Ok(()));
        while chunking.position < total && outcome.is_ok() {
            let tokens = self.core.chunks.tokens.entry(to).or_default();
            if !tokens.take(chunking.priority, chunking.most) {
                break;
            }
            let (kind, receive) = (Kind::Chunk, chunking.named.to_bits());
            let most =
                chunking.priority.buffer_bytes().min(self.channel(to).data_bytes_max() as u64);
            let (position, named) = (chunking.position, (kind, receive));
            let (bytes, sent) = self.send_part(to, &chunking.area, position, most as usize, named);
            chunking.position += bytes;
            if sent.is_err() {
                let tokens = self.core.chunks.tokens.entry(to).or_default();
                tokens.put_back(chunking.priority, 1);
            }
            outcome = sent;
        }
        let moved = chunking.position != before;
        // Its sender may call no more, so it is over when nothing of it waits in this process.
        let is_out = chunking.position >= total && !self.channel(to).has_unsent_to(to);
        let next = match outcome {
            Err(SendError::Gone) => Work::failed(self.gone(to)),
            _ if is_out => Work::Done(sent(to, chunking.tag, total)),
            _ => Work::Chunking(chunking),
        };
        let goes_on = matches!(next, Work::Chunking(_));
        self.core.requests.put(id, next);
        (moved || !goes_on, goes_on)
    }
}

impl Core {
    /// Completes a send in chunks by a copy of its data; false if there is no memory for it.
    pub(crate) fn copy_of_chunks(&mut self, id: RequestId) -> bool {
        let Some(Work::Chunking(chunking)) = self.requests.get(id) else { return false };
        // While there is a token it waits for the network alone, which needs no call of its receiver that never comes.
        let tokens = self.chunks.tokens.get(&chunking.to).copied().unwrap_or_default();
        let is_out = chunking.position >= chunking.area.packed_bytes();
        if is_out || tokens.has(chunking.priority, chunking.most) {
            return false;
        }
        let (to, tag, bytes) = (chunking.to, chunking.tag, chunking.area.packed_bytes());
        let Ok(mut block) = self.heap.allocate(bytes as usize) else { return false };
        chunking.area.pack_slice(0, &mut block);
        let Some(work) = self.requests.get_mut(id) else { return false };
        let Work::Chunking(chunking) = std::mem::replace(work, Work::Free) else { return false };
        let rest = Chunking { area: Area::of_block(block), ..chunking };
        let copy = self.requests.insert(Work::Chunking(rest));
        self.active.iter_mut().filter(|active| **active == id).for_each(|active| *active = copy);
        self.copied.0.push(CopiedSend { named: id, copy });
        self.requests.put(id, Work::Done(sent(to, tag, bytes)));
        true
    }

    /// Leads the chunks of an accepted offer to their receive; false if the message comes otherwise.
    pub(crate) fn receive_chunks(&mut self, id: RequestId, from: Peer, send: u64) -> bool {
        let Some(at) = self.chunks.position(from, send) else { return false };
        let one = &mut self.chunks.coming[at];
        let priority = one.priority;
        let before = std::mem::replace(&mut one.destination, Destination::Receive(id));
        if one.is_whole() {
            self.chunks.coming.remove(at);
        }
        let Destination::Buffers(full) = before else { return true };
        for chunk in &full {
            self.arrive_part(from, &naming(id), Bytes::from(&chunk[..]));
        }
        self.empty_buffers(from, priority, full.len() as u32);
        self.ask_for_rests(from, priority);
        true
    }

    /// Asks for the rest of messages with a receive, if chunks without one are in buffers of the same sender.
    fn ask_for_rests(&mut self, from: Peer, priority: Priority) {
        let is_beside = |one: &Coming| one.from == from && one.priority == priority;
        let stays = |one: &Coming| matches!(&one.destination, Destination::Buffers(full) if !full.is_empty());
        let coming = &mut self.chunks.coming;
        if !coming.iter().any(|one| is_beside(one) && stays(one)) {
            return;
        }
        for one in coming.iter_mut().filter(|one| is_beside(one) && !one.is_asked) {
            let Destination::Receive(id) = one.destination else { continue };
            one.is_asked = true;
            let data = encode_pair(one.send, id.to_bits());
            let header = Header::user(Kind::Accept, data.len() as u32, 0, 0);
            self.replies.push(Reply::new(from, header, &data));
        }
    }

    /// Throws away what has come and will come of a message that nobody receives.
    #[cold]
    pub(crate) fn let_chunks_go(&mut self, from: Peer, send: u64) {
        let Some(at) = self.chunks.position(from, send) else { return };
        let one = &mut self.chunks.coming[at];
        let priority = one.priority;
        let before = std::mem::replace(&mut one.destination, Destination::Nowhere);
        if one.is_whole() {
            self.chunks.coming.remove(at);
        }
        if let Destination::Buffers(full) = before {
            self.empty_buffers(from, priority, full.len() as u32);
        }
    }

    pub(crate) fn arrive_chunk(&mut self, from: Peer, header: &Header, data: Bytes<'_>) {
        let send = u64::from(header.tag) << 32 | u64::from(header.context);
        let length = data.len() as u64;
        let Some(at) = self.chunks.position(from, send) else {
            return self.broken(from, BrokenPeer::Form);
        };
        let Chunks { buffers, coming, .. } = &mut self.chunks;
        let one = &mut coming[at];
        let most = one.priority.buffer_bytes().min(one.bytes - one.arrived);
        if length > most {
            return self.broken(from, BrokenPeer::TooLong { length, most });
        }
        let priority = one.priority;
        if length == 0 && one.is_asked {
            coming.remove(at);
            return;
        }
        if length == 0 || !buffers.entry(from).or_default().fill(priority) {
            return self.broken(from, BrokenPeer::Form);
        }
        one.arrived += length;
        let receive = match &mut one.destination {
            Destination::Buffers(full) => {
                full.push(data.to_vec());
                return self.ask_for_rests(from, priority);
            }
            Destination::Receive(id) => Some(*id),
            Destination::Nowhere => None,
        };
        if one.is_whole() {
            coming.remove(at);
        }
        if let Some(id) = receive {
            self.arrive_part(from, &naming(id), data);
        }
        self.empty_buffers(from, priority, 1);
    }

    /// Empties buffers, and tells their sender. All of one look go with one message.
    fn empty_buffers(&mut self, from: Peer, priority: Priority, count: u32) {
        // Those of a peer that is gone are forgotten.
        let Some(buffers) = self.chunks.buffers.get_mut(&from).filter(|_| count > 0) else {
            return;
        };
        buffers.empty(priority, count);
        let is_it = |reply: &Reply| reply.to == from && reply.header.kind == Kind::Emptied;
        let at = self.replies.iter().position(is_it).unwrap_or_else(|| {
            self.replies.push(Reply::new(from, Header::user(Kind::Emptied, 0, 0, 0), &[]));
            self.replies.len() - 1
        });
        let header = &mut self.replies[at].header;
        match priority {
            Priority::Low => header.context += count,
            Priority::High => header.tag += count,
            Priority::Unasked => header.tag += count << UNASKED_BITS,
        }
    }

    /// Goes on in parts with a send in chunks, whose rest the receiver asks for.
    pub(crate) fn part_rest_of(&mut self, chunking: Chunking, receive: u64, upto: u64) -> Work {
        let Chunking { to, context, tag, area, position, named, .. } = chunking;
        let header = Header { kind: Kind::Chunk, ..naming(named) };
        self.replies.push(Reply::new(to, header, &[]));
        Work::Parting(Parting { to, context, area, tag, position, receive, upto, mark: 0 })
    }

    pub(crate) fn arrive_emptied(&mut self, from: Peer, header: &Header) {
        let tokens = self.chunks.tokens.entry(from).or_default();
        let (low, high) = (header.context, header.tag % (1 << UNASKED_BITS));
        let is_right = tokens.put_back(Priority::Low, low)
            & tokens.put_back(Priority::High, high)
            & tokens.put_back(Priority::Unasked, header.tag >> UNASKED_BITS);
        if !is_right {
            self.broken(from, BrokenPeer::Form);
        }
    }
}

/// The header of a part that names a receive.
fn naming(id: RequestId) -> Header {
    Header::user(Kind::Part, 0, id.to_bits() as u32, (id.to_bits() >> 32) as u32)
}
