//! The use of a group by the handles to it: when the last goes, the group does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landeck_engine::Shared;

/// Frees a group with the last handle to it.
pub(crate) struct Lease {
    shared: Arc<Shared>,
    context: u32,
    /// An error has told this process that a member is gone.
    has_told_of_loss: AtomicBool,
}

impl Lease {
    pub(crate) fn new(shared: Arc<Shared>, context: u32) -> Arc<Self> {
        let has_told_of_loss = AtomicBool::new(false);
        Arc::new(Self { shared, context, has_told_of_loss })
    }

    pub(crate) fn tell_of_loss(&self) {
        self.has_told_of_loss.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_told_of_loss(&self) -> bool {
        self.has_told_of_loss.load(Ordering::Relaxed)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A thread that may not call leaves the group to the end of the process.
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.forget(self.context);
        }
    }
}
