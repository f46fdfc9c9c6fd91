//! Dying or stopping after a store, in tests: the places where a process can be killed or stopped are
//! numbered as it comes to them, so all of them can be tried, one after the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// Stores that this process may still make.
static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Whether it is stopped then, once.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Has this process be killed after so many further stores to the logs of groups; at once after none.
pub fn die_after(stores: u64) {
    if stores == 0 {
        die();
    }
    LEFT.store(stores, Ordering::SeqCst);
}

/// Has this process stopped, all its threads, after so many further stores to the logs of groups, at least
/// one; somebody else has it go on.
pub fn stop_after(stores: u64) {
    IS_STOPPED.store(true, Ordering::SeqCst);
    LEFT.store(stores, Ordering::SeqCst);
}

/// Calls that off: whether it has come before and is over. None while it is about to come.
pub fn call_off() -> Option<bool> {
    let never = |left| (left != 0).then_some(u64::MAX);
    let left = LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, never).ok()?;
    Some(left == u64::MAX)
}

/// A store was made.
pub(crate) fn stored() {
    let count = |left| (left != u64::MAX && left != 0).then(|| left - 1);
    if LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count) != Ok(1) {
        return;
    }
    if !IS_STOPPED.load(Ordering::SeqCst) {
        die();
    }
    // Sent to this thread, so that it does not go on before the others are stopped. Here it stands until
    // somebody has the process go on.
    // SAFETY: raising a signal touches no memory, and this one has no handler.
    let _ = unsafe { libc::raise(libc::SIGSTOP) };
    LEFT.store(u64::MAX, Ordering::SeqCst);
}

fn die() -> ! {
    // Nothing runs after it: no destructor, no handler.
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}
