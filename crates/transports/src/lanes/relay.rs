//! The connection of a process to the relay of another host: requests one way, answers the other way.
//!
//! Frames have the form of a lane's, in clear or sealed. They have no positions: each request has one answer, and both
//! come in their order.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_channel::BrokenPeer;
use landeck_wire::Header;
use landeck_wire::handover::{LaneKeys, LaneSilence};
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt};

use super::framing::{Framing, Spare};
use super::sealing::{CannotSeal, Opening, Sealing};
use super::silence::SilenceLooks;
use super::socket::{self, Moved};

/// Prepares a connected socket of TCP that carries such frames. The system asks the other one for a sign of life when nothing
/// has come for so long.
///
/// # Errors
/// The system's error.
pub fn prepare(socket: &OwnedFd, idle: Duration) -> Result<(), Errno> {
    socket::set_up(socket)?;
    socket::ask_when_idle(socket, idle);
    Ok(())
}

/// One end of the connection.
pub struct RelayStream {
    socket: OwnedFd,
    framing: Framing,
    spare: Spare,
    sealing: Sealing,
    opening: Opening,
    looks: SilenceLooks,
    /// The last read took as much as there was room for.
    may_have_more: bool,
    /// Frames that wait, from `begin` on.
    outgoing: Vec<u8>,
    begin: usize,
}

/// The reason why the connection has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayEnd {
    /// The other end has closed it.
    #[error("the other end has closed the connection")]
    Closed,
    /// The system reports an error.
    #[error("{0}")]
    System(Errno),
    /// It carries nothing.
    #[error("it has carried nothing for {:.1} s", f64::from(.0.silent_ms) / 1e3)]
    Silent(LaneSilence),
    /// The other end sends what no end sends.
    #[error(transparent)]
    Broken(#[from] BrokenPeer),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] CannotSeal),
}

impl RelayStream {
    /// Takes over a connected socket, of TCP to the relay or of the Unix domain to a daemon on the way.
    ///
    /// # Errors
    /// [`RelayEnd::System`], [`RelayEnd::Keys`].
    pub fn new(socket: OwnedFd, keys: &LaneKeys) -> Result<Self, RelayEnd> {
        if sockopt::socket_domain(&socket).map_err(RelayEnd::System)? != AddressFamily::UNIX {
            socket::set_up(&socket).map_err(RelayEnd::System)?;
        }
        Ok(Self {
            socket,
            framing: Framing::default(),
            spare: Spare::default(),
            sealing: Sealing::new(keys)?,
            opening: Opening::new(keys)?,
            looks: SilenceLooks::default(),
            may_have_more: false,
            outgoing: Vec::new(),
            begin: 0,
        })
    }

    /// Appends a frame, whose header says how long both parts of the data are together. [`RelayStream::flush`] sends it.
    ///
    /// # Errors
    /// [`RelayEnd::Keys`].
    pub fn push(&mut self, header: &Header, first: &[u8], second: &[u8]) -> Result<(), RelayEnd> {
        let bytes = first.len() + second.len();
        debug_assert_eq!(header.length as usize, bytes);
        self.outgoing.extend_from_slice(&header.encode());
        self.outgoing.extend_from_slice(first);
        self.outgoing.extend_from_slice(second);
        Ok(self.sealing.seal_last(&mut self.outgoing, bytes)?)
    }

    /// The bytes that wait for the network.
    pub fn unsent(&self) -> usize {
        self.outgoing.len() - self.begin
    }

    /// Sends waiting frames, as far as the network accepts them.
    ///
    /// # Errors
    /// [`RelayEnd::Closed`], [`RelayEnd::System`].
    pub fn flush(&mut self) -> Result<(), RelayEnd> {
        while self.begin < self.outgoing.len() {
            match socket::send(&self.socket, &self.outgoing[self.begin..]) {
                Ok(Moved::Bytes(bytes)) => self.begin += bytes,
                Ok(Moved::Later) => break,
                Ok(Moved::Closed) => return Err(RelayEnd::Closed),
                Err(error) => return Err(RelayEnd::System(error)),
            }
        }
        if self.begin == self.outgoing.len() {
            self.outgoing.clear();
            self.begin = 0;
        } else if self.begin > self.outgoing.len() / 2 {
            self.outgoing.drain(..self.begin);
            self.begin = 0;
        }
        Ok(())
    }

