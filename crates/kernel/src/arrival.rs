//! The part of an endpoint that arriving messages change: they meet their receive, or are kept.

use std::collections::HashMap;

use landeck_channel::{BrokenPeer, Peer, Sink, Verdict};
use landeck_memory::heap::{BlockRange, Borrowed, Heap};
use landeck_memory::{Buffer, Bytes, MessageCells, Segment, Tally};
use landeck_wire::{Class, Flags, Header, Kind, REFERENCE_BYTES, Reference};

use crate::area::Area;
use crate::backlog::Backlog;
use crate::chunks::{Chunks, decode_offer};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::mailboxes::Mailboxes;
use crate::matching::{Label, Matching, Waiting, Wanted};
use crate::membership::Membership;
use crate::pacing::Pacing;
use crate::reading::OneCopies;
use crate::request::{Completion, Received, RequestId};
use crate::requests::Requests;
use crate::status::Status;
use crate::stores::Stores;
use crate::told::Told;
use crate::transfer::{
    Active, Collecting, CopiedSends, Draining, Reply, Source, Target, decode_acceptance,
};
use crate::work::{Parting, Work};

/// The most bytes that unexpected messages may take, from one sender and from all.
const KEPT_BYTES_PER_PEER: u64 = 4 << 20;
const KEPT_BYTES: u64 = 64 << 20;
/// Additional bytes for urgent messages, which do not wait for room.
const KEPT_URGENT_BYTES: u64 = 256 << 10;
/// How often a message beyond these limits is left in its channel before it is kept if it blocks others.
const LEFT_LOOKS: u32 = 64;

/// The part of an endpoint that arriving messages change.
pub(crate) struct Core {
    pub(crate) segment: Segment,
    pub(crate) slot: u32,
    pub(crate) matching: Matching<RequestId, Kept>,
    pub(crate) requests: Requests,
    pub(crate) heap: Heap,
    pub(crate) cells: MessageCells,
    pub(crate) membership: Membership,
    pub(crate) tally: Tally,
    pub(crate) mailboxes: Mailboxes,
    /// The limits for kept messages do not count now: the last messages of a process that is gone come in.
    pub(crate) keeps_all: bool,
    /// How often a message was left in its channel since one was received.
    left: u32,
    kept_bytes: u64,
    kept_bytes_by_peer: HashMap<u32, u64>,
    pub(crate) heap_segments: HashMap<u32, Segment>,
    pub(crate) backlog: Backlog,
    /// The number of backlog sends that had begun when this process was last about to sleep.
    pub(crate) begun_before_sleep: Option<u64>,
    /// Requests that are filling, draining or sending parts.
    pub(crate) active: Active,
    pub(crate) replies: Vec<Reply>,
    /// Offered messages whose sends have ended.
    pub(crate) copied: CopiedSends,
    /// This process leaves: it receives nothing more.
    pub(crate) leaves: bool,
    pub(crate) pacing: Pacing,
    pub(crate) chunks: Chunks,
    pub(crate) one_copies: OneCopies,
    pub(crate) stores: Stores,
}

impl Core {
    pub(crate) fn new(segment: &Segment, slot: u32, heap: Heap) -> Self {
        Self {
            segment: segment.clone(),
            slot,
            matching: Matching::default(),
            requests: Requests::default(),
            heap,
            cells: MessageCells::of(segment, slot),
            membership: Membership::new(segment),
            tally: Tally::of(segment, slot),
            mailboxes: Mailboxes::default(),
            keeps_all: false,
            left: 0,
            kept_bytes: 0,
            kept_bytes_by_peer: HashMap::new(),
            heap_segments: HashMap::new(),
            backlog: Backlog::default(),
            begun_before_sleep: None,
            active: Active::new(),
            replies: Vec::new(),
            copied: CopiedSends::default(),
            leaves: false,
            pacing: Pacing::default(),
            chunks: Chunks::default(),
            one_copies: OneCopies::default(),
            stores: Stores::default(),
        }
    }

