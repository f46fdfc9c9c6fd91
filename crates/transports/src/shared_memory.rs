//! The channel between processes that share memory.
//!
//! A process receives in its home segment only. First contact goes through its mailbox queue. After a few messages, or
//! for data longer than a mailbox slot, the sender opens a ring of its own to it, announces it through the mailbox
//! queue, and uses only the ring from then on. So the messages of a pair are in order without any further agreement,
//! and their sequence numbers prove it.
//!
//! A process of another job on this host is reached in *its* segment, where this process is a guest with a slot of its
//! own; it reaches this process as a guest in ours ([`SharedMemory::add_foreign`]).

use std::sync::atomic::{Ordering, fence};

use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, URGENT_BYTES_MAX, Verdict};
use landeck_memory::mailbox_queue::{MailboxMemory, MailboxReceiver, MailboxSender, POST_BYTES};
use landeck_memory::ring::{INLINE_BYTES, RingMemory, RingReceiver, RingSender};
use landeck_memory::waiter::Doorbell;
use landeck_memory::{Bytes, Operation, Segment};
use landeck_wire::{Class, Flags, Header, Kind};

/// The longest data of one message: a quarter of a ring's bulk area.
pub const DATA_BYTES_MAX: usize = 16 * 1024;

/// The number of messages to a peer before a ring to it is opened.
const RING_AFTER: u32 = 8;

/// The number of peer numbers above all slots and far records, for peers of other jobs that have no slot here yet.
pub const PROVISIONAL: u32 = 16;

/// The first number of a peer of another job that has no slot in its segment yet, behind all far records.
pub fn first_provisional(home: &Segment) -> u32 {
    home.plan().slots() + home.plan().far
}

/// The channel of one process to the other processes of this host.
pub struct SharedMemory {
    home: Segment,
    slot: u32,
    mailbox: MailboxReceiver,
    /// For each peer number, one more than its place in `pairs`; zero when unknown, and for far peers.
    index: Box<[u16]>,
    pairs: Vec<Pair>,
    /// The pairs whose incoming ring is open.
    listening: Vec<u16>,
    /// The number of rings used in each segment that this process sends in; the home segment comes first.
    rings_used: Vec<(Segment, u32, u64)>,
}

/// Both directions between this process and one other.
struct Pair {
    peer: u32,
    /// Which process of the slot it is ([`landeck_memory::SlotRecord::tenancy`]).
    tenancy: u32,
    route: Route,
    outgoing: Outgoing,
    incoming: Incoming,
}

/// The segment in which the other process receives, and our slot there.
struct Route {
    segment: Segment,
    own_slot: u32,
    /// The slot of the other process in that segment.
    target: u32,
    bell: Doorbell,
}

struct Outgoing {
    mailbox: MailboxSender,
    ring: Option<RingSender>,
    sequence: u16,
    posted: u32,
}

struct Incoming {
    ring: Option<RingReceiver>,
    sequence: u16,
    broken: bool,
}

impl SharedMemory {
    /// Creates the channel of the process of `slot` in its home segment. `None` if the slot does not exist.
    pub fn new(home: &Segment, slot: u32) -> Option<Self> {
        let mailbox = MailboxReceiver::new(MailboxMemory::of(home, slot)?);
        Some(Self {
            home: home.clone(),
            slot,
            mailbox,
            index: vec![0; (first_provisional(home) + PROVISIONAL) as usize].into(),
            pairs: Vec::new(),
            listening: Vec::new(),
            rings_used: vec![(home.clone(), slot, 0)],
        })
    }

    /// Makes a process of another job reachable. `peer` is the slot that it has as a guest in our home segment or,
    /// while it has none, a number from [`first_provisional`] on. It receives as `target` in `segment`, where this process is the
    /// guest `own_slot`. Messages that came from the peer before count.
    ///
    /// # Errors
    /// [`SendError::Gone`] if one of the slots does not exist.
    pub fn add_foreign(
        &mut self,
        peer: Peer,
        segment: &Segment,
        own_slot: u32,
        target: u32,
    ) -> Result<(), SendError> {
        let before = self.known(peer.0).map(|at| self.pairs[at].incoming.take());
        self.forget(peer);
        self.rings_used.push((segment.clone(), own_slot, 0));
        let at = self.add_pair(peer.0, segment, own_slot, target).ok_or(SendError::Gone)?;
        if let Some(before) = before {
            self.pairs[at].incoming = before;
            self.listen();
        }
        Ok(())
    }

