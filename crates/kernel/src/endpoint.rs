//! An endpoint: all communication of one process.
//!
//! It is generic over its nearest channel, so that the shared-memory path is inlined and calls through no table of
//! functions. Other networks are called through the trait.

pub(crate) mod chunked_sends;
pub(crate) mod held;
pub(crate) mod in_cell;
pub(crate) mod paced_offers;
pub(crate) mod put_back;
pub(crate) mod sending;
pub(crate) mod stores;
pub(crate) mod withdrawal;

use landeck_channel::{Channel, Peer, SendError, URGENT_BYTES_MAX};
use landeck_memory::heap::{Block, Heap, LendError, Lent};
use landeck_memory::{Bytes, Operation, Segment, WaitRecord};
use landeck_wire::way::{Extent, MessageWay, choose};
use landeck_wire::{Class, Flags, Header, Kind};

use crate::area::Area;
use crate::arrival::{Core, Direct, DirectOwn};
use crate::backlog::Line;
use crate::budget::{FarLooks, NetworkBudget};
use crate::chunks::Chunking;
use crate::failure::Failure;
use crate::matching::Wanted;
use crate::reading::Reading;
use crate::request::{Completion, RequestId};
use crate::status::Status;
use crate::transfer::{Collecting, Draining, Filling, Reply, TRIPLE_BYTES, Target};
use crate::work::Work;

/// The number of messages of a peer that are taken at once, as long as receives are posted: a process that waits for
/// one message of a window will wait for the next.
const MESSAGES_AT_ONCE: u32 = 8;
/// The most looks before sleep that find something: more than a channel holds, unless it is filled meanwhile.
const LOOKS_BEFORE_SLEEP: u32 = 1 << 12;

mod joint_contexts;
mod mailboxes;
mod membership;
mod network;
mod succession;

/// The shortest message that travels in a cell. In a ring, the announcement and the data of a shorter one are one step.
const CELL_BYTES_MIN: usize = 4 << 10;

/// The immediate result of an operation.
#[derive(Debug)]
pub enum Started {
    /// It is complete.
    Complete(Status),
    /// It is pending.
    Pending(RequestId),
}

/// Opens the network to other hosts, and sets it. False if that is not possible now.
pub type NetworkOpener<N> = Box<dyn FnMut(&mut Endpoint<N>) -> bool + Send>;

/// All communication of one process. It is used by one thread at a time.
pub struct Endpoint<N: Channel> {
    pub(crate) near: N,
    /// The network to processes on other hosts.
    pub(crate) far: Option<Box<dyn Channel>>,
    /// Opens that network once another host takes part in the job.
    pub(crate) opener: Option<NetworkOpener<N>>,
    /// The first number of a far peer, behind all slots.
    pub(crate) first_far: u32,
    /// The number of far peers: zero without a network, so that one comparison tells the route.
    pub(crate) far_peers: u32,
    pub(crate) budget: NetworkBudget,
    pub(crate) far_looks: FarLooks,
    /// This process has said goodbye on the network, and sends nothing more there.
    pub(crate) has_left: bool,
    pub(crate) core: Core,
    /// The buffer for packing data whose parts lie apart.
    pub(crate) scratch: Vec<u8>,
}

impl<N: Channel> Endpoint<N> {
    /// Creates the endpoint of the process of `slot` in its home segment. `None` if the slot does not exist, or if this
    /// handle of the segment has had an endpoint for it before.
    pub fn new(near: N, segment: &Segment, slot: u32) -> Option<Self> {
        let heap = Heap::of(segment, slot)?;
        Some(Self {
            near,
            far: None,
            opener: None,
            first_far: segment.plan().slots(),
            far_peers: 0,
            budget: NetworkBudget::default(),
            far_looks: FarLooks::default(),
            has_left: false,
            core: Core::new(segment, slot, heap),
            scratch: Vec::new(),
        })
    }

    /// The nearest channel, for adding peers to it.
    pub fn near_mut(&mut self) -> &mut N {
        &mut self.near
    }

    /// Sets the segment of a peer's blocks, if it is another than ours.
    pub fn set_heap_segment(&mut self, peer: Peer, segment: &Segment) {
        self.core.heap_segments.insert(peer.0, segment.clone());
    }

