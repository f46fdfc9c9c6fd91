//! One lane: the connection to one far process.

use std::os::fd::{AsFd, OwnedFd};

use landeck_channel::{BrokenPeer, Peer, SendError, Sink, Verdict};
use landeck_memory::Bytes;
use landeck_wire::handover::LaneKeys;
use landeck_wire::{Class, HEADER_BYTES, Header, Kind, POSITION_BYTES};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::framing::{DATA_BYTES_MAX, Framing, Spare};
use super::sealing::{CannotSeal, Opening, Sealing};
use super::sight::Load;
use super::socket::{self, Moved};
use super::unconfirmed::Unconfirmed;
use placing::Parts;

mod placing;

/// The most bytes of messages that are gathered before they are sent.
const GATHERED_BYTES_MAX: usize = 16 * 1024;
/// The longest message that is gathered.
const GATHERED_MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// The sender learns of this many received frames, or bytes in them, at the latest.
const REPORT_FRAMES: u64 = 64;
const REPORT_BYTES: u64 = 128 * 1024;
/// An urgent message takes another way where more bytes are not known to have been taken: two reports, as the receiver of
/// less than that need not have said so.
const AHEAD_OF_URGENT_MAX: u64 = 2 * REPORT_BYTES;
/// The longest rest of a part.
const REST_BYTES_MAX: usize = DATA_BYTES_MAX;

/// A lane.
pub(super) struct Lane {
    key: u64,
    /// `None` after the lane has ended.
    socket: Option<OwnedFd>,
    /// The events that the socket is watched for.
    watched: EventFlags,
    incoming: Incoming,
    outgoing: Outgoing,
    /// The reason why the lane broke, until it is reported to the daemon. Zero if the stream just ended.
    broke: Option<i32>,
    /// The process that owns the lane; in a forked child that is the parent.
    owner: u32,
}

/// The incoming half of a lane.
struct Incoming {
    framing: Framing,
    opening: Opening,
    /// The number of frames of the program that the sink has taken.
    received: u64,
    /// The part of them that the other side has been told of.
    reported: u64,
    /// The bytes in those that it has not been told of.
    unreported_bytes: u64,
    /// The other side has said that nothing follows.
    is_complete: bool,
    parts: Parts,
}

/// The outgoing half of a lane.
struct Outgoing {
    sealing: Sealing,
    /// Bytes that wait, from `begin` on: the rest of one frame that the system did not accept, or gathered messages.
    bytes: Vec<u8>,
    begin: usize,
    /// The system accepts no more now.
    is_blocked: bool,
    /// A message was sent since the last poll.
    in_burst: bool,
    /// The number of frames of the program that were sent.
    sent: u64,
    /// The part of them that the other side has reported as received.
    confirmed: u64,
    unconfirmed: Unconfirmed,
    /// The position up to which the other side allows to send. Nothing is held back by it yet.
    granted: u64,
    /// This side has said goodbye, perhaps only to `bytes` so far.
    has_left: bool,
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
    /// Takes over a connected socket. `key` identifies it in events.
    pub(super) fn new(key: u64, socket: OwnedFd, keys: &LaneKeys) -> Result<Self, Errno> {
        let incoming = Incoming {
            framing: Framing::default(),
            opening: Opening::new(keys).map_err(|CannotSeal| Errno::KEYREJECTED)?,
            received: 0,
            reported: 0,
            unreported_bytes: 0,
            is_complete: false,
            parts: Parts::default(),
        };
        let outgoing = Outgoing {
            sealing: Sealing::new(keys).map_err(|CannotSeal| Errno::KEYREJECTED)?,
            bytes: Vec::new(),
            begin: 0,
            is_blocked: false,
            in_burst: false,
            sent: 0,
            confirmed: 0,
            unconfirmed: Unconfirmed::default(),
            granted: 0,
            has_left: false,
            mute: None,
        };
        let owner = std::process::id();
        let watched = EventFlags::empty();
        Ok(Self { key, socket: Some(socket), watched, incoming, outgoing, broke: None, owner })
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

    /// Whether a newer lane of the pair loses nothing: the other process has left on this one, or no frame has used it.
    pub(super) fn can_be_replaced(&self) -> bool {
        let (incoming, outgoing) = (&self.incoming, &self.outgoing);
        let is_unused = outgoing.sent == 0 && incoming.received == 0 && incoming.framing.is_empty();
        is_unused || self.is_over() && incoming.is_complete
    }

    /// The reason why the lane broke, once.
    pub(super) fn take_break(&mut self) -> Option<i32> {
        self.broke.take()
    }

    /// Whether bytes wait for the network. After a goodbye, also whether the other host is not known to have
    /// everything, the goodbye included: a socket that is closed before may lose bytes.
    pub(super) fn has_unsent(&self) -> bool {
        let out = &self.outgoing;
        let is_under_way = || self.socket.as_ref().is_some_and(socket::has_unacknowledged);
        out.is_waiting() || out.has_left && out.mute.is_none() && is_under_way()
    }

    /// Whether much lies in the way of a message: the network accepts no more now, as 64 KiB wait for it, or the other
    /// process has not taken what was sent.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.outgoing.is_blocked || self.outgoing.unconfirmed.bytes() > AHEAD_OF_URGENT_MAX
    }

