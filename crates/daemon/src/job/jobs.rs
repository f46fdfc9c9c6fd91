//! The jobs of a machine, as far as they concern this host: their parts here, and those that this daemon conducts.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;

use landeck_launch::guardian::server::GuardianServer;
use landeck_launch::hosts_options::PortRange;
use landeck_launch::machine::MachineName;
use landeck_launch::messages::PartCommand;
use landeck_launch::part::check;
use landeck_launch::request::GRACE;
use landeck_launch::spec::JobSpec;
use landeck_wire::word::{Word, WordContent};
use landeck_wire::{ControlMessage, HostNumber, JobId};
use rustix::event::epoll::EventFlags;

use crate::bootstrap::DaemonOptions;
use crate::context::{Context, JobHandler};
use crate::figures::OwnFigures;
use crate::job::own_part::{KeptDescriptors, OwnPart};
use crate::job::whole_job::WholeJob;
use crate::job_message::{JobContent, JobMessage};
use crate::journal::{Change, Entries, Entry, EntryName};
use crate::links::MeasuringSecret;
use crate::machine::callers::CallersEvent;
use crate::machine::standing::Standing;
use crate::machine_message::MachineMessage;
use crate::reactor::JOB_TOKENS;

/// The token of the guardian server, which is ready when that has ended.
const SERVER: u64 = JOB_TOKENS;
/// The first token of the callers of a machine that stays. Twice as large is that of the processes that want to join its jobs.
pub(crate) const CALLERS: u64 = JOB_TOKENS << 1;
/// The tokens of jobs that are conducted, and of parts: 2^32 for each, by its number.
const CONDUCTED: u64 = 1 << 61;
const PARTS: u64 = 1 << 62;
/// The exit code of a daemon whose arbiter is gone, or whose guardian server has ended.
const CUT_OFF: u8 = 1;

/// The jobs of this host.
#[derive(Debug)]
pub(crate) struct Jobs {
    parts: BTreeMap<JobId, OwnPart>,
    /// The jobs whose launchers are on this host.
    conducted: BTreeMap<JobId, WholeJob>,
    /// The measurements of links that were asked for. The first one is going on.
    measurements: VecDeque<Measurement>,
    /// The number of the next part or conducted job, for its tokens.
    next_number: u64,
    /// The machine, if it is one that stays.
    standing: Option<Standing>,
    /// The journal of the run before, until the host table is known, and messages that have come before that.
    left: Option<Entries>,
    early: Vec<(HostNumber, JobMessage)>,
    /// The parts that are over, whose conductors have not confirmed it. One that was killed has them tell everything again.
    unconfirmed: BTreeMap<JobId, OwnPart>,
    over: Option<u8>,
    /// The machine that this host comes back to: it has lost the founder.
    comes_back_to: Option<MachineName>,
    /// A part of this host has come to its end.
    has_ended: bool,
    is_server_watched: bool,
    /// It stands last, and so is dropped last: it waits for its guardians, which end with the parts.
    server: GuardianServer,
}

/// A measurement of links for a job.
#[derive(Debug)]
struct Measurement {
    job: JobId,
    conductor: HostNumber,
    secret: MeasuringSecret,
    hosts: Vec<HostNumber>,
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

impl Jobs {
    /// The jobs of the arbiter, whose launcher is at the other end of the socket. Waits for its request.
    ///
    /// # Errors
    /// The kernel's error; the launcher has ended.
    pub(crate) fn of_launcher(
        server: GuardianServer,
        launcher: OwnedFd,
    ) -> io::Result<(Self, WantedMachine)> {
        let mut jobs = Self::of_host(server);
        let tokens = jobs.tokens(CONDUCTED);
        let (whole, wanted) = WholeJob::asked_by(launcher, tokens)?;
        jobs.conducted.insert(whole.job(), whole);
        let options =
            DaemonOptions { host_timeout_ms: wanted.host_timeout_ms, is_plain: wanted.is_plain };
        let wanted = WantedMachine { options, ports: wanted.ports, networks: wanted.networks };
        Ok((jobs, wanted))
    }

    /// The jobs of another host.
    pub(crate) fn of_host(server: GuardianServer) -> Self {
        Self {
            server,
            is_server_watched: false,
            parts: BTreeMap::new(),
            conducted: BTreeMap::new(),
            measurements: VecDeque::new(),
            next_number: 0,
            standing: None,
            left: None,
            early: Vec::new(),
            unconfirmed: BTreeMap::new(),
            over: None,
            comes_back_to: None,
            has_ended: false,
        }
    }

