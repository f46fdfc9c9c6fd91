//! Unsafe code lives in few rooms; every other crate forbids it at its root.

use super::Fault;
use super::source::Source;
use super::tree::Tree;

/// The rooms that may say `unsafe`. In `node` it is the promise that a user's memory stays while a
/// request uses it; the kernel's tests stand where node stands, and promise the same.
const ROOMS: &[&str] = &[
    "crates/memory/",
    "crates/board/",
    "crates/objects/",
    "crates/transports/",
    "crates/host/",
    "crates/joining/",
    "crates/launch/",
    "crates/arithmetic/",
    "crates/engine/",
    "crates/named_groups/",
    "crates/node/",
    "crates/kernel/tests/",
    "fronts/",
];

/// The files that a crate starts with.
const ROOTS: &[&str] = &["/src/lib.rs", "/src/main.rs"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let outside = tree
        .sources
        .iter()
        .filter(|source| !ROOMS.iter().any(|room| source.path.starts_with(room)));
    outside.flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for at in source.places_of("unsafe") {
        let message = format!("says \"unsafe\", which only {} may", ROOMS.join(", "));
        faults.push(Fault::new(&source.path, source.line_of(at), message));
    }
    let is_root = ROOTS.iter().any(|root| source.path.ends_with(root));
    if is_root && !source.code.contains("#![forbid(unsafe_code)]") {
        let message = "a crate that needs no unsafe code starts with #![forbid(unsafe_code)]";
        faults.push(Fault::new(&source.path, 0, message));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<Fault> {
        check(&Tree { sources: vec![Source::new(path, text)], ..Tree::default() })
    }

    #[test]
    fn unsafe_code_outside_its_rooms_is_a_fault_in_tests_too() {
        assert_eq!(faults("crates/kernel/src/a.rs", "fn f() { unsafe { g() } }").len(), 1);
        assert_eq!(faults("crates/protocols/tests/a.rs", "unsafe { g() }").len(), 1);
        assert_eq!(faults("crates/memory/src/a.rs", "unsafe { g() }"), []);
        assert_eq!(faults("fronts/mpi/src/a.rs", "unsafe { g() }"), []);
    }

    #[test]
    fn a_root_without_the_forbidding_line_is_a_fault() {
        assert_eq!(faults("crates/kernel/src/lib.rs", "//! Head.").len(), 1);
        assert_eq!(faults("crates/kernel/src/lib.rs", "//! Head.\n#![forbid(unsafe_code)]"), []);
        assert_eq!(faults("crates/kernel/src/job.rs", "//! Head."), []);
    }
}
