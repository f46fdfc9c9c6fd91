//! The descriptors behind the numbers that the door knows.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_protocols::door::{Listener, MemoryNumber, Visitor};

use super::DRIVER_TOKENS;
use crate::index::Entry;

/// The descriptors of an agent.
pub(super) struct Sockets {
    /// The joining socket.
    job: OwnedFd,
    /// The joining socket in the user's index, if it has one there.
    entry: Option<Entry>,
    pub(super) names: HashMap<Listener, OwnedFd>,
    pub(super) connections: HashMap<Visitor, Connection>,
    pub(super) memories: HashMap<MemoryNumber, OwnedFd>,
    watched: HashMap<u64, Watched>,
    /// The last number given out, as a token or to the door.
    last_number: u64,
    /// While set, nobody is let in until this time, counted from the agent's start.
    pub(super) shut_until: Option<Duration>,
}

/// The meaning of an agent's own token of the epoll descriptor.
#[derive(Clone, Copy)]
pub(super) enum Watched {
    /// The joining socket.
    Job,
    /// The joining socket in the user's index.
    Entry,
    /// The socket of a published name, whose number is the token.
    Name(Listener),
    /// A connection, whose number is the token, or the process at its other end.
    Connection(Visitor),
}

/// A connection to a visitor.
pub(super) struct Connection {
    /// The connection, or the pidfd of the process if that is watched in its place.
    pub(super) socket: OwnedFd,
    /// The PID of the process at the other end.
    pub(super) pid: u32,
    /// The pidfd of the process at the other end and its token, if the process is watched besides the connection.
    pub(super) process: Option<(u64, OwnedFd)>,
}

impl Sockets {
    pub(super) fn new(job: OwnedFd, entry: Option<Entry>) -> Self {
        Self {
            job,
            entry,
            names: HashMap::new(),
            connections: HashMap::new(),
            memories: HashMap::new(),
            watched: HashMap::new(),
            last_number: DRIVER_TOKENS,
            shut_until: None,
        }
    }

    pub(super) fn new_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn new_token(&mut self, watched: Watched) -> u64 {
        let token = self.new_number();
        self.watched.insert(token, watched);
        token
    }

    pub(super) fn new_visitor(&mut self) -> Visitor {
        let visitor = Visitor(self.new_number());
        self.watched.insert(visitor.0, Watched::Connection(visitor));
        visitor
    }

    pub(super) fn new_listener(&mut self) -> Listener {
        let listener = Listener(self.new_number());
        self.watched.insert(listener.0, Watched::Name(listener));
        listener
    }

    pub(super) fn forget_token(&mut self, token: u64) {
        self.watched.remove(&token);
    }

    /// The meaning of a token that is still in use.
    pub(super) fn watched(&self, token: u64) -> Option<Watched> {
        self.watched.get(&token).copied()
    }

    /// The listening socket that this token stands for; `None` for a connection.
    pub(super) fn listener(&self, watched: Watched) -> Option<&OwnedFd> {
        match watched {
            Watched::Job => Some(&self.job),
            Watched::Entry => self.entry.as_ref().map(Entry::socket),
            Watched::Name(listener) => self.names.get(&listener),
            Watched::Connection(_) => None,
        }
    }

    /// All listening sockets with their tokens.
    pub(super) fn listeners(&self) -> impl Iterator<Item = (u64, &OwnedFd)> {
        self.watched
            .iter()
            .filter_map(|(&token, &watched)| self.listener(watched).map(|socket| (token, socket)))
    }

    /// Stops listening for a name.
    pub(super) fn deafen(&mut self, listener: Listener) {
        self.forget_token(listener.0);
        self.names.remove(&listener);
    }

    /// Closes a connection.
    pub(super) fn close(&mut self, visitor: Visitor) {
        self.forget_token(visitor.0);
        let closed = self.connections.remove(&visitor);
        if let Some((token, _pidfd)) = closed.and_then(|closed| closed.process) {
            self.forget_token(token);
        }
    }
}

impl Watched {
    /// The name if this is the socket of one.
    pub(super) fn name(self) -> Option<Listener> {
        match self {
            Self::Name(listener) => Some(listener),
            Self::Job | Self::Entry | Self::Connection(_) => None,
        }
    }
}
