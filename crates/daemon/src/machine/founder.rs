//! The founder of a machine: it admits hosts, books processors and says what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_host::report::duration;
use landeck_hostfile::host_list::is_this_host;
use landeck_launch::machine::{
    BookedHost, HostState, HostStatus, JobHost, JobStatus, MachineAnswer, MachineName,
    MachineQuestion, MachineStatus, RouteStatus,
};
use landeck_launch::spec::JobSpec;
use landeck_machine::routes::Route;
use landeck_protocols::hosts::{
    BookedShare, Booking, BookingWish, HostLoad, HostTiming, NothingFree,
};
use landeck_wire::word::{HostPlace, Word, WordContent};
use landeck_wire::{ControlMessage, HostNumber, JobId};
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::admission;
use crate::context::Context;
use crate::facts::RELEASE;
use crate::job_message::JobContent;
use crate::machine::own_job::OwnJob;
use crate::machine_message::MachineMessage;

/// How long jobs have to end when the machine does. Processes have ten seconds of it.
const JOBS_END_TIME: Duration = Duration::from_secs(20);

/// The founder of a machine: everything that it knows beside words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Founder {
    name: MachineName,
    book: Booking,
    hosts: BTreeMap<HostNumber, HostNote>,
    /// How often each host has joined.
    times: BTreeMap<HostNumber, u32>,
    /// The hosts that were drained, with the reasons. They stay so when they come back.
    drained: BTreeMap<HostNumber, String>,
    jobs: BTreeMap<JobId, JobNote>,
    /// The machine's own job, since it was first asked for.
    own_job: Option<OwnJob>,
    /// The hosts that were told to leave.
    leaving: BTreeSet<HostNumber>,
    /// The machine ends at this time, or when its last job is over.
    ends_at: Option<Duration>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct HostNote {
    state: HostState,
    since: Duration,
    why: String,
    /// Since when a lost host has not answered.
    silent_since: Option<Duration>,
    /// How often its daemon was started again since it has joined, and when it was the last time.
    restarts: Option<(u32, Duration)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct JobNote {
    name: String,
    began: Duration,
    /// The host of its launcher.
    conductor: HostNumber,
}

impl ControlMessage for Founder {
    const NAME: &'static str = "a founder";
    const BYTES_MAX: usize = 1 << 30;
}

impl Founder {
    pub(crate) fn new(name: MachineName) -> Self {
        Self {
            name,
            book: Booking::default(),
            hosts: BTreeMap::new(),
            times: BTreeMap::new(),
            drained: BTreeMap::new(),
            jobs: BTreeMap::new(),
            own_job: None,
            leaving: BTreeSet::new(),
            ends_at: None,
        }
    }

    /// Answers a question of a caller on this host or another one.
    pub(crate) fn answer(
        &mut self,
        context: &mut Context<'_>,
        from: HostNumber,
        question: MachineQuestion,
    ) -> MachineAnswer {
        match question {
            MachineQuestion::Status => MachineAnswer::Status(Box::new(self.status(context))),
            MachineQuestion::Describe { text } => MachineAnswer::Done(context.describe(text)),
            MachineQuestion::Description => {
                MachineAnswer::Description(context.description().to_owned())
            }
            MachineQuestion::Routes { from: wanted } => {
                let from = wanted.map_or(Ok(from), |name| self.host_named(context, &name));
                MachineAnswer::Routes(from.map(|from| self.routes(context, from)))
            }
            MachineQuestion::Admit { names, line } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let outcome = admission::admit(context, &names, &line);
                MachineAnswer::Admitted(outcome)
            }
            MachineQuestion::Book { job, name, wish } => {
                MachineAnswer::Booked(self.book(context, (job, name, wish), from))
            }
            MachineQuestion::End { job } => {
                // One that is over already has ended.
                let conductor = match self.jobs.get(&job) {
                    Some(note) => Some(note.conductor),
                    None => self.own(job).map(|_| context.own_host()),
                };
                if let Some(conductor) = conductor {
                    let host = name_of(context, from);
                    context.send(conductor, job, JobContent::EndWanted { host });
                }
                MachineAnswer::Done(Ok(()))
            }
            MachineQuestion::Find { job } => MachineAnswer::Found(self.find(context, &job)),
            MachineQuestion::Drain { host, reason } => {
                let drained = self.host_named(context, &host).map(|host| {
                    self.drain(host, context.now(), &reason);
                    self.drained.insert(host, reason);
                });
                MachineAnswer::Done(drained)
            }
            MachineQuestion::Resume { host } => {
                let resumed = self.host_named(context, &host).map(|host| {
                    self.drained.remove(&host);
                    self.book.add_host(host, context.cores(host));
                    self.note(host, HostState::Up, context.now(), "");
                });
                MachineAnswer::Done(resumed)
            }
            MachineQuestion::Remove { host, ends_jobs } => {
                MachineAnswer::Removing(self.remove(context, &host, ends_jobs))
            }
            // Each daemon answers this for itself.
            MachineQuestion::Log => MachineAnswer::Log(Vec::new()),
            MachineQuestion::Stop { ends_jobs } => {
                MachineAnswer::Stopping(self.stop(context, ends_jobs))
            }
        }
    }

    /// A host is connected.
    pub(crate) fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber) {
        let is_new = self.hosts.get(&host).is_none_or(|note| note.state == HostState::Joining);
        if !is_new {
            return;
        }
        let why = self.hosts.get(&host).map(|note| note.why.clone()).unwrap_or_default();
        self.note(host, HostState::Up, context.now(), &why);
        self.book.add_host(host, context.cores(host));
        if let Some(reason) = self.drained.get(&host).cloned() {
            self.drain(host, context.now(), &reason);
        }
        self.give_ticket(context, host);
    }

    /// Gives a host its next return ticket. The founder's own needs none.
    pub(crate) fn give_ticket(&self, context: &mut Context<'_>, host: HostNumber) {
        if host == context.own_host() {
            return;
        }
        match context.issue_ticket(host) {
            Ok(secret) => context.send_machine(host, MachineMessage::Ticket(secret)),
            Err(error) => info!("host {} gets no return ticket: {error}", host.0),
        }
    }

    /// Lets no further job come to a host, for this reason.
    fn drain(&mut self, host: HostNumber, since: Duration, reason: &str) {
        self.book.close_host(host);
        self.note(host, HostState::Draining, since, reason);
    }

    /// A host was admitted, for the first time or again.
    fn host_joins(&mut self, host: HostNumber, now: Duration) {
        let times = self.times.entry(host).or_default();
        *times += 1;
        let why = if *times > 1 { format!("time {times} in the machine") } else { String::new() };
        self.note(host, HostState::Joining, now, &why);
    }

    /// A host has told its load.
    pub(crate) fn note_load(&mut self, host: HostNumber, load: HostLoad) {
        self.book.note_load(host, load);
    }

    /// A word was applied.
    pub(crate) fn word(&mut self, context: &mut Context<'_>, word: &Word) {
        let now = context.now();
        let (host, state, silent_since) = match word.content {
            WordContent::HostJoined(ref entry) if entry.host != context.own_host() => {
                return self.host_joins(entry.host, now);
            }
            WordContent::HostLost { host, silent_ms, .. } => {
                (host, HostState::Lost, Some(now.saturating_sub(Duration::from_millis(silent_ms))))
            }
            WordContent::HostGone { host, .. } => (host, HostState::Gone, None),
            _ => return,
        };
        let before = self.hosts.get(&host).filter(|_| state == HostState::Gone);
        let why = before.map_or_else(String::new, |note| note.why_at(now));
        let restarts = None;
        self.hosts.insert(host, HostNote { state, since: now, why, silent_since, restarts });
        let is_replaced = self.is_twice(context, host);
        if state == HostState::Gone && (self.leaving.remove(&host) || is_replaced) {
            context.void_ticket(host);
            self.hosts.remove(&host);
            self.times.remove(&host);
            self.drained.remove(&host);
        }
        self.book.remove_host(host);
        if let Some(own) = &mut self.own_job {
            own.lose(host);
        }
        // A job ends with its launcher, and so with its launcher's host.
        self.jobs_over(context, host);
    }

    /// The daemon of a host has started again. It may not have heard that it leaves, and says soon which jobs it still ends.
    pub(crate) fn host_restarted(&mut self, context: &mut Context<'_>, host: HostNumber) {
        let now = context.now();
        if let Some(note) = self.hosts.get_mut(&host) {
            let times = note.restarts.map_or(0, |(times, _)| times) + 1;
            note.restarts = Some((times, now));
        }
        if let Some(own) = &mut self.own_job {
            // Its helper has ended with it.
            own.helped.remove(&host);
        }
        if self.leaving.contains(&host) {
            context.send_machine(host, MachineMessage::Leave);
        }
    }

    /// A host conducts these jobs, and no others: its daemon has started again.
    pub(crate) fn conducts(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        jobs: &BTreeSet<JobId>,
    ) {
        let restarts = self.hosts.get(&host).and_then(|note| note.restarts);
        let Some((_, restarted)) = restarts else { return };
        // A launcher may have asked the new run for one.
        let is_over = |job: &JobId, note: &JobNote| {
            note.conductor == host && note.began <= restarted && !jobs.contains(job)
        };
        let over: Vec<JobId> = self
            .jobs
            .iter()
            .filter(|(job, note)| is_over(job, note))
            .map(|(job, _)| *job)
            .collect();
        over.into_iter().for_each(|job| self.job_over(context, job));
    }

    /// The jobs are over that a host has conducted.
    fn jobs_over(&mut self, context: &mut Context<'_>, conductor: HostNumber) {
        let its = self.jobs.iter().filter(|(_, note)| note.conductor == conductor);
        let over: Vec<JobId> = its.map(|(job, _)| *job).collect();
        over.into_iter().for_each(|job| self.job_over(context, job));
    }

    /// A job is over, or was never started.
    pub(crate) fn job_over(&mut self, context: &mut Context<'_>, job: JobId) {
        self.book.release(job);
        self.jobs.remove(&job);
        self.own_job.take_if(|own| own.job == job);
        context.tell(WordContent::JobOver { job });
    }

    /// So many processes of a job are on a host that was added to it.
    pub(crate) fn note_processes(&mut self, job: JobId, host: HostNumber, processes: u32) {
        match self.own_job.as_mut().filter(|own| own.job == job) {
            Some(own) => drop(own.processes.insert(host, processes)),
            None => self.book.note_processes(job, host, processes),
        }
    }

    /// Has each host that takes jobs start a helper in the machine's own job, once that has begun.
    pub(crate) fn begin_helpers(&mut self, context: &mut Context<'_>) {
        let Some(own) = &mut self.own_job else { return };
        let up = self.hosts.iter().filter(|(_, note)| note.state == HostState::Up);
        for (&host, _) in up {
            if own.helped.insert(host) {
                context.send_machine(host, MachineMessage::HelperWanted(own.job));
            }
        }
    }

    /// Takes the machine's own job, once, if somebody has asked for it.
    pub(crate) fn take_own_job(&mut self) -> Option<JobSpec> {
        self.own_job.as_mut()?.take_spec()
    }

    /// Whether this is the machine's own job.
    pub(crate) fn has_own(&self, job: JobId) -> bool {
        self.own(job).is_some()
    }

    /// The machine's own job, if it is this one.
    fn own(&self, job: JobId) -> Option<&OwnJob> {
        self.own_job.as_ref().filter(|own| own.job == job)
    }

    /// Whether the machine has come to its end.
    pub(crate) fn has_ended(&self, now: Duration) -> bool {
        let is_empty = self.jobs.is_empty() && self.own_job.is_none();
        self.ends_at.is_some_and(|at| is_empty || now >= at)
    }

    /// Whether another host has the name of this one: it was added again before the first one was gone.
    fn is_twice(&self, context: &Context<'_>, host: HostNumber) -> bool {
        let name = name_of(context, host);
        self.hosts.keys().any(|other| *other != host && name_of(context, *other) == name)
    }

    fn note(&mut self, host: HostNumber, state: HostState, since: Duration, why: &str) {
        let before = self.hosts.get(&host).filter(|_| state != HostState::Joining);
        let (restarts, why) = (before.and_then(|note| note.restarts), why.to_owned());
        self.hosts.insert(host, HostNote { state, since, why, silent_since: None, restarts });
    }

    /// The host with this name that takes part.
    fn host_named(&self, context: &Context<'_>, name: &str) -> Result<HostNumber, String> {
        let its = |host: &&HostNumber| is_this_host(name, &name_of(context, **host));
        let there = self.hosts.iter().filter(|(_, note)| note.state.is_up()).map(|(host, _)| host);
        let found = there.clone().find(its).copied();
        found.ok_or_else(|| {
            let names: Vec<String> = there.map(|host| name_of(context, *host)).collect();
            format!("{name} is no host of {}, which has {}", self.name, names.join(", "))
        })
    }

    /// Has a host leave, if no job is there. Otherwise returns the jobs, which are ended if that is wished.
    fn remove(
        &mut self,
        context: &mut Context<'_>,
        name: &str,
        ends_jobs: bool,
    ) -> Result<Vec<JobStatus>, String> {
        let host = self.host_named(context, name)?;
        if host == context.own_host() {
            let machine = &self.name;
            return Err(format!(
                "{machine} ends with {name}, its founder: stop it, or start it on a host that stays on"
            ));
        }
        let behind = self.only_behind(context, host);
        if !behind.is_empty() {
            let behind: Vec<String> = behind.iter().map(|host| name_of(context, *host)).collect();
            let verb = if behind.len() == 1 { "is" } else { "are" };
            return Err(format!(
                "{} {verb} reached over {name} alone: remove that first",
                behind.join(", ")
            ));
        }
        self.book.close_host(host);
        // The command asks again until no job is there.
        if self.hosts.get(&host).is_some_and(|note| note.state == HostState::Up) {
            self.note(host, HostState::Draining, context.now(), "leaves");
        }
        // A job whose launcher is there ends with it.
        let conducted = self.jobs.iter().filter(|(_, note)| note.conductor == host);
        let own = self.own_job.iter().filter(|own| own.processes_on(host) > 0);
        let conducted = conducted.map(|(job, _)| *job).chain(own.map(|own| own.job));
        let there: BTreeSet<JobId> = self.book.jobs_busy_on(host).chain(conducted).collect();
        if there.is_empty() {
            self.leaving.insert(host);
            context.send_machine(host, MachineMessage::Leave);
            return Ok(Vec::new());
        }
        for &job in there.iter().filter(|_| ends_jobs) {
            let cause = format!("host {name} was removed from {}", self.name);
            context.order_end(job, cause);
        }
        let mut jobs = self.job_statuses(context);
        jobs.retain(|job| there.contains(&job.job));
        Ok(jobs)
    }

    /// The hosts that the founder reaches over this one alone.
    fn only_behind(&self, context: &Context<'_>, gateway: HostNumber) -> Vec<HostNumber> {
        let is_over = |host: HostNumber| {
            let routes = context.routes(context.own_host(), host);
            !routes.is_empty() && routes.iter().all(|route| route.gateways.contains(&gateway))
        };
        let others =
            self.hosts.iter().filter(|(host, note)| **host != gateway && note.state.is_up());
        others.map(|(host, _)| *host).filter(|host| is_over(*host)).collect()
    }

    fn book(
        &mut self,
        context: &Context<'_>,
        (job, name, wish): (JobId, String, BookingWish),
        own: HostNumber,
    ) -> Result<Vec<BookedHost>, String> {
        if self.ends_at.is_some() {
            return Err(format!("{} is being stopped", self.name));
        }
        for &host in self.hosts.keys() {
            self.book.note_site(host, &place_of(context, host).site);
        }
        let booked = self.book.book(job, own, wish);
        let shares = booked.map_err(|refused| self.nothing_free(context, &refused))?;
        self.jobs.insert(job, JobNote { name, began: context.now(), conductor: own });
        let booked = |share: BookedShare| BookedHost {
            number: share.host,
            name: name_of(context, share.host),
            site: place_of(context, share.host).site,
            processes: share.processes,
            cores: share.cores,
        };
        Ok(shares.into_iter().map(booked).collect())
    }

    /// The job that is called so, or whose identity begins so, and its conductor. The machine's own job has the name of the
    /// machine, or none: it begins when it is first asked for.
    fn find(
        &mut self,
        context: &Context<'_>,
        reference: &str,
    ) -> Result<Option<(JobId, HostNumber)>, String> {
        if reference.is_empty() {
            return self.find_own(context).map(Some);
        }
        let is_meant = |(job, note): &(&JobId, &JobNote)| {
            note.name == reference || job.to_string().starts_with(reference)
        };
        let found: Vec<_> = self.jobs.iter().filter(is_meant).collect();
        match found.as_slice() {
            [] if reference == self.name.to_string() => self.find_own(context).map(Some),
            [] => {
                let own = self.own_job.as_ref().map(|own| (own.job, context.own_host()));
                Ok(own.filter(|(job, _)| job.to_string().starts_with(reference)))
            }
            [(job, note)] => Ok(Some((**job, note.conductor))),
            several => {
                let names = several.iter().map(|(job, note)| format!("{} ({job})", note.name));
                let names: Vec<String> = names.collect();
                Err(format!("{} has {}: name it by its identity", self.name, names.join(", ")))
            }
        }
    }

    fn find_own(&mut self, context: &Context<'_>) -> Result<(JobId, HostNumber), String> {
        if self.ends_at.is_some() {
            return Err(format!("{} is being stopped", self.name));
        }
        let begun = match self.own_job.take() {
            Some(own) => Ok(own),
            None => OwnJob::new(&self.name, context.now()),
        };
        let own = begun.map_err(|error| format!("its own job cannot begin: {error}"))?;
        Ok((self.own_job.insert(own).job, context.own_host()))
    }

    /// Lets a job that runs come to one more host, where it gets no core for itself.
    pub(crate) fn add_host_to(
        &mut self,
        context: &Context<'_>,
        job: JobId,
        host: HostNumber,
    ) -> Result<(), String> {
        if self.ends_at.is_some() {
            return Err(format!("{} is being stopped", self.name));
        }
        let state = self.hosts.get(&host).map(|note| note.state);
        let is_coming = state == Some(HostState::Joining);
        if self.own(job).is_some() {
            let is_open = is_coming || state == Some(HostState::Up);
            let refused = || format!("{} takes no further jobs", name_of(context, host));
            return is_open.then_some(()).ok_or_else(refused);
        }
        self.book.add_share(job, host, is_coming).map_err(|refused| {
            match refused.taken.is_empty() {
                true => format!("{} takes no further jobs", name_of(context, host)),
                false => self.nothing_free(context, &refused),
            }
        })
    }

    /// A job that was allowed to come to a host does not.
    pub(crate) fn take_host_from(&mut self, job: JobId, host: HostNumber) {
        self.book.remove_share(job, host);
    }

    fn nothing_free(&self, context: &Context<'_>, refused: &NothingFree) -> String {
        let job = |(job, hosts): &(JobId, Vec<HostNumber>)| {
            let names: Vec<String> = hosts.iter().map(|host| name_of(context, *host)).collect();
            let name = self.jobs.get(job).map_or("", |note| &note.name);
            format!("{name} on {}", names.join(" "))
        };
        let jobs: Vec<String> = refused.taken.iter().map(job).collect();
        match jobs.is_empty() {
            true => format!("no host of {} takes jobs", self.name),
            false => format!("no host of {} is free: {}", self.name, jobs.join(", ")),
        }
    }

    fn stop(&mut self, context: &mut Context<'_>, ends_jobs: bool) -> Result<(), Vec<JobStatus>> {
        let is_in_use = self.own_job.as_ref().is_some_and(OwnJob::has_processes);
        if !ends_jobs && (!self.jobs.is_empty() || is_in_use) {
            return Err(self.job_statuses(context));
        }
        self.ends_at = Some(context.now() + JOBS_END_TIME);
        let own = self.own_job.as_ref().map(|own| own.job);
        for job in self.jobs.keys().copied().chain(own) {
            let cause = format!("{} was stopped", self.name);
            context.order_end(job, cause);
        }
        Ok(())
    }

    fn status(&self, context: &Context<'_>) -> MachineStatus {
        let millis = |since| u64::try_from(context.now().saturating_sub(since).as_millis());
        let gone_after = HostTiming::new(context.options().host_timeout()).gone_after();
        let host = |(number, note): (&HostNumber, &HostNote)| {
            let HostPlace { site, is_gateway, networks } = place_of(context, *number);
            HostStatus {
                number: *number,
                name: name_of(context, *number),
                state: note.state,
                since_ms: millis(note.since).unwrap_or(u64::MAX),
                cores: context.cores(*number),
                processes: self.processes_on(*number),
                why: note.why_until(context.now(), gone_after),
                load: self.book.host_load(*number),
                site,
                is_gateway,
                networks: networks.iter().map(|place| place.network).collect(),
            }
        };
        MachineStatus {
            name: self.name.clone(),
            release: RELEASE.to_owned(),
            hosts: self.hosts.iter().map(host).collect(),
            links: context.links(),
            jobs: self.job_statuses(context),
        }
    }

    /// The routes from a host to the others that take part.
    fn routes(&self, context: &Context<'_>, from: HostNumber) -> Vec<RouteStatus> {
        let others = self.hosts.iter().filter(|(host, note)| **host != from && note.state.is_up());
        let each = others.flat_map(|(&to, _)| {
            context.routes(from, to).into_iter().map(move |route| {
                let Route { gateways, mib_ns, broken } = route;
                RouteStatus { from, to, gateways, mib_ns, broken }
            })
        });
        each.collect()
    }

    fn processes_on(&self, host: HostNumber) -> u32 {
        let shares = self.book.jobs().flat_map(|(_, shares)| shares);
        let booked: u32 = shares.filter(|it| it.host == host).map(|it| it.processes).sum();
        booked + self.own_job.as_ref().map_or(0, |own| own.processes_on(host))
    }

    fn job_statuses(&self, context: &Context<'_>) -> Vec<JobStatus> {
        let mut jobs: Vec<JobStatus> = Vec::new();
        for (job, shares) in self.book.jobs() {
            let Some(note) = self.jobs.get(&job) else { continue };
            let host = |share: &BookedShare| {
                let BookedShare { host: number, processes, .. } = *share;
                JobHost { number, name: name_of(context, number), processes }
            };
            let mut hosts: Vec<JobHost> = shares.iter().map(host).collect();
            hosts.sort_by_key(|host| host.number);
            let age_ms = millis_since(context, note.began);
            jobs.push(JobStatus { job, name: note.name.clone(), hosts, age_ms });
        }
        // Nobody needs to know of it while nobody is in it.
        if let Some(own) = self.own_job.as_ref().filter(|own| own.has_processes()) {
            let there = own.processes.iter().filter(|(_, processes)| **processes > 0);
            let host = |(&number, &processes): (&HostNumber, &u32)| JobHost {
                number,
                name: name_of(context, number),
                processes,
            };
            let (hosts, age_ms) = (there.map(host).collect(), millis_since(context, own.began));
            jobs.push(JobStatus { job: own.job, name: self.name.to_string(), hosts, age_ms });
        }
        jobs.sort_by_key(|job| std::cmp::Reverse(job.age_ms));
        jobs
    }
}

