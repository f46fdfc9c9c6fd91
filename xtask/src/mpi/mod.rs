//! `cargo xtask mpi`: what is made of the description of MPI's functions and constants in
//! `fronts/mpi/abi/`.
//!
//! | made | from |
//! |---|---|
//! | `fronts/mpi/include/mpi.h` | all of it, by `header` |
//! | `fronts/mpi/src/shells/CHAPTER.rs` | `functions/CHAPTER.csv`, by `shells` |
//! | `fronts/mpi/src/abi/constants.rs` | `constants.csv`, by `constants` |
//! | `docs/mpi-functions.md` | `functions/`, by `page` |

mod constants;
mod description;
mod header;
mod page;
mod shells;

use std::fs;
use std::path::Path;

use crate::Problem;
use description::Description;

/// A file that is made: its path from the root of the repository, and its text.
struct Made {
    path: String,
    text: String,
}

/// Writes every file whose text has changed, and says which.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    for Made { path, text } in made(root)? {
        let full = root.join(&path);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(&full, text).map_err(|error| Problem::Write { path: full, error })?;
        say!("mpi: {path} is new");
    }
    Ok(true)
}

/// The made files that are not what the description says now.
pub(crate) fn stale(root: &Path) -> Result<Vec<String>, Problem> {
    let is_stale = |made: &Made| {
        fs::read_to_string(root.join(&made.path)).map_or(true, |text| text != made.text)
    };
    Ok(made(root)?.into_iter().filter(is_stale).map(|made| made.path).collect())
}

fn made(root: &Path) -> Result<Vec<Made>, Problem> {
    let description = Description::read(&root.join("fronts/mpi/abi"))?;
    let mut files = shells::files(&description);
    files.push(Made {
        path: "fronts/mpi/include/mpi.h".to_owned(),
        text: header::text(&description),
    });
    files.push(Made {
        path: "fronts/mpi/src/abi/constants.rs".to_owned(),
        text: constants::text(&description),
    });
    files.push(Made { path: "docs/mpi-functions.md".to_owned(), text: page::text(&description) });
    Ok(files)
}
