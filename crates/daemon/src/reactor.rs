//! The descriptors that the daemon's loop waits for, each with a token.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// The first token of jobs; smaller ones are the daemon's own.
pub(crate) const JOB_TOKENS: u64 = 1 << 32;

/// A set of watched descriptors, and the source of the daemon's own tokens.
#[derive(Debug)]
pub(crate) struct Reactor {
    epoll: OwnedFd,
    last_token: u64,
}

impl Reactor {
    /// Creates an empty set.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, last_token: 0 })
    }

    /// A token that no other descriptor of the daemon has had.
    pub(crate) const fn token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Watches a descriptor from now on. Closing it ends that.
    pub(crate) fn watch(
        &self,
        descriptor: impl AsFd,
        token: u64,
        wanted: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(token), wanted)?)
    }

    /// Changes the events for which a descriptor is watched.
    pub(crate) fn rewatch(
        &self,
        descriptor: impl AsFd,
        token: u64,
        wanted: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, EventData::new_u64(token), wanted)?)
    }

    /// Ends the watch of a descriptor.
    pub(crate) fn unwatch(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, descriptor)?)
    }

    /// Waits until descriptors are ready or the time is over, and adds their tokens and events to `ready`.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        ready: &mut Vec<(u64, EventFlags)>,
    ) -> io::Result<()> {
        const EVENTS: usize = 256;
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut space = [MaybeUninit::<Event>::uninit(); EVENTS];
        match epoll::wait(&self.epoll, &mut space[..], timeout.as_ref()) {
            Ok((events, _)) => {
                ready.extend(events.iter().map(|event| (event.data.u64(), event.flags)));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
