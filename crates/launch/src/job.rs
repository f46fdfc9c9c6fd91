//! A running job: one loop over all its events, in the launcher's first thread.
//!
//! The loop serves one part, if this host has the whole job, or else the arbiter, which conducts the parts of all hosts.
//! Both report the same events and obey the same commands.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use landeck_host::budget::make_room_for_descriptors;
use landeck_host::detached::{self, Side};
use landeck_host::placement::CpuPlacement;
use landeck_host::say::{complain, say};
use landeck_host::signals::{self, CaughtSignal, CaughtSignals, Reaction, SignalConduct};
use landeck_host::start_signals;
use landeck_hostfile::{HostRequest, RankPlace};
use landeck_joining::address::{Address, is_listened_to};
use landeck_memory::JobName;
use landeck_protocols::door::StartRefusal;
use landeck_protocols::hosts::{BookingOrder, BookingWish};
use landeck_wire::stored::StoreSetting;
use landeck_wire::{HostNumber, JobId, SegmentId};
use rustix::event::epoll::EventFlags;

use self::detaching::own_output;
use self::places::Question;
use self::returning::Returning;
use self::starting::{WaitingWish, end_in_words};
use crate::arbiter::Arbiter;
use crate::events::Happened;
use crate::heard::Heard;
use crate::hosts_options::{HostsOptions, ranks_by};
use crate::input::{InputTo, Origin};
use crate::machine::BookedHost;
use crate::machine_call::MachineCall;
use crate::messages::{ArbiterReport, PartCommand, PartEvent};
use crate::output::{JobOutput, Stream};
use crate::output_files::{DetachedFile, make_directory, open_output_file};
use crate::part::{HostPart, OwnStreams};
use crate::parts::{PARTS, Parts};
use crate::plan::{LaunchPlan, PartsWay, PlannedProgram, own_name};
use crate::record::{Record, Told};
use crate::request::{
    LAUNCHER_FAILED, Launch, LaunchError, MachineWish, ServeGroups, TIMED_OUT, system,
};
use crate::spec::{HostSpec, JobSpec, RankSpec};
use crate::starts::Starts;
use crate::watch::Watch;

mod detaching;
mod places;
mod returning;
mod starting;

/// The names of watched descriptors, below those of parts.
const SIGNALS: u64 = 0;
const STDIN: u64 = 1;
const SINKS: u64 = 1 << 32;

/// The output streams of a process, by their numbers.
const STREAMS: [Stream; 2] = Stream::ALL;

impl Launch {
    /// Starts the job, runs it to its end and returns its exit code. That is the code of the process that failed first
    /// (128 and the signal, if one killed it), 124 after a timeout, 125 if nothing failed but output is lost, else 0.
    ///
    /// Call this while the process has one thread. Its signals are caught from then on.
    ///
    /// If the job is detached, this forks the launcher, which has no terminal and no standard input. In the calling process
    /// it returns 0 when all processes run, or else what the launcher returns, which has said why. In the launcher it
    /// returns at the end of the job.
    ///
    /// # Errors
    /// If no such job is possible; nothing was started in that case. A process that cannot be started is part of the
    /// job's end. If this process can start no thread to serve groups, or watch no descriptor, the processes were ended.
    pub fn run(&self) -> Result<u8, LaunchError> {
        if self.is_detached {
            let fail = system("leave its terminal");
            if let Side::Starter(code) = detached::fork().map_err(&fail)? {
                return Ok(code);
            }
            detached::leave_input_and_output().map_err(fail)?;
        }
        match &self.machine {
            Some(wish) => self.run_in_machine(wish),
            None => self.run_on(None),
        }
    }

