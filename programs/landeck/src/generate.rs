//! Generates manual pages, shell completions and the book's chapter from the definition of the command line.

mod environment;
mod reference;

use crate::cli::{self, What};
use crate::mpiexec;
use clap_complete::{Generator, Shell};
use clap_mangen::roff::{Roff, bold, roman};
use landeck_host::file::make_directory;
use std::fs;
use std::io;
use std::io::Write;
use std::path::Path;

/// Writes the files into a directory, which it creates if needed.
pub(crate) fn write(what: What, directory: &Path) -> io::Result<()> {
    make_directory(directory)?;
    let mut definition = cli::definition();
    match what {
        What::Man => {
            clap_mangen::generate_to(definition.clone(), directory)?;
            complete_pages(&definition, "landeck", directory)?;
            fs::write(directory.join("mpiexec.1"), mpiexec_page())
        }
        What::Completions => {
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                let mut text = Vec::new();
                clap_complete::generate(shell, &mut definition, "landeck", &mut text);
                fs::write(directory.join(shell.file_name("landeck")), text)?;
            }
            Ok(())
        }
        What::Reference => fs::write(directory.join("launcher.md"), reference::text(definition)),
    }
}

/// Adds the environment of `landeck run` and references to a manual page and its subpages, since clap leaves them
/// out.
fn complete_pages(command: &clap::Command, page: &str, directory: &Path) -> io::Result<()> {
    let mut sections = Roff::new();
    if page == "landeck-run" {
        environment::add_to(&mut sections);
    }
    let others = [
        "landeck",
        "landeck-run",
        "landeck-why",
        "landeck-top",
        "landeckd",
        "mpiexec",
        "mpicc_abi",
        "deckcc",
    ];
    let others: Vec<&str> = others.into_iter().filter(|other| *other != page).collect();
    sections.extend([see_also(&others)]);
    let mut file = fs::OpenOptions::new().append(true).open(directory.join(format!("{page}.1")))?;
    file.write_all(sections.to_roff().as_bytes())?;
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|below| {
        complete_pages(below, &format!("{page}-{}", below.get_name()), directory)
    })
}

fn see_also(pages: &[&str]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["SEE ALSO"]);
    for (number, page) in pages.iter().enumerate() {
        let end = if number + 1 < pages.len() { "(1)," } else { "(1)" };
        section.text([bold(*page), roman(end)]);
    }
    section
}

/// The manual page of mpiexec, from its help.
fn mpiexec_page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["mpiexec", "1", "", concat!("landeck ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]);
    page.text([roman("mpiexec, mpirun - start an MPI job, with the options of MPICH")]);
    page.control("SH", ["DESCRIPTION"]);
    page.control("nf", []);
    for line in mpiexec::HELP.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
    page.extend([see_also(&["landeck-run", "mpicc_abi"])]);
    page.to_roff()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_run_has_the_environment_and_every_page_says_where_to_read_on() {
        let directory = std::env::temp_dir().join(format!("landeck-man-{}", std::process::id()));
        write(What::Man, &directory).unwrap();
        let page = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        let (run, why) = (page("landeck-run.1"), page("landeck-why.1"));
        fs::remove_dir_all(&directory).unwrap();
        assert!(run.contains(".SH ENVIRONMENT") && run.contains("LANDECK_COLLECTIVES"), "{run}");
        assert!(run.contains("landeck\\-why"), "{run}");
        assert!(why.contains(".SH \"SEE ALSO\"") && !why.contains("ENVIRONMENT"), "{why}");
    }

    #[test]
    fn the_page_of_mpiexec_has_all_its_options() {
        let page = mpiexec_page();
        for word in ["-prepend\\-rank", "MPIEXEC_TIMEOUT", ".SH NAME"] {
            assert!(page.contains(word), "{word}:\n{page}");
        }
    }
}
