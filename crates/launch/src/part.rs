//! The part of a job on one host: its segment, its processes, their streams.
//!
//! The loop that drives a part belongs to the launcher, if its host has the whole job, or else to a daemon. The part says
//! which descriptors it watches, is told which are ready, and queues events. What it reads from the processes is bounded
//! by the launcher's credit for each of the two streams.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use landeck_host::budget::{Limits, fit_segment, make_room_for_descriptors};
use landeck_host::cpu_set::CpuSet;
use landeck_host::environment::{Identity, Node};
use landeck_host::memory_groups::MemoryGroups;
use landeck_host::placement::{CpuPlacement, Reason};
use landeck_host::process::{Image, Streams};
use landeck_host::standard_output;
use landeck_joining::index;
use landeck_memory::system as clock;
use landeck_memory::{JobName, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_protocols::door::StartRefusal;
use landeck_wire::word::ProcessEnd;
use landeck_wire::{HostNumber, Incarnation, ProcessId, SegmentId, Slot};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::events::EventTranslator;
use crate::guardian::server::GuardianServer;
use crate::guardian::{
    self, Command, Event, Guardian, GuardianError, GuardianOrder, Refusal, Start,
};
use crate::input::Readers;
use crate::messages::{LISTED_MAX, PartCommand, PartEvent, PartRefusal, WINDOW_BYTES, Whereabouts};
use crate::output::{Stream, pipe};
use crate::plan::{
    PlannedProgram, binding_text, caches_of, check_directory, placement_here, threads_of,
};
use crate::program;
use crate::request::{LaunchError, system};
use crate::spec::{HostSpec, JobSpec};
use crate::stacks::{read_stacks, search_stacks};
use crate::terminal;

mod adding;
mod keeping;
mod tables;

use adding::Adding;
pub use keeping::KeptPipe;
use keeping::Unkept;

/// The tokens of a part's descriptors.
const GUARDIAN: u32 = 0;
const STACKS: u32 = 1;
const SOURCES: u32 = 1 << 16;
const READERS: u32 = 1 << 24;
/// The descriptors of a daemon apart from those for processes. When strangers take the rest, it accepts no more of them.
const OWN_DESCRIPTORS: u64 = 96;
/// The number of bytes that are read from a stream at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// The launcher's own streams, as far as processes of its host get them instead of pipes.
#[derive(Debug, Default)]
pub(crate) struct OwnStreams {
    /// The standard input, if one process reads it and it is no terminal. No byte of it is touched then.
    pub(crate) input: Option<OwnedFd>,
    /// The streams in which a person sees the output, by their numbers: each process gets a terminal like that.
    pub(crate) terminals: [Option<OwnedFd>; 2],
}

/// The loop that watches a part's descriptors. A token is the part's name for a descriptor.
pub trait DescriptorWatch {
    /// Watches a descriptor from now on.
    ///
    /// # Errors
    /// The kernel's error.
    fn watch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()>;

    /// Watches a watched descriptor for something else.
    ///
    /// # Errors
    /// The kernel's error.
    fn rewatch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()>;

    /// Watches a descriptor no longer; it may be about to close.
    fn unwatch(&mut self, what: BorrowedFd<'_>);
}

/// A job's part on this host.
#[derive(Debug)]
pub struct HostPart {
    spec: JobSpec,
    /// This host's place in the list of hosts.
    place: usize,
    /// The ranks here, by slot.
    ranks: Vec<u32>,
    translator: EventTranslator,
    /// The order for the guardian, until it is started.
    order: Option<GuardianOrder>,
    /// The text about bindings, until they are started.
    bindings: Option<String>,
    guardian: Option<Guardian>,
    own: OwnStreams,
    sources: Vec<Source>,
    readers: Readers,
    /// Whether a block of input is on its way to the processes.
    has_block: bool,
    said_unread: bool,
    /// The bytes of each stream that the launcher still accepts.
    credit: [u64; 2],
    stacks: Option<StackSearch>,
    events: VecDeque<PartEvent>,
    /// The PIDs of the processes that run, by slot.
    running: HashMap<u32, u32>,
    stopped: HashSet<u32>,
    watched: HashMap<u32, EventFlags>,
    /// The streams that are watched for output; `None` before any is. There are many sources, and most turns of the loop
    /// concern none.
    streams_watched: Option<[bool; 2]>,
    /// The first source of each rank.
    first_sources: HashMap<u32, usize>,
    /// Descriptors that close as soon as nobody watches them.
    closing: Vec<(u32, OwnedFd)>,
    unkept: Unkept,
    /// The processes that are to be started, whose streams are open.
    adding: Vec<Adding>,
    /// The number of the question for which everything is told again; zero if this is for another daemon of the part.
    asked_again: u64,
    all_ended: bool,
    is_over: bool,
}

/// A stream of a process.
#[derive(Debug)]
struct Source {
    rank: u32,
    stream: Stream,
    /// The reading end; `None` once it has ended.
    pipe: Option<OwnedFd>,
}

/// A thread that asks a debugger for stacks.
#[derive(Debug)]
struct StackSearch {
    pipe: OwnedFd,
    text: Vec<u8>,
    places: Vec<Whereabouts>,
}

/// Checks whether a host can take its part in a job: its programs, directories and limits.
///
/// # Errors
/// The reason why it cannot.
pub fn check(spec: &JobSpec, host: HostNumber) -> Result<(), PartRefusal> {
    check_part(spec, host).map_err(|error| PartRefusal::from(&error))
}

impl From<&LaunchError> for PartRefusal {
    fn from(error: &LaunchError) -> PartRefusal {
        PartRefusal { exit_code: error.exit_code(), text: error.to_string() }
    }
}

fn check_part(spec: &JobSpec, host: HostNumber) -> Result<(), LaunchError> {
    let (place, ranks) = own_ranks(spec, host)?;
    for program in own_programs(spec, &ranks) {
        program::find(program.file.as_os_str(), None, OsStr::new(""))?;
        check_directory(&program.directory)?;
    }
    let processes = ranks.len() as u32;
    let limits = Limits::of_this_process(&MemoryGroups::of_this_process());
    fit_segment(segment_plan(spec, place, &ranks), limits)?;
    let needed = u64::from(processes) * 6 + OWN_DESCRIPTORS;
    let hint = ". A machine that stays keeps the limit with which it was started";
    make_room_for_descriptors(processes, needed, "the daemon (landeckd)", hint)?;
    place_ranks(spec, place, &ranks)?;
    Ok(())
}

/// The place of this host, and its ranks by slot.
fn own_ranks(spec: &JobSpec, host: HostNumber) -> Result<(usize, Vec<u32>), LaunchError> {
    let place = spec.place_of(host).filter(|_| spec.is_valid());
    let place = place.ok_or_else(|| {
        system("understand its part of the job")(io::ErrorKind::InvalidData.into())
    })?;
    Ok((place, spec.ranks_on(place)))
}

/// The programs of these ranks, each once.
fn own_programs<'a>(spec: &'a JobSpec, ranks: &[u32]) -> Vec<&'a PlannedProgram> {
    let mut places: Vec<u16> =
        ranks.iter().map(|&rank| spec.ranks[rank as usize].program).collect();
    places.sort_unstable();
    places.dedup();
    places.iter().map(|&place| &spec.programs[usize::from(place)]).collect()
}