    /// Books hosts in a machine that stays, and runs the job there.
    fn run_in_machine(&self, wish: &MachineWish) -> Result<u8, LaunchError> {
        let mut call = MachineCall::begin(wish.name.clone())?;
        let job = JobId(random_number()?);
        let numbers = self.programs.iter().map(|program| program.processes);
        let processes = match self.programs.as_slice() {
            [only] => only.processes,
            _ => Some(numbers.map(|number| number.unwrap_or(1)).sum()),
        };
        let name = self.job_name();
        let (is_exclusive, waits) = (wish.is_exclusive, wish.waits);
        let order = wish.order;
        let booking = BookingWish { processes, order, is_exclusive, waits };
        if order == BookingOrder::Site && !call.has_sites()? {
            return Err(LaunchError::NoSites { machine: wish.name.clone() });
        }
        // Without this, `landeck end` does not find a job that waits.
        let _listens = Address::of_launcher(job, &JobName::new(&name)).listen_for_streams();
        let hosts = call.book(job, name, booking)?.map_err(|text| {
            let text = format!("{text}. The job was not started; --wait waits");
            LaunchError::Refused { exit_code: LAUNCHER_FAILED, text }
        })?;
        let list = hosts.iter().map(|host| HostRequest::new(host.name.clone(), host.processes));
        let options = HostsOptions { map_by: ranks_by(order), ..HostsOptions::new(list.collect()) };
        let launch = Launch { hosts: Some(options), ..self.clone() };
        launch.run_on(Some(BookedJob { call, job, hosts }))
    }

    /// Runs the job on its hosts, which may be booked.
    fn run_on(&self, booked: Option<BookedJob>) -> Result<u8, LaunchError> {
        let plan = LaunchPlan::new(self)?;
        let processes = plan.processes();
        if let InputTo::Rank(rank) = self.stdin
            && rank >= processes
        {
            return Err(LaunchError::StdinRank { rank, processes });
        }
        if self.dry_run {
            say(&plan.text())?;
            return Ok(0);
        }
        if self.serves_groups.is_some() && self.hosts.is_some() {
            return Err(LaunchError::ServeGroups);
        }
        self.output_directory.as_deref().map_or(Ok(()), make_directory)?;
        let mut spec = self.spec(&plan)?;
        let call = booked.map(|BookedJob { call, job, hosts }| {
            spec.book(job, &hosts);
            call
        });
        let job = spec.job;
        let file = self.detached_file(job)?;
        let output = own_output(processes as usize, file.as_ref())
            .map_err(system("use its own standard output"))?;
        spec.is_merged = output.is_merged() && self.output_directory.is_none();
        self.make_room(&plan, &output)?;
        match &plan.way {
            PartsWay::Here(placement) => self.run_here(&plan, placement, (output, file), spec),
            PartsWay::Daemons(options) => {
                let fail = system("pass an output file on");
                let complaints = file.as_ref().map(DetachedFile::descriptor).transpose();
                let parts = Parts::Arbiter(match call {
                    None => Arbiter::start(spec, options, complaints.map_err(fail)?)?,
                    Some(call) => Arbiter::of_machine(call, spec),
                });
                let reads_input = self.stdin != InputTo::None;
                // Without this, `landeck end` finds the job where it has a part. A job that was booked listens already.
                let name = JobName::new(&self.job_name());
                let _listens = Address::of_launcher(job, &name).listen_for_streams();
                Job::new(self, &plan.programs, parts, (output, file), reads_input)?.run()
            }
        }
    }

    /// Creates the file of a detached job; others have none.
    fn detached_file(&self, job: JobId) -> Result<Option<DetachedFile>, LaunchError> {
        let directory = self.output_directory.as_deref();
        let create = || DetachedFile::create(directory, &self.job_name(), job);
        self.is_detached.then(create).transpose()
    }

    /// Runs a job that this host has alone.
    fn run_here(
        &self,
        plan: &LaunchPlan,
        placement: &CpuPlacement,
        output: OutputPlaces,
        spec: JobSpec,
    ) -> Result<u8, LaunchError> {
        let fail = system("open standard input for the processes");
        let source = io::stdin();
        let is_direct = self.passes_input_itself(plan.processes(), source.as_fd());
        let input = is_direct.then(|| source.as_fd().try_clone_to_owned()).transpose();
        let terminals = match &self.output_directory {
            Some(_) => [None, None],
            None => output.0.terminals(),
        };
        let own = OwnStreams { input: input.map_err(fail)?, terminals };
        let part = HostPart::of_launcher(spec.clone(), placement, own)?;
        let reads_input = !is_direct && self.stdin != InputTo::None;
        let parts = Parts::Here(Box::new(part));
        let mut job = Job::new(self, &plan.programs, parts, output, reads_input)?;
        job.settle(spec)?;
        job.parts.start()?;
        job.run()
    }

    /// Whether the process that reads the standard input gets it itself. A terminal is read here and passed on, as the
    /// processes are not in its foreground group.
    fn passes_input_itself(&self, processes: u32, source: BorrowedFd<'_>) -> bool {
        let has_one_reader = match self.stdin {
            InputTo::None => false,
            InputTo::Rank(_) => true,
            InputTo::All => processes == 1,
        };
        has_one_reader && !rustix::termios::isatty(source)
    }