    /// Gives a peer that had a number above all slots its present slot, and keeps the connection to it.
    ///
    /// # Errors
    /// [`SendError::Gone`] if the peer or the slot does not exist.
    pub fn rename(&mut self, peer: Peer, slot: Peer) -> Result<(), SendError> {
        let from = self.known(peer.0).ok_or(SendError::Gone)?;
        let to = self.pair(slot.0).ok_or(SendError::Gone)?;
        let incoming = self.pairs[to].incoming.take();
        self.index[peer.0 as usize] = 0;
        self.index[slot.0 as usize] = from as u16 + 1;
        self.pairs[to].peer = peer.0;
        self.index[peer.0 as usize] = to as u16 + 1;
        let tenancy = self.home.slot_record(slot.0).tenancy();
        let pair = &mut self.pairs[from];
        (pair.peer, pair.incoming, pair.tenancy) = (slot.0, incoming, tenancy);
        self.forget(peer);
        self.listen();
        Ok(())
    }

    #[inline]
    fn known(&self, peer: u32) -> Option<usize> {
        let entry = *self.index.get(peer as usize)?;
        (entry as usize).checked_sub(1)
    }

    #[inline]
    fn pair(&mut self, peer: u32) -> Option<usize> {
        match self.known(peer) {
            Some(at) => Some(at),
            None => {
                let (home, slot) = (self.home.clone(), self.slot);
                self.add_pair(peer, &home, slot, peer)
            }
        }
    }

    #[cold]
    fn add_pair(
        &mut self,
        peer: u32,
        segment: &Segment,
        own_slot: u32,
        target: u32,
    ) -> Option<usize> {
        let known = u16::try_from(self.pairs.len() + 1).ok()?;
        let entry = self.index.get_mut(peer as usize)?;
        let route = Route {
            segment: segment.clone(),
            own_slot,
            target,
            bell: Doorbell::of(segment, target)?,
        };
        let mailbox = MailboxSender::new(MailboxMemory::of(segment, target)?, own_slot);
        self.pairs.push(Pair {
            peer,
            tenancy: self.home.slot_record(peer).tenancy(),
            route,
            outgoing: Outgoing { mailbox, ring: None, sequence: 0, posted: 0 },
            incoming: Incoming { ring: None, sequence: 0, broken: false },
        });
        *entry = known;
        Some(self.pairs.len() - 1)
    }

    /// Rebuilds the list of open rings.
    fn listen(&mut self) {
        let open = |(at, pair): (usize, &Pair)| pair.incoming.ring.is_some().then_some(at as u16);
        self.listening = self.pairs.iter().enumerate().filter_map(open).collect();
    }

    /// Sends without a ring: first contact, and the change from the mailbox queue to a ring.
    #[cold]
    fn send_without_ring(
        &mut self,
        at: usize,
        header: &Header,
        data: Bytes<'_>,
    ) -> Result<(), SendError> {
        let wants_ring = data.len() > POST_BYTES || self.pairs[at].outgoing.posted >= RING_AFTER;
        if wants_ring && self.open_ring(at)? {
            return self.try_send(Peer(self.pairs[at].peer), header, data);
        }
        if data.len() > POST_BYTES {
            return Err(SendError::TooLong);
        }
        self.pairs[at].post(header, data)
    }

    /// Opens a ring to a pair's other process; returns false if none is left.
    fn open_ring(&mut self, at: usize) -> Result<bool, SendError> {
        let pair = &mut self.pairs[at];
        let route = &pair.route;
        let same = |used: &&mut (Segment, u32, u64)| {
            used.1 == route.own_slot && used.0.plan().host == route.segment.plan().host
        };
        let Some((segment, slot, next)) = self.rings_used.iter_mut().find(same) else {
            return Ok(false);
        };
        let Some(memory) = RingMemory::of(segment, *slot, *next) else { return Ok(false) };
        segment.reference_slot(*slot, route.target);
        let number = *next as u32;
        let open = Header { class: Class::Kernel, ..Header::user(Kind::RingOpen, 0, number, 0) };
        pair.post(&open, Bytes::EMPTY)?;
        pair.outgoing.ring = Some(RingSender::new(memory));
        *next += 1;
        Ok(true)
    }

