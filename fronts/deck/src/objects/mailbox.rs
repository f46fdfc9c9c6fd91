//! Mailboxes: those of a thread of this process, which retrieves, and those of other threads, to post to.

use std::borrow::Cow;
use std::cell::{RefCell, UnsafeCell};
use std::sync::atomic::{AtomicU32, Ordering};

use landeck::unstable::memory::fork;
use landeck::{Outbox, Store};

use super::MAILBOXES;
use crate::errors;
use crate::handle::Handle;
use crate::job;
use crate::mistake::Mistake;

/// A mailbox of the program's.
pub(crate) struct Mailbox {
    /// The connection for posts.
    outbox: Outbox,
    /// The word of the wish for where the data of long posts wait, plus one; zero if there is none.
    store: AtomicU32,
    own: Option<Own>,
}

/// The part of a mailbox that only its creating thread uses.
struct Own {
    creator: usize,
    /// None once it is destroyed.
    inner: UnsafeCell<Option<landeck::Mailbox>>,
}

// SAFETY: `retrieving` and `destroy` let only the thread at the mailbox that created it; the way to it is
// for all threads, since the job is joined in thread mode multiple.
unsafe impl Sync for Mailbox {}
// SAFETY: as above; who drops the last reference elsewhere finds no mailbox in it, since its creator
// has destroyed it, or forgets it.
unsafe impl Send for Mailbox {}

/// The mailboxes of a thread, which go with it.
struct OfThread(RefCell<Vec<Handle>>);

thread_local! {
    static OWN: OfThread = const { OfThread(RefCell::new(Vec::new())) };
    static MARK: u8 = const { 0 };
}

impl Mailbox {
    /// One that others have.
    pub(crate) fn of_others(outbox: Outbox) -> Self {
        Self { outbox, store: AtomicU32::new(0), own: None }
    }

    /// One of the calling thread's, and its handle. It goes with the thread.
    pub(crate) fn of_this_thread(inner: landeck::Mailbox, outbox: Outbox) -> Handle {
        let own = Own { creator: this_thread(), inner: UnsafeCell::new(Some(inner)) };
        let handle = MAILBOXES.insert(Self { outbox, store: AtomicU32::new(0), own: Some(own) });
        // A thread that is ending keeps it until the process ends.
        let _ = OWN.try_with(|own| own.0.borrow_mut().push(handle));
        handle
    }

    /// The connection for posts, with the wish for where their data wait.
    pub(crate) fn outbox(&self) -> Result<Cow<'_, Outbox>, Mistake> {
        match self.store.load(Ordering::Relaxed).checked_sub(1) {
            None => Ok(Cow::Borrowed(&self.outbox)),
            Some(word) => Ok(Cow::Owned(self.outbox.storing(Store::from_word(word))?)),
        }
    }

    /// Sets where the data of long posts wait through this connection, and those that are packed from it.
    pub(crate) fn set_store(&self, store: Store) -> Result<(), Mistake> {
        self.outbox.storing(store)?;
        self.store.store(store.to_word() + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Uses what only its creator may.
    pub(crate) fn as_creator<R>(
        &self,
        work: impl FnOnce(&mut landeck::Mailbox) -> Result<R, Mistake>,
    ) -> Result<R, Mistake> {
        let own = self.own.as_ref().filter(|own| own.creator == this_thread());
        let own = own.ok_or_else(not_creator)?;
        // SAFETY: only this thread gets here, and nothing that runs inside calls the program.
        match unsafe { &mut *own.inner.get() } {
            Some(mailbox) => work(mailbox),
            None => Err(Mistake::known(errors::DESTROYED, "the mailbox was destroyed")),
        }
    }

    /// Checks that the calling thread may destroy it.
    pub(crate) fn check_destroyer(&self) -> Result<(), Mistake> {
        match &self.own {
            Some(own) if own.creator != this_thread() => Err(not_creator()),
            _ => Ok(()),
        }
    }

    /// Destroys it; its creator does, or it is one of others.
    pub(crate) fn destroy(&self, handle: Handle) {
        let Some(own) = &self.own else { return };
        // SAFETY: as in `as_creator`.
        drop(unsafe { &mut *own.inner.get() }.take());
        let _ = OWN.try_with(|own| own.0.borrow_mut().retain(|&other| other != handle));
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        // Whoever is the last is perhaps another thread: then it stays until the process ends.
        if let Some(own) = &mut self.own {
            std::mem::forget(own.inner.get_mut().take());
        }
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        if fork::is_child() {
            // They are its parent's.
            return;
        }
        let is_over = job::check().is_err();
        for handle in self.0.get_mut().drain(..) {
            if let Ok(mailbox) = MAILBOXES.remove(handle)
                && !is_over
                && let Some(own) = &mailbox.own
            {
                // SAFETY: this is the thread that created it.
                drop(unsafe { &mut *own.inner.get() }.take());
            }
        }
    }
}

/// An address that no other thread has while this one lives. Its mailboxes go with it, so none is left
/// for a thread that gets the same.
fn this_thread() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

#[cold]
fn not_creator() -> Mistake {
    let text = "another thread or process created the mailbox: only its creator retrieves from it \
                and destroys it";
    Mistake::known(errors::NOTCREATOR, text)
}
