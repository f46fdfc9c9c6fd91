//! A connection that this daemon opens to the port of another one: it connects and waits for the challenge. On a way over
//! gateways it asks each of them to pass it on to the next host, whose challenge follows.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_transports::lanes::silence::keep_segments_short;
use landeck_trust::lane::preamble_code;
use landeck_trust::{LaneEnd, lane_keys};
use landeck_wire::HostNumber;
use landeck_wire::handover::{Cipher, LaneKeys};
use landeck_wire::preamble::{CHALLENGE_BYTES, PREAMBLE_BYTES, Preamble, set_code};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::reactor::Reactor;

/// The time for the connection and the challenge, and for each further one. Lost first packets are sent again after one
/// second and after three.
pub(crate) const DIAL_TIME: Duration = Duration::from_millis(3_500);

/// The request to a gateway, and the secret of it and this host.
#[derive(Debug)]
pub(crate) struct Pass {
    /// The request.
    pub(crate) preamble: Preamble,
    /// The secret.
    pub(crate) secret: [u8; 32],
}

/// A connection that is being opened.
#[derive(Debug)]
pub(crate) struct Dial {
    socket: OwnedFd,
    address: SocketAddr,
    is_connected: bool,
    challenge: [u8; CHALLENGE_BYTES],
    filled: usize,
    /// The time for each step, and when that of the present one is over.
    time: Duration,
    deadline: Duration,
    /// The hosts that it leads over: this one, the gateways, and the one that is called.
    hosts: Vec<HostNumber>,
    /// The requests to the gateways that were not asked yet.
    passes: VecDeque<Pass>,
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
    /// Whether gateways pass it on.
    pub(crate) is_passed: bool,
}

impl Dial {
    /// Begins to connect, with so much time for each step, and with short packets alone where long ones do not pass. `hosts` are this one, the gateways on the way
    /// and the one that is called, and there is a request for each gateway.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn begin(
        reactor: &Reactor,
        token: u64,
        (address, is_narrow): (SocketAddr, bool),
        (hosts, passes): (Vec<HostNumber>, VecDeque<Pass>),
        (now, time): (Duration, Duration),
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
        let (challenge, deadline) = ([0; CHALLENGE_BYTES], now + time);
        let is_connected = false;
        let filled = 0;
        Ok(Self { socket, address, is_connected, challenge, filled, time, deadline, hosts, passes })
    }

    /// When the connection counts as failed.
    pub(crate) const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The hosts that it leads over: this one, the gateways, and the one that is called.
    pub(crate) fn hosts(&self) -> &[HostNumber] {
        &self.hosts
    }

    /// The step on which it is: from one of its hosts to the next.
    pub(crate) fn step(&self) -> (HostNumber, HostNumber) {
        let at = self.hosts.len() - 2 - self.passes.len();
        (self.hosts[at], self.hosts[at + 1])
    }

    /// The other end of its socket.
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
        while self.filled < CHALLENGE_BYTES {
            match recv(&self.socket, &mut self.challenge[self.filled..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok((count, _)) => self.filled += count,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.filled == CHALLENGE_BYTES
                && let Some(Pass { preamble, secret }) = self.passes.pop_front()
            {
                send_proven(&self.socket, &preamble, &self.challenge, &secret)?;
                (self.filled, self.deadline) = (0, self.deadline + self.time);
            }
        }
        Ok(true)
    }

    /// The connection whose challenge has come.
    pub(crate) fn challenged(self) -> Challenged {
        let is_passed = self.hosts.len() > 2;
        let Self { socket, address, challenge, .. } = self;
        Challenged { socket, address, challenge, is_passed }
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
        send_proven(&self.socket, preamble, &self.challenge, secret)?;
        Ok(lane_keys(secret, &self.challenge, preamble, cipher, LaneEnd::Dialler))
    }

    /// Sends the preamble.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn answer(&self, preamble: &[u8; PREAMBLE_BYTES]) -> io::Result<()> {
        send_preamble(&self.socket, preamble)
    }
}

/// Sends a preamble with its code under a secret.
fn send_proven(
    socket: &OwnedFd,
    preamble: &Preamble,
    challenge: &[u8; CHALLENGE_BYTES],
    secret: &[u8; 32],
) -> io::Result<()> {
    let mut bytes = preamble.encode();
    let code = preamble_code(secret, challenge, &bytes);
    set_code(&mut bytes, &code);
    send_preamble(socket, &bytes)
}

fn send_preamble(socket: &OwnedFd, preamble: &[u8; PREAMBLE_BYTES]) -> io::Result<()> {
    // The buffer of a new socket has room for it.
    match send(socket, preamble, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)? {
        PREAMBLE_BYTES => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}
