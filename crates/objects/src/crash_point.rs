//! Crash points for tests: kills or stops a process after a store, or does something at a step of a collective operation.
//! Both are numbered as the process comes to them, so that tests can try all of them, one after the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

/// Stores that this process may still make.
static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Whether the process is stopped then, once, rather than killed.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Steps of collective operations that this process may still begin.
static STEPS_LEFT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The action at that step.
static AT_STEP: Mutex<fn()> = Mutex::new(die_there);

/// Kills this process when it is about to begin a step of a collective operation, after so many others. Steps are those of
/// plans that have messages.
pub fn die_at_step(steps: u64) {
    act_at_step(steps, die_there);
}

/// Does something once in this process, when it is about to begin a step of a collective operation, after so many others.
/// Then the step begins.
pub fn act_at_step(steps: u64, action: fn()) {
    *AT_STEP.lock().unwrap_or_else(PoisonError::into_inner) = action;
    STEPS_LEFT.store(steps, Ordering::SeqCst);
}

/// The steps of collective operations that this process may still begin before the action of [`act_at_step`], or
/// `u64::MAX` if nothing waits for one. So tests count steps.
#[must_use]
pub fn steps_left() -> u64 {
    STEPS_LEFT.load(Ordering::SeqCst)
}

/// A step of a collective operation is about to begin.
#[inline]
pub fn begins_step() {
    if STEPS_LEFT.load(Ordering::Relaxed) != u64::MAX {
        count_step();
    }
}

#[cold]
fn count_step() {
    match STEPS_LEFT.fetch_sub(1, Ordering::SeqCst) {
        0 => {
            let action = *AT_STEP.lock().unwrap_or_else(PoisonError::into_inner);
            action();
        }
        // It was taken back meanwhile.
        u64::MAX => STEPS_LEFT.store(u64::MAX, Ordering::SeqCst),
        _ => {}
    }
}

/// Kills this process after so many further stores to the logs of groups; at once if there are none.
pub fn die_after(stores: u64) {
    if stores == 0 {
        die();
    }
    LEFT.store(stores, Ordering::SeqCst);
}

/// Stops all threads of this process after so many further stores to the logs of groups, at least one; another
/// process continues it.
pub fn stop_after(stores: u64) {
    IS_STOPPED.store(true, Ordering::SeqCst);
    LEFT.store(stores, Ordering::SeqCst);
}

/// Calls the stop off and returns whether it has already happened and ended. None while it is about to happen.
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
    // Sent to this thread, so that it does not go on before the others are stopped. It stands here until another
    // process continues this one.
    // SAFETY: raising a signal touches no memory, and this one has no handler.
    let _ = unsafe { libc::raise(libc::SIGSTOP) };
    LEFT.store(u64::MAX, Ordering::SeqCst);
}

fn die_there() {
    die();
}

fn die() -> ! {
    // Nothing runs after it: no destructor, no handler.
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}
