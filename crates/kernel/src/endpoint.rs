//! An endpoint: everything one process says and hears.
//!
//! Generic over its nearest channel, so that the shared-memory path is inlined and goes through
//! no table of functions; other networks are called through the trait.

use std::collections::{HashMap, VecDeque};

use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::heap::{Block, Borrowed, Heap, Place};
use landeck_memory::{Bytes, Counters, Operation, Segment, WaitRecord};
use landeck_wire::{Class, Flags, Header, Kind, Reference};

use crate::area::Area;
use crate::failure::Failure;
use crate::matching::{Label, Matching, Wanted};
use crate::membership::Membership;
use crate::request::{Completion, RequestId, Requests, Status};
use crate::transfer::{
    Active, Draining, Filling, Received, Reply, Target, Work, decode_pair, encode_pair,
};

/// Bytes of data kept in the message itself when nobody has asked for it.
const KEPT_INLINE_BYTES: usize = 48;
/// What a kept message costs beside its data.
const KEPT_OVERHEAD_BYTES: u64 = 128;
/// Most bytes that messages nobody asked for may take, from one sender and from all.
const KEPT_BYTES_PER_PEER: u64 = 4 << 20;
const KEPT_BYTES: u64 = 64 << 20;
/// A message up to this size gets a block with room for all of it.
const WHOLE_BYTES: u64 = 256 << 10;
/// The same where there are more processes than processors: every stop costs a process switch.
const WHOLE_BYTES_CROWDED: u64 = 8 << 20;
/// The window of longer messages.
const WINDOW_BYTES: u64 = 256 << 10;
/// Scratch for packing data whose parts lie apart.
const PACK_BYTES: usize = 16 << 10;

/// How far an operation got at once.
#[derive(Debug)]
pub enum Started {
    /// It is complete.
    Complete(Status),
    /// It is pending.
    Pending(RequestId),
}

/// Everything one process says and hears. One thread at a time.
pub struct Endpoint<N: Channel> {
    pub(crate) near: N,
    far: Vec<Box<dyn Channel>>,
    far_peers: HashMap<u32, usize>,
    pub(crate) core: Core,
    scratch: Vec<u8>,
}

/// The part of an endpoint that arriving messages change.
pub(crate) struct Core {
    pub(crate) segment: Segment,
    pub(crate) slot: u32,
    pub(crate) matching: Matching<RequestId, Kept>,
    pub(crate) requests: Requests,
    pub(crate) heap: Heap,
    pub(crate) membership: Membership,
    pub(crate) counters: Counters,
    /// The limits of what is kept do not count now: the last of somebody who is gone comes in.
    pub(crate) keeps_all: bool,
    kept_bytes: u64,
    kept_bytes_by_peer: HashMap<u32, u64>,
    heap_segments: HashMap<u32, Segment>,
    /// Sends without room, oldest first.
    pub(crate) backlog: VecDeque<RequestId>,
    /// Requests that fill, drain or part.
    pub(crate) active: Active,
    replies: Vec<Reply>,
}

/// A message that nobody has asked for yet.
pub(crate) enum Kept {
    Short { length: u8, data: [u8; KEPT_INLINE_BYTES] },
    Long(Vec<u8>),
    Elsewhere { place: Place, length: u64 },
    Offer { length: u64, send: u64 },
}

impl Kept {
    fn new(data: Bytes<'_>) -> Self {
        if data.len() > KEPT_INLINE_BYTES {
            return Self::Long(data.to_vec());
        }
        let mut short = [0; KEPT_INLINE_BYTES];
        let length = data.copy_to_slice(&mut short) as u8;
        Self::Short { length, data: short }
    }

    fn message_bytes(&self) -> u64 {
        match self {
            Self::Short { length, .. } => u64::from(*length),
            Self::Long(data) => data.len() as u64,
            Self::Elsewhere { length, .. } | Self::Offer { length, .. } => *length,
        }
    }

    /// Bytes of ours that it takes.
    pub(crate) fn cost_bytes(&self) -> u64 {
        KEPT_OVERHEAD_BYTES + if let Self::Long(data) = self { data.len() as u64 } else { 0 }
    }
}

