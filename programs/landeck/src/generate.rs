//! Man pages and shell completions, made from the definition of the command line.

use crate::cli;
use clap_complete::Shell;
use std::io;
use std::path::Path;

/// What can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// A page for the command and one for each subcommand.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
}

/// Writes the files into a directory, which is made if need be.
pub(crate) fn write(what: What, directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut definition = cli::definition();
    match what {
        What::Man => clap_mangen::generate_to(definition, directory),
        What::Completions => {
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                clap_complete::generate_to(shell, &mut definition, "landeck", directory)?;
            }
            Ok(())
        }
    }
}