    /// The jobs of a host of a machine that stays. The run of its daemon before has left these entries.
    pub(crate) fn of_machine(server: GuardianServer, standing: Standing, left: Entries) -> Self {
        Self { standing: Some(standing), left: Some(left), ..Self::of_host(server) }
    }

    /// Whether this host comes back to its machine, once its daemon has ended with everything in it.
    pub(crate) const fn comes_back(&self) -> bool {
        self.comes_back_to.is_some()
    }

    /// The first token of a further part or conducted job.
    fn tokens(&mut self, base: u64) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        base + (number << 32)
    }

    fn check(&mut self, context: &mut Context<'_>, conductor: HostNumber, spec: JobSpec) {
        let (job, answer) = (spec.job, check(&spec, context.own_host()));
        let asked = Entry::Asked { conductor };
        let asked = Change::keep(EntryName::Part(job), &asked, Vec::new());
        context.journal().write(vec![asked]);
        self.unconfirmed.remove(&job);
        if answer.is_ok() {
            let tokens = self.tokens(PARTS);
            self.parts.insert(job, OwnPart::checked(spec, conductor, tokens));
        }
        let answer = answer.map(|()| OwnFigures::here());
        context.send(conductor, job, JobContent::Checked(answer));
    }

    /// Measures links, when the measurements before are over.
    fn measure(&mut self, context: &mut Context<'_>, next: Measurement) {
        self.measurements.push_back(next);
        if let [only] = self.measurements.make_contiguous() {
            context.measure_links(only.secret, only.hosts.clone());
        }
    }

    fn pass_links_on(&mut self, context: &mut Context<'_>) {
        let Some(found) = context.take_links() else { return };
        if let Some(Measurement { job, conductor, .. }) = self.measurements.pop_front() {
            context.send(conductor, job, JobContent::Measured(found));
        }
        if let Some(next) = self.measurements.front() {
            context.measure_links(next.secret, next.hosts.clone());
        }
    }

    fn settle_parts(&mut self, context: &mut Context<'_>) {
        for (job, part) in &mut self.parts {
            let has_ended = part.settle(context);
            let is_visited = self.standing.as_ref().is_some_and(|it| it.is_visited(*job));
            // It has ended before they could join: they need another one.
            if has_ended && is_visited {
                context.send(part.conductor, *job, JobContent::PartWanted);
            }
        }
        let over = self.parts.iter().filter(|(_, part)| part.is_over());
        for job in over.map(|(job, _)| *job).collect::<Vec<_>>() {
            self.has_ended = true;
            self.unconfirmed.extend(self.parts.remove_entry(&job));
        }
    }

    /// Forgets a part of a job that is impossible.
    fn dismiss(&mut self, context: &mut Context<'_>, job: JobId) {
        if let Some(mut part) = self.parts.remove(&job) {
            part.forget(context);
            self.has_ended = true;
            context.journal().write(vec![Change::forget(EntryName::Part(job))]);
        }
    }

    /// Has the part of a job tell everything again to its conductor, which was killed.
    fn tell_again(
        &mut self,
        context: &mut Context<'_>,
        (job, conductor): (JobId, HostNumber),
        asked: u64,
    ) {
        if !self.parts.contains_key(&job) {
            self.parts.extend(self.unconfirmed.remove_entry(&job));
        }
        match self.parts.get_mut(&job).filter(|part| part.conductor == conductor) {
            Some(part) => part.tell_again(asked),
            None => self.has_no_part(context, job, conductor),
        }
    }

    fn has_no_part(&self, context: &mut Context<'_>, job: JobId, conductor: HostNumber) {
        let why = "it has no part of it".to_owned();
        context.send(conductor, job, JobContent::PartLost(why));
    }

    /// The conductor of a part that is over knows that, or is gone.
    fn confirm(&mut self, context: &Context<'_>, job: JobId, conductor: HostNumber) {
        if self.unconfirmed.get(&job).is_some_and(|part| part.conductor == conductor) {
            self.unconfirmed.remove(&job);
            context.journal().write(vec![Change::forget(EntryName::Part(job))]);
        }
    }

