//! The launcher of a job on several hosts: it asks the arbiter for the job and tells its user what comes of it.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use landeck_machine::{HostRequest, RankPlace};
use landeck_wire::{HostNumber, JobId, SegmentId};
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::messages::{
    ArbiterReport, HostsRequest, MachineOptions, MessageStream, PartCommand, PartEvent, ToArbiter,
};
use super::spec::{HostSpec, JobSpec, ProgramSpec, RankSpec};
use super::start::{StartTool, StartWay, find_daemon};
use crate::hosts_plan::HostsPlan;
use crate::hosts_wish::{HostStart, HostsWish};
use crate::input::{InputTo, Origin};
use crate::job::{STACKS_MAX, code_with_losses, watch_sinks};
use crate::launch::{Explanation, Launch, LaunchError, Program, system};
use crate::output::{Output, Stream};
use crate::plan::PlannedProgram;
use crate::record::Record;
use crate::signals::{self, Conduct, Reaction, Signals};
use crate::start::{make_directory, open_output_file, own_streams, random_number};
use crate::start_signals;
use crate::watch::Watch;
use crate::witness::Happened;

/// The tokens that wake the loop.
const ARBITER: u64 = 0;
const SIGNALS: u64 = 1;
const STDIN: u64 = 2;
const SINKS: u64 = 3 << 32;

/// How long the arbiter has to end after the job.
const ARBITER_END: Duration = Duration::from_secs(5);
/// How long hosts have to say where their processes are.
const PLACES_TIME: Duration = Duration::from_secs(5);

/// The launcher's view of one host.
#[derive(Debug)]
struct HostState {
    number: HostNumber,
    /// Whether nothing more comes from it.
    is_over: bool,
    /// Bytes of output that the launcher has not given credit for.
    owed: u64,
    /// Whether a process there reads the input.
    reads: bool,
    /// Whether a block of input is on its way there.
    has_block: bool,
}

/// The question where all processes are.
#[derive(Debug)]
struct Question {
    until: Instant,
    /// The time that the job had when it was asked. A debugger needs its own.
    elapsed: Duration,
    /// The answers, by host.
    places: Vec<Option<Vec<String>>>,
    /// The reason why the job does not end, from the pictures of all hosts.
    explanation: Option<Explanation>,
}

/// A job on several hosts, as its launcher sees it.
struct RemoteJob<'a> {
    launch: &'a Launch,
    programs: &'a [PlannedProgram],
    stream: MessageStream<ArbiterReport, ToArbiter>,
    arbiter: Child,
    signals: Signals,
    conduct: Conduct,
    output: Output,
    origin: Option<Origin>,
    watch: Watch,
    watched_arbiter: EventFlags,
    watched_sinks: BTreeSet<usize>,
    record: Option<Record<'a>>,
    /// The job, once its hosts are settled.
    job: Option<JobId>,
    hosts: Vec<HostState>,
    sources: HashMap<(u32, bool), usize>,
    began: Instant,
    deadline: Option<Instant>,
    question: Option<Question>,
    refused: Option<LaunchError>,
    /// The signal that ended the launch before any process was started.
    told: Option<i32>,
    /// The streams that nobody reads, as the hosts know.
    said_broken: [bool; 2],
    is_over: bool,
}