fn place_ranks(spec: &JobSpec, place: usize, ranks: &[u32]) -> Result<CpuPlacement, LaunchError> {
    let shared = spec.shares_processors.then_some(Reason::Shared);
    let free = shared.or_else(|| threads_of(own_programs(spec, ranks)));
    let booked = &spec.hosts[place].cores;
    Ok(placement_here(booked, ranks.len() as u32, spec.map_by, spec.bind_to, free)?)
}

impl HostPart {
    /// The part of a daemon's host. Makes the segment and everything that the processes need, and starts nothing.
    ///
    /// # Errors
    /// The reason why the part is not possible.
    pub fn prepare(mut spec: JobSpec, host: HostNumber) -> Result<HostPart, PartRefusal> {
        for program in &mut spec.programs {
            program.environment = program.environment.clone().with_own(std::env::vars_os());
        }
        let placed = || {
            let (place, ranks) = own_ranks(&spec, host)?;
            place_ranks(&spec, place, &ranks)
        };
        placed()
            .and_then(|placement| HostPart::new(spec, host, &placement, OwnStreams::default()))
            .map_err(|error| PartRefusal::from(&error))
    }

    /// The whole job, on the launcher's host. Makes everything, and starts nothing.
    ///
    /// # Errors
    /// The reason why the job is not possible.
    pub(crate) fn of_launcher(
        spec: JobSpec,
        placement: &CpuPlacement,
        own: OwnStreams,
    ) -> Result<HostPart, LaunchError> {
        HostPart::new(spec, HostNumber::NONE, placement, own)
    }

