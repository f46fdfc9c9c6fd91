//! Programs of others on the MPI front: each has a script in `fronts/mpi/clients/`, which gets the
//! program, builds it against the installed product and runs its own tests. What was downloaded and
//! built is kept in `target/clients/`.

use std::path::PathBuf;

use super::runner::Runner;
use super::tally::Tally;
use crate::Problem;

/// The test suite of mpi4py, with several numbers of processes.
pub(super) fn mpi4py(runner: &Runner) -> Result<Tally, Problem> {
    run(runner, "mpi4py", &[], &[])
}

/// The tests and examples of rsmpi, with several numbers of processes.
pub(super) fn rsmpi(runner: &Runner) -> Result<Tally, Problem> {
    run(runner, "rsmpi", &[], &[])
}

/// Programs of Debian's source packages, with their own tests.
pub(super) fn distribution(runner: &Runner) -> Result<Tally, Problem> {
    run(runner, "distribution", &[], &[])
}

/// The parallel tests of PETSc, with as many processes as each asks for.
pub(super) fn petsc(runner: &Runner) -> Result<Tally, Problem> {
    run(runner, "petsc", &[], &[])
}

/// Installs the product, and runs the script of a client with these arguments, unless others were asked for, and these
/// variables.
pub(super) fn run(
    runner: &Runner,
    client: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<Tally, Problem> {
    let folder = runner.root().join("target/clients");
    let mut install = runner.cargo(&["run", "--quiet", "--package", "xtask", "--", "install"]);
    install.arg("--prefix").arg(folder.join("prefix"));
    let installed = runner.one(&format!("install for {client}"), install)?;
    if installed.failed > 0 {
        return Ok(installed);
    }
    let script: PathBuf = runner.root().join(format!("fronts/mpi/clients/{client}.sh"));
    let mut command = runner.long_command(&script);
    command.arg(folder);
    match runner.client_arguments() {
        [] => command.args(arguments),
        asked => command.args(asked),
    };
    command.envs(variables.iter().copied());
    // The script makes hosts by this program.
    command.envs(std::env::current_exe().map(|own| ("LANDECK_XTASK", own)));
    runner.counted_or_skipped(client, command)
}
