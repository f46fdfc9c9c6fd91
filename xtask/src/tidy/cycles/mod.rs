//! Modules that stand beside each other import each other in one direction only. A folder counts
//! as one module with everything in it; a module and those within it are one thing, and may.
//!
//! An item counts where it is defined, however many re-exports a path to it leads through.

mod mentions;
mod modules;

use std::collections::{BTreeMap, BTreeSet};

use super::Fault;
use super::source::Source;
use super::tree::Tree;
use modules::{Edge, Modules};

/// The files that a crate starts with.
const ROOTS: &[&str] = &["/lib.rs", "/main.rs"];

/// Programs of one file each: they have no modules.
const PROGRAMS: &str = "/src/bin/";

/// The names of two modules that stand beside each other, and what the first says of the second.
type Imports<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Edge>>;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in &tree.sources {
        if let Some(root) = root_of(tree, &source.path) {
            crates.entry(root).or_default().push(source);
        }
    }
    crates.iter().flat_map(|(root, sources)| check_crate(root, sources)).collect()
}

/// The folder with the first file of the crate that a file belongs to.
fn root_of<'a>(tree: &'a Tree, path: &str) -> Option<&'a str> {
    if path.contains(PROGRAMS) {
        return None;
    }
    let roots = tree
        .sources
        .iter()
        .filter_map(|source| ROOTS.iter().find_map(|root| source.path.strip_suffix(root)));
    let around =
        roots.filter(|root| path.strip_prefix(root).is_some_and(|inner| inner.starts_with('/')));
    around.max_by_key(|root| root.len())
}

fn check_crate(root: &str, sources: &[&Source]) -> Vec<Fault> {
    let modules = Modules::new(root, sources);
    let edges = modules.edges();
    let mut by_parent: BTreeMap<&[String], Imports<'_>> = BTreeMap::new();
    for edge in &edges {
        let common = edge.from.iter().zip(&edge.to).take_while(|(a, b)| a == b).count();
        if let (Some(from), Some(to)) = (edge.from.get(common), edge.to.get(common)) {
            let imports = by_parent.entry(&edge.from[..common]).or_default();
            imports.entry((from, to)).or_default().push(edge);
        }
    }
    let mut faults = Vec::new();
    for (parent, imports) in &by_parent {
        let folder = [&[root.to_owned()], *parent].concat().join("/");
        let cycles = cycles(imports);
        faults.extend(cycles.iter().map(|cycle| fault(&folder, &modules, imports, cycle)));
    }
    faults
}

/// The sets of modules of which each leads to every other one.
fn cycles<'a>(imports: &Imports<'a>) -> BTreeSet<Vec<&'a str>> {
    let reached: BTreeMap<_, _> =
        imports.keys().map(|(from, _)| (*from, reached_from(from, imports))).collect();
    let cycle_of = |module: &&'a str| -> Vec<&'a str> {
        let others = reached[*module].iter().copied();
        others.filter(|other| reached.get(other).is_some_and(|r| r.contains(module))).collect()
    };
    reached.keys().map(cycle_of).filter(|cycle| !cycle.is_empty()).collect()
}

/// The modules that imports lead to from this one.
fn reached_from<'a>(module: &str, imports: &Imports<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        for (_, to) in imports.keys().filter(|(from, _)| *from == module) {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

fn fault(folder: &str, modules: &Modules<'_>, imports: &Imports<'_>, cycle: &[&str]) -> Fault {
    let mut message = format!("modules {} import each other in a circle:", cycle.join(", "));
    for ((from, to), edges) in imports {
        if cycle.contains(from) && cycle.contains(to) {
            message.push_str(&format!("\n    {from} imports {to}"));
            for edge in edges {
                let file = modules.file(&edge.from);
                message.push_str(&format!("\n      {file}:{}: {}", edge.line, edge.path));
            }
        }
    }
    Fault::new(folder, 0, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules of each cycle of a crate with these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let path = |name: &str| format!("crates/x/src/{name}.rs");
        let root = std::iter::once(&("lib", ""));
        let files = root.chain(files).map(|(name, text)| Source::new(&path(name), text));
        let faults = check(&Tree { sources: files.collect(), ..Tree::default() });
        faults.into_iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()
    }

    /// The first line of each, which names its modules.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        found(files).iter().map(|fault| fault.lines().next().unwrap_or("").to_owned()).collect()
    }

    const A_AND_B: &str = "crates/x/src: modules a, b import each other in a circle:";

    #[test]
    fn two_that_import_each_other_are_named_with_the_lines() {
        let files = [("a", "\nuse crate::b::B;"), ("b", "fn f() { crate::a::g() }"), ("c", "")];
        assert_eq!(
            found(&files),
            [format!(
                "{A_AND_B}\n    a imports b\n      crates/x/src/a.rs:2: crate::b::B\
                 \n    b imports a\n      crates/x/src/b.rs:1: crate::a::g"
            )]
        );
    }

    #[test]
    fn three_in_a_circle_are_one_cycle_and_one_direction_is_none() {
        let b = ("b", "use super::{c::C, d::D};");
        assert_eq!(
            circles(&[("a", "use crate::b;"), b, ("c", "use crate::a::A;"), ("d", "")]),
            ["crates/x/src: modules a, b, c import each other in a circle:"]
        );
        assert_eq!(circles(&[("a", "use crate::b;"), b, ("c", ""), ("d", "")]), [""; 0]);
    }

    #[test]
    fn parents_and_children_may_import_each_other() {
        let child = "use super::A; use crate::A as B;";
        assert_eq!(circles(&[("a/mod", "mod b; use b::B;"), ("a/b", child)]), [""; 0]);
        assert_eq!(circles(&[("a", "mod b; use b::B;"), ("a/b", child)]), [""; 0]);
    }

    #[test]
    fn a_folder_counts_with_all_that_it_holds() {
        let files = [("a/mod", ""), ("a/inner", "use crate::b::B;"), ("b", "use crate::a::A;")];
        assert_eq!(circles(&files), [A_AND_B]);
        let inner = [("o/a", "use super::b::B;"), ("o/b", "use super::a::A;"), ("o/mod", "")];
        assert_eq!(circles(&inner), [A_AND_B.replace("src", "src/o")]);
    }

    #[test]
    fn tests_do_not_count() {
        let b = ("b", "#[cfg(test)]\nmod tests { use crate::a::A; }");
        assert_eq!(circles(&[("a", "use crate::b::B;"), b]), [""; 0]);
        let files = [("a", "use crate::b::B;"), ("b", "#[cfg(test)] mod fixture;")];
        assert_eq!(circles(&[files[0], files[1], ("b/fixture", "use crate::a::A;")]), [""; 0]);
    }

    #[test]
    fn a_re_export_hides_nothing() {
        let lib = ("lib", "pub use b::B; pub use c::*;");
        let a = ("a", "use crate::B;");
        assert_eq!(circles(&[lib, a, ("b", "use crate::a::A;")]), [A_AND_B]);
        let c = ("c", "pub struct C; use crate::a::A;");
        assert_eq!(
            circles(&[lib, ("a", "use crate::C;"), c]),
            ["crates/x/src: modules a, c import each other in a circle:"]
        );
    }

    #[test]
    fn a_module_within_a_file_has_names_of_its_own() {
        let a = ("a", "mod inner { use super::X; use super::super::b::B; } fn f() {}");
        assert_eq!(circles(&[a, ("b", "use crate::a::X;")]), [A_AND_B]);
    }
}
