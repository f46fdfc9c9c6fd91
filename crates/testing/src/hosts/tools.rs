//! The programs that a cluster is made with.

use std::env;
use std::path::{Path, PathBuf};

use super::wish::{WhyNot, Wish};
use super::{OWN_PROGRAMS, PROGRAMS};

/// A program, Debian's package of it, and whether a wish needs it.
type Tool = (&'static str, &'static str, fn(&Wish) -> bool);

const TOOLS: &[Tool] = &[
    ("bash", "bash", |_| true),
    ("ip", "iproute2", |_| true),
    ("unshare", "util-linux", |_| true),
    ("nsenter", "util-linux", |_| true),
    ("setsid", "util-linux", |_| true),
    ("mount", "mount", |_| true),
    ("hostname", "hostname", |_| true),
    ("tc", "iproute2", |wish| wish.rate.is_some()),
    ("nft", "nftables", |wish| wish.drop_percent > 0.0 || wish.routers),
    ("sshd", "openssh-server", |wish| wish.ssh),
    ("ssh", "openssh-client", |wish| wish.ssh),
    ("slurmctld", "slurmctld", |wish| wish.slurm),
    ("slurmd", "slurmd", |wish| wish.slurm),
    ("srun", "slurm-client", |wish| wish.slurm),
    ("munged", "munge", |wish| wish.slurm),
];

/// Checks that everything is installed that a wish needs.
pub(super) fn check(wish: &Wish) -> Result<(), WhyNot> {
    let needed = TOOLS.iter().filter(|(_, _, needs)| needs(wish));
    for &(program, package, _) in needed {
        if find(program).is_none() {
            return Err(WhyNot::Missing { program, package });
        }
    }
    Ok(())
}

/// The search path of processes on the hosts: the cluster's own programs, then the user's, then those of every system.
pub(super) fn path_inside() -> String {
    let own = env::var("PATH").unwrap_or_default();
    format!("{OWN_PROGRAMS}:{}{}{PROGRAMS}", own, if own.is_empty() { "" } else { ":" })
}

/// The file of a program. Users' search paths often lack the directories of the system's programs.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = path_inside();
    let mut files = path.split(':').map(|folder| Path::new(folder).join(program));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_their_names() {
        assert!(find("sh").is_some_and(|file| file.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