    /// The load of the lane at this moment.
    pub(super) fn load(&self) -> Load {
        let out = &self.outgoing;
        let in_system = self.socket.as_ref().map_or(0, socket::unacknowledged);
        let unsent_bytes = (out.bytes.len() - out.begin) as u64 + in_system;
        Load { unsent_bytes, sent: out.sent, received: out.confirmed }
    }

    /// Whether [`Lane::tend`] has something to do.
    #[inline]
    pub(super) fn needs_care(&self) -> bool {
        let out = &self.outgoing;
        out.is_waiting() || out.in_burst || self.incoming.is_report_due() && out.can_append()
    }

    /// Sends a message, or the first part of it, and keeps the rest. If `gathers`, a short message that is not the first
    /// since the last poll may wait for the next.
    #[inline]
    pub(super) fn try_send(
        &mut self,
        header: &Header,
        data: Bytes<'_>,
        gathers: bool,
        spare: &mut Spare,
    ) -> Result<(), SendError> {
        let out = &mut self.outgoing;
        if out.has_left {
            return Err(SendError::Gone);
        }
        let Some(socket) = &self.socket else { return Err(SendError::Full) };
        if out.is_blocked || out.mute.is_some() {
            return Err(SendError::Full);
        }
        if header.class == Class::Urgent && !out.unconfirmed.admits_urgent() {
            return Err(SendError::Full);
        }
        let header = Header { sequence: out.sent as u16, length: data.len() as u32, ..*header };
        self.incoming.parts.are_expected |= header.kind == Kind::Accept;
        let is_first = gathers && !std::mem::replace(&mut out.in_burst, gathers);
        let gathers = gathers && !is_first && data.len() <= GATHERED_MESSAGE_BYTES_MAX;
        if self.incoming.is_report_due() {
            self.incoming.report(out, spare); // with the message, so it needs no call of its own
        }
        if gathers || matches!(out.sealing, Sealing::Sealed(_)) {
            out.append(&header, data, spare);
            out.count(&header);
            if !gathers || out.bytes.len() - out.begin > GATHERED_BYTES_MAX {
                out.flush(socket, spare);
            }
            return Ok(());
        }
        out.send_from_place(socket, &header, data, spare)
    }

    /// Sends what waits, as far as the network accepts it, and reports what has been received. `sleeps` says that the
    /// process will sleep until its descriptors wake it.
    pub(super) fn tend(&mut self, sleeps: bool, epoll: &OwnedFd, spare: &mut Spare) {
        self.outgoing.in_burst = false;
        self.flush(spare);
        if self.socket.is_some() && self.incoming.is_report_due() && self.outgoing.can_append() {
            self.incoming.report(&mut self.outgoing, spare);
            self.flush(spare);
        }
        self.watch(sleeps, epoll);
    }

