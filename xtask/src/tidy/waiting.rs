//! Nothing sleeps or spins but the waiter. Tests may: they have to let time pass.

use super::Fault;
use super::source::Source;
use super::tree::Tree;

/// The one place that waits.
const WAITER: &str = "crates/memory/src/waiting/waiter.rs";

/// The waiter's parts, should it grow into a folder.
const WAITER_FOLDER: &str = "crates/memory/src/waiting/waiter/";

/// How code says that it sleeps, spins or gives up its turn.
const WAYS: &[&str] = &[
    "thread::sleep",
    "spin_loop",
    "sched_yield",
    "yield_now",
    "park",
    "park_timeout",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "_mm_pause",
    // A poll of no descriptor is a sleep.
    "poll(&mut [],",
];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let elsewhere = tree
        .sources
        .iter()
        .filter(|source| source.path != WAITER && !source.path.starts_with(WAITER_FOLDER));
    elsewhere.flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for way in WAYS {
        for at in source.places_of(way).filter(|at| !source.is_test(*at)) {
            let message = format!("waits by \"{way}\": wait in the waiter ({WAITER})");
            faults.push(Fault::new(&source.path, source.line_of(at), message));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> usize {
        check(&Tree { sources: vec![Source::new(path, text)], ..Tree::default() }).len()
    }

    #[test]
    fn sleeping_and_spinning_outside_the_waiter_are_faults() {
        assert_eq!(faults("crates/host/src/a.rs", "std::thread::sleep(a)"), 1);
        assert_eq!(faults("crates/kernel/src/a.rs", "std::hint::spin_loop()"), 1);
        assert_eq!(faults("crates/host/src/a.rs", "libc::sched_yield()"), 1);
        assert_eq!(faults("crates/host/src/a.rs", "poll(&mut [], Some(&moment))"), 1);
        assert_eq!(faults("crates/host/src/a.rs", "poll(&mut [socket], Some(&moment))"), 0);
    }

    #[test]
    fn the_waiter_and_tests_may() {
        assert_eq!(faults(WAITER, "sched_yield()"), 0);
        assert_eq!(faults("crates/memory/src/waiting/waiter/sleep.rs", "sched_yield()"), 0);
        assert_eq!(
            faults("crates/host/src/a.rs", "#[cfg(test)] mod t { fn f() { thread::sleep(a) } }"),
            0
        );
    }
}
