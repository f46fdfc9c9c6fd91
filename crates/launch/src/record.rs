//! The launcher's record of a job: which process failed first, what that means for the exit code, and what is said
//! about it.

use std::time::Duration;

use landeck_host::process::{StartError, StartStep};
use landeck_host::report::{self, Deeds, FailureReport, Others, ProcessFailure, Who};
use landeck_host::say::brief;
use landeck_host::signals;

use crate::events::{Again, Happened};
use crate::guardian::{OnFailure, Restart};
use crate::linkage::{ForeignMpi, foreign_mpi, why_not_executed};
use crate::messages::{LISTED_MAX, Whereabouts};
use crate::output::{JobOutput, Stream};
use crate::plan::PlannedProgram;
use crate::request::{Explanation, LAUNCHER_FAILED, Launch, TIMED_OUT};

/// The launcher's record of a job.
pub(crate) struct Record<'a> {
    launch: &'a Launch,
    programs: &'a [PlannedProgram],
    /// The names of the hosts. Behind the first ones are those that were added while the job ran.
    hosts: Vec<String>,
    first_hosts: usize,
    /// The host of each rank, as a place in `hosts`.
    host_of: Vec<usize>,
    /// The processes, by rank. Behind the ranks are those that were started while the job ran.
    processes: Vec<Process>,
    ranks: u32,
    /// The failure that the job's exit code comes from.
    first: Option<First>,
    /// The abort of a process or guest, whatever failed before.
    aborted: Option<First>,
    /// The order to end the job, if one has come.
    told: Option<Told>,
    timed_out: bool,
    /// The end of something without which a part of the job cannot go on, in words.
    cut_off: Option<String>,
    /// Whether any process was ever a member of the job.
    has_members: bool,
    /// The processes of which no start was heard, nor that it has failed.
    unheard: usize,
}

/// An order to the launcher to end the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// The signal that came, or that the command stands for.
    pub(crate) signal: i32,
    /// The host on which `landeck end` was called, if it was that.
    pub(crate) host: Option<String>,
}

impl Told {
    /// The cause of the job's end in words.
    pub(crate) fn cause(&self) -> String {
        match &self.host {
            Some(host) => format!("`landeck end` on host {host}"),
            None => signals::name(self.signal).0.to_owned(),
        }
    }
}

/// The launcher's record of one process.
#[derive(Debug, Clone, Default)]
struct Process {
    pid: u32,
    state: State,
    /// The number of restarts.
    restarts: u32,
    /// Its counters, saved when it ended: another process may have its slot by the end.
    deeds: Option<Deeds>,
    /// Its program, if it was started while the job ran.
    program: Option<String>,
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
#[derive(Clone)]
enum First {
    NotStarted {
        rank: u32,
        error: StartError,
    },
    Failed(Failed),
    /// Processes are lost with their host.
    HostLost,
    /// A guest has aborted the job.
    Guest {
        host: usize,
        pid: u32,
        code: u8,
        at: Duration,
    },
}

impl First {
    fn exit_code(&self) -> u8 {
        match self {
            First::NotStarted { error, .. } => not_started_code(*error),
            First::Failed(Failed { failure, .. }) => failure.exit_code(),
            First::HostLost => 128 + libc::SIGKILL as u8,
            First::Guest { code, .. } => *code,
        }
    }
}

/// The circumstances of a process's failure.
#[derive(Debug, Clone)]
struct Failed {
    rank: u32,
    failure: ProcessFailure,
    at: Duration,
    waiting: Option<String>,
}

impl<'a> Record<'a> {
    /// The record of a job of these programs. `host_of` has the place of each rank's host in `hosts`.
    pub(crate) fn new(
        launch: &'a Launch,
        programs: &'a [PlannedProgram],
        hosts: Vec<String>,
        host_of: Vec<usize>,
    ) -> Record<'a> {
        Record {
            launch,
            programs,
            first_hosts: hosts.len(),
            hosts,
            processes: vec![Process::default(); host_of.len()],
            unheard: host_of.len(),
            ranks: host_of.len() as u32,
            host_of,
            first: None,
            aborted: None,
            told: None,
            timed_out: false,
            cut_off: None,
            has_members: false,
        }
    }

