//! A socket at which processes of this host come, and the tokens of their connections.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::context::Context;

/// A socket that listens for processes of this host.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: OwnedFd,
    /// The token of the socket; those of connections follow.
    tokens: u64,
    last: u64,
    is_watched: bool,
}

impl Listening {
    /// The socket with this token.
    pub(crate) const fn new(socket: OwnedFd, tokens: u64) -> Self {
        Self { socket, tokens, last: 0, is_watched: false }
    }

    /// Watches the socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn watch(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_watched, true) {
            context.watch(self.socket.as_fd(), self.tokens, EventFlags::IN)?;
        }
        Ok(())
    }

    /// Accepts the next connection.
    pub(crate) fn accept(&self) -> Result<OwnedFd, Errno> {
        accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }

    /// A further descriptor, which may be given up when there is no other one.
    pub(crate) fn spare(&self) -> Option<OwnedFd> {
        self.socket.try_clone().ok()
    }

    /// The number of one more connection.
    pub(crate) const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The first token.
    pub(crate) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The token of a connection.
    pub(crate) const fn token(&self, number: u64) -> u64 {
        self.tokens + number
    }

    /// The number of the connection with a token; `None` for the socket itself.
    pub(crate) fn number(&self, token: u64) -> Option<u64> {
        token.checked_sub(self.tokens).filter(|number| *number > 0)
    }
}
