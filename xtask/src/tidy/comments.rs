//! A doc comment names its subject: no paragraph of one begins with "Who", "What" or "The same".

use super::Fault;
use super::source::{Source, is_word};
use super::tree::Tree;

/// Beginnings that leave a reader to ask "which?" or "who?".
const BEGINNINGS: &[&str] = &["The same", "See above", "As above", "Who", "Whoever", "What"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut is_within = false;
    for (index, line) in source.lines().enumerate() {
        let Some(words) = doc_words(line) else {
            is_within = false;
            continue;
        };
        if !is_within && let Some(beginning) = BEGINNINGS.iter().find(|it| begins(words, it)) {
            let message = format!("a doc comment begins with \"{beginning}\": name its subject");
            faults.push(Fault::new(&source.path, index + 1, message));
        }
        is_within = !words.is_empty() && !words.starts_with('#');
    }
    faults
}

/// The words of a line of a doc comment.
fn doc_words(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

/// Whether words begin with a beginning as whole words.
fn begins(words: &str, beginning: &str) -> bool {
    words.strip_prefix(beginning).is_some_and(|rest| !rest.starts_with(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree { sources: vec![Source::new(path, text)], ..Tree::default() }
    }

    fn faults(text: &str) -> usize {
        check(&tree("crates/a/src/b.rs", text)).len()
    }

    #[test]
    fn a_comment_that_names_no_subject_is_a_fault() {
        assert_eq!(faults("/// Who waits.\nfn a() {}"), 1);
        assert_eq!(faults("    /// The same for two.\n    fn a() {}"), 1);
        assert_eq!(faults("//! What it is."), 1);
        assert_eq!(
            faults("/// A wait.\n///\n/// # Errors\n/// What the kernel says.\nfn a() {}"),
            1
        );
        assert_eq!(faults("/// As above.\nfn a() {}\n/// Whoever comes.\nfn b() {}"), 2);
    }

    #[test]
    fn other_words_and_later_lines_are_none() {
        assert_eq!(faults("/// A process that\n/// What follows.\nfn a() {}"), 0);
        assert_eq!(faults("/// Whole bytes.\nfn a() {}"), 0);
        assert_eq!(faults("// What is no doc comment.\nfn a() {}"), 0);
        assert_eq!(faults("/// Whatever it says.\nfn a() {}"), 0);
    }
}
