//! The lane to one far process: a connection, and the next one when that breaks.
//!
//! The positions of the pair ([`Pair`]) outlive the connection. Each further connection begins with both sides' word of how
//! much they have received, and each goes on from there.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use landeck_channel::pair::{AHEAD_MAX, Pair, Positions};
use landeck_channel::silence::Barren;
use landeck_channel::{BrokenPeer, Peer, SendError, Sink, Verdict};
use landeck_memory::Bytes;
use landeck_memory::system::now_ns;
use landeck_wire::handover::{LaneKeys, LaneSilence};
use landeck_wire::{Class, Flags, HEADER_BYTES, Header, Kind, POSITION_BYTES};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::burst::{self, Burst, Bursts};
use super::framing::{DATA_BYTES_MAX, Framing, Spare};
use super::sealing::{CannotSeal, Opening, Sealing};
use super::sight::Load;
use super::silence::SilenceLooks;
use super::socket::{self, Moved};
use super::unconfirmed::{REPORT_BYTES, Unconfirmed};
use kept::KeptFrame;
use placing::Parts;

mod kept;
mod placing;

/// The sender learns of this many received frames, or [`REPORT_BYTES`] in them, at the latest.
const REPORT_FRAMES: u64 = 64;
/// It learns earlier, together with a message, of this many bytes.
const REPORT_BYTES_BESIDE: u64 = 4 * 1024;
/// The first lane of a pair: nothing can have been sent before.
const FIRST: u32 = 1;
/// The longest rest of a part.
const REST_BYTES_MAX: usize = DATA_BYTES_MAX;

/// A lane.
pub(super) struct Lane {
    key: u64,
    /// `None` after the lane has ended.
    socket: Option<Arc<OwnedFd>>,
    /// The events that the socket is watched for.
    watched: EventFlags,
    pair: Pair<KeptFrame>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// The reason why the lane broke, until it is reported to the daemon.
    broke: Option<Break>,
    /// The looks at this connection, and the connections before that brought nothing over.
    looks: SilenceLooks,
    barren: Barren,
    /// The other side has sent what no process sends. No further connection is taken.
    is_refused: bool,
    /// The packets of this connection that came out of order until they were last asked for.
    disorder: u32,
    /// The process that owns the lane; in a forked child that is the parent.
    owner: u32,
}

/// The reason why a connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The system's error. Zero if the stream just ended.
    System(i32),
    /// It carried nothing.
    Silent(LaneSilence),
}

/// The incoming half of a lane.
struct Incoming {
    framing: Framing,
    opening: Opening,
    /// The part of the received frames that the other side has been told of.
    reported: u64,
    /// The bytes in those that it has not been told of.
    unreported_bytes: u64,
    /// The sender of a long message waits for the word that it was received.
    is_awaited: bool,
    /// The other side has said that nothing follows.
    is_complete: bool,
    parts: Parts,
}

/// The outgoing half of a lane.
struct Outgoing {
    sealing: Sealing,
    /// Bytes that wait, from `begin` on: the rest of what the system did not accept, or the burst that has just ended.
    bytes: Vec<u8>,
    begin: usize,
    /// The system accepts no more now.
    is_blocked: bool,
    /// The messages since the last look, and the number of that.
    since_look: u32,
    look: u32,
    /// Messages that wait for others, in place of `bytes` while `is_in_burst`.
    burst: Option<Arc<Mutex<Burst>>>,
    is_in_burst: bool,
    unconfirmed: Unconfirmed,
    /// The position that the other side has told of first on this connection.
    began_at: Option<u64>,
    /// The position up to which the other side allows to send. Nothing is held back by it yet.
    granted: u64,
    /// This side sends nothing new any more.
    has_left: bool,
    /// It has said goodbye on this connection, perhaps only to `bytes` so far.
    has_said_goodbye: bool,
    /// The reason why nothing can be sent any more, while earlier data of the other side are still read.
    mute: Option<Errno>,
}

/// The result of offering a lane's messages.
#[derive(Clone, Copy, Default)]
pub(super) struct Offered {
    /// The sink has taken some.
    pub(super) any: bool,
    /// The sink holds one.
    pub(super) is_held: bool,
}

