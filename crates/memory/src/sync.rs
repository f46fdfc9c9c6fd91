//! The atomics of shared memory, in one place, so that the model checker can take their place.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p landeck-memory -p landeck-board -p landeck-objects --lib --release`
//! runs the same algorithms under loom, which tries every schedule and every value that a load may see.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell as Data,
    sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// Bytes that are not atomic themselves: a word beside them says which side owns them. The model checker
/// sees when a thread touches them without having read that word.
#[cfg(not(loom))]
#[repr(transparent)]
pub struct Data<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> Data<T> {
    /// Such bytes.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Where they are, for reading.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Where they are, for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A word of this process to sleep on.
#[cfg(not(loom))]
pub(crate) struct Futex(AtomicU32);

#[cfg(not(loom))]
impl Futex {
    pub(crate) const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    #[inline(always)]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sleeps while the word has this value, at most for the time given. Wakes for any reason.
    pub(crate) fn wait(&self, value: u32, timeout: std::time::Duration) {
        crate::system::futex_wait(&self.0, value, timeout);
    }

    /// Wakes one sleeper, if there is one.
    pub(crate) fn wake_one(&self) {
        crate::system::futex_wake(&self.0, 1);
    }
}

/// A model of the kernel's futex without timeouts: a lost wake-up is a deadlock.
#[cfg(loom)]
pub(crate) struct Futex {
    word: AtomicU32,
    queue: loom::sync::Mutex<()>,
    woken: loom::sync::Condvar,
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        let (queue, woken) = (loom::sync::Mutex::new(()), loom::sync::Condvar::new());
        Self { word: AtomicU32::new(value), queue, woken }
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    pub(crate) fn wait(&self, value: u32, _timeout: std::time::Duration) {
        let queue = self.queue.lock();
        // As in the kernel: a full barrier, and a load. An addition of nothing would be a store, which
        // loom lets this thread find again after a newer one of the thread that woke it.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) == value {
            drop(queue.and_then(|queue| self.woken.wait(queue)));
        }
    }

    pub(crate) fn wake_one(&self) {
        drop(self.queue.lock());
        self.woken.notify_one();
    }
}

/// Tells the processor that this is a polling loop; under loom, lets the others run.
#[inline]
pub(crate) fn pause() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// The cheap side of two barriers of which a [`heavy_barrier`] is the other: it keeps the compiler from
/// moving a load before a store, and leaves the processor to the other side.
#[inline(always)]
pub fn light_barrier() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// The heavy side: a full barrier in all threads of this process, which was registered for them
/// (`system::register_for_barriers`).
///
/// # Panics
/// When the kernel refuses what it has offered.
#[cold]
pub fn heavy_barrier() {
    #[cfg(not(loom))]
    assert!(
        crate::system::barrier_everywhere(),
        "the kernel refuses membarrier, which it offered when this process began"
    );
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Prefetches the cache line in which a value begins, for reading.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_at(std::ptr::from_ref(value).cast());
}

/// Prefetches the cache line at any address for reading.
#[inline(always)]
pub(crate) fn prefetch_at(place: *const i8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: the hint reads and writes nothing that anybody can see, wherever it points.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place);
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = place;
}

/// Prefetches a value's cache line for writing: one transfer instead of two if another core wrote it last.
#[inline(always)]
pub fn prefetch_to_write<T>(value: &T) {
    prefetch_to_write_at(std::ptr::from_ref(value).cast());
}

/// Prefetches the cache line at any address for writing.
#[inline(always)]
pub(crate) fn prefetch_to_write_at(place: *const i8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a hint that accesses nothing, whatever the address; processors without it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = place;
}

/// Runs a model in every schedule with few preemptions: `LOOM_MAX_PREEMPTIONS`, or 2.
#[cfg(loom)]
pub fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(run);
}
