//! The job of a machine, as far as it concerns this host: its part here, and on the arbiter also the whole job.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use landeck_launch::guardian::GuardianError;
use landeck_launch::guardian::server;
pub(crate) use landeck_launch::guardian::server::GuardianServer;
use landeck_launch::hosts_options::PortRange;
use landeck_launch::messages::{PartCommand, PartEvent, PartRefusal};
use landeck_launch::part::{DescriptorWatch, HostPart, check};
use landeck_launch::request::LaunchError;
use landeck_launch::spec::JobSpec;
use landeck_wire::word::{Word, WordContent};
use landeck_wire::{HostNumber, JobId};
use rustix::event::epoll::EventFlags;

use crate::bootstrap::DaemonOptions;
use crate::context::{Context, JobHandler};
use crate::figures::OwnFigures;
use crate::job::whole_job::WholeJob;
use crate::job_message::JobMessage;
use crate::reactor::JOB_TOKENS;

/// The tokens of the part's descriptors are its own, above this.
const PART: u64 = JOB_TOKENS << 1;
/// The token of the guardian server, which is ready when that has ended.
const SERVER: u64 = PART - 1;
/// The exit code of a daemon whose arbiter is gone, or whose guardian server has ended.
const CUT_OFF: u8 = 1;

/// Forks the process that forks guardians. The daemon has neither keys nor sockets nor threads then.
///
/// # Errors
/// [`GuardianError`].
pub(crate) fn fork_guardian_server() -> Result<GuardianServer, GuardianError> {
    server::fork()
}

/// The jobs of this host.
#[derive(Debug)]
pub(crate) struct Jobs {
    part: Option<(JobId, HostPart)>,
    whole: Option<WholeJob>,
    /// The job as it was checked.
    spec: Option<JobSpec>,
    over: Option<u8>,
    /// The part of this host has come to its end.
    has_ended: bool,
    is_server_watched: bool,
    /// A descriptor of the part could not be watched.
    cannot_watch: bool,
    /// It stands last, and so is dropped last: it waits for its guardians, which end with the part.
    server: GuardianServer,
}

/// The options of the machine that the launcher asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedMachine {
    /// The options that all daemons have in common.
    pub(crate) options: DaemonOptions,
    /// The ports that may be used.
    pub(crate) ports: Option<PortRange>,
    /// The networks that are used first.
    pub(crate) networks: Vec<ipnet::IpNet>,
}

/// The daemon's loop, as a part uses it.
struct PartWatch<'a, 'b>(&'a mut Context<'b>);

impl DescriptorWatch for PartWatch<'_, '_> {
    fn watch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()> {
        self.0.watch(what, PART + u64::from(token), flags)
    }

    fn rewatch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()> {
        self.0.rewatch(what, PART + u64::from(token), flags)
    }

    fn unwatch(&mut self, what: BorrowedFd<'_>) {
        // It was watched, so this can fail only if it is closed already.
        let _ = self.0.unwatch(what);
    }
}

impl Jobs {
    /// The jobs of the arbiter, whose launcher is at the other end of the socket. Waits for its request.
    ///
    /// # Errors
    /// The kernel's error; the launcher has ended.
    pub(crate) fn of_launcher(
        server: GuardianServer,
        launcher: OwnedFd,
    ) -> io::Result<(Self, WantedMachine)> {
        let (whole, wanted) = WholeJob::asked_by(launcher)?;
        let options =
            DaemonOptions { host_timeout_ms: wanted.host_timeout_ms, is_plain: wanted.is_plain };
        let wanted = WantedMachine { options, ports: wanted.ports, networks: wanted.networks };
        Ok((Self { whole: Some(whole), ..Self::of_host(server) }, wanted))
    }

    /// The jobs of another host.
    pub(crate) fn of_host(server: GuardianServer) -> Self {
        Self {
            server,
            is_server_watched: false,
            cannot_watch: false,
            whole: None,
            spec: None,
            part: None,
            over: None,
            has_ended: false,
        }
    }

    fn check(&mut self, context: &mut Context<'_>, spec: JobSpec) {
        let answer = check(&spec, context.own_host()).map(|()| OwnFigures::here());
        self.spec = Some(spec);
        context.send(HostNumber::ARBITER, &JobMessage::Checked(answer));
    }

    fn prepare(&mut self, context: &mut Context<'_>, settle: impl FnOnce(JobSpec) -> JobSpec) {
        let Some(spec) = self.spec.take().map(settle) else { return };
        let answer = self.make_part(context, spec);
        context.send(HostNumber::ARBITER, &JobMessage::Prepared(answer));
    }

    fn make_part(&mut self, context: &mut Context<'_>, spec: JobSpec) -> Result<(), PartRefusal> {
        let job = spec.job;
        let part = HostPart::prepare(spec, context.own_host())?;
        let refuse = |error: io::Error| PartRefusal {
            exit_code: landeck_launch::request::LAUNCHER_FAILED,
            text: format!("the socket for the processes cannot be opened: {error}"),
        };
        context.add_part(job, part.segment().clone(), part.far()).map_err(refuse)?;
        self.part = Some((job, part));
        Ok(())
    }