    fn new(
        spec: JobSpec,
        host: HostNumber,
        placement: &CpuPlacement,
        own: OwnStreams,
    ) -> Result<HostPart, LaunchError> {
        let (place, ranks) = own_ranks(&spec, host)?;
        let groups = MemoryGroups::of_this_process();
        let segment = make_segment(&spec, place, &ranks, placement, &groups)?;
        let mut part =
            HostPart { own, ..HostPart::of_segment(spec, (place, ranks), segment, groups) };
        part.order = Some(part.make_order(placement)?);
        if part.spec.report_bindings {
            part.bindings = Some(part.binding_text(placement));
        }
        Ok(part)
    }

    /// A part with a segment, where nothing is open and nothing has happened. These ranks are here, by slot.
    fn of_segment(
        spec: JobSpec,
        (place, ranks): (usize, Vec<u32>),
        segment: Segment,
        groups: MemoryGroups,
    ) -> HostPart {
        HostPart {
            place,
            translator: EventTranslator::new(segment, &ranks, groups),
            ranks,
            spec,
            order: None,
            bindings: None,
            guardian: None,
            own: OwnStreams::default(),
            sources: Vec::new(),
            readers: Readers::default(),
            has_block: false,
            said_unread: false,
            credit: [WINDOW_BYTES; 2],
            stacks: None,
            events: VecDeque::new(),
            running: HashMap::new(),
            stopped: HashSet::new(),
            watched: HashMap::new(),
            streams_watched: None,
            first_sources: HashMap::new(),
            closing: Vec::new(),
            unkept: Unkept::default(),
            adding: Vec::new(),
            asked_again: 0,
            all_ended: false,
            is_over: false,
        }
    }

    /// Has the guardian forked, which starts the processes: by a daemon's server, or by this process, which must have one
    /// thread.
    ///
    /// # Errors
    /// The reason why there is no guardian.
    pub fn start(&mut self, server: Option<&GuardianServer>) -> Result<(), GuardianError> {
        let Some(order) = self.order.take() else { return Ok(()) };
        // Before this, the launcher does not know the hosts.
        self.events.extend(self.bindings.take().map(PartEvent::Said));
        // The processes' ends of the pipes are closed here with the order.
        self.guardian = Some(match server {
            Some(server) => server.start(self.segment(), &order)?,
            None => guardian::fork(self.segment(), order)?,
        });
        Ok(())
    }

    /// The segment.
    pub fn segment(&self) -> &Segment {
        self.translator.segment()
    }

    /// The processes on other hosts, in the order of the far records: the ranks, then those that guests there will be.
    pub fn far(&self) -> Vec<ProcessId> {
        let ranks = self.spec.ranks_elsewhere(self.place).map(|rank| self.spec.process_of(rank));
        let guests = self.spec.guests_elsewhere(self.place).into_iter().map(|(_, guest)| guest);
        ranks.chain(guests).collect()
    }

    /// Gives the guests of a host that is added to the job their places among the far records. Returns them; what this
    /// host knows of the others does not change.
    pub fn add_host(&mut self, host: HostSpec) -> Vec<ProcessId> {
        let first = self.far().len() as u32;
        let (place, number) = (self.spec.hosts.len(), host.number.0);
        self.spec.hosts.push(host);
        self.segment().set_host_site(number, self.spec.site_number(place));
        let guests = self.spec.guests_on(place);
        tables::write_guests(self.segment(), first, &guests);
        guests.into_iter().map(|(_, guest)| guest).collect()
    }

