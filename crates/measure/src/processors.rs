//! The processors that a measurement may use, and threads that stay on one of them.

use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may use.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// The first two of them; `None` where there is only one.
pub fn first_two() -> Option<[usize; 2]> {
    allowed().first_chunk().copied()
}

/// Keeps the calling thread on a processor. If that is refused, the figure is of wherever it runs, which is no reason to
/// stop.
pub fn pin(processor: usize) {
    let mut one = CpuSet::new();
    one.set(processor);
    let _ = sched_setaffinity(None, &one);
}

/// Runs `body`, which may pin the calling thread, and lets the thread run afterwards wherever it could before.
pub fn keeping_place<T>(body: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None);
    let done = body();
    if let Ok(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    done
}

/// The result of `timed`, which runs in a thread on the first processor while `other` runs on the second one. `None` if it
/// panicked.
pub fn on_two<T: Send>(
    [first, second]: [usize; 2],
    timed: impl FnOnce() -> T + Send,
    other: impl FnOnce() + Send,
) -> Option<T> {
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(second);
            other();
        });
        let timed = scope.spawn(|| {
            pin(first);
            timed()
        });
        timed.join().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put_and_its_caller_where_it_was() {
        let all = allowed();
        let last = *all.last().unwrap();
        let pinned = || {
            pin(last);
            allowed()
        };
        assert_eq!(keeping_place(pinned), [last]);
        assert_eq!(on_two([last, all[0]], allowed, || ()), Some(vec![last]));
        assert_eq!((allowed(), first_two().is_some()), (all.clone(), all.len() > 1));
    }
}
