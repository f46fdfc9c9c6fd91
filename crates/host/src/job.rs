//! A running job: one loop over all its events, in the launcher's first thread.

use crate::address::{Address, is_listened_to};
use crate::guardian::{Command, Event, OnFailure, Restart};
use crate::hosts_plan::HostsPlan;
use crate::hosts_wish::HostsWish;
use crate::input::{Input, InputTo};
use crate::launch::{
    Explanation, LAUNCHER_FAILED, Launch, LaunchError, ServeGroups, TIMED_OUT, system,
};
use crate::linkage::{ForeignMpi, foreign_mpi};
use crate::output::{Output, Stream};
use crate::plan::Plan;
use crate::process::{StartError, Step};
use crate::report::{self, Deeds, Failure, FailureReport, Others, Who};
use crate::say::{brief, complain, say};
use crate::signals::{self, Conduct, Reaction};
use crate::stacks;
use crate::start::Started;
use crate::watch::Watch;
use landeck_memory::{Presence, WaitRecord, system as clock};
use landeck_wire::HostId;
use rustix::event::epoll::EventFlags;
use std::collections::{BTreeSet, HashMap};
use std::thread;
use std::time::{Duration, Instant};

/// The tokens that wake the loop.
const GUARDIAN: u64 = 0;
const SIGNALS: u64 = 1;
const STDIN: u64 = 2;
const SOURCES: u64 = 1 << 32;
const READERS: u64 = 2 << 32;
const SINKS: u64 = 3 << 32;

/// The time limit for printing all stacks together.
const STACKS_MAX: Duration = Duration::from_secs(30);
/// The number of processes that a message lists one by one.
const LISTED_MAX: usize = 64;

impl Launch {
    /// Starts the job, runs it to its end and returns its exit code. That is the code of the process that failed first
    /// (128 and the signal, if one killed it), 124 after a timeout, 125 if nothing failed but output is lost, else 0.
    ///
    /// Call this while the process has one thread. Its signals are caught from then on.
    ///
    /// # Errors
    /// If no such job is possible; nothing was started in that case. A process that cannot be started is part of the
    /// job's end.
    pub fn run(&self) -> Result<u8, LaunchError> {
        if let Some(hosts) = &self.hosts {
            return self.run_on_hosts(hosts);
        }
        let plan = Plan::new(self)?;
        self.check_input(plan.processes())?;
        if self.dry_run {
            say(&plan.text())?;
            return Ok(0);
        }
        Job::run(self, &plan, self.start(&plan)?)
    }

    /// Runs the job on several hosts.
    fn run_on_hosts(&self, hosts: &HostsWish) -> Result<u8, LaunchError> {
        let plan = HostsPlan::new(self, hosts)?;
        self.check_input(plan.processes())?;
        if self.dry_run {
            say(&plan.text())?;
            return Ok(0);
        }
        Err(LaunchError::SeveralHosts { hosts: plan.hosts.len() })
    }

    /// Fails if the standard input is for a rank that does not exist.
    fn check_input(&self, processes: u32) -> Result<(), LaunchError> {
        match self.stdin {
            InputTo::Rank(rank) if rank >= processes => {
                Err(LaunchError::StdinRank { rank, processes })
            }
            _ => Ok(()),
        }
    }
}

/// A running job.
pub(crate) struct Job<'a> {
    launch: &'a Launch,
    plan: &'a Plan,
    started: Started,
    watch: Watch,
    conduct: Conduct,
    began: Instant,
    /// When the job is ended, if it has not ended by itself.
    deadline: Option<Instant>,
    /// The processes, by rank.
    processes: Vec<Process>,
    /// The rank of each slot's process.
    ranks: HashMap<u32, u32>,
    /// The failure that the job's exit code comes from.
    first: Option<First>,
    /// The abort of a process or guest, whatever failed before.
    aborted: Option<First>,
    /// The signal that told the launcher to end the job, if any.
    told: Option<i32>,
    timed_out: bool,
    guardian_gone: bool,
    /// Whether nothing runs any more.
    is_over: bool,
    /// Whether any process was ever a member of the job.
    has_members: bool,
    /// The sinks that are watched, since they hold pending output.
    watched_sinks: BTreeSet<usize>,
    /// Whether the last round read anything.
    was_busy: bool,
    /// The function of a thread that is still to be started.
    serves_groups: Option<ServeGroups>,
}