    /// The processes that a host that is added to the job must learn of, each with whether it is a guest: those that have or
    /// had slots for guests here, and ranks that have left and come back.
    pub fn guests_here(&self) -> Vec<(ProcessId, bool)> {
        let segment = self.segment();
        let plan = segment.plan();
        let guest = |slot: u32| {
            let record = segment.slot_record(slot);
            let (host, incarnation) = (SegmentId(plan.host), Incarnation(record.incarnation));
            let process = ProcessId { segment: host, slot: Slot(slot), incarnation };
            let is_rank = slot < plan.processes;
            let is_known = record.state == SlotState::Free || is_rank && record.incarnation <= 1;
            (!is_known).then_some((process, !is_rank && record.replaces.is_none()))
        };
        (0..plan.slots()).filter_map(guest).collect()
    }

    /// Whether its guardian lets processes join.
    pub fn is_present(&self) -> bool {
        self.guardian.as_ref().is_some_and(|guardian| guardian.pid().is_some())
    }

    /// Whether nothing more will come from this part.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether [`HostPart::take_event`] has an event.
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the next event.
    pub fn take_event(&mut self) -> Option<PartEvent> {
        self.events.pop_front()
    }

    /// Handles a descriptor that is ready.
    pub fn ready(&mut self, token: u32) {
        match token {
            GUARDIAN => self.hear_guardian(),
            STACKS => self.read_stacks(),
            READERS.. => self.pass_input_on(None),
            SOURCES.. => drop(self.read((token - SOURCES) as usize)),
            _ => {}
        }
    }

    /// Obeys a command of the launcher.
    pub fn command(&mut self, command: PartCommand) {
        match command {
            PartCommand::Signal(signal) => {
                if signal == libc::SIGWINCH {
                    self.resize_terminals();
                }
                self.tell_guardian(Command::Signal(signal));
            }
            PartCommand::End { grace } => self.tell_guardian(Command::End { grace }),
            PartCommand::Kill => self.tell_guardian(Command::Kill),
            PartCommand::Release => self.tell_guardian(Command::Release),
            PartCommand::Input(block) => self.pass_input_on(Some(block)),
            PartCommand::InputEnd => {
                self.readers.end();
                self.close_readers();
            }
            PartCommand::Credit { stream, bytes } => {
                let credit = &mut self.credit[stream as usize];
                *credit = credit.saturating_add(bytes);
            }
            PartCommand::CloseOutput(stream) => self.close_output(stream),
            PartCommand::Start { rank, like, wish } => {
                let streams = self.open_added(rank);
                self.adding.push(Adding { rank, like, wish, streams });
            }
            PartCommand::AnswerStart { request, answer } => {
                self.tell_guardian(Command::AnswerStart { request, answer });
            }
            PartCommand::Places { stacks } => self.say_places(stacks),
        }
    }

    /// Starts the processes that are to be added, reads what is left of the output once all processes have ended, and watches
    /// the descriptors that can make progress now. Call this after everything else, before the loop waits.
    ///
    /// # Errors
    /// The kernel's error: a descriptor cannot be watched.
    pub fn settle(&mut self, watch: &mut dyn DescriptorWatch) -> io::Result<()> {
        for adding in std::mem::take(&mut self.adding) {
            self.add_process(adding);
        }
        self.drain();
        for (token, descriptor) in self.closing.drain(..) {
            self.unkept.add(token);
            if self.watched.remove(&token).is_some() {
                watch.unwatch(descriptor.as_fd());
            }
        }
        let mut watched = std::mem::take(&mut self.watched);
        let changed = self.change_watch(&mut watched, watch);
        self.watched = watched;
        if changed.is_ok() {
            self.streams_watched = Some(self.may_send());
        }
        changed
    }

    fn change_watch(
        &self,
        watched: &mut HashMap<u32, EventFlags>,
        watch: &mut dyn DescriptorWatch,
    ) -> io::Result<()> {
        for (token, descriptor, wanted) in self.interests() {
            match watched.get(&token).copied() {
                present if present.unwrap_or(EventFlags::empty()) == wanted => {}
                Some(_) if wanted.is_empty() => {
                    watch.unwatch(descriptor);
                    watched.remove(&token);
                }
                Some(_) => {
                    watch.rewatch(descriptor, token, wanted)?;
                    watched.insert(token, wanted);
                }
                None => {
                    watch.watch(descriptor, token, wanted)?;
                    watched.insert(token, wanted);
                }
            }
        }
        Ok(())
    }

