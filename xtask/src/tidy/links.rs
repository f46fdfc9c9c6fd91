//! A link in a document that leads to a file of the repository leads to one that is there.

use super::Fault;
use super::tree::{Document, Tree};
use crate::links::{resolve, targets};

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.documents.iter().flat_map(|document| check_document(tree, document)).collect()
}

fn check_document(tree: &Tree, document: &Document) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for target in targets(line) {
            let path = resolve(&document.path, target);
            if !tree.paths.contains(&path) {
                let message = format!("links to {target}, which is not there");
                faults.push(Fault::new(&document.path, index + 1, message));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> usize {
        let documents = vec![Document { path: "docs/a.md".into(), text: text.into() }];
        let paths = vec!["docs".into(), "docs/b.md".into(), "README.md".into()];
        check(&Tree { documents, paths, ..Tree::default() }).len()
    }

    #[test]
    fn a_link_to_nothing_is_a_fault() {
        assert_eq!(faults("see [b](c.md)"), 1);
        assert_eq!(
            faults(
                "see [b](b.md#part), [r](../README.md), [d](../docs/), [w](https://a.b/c), [p](#x)"
            ),
            0
        );
    }
}