    /// Whether anything can be advanced.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty()
            || !self.backlog.is_empty()
            || !self.replies.is_empty()
            || !self.pacing.is_empty()
            || !self.stores.is_empty()
    }

    /// Ends a request from outside: it leaves every list that contains it.
    pub(crate) fn end(&mut self, id: RequestId, end: Work) {
        match self.requests.get(id) {
            Some(Work::Posted { .. }) => {
                self.matching.withdraw(id);
            }
            Some(Work::Queued { to, header, .. }) => self.backlog.remove((*to, header.context), id),
            Some(Work::Held(_)) => self.let_held_go(id),
            Some(Work::Free | Work::Done(_)) | None => return,
            Some(&Work::Draining(Draining { source: Source::Cell(place), .. })) => {
                self.active.retain(|&active| active != id);
                self.cells.take_over(place);
            }
            Some(&Work::Collecting(Collecting { named, .. })) => self.forget_named(id, named),
            Some(Work::Fetching(receive)) => {
                self.stores.forget(receive);
                self.stores.free(receive.stored);
                self.active.retain(|&active| active != id);
            }
            Some(Work::Draining(Draining { target: Target::Nowhere, .. })) => {
                self.active.retain(|&active| active != id);
                self.requests.remove(id);
                return;
            }
            Some(Work::Offered { is_told: true, .. }) => self.retract_told(),
            Some(_) => self.active.retain(|&active| active != id),
        }
        self.requests.put(id, end);
    }

    /// Stops passing parts on to a request.
    pub(crate) fn forget_named(&mut self, id: RequestId, named: RequestId) {
        if named != id {
            self.requests.remove(named);
        }
    }

    pub(crate) fn complete_transfer(&mut self, id: RequestId) {
        let Some(work) = self.requests.get_mut(id) else { return };
        let completion = match std::mem::replace(work, Work::Free) {
            Work::Filling(filling) => Completion { result: Ok(filling.status()), data: None },
            Work::Draining(Draining { target: Target::Nowhere, .. }) => {
                self.requests.remove(id);
                return;
            }
            Work::Draining(draining) => draining.complete(&mut self.cells),
            other => {
                *work = other;
                return;
            }
        };
        self.requests.put(id, Work::Done(completion));
    }

    /// Hands a message that has arrived whole to its receive.
    #[inline]
    fn receive_eager(&mut self, id: RequestId, status: Status, data: Bytes<'_>) {
        self.count_received(status.bytes);
        match self.requests.get(id) {
            Some(Work::Posted { target: Target::Area(area), .. })
                if area.packed_bytes() >= status.bytes =>
            {
                area.write(0, data);
                self.requests.end_well(id, status);
            }
            _ => self.receive_truncated_or_owned(id, status, data),
        }
    }

    /// Hands a message to its receive if it does not fit or has no user memory.
    #[inline(never)]
    fn receive_truncated_or_owned(&mut self, id: RequestId, status: Status, data: Bytes<'_>) {
        let completion = match self.requests.get(id) {
            Some(Work::Posted { target: Target::Area(area), .. }) => {
                let result = put(area, &status, data).map(|()| status).map_err(|failure| *failure);
                Completion { result, data: None }
            }
            _ => Completion { result: Ok(status), data: Some(Received::Private(data.to_vec())) },
        };
        self.requests.put(id, Work::Done(completion));
    }

    #[inline]
    pub(crate) fn count_received(&mut self, bytes: u64) {
        self.left = 0;
        self.tally.received(bytes);
    }

    /// Hands a message whose data lie in a block to its receive.
    fn receive_elsewhere(&mut self, id: RequestId, status: Status, place: BlockRange, number: u64) {
        self.count_received(status.bytes);
        let segment = self.heap_segments.get(&status.peer.0).unwrap_or(&self.segment);
        let borrowed = Borrowed::open(segment, place);
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, wanted } = std::mem::replace(work, Work::Free) else { return };
        let Ok(borrowed) = borrowed else {
            let failure = Failure::PeerBroken { peer: status.peer, what: BrokenPeer::Reference };
            return self.requests.put(id, Work::failed(failure));
        };
        let is_whole = place.window >= status.bytes;
        let (context, position, source) = (wanted.context, 0, Source::Block(borrowed));
        *work = Work::Draining(Draining {
            context,
            source,
            target,
            status,
            position,
            is_whole,
            number,
        });
        self.active.push(id);
    }

    /// Accepts an offer for its receive: reads its data if they are told of, or asks for the parts.
    fn accept_offer(
        &mut self,
        id: RequestId,
        status: Status,
        (send, told): (u64, Option<Told>),
        number: u64,
    ) {
        let is_told = told.is_some();
        if told.is_some_and(|told| self.read_offer(id, status, (send, told), number)) {
            return;
        }
        self.count_received(status.bytes);
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, wanted } = std::mem::replace(work, Work::Free) else { return };
        let (context, position, named) = (wanted.context, 0, id);
        let next = match status.bytes {
            0 => Work::Done(target.complete(status)),
            _ => Work::Collecting(Collecting {
                context,
                target,
                status,
                position,
                send,
                named,
                number,
            }),
        };
        self.requests.put(id, next);
        if self.receive_chunks(id, status.peer, send) {
            return;
        }
        match is_told {
            true => self.ask_for_parts(status.peer, send, id, self.cannot_read(status.peer)),
            false => self.accept_or_pace(status.peer, context, id, send),
        }
    }

    pub(crate) fn receive_kept(&mut self, id: RequestId, waiting: Waiting<Kept>) {
        let Waiting { label, message, number } = waiting;
        self.uncount_kept(label.source, message.cost_bytes());
        let bytes = message.message_bytes();
        let status = Status { peer: Peer(label.source), tag: label.tag, bytes, cancelled: false };
        match message {
            Kept::Short { length, data } => {
                self.receive_eager(id, status, Bytes::from(&data[..usize::from(length)]));
            }
            Kept::Long(data) => self.receive_eager(id, status, Bytes::from(&data[..])),
            Kept::Elsewhere { place, .. } => self.receive_elsewhere(id, status, place, number),
            Kept::InCell(place) => self.receive_in_cell(id, status, place, number),
            Kept::Offer { send, told, .. } => {
                self.accept_offer(id, status, (send, told.map(|told| *told)), number);
            }
            Kept::Stored { stored, .. } => self.receive_stored(id, status, stored, number),
            Kept::Begun(begun) => self.receive_begun(id, *begun, number),
            Kept::Coming { named, .. } => self.receive_coming(id, named),
        }
    }

    /// Keeps an unexpected message if there is room.
    pub(crate) fn keep(&mut self, label: Label, kept: Kept) -> Verdict {
        self.keep_within(label, kept, 0)
    }

    /// Keeps an unexpected message if there is room, with `more_bytes` beyond the limits.
    fn keep_within(&mut self, label: Label, kept: Kept, more_bytes: u64) -> Verdict {
        if !self.admits(label.context) || self.refuses(label.source) {
            self.let_go(label, &kept);
            return Verdict::Taken;
        }
        let cost = kept.cost_bytes();
        let of_peer = self.kept_bytes_by_peer.get(&label.source).copied().unwrap_or(0);
        let is_full = of_peer + cost > KEPT_BYTES_PER_PEER + more_bytes
            || self.kept_bytes + cost > KEPT_BYTES + more_bytes;
        if is_full && !self.keeps_all && !self.is_starved_of(label.source) {
            return Verdict::Held;
        }
        self.count_kept(label.source, cost);
        self.matching.keep(label, kept);
        self.mailboxes.arrived(label.context);
        Verdict::Taken
    }

    /// Whether messages of a context are kept.
    pub(crate) fn admits(&self, context: u32) -> bool {
        !self.membership.is_revoked(context) && self.mailboxes.admits(context)
    }

    /// From now on messages that this process waits for are brought in, whatever lies in front of them.
    pub(crate) fn starve(&mut self) {
        self.left = self.left.max(LEFT_LOOKS);
    }

    /// Whether this process has waited for a while for something behind the messages of a sender: a receive from it, or
    /// room for a send of its own, which the other may only make after its own messages have come in. Then limits that
    /// block this process would be of no use.
    #[cold]
    fn is_starved_of(&mut self, source: u32) -> bool {
        self.left = self.left.saturating_add(1);
        if self.left <= LEFT_LOOKS {
            return false;
        }
        let may_come_from = |wanted: Wanted| wanted.source.is_none_or(|from| from == source);
        !self.backlog.is_empty() || self.matching.posted().any(|one| may_come_from(one.wanted))
    }

    /// Whether the data of an unexpected message are in the memory of a slot.
    pub(crate) fn is_kept_in(&self, slot: u32) -> bool {
        let is_there = |kept: &Kept| match kept {
            Kept::Elsewhere { place, .. } => place.owner == slot,
            Kept::Begun(begun) => begun.is_in(slot),
            _ => false,
        };
        let is_held =
            |id| matches!(self.requests.get(id), Some(Work::Held(held)) if is_there(&held.message));
        self.matching.waiting_messages().any(is_there) || self.requests.pending().any(is_held)
    }

    /// Releases the resources of a message that nobody will receive.
    #[cold]
    pub(crate) fn let_go(&mut self, label: Label, kept: &Kept) {
        match kept {
            Kept::Elsewhere { place, .. } => {
                let segment = self.heap_segments.get(&label.source).unwrap_or(&self.segment);
                // An impossible place has nothing to release.
                drop(Borrowed::open(segment, *place));
            }
            Kept::InCell(place) => self.cells.take_over(*place),
            // Dropping the message returns its block.
            Kept::Begun(begun) => {
                if let Source::Cell(place) = begun.source {
                    self.cells.take_over(place);
                }
            }
            Kept::Coming { named, .. } => {
                self.requests.remove(*named);
            }
            Kept::Stored { stored, .. } => {
                self.stores.free(*stored);
                self.tell_poster(label, None);
            }
            Kept::Short { .. } | Kept::Long(_) => self.tell_poster(label, None),
            &Kept::Offer { send, .. } => {
                self.let_chunks_go(Peer(label.source), send);
                self.tell_poster(label, Some(send));
            }
        }
    }

    pub(crate) fn count_kept(&mut self, source: u32, cost: u64) {
        *self.kept_bytes_by_peer.entry(source).or_default() += cost;
        self.kept_bytes += cost;
    }

    pub(crate) fn uncount_kept(&mut self, source: u32, cost: u64) {
        self.kept_bytes -= cost;
        if let Some(of_peer) = self.kept_bytes_by_peer.get_mut(&source) {
            *of_peer -= cost;
        }
    }

    fn arrive_reference(&mut self, label: Label, data: Bytes<'_>) -> Verdict {
        let Some((place, length)) = decode_reference(data) else {
            self.broken(Peer(label.source), BrokenPeer::Reference);
            return Verdict::Taken;
        };
        match self.matching.match_arrival(label) {
            Some(id) => {
                let (peer, tag, bytes) = (Peer(label.source), label.tag, length);
                let (status, number) =
                    (Status { peer, tag, bytes, cancelled: false }, self.matching.number());
                self.receive_elsewhere(id, status, place, number);
                Verdict::Taken
            }
            None => self.keep(label, Kept::Elsewhere { place, length }),
        }
    }

    fn arrive_offer(&mut self, label: Label, data: Bytes<'_>) -> Verdict {
        let from = Peer(label.source);
        // Only a neighbour can tell of memory here, and only a process on another host sends chunks.
        let offer = match label.source < self.segment.plan().slots() {
            true => Told::decode(data).map(|(length, send, told)| (length, send, told, None)),
            false => decode_offer(data).map(|(length, send, chunks)| (length, send, None, chunks)),
        };
        let Some((length, send, told, chunks)) = offer else {
            self.broken(from, BrokenPeer::Reference);
            return Verdict::Taken;
        };
        if let Some(priority) = chunks
            && !self.chunks.begin(from, send, length, priority)
        {
            self.broken(from, BrokenPeer::Reference);
            return Verdict::Taken;
        }
        match self.matching.match_arrival(label) {
            Some(id) => {
                let status = Status { peer: from, tag: label.tag, bytes: length, cancelled: false };
                let number = self.matching.number();
                self.accept_offer(id, status, (send, told), number);
                Verdict::Taken
            }
            None => {
                let verdict =
                    self.keep(label, Kept::Offer { length, send, told: told.map(Box::new) });
                if verdict == Verdict::Held {
                    self.chunks.take_back(from, send);
                }
                verdict
            }
        }
    }

    fn arrive_accept(&mut self, from: Peer, header: &Header, data: Bytes<'_>) {
        self.note_reader(from, header);
        let Some((send, receive, upto)) = decode_acceptance(data) else { return };
        let id = self.copied.holder_of(RequestId::from_bits(send));
        let Some(work) = self.requests.get_mut(id) else { return };
        match std::mem::replace(work, Work::Free) {
            Work::Offered { to, context, area, tag, .. } if to == from => {
                self.stores.heard_of(from);
                let (position, mark) = (0, 0);
                *work = Work::Parting(Parting {
                    to,
                    context,
                    area,
                    tag,
                    position,
                    receive,
                    upto,
                    mark,
                });
                self.active.push(id);
            }
            Work::Parting(parting) if parting.to == from && parting.receive == receive => {
                let upto = parting.upto.max(upto);
                *work = Work::Parting(Parting { upto, ..parting });
            }
            Work::Chunking(chunking) if chunking.to == from => {
                let parting = self.part_rest_of(chunking, receive, upto);
                self.requests.put(id, parting);
            }
            other => *work = other,
        }
    }

    pub(crate) fn arrive_part(&mut self, from: Peer, header: &Header, data: Bytes<'_>) {
        let id = self.collecting_id(header);
        let Some(collecting) = self.collecting(id, from) else { return };
        let left = collecting.status.bytes - collecting.position;
        let length = data.len() as u64;
        if length > left {
            return self.broken(from, BrokenPeer::TooLong { length, most: left });
        }
        collecting.target.write(collecting.position, data);
        self.count_part(id, from, length);
    }

    /// The request whose data a part carries.
    #[inline]
    fn collecting_id(&self, part: &Header) -> RequestId {
        let id = RequestId::from_bits(u64::from(part.tag) << 32 | u64::from(part.context));
        match self.requests.get(id) {
            Some(&Work::Passed { to }) => to,
            _ => id,
        }
    }

    /// The receive that collects parts of this sender in a request, if there is one.
    #[inline]
    fn collecting(&mut self, id: RequestId, from: Peer) -> Option<&mut Collecting> {
        match self.requests.get_mut(id) {
            Some(Work::Collecting(collecting)) if collecting.status.peer == from => {
                Some(collecting)
            }
            _ => None,
        }
    }

    /// Counts bytes that were written to their target, and completes the receive with the last one.
    fn count_part(&mut self, id: RequestId, from: Peer, bytes: u64) {
        let Some(collecting) = self.collecting(id, from) else { return };
        collecting.position += bytes;
        let (named, is_incomplete) =
            (collecting.named, collecting.position < collecting.status.bytes);
        self.note_arrived(named, bytes);
        if is_incomplete {
            return;
        }
        let Some(work) = self.requests.get_mut(id) else { return };
        if let Work::Collecting(whole) = std::mem::replace(work, Work::Free) {
            self.requests.put(id, Work::Done(whole.target.complete(whole.status)));
            self.forget_named(id, whole.named);
        }
    }

    /// The place of a part whose receive is into one piece of memory with room for all of it.
    fn place_of_part(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        let id = self.collecting_id(header);
        let Collecting { target: Target::Area(area), position, status, .. } =
            &*self.collecting(id, from)?
        else {
            return None;
        };
        let (buffer, length) = (area.as_buffer()?, u64::from(header.length));
        let is_inside = length <= status.bytes.min(buffer.len() as u64).saturating_sub(*position);
        is_inside.then(|| buffer.part(*position as usize, length as usize))
    }

    #[cold]
    fn arrive_other(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        let label = Label { context: header.context, source: from.0, tag: header.tag };
        match header.kind {
            Kind::Reference => return self.arrive_reference(label, data),
            Kind::InCell => return self.arrive_in_cell(label, data),
            Kind::Offer => return self.arrive_offer(label, data),
            Kind::Accept => self.arrive_accept(from, header, data),
            Kind::Part => self.arrive_part(from, header, data),
            Kind::Chunk => self.arrive_chunk(from, header, data),
            Kind::Emptied => self.arrive_emptied(from, header),
            Kind::Withdraw => self.arrive_withdraw(from, header, data),
            Kind::Withdrawn => self.arrive_withdrawn(from, header, data),
            Kind::Done => self.arrive_done(from, data),
            Kind::Stored => self.arrive_stored(from, data),
            // Where these count, the channel handles them.
            kind if kind.is_of_channels() => self.broken(from, BrokenPeer::Form),
            _ => {}
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
            None if header.class == Class::Urgent => {
                self.keep_within(label, Kept::new(data), KEPT_URGENT_BYTES)
            }
            None => self.keep(label, Kept::new(data)),
        }
    }

    #[inline]
    fn place(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        if header.kind == Kind::Part { self.place_of_part(from, header) } else { None }
    }

    fn placed(&mut self, from: Peer, header: &Header, bytes: usize) {
        self.count_part(self.collecting_id(header), from, bytes as u64);
    }

    fn append_part(
        &mut self,
        to: Peer,
        header: &Header,
        behind: u64,
        target: &mut Vec<u8>,
    ) -> bool {
        self.append_sent_part(to, header, behind, target)
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.membership.mark_broken(from, what);
    }
}

