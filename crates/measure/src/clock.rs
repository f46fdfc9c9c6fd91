//! The clock: how long something takes, and how much of it was the processor's time.

use std::hint::black_box;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// The picoseconds that have passed since then.
pub fn since_ps(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 * 1e3
}

/// The time of each of so many things that `batch` does.
///
/// # Errors
/// Those of the batch.
pub fn each_ps<E>(things: u32, batch: impl FnOnce() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    batch()?;
    Ok(since_ps(start) / f64::from(things))
}

/// The time of one look at the clock.
pub fn look_ps() -> f64 {
    const LOOKS: u32 = 1_000;
    const BATCHES: usize = 9;
    let batch_ps = || {
        let start = Instant::now();
        (0..LOOKS).for_each(|_| {
            black_box(Instant::now());
        });
        since_ps(start) / f64::from(LOOKS)
    };
    crate::least((0..BATCHES).map(|_| batch_ps()))
}

/// The processor time of this process so far, in nanoseconds.
pub fn process_ns() -> u64 {
    used_ns(ClockId::ProcessCPUTime)
}

/// The processor time of this thread so far, in nanoseconds.
pub fn thread_ns() -> u64 {
    used_ns(ClockId::ThreadCPUTime)
}

fn used_ns(clock: ClockId) -> u64 {
    let used = clock_gettime(clock);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_takes_its_part_of_a_batch() {
        let mut done = 0;
        let whole = Instant::now();
        let batch = || {
            done += 4;
            Ok::<_, ()>(())
        };
        let ps = each_ps(4, batch).unwrap();
        assert!(done == 4 && ps >= 0.0 && 4.0 * ps <= since_ps(whole));
        assert_eq!(each_ps(1, || Err("no")), Err("no"));
        assert!(look_ps() > 0.0);
    }

    #[test]
    fn a_thread_uses_a_part_of_its_process() {
        let (thread, process) = (thread_ns(), process_ns());
        assert!(thread > 0 && thread <= process);
    }
}