impl Lane {
    /// Takes over the first connected socket of a pair. `key` identifies the lane in events.
    pub(super) fn new(
        key: u64,
        number: u32,
        socket: OwnedFd,
        keys: &LaneKeys,
        spare: &mut Spare,
    ) -> Result<Self, Errno> {
        let (opening, sealing) = protection(keys)?;
        let mut lane = Self {
            key,
            socket: Some(Arc::new(socket)),
            watched: EventFlags::empty(),
            pair: Pair::new(AHEAD_MAX),
            incoming: Incoming::new(opening),
            outgoing: Outgoing::new(sealing),
            broke: None,
            looks: SilenceLooks::default(),
            barren: Barren::default(),
            is_refused: false,
            disorder: 0,
            owner: std::process::id(),
        };
        lane.begin(number, spare);
        Ok(lane)
    }

    /// Takes over the next connected socket of the pair. The one before is closed unread: whatever this side has not
    /// received from it comes again.
    pub(super) fn go_on(
        &mut self,
        number: u32,
        socket: OwnedFd,
        keys: &LaneKeys,
        epoll: &OwnedFd,
        spare: &mut Spare,
    ) -> Result<(), Errno> {
        let (opening, sealing) = protection(keys)?;
        self.incoming.framing.clear(spare);
        self.incoming.parts.begin_again();
        self.finish(0, epoll);
        (self.broke, self.incoming.opening, self.disorder) = (None, opening, 0);
        self.looks = SilenceLooks::default();
        let (has_left, unconfirmed) =
            (self.outgoing.has_left, std::mem::take(&mut self.outgoing.unconfirmed));
        self.outgoing = Outgoing { has_left, unconfirmed, ..Outgoing::new(sealing) };
        (self.socket, self.watched) = (Some(Arc::new(socket)), EventFlags::empty());
        self.begin(number, spare);
        Ok(())
    }

    /// Says how much was received, first of all on a connection.
    fn begin(&mut self, number: u32, spare: &mut Spare) {
        // The caller has compared the numbers.
        let opened = self.pair.open(number);
        debug_assert!(opened.is_ok());
        if number == FIRST {
            self.outgoing.began_at = Some(self.pair.received_there());
        } else {
            self.incoming.report(&self.pair, &mut self.outgoing, spare);
        }
        self.say_goodbye(spare);
    }

    /// Whether the lane has ended.
    pub(super) fn is_over(&self) -> bool {
        self.socket.is_none()
    }

