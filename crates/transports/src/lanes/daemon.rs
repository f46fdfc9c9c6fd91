//! The socket to the daemon of this host, which opens lanes.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use landeck_wire::ControlMessage;
use landeck_wire::handover::Handover;
use rustix::io::Errno;
use rustix::net::{self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};

/// The most descriptors that a message is received with; all but the first are closed.
const DESCRIPTORS_MAX: usize = 4;

/// The socket to the daemon.
pub(super) struct DaemonSocket {
    /// `None` when the daemon has closed its end. Nothing fails by that: the lanes go on.
    socket: Option<OwnedFd>,
    /// Messages for which the socket had no room: at most a few for each far process.
    waiting: VecDeque<Handover>,
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
        Self { socket: Some(socket), waiting: VecDeque::new() }
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
