//! The compilers and starters of MPI programs: `mpicc_abi` and `mpicxx_abi` where commands are, and
//! the names that every MPI has, with their manual pages. Those names stand in a folder of their own. Below
//! a prefix of its own, as `/opt/landeck`, they stand in `bin` as well, where CMake's FindMPI looks;
//! below a prefix of the system they would stand before those of the distribution.

use std::path::Path;

use super::{COMPILER, Destination};
use crate::Problem;

/// The manual page of the compilers.
const COMPILER_PAGE: &str = "fronts/mpi/scripts/mpicc_abi.1";

/// Prefixes where commands of the distribution and of others are.
const OF_THE_SYSTEM: [&str; 3] = ["/", "/usr", "/usr/local"];

/// The names that every MPI has, and the commands in `bin` that look at the name by which they were called.
const NAMES: [(&str, &str); 5] = [
    ("mpicc", "mpicc_abi"),
    ("mpicxx", "mpicc_abi"),
    ("mpic++", "mpicc_abi"),
    ("mpiexec", "landeck"),
    ("mpirun", "landeck"),
];

/// The names that have manual pages. `man` looks in share/man beside the folder of a command.
const WITH_PAGES: [&str; 4] = ["mpicc", "mpicxx", "mpiexec", "mpirun"];

/// Where links are, and what they lead to.
const LINKS: &[(&str, &str)] = &[
    ("bin/mpicxx_abi", "mpicc_abi"),
    ("share/man/man1/mpicxx_abi.1", "mpicc_abi.1"),
    ("lib/landeck/share/man/man1/mpicc.1", "../../../../../share/man/man1/mpicc_abi.1"),
    ("lib/landeck/share/man/man1/mpicxx.1", "../../../../../share/man/man1/mpicc_abi.1"),
    ("lib/landeck/share/man/man1/mpirun.1", "mpiexec.1"),
];

/// Puts them in their places.
pub(super) fn install(
    root: &Path,
    destination: &Destination,
    prefix: &Path,
) -> Result<(), Problem> {
    destination.file(&root.join(COMPILER), "bin/mpicc_abi", 0o755)?;
    destination.file(&root.join(COMPILER_PAGE), "share/man/man1/mpicc_abi.1", 0o644)?;
    LINKS.iter().try_for_each(|(name, target)| destination.link(target, name))?;
    for (name, command) in NAMES {
        destination.link(&format!("../../../bin/{command}"), &format!("lib/landeck/bin/{name}"))?;
    }
    if is_of_the_system(prefix) { Ok(()) } else { link_beside_commands(destination) }
}

fn is_of_the_system(prefix: &Path) -> bool {
    OF_THE_SYSTEM.iter().any(|known| Path::new(known) == prefix)
}

/// The names of every MPI in `bin`, but for those that another MPI has there.
fn link_beside_commands(destination: &Destination) -> Result<(), Problem> {
    let commands = NAMES.map(|(name, command)| (format!("bin/{name}"), command.to_owned()));
    let pages = WITH_PAGES.map(|name| {
        let page = format!("share/man/man1/{name}.1");
        (page, format!("../../../lib/landeck/share/man/man1/{name}.1"))
    });
    for (name, target) in commands.iter().chain(&pages) {
        if !destination.link_unless_taken(target, name)? {
            say!("{name} is another program's and stays. Landeck's is in lib/landeck.");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefixes_of_the_system_are_known() {
        let is_known = |prefix: &str| is_of_the_system(Path::new(prefix));
        assert!(is_known("/usr") && is_known("/usr/local/") && is_known("/"));
        assert!(!is_known("/opt/landeck") && !is_known("/usr/local/landeck"));
    }
}