    fn make_room(&self, plan: &LaunchPlan, output: &JobOutput) -> Result<(), LaunchError> {
        // Open at the fork of a guardian here: standard input, each pipe with both of its ends, and each file. Where daemons
        // have the parts, the launcher has the files alone.
        let (each, hint) = match (&plan.way, &self.output_directory) {
            (PartsWay::Daemons(_), None) => (0, ""),
            (PartsWay::Daemons(_), Some(_)) => (2, ""),
            (PartsWay::Here(_), Some(_)) => (7, ""),
            (PartsWay::Here(_), None) if output.is_merged() => (4, ""),
            (PartsWay::Here(_), None) => (5, ", or send both streams to one place (2>&1)"),
        };
        let processes = plan.processes();
        let needed = u64::from(processes) * each + 64;
        Ok(make_room_for_descriptors(processes, needed, "the launcher", hint)?)
    }

    /// The job before it is known whether both streams of its processes are one.
    fn spec(&self, plan: &LaunchPlan) -> Result<JobSpec, LaunchError> {
        let host = |host: &HostRequest| -> Result<HostSpec, LaunchError> {
            let (number, segment) = (HostNumber::NONE, SegmentId(random_number()?));
            let (name, site) = (host.name.clone(), String::new());
            Ok(HostSpec { number, name, site, segment, cores: Vec::new() })
        };
        let hosts = plan.hosts.iter().map(host).collect::<Result<Vec<HostSpec>, LaunchError>>()?;
        let has_store = hosts.iter().any(|host| self.store.names(&host.name));
        if let (StoreSetting::Named(_), false) = (self.store, has_store) {
            let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
            return Err(LaunchError::Store { hosts: names.join(", ") });
        }
        // A job that this host has alone is known by its segment.
        let job = match (&plan.way, hosts.as_slice()) {
            (PartsWay::Here(_), [own, ..]) => own.segment.0,
            _ => random_number()?,
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
            job: JobId(job),
            name: self.job_name(),
            programs: plan.programs.clone(),
            ranks: plan.places.places().iter().zip(program_of).map(rank).collect(),
            hosts,
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
            is_merged: false,
            ignored: start_signals::ignored(),
            serves_groups: self.serves_groups.is_some(),
            takes_hosts: false,
        })
    }

    /// The name of the job: that of its first program's file, if the user gave none.
    fn job_name(&self) -> String {
        let file = self.programs.first().and_then(|program| Path::new(&program.name).file_name());
        let usual = || file.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.name.clone().unwrap_or_else(usual)
    }
}

/// The output of a job, and the file of a detached one.
type OutputPlaces = (JobOutput, Option<DetachedFile>);

/// A job whose hosts are booked in a machine that stays.
struct BookedJob {
    /// The conversation in which they were booked.
    call: MachineCall,
    job: JobId,
    hosts: Vec<BookedHost>,
}

/// The launcher's view of one host.
#[derive(Debug)]
struct HostState {
    number: HostNumber,
    /// Whether nothing more comes from it.
    is_over: bool,
    /// Whether that is because it was lost.
    is_lost: bool,
    /// Bytes of each stream that the launcher has not given credit for.
    owed: [u64; 2],
    /// Whether a process there reads the input.
    reads: bool,
    /// Whether a block of input is on its way there.
    has_block: bool,
}

impl HostState {
    const fn new(number: HostNumber, reads: bool) -> Self {
        Self { number, is_over: false, is_lost: false, owed: [0; 2], reads, has_block: false }
    }
}

