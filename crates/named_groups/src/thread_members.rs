//! The members whose mailboxes belong to the calling thread: no other thread retrieves there.
//!
//! A process may have several handles to a group, and a thread several mailboxes. So a thread that would wait for room
//! asks here whether it would wait for itself.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use landeck_protocols::service::Seat;

use crate::replica::Replica;
use crate::subscription::Subscription;

thread_local! {
    static OWN: RefCell<Vec<Weak<Subscription>>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread has joined a group with a mailbox of its own.
pub(crate) fn add(subscription: &Arc<Subscription>) {
    // A thread that is ending begins no broadcast.
    let _ = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        own.retain(|known| known.strong_count() > 0);
        own.push(Arc::downgrade(subscription));
    });
}

/// Whether a member of a group has a mailbox of the calling thread.
pub(crate) fn has(replica: &Replica, seat: Seat) -> bool {
    let is_it = |known: Arc<Subscription>| {
        known.is_in_job_of(replica) && known.group() == replica.number() && known.seat() == seat
    };
    let found = OWN.try_with(|own| own.borrow().iter().filter_map(Weak::upgrade).any(is_it));
    found.unwrap_or(false)
}