    /// The open descriptors with what they are to be watched for; without the sources if nothing changes for them.
    fn interests(&self) -> Vec<(u32, BorrowedFd<'_>, EventFlags)> {
        let when = |wanted, flags| if wanted { flags } else { EventFlags::empty() };
        let mut all = Vec::new();
        if let Some(guardian) = &self.guardian {
            let flags = when(!self.all_ended, EventFlags::IN);
            all.push((GUARDIAN, guardian.descriptor(), flags));
        }
        if let Some(search) = &self.stacks {
            all.push((STACKS, search.pipe.as_fd(), EventFlags::IN));
        }
        let may_send = self.may_send();
        let is_new = self.streams_watched != Some(may_send);
        for (number, source) in (0..).zip(&self.sources).filter(|_| is_new) {
            if let Some(pipe) = &source.pipe {
                let flags = when(may_send[source.stream as usize], EventFlags::IN);
                all.push((SOURCES + number, pipe.as_fd(), flags));
            }
        }
        for (number, pipe, is_waiting) in self.readers.pipes() {
            all.push((READERS + number as u32, pipe, when(is_waiting, EventFlags::OUT)));
        }
        all
    }

    /// Whether the launcher accepts more of each stream.
    fn may_send(&self) -> [bool; 2] {
        self.credit.map(|credit| credit > 0)
    }

    /// The order for the guardian, with the open streams of all processes.
    fn make_order(&mut self, placement: &CpuPlacement) -> Result<GuardianOrder, LaunchError> {
        let fail = system("open pipes for the processes");
        let job = SegmentId(self.segment().plan().host).to_string();
        let first = self.spec.first_address.clone();
        let node = Node { number: self.place as u32, first: &first };
        let nothing = OwnedFd::from(File::open("/dev/null").map_err(&fail)?);
        let (mut starts, mut streams) = (Vec::new(), Vec::new());
        for (slot, rank) in (0..).zip(self.ranks.clone()) {
            let opened = self.open_streams(rank, &nothing).map_err(&fail)?;
            let stdout_name = standard_output::name_of(&opened[1]);
            let identity = Identity {
                rank: Some(rank),
                processes: self.spec.processes(),
                slot,
                local_processes: self.ranks.len() as u32,
                job: &job,
                stdout: stdout_name.as_deref(),
                node: self.spec.has_machine().then_some(node),
            };
            let program = &self.spec.programs[usize::from(self.spec.ranks[rank as usize].program)];
            let cpus = placement.cpus[slot as usize].clone();
            starts.push(Start { slot, image: image_of(program, identity, cpus) });
            streams.push(opened);
        }
        let JobSpec { on_failure, grace, .. } = self.spec;
        let (is_held, ignored) = (starts.is_empty(), self.spec.ignored.clone());
        Ok(GuardianOrder { starts, streams, is_held, on_failure, grace, ignored })
    }

    /// Opens the streams of a process, and keeps the other ends.
    fn open_streams(&mut self, rank: u32, nothing: &OwnedFd) -> io::Result<Streams> {
        let stdin = match &self.own.input {
            _ if !self.spec.gets_input(rank) => nothing.try_clone()?,
            Some(input) => input.try_clone()?,
            None => {
                let (number, pipe) = self.readers.add()?;
                self.unkept.add(READERS + number as u32);
                pipe
            }
        };
        let [stdout, stderr] = self.open_outputs(rank)?;
        Ok([stdin, stdout, stderr])
    }

    /// Opens both output streams of a process, which are one if they go to one place.
    fn open_outputs(&mut self, rank: u32) -> io::Result<[OwnedFd; 2]> {
        let stdout = self.add_source(rank, Stream::Output)?;
        let stderr = match self.spec.is_merged {
            true => stdout.try_clone()?,
            false => self.add_source(rank, Stream::Error)?,
        };
        Ok([stdout, stderr])
    }

