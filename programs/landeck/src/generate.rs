//! Man pages, shell completions and the chapter of the book, made from the definition of the command
//! line.

mod reference;

use crate::{cli, mpiexec};
use clap_complete::{Generator, Shell};
use clap_mangen::roff::{Roff, bold, roman};
use landeck::unstable::host::file::make_directory;
use std::fs;
use std::io;
use std::path::Path;

/// What can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// A page for the command, one for each subcommand, and that of mpiexec.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
    /// The chapter launcher.md of the book.
    Reference,
}

/// Writes the files into a directory, which is made if need be.
pub(crate) fn write(what: What, directory: &Path) -> io::Result<()> {
    make_directory(directory)?;
    let mut definition = cli::definition();
    match what {
        What::Man => {
            clap_mangen::generate_to(definition, directory)?;
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

/// The page of mpiexec: what its help says, line by line.
fn mpiexec_page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["mpiexec", "1", "", concat!("landeck ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]);
    page.text([roman(
        "mpiexec, mpirun - start an MPI job on this host, with the options of MPICH",
    )]);
    page.control("SH", ["DESCRIPTION"]);
    page.control("nf", []);
    for line in mpiexec::HELP.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("landeck-run"), roman("(1), "), bold("mpicc_abi"), roman("(1)")]);
    page.to_roff()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_mpiexec_has_all_its_options() {
        let page = mpiexec_page();
        for word in ["-prepend\\-rank", "MPIEXEC_TIMEOUT", ".SH NAME"] {
            assert!(page.contains(word), "{word}:\n{page}");
        }
    }
}
