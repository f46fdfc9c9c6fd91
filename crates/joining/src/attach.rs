//! The attach order, by which a process finds its job.
//!
//! 1. The descriptor of our launcher (`LANDECK_SEGMENT`), checked. Our launcher removes the variables of another
//!    launcher around it. If those of PMI-1 are set nevertheless, their launcher was started inside our job and comes
//!    first.
//! 2. The job's abstract socket, if `LANDECK_JOB` is set but the descriptor was lost: some programs close all
//!    descriptors that they do not know before they start others.
//! 3. A launcher that speaks PMI-1 or PMIx: the first process makes the segment, serves as the agent,
//!    and puts the job's identity in the key space; the others join over the socket.
//! 4. A job of one.
//!
//! If a launcher claims the process in a way that Landeck does not understand ([`crate::claim`]), attaching fails. Such
//! a process never becomes a job of one beside others.

use std::env;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landeck_host::budget::{self, BudgetError, Limits};
use landeck_host::environment::own_text;
use landeck_host::memory_groups::MemoryGroups;
use landeck_host::say::quoted;
use landeck_memory::plan::SETTINGS_WORDS;
use landeck_memory::system::now_ns;
use landeck_memory::{
    JobName, JobState, Presence, Segment, SegmentError, SegmentPlan, SlotState, processors, waiter,
};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};
use rustix::fs::SealFlags;

use crate::agent_thread::{self, AgentError, AgentThread};
use crate::claim::{self, ClaimError};
use crate::death_notice;
use crate::foreign::{Foreign, ForeignError};
use crate::inherited::{self, InheritError};
use crate::liveness::LivenessConnection;
use crate::machines;
use crate::observe::{self, FindError};
use crate::pmi;
use crate::pmix;
use crate::socket::{self, AGENT_TIME, ExchangeError, JoinError, Joined, Verdict};

/// How long an agent may take to answer the processes that start with it, which all come at once.
const START_TIME: Duration = Duration::from_secs(30);
/// How long a process that leaves waits for room in the agent's queue.
const LEAVE_TIME: Duration = Duration::from_secs(1);
/// How long a machine has to make the part of a job on this host. All hosts of the job take part in that.
const PART_TIME: Duration = Duration::from_secs(15);
/// The key under which the first process of such a job publishes how it is reached.
const ADDRESS_KEY: &str = "landeck-agent-0";

/// The membership of a process in its job, and the resources that keep it there.
#[derive(Debug)]
pub struct Attachment {
    /// The job's memory on this host.
    pub segment: Segment,
    /// This process's slot.
    pub slot: u32,
    /// The incarnation with which it joined: how often the slot was given away.
    pub incarnation: u32,
    /// The number of processes in the job's first world: slots 0 to `processes` - 1. Higher slots belong to guests and
    /// to restarted processes.
    pub processes: u32,
    /// How the process came to its job.
    pub origin: Origin,
    /// The process that this one replaces, if the launcher started it again after a failure.
    pub restart: Option<Restarted>,
    /// The agent was told that this process has left.
    has_told: AtomicBool,
    /// The connection to the agent, if this process came over the socket.
    tie: Option<LivenessConnection>,
    /// The connection by which the agent watches this process, if this is not the process that the launcher started.
    /// Closed with the rest.
    _watched_by: Option<OwnedFd>,
    /// The agent, if it runs in this process.
    agent: Option<AgentThread>,
}

/// A process that failed and was replaced by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// Its rank in the first world.
    pub rank: u32,
    /// The number of restarts, the last one included.
    pub number: u32,
}

/// How a process that has left its job can join one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// Our launcher keeps its slot until the process ends.
    SamePlace,
    /// The job was a job of one, and the process creates another.
    AnotherJob,
    /// The agent or another launcher has released it, so there is no way back.
    None,
}

/// Settings for all processes of a job; the process that creates the segment computes them.
pub type ReadSettings = Result<[u64; SETTINGS_WORDS], Box<dyn std::error::Error + Send + Sync>>;

/// How a process came to its job.
#[derive(Debug)]
pub enum Origin {
    /// Through the descriptor of our launcher.
    Launcher,
    /// Over the job's socket.
    Socket,
    /// Under another launcher, which still listens.
    Foreign(Foreign),
    /// It is a job of one.
    Alone,
}

