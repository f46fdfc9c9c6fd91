//! Forks this process, which must have one thread: a child for good, or a helper with a copy of its memory that runs one
//! function and ends.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use landeck_memory::fork::end_child;

use crate::process;

/// The reason why this process cannot be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The process has several threads: the child would inherit their locks.
    #[error("this process has {0} threads; it can be forked only before it starts any")]
    Threads(u64),
    /// The kernel allows no more processes.
    #[error(
        "{0}. Is there a limit of processes (ulimit -u, pids.max of the control group)? Raise it, or end \
         other processes"
    )]
    Refused(io::Error),
}

/// Checks that this process may fork: with several threads, the child would inherit their locks.
///
/// # Errors
/// [`ForkError::Threads`].
fn check_threads() -> Result<(), ForkError> {
    match thread_count() {
        0 | 1 => Ok(()),
        threads => Err(ForkError::Threads(threads)),
    }
}

/// Forks this process with all signals blocked in the child; `None` in the child, and the child's PID in the parent.
///
/// # Errors
/// [`ForkError`] if there is no child.
pub fn fork_child() -> Result<Option<u32>, ForkError> {
    check_threads()?;
    let mask = process::block_all_signals().map_err(ForkError::Refused)?;
    // SAFETY: this process has one thread, so no other thread can hold a lock in the child's copy of memory.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        pid => {
            let error = io::Error::last_os_error();
            process::restore_signals(&mask);
            u32::try_from(pid).map(Some).map_err(|_| ForkError::Refused(error))
        }
    }
}

/// A child of this process. Dropping this ends and reaps it.
#[derive(Debug)]
pub struct ForkedHelper {
    pid: u32,
}

impl ForkedHelper {
    /// Forks a child that runs `body` and ends without returning. It also ends with the calling thread. All signals that
    /// can be blocked are blocked in it.
    ///
    /// # Errors
    /// [`ForkError`] if this process has several threads, or the kernel makes no child.
    pub fn start(body: impl FnOnce()) -> Result<Self, ForkError> {
        match fork_child()? {
            Some(pid) => Ok(Self { pid }),
            None => {
                // Without this the child would still end by itself, or when it is told.
                let _ = rustix::process::set_parent_process_death_signal(Some(
                    rustix::process::Signal::KILL,
                ));
                // A panic of the child is no affair of its parent's.
                let _ = catch_unwind(AssertUnwindSafe(body));
                end_child(1)
            }
        }
    }
}

impl Drop for ForkedHelper {
    fn drop(&mut self) {
        // It is our own child, not reaped yet.
        process::signal_process(self.pid, libc::SIGKILL);
        // Without a child there is nothing to reap.
        let _ = process::wait_for_end(self.pid);
    }
}

/// The number of threads of this process; one if that cannot be found out.
fn thread_count() -> u64 {
    // The links of a directory are itself, its name, and its subdirectories.
    std::fs::metadata("/proc/self/task").map_or(1, |folder| folder.nlink().saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_has_no_helper() {
        // Tests run in threads of their own beside the first one.
        let error = ForkedHelper::start(|| {}).unwrap_err();
        assert!(matches!(error, ForkError::Threads(2..)), "{error}");
    }
}