impl<N: Channel> Endpoint<N> {
    /// The endpoint of the process of `slot` in its home segment. None when there is no such
    /// slot, or when this handle of the segment has had an endpoint for it before.
    pub fn new(near: N, segment: &Segment, slot: u32) -> Option<Self> {
        let heap = Heap::of(segment, slot)?;
        Some(Self {
            near,
            far: Vec::new(),
            far_peers: HashMap::new(),
            core: Core {
                segment: segment.clone(),
                slot,
                matching: Matching::default(),
                requests: Requests::default(),
                heap,
                membership: Membership::new(segment),
                counters: Counters::default(),
                keeps_all: false,
                kept_bytes: 0,
                kept_bytes_by_peer: HashMap::new(),
                heap_segments: HashMap::new(),
                backlog: VecDeque::new(),
                active: Active::new(),
                replies: Vec::new(),
            },
            scratch: Vec::new(),
        })
    }

    /// The nearest channel, for whoever adds peers to it.
    pub fn near_mut(&mut self) -> &mut N {
        &mut self.near
    }

    /// Says that a peer's blocks lie in another segment than ours.
    pub fn set_heap_segment(&mut self, peer: Peer, segment: &Segment) {
        self.core.heap_segments.insert(peer.0, segment.clone());
    }

    /// Adds a network. Its peers are named with [`Endpoint::route`].
    pub fn add_channel(&mut self, channel: Box<dyn Channel>) -> usize {
        self.far.push(channel);
        self.far.len() - 1
    }

    /// Says that a peer is reached over the channel that [`Endpoint::add_channel`] numbered so.
    pub fn route(&mut self, peer: Peer, channel: usize) {
        self.far_peers.insert(peer.0, channel);
    }

    /// The networks beside the nearest.
    pub fn channels(&self) -> &[Box<dyn Channel>] {
        &self.far
    }

    /// The same, to change them.
    pub fn channels_mut(&mut self) -> &mut [Box<dyn Channel>] {
        &mut self.far
    }

    /// Memory of the heap that can be sent without copying.
    ///
    /// # Errors
    /// [`landeck_memory::heap::HeapFull`].
    pub fn allocate(&mut self, bytes: usize) -> Result<Block, landeck_memory::heap::HeapFull> {
        self.core.heap.allocate(bytes)
    }

    /// Sends the bytes of an area. Complete when the area may be used again.
    ///
    /// # Errors
    /// [`Failure::PeerGone`], [`Failure::PeerBroken`], [`Failure::Revoked`].
    #[inline]
    pub fn send(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        area: Area,
    ) -> Result<Started, Failure> {
        self.check(to, context)?;
        self.core.counters.messages_sent += 1;
        self.core.counters.bytes_sent += area.packed_bytes();
        if self.core.backlog.is_empty()
            && let Some(bytes) = area.one_piece()
        {
            let header = Header::user(Kind::Eager, bytes.len() as u32, context, tag);
            if self.near_sends(to, &header, bytes) {
                let bytes = area.packed_bytes();
                return Ok(Started::Complete(Status { peer: to, tag, bytes, cancelled: false }));
            }
        }
        self.send_otherwise(to, context, tag, area)
    }

    #[inline]
    fn near_sends(&mut self, to: Peer, header: &Header, bytes: Bytes<'_>) -> bool {
        bytes.len() <= self.near.data_bytes_max()
            && (self.far.is_empty() || !self.far_peers.contains_key(&to.0))
            && self.near.try_send(to, header, bytes).is_ok()
    }

    #[inline]
    fn check(&mut self, to: Peer, context: u32) -> Result<(), Failure> {
        self.refresh();
        self.core.membership.check(to, context)
    }

    #[cold]
    #[inline(never)]
    fn send_otherwise(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        area: Area,
    ) -> Result<Started, Failure> {
        let header = Header::user(Kind::Eager, 0, context, tag);
        let id = self.core.requests.insert(Work::Queued { to, header, area, loan: None });
        self.queue(id);
        Ok(self.settled(id))
    }