/// The reason why a process cannot find its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// A variable that should name a job is empty.
    #[error(
        "{name} is empty: unset it, or set it to the name of a running job, which `landeck ps` shows"
    )]
    EmptyJob {
        /// Its name.
        name: &'static str,
    },
    /// A variable of Landeck has no usable value.
    #[error("{name} is {}: start the program with `landeck run`",
        value.as_ref().map_or_else(|| "not set".to_owned(), |value| quoted(value)))]
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// Its value; `None` if it is not set.
        value: Option<String>,
    },
    /// Our launcher started this process, but the job is not named.
    #[error(
        "LANDECK_SLOT is set, but LANDECK_JOB is not: start the program with `landeck run`, or unset \
         LANDECK_SLOT as well to run it alone"
    )]
    NoJob,
    /// The job runs on other hosts and cannot come to this one.
    #[error(transparent)]
    Part(#[from] socket::PartError),
    /// No machine is meant.
    #[error(transparent)]
    Machine(#[from] machines::MachineChoiceError),
    /// The machine's own job was ended while this process wanted to join it.
    #[error("the own job of machine {machine} is being ended: join it again")]
    OwnJobOver {
        /// The machine.
        machine: String,
    },
    /// The descriptor was taken before.
    #[error("this process has joined its job already: {0}")]
    AlreadyJoined(InheritError),
    /// The number does not name the segment's descriptor.
    #[error("LANDECK_SEGMENT does not lead to the job: {0}; start the program with `landeck run`")]
    Descriptor(InheritError),
    /// The segment cannot be used or created.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The limits leave no room for a segment.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The segment belongs to another job.
    #[error(
        "LANDECK_SEGMENT is the memory of job {found}, but LANDECK_JOB is {wanted}: \
         variables of two jobs are mixed; start the program with `landeck run`"
    )]
    OtherJob {
        /// The job of the segment.
        found: SegmentId,
        /// The job that the environment names.
        wanted: SegmentId,
    },
    /// An agent's answer fits no job.
    #[error("the agent of job {host} sent {what}: use the same version of Landeck everywhere")]
    Answer {
        /// The job.
        host: SegmentId,
        /// The answer, in words.
        what: String,
    },
    /// The job has no such slot.
    #[error("LANDECK_SLOT is {slot}, but the job has {processes} processes")]
    NoSuchSlot {
        /// The slot.
        slot: u32,
        /// The number of processes.
        processes: u32,
    },
    /// Another process uses or used the slot.
    #[error("process {slot} of this job {}; give another program a `landeck run` of its own",
        match presence {
            Presence::Finalized => "has left it, and cannot come back",
            Presence::Aborted(_) => "has ended it",
            _ => "is in it already, and a program that it starts cannot take its place",
        })]
    SlotInUse {
        /// The slot.
        slot: u32,
        /// The word that the slot's process wrote about itself.
        presence: Presence,
    },
    /// The agent does not know the slot as living.
    #[error("process {slot} of this job is not expected: its slot is {state:?}")]
    NotExpected {
        /// The slot.
        slot: u32,
        /// The agent's record of the slot.
        state: SlotState,
    },
    /// No running job has this name.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The job cannot be joined over its socket.
    #[error("cannot join job {host}: {error}")]
    Join {
        /// The job.
        host: SegmentId,
        /// The reason.
        error: JoinError,
    },
    /// Memory of other processes cannot be mapped read-only.
    #[error(
        "the memory of other processes cannot be mapped read-only ({0}): raise the limit of \
         mappings (sysctl vm.max_map_count), or start the job without --harden"
    )]
    Harden(io::Error),
    /// The agent cannot be started.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The agent cannot be watched.
    #[error("cannot start the thread that watches the job's agent: {0}")]
    LivenessConnection(io::Error),
    /// The exchange with the other launcher failed.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The first process published something else than an address.
    #[error(
        "rank 0 published {}, which names no job: use the same version of Landeck everywhere",
        quoted(value)
    )]
    Address {
        /// The published text.
        value: String,
    },
    /// The processes of such a job run on more than one host.
    #[error(
        "rank 0 runs on host {first} and rank {rank} on host {own}, or in another network \
         namespace: a job under this launcher must stay on one host"
    )]
    TwoHosts {
        /// The host of rank 0.
        first: String,
        /// The rank that fails.
        rank: u32,
        /// The host of that rank.
        own: String,
    },
    /// A launcher whose protocol is not understood claims the process.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The user's settings are invalid.
    #[error("{0}")]
    Settings(Box<dyn std::error::Error + Send + Sync>),
    /// The kernel gives no random numbers for an identity.
    #[error("the kernel gives no random numbers: {0}")]
    Random(rustix::io::Errno),
}

