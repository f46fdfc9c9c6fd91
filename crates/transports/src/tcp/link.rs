//! One connection, from its hello to its end.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use landeck_channel::{BrokenPeer, Peer, SendError, Sink, Verdict};
use landeck_memory::Bytes;
use landeck_wire::{HEADER_BYTES, Header, ProcessId};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::framing::{DATA_BYTES_MAX, Framing, Staging};
use super::hello::{Hello, HelloError, Progress};
use super::socket::{self, Moved};

/// The most bytes of a connection that wait in this process for the network to accept them.
pub const UNSENT_BYTES_MAX: usize = 256 * 1024;

/// The reason why there is no connection (any more).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkEnd {
    /// The process of one side has left in good order. Everything that it sent has arrived.
    #[error("one of the two processes has left in good order")]
    Left,
    /// The other side closed the connection without a goodbye, or its process ended.
    #[error("the other side closed the connection")]
    Closed,
    /// The other side closed the connection during the hello.
    #[error(
        "the other side closed the connection during the hello: it belongs to another job, or does not expect this process"
    )]
    Refused,
    /// The hello failed.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// The other side was not reached, or did not finish the hello, in time.
    #[error("there was no connection in time: check that the other side runs and can be reached")]
    TimedOut,
    /// The network failed.
    #[error("the network failed: {0}")]
    Network(#[from] Errno),
    /// The other side sent something that no sender sends.
    #[error(transparent)]
    Broken(#[from] BrokenPeer),
}

/// A connection.
pub(super) struct Link {
    key: u64,
    stage: Stage,
    /// The socket; `None` before the other side has come, and after the connection has ended.
    socket: Option<OwnedFd>,
    /// The events that the socket is watched for.
    watched: Option<(u64, EventFlags)>,
    /// When the connection must be open.
    deadline: Instant,
    framing: Framing,
    unsent: VecDeque<u8>,
    sequence: u16,
    /// This side has said goodbye, or will do so once everything unsent is sent.
    has_left: bool,
    /// The reason why nothing can be sent any more, while earlier data of the other side are still read.
    mute: Option<Errno>,
    /// The process that owns the connection; in a forked child that is the parent.
    owner: u32,
}

/// The stage of a connection.
pub(super) enum Stage {
    /// The other side is to connect to us.
    Awaited,
    /// The hello is in progress.
    Greeting(Hello),
    /// The other side has proven its identity.
    Open(ProcessId),
    /// There is no connection any more.
    Ended(LinkEnd),
}

impl Link {
    /// Creates a place for a connection that the other side is to make.
    pub(super) fn awaited(key: u64, deadline: Instant) -> Self {
        Self {
            key,
            stage: Stage::Awaited,
            socket: None,
            watched: None,
            deadline,
            framing: Framing::default(),
            unsent: VecDeque::new(),
            sequence: 0,
            has_left: false,
            mute: None,
            owner: std::process::id(),
        }
    }

    /// Creates a connection whose hello begins. `key` identifies it in events.
    pub(super) fn greeting(key: u64, socket: OwnedFd, hello: Hello, deadline: Instant) -> Self {
        let mut link = Self::awaited(key, deadline);
        link.stage = Stage::Greeting(hello);
        link.socket = Some(socket);
        link
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Whether it is not open yet.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Greeting(_))
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it has ended and no message that arrived before waits here.
    pub(super) fn is_gone(&self) -> bool {
        self.is_ended() && !matches!(self.framing.first(), Ok(Some(_)))
    }

    /// Whether the other side, or ours, has left in good order.
    pub(super) fn has_left(&self) -> bool {
        matches!(self.stage, Stage::Ended(LinkEnd::Left)) && self.is_gone()
    }

    /// Whether bytes wait for the network. After a goodbye, also whether the other host is not known to have
    /// everything: a socket that is closed before may lose bytes.
    pub(super) fn has_unsent(&self) -> bool {
        let is_under_way = || self.socket.as_ref().is_some_and(socket::has_unacknowledged);
        !self.unsent.is_empty() || self.has_left && self.mute.is_none() && is_under_way()
    }

    /// Says goodbye behind everything that was sent before.
    pub(super) fn leave(&mut self) {
        let is_nobody_there = matches!(self.stage, Stage::Awaited) && self.unsent.is_empty();
        if self.has_left || self.is_ended() || self.mute.is_some() {
            return;
        }
        self.has_left = true;
        if is_nobody_there {
            return self.finish(LinkEnd::Left);
        }
        self.unsent.extend(Header::GOODBYE.encode());
        self.flush();
    }

    /// Ends the connection if the other host has been silent for so long. Data that have come from it are still read.
    pub(super) fn end_if_silent(&mut self, longest: Duration) {
        if let (Stage::Open(_), Some(socket), None) = (&self.stage, &self.socket, self.mute)
            && socket::is_silent(socket, longest)
        {
            socket::cut(socket);
            self.fall_silent(Errno::TIMEDOUT);
        }
    }

    /// Limits the time of an opening.
    pub(super) fn hasten(&mut self, deadline: Instant) {
        self.deadline = self.deadline.min(deadline);
    }

    /// Sends a message, or keeps the bytes that the network does not accept now.
    pub(super) fn try_send(&mut self, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        if !self.unsent.is_empty() {
            self.flush();
        }
        if self.is_ended() || self.has_left {
            return Err(SendError::Gone);
        }
        if self.mute.is_some() {
            return Err(SendError::Full); // until it is known how the other side ended
        }
        let header = Header { sequence: self.sequence, length: data.len() as u32, ..*header };
        let head = header.encode();
        let mut sent = 0;
        if let (Stage::Open(_), Some(socket), true) =
            (&self.stage, &self.socket, self.unsent.is_empty())
        {
            match socket::send_both(socket, &head, data) {
                Ok(Moved::Bytes(bytes)) => sent = bytes,
                Ok(_) => {}
                Err(error) => {
                    self.fall_silent(error);
                    return Err(SendError::Full);
                }
            }
        } else if self.unsent.len() + HEADER_BYTES + data.len() > UNSENT_BYTES_MAX {
            return Err(SendError::Full);
        }
        self.keep(&head, data, sent);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// Continues the hello. Returns the process on the other side once it is proven.
    pub(super) fn greet(&mut self) -> Option<ProcessId> {
        match self.try_greet() {
            Ok(process) => process,
            // A socket that is closed with bytes unread resets the connection.
            Err(LinkEnd::Network(Errno::CONNRESET | Errno::PIPE)) => {
                self.finish(LinkEnd::Refused);
                None
            }
            Err(end) => {
                self.finish(end);
                None
            }
        }
    }

    /// Opens the connection after the hello: the other side has proven its identity and is admitted.
    pub(super) fn open(&mut self, process: ProcessId) {
        if let Stage::Greeting(hello) = &mut self.stage {
            hello.admit();
            for byte in hello.output().iter().rev() {
                self.unsent.push_front(*byte);
            }
        }
        self.stage = Stage::Open(process);
        self.flush();
    }

    /// Replaces a connection that was awaited, and takes its unsent bytes.
    pub(super) fn replace(&mut self, awaited: &mut Self) {
        self.key = awaited.key;
        self.unsent = std::mem::take(&mut awaited.unsent);
        self.sequence = awaited.sequence;
        self.has_left = awaited.has_left;
    }

    /// Sends waiting bytes, as far as the network accepts them.
    pub(super) fn flush(&mut self) {
        if self.is_opening() {
            return;
        }
        while let (Some(socket), false) = (&self.socket, self.unsent.is_empty()) {
            match socket::send(socket, self.unsent.as_slices().0) {
                Ok(Moved::Bytes(bytes)) => drop(self.unsent.drain(..bytes)),
                Ok(_) => return,
                Err(error) => self.fall_silent(error),
            }
        }
        self.unsent = VecDeque::new(); // frees the memory
        if let (Some(socket), true) = (&self.socket, self.has_left) {
            socket::end_sending(socket);
        }
    }

    /// Reads the data that have arrived, at most one staging memory. Returns whether there were any.
    pub(super) fn read(&mut self, staging: &mut Staging) -> bool {
        let Some(socket) = &self.socket else { return false };
        let room = self.framing.room(staging);
        if room.is_empty() {
            return false;
        }
        match socket::receive(socket, room) {
            Ok(Moved::Bytes(bytes)) => {
                self.framing.filled(bytes);
                return true;
            }
            Ok(Moved::Later) => {}
            Ok(Moved::Closed) => self.finish(self.mute.map_or(LinkEnd::Closed, LinkEnd::Network)),
            Err(error) => self.finish(error.into()),
        }
        false
    }

    /// Offers the messages that have arrived. Returns whether the sink took any, and whether it holds one.
    pub(super) fn offer(
        &mut self,
        from: Peer,
        sink: &mut dyn Sink,
        staging: &mut Staging,
    ) -> (bool, bool) {
        let mut any = false;
        loop {
            match self.framing.first() {
                Ok(Some((header, data))) => {
                    let length = data.len();
                    if sink.arrive(from, &header, Bytes::from(data)) == Verdict::Held {
                        return (any, true);
                    }
                    any = true;
                    self.framing.consume(length);
                }
                Ok(None) => break,
                Err(broken) => {
                    sink.broken(from, broken.clone());
                    self.framing.clear(staging);
                    self.finish(LinkEnd::Closed);
                    self.stage = Stage::Ended(broken.into());
                    break;
                }
            }
        }
        if self.is_ended() {
            if self.framing.says_goodbye() {
                self.stage = Stage::Ended(LinkEnd::Left);
            }
            self.framing.clear(staging); // the rest of a message will not come
        }
        self.framing.rest(staging);
        (any, false)
    }

    /// Ends the connection; messages that have arrived stay until they are offered. After our goodbye the other side
    /// may close at any time.
    pub(super) fn finish(&mut self, end: LinkEnd) {
        self.socket = None;
        self.watched = None;
        self.unsent = VecDeque::new();
        if !self.is_ended() {
            self.stage = Stage::Ended(if self.has_left { LinkEnd::Left } else { end });
        }
    }

    /// Drops the data that have arrived, and frees the memory.
    pub(super) fn forget(&mut self, staging: &mut Staging) {
        self.framing.clear(staging);
    }

    /// Watches the socket for the events that it now waits for.
    pub(super) fn watch(&mut self, epoll: &OwnedFd) {
        let wanted = Some(self.interest()).filter(|flags| !flags.is_empty());
        let wanted = wanted.map(|flags| (self.key, flags));
        let Some(socket) = &self.socket else { return };
        if wanted == self.watched {
            return;
        }
        let result = match (self.watched, wanted) {
            (None, Some((key, flags))) => epoll::add(epoll, socket, EventData::new_u64(key), flags),
            (Some(_), Some((key, flags))) => {
                epoll::modify(epoll, socket, EventData::new_u64(key), flags)
            }
            (_, None) => epoll::delete(epoll, socket),
        };
        match result {
            Ok(()) => self.watched = wanted,
            Err(error) => self.finish(error.into()),
        }
    }

    fn interest(&self) -> EventFlags {
        let has_output = match &self.stage {
            Stage::Greeting(hello) => !hello.output().is_empty(),
            _ => !self.unsent.is_empty(),
        };
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !self.framing.is_full());
        flags.set(EventFlags::OUT, has_output);
        flags
    }

    fn try_greet(&mut self) -> Result<Option<ProcessId>, LinkEnd> {
        let (Some(socket), Stage::Greeting(hello)) = (&self.socket, &mut self.stage) else {
            return Ok(None);
        };
        loop {
            while !hello.output().is_empty() {
                match socket::send(socket, hello.output())? {
                    Moved::Bytes(bytes) => hello.sent(bytes),
                    _ => return Ok(None),
                }
            }
            match socket::receive(socket, hello.room())? {
                Moved::Bytes(bytes) => {
                    if let Progress::Proven(process) = hello.filled(bytes)? {
                        return Ok(Some(process));
                    }
                }
                Moved::Later => return Ok(None),
                Moved::Closed => return Err(LinkEnd::Refused),
            }
        }
    }

    /// Keeps the rest of a message of which so many bytes were sent.
    fn keep(&mut self, head: &[u8], data: Bytes<'_>, sent: usize) {
        self.unsent.extend(head.iter().skip(sent));
        let mut rest = data.part(sent.saturating_sub(head.len()), DATA_BYTES_MAX);
        let mut piece = [0; 4096];
        while !rest.is_empty() {
            let bytes = rest.copy_to_slice(&mut piece);
            self.unsent.extend(&piece[..bytes]);
            rest = rest.part(bytes, DATA_BYTES_MAX);
        }
    }

    /// Records that nothing can be sent any more. Earlier data of the other side are read to their end, which tells
    /// whether it has left.
    fn fall_silent(&mut self, error: Errno) {
        self.unsent = VecDeque::new();
        self.mute = Some(error);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if std::process::id() != self.owner {
            return;
        }
        self.flush();
        if let Some(socket) = &self.socket {
            socket::close_gently(socket);
        }
    }
}