    /// Opens an output stream of a process, a terminal or a pipe, and keeps its reading end.
    fn add_source(&mut self, rank: u32, stream: Stream) -> io::Result<OwnedFd> {
        let (reader, writer) = match &self.own.terminals[stream as usize] {
            Some(like) => terminal::open(like.as_fd()).or_else(|_| pipe())?,
            None => pipe()?,
        };
        rustix::io::ioctl_fionbio(&reader, true)?;
        let first = *self.first_sources.entry(rank).or_insert(self.sources.len());
        let source = Source { rank, stream, pipe: Some(reader) };
        // An added process takes the places of the one that had its number before.
        let mut before = self.sources[first..].iter_mut().take_while(|it| it.rank == rank);
        match before.find(|it| it.stream == stream) {
            Some(before) => *before = source,
            None => self.sources.push(source),
        }
        let is_its = |it: &Source| (it.rank, it.stream) == (rank, stream);
        let number = first + self.sources[first..].iter().position(is_its).unwrap_or(0);
        self.unkept.add(SOURCES + number as u32);
        self.streams_watched = None;
        Ok(writer)
    }

    /// Gives the processes' terminals the present size of the launcher's.
    fn resize_terminals(&self) {
        for source in &self.sources {
            let like = self.own.terminals[source.stream as usize].as_ref();
            if let Some((pipe, like)) = source.pipe.as_ref().zip(like) {
                terminal::resize(pipe, like.as_fd());
            }
        }
    }

    fn binding_text(&self, placement: &CpuPlacement) -> String {
        let host = &self.spec.hosts[self.place].name;
        let (before, on_host) = match self.spec.has_machine() {
            true => (format!("Host {host}: "), format!(" on {host}")),
            false => (String::new(), String::new()),
        };
        let mut text = format!("{before}{}\n", binding_text(placement));
        for (rank, cpus) in self.ranks.iter().zip(&placement.cpus) {
            if let Some(cpus) = cpus {
                text += &format!("rank {rank}{on_host} is bound to {}\n", cpus.in_words());
            }
        }
        text
    }

    fn tell_guardian(&mut self, command: Command) {
        // If it cannot be told, it has ended or will; either is an event of its own.
        let told = self.guardian.as_mut().map(|guardian| guardian.send(command));
        if let Some(Err(error)) = told {
            self.events.push_back(PartEvent::Said(format!("landeck: {error}")));
        }
    }

    fn hear_guardian(&mut self) {
        while let Some(guardian) = &mut self.guardian {
            match guardian.next_event() {
                Ok(Some(event)) => self.take_guardian_event(event),
                Ok(None) => return,
                Err(error) => {
                    self.events.push_back(PartEvent::Said(format!("landeck: {error}")));
                    return self.take_guardian_event(Event::GuardianGone);
                }
            }
        }
    }

    /// Takes what the guardian reports. What has happened is told before the ends of processes: if it ends the job, the
    /// word of that comes first, and no call elsewhere fails because of a process that ended with its job.
    fn take_guardian_event(&mut self, event: Event) {
        let mut ended = Vec::new();
        match event {
            Event::Started { slot, pid, .. } => {
                self.running.insert(slot, pid);
                self.stopped.remove(&slot);
            }
            Event::NotStarted { slot, again: None, .. } => {
                ended.push((slot, 0, SlotRecord::UNKNOWN_STATUS));
            }
            Event::NotStarted { .. } => {}
            Event::Ended { slot, pid, status, .. } => {
                self.running.remove(&slot);
                self.read_rest(slot);
                ended.push((slot, pid, status));
            }
            Event::Stopped { slot } => drop(self.stopped.insert(slot)),
            Event::Continued { slot } => drop(self.stopped.remove(&slot)),
            Event::GuestAborted { .. } => {}
            Event::StartAsked { request, wish } => {
                let rank = self.translator.rank_of(wish.asker.slot.0);
                return self.events.push_back(PartEvent::StartAsked { request, rank, wish });
            }
            Event::NotAdded { rank, why } => {
                let refusal = match why {
                    Refusal::Ending => StartRefusal::Ending,
                    Refusal::Full | Refusal::NoSuchSlot | Refusal::Taken => StartRefusal::NoSlot,
                };
                return self.events.push_back(PartEvent::NotAdded { rank, refusal });
            }
            Event::Joined { slot } => self.tell_joined(slot),
            Event::AllTold => {
                return self.events.push_back(PartEvent::Stands { asked: self.asked_again });
            }
            Event::AllEnded => self.all_ended = true,
            Event::GuardianGone => {
                self.all_ended = true;
                index::forget(SegmentId(self.segment().plan().host));
                let killed = std::mem::take(&mut self.running).into_iter();
                ended.extend(killed.map(|(slot, pid)| (slot, pid, libc::SIGKILL)));
            }
        }
        let happened = self.translator.understand(event);
        self.events.extend(happened.map(PartEvent::Happened));
        for (slot, pid, status) in ended {
            self.tell_end(slot, pid, status);
        }
    }

