//! Dying after a store, in tests: the places where a process can be killed are numbered as it comes to
//! them, so all of them can be tried, one after the other.

use std::sync::atomic::{AtomicU64, Ordering};

/// Stores that this process may still make.
static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Has this process be killed after so many further stores to the logs of groups; at once after none.
pub fn die_after(stores: u64) {
    if stores == 0 {
        die();
    }
    LEFT.store(stores, Ordering::SeqCst);
}

/// A store was made.
pub(crate) fn stored() {
    if LEFT.load(Ordering::SeqCst) != u64::MAX && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        die();
    }
}

fn die() -> ! {
    // Nothing runs after it: no destructor, no handler.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}