/// The launcher's record of one process.
#[derive(Debug, Clone, Default)]
struct Process {
    pid: u32,
    slot: u32,
    state: State,
    /// The number of restarts.
    restarts: u32,
    /// Its counters, saved when it ended: another process may have its slot by the end.
    deeds: Option<Deeds>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Running,
    Stopped,
    /// It failed, and will be started again.
    Awaited,
    /// It ended by itself, or before anything failed.
    Gone,
    /// The launcher ended it.
    Ended,
}

/// A failure with consequences for the whole job.
#[derive(Clone, Copy)]
enum First {
    NotStarted {
        rank: u32,
        error: StartError,
    },
    Failed(Failed),
    /// A guest has aborted the job.
    Guest {
        pid: u32,
        code: u8,
        at: Duration,
    },
}

impl First {
    fn exit_code(self) -> u8 {
        match self {
            First::NotStarted { error, .. } => not_started_code(error),
            First::Failed(Failed { failure, .. }) => failure.exit_code(),
            First::Guest { code, .. } => code,
        }
    }
}

/// The circumstances of a process's failure.
#[derive(Debug, Clone, Copy)]
struct Failed {
    rank: u32,
    failure: Failure,
    at: Duration,
    waiting: (WaitRecord, Duration),
}

impl Job<'_> {
    /// Runs a started job to its end; returns its exit code.
    pub(crate) fn run(launch: &Launch, plan: &Plan, started: Started) -> Result<u8, LaunchError> {
        let began = Instant::now();
        let mut job = Job {
            launch,
            plan,
            watch: Watch::new().map_err(system("watch the processes"))?,
            conduct: Conduct::default(),
            began,
            deadline: launch.timeout.and_then(|timeout| began.checked_add(timeout)),
            processes: (0..plan.processes())
                .map(|slot| Process { slot, ..Process::default() })
                .collect(),
            ranks: (0..plan.processes()).map(|rank| (rank, rank)).collect(),
            first: None,
            aborted: None,
            told: None,
            timed_out: false,
            guardian_gone: false,
            is_over: false,
            has_members: false,
            watched_sinks: BTreeSet::new(),
            was_busy: true,
            serves_groups: launch.serves_groups,
            started,
        };
        job.say_beforehand();
        job.see_to_its_end()?;
        let code = job.exit_code();
        job.say_the_end(code);
        job.write_out()?;
        match code == 0 && job.started.output.has_lost() {
            true => Ok(LAUNCHER_FAILED),
            false => Ok(code),
        }
    }

    fn say_beforehand(&mut self) {
        for program in &self.plan.programs {
            for name in &program.environment.missing {
                let name = brief(name.to_string_lossy());
                self.started.output.say(&format!(
                    "landeck: -x {name}: this variable is not set here, so it is not passed on; \
                     -x {name}=value sets it"
                ));
            }
        }
        for (program, ForeignMpi { library, implementation }) in self.foreign() {
            self.started.output.say(&format!(
                "landeck: {program} is linked with {library}, the library of {implementation}: each of its \
                 processes will be rank 0 of 1. Compile it with mpicc_abi, or start it with the mpiexec of \
                 that MPI."
            ));
        }
        if self.launch.report_bindings {
            self.started.output.say(&self.plan.bindings());
        }
    }

    /// The programs of a job of several processes that are linked with another MPI, and that MPI.
    fn foreign(&self) -> Vec<(String, ForeignMpi)> {
        let programs = self.plan.programs.iter().filter(|_| self.plan.processes() > 1);
        let found = programs.filter_map(|program| {
            Some((program.file.display().to_string(), foreign_mpi(&program.file)?))
        });
        found.collect()
    }

    fn see_to_its_end(&mut self) -> Result<(), LaunchError> {
        let fail = system("watch the processes");
        self.watch
            .set(GUARDIAN, &self.started.guardian.descriptor(), EventFlags::IN)
            .map_err(&fail)?;
        self.watch.set(SIGNALS, &self.started.signals, EventFlags::IN).map_err(&fail)?;
        loop {
            self.move_output();
            self.set_interests().map_err(&fail)?;
            if self.is_over && !self.was_busy && !self.is_output_pending() {
                return Ok(());
            }
            self.was_busy = false;
            let ready = self.watch.wait(self.timeout()).map_err(&fail)?;
            for token in ready {
                self.handle(token)?;
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.deadline = None;
                self.end_for_time()?;
            }
        }
    }

    fn handle(&mut self, token: u64) -> Result<(), LaunchError> {
        match token {
            GUARDIAN => self.hear_guardian()?,
            SIGNALS => self.take_signals()?,
            STDIN => self.started.input.iter_mut().for_each(Input::read),
            SINKS.. => {} // it is written to in any case
            READERS.. => self.started.input.iter_mut().for_each(Input::write),
            SOURCES.. => {
                self.was_busy = true;
                self.started.output.read((token - SOURCES) as usize, Instant::now());
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts the thread that serves groups, if there is to be one: a launcher that has started a process lets guests
    /// join as well. The thread ends with the launcher at the latest.
    fn serve_groups(&mut self) -> Result<(), LaunchError> {
        let Some(serve) = self.serves_groups.take() else { return Ok(()) };
        let host = HostId(self.started.segment.plan().host);
        let work = move || {
            // A job that has ended has no groups to serve.
            if let Err(why) = serve(&host.to_string())
                && is_listened_to(&Address::of_job(host))
            {
                complain(format_args!("landeck: the launcher serves no groups: {why}"));
            }
        };
        let builder = thread::Builder::new().name("landeck-groups".to_owned());
        // It inherits the blocked signals, which belong to the launcher's loop.
        builder.spawn(work).map_err(system("start a thread"))?;
        Ok(())
    }

    fn hear_guardian(&mut self) -> Result<(), LaunchError> {
        while let Some(event) = self.started.guardian.next_event()? {
            self.was_busy = true;
            match event {
                Event::Started { slot, pid, rank, restart } => {
                    self.serve_groups()?;
                    self.ranks.insert(slot, rank);
                    let state = State::Running;
                    let process = Process { pid, slot, state, restarts: restart, deeds: None };
                    self.change(slot, |own| *own = process);
                }
                Event::NotStarted { slot, rank, error, again } => {
                    self.ranks.insert(slot, rank);
                    self.take_failed_start(rank, error, again);
                }
                Event::Ended { slot, pid, status, at, wait, presence, again } => {
                    self.has_members |= presence != Presence::NotAttached;
                    let Some(&rank) = self.ranks.get(&slot) else { continue };
                    let deeds = self.deeds_in(slot);
                    self.change(slot, |process| {
                        process.pid = pid;
                        process.deeds = Some(deeds);
                    });
                    if let Some(failure) = failure_of(status, presence) {
                        let failure = self.with_reason(failure);
                        let since_ns = clock::now_ns().saturating_sub(wait.since_ns);
                        let waiting = (wait, Duration::from_nanos(since_ns));
                        self.take_failure(Failed { rank, failure, at, waiting }, again);
                    } else {
                        self.change(slot, |process| process.state = State::Gone);
                    }
                }
                Event::Stopped { slot } => {
                    self.change(slot, |process| process.state = State::Stopped);
                }
                Event::Continued { slot } => {
                    self.change(slot, |process| process.state = State::Running);
                }
                Event::GuestAborted { pid, code, at } => self.take_abort_of_guest(pid, code, at),
                Event::AllEnded => self.is_over = true,
                Event::GuardianGone => {
                    self.is_over = true;
                    self.guardian_gone = true;
                }
            }
        }
        if self.is_over {
            self.watch.clear(GUARDIAN, &self.started.guardian.descriptor());
        }
        Ok(())
    }

    /// The counters of the process of a slot so far.
    fn deeds_in(&self, slot: u32) -> Deeds {
        let segment = &self.started.segment;
        Deeds { counters: segment.counters(slot), waited_for: segment.waited_for(slot) }
    }

    /// Changes the record of the process of a slot. A slot without a rank belongs to a guest, of which the launcher
    /// keeps no record.
    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Process)) {
        let rank = self.ranks.get(&slot).copied().unwrap_or(u32::MAX);
        if let Some(process) = self.processes.get_mut(rank as usize) {
            change(process);
        }
    }

    fn take_failed_start(&mut self, rank: u32, error: StartError, again: Option<Restart>) {
        let state = if again.is_some() { State::Awaited } else { State::Gone };
        if let Some(process) = self.processes.get_mut(rank as usize) {
            process.state = state;
        }
        if let Some(Restart { after, .. }) = again {
            let after = report::duration(after);
            self.started.output.say(&format!(
                "rank {rank} was not started again: {error}. It is tried again in {after}."
            ));
        } else {
            self.first.get_or_insert(First::NotStarted { rank, error });
        }
    }

    fn take_failure(&mut self, failed: Failed, again: Option<Restart>) {
        let rank = failed.rank;
        let is_ours = self.first.is_some() && !self.goes_on();
        let state = match again {
            Some(_) => State::Awaited,
            None if is_ours => State::Ended,
            None => State::Gone,
        };
        self.processes[rank as usize].state = state;
        if is_ours {
            return;
        }
        self.started.output.read_rest(rank as usize, Instant::now());
        if let Failure::Aborted(_) = failed.failure {
            return self.take_abort(First::Failed(failed));
        }
        let is_told = self.told.is_some() || self.timed_out;
        let others = self.alive().count() as u32;
        match (again, self.launch.on_failure) {
            (Some(again), OnFailure::Restart { times: most, .. }) => {
                self.say_failure(failed, Others::GoOnWithNext { others, again, most });
            }
            _ => {
                self.first.get_or_insert(First::Failed(failed));
                if self.goes_on() && !is_told {
                    self.say_failure(failed, Others::GoOn(others));
                }
            }
        }
    }

    /// Records that the job ends because of this abort. The message follows at the end.
    fn take_abort(&mut self, abort: First) {
        self.first.get_or_insert(abort);
        self.aborted = Some(abort);
    }

    /// Handles the abort of a guest, which may be another library in one of the job's processes.
    fn take_abort_of_guest(&mut self, pid: u32, code: u8, at: Duration) {
        let is_host = |(_, process): &(u32, &Process)| process.pid == pid;
        let host = self.alive().find(is_host).map(|(rank, _)| rank);
        match host {
            Some(rank) => {
                let waiting = (WaitRecord::default(), Duration::ZERO);
                let failure = Failure::Aborted(code);
                self.take_failure(Failed { rank, failure, at, waiting }, None);
            }
            None if self.first.is_some() && !self.goes_on() => {}
            None => self.take_abort(First::Guest { pid, code, at }),
        }
    }

    /// Whether the other processes continue after a failure that no restart follows.
    const fn goes_on(&self) -> bool {
        match self.launch.on_failure {
            _ if self.aborted.is_some() => false,
            OnFailure::Abort => false,
            OnFailure::Notify => true,
            OnFailure::Restart { then_abort, .. } => !then_abort,
        }
    }

    /// Adds the reason to a failure: a kill may be the kernel's own, for lack of memory.
    fn with_reason(&self, failure: Failure) -> Failure {
        let is_kill = failure == Failure::Signal(libc::SIGKILL);
        let groups = &self.started.groups;
        match is_kill && groups.out_of_memory_kills() > self.started.out_of_memory_kills {
            true => Failure::OutOfMemory(groups.limit_bytes()),
            false => failure,
        }
    }

    fn alive(&self) -> impl Iterator<Item = (u32, &Process)> {
        let alive = |process: &&Process| matches!(process.state, State::Running | State::Stopped);
        (0..).zip(&self.processes).filter(move |(_, process)| alive(process))
    }

    fn take_signals(&mut self) -> Result<(), LaunchError> {
        while let Some(signal) = self.started.signals.next() {
            let reaction = self.conduct.react(signal, Instant::now());
            let ends = reaction != Reaction::Suspend
                && matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT);
            if ends {
                self.told.get_or_insert(signal);
            }
            if self.is_over && ends {
                // Only output that nobody reads is left.
                self.started.output.give_up();
                continue;
            }
            if signal == libc::SIGWINCH {
                self.started.output.resize();
            }
            let guardian = &mut self.started.guardian;
            match reaction {
                Reaction::Forward(signal) => guardian.send(Command::Signal(signal))?,
                Reaction::End => guardian.send(Command::End { grace: self.launch.grace })?,
                Reaction::Kill => guardian.send(Command::Kill)?,
                Reaction::Suspend => {
                    guardian.send(Command::Signal(signal))?;
                    signals::stop_self();
                }
            }
        }
        Ok(())
    }

    /// Handles the timeout: reports where every process is, and ends the job.
    fn end_for_time(&mut self) -> Result<(), LaunchError> {
        if self.is_over {
            return Ok(());
        }
        self.timed_out = true;
        let after = report::duration(self.began.elapsed());
        let alive: Vec<(u32, Process)> =
            self.alive().map(|(rank, process)| (rank, process.clone())).collect();
        let mut text = format!(
            "The job is ended after {after} (--timeout): {} of its {} processes have not ended.\n",
            alive.len(),
            self.processes.len()
        );
        let job = HostId(self.started.segment.plan().host).to_string();
        let explanation = self.launch.explain.and_then(|explain| explain(&job));
        if let Some(Explanation { verdict, .. }) = &explanation {
            text += &format!("{verdict}\n");
        }
        let give_up = Instant::now() + STACKS_MAX;
        // A debugger is slow, and it stops processes, so all places are recorded before.
        let places: Vec<String> =
            alive.iter().take(LISTED_MAX).map(|(_, process)| self.place(process)).collect();
        for ((rank, process), place) in alive.iter().zip(places) {
            if process.pid == 0 {
                text += &format!("  rank {rank}: was not started yet\n");
                continue;
            }
            // The process that joined may be another than the one started, below that.
            let pid = self.started.segment.slot_record(process.slot).pid;
            text += &format!("  rank {rank} (pid {pid}): {place}\n");
            if self.launch.stacks {
                text += &stacks::of_process(pid, give_up);
            }
        }
        if alive.len() > LISTED_MAX {
            text += &format!("  and {} more\n", alive.len() - LISTED_MAX);
        }
        if let Some(advice) = explanation.and_then(|explanation| explanation.advice) {
            text += &format!("{advice}\n");
        }
        self.started.output.say(&text);
        Ok(self.started.guardian.send(Command::End { grace: self.launch.grace })?)
    }

    fn place(&self, process: &Process) -> String {
        let wait = self.started.segment.wait_record(process.slot);
        let since = Duration::from_nanos(clock::now_ns().saturating_sub(wait.since_ns));
        match report::place(&wait, since) {
            _ if process.state == State::Stopped => "stopped by a signal or a debugger".to_owned(),
            Some(place) => place,
            None => "is in no call that waits".to_owned(),
        }
    }

    fn move_output(&mut self) {
        let output = &mut self.started.output;
        output.show_parts(Instant::now());
        output.write();
        let gone = self.started.input.iter_mut().flat_map(Input::take_ended);
        for pipe in output.take_ended().into_iter().chain(gone) {
            self.watch.forget(&pipe);
        }
    }

    /// Watches the descriptors that can make progress now.
    fn set_interests(&mut self) -> std::io::Result<()> {
        let output = &mut self.started.output;
        for sink in &self.watched_sinks - output.pending() {
            self.watch.clear(SINKS + sink as u64, &output.target(sink));
        }
        for &sink in output.pending() {
            self.watch.set(SINKS + sink as u64, &output.target(sink), EventFlags::OUT)?;
        }
        self.watched_sinks.clone_from(output.pending());
        if output.take_room_changed() {
            watch_sources(&mut self.watch, output)?;
        }
        self.watch_input()
    }

    fn watch_input(&mut self) -> std::io::Result<()> {
        let Some(input) = &self.started.input else { return Ok(()) };
        let is_over = self.is_over || input.is_over();
        let wanted = input.wanted().filter(|_| !is_over);
        let flags = if wanted.is_some() { EventFlags::IN } else { EventFlags::empty() };
        self.watch.set(STDIN, &input.source(), flags)?;
        for (number, pipe, is_waiting) in input.pipes() {
            let flags = if is_waiting && !is_over { EventFlags::OUT } else { EventFlags::empty() };
            self.watch.set(READERS + number as u64, &pipe, flags)?;
        }
        Ok(())
    }

    fn is_output_pending(&self) -> bool {
        !self.started.output.pending().is_empty()
    }

    fn timeout(&self) -> Option<Duration> {
        if self.is_over && !self.is_output_pending() {
            return Some(Duration::ZERO);
        }
        let until = [self.started.output.part_due(), self.deadline].into_iter().flatten().min();
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    fn exit_code(&self) -> u8 {
        match (self.first, self.told) {
            _ if self.timed_out => TIMED_OUT,
            (Some(first), _) => first.exit_code(),
            _ if self.guardian_gone => 128 + libc::SIGKILL as u8,
            (None, Some(signal)) if self.awaits_any() => 128 + signal as u8,
            (None, _) => 0,
        }
    }

    /// Whether a process still awaited its restart when the job had to end.
    fn awaits_any(&self) -> bool {
        self.processes.iter().any(|process| process.state == State::Awaited)
    }

    fn say_the_end(&mut self, code: u8) {
        if self.guardian_gone {
            self.started.output.say(&format!(
                "The guardian of the job was killed: all processes were ended. Exit code {code}."
            ));
            return;
        }
        match self.aborted.or(self.first) {
            _ if self.timed_out => self.started.output.say(&format!("Exit code {code}.")),
            None if self.told.is_some() && self.awaits_any() => self.say_told(code),
            None if self.launch.summary => self.say_summary(),
            None => {}
            Some(First::NotStarted { rank, error }) => self.say_not_started(rank, error, code),
            Some(First::Guest { pid, at, .. }) => self.say_guest(pid, at, code),
            Some(First::Failed(_)) if self.told.is_some() => self.say_told(code),
            Some(First::Failed(Failed { failure: Failure::Signal(libc::SIGPIPE), .. }))
                if self.started.output.is_broken(Stream::Output) => {}
            Some(First::Failed(_)) if self.goes_on() => {
                self.started.output.say(&format!("Exit code {code}."));
            }
            Some(First::Failed(failed)) => self.say_failure(failed, self.others(failed.rank)),
        }
        self.say_restarts();
        if code == 0 && !self.has_members && !self.foreign().is_empty() {
            self.started.output.say(&format!(
                "landeck: none of the {} processes joined the job.",
                self.processes.len()
            ));
        }
    }

    fn say_told(&mut self, code: u8) {
        let (name, _) = signals::name(self.told.unwrap_or_default());
        self.started.output.say(&format!("The job was ended by {name}. Exit code {code}."));
    }

    fn say_guest(&mut self, pid: u32, at: Duration, code: u8) {
        let (after, host) = (report::duration(at), &self.plan.host);
        self.started.output.say(&format!(
            "A guest of the job (pid {pid}, host {host}) ended it after {after}. Exit code {code}."
        ));
    }

    fn say_restarts(&mut self) {
        let ranks = (0..).zip(&self.processes);
        let all: Vec<(u32, u32)> = ranks
            .filter(|(_, process)| process.restarts > 0)
            .map(|(rank, process)| (rank, process.restarts))
            .collect();
        if let Some(text) = report::restarts(&all) {
            self.started.output.say(&text);
        }
    }

    /// The state of all ranks but this one. A process whose restart no longer came counts as ended by the launcher.
    fn others(&self, rank: u32) -> Others {
        let others = (0..).zip(&self.processes).filter(|(other, _)| *other != rank);
        let gone = others.filter(|(_, process)| process.state == State::Gone).count() as u32;
        Others::Gone { ended: self.processes.len() as u32 - 1 - gone, by_themselves: gone }
    }

    fn say_failure(&mut self, failed: Failed, others: Others) {
        let Failed { rank, failure, at: after, waiting } = failed;
        let last_lines = self.started.output.recent_lines(rank as usize);
        let process = &self.processes[rank as usize];
        let restarts = matches!(self.launch.on_failure, OnFailure::Restart { .. });
        let restarts = restarts.then_some(process.restarts);
        let who = Who {
            rank,
            processes: self.processes.len() as u32,
            pid: process.pid,
            host: &self.plan.host,
        };
        let report = FailureReport {
            who,
            failure,
            after,
            waiting: Some(waiting),
            last_lines: &last_lines,
            others,
            restarts,
            exit_code: self.exit_code(),
        };
        self.started.output.say(&report.text());
    }

    fn say_not_started(&mut self, rank: u32, error: StartError, code: u8) {
        let program = self.plan.ranks().nth(rank as usize).map(|(_, program)| program);
        let file = program.map(|program| program.file.display().to_string()).unwrap_or_default();
        let hint = match (error.step, error.errno) {
            (Step::Execute, libc::ENOEXEC) => "; a script begins with a line like #!/bin/sh",
            (Step::Execute, libc::ENOENT) => "; does the interpreter that it names exist?",
            (Step::Create, _) => "; is there a limit of processes (ulimit -u)?",
            _ => "",
        };
        self.started.output.say(&format!(
            "rank {rank} of {} was not started on host {}: {error} ({file}){hint}\nExit code {code}.",
            self.processes.len(),
            self.plan.host,
        ));
    }

    fn say_summary(&mut self) {
        let deeds = |process: &Process| {
            process.deeds.clone().unwrap_or_else(|| self.deeds_in(process.slot))
        };
        let all: Vec<Deeds> = self.processes.iter().map(deeds).collect();
        self.started.output.say(&report::summary(&all, self.began.elapsed()));
    }

    /// Writes the messages of the end.
    fn write_out(&mut self) -> Result<(), LaunchError> {
        self.is_over = true;
        self.was_busy = true;
        self.see_to_its_end()
    }
}