    /// Allocates memory of the heap that can be sent without copying.
    ///
    /// # Errors
    /// [`landeck_memory::heap::HeapFull`].
    pub fn allocate(&mut self, bytes: usize) -> Result<Block, landeck_memory::heap::HeapFull> {
        self.core.heap.allocate(bytes)
    }

    /// Allocates memory of the heap for a deposit on a board.
    ///
    /// # Errors
    /// [`landeck_memory::heap::HeapFull`].
    pub fn allocate_deposit(
        &mut self,
        bytes: usize,
    ) -> Result<Block, landeck_memory::heap::HeapFull> {
        self.core.heap.allocate_deposit(bytes)
    }

    /// The number of bytes in use in this process's heap, as far as their return is known here.
    pub fn heap_in_use(&mut self) -> u64 {
        self.core.heap.collect();
        self.core.heap.bytes_in_use()
    }

    /// Sends bytes if the channel accepts them now in one message and no earlier send waits. Returns false otherwise: then
    /// nothing is sent, and [`Endpoint::send_slow`] says why or waits. The results here fit into registers, since the other
    /// end waits for each step.
    #[inline]
    pub fn send_now(&mut self, to: Peer, context: u32, tag: u32, bytes: Bytes<'_>) -> bool {
        self.refresh();
        let is_open = self.core.membership.is_whole() && self.core.backlog.is_empty();
        let header = Header::user(Kind::Eager, bytes.len() as u32, context, tag);
        let is_sent = is_open && self.sends(to, &header, bytes);
        if is_sent {
            self.core.tally.sent(bytes.len() as u64);
        }
        is_sent
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
        let bytes = area.packed_bytes();
        if let Some(piece) = area.one_piece()
            && self.send_now(to, context, tag, piece)
        {
            return Ok(Started::Complete(Status { peer: to, tag, bytes, cancelled: false }));
        }
        self.send_slow(to, context, tag, area)
    }

    /// Sends the bytes of an area that could not go at once in one piece.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    #[inline(never)]
    pub fn send_slow(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        area: Area,
    ) -> Result<Started, Failure> {
        self.check(to, context)?;
        let bytes = area.packed_bytes();
        self.core.tally.sent(bytes);
        if self.core.backlog.is_empty() && !self.is_far(to) {
            let is_sent = match area.one_piece() {
                Some(piece) => {
                    let header = Header::user(Kind::Eager, bytes as u32, context, tag);
                    self.near_sends(to, &header, piece)
                }
                None => self.near_sends_packed(to, context, tag, &area),
            };
            if is_sent {
                return Ok(Started::Complete(Status { peer: to, tag, bytes, cancelled: false }));
            }
        }
        Ok(self.send_otherwise(to, Header::user(Kind::Eager, 0, context, tag), area))
    }

