//! Announcing messages that wait in a mailbox: a descriptor that can be polled, a function that is
//! called. Any receiving thread of the process announces; between calls the progress thread does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use landeck_engine::Shared;
use landeck_memory::fork;
use landeck_named_groups::Subscription;
use landeck_transports::wake_thread::without_signals;
use rustix::event::{EventfdFlags, eventfd};

use crate::error::{MailboxError, Result};

/// Announces the messages of one mailbox.
pub(super) struct Availability {
    /// Counts the messages that wait: each read takes one.
    waiting: OwnedFd,
    /// Counts arrivals for the thread that calls.
    arrivals: Arc<OwnedFd>,
    is_closed: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
}

impl Availability {
    /// Begins to announce messages, and announces those that wait already.
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
        let before = shared.engine.enter()?.endpoint.watch_mailbox(context, Box::new(arrival));
        add(&waiting, before as u64);
        add(&arrivals, before as u64);
        shared.goes_on();
        Ok(Self { waiting, arrivals, is_closed: Arc::default(), callers: Vec::new() })
    }

    /// Announces the messages of a group as well, until no more will come.
    pub(super) fn watch(&self, shared: &Shared, subscription: &Arc<Subscription>) -> Result<()> {
        let watch = Subscription::watch(subscription);
        self.look_with(shared, move |each| watch.announce(each))
    }

    /// Calls a function at each look of the engine, until it returns false. It calls its argument for each event.
    fn look_with(
        &self,
        shared: &Shared,
        announce: impl Fn(&dyn Fn()) -> bool + Send + 'static,
    ) -> Result<()> {
        let told = self.waiting.try_clone().map_err(MailboxError::NoDescriptor)?;
        let arrived = self.arrivals.clone();
        let look = move || {
            announce(&|| {
                add(&told, 1);
                add(&arrived, 1);
            })
        };
        shared.engine.enter()?.watch(Box::new(look));
        shared.goes_on();
        Ok(())
    }

    /// Announces the views of a group as well, until no more will come.
    pub(super) fn watch_views(
        &self,
        shared: &Shared,
        subscription: &Arc<Subscription>,
    ) -> Result<()> {
        let watch = Subscription::watch_views(subscription);
        self.look_with(shared, move |each| watch.announce(each))
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }

    /// Takes one announced message off the count.
    pub(super) fn count_down(&self) {
        // A message that came before the first announcement leaves nothing to read.
        let _ = rustix::io::read(&self.waiting, &mut [0; 8]);
    }

    /// Calls a function when messages arrive, from now on.
    pub(super) fn call(&mut self, mut call: Box<dyn FnMut() + Send>) -> io::Result<()> {
        let (arrivals, is_closed) = (self.arrivals.clone(), self.is_closed.clone());
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-mailbox".to_owned());
            builder.spawn(move || {
                while wait(&arrivals) && !is_closed.load(Ordering::Acquire) {
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
        self.is_closed.store(true, Ordering::Release);
        for caller in self.callers.drain(..) {
            add(&self.arrivals, 1);
            // A panic of the function was printed in its thread.
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
