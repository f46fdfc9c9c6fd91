//! A connection that this daemon opens to the port of another one: it connects and waits for the challenge.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_transports::lanes::silence::keep_segments_short;
use landeck_trust::lane::preamble_code;
use landeck_trust::{LaneEnd, lane_keys};
use landeck_wire::handover::{Cipher, LaneKeys};
use landeck_wire::preamble::{CHALLENGE_BYTES, PREAMBLE_BYTES, Preamble, set_code};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::reactor::Reactor;

/// The time for the connection and the challenge. Lost first packets are sent again after one second and after three.
pub(crate) const DIAL_TIME: Duration = Duration::from_millis(3_500);

/// A connection that is being opened.
#[derive(Debug)]
pub(crate) struct Dial {
    socket: OwnedFd,
    address: SocketAddr,
    is_connected: bool,
    challenge: [u8; CHALLENGE_BYTES],
    filled: usize,
    deadline: Duration,
}

/// A connection whose challenge has come. The preamble is to be sent next.
#[derive(Debug)]
pub(crate) struct Challenged {
    /// The connection.
    pub(crate) socket: OwnedFd,
    /// The other end.
    pub(crate) address: SocketAddr,
    /// The random bytes of the other side.
    pub(crate) challenge: [u8; CHALLENGE_BYTES],
}

impl Dial {
    /// Begins to connect, with short packets alone where long ones do not pass.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn begin(
        reactor: &Reactor,
        token: u64,
        (address, is_narrow): (SocketAddr, bool),
        now: Duration,
    ) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        let _ = set_tcp_nodelay(&socket, true);
        if is_narrow {
            keep_segments_short(&socket);
        }
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        reactor.watch(&socket, token, EventFlags::OUT)?;
        let (challenge, deadline) = ([0; CHALLENGE_BYTES], now + DIAL_TIME);
        Ok(Self { socket, address, is_connected: false, challenge, filled: 0, deadline })
    }

    /// When the connection counts as failed.
    pub(crate) const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The other end.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Goes on with the connection, whose descriptor is ready. Returns whether the challenge has come.
    ///
    /// # Errors
    /// The kernel's error; the other side has ended the connection.
    pub(crate) fn go_on(&mut self, reactor: &Reactor, token: u64) -> io::Result<bool> {
        if !self.is_connected {
            match socket_error(&self.socket)? {
                Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
            self.is_connected = true;
            reactor.rewatch(&self.socket, token, EventFlags::IN)?;
        }
        match recv(&self.socket, &mut self.challenge[self.filled..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok((count, _)) => self.filled += count,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.filled == CHALLENGE_BYTES)
    }

    /// The connection whose challenge has come.
    pub(crate) fn challenged(self) -> Challenged {
        Challenged { socket: self.socket, address: self.address, challenge: self.challenge }
    }
}

impl Challenged {
    /// Sends the preamble of a lane with its code under the secret of the two hosts; returns the keys of the lane.
    ///
    /// # Errors
    /// As [`Challenged::answer`].
    pub(crate) fn prove(
        &self,
        preamble: &Preamble,
        secret: &[u8; 32],
        cipher: Cipher,
    ) -> io::Result<LaneKeys> {
        let mut bytes = preamble.encode();
        let code = preamble_code(secret, &self.challenge, &bytes);
        set_code(&mut bytes, &code);
        self.answer(&bytes)?;
        Ok(lane_keys(secret, &self.challenge, preamble, cipher, LaneEnd::Dialler))
    }

    /// Sends the preamble.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn answer(&self, preamble: &[u8; PREAMBLE_BYTES]) -> io::Result<()> {
        // The buffer of a new socket has room for it.
        match send(&self.socket, preamble, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)? {
            PREAMBLE_BYTES => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
