//! `docs/mpi-functions.md`: every function, and whether it works.

use std::fmt::Write;

use super::description::{Description, Function};

/// The text of the page.
pub(super) fn text(description: &Description) -> String {
    let works = description.functions.iter().filter(|function| function.works()).count();
    let mut text = format!(
        "# The functions of MPI\n\n\
         All {} functions of the MPI 5.0 standard ABI are in the library, under the names `MPI_X` and\n\
         `PMPI_X`. {works} of them work. The others say `MPI_ERR_UNSUPPORTED_OPERATION` through the error\n\
         handler. The page is made by `cargo xtask mpi`, and a test compares it with the library.\n",
        description.functions.len(),
    );
    for chapter in description.chapters() {
        let functions: Vec<_> = description.chapter(chapter).collect();
        let works = functions.iter().filter(|function| function.works()).count();
        let name = chapter.replace('_', " ");
        let _ = write!(text, "\n## {} ({works} of {} work)\n\n", capital(&name), functions.len());
        text += "| function | since | |\n|---|---|---|\n";
        for function in functions {
            let _ = writeln!(
                text,
                "| `{}` | {} | {} |",
                function.name,
                function.since,
                state(function)
            );
        }
    }
    text
}

fn state(function: &Function) -> String {
    let state = if function.works() { "works" } else { "unsupported" };
    match function.deprecated.as_str() {
        "" => state.to_owned(),
        version => format!("{state}; deprecated since {version}"),
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().to_string() + letters.as_str())
}
