//! The compilers and starters of MPI programs: `mpicc_abi` and `mpicxx_abi` where commands are, and
//! the names that every MPI has in a folder of their own, so that nothing stands before those of the
//! distribution.

use std::path::Path;

use super::Destination;
use crate::Problem;

/// The script of both compilers; it looks at the name by which it was called.
const COMPILER: &str = "fronts/mpi/scripts/mpicc_abi";

/// The other names: where they are, and what they lead to.
const LINKS: &[(&str, &str)] = &[
    ("bin/mpicxx_abi", "mpicc_abi"),
    ("lib/landeck/bin/mpicc", "../../../bin/mpicc_abi"),
    ("lib/landeck/bin/mpicxx", "../../../bin/mpicc_abi"),
    ("lib/landeck/bin/mpic++", "../../../bin/mpicc_abi"),
    // The command looks at the name by which it was called.
    ("lib/landeck/bin/mpiexec", "../../../bin/landeck"),
    ("lib/landeck/bin/mpirun", "../../../bin/landeck"),
];

/// Puts them in their places.
pub(super) fn install(root: &Path, destination: &Destination) -> Result<(), Problem> {
    destination.file(&root.join(COMPILER), "bin/mpicc_abi", 0o755)?;
    LINKS.iter().try_for_each(|(name, target)| destination.link(target, name))
}