impl HostNote {
    /// The reason for the state, as it is at this time.
    fn why_at(&self, now: Duration) -> String {
        match self.silent_since {
            Some(since) => format!("no answer for {}", duration(now.saturating_sub(since))),
            None => self.why.clone(),
        }
    }

    /// The reason for the state, and of a lost host the time until it is called gone, after a silence of `gone_after`. Of a host
    /// that is there, it is said as well how often its daemon was started again.
    fn why_until(&self, now: Duration, gone_after: Duration) -> String {
        let why = self.why_at(now);
        if let Some(since) = self.silent_since {
            return format!(
                "{why}, gone in {}",
                duration((since + gone_after).saturating_sub(now))
            );
        }
        let Some((times, at)) = self.restarts else { return why };
        let often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let ago = duration(now.saturating_sub(at));
        let restarts = format!("daemon started again, {often}, {ago} ago");
        if why.is_empty() { restarts } else { format!("{why}; {restarts}") }
    }
}

fn millis_since(context: &Context<'_>, began: Duration) -> u64 {
    u64::try_from(context.now().saturating_sub(began).as_millis()).unwrap_or(u64::MAX)
}

fn name_of(context: &Context<'_>, host: HostNumber) -> String {
    context.host(host).map_or_else(|| host.0.to_string(), |entry| entry.name.clone())
}