impl Launch {
    /// Starts the job on several hosts, runs it to its end and returns its exit code.
    ///
    /// # Errors
    /// If no such job is possible; nothing was started in that case.
    pub(crate) fn run_over_hosts(
        &self,
        plan: &HostsPlan,
        wish: &HostsWish,
    ) -> Result<u8, LaunchError> {
        if self.serves_groups.is_some() {
            return Err(LaunchError::ServeGroups);
        }
        let processes = plan.processes() as usize;
        self.output_directory.as_deref().map_or(Ok(()), make_directory)?;
        let (stdout, stderr) = own_streams().map_err(system("use its own standard output"))?;
        let output = Output::new(processes, stdout, stderr);
        let spec = self.spec(plan, output.is_merged())?;
        let way = way_of(wish)?;
        let (socket, arbiter) = start_arbiter(&way.daemon)?;
        let signals = Signals::catch().map_err(system("catch signals"))?;
        let fail = system("talk to the arbiter");
        let mut stream = MessageStream::new(socket).map_err(&fail)?;
        let options = options_of(wish);
        stream.send(&ToArbiter::Start(Box::new(HostsRequest { spec, way, options })));
        let origin = match self.stdin {
            InputTo::None => None,
            InputTo::All | InputTo::Rank(_) => {
                let fail = system("open standard input for the processes");
                Some(Origin::new(std::io::stdin().as_fd()).map_err(fail)?)
            }
        };
        let watch = Watch::new().map_err(system("watch the processes"))?;
        let job =
            RemoteJob::new(self, &plan.programs, stream, arbiter, signals, output, origin, watch);
        job.run()
    }

    fn spec(&self, plan: &HostsPlan, is_merged: bool) -> Result<JobSpec, LaunchError> {
        let program = |(program, planned): (&Program, &PlannedProgram)| {
            let variables = planned.environment.for_other_hosts(&program.exports);
            ProgramSpec::new(planned, variables, program.inherit)
        };
        let host = |host: &HostRequest| -> Result<HostSpec, LaunchError> {
            let (number, segment) = (HostNumber::NONE, SegmentId(random_number()?));
            Ok(HostSpec { number, name: host.name.clone(), segment })
        };
        let program_of = (0..)
            .zip(&plan.programs)
            .flat_map(|(number, program)| (0..program.processes).map(move |_| number));
        let rank = |(place, program): (&RankPlace, u16)| RankSpec {
            host: place.host as u16,
            slot: place.slot,
            program,
        };
        Ok(JobSpec {
            job: JobId(random_number()?),
            name: self.name_of(&plan.programs),
            programs: self.programs.iter().zip(&plan.programs).map(program).collect(),
            ranks: plan.placement.places().iter().zip(program_of).map(rank).collect(),
            hosts: plan.hosts.iter().map(host).collect::<Result<Vec<HostSpec>, LaunchError>>()?,
            first_address: String::new(),
            map_by: self.map_by,
            bind_to: self.bind_to,
            report_bindings: self.report_bindings,
            on_failure: self.on_failure,
            grace: self.grace,
            is_hardened: self.is_hardened,
            settings: self.settings.to_vec(),
            links: Vec::new(),
            shares_processors: false,
            stdin: self.stdin,
            is_merged: is_merged && self.output_directory.is_none(),
            ignored: start_signals::ignored(),
            serves_groups: self.serves_groups.is_some(),
        })
    }
}

/// How the daemons of other hosts are started.
fn way_of(wish: &HostsWish) -> Result<StartWay, LaunchError> {
    let own = std::env::current_exe().ok();
    let folder = own.and_then(|own| own.parent().map(PathBuf::from));
    let daemon = find_daemon().ok_or(LaunchError::NoDaemon { folder })?;
    let tool = match wish.start {
        HostStart::Ssh if wish.rsh == ["ssh"] => StartTool::Ssh,
        HostStart::Ssh => StartTool::Rsh(wish.rsh.clone()),
        HostStart::Slurm => StartTool::Srun,
        HostStart::ByHand => StartTool::ByHand,
    };
    let mut arguments = Vec::new();
    if let Some(ports) = wish.ports {
        arguments.extend(["--port-range".to_owned(), ports.to_string()]);
    }
    for network in &wish.networks {
        arguments.extend(["--network".to_owned(), network.to_string()]);
    }
    let login = |host: &HostRequest| Some((host.name.clone(), host.login.clone()?));
    let logins = wish.list.iter().filter_map(login).collect();
    Ok(StartWay { tool, daemon, prefix: wish.remote_prefix.clone(), arguments, logins })
}

