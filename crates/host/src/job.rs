//! A running job: one loop over all its events, in the launcher's first thread.

use crate::address::{Address, is_listened_to};
use crate::guardian::{Command, Event};
use crate::hosts_plan::HostsPlan;
use crate::hosts_wish::HostsWish;
use crate::index;
use crate::input::{Input, InputTo};
use crate::launch::{LAUNCHER_FAILED, Launch, LaunchError, ServeGroups, system};
use crate::output::Output;
use crate::plan::Plan;
use crate::record::{LISTED_MAX, Process, Record, State};
use crate::say::{complain, say};
use crate::signals::{self, Conduct, Reaction};
use crate::stacks;
use crate::start::Started;
use crate::watch::Watch;
use landeck_wire::SegmentId;
use rustix::event::epoll::EventFlags;
use std::collections::BTreeSet;
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
pub(crate) const STACKS_MAX: Duration = Duration::from_secs(30);

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
        self.run_over_hosts(&plan, hosts)
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
    record: Record<'a>,
    watch: Watch,
    conduct: Conduct,
    began: Instant,
    /// When the job is ended, if it has not ended by itself.
    deadline: Option<Instant>,
    /// Whether nothing runs any more.
    is_over: bool,
    /// The sinks that are watched, since they hold pending output.
    watched_sinks: BTreeSet<usize>,
    /// Whether the last round read anything.
    was_busy: bool,
    /// The function of a thread that is still to be started.
    serves_groups: Option<ServeGroups>,
}

impl Job<'_> {
    /// Runs a started job to its end; returns its exit code.
    pub(crate) fn run(launch: &Launch, plan: &Plan, started: Started) -> Result<u8, LaunchError> {
        let began = Instant::now();
        let hosts = vec![plan.host.clone()];
        let mut job = Job {
            launch,
            plan,
            record: Record::new(launch, &plan.programs, hosts, vec![0; plan.processes() as usize]),
            watch: Watch::new().map_err(system("watch the processes"))?,
            conduct: Conduct::default(),
            began,
            deadline: launch.timeout.and_then(|timeout| began.checked_add(timeout)),
            is_over: false,
            watched_sinks: BTreeSet::new(),
            was_busy: true,
            serves_groups: launch.serves_groups,
            started,
        };
        job.say_beforehand();
        job.see_to_its_end()?;
        let code = job.record.exit_code();
        job.complete_deeds();
        job.record.say_the_end(code, began.elapsed(), &mut job.started.output);
        job.write_out()?;
        Ok(code_with_losses(&job.started.output, code))
    }

    fn say_beforehand(&mut self) {
        self.record.say_beforehand(&mut self.started.output);
        if self.launch.report_bindings {
            self.started.output.say(&self.plan.bindings());
        }
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
        serve_groups_of(serve, SegmentId(self.started.witness.segment().plan().host))
    }

    fn hear_guardian(&mut self) -> Result<(), LaunchError> {
        while let Some(event) = self.started.guardian.next_event()? {
            self.was_busy = true;
            if let Event::Started { .. } = event {
                self.serve_groups()?;
            }
            if matches!(event, Event::GuardianGone) {
                index::forget(SegmentId(self.started.witness.segment().plan().host));
            }
            self.is_over |= matches!(event, Event::AllEnded | Event::GuardianGone);
            if let Some(happened) = self.started.witness.understand(event) {
                self.record.take(0, happened, &mut self.started.output);
            }
        }
        if self.is_over {
            self.watch.clear(GUARDIAN, &self.started.guardian.descriptor());
        }
        Ok(())
    }

    /// Fills in the counters of processes whose end was not reported.
    fn complete_deeds(&mut self) {
        for (slot, process) in (0..).zip(&mut self.record.processes) {
            process.deeds.get_or_insert_with(|| self.started.witness.deeds_in(slot));
        }
    }

    fn take_signals(&mut self) -> Result<(), LaunchError> {
        while let Some(signal) = self.started.signals.next() {
            let reaction = self.conduct.react(signal, Instant::now());
            let ends = reaction != Reaction::Suspend
                && matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT);
            if ends {
                self.record.take_told(signal);
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
        self.record.take_timeout();
        let elapsed = self.began.elapsed();
        let alive: Vec<(u32, Process)> =
            self.record.alive().map(|(rank, process)| (rank, process.clone())).collect();
        let job = SegmentId(self.started.witness.segment().plan().host).to_string();
        let explanation = self.launch.explain.and_then(|explain| explain(&job));
        let give_up = Instant::now() + STACKS_MAX;
        // A debugger is slow, and it stops processes, so all places are recorded before.
        let places: Vec<String> = alive
            .iter()
            .take(LISTED_MAX)
            .map(|(rank, process)| self.place(*rank, process))
            .collect();
        let mut texts = Vec::new();
        for ((rank, process), place) in alive.iter().zip(places) {
            if process.pid == 0 {
                texts.push(format!("  rank {rank}: was not started yet\n"));
                continue;
            }
            // The process that joined may be another than the one started, below that.
            let slot = self.started.witness.slot_of(*rank);
            let pid = self.started.witness.segment().slot_record(slot).pid;
            texts.push(format!("  rank {rank} (pid {pid}): {place}\n"));
            if self.launch.stacks {
                texts.push(stacks::of_process(pid, give_up));
            }
        }
        let text = self.record.timeout_text(elapsed, explanation, &texts);
        self.started.output.say(&text);
        Ok(self.started.guardian.send(Command::End { grace: self.launch.grace })?)
    }

    fn place(&self, rank: u32, process: &Process) -> String {
        let is_stopped = process.state == State::Stopped;
        self.started.witness.present_place(self.started.witness.slot_of(rank), is_stopped)
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
        watch_sinks(&mut self.watch, output, &mut self.watched_sinks, SINKS)?;
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

    /// Writes the messages of the end.
    fn write_out(&mut self) -> Result<(), LaunchError> {
        self.is_over = true;
        self.was_busy = true;
        self.see_to_its_end()
    }
}

/// Serves the named groups of the job with this segment in a thread of its own.
///
/// # Errors
/// If there is no such thread.
pub(crate) fn serve_groups_of(serve: ServeGroups, host: SegmentId) -> Result<(), LaunchError> {
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

/// The exit code of the launcher: 125 if nothing failed but output is lost.
pub(crate) fn code_with_losses(output: &Output, code: u8) -> u8 {
    if code == 0 && output.has_lost() { LAUNCHER_FAILED } else { code }
}

/// Watches the sinks that hold pending output, each under `token` and its number.
pub(crate) fn watch_sinks(
    watch: &mut Watch,
    output: &Output,
    watched: &mut BTreeSet<usize>,
    token: u64,
) -> std::io::Result<()> {
    for sink in &*watched - output.pending() {
        watch.clear(token + sink as u64, &output.target(sink));
    }
    for &sink in output.pending() {
        watch.set(token + sink as u64, &output.target(sink), EventFlags::OUT)?;
    }
    watched.clone_from(output.pending());
    Ok(())
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