    /// Goes on with the callers of a machine that stays, and forgets jobs that are over.
    fn go_on_standing(&mut self, context: &mut Context<'_>) {
        let Some(mut standing) = self.standing.take() else { return };
        standing.let_guests_in(|job| self.parts.get(&job).and_then(OwnPart::present_segment));
        for event in standing.tick(context) {
            match event {
                CallersEvent::Starts(stream, request) => {
                    let tokens = self.tokens(CONDUCTED);
                    let mut whole = WholeJob::new(stream, *request, tokens);
                    // The machine may have been stopped since its hosts were booked.
                    if let Some(cause) = context.cause_of_end(whole.job()) {
                        whole.cut_off(context, &cause);
                    }
                    self.conducted.insert(whole.job(), whole);
                }
                CallersEvent::Resumes { stream, job, hosts, asked } => {
                    if let Some(whole) = self.conducted.get_mut(&job) {
                        whole.take_launcher(context, (stream, asked), &hosts);
                    }
                }
                CallersEvent::Asks { .. } | CallersEvent::HasGone(_) => {}
            }
        }
        if let Some(spec) = standing.take_own_job()
            && !self.conducted.contains_key(&spec.job)
        {
            let whole = WholeJob::of_guests(spec, self.tokens(CONDUCTED));
            whole.keep(context);
            self.conducted.insert(whole.job(), whole);
        }
        self.conducted.retain(|job, whole| {
            let is_over = whole.has_launcher_gone() && whole.leave(context);
            if is_over {
                standing.job_over(context, *job);
                context.journal().write(vec![Change::forget(EntryName::Conducted(*job))]);
            }
            !is_over
        });
        if standing.has_ended(context) {
            self.over = Some(0);
            // It removes the ticket of a host that leaves.
            self.comes_back_to = standing.comes_back_to(context);
        }
        self.standing = Some(standing);
    }

    fn watch_server(&mut self, context: &mut Context<'_>) {
        if let Some(descriptor) = self.server.descriptor()
            && !std::mem::replace(&mut self.is_server_watched, true)
        {
            // Without this, a killed server is noticed by its guardians alone.
            let _ = context.watch(descriptor, SERVER, EventFlags::IN);
        }
    }

    /// A host takes no part any more in the jobs that are conducted here.
    fn lose(&mut self, context: &mut Context<'_>, host: HostNumber, why: &str) {
        self.conducted.values_mut().for_each(|whole| whole.lose(context, host, why.to_owned()));
    }

    /// Carries out an order of a job's conductor for the part on this host.
    fn order(&mut self, context: &mut Context<'_>, job: JobId, order: JobContent) {
        let Some(part) = self.parts.get_mut(&job) else { return };
        match order {
            JobContent::Prepare { settings, links, shares_processors } => {
                part.prepare(context, |spec| JobSpec {
                    settings,
                    links,
                    shares_processors,
                    ..spec
                });
            }
            JobContent::Start => part.start(context, &self.server),
            JobContent::AddHost(host) => part.add_host(context, host),
            JobContent::Meet(guests) => context.meet(job, &guests),
            JobContent::Command(command) => part.command(command),
            _ => {}
        }
    }

    /// Goes on with what the run of the daemon before has left.
    fn resume(&mut self, context: &mut Context<'_>, left: Entries) {
        let (mut pipes, mut parts) = (BTreeMap::new(), Vec::new());
        for (name, entry, descriptors) in left.into_all() {
            match (name, entry) {
                (EntryName::Pipe(job, _), Entry::Pipe(kept)) => {
                    let pipe = descriptors.into_iter().next();
                    pipes.entry(job).or_insert_with(Vec::new).push((kept, pipe));
                }
                (EntryName::Part(job), Entry::Asked { conductor }) => {
                    self.lose_part(context, job, conductor);
                }
                (EntryName::Part(job), Entry::Runs { conductor, spec }) => {
                    parts.push((job, conductor, spec, descriptors));
                }
                // The founder does not know of it: it was killed while it began the job.
                (EntryName::Conducted(job), Entry::Conducted { spec, .. })
                    if spec.is_of_guests() && !self.is_own(job) =>
                {
                    context.journal().write(vec![Change::forget(EntryName::Conducted(job))]);
                }
                (EntryName::Conducted(job), Entry::Conducted { spec, runs }) => {
                    let tokens = self.tokens(CONDUCTED);
                    let whole = WholeJob::resumed(context, *spec, runs, tokens);
                    self.conducted.insert(job, whole);
                }
                _ => {}
            }
        }
        for (job, conductor, spec, descriptors) in parts {
            let pipes = pipes.remove(&job).unwrap_or_default();
            let kept = KeptDescriptors::of(descriptors, pipes);
            let tokens = self.tokens(PARTS);
            let resumed = kept
                .and_then(|kept| OwnPart::resumed(context, (*spec, conductor, tokens), kept).ok());
            match resumed {
                Some(part) => drop(self.parts.insert(job, part)),
                None => self.lose_part(context, job, conductor),
            }
        }
    }

