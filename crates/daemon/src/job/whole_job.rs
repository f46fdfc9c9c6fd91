//! The whole job on its conductor, the daemon of its launcher's host: it connects the hosts, has all of them check and
//! prepare their parts, starts the processes, and tells the launcher what happens.
//!
//! The machine's own job has no launcher, and no processes of its own: the founder conducts it, and hosts are added to it when
//! somebody there wants to join.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_host::message_stream::MessageStream;
use landeck_host::report::ProcessFailure;
use landeck_host::say;
use landeck_launch::events::Happened;
use landeck_launch::gathering::Gathering;
use landeck_launch::guardian::OnFailure;
use landeck_launch::heard::Heard;
use landeck_launch::messages::{
    ArbiterReport, HostsRequest, MachineOptions, PartCommand, PartEvent, PartRefusal, ToArbiter,
};
use landeck_launch::request::LAUNCHER_FAILED;
use landeck_launch::spec::JobSpec;
use landeck_protocols::door::{StartAnswer, StartRefusal};
use landeck_protocols::hosts::Growth;
use landeck_protocols::hosts::measuring::HOSTS_MAX;
use landeck_wire::word::WordContent;
use landeck_wire::{HostNumber, JobId};
use rustix::event::epoll::EventFlags;

use self::processes_there::ProcessesThere;
use crate::context::Context;
use crate::figures::{self, OwnFigures};
use crate::job::part_ends::PartEnds;
use crate::job_message::JobContent;
use crate::machine_message::MachineMessage;
use crate::random;

mod added_hosts;
mod next_run;
mod processes_there;

/// The place of the launcher's socket among the tokens of a job.
const LAUNCHER: u64 = 0;
/// The place of the first of the tokens of remote shells: two for each.
const STARTS: u64 = 2;

/// The exit code of the machine's own job when `landeck end` ends it.
const ENDED_BY_USER: u8 = 128 + 15;
/// The exit code and the cause of the end of a job whose launcher has gone.
const ENDED_WITH_LAUNCHER: u8 = 128 + 9;
const LAUNCHER_GONE: &str = "its launcher has ended";

/// The whole job.
#[derive(Debug)]
pub(crate) struct WholeJob {
    /// The first of its tokens.
    tokens: u64,
    /// Its launcher; none has started the machine's own job.
    launcher: Option<MessageStream<ToArbiter, ArbiterReport>>,
    watched: EventFlags,
    spec: JobSpec,
    phase: Phase,
    /// The hosts of the launcher's list on their way into the machine; `None` if they were booked in one that stays.
    gathering: Option<Gathering>,
    refusals: Vec<String>,
    /// The facts that hosts have told about themselves.
    figures: Vec<OwnFigures>,
    exit_code: u8,
    /// The hosts whose answer or end is awaited.
    awaited: BTreeSet<HostNumber>,
    /// The events of the parts.
    heard: Heard,
    /// The hosts whose parts tell everything again, for the question with this number, as the conductor before was killed.
    telling: BTreeSet<HostNumber>,
    asked_again: u64,
    /// The last events of hosts.
    ends: PartEnds,
    /// Whether the job is being ended because of a failure.
    is_ending: bool,
    /// The hosts that are added.
    growth: Growth,
    processes_there: ProcessesThere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Checking,
    Measuring,
    Preparing,
    Running,
    /// The daemon before was killed, and the job runs. Its launcher has until this time to come back.
    Waiting {
        until: Duration,
    },
    /// The launcher knows that the job is impossible.
    Refused,
}

impl WholeJob {
    /// The job that a launcher asks for; waits for its request. Its descriptors get the tokens from this one on.
    ///
    /// # Errors
    /// The kernel's error; the launcher has ended.
    pub(crate) fn asked_by(launcher: OwnedFd, tokens: u64) -> io::Result<(Self, MachineOptions)> {
        let mut launcher = MessageStream::<ToArbiter, ArbiterReport>::new(launcher)?;
        let Some(ToArbiter::Start(request)) = launcher.wait_next(None) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let options = request.machine.as_ref().map(|machine| machine.options.clone());
        let options = options.ok_or(io::ErrorKind::InvalidData)?;
        Ok((Self::new(launcher, *request, tokens), options))
    }

