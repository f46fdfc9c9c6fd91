//! `cargo xtask count`: how many lines of production code each room has, without blank lines, comments and tests.

use std::collections::BTreeMap;
use std::path::Path;

use super::source::Source;
use super::tree::Tree;
use crate::Problem;

/// Prints the lines of each room and their sum.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    let tree = Tree::read(root)?;
    let counts = count(&tree);
    for (room, lines) in &counts {
        say!("{lines:>8}  {room}");
    }
    say!("{:>8}  lines of production code", counts.values().sum::<usize>());
    Ok(true)
}

/// The lines of each room; a source outside all rooms counts for its folder.
fn count(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for source in &tree.sources {
        let within = |room: &&str| {
            source.path.strip_prefix(room).is_some_and(|below| below.starts_with('/'))
        };
        let rooms = tree.packages.iter().map(|package| package.room.as_str());
        let room = rooms.filter(within).max_by_key(|room| room.len());
        let room = room.or_else(|| source.path.split('/').next()).unwrap_or_default();
        *counts.entry(room).or_default() += lines(source);
    }
    counts.retain(|_, lines| *lines > 0);
    counts
}

/// Lines that hold code, or a part of a literal.
fn lines(source: &Source) -> usize {
    let mut start = 0;
    let mut count = 0;
    for (line, code) in source.text.split('\n').zip(source.code.split('\n')) {
        let is_literal = !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let holds = !code.trim().is_empty() || is_literal;
        let first = start + line.len() - line.trim_start().len();
        count += usize::from(holds && !source.is_test(first));
        start += line.len() + 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_do_not_count() {
        let text = "//! Head.\n\nfn a() {\n    // why\n    b(\"x\n        y\"); // tail\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        assert_eq!(lines(&Source::new("a.rs", text)), 4);
        assert_eq!(lines(&Source::new("tests/a.rs", text)), 0);
    }
}