    /// Looks at a time of the monotonic clock whether the connection carries what it is given, and has the system ask the
    /// other one where nothing is given: one that waits for an answer learns that way that none can come.
    ///
    /// # Errors
    /// [`RelayEnd::Silent`] if it has carried nothing for `limit`.
    pub fn look_at_silence(&mut self, now: Duration, limit: Duration) -> Result<(), RelayEnd> {
        if self.looks.is_new() {
            socket::ask_when_idle(&self.socket, limit / 3);
        }
        let silence = self.looks.look(&self.socket, now, limit);
        silence.map_or(Ok(()), |silence| Err(RelayEnd::Silent(silence)))
    }

    /// The bytes that wait for the other end's system, and since when it acknowledges none of them, by the last look.
    pub(super) fn silence(&self) -> Option<(u64, Duration)> {
        let bytes = self.unsent() as u64 + socket::unacknowledged(&self.socket);
        self.looks.since().map(|since| (bytes, since))
    }

    /// Whether bytes are under way, or wait, that the other end is not known to have.
    pub fn has_unacknowledged(&self) -> bool {
        self.unsent() > 0 || socket::has_unacknowledged(&self.socket)
    }

    /// Reads what has come; false if nothing has.
    ///
    /// # Errors
    /// [`RelayEnd::Closed`], [`RelayEnd::System`].
    pub fn fill(&mut self) -> Result<bool, RelayEnd> {
        let room = self.framing.room(&mut self.spare);
        if room.is_empty() {
            return Ok(false);
        }
        match socket::receive(&self.socket, room) {
            Ok(Moved::Bytes(bytes)) => {
                self.may_have_more = bytes == room.len();
                self.framing.filled(bytes);
                Ok(true)
            }
            Ok(Moved::Later) => {
                self.framing.rest(&mut self.spare);
                Ok(false)
            }
            Ok(Moved::Closed) => Err(RelayEnd::Closed),
            Err(error) => Err(RelayEnd::System(error)),
        }
    }

    /// Whether more may have come than the last [`RelayStream::fill`] has read.
    pub const fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// The first frame that has come whole. [`RelayStream::consume`] goes on behind it.
    ///
    /// # Errors
    /// [`RelayEnd::Broken`].
    pub fn first(&mut self) -> Result<Option<(Header, &[u8])>, RelayEnd> {
        Ok(self.framing.first(&mut self.opening)?)
    }

    /// Goes on behind the first frame.
    pub fn consume(&mut self) {
        self.framing.consume(&self.opening);
    }
}

impl AsFd for RelayStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl std::fmt::Debug for RelayStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RelayStream")
            .field("unsent", &self.unsent())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::Kind;
    use landeck_wire::handover::Cipher;
    use rustix::net::{SocketFlags, SocketType, socketpair};

    /// Both ends of a connection.
    fn pair(cipher: Cipher) -> [RelayStream; 2] {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let end = |socket, keys: &LaneKeys| RelayStream::new(socket, keys).unwrap();
        let [send, receive] = [[1; 32], [2; 32]];
        [
            end(one, &LaneKeys { cipher, send, receive }),
            end(other, &LaneKeys { cipher, send: receive, receive: send }),
        ]
    }

    #[test]
    fn frames_cross_in_order_however_full_the_socket_is() {
        for cipher in [Cipher::Plain, Cipher::Aes256Gcm] {
            let [mut one, mut other] = pair(cipher);
            let data = vec![7u8; 60_000];
            const FRAMES: u32 = 40;
            for number in 0..FRAMES {
                let header = Header::user(Kind::RelayPut, data.len() as u32 + 3, number, 0);
                one.push(&header, &[1, 2, 3], &data).unwrap();
            }
            let mut next = 0;
            while next < FRAMES {
                one.flush().unwrap();
                other.fill().unwrap();
                while let Some((header, data)) = other.first().unwrap() {
                    assert_eq!((header.context, data.len(), data[1]), (next, 60_003, 2));
                    next += 1;
                    other.consume();
                }
            }
            assert_eq!((one.unsent(), other.fill()), (0, Ok(false)));
            drop(one);
            assert_eq!(other.fill(), Err(RelayEnd::Closed));
        }
    }
}
