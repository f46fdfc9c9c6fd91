//! The atomics of this crate, in one place, so that the model checker can take their place.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p landeck-memory --release` runs the same algorithms under
//! loom. The waiter's flags are modelled beside it with loom's own types: it needs a total order,
//! which loom knows only as a fence.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Tells the processor that this is a polling loop; under loom, lets the others run.
#[inline]
pub(crate) fn pause() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
