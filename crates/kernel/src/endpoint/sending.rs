//! Outgoing data: replies, sends that wait for room, transfers, each a step at a time.

use landeck_channel::grants::PIECE_BYTES;
use landeck_channel::tokens::{Priority, TokenWay};
use landeck_channel::{BrokenPeer, Channel, Peer, SendError};
use landeck_memory::heap::{Block, BlockRange};
use landeck_memory::{Bytes, SlotState};
use landeck_wire::stored::StoreWish;
use landeck_wire::way::{Extent, MessageWay, OneCopy, Receiver, choose};
use landeck_wire::{Class, Flags, Header, Kind, Reference};

use crate::area::Area;
use crate::arrival::Core;
use crate::budget::Interest;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::mailboxes::is_of_programs;
use crate::request::{Completion, RequestId};
use crate::status::Status;
use crate::transfer::{Filling, encode_pair};
use crate::work::{Parting, Work};

/// The longest message that gets a block with room for all of it.
pub(crate) const WHOLE_BYTES: u64 = 256 << 10;
/// The longest such message when processors are oversubscribed: then every stop costs a process switch.
const WHOLE_BYTES_CROWDED: u64 = 8 << 20;
/// The window of longer messages.
const WINDOW_BYTES: u64 = 256 << 10;
/// The size of the buffer for packing data whose parts lie apart.
const PACK_BYTES: usize = 16 << 10;

impl<N: Channel> Endpoint<N> {
    /// Makes grants, and moves everything that can move.
    #[cold]
    #[inline(never)]
    pub(crate) fn advance(&mut self) -> bool {
        self.grant() | self.move_all()
    }

    /// Moves everything that can move: replies, sends without room, transfers. A call that posts a receive or begins a
    /// send makes no grants: the receives of one step are posted one after the other, and all of them count.
    #[cold]
    #[inline(never)]
    pub(crate) fn move_all(&mut self) -> bool {
        let replied = self.send_replies();
        let sent = self.send_backlog();
        let moved = self.move_active();
        self.move_stored() | moved | replied | sent
    }

    #[inline]
    pub(crate) fn channel(&mut self, to: Peer) -> &mut dyn Channel {
        if self.is_far(to)
            && let Some(network) = &mut self.far
        {
            return &mut **network;
        }
        &mut self.near
    }

    /// Sends over the channel of a peer. A broken path to a far process that is there is no end: the send waits, unless
    /// this process has said goodbye. Nothing waits for room to a process that is gone.
    pub(crate) fn try_channel(
        &mut self,
        to: Peer,
        header: &Header,
        data: Bytes<'_>,
    ) -> Result<(), SendError> {
        let sent = self.channel(to).try_send(to, header, data);
        if !self.is_far(to) {
            return sent;
        }
        self.budget.expect(Interest::Surely);
        let membership = &self.core.membership;
        let may_come = membership.may_come(header.context, to);
        match sent {
            Err(SendError::Gone) if !self.has_left && (membership.is_there(to) || may_come) => {
                Err(SendError::Full)
            }
            Err(SendError::Full) if membership.gone.contains_key(&to.0) && !may_come => {
                Err(SendError::Gone)
            }
            sent => sent,
        }
    }

    /// The failure of a send to a peer that its channel calls gone.
    #[cold]
    pub(crate) fn gone(&mut self, peer: Peer) -> Failure {
        let state = self.core.segment.peer_record(peer.0).state;
        Failure::PeerGone { peer, died: state == SlotState::Dead }
    }

    /// Makes the grants of many-to-one steps.
    #[inline]
    fn grant(&mut self) -> bool {
        if self.core.pacing.is_empty() {
            return false;
        }
        self.far.as_mut().is_some_and(|network| self.core.grant(&mut **network))
    }

    pub(crate) fn send_replies(&mut self) -> bool {
        let replies = std::mem::take(&mut self.core.replies);
        let mut any = false;
        for reply in replies {
            let sent = self.try_channel(reply.to, &reply.header, reply.data());
            match sent {
                Err(SendError::Full) => self.core.replies.push(reply),
                _ => any = true,
            }
        }
        any
    }

