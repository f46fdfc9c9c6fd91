//! The table of permitted imports, which stands in ARCHITECTURE.md as well.

use super::Fault;
use super::tree::{Package, Tree};

/// The package that every package may import for its tests.
const FOR_TESTS: &str = "testing";

/// A room and the packages of ours that it may import, in its tests too. A room that ends with `/`
/// stands for every folder in it that has no line of its own.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("crates/testing", &[]),
    ("crates/wire", &[]),
    ("crates/trust", &["wire"]),
    ("crates/layout", &[]),
    ("crates/arithmetic", &[]),
    ("crates/memory", &[]),
    ("crates/measure", &[]),
    ("crates/board", &["memory", "protocols"]),
    ("crates/objects", &["wire", "memory", "protocols"]),
    ("crates/channel", &["wire", "memory"]),
    ("crates/transports", &["wire", "memory", "channel", "trust"]),
    ("crates/kernel", &["wire", "layout", "memory", "board", "channel"]),
    ("crates/collectives", &["wire", "layout", "arithmetic"]),
    (
        "crates/engine",
        &[
            "wire",
            "layout",
            "arithmetic",
            "memory",
            "board",
            "objects",
            "channel",
            "transports",
            "kernel",
            "collectives",
            "protocols",
        ],
    ),
    (
        "crates/named_groups",
        &[
            "wire",
            "layout",
            "arithmetic",
            "memory",
            "board",
            "objects",
            "channel",
            "transports",
            "kernel",
            "collectives",
            "engine",
            "protocols",
            "host",
            "joining",
        ],
    ),
    ("crates/load", &["wire", "layout", "arithmetic"]),
    ("crates/protocols", &["wire"]),
    ("crates/traces", &[]),
    ("crates/hostfile", &["wire"]),
    ("crates/machine", &["wire"]),
    ("crates/host", &["wire", "memory", "protocols"]),
    ("crates/joining", &["wire", "memory", "protocols", "host"]),
    ("crates/launch", &["wire", "memory", "protocols", "hostfile", "host", "joining"]),
    (
        "crates/daemon",
        &[
            "wire",
            "collectives",
            "memory",
            "channel",
            "objects",
            "transports",
            "protocols",
            "host",
            "joining",
            "launch",
            "diagnosis",
            "trust",
            "hostfile",
            "machine",
        ],
    ),
    ("crates/diagnosis", &["wire", "memory", "board", "collectives", "host", "joining"]),
    (
        "crates/node",
        &[
            "wire",
            "layout",
            "arithmetic",
            "memory",
            "measure",
            "board",
            "objects",
            "channel",
            "transports",
            "kernel",
            "engine",
            "named_groups",
            "collectives",
            "load",
            "protocols",
            "traces",
            "host",
            "joining",
        ],
    ),
    (
        "crates/simulator",
        &[
            "wire",
            "layout",
            "arithmetic",
            "memory",
            "board",
            "channel",
            "kernel",
            "collectives",
            "load",
            "protocols",
            "traces",
            "machine",
        ],
    ),
    ("fronts/c_boundary", &[]),
    ("fronts/", &["node", "c_boundary"]),
    ("programs/landeckd", &["daemon", "launch", "node"]),
    ("programs/bench", &["node", "measure", "testing", "collectives", "host", "memory"]),
    (
        "programs/",
        &[
            "node",
            "measure",
            "simulator",
            "traces",
            "load",
            "wire",
            "arithmetic",
            "memory",
            "collectives",
            "hostfile",
            "machine",
            "host",
            "joining",
            "launch",
            "diagnosis",
        ],
    ),
    ("examples/", &["node"]),
    ("xtask", &["testing"]),
];

/// The packages that a crate's tests may import beyond the table: the parts they are tried with.
const TESTS_MAY_IMPORT: &[(&str, &[&str])] = &[("crates/kernel", &["transports"])];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.packages.iter().flat_map(|package| check_package(tree, package)).collect()
}

fn check_package(tree: &Tree, package: &Package) -> Vec<Fault> {
    let manifest = format!("{}/Cargo.toml", package.room);
    let Some(allowed) = allowed(&package.room) else {
        let message =
            "no line of the import table covers this package: add one there and in ARCHITECTURE.md";
        return vec![Fault::new(&manifest, 0, message)];
    };
    let imported = package.dependencies.iter().filter_map(|dependency| {
        let other = tree.packages.iter().find(|other| other.name == dependency.name)?;
        let folder = other.room.rsplit('/').next()?;
        let helps_tests = dependency.for_tests
            && (folder == FOR_TESTS || tests_may_import(&package.room, folder));
        (!helps_tests && !allowed.contains(&folder)).then(|| {
            let list =
                if allowed.is_empty() { "nothing of ours".into() } else { allowed.join(", ") };
            Fault::new(&manifest, 0, format!("imports {folder}, but may import only {list}"))
        })
    });
    imported.collect()
}

fn allowed(room: &str) -> Option<&'static [&'static str]> {
    let exact = MAY_IMPORT.iter().find(|(name, _)| *name == room);
    let line = exact.or_else(|| {
        MAY_IMPORT.iter().find(|(name, _)| name.ends_with('/') && room.starts_with(name))
    });
    line.map(|(_, allowed)| *allowed)
}

fn tests_may_import(room: &str, folder: &str) -> bool {
    TESTS_MAY_IMPORT.iter().any(|(name, folders)| *name == room && folders.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Dependency;
    use super::*;

    fn package(name: &str, room: &str, needs: &[&str]) -> Package {
        let dependencies = needs
            .iter()
            .map(|name| Dependency { name: (*name).to_owned(), for_tests: false })
            .collect();
        Package { name: name.into(), room: room.into(), manifest: String::new(), dependencies }
    }

    fn faults(packages: Vec<Package>) -> Vec<Fault> {
        check(&Tree { packages, ..Tree::default() })
    }

    #[test]
    fn an_import_upwards_is_a_fault() {
        let found = faults(vec![
            package("landeck-wire", "crates/wire", &["landeck-memory", "thiserror"]),
            package("landeck-memory", "crates/memory", &[]),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("imports memory, but may import only nothing of ours"));
    }

    #[test]
    fn the_table_is_obeyed_by_folder_and_by_name() {
        let found = faults(vec![
            package("landeck-wire", "crates/wire", &[]),
            package("landeck", "crates/node", &["landeck-wire"]),
            package("landeck-mpi", "fronts/mpi", &["landeck", "landeck-wire"]),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "fronts/mpi/Cargo.toml");
    }

    #[test]
    fn only_tests_import_what_helps_tests() {
        let helper = || package("landeck-testing", "crates/testing", &[]);
        let mut wire = package("landeck-wire", "crates/wire", &["landeck-testing"]);
        wire.dependencies[0].for_tests = true;
        assert_eq!(faults(vec![helper(), wire]), []);
        assert_eq!(
            faults(vec![helper(), package("landeck-wire", "crates/wire", &["landeck-testing"])])
                .len(),
            1
        );
    }

    #[test]
    fn a_room_outside_the_table_is_a_fault() {
        assert_eq!(faults(vec![package("landeck-new", "crates/new", &[])]).len(), 1);
    }
}