/// The wishes that all daemons must know.
fn options_of(wish: &HostsWish) -> MachineOptions {
    MachineOptions {
        host_timeout_ms: u64::try_from(wish.host_timeout.as_millis()).unwrap_or(u64::MAX),
        is_plain: wish.is_plain,
        ports: wish.ports.map(|ports| (ports.first, ports.last)),
        networks: wish.networks.iter().map(|network| (network.address, network.bits)).collect(),
    }
}

/// Starts the arbiter, which finds its end of the conversation in its standard input.
fn start_arbiter(daemon: &Path) -> Result<(OwnedFd, Child), LaunchError> {
    let fail = system("talk to the arbiter");
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|errno| fail(errno.into()))?;
    let mut command = Command::new(daemon);
    command.args(["--role", "arbiter"]).stdin(Stdio::from(theirs)).stdout(Stdio::null());
    // Keys pressed at the terminal must not signal the arbiter.
    let arbiter = command.process_group(0).spawn().map_err(system("start landeckd"))?;
    Ok((ours, arbiter))
}

impl<'a> RemoteJob<'a> {
    #[expect(clippy::too_many_arguments, reason = "they come from eight calls that can fail")]
    fn new(
        launch: &'a Launch,
        programs: &'a [PlannedProgram],
        stream: MessageStream<ArbiterReport, ToArbiter>,
        arbiter: Child,
        signals: Signals,
        output: Output,
        origin: Option<Origin>,
        watch: Watch,
    ) -> Self {
        let began = Instant::now();
        RemoteJob {
            launch,
            programs,
            stream,
            arbiter,
            signals,
            conduct: Conduct::default(),
            output,
            origin,
            watch,
            watched_arbiter: EventFlags::empty(),
            watched_sinks: BTreeSet::new(),
            record: None,
            job: None,
            hosts: Vec::new(),
            sources: HashMap::new(),
            began,
            deadline: launch.timeout.and_then(|timeout| began.checked_add(timeout)),
            question: None,
            refused: None,
            told: None,
            said_broken: [false; 2],
            is_over: false,
        }
    }

    fn run(mut self) -> Result<u8, LaunchError> {
        self.see_to_its_end()?;
        if let Some(error) = self.refused.take() {
            self.end_arbiter();
            return Err(error);
        }
        let code = match (&self.record, self.told) {
            (Some(record), _) => {
                let code = record.exit_code();
                record.say_the_end(code, self.began.elapsed(), &mut self.output);
                code
            }
            (None, Some(signal)) => 128 + signal as u8,
            (None, None) => crate::launch::TIMED_OUT,
        };
        self.write_out()?;
        let code = code_with_losses(&self.output, code);
        self.end_arbiter();
        Ok(code)
    }

    /// Waits for the arbiter to end, which it does when the conversation ends.
    fn end_arbiter(self) {
        let RemoteJob { stream, mut arbiter, .. } = self;
        drop(stream);
        let process = pidfd_open(Pid::from_child(&arbiter), PidfdFlags::empty());
        let has_ended = process.is_ok_and(|process| {
            let time = Timespec::try_from(ARBITER_END).ok();
            matches!(poll(&mut [PollFd::new(&process, PollFlags::IN)], time.as_ref()), Ok(1))
        });
        if !has_ended {
            // Its guardian server and all trunks end with it.
            let _ = arbiter.kill();
        }
        let _ = arbiter.wait();
    }

    fn see_to_its_end(&mut self) -> Result<(), LaunchError> {
        let fail = system("watch the processes");
        self.watch.set(SIGNALS, &self.signals, EventFlags::IN).map_err(&fail)?;
        while !self.is_over {
            self.move_output();
            self.set_interests().map_err(&fail)?;
            let ready = self.watch.wait(self.timeout()).map_err(&fail)?;
            for token in ready {
                self.handle(token);
            }
            self.look_at_clock();
        }
        Ok(())
    }

