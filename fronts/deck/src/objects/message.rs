//! Messages: one thread at a time uses one.
//!
//! A call that finds a message has it for itself at once, and who destroys one has it for itself first. So
//! nobody destroys what a call uses, and calls need no reference of their own.

use std::sync::{Arc, OnceLock};

use landeck::unstable::memory::gate::{Bias, Entry, Gate};
use landeck_c_boundary::{Table, pointer};

use crate::errors;
use crate::handle::Handle;
use crate::mistake::Mistake;

/// All messages of the program.
pub(crate) struct Messages {
    table: Table<Box<Message>>,
    /// Of the thread that makes the first one. Most programs use messages in one thread.
    favour: OnceLock<Arc<Bias>>,
}

/// A message of the program's.
type Message = Gate<landeck::Message>;

/// The right to use a message, until dropped.
pub(crate) struct InUse<'a> {
    message: &'a Message,
    entry: Entry<'a, landeck::Message>,
}

impl<'a> InUse<'a> {
    /// Uses it, unless another thread does.
    #[inline(always)]
    fn of(message: &'a Message) -> Result<Self, Mistake> {
        match message.try_enter_in_turn() {
            Ok(Some(entry)) => Ok(Self { message, entry }),
            Ok(None) => Err(busy()),
            Err(error) => Err(landeck::Error::from(error).into()),
        }
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
        Self { table: Table::new(kind), favour: OnceLock::new() }
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
        self.table.make_room()?;
        let favour = self.favour.get_or_init(|| Arc::new(Bias::of_this_thread()));
        let handle = Handle(self.table.insert(Box::new(Gate::favouring(favour, inner))));
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
        InUse::of(unsafe { self.find(argument, place) }?)
    }

    /// The message of a handle that the program passes by its address; `None` if the caller uses that message already.
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
        if std::ptr::eq(used.message, message) {
            return Ok(None);
        }
        InUse::of(message).map(Some)
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
        drop(self.table.remove(handle.0)?);
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
        Ok(unsafe { self.table.get(handle.0) }?)
    }
}

impl std::ops::Deref for InUse<'_> {
    type Target = landeck::Message;

    #[inline]
    fn deref(&self) -> &landeck::Message {
        &self.entry
    }
}

impl std::ops::DerefMut for InUse<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut landeck::Message {
        &mut self.entry
    }
}
