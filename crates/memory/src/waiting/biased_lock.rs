//! A lock biased towards one thread: as long as no other thread wants it, that thread takes it and releases it
//! without an atomic exchange.
//!
//! ```text
//! the favourite            anybody else
//! inside = yes             (has the lock for all)
//! light barrier            favourite = nobody
//! favourite still me?      heavy barrier
//! ... works ...            inside = no?  else sleep
//! inside = no              ... works ...
//! ```
//!
//! This is Dekker's algorithm, of which one side pays for both: the heavy barrier runs on every processor that
//! runs this process, so the light one only keeps the compiler from reordering. The second thread pays for the
//! heavy barrier once; from then on there is no favourite, and all threads use the lock for all. Most programs
//! that ask for several threads call from one of them. Many locks may share one bias: then the second thread pays
//! once for all of them.
//!
//! After D. Dice, M. Moir, W. Scherer, "Quickly Reacquirable Locks" (2003).

use std::sync::Arc;
use std::time::Duration;

use crate::sync::{AtomicUsize, Futex, Ordering, heavy_barrier, light_barrier};
use crate::waiting::lock::Lock;

const NOBODY: usize = 0;
const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;

/// A waiting thread wakes at least this often to look again by itself.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The one thread that may skip the process's locks; none, from the moment another thread wants one of them.
#[derive(Debug)]
pub struct Bias {
    thread: AtomicUsize,
    /// Not zero once the thread that ended the bias has passed the heavy barrier: other threads need none of their own.
    has_ended: AtomicUsize,
}

/// One holder at a time. Threads are named by numbers that are not zero.
pub(crate) struct BiasedLock {
    all: Lock,
    favour: Arc<Bias>,
    /// Whether it is inside without that.
    inside: Futex,
}

/// How a holder came in, which it says when it leaves. A whole word: what is written as a byte and copied
/// with what stands around it is not there before all that was written earlier has left the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Way {
    /// As the favourite.
    Favoured = 1,
    /// With the lock for all.
    ForAll,
}

impl Bias {
    /// For this thread; for none where there are no heavy barriers.
    pub(crate) fn of(favourite: Option<usize>) -> Self {
        let (thread, has_ended) = (favourite.unwrap_or(NOBODY), favourite.is_none() as usize);
        Self { thread: AtomicUsize::new(thread), has_ended: AtomicUsize::new(has_ended) }
    }

    #[inline]
    fn is_of(&self, thread: usize) -> bool {
        self.thread.load(Ordering::Relaxed) == thread
    }

    /// Ends it: afterwards its thread is inside a lock and says so, or will find that it has none.
    #[inline]
    fn end(&self) {
        if self.has_ended.load(Ordering::Acquire) == 0 {
            self.thread.store(NOBODY, Ordering::Relaxed);
            heavy_barrier();
            self.has_ended.store(1, Ordering::Release);
        }
    }
}

impl BiasedLock {
    /// A free lock of the thread that has this favour.
    pub(crate) fn new(favour: Arc<Bias>) -> Self {
        Self { all: Lock::new(), favour, inside: Futex::new(OUTSIDE) }
    }

    /// Whether it has a favourite: no other thread has wanted it so far.
    #[inline]
    pub(crate) fn is_favouring(&self) -> bool {
        !self.favour.is_of(NOBODY)
    }

