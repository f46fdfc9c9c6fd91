//! One tunnel: its connection, and the streams on it.
//!
//! A side sends no more of a stream than the other one has room for: [`WINDOW_BYTES`] that it has not passed on. So a stream
//! whose receiver takes nothing stands still alone. Streams with something to send take turns, a chunk each. Descriptors tell
//! once that they are ready, so this remembers it.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;

use landeck_wire::HostNumber;
use landeck_wire::preamble::PREAMBLE_BYTES;
use landeck_wire::tunnel::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, ChunkError, ChunkHead, ChunkKind, ChunkReader, TunnelChunk,
    WINDOW_BYTES,
};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::TunnelEvent;

/// How often the connection is read, and how often it is filled, before other tunnels have their turn.
const ROUNDS_MAX: usize = 8;
/// The streams of a tunnel that the other side may have begun.
const STREAMS_MAX: usize = 1 << 16;
/// The bytes that were taken, and are told.
const TOLD_BYTES: u32 = WINDOW_BYTES / 4;

/// The reason why a tunnel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TunnelEnd {
    /// The other side has closed it.
    Closed,
    /// The system reports an error.
    System,
    /// It carries nothing.
    Silent {
        /// Long packets may not pass.
        is_narrow: bool,
    },
    /// The other side has done what no daemon does.
    Fault(&'static str),
}

impl TunnelEnd {
    /// The thing that no daemon does.
    pub(super) const fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Fault(fault) => Some(fault),
            _ => None,
        }
    }
}

impl From<ChunkError> for TunnelEnd {
    fn from(error: ChunkError) -> Self {
        Self::Fault(match error {
            ChunkError::Kind => "its chunks have a kind that no daemon sends",
            ChunkError::Length => "its chunks have a length that no daemon sends",
        })
    }
}

/// Something about a stream that the loop must know.
#[derive(Debug)]
pub(super) enum StreamEvent {
    Opened(u32, Box<[u8; PREAMBLE_BYTES]>),
    Accepted(u32),
    Refused(u32),
}

impl StreamEvent {
    /// The event with the full name of its stream.
    pub(super) fn named(self, host: HostNumber, tunnel: u32) -> TunnelEvent {
        match self {
            Self::Opened(stream, preamble) => {
                TunnelEvent::Opened { name: (host, tunnel, stream), preamble }
            }
            Self::Accepted(stream) => TunnelEvent::Accepted((host, tunnel, stream)),
            Self::Refused(stream) => TunnelEvent::Refused((host, tunnel, stream)),
        }
    }
}

/// The two ends of a stream that a tunnel joins.
#[derive(Default)]
struct Stream {
    /// The end of this host. `None` until a stream from elsewhere is accepted, and when this end is closed.
    socket: Option<OwnedFd>,
    /// The other side has accepted it, or has begun it.
    is_accepted: bool,
    is_readable: bool,
    is_writable: bool,
    /// The process or the relay sends no more.
    is_ending: bool,
    /// It has its place among the turns.
    has_turn: bool,
    /// The bytes that the other side has room for.
    window: u32,
    /// The bytes that this side has room for.
    room: u32,
    /// The bytes that were passed on and are not told.
    taken: u32,
    /// The bytes that wait for the socket, from `passed` on.
    held: Vec<u8>,
    passed: usize,
    /// This side has closed it.
    is_closed: bool,
    /// The other side has closed it.
    is_over: bool,
}

/// One tunnel.
pub(super) struct Tunnel {
    socket: OwnedFd,
    is_readable: bool,
    is_writable: bool,
    /// The other side sends no more: what there is must be read to its end.
    is_ending: bool,
    reader: ChunkReader,
    /// The bytes that wait for the connection, from `sent` on. Heads and preambles wait here, and the rest of what the
    /// connection did not take at once.
    outgoing: Vec<u8>,
    sent: usize,
    streams: BTreeMap<u32, Stream>,
    /// The streams that may have something to send.
    turns: VecDeque<u32>,
    /// The last digit of the numbers that the other side gives.
    digit: u32,
    /// The last number that it has given.
    last: u32,
    events: Vec<StreamEvent>,
}