    /// Says what the user should know before the job begins.
    pub(crate) fn say_beforehand(&self, output: &mut JobOutput) {
        for program in self.programs {
            for name in &program.environment.missing {
                let name = brief(name.to_string_lossy());
                output.say(&format!(
                    "landeck: -x {name}: this variable is not set here, so it is not passed on; \
                     -x {name}=value sets it"
                ));
            }
        }
        for (program, ForeignMpi { library, implementation }) in self.foreign() {
            output.say(&format!(
                "landeck: {program} is linked with {library}, the library of {implementation}: each of its \
                 processes will be rank 0 of 1. Compile it with mpicc_abi, or start it with the mpiexec of \
                 that MPI."
            ));
        }
    }

    /// The programs of a job of several processes that are linked with another MPI, and that MPI.
    fn foreign(&self) -> Vec<(String, ForeignMpi)> {
        let programs = self.programs.iter().filter(|_| self.processes.len() > 1);
        let found = programs.filter_map(|program| {
            Some((program.file.display().to_string(), foreign_mpi(&program.file)?))
        });
        found.collect()
    }

    /// Whether all processes were started, and the job does not end already.
    pub(crate) fn has_begun(&self) -> bool {
        let is_ending = self.told.is_some() || self.timed_out || self.cut_off.is_some();
        self.unheard == 0 && !is_ending && (self.first.is_none() || self.goes_on())
    }

    /// Whether something has ended without which a part of the job cannot go on.
    pub(crate) const fn is_cut_off(&self) -> bool {
        self.cut_off.is_some()
    }

    /// The number of ranks.
    pub(crate) const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Adds a process that is to be started while the job runs, with a number behind the ranks.
    pub(crate) fn add(&mut self, number: u32, host: usize, program: &[u8]) {
        let (place, program) = (number as usize, String::from_utf8_lossy(program).into_owned());
        let process = Process { program: Some(program), ..Process::default() };
        match self.processes.get_mut(place) {
            Some(before) => (*before, self.host_of[place]) = (process, host),
            None => {
                self.processes.push(process);
                self.host_of.push(host);
            }
        }
    }

    /// Adds a host to the job while it runs.
    pub(crate) fn add_host(&mut self, name: String) {
        self.hosts.push(name);
    }

    /// Takes note that such a process was not started. The process that wanted it knows.
    pub(crate) fn take_not_added(&mut self, number: u32) {
        self.change(number, |process| process.state = State::Gone);
    }

    /// Takes note of an event of a host.
    pub(crate) fn take(&mut self, host: usize, event: Happened, output: &mut JobOutput) {
        if let Happened::Started { rank, .. } | Happened::NotStarted { rank, .. } = event {
            let is_unheard = |own: &&Process| {
                rank < self.ranks && own.pid == 0 && matches!(own.state, State::Running)
            };
            self.unheard -= self.processes.get(rank as usize).filter(is_unheard).iter().count();
        }
        match event {
            Happened::Started { rank, pid, restart } => {
                self.change(rank, |own| {
                    let program = own.program.take();
                    let state = State::Running;
                    *own = Process { pid, state, restarts: restart, deeds: None, program };
                });
            }
            Happened::NotStarted { rank, again: None, .. } if rank >= self.ranks => {
                self.take_not_added(rank);
            }
            Happened::NotStarted { rank, error, again } => {
                self.take_failed_start(rank, error, again, output);
            }
            Happened::Ended { rank, pid, failure, at, waiting, was_member, deeds, again } => {
                self.has_members |= was_member;
                self.change(rank, |process| {
                    process.pid = pid;
                    process.deeds = Some(deeds);
                });
                match failure {
                    Some(failure) => {
                        self.take_failure(Failed { rank, failure, at, waiting }, again, output);
                    }
                    None => self.change(rank, |process| process.state = State::Gone),
                }
            }
            Happened::Stopped { rank } => {
                self.change(rank, |process| process.state = State::Stopped);
            }
            Happened::Continued { rank } => {
                self.change(rank, |process| process.state = State::Running);
            }
            Happened::GuestAborted { pid, code, at } => {
                self.take_abort_of_guest(First::Guest { host, pid, code, at }, output);
            }
            Happened::AllEnded => {}
            Happened::GuardianGone => self.cut_off(self.guardian_gone(host)),
        }
    }