    /// Tries the waiting sends in order; a send without room keeps the later ones of its line waiting too.
    fn send_backlog(&mut self) -> bool {
        let mut any = false;
        let mut number = 0;
        for _ in 0..self.core.backlog.lines() {
            let mut is_left = true;
            while let Some((to, id)) = self.core.backlog.next(number)
                && is_left
                && self.start_queued(id, to)
            {
                any = true;
                is_left = self.core.backlog.begun(number);
            }
            number += usize::from(is_left);
        }
        any
    }

    /// Offers the sends that wait for memory of this process's heap, because the messages that fill it may be received
    /// only after them. Returns whether any could be offered.
    #[cold]
    pub(crate) fn offer_backlog(&mut self) -> bool {
        let mut any = false;
        while self.offer_next_of_lines() && self.advance() {
            any = true;
        }
        any
    }

    fn offer_next_of_lines(&mut self) -> bool {
        let mut any = false;
        for number in 0..self.core.backlog.lines() {
            let Some((to, id)) = self.core.backlog.next(number) else { continue };
            let shares_memory = self.channel(to).heap_segment(to).is_some();
            let bytes_max = self.channel(to).data_bytes_max() as u64;
            let Some(&Work::Queued { ref header, ref area, loan: None, .. }) =
                self.core.requests.get(id)
            else {
                continue;
            };
            let bytes = area.packed_bytes();
            let is_new = header.kind != Kind::Offer && shares_memory && bytes > bytes_max;
            if is_new && self.allocate_window(bytes, false).is_none() {
                any |= self.core.offer_instead(id);
            }
        }
        any
    }

    /// Starts one waiting send; returns false if there is no room for it yet.
    fn start_queued(&mut self, id: RequestId, to: Peer) -> bool {
        let Some(work) = self.core.requests.get_mut(id) else { return true };
        let Work::Queued { header, area, loan, .. } = std::mem::replace(work, Work::Free) else {
            return true;
        };
        let next = self.start_send(id, to, header, area, loan);
        let waits = matches!(next, Work::Queued { .. });
        match &next {
            Work::Filling(_) => self.core.active.push(id),
            Work::Chunking(chunking) if chunking.is_high() => self.core.active.insert(0, id),
            Work::Chunking(_) => self.core.active.push(id),
            _ => {}
        }
        self.core.requests.put(id, next);
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
        if header.kind == Kind::Offer {
            return self
                .start_once(id, to, header, &area)
                .unwrap_or_else(|| self.start_offer(id, to, header, area));
        }
        let bytes = area.packed_bytes();
        let wish = self.store_wish(id, to, (&header, bytes));
        // On one host data wait in this process's heap.
        let stays = wish != StoreWish::Receiver && self.has_room_for(bytes);
        if !stays && let Some(told) = self.start_once(id, to, header, &area) {
            return told;
        }
        match wish {
            StoreWish::Receiver | StoreWish::Auto => {}
            wish if self.is_far(to) && bytes > self.channel(to).data_bytes_max() as u64 => {
                let next = self.start_offer(id, to, header, area);
                if matches!(next, Work::Offered { .. }) {
                    self.begin_storing((id, to), bytes, wish);
                }
                return next;
            }
            _ => {}
        }
        match self.token_way(to, header.context, bytes) {
            Some((TokenWay::Chunks, priority)) => {
                return self.start_chunks(id, to, (header, priority), area);
            }
            Some((TokenWay::Reservation, _)) => return self.start_offer(id, to, header, area),
            None if self.goes_unasked(to, header.context, bytes) => {
                return self.start_chunks(id, to, (header, Priority::Unasked), area);
            }
            Some((TokenWay::Whole, _)) | None => {}
        }
        // A network then chooses among its own channels, and offers what is too long for one message.
        let (in_message, one_copy_from) =
            (self.channel(to).data_bytes_max() as u64, OneCopy::NEVER);
        let receiver = Receiver::Near { in_message, one_copy_from };
        if choose(receiver, header.class, Extent::whole(bytes)) == MessageWay::Ring {
            return match self.send_eager(to, &header, &area) {
                Ok(()) => Work::Done(sent(to, header.tag, bytes)),
                Err(SendError::Full) => Work::Queued { to, header, area, loan: None },
                Err(SendError::TooLong) => self.start_filling(to, header, area, stays),
                Err(SendError::Gone) => Work::failed(self.gone(to)),
            };
        }
        if self.channel(to).heap_segment(to).is_some() {
            return self.start_filling(to, header, area, stays);
        }
        self.start_offer(id, to, header, area)
    }