    /// Whether there is something to offer, or an end to notice.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.is_over() || !self.incoming.framing.is_empty()
    }

    /// Whether nothing more can arrive, and nothing that has arrived waits here.
    pub(super) fn is_read_out(&self) -> bool {
        (self.is_over() || self.incoming.is_complete) && self.incoming.framing.is_empty()
    }

    /// Whether no further connection of the pair is taken.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// The position behind everything that was sent.
    pub(super) fn sent_mark(&self) -> u64 {
        self.pair.pushed()
    }

    /// Whether the other side has everything before a position, or will never take it.
    pub(super) fn is_received(&self, mark: u64) -> bool {
        self.pair.received_there() >= mark || self.incoming.is_complete || self.is_refused
    }

    /// Whether the other side needs a further connection to get what was sent, though it has not left.
    pub(super) fn needs_another(&self) -> bool {
        let is_lost = !self.pair.may_change_path() && !self.incoming.is_complete;
        self.is_over() && is_lost && !self.is_refused
    }

    /// The reason why the lane broke, once.
    pub(super) fn take_break(&mut self) -> Option<Break> {
        self.broke.take()
    }

    /// Looks at a time whether the connection carries what it is given. One that has carried nothing for `limit` ends here,
    /// as one that breaks.
    pub(super) fn look_at_silence(&mut self, now: Duration, limit: Duration, epoll: &OwnedFd) {
        let Some(socket) = &self.socket else { return };
        let Some(silence) = self.looks.look(socket, now, limit) else { return };
        let received = self.pair.received_there();
        let has_more = self.pair.pushed() > received;
        let began_at = self.outgoing.began_at.unwrap_or(received);
        let is_hopeless = self.barren.count(began_at, has_more);
        self.end(Break::Silent(LaneSilence { is_hopeless, ..silence }), epoll);
    }

    /// Since when the connection carries nothing of what it was given, by the last look.
    pub(super) fn silent_since(&self) -> Option<Duration> {
        self.looks.since()
    }

    /// Whether bytes wait for the network. After a goodbye, also whether the other host is not known to have
    /// everything, the goodbye included: a socket that is closed before may lose bytes.
    pub(super) fn has_unsent(&self) -> bool {
        let out = &self.outgoing;
        let is_under_way = || self.socket.as_deref().is_some_and(socket::has_unacknowledged);
        let is_behind = !self.is_over() && self.pair.is_behind() && !self.incoming.is_complete;
        let awaits_end = out.has_left && out.mute.is_none();
        out.is_waiting() || is_behind || self.needs_another() || awaits_end && is_under_way()
    }

    /// Whether the network has not accepted all that was sent.
    pub(super) fn keeps_rest(&self) -> bool {
        self.outgoing.is_waiting()
    }

    /// Whether much lies in the way of a message: the network accepts no more now, as 64 KiB wait for it, the connection has
    /// ended, or the other process has not taken what was sent.
    pub(super) fn is_crowded(&self) -> bool {
        let out = &self.outgoing;
        out.is_blocked || self.socket.is_none() || out.unconfirmed.is_much(now_ns)
    }

    /// The load of the lane at this moment.
    pub(super) fn load(&self) -> Load {
        let out = &self.outgoing;
        let in_system = self.socket.as_deref().map_or(0, socket::unacknowledged);
        let unsent_bytes = (out.bytes.len() - out.begin) as u64 + in_system;
        Load { unsent_bytes, sent: self.pair.pushed(), received: self.pair.received_there() }
    }

    /// The packets that came out of order since the last call.
    pub(super) fn take_disorder(&mut self) -> u64 {
        let Some(count) = self.socket.as_deref().and_then(socket::out_of_order) else { return 0 };
        let before = std::mem::replace(&mut self.disorder, count);
        u64::from(count.wrapping_sub(before))
    }

    /// Whether [`Lane::tend`] has something to do.
    #[inline]
    pub(super) fn needs_care(&self) -> bool {
        let out = &self.outgoing;
        let can_report = self.socket.is_some() && out.can_append();
        out.is_waiting() || can_report && self.incoming.is_report_due(&self.pair)
    }

    /// Sends a message, or the first part of it, and keeps the rest. A short one that is not among the first since the last
    /// look, which has this number, waits for others.
    #[inline]
    pub(super) fn try_send(
        &mut self,
        header: &Header,
        data: Bytes<'_>,
        look: u32,
        (spare, bursts): (&mut Spare, &mut Bursts),
    ) -> Result<(), SendError> {
        let out = &mut self.outgoing;
        if out.has_left {
            return Err(SendError::Gone);
        }
        let Some(socket) = &self.socket else { return Err(SendError::Full) };
        if out.is_blocked || out.mute.is_some() || self.pair.is_behind() {
            return Err(SendError::Full);
        }
        let sequence = self.pair.pushed() as u16;
        let header = Header { sequence, length: data.len() as u32, ..*header };
        let cost = kept::cost(&header);
        if !self.pair.has_room(cost) {
            return Err(SendError::Full);
        }
        if header.class == Class::Urgent && !out.unconfirmed.admits_urgent() {
            return Err(SendError::Full);
        }
        self.incoming.parts.are_expected |= header.kind == Kind::Accept;
        if self.incoming.unreported_bytes >= REPORT_BYTES_BESIDE
            || self.incoming.is_report_due(&self.pair)
        {
            // With the message, so it needs no call of its own.
            self.incoming.report(&self.pair, out, spare);
        }
        if out.joins_burst(look, data.len()) {
            out.wait(socket, &header, data, (spare, bursts));
        } else if matches!(out.sealing, Sealing::Sealed(_)) || out.is_slow_from_place(data) {
            out.append(&header, data, spare);
            out.flush(socket, spare);
        } else {
            out.send_from_place(socket, &header, data, spare)?;
        }
        // There is room, and nothing waits before it.
        let _ = self.pair.push(KeptFrame::new(&header, data), cost);
        self.pair.next_to_send();
        let bytes = HEADER_BYTES + data.len();
        let is_urgent = header.class == Class::Urgent;
        self.outgoing.unconfirmed.sent(self.pair.pushed(), bytes, is_urgent, now_ns);
        Ok(())
    }

    /// Whether the sender of a long message waits for a word that this side owes it.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.incoming.is_awaited
    }

    /// Whether frames that an earlier connection has lost can go now.
    #[inline]
    pub(super) fn can_send_again(&self) -> bool {
        let out = &self.outgoing;
        self.socket.is_some() && self.pair.waiting().next().is_some() && !out.is_blocked
    }

    /// Sends the frames again that an earlier connection has lost, as far as the network accepts them.
    #[cold]
    pub(super) fn send_again<S: Sink + ?Sized>(
        &mut self,
        to: Peer,
        sink: &mut S,
        epoll: &OwnedFd,
        spare: &mut Spare,
    ) {
        let mut data = Vec::new();
        while self.can_send_again() && self.outgoing.mute.is_none() {
            let Some(header) = kept::next_again(&mut self.pair, to, sink, &mut data) else { break };
            self.outgoing.append(&header, Bytes::from(&data[..]), spare);
            self.flush(spare);
        }
        self.say_goodbye(spare);
        self.watch(false, epoll);
    }

    /// Sends what waits, as far as the network accepts it, and reports what has been received. `sleeps` says that the
    /// process will sleep until its descriptors wake it.
    pub(super) fn tend(&mut self, sleeps: bool, epoll: &OwnedFd, spare: &mut Spare) {
        self.flush(spare);
        let is_due = self.socket.is_some() && self.incoming.is_report_due(&self.pair);
        if is_due && self.outgoing.can_append() {
            self.incoming.report(&self.pair, &mut self.outgoing, spare);
            self.flush(spare);
        }
        self.watch(sleeps, epoll);
    }

    /// Says goodbye behind everything that was sent before.
    pub(super) fn leave(&mut self, spare: &mut Spare) {
        self.outgoing.has_left = true;
        self.say_goodbye(spare);
    }

    /// Says goodbye on this connection if this side has left, and nothing else waits.
    fn say_goodbye(&mut self, spare: &mut Spare) {
        let out = &mut self.outgoing;
        let is_time = out.has_left && !out.has_said_goodbye && !self.pair.is_behind();
        if !is_time || out.mute.is_some() || self.socket.is_none() {
            return;
        }
        if self.incoming.has_unreported(&self.pair) {
            self.incoming.report(&self.pair, &mut self.outgoing, spare);
        }
        self.outgoing.append(&Header::GOODBYE, Bytes::EMPTY, spare);
        self.outgoing.has_said_goodbye = true;
        self.flush(spare);
    }

    fn flush(&mut self, spare: &mut Spare) {
        if let Some(socket) = &self.socket {
            self.outgoing.flush(socket, spare);
        }
    }

    /// Reads data that have arrived, at most one staging memory, or one part to its place. Returns whether the sink has
    /// learned of any.
    #[inline]
    pub(super) fn read<S: Sink + ?Sized>(
        &mut self,
        from: Peer,
        sink: &mut S,
        epoll: &OwnedFd,
        spare: &mut Spare,
    ) -> bool {
        let Some(socket) = &self.socket else { return false };
        let incoming = &mut self.incoming;
        let (moved, any) = match incoming.place(&self.pair, from, sink) {
            Some(to) => incoming.read_to(socket, (&mut self.pair, from), to, sink, spare),
            None => (incoming.read_staged(socket, spare), false),
        };
        match moved {
            Ok(Moved::Bytes(_)) => {}
            Ok(Moved::Later) => self.incoming.framing.rest(spare),
            Ok(Moved::Closed) => {
                let errno = self.outgoing.mute.map_or(0, Errno::raw_os_error);
                self.finish(errno, epoll);
            }
            Err(error) => self.finish(error.raw_os_error(), epoll),
        }
        any
    }

    /// Offers the messages that have arrived.
    #[inline]
    pub(super) fn offer<S: Sink + ?Sized>(
        &mut self,
        from: Peer,
        sink: &mut S,
        epoll: &OwnedFd,
        spare: &mut Spare,
    ) -> Offered {
        let mut any = false;
        loop {
            match self.incoming.offer_first(from, sink, &mut self.pair, &mut self.outgoing) {
                Ok(First::Taken) => any = true,
                Ok(First::Handled) => {}
                Ok(First::Held) => return Offered { any, is_held: true },
                Ok(First::None) => break,
                Err(broken) => {
                    sink.broken(from, broken);
                    self.incoming.clear(spare);
                    self.incoming.is_complete = false;
                    self.is_refused = true;
                    self.finish(libc::EPROTO, epoll);
                    break;
                }
            }
        }
        if self.is_over() {
            self.incoming.framing.clear(spare); // the rest of a frame will not come on this connection
            if self.incoming.is_complete {
                self.broke = None; // it has ended in good order
            }
        }
        self.incoming.framing.rest(spare);
        Offered { any, is_held: false }
    }

    /// Ends the connection; messages that have arrived stay until they are offered. After this side's goodbye the other
    /// side may close at any time, if it has received everything.
    pub(super) fn finish(&mut self, errno: i32, epoll: &OwnedFd) {
        self.end(Break::System(errno), epoll);
    }

    fn end(&mut self, reason: Break, epoll: &OwnedFd) {
        let Some(socket) = self.socket.take() else { return };
        if !self.watched.is_empty() {
            let _ = epoll::delete(epoll, &*socket);
        }
        self.outgoing.fall_silent();
        let is_in_order = self.outgoing.has_left && self.pair.may_change_path();
        if !is_in_order {
            self.broke = Some(reason);
        }
    }

    /// Drops the data that have arrived, and frees the memory.
    pub(super) fn forget(&mut self, epoll: &OwnedFd, spare: &mut Spare) {
        self.incoming.clear(spare);
        self.finish(0, epoll);
    }

    /// Watches the socket for the events that it now waits for. A process that does not sleep tries to send by itself.
    pub(super) fn watch(&mut self, sleeps: bool, epoll: &OwnedFd) {
        let Some(socket) = &self.socket else { return };
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, !self.incoming.framing.is_full());
        let keeps = sleeps || self.watched.contains(EventFlags::OUT);
        wanted.set(EventFlags::OUT, keeps && self.outgoing.is_waiting());
        if wanted == self.watched {
            return;
        }
        let key = EventData::new_u64(self.key);
        let result = match (self.watched.is_empty(), wanted.is_empty()) {
            (true, _) => epoll::add(epoll, socket.as_fd(), key, wanted),
            (_, true) => epoll::delete(epoll, socket.as_fd()),
            _ => epoll::modify(epoll, socket.as_fd(), key, wanted),
        };
        match result {
            Ok(()) => self.watched = wanted,
            Err(error) => self.finish(error.raw_os_error(), epoll),
        }
    }
}