    /// Takes at most one message from the mailbox queue, then one from each ring. The mailbox queue comes first each
    /// time, since urgent messages come through it.
    #[inline]
    fn poll_some<S: Sink + ?Sized>(&mut self, sink: &mut S) -> bool {
        let mut any = self.mailbox.has_next() && self.poll_mailbox(false, sink);
        for at in 0..self.listening.len() {
            any |= self.poll_ring(self.listening[at] as usize, sink);
        }
        any
    }

    #[inline]
    fn poll_ring<S: Sink + ?Sized>(&mut self, at: usize, sink: &mut S) -> bool {
        let pair = &mut self.pairs[at];
        let incoming = &mut pair.incoming;
        let Some(ring) = &mut incoming.ring else { return false };
        let message = match ring.peek(incoming.sequence, data_place) {
            Ok(None) => return false,
            Ok(Some(message)) => message,
            Err(broken) => {
                incoming.close();
                sink.broken(Peer(pair.peer), broken.into());
                return false;
            }
        };
        let header = match Header::from_words(message.head, message.label) {
            Ok(header) => header,
            Err(broken) => {
                incoming.close();
                sink.broken(Peer(pair.peer), broken.into());
                return false;
            }
        };
        if sink.arrive(Peer(pair.peer), &header, message.data) == Verdict::Held {
            return false;
        }
        incoming.sequence = incoming.sequence.wrapping_add(1);
        let bulk_bytes =
            if header.flags.contains(Flags::BULK) { header.length as usize } else { 0 };
        if ring.consume(bulk_bytes) {
            pair.route.bell.ring();
        }
        true
    }

    /// Takes at most one message from the mailbox queue.
    #[cold]
    fn poll_mailbox<S: Sink + ?Sized>(&mut self, everywhere: bool, sink: &mut S) -> bool {
        let mut held = Vec::new();
        loop {
            let home = &self.home;
            let is_dead = |slot| home.slot_record(slot).state.has_ended();
            let Some(post) = self.mailbox.peek(everywhere, is_dead, |source, head| {
                held.contains(&(source, is_urgent(head)))
            }) else {
                return false;
            };
            let (source, position) = (post.source, post.position());
            let (head, label) = (post.head, post.label);
            let mut data = [0; POST_BYTES];
            post.data.copy_to_slice(&mut data);
            match self.deliver_post(source, head, label, &data, sink) {
                Verdict::Taken => {
                    self.mailbox.consume(position);
                    if self.mailbox.is_empty_again() {
                        self.wake_posters();
                    }
                    return true;
                }
                Verdict::Held => held.push((source, is_urgent(head))),
            }
        }
    }

    /// Wakes processes that wait for room in our mailbox queue; they have no ring through which they could be woken.
    #[cold]
    fn wake_posters(&self) {
        // Their sleep words must be read after the room was made.
        fence(Ordering::SeqCst);
        for slot in 0..self.home.plan().slots() {
            let wait = self.home.wait_record(slot);
            if wait.operation != Operation::None
                && let Some(bell) = Doorbell::of(&self.home, slot)
            {
                bell.ring_fenced();
            }
        }
    }

    fn deliver_post<S: Sink + ?Sized>(
        &mut self,
        source: u32,
        head: u64,
        label: u64,
        data: &[u8; POST_BYTES],
        sink: &mut S,
    ) -> Verdict {
        let Some(mut at) = self.pair(source) else { return Verdict::Taken };
        if is_urgent(head) {
            return self.deliver_urgent(at, head, label, data, sink);
        }
        let (found, wanted) = (Header::sequence_of(head), self.pairs[at].incoming.sequence);
        if found != wanted {
            match self.renewed(source) {
                Some(renewed) => at = renewed,
                None => return self.drop_broken(at, BrokenPeer::Order { found, wanted }, sink),
            }
        }
        let pair = &mut self.pairs[at];
        if pair.incoming.broken {
            return Verdict::Taken;
        }
        let header = match Header::from_words(head, label) {
            Ok(header) => header,
            Err(error) => return self.drop_broken(at, error.into(), sink),
        };
        let Some(data) = data.get(..header.length as usize) else {
            return self.drop_broken(at, too_long(&header), sink);
        };
        if header.kind == Kind::RingOpen {
            return self.ring_opened(at, header.context, sink);
        }
        let verdict = sink.arrive(Peer(pair.peer), &header, Bytes::from(data));
        if verdict == Verdict::Taken {
            pair.incoming.sequence = pair.incoming.sequence.wrapping_add(1);
        }
        verdict
    }

