//! `cargo xtask count`: the lines of code of each room, without blank lines and comments, in columns: what users run, the
//! project's tools, made files, tests.

use std::collections::BTreeMap;
use std::path::Path;

use super::source::Source;
use super::tree::Tree;
use crate::Problem;

/// The rooms of tools; all others hold what users run.
const TOOLS: [&str; 4] = ["crates/testing", "fuzz", "programs/bench", "xtask"];

/// Lines of code by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    product: usize,
    tools: usize,
    made: usize,
    tests: usize,
}

/// Prints the lines of each room and their sums.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    let tree = Tree::read(root)?;
    let counts = count(&tree);
    say!("{:>8} {:>8} {:>8} {:>8}", "product", "tools", "made", "tests");
    let mut sum = Lines::default();
    for (room, lines) in &counts {
        print(lines, room);
        sum.add(*lines);
    }
    print(&sum, "lines of code");
    Ok(true)
}

fn print(lines: &Lines, what: &str) {
    let Lines { product, tools, made, tests } = lines;
    say!("{product:>8} {tools:>8} {made:>8} {tests:>8}  {what}");
}

/// The lines of each room; a source outside all rooms counts for its folder.
fn count(tree: &Tree) -> BTreeMap<&str, Lines> {
    let mut counts: BTreeMap<&str, Lines> = BTreeMap::new();
    for source in &tree.sources {
        let within = |room: &&str| {
            source.path.strip_prefix(room).is_some_and(|below| below.starts_with('/'))
        };
        let rooms = tree.packages.iter().map(|package| package.room.as_str());
        let room = rooms.filter(within).max_by_key(|room| room.len());
        let room = room.or_else(|| source.path.split('/').next()).unwrap_or_default();
        counts.entry(room).or_default().add(lines(source, TOOLS.contains(&room)));
    }
    counts.retain(|_, lines| *lines != Lines::default());
    counts
}

/// Lines that hold code, or a part of a literal.
fn lines(source: &Source, is_tool: bool) -> Lines {
    let mut start = 0;
    let mut lines = Lines::default();
    for (line, code) in source.text.split('\n').zip(source.code.split('\n')) {
        let is_literal = !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let first = start + line.len() - line.trim_start().len();
        if !code.trim().is_empty() || is_literal {
            *lines.column(source, first, is_tool) += 1;
        }
        start += line.len() + 1;
    }
    lines
}

impl Lines {
    fn column(&mut self, source: &Source, at: usize, is_tool: bool) -> &mut usize {
        match () {
            () if source.path.starts_with("crates/testing/") => &mut self.tools,
            () if source.is_test(at) => &mut self.tests,
            () if is_tool => &mut self.tools,
            () if source.is_made() => &mut self.made,
            () => &mut self.product,
        }
    }

    fn add(&mut self, other: Self) {
        self.product += other.product;
        self.tools += other.tools;
        self.made += other.made;
        self.tests += other.tests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_do_not_count_and_tests_count_apart() {
        let text = "//! Head.\n\nfn a() {\n    // why\n    b(\"x\n        y\"); // tail\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        let of = |path, is_tool| lines(&Source::new(path, text), is_tool);
        assert_eq!(of("a.rs", false), Lines { product: 4, tests: 4, ..Lines::default() });
        assert_eq!(of("a.rs", true), Lines { tools: 4, tests: 4, ..Lines::default() });
        assert_eq!(of("tests/a.rs", false), Lines { tests: 8, ..Lines::default() });
        assert_eq!(of("crates/testing/a.rs", true), Lines { tools: 8, ..Lines::default() });
        let made = Source::new("a.rs", "//! The shells. Made by `cargo xtask mpi`.\nfn a() {}\n");
        assert_eq!(lines(&made, false), Lines { made: 1, ..Lines::default() });
    }
}
