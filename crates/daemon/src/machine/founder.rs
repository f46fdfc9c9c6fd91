//! The founder of a machine: it admits hosts, books processors and says what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_launch::machine::{
    BookedHost, HostState, HostStatus, JobStatus, MachineAnswer, MachineName, MachineQuestion,
    MachineStatus,
};
use landeck_protocols::hosts::{BookedShare, Booking, BookingWish, NothingFree};
use landeck_wire::word::{Word, WordContent};
use landeck_wire::{HostNumber, JobId};

use crate::context::Context;
use crate::facts::RELEASE;
use crate::job::admission;

/// How long jobs have to end when the machine does. Processes have ten seconds of it.
const JOBS_END_TIME: Duration = Duration::from_secs(20);

/// What the founder knows of its machine beside words.
#[derive(Debug)]
pub(crate) struct Founder {
    name: MachineName,
    book: Booking,
    hosts: BTreeMap<HostNumber, HostNote>,
    jobs: BTreeMap<JobId, JobNote>,
    /// The machine ends at this time, or when its last job is over.
    ends_at: Option<Duration>,
}

#[derive(Debug)]
struct HostNote {
    state: HostState,
    since: Duration,
    why: String,
}

#[derive(Debug)]
struct JobNote {
    name: String,
    began: Duration,
    /// The host of its launcher.
    conductor: HostNumber,
}

impl Founder {
    pub(crate) fn new(name: MachineName) -> Self {
        Self {
            name,
            book: Booking::default(),
            hosts: BTreeMap::new(),
            jobs: BTreeMap::new(),
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
            MachineQuestion::Admit { names, line } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let outcome = admission::admit(context, &names, &line);
                if let Ok(admitted) = &outcome
                    && admitted.answer.is_some()
                {
                    self.note(admitted.host, HostState::Joining, context.now(), "");
                }
                MachineAnswer::Admitted(outcome)
            }
            MachineQuestion::Book { job, name, wish } => {
                MachineAnswer::Booked(self.book(context, (job, name, wish), from))
            }
            MachineQuestion::Stop { ends_jobs } => {
                MachineAnswer::Stopping(self.stop(context, ends_jobs))
            }
        }
    }

    /// A host is connected.
    pub(crate) fn host_up(&mut self, context: &Context<'_>, host: HostNumber) {
        let is_new = self.hosts.get(&host).is_none_or(|note| note.state == HostState::Joining);
        if is_new {
            self.note(host, HostState::Up, context.now(), "");
            self.book.add_host(host, context.cores(host));
        }
    }

    /// A word was applied.
    pub(crate) fn word(&mut self, context: &mut Context<'_>, word: &Word) {
        let (host, state, why) = match &word.content {
            WordContent::HostLost { host, silent_ms, .. } => {
                let why = format!("no answer for {:.1} s", *silent_ms as f64 / 1e3);
                (*host, HostState::Lost, why)
            }
            WordContent::HostGone { host, .. } => (*host, HostState::Gone, String::new()),
            _ => return,
        };
        self.note(host, state, context.now(), &why);
        self.book.remove_host(host);
        // A job ends with its launcher, and so with its launcher's host.
        let conducted = |(job, note): (&JobId, &JobNote)| (note.conductor == host).then_some(*job);
        let over: Vec<JobId> = self.jobs.iter().filter_map(conducted).collect();
        over.into_iter().for_each(|job| self.job_over(context, job));
    }

    /// A job is over, or was never started.
    pub(crate) fn job_over(&mut self, context: &mut Context<'_>, job: JobId) {
        self.book.release(job);
        self.jobs.remove(&job);
        context.tell(WordContent::JobOver { job });
    }

    /// Whether the machine has come to its end.
    pub(crate) fn has_ended(&self, now: Duration) -> bool {
        self.ends_at.is_some_and(|at| self.jobs.is_empty() || now >= at)
    }

    fn note(&mut self, host: HostNumber, state: HostState, since: Duration, why: &str) {
        let before = self.hosts.remove(&host).filter(|_| state == HostState::Gone);
        let why = before.map_or_else(|| why.to_owned(), |note| note.why);
        self.hosts.insert(host, HostNote { state, since, why });
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
        let booked = self.book.book(job, own, wish);
        let shares = booked.map_err(|refused| self.nothing_free(context, &refused))?;
        self.jobs.insert(job, JobNote { name, began: context.now(), conductor: own });
        let booked = |share: BookedShare| BookedHost {
            number: share.host,
            name: name_of(context, share.host),
            processes: share.processes,
            seats: share.seats,
        };
        Ok(shares.into_iter().map(booked).collect())
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
        if !ends_jobs && !self.jobs.is_empty() {
            return Err(self.job_statuses(context));
        }
        self.ends_at = Some(context.now() + JOBS_END_TIME);
        for &job in self.jobs.keys() {
            let cause = format!("{} was stopped", self.name);
            context.tell(WordContent::JobEnds { job, code: 1, cause });
        }
        Ok(())
    }

    fn status(&self, context: &Context<'_>) -> MachineStatus {
        let millis = |since| u64::try_from(context.now().saturating_sub(since).as_millis());
        let host = |(number, note): (&HostNumber, &HostNote)| HostStatus {
            number: *number,
            name: name_of(context, *number),
            state: note.state,
            since_ms: millis(note.since).unwrap_or(u64::MAX),
            cores: context.cores(*number),
            processes: self.processes_on(*number),
            why: note.why.clone(),
        };
        MachineStatus {
            name: self.name.clone(),
            release: RELEASE.to_owned(),
            hosts: self.hosts.iter().map(host).collect(),
            jobs: self.job_statuses(context),
        }
    }

    fn processes_on(&self, host: HostNumber) -> u32 {
        let shares = self.book.jobs().flat_map(|(_, shares)| shares);
        shares.filter(|share| share.host == host).map(|share| share.processes).sum()
    }

    fn job_statuses(&self, context: &Context<'_>) -> Vec<JobStatus> {
        let mut jobs: Vec<JobStatus> = Vec::new();
        for (job, shares) in self.book.jobs() {
            let Some(note) = self.jobs.get(&job) else { continue };
            let mut hosts: Vec<(String, u32)> = Vec::new();
            let names: BTreeSet<HostNumber> = shares.iter().map(|share| share.host).collect();
            for host in names {
                let its = shares.iter().filter(|share| share.host == host);
                hosts.push((name_of(context, host), its.map(|share| share.processes).sum()));
            }
            let age = context.now().saturating_sub(note.began);
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            jobs.push(JobStatus { job, name: note.name.clone(), hosts, age_ms });
        }
        jobs.sort_by_key(|job| std::cmp::Reverse(job.age_ms));
        jobs
    }
}

fn name_of(context: &Context<'_>, host: HostNumber) -> String {
    context.host(host).map_or_else(|| host.0.to_string(), |entry| entry.name.clone())
}
