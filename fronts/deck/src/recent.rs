//! The objects that a thread used last: it keeps a reference to each, so that using one again counts
//! nothing up and down that all threads share.
//!
//! A destroyed object is not found here any more. Its memory goes once no thread has it among those it
//! used last: at the latest when the thread ends, at once where the thread itself destroys it.

use std::cell::{Cell, UnsafeCell};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::handle::Handle;

/// Objects of a kind that are kept; a power of two. Handles that follow each other have places of their own.
const PLACES: usize = 4;

/// A kind of which threads keep what they used last, or not.
pub(crate) trait OfThread: Sized {
    /// Does something with what the calling thread keeps; none when it keeps nothing of this kind, or is
    /// ending.
    fn recent<R>(work: impl FnOnce(&Recent<Self>) -> R) -> Option<R>;
}

/// Kinds of which threads keep what they used last.
macro_rules! kept_by_threads {
    ($($kind:ty),*) => {
        $(impl $crate::recent::OfThread for $kind {
            #[inline(always)]
            fn recent<R>(work: impl FnOnce(&$crate::recent::Recent<Self>) -> R) -> Option<R> {
                thread_local! {
                    static RECENT: $crate::recent::Recent<$kind> =
                        const { $crate::recent::Recent::new() };
                }
                RECENT.try_with(work).ok()
            }
        })*
    };
}
pub(crate) use kept_by_threads;

/// Kinds of which they keep nothing.
macro_rules! found_anew {
    ($($kind:ty),*) => {
        $(impl $crate::recent::OfThread for $kind {
            fn recent<R>(_: impl FnOnce(&$crate::recent::Recent<Self>) -> R) -> Option<R> {
                None
            }
        })*
    };
}
pub(crate) use found_anew;

/// Those of one kind and one thread.
pub(crate) struct Recent<T>([RecentPlace<T>; PLACES]);

struct RecentPlace<T> {
    /// Zero, which is no handle, when there is nothing.
    handle: Cell<u64>,
    /// Calls that use what is here: it stays until they are over.
    users: Cell<u32>,
    object: UnsafeCell<Option<Arc<T>>>,
}

/// An object, for as long as a call uses it.
pub(crate) enum Used<T> {
    /// Among those that this thread used last.
    Kept(Kept<T>),
    /// With a reference of its own.
    Own(Arc<T>),
}

/// The right to use what is in a place of this thread.
pub(crate) struct Kept<T>(NonNull<RecentPlace<T>>);

impl<T> Recent<T> {
    pub(crate) const fn new() -> Self {
        Self([const { RecentPlace::new() }; PLACES])
    }

    /// The object of this handle, if it is here.
    #[inline(always)]
    pub(crate) fn find(&self, handle: Handle) -> Option<Used<T>> {
        let place = self.place(handle);
        (place.handle.get() == handle.0).then(|| Used::Kept(Kept::of(place)))
    }

    /// Keeps an object, unless a call uses what stands in its place.
    pub(crate) fn keep(&self, handle: Handle, object: Arc<T>) -> Used<T> {
        let place = self.place(handle);
        if place.users.get() != 0 {
            return Used::Own(object);
        }
        place.put(handle.0, Some(object));
        Used::Kept(Kept::of(place))
    }

    /// Keeps it no more, unless a call uses it.
    pub(crate) fn forget(&self, handle: Handle) {
        let place = self.place(handle);
        if place.handle.get() == handle.0 && place.users.get() == 0 {
            place.put(0, None);
        }
    }

    #[inline]
    fn place(&self, handle: Handle) -> &RecentPlace<T> {
        &self.0[handle.0 as usize % PLACES]
    }
}

impl<T> RecentPlace<T> {
    const fn new() -> Self {
        Self { handle: Cell::new(0), users: Cell::new(0), object: UnsafeCell::new(None) }
    }

    /// Puts an unused object here, in the place of another unused one.
    fn put(&self, handle: u64, object: Option<Arc<T>>) {
        self.handle.set(handle);
        // SAFETY: only the thread of this place gets here, and no call uses what was here.
        let before = std::mem::replace(unsafe { &mut *self.object.get() }, object);
        // What goes with it may take a while, and finds the place as it is to be.
        drop(before);
    }
}

impl<T> Kept<T> {
    /// The place has an object.
    #[inline]
    fn of(place: &RecentPlace<T>) -> Self {
        place.users.set(place.users.get() + 1);
        Self(NonNull::from(place))
    }

    #[inline]
    fn place(&self) -> &RecentPlace<T> {
        // SAFETY: places are a thread's, which stays while it is inside a call, and this does not leave it.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Kept<T> {
    #[inline]
    fn drop(&mut self) {
        let place = self.place();
        place.users.set(place.users.get() - 1);
    }
}

impl<T> Deref for Used<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Own(object) => object,
            Self::Kept(kept) => {
                // SAFETY: what is in a place stays while it has users, of which this is one.
                let object = unsafe { &*kept.place().object.get() };
                match object {
                    Some(object) => object,
                    None => unreachable!("a place with users has an object"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_in_use_stays_and_an_unused_one_makes_room() {
        let recent = Recent::new();
        let (one, other) = (Arc::new(1), Arc::new(2));
        assert!(recent.find(Handle(5)).is_none());
        let used = recent.keep(Handle(5), one.clone());
        assert!(matches!(used, Used::Kept(_)) && *used == 1);
        let beside = recent.keep(Handle(5 + PLACES as u64), other.clone());
        assert!(matches!(beside, Used::Own(_)) && *beside == 2);
        recent.forget(Handle(5));
        assert!(recent.find(Handle(5)).is_some_and(|again| *again == 1), "it is used");
        drop((used, beside));
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (2, 1));
        drop(recent.keep(Handle(5 + PLACES as u64), other.clone()));
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (1, 2));
        assert!(recent.find(Handle(5)).is_none());
        recent.forget(Handle(5 + PLACES as u64));
        assert_eq!(Arc::strong_count(&other), 1);
    }
}
