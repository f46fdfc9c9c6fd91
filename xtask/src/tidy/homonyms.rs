//! The name of a public type means one thing: it stands in one crate only.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, is_word};
use super::tree::Tree;
use super::{Fault, exemptions};

/// The beginnings of definitions of public types.
const DEFINITIONS: &[&str] =
    &["pub struct", "pub enum", "pub trait", "pub unsafe trait", "pub union", "pub type"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    check_against(tree, exemptions::HOMONYMS_LEFT)
}

/// Compares the crates of each name with the table of those that are left. The table must be exact,
/// so that it can only become shorter.
fn check_against(tree: &Tree, left: &[(&str, &str)]) -> Vec<Fault> {
    let mut crates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in &tree.sources {
        let Some(own) = crate_of(&source.path) else { continue };
        for name in public_types(source) {
            crates.entry(name).or_default().insert(own);
        }
    }
    let found: BTreeMap<&str, String> = crates
        .into_iter()
        .filter(|(_, crates)| crates.len() > 1)
        .map(|(name, crates)| (name, crates.into_iter().collect::<Vec<_>>().join(" ")))
        .collect();
    let excused = |name: &str| left.iter().find(|(other, _)| *other == name).map(|(_, all)| *all);
    let several = found.iter().filter(|(name, crates)| excused(name) != Some(crates.as_str()));
    let several = several.map(|(name, crates)| {
        let message = format!("public type {name} stands in several crates ({crates}): rename it");
        Fault::new("crates", 0, message)
    });
    let unused = left.iter().filter(|(name, _)| !found.contains_key(name));
    let unused = unused.map(|(name, _)| {
        let message = format!("type {name} stands in one crate at most: take its exemption out");
        Fault::new("crates", 0, message)
    });
    several.chain(unused).collect()
}

/// The public types that a file defines. All of them count, though some are not reachable from the
/// crate's root.
fn public_types(source: &Source) -> impl Iterator<Item = &str> {
    let places = DEFINITIONS
        .iter()
        .flat_map(|definition| source.places_of(definition).map(|at| (at, at + definition.len())));
    places.filter(|(at, _)| !source.is_test(*at)).map(|(_, end)| {
        let rest = source.code[end..].trim_start();
        &rest[..rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())]
    })
}

/// The name of the crate whose source a file is.
fn crate_of(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    rest.starts_with("src/").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(left: &[(&str, &str)]) -> Vec<Fault> {
        let files = [
            ("crates/a/src/x.rs", "pub struct Place(u32);\npub enum Own { A }"),
            ("crates/b/src/y.rs", "pub type Place = u32;\npub(crate) struct Own;"),
            ("crates/c/src/z.rs", "#[cfg(test)]\nmod tests {\n pub struct Place;\n}"),
            ("crates/d/tests/z.rs", "pub struct Place;"),
            ("fronts/e/src/z.rs", "pub struct Place;"),
        ];
        let sources = files.map(|(path, text)| Source::new(path, text));
        check_against(&Tree { sources: sources.into(), ..Tree::default() }, left)
    }

    #[test]
    fn a_public_name_in_two_crates_is_a_fault() {
        let found = faults(&[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("Place stands in several crates (a b)"), "{found:?}");
    }

    #[test]
    fn the_table_is_exact() {
        assert_eq!(faults(&[("Place", "a b")]), []);
        assert_eq!(faults(&[("Place", "a b c")]).len(), 1);
        let unused = faults(&[("Place", "a b"), ("Own", "a b")]);
        assert!(unused[0].message.contains("type Own stands in one crate"), "{unused:?}");
    }
}
