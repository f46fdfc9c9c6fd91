//! The `landeck` command.
#![forbid(unsafe_code)]

mod cli;
mod generate;

use cli::{Command, Usage};
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os().collect()) {
        Ok(Command::Run(launch)) => match launch.run() {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("landeck: {error}");
                ExitCode::from(error.exit_code())
            }
        },
        Ok(Command::Generate { what, directory }) => match generate::write(what, &directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("landeck: {}: {error}", directory.display());
                ExitCode::FAILURE
            }
        },
        Err(Usage(error)) => error.exit(),
    }
}