/// Finds the job of this process. Calls `settings` only if this process creates the job's segment.
///
/// # Errors
/// [`AttachError`].
pub fn attach(settings: impl FnOnce() -> ReadSettings) -> Result<Attachment, AttachError> {
    inherited::reserve_standard();
    // Our launcher removes the address of any other launcher from the environment of its processes. If there is one
    // nevertheless, it belongs to a launcher that one of them started.
    let inner = pmi::Address::from_environment().map_err(ForeignError::from)?;
    if inner.is_none()
        && let Some(attachment) = from_environment()?
    {
        return Ok(attachment);
    }
    if let Some(address) = inner {
        let client = pmi::Client::connect(&address).map_err(ForeignError::from)?;
        death_notice::let_pass();
        return of_foreign(Foreign::Pmi(client), settings);
    }
    if let Some(name) = pmix::claiming_variable(own_text).map_err(ForeignError::from)? {
        let client = pmix::Client::connect(name).map_err(ForeignError::from)?;
        return of_foreign(Foreign::Pmix(Box::new(client)), settings);
    }
    claim::refuse(own_text)?;
    alone(settings)
}

/// Finds the job that our launcher named in the environment, if it named one.
///
/// # Errors
/// [`AttachError`].
pub fn from_environment() -> Result<Option<Attachment>, AttachError> {
    let job = variable::<String>("LANDECK_JOB")?;
    if job.as_deref() == Some("") {
        return Err(AttachError::EmptyJob { name: "LANDECK_JOB" });
    }
    let slot = variable::<u32>("LANDECK_SLOT")?;
    let Some(job) = job else {
        return if slot.is_some() { Err(AttachError::NoJob) } else { Ok(None) };
    };
    let host = match (job.parse(), slot) {
        (Ok(host), _) => host,
        // Only a launcher assigns slots, and it knows the identity.
        (Err(_), Some(_)) => {
            return Err(AttachError::Variable { name: "LANDECK_JOB", value: Some(job) });
        }
        (Err(_), None) => return running(&job).map(Some),
    };
    let Some(descriptor) = inherited_segment()? else { return over_socket(host, slot).map(Some) };
    let slot = slot.ok_or(AttachError::Variable { name: "LANDECK_SLOT", value: None })?;
    let segment = Segment::attach(descriptor)?;
    let found = SegmentId(segment.plan().host);
    if found != host {
        return Err(AttachError::OtherJob { found, wanted: host });
    }
    in_slot(segment, slot, Origin::Launcher).map(Some)
}

/// Joins a running job of this user as a guest: by its name, or by the first digits of its identity. This also works
/// from a container that has the directory of the index ([`crate::index`]).
///
/// # Errors
/// [`AttachError::Find`], [`AttachError::Join`], and errors that follow from another version there.
pub fn running(job: &str) -> Result<Attachment, AttachError> {
    inherited::reserve_standard();
    let here = match (job.parse(), observe::find(Some(job))) {
        // On several hosts the job has an identity of its own.
        (_, Ok(found)) => return over_socket(found.host, None),
        (Ok(host), Err(_)) => over_socket(host, None),
        (Err(_), Err(error)) => Err(error.into()),
    };
    let is_elsewhere = match &here {
        Err(AttachError::Find(FindError::NoJob | FindError::Unknown { .. })) => true,
        Err(AttachError::Join { .. }) => job.parse::<SegmentId>().is_ok(),
        _ => false,
    };
    match is_elsewhere {
        true => socket::part_of(job, PART_TIME)?.map_or(here, |host| over_socket(host, None)),
        false => here,
    }
}

