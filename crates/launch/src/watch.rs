//! The descriptors that the launcher waits for, each with a number that identifies it.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// A set of watched descriptors.
#[derive(Debug)]
pub(crate) struct Watch {
    epoll: OwnedFd,
    /// The number of each watched descriptor.
    names: HashMap<RawFd, u64>,
    /// Descriptors that are always ready, as files are.
    always: HashMap<u64, RawFd>,
}

impl Watch {
    /// Creates an empty set.
    pub(crate) fn new() -> io::Result<Watch> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Watch { epoll, names: HashMap::new(), always: HashMap::new() })
    }

    /// Watches a descriptor for `flags` from now on; empty flags end that.
    pub(crate) fn set(&mut self, name: u64, what: &impl AsFd, flags: EventFlags) -> io::Result<()> {
        let number = what.as_fd().as_raw_fd();
        let is_watched = self.names.contains_key(&number);
        if flags.is_empty() {
            self.clear(name, what);
            return Ok(());
        }
        if is_watched || self.always.contains_key(&name) {
            return Ok(());
        }
        match epoll::add(&self.epoll, what, EventData::new_u64(name), flags) {
            Ok(()) => drop(self.names.insert(number, name)),
            Err(Errno::PERM) => drop(self.always.insert(name, number)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Stops watching a descriptor.
    pub(crate) fn clear(&mut self, name: u64, what: &impl AsFd) {
        self.always.remove(&name);
        self.forget(what);
    }

    /// Stops watching a descriptor that is about to close.
    pub(crate) fn forget(&mut self, what: &impl AsFd) {
        if self.names.remove(&what.as_fd().as_raw_fd()).is_some() {
            // It was added before, so this can fail only if it is already closed.
            let _ = epoll::delete(&self.epoll, what);
        }
    }

    /// Waits until descriptors are ready, and returns their numbers.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        let timeout = if self.always.is_empty() { timeout } else { Some(Duration::ZERO) };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut space = [MaybeUninit::<Event>::uninit(); 64];
        let mut ready: Vec<u64> = self.always.keys().copied().collect();
        match epoll::wait(&self.epoll, &mut space[..], timeout.as_ref()) {
            Ok((events, _)) => ready.extend(events.iter().map(|event| event.data.u64())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::pipe;
    use std::fs::File;
    use std::io::Write;

    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn a_descriptor_that_is_ready_is_named() {
        let (reader, writer) = pipe().unwrap();
        let mut watch = Watch::new().unwrap();
        watch.set(7, &reader, EventFlags::IN).unwrap();
        watch.set(7, &reader, EventFlags::IN).unwrap();
        assert_eq!(watch.wait(AT_ONCE).unwrap(), []);
        File::from(writer).write_all(b"x").unwrap();
        assert_eq!(watch.wait(None).unwrap(), [7]);
        watch.set(7, &reader, EventFlags::empty()).unwrap();
        assert_eq!(watch.wait(AT_ONCE).unwrap(), []);
    }

    #[test]
    fn a_file_is_always_ready() {
        let file = File::open("/etc/passwd").unwrap();
        let mut watch = Watch::new().unwrap();
        watch.set(9, &file, EventFlags::IN).unwrap();
        assert_eq!(watch.wait(None).unwrap(), [9]);
        watch.clear(9, &file);
        assert_eq!(watch.wait(AT_ONCE).unwrap(), []);
    }
}
