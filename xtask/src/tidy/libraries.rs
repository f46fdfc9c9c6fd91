//! Every library of others is there for a reason, and a table in ARCHITECTURE.md says it.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::Tree;

const REASONS: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let reasons = tree.documents.iter().find(|document| document.path == REASONS);
    let reasons = reasons.map_or("", |document| document.text.as_str());
    let ours: BTreeSet<&str> = tree.packages.iter().map(|package| package.name.as_str()).collect();
    let all = tree.packages.iter().flat_map(|package| &package.dependencies);
    let foreign: BTreeSet<&str> = all
        .map(|dependency| dependency.name.as_str())
        .filter(|name| !ours.contains(name))
        .collect();
    let unexplained = foreign.iter().filter(|name| !explained(reasons, name));
    unexplained
        .map(|name| {
            Fault::new(REASONS, 0, format!("does not say why the library `{name}` is there"))
        })
        .collect()
}

/// Whether the first cell of some table row names the library.
fn explained(reasons: &str, name: &str) -> bool {
    let rows = reasons.lines().filter_map(|line| line.strip_prefix('|'));
    let mut cells = rows.filter_map(|row| row.split('|').next());
    cells.any(|cell| cell.split(',').any(|word| word.trim().trim_matches('`') == name))
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Dependency, Document, Package};
    use super::*;

    #[test]
    fn a_library_without_a_reason_is_a_fault() {
        let dependency = |name: &str| Dependency { name: name.into(), for_tests: false };
        let package = Package {
            name: "landeck-wire".into(),
            room: "crates/wire".into(),
            manifest: String::new(),
            dependencies: vec![
                dependency("thiserror"),
                dependency("libc"),
                dependency("landeck-wire"),
            ],
        };
        let text = "libc is only named here\n| `thiserror`, rustix | error texts |".to_owned();
        let documents = vec![Document { path: REASONS.into(), text }];
        let found = check(&Tree { packages: vec![package], documents, ..Tree::default() });
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("`libc`"));
    }
}