    fn handle(&mut self, token: u64) {
        match token {
            ARBITER => self.hear_arbiter(),
            SIGNALS => self.take_signals(),
            STDIN => self.read_input(),
            _ => {} // a sink, which is written to in any case
        }
    }

    fn command(&mut self, host: Option<HostNumber>, command: PartCommand) {
        self.stream.send(&ToArbiter::Command { host, command });
    }

    fn hear_arbiter(&mut self) {
        self.stream.flush();
        self.stream.read();
        while let Some(report) = self.stream.take_next() {
            self.take_report(report);
        }
        if self.stream.has_ended() && !self.is_over {
            self.is_over = true;
            let why = "The daemon of this host (landeckd) has ended: all processes were ended.";
            match &mut self.record {
                Some(record) => record.cut_off(why.to_owned()),
                None if self.refused.is_some() || self.told.is_some() => {}
                None => self.refused = Some(LaunchError::ArbiterEnded),
            }
        }
    }

    fn take_report(&mut self, report: ArbiterReport) {
        match report {
            ArbiterReport::Said(text) => self.output.say(&text),
            ArbiterReport::Refused { exit_code, texts } => {
                self.refused = Some(LaunchError::Refused { exit_code, text: texts.join("\n") });
                self.is_over = true;
            }
            ArbiterReport::Settled(spec) => {
                if let Err(error) = self.settle(*spec) {
                    self.refused = Some(error);
                    self.is_over = true;
                }
            }
            ArbiterReport::Event { host, event } => {
                let place = self.hosts.iter().position(|known| known.number == host);
                if let Some(place) = place {
                    self.take_event(place, event);
                }
            }
            ArbiterReport::HostLost { host, why } => self.lose(host, why),
            ArbiterReport::CutOff(text) => {
                if let Some(record) = &mut self.record {
                    record.cut_off(text);
                }
            }
        }
    }

    /// Takes the hosts as they are: their order, their names, the place of each rank.
    fn settle(&mut self, spec: JobSpec) -> Result<(), LaunchError> {
        if !spec.is_valid() || spec.processes() as usize != self.output.processes() {
            return Err(LaunchError::ArbiterEnded);
        }
        for rank in 0..spec.processes() {
            self.add_sources(&spec, rank)?;
        }
        let readers = |place: usize| spec.ranks_on(place).iter().any(|&rank| spec.gets_input(rank));
        let host = |(place, host): (usize, &HostSpec)| HostState {
            number: host.number,
            is_over: false,
            owed: 0,
            reads: readers(place),
            has_block: false,
        };
        self.hosts = spec.hosts.iter().enumerate().map(host).collect();
        let names = spec.hosts.iter().map(|host| host.name.clone()).collect();
        let host_of = spec.ranks.iter().map(|rank| usize::from(rank.host)).collect();
        let record = Record::new(self.launch, self.programs, names, host_of);
        record.say_beforehand(&mut self.output);
        (self.record, self.job) = (Some(record), Some(spec.job));
        Ok(())
    }

    fn add_sources(&mut self, spec: &JobSpec, rank: u32) -> Result<(), LaunchError> {
        let (process, processes) = (rank as usize, spec.processes());
        let name = &spec.hosts[usize::from(spec.ranks[process].host)].name;
        let tag = self.launch.tag.text(rank, processes, name);
        for stream in [Stream::Output, Stream::Error] {
            let source = match &self.launch.output_directory {
                Some(directory) => {
                    let (name, file) = open_output_file(directory, rank, processes, stream)?;
                    self.output.add_remote_with_file(process, file, name)
                }
                None => self.output.add_remote(process, stream, tag.clone()),
            };
            self.sources.insert((rank, stream == Stream::Error), source);
        }
        Ok(())
    }

