//! Telling of messages that wait in a mailbox: a descriptor that can be polled, a function that is
//! called. Whoever of the process receives writes; the progress thread does while nobody calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use landeck_memory::fork;
use landeck_transports::wake_thread::without_signals;
use rustix::event::{EventfdFlags, eventfd};

use crate::error::{MailboxError, Result};
use crate::named_group::Subscription;
use landeck_engine::Shared;

/// What tells of the messages of one mailbox.
pub(super) struct Availability {
    /// Counts the messages that wait: each read takes one.
    waiting: OwnedFd,
    /// Counts arrivals for the thread that calls.
    arrivals: Arc<OwnedFd>,
    is_over: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
}

impl Availability {
    /// Begins to tell of what comes, and of what waits already.
    pub(super) fn new(shared: &Arc<Shared>, context: u32) -> Result<Self> {
        if !shared.has_helper() {
            return Err(MailboxError::NoProgressThread.into());
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let counter =
            |flags| eventfd(0, flags).map_err(|errno| MailboxError::NoDescriptor(errno.into()));
        let waiting = counter(flags | EventfdFlags::SEMAPHORE)?;
        let arrivals = Arc::new(counter(EventfdFlags::CLOEXEC)?);
        let told = waiting.try_clone().map_err(MailboxError::NoDescriptor)?;
        let arrived = arrivals.clone();
        let arrival = move || {
            add(&told, 1);
            add(&arrived, 1);
        };
        let before = shared.kernel.enter()?.watch_mailbox(context, Box::new(arrival));
        add(&waiting, before as u64);
        add(&arrivals, before as u64);
        shared.goes_on();
        Ok(Self { waiting, arrivals, is_over: Arc::default(), callers: Vec::new() })
    }

    /// Tells of what comes from a group as well, until nothing does any more.
    pub(super) fn watch(&self, shared: &Shared, subscription: &Arc<Subscription>) -> Result<()> {
        let told = self.waiting.try_clone().map_err(MailboxError::NoDescriptor)?;
        let arrived = self.arrivals.clone();
        let watched = Subscription::watched(subscription);
        let look = move || {
            watched.tell(|| {
                add(&told, 1);
                add(&arrived, 1);
            })
        };
        shared.kernel.enter()?.watch(Box::new(look));
        shared.goes_on();
        Ok(())
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }

    /// One that was told of was taken.
    pub(super) fn one_less(&self) {
        // Nothing to read: it came before anybody was told.
        let _ = rustix::io::read(&self.waiting, &mut [0; 8]);
    }

    /// Has a function called from now on.
    pub(super) fn call(&mut self, mut call: Box<dyn FnMut() + Send>) -> io::Result<()> {
        let (arrivals, is_over) = (self.arrivals.clone(), self.is_over.clone());
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-mailbox".to_owned());
            builder.spawn(move || {
                while wait(&arrivals) && !is_over.load(Ordering::Acquire) {
                    call();
                }
            })
        })?;
        self.callers.push(thread);
        Ok(())
    }
}

impl Drop for Availability {
    fn drop(&mut self) {
        if fork::is_child() {
            // The counters and the threads are the parent's.
            self.callers.drain(..).for_each(std::mem::forget);
            return;
        }
        self.is_over.store(true, Ordering::Release);
        for caller in self.callers.drain(..) {
            add(&self.arrivals, 1);
            // A function that panicked has said so.
            let _ = caller.join();
        }
    }
}

/// Adds to a counter; zero and a counter that is full change nothing.
fn add(counter: &OwnedFd, number: u64) {
    if number != 0 {
        let _ = rustix::io::write(counter, &number.to_ne_bytes());
    }
}

/// Sleeps until the counter is above zero, and takes all of it; false when it cannot be read.
fn wait(counter: &OwnedFd) -> bool {
    loop {
        match rustix::io::read(counter, &mut [0; 8]) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.is_ok(),
        }
    }
}