    fn start(&mut self, context: &mut Context<'_>) {
        let Some((_, part)) = &mut self.part else { return };
        if let Err(error) = part.start(Some(&self.server)) {
            let refusal = PartRefusal::from(&LaunchError::from(error));
            context.send(HostNumber::ARBITER, &JobMessage::NotStarted(refusal));
        }
    }

    /// Passes on what the part has to say, and watches what it waits for.
    fn settle_part(&mut self, context: &mut Context<'_>) {
        let Some((job, part)) = &mut self.part else { return };
        if let Err(error) = part.settle(&mut PartWatch(context))
            && !std::mem::replace(&mut self.cannot_watch, true)
        {
            let text = format!("landeckd cannot watch the processes, and ends them: {error}");
            context.send(HostNumber::ARBITER, &JobMessage::Event(PartEvent::Said(text)));
            part.command(PartCommand::Kill);
        }
        while let Some(event) = part.take_event() {
            let is_bulk = event.is_bulk();
            let message = JobMessage::Event(event);
            match is_bulk {
                true => context.send_bulk(HostNumber::ARBITER, &message),
                false => context.send(HostNumber::ARBITER, &message),
            }
        }
        if part.is_over() {
            context.remove_part(*job);
            self.part = None;
            self.has_ended = true;
        }
    }

    fn watch_server(&mut self, context: &mut Context<'_>) {
        if let Some(descriptor) = self.server.descriptor()
            && !std::mem::replace(&mut self.is_server_watched, true)
        {
            // Without this, a killed server is noticed by its guardians alone.
            let _ = context.watch(descriptor, SERVER, EventFlags::IN);
        }
    }
}

impl JobHandler for Jobs {
    fn message(&mut self, context: &mut Context<'_>, from: HostNumber, message: JobMessage) {
        let is_order = from == HostNumber::ARBITER;
        match message {
            JobMessage::Check(spec) if is_order => self.check(context, *spec),
            JobMessage::Measure { secret, hosts } if is_order => {
                context.measure_links(secret, hosts);
            }
            JobMessage::Prepare { settings, links, shares_processors } if is_order => {
                self.prepare(context, |spec| JobSpec {
                    settings,
                    links,
                    shares_processors,
                    ..spec
                });
            }
            JobMessage::Start if is_order => self.start(context),
            JobMessage::Command(command) if is_order => {
                if let Some((_, part)) = &mut self.part {
                    part.command(command);
                }
            }
            message => {
                if let Some(whole) = &mut self.whole {
                    whole.take(context, from, message);
                }
            }
        }
    }

    fn word(&mut self, context: &mut Context<'_>, word: &Word) {
        let Some(whole) = &mut self.whole else { return };
        if let WordContent::JobEnds { job, cause, .. } = &word.content {
            whole.cut_off(context, *job, cause);
        }
    }

    fn ready(&mut self, context: &mut Context<'_>, token: u64, _: EventFlags) {
        match token {
            PART.. => {
                if let Some((_, part)) = &mut self.part {
                    part.ready((token - PART) as u32);
                }
            }
            SERVER => {
                // The guardians have seen it too; this daemon can start nothing any more.
                if let Some(descriptor) = self.server.descriptor() {
                    let _ = context.unwatch(descriptor);
                }
                if self.part.is_none() && self.whole.is_none() {
                    self.over = Some(CUT_OFF);
                }
            }
            _ => {
                if let Some(whole) = &mut self.whole {
                    whole.ready(context, token);
                }
            }
        }
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        self.watch_server(context);
        self.settle_part(context);
        if let Some(found) = context.take_links() {
            context.send(HostNumber::ARBITER, &JobMessage::Measured(found));
        }
        if let Some(whole) = &mut self.whole {
            whole.tick(context);
            if whole.has_launcher_gone() {
                self.over = Some(0);
            }
        }
    }

    fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber) {
        if let Some(whole) = &mut self.whole {
            whole.host_up(context, host);
        }
    }

    fn host_down(&mut self, context: &mut Context<'_>, host: HostNumber, why: String) {
        match &mut self.whole {
            Some(whole) => whole.lose(context, host, why),
            None if host == HostNumber::ARBITER => {
                // Behind the end of the job's part the arbiter is not needed any more.
                let is_cut_off = self.part.is_some() || !self.has_ended;
                self.over = Some(if is_cut_off { CUT_OFF } else { 0 });
            }
            None => {}
        }
    }

    fn host_lost(&mut self, context: &mut Context<'_>, host: HostNumber, silent_ms: u64) {
        if let Some(whole) = &mut self.whole {
            let on_what = context.dependence(host).map(|text| format!(" ({text})"));
            let why = format!(
                "it has not answered for {:.1} s{}",
                silent_ms as f64 / 1e3,
                on_what.unwrap_or_default()
            );
            whole.lose(context, host, why);
        }
    }

    fn is_over(&self) -> Option<u8> {
        self.over
    }
}
