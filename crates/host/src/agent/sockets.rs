//! The descriptors behind the numbers that the door knows.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_groups::door::{Listener, Memory, Visitor};

use super::DRIVER_TOKENS;
use crate::index::Entry;

/// The descriptors of an agent.
pub(super) struct Sockets {
    /// The joining socket.
    job: OwnedFd,
    /// The same in the user's index, where there is one.
    entry: Option<Entry>,
    pub(super) names: HashMap<Listener, OwnedFd>,
    pub(super) connections: HashMap<Visitor, Connection>,
    pub(super) memories: HashMap<Memory, OwnedFd>,
    watched: HashMap<u64, Watched>,
    /// The number given out last, as a token or to the door.
    last_number: u64,
    /// Until when nobody is let in, since the agent began.
    pub(super) shut_until: Option<Duration>,
}

/// What an own token of the epoll descriptor stands for.
#[derive(Clone, Copy)]
pub(super) enum Watched {
    /// The joining socket.
    Job,
    /// The same in the index.
    Entry,
    /// The socket of a published name, whose number is the token.
    Name(Listener),
    /// A connection, whose number is the token, or the process at its other end.
    Connection(Visitor),
}

/// A connection of a visitor.
pub(super) struct Connection {
    /// The connection; where the process is watched in its place, what stands for that.
    pub(super) socket: OwnedFd,
    /// The process at its other end.
    pub(super) pid: u32,
    /// The process at its other end with the token under which it is watched, where it is watched
    /// besides.
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

    /// What a token stands for, if it still stands for anything.
    pub(super) fn watched(&self, token: u64) -> Option<Watched> {
        self.watched.get(&token).copied()
    }

    /// The socket that is listened at there, if there is one.
    pub(super) fn listener(&self, watched: Watched) -> Option<&OwnedFd> {
        match watched {
            Watched::Job => Some(&self.job),
            Watched::Entry => self.entry.as_ref().map(Entry::socket),
            Watched::Name(listener) => self.names.get(&listener),
            Watched::Connection(_) => None,
        }
    }

    /// All sockets that are listened at, with their tokens.
    pub(super) fn listeners(&self) -> impl Iterator<Item = (u64, &OwnedFd)> {
        self.watched
            .iter()
            .filter_map(|(&token, &watched)| self.listener(watched).map(|socket| (token, socket)))
    }

    /// Listens no more under a name.
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
    /// The name whose socket this is; none for all else.
    pub(super) fn name(self) -> Option<Listener> {
        match self {
            Self::Name(listener) => Some(listener),
            Self::Job | Self::Entry | Self::Connection(_) => None,
        }
    }
}
