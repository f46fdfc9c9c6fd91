//! How much of a process's heap all its boards together keep for other members. A deposit of one board comes back
//! once the others have completed its operation, and may be the room that another board needs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The account of kept blocks that the boards of a process share. One thread at a time changes it.
#[derive(Debug, Default)]
pub struct Room {
    kept_bytes: AtomicUsize,
    is_awaited: AtomicBool,
}

impl Room {
    /// Records that there is no room for a deposit. True if some will come back; from then on it is awaited.
    pub fn await_more(&self) -> bool {
        let is_kept = self.kept_bytes.load(Ordering::Relaxed) > 0;
        self.is_awaited.store(is_kept, Ordering::Relaxed);
        is_kept
    }

    /// Records that there was room for a deposit.
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
