//! Short functions may not become long ones, nor files. Ask of a long one: which noun wants to
//! leave? The first page stays short as well: what a newcomer does not need has a page in `docs/`.

use super::Fault;
use super::source::{Source, end_of_item, is_word};
use super::tree::{Document, Tree};

const README: &str = "README.md";
const README_LINES_MAX: usize = 120;
const FILE_LINES_MAX: usize = 900;
const FUNCTION_LINES_MAX: usize = 80;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let faults = tree.sources.iter().flat_map(check_source);
    faults.chain(tree.documents.iter().filter_map(check_first_page)).collect()
}

fn check_first_page(document: &Document) -> Option<Fault> {
    let lines = document.text.lines().count();
    (document.path == README && lines > README_LINES_MAX).then(|| {
        let message = format!(
            "has {lines} lines, more than {README_LINES_MAX}: move what a newcomer does not need to docs/"
        );
        Fault::new(&document.path, 0, message)
    })
}

fn check_source(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    let lines = source.lines().count();
    if lines > FILE_LINES_MAX {
        let message =
            format!("has {lines} lines, more than {FILE_LINES_MAX}: which noun wants to leave?");
        faults.push(Fault::new(&source.path, 0, message));
    }
    for at in source.places_of("fn") {
        let Some((name, lines)) = function(source, at) else { continue };
        if lines > FUNCTION_LINES_MAX {
            let message =
                format!("function {name} has {lines} lines, more than {FUNCTION_LINES_MAX}");
            faults.push(Fault::new(&source.path, source.line_of(at), message));
        }
    }
    faults
}

/// The name and the lines of the function whose `fn` stands here; a type `fn(u32)` has no name.
fn function(source: &Source, at: usize) -> Option<(&str, usize)> {
    let rest = &source.code[at + 2..];
    let name_at = rest.find(|c: char| !c.is_whitespace())?;
    let name = &rest[name_at..];
    let name = &name[..name.find(|c| !is_word(c))?];
    if name.is_empty() {
        return None;
    }
    let end = end_of_item(&source.code, at)?;
    Some((name, source.line_of(end - 1) - source.line_of(at) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<Fault> {
        check(&Tree { sources: vec![Source::new("a.rs", text)], ..Tree::default() })
    }

    fn function_of(lines: usize) -> String {
        format!(
            "fn long(a: [u8; 3]) {{\n{}}}\nfn short() {{}}\n",
            "    if a { b(); }\n".repeat(lines - 2)
        )
    }

    #[test]
    fn a_long_function_is_a_fault() {
        assert_eq!(faults(&function_of(FUNCTION_LINES_MAX)), []);
        let found = faults(&function_of(FUNCTION_LINES_MAX + 1));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("function long has 81 lines"));
    }

    #[test]
    fn a_long_file_is_a_fault() {
        assert_eq!(faults(&"\n".repeat(FILE_LINES_MAX)), []);
        assert_eq!(faults(&"\n".repeat(FILE_LINES_MAX + 1)).len(), 1);
    }

    #[test]
    fn a_long_first_page_is_a_fault_and_another_page_is_none() {
        let faults = |path: &str, lines| {
            let document = Document { path: path.to_owned(), text: "\n".repeat(lines) };
            check(&Tree { documents: vec![document], ..Tree::default() })
        };
        assert_eq!(faults(README, README_LINES_MAX), []);
        assert_eq!(faults("docs/README.md", README_LINES_MAX + 1), []);
        let found = faults(README, README_LINES_MAX + 1);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("has 121 lines"), "{}", found[0]);
    }

    #[test]
    fn a_declaration_and_a_type_are_no_functions() {
        assert_eq!(faults("trait A { fn a(&self); }\ntype B = fn(u32);"), []);
    }
}
