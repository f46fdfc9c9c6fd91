//! The lock of a gate: one word, whose waiting threads sleep in the kernel.
//!
//! After U. Drepper's "Futexes Are Tricky" (2004), the second mutex there.

use std::time::Duration;

use crate::sync::{Futex, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a waiting thread may be asleep.
const CONTENDED: u32 = 2;

/// A waiting thread wakes at least this often to look again by itself.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// One holder at a time. Free when made.
pub(crate) struct Lock(Futex);

impl Lock {
    pub(crate) fn new() -> Self {
        Self(Futex::new(FREE))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        let word = self.0.word();
        word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, after its holder if there is one.
    #[inline]
    pub(crate) fn take(&self) {
        if !self.try_take() {
            self.take_contended();
        }
    }

    #[cold]
    fn take_contended(&self) {
        while self.0.word().swap(CONTENDED, Ordering::Acquire) != FREE {
            self.0.wait(CONTENDED, SLEEP_MAX);
        }
    }

    /// Releases the lock, to a waiting thread if there is one.
    #[inline]
    pub(crate) fn give(&self) {
        if self.0.word().swap(FREE, Ordering::Release) == CONTENDED {
            self.0.wake_one();
        }
    }

    /// Takes the lock if it is free, where only one thread ever does.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn take_alone(&self) -> bool {
        let free = self.0.word().load(Ordering::Relaxed) == FREE;
        if free {
            self.0.word().store(HELD, Ordering::Relaxed);
        }
        free
    }

    /// Gives the lock back, where only one thread ever takes it.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn give_alone(&self) {
        self.0.word().store(FREE, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::Data;
    use loom::sync::Arc;
    use loom::thread;

    struct Counter {
        lock: Lock,
        value: Data<u32>,
    }

    fn count(counter: &Counter) {
        counter.lock.take();
        // SAFETY: the lock is held; the checker would notice if that were not enough.
        counter.value.with_mut(|value| unsafe { *value += 1 });
        counter.lock.give();
    }

    /// No two threads are inside at once, and no thread sleeps for ever: loom ends such a schedule as a deadlock.
    #[test]
    fn one_is_inside_and_all_come_in_in_every_schedule() {
        crate::sync::model(|| {
            let counter = Arc::new(Counter { lock: Lock::new(), value: Data::new(0) });
            let threads = [(); 2].map(|()| {
                let counter = counter.clone();
                thread::spawn(move || count(&counter))
            });
            count(&counter);
            for thread in threads {
                thread.join().unwrap();
            }
            // SAFETY: the other threads have ended.
            counter.value.with(|value| assert_eq!(unsafe { *value }, 3));
        });
    }
}