    /// Takes the lock, after its holder if there is one.
    #[inline]
    pub(crate) fn take(&self, thread: usize) -> Way {
        if self.enter_favoured(thread) {
            return Way::Favoured;
        }
        self.all.take();
        while !self.is_without_favourite() {
            self.inside.wait(INSIDE, SLEEP_MAX);
        }
        Way::ForAll
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(crate) fn try_take(&self, thread: usize) -> Option<Way> {
        if self.enter_favoured(thread) {
            return Some(Way::Favoured);
        }
        if self.favour.is_of(thread) || !self.all.try_take() {
            return None;
        }
        if self.is_without_favourite() {
            return Some(Way::ForAll);
        }
        self.all.give();
        None
    }

    /// Releases the lock, to a waiting thread if there is one.
    #[inline]
    pub(crate) fn give(&self, way: Way) {
        match way {
            Way::Favoured => self.leave_favoured(),
            Way::ForAll => self.all.give(),
        }
    }

    /// False also if the favourite is inside already.
    #[inline]
    pub(crate) fn enter_favoured(&self, thread: usize) -> bool {
        if !self.favour.is_of(thread) || self.inside.word().load(Ordering::Relaxed) != OUTSIDE {
            return false;
        }
        self.inside.word().store(INSIDE, Ordering::Relaxed);
        light_barrier();
        let is_favoured = self.favour.is_of(thread);
        if !is_favoured {
            self.leave_favoured();
        }
        is_favoured
    }

    #[inline]
    fn leave_favoured(&self) {
        self.inside.word().store(OUTSIDE, Ordering::Release);
        light_barrier();
        if self.favour.is_of(NOBODY) {
            self.wake_who_waits();
        }
    }

    #[cold]
    fn wake_who_waits(&self) {
        self.inside.wake_one();
    }

    /// Ends the favour, and says whether its thread is outside; called with the lock for all. Then it
    /// stays outside.
    #[inline]
    fn is_without_favourite(&self) -> bool {
        self.favour.end();
        self.inside.word().load(Ordering::Acquire) == OUTSIDE
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use landeck_testing::Watchdog;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    /// Enough for a thread that does not wait to go on.
    const MOMENT: Duration = Duration::from_millis(2);

    fn with_favourite(thread: usize) -> BiasedLock {
        assert!(crate::system::register_for_barriers());
        BiasedLock::new(Arc::new(Bias::of(Some(thread))))
    }

    #[test]
    fn the_favour_ends_when_another_comes() {
        let lock = with_favourite(7);
        let way = lock.take(7);
        assert_eq!((way, lock.try_take(7)), (Way::Favoured, None));
        lock.give(way);
        assert_eq!(lock.take(7), Way::Favoured, "nobody else has wanted it");
        assert_eq!(lock.try_take(8), None);
        lock.give(way);
        assert_eq!(lock.try_take(7), Some(Way::ForAll), "8 has wanted it meanwhile");
        lock.give(Way::ForAll);
        assert_eq!(lock.try_take(8), Some(Way::ForAll));
        assert_eq!(lock.try_take(7), None);
    }

    #[test]
    fn the_favour_of_many_ends_for_all_when_another_wants_one_of_them() {
        assert!(crate::system::register_for_barriers());
        let favour = Arc::new(Bias::of(Some(7)));
        let [one, other] = [favour.clone(), favour].map(BiasedLock::new);
        let (way, held) = (one.take(7), other.take(7));
        assert!(one.is_favouring() && other.is_favouring());
        one.give(way);
        assert_eq!(one.try_take(8), Some(Way::ForAll));
        assert!(!other.is_favouring(), "another has come");
        assert_eq!(other.try_take(8), None, "the favourite is inside");
        other.give(held);
        assert_eq!(other.try_take(8), Some(Way::ForAll));
        assert_eq!(other.try_take(7), None);
    }

    #[test]
    fn a_thread_that_comes_second_waits_for_the_favourite() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        for _ in 0..20 {
            let lock = Arc::new(with_favourite(1));
            let has_left = Arc::new(AtomicBool::new(false));
            let way = lock.take(1);
            let others = [2, 3].map(|name| {
                let (lock, has_left) = (lock.clone(), has_left.clone());
                thread::spawn(move || {
                    let way = lock.take(name);
                    assert!(has_left.load(Ordering::Relaxed), "the favourite is inside");
                    lock.give(way);
                })
            });
            // One of them has come: next it looks whether the favourite is inside.
            while lock.is_favouring() {
                thread::yield_now();
            }
            thread::sleep(MOMENT);
            has_left.store(true, Ordering::Relaxed);
            lock.give(way);
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::Data;
    use loom::sync::Arc;
    use loom::thread;

    struct Counter {
        lock: BiasedLock,
        value: Data<u32>,
        turns: AtomicUsize,
    }

    /// The checker changes turns where two threads use one atomic, and not where they use the same
    /// data: so there is an atomic inside as well.
    fn count(counter: &Counter, thread: usize) {
        let way = counter.lock.take(thread);
        let turns = counter.turns.load(Ordering::Relaxed);
        // SAFETY: the lock is held; the checker would notice if that were not enough.
        counter.value.with_mut(|value| unsafe { *value += 1 });
        counter.turns.store(turns + 1, Ordering::Relaxed);
        counter.lock.give(way);
    }

    /// Of two others that want locks of one favour, the one that comes second may find it ended while the
    /// first is still at its barrier.
    #[test]
    fn a_thread_that_finds_a_bias_ended_is_inside_alone_in_any_schedule() {
        crate::sync::model(|| {
            let favour = std::sync::Arc::new(Bias::of(Some(1)));
            let counter = || {
                let lock = BiasedLock::new(favour.clone());
                Counter { lock, value: Data::new(0), turns: AtomicUsize::new(0) }
            };
            let both = Arc::new([counter(), counter()]);
            let others = [(2, 1), (3, 0)].map(|(name, of)| {
                let both = both.clone();
                thread::spawn(move || count(&both[of], name))
            });
            count(&both[0], 1);
            others.into_iter().for_each(|other| other.join().unwrap());
            // SAFETY: the other threads have ended.
            both[0].value.with(|value| assert_eq!(unsafe { *value }, 2));
        });
    }

    /// No two threads are inside at once, and no thread sleeps for ever: loom ends such a schedule as a deadlock.
    #[test]
    fn the_favourite_and_another_take_turns_in_every_schedule() {
        crate::sync::model(|| {
            let lock = BiasedLock::new(std::sync::Arc::new(Bias::of(Some(1))));
            let (value, turns) = (Data::new(0), AtomicUsize::new(0));
            let counter = Arc::new(Counter { lock, value, turns });
            let other = counter.clone();
            let other = thread::spawn(move || count(&other, 2));
            (0..2).for_each(|_| count(&counter, 1));
            other.join().unwrap();
            // SAFETY: the other thread has ended.
            counter.value.with(|value| assert_eq!(unsafe { *value }, 3));
            assert_eq!(counter.turns.load(Ordering::Relaxed), 3);
        });
    }
}
