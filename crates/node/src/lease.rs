//! The use of a group by the handles to it: when the last goes, the group does.

use std::sync::Arc;

use landeck_engine::Shared;

/// Frees a group with the last handle to it.
pub(crate) struct Lease {
    shared: Arc<Shared>,
    context: u32,
}

impl Lease {
    pub(crate) fn new(shared: Arc<Shared>, context: u32) -> Arc<Self> {
        Arc::new(Self { shared, context })
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