/// The fate of the first frame that has arrived.
enum First {
    /// There is none yet.
    None,
    /// The sink has taken it.
    Taken,
    /// The sink holds it.
    Held,
    /// It was no message of a program, and is dealt with.
    Handled,
}

impl Incoming {
    fn new(opening: Opening) -> Self {
        Self {
            framing: Framing::default(),
            opening,
            reported: 0,
            unreported_bytes: 0,
            is_awaited: false,
            is_complete: false,
            parts: Parts::default(),
        }
    }

    #[inline]
    fn offer_first<S: Sink + ?Sized>(
        &mut self,
        from: Peer,
        sink: &mut S,
        pair: &mut Pair<KeptFrame>,
        outgoing: &mut Outgoing,
    ) -> Result<First, BrokenPeer> {
        if self.skips() && !self.skip(pair)? {
            return Ok(First::None);
        }
        if self.is_complete && !self.framing.is_empty() {
            return Err(BrokenPeer::AfterGoodbye);
        }
        if self.parts.rest.is_some() {
            return Ok(self.offer_rest(from, sink, pair));
        }
        let Some((header, data)) = self.framing.first(&mut self.opening)? else {
            return Ok(First::None);
        };
        let fate = match header.kind {
            Kind::Goodbye | Kind::EndMarker => {
                if header != Header::GOODBYE && header != Header::END_MARKER {
                    return Err(BrokenPeer::Form);
                }
                self.is_complete = true;
                First::Handled
            }
            Kind::Received | Kind::Granted => {
                outgoing.hear_position(pair, &header, data)?;
                First::Handled
            }
            _ => {
                let wanted = pair.positions().received as u16;
                if header.sequence != wanted {
                    return Err(BrokenPeer::Order { found: header.sequence, wanted });
                }
                if sink.arrive(from, &header, Bytes::from(data)) == Verdict::Held {
                    return Ok(First::Held);
                }
                self.unreported_bytes += u64::from(header.length);
                self.parts.are_expected = header.kind == Kind::Part;
                self.count(pair, &header);
                First::Taken
            }
        };
        self.framing.consume(&self.opening);
        Ok(fate)
    }