impl Tunnel {
    /// The tunnel of a connection, on the host with the lower number or on the other one.
    pub(super) fn new(socket: OwnedFd, is_low: bool) -> Self {
        Self {
            socket,
            is_readable: true,
            is_writable: true,
            is_ending: false,
            reader: ChunkReader::default(),
            outgoing: Vec::new(),
            sent: 0,
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            digit: u32::from(!is_low),
            last: 0,
            events: Vec::new(),
        }
    }

    pub(super) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// Begins a stream of this side.
    pub(super) fn open(&mut self, stream: u32, preamble: &[u8; PREAMBLE_BYTES], socket: OwnedFd) {
        self.push(stream, ChunkKind::Open, PREAMBLE_BYTES as u32);
        self.outgoing.extend_from_slice(preamble);
        let socket = Some(socket);
        self.streams.insert(stream, Stream { socket, room: WINDOW_BYTES, ..Stream::default() });
    }

    /// Accepts a stream of the other side, or refuses it.
    pub(super) fn answer(&mut self, number: u32, socket: Option<OwnedFd>) {
        let Some(stream) = self.streams.get_mut(&number).filter(|it| !it.is_closed) else { return };
        match socket {
            None => self.close(number),
            Some(socket) => {
                stream.socket = Some(socket);
                stream.room = WINDOW_BYTES;
                self.push(number, ChunkKind::Taken, WINDOW_BYTES);
            }
        }
    }

    /// Notes what the socket of a stream is ready for, or the connection as stream 0.
    pub(super) fn ready(&mut self, number: u32, flags: EventFlags) {
        let is_ending = flags.intersects(EventFlags::HUP | EventFlags::RDHUP | EventFlags::ERR);
        let may_read = flags.contains(EventFlags::IN) || is_ending;
        let may_write = flags.contains(EventFlags::OUT) || is_ending;
        if number == 0 {
            self.is_readable |= may_read;
            self.is_writable |= may_write;
            self.is_ending |= is_ending;
        } else if let Some(stream) = self.streams.get_mut(&number) {
            stream.is_readable |= may_read;
            stream.is_writable |= may_write;
            stream.is_ending |= is_ending;
            if may_write && !stream.held.is_empty() {
                self.pass_held(number);
            }
            self.give_turn(number);
        }
    }