/// Decodes a reference: the place of a message's data, and their length.
fn decode_reference(data: Bytes<'_>) -> Option<(BlockRange, u64)> {
    let mut bytes = [0; REFERENCE_BYTES];
    let length = data.len().min(REFERENCE_BYTES + 1);
    data.copy_to_slice(&mut bytes);
    let Reference { owner, generation, offset, length: total, window } =
        Reference::decode(bytes.get(..length)?).ok()?;
    Some((BlockRange { owner, generation, offset, window }, total))
}

/// Writes a whole message into its area.
#[inline]
fn put(area: &Area, status: &Status, data: Bytes<'_>) -> Result<(), Box<Failure>> {
    area.write(0, data);
    whole(area, status)
}

/// Checks that an area has room for a whole message.
#[inline]
fn whole(area: &Area, status: &Status) -> Result<(), Box<Failure>> {
    match area.packed_bytes() < status.bytes {
        true => Err(Box::new(area.truncates(*status))),
        false => Ok(()),
    }
}

/// A receive without a request: it takes its message as it arrives, and leaves other messages to the endpoint. Only for
/// times when nothing is posted or kept, otherwise it would overtake.
///
/// The status is written where the caller reads it, and a failure is boxed. Large results are copied from call to call
/// in words that are wider than those they were written in. A processor cannot forward such words, and the caller waits
/// for the length.
pub(crate) struct Direct<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) wanted: &'a Wanted,
    pub(crate) area: &'a Area,
    /// Whether a message that is longer than the area is left to the endpoint as well.
    pub(crate) is_whole: bool,
    /// The status of the message, if `result` says that there is one.
    pub(crate) status: &'a mut Status,
    pub(crate) result: Option<Result<(), Box<Failure>>>,
}

