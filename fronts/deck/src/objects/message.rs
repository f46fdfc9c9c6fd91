//! Messages: one thread at a time uses one.
//!
//! A call that finds a message has it for itself at once, and who destroys one has it for itself first. So
//! nobody destroys what a call uses, and calls need no reference of their own.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use landeck_c_boundary::{Table, pointer};

use crate::errors;
use crate::handle::Handle;
use crate::mistake::Mistake;

/// All messages of the program.
pub(crate) struct Messages(Table<Box<Message>>);

/// A message of the program's.
struct Message {
    is_used: AtomicBool,
    inner: UnsafeCell<landeck::Message>,
}

// SAFETY: `use_alone` lets one thread at a time at the message, which may be handed from thread to
// thread.
unsafe impl Sync for Message where landeck::Message: Send {}

/// The right to use a message, until dropped.
pub(crate) struct InUse<'a>(&'a Message);

impl Message {
    fn new(inner: landeck::Message) -> Self {
        Self { is_used: AtomicBool::new(false), inner: UnsafeCell::new(inner) }
    }

    /// Uses it, unless another thread does.
    #[inline(always)]
    fn use_alone(&self) -> Result<InUse<'_>, Mistake> {
        if self.is_used.swap(true, Ordering::Acquire) {
            return Err(busy());
        }
        Ok(InUse(self))
    }
}

#[cold]
fn busy() -> Mistake {
    let text =
        "another thread uses this message, or it was passed twice in one call: one at a time may";
    Mistake::known(errors::BUSY, text)
}

impl Messages {
    pub(crate) const fn new(kind: u8) -> Self {
        Self(Table::new(kind))
    }

    /// Keeps a message and gives its handle to the program.
    ///
    /// # Safety
    /// Unless null or misaligned, `place` is writable.
    pub(crate) unsafe fn keep(
        &self,
        argument: &'static str,
        place: *mut Handle,
        inner: landeck::Message,
    ) -> Result<(), Mistake> {
        pointer::check(argument, place, 1)?;
        let handle = Handle(self.0.insert(Box::new(Message::new(inner))));
        // SAFETY: checked above as far as it can be; the rest is the caller's promise.
        Ok(unsafe { pointer::write(argument, place, handle) }?)
    }

    /// The message of a handle that the program passes by its address, for the caller alone.
    ///
    /// # Safety
    /// Unless null or misaligned, `place` is readable.
    #[inline(always)]
    pub(crate) unsafe fn at(
        &self,
        argument: &'static str,
        place: *const Handle,
    ) -> Result<InUse<'_>, Mistake> {
        // SAFETY: the caller's promise.
        unsafe { self.find(argument, place) }?.use_alone()
    }

    /// The same; none where it is the one that the caller uses already.
    ///
    /// # Safety
    /// As [`Messages::at`].
    #[inline(always)]
    pub(crate) unsafe fn at_beside(
        &self,
        used: &InUse<'_>,
        argument: &'static str,
        place: *const Handle,
    ) -> Result<Option<InUse<'_>>, Mistake> {
        // SAFETY: the caller's promise.
        let message = unsafe { self.find(argument, place) }?;
        if std::ptr::eq(used.0, message) {
            return Ok(None);
        }
        message.use_alone().map(Some)
    }

    /// Takes a message away from the program, unless a call uses it.
    ///
    /// # Safety
    /// As [`Messages::at`].
    pub(crate) unsafe fn remove(
        &self,
        argument: &'static str,
        place: *const Handle,
    ) -> Result<(), Mistake> {
        // SAFETY: the caller's promise.
        let handle = unsafe { pointer::read(argument, place) }?;
        // Whoever has it for itself keeps it so until it is gone.
        // SAFETY: the caller's promise.
        std::mem::forget(unsafe { self.at(argument, place) }?);
        drop(self.0.remove(handle.0)?);
        Ok(())
    }

    /// # Safety
    /// As [`Messages::at`]. It is used alone before anything is waited for.
    #[inline(always)]
    unsafe fn find(
        &self,
        argument: &'static str,
        place: *const Handle,
    ) -> Result<&Message, Mistake> {
        // SAFETY: the caller's promise.
        let handle = unsafe { pointer::read(argument, place) }?;
        // SAFETY: `deck.h` has the program destroy nothing at the moment in which another call with
        // it begins; from then on the call uses it alone, and `remove` takes nothing that is used.
        Ok(unsafe { self.0.get(handle.0) }?)
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
