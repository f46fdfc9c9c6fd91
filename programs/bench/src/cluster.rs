//! Hosts that the benchmark makes of network namespaces.

use std::cell::RefCell;
use std::process::Command;
use std::time::Duration;

use landeck_testing::hosts::{Hosts, Wish};

use crate::launch;
use crate::problem::Problem;

/// The command by which a host of a cluster starts a program on another one.
pub(crate) const REMOTE_SHELL: &str = "landeck-rsh";
/// So much is enough for a remote shell that starts `true`.
const SHELL_TIMEOUT: Duration = Duration::from_secs(30);

/// The hosts of all launches.
#[derive(Debug)]
pub(crate) struct Cluster {
    wish: Wish,
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
        let cluster = Cluster { wish, hosts: RefCell::new(None) };
        cluster.start().map_err(|why| Problem::NoHosts { why })?;
        Ok(cluster)
    }

    fn start(&self) -> Result<(), String> {
        let mut hosts = self.hosts.borrow_mut();
        if hosts.is_none() {
            let made = Hosts::new(&self.wish);
            *hosts = Some(made.map_err(|why| why.to_string())?);
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
        let mut command = hosts.command(host, program);
        command.args(arguments);
        Ok(command)
    }
}
