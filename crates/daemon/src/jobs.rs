//! The jobs of this host. In this file stands what other files of this crate need of them.

use std::io;
use std::os::fd::OwnedFd;

use landeck_wire::HostNumber;
use landeck_wire::word::Word;
use rustix::event::epoll::EventFlags;

use crate::bootstrap::DaemonOptions;
use crate::context::{Context, JobHandler};
use crate::job_message::JobMessage;
use crate::listener::PortRange;

/// The process that forks guardians for this daemon.
#[derive(Debug)]
pub(crate) struct GuardianServer;

/// Forks the process that forks guardians. The daemon has neither keys nor sockets nor threads then.
///
/// # Errors
/// The kernel's error.
pub(crate) fn fork_guardian_server() -> io::Result<GuardianServer> {
    Ok(GuardianServer)
}

/// The jobs of this host.
#[derive(Debug)]
pub(crate) struct Jobs {
    over: Option<u8>,
}

/// The options of the machine that the launcher asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedMachine {
    /// The options that all daemons have in common.
    pub(crate) options: DaemonOptions,
    /// The ports that may be used.
    pub(crate) ports: Option<PortRange>,
    /// The networks that are used first.
    pub(crate) networks: Vec<crate::addresses::NetworkPrefix>,
}

impl Jobs {
    /// The jobs of the arbiter, whose launcher is at the other end of the socket. Waits for its request.
    ///
    /// # Errors
    /// The kernel's error; the launcher has ended.
    pub(crate) fn of_launcher(
        _server: GuardianServer,
        _launcher: OwnedFd,
    ) -> io::Result<(Self, WantedMachine)> {
        Ok((Self { over: None }, WantedMachine::default()))
    }

    /// The jobs of another host.
    pub(crate) fn of_host(_server: GuardianServer) -> Self {
        Self { over: None }
    }
}

impl JobHandler for Jobs {
    fn message(&mut self, _: &mut Context<'_>, _: HostNumber, _: JobMessage) {}
    fn word(&mut self, _: &mut Context<'_>, _: &Word) {}
    fn ready(&mut self, _: &mut Context<'_>, _: u64, _: EventFlags) {}
    fn tick(&mut self, _: &mut Context<'_>) {}
    fn host_up(&mut self, _: &mut Context<'_>, _: HostNumber) {}

    fn host_down(&mut self, _: &mut Context<'_>, host: HostNumber, _: String) {
        if host == HostNumber::ARBITER {
            self.over = Some(1);
        }
    }

    fn is_over(&self) -> Option<u8> {
        self.over
    }
}