    /// Whether a message leaves in the call that sends it, in chunks: it is too long for a frame to another host, and of
    /// the length up to which its sender need not call again. Those of collective operations wait for their receivers,
    /// which are in the same call and set the pace.
    #[inline]
    fn goes_unasked(&self, to: Peer, context: u32, bytes: u64) -> bool {
        self.is_far(to)
            && is_of_programs(context)
            && bytes <= WHOLE_BYTES
            && self.far.as_ref().is_some_and(|network| bytes > network.data_bytes_max() as u64)
    }

    /// Starts a send whose receiver reads the data, if that is its way and can be done.
    #[inline]
    fn start_once(&mut self, id: RequestId, to: Peer, header: Header, area: &Area) -> Option<Work> {
        let receiver = self.near_receiver(to, header.context);
        match choose(receiver, header.class, self.extent_of(area)) {
            MessageWay::OneCopy => self.start_told_offer(id, to, header, area),
            _ => None,
        }
    }

    fn send_eager(&mut self, to: Peer, header: &Header, area: &Area) -> Result<(), SendError> {
        let header = Header { length: area.packed_bytes() as u32, ..*header };
        if let Some(bytes) = area.one_piece() {
            return self.try_channel(to, &header, bytes);
        }
        let packed = self.packed(area, 0, usize::MAX);
        let result = self.try_channel(to, &header, (&packed[..]).into());
        self.scratch = packed;
        result
    }

    /// Sends data whose parts lie apart over the nearest channel, if it accepts them now.
    #[inline(never)]
    pub(crate) fn near_sends_packed(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        area: &Area,
    ) -> bool {
        let bytes = area.packed_bytes();
        if bytes > self.near.data_bytes_max() as u64 {
            return false;
        }
        let header = Header::user(Kind::Eager, bytes as u32, context, tag);
        let packed = self.packed(area, 0, usize::MAX);
        let is_sent = self.near.try_send(to, &header, (&packed[..]).into()).is_ok();
        self.scratch = packed;
        is_sent
    }

    /// Packs at most `most` bytes of an area from a packed position on into the scratch memory, which the caller must
    /// put back.
    fn packed(&mut self, area: &Area, position: u64, most: usize) -> Vec<u8> {
        let mut packed = std::mem::take(&mut self.scratch);
        packed.clear();
        packed.shrink_to(PACK_BYTES);
        area.append_to(position, most, &mut packed);
        packed
    }

    /// Allocates a window, announces it, and fills as much as fits.
    fn start_filling(&mut self, to: Peer, header: Header, area: Area, stays: bool) -> Work {
        let total = area.packed_bytes();
        let Some(block) = self.allocate_window(total, stays) else {
            return Work::Queued { to, header, area, loan: None };
        };
        let Ok(lent) = self.core.heap.lend(block, &[to.0], 0) else {
            return Work::Queued { to, header, area, loan: None };
        };
        let header = Header { kind: Kind::Reference, ..header };
        match self.announce(to, &header, lent.place(0), total) {
            Ok(()) => {
                let (context, tag) = (header.context, header.tag);
                let mut filling = Filling { to, context, tag, lent, area, position: 0 };
                filling.advance();
                self.near.nudge(to);
                if filling.is_complete() {
                    Work::Done(sent(to, tag, total))
                } else {
                    Work::Filling(filling)
                }
            }
            Err(error) => {
                drop(lent.withdraw()); // no receiver has learnt of it, so none would return it
                let header = Header { kind: Kind::Eager, ..header };
                match error {
                    SendError::Gone => Work::failed(self.gone(to)),
                    _ => Work::Queued { to, header, area, loan: None },
                }
            }
        }
    }