/// Joins the own job of a machine as a guest, on this host: the machine with this name, or the only one here.
///
/// # Errors
/// [`AttachError::Machine`], [`AttachError::Part`], [`AttachError::OwnJobOver`], [`AttachError::Join`].
pub fn machine(name: Option<&str>) -> Result<Attachment, AttachError> {
    inherited::reserve_standard();
    let machine = machines::choose(name)?;
    // One that was ending is over by then.
    let part = || socket::part_in(&machine, "", PART_TIME).transpose();
    let part = part().or_else(part).transpose()?;
    let part = part.ok_or_else(|| AttachError::OwnJobOver { machine: machine.clone() })?;
    over_socket(part, None)
}

/// Finds the job of another launcher, or creates it as rank 0.
fn of_foreign(
    client: Foreign,
    settings: impl FnOnce() -> ReadSettings,
) -> Result<Attachment, AttachError> {
    if client.place().rank == 0 { first_of_job(client, settings) } else { other_of_job(client) }
}

/// Creates a job of one. Guests may join it.
///
/// # Errors
/// [`AttachError`].
pub fn alone(settings: impl FnOnce() -> ReadSettings) -> Result<Attachment, AttachError> {
    found_job(1, processors::usable(), None, settings)
}

impl Attachment {
    /// The identity of this process. It has another one when it has left and come back.
    pub fn process(&self) -> ProcessId {
        ProcessId {
            segment: SegmentId(self.segment.plan().host),
            slot: Slot(self.slot),
            incarnation: Incarnation(self.segment.incarnation(self.slot)),
        }
    }

    /// Says that this process may end in any way, and keeps its place ([`WayBack::SamePlace`]). For the others it is a
    /// member still: it may [come back](Attachment::come_back) as what it was.
    pub fn pause(&self) {
        self.segment.set_presence(self.slot, Presence::Finalized);
    }

    /// Says that this process has left, but keeps its place: it may end in any way, or
    /// [come back](Attachment::come_back) as another member.
    pub fn rest(&self) {
        self.pause();
        // Where its connection or its end tells the agent, that is enough.
        if self.tie.is_none() && self.agent.is_none() {
            self.has_told.store(true, Ordering::Release);
            socket::tell_presence(self.process(), LEAVE_TIME);
        }
    }

    /// Takes part again, after [`Attachment::pause`] as what it was, and after [`Attachment::rest`] as another member of
    /// the job in the same place.
    ///
    /// # Errors
    /// [`AttachError::Join`]: the agent does not answer, or the job ends.
    pub fn come_back(&self) -> Result<(), AttachError> {
        let host = SegmentId(self.segment.plan().host);
        let say = || {
            let said = socket::say_presence(self.process(), START_TIME);
            said.map_err(|error| AttachError::Join { host, error })
        };
        if !self.has_told.swap(false, Ordering::AcqRel) {
            self.segment.set_presence(self.slot, Presence::Attached);
            return Ok(());
        }
        // The agent may not have come to the goodbye yet.
        if self.segment.slot_record(self.slot).state != SlotState::Left {
            say()?;
        }
        self.segment.set_presence(self.slot, Presence::Attached);
        say()
    }

    /// How this process can join a job again after it has left this one.
    pub fn way_back(&self) -> WayBack {
        match self.origin {
            Origin::Launcher | Origin::Socket if self.tie.is_none() => WayBack::SamePlace,
            Origin::Alone => WayBack::AnotherJob,
            _ => WayBack::None,
        }
    }

    /// Leaves the job in good order. If the agent runs in this process, this waits until all others have left.
    ///
    /// # Errors
    /// [`AttachError::Foreign`] if the other launcher does not accept the goodbye.
    pub fn leave(self) -> Result<(), AttachError> {
        self.rest();
        drop(self.tie);
        if let Some(agent) = self.agent {
            agent.finish();
        }
        match self.origin {
            Origin::Foreign(client) => Ok(client.finalize()?),
            Origin::Launcher | Origin::Socket | Origin::Alone => Ok(()),
        }
    }

