//! The connection of a process of this host to its daemon: whole messages over a Unix socket, sockets beside them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landeck_joining::peer;
use landeck_memory::passing;
use landeck_protocols::door::{ObjectQuestion, Question};
use landeck_wire::handover::Handover;
use landeck_wire::{ControlMessage, SegmentId};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, socket_with,
};

use crate::reactor::Reactor;

/// The messages that are read from one process in one turn of the loop.
const MESSAGES_PER_TURN: usize = 64;
/// The messages that may wait for one process. A process that reads none of so many is broken.
const WAITING_MAX: usize = 1 << 16;

/// The name of the abstract socket at which the processes of a segment reach their daemon.
pub fn process_socket_name(segment: SegmentId) -> String {
    format!("landeckd-{}-{segment}", rustix::process::geteuid().as_raw())
}

/// Listens for the processes of a segment.
///
/// # Errors
/// The kernel's error.
pub(crate) fn listen_for(segment: SegmentId) -> io::Result<OwnedFd> {
    const BACKLOG: i32 = 1024;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(process_socket_name(segment).as_bytes())?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A message for a process, with the socket that goes with it.
type Waiting = (Vec<u8>, Option<OwnedFd>);

/// A message of a process.
#[derive(Debug)]
pub(crate) enum FromProcess {
    /// About its lanes.
    Handover(Handover),
    /// A question about names, on a connection of its own.
    Name(ObjectQuestion),
}

/// The connection of one process.
#[derive(Debug)]
pub(crate) struct ProcessSocket {
    socket: OwnedFd,
    waiting: VecDeque<Waiting>,
    waits_for_room: bool,
}

impl ProcessSocket {
    /// Accepts the next connection, if it is one of the same user. `Ok(None)`: another user's was closed.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::WouldBlock`] if no connection waits.
    pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<Self>> {
        let socket = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        let (user, _) = peer::credentials(&socket)?;
        let is_own = user == rustix::process::geteuid().as_raw();
        Ok(is_own.then(|| Self { socket, waiting: VecDeque::new(), waits_for_room: false }))
    }

    /// Reads the messages that have come. `Err` if the process has gone, or sends what no process sends.
    pub(crate) fn read(&self, messages: &mut Vec<FromProcess>) -> Result<(), ()> {
        let mut bytes = [0; Question::BYTES_MAX + 1];
        for _ in 0..MESSAGES_PER_TURN {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(()),
                Ok((_, length)) => {
                    let bytes = bytes.get(..length).ok_or(())?;
                    // No message about lanes begins with the mark of questions.
                    messages.push(match Question::decode(bytes) {
                        Ok(Question::Object(question)) => FromProcess::Name(question),
                        _ => FromProcess::Handover(Handover::decode(bytes).map_err(drop)?),
                    });
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(()),
            }
        }
        Ok(())
    }

    /// Sends a message, or keeps it until there is room. `Err` if the process has gone or does not read.
    pub(crate) fn send(
        &mut self,
        reactor: &Reactor,
        token: u64,
        message: &Handover,
        socket: Option<OwnedFd>,
    ) -> Result<(), ()> {
        self.send_bytes(reactor, token, message.encode(), socket)
    }

    /// Sends bytes, or keeps them until there is room. `Err` if the process has gone or does not read.
    pub(crate) fn send_bytes(
        &mut self,
        reactor: &Reactor,
        token: u64,
        bytes: Vec<u8>,
        socket: Option<OwnedFd>,
    ) -> Result<(), ()> {
        self.waiting.push_back((bytes, socket));
        self.flush(reactor, token)?;
        if self.waiting.len() > WAITING_MAX { Err(()) } else { Ok(()) }
    }

    /// Sends what waits. `Err` if the process has gone.
    pub(crate) fn flush(&mut self, reactor: &Reactor, token: u64) -> Result<(), ()> {
        while let Some((bytes, beside)) = self.waiting.front() {
            let descriptors: Vec<BorrowedFd<'_>> = beside.iter().map(AsFd::as_fd).collect();
            match passing::pass(&self.socket, bytes, &descriptors, SendFlags::DONTWAIT) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(Errno::INTR) => {}
                // Too many descriptors on their way count as full.
                Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS) => break,
                Err(_) => return Err(()),
            }
        }
        let waits = !self.waiting.is_empty();
        if waits != self.waits_for_room {
            self.waits_for_room = waits;
            let room = if waits { EventFlags::OUT } else { EventFlags::empty() };
            reactor.rewatch(&self.socket, token, EventFlags::IN | room).map_err(drop)?;
        }
        Ok(())
    }

    /// The sockets that wait for the process.
    pub(crate) fn waiting_sockets(&self) -> usize {
        self.waiting.iter().filter(|(_, socket)| socket.is_some()).count()
    }
}

impl AsFd for ProcessSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
