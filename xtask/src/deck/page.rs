//! `docs/deck-functions.md`: every function and every error.

use std::fmt::Write;

use super::description::Description;

/// The text of the page.
pub(super) fn text(description: &Description) -> String {
    let count = description.functions().count();
    let mut text = format!(
        "# The functions of DECK\n\n\
         All {count} functions of `deck.h`. Each returns `DECK_OK` or the number of an error, unless it says\n\
         otherwise; after the installation each has a manual page (`man deck_mbox_post`). [deck](deck.md) is the\n\
         chapter to begin with. The page is made by `cargo xtask deck`.\n",
    );
    for chapter in &description.chapters {
        let _ = write!(text, "\n## {}\n\n{}\n\n", chapter.title, chapter.text.trim());
        text += "| function | effect |\n|---|---|\n";
        for function in &chapter.functions {
            let words = format!("{} {}", function.brief.trim(), function.text.trim());
            let _ = writeln!(text, "| `{}` | {} |", function.declaration(), words.trim());
        }
    }
    text += "\n## Errors\n\n| number | name | meaning |\n|---|---|---|\n";
    for error in &description.errors {
        let _ = writeln!(text, "| {} | `{}` | {} |", error.number, error.name, error.text);
    }
    text
}