    /// Takes note that a part of the job has ended without a word of its own; `why` is a sentence.
    pub(crate) fn cut_off(&mut self, why: String) {
        self.cut_off.get_or_insert(why);
    }

    /// Says that the part of a host has another daemon. Output that the last one has read, and not passed on, is lost.
    pub(crate) fn say_resumed(&self, place: usize, output: &mut JobOutput) {
        let host = self.host(place);
        let text =
            "has started again. The processes there go on; lines of their output may be missing";
        output.say(&format!("landeckd on {host} {text}."));
    }

    /// Says that another daemon conducts the job. Output that the last one had, and not passed on, is lost.
    pub(crate) fn say_returned(&self, output: &mut JobOutput) {
        output.say(
            "landeckd on this host has started again. The job goes on; lines of its output may be missing.",
        );
    }

    /// Takes note that a host is lost. The job ends with it, or its processes are lost and the others go on.
    pub(crate) fn take_lost_host(&mut self, host: usize, why: &str, output: &mut JobOutput) {
        let name = self.host(host).to_owned();
        let there = |(rank, _): &(u32, &Process)| self.host_of[*rank as usize] == host;
        let lost: Vec<u32> = self.alive().filter(there).map(|(rank, _)| rank).collect();
        if lost.is_empty() && host >= self.first_hosts {
            return; // guests alone were there, if anybody was
        }
        if !self.goes_on() {
            return self.cut_off(format!("Host {name} is lost: {why}. The job was ended."));
        }
        for &rank in &lost {
            self.change(rank, |process| process.state = State::Gone);
        }
        if lost.is_empty() {
            return;
        }
        let others = self.alive().count();
        output.say(&format!(
            "Host {name} is lost: {why}. {} lost with it; {others} process{} on.",
            processes_are(&lost, self.ranks),
            if others == 1 { " goes" } else { "es go" }
        ));
        self.first.get_or_insert(First::HostLost);
    }

    /// Takes note of what told the launcher to end the job.
    pub(crate) fn take_told(&mut self, told: Told) {
        self.told.get_or_insert(told);
    }

    /// Takes note of the end of the job's time.
    pub(crate) fn take_timeout(&mut self) {
        self.timed_out = true;
    }

    /// The processes that run or are stopped, with their ranks.
    fn alive(&self) -> impl Iterator<Item = (u32, &Process)> {
        let alive = |process: &&Process| matches!(process.state, State::Running | State::Stopped);
        (0..).zip(&self.processes).filter(move |(_, process)| alive(process))
    }

    /// The name of a host.
    pub(crate) fn host(&self, host: usize) -> &str {
        self.hosts.get(host).map_or("", String::as_str)
    }

    /// The name of a rank: with its host, if the job has several.
    fn name(&self, rank: u32) -> String {
        let name = match rank.checked_sub(self.ranks) {
            None => format!("rank {rank}"),
            Some(number) => format!("started process {number}"),
        };
        match self.host_of.get(rank as usize) {
            Some(&host) if self.hosts.len() > 1 => format!("{name} on {}", self.host(host)),
            _ => name,
        }
    }

    fn guardian_gone(&self, host: usize) -> String {
        match self.hosts.len() {
            1 => "The guardian of the job was killed: all processes were ended.".to_owned(),
            _ => format!(
                "The guardian of the job on host {} was killed: all processes were ended.",
                self.host(host)
            ),
        }
    }

    /// Changes the record of a process.
    fn change(&mut self, rank: u32, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.processes.get_mut(rank as usize) {
            change(process);
        }
    }

    fn take_failed_start(
        &mut self,
        rank: u32,
        error: StartError,
        again: Again,
        output: &mut JobOutput,
    ) {
        let state = if again.is_some() { State::Awaited } else { State::Gone };
        self.change(rank, |process| process.state = state);
        if let Some((_, after)) = again {
            let after = report::duration(after);
            output.say(&format!(
                "{} was not started again: {error}. It is tried again in {after}.",
                self.name(rank)
            ));
        } else {
            self.first.get_or_insert(First::NotStarted { rank, error });
        }
    }