    /// Offers the rest of a part whose first bytes went to their place.
    #[cold]
    fn offer_rest<S: Sink + ?Sized>(
        &mut self,
        from: Peer,
        sink: &mut S,
        pair: &mut Pair<KeptFrame>,
    ) -> First {
        let Some((rest, data)) = self.rest_of_part() else { return First::None };
        if sink.arrive(from, &rest, Bytes::from(data)) == Verdict::Held {
            return First::Held;
        }
        self.framing.skip(rest.length as usize);
        self.unreported_bytes += u64::from(rest.length);
        self.parts.rest = None;
        self.count(pair, &rest);
        First::Taken
    }

    /// Counts a frame that the sink has taken.
    #[inline]
    fn count(&mut self, pair: &mut Pair<KeptFrame>, header: &Header) {
        // Its number was compared, and the other side may always send as much as numbers tell apart.
        let counted = pair.arrive(pair.lane(), header.sequence);
        debug_assert!(counted.is_ok(), "{counted:?}");
        pair.grant(AHEAD_MAX);
        self.is_awaited |= header.kind == Kind::Part && header.flags.contains(Flags::LAST);
    }

    /// Drops what has arrived.
    fn clear(&mut self, spare: &mut Spare) {
        self.framing.clear(spare);
        self.parts.rest = None;
    }

