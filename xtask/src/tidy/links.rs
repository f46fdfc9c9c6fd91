//! A link in a document that leads to a file of the repository leads to one that is there, and every page
//! of `docs/` is a chapter of the book.

use super::Fault;
use super::tree::{Document, Tree};
use crate::links::{resolve, targets};

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let faults = tree.documents.iter().flat_map(|document| check_document(tree, document));
    faults.chain(pages_without_chapter(tree)).collect()
}

fn pages_without_chapter(tree: &Tree) -> Vec<Fault> {
    let summary = tree.documents.iter().find(|document| document.path == SUMMARY);
    let text = summary.map_or("", |summary| &summary.text);
    let chapters: Vec<String> =
        text.lines().flat_map(targets).map(|target| resolve(SUMMARY, target)).collect();
    let pages = tree.documents.iter().map(|document| &document.path);
    let left_out = pages
        .filter(|path| path.starts_with("docs/") && *path != SUMMARY && !chapters.contains(path));
    left_out
        .map(|path| Fault::new(path, 0, format!("is no chapter: name it in {SUMMARY}")))
        .collect()
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
        let document = |path: &str, text: &str| Document { path: path.into(), text: text.into() };
        let documents = vec![document("docs/a.md", text), document(SUMMARY, "[a](a.md)")];
        let paths = ["docs", "docs/a.md", "docs/b.md", "README.md"].map(str::to_owned).to_vec();
        check(&Tree { documents, paths, ..Tree::default() }).len()
    }

    #[test]
    fn a_page_that_is_no_chapter_is_a_fault() {
        let page = Document { path: "docs/b.md".into(), text: String::new() };
        let summary = Document { path: SUMMARY.into(), text: "- [Later]()".into() };
        let tree = Tree { documents: vec![page, summary], ..Tree::default() };
        assert_eq!(check(&tree).len(), 1);
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
