//! The lane to one far process: a connection, and the next one when that breaks.
//!
//! The positions of the pair ([`Pair`]) outlive the connection. Each further connection begins with both sides' word of how
//! much they have received, and each goes on from there.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use landeck_channel::pair::{AHEAD_MAX, Pair};
use landeck_channel::silence::Barren;
use landeck_channel::{BrokenPeer, Peer, SendError, Sink, Verdict};
use landeck_memory::Bytes;
use landeck_memory::system::now_ns;
use landeck_wire::handover::{LaneKeys, LaneSilence};
use landeck_wire::{Class, Flags, HEADER_BYTES, Header, Kind};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::burst::Bursts;
use super::framing::{DATA_BYTES_MAX, Framing, Spare};
use super::sealing::{CannotSeal, Opening, Sealing};
use super::sight::Load;
use super::silence::SilenceLooks;
use super::socket::{self, Moved};
use super::unconfirmed::REPORT_BYTES;
use kept::KeptFrame;
use outgoing::Outgoing;
use placing::Parts;

mod kept;
mod outgoing;
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
    rest: Rest,
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

/// The frames that a process that is gone has still sent: their number so far, and since when there were no more.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    received: u64,
    since: Option<Duration>,
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
            rest: Rest::default(),
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

    /// Looks at a time at the lane to a process that is gone. Its host or a gateway may be unable to close the connection, so
    /// that ends here when nothing has come for `limit`.
    pub(super) fn look_at_rest(&mut self, now: Duration, limit: Duration, epoll: &OwnedFd) {
        let received = self.pair.positions().received;
        let since = self.rest.since.filter(|_| self.rest.received == received).unwrap_or(now);
        self.rest = Rest { received, since: Some(since) };
        if now.saturating_sub(since) >= limit {
            self.finish(libc::ETIMEDOUT, epoll);
        }
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