    fn take_failure(&mut self, failed: Failed, again: Again, output: &mut JobOutput) {
        let rank = failed.rank;
        // A part that was cut off ends the job, and nothing that follows is another failure.
        let is_ours = self.cut_off.is_some() || (self.first.is_some() && !self.goes_on());
        let state = match again {
            Some(_) => State::Awaited,
            None if is_ours => State::Ended,
            None => State::Gone,
        };
        self.change(rank, |process| process.state = state);
        if is_ours {
            return;
        }
        if let ProcessFailure::Aborted(_) = failed.failure {
            return self.take_abort(First::Failed(failed));
        }
        let is_told = self.told.is_some() || self.timed_out;
        let others = self.alive().count() as u32;
        match (again, self.launch.on_failure) {
            (Some((number, after)), OnFailure::Restart { times: most, .. }) => {
                let again = Restart { number, after };
                self.say_failure(&failed, Others::GoOnWithNext { others, again, most }, output);
            }
            _ => {
                self.first.get_or_insert_with(|| First::Failed(failed.clone()));
                if self.goes_on() && !is_told {
                    self.say_failure(&failed, Others::GoOn(others), output);
                }
            }
        }
    }

    /// Records that the job ends because of this abort. The message follows at the end.
    fn take_abort(&mut self, abort: First) {
        self.first.get_or_insert_with(|| abort.clone());
        self.aborted = Some(abort);
    }