    /// Queues the end of the process of a slot for all hosts. If another one has the slot by now, they know it.
    fn tell_end(&mut self, slot: u32, pid: u32, status: i32) {
        let record = self.segment().slot_record(slot);
        if !record.state.is_gone() && record.pid != pid {
            return;
        }
        let end = match record.state {
            SlotState::Departed => ProcessEnd::Left,
            _ => ProcessEnd::Died { pid, status },
        };
        let host = SegmentId(self.segment().plan().host);
        let incarnation = Incarnation(record.incarnation.max(1));
        let process = ProcessId { segment: host, slot: Slot(slot), incarnation };
        self.events.push_back(PartEvent::Gone { process, end });
    }

    /// Reads once from a stream; returns whether there may be more.
    fn read(&mut self, number: usize) -> bool {
        let Some(source) = self.sources.get_mut(number) else { return false };
        let Some(pipe) = &source.pipe else { return false };
        let (rank, stream) = (source.rank, source.stream);
        let credit = &mut self.credit[stream as usize];
        let most = usize::try_from(*credit).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        if most == 0 {
            return false;
        }
        let mut bytes = vec![0; most];
        match rustix::io::read(pipe, &mut bytes) {
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Ok(0) | Err(_) => {
                self.close_source(number);
                false
            }
            Ok(count) => {
                bytes.truncate(count);
                *credit -= count as u64;
                self.events.push_back(PartEvent::Output { rank, stream, bytes });
                true
            }
        }
    }

    /// Reads what is left in the pipes of a process that has ended.
    fn read_rest(&mut self, slot: u32) {
        let Some(rank) = self.translator.rank_of(slot) else { return };
        let first = self.first_sources.get(&rank).copied().unwrap_or(self.sources.len());
        let its = self.sources[first..].iter().take_while(|source| source.rank == rank).count();
        for number in first..first + its {
            // A pipe of up to 1 MiB holds no more; other processes wait meanwhile.
            for _ in 0..16 {
                if !self.read(number) {
                    break;
                }
            }
        }
    }

    fn close_source(&mut self, number: usize) {
        let source = &mut self.sources[number];
        if let Some(pipe) = source.pipe.take() {
            self.closing.push((SOURCES + number as u32, pipe));
            let (rank, stream) = (source.rank, source.stream);
            self.events.push_back(PartEvent::OutputEnded { rank, stream });
        }
    }

    /// Closes the pipes of a stream that nobody reads, so that the processes notice it.
    fn close_output(&mut self, stream: Stream) {
        for number in 0..self.sources.len() {
            if self.sources[number].stream == stream || self.spec.is_merged {
                self.close_source(number);
            }
        }
    }

    /// Reads what is left of the output once all processes have ended. A pipe that something outside the job still
    /// holds is not waited for.
    fn drain(&mut self) {
        if !self.all_ended || self.is_over || self.stacks.is_some() {
            return;
        }
        for number in 0..self.sources.len() {
            while self.read(number) {}
            if self.may_send()[self.sources[number].stream as usize] {
                self.close_source(number);
            }
        }
        if self.sources.iter().all(|source| source.pipe.is_none()) {
            self.is_over = true;
            self.readers.end();
            self.close_readers();
            self.events.push_back(PartEvent::Over);
        }
    }

    /// Writes input to the processes: a new block, or more of the last one.
    fn pass_input_on(&mut self, block: Option<Vec<u8>>) {
        match block {
            Some(block) => {
                self.has_block = true;
                self.readers.give(block);
            }
            None => self.readers.write(),
        }
        self.close_readers();
        if self.readers.is_unread() && !self.said_unread {
            self.said_unread = true;
            self.events.push_back(PartEvent::InputUnread);
        }
        if self.has_block && self.readers.is_idle() {
            self.has_block = false;
            self.events.push_back(PartEvent::InputTaken);
        }
    }