    /// Delivers an urgent message. It is not ordered with others, so there is no sequence number to check.
    #[cold]
    fn deliver_urgent<S: Sink + ?Sized>(
        &mut self,
        at: usize,
        head: u64,
        label: u64,
        data: &[u8; POST_BYTES],
        sink: &mut S,
    ) -> Verdict {
        let peer = Peer(self.pairs[at].peer);
        if self.pairs[at].incoming.broken {
            return Verdict::Taken;
        }
        let header = Header::from_words(head, label).ok();
        let header = header.filter(|header| header.kind == Kind::Eager);
        let data = header.and_then(|header| data.get(..header.length as usize));
        match (header, data) {
            (Some(header), Some(data)) => sink.arrive(peer, &header, Bytes::from(data)),
            _ => self.drop_broken(at, BrokenPeer::Form, sink),
        }
    }

    /// Handles a first message from a slot that has a new process: the knowledge of the old one is dropped.
    fn renewed(&mut self, source: u32) -> Option<usize> {
        let at = self.known(source)?;
        let is_new = self.home.slot_record(source).tenancy() != self.pairs[at].tenancy;
        if !is_new {
            return None;
        }
        self.forget(Peer(source));
        self.pair(source)
    }

    #[cold]
    fn drop_broken<S: Sink + ?Sized>(
        &mut self,
        at: usize,
        what: BrokenPeer,
        sink: &mut S,
    ) -> Verdict {
        let pair = &mut self.pairs[at];
        if !pair.incoming.broken {
            pair.incoming.close();
            sink.broken(Peer(pair.peer), what);
        }
        Verdict::Taken
    }

    fn ring_opened<S: Sink + ?Sized>(&mut self, at: usize, number: u32, sink: &mut S) -> Verdict {
        let source = self.pairs[at].peer;
        let Some(memory) = RingMemory::of(&self.home, source, u64::from(number)) else {
            return self.drop_broken(at, BrokenPeer::Form, sink);
        };
        let incoming = &mut self.pairs[at].incoming;
        if incoming.ring.is_some() {
            return self.drop_broken(at, BrokenPeer::Form, sink);
        }
        incoming.sequence = incoming.sequence.wrapping_add(1);
        incoming.ring = Some(RingReceiver::new(memory));
        self.listening.push(at as u16);
        Verdict::Taken
    }
}

impl Pair {
    fn post(&mut self, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        let outgoing = &mut self.outgoing;
        let header = Header { sequence: outgoing.sequence, ..*header };
        outgoing.mailbox.post(header.head(), header.label(), data).map_err(|_| SendError::Full)?;
        outgoing.sequence = outgoing.sequence.wrapping_add(1);
        outgoing.posted += 1;
        self.route.bell.ring();
        Ok(())
    }
}

impl Pair {
    /// Sends an urgent message, past the ring and the messages that wait in it.
    #[cold]
    fn post_urgent(&mut self, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        const { assert!(URGENT_BYTES_MAX <= POST_BYTES) }
        if data.len() > URGENT_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        let posted = self.outgoing.mailbox.post_reserved(header.head(), header.label(), data);
        posted.map_err(|_| SendError::Full)?;
        self.route.bell.ring();
        Ok(())
    }
}

impl Incoming {
    fn take(&mut self) -> Self {
        Self { ring: self.ring.take(), sequence: self.sequence, broken: self.broken }
    }

    fn close(&mut self) {
        self.broken = true;
        self.ring = None;
    }
}

/// The fault of a message in the mailbox queue that claims more data than a slot has.
#[cold]
fn too_long(header: &Header) -> BrokenPeer {
    BrokenPeer::TooLong { length: header.length.into(), most: POST_BYTES as u64 }
}