/// A running job.
struct Job<'a> {
    launch: &'a Launch,
    programs: &'a [PlannedProgram],
    parts: Parts,
    signals: CaughtSignals,
    conduct: SignalConduct,
    output: JobOutput,
    /// The file of a detached job, which begins.
    detached: Option<DetachedFile>,
    /// The standard input, if it is passed on in blocks.
    origin: Option<Origin>,
    watch: Watch,
    /// The sinks that are watched, since they hold pending output.
    watched_sinks: BTreeSet<usize>,
    record: Option<Record<'a>>,
    /// The job, once its hosts are settled.
    job: Option<JobId>,
    hosts: Vec<HostState>,
    /// The number of each stream of each rank in the output.
    sources: HashMap<(u32, Stream), usize>,
    began: Instant,
    /// When the job is ended, if it has not ended by itself.
    deadline: Option<Instant>,
    question: Option<Question>,
    /// The processes that are started while the job runs.
    starts: Starts,
    /// The events of the parts that have come. Some come again if a daemon is killed.
    heard: Heard,
    /// The daemon that conducts the job was killed, and the next one is awaited.
    returning: Option<Returning>,
    /// The number of times that this has happened.
    returns: u64,
    /// The hosts whose parts tell everything again because of that.
    telling: BTreeSet<HostNumber>,
    /// The wishes of processes that wait for a host to be added.
    waiting_wishes: Vec<WaitingWish>,
    refused: Option<LaunchError>,
    /// The cause of the launch's end before any process was started.
    told: Option<Told>,
    /// The streams that nobody reads, as the hosts know.
    said_broken: [bool; 2],
    /// The function of a thread that is still to be started.
    serves_groups: Option<ServeGroups>,
    is_over: bool,
}

impl<'a> Job<'a> {
    fn new(
        launch: &'a Launch,
        programs: &'a [PlannedProgram],
        parts: Parts,
        (output, detached): OutputPlaces,
        reads_input: bool,
    ) -> Result<Self, LaunchError> {
        let signals = CaughtSignals::catch().map_err(system("catch signals"))?;
        let origin = reads_input.then(|| Origin::new(io::stdin().as_fd())).transpose();
        let began = Instant::now();
        Ok(Job {
            launch,
            programs,
            parts,
            signals,
            conduct: SignalConduct::default(),
            output,
            detached,
            origin: origin.map_err(system("open standard input for the processes"))?,
            watch: Watch::new().map_err(system("watch the processes"))?,
            watched_sinks: BTreeSet::new(),
            record: None,
            job: None,
            hosts: Vec::new(),
            sources: HashMap::new(),
            began,
            deadline: launch.timeout.and_then(|timeout| began.checked_add(timeout)),
            question: None,
            starts: Starts::new(0, 0, false),
            heard: Heard::default(),
            returning: None,
            returns: 0,
            telling: BTreeSet::new(),
            waiting_wishes: Vec::new(),
            refused: None,
            told: None,
            said_broken: [false; 2],
            serves_groups: launch.serves_groups,
            is_over: false,
        })
    }

    fn run(mut self) -> Result<u8, LaunchError> {
        self.see_to_its_end().map_err(system("watch the processes"))?;
        if let Some(error) = self.refused.take() {
            self.parts.end();
            return Err(error);
        }
        let code = match (&self.record, &self.told) {
            (Some(record), _) => {
                let code = record.exit_code();
                record.say_the_end(code, self.began.elapsed(), &mut self.output);
                code
            }
            (None, Some(told)) => 128 + told.signal as u8,
            (None, None) => TIMED_OUT,
        };
        self.write_out().map_err(system("watch the processes"))?;
        let has_lost = self.output.has_lost();
        self.parts.end();
        Ok(if code == 0 && has_lost { LAUNCHER_FAILED } else { code })
    }

    fn see_to_its_end(&mut self) -> io::Result<()> {
        self.watch.set(SIGNALS, &self.signals, EventFlags::IN)?;
        loop {
            self.hear_parts();
            self.move_output();
            if self.is_over {
                return Ok(());
            }
            self.set_interests()?;
            if self.parts.has_report() {
                continue;
            }
            for name in self.watch.wait(self.timeout())? {
                self.handle(name);
            }
            self.look_at_clock();
        }
    }

    fn handle(&mut self, name: u64) {
        match name {
            SIGNALS => self.take_signals(),
            STDIN => self.read_input(),
            PARTS.. => self.parts.ready(name),
            _ => {} // a sink, which is written to in any case
        }
    }

    fn command(&mut self, host: Option<HostNumber>, command: PartCommand) {
        let all = self.hosts.iter().map(|known| known.number);
        for known in all.filter(|known| host.is_none_or(|host| host == *known)) {
            self.heard.ordered(known, &command);
        }
        self.parts.command(host, command);
    }