    /// Says goodbye behind everything that was sent before.
    pub(super) fn leave(&mut self, spare: &mut Spare) {
        let out = &mut self.outgoing;
        if out.has_left || out.mute.is_some() || self.socket.is_none() {
            out.has_left = true;
            return;
        }
        out.append(&Header::GOODBYE, Bytes::EMPTY, spare);
        out.has_left = true;
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
        let (moved, any) = match incoming.place(from, sink) {
            Some(to) => incoming.read_to(socket, from, to, sink, spare),
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
            match self.incoming.offer_first(from, sink, &mut self.outgoing) {
                Ok(First::Taken) => any = true,
                Ok(First::Handled) => {}
                Ok(First::Held) => return Offered { any, is_held: true },
                Ok(First::None) => break,
                Err(broken) => {
                    sink.broken(from, broken);
                    self.incoming.clear(spare);
                    self.incoming.is_complete = false;
                    self.finish(libc::EPROTO, epoll);
                    break;
                }
            }
        }
        if self.is_over() {
            self.incoming.clear(spare); // the rest of a frame will not come
            if self.incoming.is_complete {
                self.broke = None; // it has ended in good order
            }
        }
        self.incoming.framing.rest(spare);
        Offered { any, is_held: false }
    }

    /// Ends the lane; messages that have arrived stay until they are offered. After this side's goodbye the other side
    /// may close at any time.
    pub(super) fn finish(&mut self, errno: i32, epoll: &OwnedFd) {
        let Some(socket) = self.socket.take() else { return };
        if !self.watched.is_empty() {
            let _ = epoll::delete(epoll, &socket);
        }
        self.outgoing.fall_silent();
        if !self.outgoing.has_left {
            self.broke = Some(errno);
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
    #[inline]
    fn offer_first<S: Sink + ?Sized>(
        &mut self,
        from: Peer,
        sink: &mut S,
        outgoing: &mut Outgoing,
    ) -> Result<First, BrokenPeer> {
        if self.is_complete && !self.framing.is_empty() {
            return Err(BrokenPeer::AfterGoodbye);
        }
        if self.parts.rest.is_some() {
            return Ok(self.offer_rest(from, sink));
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
                outgoing.hear_position(&header, data)?;
                First::Handled
            }
            _ => {
                let wanted = self.received as u16;
                if header.sequence != wanted {
                    return Err(BrokenPeer::Order { found: header.sequence, wanted });
                }
                if sink.arrive(from, &header, Bytes::from(data)) == Verdict::Held {
                    return Ok(First::Held);
                }
                self.received += 1;
                self.unreported_bytes += u64::from(header.length);
                self.parts.are_expected = header.kind == Kind::Part;
                First::Taken
            }
        };
        self.framing.consume(&self.opening);
        Ok(fate)
    }

    /// Offers the rest of a part whose first bytes went to their place.
    #[cold]
    fn offer_rest<S: Sink + ?Sized>(&mut self, from: Peer, sink: &mut S) -> First {
        let Some((rest, data)) = self.rest_of_part() else { return First::None };
        if sink.arrive(from, &rest, Bytes::from(data)) == Verdict::Held {
            return First::Held;
        }
        self.framing.skip(rest.length as usize);
        self.unreported_bytes += u64::from(rest.length);
        self.received += 1;
        self.parts.rest = None;
        First::Taken
    }

    /// Drops what has arrived.
    fn clear(&mut self, spare: &mut Spare) {
        self.framing.clear(spare);
        self.parts.rest = None;
    }

    /// Tells the other side, in the next bytes, how much was received.
    fn report(&mut self, outgoing: &mut Outgoing, spare: &mut Spare) {
        let position = self.received.to_le_bytes();
        outgoing.append(&Header::position(Kind::Received), Bytes::from(&position[..]), spare);
        (self.reported, self.unreported_bytes) = (self.received, 0);
    }

    /// Whether the other side should learn now how much was received. A process that leaves waits for the last report.
    #[inline]
    fn is_report_due(&self) -> bool {
        let unreported = self.received - self.reported;
        unreported >= REPORT_FRAMES
            || self.unreported_bytes >= REPORT_BYTES
            || self.is_complete && unreported > 0
    }
}

impl Outgoing {
    #[inline]
    fn is_waiting(&self) -> bool {
        self.begin < self.bytes.len()
    }

