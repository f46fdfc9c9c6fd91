//! Hosts that the benchmark makes of network namespaces.

use std::cell::RefCell;
use std::process::Command;
use std::time::Duration;

use landeck_measure::processors::allowed;
use landeck_testing::hosts::{Hosts, Wish};

use crate::launch;
use crate::problem::Problem;

/// The command by which a host of a cluster starts a program on another one.
pub(crate) const REMOTE_SHELL: &str = "landeck-rsh";
/// So much is enough for a remote shell that starts `true`.
const SHELL_TIMEOUT: Duration = Duration::from_secs(30);

/// Keeps all processes of a host on processors, those that serve remote shells as well.
const KEEP_TO: &str =
    r#"cd /proc && for process in [0-9]*; do taskset -apc "$0" $process >/dev/null; done; true"#;

/// The hosts of all launches.
#[derive(Debug)]
pub(crate) struct Cluster {
    wish: Wish,
    /// The processors of each host, if each has its own.
    processors: Option<Vec<String>>,
    /// None after a launch that went wrong, until the next one needs them.
    hosts: RefCell<Option<Hosts>>,
}

impl Cluster {
    /// Makes so many hosts.
    ///
    /// # Errors
    /// When they cannot be made here.
    pub(crate) fn make(count: u32) -> Result<Cluster, Problem> {
        Cluster::of(Wish::hosts(count as usize))
    }

    /// Makes the hosts of a wish.
    ///
    /// # Errors
    /// When they cannot be made here.
    pub(crate) fn of(wish: Wish) -> Result<Cluster, Problem> {
        let wish = Wish { one_session: true, ..wish };
        Cluster { wish, processors: None, hosts: RefCell::new(None) }.started()
    }

    /// Makes so many hosts. Where there are as many processors, each host has some of its own: a machine books them,
    /// and its jobs would get the first one of all hosts.
    ///
    /// # Errors
    /// When they cannot be made here.
    pub(crate) fn with_own_processors(count: u32) -> Result<Cluster, Problem> {
        let wish = Wish { one_session: true, ..Wish::hosts(count as usize) };
        let processors = shares(&allowed(), count as usize);
        Cluster { wish, processors, hosts: RefCell::new(None) }.started()
    }

    fn started(self) -> Result<Cluster, Problem> {
        self.start().map_err(|why| Problem::NoHosts { why })?;
        Ok(self)
    }

    /// The number of processors of each host, of so many that there are.
    pub(crate) fn processors_of_host(&self, all: u32) -> u32 {
        match &self.processors {
            Some(shares) => all / shares.len() as u32,
            None => all,
        }
    }

    fn start(&self) -> Result<(), String> {
        let mut hosts = self.hosts.borrow_mut();
        if hosts.is_none() {
            let made = Hosts::new(&self.wish);
            let made = made.map_err(|why| why.to_string())?;
            for (host, share) in self.processors.iter().flatten().enumerate() {
                let mut command = made.command(host, "/bin/sh");
                let output = command.args(["-c", KEEP_TO, share]).output();
                let is_done = output.map_err(|error| error.to_string())?.status.success();
                is_done.then_some(()).ok_or("taskset cannot give hosts processors of their own")?;
            }
            *hosts = Some(made);
        }
        Ok(())
    }

    /// Ends everything on the hosts. The next command starts them anew.
    pub(crate) fn end(&self) {
        drop(self.hosts.take());
    }

    /// From the start of the remote shell on the first host to its end, while the second one does nothing.
    ///
    /// # Errors
    /// When it does not end well.
    pub(crate) fn remote_shell(&self) -> Result<Duration, String> {
        let words = [REMOTE_SHELL, "n2", "true"].map(str::to_owned);
        let outcome = launch::run(&mut self.on_first(&words)?, SHELL_TIMEOUT);
        match outcome.trouble {
            Some(trouble) => Err(format!("{REMOTE_SHELL}: {trouble}")),
            None => Ok(outcome.wall),
        }
    }

    /// A command on the first host.
    ///
    /// # Errors
    /// When the hosts were ended and cannot be made again.
    pub(crate) fn on_first(&self, words: &[String]) -> Result<Command, String> {
        self.on(0, words)
    }

    /// A command on a host, by its place.
    ///
    /// # Errors
    /// When the hosts were ended and cannot be made again.
    pub(crate) fn on(&self, host: usize, words: &[String]) -> Result<Command, String> {
        self.start()?;
        let hosts = self.hosts.borrow();
        let hosts = hosts.as_ref().ok_or("the hosts are gone")?;
        let (program, arguments) = words.split_first().ok_or("there is nothing to start")?;
        let mut command = match &self.processors {
            Some(shares) => {
                let mut command = hosts.command(host, "taskset");
                command.args(["-c", &shares[host], program]);
                command
            }
            None => hosts.command(host, program),
        };
        command.args(arguments);
        Ok(command)
    }
}

/// As many processors for each host, in lists as `taskset` reads them; none if there are too few.
fn shares(processors: &[usize], hosts: usize) -> Option<Vec<String>> {
    let each = processors.len() / hosts.max(1);
    let list = |share: &[usize]| {
        let words: Vec<String> = share.iter().map(usize::to_string).collect();
        words.join(",")
    };
    (each > 0).then(|| processors.chunks_exact(each).take(hosts).map(list).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_processors_out() {
        let of = |processors: &[usize], hosts| shares(processors, hosts).unwrap_or_default();
        assert_eq!(of(&[0, 1], 2), ["0", "1"]);
        assert_eq!(of(&[2, 3, 4, 6, 7], 2), ["2,3", "4,6"]);
        assert!(of(&[0, 1], 4).is_empty());
    }
}
