//! `cargo xtask deck`: what is made of the description of DECK's functions in `fronts/deck/api/`.
//!
//! | made | from |
//! |---|---|
//! | `fronts/deck/include/deck.h` | `head.h`, functions and errors, by `header` |
//! | `fronts/deck/src/shells.rs` | functions, by `shells` |
//! | `fronts/deck/src/errors.rs` | `errors.toml`, by `errors` |
//! | `docs/deck-functions.md` | functions and errors, by `page` |
//! | manual pages, when it is installed | functions and errors, by `manual` |

mod description;
mod errors;
mod header;
mod manual;
mod page;
mod shells;

use std::fs;
use std::path::Path;

use crate::Problem;
use description::Description;
pub(crate) use manual::Page;

/// A file that is made: its path from the root of the repository, and its text.
struct Made {
    path: &'static str,
    text: String,
}

/// Writes every file whose text has changed, and says which.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    for Made { path, text } in made(root)? {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(&full, text).map_err(|error| Problem::Write { path: full, error })?;
        say!("deck: {path} is new");
    }
    Ok(true)
}

/// The made files that are not what the description says now.
pub(crate) fn stale(root: &Path) -> Result<Vec<String>, Problem> {
    let is_stale = |made: &Made| {
        fs::read_to_string(root.join(made.path)).map_or(true, |text| text != made.text)
    };
    Ok(made(root)?.into_iter().filter(is_stale).map(|made| made.path.to_owned()).collect())
}

/// The manual pages, which are not kept.
pub(crate) fn manual_pages(root: &Path) -> Result<Vec<Page>, Problem> {
    Ok(manual::pages(&description(root)?))
}

fn description(root: &Path) -> Result<Description, Problem> {
    Description::read(&root.join("fronts/deck/api"))
}

fn made(root: &Path) -> Result<Vec<Made>, Problem> {
    let description = description(root)?;
    Ok(vec![
        Made { path: "fronts/deck/include/deck.h", text: header::text(&description) },
        Made { path: "fronts/deck/src/shells.rs", text: shells::text(&description) },
        Made { path: "fronts/deck/src/errors.rs", text: errors::text(&description) },
        Made { path: "docs/deck-functions.md", text: page::text(&description) },
    ])
}
