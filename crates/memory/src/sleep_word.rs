//! The sleep word, by which a sleeping process and its callers do not miss each other.
//!
//! The sleeper raises its word and looks once more; a caller publishes and looks at the word afterwards. Each
//! side has a fence between its two steps, so at least one of them sees the other (Dekker). Where a caller must
//! not pay for a fence, the sleeper runs one on every processor instead, which has an equal effect.

use crate::sync::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use crate::system;

/// The value of a raised word: what the sleeper gives to the kernel as expected.
pub(crate) const RAISED: u32 = 1;
const LOWERED: u32 = 0;

/// The sleeper, before its last look.
#[inline]
pub fn raise(word: &AtomicU32) {
    word.store(RAISED, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// The sleeper, when its last look found something.
#[inline]
pub(crate) fn lower(word: &AtomicU32) {
    word.store(LOWERED, Ordering::Relaxed);
}

/// The sleeper, after its sleep: whether a caller had lowered the word.
#[inline]
pub(crate) fn lower_after_sleep(word: &AtomicU32) -> bool {
    word.swap(LOWERED, Ordering::Acquire) != RAISED
}

/// Called after publishing and the fence: whether the process sleeps or is about to.
#[inline]
pub fn is_raised(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) != LOWERED
}

/// Called after the word was found raised: whether this caller has to wake the sleeper.
#[inline]
pub(crate) fn lower_for_sleeper(word: &AtomicU32) -> bool {
    word.swap(LOWERED, Ordering::SeqCst) != LOWERED
}

/// Called after the word was found raised: wakes the sleeper, unless another caller does.
#[cfg(not(loom))]
#[cold]
#[inline(never)]
pub(crate) fn wake(word: &AtomicU32) {
    if lower_for_sleeper(word) {
        system::futex_wake(word, 1);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn call(published: &AtomicU32, word: &AtomicU32) -> bool {
        published.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        is_raised(word) && lower_for_sleeper(word)
    }

    /// A process that goes to sleep without having seen the published word is woken by one of the callers.
    #[test]
    fn nobody_sleeps_unseen_in_any_schedule() {
        crate::sync::model(|| {
            let words = Arc::new([(); 3].map(|()| AtomicU32::new(0)));
            let callers = [0, 1].map(|number: usize| {
                let words = words.clone();
                thread::spawn(move || call(&words[number], &words[2]))
            });
            let word = &words[2];
            raise(word);
            let seen = [0, 1].map(|number: usize| words[number].load(Ordering::Acquire) == 1);
            let woken = callers.map(|caller| caller.join().unwrap());
            if seen == [false, false] {
                assert!(woken != [false, false], "the sleeper saw nothing and nobody woke it");
                assert!(woken != [true, true], "one of them is enough");
                assert!(lower_after_sleep(word));
            } else {
                lower(word);
            }
        });
    }
}
