//! The notice that MPICH's launcher gives of a death: `mpiexec -disable-auto-cleanup` sends SIGUSR1 to
//! those who are left, which would end them too. Here the membership says who is gone, so the signal
//! needs no answer.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::{env, ptr};

/// The variable by which this launcher is known.
const LAUNCHER: &str = "HYDI_CONTROL_FD";
const NOTICE: c_int = libc::SIGUSR1;

/// Lets the notice pass, where this launcher may give it and the program does nothing of its own with
/// the signal, now or later. A program that is started from this one has the signal as it was.
pub(crate) fn let_pass() {
    if env::var_os(LAUNCHER).is_some() && ends_the_process() {
        ignore();
    }
}

/// Whether the signal would end the process.
fn ends_the_process() -> bool {
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set; the place is writable, and all zeros are a valid action.
    let current = unsafe {
        (libc::sigaction(NOTICE, ptr::null(), current.as_mut_ptr()) == 0)
            .then(|| current.assume_init())
    };
    current.is_some_and(|action| action.sa_sigaction == libc::SIG_DFL)
}

/// Sets a handler that does nothing: unlike an ignored signal, it does not outlive an exec.
fn ignore() {
    extern "C" fn nothing(_signal: c_int) {}
    // SAFETY: all zeros are a valid action without flags and with an empty mask; the handler touches
    // nothing, so it may run at any place of any thread. The library is never unloaded.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // Where it cannot be set, the signal does what it did before.
        libc::sigaction(NOTICE, &raw const action, ptr::null_mut());
    }
}