    /// Whether this is the own job of a machine that this host has founded.
    fn is_own(&self, job: JobId) -> bool {
        let founder = self.standing.as_ref().and_then(Standing::founder);
        founder.is_some_and(|founder| founder.has_own(job))
    }

    /// A part was not begun, or cannot go on: its daemon was killed.
    fn lose_part(&self, context: &mut Context<'_>, job: JobId, conductor: HostNumber) {
        context.journal().write(vec![Change::forget(EntryName::Part(job))]);
        let why = "its daemon (landeckd) was killed before the processes ran".to_owned();
        context.send(conductor, job, JobContent::PartLost(why));
    }
}

/// The reason for the loss of a host, in words.
fn unanswered(silent_ms: u64) -> String {
    format!("it has not answered for {:.1} s", silent_ms as f64 / 1e3)
}

impl JobHandler for Jobs {
    fn message(&mut self, context: &mut Context<'_>, from: HostNumber, message: JobMessage) {
        if self.left.is_some() {
            return self.early.push((from, message));
        }
        let JobMessage { job, content } = message;
        match content {
            JobContent::Check(spec)
                if spec.job == job && self.parts.get(&job).is_none_or(OwnPart::is_over) =>
            {
                self.check(context, from, *spec);
            }
            JobContent::Measure { secret, hosts } => {
                self.measure(context, Measurement { job, conductor: from, secret, hosts });
            }
            JobContent::Prepare { .. }
            | JobContent::Start
            | JobContent::AddHost(_)
            | JobContent::Meet(_)
            | JobContent::Command(_)
            | JobContent::Dismiss => {
                if self.parts.get(&job).is_some_and(|part| part.conductor == from) {
                    match content {
                        JobContent::Dismiss => self.dismiss(context, job),
                        order => self.order(context, job, order),
                    }
                } else if let JobContent::Command(PartCommand::End { .. } | PartCommand::Kill) =
                    content
                {
                    self.has_no_part(context, job, from);
                }
            }
            JobContent::TellAgain { asked } => self.tell_again(context, (job, from), asked),
            JobContent::OverTaken => self.confirm(context, job, from),
            JobContent::PartRefused(why) => {
                if let Some(standing) = &mut self.standing {
                    standing.part_refused(job, why);
                }
            }
            content => {
                if let Some(whole) = self.conducted.get_mut(&job) {
                    whole.take(context, from, content);
                }
            }
        }
    }

    fn machine(&mut self, context: &mut Context<'_>, from: HostNumber, message: MachineMessage) {
        if let MachineMessage::HostAllowed { job, host, outcome } = message {
            if let Some(whole) = self.conducted.get_mut(&job) {
                whole.take_allowance(context, host, outcome);
            }
            return;
        }
        if let Some(standing) = &mut self.standing {
            standing.take(context, from, message);
        }
    }

    fn said(&mut self, context: &mut Context<'_>, from: HostNumber, text: String) {
        for whole in self.conducted.values_mut() {
            whole.said(context, from, &text);
        }
    }

    fn given(&mut self, context: &mut Context<'_>, word: &Word) {
        if let Some(standing) = &mut self.standing {
            standing.given(context, word);
        }
    }

