//! Helpers of the repository: `cargo xtask tidy`, `cargo xtask count`, `cargo xtask test`, `cargo xtask build`, `cargo xtask install`,
//! `cargo xtask uninstall`, `cargo xtask book`, `cargo xtask mpi`, `cargo xtask deck`, `cargo xtask mutants`, `cargo xtask mpi4py`,
//! `cargo xtask rsmpi`, `cargo xtask petsc`, `cargo xtask distribution`, `cargo xtask hosts`.

#![forbid(unsafe_code)]

/// Prints a line on standard output. A reader that is gone, as after `| head`, has seen enough: the work goes on.
#[cfg(not(test))]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Prints a line that the harness of the tests keeps to itself: a suite that runs them would count it.
#[cfg(test)]
macro_rules! say {
    ($($text:tt)*) => { println!($($text)*) };
}

mod book;
mod deck;
mod hosts;
mod install;
mod links;
mod mpi;
mod mutants;
mod processor_time;
mod suites;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command as Program, ExitCode};

use clap::Parser;

/// Helpers of the Landeck repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Check the rules of the house: imports, purity, unsafe code, module heads, sizes.
    Tidy,
    /// Count the lines of production code in each room.
    Count,
    /// Run every test suite and sum up what passed and failed.
    Test(suites::Options),
    /// Build what is installed.
    Build(install::Build),
    /// Build and install the command, the libraries, the header and their documents.
    Install(install::Options),
    /// Remove what was installed.
    Uninstall(install::InstallPlace),
    /// Build the book of the documents in target/book/html, and follow its links.
    Book,
    /// Make what is made of the description of MPI's functions.
    Mpi,
    /// Make what is made of the description of DECK's functions.
    Deck,
    /// Run a command on a cluster of network namespaces, which ends with it.
    Hosts(hosts::Options),
    /// Break the protocols of several hosts, one line at a time, and see that a test notices each.
    Mutants {
        /// A part of the name of the files whose lines are broken; all files if not given.
        #[arg(default_value = "")]
        of: String,
    },
    /// Run mpi4py's own tests on our MPI: a suite of `test --soak` by itself.
    Mpi4py {
        /// How many processes, one run for each; 1 2 3 5 if not given.
        processes: Vec<String>,
    },
    /// Run the tests and examples of rsmpi on our MPI: a suite of `test --soak` by itself.
    Rsmpi {
        /// How many processes, one run for each; 1 2 3 4 if not given.
        processes: Vec<String>,
    },
    /// Run programs of Debian's source packages on our MPI: a suite of `test --soak` by itself.
    Distribution {
        /// Which of them (netpipe, boost, hpcc ...); all if not given.
        programs: Vec<String>,
    },
    /// Run PETSc's own parallel tests on our MPI: a suite of `test --soak` by itself. Ended early, it
    /// goes on when it is started again.
    Petsc {
        /// "build", or the parts of PETSc whose tests run (sys, vec, mat ...); all if not given.
        parts: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Tidy => tidy::run(root()),
        Command::Count => tidy::count::run(root()),
        Command::Test(options) => suites::run(root(), &options),
        Command::Build(build) => install::build(root(), &build),
        Command::Install(options) => install::run(root(), &options),
        Command::Uninstall(place) => install::uninstall(&place),
        Command::Book => book::run(root()),
        Command::Mpi => mpi::run(root()),
        Command::Deck => deck::run(root()),
        Command::Hosts(options) => return hosts::run(&options),
        Command::Mutants { of } => mutants::run(root(), &of),
        Command::Mpi4py { processes } => client("mpi4py", processes),
        Command::Rsmpi { processes } => client("rsmpi", processes),
        Command::Distribution { programs } => client("distribution", programs),
        Command::Petsc { parts } => client("petsc", parts),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The suite of a program of others alone.
fn client(name: &str, arguments: Vec<String>) -> Result<bool, Problem> {
    suites::run(root(), &suites::Options::only(name, arguments))
}

/// The folder of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// Runs a program to its end, which must be a good one.
fn complete(mut command: Program) -> Result<(), Problem> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Problem::Failed { program, status }),
        Err(error) => Err(Problem::Start { program, error }),
    }
}

/// Why a helper could not do its work; what it found wrong is not an error but its result.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("cargo metadata failed: {0}. Repair the manifest it names.")]
    Metadata(String),
    #[error("cannot read {path}: {error}. Check that the file is there and readable.")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("cannot write {path}: {error}. Check the folder's permissions and the free space.")]
    Write { path: PathBuf, error: std::io::Error },
    #[error("nothing is installed here: there is no {path}. Give the prefix of the installation.")]
    NotInstalled { path: PathBuf },
    #[error(
        "{path}, line {line}: that is no row of this table. Compare it with the lines beside it."
    )]
    Description { path: PathBuf, line: usize },
    #[error(
        "{path} does not have this line once: {line}. Change the table of xtask/src/mutants.rs with it."
    )]
    Mutant { path: PathBuf, line: String },
    #[error("{path} is no table of functions: {error}")]
    Table { path: PathBuf, error: Box<toml::de::Error> },
    #[error(
        "cannot start \"{program}\": {error}. Install it (scripts/bootstrap.sh) and start again."
    )]
    Start { program: String, error: std::io::Error },
    #[error("\"{program}\" failed ({status}); its own message stands above.")]
    Failed { program: String, status: std::process::ExitStatus },
}
