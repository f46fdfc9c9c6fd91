//! Orders of the daemon's loop to a thread of its own. Such a thread waits for orders and for its descriptors at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};

use crate::reactor::Reactor;

const WAKE: u64 = u64::MAX;

/// A descriptor that one thread makes ready for another one.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A bell that has not rung.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Makes the descriptor ready.
    pub(crate) fn ring(&self) {
        // It fails only where it has rung 2^64 times unheard: then it is ready.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// The descriptor is not ready any more, until the next ring.
    pub(crate) fn hear(&self) {
        // It fails where the bell has not rung.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The loop's end. The thread learns when it is dropped.
#[derive(Debug)]
pub(crate) struct Orders<T> {
    /// There until the end.
    sender: Option<Sender<T>>,
    bell: Bell,
}

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    /// The descriptors of the thread. Its tokens are the thread's own, but for the highest one.
    pub(crate) reactor: Reactor,
    orders: Receiver<T>,
    bell: Bell,
}

/// Both ends.
///
/// # Errors
/// The kernel's error.
pub(crate) fn orders<T>() -> io::Result<(Orders<T>, Inbox<T>)> {
    let (bell, reactor) = (Bell::new()?, Reactor::new()?);
    reactor.watch(&bell, WAKE, EventFlags::IN)?;
    let (sender, orders) = channel();
    Ok((Orders { sender: Some(sender), bell: bell.clone() }, Inbox { reactor, orders, bell }))
}

impl<T> Orders<T> {
    /// Gives an order. Nothing happens if the thread is gone.
    pub(crate) fn give(&self, order: T) {
        if self.sender.as_ref().is_some_and(|sender| sender.send(order).is_ok()) {
            self.bell.ring();
        }
    }
}

impl<T> Drop for Orders<T> {
    fn drop(&mut self) {
        // The thread must find no sender when it wakes.
        self.sender = None;
        self.bell.ring();
    }
}

impl<T> Inbox<T> {
    /// Waits for orders and descriptors, but no longer than this time. Adds the ready descriptors to `ready`. Returns
    /// the orders, or nothing if the loop is gone or the kernel fails.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        ready: &mut Vec<(u64, EventFlags)>,
    ) -> Option<Vec<T>> {
        self.reactor.wait(timeout, ready).ok()?;
        let Some(at) = ready.iter().position(|(token, _)| *token == WAKE) else {
            return Some(Vec::new());
        };
        ready.swap_remove(at);
        self.bell.hear();
        self.take()
    }

    fn take(&self) -> Option<Vec<T>> {
        let mut orders = Vec::new();
        loop {
            match self.orders.try_recv() {
                Ok(order) => orders.push(order),
                Err(TryRecvError::Empty) => return Some(orders),
                Err(TryRecvError::Disconnected) if orders.is_empty() => return None,
                Err(TryRecvError::Disconnected) => {
                    // The last orders count. The next wait tells the end.
                    self.bell.ring();
                    return Some(orders);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use landeck_testing::Watchdog;

    use super::*;

    const LONG: Option<Duration> = Some(Duration::from_secs(100));

    #[test]
    fn orders_come_in_order_and_the_last_ones_before_the_end() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        let (orders, inbox) = orders().unwrap();
        let mut ready = Vec::new();
        assert_eq!(inbox.wait(Some(Duration::ZERO), &mut ready), Some(vec![]));
        orders.give(1);
        orders.give(2);
        assert_eq!(inbox.wait(LONG, &mut ready), Some(vec![1, 2]));
        assert_eq!(inbox.wait(Some(Duration::ZERO), &mut ready), Some(vec![]), "each comes once");
        inbox.reactor.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert!(ready.is_empty(), "what was heard wakes nobody again");
        orders.give(3);
        drop(orders);
        assert_eq!(inbox.wait(LONG, &mut ready), Some(vec![3]));
        assert_eq!(inbox.wait(None, &mut ready), None);
        assert!(ready.is_empty(), "the bell is nobody's descriptor");
    }

    #[test]
    fn a_wait_ends_for_a_descriptor_and_for_an_order_of_another_thread() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        let (orders, inbox) = orders().unwrap();
        let (other, mut ready) = (Bell::new().unwrap(), Vec::new());
        inbox.reactor.watch(&other, 7, EventFlags::IN).unwrap();
        other.ring();
        assert_eq!(inbox.wait(LONG, &mut ready), Some(vec![]));
        assert_eq!(ready.drain(..).map(|(token, _)| token).collect::<Vec<_>>(), [7]);
        other.hear();
        let giver = std::thread::spawn(move || orders.give("go"));
        assert_eq!(inbox.wait(LONG, &mut ready), Some(vec!["go"]));
        giver.join().unwrap();
        assert_eq!(inbox.wait(LONG, &mut ready), None);
    }
}