    fn word(&mut self, context: &mut Context<'_>, word: &Word) {
        if let WordContent::JobEnds { job, cause, .. } = &word.content
            && let Some(whole) = self.conducted.get_mut(job)
        {
            whole.cut_off(context, cause);
        }
        if let Some(whole) = word.content.job().and_then(|job| self.conducted.get_mut(&job)) {
            whole.word(&word.content);
        }
        if let WordContent::HostLost { host, silent_ms, .. } = word.content {
            // A job ends with its launcher, and so with its launcher's host.
            let its = self.parts.values_mut().filter(|part| part.conductor == host);
            its.for_each(|part| part.command(PartCommand::End { grace: GRACE }));
            let its = self.unconfirmed.iter().filter(|(_, part)| part.conductor == host);
            for job in its.map(|(job, _)| *job).collect::<Vec<_>>() {
                self.confirm(context, job, host);
            }
            if context.own_host() != HostNumber::ARBITER {
                self.lose(context, host, &unanswered(silent_ms));
            }
        }
        if let Some(standing) = &mut self.standing {
            standing.word(context, word);
        }
    }

    fn ready(&mut self, context: &mut Context<'_>, token: u64, _: EventFlags) {
        let first = token & !u64::from(u32::MAX);
        match token {
            PARTS.. => {
                if let Some(part) = self.parts.values_mut().find(|part| part.tokens == first) {
                    part.ready(token as u32);
                }
            }
            CONDUCTED.. => {
                if let Some(whole) = self.conducted.values_mut().find(|job| job.tokens() == first) {
                    whole.ready(context, token);
                }
            }
            CALLERS.. => {
                if let Some(standing) = &mut self.standing {
                    standing.ready(context, token);
                }
            }
            _ => {
                // The guardians have seen it too; this daemon can start nothing any more.
                if let Some(descriptor) = self.server.descriptor() {
                    let _ = context.unwatch(descriptor);
                }
                if self.parts.is_empty() && self.conducted.is_empty() {
                    self.over = Some(CUT_OFF);
                }
            }
        }
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        self.watch_server(context);
        self.settle_parts(context);
        self.pass_links_on(context);
        self.go_on_standing(context);
        self.conducted.values_mut().for_each(|whole| whole.tick(context));
        let is_made_for_job = self.standing.is_none();
        if is_made_for_job && self.conducted.values().any(WholeJob::has_launcher_gone) {
            self.over = Some(0);
        }
    }

    fn welcomed(&mut self, context: &mut Context<'_>) {
        let Some(left) = self.left.take() else { return };
        self.resume(context, left);
        if context.run() > 0 {
            let conducts = MachineMessage::Conducts(self.conducted.keys().copied().collect());
            context.send_machine(HostNumber::ARBITER, conducts);
            if let Some(standing) = &self.standing {
                standing.resume(context);
            }
        }
        for (from, message) in std::mem::take(&mut self.early) {
            self.message(context, from, message);
        }
    }

    fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.conducted.values_mut().for_each(|whole| whole.host_up(context, host));
        if let Some(standing) = &mut self.standing {
            standing.host_up(context, host);
        }
    }

    fn host_restarted(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.conducted.values_mut().for_each(|whole| whole.host_restarted(context, host));
        if let Some(standing) = &mut self.standing {
            standing.host_restarted(context, host);
        }
    }

    fn host_down(&mut self, context: &mut Context<'_>, host: HostNumber, why: String) {
        if host == HostNumber::ARBITER && context.own_host() != host {
            // Behind the end of the job's part the arbiter is not needed any more.
            let is_cut_off = !self.parts.is_empty() || !self.has_ended;
            self.over = Some(if is_cut_off { CUT_OFF } else { 0 });
            if let Some(standing) = &self.standing {
                let name = context.host(host).map_or("", |entry| &entry.name);
                let cause = format!("the founding host {name} is not reached: {why}");
                let conducted = self.conducted.values_mut();
                conducted.for_each(|whole| whole.cut_off(context, &cause));
                standing.cut_off(&why);
                self.comes_back_to = standing.comes_back_to(context);
            }
        }
        self.lose(context, host, &why);
    }

    fn host_lost(&mut self, context: &mut Context<'_>, host: HostNumber, silent_ms: u64) {
        let on_what = context.dependence(host).map(|text| format!(" ({text})"));
        let why = unanswered(silent_ms) + &on_what.unwrap_or_default();
        self.lose(context, host, &why);
    }

    fn founder(&self) -> Option<Vec<u8>> {
        self.standing.as_ref().and_then(Standing::founder).map(ControlMessage::encode)
    }

    fn is_over(&self) -> Option<u8> {
        self.over
    }
}
