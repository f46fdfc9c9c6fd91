//! Purity: which rooms may not ask for the time, start threads, or reach for the machine.
//!
//! Tests may: the rule is about what the product does. `unsafe` is the business of another rule.

use super::Fault;
use super::source::Source;
use super::tree::{Package, Tree};

/// A way out of purity: how the code says it, and what it is.
type WayOut = (&'static str, &'static str);

const CLOCK: &[WayOut] =
    &[("Instant", "a clock"), ("SystemTime", "a clock"), ("UNIX_EPOCH", "a clock")];

const THREADS: &[WayOut] = &[("std::thread", "threads"), ("thread::", "threads")];

const ENVIRONMENT: &[WayOut] = &[("std::env", "the environment"), ("env::", "the environment")];

/// Addresses are values: `core::net` has them, and no sockets.
const NETWORK: &[WayOut] = &[("std::net", "sockets"), (" net::", "sockets")];

const RANDOMNESS: &[WayOut] = &[
    ("rand", "randomness"),
    ("getrandom", "randomness"),
    ("RandomState", "randomness"),
    ("HashMap", "the random order of a hash table (use a BTreeMap)"),
    ("HashSet", "the random order of a hash table (use a BTreeSet)"),
];

const MACHINE: &[WayOut] = &[
    ("std::fs", "files"),
    ("std::process", "processes"),
    ("std::os", "the operating system"),
    ("libc", "system calls"),
    ("rustix", "system calls"),
    ("println!", "output"),
    ("print!", "output"),
    ("eprintln!", "output"),
    ("eprint!", "output"),
];

/// The rooms that are pure, and what is closed to each.
const PURE: &[(&str, &[&[WayOut]])] = &[
    ("crates/wire", EVERYTHING),
    ("crates/layout", EVERYTHING),
    ("crates/protocols", EVERYTHING),
    ("crates/traces", EVERYTHING),
    ("crates/hostfile", EVERYTHING),
    ("crates/machine", EVERYTHING),
    ("crates/collectives", EVERYTHING),
    ("crates/load", EVERYTHING),
    ("crates/simulator", EVERYTHING),
    // The kernel asks a `Platform` for time; it may keep hash tables.
    ("crates/kernel", &[CLOCK, THREADS, ENVIRONMENT, NETWORK, MACHINE]),
];

const EVERYTHING: &[&[WayOut]] = &[CLOCK, THREADS, ENVIRONMENT, NETWORK, RANDOMNESS, MACHINE];

/// The libraries that a pure package may import: none that reaches the machine behind its back.
const PURE_LIBRARIES: &[&str] = &["thiserror", "serde", "postcard", "toml", "ipnet"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (room, closed) in PURE {
        if let Some(package) = tree.packages.iter().find(|package| package.room == *room) {
            faults.extend(check_libraries(tree, package));
        }
        let prefix = format!("{room}/");
        for source in tree.sources.iter().filter(|source| source.path.starts_with(&prefix)) {
            faults.extend(check_source(source, closed));
        }
    }
    faults
}

fn check_libraries(tree: &Tree, package: &Package) -> Vec<Fault> {
    let ours = |name: &str| tree.packages.iter().any(|package| package.name == name);
    let foreign = package.dependencies.iter().filter(|dependency| {
        !dependency.for_tests
            && !ours(&dependency.name)
            && !PURE_LIBRARIES.contains(&dependency.name.as_str())
    });
    let manifest = format!("{}/Cargo.toml", package.room);
    foreign
        .map(|dependency| {
            let message = format!("is pure and may not import the library {}", dependency.name);
            Fault::new(&manifest, 0, message)
        })
        .collect()
}

fn check_source(source: &Source, closed: &[&[WayOut]]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (phrase, what) in closed.iter().copied().flatten() {
        for at in source.places_of(phrase).filter(|at| !source.is_test(*at)) {
            let message = format!("is pure and may not use {what}: \"{phrase}\"");
            faults.push(Fault::new(&source.path, source.line_of(at), message));
        }
    }
    faults.sort_by_key(|fault| fault.line);
    faults
}

#[cfg(test)]
mod tests {
    use super::super::tree::Dependency;
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<Fault> {
        check(&Tree { sources: vec![Source::new(path, text)], ..Tree::default() })
    }

    #[test]
    fn each_way_out_is_seen_in_a_pure_room() {
        for text in [
            "let now = Instant::now();",
            "use std::time::{Duration, SystemTime};",
            "use std::thread;",
            "use std::{env, fmt};\nfn f() { env::var(\"A\"); }",
            "std::net::TcpStream::connect(a)",
            "rand::random()",
            "let map = HashMap::new();",
            "println!(\"x\")",
            "unsafe { libc::getpid() }",
        ] {
            assert!(!faults("crates/protocols/src/view.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn tests_texts_comments_and_other_rooms_pass() {
        let in_test = "#[cfg(test)]\nmod tests { use std::time::Instant; }";
        assert_eq!(faults("crates/wire/src/a.rs", in_test), []);
        assert_eq!(faults("crates/wire/src/a.rs", "// Instant\nlet a = \"Instant\";"), []);
        assert_eq!(faults("crates/node/src/a.rs", "Instant::now()"), []);
        assert_eq!(faults("crates/wire/src/a.rs", "use core::time::Duration;"), []);
    }

    #[test]
    fn the_kernel_may_keep_hash_tables_but_no_clock() {
        assert_eq!(faults("crates/kernel/src/a.rs", "HashMap::new()"), []);
        assert_eq!(faults("crates/kernel/src/a.rs", "Instant::now()").len(), 1);
    }

    #[test]
    fn a_library_that_reaches_the_machine_is_a_fault_unless_only_tests_need_it() {
        let dependency = |name: &str, for_tests| Dependency { name: name.into(), for_tests };
        let package = Package {
            name: "landeck-protocols".into(),
            room: "crates/protocols".into(),
            manifest: String::new(),
            dependencies: vec![
                dependency("rustix", false),
                dependency("proptest", true),
                dependency("thiserror", false),
            ],
        };
        let found = check(&Tree { packages: vec![package], ..Tree::default() });
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("rustix"));
    }
}