    fn take_event(&mut self, place: usize, event: PartEvent) {
        match event {
            PartEvent::Happened(happened) => self.take_happened(place, happened),
            PartEvent::Gone { .. } => {} // for the other hosts
            PartEvent::Output { rank, stream, bytes } => {
                self.hosts[place].owed += bytes.len() as u64;
                if let Some(&source) = self.sources.get(&(rank, stream == Stream::Error)) {
                    self.output.feed(source, &bytes, Instant::now());
                }
            }
            PartEvent::OutputEnded { rank, stream } => {
                if let Some(&source) = self.sources.get(&(rank, stream == Stream::Error)) {
                    self.output.finish(source);
                }
            }
            PartEvent::InputTaken => self.hosts[place].has_block = false,
            PartEvent::InputUnread => {
                self.hosts[place].reads = false;
                self.hosts[place].has_block = false;
            }
            PartEvent::Places(places) => self.take_places(place, places),
            PartEvent::Said(text) => self.output.say(&text),
            PartEvent::Over => {
                self.hosts[place].is_over = true;
                self.is_over |= self.hosts.iter().all(|host| host.is_over);
            }
        }
    }

    fn take_happened(&mut self, place: usize, happened: Happened) {
        if let Some(record) = &mut self.record {
            record.take(place, happened, &mut self.output);
        }
    }