impl Sink for Direct<'_> {
    #[inline(always)]
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        let label = Label { context: header.context, source: from.0, tag: header.tag };
        let is_short = header.kind == Kind::Eager;
        let is_it = (is_short || header.kind == Kind::InCell)
            && self.result.is_none()
            && self.wanted.accepts(label);
        // A message that was kept meanwhile must not be overtaken by the next one.
        if !is_it || self.core.matching.waiting() != 0 {
            return self.core.arrive(from, header, data);
        }
        if !is_short {
            return self.arrive_in_cell(label, header, data);
        }
        let bytes = data.len() as u64;
        if self.is_whole && bytes > self.area.packed_bytes() {
            return self.core.arrive(from, header, data);
        }
        *self.status = Status { peer: from, tag: header.tag, bytes, cancelled: false };
        self.core.count_received(bytes);
        self.result = Some(put(self.area, self.status, data));
        Verdict::Taken
    }

    fn place(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        self.core.place(from, header)
    }

    fn placed(&mut self, from: Peer, header: &Header, bytes: usize) {
        self.core.placed(from, header, bytes);
    }

    fn append_part(
        &mut self,
        to: Peer,
        header: &Header,
        behind: u64,
        target: &mut Vec<u8>,
    ) -> bool {
        self.core.append_sent_part(to, header, behind, target)
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.core.broken(from, what);
    }
}

