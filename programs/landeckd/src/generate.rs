//! Generates the manual pages and shell completions of the daemon from the definition of its command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, ValueEnum};
use clap_complete::{Generator, Shell};

/// Files that can be generated.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum What {
    /// A page for the program, and one for each subcommand.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
}

/// Writes the files into a directory that exists.
pub(crate) fn write(mut definition: Command, what: What, directory: &Path) -> io::Result<()> {
    match what {
        What::Man => clap_mangen::generate_to(definition, directory),
        What::Completions => {
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                let mut text = Vec::new();
                clap_complete::generate(shell, &mut definition, "landeckd", &mut text);
                fs::write(directory.join(shell.file_name("landeckd")), text)?;
            }
            Ok(())
        }
    }
}