    fn lose(&mut self, host: HostNumber, why: String) {
        let Some(place) = self.hosts.iter().position(|known| known.number == host) else { return };
        if self.hosts[place].is_over {
            return;
        }
        self.hosts[place].is_over = true;
        self.hosts[place].has_block = false;
        if let Some(record) = &mut self.record {
            let text = format!("Host {} is lost: {why}. The job was ended.", record.host(place));
            record.cut_off(text);
        }
        self.is_over |= self.hosts.iter().all(|host| host.is_over);
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            let reaction = self.conduct.react(signal, Instant::now());
            let ends = reaction != Reaction::Suspend
                && matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT);
            if ends {
                match &mut self.record {
                    Some(record) => record.take_told(signal),
                    None => {
                        // Nothing runs yet, and nothing will.
                        self.told.get_or_insert(signal);
                        self.is_over = true;
                    }
                }
            }
            if self.is_over && ends {
                // Only output that nobody reads is left.
                self.output.give_up();
                continue;
            }
            let grace = self.launch.grace;
            match reaction {
                Reaction::Forward(signal) => self.command(None, PartCommand::Signal(signal)),
                Reaction::End => self.command(None, PartCommand::End { grace }),
                Reaction::Kill => self.command(None, PartCommand::Kill),
                Reaction::Suspend => {
                    self.command(None, PartCommand::Signal(signal));
                    signals::stop_self();
                }
            }
        }
    }

    /// Reads a block of input and sends it to every host with a process that reads.
    fn read_input(&mut self) {
        let Some(origin) = &mut self.origin else { return };
        let block = origin.read();
        let command = match block {
            Some(block) => PartCommand::Input(block),
            None if origin.has_ended() => PartCommand::InputEnd,
            None => return,
        };
        let readers: Vec<HostNumber> = self
            .hosts
            .iter_mut()
            .filter(|host| host.reads && !host.is_over)
            .map(|host| {
                host.has_block = matches!(command, PartCommand::Input(_));
                host.number
            })
            .collect();
        for host in readers {
            self.command(Some(host), command.clone());
        }
    }

    /// Whether the input may be read: somebody reads it, and everybody has taken the last block.
    fn wants_input(&self) -> bool {
        let is_free = self.hosts.iter().all(|host| !host.has_block);
        is_free && self.hosts.iter().any(|host| host.reads && !host.is_over)
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.ask_for_places();
        }
        if self.question.as_ref().is_some_and(|question| now >= question.until) {
            self.end_for_time();
        }
    }

    /// Handles the timeout: asks all hosts where their processes are. The job is ended when they have answered.
    fn ask_for_places(&mut self) {
        let Some(record) = &mut self.record else {
            self.output.say("The job is ended before its start (--timeout).");
            self.is_over = true;
            return;
        };
        record.take_timeout();
        let elapsed = self.began.elapsed();
        let stacks = self.launch.stacks;
        let time = if stacks { STACKS_MAX + PLACES_TIME } else { PLACES_TIME };
        let places = self.hosts.iter().map(|host| host.is_over.then(Vec::new)).collect();
        // A debugger stops processes, so this comes before the stacks.
        let job = self.job.map(|job| job.to_string());
        let explanation = self.launch.explain.zip(job).and_then(|(explain, job)| explain(&job));
        let until = Instant::now() + time;
        self.question = Some(Question { until, elapsed, places, explanation });
        self.command(None, PartCommand::Places { stacks });
    }

    fn take_places(&mut self, place: usize, texts: Vec<String>) {
        let Some(question) = &mut self.question else { return };
        question.places[place] = Some(texts);
        if question.places.iter().all(Option::is_some) {
            self.end_for_time();
        }
    }

    fn end_for_time(&mut self) {
        let (Some(question), Some(record)) = (self.question.take(), &self.record) else { return };
        let mut texts = Vec::new();
        for (place, answer) in question.places.into_iter().enumerate() {
            match answer {
                Some(answer) => texts.extend(answer),
                None => texts.push(format!("  host {} does not answer\n", record.host(place))),
            }
        }
        texts.truncate(crate::record::LISTED_MAX);
        let text = record.timeout_text(question.elapsed, question.explanation, &texts);
        self.output.say(&text);
        let grace = self.launch.grace;
        self.command(None, PartCommand::End { grace });
    }

    /// Writes output, and gives credit for what was written.
    fn move_output(&mut self) {
        self.output.show_parts(Instant::now());
        self.output.write();
        for (at, stream) in [Stream::Output, Stream::Error].into_iter().enumerate() {
            if self.output.is_broken(stream) && !std::mem::replace(&mut self.said_broken[at], true)
            {
                self.command(None, PartCommand::CloseOutput(stream));
            }
        }
        if self.output.all_have_room() {
            let owed: Vec<(HostNumber, u64)> = self
                .hosts
                .iter_mut()
                .filter(|host| host.owed > 0)
                .map(|host| (host.number, std::mem::take(&mut host.owed)))
                .collect();
            for (host, bytes) in owed {
                self.command(Some(host), PartCommand::Credit(bytes));
            }
        }
    }

    /// Watches the descriptors that can make progress now.
    fn set_interests(&mut self) -> std::io::Result<()> {
        watch_sinks(&mut self.watch, &self.output, &mut self.watched_sinks, SINKS)?;
        let room = if self.stream.has_unsent() { EventFlags::OUT } else { EventFlags::empty() };
        let wanted = EventFlags::IN | room;
        if wanted != self.watched_arbiter {
            self.watch.clear(ARBITER, &self.stream.descriptor());
            self.watch.set(ARBITER, &self.stream.descriptor(), wanted)?;
            self.watched_arbiter = wanted;
        }
        let wants_input = self.wants_input();
        let Some(origin) = &self.origin else { return Ok(()) };
        let is_wanted = wants_input && origin.wanted().is_some();
        let flags = if is_wanted { EventFlags::IN } else { EventFlags::empty() };
        self.watch.set(STDIN, &origin.source(), flags)
    }

    fn timeout(&self) -> Option<Duration> {
        let question = self.question.as_ref().map(|question| question.until);
        let until = [self.output.part_due(), self.deadline, question].into_iter().flatten().min();
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Writes the messages of the end.
    fn write_out(&mut self) -> Result<(), LaunchError> {
        let fail = system("watch the processes");
        loop {
            self.output.show_parts(Instant::now());
            self.output.write();
            if self.output.pending().is_empty() {
                return Ok(());
            }
            watch_sinks(&mut self.watch, &self.output, &mut self.watched_sinks, SINKS)
                .map_err(&fail)?;
            self.watch.clear(ARBITER, &self.stream.descriptor());
            let ready = self.watch.wait(None).map_err(&fail)?;
            if ready.contains(&SIGNALS) {
                self.take_signals();
            }
        }
    }
}