    /// Hands one message to the channel of its peer, around the queue of waiting sends.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn try_send(
        &mut self,
        to: Peer,
        header: &Header,
        data: Bytes<'_>,
    ) -> Result<(), SendError> {
        self.channel(to).try_send(to, header, data)
    }

    /// Gives a block away: its bytes are sent without being copied. Complete at once, unless the
    /// channel is full.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_loan(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        block: Block,
    ) -> Result<Started, Failure> {
        self.check(to, context)?;
        self.core.counters.messages_sent += 1;
        self.core.counters.bytes_sent += block.len() as u64;
        let header = Header::user(Kind::Reference, 0, context, tag);
        let loan = Some(block);
        let id = self.core.requests.insert(Work::Queued { to, header, area: Area::EMPTY, loan });
        self.queue(id);
        Ok(self.settled(id))
    }

    /// Queues a send behind earlier ones and tries at once.
    fn queue(&mut self, id: RequestId) {
        self.core.backlog.push_back(id);
        self.advance();
    }

    fn settled(&mut self, id: RequestId) -> Started {
        match self.core.requests.get(id) {
            Some(Work::Done(Completion { result: Ok(status), data: None })) => {
                let status = *status;
                self.core.requests.remove(id);
                Started::Complete(status)
            }
            _ => Started::Pending(id),
        }
    }

    /// Receives into an area.
    #[inline]
    pub fn receive(&mut self, wanted: Wanted, area: Area) -> RequestId {
        self.receive_into(wanted, Target::Area(area))
    }

    /// Receives a message of any length; its data come with the completion, in place where they
    /// were sent through the heap.
    pub fn receive_own(&mut self, wanted: Wanted) -> RequestId {
        self.receive_into(wanted, Target::Own(Vec::new()))
    }

    #[inline]
    fn receive_into(&mut self, wanted: Wanted, target: Target) -> RequestId {
        let id = self.core.requests.insert(Work::Posted { wanted, target });
        if self.core.matching.waiting() != 0
            && let Some((label, kept)) = self.core.matching.take(&wanted)
        {
            self.core.receive_kept(id, label, kept);
            if self.core.is_busy() {
                self.advance();
            }
        } else {
            self.core.matching.post(wanted, id);
        }
        id
    }

    /// What a receive would get, without receiving it.
    pub fn probe(&mut self, wanted: Wanted) -> Option<Status> {
        let (label, kept) = self.core.matching.peek(&wanted)?;
        Some(Status {
            peer: Peer(label.source),
            tag: label.tag,
            bytes: kept.message_bytes(),
            cancelled: false,
        })
    }

    /// Makes progress; true when anything moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let mut any = self.near.poll_into(&mut self.core);
        if !self.far.is_empty() {
            any |= self.poll_far();
        }
        if self.core.is_busy() {
            any |= self.advance();
        }
        any
    }

    /// Makes progress where it can help a request: a receive from a neighbour looks there only.
    #[inline]
    pub fn progress_for(&mut self, id: RequestId) {
        match self.core.requests.get(id) {
            Some(Work::Posted { wanted: Wanted { source: Some(source), .. }, .. })
                if self.far.is_empty() =>
            {
                let source = Peer(*source);
                self.near.poll_peer_into(source, &mut self.core);
                if self.core.is_busy() {
                    self.advance();
                }
            }
            _ => {
                self.progress();
            }
        }
    }

    #[cold]
    fn poll_far(&mut self) -> bool {
        let core = &mut self.core;
        self.far.iter_mut().fold(false, |any, channel| channel.poll(core) | any)
    }

    /// The last look before sleep, and everything given out that others may wait for.
    pub fn progress_thoroughly(&mut self) -> bool {
        let mut any = self.near.poll_thoroughly(&mut self.core);
        for channel in &mut self.far {
            any |= channel.poll_thoroughly(&mut self.core);
        }
        any |= self.refresh_far();
        if self.core.is_busy() {
            any |= self.advance();
        }
        self.core.segment.set_counters(self.core.slot, &self.core.counters);
        any
    }

    /// Whether a request has ended (or is not there).
    #[inline]
    pub fn is_done(&self, id: RequestId) -> bool {
        !matches!(self.core.requests.get(id), Some(work) if !matches!(work, Work::Done(_)))
    }

    /// Takes the result of a request that has ended; the request is no more. None when it goes on.
    #[inline]
    pub fn take(&mut self, id: RequestId) -> Option<Completion> {
        match self.core.requests.get(id) {
            Some(Work::Done(_)) => match self.core.requests.remove(id) {
                Some(Work::Done(completion)) => Some(completion),
                _ => None,
            },
            Some(_) => None,
            None => Some(Completion { result: Err(Failure::Gone), data: None }),
        }
    }

    /// Cancels an operation that has not begun: a receive without a message, a send without room.
    /// It then completes with [`Status::cancelled`]. Others go on.
    pub fn cancel(&mut self, id: RequestId) {
        let status = match self.core.requests.get(id) {
            Some(Work::Posted { wanted, .. }) => {
                let peer = Peer(wanted.source.unwrap_or(u32::MAX));
                Status { peer, tag: wanted.tag.unwrap_or(0), bytes: 0, cancelled: true }
            }
            Some(Work::Queued { to, header, .. }) => {
                Status { peer: *to, tag: header.tag, bytes: 0, cancelled: true }
            }
            _ => return,
        };
        self.core.end(id, Work::Done(Completion { result: Ok(status), data: None }));
    }

    /// Ends an operation whatever it is doing, with no result: its memory may go.
    pub fn abandon(&mut self, id: RequestId) {
        self.core.end(id, Work::failed(Failure::Gone));
        self.core.requests.remove(id);
    }

    /// Sends and transfers that have not ended: what a process waits for before it leaves.
    pub fn has_unfinished_sends(&self) -> bool {
        !self.core.backlog.is_empty()
            || self.core.active.iter().any(|&id| {
                matches!(self.core.requests.get(id), Some(Work::Filling(_) | Work::Parting { .. }))
            })
            || self.far.iter().any(|channel| channel.has_unsent())
    }

    /// Peers over other networks that those networks have lost.
    pub(crate) fn far_gone(&self) -> Vec<Peer> {
        let lost = |(&peer, &at): (&u32, &usize)| {
            let peer = Peer(peer);
            self.far[at].is_gone(peer).then_some(peer)
        };
        self.far_peers.iter().filter_map(lost).collect()
    }

    /// What was counted.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.core.counters
    }

    /// Writes the counters where others can read them.
    pub fn publish_counters(&self) {
        self.core.segment.set_counters(self.core.slot, &self.core.counters);
    }

    /// What a wait for this request is to say of itself.
    pub fn wait_record(&self, id: RequestId) -> WaitRecord {
        let record = |operation, peer, tag, context, bytes| WaitRecord {
            operation,
            peer,
            tag,
            context,
            bytes,
            since_ns: 0,
        };
        match self.core.requests.get(id) {
            Some(Work::Posted { wanted, target }) => {
                let bytes = if let Target::Area(area) = target { area.packed_bytes() } else { 0 };
                record(Operation::Receive, wanted.source, wanted.tag, wanted.context, bytes)
            }
            Some(Work::Queued { to, header, area, .. }) => {
                let bytes = area.packed_bytes();
                record(Operation::Send, Some(to.0), Some(header.tag), header.context, bytes)
            }
            Some(work) => record(Operation::Wait, work.depends_on().map(|peer| peer.0), None, 0, 0),
            None => WaitRecord::default(),
        }
    }

    /// Moves everything that can move: replies, sends without room, transfers.
    #[cold]
    #[inline(never)]
    pub(crate) fn advance(&mut self) -> bool {
        let replied = self.send_replies();
        let sent = self.send_backlog();
        self.move_active() | replied | sent
    }

    fn channel(&mut self, to: Peer) -> &mut dyn Channel {
        match self.far_peers.get(&to.0) {
            Some(&at) => &mut *self.far[at],
            None => &mut self.near,
        }
    }

    fn send_replies(&mut self) -> bool {
        let replies = std::mem::take(&mut self.core.replies);
        let mut any = false;
        for reply in replies {
            let sent =
                self.channel(reply.to).try_send(reply.to, &reply.header, (&reply.data[..]).into());
            match sent {
                Err(SendError::Full) => self.core.replies.push(reply),
                _ => any = true,
            }
        }
        any
    }

    /// Tries the waiting sends in order; a peer without room keeps its later ones waiting too.
    fn send_backlog(&mut self) -> bool {
        let mut full: Vec<Peer> = Vec::new();
        let mut any = false;
        for _ in 0..self.core.backlog.len() {
            let Some(id) = self.core.backlog.pop_front() else { break };
            let Some(Work::Queued { to, .. }) = self.core.requests.get(id) else { continue };
            let to = *to;
            if full.contains(&to) || !self.start_queued(id, to) {
                full.push(to);
                self.core.backlog.push_back(id);
            } else {
                any = true;
            }
        }
        any
    }

    /// Starts one waiting send; false when there is no room for it yet.
    fn start_queued(&mut self, id: RequestId, to: Peer) -> bool {
        let Some(work) = self.core.requests.get_mut(id) else { return true };
        let Work::Queued { header, area, loan, .. } = std::mem::replace(work, Work::Free) else {
            return true;
        };
        let next = self.start_send(id, to, header, area, loan);
        let waits = matches!(next, Work::Queued { .. });
        if matches!(next, Work::Filling(_)) {
            self.core.active.push(id);
        }
        if let Some(work) = self.core.requests.get_mut(id) {
            *work = next;
        }
        !waits
    }

    fn start_send(
        &mut self,
        id: RequestId,
        to: Peer,
        header: Header,
        area: Area,
        loan: Option<Block>,
    ) -> Work {
        if let Some(block) = loan {
            return self.start_loan(to, header, block);
        }
        let bytes = area.packed_bytes();
        if bytes <= self.channel(to).data_bytes_max() as u64 {
            return match self.send_eager(to, &header, &area) {
                Ok(()) => Work::Done(sent(to, header.tag, bytes)),
                Err(SendError::Full) => Work::Queued { to, header, area, loan: None },
                Err(SendError::TooLong) => self.start_filling(to, header, area),
                Err(SendError::Gone) => Work::failed(Failure::PeerGone { peer: to, died: true }),
            };
        }
        if self.channel(to).heap_segment(to).is_some() {
            return self.start_filling(to, header, area);
        }
        self.start_offer(id, to, header, area)
    }

    fn send_eager(&mut self, to: Peer, header: &Header, area: &Area) -> Result<(), SendError> {
        let header = Header { length: area.packed_bytes() as u32, ..*header };
        if let Some(bytes) = area.one_piece() {
            return self.channel(to).try_send(to, &header, bytes);
        }
        let mut packed = std::mem::take(&mut self.scratch);
        packed.clear();
        area.read(0, |bytes| {
            packed.extend_from_slice(&bytes.to_vec());
            bytes.len()
        });
        let result = self.channel(to).try_send(to, &header, (&packed[..]).into());
        packed.shrink_to(PACK_BYTES);
        self.scratch = packed;
        result
    }

    /// Allocates a window, announces it, fills what fits.
    fn start_filling(&mut self, to: Peer, header: Header, area: Area) -> Work {
        let total = area.packed_bytes();
        let Some(block) = self.allocate_window(total) else {
            return Work::Queued { to, header, area, loan: None };
        };
        let Ok(lent) = self.core.heap.lend(block, &[to.0], 0) else {
            return Work::Queued { to, header, area, loan: None };
        };
        let header = Header { kind: Kind::Reference, ..header };
        match self.announce(to, &header, lent.place(0), total) {
            Ok(()) => {
                let tag = header.tag;
                let mut filling = Filling { to, tag, lent, area, position: 0 };
                filling.advance();
                self.near.nudge(to);
                if filling.is_complete() {
                    Work::Done(sent(to, tag, total))
                } else {
                    Work::Filling(filling)
                }
            }
            Err(SendError::Gone) => Work::failed(Failure::PeerGone { peer: to, died: true }),
            Err(_) => Work::Queued {
                to,
                header: Header { kind: Kind::Eager, ..header },
                area,
                loan: None,
            },
        }
    }

    /// A block for a message of this size: all of it, or a window; a smaller one if memory is short.
    fn allocate_window(&mut self, total: u64) -> Option<Block> {
        let crowded = self.core.segment.plan().is_oversubscribed();
        let whole_max = if crowded { WHOLE_BYTES_CROWDED } else { WHOLE_BYTES };
        let wanted = if total <= whole_max { total } else { WINDOW_BYTES };
        [wanted, wanted.min(WINDOW_BYTES), wanted.min(WINDOW_BYTES / 4)]
            .into_iter()
            .find_map(|bytes| self.core.heap.allocate(bytes as usize).ok())
    }

    fn start_loan(&mut self, to: Peer, header: Header, block: Block) -> Work {
        let bytes = block.len() as u64;
        if self.channel(to).heap_segment(to).is_none() {
            return Work::failed(Failure::OutsideBuffer { buffer_bytes: block.len() });
        }
        let Ok(lent) = self.core.heap.lend(block, &[to.0], bytes) else {
            return Work::failed(Failure::Gone);
        };
        let header = Header { flags: Flags::LOAN, ..header };
        match self.announce(to, &header, lent.place(0), bytes) {
            Ok(()) => Work::Done(sent(to, header.tag, bytes)),
            Err(SendError::Gone) => Work::failed(Failure::PeerGone { peer: to, died: true }),
            Err(_) => {
                let loan = Some(lent.withdraw());
                Work::Queued { to, header, area: Area::EMPTY, loan }
            }
        }
    }

    fn announce(
        &mut self,
        to: Peer,
        header: &Header,
        place: Place,
        total: u64,
    ) -> Result<(), SendError> {
        let reference = Reference {
            owner: place.owner,
            generation: place.generation,
            offset: place.offset,
            length: total,
            window: place.window,
        }
        .encode();
        let header = Header { length: reference.len() as u32, ..*header };
        self.channel(to).try_send(to, &header, (&reference[..]).into())
    }

    fn start_offer(&mut self, id: RequestId, to: Peer, header: Header, area: Area) -> Work {
        let offer = encode_pair(area.packed_bytes(), id.to_bits());
        let header_out = Header { kind: Kind::Offer, length: offer.len() as u32, ..header };
        match self.channel(to).try_send(to, &header_out, (&offer[..]).into()) {
            Ok(()) => Work::Offered { to, area, tag: header.tag },
            Err(SendError::Gone) => Work::failed(Failure::PeerGone { peer: to, died: true }),
            Err(_) => Work::Queued { to, header, area, loan: None },
        }
    }

    fn move_active(&mut self) -> bool {
        let mut any = false;
        let mut at = 0;
        while at < self.core.active.len() {
            let id = self.core.active[at];
            let (moved, goes_on) = self.move_one(id);
            any |= moved;
            if goes_on {
                at += 1;
            } else {
                self.core.active.swap_remove(at);
            }
        }
        any
    }

    /// One step of one transfer: whether it moved, whether it goes on.
    fn move_one(&mut self, id: RequestId) -> (bool, bool) {
        let (peer, moved, is_complete) = match self.core.requests.get_mut(id) {
            Some(Work::Filling(filling)) => (filling.to, filling.advance(), filling.is_complete()),
            Some(Work::Draining(draining)) => {
                (draining.status.peer, draining.advance(), draining.is_complete())
            }
            Some(Work::Parting { .. }) => return self.move_parts(id),
            _ => return (false, false),
        };
        if is_complete {
            self.core.complete_transfer(id);
        }
        if moved {
            self.channel(peer).nudge(peer);
        }
        (moved, !is_complete)
    }

    fn move_parts(&mut self, id: RequestId) -> (bool, bool) {
        let Some(Work::Parting { to, area, tag, position, receive }) =
            self.core.requests.get_mut(id)
        else {
            return (false, false);
        };
        let (to, area, tag, receive) = (*to, area.clone(), *tag, *receive);
        let mut at = *position;
        let most = self.channel(to).data_bytes_max();
        let before = at;
        let channel = self.channel(to);
        let mut gone = false;
        area.read(at, |bytes| {
            let mut taken = 0;
            while taken < bytes.len() {
                let part = bytes.part(taken, most);
                let header = part_header(part.len(), receive);
                match channel.try_send(to, &header, part) {
                    Ok(()) => taken += part.len(),
                    Err(error) => {
                        gone = error == SendError::Gone;
                        break;
                    }
                }
            }
            at += taken as u64;
            taken
        });
        let total = area.packed_bytes();
        let next = match () {
            () if gone => Work::failed(Failure::PeerGone { peer: to, died: true }),
            () if at >= total => Work::Done(sent(to, tag, total)),
            () => Work::Parting { to, area, tag, position: at, receive },
        };
        let goes_on = matches!(next, Work::Parting { .. });
        if let Some(work) = self.core.requests.get_mut(id) {
            *work = next;
        }
        (at != before, goes_on)
    }
}