    /// Says that the whole job is to end. It tells another launcher, or writes it into this process's page, where our
    /// launcher reads it once this process ends. The caller must then end the process.
    ///
    /// If the job is already ending or a process has died, the launcher is about to end the job for that. It gets time
    /// to do so, because the user should see the first cause.
    ///
    /// # Errors
    /// [`AttachError::Foreign`] if the other launcher cannot be told.
    pub fn abort(&mut self, exit_code: i32, message: &str) -> Result<(), AttachError> {
        let is_first = !self.is_broken();
        match &mut self.origin {
            Origin::Foreign(client) => {
                if !is_first {
                    client.wait_for_end();
                }
                client.abort(exit_code, message)?;
                client.wait_for_end();
                Ok(())
            }
            Origin::Launcher | Origin::Socket | Origin::Alone => {
                let presence = Presence::Aborted(exit_code as u8);
                self.segment.set_presence(self.slot, presence);
                Ok(())
            }
        }
    }
}

impl Attachment {
    /// Whether the job is ending, or one of its processes has died.
    fn is_broken(&self) -> bool {
        let is_dead = |slot| self.segment.slot_record(slot).state == SlotState::Dead;
        self.segment.job_state() == JobState::Ending
            || (0..self.processes).any(|slot| self.segment.rank_of(slot).is_some() && is_dead(slot))
    }
}

/// The descriptor of the segment, if this process inherited it.
fn inherited_segment() -> Result<Option<OwnedFd>, AttachError> {
    let Some(number) = variable::<String>("LANDECK_SEGMENT")? else { return Ok(None) };
    let is_sealed = |descriptor: std::os::fd::BorrowedFd<'_>| {
        rustix::fs::fcntl_get_seals(descriptor)
            .is_ok_and(|seals| seals.contains(SealFlags::SHRINK | SealFlags::GROW))
    };
    match inherited::take(&number, is_sealed) {
        Ok(descriptor) => Ok(Some(descriptor)),
        Err(InheritError::NotOpen { .. } | InheritError::NotMeant(_)) => Ok(None),
        Err(error @ InheritError::AlreadyTaken(_)) => Err(AttachError::AlreadyJoined(error)),
        Err(error @ InheritError::NotANumber(_)) => Err(AttachError::Descriptor(error)),
    }
}

/// Takes the slot that our launcher meant for this process.
fn in_slot(segment: Segment, slot: u32, origin: Origin) -> Result<Attachment, AttachError> {
    let processes = segment.plan().processes;
    let restart = restarted()?;
    let record = segment.slot_record(slot);
    let is_later = restart.is_some() || record.is_added();
    let slots = if is_later { segment.plan().slots() } else { processes };
    if slot >= slots {
        return Err(AttachError::NoSuchSlot { slot, processes: slots });
    }
    if !matches!(record.state, SlotState::Reserved | SlotState::Alive | SlotState::Left) {
        return Err(AttachError::NotExpected { slot, state: record.state });
    }
    segment.harden(slot).map_err(AttachError::Harden)?;
    match segment.presence(slot) {
        Presence::NotAttached => segment.set_presence(slot, Presence::Attached),
        presence => return Err(AttachError::SlotInUse { slot, presence }),
    }
    let incarnation = Incarnation(record.incarnation);
    let process =
        ProcessId { segment: SegmentId(segment.plan().host), slot: Slot(slot), incarnation };
    let watched_by = if record.pid == std::process::id() { None } else { be_watched(process) };
    if record.is_added() {
        // Whoever has started it waits for that. Without it, that wait ends at its limit.
        let _ = socket::say_presence(process, START_TIME);
    }
    Ok(Attachment {
        segment,
        slot,
        incarnation: record.incarnation,
        processes,
        origin,
        restart,
        has_told: AtomicBool::new(false),
        tie: None,
        _watched_by: watched_by,
        agent: None,
    })
}

/// Lets the agent watch this process, which is not the one that the launcher started; a shell above it, say, may
/// outlive it. If the agent cannot be reached, only the process that was started is watched.
fn be_watched(process: ProcessId) -> Option<OwnedFd> {
    socket::be_found(process, START_TIME).ok()
}