    fn hear_parts(&mut self) {
        while let Some(report) = self.parts.take_report() {
            self.take_report(report);
        }
        if self.parts.has_ended() && !self.is_over && !self.awaits_daemon() {
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
            // It was waited for before the job began.
            ArbiterReport::Answered(_) => {}
            ArbiterReport::Said(text) => self.output.say(&text),
            ArbiterReport::Refused { exit_code, texts } => {
                self.refuse(LaunchError::Refused { exit_code, text: texts.join("\n") });
            }
            // It was ended before its start, and the order to end it counts.
            ArbiterReport::Settled(_) if self.is_over => {}
            ArbiterReport::Settled(spec) => {
                if let Err(error) = self.settle(*spec) {
                    self.refuse(error);
                }
            }
            ArbiterReport::Event { host, event } => {
                if let Some(place) = self.place_of(host) {
                    self.hear(place, event);
                }
            }
            ArbiterReport::HostAdded { host, outcome } => self.take_added_host(host, outcome),
            ArbiterReport::HostLost { host, why } => self.lose(host, why),
            // What is over needs no end, and its output is still to be written.
            ArbiterReport::EndWanted { .. } if self.is_over => {}
            ArbiterReport::EndWanted { host } => {
                self.react(Told { signal: libc::SIGTERM, host: Some(host) });
            }
            ArbiterReport::CutOff(text) => {
                if let Some(record) = &mut self.record {
                    record.cut_off(text);
                }
            }
        }
    }

    fn refuse(&mut self, error: LaunchError) {
        self.refused = Some(error);
        self.is_over = true;
    }

    /// Takes the hosts as they are: their order, their names, the place of each rank.
    fn settle(&mut self, spec: JobSpec) -> Result<(), LaunchError> {
        if !spec.is_valid() || spec.processes() as usize != self.output.processes() {
            return Err(LaunchError::ArbiterEnded);
        }
        for rank in 0..spec.processes() {
            let host = &spec.hosts[usize::from(spec.ranks[rank as usize].host)].name;
            self.add_sources(rank, spec.processes(), host)?;
        }
        let readers = |place: usize| spec.ranks_on(place).iter().any(|&rank| spec.gets_input(rank));
        let host = |(place, host): (usize, &HostSpec)| HostState::new(host.number, readers(place));
        self.hosts = spec.hosts.iter().enumerate().map(host).collect();
        let streams = if spec.is_merged { 1 } else { 2 };
        let gives_again = self.launch.output_directory.is_none();
        self.starts = Starts::new(spec.processes(), streams, gives_again);
        let names = spec.hosts.iter().map(|host| host.name.clone()).collect();
        let host_of = spec.ranks.iter().map(|rank| usize::from(rank.host)).collect();
        let record = Record::new(self.launch, self.programs, names, host_of);
        record.say_beforehand(&mut self.output);
        (self.record, self.job) = (Some(record), Some(spec.job));
        Ok(())
    }

    /// Adds the output of a process, which is the next one of its number if that is known.
    fn add_sources(&mut self, rank: u32, processes: u32, host: &str) -> Result<(), LaunchError> {
        let process = rank as usize;
        let tag = self.launch.tag.text(rank, processes, host);
        for stream in STREAMS {
            if let Some(&source) = self.sources.get(&(rank, stream)) {
                self.output.renew(source, tag.clone());
                continue;
            }
            let source = match &self.launch.output_directory {
                Some(directory) => {
                    let (name, file) = open_output_file(directory, rank, processes, stream)?;
                    self.output.add_with_file(process, file, name)
                }
                None => self.output.add(process, stream, tag.clone()),
            };
            self.sources.insert((rank, stream), source);
        }
        Ok(())
    }

    fn take_event(&mut self, place: usize, event: PartEvent) {
        match event {
            PartEvent::Happened(happened) => self.take_happened(place, happened),
            PartEvent::Gone { .. } => {} // for the other hosts
            PartEvent::Output { rank, stream, bytes } => {
                self.hosts[place].owed[stream as usize] += bytes.len() as u64;
                if let Some(&source) = self.sources.get(&(rank, stream)) {
                    self.output.feed(source, &bytes, Instant::now());
                }
            }
            PartEvent::OutputEnded { rank, stream } => {
                if let Some(&source) = self.sources.get(&(rank, stream)) {
                    self.output.finish(source);
                }
                self.starts.stream_ended(rank);
            }
            PartEvent::InputTaken => self.hosts[place].has_block = false,
            PartEvent::InputUnread => {
                self.hosts[place].reads = false;
                self.hosts[place].has_block = false;
            }
            PartEvent::StartAsked { request, rank, wish } => {
                self.take_wish(place, request, rank, wish);
            }
            PartEvent::NotAdded { rank, refusal } => {
                let answered = self.starts.refused(rank, refusal);
                self.answer_starts(answered);
                if let Some(record) = &mut self.record {
                    record.take_not_added(rank);
                }
            }
            PartEvent::Joined { rank, process, pid } => {
                let answered = self.starts.joined(rank, process, pid);
                self.answer_starts(answered);
            }
            PartEvent::Places(places) => self.take_places(place, places),
            PartEvent::Said(text) => self.output.say(&text),
            PartEvent::Stands { asked } => self.take_standing(place, asked),
            PartEvent::Over => self.end_host(place),
        }
    }

