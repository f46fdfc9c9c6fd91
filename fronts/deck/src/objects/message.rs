//! Messages: one thread at a time uses one.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errors;
use crate::mistake::Mistake;

/// A message of the program's.
#[derive(Default)]
pub(crate) struct Message {
    is_used: AtomicBool,
    inner: UnsafeCell<landeck::Message>,
}

// SAFETY: `use_alone` lets one thread at a time at the message, which may be handed from thread to
// thread.
unsafe impl Sync for Message where landeck::Message: Send {}

/// The right to use a message, until dropped.
pub(crate) struct InUse<'a>(&'a Message);

impl Message {
    pub(crate) fn new(inner: landeck::Message) -> Self {
        Self { is_used: AtomicBool::new(false), inner: UnsafeCell::new(inner) }
    }

    /// Uses it, unless another thread does.
    #[inline]
    pub(crate) fn use_alone(&self) -> Result<InUse<'_>, Mistake> {
        if self.is_used.swap(true, Ordering::Acquire) {
            let text = "another thread uses this message, or it was passed twice in one call: one \
                        at a time may";
            return Err(Mistake::known(errors::BUSY, text));
        }
        Ok(InUse(self))
    }
}

impl std::ops::Deref for InUse<'_> {
    type Target = landeck::Message;

    #[inline]
    fn deref(&self) -> &landeck::Message {
        // SAFETY: whoever has this is the only one who uses the message.
        unsafe { &*self.0.inner.get() }
    }
}

impl std::ops::DerefMut for InUse<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut landeck::Message {
        // SAFETY: as above.
        unsafe { &mut *self.0.inner.get() }
    }
}

impl Drop for InUse<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.is_used.store(false, Ordering::Release);
    }
}