    /// Handles the abort of a guest, which may be another library in one of the job's processes.
    fn take_abort_of_guest(&mut self, abort: First, output: &mut JobOutput) {
        let First::Guest { host, pid, code, at } = abort else { return };
        let is_host = |(rank, process): &(u32, &Process)| {
            process.pid == pid && self.host_of[*rank as usize] == host
        };
        let rank = self.alive().find(is_host).map(|(rank, _)| rank);
        match rank {
            Some(rank) => {
                let failure = ProcessFailure::Aborted(code);
                self.take_failure(Failed { rank, failure, at, waiting: None }, None, output);
            }
            None if self.first.is_some() && !self.goes_on() => {}
            None => self.take_abort(abort),
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

    /// The message at the end of the job's time. `places` has the processes that run on each host, or nothing if a host
    /// does not answer.
    pub(crate) fn timeout_text(
        &self,
        elapsed: Duration,
        explanation: Option<Explanation>,
        places: Vec<Option<Vec<Whereabouts>>>,
    ) -> String {
        let (after, alive) = (report::duration(elapsed), self.alive().count());
        let mut text = format!(
            "The job is ended after {after} (--timeout): {alive} of its {} processes have not ended.\n",
            self.processes.len()
        );
        if let Some(Explanation { verdict, .. }) = &explanation {
            text += &format!("{verdict}\n");
        }
        for (host, _) in places.iter().enumerate().filter(|(_, answer)| answer.is_none()) {
            text += &format!("  host {} does not answer\n", self.host(host));
        }
        let lines = self.lines_of_places(places.into_iter().flatten().flatten());
        lines.iter().take(LISTED_MAX).for_each(|(_, line)| text += line);
        if alive > LISTED_MAX {
            text += &format!("  and {} more\n", alive - LISTED_MAX);
        }
        if let Some(advice) = explanation.and_then(|explanation| explanation.advice) {
            text += &format!("{advice}\n");
        }
        text
    }

    /// The lines about the processes that run and those that were not started yet, in the order of their ranks.
    fn lines_of_places(&self, places: impl Iterator<Item = Whereabouts>) -> Vec<(u32, String)> {
        let of_place = |Whereabouts { rank, pid, wait, stacks }| {
            (rank, format!("  {} (pid {pid}): {wait}\n{stacks}", self.name(rank)))
        };
        let unstarted = self.alive().filter(|(_, process)| process.pid == 0);
        let of_unstarted =
            |(rank, _)| (rank, format!("  {}: was not started yet\n", self.name(rank)));
        let mut lines: Vec<(u32, String)> =
            places.map(of_place).chain(unstarted.map(of_unstarted)).collect();
        lines.sort_by_key(|&(rank, _)| rank);
        lines
    }

    /// The exit code of the job.
    pub(crate) fn exit_code(&self) -> u8 {
        match (&self.first, &self.told) {
            _ if self.timed_out => TIMED_OUT,
            (Some(first), _) => first.exit_code(),
            _ if self.cut_off.is_some() => 128 + libc::SIGKILL as u8,
            (None, Some(told)) if self.awaits_any() => 128 + told.signal as u8,
            (None, _) => 0,
        }
    }

    /// Whether a process still awaited its restart when the job had to end.
    fn awaits_any(&self) -> bool {
        self.processes.iter().any(|process| process.state == State::Awaited)
    }

    /// Says how the job ended.
    pub(crate) fn say_the_end(&self, code: u8, elapsed: Duration, output: &mut JobOutput) {
        if let Some(why) = &self.cut_off {
            output.say(&format!("{why} Exit code {code}."));
            return;
        }
        match self.aborted.as_ref().or(self.first.as_ref()) {
            _ if self.timed_out => output.say(&format!("Exit code {code}.")),
            None if self.told.is_some() && self.awaits_any() => self.say_told(code, output),
            None if self.told.as_ref().is_some_and(|told| told.host.is_some()) => {
                self.say_told(code, output);
            }
            None => self.say_the_good_end(code, elapsed, output),
            Some(First::NotStarted { rank, error }) => {
                self.say_not_started(*rank, *error, code, output);
            }
            Some(First::Guest { host, pid, at, .. }) => {
                self.say_guest(*host, *pid, *at, code, output);
            }
            Some(First::Failed(_)) if self.told.is_some() => self.say_told(code, output),
            Some(First::Failed(Failed {
                failure: ProcessFailure::Signal(libc::SIGPIPE), ..
            })) if output.is_broken(Stream::Output) => {}
            Some(First::Failed(_) | First::HostLost) if self.goes_on() => {
                output.say(&format!("Exit code {code}."));
            }
            Some(First::HostLost) => output.say(&format!("A host was lost. Exit code {code}.")),
            Some(First::Failed(failed)) => {
                self.say_failure(failed, self.others(failed.rank), output);
            }
        }
        self.say_restarts(output);
        if code == 0 && !self.has_members && !self.foreign().is_empty() {
            output.say(&format!(
                "landeck: none of the {} processes joined the job.",
                self.processes.len()
            ));
        }
    }

    /// Says what is said of a job that ended well. The exit code of a detached one is told nowhere else.
    fn say_the_good_end(&self, code: u8, elapsed: Duration, output: &mut JobOutput) {
        if self.launch.summary {
            self.say_summary(elapsed, output);
        }
        if self.launch.is_detached {
            let after = report::duration(elapsed);
            output.say(&format!("The job has ended after {after}. Exit code {code}."));
        }
    }

    fn say_told(&self, code: u8, output: &mut JobOutput) {
        let cause = self.told.as_ref().map(Told::cause).unwrap_or_default();
        output.say(&format!("The job was ended by {cause}. Exit code {code}."));
    }

    fn say_guest(&self, host: usize, pid: u32, at: Duration, code: u8, output: &mut JobOutput) {
        let (after, host) = (report::duration(at), self.host(host));
        output.say(&format!(
            "A guest of the job (pid {pid}, host {host}) ended it after {after}. Exit code {code}."
        ));
    }

    fn say_restarts(&self, output: &mut JobOutput) {
        let ranks = (0..).zip(&self.processes);
        let all: Vec<(u32, u32)> = ranks
            .filter(|(_, process)| process.restarts > 0)
            .map(|(rank, process)| (rank, process.restarts))
            .collect();
        if let Some(text) = report::restarts(&all, |rank| self.name(rank)) {
            output.say(&text);
        }
    }

    /// The state of all ranks but this one. A process whose restart no longer came counts as ended by the launcher.
    fn others(&self, rank: u32) -> Others {
        let others = (0..).zip(&self.processes).filter(|(other, _)| *other != rank);
        let gone = others.filter(|(_, process)| process.state == State::Gone).count() as u32;
        Others::Gone { ended: self.processes.len() as u32 - 1 - gone, by_themselves: gone }
    }

    fn say_failure(&self, failed: &Failed, others: Others, output: &mut JobOutput) {
        let rank = failed.rank;
        let last_lines = output.recent_lines(rank as usize);
        let process = &self.processes[rank as usize];
        let restarts = matches!(self.launch.on_failure, OnFailure::Restart { .. });
        let restarts = restarts.then_some(process.restarts);
        let who = Who {
            rank,
            processes: self.ranks,
            program: process.program.as_deref(),
            pid: process.pid,
            host: self.host(self.host_of[rank as usize]),
        };
        let report = FailureReport {
            who,
            failure: failed.failure,
            after: failed.at,
            waiting: failed.waiting.as_deref(),
            last_lines: &last_lines,
            others,
            restarts,
            exit_code: self.exit_code(),
        };
        output.say(&report.text());
    }

    fn say_not_started(&self, rank: u32, error: StartError, code: u8, output: &mut JobOutput) {
        let hint = match (error.step, error.errno) {
            (StartStep::Execute, libc::ENOEXEC) => why_not_executed(self.file_of(rank).as_ref()),
            (StartStep::Execute, libc::ENOENT) => {
                "; does the interpreter that it names exist?".to_owned()
            }
            (StartStep::Create, _) => "; is there a limit of processes (ulimit -u)?".to_owned(),
            _ => String::new(),
        };
        let host = self.host_of.get(rank as usize).map_or("", |&host| self.host(host));
        output.say(&format!(
            "rank {rank} of {} was not started on host {host}: {error} ({}){hint}\nExit code {code}.",
            self.processes.len(),
            self.file_of(rank),
        ));
    }

    /// The file of a rank's program.
    fn file_of(&self, rank: u32) -> String {
        let mut last = 0;
        let program = self.programs.iter().find(|program| {
            last += program.processes;
            rank < last
        });
        program.map(|program| program.file.display().to_string()).unwrap_or_default()
    }

    fn say_summary(&self, elapsed: Duration, output: &mut JobOutput) {
        let deeds = self.processes.iter().map(|process| process.deeds.clone().unwrap_or_default());
        let name = |rank| self.name(rank);
        output.say(&report::summary(&deeds.collect::<Vec<Deeds>>(), elapsed, name));
    }
}

/// These processes as the beginning of a sentence. Numbers behind the ranks are those of processes that were started later.
fn processes_are(processes: &[u32], ranks: u32) -> String {
    let started = processes.iter().filter_map(|process| process.checked_sub(ranks)).collect();
    let ranks = processes.iter().copied().filter(|process| *process < ranks).collect();
    let named =
        [named("rank", "ranks", ranks), named("started process", "started processes", started)];
    let text = named.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let verb = if processes.len() == 1 { "is" } else { "are" };
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    format!("{}{} {verb}", first.collect::<String>(), letters.as_str())
}

/// So many processes of one kind, by their numbers; `None` if there is none.
fn named(one: &str, many: &str, numbers: Vec<u32>) -> Option<String> {
    let list: Vec<String> = numbers.iter().take(LISTED_MAX).map(u32::to_string).collect();
    match numbers.len() {
        0 => None,
        1 => Some(format!("{one} {}", list.concat())),
        count if count > LISTED_MAX => Some(format!("{count} {many}")),
        _ => Some(format!("{many} {}", list.join(" "))),
    }
}

/// The exit code as shells define it: 127 for a missing program, 126 for one that cannot be executed.
fn not_started_code(error: StartError) -> u8 {
    match (error.step, error.errno) {
        (StartStep::Execute, libc::ENOENT) => 127,
        (StartStep::Execute, _) => 126,
        _ => LAUNCHER_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_processes_are_named_by_their_kind() {
        let words = |processes: &[u32]| processes_are(processes, 4);
        assert_eq!(words(&[3]), "Rank 3 is");
        assert_eq!(words(&[1, 3]), "Ranks 1 3 are");
        assert_eq!(words(&[5]), "Started process 1 is");
        assert_eq!(words(&[2, 4, 6]), "Rank 2 and started processes 0 2 are");
        let many: Vec<u32> = (4..200).collect();
        assert_eq!(words(&many), "196 started processes are");
    }
}