impl Direct<'_> {
    /// Receives the wanted message from a cell. Its sender is filling the cell now, unless it was interrupted: then the
    /// endpoint receives the message, from its beginning.
    #[inline(never)]
    fn arrive_in_cell(&mut self, label: Label, header: &Header, data: Bytes<'_>) -> Verdict {
        let from = Peer(label.source);
        let is_near = from.0 < self.core.segment.plan().slots();
        let told = Core::told_of_cell(data).filter(|place| self.core.cells.is_possible(*place));
        let Some(place) = told.filter(|_| is_near) else {
            return self.core.arrive(from, header, data);
        };
        let bytes = u64::from(place.bytes);
        let fits = !self.is_whole || bytes <= self.area.packed_bytes();
        if !fits || !self.core.cells.copy_out(place, |at, piece| self.area.write(at, piece)) {
            return self.core.arrive(from, header, data);
        }
        *self.status = Status { peer: from, tag: label.tag, bytes, cancelled: false };
        self.result = Some(whole(self.area, self.status));
        self.core.count_received(bytes);
        self.core.cells.take_over(place);
        Verdict::Taken
    }
}

/// A receive without a request and without memory for the data, under the conditions of [`Direct`]. A message that
/// comes in pieces is left to the endpoint.
pub(crate) struct DirectOwn<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) wanted: &'a Wanted,
    pub(crate) completion: Option<Completion>,
}