    fn take_happened(&mut self, place: usize, happened: Happened) {
        if let Happened::Started { .. } = happened
            && let Err(error) = self.serve_groups()
        {
            self.refuse(error);
        }
        let answered = match &happened {
            Happened::Started { rank, pid, .. } => {
                self.starts.started(*rank, *pid);
                None
            }
            Happened::NotStarted { rank, error, again: None } => {
                self.starts.refused(*rank, StartRefusal::System(error.to_string()))
            }
            Happened::Ended { rank, failure, .. } => {
                self.starts.ended(*rank, end_in_words(*failure))
            }
            _ => None,
        };
        self.answer_starts(answered);
        if let Some(record) = &mut self.record {
            record.take(place, happened, &mut self.output);
        }
        if let Err(error) = self.leave_starter() {
            self.refuse(error);
        }
    }

    /// Starts the thread that serves groups, if there is to be one: a launcher that has started a process lets guests
    /// join as well. The thread ends with the launcher at the latest.
    fn serve_groups(&mut self) -> Result<(), LaunchError> {
        let Some((serve, job)) = self.serves_groups.take().zip(self.job) else { return Ok(()) };
        let work = move || {
            // A job that has ended has no groups to serve.
            if let Err(why) = serve(&job.to_string())
                && is_listened_to(&Address::of_job(SegmentId(job.0)))
            {
                complain(format_args!("landeck: the launcher serves no groups: {why}"));
            }
        };
        let builder = thread::Builder::new().name("landeck-groups".to_owned());
        // It inherits the blocked signals, which belong to the launcher's loop.
        builder.spawn(work).map_err(system("start a thread"))?;
        Ok(())
    }

    /// The place of a host in the list: the last one, as a host that was lost may have been added again.
    fn place_of(&self, host: HostNumber) -> Option<usize> {
        self.hosts.iter().rposition(|known| known.number == host)
    }

    fn lose(&mut self, host: HostNumber, why: String) {
        let Some(place) = self.place_of(host).filter(|&place| !self.hosts[place].is_over) else {
            return;
        };
        self.hosts[place].is_lost = true;
        if let Some(record) = &mut self.record {
            record.take_lost_host(place, &why, &mut self.output);
            let lost = StartRefusal::HostLost(record.host(place).to_owned());
            let answered = self.starts.lose(place, &lost);
            self.answer_starts(answered);
        }
        self.end_host(place);
    }

    /// Nothing more comes from a host. A block of input or a question on its way there has no answer.
    fn end_host(&mut self, place: usize) {
        self.hosts[place].is_over = true;
        self.hosts[place].has_block = false;
        let answered = self.starts.lose(place, &StartRefusal::Ending);
        self.answer_starts(answered);
        let asked = self.question.as_ref().map(|question| question.places[place].is_none());
        if asked == Some(true) {
            self.take_places(place, Vec::new());
        }
        self.is_over |= self.hosts.iter().all(|host| host.is_over);
    }

    fn take_signals(&mut self) {
        while let Some(CaughtSignal { number, is_by_command }) = self.signals.next() {
            // The end of a terminal is no end of a detached job.
            if number != libc::SIGHUP || !self.launch.is_detached {
                self.react(Told { signal: number, host: is_by_command.then(own_name) });
            }
        }
    }

