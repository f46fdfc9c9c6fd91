//! The side of a daemon that belongs to a machine that stays.

use std::collections::BTreeMap;
use std::io;

use landeck_host::{say, service};
use landeck_launch::machine::{MachineAnswer, MachineName, MachineQuestion};
use landeck_launch::spec::JobSpec;
use landeck_protocols::door::PartAnswer;
use landeck_protocols::hosts::{LoadReport, numbers_before};
use landeck_wire::word::{Word, WordContent};
use landeck_wire::{HostNumber, JobId, SegmentId};
use tracing::info;

use crate::bootstrap::Place;
use crate::context::Context;
use crate::facts::RELEASE;
use crate::job_message::JobContent;
use crate::machine::callers::{Callers, CallersEvent};
use crate::machine::founder::Founder;
use crate::machine::helper::Helper;
use crate::machine::keeper;
use crate::machine::load::LoadLooks;
use crate::machine::logout;
use crate::machine::ticket::ReturnTicket;
use crate::machine::visitors::Visitors;
use crate::machine_message::MachineMessage;
use crate::observers::log;

/// The side of a daemon that belongs to its machine.
#[derive(Debug)]
pub(crate) struct Standing {
    callers: Callers,
    visitors: Visitors,
    /// The questions that the founder was asked, with those who have asked.
    asked: BTreeMap<u64, Asker>,
    last_request: u64,
    place: Place,
    founder: Option<Founder>,
    load: LoadLooks,
    helper: Helper,
    is_ready: bool,
    /// The founder has told this host to leave.
    leaves: bool,
    /// The secret of the newest return ticket of this host, as far as its founder has told.
    secret: Option<[u8; 16]>,
    /// This host has a return ticket on its disk.
    may_return: bool,
}

/// The side from which a question to the founder has come, with its number there.
#[derive(Clone, Copy, Debug)]
enum Asker {
    Caller(u64),
    Visitor(u64),
}

impl Standing {
    /// Listens for the callers of a machine on this host, with tokens from this one on. The host that has founded it has the
    /// founder.
    ///
    /// # Errors
    /// The kernel's error: a machine with this name may be there.
    pub(crate) fn begin(place: Place, founder: Option<Founder>, tokens: u64) -> io::Result<Self> {
        Ok(Self {
            callers: Callers::listen(&place.machine.address(), tokens)?,
            visitors: Visitors::listen(&place.machine.address_of_guests(), tokens << 1)?,
            asked: BTreeMap::new(),
            last_request: 0,
            founder,
            place,
            load: LoadLooks::default(),
            helper: Helper::default(),
            is_ready: false,
            leaves: false,
            secret: None,
            may_return: false,
        })
    }

    /// The founder, if this host has founded the machine.
    pub(crate) const fn founder(&self) -> Option<&Founder> {
        self.founder.as_ref()
    }

    /// Notes that this daemon has come back, or has started again, so nobody waits for it to be ready.
    pub(crate) fn returned(self) -> Self {
        let ticket = ReturnTicket::read(&self.place.machine).ok();
        let secret = ticket.map(|ticket| ticket.secret);
        Self { is_ready: true, may_return: secret.is_some(), secret, ..self }
    }

    /// Asks the founder for what was on its way to the run of this daemon before.
    pub(crate) fn resume(&self, context: &mut Context<'_>) {
        if self.secret.is_none() {
            context.send_machine(HostNumber::ARBITER, MachineMessage::TicketWanted);
        }
    }

    /// Goes on with a descriptor that is ready.
    pub(crate) fn ready(&mut self, context: &mut Context<'_>, token: u64) {
        match token < self.visitors.tokens() {
            true => self.callers.ready(context, token),
            false => self.visitors.ready(context, token),
        }
    }