fn watch_sources(watch: &mut Watch, output: &Output) -> std::io::Result<()> {
    for source in 0..output.sources() {
        if let Some(pipe) = output.pipe(source) {
            let wanted = output.may_read(source);
            let flags = if wanted { EventFlags::IN } else { EventFlags::empty() };
            watch.set(SOURCES + source as u64, &pipe, flags)?;
        }
    }
    Ok(())
}

/// The failure of a process with this status and presence; `None` if it did not fail.
fn failure_of(status: i32, presence: Presence) -> Option<Failure> {
    match presence {
        Presence::Aborted(code) => Some(Failure::Aborted(code)),
        _ => Failure::of_status(status, presence == Presence::Attached),
    }
}

/// The exit code as shells define it: 127 for a missing program, 126 for one that cannot be executed.
fn not_started_code(error: StartError) -> u8 {
    match (error.step, error.errno) {
        (Step::Execute, libc::ENOENT) => 127,
        (Step::Execute, _) => 126,
        _ => LAUNCHER_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Program;

    #[test]
    fn a_rank_that_does_not_exist_gets_no_input() {
        let program = Program { processes: Some(2), ..Program::new("true") };
        let launch = Launch { stdin: InputTo::Rank(2), ..Launch::new(vec![program]) };
        let error = launch.run().unwrap_err();
        assert_eq!(error.exit_code(), LAUNCHER_FAILED);
        assert!(error.to_string().starts_with("--stdin 2: there is no such rank"), "{error}");
    }
}