/// The launcher's note that this process replaces a failed one.
fn restarted() -> Result<Option<Restarted>, AttachError> {
    let Some(number) = variable("LANDECK_RESTART")? else { return Ok(None) };
    let rank = variable("RANK")?.ok_or(AttachError::Variable { name: "RANK", value: None })?;
    Ok(Some(Restarted { rank, number }))
}

/// Joins over the socket: as the process of the slot, if one is given, otherwise as a guest.
fn over_socket(host: SegmentId, slot: Option<u32>) -> Result<Attachment, AttachError> {
    let Some(slot) = slot else {
        return as_joined(socket::join(host, AGENT_TIME), host, Origin::Socket);
    };
    match socket::join_as(host, Slot(slot), START_TIME) {
        // The agent started this very process, so it is already let in. Only the memory is missing, and a guest gets
        // that.
        Err(JoinError::Refused(Verdict::Taken)) => {
            let guest = as_joined(socket::join(host, START_TIME), host, Origin::Socket)?;
            let segment = guest.segment.clone();
            guest.leave()?;
            in_slot(segment, slot, Origin::Socket)
        }
        joined => as_joined(joined, host, Origin::Socket),
    }
}

/// Turns an agent's answer into an attachment.
fn as_joined(
    joined: Result<Joined, JoinError>,
    host: SegmentId,
    origin: Origin,
) -> Result<Attachment, AttachError> {
    let joined = joined.map_err(|error| AttachError::Join { host, error })?;
    let segment = Segment::attach(joined.segment)?;
    let found = SegmentId(segment.plan().host);
    if found != host {
        return Err(AttachError::Answer { host, what: format!("the memory of job {found}") });
    }
    let slot = joined.process.slot.0;
    let (processes, slots) = (segment.plan().processes, segment.plan().slots());
    if slot >= slots {
        return Err(AttachError::Answer { host, what: format!("slot {slot} of {slots}") });
    }
    segment.harden(slot).map_err(AttachError::Harden)?;
    segment.set_presence(slot, Presence::Attached);
    waiter::is_registered(); // before there is a second thread
    let tie = LivenessConnection::new(joined.connection, &segment)
        .map_err(AttachError::LivenessConnection)?;
    Ok(Attachment {
        segment,
        slot,
        incarnation: joined.process.incarnation.0,
        processes,
        origin,
        restart: None,
        has_told: AtomicBool::new(false),
        tie: Some(tie),
        _watched_by: None,
        agent: None,
    })
}

/// Creates the job's segment and serves as its agent; this process gets slot 0. The launcher that started all processes
/// holds the other end of `launcher`.
fn found_job(
    processes: u32,
    cpus: u32,
    launcher: Option<OwnedFd>,
    settings: impl FnOnce() -> ReadSettings,
) -> Result<Attachment, AttachError> {
    // A foreign launcher may state any number.
    budget::check_processes(u64::from(processes))?;
    let limits = Limits::of_this_process(&MemoryGroups::of_this_process());
    let plan = SegmentPlan { cpus, ..SegmentPlan::new(random_identity()?, processes) };
    let plan = budget::fit_segment(plan, limits)?;
    let settings = settings().map_err(AttachError::Settings)?;
    let (name, began_ns) = (own_program(), now_ns());
    let segment = Segment::create(&SegmentPlan { settings, name, began_ns, ..plan })?;
    waiter::is_registered(); // before there is a second thread
    let agent = agent_thread::serve_in_thread(&segment, 0, launcher)?;
    segment.set_presence(0, Presence::Attached);
    let incarnation = segment.slot_record(0).incarnation;
    Ok(Attachment {
        segment,
        slot: 0,
        incarnation,
        processes,
        origin: Origin::Alone,
        restart: None,
        has_told: AtomicBool::new(false),
        tie: None,
        _watched_by: None,
        agent: Some(agent),
    })
}