    /// The job of a request. Its descriptors get the tokens from this one on.
    pub(crate) fn new(
        launcher: MessageStream<ToArbiter, ArbiterReport>,
        request: HostsRequest,
        tokens: u64,
    ) -> Self {
        let names: Vec<String> = request.spec.hosts.iter().map(|host| host.name.clone()).collect();
        let is_booked = request.machine.is_none();
        let gathering =
            request.machine.map(|machine| Gathering::new(machine.way, names, tokens + STARTS));
        Self {
            launcher: Some(launcher),
            phase: Phase::Connecting,
            growth: Growth::new(is_booked),
            gathering,
            ..Self::of_guests(request.spec, tokens)
        }
    }

    /// The machine's own job, which begins without hosts.
    pub(crate) fn of_guests(spec: JobSpec, tokens: u64) -> Self {
        Self {
            tokens,
            launcher: None,
            watched: EventFlags::empty(),
            phase: Phase::Running,
            growth: Growth::new(true),
            gathering: None,
            refusals: Vec::new(),
            figures: Vec::new(),
            exit_code: LAUNCHER_FAILED,
            awaited: BTreeSet::new(),
            heard: Heard::default(),
            telling: BTreeSet::new(),
            asked_again: 0,
            ends: PartEnds::default(),
            is_ending: false,
            processes_there: ProcessesThere::default(),
            spec,
        }
    }

    /// Its identity.
    pub(crate) const fn job(&self) -> JobId {
        self.spec.job
    }

    /// The first of its tokens.
    pub(crate) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Whether the launcher has ended; without one, whether the job is being ended.
    pub(crate) fn has_launcher_gone(&self) -> bool {
        if let Phase::Waiting { .. } = self.phase {
            return false;
        }
        self.launcher.as_ref().map_or(self.is_ending, MessageStream::has_ended)
    }

    /// Handles a descriptor that is ready.
    pub(crate) fn ready(&mut self, context: &mut Context<'_>, token: u64) {
        match token == self.tokens + LAUNCHER {
            true => self.hear_launcher(context),
            false => {
                if let Some(gathering) = &mut self.gathering {
                    gathering.ready(context, token);
                }
            }
        }
    }

