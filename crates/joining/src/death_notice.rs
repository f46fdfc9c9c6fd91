//! The notice that MPICH's launcher gives of a death: `mpiexec -disable-auto-cleanup` sends SIGUSR1 to the survivors,
//! which would end them too. Landeck learns of deaths from the membership, so the signal needs no answer.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::{env, ptr};

/// The variable that MPICH's launcher sets.
const LAUNCHER: &str = "HYDI_CONTROL_FD";
const NOTICE: c_int = libc::SIGUSR1;

/// Ignores the notice if this launcher may send it and the program does not handle the signal itself, now or later. A
/// program that this one starts finds the signal unchanged.
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
        // If the handler cannot be set, the signal keeps its effect.
        libc::sigaction(NOTICE, &raw const action, ptr::null_mut());
    }
}
