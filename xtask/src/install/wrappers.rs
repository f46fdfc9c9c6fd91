//! The compilers and starters of MPI programs: `mpicc_abi` and `mpicxx_abi` where commands are, and
//! the names that every MPI has in a folder of their own, so that nothing stands before those of the
//! distribution; and their manual pages in the same way.

use std::path::Path;

use super::Destination;
use crate::Problem;

/// The script of both compilers; it looks at the name by which it was called.
const COMPILER: &str = "fronts/mpi/scripts/mpicc_abi";

/// Its manual page.
const COMPILER_PAGE: &str = "fronts/mpi/scripts/mpicc_abi.1";

/// The other names: where they are, and what they lead to.
const LINKS: &[(&str, &str)] = &[
    ("bin/mpicxx_abi", "mpicc_abi"),
    ("lib/landeck/bin/mpicc", "../../../bin/mpicc_abi"),
    ("lib/landeck/bin/mpicxx", "../../../bin/mpicc_abi"),
    ("lib/landeck/bin/mpic++", "../../../bin/mpicc_abi"),
    // `man` looks in share/man beside the folder of a command.
    ("share/man/man1/mpicxx_abi.1", "mpicc_abi.1"),
    ("lib/landeck/share/man/man1/mpicc.1", "../../../../../share/man/man1/mpicc_abi.1"),
    ("lib/landeck/share/man/man1/mpicxx.1", "../../../../../share/man/man1/mpicc_abi.1"),
    ("lib/landeck/share/man/man1/mpirun.1", "mpiexec.1"),
    // The command looks at the name by which it was called.
    ("lib/landeck/bin/mpiexec", "../../../bin/landeck"),
    ("lib/landeck/bin/mpirun", "../../../bin/landeck"),
];

/// Puts them in their places.
pub(super) fn install(root: &Path, destination: &Destination) -> Result<(), Problem> {
    destination.file(&root.join(COMPILER), "bin/mpicc_abi", 0o755)?;
    destination.file(&root.join(COMPILER_PAGE), "share/man/man1/mpicc_abi.1", 0o644)?;
    LINKS.iter().try_for_each(|(name, target)| destination.link(target, name))
}