/// Rank 0 of another launcher's job: creates the job and lets the others in.
fn first_of_job(
    mut client: Foreign,
    settings: impl FnOnce() -> ReadSettings,
) -> Result<Attachment, AttachError> {
    let processes = client.place().size;
    let cpus = processors_of_job(processes);
    let launcher = client.connection().map_err(AgentError::System)?;
    let mut attachment = found_job(processes, cpus, launcher, settings)?;
    let host = SegmentId(attachment.segment.plan().host);
    client.put(ADDRESS_KEY, &Address { host, name: own_name() }.to_string())?;
    client.fence()?;
    // Past the second fence all have joined. So the job is whole when a process begins to work in it, and the agent
    // stays until then.
    client.fence()?;
    if let Some(rank) = (1..processes).find(|&rank| !has_joined(&attachment.segment, rank)) {
        let value = client.get(rank, &elsewhere_key(rank))?;
        let other = Address::parse(&value).ok_or(AttachError::Address { value })?;
        // Like every process that fails below, it keeps the connection open until it ends.
        std::mem::forget(client);
        return Err(AttachError::TwoHosts { first: own_name(), rank, own: other.name });
    }
    attachment.origin = Origin::Foreign(client);
    Ok(attachment)
}

/// Whether the process of a slot came while the others waited for it.
fn has_joined(segment: &Segment, slot: u32) -> bool {
    !matches!(segment.slot_record(slot).state, SlotState::Free | SlotState::Reserved)
}

/// The key under which a process that cannot join publishes its host.
fn elsewhere_key(rank: u32) -> String {
    format!("landeck-elsewhere-{rank}")
}

/// Any other rank of such a job: joins the job that rank 0 creates.
fn other_of_job(mut client: Foreign) -> Result<Attachment, AttachError> {
    let rank = client.place().rank;
    client.fence()?;
    let value = client.get(0, ADDRESS_KEY)?;
    let address = Address::parse(&value).ok_or(AttachError::Address { value })?;
    let joined = socket::join_as(address.host, Slot(rank), START_TIME);
    if let Err(JoinError::Exchange(ExchangeError::NobodyThere { .. })) = &joined {
        let own = Address { host: address.host, name: own_name() };
        client.put(&elsewhere_key(rank), &own.to_string())?;
        // Nobody waits for this process: rank 0 sees that it has not joined, and fails as well.
        client.fence()?;
        let error = AttachError::TwoHosts { first: address.name, rank, own: own.name };
        // A launcher ends its whole job, this process included, when told to or when the connection closes. So the
        // connection stays open until this process has printed why and ends.
        std::mem::forget(client);
        return Err(error);
    }
    let mut attachment = as_joined(joined, address.host, Origin::Socket)?;
    client.fence()?;
    attachment.origin = Origin::Foreign(client);
    Ok(attachment)
}

/// How to reach rank 0 of another launcher's job: its job, and the name of its host for people.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: SegmentId,
    name: String,
}

impl Address {
    fn parse(text: &str) -> Option<Self> {
        let (host, name) = text.split_once('.')?;
        if !name.is_ascii() || name.len() % 2 != 0 || name.len() > 2 * NAME_BYTES {
            return None;
        }
        let bytes: Option<Vec<u8>> = (0..name.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&name[at..at + 2], 16).ok())
            .collect();
        let name = String::from_utf8_lossy(&bytes?).into_owned();
        Some(Self { host: host.parse().ok()?, name })
    }
}

/// The longest host name that is passed on.
const NAME_BYTES: usize = 64;

impl fmt::Display for Address {
    /// Uses only characters that every launcher can carry: the name in hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.", self.host)?;
        self.name.bytes().take(NAME_BYTES).try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The parsed value of a variable, if it is set.
fn variable<T: std::str::FromStr>(name: &'static str) -> Result<Option<T>, AttachError> {
    let Some(text) = own_text(name) else { return Ok(None) };
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(AttachError::Variable { name, value: Some(text) }),
    }
}

/// The number of processors that the processes of a foreign launcher have together. The affinity of this process alone
/// does not tell, because some launchers bind each process to processors of its own.
fn processors_of_job(processes: u32) -> u32 {
    // SAFETY: a query without pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let online = u32::try_from(online).unwrap_or(1).max(1);
    let together = processors::affinity().saturating_mul(processes).min(online);
    together.min(processors::quota().unwrap_or(u32::MAX)).max(1)
}

fn random_identity() -> Result<u64, AttachError> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(length) => filled += length,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(AttachError::Random(error)),
        }
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// The name of a job that our launcher has not named: that of the program.
fn own_program() -> JobName {
    let program = env::args_os().next().map(std::path::PathBuf::from);
    let name = program.as_deref().and_then(std::path::Path::file_name);
    JobName::new(&name.map(|name| name.to_string_lossy()).unwrap_or_default())
}