    /// Tells the other side, in the next bytes, how much was received.
    fn report(&mut self, pair: &Pair<KeptFrame>, outgoing: &mut Outgoing, spare: &mut Spare) {
        let received = pair.positions().received;
        let position = received.to_le_bytes();
        outgoing.append(&Header::position(Kind::Received), Bytes::from(&position[..]), spare);
        (self.reported, self.unreported_bytes, self.is_awaited) = (received, 0, false);
    }

    /// Whether the other side should learn now how much was received. A process that leaves waits for the last report.
    #[inline]
    fn is_report_due(&self, pair: &Pair<KeptFrame>) -> bool {
        let unreported = pair.positions().received - self.reported;
        unreported >= REPORT_FRAMES
            || self.unreported_bytes >= REPORT_BYTES
            || self.is_awaited
            || self.is_complete && unreported > 0
    }

    fn has_unreported(&self, pair: &Pair<KeptFrame>) -> bool {
        pair.positions().received > self.reported
    }
}

impl Outgoing {
    fn new(sealing: Sealing) -> Self {
        Self {
            sealing,
            bytes: Vec::new(),
            begin: 0,
            is_blocked: false,
            since_look: 0,
            look: 0,
            burst: None,
            is_in_burst: false,
            granted: 0,
            has_left: false,
            has_said_goodbye: false,
            unconfirmed: Unconfirmed::default(),
            began_at: None,
            mute: None,
        }
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        self.begin < self.bytes.len() || self.is_in_burst
    }

    /// Whether a message of so many bytes waits for others, if it is sent behind this look.
    #[inline]
    fn joins_burst(&mut self, look: u32, bytes: usize) -> bool {
        if self.look != look {
            (self.look, self.since_look) = (look, 0);
        }
        self.since_look = self.since_look.saturating_add(1);
        self.since_look > burst::AT_ONCE && bytes <= burst::MESSAGE_BYTES_MAX
    }

