//! The daemon that conducts a job on several hosts, as the launcher has it: one of its own, or that of a machine that stays.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landeck_host::message_stream::MessageStream;
use landeck_host::process::has_ended_within;
use landeck_hostfile::HostRequest;
use landeck_wire::{HostNumber, JobId};
use rustix::event::epoll::EventFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::hosts_options::{HostStart, HostsOptions};
use crate::machine::MachineName;
use crate::machine_call::MachineCall;
use crate::messages::{ArbiterReport, HostsRequest, MachineOptions, NewMachine, ToArbiter};
use crate::remote_start::{StartTool, StartWay, find_daemon};
use crate::request::{LaunchError, system};
use crate::spec::JobSpec;
use crate::watch::Watch;

/// How long the next daemon of a machine may take for its greeting.
const GREETING_TIME: Duration = Duration::from_millis(500);
/// How long the arbiter has to end after the job.
const END_TIME: Duration = Duration::from_secs(5);

/// The arbiter of a job.
pub(crate) struct Arbiter {
    stream: MessageStream<ArbiterReport, ToArbiter>,
    /// The daemon that was started for the job; that of a machine that stays is no child of the launcher.
    process: Option<Child>,
    /// The machine that stays.
    machine: Option<MachineName>,
    watched: EventFlags,
}

impl Arbiter {
    /// Starts the arbiter, and asks it for a job. Its complaints go to this file, or to those of the launcher.
    pub(crate) fn start(
        spec: JobSpec,
        asked: &HostsOptions,
        complaints: Option<OwnedFd>,
    ) -> Result<Self, LaunchError> {
        let way = way_of(asked)?;
        let (socket, process) = start_arbiter(&way.daemon, complaints)?;
        let mut stream = MessageStream::new(socket).map_err(system("talk to the arbiter"))?;
        let machine = Some(NewMachine { way, options: options_of(asked) });
        stream.send(&ToArbiter::Start(Box::new(HostsRequest { spec, machine })));
        let process = Some(process);
        Ok(Self { stream, process, machine: None, watched: EventFlags::empty() })
    }

    /// Asks the daemon of a machine that stays for a job, whose hosts were booked in this conversation.
    pub(crate) fn of_machine(call: MachineCall, spec: JobSpec) -> Self {
        let machine = Some(call.name().clone());
        let mut stream = call.into_stream();
        stream.send(&ToArbiter::Start(Box::new(HostsRequest { spec, machine: None })));
        Self { stream, process: None, machine, watched: EventFlags::empty() }
    }

    /// Whether another daemon may take the place of one that has ended.
    pub(crate) const fn may_return(&self) -> bool {
        self.machine.is_some()
    }

    /// Calls the daemon of a machine that stays again, and goes on with a job and the hosts that have parts of it. Watch nothing
    /// meanwhile. Returns false if there is none yet.
    pub(crate) fn try_return(&mut self, job: JobId, hosts: Vec<HostNumber>, asked: u64) -> bool {
        let call = self.machine.clone().map(|name| MachineCall::begin_within(name, GREETING_TIME));
        let Some(Ok(call)) = call else { return false };
        self.stream = call.into_stream();
        self.stream.send(&ToArbiter::Resume { job, hosts, asked });
        true
    }

    pub(crate) fn send(&mut self, message: &ToArbiter) {
        self.stream.send(message);
    }

    /// Sends and reads what is possible without waiting.
    pub(crate) fn move_on(&mut self) {
        self.stream.flush();
        self.stream.read();
    }

    /// The next report that has come.
    pub(crate) fn take_report(&mut self) -> Option<ArbiterReport> {
        self.stream.take_next()
    }

    /// Whether the arbiter has ended, or says what cannot be understood.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.has_ended()
    }

    /// Watches the stream, under this name.
    pub(crate) fn watch(&mut self, watch: &mut Watch, name: u64) -> std::io::Result<()> {
        if self.stream.has_ended() {
            self.unwatch(watch, name);
            return Ok(());
        }
        let room = if self.stream.has_unsent() { EventFlags::OUT } else { EventFlags::empty() };
        let wanted = EventFlags::IN | room;
        if wanted != self.watched {
            self.unwatch(watch, name);
            watch.set(name, &self.stream.descriptor(), wanted)?;
            self.watched = wanted;
        }
        Ok(())
    }

    /// Watches the stream no longer.
    pub(crate) fn unwatch(&mut self, watch: &mut Watch, name: u64) {
        watch.clear(name, &self.stream.descriptor());
        self.watched = EventFlags::empty();
    }

    /// Waits for the arbiter to end, which it does when the conversation ends.
    pub(crate) fn end(self) {
        let Self { stream, process, .. } = self;
        drop(stream);
        let Some(mut process) = process else { return };
        let descriptor = pidfd_open(Pid::from_child(&process), PidfdFlags::empty());
        let has_ended =
            descriptor.is_ok_and(|descriptor| has_ended_within(descriptor.as_fd(), END_TIME));
        if !has_ended {
            // Its guardian server and all trunks end with it.
            let _ = process.kill();
        }
        let _ = process.wait();
    }
}

/// How the daemons of other hosts are started.
pub(crate) fn way_of(asked: &HostsOptions) -> Result<StartWay, LaunchError> {
    let own = std::env::current_exe().ok();
    let folder = own.and_then(|own| own.parent().map(PathBuf::from));
    let daemon = find_daemon().ok_or(LaunchError::NoDaemon { folder })?;
    let tool = match asked.start {
        HostStart::Ssh if asked.rsh == ["ssh"] => StartTool::Ssh,
        HostStart::Ssh => StartTool::Rsh(asked.rsh.clone()),
        HostStart::Slurm => StartTool::Srun,
        HostStart::ByHand => StartTool::ByHand,
    };
    let mut arguments = Vec::new();
    if let Some(ports) = asked.ports {
        arguments.extend(["--port-range".to_owned(), ports.to_string()]);
    }
    for network in &asked.networks {
        arguments.extend(["--network".to_owned(), network.to_string()]);
    }
    let login = |host: &HostRequest| Some((host.name.clone(), host.login.clone()?));
    let logins = asked.list.iter().filter_map(login).collect();
    Ok(StartWay { tool, daemon, prefix: asked.remote_prefix.clone(), arguments, logins })
}

/// The options that all daemons must know.
fn options_of(asked: &HostsOptions) -> MachineOptions {
    MachineOptions {
        host_timeout_ms: u64::try_from(asked.host_timeout.as_millis()).unwrap_or(u64::MAX),
        is_plain: asked.is_plain,
        ports: asked.ports,
        networks: asked.networks.clone(),
    }
}

/// Starts the arbiter, which finds its end of the conversation in its standard input.
fn start_arbiter(
    daemon: &Path,
    complaints: Option<OwnedFd>,
) -> Result<(OwnedFd, Child), LaunchError> {
    let fail = system("talk to the arbiter");
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|errno| fail(errno.into()))?;
    let mut command = Command::new(daemon);
    command.args(["--role", "arbiter"]).stdin(Stdio::from(theirs)).stdout(Stdio::null());
    if let Some(file) = complaints {
        command.stderr(file);
    }
    // Keys pressed at the terminal must not signal the arbiter.
    let arbiter = command.process_group(0).spawn().map_err(system("start landeckd"))?;
    Ok((ours, arbiter))
}