    /// Sends the bytes of an area; complete only when the message has met its receive.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn send_synchronous(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        area: Area,
    ) -> Result<Started, Failure> {
        self.check(to, context)?;
        self.core.tally.sent(area.packed_bytes());
        Ok(self.send_otherwise(to, Header::user(Kind::Offer, 0, context, tag), area))
    }

    #[inline]
    fn sends(&mut self, to: Peer, header: &Header, bytes: Bytes<'_>) -> bool {
        match self.is_far(to) {
            true => self.far_sends(to, header, bytes),
            false => self.near_sends(to, header, bytes),
        }
    }

    /// Sends bytes to another host that fit into one message and need no token.
    #[inline(never)]
    fn far_sends(&mut self, to: Peer, header: &Header, bytes: Bytes<'_>) -> bool {
        bytes.len() <= self.channel(to).data_bytes_max()
            && self.token_way(to, header.context, bytes.len() as u64).is_none()
            && self.try_channel(to, header, bytes).is_ok()
    }

    #[inline]
    fn near_sends(&mut self, to: Peer, header: &Header, bytes: Bytes<'_>) -> bool {
        if bytes.len() >= CELL_BYTES_MIN {
            return self.near_sends_much(to, header, bytes);
        }
        self.near.try_send(to, header, bytes).is_ok()
    }

    /// Sends data that are worth a choice among the ways in memory, if that can be done at once.
    #[inline(never)]
    fn near_sends_much(&mut self, to: Peer, header: &Header, bytes: Bytes<'_>) -> bool {
        let receiver = self.near_receiver(to, header.context);
        match choose(receiver, header.class, Extent::whole(bytes.len() as u64)) {
            MessageWay::OneCopy => false,
            _ if self.sends_in_cell(to, header, bytes) => true,
            MessageWay::Ring => self.near.try_send(to, header, bytes).is_ok(),
            _ => false,
        }
    }

    #[inline]
    fn check(&mut self, to: Peer, context: u32) -> Result<(), Failure> {
        self.refresh();
        self.core.membership.check(to, context).map_err(|failure| self.refused(context, failure))
    }

    #[cold]
    fn refused(&mut self, context: u32, failure: Failure) -> Failure {
        if self.is_joint(context) {
            self.end_jointly(context, failure.clone());
        }
        failure
    }

    #[cold]
    #[inline(never)]
    fn send_otherwise(&mut self, to: Peer, header: Header, area: Area) -> Started {
        let line = (to, header.context);
        let id = self.core.requests.insert(Work::Queued { to, header, area, loan: None });
        self.queue(line, id);
        self.settled(id)
    }

    /// Sends bytes if that is possible without waiting. Returns false otherwise: then nothing is sent. It does not
    /// overtake earlier sends that wait.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn try_send(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        data: Bytes<'_>,
    ) -> Result<bool, Failure> {
        self.check(to, context)?;
        if self.core.backlog.has_any_in((to, context)) {
            return Ok(false);
        }
        let header = Header::user(Kind::Eager, data.len() as u32, context, tag);
        let sent = if data.len() <= self.channel(to).data_bytes_max() {
            self.try_channel(to, &header, data)
        } else {
            Err(SendError::TooLong)
        };
        let is_sent = match sent {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(SendError::Gone) => return Err(self.gone(to)),
            Err(SendError::TooLong) => self.try_send_block(to, header, data)?,
        };
        if is_sent {
            self.core.tally.sent(data.len() as u64);
        }
        Ok(is_sent)
    }

    /// Sends a word about the endpoint's own matters, of at most 24 bytes. To another host it leaves as soon as there is a
    /// path, in a later call if there is none now; on this host only if there is room.
    pub fn tell(&mut self, to: Peer, context: u32, tag: u32, word: &[u8]) {
        let is_waiting = matches!(self.try_send(to, context, tag, word.into()), Ok(false));
        if is_waiting && self.is_far(to) && word.len() <= TRIPLE_BYTES {
            let header = Header::user(Kind::Eager, word.len() as u32, context, tag);
            self.core.replies.push(Reply::new(to, header, word));
        }
    }

    /// Whether words wait for a path.
    pub fn has_words(&self) -> bool {
        !self.core.replies.is_empty()
    }

    /// Sends at most [`URGENT_BYTES_MAX`] bytes past all earlier messages that still wait. Returns false if there is no
    /// room. The message is not ordered with others, except over a network without urgent traffic, where it is ordered
    /// with all.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`], and [`Failure::OutsideBuffer`] for more bytes than that.
    pub fn try_send_urgent(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        data: Bytes<'_>,
    ) -> Result<bool, Failure> {
        self.check(to, context)?;
        if data.len() > URGENT_BYTES_MAX {
            return Err(Failure::OutsideBuffer { buffer_bytes: URGENT_BYTES_MAX });
        }
        let header = Header::user(Kind::Eager, data.len() as u32, context, tag);
        let header = Header { class: Class::Urgent, ..header };
        match self.try_channel(to, &header, data) {
            Ok(()) => {
                self.core.tally.sent(data.len() as u64);
                Ok(true)
            }
            Err(SendError::Gone) => Err(self.gone(to)),
            Err(SendError::Full | SendError::TooLong) => Ok(false),
        }
    }

    /// Lends a block to several processes at once; [`Endpoint::try_tell_of_loan`] tells each of them. The block is free
    /// again when all have returned it or died.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`] if one of the processes is already gone; the inner result may be a
    /// [`LendError`].
    pub fn lend(
        &mut self,
        block: Block,
        to: &[Peer],
        context: u32,
    ) -> Result<Result<Lent, LendError>, Failure> {
        for &peer in to {
            self.check(peer, context)?;
        }
        let (readers, bytes): (Vec<u32>, _) = (to.iter().map(|peer| peer.0).collect(), block.len());
        Ok(self.core.heap.lend(block, &readers, bytes as u64))
    }

    /// Tells reader number `reader` of a block that was lent; returns false if there is no room now.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn try_tell_of_loan(
        &mut self,
        lent: &Lent,
        (reader, to): (usize, Peer),
        context: u32,
        tag: u32,
    ) -> Result<bool, Failure> {
        self.check(to, context)?;
        if self.core.backlog.has_any_in((to, context)) {
            return Ok(false);
        }
        let header = Header::user(Kind::Reference, 0, context, tag);
        let header = Header { flags: Flags::LOAN, ..header };
        match self.announce(to, &header, lent.place(reader), lent.filled()) {
            Ok(()) => {
                self.core.tally.sent(lent.filled());
                Ok(true)
            }
            Err(SendError::Gone) => Err(self.gone(to)),
            Err(SendError::Full | SendError::TooLong) => Ok(false),
        }
    }

    /// Sends long data through a block with room for all of them, if there is one.
    fn try_send_block(
        &mut self,
        to: Peer,
        header: Header,
        data: Bytes<'_>,
    ) -> Result<bool, Failure> {
        if self.channel(to).heap_segment(to).is_none() {
            return Ok(false);
        }
        let Ok(mut block) = self.core.heap.allocate(data.len()) else { return Ok(false) };
        data.copy_to_slice(&mut block);
        match self.start_loan(to, Header { kind: Kind::Reference, length: 0, ..header }, block) {
            Work::Done(completion) => completion.result.map(|_| true),
            _ => Ok(false),
        }
    }

    /// Gives a block away: its bytes are sent without being copied. Complete at once, unless the channel is full. To a
    /// process that does not share the heap they are sent as data, and the block is free again when they are out.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn send_loan(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        block: Block,
    ) -> Result<Started, Failure> {
        if self.channel(to).heap_segment(to).is_none() {
            return self.send(to, context, tag, Area::of_block(block));
        }
        self.check(to, context)?;
        self.core.tally.sent(block.len() as u64);
        let header = Header::user(Kind::Reference, 0, context, tag);
        if self.core.backlog.has_any_in((to, context)) {
            let (area, loan) = (Area::EMPTY, Some(block));
            let id = self.core.requests.insert(Work::Queued { to, header, area, loan });
            self.queue((to, context), id);
            return Ok(self.settled(id));
        }
        let bytes = block.len();
        match self.start_loan(to, header, block) {
            Work::Done(Completion { result, .. }) => {
                // The reader has work now, so this is the best time to look for the next block.
                self.core.heap.prepare(bytes);
                result.map(Started::Complete)
            }
            waiting => {
                let id = self.core.requests.insert(waiting);
                self.core.backlog.push((to, context), id);
                Ok(Started::Pending(id))
            }
        }
    }

    /// Queues a send behind earlier ones and tries at once.
    fn queue(&mut self, line: Line, id: RequestId) {
        self.core.backlog.push(line, id);
        self.move_all();
    }

    /// Turns a long send that still waits for room into an offer, which needs no memory of this process's heap: its
    /// parts follow when it is received. This matters because the messages that fill the heap may be received only
    /// afterwards.
    pub fn offer_if_waiting(&mut self, id: RequestId) {
        let Some(&Work::Queued { to, loan: None, ref area, .. }) = self.core.requests.get(id)
        else {
            return;
        };
        let bytes = area.packed_bytes();
        if bytes <= self.channel(to).data_bytes_max() as u64 {
            return;
        }
        if self.core.offer_instead(id) {
            self.move_all();
        }
    }

    fn settled(&mut self, id: RequestId) -> Started {
        self.take_well(id).map_or(Started::Pending(id), Started::Complete)
    }

    /// Receives into an area.
    #[inline(always)]
    pub fn receive(&mut self, wanted: Wanted, area: Area) -> RequestId {
        self.receive_into(wanted, Target::Area(area))
    }

    /// Begins to receive into an area. Complete if the message has come, as is likely for a window of receives that are
    /// posted while their messages arrive: such a receive needs no request.
    #[inline]
    pub fn begin_receive(&mut self, wanted: Wanted, area: Area) -> Started {
        if self.takes_arrivals_up_to(&wanted) {
            let mut status = Status::NONE;
            if self.receive_whole_now(&wanted, &area, &mut status) {
                return Started::Complete(status);
            }
        }
        Started::Pending(self.receive(wanted, area))
    }

    /// Whether the next message belongs to a receive that is posted now. Equal receives that were posted earlier get
    /// theirs first.
    #[inline]
    fn takes_arrivals_up_to(&mut self, wanted: &Wanted) -> bool {
        let Some(source) = wanted.source else { return false };
        if self.core.matching.are_all_like(wanted) && !self.is_far(Peer(source)) {
            self.poll_for_posted(Peer(source));
        }
        self.is_quiet()
    }

    /// Receives a message of any length. Its data come with the completion, in place if they were sent through the
    /// heap.
    pub fn receive_own(&mut self, wanted: Wanted) -> RequestId {
        self.receive_into(wanted, Target::Own(Vec::new()))
    }

    /// Whether a receive may take its message as it arrives ([`Endpoint::receive_now`]), because nothing else is in
    /// progress.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.core.matching.is_empty() && !self.core.is_busy()
    }

    /// Looks for a message once and receives it without a request; its status is then in `status`. Call this only while
    /// the endpoint is quiet. `None` if the message is not there, or needs more than one look.
    #[inline]
    pub fn receive_now(
        &mut self,
        wanted: &Wanted,
        area: &Area,
        status: &mut Status,
    ) -> Option<Result<(), Box<Failure>>> {
        self.receive_direct(wanted, area, false, status)
    }

    /// Receives a message now, like [`Endpoint::receive_now`], if the area has room for it; a longer one is kept. True
    /// if it has come, and then it has not failed.
    #[inline]
    pub fn receive_whole_now(&mut self, wanted: &Wanted, area: &Area, status: &mut Status) -> bool {
        self.receive_direct(wanted, area, true, status).is_some()
    }

    #[inline]
    fn receive_direct(
        &mut self,
        wanted: &Wanted,
        area: &Area,
        is_whole: bool,
        status: &mut Status,
    ) -> Option<Result<(), Box<Failure>>> {
        let core = &mut self.core;
        let mut direct = Direct { core, wanted, area, is_whole, status, result: None };
        let any = match wanted.source {
            Some(source) => self.near.poll_peer_into(Peer(source), &mut direct),
            None => self.near.poll_into(&mut direct),
        };
        let result = direct.result;
        if result.is_none() && self.far.is_some() {
            return self.receive_from_network(wanted, area, is_whole, status, any);
        }
        result
    }

    /// Receives a message of any length now, if it is there at once; a loan stays where it is.
    #[inline]
    pub fn receive_own_now(&mut self, wanted: &Wanted) -> Option<Completion> {
        let mut direct = DirectOwn { core: &mut self.core, wanted, completion: None };
        let any = match wanted.source {
            Some(source) => self.near.poll_peer_into(Peer(source), &mut direct),
            None => self.near.poll_into(&mut direct),
        };
        let completion = direct.completion;
        if completion.is_none() && self.far.is_some() {
            return self.receive_own_from_network(wanted, any);
        }
        completion
    }

    #[inline(always)]
    fn receive_into(&mut self, wanted: Wanted, target: Target) -> RequestId {
        let id = self.core.requests.insert(Work::Posted { wanted, target });
        if self.core.matching.waiting() == 0 || !self.receive_waiting(id, &wanted) {
            self.core.matching.post(wanted, id);
            if self.far.is_some() {
                self.budget.expect(self.interest_in(&wanted));
            }
        }
        id
    }

    /// Receives an unexpected message; returns false if there is none.
    #[inline(never)]
    fn receive_waiting(&mut self, id: RequestId, wanted: &Wanted) -> bool {
        let Some(waiting) = self.core.matching.take(wanted) else { return false };
        self.core.receive_kept(id, waiting);
        if self.core.is_busy() {
            self.move_all();
        }
        true
    }

    /// The status that a receive would get, without receiving.
    pub fn probe(&mut self, wanted: Wanted) -> Option<Status> {
        let (label, kept) = self.core.matching.peek(&wanted)?;
        Some(Status {
            peer: Peer(label.source),
            tag: label.tag,
            bytes: kept.message_bytes(),
            cancelled: false,
        })
    }

    /// The unexpected messages of a context in the order in which they came: sender and tag of each.
    pub fn kept_in(&self, context: u32) -> impl Iterator<Item = (Peer, u32)> {
        let labels = self.core.matching.waiting_in(context);
        labels.map(|label| (Peer(label.source), label.tag))
    }

    /// The unexpected message of a context that has waited longest.
    #[inline]
    pub fn oldest_kept_in(&self, context: u32) -> Option<(Peer, u32)> {
        if self.core.matching.waiting() == 0 {
            return None;
        }
        let wanted = Wanted { context, source: None, tag: None };
        let (label, _) = self.core.matching.peek(&wanted)?;
        Some((Peer(label.source), label.tag))
    }

    /// Makes progress; returns whether anything moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let mut any = self.near.poll_into(&mut self.core);
        if self.far.is_some() {
            any |= self.look_at_network(any);
        }
        if self.core.is_busy() {
            any |= self.advance();
        }
        any
    }

    /// Makes progress for a request: a receive from a peer on the nearest channel polls that peer only.
    #[inline]
    pub fn progress_for(&mut self, id: RequestId) {
        match self.core.requests.get(id) {
            Some(Work::Posted { wanted: Wanted { source: Some(source), .. }, .. })
                if !self.is_far(Peer(*source)) =>
            {
                let source = Peer(*source);
                let any = self.poll_for_posted(source);
                if self.far.is_some() {
                    self.look_at_network(any);
                }
                if self.core.is_busy() {
                    self.advance();
                }
            }
            Some(work)
                if self.far.is_some()
                    && work.depends_on().is_some_and(|peer| self.is_far(peer)) =>
            {
                self.progress_for_far(id);
            }
            Some(Work::Fetching(_)) => self.progress_for_far(id),
            _ => {
                self.progress();
            }
        }
    }

    /// Takes some messages of a peer while receives are posted; returns whether there were any.
    #[inline]
    fn poll_for_posted(&mut self, source: Peer) -> bool {
        let mut any = false;
        for _ in 0..MESSAGES_AT_ONCE {
            if !self.core.matching.has_posted() || !self.near.poll_peer_into(source, &mut self.core)
            {
                break;
            }
            any = true;
        }
        any
    }

    /// Makes the last progress before sleep: as long as anything arrives or moves, including everything that others may
    /// wait for. The senders of messages that are there have already rung, and none rings twice for one message.
    pub fn progress_thoroughly(&mut self) -> bool {
        let mut any = false;
        for _ in 0..LOOKS_BEFORE_SLEEP {
            if !self.look_thoroughly() {
                break;
            }
            any = true;
        }
        self.hear_of_departures();
        any | (self.core.has_slept_in_vain() && self.offer_backlog())
    }

    fn look_thoroughly(&mut self) -> bool {
        self.core.starve();
        let mut any = self.near.poll_thoroughly(&mut self.core);
        if self.far.is_some() {
            any |= self.look_at_network_thoroughly();
        }
        if self.core.is_busy() {
            any |= self.advance();
        }
        if self.far.is_some() {
            any |= self.copy_offered() | self.store_late();
        }
        any
    }

    /// Whether a request has ended (or does not exist).
    #[inline]
    pub fn is_done(&self, id: RequestId) -> bool {
        !matches!(self.core.requests.get(id), Some(work) if !matches!(work, Work::Done(_)))
    }

    /// Takes the result of a request that has ended, and removes the request. `None` if it is in progress.
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

    /// Takes the status of a request that has ended well without data of its own, as most do, and removes the request.
    /// `None` if it is in progress, or if [`Endpoint::take`] has more to return.
    #[inline]
    pub fn take_well(&mut self, id: RequestId) -> Option<Status> {
        self.core.requests.take_well(id)
    }

    /// Removes an operation that has not begun. Returns true if it has begun or ended meanwhile: then it must still be
    /// waited for, otherwise its message would be lost.
    pub fn give_up(&mut self, id: RequestId) -> bool {
        match self.core.requests.get(id) {
            Some(Work::Posted { .. } | Work::Queued { .. }) => {
                self.abandon(id);
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    /// Removes an operation, whatever it is doing, without a result: its memory is free.
    pub fn abandon(&mut self, id: RequestId) {
        self.core.end(id, Work::failed(Failure::Gone));
        self.core.requests.remove(id);
    }

    fn is_offered(&self, id: RequestId) -> bool {
        matches!(self.core.requests.get(id), Some(Work::Offered { .. }))
    }

    /// A counter that grows with everything that may have ended a request, or made one hopeless.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.core.requests.endings().wrapping_add(self.core.membership.changes())
    }

    /// Whether everything that was begun is complete.
    pub fn is_idle(&self) -> bool {
        // An offered send is in no list: its receiver's acceptance moves it.
        !self.core.is_busy() && self.core.requests.pending().next().is_none()
    }

    /// Whether sends and transfers are in progress, for which a process waits before it leaves.
    pub fn has_unfinished_sends(&self) -> bool {
        !self.core.backlog.is_empty()
            || !self.core.replies.is_empty()
            || !self.core.stores.is_empty()
            || self.core.requests.pending().any(|id| self.is_offered(id))
            || self.core.active.iter().any(|&id| {
                matches!(
                    self.core.requests.get(id),
                    Some(Work::Filling(_) | Work::Parting(_) | Work::Chunking(_))
                )
            })
            || self.far.as_ref().is_some_and(|network| network.has_unsent())
    }

    /// The record of a wait for this request. Called when a wait has become long.
    #[cold]
    pub fn wait_record(&self, id: RequestId) -> WaitRecord {
        let Some(work) = self.core.requests.get(id) else { return WaitRecord::default() };
        let peer = work.depends_on().map(|peer| peer.0);
        let (operation, context, tag, bytes) = match work {
            Work::Posted { wanted, target } => {
                let bytes = if let Target::Area(area) = target { area.packed_bytes() } else { 0 };
                (Operation::Receive, wanted.context, wanted.tag, bytes)
            }
            Work::Queued { header, area, .. } => {
                (Operation::Send, header.context, Some(header.tag), area.packed_bytes())
            }
            Work::Offered { context, area, tag, .. } => {
                (Operation::Send, *context, Some(*tag), area.packed_bytes())
            }
            Work::Filling(Filling { context, tag, area, .. })
            | Work::Chunking(Chunking { context, tag, area, .. }) => {
                (Operation::Send, *context, Some(*tag), area.packed_bytes())
            }
            Work::Draining(Draining { context, status, .. }) => {
                (Operation::Receive, *context, Some(status.tag), status.bytes)
            }
            Work::Collecting(Collecting { context, status, .. })
            | Work::Reading(Reading { context, status, .. }) => {
                (Operation::Receive, *context, Some(status.tag), status.bytes)
            }
            Work::Fetching(receive) => {
                let Status { tag, bytes, .. } = receive.status;
                (Operation::Fetch, receive.context, Some(tag), bytes)
            }
            _ => (Operation::Wait, 0, None, 0),
        };
        let board = self.board_of(context).unwrap_or(0);
        // The places of data that are on their way have been looked at.
        let place_bytes = match work {
            Work::Queued { area, .. } => self.extent_of(area).place_bytes,
            Work::Filling(_) | Work::Offered { is_told: false, .. } => 0,
            _ => u64::MAX,
        };
        let data = Extent { bytes, place_bytes };
        let way = peer.and_then(|peer| self.way_of_wait(operation, Peer(peer), (context, data)));
        let way = way.map_or(0, |way| self.number_of_way(way, context));
        if let Some(host) = self.store_of(id) {
            let (way, number) = (MessageWay::Store as u8, host.0.into());
            return WaitRecord {
                operation,
                peer,
                tag,
                context,
                bytes,
                board,
                way,
                number,
                ..WaitRecord::default()
            };
        }
        WaitRecord { operation, peer, tag, context, bytes, board, way, ..WaitRecord::default() }
    }
}
