//! The table of contents: which documents are chapters, and in which order.

use std::path::Path;

use super::read;
use crate::Problem;
use crate::links::{resolve, targets};

/// Where it is.
const PATH: &str = "docs/SUMMARY.md";

/// The table as it is written, with links from its own folder.
pub(super) struct Summary {
    text: String,
}

impl Summary {
    pub(super) fn read(root: &Path) -> Result<Self, Problem> {
        Ok(Self { text: read(&root.join(PATH))? })
    }

    /// The documents by their paths from the root.
    pub(super) fn chapters(&self) -> impl Iterator<Item = String> {
        self.text.lines().flat_map(targets).map(|target| resolve(PATH, target))
    }

    /// Returns the table with links from the root.
    pub(super) fn of_root(&self) -> String {
        let line = |line: &str| match targets(line).next() {
            Some(target) => {
                line.replace(&format!("]({target}"), &format!("]({}", resolve(PATH, target)))
            }
            None => line.to_owned(),
        };
        self.text.lines().map(|text| line(text) + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_begin_at_the_root_and_drafts_stay() {
        let text = "# Summary\n\n[A](../README.md)\n- [B](b.md)\n- [Later]()\n".to_owned();
        let summary = Summary { text };
        assert_eq!(summary.chapters().collect::<Vec<_>>(), ["README.md", "docs/b.md"]);
        let expected = "# Summary\n\n[A](README.md)\n- [B](docs/b.md)\n- [Later]()\n";
        assert_eq!(summary.of_root(), expected);
    }
}