    /// Lets a frame wait for others.
    fn wait(
        &mut self,
        socket: &Arc<OwnedFd>,
        header: &Header,
        data: Bytes<'_>,
        (spare, bursts): (&mut Spare, &mut Bursts),
    ) {
        self.end_burst(spare);
        let begins = !self.is_waiting();
        self.append(header, data, spare);
        if self.bytes.len() - self.begin > burst::BYTES_MAX {
            return self.flush(socket, spare);
        }
        let burst = self.burst.get_or_insert_default().clone();
        let mut waiting = burst::lock(&burst);
        (waiting.bytes, waiting.begin) = (std::mem::take(&mut self.bytes), self.begin);
        waiting.socket = Some(socket.clone());
        drop(waiting);
        (self.begin, self.is_in_burst) = (0, true);
        if begins && !bursts.begin(&burst) {
            self.flush(socket, spare);
        }
    }

    /// Takes back what waits for others. The thread may have sent some of it.
    #[inline]
    fn end_burst(&mut self, spare: &mut Spare) {
        if let (true, Some(burst)) = (std::mem::take(&mut self.is_in_burst), &self.burst) {
            let Burst { bytes, begin, calls, error, .. } = std::mem::take(&mut *burst::lock(burst));
            (self.bytes, self.begin) = (bytes, begin);
            spare.traffic.sends += calls;
            if let Some(error) = error {
                self.fall_silent();
                self.mute = Some(error);
            }
        }
    }

    fn can_append(&self) -> bool {
        !self.is_blocked && !self.has_said_goodbye && self.mute.is_none()
    }

    /// Appends a frame to the bytes that wait.
    fn append(&mut self, header: &Header, data: Bytes<'_>, spare: &mut Spare) {
        self.end_burst(spare);
        if self.bytes.capacity() == 0 {
            self.bytes = spare.lend_outgoing();
        }
        spare.count_frame(header);
        self.bytes.extend_from_slice(&header.encode());
        data.append_to(&mut self.bytes);
        if let Err(CannotSeal) = self.sealing.seal_last(&mut self.bytes, data.len()) {
            self.fall_silent();
            self.mute = Some(Errno::KEYREJECTED);
        }
    }

    /// Whether the system would copy data slowly from their place. It lays what it sends into pages, mostly from their
    /// beginnings on, so that one more copy of ours to another place takes less time.
    #[inline]
    fn is_slow_from_place(&self, data: Bytes<'_>) -> bool {
        data.are_copied_slowly_to(self.bytes.len() - self.begin + HEADER_BYTES)
    }

    /// Sends a frame in clear from where its data lie, behind what waits, and keeps the rest.
    #[inline]
    fn send_from_place(
        &mut self,
        socket: &OwnedFd,
        header: &Header,
        data: Bytes<'_>,
        spare: &mut Spare,
    ) -> Result<(), SendError> {
        self.end_burst(spare);
        let head = header.encode();
        let waiting = &self.bytes[self.begin..];
        let before = waiting.len();
        let moved = match socket::send_parts(socket, waiting, &head, data) {
            Ok(Moved::Bytes(bytes)) => bytes,
            Ok(_) => 0,
            Err(error) => {
                self.fall_silent();
                self.mute = Some(error);
                return Err(SendError::Full);
            }
        };
        spare.count_send(moved);
        if moved >= before {
            spare.count_frame(header);
        }
        if moved == before + head.len() + data.len() {
            if before > 0 {
                self.drained(spare);
            }
            return Ok(());
        }
        if moved < before {
            self.begin += moved;
            self.is_blocked = true;
            return Err(SendError::Full);
        }
        self.drained(spare);
        self.is_blocked = true;
        self.bytes = spare.lend_outgoing();
        let sent = moved - before;
        self.bytes.extend_from_slice(&head[sent.min(head.len())..]);
        data.part(sent.saturating_sub(head.len()), DATA_BYTES_MAX).append_to(&mut self.bytes);
        Ok(())
    }

