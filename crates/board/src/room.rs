//! How much of a process's heap its boards keep for others: all boards of the process together. What one
//! board has deposited comes back when the others are over with it, and may be what another board needs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The account of kept blocks that the boards of a process share. One thread at a time changes it.
#[derive(Debug, Default)]
pub struct Room {
    kept_bytes: AtomicUsize,
    is_awaited: AtomicBool,
}

impl Room {
    /// There is none for a deposit now. True when some will come back: this is awaited from now on.
    pub fn await_more(&self) -> bool {
        let is_kept = self.kept_bytes.load(Ordering::Relaxed) > 0;
        self.is_awaited.store(is_kept, Ordering::Relaxed);
        is_kept
    }

    /// There was room for a deposit.
    pub fn was_found(&self) {
        self.is_awaited.store(false, Ordering::Relaxed);
    }

    /// Whether a deposit waits for room: then all boards have to be looked after, with
    /// [`Board::collect`](super::Board::collect).
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn keep(&self, bytes: usize) {
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn give_back(&self, bytes: usize) {
        self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
