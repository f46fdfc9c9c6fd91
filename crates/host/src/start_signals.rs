//! The signals that the parent of this process had blocked or ignored: both survive an exec.
//!
//! A command that waits for its children must not ignore SIGCHLD: the kernel would reap them without notice. A command
//! that is to be interrupted must not have that signal blocked. So a command resets both for itself, and the programs
//! that it starts get the user's settings.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

/// The signal settings with which the programs of a job start.
#[derive(Clone, Copy)]
pub(crate) struct StartSignals {
    /// The signals that are blocked.
    pub(crate) mask: libc::sigset_t,
    /// Whether SIGCHLD is ignored.
    pub(crate) ignores_children: bool,
}

static AT_START: OnceLock<StartSignals> = OnceLock::new();

/// Remembers the settings, then unblocks all signals and resets SIGCHLD. Call this at the beginning of a command,
/// before it has a second thread; a second call changes nothing.
pub fn take_over() {
    AT_START.get_or_init(|| {
        let at_start =
            StartSignals { mask: blocked(), ignores_children: is_ignored(libc::SIGCHLD) };
        let none = no_signals();
        // SAFETY: SIG_DFL needs no handler; the mask is initialised, and no old one is asked for.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        }
        at_start
    });
}

/// The settings with which programs start: those that this process had, if it has remembered them.
pub(crate) fn of_programs() -> StartSignals {
    let usual = StartSignals { mask: no_signals(), ignores_children: false };
    AT_START.get().copied().unwrap_or(usual)
}

fn no_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn blocked() -> libc::sigset_t {
    let mut set = no_signals();
    // SAFETY: no new mask is set, so the call only writes the present one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
    set
}

/// The signals that the parent of this process had ignored, without those that this process or its children change.
pub fn ignored() -> Vec<c_int> {
    let is_own = |signal: &c_int| [libc::SIGPIPE, libc::SIGCHLD].contains(signal);
    (1..32).filter(|signal| !is_own(signal) && is_ignored(*signal)).collect()
}

/// Whether this process ignores a signal.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call only writes the present action; zero is a valid value of all its fields.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}