    /// Goes on with what is due, and watches what is waited for.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        if self.phase == Phase::Connecting {
            let outcome = match &mut self.gathering {
                Some(gathering) => gathering.go_on(context),
                None => Some(self.booked(context)),
            };
            self.pass_said_on();
            match outcome {
                Some(Ok(numbers)) => self.check(context, &numbers),
                Some(Err(refusals)) => {
                    self.refusals = refusals;
                    self.refuse_job(context);
                }
                None => {}
            }
        }
        if let Phase::Waiting { until } = self.phase {
            self.wait_for_launcher(context, until);
        }
        self.pass_said_on();
        self.release_added(context);
        self.tell_processes_there(context);
        self.watch_launcher(context);
    }

    /// A host is connected.
    pub(crate) fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber) {
        if let Some(gathering) = self.gathering.as_mut().filter(|_| self.phase == Phase::Connecting)
        {
            gathering.host_up(context, host);
        }
    }

    /// The daemon of a host was killed, and the next one has its place.
    pub(crate) fn host_restarted(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.heard.restarted(host);
        self.have_told_again(context, host);
        self.restart_adding(context, host);
    }

    /// A host takes no part any more.
    pub(crate) fn lose(&mut self, context: &mut Context<'_>, host: HostNumber, why: String) {
        match self.phase {
            Phase::Connecting => {
                if let Some(gathering) = &mut self.gathering {
                    gathering.lose(host, &why);
                }
            }
            Phase::Checking | Phase::Measuring | Phase::Preparing => {
                if self.awaited.remove(&host) || self.spec.place_of(host).is_some() {
                    self.refusals.push(format!("host {}: {why}", self.name_of(host)));
                }
                self.go_on_if_answered(context);
            }
            Phase::Running => {
                self.ends.forget(host);
                self.heard.forget(host);
                self.telling.remove(&host);
                self.forget_processes_on(host);
                let had_part = self.awaited.remove(&host);
                self.lose_added(context, host, &why);
                if had_part {
                    let cause = format!("host {} is lost: {why}", self.name_of(host));
                    self.report(&ArbiterReport::HostLost { host, why });
                    if self.ends_by_failure() && self.growth.has_processes_on(host) {
                        self.end(context, 128 + 9, cause);
                    }
                }
            }
            // It is looked at when the launcher is there.
            Phase::Waiting { .. } | Phase::Refused => {}
        }
    }

    /// Takes a message of a part.
    pub(crate) fn take(
        &mut self,
        context: &mut Context<'_>,
        from: HostNumber,
        message: JobContent,
    ) {
        if let JobContent::EndWanted { .. } = message {
            self.wait_no_longer(context);
        }
        match message {
            JobContent::Checked(answer) if self.phase == Phase::Checking => {
                let answer = answer.map(|figures| self.figures.push(figures));
                self.take_answer(context, from, answer);
            }
            JobContent::Measured(found) if self.phase == Phase::Measuring => {
                context.known_links().add(from, &found);
                if context.own_host() != HostNumber::ARBITER {
                    // The founder shows it to those who look at the machine.
                    let links = MachineMessage::Links { host: from, found };
                    context.send_machine(HostNumber::ARBITER, links);
                }
                self.take_answer(context, from, Ok(()));
            }
            JobContent::Prepared(answer) if self.phase == Phase::Preparing => {
                self.take_answer(context, from, answer);
            }
            JobContent::Checked(answer) if self.phase == Phase::Running => {
                self.take_answer_of_added(context, from, answer.map(|_| ()));
            }
            JobContent::Prepared(answer) if self.phase == Phase::Running => {
                self.take_answer_of_added(context, from, answer);
            }
            JobContent::PartWanted => self.want_part(context, from),
            JobContent::HostAdded { segment, guests } => {
                self.take_guests(context, from, segment, guests);
            }
            JobContent::NotStarted(refusal) if self.growth.is_added(from) => {
                self.miss_added(context, from, refusal.text);
            }
            JobContent::NotStarted(refusal) => {
                let cause = format!("host {}: {}", self.name_of(from), refusal.text);
                // Only the first cause counts.
                self.end(context, refusal.exit_code, cause);
                self.lose(context, from, refusal.text);
            }
            // The launcher knows what it means, and for how long processes have time.
            JobContent::EndWanted { host } if self.launcher.is_some() => {
                self.report(&ArbiterReport::EndWanted { host });
            }
            JobContent::EndWanted { host } => {
                self.end(context, ENDED_BY_USER, format!("landeck end was called on {host}"));
            }
            JobContent::PartLost(why)
                if self.phase != Phase::Running || self.awaited.contains(&from) =>
            {
                self.lose(context, from, why);
            }
            JobContent::Event(event) if self.phase == Phase::Running => {
                self.hear(context, from, event);
            }
            _ => {}
        }
    }

    /// Tells the user what a daemon says.
    pub(crate) fn said(&mut self, context: &Context<'_>, from: HostNumber, text: &str) {
        let far = context.host(from).filter(|_| from != context.own_host());
        let name = far.map_or_else(String::new, |entry| format!("host {}: ", entry.name));
        let text = say::brief(format_args!("{name}{text}"));
        self.report(&ArbiterReport::Said(text));
    }

    /// Tells the launcher, if there is one.
    fn report(&mut self, report: &ArbiterReport) {
        if let Some(launcher) = &mut self.launcher {
            launcher.send(report);
        }
    }

    /// Takes an event of a part. A part whose daemon was killed tells some of them again.
    fn hear(&mut self, context: &mut Context<'_>, host: HostNumber, event: PartEvent) {
        let job = self.spec.job;
        if !self.awaited.contains(&host) {
            if event == PartEvent::Over {
                context.send(host, job, JobContent::OverTaken);
            }
            return;
        }
        if !self.heard.is_new(host, &event) {
            if let PartEvent::StartAsked { request, .. } = event
                && let Some(answer) = self.heard.answer(host, request)
            {
                context.send(host, job, JobContent::Command(answer));
            }
            return;
        }
        for event in self.ends.in_order(host, event) {
            self.take_event(context, host, event);
        }
    }

    /// The part of a host has another daemon.
    fn take_standing(&mut self, context: &mut Context<'_>, host: HostNumber) {
        let job = self.spec.job;
        let (orders, lost) = self.heard.stands(host);
        for order in orders {
            context.send(host, job, JobContent::Command(order));
        }
        lost.into_iter().for_each(|event| self.take_event(context, host, event));
    }

    fn take_event(&mut self, context: &mut Context<'_>, host: HostNumber, event: PartEvent) {
        match &event {
            PartEvent::Happened(happened) => {
                if let Some((code, cause)) = self.cause_of_end(host, happened) {
                    self.end(context, code, cause);
                }
            }
            PartEvent::Stands { asked } => {
                if *asked == self.asked_again {
                    self.telling.remove(&host);
                }
                self.take_standing(context, host);
            }
            PartEvent::Over => {
                self.awaited.remove(&host);
                self.heard.forget(host);
                self.telling.remove(&host);
                context.send(host, self.spec.job, JobContent::OverTaken);
            }
            _ => {}
        }
        self.note_event(context, host, &event);
        if let PartEvent::StartAsked { request, .. } = event
            && self.launcher.is_none()
        {
            let answer = StartAnswer::Refused(StartRefusal::NoLauncher);
            let command = PartCommand::AnswerStart { request, answer };
            self.heard.ordered(host, &command);
            return context.send(host, self.spec.job, JobContent::Command(command));
        }
        self.report(&ArbiterReport::Event { host, event });
    }

    /// Whether a failure ends the whole job that no restart follows.
    const fn ends_by_failure(&self) -> bool {
        match self.spec.on_failure {
            OnFailure::Abort => true,
            OnFailure::Notify => false,
            OnFailure::Restart { then_abort, .. } => then_abort,
        }
    }

    /// The exit code and the reason, if an event ends the whole job.
    fn cause_of_end(&self, host: HostNumber, happened: &Happened) -> Option<(u8, String)> {
        let ends = self.ends_by_failure();
        let name = self.name_of(host);
        match happened {
            Happened::Ended { rank, failure: Some(failure), again: None, .. } => {
                let is_abort = matches!(failure, ProcessFailure::Aborted(_));
                let process = self.spec.process_in_words(*rank);
                let cause = format!("{process} on host {name} has failed");
                (ends || is_abort).then(|| (failure.exit_code(), cause))
            }
            Happened::NotStarted { rank, again: None, .. }
                if ends && *rank < self.spec.processes() =>
            {
                Some((LAUNCHER_FAILED, format!("rank {rank} was not started on host {name}")))
            }
            Happened::GuestAborted { code, .. } => {
                Some((*code, format!("a guest on host {name} has ended the job")))
            }
            Happened::GuardianGone => {
                Some((128 + 9, format!("the guardian of the job on host {name} was killed")))
            }
            _ => None,
        }
    }

    /// Carries out a word that ends the job: processes cannot reach each other, numbers of groups are used up, somebody
    /// ends the machine or takes a host out of it, or the founder is not reached. Before its start nothing runs yet, and
    /// nothing will.
    pub(crate) fn cut_off(&mut self, context: &mut Context<'_>, cause: &str) {
        self.wait_no_longer(context);
        if std::mem::replace(&mut self.is_ending, true) {
            return;
        }
        self.give_up_adding(context);
        match self.phase {
            Phase::Running => {
                self.report(&ArbiterReport::CutOff(format!("The job was ended: {cause}.")));
                let grace = self.spec.grace;
                self.command_all(context, &PartCommand::End { grace });
            }
            Phase::Connecting | Phase::Checking | Phase::Measuring | Phase::Preparing => {
                self.refusals = vec![format!("the job was ended before its start: {cause}")];
                self.refuse_job(context);
            }
            Phase::Waiting { .. } | Phase::Refused => {}
        }
    }

    /// Ends the job on all hosts; only the first cause counts.
    fn end(&mut self, context: &mut Context<'_>, code: u8, cause: String) {
        if std::mem::replace(&mut self.is_ending, true) {
            return;
        }
        self.give_up_adding(context);
        context.tell(WordContent::JobEnds { job: self.spec.job, code, cause });
        let grace = self.spec.grace;
        self.command_all(context, &PartCommand::End { grace });
    }

    fn command_all(&mut self, context: &mut Context<'_>, command: &PartCommand) {
        for &host in &self.awaited {
            self.heard.ordered(host, command);
            context.send(host, self.spec.job, JobContent::Command(command.clone()));
        }
    }

    fn hear_launcher(&mut self, context: &mut Context<'_>) {
        if let Some(launcher) = &mut self.launcher {
            launcher.flush();
            launcher.read();
        }
        while let Some(message) = self.launcher.as_mut().and_then(MessageStream::take_next) {
            match message {
                _ if self.phase != Phase::Running => {}
                ToArbiter::Command { host: Some(host), command } => {
                    self.note_start(host, &command);
                    self.heard.ordered(host, &command);
                    context.send(host, self.spec.job, JobContent::Command(command));
                }
                ToArbiter::Command { host: None, command } => self.command_all(context, &command),
                ToArbiter::AddHost(host) => self.want_host(context, host),
                ToArbiter::Ask(_) | ToArbiter::Start(_) | ToArbiter::Resume { .. } => {}
            }
        }
    }

    fn watch_launcher(&mut self, context: &mut Context<'_>) {
        let Some(launcher) = &self.launcher else { return };
        let room = match launcher.has_unsent() {
            true => EventFlags::OUT,
            false => EventFlags::empty(),
        };
        let wanted = EventFlags::IN | room;
        if wanted == self.watched {
            return;
        }
        let descriptor = launcher.descriptor();
        let watched = match self.watched.is_empty() {
            true => context.watch(descriptor, self.tokens + LAUNCHER, wanted),
            false => context.rewatch(descriptor, self.tokens + LAUNCHER, wanted),
        };
        if watched.is_ok() {
            self.watched = wanted;
        }
    }

    fn pass_said_on(&mut self) {
        let said = self.gathering.as_mut().map(Gathering::take_said);
        for text in said.unwrap_or_default() {
            self.report(&ArbiterReport::Said(text));
        }
    }

    /// The hosts that were booked, if all of them still take part.
    fn booked(&self, context: &Context<'_>) -> Result<Vec<HostNumber>, Vec<String>> {
        let hosts = &self.spec.hosts;
        let is_there = |number| context.hosts().any(|entry| entry.host == number);
        let away = hosts.iter().filter(|host| !is_there(host.number));
        let away: Vec<String> = away
            .map(|host| format!("host {}: it takes no part in the machine any more", host.name))
            .collect();
        match away.is_empty() {
            true => Ok(hosts.iter().map(|host| host.number).collect()),
            false => Err(away),
        }
    }

    /// Ends the job, since its launcher has gone, or goes on with its end. Returns whether it is over.
    pub(crate) fn leave(&mut self, context: &mut Context<'_>) -> bool {
        match self.phase {
            Phase::Running => self.end(context, ENDED_WITH_LAUNCHER, LAUNCHER_GONE.to_owned()),
            Phase::Checking | Phase::Measuring | Phase::Preparing => self.refuse_job(context),
            Phase::Connecting | Phase::Waiting { .. } | Phase::Refused => {}
        }
        self.phase != Phase::Running || self.awaited.is_empty()
    }

    /// Has the hosts check their parts: all of them are connected.
    fn check(&mut self, context: &mut Context<'_>, numbers: &[HostNumber]) {
        self.spec.settle(numbers);
        let first = self.spec.hosts[usize::from(self.spec.ranks[0].host)].number;
        if let Some(address) = context.address_of(first) {
            self.spec.first_address = address.to_string();
        }
        self.phase = Phase::Checking;
        self.keep(context);
        let check = JobContent::Check(Box::new(self.spec.clone()));
        self.ask_all(context, &check);
    }

    /// Sends a question to every host of the job, and awaits the answers.
    fn ask_all(&mut self, context: &mut Context<'_>, question: &JobContent) {
        self.awaited = self.spec.hosts.iter().map(|host| host.number).collect();
        for host in &self.spec.hosts {
            context.send(host.number, self.spec.job, question.clone());
        }
    }

    fn take_answer(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        answer: Result<(), PartRefusal>,
    ) {
        self.awaited.remove(&host);
        if let Err(refusal) = answer {
            self.exit_code = refusal.exit_code;
            self.refusals.push(format!("host {}: {}", self.name_of(host), refusal.text));
        }
        self.go_on_if_answered(context);
    }

    fn go_on_if_answered(&mut self, context: &mut Context<'_>) {
        if !self.awaited.is_empty() {
            return;
        }
        if !self.refusals.is_empty() {
            return self.refuse_job(context);
        }
        match self.phase {
            Phase::Checking => self.measure(context),
            Phase::Measuring => self.prepare(context),
            Phase::Preparing => {
                self.phase = Phase::Running;
                self.keep(context);
                self.report(&ArbiterReport::Settled(Box::new(self.spec.clone())));
                self.ask_all(context, &JobContent::Start);
            }
            Phase::Connecting | Phase::Running | Phase::Waiting { .. } | Phase::Refused => {}
        }
    }

    /// Has the hosts measure their links, unless there are none or too many, or an earlier job has done it.
    fn measure(&mut self, context: &mut Context<'_>) {
        let hosts: Vec<HostNumber> = self.spec.hosts.iter().map(|host| host.number).collect();
        let has_links = (2..=HOSTS_MAX).contains(&hosts.len());
        let has_links = has_links && !context.known_links().has_all(&hosts);
        // Without randomness there is no secret for it.
        let secret = random::bytes().ok().filter(|_| has_links);
        let Some(secret) = secret else { return self.prepare(context) };
        self.phase = Phase::Measuring;
        self.ask_all(context, &JobContent::Measure { secret, hosts });
    }

    /// Has the hosts make their parts, with figures and links that are the same for all of them from now on.
    fn prepare(&mut self, context: &mut Context<'_>) {
        self.phase = Phase::Preparing;
        self.spec.settings = figures::settled(&self.spec.settings, &self.figures);
        let hosts: Vec<HostNumber> = self.spec.hosts.iter().map(|host| host.number).collect();
        context.compose_links(&hosts);
        self.spec.links = context.known_links().settled(&hosts);
        self.spec.shares_processors = figures::share_processors(&self.figures);
        let order = self.order_to_prepare();
        self.ask_all(context, &order);
    }

    /// The order to make a part, with what is settled.
    fn order_to_prepare(&self) -> JobContent {
        let JobSpec { settings, links, shares_processors, .. } = &self.spec;
        JobContent::Prepare {
            settings: settings.clone(),
            links: links.clone(),
            shares_processors: *shares_processors,
        }
    }

    fn refuse_job(&mut self, context: &mut Context<'_>) {
        if self.phase != Phase::Connecting {
            self.ask_all(context, &JobContent::Dismiss);
        }
        self.phase = Phase::Refused;
        let texts = std::mem::take(&mut self.refusals);
        self.report(&ArbiterReport::Refused { exit_code: self.exit_code, texts });
    }

    fn name_of(&self, host: HostNumber) -> &str {
        let place = self.spec.place_of(host);
        place.map_or("", |place| self.spec.hosts[place].name.as_str())
    }
}