    /// Allocates a block for a message of this size: for all of it, or a window; a smaller one if memory is short. The data of
    /// one that stays wait there whatever their length.
    fn allocate_window(&mut self, total: u64, stays: bool) -> Option<Block> {
        let crowded = self.core.segment.plan().is_oversubscribed();
        let whole_max = match (stays, crowded) {
            (true, _) => total,
            (false, true) => WHOLE_BYTES_CROWDED,
            (false, false) => WHOLE_BYTES,
        };
        let wanted = if total <= whole_max { total } else { WINDOW_BYTES };
        [wanted, wanted.min(WINDOW_BYTES), wanted.min(WINDOW_BYTES / 4)]
            .into_iter()
            .find_map(|bytes| self.core.heap.allocate(bytes as usize).ok())
    }

    pub(crate) fn start_loan(&mut self, to: Peer, header: Header, block: Block) -> Work {
        let bytes = block.len() as u64;
        if self.channel(to).heap_segment(to).is_none() {
            return Work::failed(Failure::OutsideBuffer { buffer_bytes: block.len() });
        }
        let Ok(given) = self.core.heap.give(block, to.0) else {
            return Work::failed(Failure::Gone);
        };
        let header = Header { flags: Flags::LOAN, ..header };
        match self.announce(to, &header, given.place(), bytes) {
            Ok(()) => Work::Done(sent(to, header.tag, bytes)),
            Err(error) => {
                let loan = Some(self.core.heap.withdraw(given));
                match error {
                    SendError::Gone => Work::failed(self.gone(to)),
                    _ => Work::Queued { to, header, area: Area::EMPTY, loan },
                }
            }
        }
    }

    pub(crate) fn announce(
        &mut self,
        to: Peer,
        header: &Header,
        place: BlockRange,
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
        self.try_channel(to, &header, (&reference[..]).into())
    }

