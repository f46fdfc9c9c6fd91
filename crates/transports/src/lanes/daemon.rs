//! The socket to the daemon of this host, which opens lanes.
//!
//! A daemon may end and start again. The process connects anew when it has seen the end, and tries some times more if nobody
//! listens.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_wire::ControlMessage;
use landeck_wire::handover::Handover;
use rustix::io::Errno;
use rustix::net::{self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};

/// The most descriptors that a message is received with; all but the first are closed.
const DESCRIPTORS_MAX: usize = 4;

/// How often a process connects anew before a daemon has welcomed it.
const CONNECTIONS_MAX: u32 = 10;
/// The time between two of these attempts. The first one is made at once.
const CONNECTION_INTERVAL: Duration = Duration::from_millis(300);

/// Connects to the daemon anew, without waiting for anything.
pub(super) type Connect = Box<dyn FnMut() -> io::Result<OwnedFd> + Send>;

/// The socket to the daemon.
pub(super) struct DaemonSocket {
    /// `None` when the daemon has closed its end. Nothing fails by that: the lanes go on.
    socket: Option<OwnedFd>,
    /// Messages for which the socket had no room: at most a few for each far process.
    waiting: VecDeque<Handover>,
    /// `None` if the process connects only once.
    connect: Option<Connect>,
    connections_left: u32,
    /// The time of the next attempt.
    due: Duration,
}

/// A message of the daemon.
pub(super) enum Heard {
    /// A message, and the descriptor beside it.
    Message(Handover, Option<OwnedFd>),
    /// Bytes that no daemon sends.
    Noise,
    /// The daemon has closed its end of this socket.
    End(OwnedFd),
}

impl DaemonSocket {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket: Some(socket),
            waiting: VecDeque::new(),
            connect: None,
            connections_left: CONNECTIONS_MAX,
            due: Duration::ZERO,
        }
    }

    /// Connects so when the daemon has ended.
    pub(super) fn connect_by(&mut self, connect: Connect) {
        self.connect = Some(connect);
    }

    /// The daemon has welcomed this process.
    pub(super) fn welcomed(&mut self) {
        self.connections_left = CONNECTIONS_MAX;
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether the daemon has ended and the process will connect anew.
    pub(super) const fn is_missed(&self) -> bool {
        self.socket.is_none() && self.connect.is_some() && self.connections_left > 0
    }

    /// Connects anew if that is due. Returns the socket if there is one now.
    pub(super) fn reconnect(&mut self, now: Duration) -> Option<&OwnedFd> {
        let is_due = self.is_missed() && now >= self.due;
        let connect = self.connect.as_mut().filter(|_| is_due)?;
        self.due = now + CONNECTION_INTERVAL;
        self.connections_left -= 1;
        self.socket = connect().ok();
        self.socket.as_ref()
    }

    /// Sends a message, now or when the socket has room.
    pub(super) fn say(&mut self, message: Handover) {
        self.waiting.push_back(message);
        self.flush();
    }

    /// Sends waiting messages, as far as the socket has room.
    #[inline]
    pub(super) fn flush(&mut self) {
        while let Some(message) = self.waiting.front() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = match &self.socket {
                Some(socket) => net::send(socket, &message.encode(), flags),
                None => return self.waiting.clear(),
            };
            match sent {
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => return,
                // If the daemon is gone, reading reports it.
                _ => self.waiting.pop_front(),
            };
        }
    }

    /// Whether messages wait for room, and where.
    pub(super) fn waits_at(&self) -> (bool, Option<&OwnedFd>) {
        (!self.waiting.is_empty(), self.socket.as_ref())
    }

    /// The next message of the daemon; `None` if there is none.
    pub(super) fn hear(&mut self) -> Option<Heard> {
        let socket = self.socket.as_ref()?;
        let mut bytes = [0; Handover::BYTES_MAX + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let count = match net::recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(message) => message.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Err(_) => 0,
        };
        if count == 0 {
            self.waiting.clear();
            return self.socket.take().map(Heard::End);
        }
        let mut descriptors: Vec<OwnedFd> = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        let first = descriptors.into_iter().next();
        let message = Handover::decode(&bytes[..count]);
        Some(message.map_or(Heard::Noise, |it| Heard::Message(it, first)))
    }
}