impl DirectOwn<'_> {
    /// The completion of a receive, if all data of the message are there.
    #[inline]
    fn received(&self, from: Peer, header: &Header, data: Bytes<'_>) -> Option<Completion> {
        let status = |bytes| Status { peer: from, tag: header.tag, bytes, cancelled: false };
        if header.kind == Kind::Eager {
            let received = Received::Private(data.to_vec());
            return Some(Completion {
                result: Ok(status(data.len() as u64)),
                data: Some(received),
            });
        }
        // A loan is filled before its reader learns of it.
        if header.kind != Kind::Reference || !header.flags.contains(Flags::LOAN) {
            return None;
        }
        let (place, bytes) = decode_reference(data).filter(|(place, all)| place.window >= *all)?;
        let segment = self.core.heap_segments.get(&from.0).unwrap_or(&self.core.segment);
        Some(match Borrowed::open(segment, place) {
            Ok(block) => Completion {
                result: Ok(status(bytes)),
                data: Some(Received::Borrowed { block, length: bytes as usize }),
            },
            Err(_) => {
                let failure = Failure::PeerBroken { peer: from, what: BrokenPeer::Reference };
                Completion { result: Err(failure), data: None }
            }
        })
    }
}

impl Sink for DirectOwn<'_> {
    #[inline]
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        let label = Label { context: header.context, source: from.0, tag: header.tag };
        let may_be_it = self.completion.is_none()
            && self.wanted.accepts(label)
            && self.core.matching.waiting() == 0;
        if may_be_it && let Some(completion) = self.received(from, header, data) {
            self.core.count_received(completion.result.as_ref().map_or(0, |status| status.bytes));
            self.completion = Some(completion);
            return Verdict::Taken;
        }
        self.core.arrive(from, header, data)
    }

    fn place(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        self.core.place(from, header)
    }

    fn placed(&mut self, from: Peer, header: &Header, bytes: usize) {
        self.core.placed(from, header, bytes);
    }

    fn append_part(
        &mut self,
        to: Peer,
        header: &Header,
        behind: u64,
        target: &mut Vec<u8>,
    ) -> bool {
        self.core.append_sent_part(to, header, behind, target)
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.core.broken(from, what);
    }
}