    /// Sends waiting bytes, as far as the network accepts them.
    fn flush(&mut self, socket: &OwnedFd, spare: &mut Spare) {
        self.end_burst(spare);
        while self.is_waiting() {
            match socket::send(socket, &self.bytes[self.begin..]) {
                Ok(Moved::Bytes(bytes)) => {
                    spare.count_send(bytes);
                    self.begin += bytes;
                }
                Ok(_) => {
                    spare.count_send(0);
                    self.is_blocked = true;
                    return;
                }
                Err(error) => {
                    self.fall_silent();
                    self.mute = Some(error);
                    return;
                }
            }
        }
        if self.bytes.capacity() > 0 {
            self.drained(spare);
            if self.has_said_goodbye {
                socket::end_sending(socket);
            }
        }
    }

    /// Gives the memory back, as nothing waits in it.
    fn drained(&mut self, spare: &mut Spare) {
        spare.take_back_outgoing(std::mem::take(&mut self.bytes));
        (self.begin, self.is_blocked) = (0, false);
    }

    /// Drops what waits: nothing can be sent any more.
    fn fall_silent(&mut self) {
        if let Some(burst) = self.burst.as_ref().filter(|_| self.is_in_burst) {
            *burst::lock(burst) = Burst::default();
        }
        self.is_in_burst = false;
        self.bytes = Vec::new();
        (self.begin, self.is_blocked) = (0, false);
    }

    /// Accepts the other side's word about a position.
    fn hear_position(
        &mut self,
        pair: &mut Pair<KeptFrame>,
        header: &Header,
        data: &[u8],
    ) -> Result<(), BrokenPeer> {
        let position: &[u8; POSITION_BYTES] = data.try_into().map_err(|_| BrokenPeer::Form)?;
        let position = u64::from_le_bytes(*position);
        match header.kind {
            Kind::Received => {
                let granted = position.saturating_add(AHEAD_MAX);
                // Positions only grow, and nobody receives what was not sent.
                let heard = pair.told(pair.lane(), Positions { received: position, granted });
                heard.map_err(|_| BrokenPeer::Form)?;
                self.unconfirmed.taken(position);
                self.began_at.get_or_insert(position);
            }
            Kind::Granted if position >= self.granted => self.granted = position,
            _ => return Err(BrokenPeer::Form),
        }
        Ok(())
    }
}

/// The protection of both directions under these keys.
fn protection(keys: &LaneKeys) -> Result<(Opening, Sealing), Errno> {
    let refused = |CannotSeal| Errno::KEYREJECTED;
    Ok((Opening::new(keys).map_err(refused)?, Sealing::new(keys).map_err(refused)?))
}

impl Drop for Lane {
    fn drop(&mut self) {
        if std::process::id() != self.owner {
            return;
        }
        if let Some(socket) = &self.socket {
            self.outgoing.flush(socket, &mut Spare::default());
            socket::close_gently(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair that has sent ten frames, four of which were received.
    fn pair() -> Pair<KeptFrame> {
        let mut pair = Pair::new(AHEAD_MAX);
        pair.open(FIRST).unwrap();
        for _ in 0..10 {
            let frame = KeptFrame::new(&Header::user(Kind::Eager, 0, 0, 0), Bytes::EMPTY);
            pair.push(frame, 0).unwrap();
            pair.next_to_send();
        }
        let positions = Positions { received: 4, granted: AHEAD_MAX };
        pair.told(FIRST, positions).unwrap();
        pair
    }

    #[test]
    fn positions_only_grow_and_nobody_receives_what_was_not_sent() {
        for (kind, position, is_right) in [
            (Kind::Received, 4, true),
            (Kind::Received, 10, true),
            (Kind::Received, 3, false),
            (Kind::Received, 11, false),
            (Kind::Received, u64::MAX, false),
            (Kind::Granted, 20, true),
            (Kind::Granted, u64::MAX, true),
            (Kind::Granted, 19, false),
        ] {
            let data = u64::to_le_bytes(position);
            let mut outgoing = Outgoing { granted: 20, ..Outgoing::new(Sealing::Plain) };
            let heard = outgoing.hear_position(&mut pair(), &Header::position(kind), &data);
            assert_eq!(heard.is_ok(), is_right, "{kind:?} {position}");
        }
        let header = Header::position(Kind::Received);
        let short = Outgoing::new(Sealing::Plain).hear_position(&mut pair(), &header, &[0; 7]);
        assert_eq!(short, Err(BrokenPeer::Form));
    }
}
