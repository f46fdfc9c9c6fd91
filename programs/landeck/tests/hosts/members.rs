//! Tests of this program that run themselves as the processes of a job.

use super::*;

/// Whether this process is a member of a job.
pub(crate) fn is_member() -> bool {
    std::env::var_os("LANDECK_SLOT").is_some()
}

impl Cluster {
    /// A test of this program as a job on the hosts of a list. Options of the command come first.
    pub(crate) fn members(&self, test: &str, hosts: &str, options: &[&str]) -> Command {
        let program = std::env::current_exe().unwrap();
        let first = ["run", "--rsh", "landeck-rsh", "--host", hosts];
        let last = [program.to_str().unwrap(), test, "--exact", "--nocapture", "--test-threads=1"];
        self.landeck(&[&first[..], options, &last[..]].concat())
    }

    /// A test of this program as a job with two processes on each of two hosts.
    pub(crate) fn four_members(&self, test: &str, options: &[&str]) -> Command {
        self.members(test, "n1:2,n2:2", options)
    }
}