    fn can_append(&self) -> bool {
        !self.is_blocked && !self.has_left && self.mute.is_none()
    }

    /// Counts a frame of the program.
    #[inline]
    fn count(&mut self, header: &Header) {
        self.sent += 1;
        let bytes = HEADER_BYTES + header.length as usize;
        self.unconfirmed.sent(self.sent, bytes, header.class == Class::Urgent);
    }

    /// Appends a frame to the bytes that wait.
    fn append(&mut self, header: &Header, data: Bytes<'_>, spare: &mut Spare) {
        if self.bytes.capacity() == 0 {
            self.bytes = spare.lend_outgoing();
        }
        self.bytes.extend_from_slice(&header.encode());
        data.append_to(&mut self.bytes);
        if let Err(CannotSeal) = self.sealing.seal_last(&mut self.bytes, data.len()) {
            self.fall_silent();
            self.mute = Some(Errno::KEYREJECTED);
        }
    }

    /// Sends a frame in clear from where its data lie, behind gathered ones, and keeps the rest.
    #[inline]
    fn send_from_place(
        &mut self,
        socket: &OwnedFd,
        header: &Header,
        data: Bytes<'_>,
        spare: &mut Spare,
    ) -> Result<(), SendError> {
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
        if moved == before + head.len() + data.len() {
            self.count(header);
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
        self.count(header);
        Ok(())
    }

    /// Sends waiting bytes, as far as the network accepts them.
    fn flush(&mut self, socket: &OwnedFd, spare: &mut Spare) {
        while self.is_waiting() {
            match socket::send(socket, &self.bytes[self.begin..]) {
                Ok(Moved::Bytes(bytes)) => self.begin += bytes,
                Ok(_) => {
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
            if self.has_left {
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
        self.bytes = Vec::new();
        (self.begin, self.is_blocked) = (0, false);
    }

    /// Accepts the other side's word about a position.
    fn hear_position(&mut self, header: &Header, data: &[u8]) -> Result<(), BrokenPeer> {
        let position: &[u8; POSITION_BYTES] = data.try_into().map_err(|_| BrokenPeer::Form)?;
        let position = u64::from_le_bytes(*position);
        match header.kind {
            Kind::Received if (self.confirmed..=self.sent).contains(&position) => {
                self.confirmed = position;
                self.unconfirmed.taken(position);
            }
            Kind::Granted if position >= self.granted => self.granted = position,
            _ => return Err(BrokenPeer::Form), // positions only grow, and nobody receives what was not sent
        }
        Ok(())
    }
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

    fn outgoing() -> Outgoing {
        Outgoing {
            sealing: Sealing::Plain,
            bytes: Vec::new(),
            begin: 0,
            is_blocked: false,
            in_burst: false,
            sent: 10,
            confirmed: 4,
            unconfirmed: Unconfirmed::default(),
            granted: 20,
            has_left: false,
            mute: None,
        }
    }

    #[test]
    fn positions_only_grow_and_nobody_receives_what_was_not_sent() {
        for (kind, position, is_right) in [
            (Kind::Received, 4, true),
            (Kind::Received, 10, true),
            (Kind::Received, 3, false),
            (Kind::Received, 11, false),
            (Kind::Granted, 20, true),
            (Kind::Granted, u64::MAX, true),
            (Kind::Granted, 19, false),
        ] {
            let data = u64::to_le_bytes(position);
            let heard = outgoing().hear_position(&Header::position(kind), &data);
            assert_eq!(heard.is_ok(), is_right, "{kind:?} {position}");
        }
        let short = outgoing().hear_position(&Header::position(Kind::Received), &[0; 7]);
        assert_eq!(short, Err(BrokenPeer::Form));
    }
}