    fn start_offer(&mut self, id: RequestId, to: Peer, header: Header, area: Area) -> Work {
        let offer = encode_pair(area.packed_bytes(), id.to_bits());
        let header_out = Header { kind: Kind::Offer, length: offer.len() as u32, ..header };
        match self.try_channel(to, &header_out, (&offer[..]).into()) {
            Ok(()) => {
                let (context, tag) = (header.context, header.tag);
                let is_standard = header.kind != Kind::Offer;
                Work::Offered { to, context, area, tag, is_standard, is_told: false }
            }
            Err(SendError::Gone) => Work::failed(self.gone(to)),
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

    /// Makes one step of one transfer; returns whether it moved, and whether it continues.
    fn move_one(&mut self, id: RequestId) -> (bool, bool) {
        let (peer, moved, is_complete) = match self.core.requests.get_mut(id) {
            Some(Work::Filling(filling)) => (filling.to, filling.advance(), filling.is_complete()),
            Some(Work::Draining(draining)) => {
                let moved = draining.advance(&self.core.cells);
                (draining.status.peer, moved, draining.is_complete())
            }
            Some(Work::Parting(_)) => return self.move_parts(id),
            Some(Work::Chunking(_)) => return self.move_chunks(id),
            Some(Work::Reading(_)) => return self.move_reading(id),
            Some(Work::Fetching(_)) => return self.move_fetching(id),
            _ => return (false, false),
        };
        if is_complete {
            self.core.complete_transfer(id);
        } else if !moved && peer.0 == self.core.slot && !self.fills_for_itself() {
            // Only this process could put the rest in, and it has put in everything: words were overwritten.
            let failure = Failure::PeerBroken { peer, what: BrokenPeer::Reference };
            self.core.requests.put(id, Work::failed(failure));
            return (true, false);
        }
        if moved {
            self.channel(peer).nudge(peer);
        }
        (moved, !is_complete)
    }

    /// Whether a message of this process to itself is not yet whole in its block.
    fn fills_for_itself(&self) -> bool {
        let core = &self.core;
        let to_itself = |work: &Work| matches!(work, Work::Filling(it) if it.to.0 == core.slot);
        core.active.iter().any(|&id| core.requests.get(id).is_some_and(to_itself))
    }

    fn move_parts(&mut self, id: RequestId) -> (bool, bool) {
        let Some(work) = self.core.requests.get_mut(id) else { return (false, false) };
        let Work::Parting(parting) = std::mem::replace(work, Work::Free) else {
            return (false, false);
        };
        let Parting { to, context, area, tag, position, receive, upto, mark } = parting;
        let (before, total) = (position, area.packed_bytes());
        let end = upto.min(total);
        let most = self.channel(to).data_bytes_max();
        let (mut position, mut mark) = (position, mark);
        let mut outcome = Ok(());
        while position < end && outcome.is_ok() {
            let rest = (end - position) as usize;
            // The receiver counts whole parts. While one travels, it grants more for the one before.
            let part = if end < total { (rest / 2).max(PIECE_BYTES as usize) } else { rest };
            let most = most.min(part).min(rest);
            let (sent_bytes, sent) =
                self.send_part(to, &area, position, most, (Kind::Part, receive));
            position += sent_bytes;
            outcome = sent;
            mark = self.channel(to).sent_mark(to);
        }
        let next = match outcome {
            Err(SendError::Gone) => Work::failed(self.gone(to)),
            _ if position >= total && self.channel(to).is_received(to, mark) => {
                Work::Done(sent(to, tag, total))
            }
            _ => Work::Parting(Parting { to, context, area, tag, position, receive, upto, mark }),
        };
        let goes_on = matches!(next, Work::Parting(_));
        self.core.requests.put(id, next);
        (position != before || !goes_on, goes_on)
    }

    /// Sends one part or chunk of at most `most` bytes; returns how many, and whether there was room.
    pub(crate) fn send_part(
        &mut self,
        to: Peer,
        area: &Area,
        position: u64,
        most: usize,
        named: (Kind, u64),
    ) -> (u64, Result<(), SendError>) {
        let (length, result) = match area.one_piece() {
            Some(bytes) => {
                let part = bytes.part(position as usize, most);
                let header = part_header(part.len(), named, area.packed_bytes() - position);
                (part.len(), self.try_channel(to, &header, part))
            }
            None => {
                let packed = self.packed(area, position, most);
                let header = part_header(packed.len(), named, area.packed_bytes() - position);
                let result = self.try_channel(to, &header, (&packed[..]).into());
                let length = packed.len();
                self.scratch = packed;
                (length, result)
            }
        };
        (if result.is_ok() { length as u64 } else { 0 }, result)
    }
}

impl Core {
    /// Appends a part that was sent before, and behind which so many bytes of its message were sent, itself included.
    /// False if its send has ended.
    pub(crate) fn append_sent_part(
        &self,
        to: Peer,
        header: &Header,
        behind: u64,
        target: &mut Vec<u8>,
    ) -> bool {
        let named = u64::from(header.tag) << 32 | u64::from(header.context);
        let area = self.active.iter().find_map(|&id| match self.requests.get(id) {
            Some(Work::Parting(parting)) if (parting.to, parting.receive) == (to, named) => {
                Some((&parting.area, parting.position.checked_sub(behind)?))
            }
            _ => None,
        });
        let Some((area, first)) = area else { return false };
        area.append_to(first, header.length as usize, target);
        true
    }

    /// Turns a waiting send into an offer; returns false if it does not wait.
    pub(crate) fn offer_instead(&mut self, id: RequestId) -> bool {
        match self.requests.get_mut(id) {
            Some(Work::Queued { header, .. }) => {
                header.kind = Kind::Offer;
                true
            }
            _ => false,
        }
    }

    /// Whether none of the waiting sends has begun since the last call, which was before the last sleep.
    pub(crate) fn has_slept_in_vain(&mut self) -> bool {
        let begun = (!self.backlog.is_empty()).then(|| self.backlog.begun_in_all());
        let last = std::mem::replace(&mut self.begun_before_sleep, begun);
        begun.is_some() && last == begun
    }
}

/// The completion of a send.
pub(crate) fn sent(to: Peer, tag: u32, bytes: u64) -> Completion {
    Completion { result: Ok(Status { peer: to, tag, bytes, cancelled: false }), data: None }
}

/// The header of a part or chunk of which, with everything behind it, `left` bytes are to be sent.
fn part_header(length: usize, (kind, named): (Kind, u64), left: u64) -> Header {
    let (low, high) = (named as u32, (named >> 32) as u32);
    let is_last_part = kind == Kind::Part && length as u64 == left;
    let flags = if is_last_part { Flags::LAST } else { Flags::NONE };
    Header { class: Class::User, flags, ..Header::user(kind, length as u32, low, high) }
}