fn place_of(context: &Context<'_>, host: HostNumber) -> HostPlace {
    context.host(host).map(|entry| entry.place.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_host_has_not_answered_for_longer_and_longer() {
        let at = Duration::from_secs;
        let note = |state, silent_since| HostNote {
            state,
            since: at(20),
            why: "new disk".to_owned(),
            silent_since,
            restarts: None,
        };
        let lost = note(HostState::Lost, Some(at(10)));
        assert_eq!(lost.why_until(at(22), at(61)), "no answer for 12.0 s, gone in 49.0 s");
        assert_eq!(lost.why_until(at(80), at(61)), "no answer for 70.0 s, gone in 0 ms");
        let up = |restarts| HostNote { restarts, ..note(HostState::Up, None) };
        let text = "new disk; daemon started again, once, 20.0 s ago";
        assert_eq!(up(Some((1, at(5)))).why_until(at(25), at(61)), text);
        let again = HostNote { why: String::new(), ..up(Some((3, at(5)))) };
        let text = "daemon started again, 3 times, 1.0 s ago";
        assert_eq!(again.why_until(at(6), at(61)), text);
        assert_eq!(lost.why_at(at(71)), "no answer for 61.0 s");
        let draining = note(HostState::Draining, None);
        assert_eq!(draining.why_until(at(22), at(61)), "new disk");
    }
}