fn sent(to: Peer, tag: u32, bytes: u64) -> Completion {
    Completion { result: Ok(Status { peer: to, tag, bytes, cancelled: false }), data: None }
}

fn part_header(length: usize, receive: u64) -> Header {
    let (low, high) = (receive as u32, (receive >> 32) as u32);
    Header { class: Class::User, ..Header::user(Kind::Part, length as u32, low, high) }
}

impl Core {
    /// Whether there is anything to advance.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty() || !self.backlog.is_empty() || !self.replies.is_empty()
    }

    /// Ends a request from outside: it leaves every list it is in.
    pub(crate) fn end(&mut self, id: RequestId, end: Work) {
        match self.requests.get(id) {
            Some(Work::Posted { .. }) => {
                self.matching.withdraw(id);
            }
            Some(Work::Queued { .. }) => self.backlog.retain(|&queued| queued != id),
            Some(Work::Free | Work::Done(_)) | None => return,
            Some(_) => self.active.retain(|&active| active != id),
        }
        if let Some(work) = self.requests.get_mut(id) {
            *work = end;
        }
    }

    fn complete_transfer(&mut self, id: RequestId) {
        let Some(work) = self.requests.get_mut(id) else { return };
        let completion = match std::mem::replace(work, Work::Free) {
            Work::Filling(filling) => Completion { result: Ok(filling.status()), data: None },
            Work::Draining(draining) => draining.complete(),
            other => {
                *work = other;
                return;
            }
        };
        *work = Work::Done(completion);
    }

    /// A message of which all data are here meets its receive.
    #[inline]
    fn receive_eager(&mut self, id: RequestId, status: Status, data: Bytes<'_>) {
        self.count_received(status.bytes);
        let Some(work) = self.requests.get_mut(id) else { return };
        if let Work::Posted { target: Target::Area(area), .. } = work {
            area.write(0, data);
            let room = area.packed_bytes();
            let result = if room < status.bytes {
                Err(Failure::Truncated { message_bytes: status.bytes, buffer_bytes: room })
            } else {
                Ok(status)
            };
            *work = Work::Done(Completion { result, data: None });
        } else {
            *work = Work::Done(Completion {
                result: Ok(status),
                data: Some(Received::Private(data.to_vec())),
            });
        }
    }

    #[inline]
    fn count_received(&mut self, bytes: u64) {
        self.counters.messages_received += 1;
        self.counters.bytes_received += bytes;
    }

    /// A message whose data lie in a block meets its receive.
    fn receive_elsewhere(&mut self, id: RequestId, status: Status, place: Place) {
        self.count_received(status.bytes);
        let segment = self.heap_segments.get(&status.peer.0).unwrap_or(&self.segment);
        let borrowed = Borrowed::open(segment, place);
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, .. } = std::mem::replace(work, Work::Free) else { return };
        let Ok(borrowed) = borrowed else {
            let what = BrokenPeer::Reference;
            *work = Work::failed(Failure::PeerBroken { peer: status.peer, what });
            return;
        };
        let is_whole = place.window >= status.bytes;
        *work = Work::Draining(Draining { borrowed, target, status, position: 0, is_whole });
        self.active.push(id);
    }

    /// An offer meets its receive: ask for the parts.
    fn accept_offer(&mut self, id: RequestId, status: Status, send: u64) {
        self.count_received(status.bytes);
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, .. } = std::mem::replace(work, Work::Free) else { return };
        *work = Work::Collecting { target, status, position: 0 };
        let data = encode_pair(send, id.to_bits());
        let header = Header::user(Kind::Accept, data.len() as u32, 0, 0);
        self.replies.push(Reply { to: status.peer, header, data });
    }

    fn receive_kept(&mut self, id: RequestId, label: Label, kept: Kept) {
        self.uncount_kept(label.source, kept.cost_bytes());
        let bytes = kept.message_bytes();
        let status = Status { peer: Peer(label.source), tag: label.tag, bytes, cancelled: false };
        match kept {
            Kept::Short { length, data } => {
                self.receive_eager(id, status, Bytes::from(&data[..usize::from(length)]));
            }
            Kept::Long(data) => self.receive_eager(id, status, Bytes::from(&data[..])),
            Kept::Elsewhere { place, .. } => self.receive_elsewhere(id, status, place),
            Kept::Offer { send, .. } => self.accept_offer(id, status, send),
        }
    }

    /// Keeps a message that nobody has asked for, if there is room.
    fn keep(&mut self, label: Label, kept: Kept) -> Verdict {
        let cost = kept.cost_bytes();
        let of_peer = self.kept_bytes_by_peer.entry(label.source).or_default();
        let is_full = *of_peer + cost > KEPT_BYTES_PER_PEER || self.kept_bytes + cost > KEPT_BYTES;
        if is_full && !self.keeps_all {
            return Verdict::Held;
        }
        *of_peer += cost;
        self.kept_bytes += cost;
        self.matching.keep(label, kept);
        Verdict::Taken
    }

    pub(crate) fn uncount_kept(&mut self, source: u32, cost: u64) {
        self.kept_bytes -= cost;
        if let Some(of_peer) = self.kept_bytes_by_peer.get_mut(&source) {
            *of_peer -= cost;
        }
    }

    fn arrive_reference(&mut self, label: Label, data: Bytes<'_>) -> Verdict {
        let Ok(reference) = Reference::decode(&data.to_vec()) else {
            self.broken(Peer(label.source), BrokenPeer::Reference);
            return Verdict::Taken;
        };
        let place = Place {
            owner: reference.owner,
            generation: reference.generation,
            offset: reference.offset,
            window: reference.window,
        };
        match self.matching.match_arrival(label) {
            Some(id) => {
                let bytes = reference.length;
                let status =
                    Status { peer: Peer(label.source), tag: label.tag, bytes, cancelled: false };
                self.receive_elsewhere(id, status, place);
                Verdict::Taken
            }
            None => self.keep(label, Kept::Elsewhere { place, length: reference.length }),
        }
    }

    fn arrive_offer(&mut self, label: Label, data: Bytes<'_>) -> Verdict {
        let Some((length, send)) = decode_pair(data) else {
            self.broken(Peer(label.source), BrokenPeer::Reference);
            return Verdict::Taken;
        };
        match self.matching.match_arrival(label) {
            Some(id) => {
                let status = Status {
                    peer: Peer(label.source),
                    tag: label.tag,
                    bytes: length,
                    cancelled: false,
                };
                self.accept_offer(id, status, send);
                Verdict::Taken
            }
            None => self.keep(label, Kept::Offer { length, send }),
        }
    }

    fn arrive_accept(&mut self, from: Peer, data: Bytes<'_>) {
        let Some((send, receive)) = decode_pair(data) else { return };
        let id = RequestId::from_bits(send);
        let Some(work) = self.requests.get_mut(id) else { return };
        match std::mem::replace(work, Work::Free) {
            Work::Offered { to, area, tag } if to == from => {
                *work = Work::Parting { to, area, tag, position: 0, receive };
                self.active.push(id);
            }
            other => *work = other,
        }
    }

    fn arrive_part(&mut self, from: Peer, header: &Header, data: Bytes<'_>) {
        let id = RequestId::from_bits(u64::from(header.tag) << 32 | u64::from(header.context));
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Collecting { target, status, position } = work else { return };
        if status.peer != from {
            return;
        }
        target.write(*position, data);
        *position += data.len() as u64;
        if *position >= status.bytes
            && let Work::Collecting { target, status, .. } = std::mem::replace(work, Work::Free)
        {
            *work = Work::Done(target.complete(status));
        }
    }

    #[cold]
    fn arrive_other(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        let label = Label { context: header.context, source: from.0, tag: header.tag };
        match header.kind {
            Kind::Reference => return self.arrive_reference(label, data),
            Kind::Offer => return self.arrive_offer(label, data),
            Kind::Accept => self.arrive_accept(from, data),
            Kind::Part => self.arrive_part(from, header, data),
            Kind::Eager | Kind::Done | Kind::RingOpen | Kind::Control => {}
        }
        Verdict::Taken
    }
}

impl Sink for Core {
    #[inline]
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        if header.kind != Kind::Eager {
            return self.arrive_other(from, header, data);
        }
        let label = Label { context: header.context, source: from.0, tag: header.tag };
        match self.matching.match_arrival(label) {
            Some(id) => {
                let status = Status {
                    peer: from,
                    tag: header.tag,
                    bytes: data.len() as u64,
                    cancelled: false,
                };
                self.receive_eager(id, status, data);
                Verdict::Taken
            }
            None => self.keep(label, Kept::new(data)),
        }
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.membership.mark_broken(from, what);
    }
}