    /// Reacts to a signal, or to a command that stands for one.
    fn react(&mut self, told: Told) {
        let signal = told.signal;
        let reaction = self.conduct.react(signal, Instant::now());
        let ends = reaction != Reaction::Suspend
            && matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT);
        let was_over = self.is_over;
        if ends {
            match &mut self.record {
                Some(record) => record.take_told(told),
                None => {
                    // Nothing runs yet, and nothing will.
                    if told.host.is_some() {
                        let cause = told.cause();
                        self.output.say(&format!("The job was ended before its start by {cause}."));
                    }
                    self.told.get_or_insert(told);
                    self.is_over = true;
                }
            }
        }
        if was_over && ends {
            // Only output that nobody reads is left.
            return self.output.give_up();
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
        let is_free = self.returning.is_none() && self.hosts.iter().all(|host| !host.has_block);
        is_free && self.hosts.iter().any(|host| host.reads && !host.is_over)
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        let overdue = self.starts.overdue(now);
        self.answer_starts(overdue);
        self.end_overdue_wishes(now);
        self.try_return(now);
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.ask_for_places();
        }
        if self.question.as_ref().is_some_and(|question| now >= question.until) {
            self.end_for_time();
        }
    }

    /// Writes output, and gives credit for what was written.
    fn move_output(&mut self) {
        self.output.show_parts(Instant::now());
        self.output.write();
        for stream in STREAMS {
            // Before the hosts are settled, there is no part that could close anything.
            let is_broken = self.record.is_some()
                && self.launch.output_directory.is_none()
                && self.output.is_broken(stream);
            if is_broken && !std::mem::replace(&mut self.said_broken[stream as usize], true) {
                self.command(None, PartCommand::CloseOutput(stream));
            }
            if self.output.has_room(stream) {
                self.give_credit(stream);
            }
        }
    }

    fn give_credit(&mut self, stream: Stream) {
        for place in 0..self.hosts.len() {
            let host = &mut self.hosts[place];
            let (number, bytes) = (host.number, std::mem::take(&mut host.owed[stream as usize]));
            if bytes > 0 {
                self.command(Some(number), PartCommand::Credit { stream, bytes });
            }
        }
    }

    /// Watches the descriptors that can make progress now.
    fn set_interests(&mut self) -> io::Result<()> {
        self.watch_sinks()?;
        self.parts.watch(&mut self.watch)?;
        let wants_input = self.wants_input();
        let Some(origin) = &self.origin else { return Ok(()) };
        let is_wanted = wants_input && origin.wanted().is_some();
        let flags = if is_wanted { EventFlags::IN } else { EventFlags::empty() };
        self.watch.set(STDIN, &origin.source(), flags)
    }

    /// Watches the sinks that hold pending output.
    fn watch_sinks(&mut self) -> io::Result<()> {
        for sink in &self.watched_sinks - self.output.pending() {
            self.watch.clear(SINKS + sink as u64, &self.output.target(sink));
        }
        for &sink in self.output.pending() {
            self.watch.set(SINKS + sink as u64, &self.output.target(sink), EventFlags::OUT)?;
        }
        self.watched_sinks.clone_from(self.output.pending());
        Ok(())
    }

    fn timeout(&self) -> Option<Duration> {
        let question = self.question.as_ref().map(|question| question.until);
        let wishes = self.waiting_wishes.iter().map(WaitingWish::due).min();
        let returning = self.returning.as_ref().map(Returning::due);
        let starts = self.starts.next_due();
        let due = [self.output.part_due(), self.deadline, question, starts, wishes, returning];
        let until = due.into_iter().flatten().min();
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Writes the messages of the end. No time limit holds any more.
    fn write_out(&mut self) -> io::Result<()> {
        self.is_over = true;
        self.parts.unwatch(&mut self.watch);
        if let Some(origin) = &self.origin {
            self.watch.clear(STDIN, &origin.source());
        }
        loop {
            self.output.show_parts(Instant::now());
            self.output.write();
            if self.output.pending().is_empty() {
                return Ok(());
            }
            self.watch_sinks()?;
            let until = self.output.part_due();
            let time = until.map(|until| until.saturating_duration_since(Instant::now()));
            if self.watch.wait(time)?.contains(&SIGNALS) {
                self.take_signals();
            }
        }
    }
}

fn random_number() -> Result<u64, LaunchError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| system("get random numbers")(error.into()))?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ProgramRequest;

    #[test]
    fn a_rank_that_does_not_exist_gets_no_input() {
        let program = ProgramRequest { processes: Some(2), ..ProgramRequest::new("true") };
        let launch = Launch { stdin: InputTo::Rank(2), ..Launch::new(vec![program]) };
        let error = launch.run().unwrap_err();
        assert_eq!(error.exit_code(), LAUNCHER_FAILED);
        assert!(error.to_string().starts_with("--stdin 2: there is no such rank"), "{error}");
    }
}