/// The name of this host, for people.
fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_testing::Watchdog;

    const LIMIT: Duration = Duration::from_secs(200);

    fn none() -> ReadSettings {
        Ok([0; SETTINGS_WORDS])
    }

    #[test]
    fn a_job_of_one_comes_and_goes() {
        let _watchdog = Watchdog::start(LIMIT);
        let attachment = alone(none).unwrap();
        assert_eq!((attachment.slot, attachment.processes), (0, 1));
        let record = attachment.segment.slot_record(0);
        assert_eq!((record.state, record.pid), (SlotState::Alive, std::process::id()));
        assert_eq!(record.incarnation, attachment.incarnation);
        assert_eq!(attachment.segment.presence(0), Presence::Attached);
        let segment = attachment.segment.clone();
        attachment.leave().unwrap();
        assert_eq!(segment.presence(0), Presence::Finalized);
    }

    #[test]
    fn a_process_that_makes_a_segment_asks_for_settings() {
        let _watchdog = Watchdog::start(LIMIT);
        let first = alone(|| Ok([7; SETTINGS_WORDS])).unwrap();
        assert_eq!(first.segment.plan().settings, [7; SETTINGS_WORDS]);
        first.leave().unwrap();
        let error = alone(|| Err("LANDECK_COLLECTIVES: what?".into())).unwrap_err();
        assert_eq!(error.to_string(), "LANDECK_COLLECTIVES: what?");
    }

    #[test]
    fn a_long_value_is_not_repeated_whole() {
        let value = Some("9".repeat(50_000));
        let error = AttachError::Variable { name: "LANDECK_SLOT", value }.to_string();
        assert!(error.starts_with("LANDECK_SLOT is \"999") && error.len() < 300, "{error}");
    }

    #[test]
    fn a_guest_comes_over_the_socket() {
        let _watchdog = Watchdog::start(LIMIT);
        let first = alone(none).unwrap();
        let host = first.process().segment;
        let guest = over_socket(host, None).unwrap();
        assert_eq!(guest.process().segment, host);
        assert!(guest.slot >= guest.processes && guest.tie.is_some());
        guest.leave().unwrap();
        first.leave().unwrap();
        let error = over_socket(host, None).unwrap_err();
        assert!(matches!(error, AttachError::Join { .. }), "{error}");
    }

    #[test]
    fn a_process_whose_descriptor_was_closed_gets_its_slot_over_the_socket() {
        let _watchdog = Watchdog::start(LIMIT);
        let first = alone(none).unwrap();
        let host = first.process().segment;
        let error = over_socket(host, Some(0)).unwrap_err();
        assert!(matches!(error, AttachError::SlotInUse { slot: 0, .. }), "{error}");
        first.segment.set_presence(0, Presence::NotAttached);
        let second = over_socket(host, Some(0)).unwrap();
        assert_eq!((second.slot, second.incarnation), (0, first.incarnation));
        assert!(over_socket(host, Some(1)).is_err());
        drop(second);
        first.leave().unwrap();
    }

    #[test]
    fn a_slot_is_checked() {
        let mut plan = landeck_memory::SegmentPlan::new(7, 2);
        plan.heap_bytes_per_process = 0;
        let segment = Segment::local(&plan);
        let error = in_slot(segment.clone(), 2, Origin::Launcher).unwrap_err();
        assert!(matches!(error, AttachError::NoSuchSlot { slot: 2, processes: 2 }), "{error}");
        let error = in_slot(segment, 1, Origin::Launcher).unwrap_err();
        assert!(matches!(error, AttachError::NotExpected { slot: 1, .. }), "{error}");
    }

    #[test]
    fn an_address_survives_the_key_space() {
        let address = Address { host: SegmentId(0xff), name: "häuschen.example".into() };
        let text = address.to_string();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'), "{text}");
        assert_eq!(Address::parse(&text), Some(address));
        for text in
            ["", ".", "00ff.61", "00000000000000ff", "00000000000000ff.6", "00000000000000ff.zz"]
        {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }
}
