//! Every Rust file starts with `//!` and a sentence that says what it is.

use super::Fault;
use super::source::Source;
use super::tree::Tree;

/// Words of a head that says nothing.
const EMPTY_WORDS: &[&str] = &["under construction", "TODO", "FIXME"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.sources.iter().filter_map(check_source).collect()
}

fn check_source(source: &Source) -> Option<Fault> {
    let first = source.lines().find(|line| !line.starts_with("#!/"))?;
    let message = match first.strip_prefix("//!") {
        None => "does not start with a //! head that says what the file is".to_owned(),
        Some(words) if words.trim().is_empty() => {
            "its //! head starts with an empty line".to_owned()
        }
        Some(words) => {
            let empty = EMPTY_WORDS.iter().find(|empty| words.contains(**empty))?;
            format!("its head says \"{empty}\": say what the file is")
        }
    };
    Some(Fault::new(&source.path, 1, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> usize {
        check(&Tree { sources: vec![Source::new("a.rs", text)], ..Tree::default() }).len()
    }

    #[test]
    fn a_file_without_a_head_is_a_fault() {
        assert_eq!(faults("use std::fmt;"), 1);
        assert_eq!(faults("// A comment is no head."), 1);
        assert_eq!(faults("//!\n//! Late."), 1);
        assert_eq!(faults("//! (under construction)"), 1);
        assert_eq!(faults("//! Views of a group."), 0);
    }
}