/// Whether a message is urgent, from its head alone.
#[inline]
fn is_urgent(head: u64) -> bool {
    const CLASS_BIT: u32 = 22;
    head >> CLASS_BIT & 3 == Class::Urgent as u64
}

/// The place of a ring message's data, from its head alone.
#[inline]
pub(crate) fn data_place(head: u64) -> (usize, bool) {
    const BULK_BIT: u32 = 25;
    ((head >> 32) as usize, head >> BULK_BIT & 1 != 0)
}

impl Channel for SharedMemory {
    fn data_bytes_max(&self) -> usize {
        DATA_BYTES_MAX
    }

    fn heap_segment(&self, peer: Peer) -> Option<&Segment> {
        Some(self.known(peer.0).map_or(&self.home, |at| &self.pairs[at].route.segment))
    }

    #[inline]
    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        let Some(at) = self.pair(to.0) else { return Err(SendError::Gone) };
        let pair = &mut self.pairs[at];
        if header.class == Class::Urgent {
            return pair.post_urgent(header, data);
        }
        let outgoing = &mut pair.outgoing;
        let Some(ring) = &mut outgoing.ring else {
            return self.send_without_ring(at, header, data);
        };
        let mut header = Header { sequence: outgoing.sequence, ..*header };
        let pushed = if data.len() <= INLINE_BYTES {
            ring.push_inline(header.head(), header.label(), data)
        } else if data.len() <= DATA_BYTES_MAX {
            header.flags = header.flags.with(Flags::BULK);
            ring.push_bulk(header.head(), header.label(), data)
        } else {
            return Err(SendError::TooLong);
        };
        if pushed.is_err() {
            return Err(SendError::Full);
        }
        outgoing.sequence = outgoing.sequence.wrapping_add(1);
        pair.route.bell.ring();
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll_some(sink)
    }

    #[inline]
    fn poll_into<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.poll_some(sink)
    }

    #[inline]
    fn poll_peer_into<S: Sink>(&mut self, peer: Peer, sink: &mut S) -> bool {
        let any = self.mailbox.has_next() && self.poll_mailbox(false, sink);
        self.known(peer.0).is_some_and(|at| self.poll_ring(at, sink)) | any
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = self.poll(sink);
        if self.poll_mailbox(true, sink) {
            any = true;
        } else if !self.mailbox.has_next() {
            self.mailbox.repair_tail();
        }
        for &at in &self.listening {
            let pair = &mut self.pairs[at as usize];
            if let Some(ring) = &mut pair.incoming.ring
                && ring.owes_credit()
            {
                ring.announce();
                pair.route.bell.ring();
            }
        }
        any
    }

    fn nudge(&mut self, peer: Peer) {
        if let Some(at) = self.pair(peer.0) {
            self.pairs[at].route.bell.ring();
        }
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        let at = self.known(peer.0);
        if at.is_some_and(|at| self.pairs[at].incoming.broken) {
            return true;
        }
        let is_nobody = peer.0 >= self.home.plan().slots();
        let is_over = is_nobody || self.home.slot_record(peer.0).state.is_gone();
        let has_more = |at: usize| {
            let incoming = &self.pairs[at].incoming;
            let next = incoming.ring.as_ref().map(|ring| ring.peek(incoming.sequence, data_place));
            !matches!(next, None | Some(Ok(None)))
        };
        is_over && !self.mailbox.has_next() && !at.is_some_and(has_more)
    }

    /// The membership tells the others, through the agent.
    fn leave(&mut self) {}

    /// Here a process is meant by its tenancy: one that has left and come back has its slot's memory still.
    fn forget_before(&mut self, peer: Peer, tenancy: u32) {
        let Some(at) = self.known(peer.0) else { return };
        let pair = &mut self.pairs[at];
        // Zero: the slot was contacted before its first process was there.
        if pair.tenancy == 0 || pair.tenancy == tenancy {
            pair.tenancy = tenancy;
        } else {
            self.forget(peer);
        }
    }

    fn forget(&mut self, peer: Peer) {
        let Some(at) = self.known(peer.0) else { return };
        self.index[peer.0 as usize] = 0;
        self.pairs.swap_remove(at);
        if let Some(moved) = self.pairs.get(at) {
            self.index[moved.peer as usize] = at as u16 + 1;
        }
        self.listen();
    }
}
