//! Many runs of one test, each from a seed of its own, so that one that fails can be run again.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::job_of;

/// Runs at the same time: each has moments in which nobody computes.
const AT_ONCE: usize = 2;

const SEED: &str = "LANDECK_TEST_SEED_OF_JOB";

/// Calls `run` for every number below `count`, and returns the results in any order.
pub(crate) fn run_each<T: Send>(count: u64, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (next, results) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for number in numbers.take_while(|&number| number < count) {
                    let result = run(number);
                    results.lock().unwrap().push(result);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// The command that runs `test` in a job that goes on after deaths, and whose members know `seed`.
pub(crate) fn seeded_job_of(processes: usize, test: &str, seed: u64) -> Command {
    let mut command = job_of(processes, test, &["--on-failure", "notify"]);
    command.env(SEED, seed.to_string()).stdin(Stdio::null());
    command
}

/// The seed that this member's job was started with.
pub(crate) fn seed_of_job() -> u64 {
    std::env::var(SEED).unwrap().parse().unwrap()
}