    fn close_readers(&mut self) {
        for (number, pipe) in self.readers.take_ended() {
            self.closing.push((READERS + number as u32, pipe));
        }
    }

    /// Says where the processes that run are, with their stacks if asked.
    fn say_places(&mut self, with_stacks: bool) {
        let rank_of = |&slot: &u32| (self.translator.rank_of(slot).unwrap_or(u32::MAX), slot);
        let mut slots: Vec<(u32, u32)> = self.running.keys().map(rank_of).collect();
        slots.sort_unstable();
        slots.truncate(LISTED_MAX);
        let place_of = |&(rank, slot): &(u32, u32)| Whereabouts {
            rank,
            pid: self.segment().slot_record(slot).pid,
            wait: self.translator.present_place(slot, self.stopped.contains(&slot)),
            stacks: String::new(),
        };
        let places: Vec<Whereabouts> = slots.iter().map(place_of).collect();
        let pids = places.iter().map(|place| place.pid).collect();
        // While one search goes on, a second question gets no stacks.
        match (with_stacks && self.stacks.is_none()).then(|| search_stacks(pids)) {
            Some(Ok(pipe)) => self.stacks = Some(StackSearch { pipe, text: Vec::new(), places }),
            Some(Err(_)) | None => self.events.push_back(PartEvent::Places(places)),
        }
    }

    fn read_stacks(&mut self) {
        let Some(search) = &mut self.stacks else { return };
        let mut bytes = [0; BLOCK_BYTES];
        match rustix::io::read(&search.pipe, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(count @ 1..) => search.text.extend_from_slice(&bytes[..count]),
            Ok(0) | Err(_) => {
                if let Some(StackSearch { pipe, text, mut places }) = self.stacks.take() {
                    self.closing.push((STACKS, pipe));
                    for (place, stacks) in places.iter_mut().zip(read_stacks(&text)) {
                        place.stacks = stacks;
                    }
                    self.events.push_back(PartEvent::Places(places));
                }
            }
        }
    }
}

/// Creates the segment of a part, which fits into the limits of this process.
fn make_segment(
    spec: &JobSpec,
    place: usize,
    ranks: &[u32],
    placement: &CpuPlacement,
    groups: &MemoryGroups,
) -> Result<Segment, LaunchError> {
    let plan = fit_segment(segment_plan(spec, place, ranks), Limits::of_this_process(groups))?;
    let segment = Segment::create(&SegmentPlan { began_ns: clock::now_ns(), ..plan })?;
    (0..).zip(caches_of(placement)).for_each(|(slot, cache)| segment.set_cache(slot, cache));
    if spec.has_machine() {
        tables::write(&segment, spec, place, ranks);
    }
    Ok(segment)
}

/// The segment of a part, before it is fitted into the limits of a host.
fn segment_plan(spec: &JobSpec, place: usize, ranks: &[u32]) -> SegmentPlan {
    let usual = SegmentPlan::new(spec.hosts[place].segment.0, ranks.len() as u32);
    let elsewhere = spec.processes() - usual.processes;
    SegmentPlan {
        job: spec.job.0,
        ranks: spec.processes(),
        guests: spec.guests(),
        far: spec.far_records(elsewhere),
        hosts: spec.host_records(),
        cpus: landeck_memory::processors::usable(),
        settings: spec.settings(),
        name: JobName::new(&spec.name),
        is_hardened: spec.is_hardened,
        serves_groups: spec.serves_groups,
        takes_hosts: spec.takes_hosts,
        ..usual
    }
}

/// The image of a process of a program.
fn image_of(program: &PlannedProgram, identity: Identity<'_>, cpus: Option<CpuSet>) -> Image {
    Image {
        program: c_string(program.file.as_os_str()),
        arguments: program.arguments.iter().map(|argument| c_string(argument)).collect(),
        environment: program.environment.of_process(identity),
        directory: c_string(program.directory.as_os_str()),
        cpus,
    }
}

/// Converts a text to one of C. Arguments and paths come from the command line, which contains no zero byte, so nothing
/// is cut.
fn c_string(text: &OsStr) -> CString {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}