    /// Reads and sends what can be. Returns whether more can be.
    ///
    /// # Errors
    /// [`TunnelEnd`].
    pub(super) fn go_on(&mut self, buffer: &mut [u8]) -> Result<bool, TunnelEnd> {
        for _ in 0..ROUNDS_MAX {
            let has_read = self.read(buffer)?;
            if !self.send(buffer)? && !has_read {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads once from the connection, and passes on what has come. Returns whether something has.
    fn read(&mut self, buffer: &mut [u8]) -> Result<bool, TunnelEnd> {
        if !self.is_readable {
            return Ok(false);
        }
        let count = match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(TunnelEnd::Closed),
            Ok((count, _)) => count,
            Err(Errno::INTR) => return Ok(true),
            Err(Errno::AGAIN) => 0,
            Err(_) => return Err(TunnelEnd::System),
        };
        self.is_readable = count == buffer.len() || count > 0 && self.is_ending;
        let mut bytes = &buffer[..count];
        while let Some(chunk) = self.reader.next(&mut bytes)? {
            match chunk {
                TunnelChunk::Open(stream, preamble) => self.opened(stream, preamble)?,
                TunnelChunk::Data(stream, data) => self.came(stream, data)?,
                TunnelChunk::Taken(stream, bytes) => self.taken(stream, bytes)?,
                TunnelChunk::Close(stream) => self.closed(stream)?,
            }
        }
        Ok(count > 0)
    }

    fn opened(&mut self, number: u32, preamble: [u8; PREAMBLE_BYTES]) -> Result<(), TunnelEnd> {
        if number <= self.last || number % 2 != self.digit {
            return Err(TunnelEnd::Fault("it opens a stream with a number that no daemon gives"));
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(TunnelEnd::Fault("it opens more streams than a daemon has"));
        }
        self.last = number;
        let window = WINDOW_BYTES;
        self.streams.insert(number, Stream { window, is_accepted: true, ..Stream::default() });
        self.events.push(StreamEvent::Opened(number, Box::new(preamble)));
        Ok(())
    }

    /// Takes bytes of a stream.
    fn came(&mut self, number: u32, data: &[u8]) -> Result<(), TunnelEnd> {
        let stream = self.other_open(number)?;
        stream.room = stream
            .room
            .checked_sub(data.len() as u32)
            .filter(|_| stream.is_accepted)
            .ok_or(TunnelEnd::Fault("it sends more of a stream than it may"))?;
        if stream.is_closed {
            return Ok(());
        }
        let passed = stream.pass(data);
        stream.held.extend_from_slice(&data[passed..]);
        self.tell_taken(number);
        self.give_turn(number);
        Ok(())
    }

    /// The other side has room for more bytes of a stream.
    fn taken(&mut self, number: u32, bytes: u32) -> Result<(), TunnelEnd> {
        let stream = self.other_open(number)?;
        let window = stream.window + bytes;
        if window > WINDOW_BYTES {
            return Err(TunnelEnd::Fault("it has room for more of a stream than there can be"));
        }
        stream.window = window;
        let is_first = !std::mem::replace(&mut stream.is_accepted, true);
        self.give_turn(number);
        if is_first {
            self.events.push(StreamEvent::Accepted(number));
        }
        Ok(())
    }

    /// The other side has closed a stream. What has come is still passed on.
    fn closed(&mut self, number: u32) -> Result<(), TunnelEnd> {
        let stream = self.other_open(number)?;
        stream.is_over = true;
        let is_first = !std::mem::replace(&mut stream.is_closed, true);
        if stream.held.is_empty() {
            stream.socket = None;
        }
        if !stream.is_accepted {
            self.events.push(StreamEvent::Refused(number));
        }
        if is_first {
            self.push(number, ChunkKind::Close, 0);
        }
        self.forget(number);
        Ok(())
    }

    /// A stream that the other side has not closed.
    fn other_open(&mut self, number: u32) -> Result<&mut Stream, TunnelEnd> {
        let stream = self.streams.get_mut(&number).filter(|it| !it.is_over);
        stream.ok_or(TunnelEnd::Fault("it goes on with a stream that is not open"))
    }

    /// Closes the end of a stream on this side.
    fn close(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        (stream.socket, stream.held, stream.passed) = (None, Vec::new(), 0);
        if !std::mem::replace(&mut stream.is_closed, true) {
            self.push(number, ChunkKind::Close, 0);
        }
        self.forget(number);
    }

    /// Forgets a stream that both sides have closed, once everything is passed on.
    fn forget(&mut self, number: u32) {
        let is_over = |it: &Stream| it.is_closed && it.is_over && it.held.is_empty();
        if self.streams.get(&number).is_some_and(is_over) {
            self.streams.remove(&number);
        }
    }

    /// Passes on what is held of a stream.
    fn pass_held(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let held = std::mem::take(&mut stream.held);
        stream.passed += stream.pass(&held[stream.passed..]);
        if stream.passed < held.len() {
            stream.held = held;
        } else {
            stream.passed = 0;
        }
        self.tell_taken(number);
        self.forget(number);
    }

    /// Tells the other side what was taken, if that is much.
    fn tell_taken(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number).filter(|it| !it.is_closed) else { return };
        if stream.taken >= TOLD_BYTES {
            let taken = std::mem::take(&mut stream.taken);
            stream.room += taken;
            self.push(number, ChunkKind::Taken, taken);
        }
    }

    /// Lets a stream have its turn, if it has something to send and may.
    fn give_turn(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if !stream.has_turn && stream.may_send() {
            stream.has_turn = true;
            self.turns.push_back(number);
        }
    }

    /// Sends what waits, and the next chunks of the streams whose turn it is. Returns whether something was sent.
    fn send(&mut self, buffer: &mut [u8]) -> Result<bool, TunnelEnd> {
        let mut any = false;
        while self.sent < self.outgoing.len() && self.is_writable {
            let count = send_now(&self.socket, &self.outgoing[self.sent..])?;
            self.is_writable = count > 0;
            self.sent += count;
            any = true;
        }
        if self.sent < self.outgoing.len() || !self.is_writable {
            return Ok(any);
        }
        self.outgoing.clear();
        self.sent = 0;
        let gathered = self.gather(buffer);
        if gathered == 0 {
            return Ok(any || !self.outgoing.is_empty());
        }
        let count = send_now(&self.socket, &buffer[..gathered])?;
        self.is_writable = count == gathered;
        if count < gathered {
            // Chunks that were pushed meanwhile follow.
            let pushed = std::mem::take(&mut self.outgoing);
            self.outgoing = [&buffer[count..gathered], &pushed].concat();
        }
        Ok(true)
    }

    /// Fills the buffer with chunks of the streams whose turn it is. Returns how far.
    fn gather(&mut self, buffer: &mut [u8]) -> usize {
        const LEAST: usize = CHUNK_HEAD_BYTES + CHUNK_BYTES_MAX as usize;
        let mut filled = 0;
        while buffer.len() - filled >= LEAST
            && let Some(number) = self.turns.pop_front()
        {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            stream.has_turn = false;
            let Some(socket) = stream.socket.as_ref().filter(|_| stream.may_send()) else {
                continue;
            };
            let most = stream.window.min(CHUNK_BYTES_MAX) as usize;
            let (head, rest) = buffer[filled..].split_at_mut(CHUNK_HEAD_BYTES);
            match recv(socket, &mut rest[..most], RecvFlags::DONTWAIT) {
                Ok((count @ 1.., _)) => {
                    let length = count as u32;
                    let kind = ChunkKind::Data;
                    head.copy_from_slice(&ChunkHead { stream: number, kind, length }.encode());
                    stream.window -= length;
                    stream.is_readable = count == most || stream.is_ending;
                    filled += CHUNK_HEAD_BYTES + count;
                }
                Err(Errno::AGAIN) => stream.is_readable = false,
                Err(Errno::INTR) => {}
                // Its end is closed, or broken.
                _ => self.close(number),
            }
            self.give_turn(number);
        }
        filled
    }

    /// Appends a chunk without data to what waits.
    fn push(&mut self, stream: u32, kind: ChunkKind, length: u32) {
        self.outgoing.extend_from_slice(&ChunkHead { stream, kind, length }.encode());
    }
}

impl Stream {
    fn may_send(&self) -> bool {
        self.is_readable && self.window > 0 && !self.is_closed && self.socket.is_some()
    }

    /// Passes bytes on behind those that are held. Returns how many.
    fn pass(&mut self, data: &[u8]) -> usize {
        let Some(socket) = self.socket.as_ref().filter(|_| self.held.is_empty()) else { return 0 };
        let mut passed = 0;
        while passed < data.len() && self.is_writable {
            match send_now(socket, &data[passed..]) {
                Ok(0) => self.is_writable = false,
                Ok(count) => passed += count,
                Err(_) => {
                    // Nobody takes it. Reading notices that, and closes the stream.
                    self.is_readable = true;
                    return data.len();
                }
            }
        }
        self.taken += passed as u32;
        passed
    }
}

/// Sends as much as the kernel takes now.
fn send_now(to: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    match send(to, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN) => Ok(0),
        Err(Errno::INTR) => send_now(to, bytes),
        Err(error) => Err(error),
    }
}

impl From<Errno> for TunnelEnd {
    fn from(_: Errno) -> Self {
        Self::System
    }
}
