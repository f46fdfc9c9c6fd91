//! The tables that the numbers of objects lead into.

use std::sync::Arc;

use landeck_c_boundary::{Table, pointer};

use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::recent::{OfThread, Used};

/// The objects of one kind. Each call has a reference, of its own or its thread's, so an object
/// that another thread destroys meanwhile is there until the call is over.
pub(crate) struct Objects<T>(Table<Arc<T>>);

impl<T: OfThread> Objects<T> {
    pub(crate) const fn new(kind: u8) -> Self {
        Self(Table::new(kind))
    }

    /// Keeps an object and gives its handle to the program.
    ///
    /// # Safety
    /// Unless null or misaligned, `place` is writable.
    pub(crate) unsafe fn keep(
        &self,
        argument: &'static str,
        place: *mut Handle,
        object: T,
    ) -> Result<(), Mistake> {
        pointer::check(argument, place, 1)?;
        self.0.make_room()?;
        let handle = Handle(self.0.insert(Arc::new(object)));
        // SAFETY: checked above as far as it can be; the rest is the caller's promise.
        unsafe { pointer::write(argument, place, handle) }?;
        Ok(())
    }

    /// Makes sure, before an object is made, that there is room for it.
    pub(crate) fn make_room(&self) -> Result<(), Mistake> {
        Ok(self.0.make_room()?)
    }

    /// Keeps a new object, whose handle is not given out yet.
    pub(crate) fn insert(&self, object: T) -> Handle {
        Handle(self.0.insert(Arc::new(object)))
    }

    /// The object of a handle that the program passes by its address.
    ///
    /// # Safety
    /// Unless null or misaligned, `place` is readable.
    #[inline(always)]
    pub(crate) unsafe fn at(
        &self,
        argument: &'static str,
        place: *const Handle,
    ) -> Result<Used<T>, Mistake> {
        // SAFETY: the caller's promise.
        let handle = unsafe { pointer::read(argument, place) }?;
        self.of(handle)
    }

    /// The object of a handle.
    #[inline(always)]
    pub(crate) fn of(&self, handle: Handle) -> Result<Used<T>, Mistake> {
        if self.0.is_there(handle.0)
            && let Some(used) = T::recent(|recent| recent.find(handle)).flatten()
        {
            return Ok(used);
        }
        self.look_up(handle)
    }

    #[inline(never)]
    fn look_up(&self, handle: Handle) -> Result<Used<T>, Mistake> {
        let object = self.reference(handle)?;
        let kept = T::recent(|recent| recent.keep(handle, object.clone()));
        Ok(kept.unwrap_or(Used::Own(object)))
    }

    fn reference(&self, handle: Handle) -> Result<Arc<T>, Mistake> {
        // SAFETY: `deck.h` has the program destroy nothing at the moment in which another call with
        // it begins; from here on it has a reference of its own.
        Ok(Arc::clone(unsafe { self.0.get(handle.0) }?))
    }

    /// Takes an object away from the program.
    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>, Mistake> {
        let object = self.0.remove(handle.0)?;
        T::recent(|recent| recent.forget(handle));
        Ok(object)
    }
}
