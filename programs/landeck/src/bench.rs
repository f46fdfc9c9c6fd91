//! `landeck bench`: starts the program `landeck-bench`, which lies beside this one if it was built in the source
//! tree.

use clap::Args;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measure Landeck: beside its peers, or what three papers measured (`landeck bench papers`).
///
/// The arguments that follow belong to landeck-bench; `landeck bench --help` lists them.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArguments {
    /// For landeck-bench: papers --quick, list, ...
    #[arg(
        value_name = "ARGUMENTS",
        num_args = 0..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// The benchmark cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("cannot find out where this command lies: {0}. Start landeck-bench itself.")]
    NoPlace(io::Error),
    #[error(
        "{} is not there, and it does the measuring. In the source tree, build both with \
         cargo build --release -p landeck-launcher -p landeck-bench, and start \
         target/release/landeck bench.", .path.display()
    )]
    Missing { path: PathBuf },
    #[error("{} cannot be started: {error}. Build it anew.", .path.display())]
    NotStarted { path: PathBuf, error: io::Error },
}

impl BenchArguments {
    /// Becomes the benchmark program. Returns only if that fails.
    pub(crate) fn run(&self) -> BenchError {
        let own = match std::env::current_exe() {
            Ok(own) => own,
            Err(error) => return BenchError::NoPlace(error),
        };
        match beside(&own) {
            Err(missing) => missing,
            Ok(path) => {
                let error = Command::new(&path).args(&self.arguments).exec();
                BenchError::NotStarted { path, error }
            }
        }
    }
}

/// The benchmark program in the folder of this one.
fn beside(own: &Path) -> Result<PathBuf, BenchError> {
    let path = own.with_file_name("landeck-bench");
    if path.is_file() { Ok(path) } else { Err(BenchError::Missing { path }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_measuring_program_lies_beside_this_one() {
        let folder = std::env::temp_dir().join(format!("landeck-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let own = folder.join("landeck");
        let error = beside(&own).unwrap_err().to_string();
        assert!(error.contains("/landeck-bench is not there"), "{error}");
        assert!(error.contains("cargo build --release"), "{error}");
        fs::write(folder.join("landeck-bench"), "").unwrap();
        assert_eq!(beside(&own).unwrap(), folder.join("landeck-bench"));
        fs::remove_dir_all(folder).unwrap();
    }
}