    /// Goes on with what callers want. Returns the jobs that launchers start, or go on with.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) -> Vec<CallersEvent> {
        let watched = self.callers.watch(context).and_then(|()| self.visitors.watch(context));
        if let Err(error) = watched {
            say::complain(format_args!("landeckd cannot watch for its callers: {error}"));
        }
        if self.founder.is_some() && !self.is_ready {
            self.host_up(context, context.own_host());
        }
        if let Some(founder) = &mut self.founder {
            founder.begin_helpers(context);
        }
        self.tell_load(context);
        let mut starts = Vec::new();
        for event in self.callers.take_events() {
            match event {
                CallersEvent::Asks { caller, question } => {
                    self.ask(context, Asker::Caller(caller), question);
                }
                CallersEvent::HasGone(job) => self.job_over(context, job),
                CallersEvent::Starts(..) | CallersEvent::Resumes { .. } => starts.push(event),
            }
        }
        for (visitor, job) in self.visitors.take_asked() {
            self.ask(context, Asker::Visitor(visitor), MachineQuestion::Find { job });
        }
        self.answer_without_founder(context);
        starts
    }

    /// Tells the founder and the helper the load of this host, once a second.
    fn tell_load(&mut self, context: &mut Context<'_>) {
        if !self.is_ready {
            return;
        }
        if let Some(load) = self.load.look(context.now()) {
            context.send_machine(HostNumber::ARBITER, MachineMessage::Load(load));
            let (number, host) = (context.own_host(), context.own_entry().name.clone());
            let report = LoadReport { host, number, cores: context.cores(number), load };
            self.helper.go_on(context.now(), &report);
        }
        context.wake_at(self.load.deadline());
    }

    /// Tells the founder that a job is over.
    pub(crate) fn job_over(&self, context: &mut Context<'_>, job: JobId) {
        context.send_machine(HostNumber::ARBITER, MachineMessage::JobOver(job));
    }

    /// Takes a message of another daemon.
    pub(crate) fn take(
        &mut self,
        context: &mut Context<'_>,
        from: HostNumber,
        message: MachineMessage,
    ) {
        match (message, &mut self.founder) {
            (MachineMessage::Asked { request, question }, Some(founder)) => {
                let answer = founder.answer(context, from, question);
                context.send_machine(from, MachineMessage::Answered { request, answer });
            }
            (MachineMessage::JobOver(job), Some(founder)) => founder.job_over(context, job),
            (MachineMessage::HostWanted { job, host }, Some(founder)) => {
                let outcome = founder.add_host_to(context, job, host.number);
                let allowed = MachineMessage::HostAllowed { job, host, outcome };
                context.send_machine(from, allowed);
            }
            (MachineMessage::HostGivenUp { job, host }, Some(founder)) => {
                founder.take_host_from(job, host);
            }
            (MachineMessage::Processes { job, host, processes }, Some(founder)) => {
                founder.note_processes(job, host, processes);
            }
            (MachineMessage::TicketWanted, Some(founder)) => founder.give_ticket(context, from),
            (MachineMessage::Conducts(jobs), Some(founder)) => {
                founder.conducts(context, from, &jobs);
            }
            (MachineMessage::Load(load), Some(founder)) => founder.note_load(from, load),
            (MachineMessage::Links { host, found }, Some(_)) => {
                context.known_links().add(host, &found);
            }
            (MachineMessage::HelperWanted(job), _) if from == HostNumber::ARBITER => {
                self.helper.begin(context.now(), job);
            }
            (MachineMessage::Leave, None) if from == HostNumber::ARBITER => self.leaves = true,
            (MachineMessage::Ticket(secret), None) if from == HostNumber::ARBITER => {
                self.secret = Some(secret);
                self.keep_ticket(context);
            }
            (MachineMessage::Answered { request, answer }, _) if from == HostNumber::ARBITER => {
                if let Some(asker) = self.asked.remove(&request) {
                    self.answer(context, asker, answer);
                }
            }
            _ => {}
        }
    }

    /// A host is connected.
    pub(crate) fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber) {
        if let Some(founder) = &mut self.founder {
            founder.host_up(context, host);
        }
        if host == HostNumber::ARBITER {
            service::tell_ready();
        }
        if std::mem::replace(&mut self.is_ready, true) {
            return;
        }
        if let Some(warning) = logout::warning() {
            say::complain(warning);
        }
        if let Err(error) = keeper::is_ready(context.journal()) {
            say::complain(format_args!("landeckd cannot leave its terminal: {error}"));
        }
    }

    /// The daemon of a host has started again.
    pub(crate) fn host_restarted(&mut self, context: &mut Context<'_>, host: HostNumber) {
        if let Some(founder) = &mut self.founder {
            founder.host_restarted(context, host);
        }
    }

    /// The founder is not reached any more. Before this daemon was ready, its starter learns that.
    pub(crate) fn cut_off(&self, why: &str) {
        if !self.is_ready {
            say::complain(format_args!("landeckd has no connection to the founding host: {why}"));
        }
    }

    /// A word was applied.
    pub(crate) fn word(&mut self, context: &mut Context<'_>, word: &Word) {
        if let WordContent::JobOver { job } = word.content {
            self.visitors.answer_all(job, &PartAnswer::Unknown);
            self.helper.end(job);
        }
        let is_on_the_way = match &word.content {
            WordContent::HostMoved { host, place, .. } => {
                *host == HostNumber::ARBITER || place.is_gateway
            }
            WordContent::HostJoined(entry) => entry.place.is_gateway,
            _ => false,
        };
        if is_on_the_way {
            self.keep_ticket(context);
        }
    }

    /// The arbiter, which is this host, has given a word.
    pub(crate) fn given(&mut self, context: &mut Context<'_>, word: &Word) {
        if let Some(founder) = &mut self.founder {
            founder.word(context, word);
        }
    }

    /// Whether the machine has come to its end, as the founder knows, or this host leaves it.
    pub(crate) fn has_ended(&self, context: &Context<'_>) -> bool {
        self.leaves || self.founder.as_ref().is_some_and(|founder| founder.has_ended(context.now()))
    }

    /// The machine that this host comes back to, when its daemon ends because the founder was not reached. If it was told to
    /// leave or the machine has ended, its ticket is removed.
    pub(crate) fn comes_back_to(&self, context: &Context<'_>) -> Option<MachineName> {
        let is_over = self.leaves || context.has_arbiter_ended();
        if self.may_return && is_over {
            ReturnTicket::remove(&self.place.machine);
        }
        (self.may_return && !is_over).then(|| self.place.machine.clone())
    }

    /// Keeps the return ticket of this host, with the addresses of the founder as they are now.
    fn keep_ticket(&mut self, context: &Context<'_>) {
        let Some(secret) = self.secret else { return };
        let (own, founder) = (context.own_entry(), context.arbiter_entry());
        let Place { machine, ports, networks } = &self.place;
        let ticket = ReturnTicket {
            release: RELEASE.to_owned(),
            host: own.host,
            name: own.name.clone(),
            founder: founder.key,
            ways: context.ways_to_founder(),
            secret,
            ports: *ports,
            networks: networks.clone(),
        };
        match ticket.write(machine) {
            Ok(()) => self.may_return = true,
            // One with which it has come back before is good still.
            Err(error) => info!("this host cannot keep its return ticket: {error}"),
        }
    }

    /// Answers those who have asked the founder, while it is not reached.
    fn answer_without_founder(&mut self, context: &mut Context<'_>) {
        let Some(silent) = context.arbiter_silence() else { return };
        for asker in std::mem::take(&mut self.asked).into_values() {
            let why = format!("its founder has not answered for {:.1} s", silent.as_secs_f64());
            self.answer(context, asker, MachineAnswer::CutOff { why });
        }
    }

    /// Lets those join whose job has a part here by now. `segment_of` knows the segments of such parts.
    pub(crate) fn let_guests_in(&mut self, segment_of: impl Fn(JobId) -> Option<SegmentId>) {
        self.visitors.answer_present(segment_of);
    }

    /// Takes the machine's own job, if somebody has asked for it first.
    pub(crate) fn take_own_job(&mut self) -> Option<JobSpec> {
        self.founder.as_mut()?.take_own_job()
    }

    /// A job does not come to this host, for this reason.
    pub(crate) fn part_refused(&mut self, job: JobId, why: String) {
        self.visitors.answer_all(job, &PartAnswer::Refused(why));
    }

    /// Whether processes wait to join a job.
    pub(crate) fn is_visited(&self, job: JobId) -> bool {
        self.visitors.want(job)
    }

    fn answer(&mut self, context: &mut Context<'_>, asker: Asker, answer: MachineAnswer) {
        let visitor = match asker {
            Asker::Caller(caller) => return self.callers.answer(context, caller, answer),
            Asker::Visitor(visitor) => visitor,
        };
        let answer = match answer {
            MachineAnswer::Found(Ok(Some((job, conductor)))) => {
                self.visitors.note_job(visitor, job);
                return context.send(conductor, job, JobContent::PartWanted);
            }
            MachineAnswer::Found(Err(why)) | MachineAnswer::CutOff { why } => {
                PartAnswer::Refused(why)
            }
            _ => PartAnswer::Unknown,
        };
        self.visitors.answer(visitor, answer);
    }

    fn ask(&mut self, context: &mut Context<'_>, asker: Asker, question: MachineQuestion) {
        if question == MachineQuestion::Log {
            return self.answer(context, asker, MachineAnswer::Log(log::for_callers()));
        }
        // No answer to the run before of this daemon is taken for one to this.
        self.last_request = self.last_request.max(numbers_before(context.run())) + 1;
        self.asked.insert(self.last_request, asker);
        let asked = MachineMessage::Asked { request: self.last_request, question };
        context.send_machine(HostNumber::ARBITER, asked);
    }
}
