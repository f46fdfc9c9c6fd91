//! A second process of the launcher for a moment: a child with a copy of its memory, which runs one function and ends.

use std::panic::{AssertUnwindSafe, catch_unwind};

use landeck_memory::fork::end_child;

use crate::fork::{ForkError, fork_child};
use crate::process::{signal_process, wait_for_end};

/// A child of this process. Dropping this ends and reaps it.
#[derive(Debug)]
pub struct Twin {
    pid: u32,
}

impl Twin {
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

impl Drop for Twin {
    fn drop(&mut self) {
        // It is our own child, not reaped yet.
        signal_process(self.pid, libc::SIGKILL);
        // Without a child there is nothing to reap.
        let _ = wait_for_end(self.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_has_no_twin() {
        // Tests run in threads of their own beside the first one.
        let error = Twin::start(|| {}).unwrap_err();
        assert!(matches!(error, ForkError::Threads(2..)), "{error}");
    }
}
