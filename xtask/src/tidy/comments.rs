//! A doc comment names its subject: no paragraph of one begins with "Who", "What" or "The same".

use std::collections::BTreeMap;

use super::source::{Source, is_word};
use super::tree::Tree;
use super::{Fault, exemptions};

/// Beginnings that leave a reader to ask "which?" or "who?".
const BEGINNINGS: &[&str] = &["The same", "See above", "As above", "Who", "Whoever", "What"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    check_against(tree, exemptions::COMMENTS_LEFT)
}

/// Compares each crate with its number of comments that are left. The number must be exact, so that
/// it can only fall.
fn check_against(tree: &Tree, left: &[(&str, usize)]) -> Vec<Fault> {
    let mut found: BTreeMap<&str, Vec<Fault>> = BTreeMap::new();
    for source in &tree.sources {
        found.entry(room(&source.path)).or_default().extend(check_source(source));
    }
    let excused =
        |room: &str| left.iter().find(|(other, _)| *other == room).map(|(_, count)| *count);
    let mut faults = Vec::new();
    for &(room, count) in left {
        let present = found.get(room).map_or(0, Vec::len);
        if present < count {
            let message =
                format!("{present} comments are left, and the table says {count}: lower it");
            faults.push(Fault::new(room, 0, message));
        }
    }
    let broken = found.into_iter().filter(|(room, found)| found.len() > excused(room).unwrap_or(0));
    faults.extend(broken.flat_map(|(_, found)| found));
    faults
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

/// The folder of the crate that a file belongs to.
fn room(path: &str) -> &str {
    let parts = match path.split('/').next() {
        Some("crates" | "fronts" | "programs") => 2,
        _ => 1,
    };
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.take(parts).nth(parts - 1).map_or(path, |end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree { sources: vec![Source::new(path, text)], ..Tree::default() }
    }

    fn faults(text: &str) -> usize {
        check_against(&tree("crates/a/src/b.rs", text), &[]).len()
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

    #[test]
    fn the_number_of_a_crate_is_exact() {
        let two = tree("crates/a/src/b.rs", "/// Who.\nfn a() {}\n/// What.\nfn b() {}");
        assert_eq!(check_against(&two, &[("crates/a", 2)]), []);
        assert_eq!(check_against(&two, &[("crates/a", 1)]).len(), 2);
        assert_eq!(check_against(&two, &[("crates/b", 2)]).len(), 3);
        let few = check_against(&two, &[("crates/a", 3)]);
        assert!(few[0].message.contains("says 3: lower it"), "{few:?}");
    }

    #[test]
    fn a_file_belongs_to_its_crate() {
        assert_eq!(room("crates/a/src/b.rs"), "crates/a");
        assert_eq!(room("xtask/src/main.rs"), "xtask");
        assert_eq!(room("build.rs"), "build.rs");
    }
}
