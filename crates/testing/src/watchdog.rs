//! A limit on how long a test may take.

use crate::trail;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// A time limit. If it is not dropped in time, it ends the whole test process, with a message and with every process on
/// one of its trails.
#[must_use = "the watchdog watches until it is dropped"]
pub struct Watchdog {
    /// Dropped with the watchdog, which tells the watching thread that all is well.
    _alive: Sender<()>,
}

impl Watchdog {
    /// Starts watching. The test must end within `limit`.
    pub fn start(limit: Duration) -> Watchdog {
        let (alive, ends) = mpsc::channel::<()>();
        let test = thread::current().name().unwrap_or("a test").to_owned();
        thread::spawn(move || {
            if ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test} did not end within {limit:?}: this test process is aborted");
                trail::kill_all_of_this_process();
                std::process::abort();
            }
        });
        Watchdog { _alive: alive }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_watchdog_lets_the_test_live() {
        drop(Watchdog::start(Duration::from_millis(1_000)));
        let (_keep, never) = mpsc::channel::<()>();
        assert!(never.recv_timeout(Duration::from_millis(1_200)).is_err());
    }
}
