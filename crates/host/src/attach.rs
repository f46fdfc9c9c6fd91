//! How a process finds its job: the attach order.
//!
//! 1. Our launcher's descriptor (`LANDECK_SEGMENT`), checked; inside another launcher's job as well,
//!    whose variables ours has taken away. If they are there, that launcher was started inside ours.
//! 2. The job's abstract socket, when `LANDECK_JOB` is set but the descriptor did not come through:
//!    some programs close everything they do not know before they start others.
//! 3. A launcher that speaks PMI-1 or PMIx: the first process makes the segment, serves as the agent,
//!    and puts the job's identity in the key space; the others join over the socket.
//! 4. A job of one.
//!
//! A process that a launcher claims in a way that cannot be understood here fails
//! ([`crate::claim`]): it never takes itself for a job of one among others.

use std::env;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_memory::plan::SETTINGS_WORDS;
use landeck_memory::system::now_ns;
use landeck_memory::{
    JobName, JobState, Presence, Segment, SegmentError, SegmentPlan, SlotState, processors, waiter,
};
use landeck_wire::{HostId, Incarnation, ProcessId, Slot};
use rustix::fs::SealFlags;

use crate::agent_thread::{self, AgentError, AgentThread};
use crate::budget::{self, BudgetError, Limits};
use crate::claim::{self, ClaimError};
use crate::death_notice;
use crate::environment::own_text;
use crate::foreign::{Foreign, ForeignError};
use crate::inherited::{self, InheritError};
use crate::memory_groups::MemoryGroups;
use crate::observe::{self, FindError};
use crate::pmi;
use crate::pmix;
use crate::say::quoted;
use crate::socket::{self, AGENT_TIME, ExchangeError, JoinError, Joined, Verdict};
use crate::tie::Tie;

/// How long an agent may take to answer those that start with it: they come all at once.
const START_TIME: Duration = Duration::from_secs(30);
/// Where the first process of such a job says how it is reached.
const ADDRESS_KEY: &str = "landeck-agent-0";

/// A process's place in its job, and what keeps it there.
#[derive(Debug)]
pub struct Attachment {
    /// The job's memory on this host.
    pub segment: Segment,
    /// This process's slot.
    pub slot: u32,
    /// Which user of the slot it is.
    pub incarnation: u32,
    /// The processes of the job's first world: slots 0 to `processes` - 1. A slot beyond them is a
    /// guest's.
    pub processes: u32,
    /// How the process came to its job.
    pub origin: Origin,
    /// Which process this one replaces, if the launcher started it again after a failure.
    pub restart: Option<Restarted>,
    /// What ties this process to its agent, if it came over the socket.
    tie: Option<Tie>,
    /// The connection by which the agent watches this process, where that is not the one that the
    /// launcher started. Closed with the rest.
    _watched_by: Option<OwnedFd>,
    /// The agent, if this process is where it lives.
    agent: Option<AgentThread>,
}

/// A process that failed, and that another one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// Its rank in the first world.
    pub rank: u32,
    /// How often it was started again, the last time included.
    pub number: u32,
}

/// How a process that has left its job can be in one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// Our launcher keeps its place until it ends.
    SamePlace,
    /// It was a job of one, and makes another.
    AnotherJob,
    /// The agent, or another launcher, has taken leave of it.
    None,
}

/// What all processes of a job are to compute with; asked for by whoever makes its segment.
pub type Settings = Result<[u64; SETTINGS_WORDS], Box<dyn std::error::Error + Send + Sync>>;

/// How a process came to its job.
#[derive(Debug)]
pub enum Origin {
    /// By the descriptor of our launcher.
    Launcher,
    /// Over the job's socket.
    Socket,
    /// Under another launcher, which is still listening.
    Foreign(Foreign),
    /// It is a job of one.
    Alone,
}

/// Why a process cannot find its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// A variable names a job, and names none.
    #[error(
        "{name} is empty: unset it, or set it to the name of a running job, which `landeck ps` shows"
    )]
    EmptyJob {
        /// Its name.
        name: &'static str,
    },
    /// A variable of ours has no sense.
    #[error("{name} is {}: start the program with `landeck run`",
        value.as_ref().map_or_else(|| "not set".to_owned(), |value| quoted(value)))]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Option<String>,
    },
    /// Our launcher has started this process, and its job is not named.
    #[error(
        "LANDECK_SLOT is set, but LANDECK_JOB is not: start the program with `landeck run`, or unset \
         LANDECK_SLOT as well to run it alone"
    )]
    NoJob,
    /// The descriptor was taken before.
    #[error("this process has joined its job already: {0}")]
    AlreadyJoined(InheritError),
    /// The descriptor's number is none.
    #[error("LANDECK_SEGMENT does not lead to the job: {0}; start the program with `landeck run`")]
    Descriptor(InheritError),
    /// There is no segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The limits leave no room for a segment.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The segment is another job's.
    #[error(
        "LANDECK_SEGMENT is the memory of job {found}, but LANDECK_JOB is {wanted}: \
         variables of two jobs are mixed; start the program with `landeck run`"
    )]
    OtherJob {
        /// Whose memory it is.
        found: HostId,
        /// Which job the environment names.
        wanted: HostId,
    },
    /// An agent's answer fits no job.
    #[error("the agent of job {host} gave {what}: use the same version of Landeck everywhere")]
    Answer {
        /// The job.
        host: HostId,
        /// What it gave.
        what: String,
    },
    /// The job has no such slot.
    #[error("LANDECK_SLOT is {slot}, but the job has {processes} processes")]
    NoSuchSlot {
        /// The slot.
        slot: u32,
        /// How many there are.
        processes: u32,
    },
    /// Somebody is, or was, the process of the slot.
    #[error("process {slot} of this job {}; give another program a `landeck run` of its own",
        match presence {
            Presence::Finalized => "has left it, and cannot come back",
            Presence::Aborted(_) => "has ended it",
            _ => "is in it already, and a program that it starts cannot be it as well",
        })]
    SlotInUse {
        /// The slot.
        slot: u32,
        /// What its process says.
        presence: Presence,
    },
    /// The agent does not know the slot as living.
    #[error("process {slot} of this job is not expected: its place is {state:?}")]
    NotExpected {
        /// The slot.
        slot: u32,
        /// What the agent says.
        state: SlotState,
    },
    /// No running job is called so.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The job cannot be joined over its socket.
    #[error("cannot join job {host}: {error}")]
    Join {
        /// The job.
        host: HostId,
        /// Why.
        error: JoinError,
    },
    /// Pages of others cannot be mapped for reading alone.
    #[error(
        "the memory of other processes cannot be mapped for reading alone ({0}): raise the limit of \
         mappings (sysctl vm.max_map_count), or start the job without --harden"
    )]
    Harden(io::Error),
    /// The agent cannot be started.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The agent cannot be watched.
    #[error("no thread can be started that watches the agent of the job: {0}")]
    Tie(io::Error),
    /// The other launcher cannot be talked to.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The first process published something else.
    #[error(
        "rank 0 published {}, which names no job: use the same version of Landeck everywhere",
        quoted(value)
    )]
    Address {
        /// What was published.
        value: String,
    },
    /// The processes of such a job are on more than one host.
    #[error(
        "rank 0 runs on host {first} and rank {rank} on host {own}, or in another network \
         namespace: a job under this launcher must stay on one host"
    )]
    TwoHosts {
        /// Where rank 0 is.
        first: String,
        /// Who fails.
        rank: u32,
        /// Where it is.
        own: String,
    },
    /// A launcher whose protocol is not understood claims the process.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// What the user asks for makes no sense.
    #[error("{0}")]
    Settings(Box<dyn std::error::Error + Send + Sync>),
    /// There are no random numbers for an identity.
    #[error("the kernel gives no random numbers: {0}")]
    Random(rustix::io::Errno),
}

/// Finds the job of this process. `settings` is asked if this process makes the job's segment.
///
/// # Errors
/// [`AttachError`].
pub fn attach(settings: impl FnOnce() -> Settings) -> Result<Attachment, AttachError> {
    inherited::reserve_standard();
    // Our launcher leaves no way to another in the environment of its processes. One that is there
    // all the same belongs to a launcher that one of them has started.
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
        // Only a launcher gives slots, and it knows the identity.
        (Err(_), Some(_)) => {
            return Err(AttachError::Variable { name: "LANDECK_JOB", value: Some(job) });
        }
        (Err(_), None) => return running(&job).map(Some),
    };
    let Some(descriptor) = inherited_segment()? else { return over_socket(host, slot).map(Some) };
    let slot = slot.ok_or(AttachError::Variable { name: "LANDECK_SLOT", value: None })?;
    let segment = Segment::attach(descriptor)?;
    let found = HostId(segment.plan().host);
    if found != host {
        return Err(AttachError::OtherJob { found, wanted: host });
    }
    in_slot(segment, slot, Origin::Launcher).map(Some)
}

/// Joins a running job of this user as a guest: by its name, or by the first digits of its identity.
/// Also from a container, if that has the directory of the index ([`crate::index`]).
///
/// # Errors
/// [`AttachError::Find`], [`AttachError::Join`] and what follows from another version there.
pub fn running(job: &str) -> Result<Attachment, AttachError> {
    inherited::reserve_standard();
    let host = match job.parse() {
        Ok(host) => host,
        Err(_) => observe::find(Some(job))?.host,
    };
    over_socket(host, None)
}

/// Finds, or makes, the job of another launcher.
fn of_foreign(
    client: Foreign,
    settings: impl FnOnce() -> Settings,
) -> Result<Attachment, AttachError> {
    if client.place().rank == 0 { first_of_job(client, settings) } else { other_of_job(client) }
}

/// Makes a job of one. Others may come as guests.
///
/// # Errors
/// [`AttachError`].
pub fn alone(settings: impl FnOnce() -> Settings) -> Result<Attachment, AttachError> {
    found_job(1, processors::usable(), None, settings)
}

impl Attachment {
    /// Who this process is.
    pub fn process(&self) -> ProcessId {
        ProcessId {
            host: HostId(self.segment.plan().host),
            slot: Slot(self.slot),
            incarnation: Incarnation(self.incarnation),
        }
    }

    /// How this process can be in a job again after it has left this one.
    pub fn way_back(&self) -> WayBack {
        match self.origin {
            Origin::Launcher | Origin::Socket if self.tie.is_none() => WayBack::SamePlace,
            Origin::Alone => WayBack::AnotherJob,
            _ => WayBack::None,
        }
    }

    /// Leaves the job in good order. Where the agent lives in this process, this waits until all
    /// others have left.
    ///
    /// # Errors
    /// [`AttachError::Foreign`] when the other launcher does not take leave of us.
    pub fn leave(self) -> Result<(), AttachError> {
        self.segment.set_presence(self.slot, Presence::Finalized);
        drop(self.tie);
        if let Some(agent) = self.agent {
            agent.finish();
        }
        match self.origin {
            Origin::Foreign(client) => Ok(client.finalize()?),
            Origin::Launcher | Origin::Socket | Origin::Alone => Ok(()),
        }
    }

    /// Says that the whole job is to end: to another launcher, or in this process's page, where ours
    /// finds it when it sees the end of this process. To be followed by that.
    ///
    /// Where the job is ending already, or somebody has died, the launcher is about to end it for
    /// that, and gets time to do so: what the first has ended with is what the user is to see.
    ///
    /// # Errors
    /// [`AttachError::Foreign`] when it cannot be told.
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

/// The descriptor of the segment, if it came through.
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

/// Takes a slot that our launcher meant for this process.
fn in_slot(segment: Segment, slot: u32, origin: Origin) -> Result<Attachment, AttachError> {
    let processes = segment.plan().processes;
    let restart = restarted()?;
    let slots = if restart.is_some() { segment.plan().slots() } else { processes };
    if slot >= slots {
        return Err(AttachError::NoSuchSlot { slot, processes: slots });
    }
    let record = segment.slot_record(slot);
    if !matches!(record.state, SlotState::Reserved | SlotState::Alive) {
        return Err(AttachError::NotExpected { slot, state: record.state });
    }
    segment.harden(slot).map_err(AttachError::Harden)?;
    match segment.presence(slot) {
        Presence::NotAttached => segment.set_presence(slot, Presence::Attached),
        presence => return Err(AttachError::SlotInUse { slot, presence }),
    }
    let incarnation = Incarnation(record.incarnation);
    let process = ProcessId { host: HostId(segment.plan().host), slot: Slot(slot), incarnation };
    let watched_by = if record.pid == std::process::id() { None } else { be_watched(process) };
    Ok(Attachment {
        segment,
        slot,
        incarnation: record.incarnation,
        processes,
        origin,
        restart,
        tie: None,
        _watched_by: watched_by,
        agent: None,
    })
}

/// Lets the agent watch this process, which is not the one that the launcher started: a shell above it,
/// say, may outlive it. Where the agent cannot be reached, the launcher sees what it has started alone.
fn be_watched(process: ProcessId) -> Option<OwnedFd> {
    socket::be_found(process, START_TIME).ok()
}

/// What the launcher says of a process that it has started again.
fn restarted() -> Result<Option<Restarted>, AttachError> {
    let Some(number) = variable("LANDECK_RESTART")? else { return Ok(None) };
    let rank = variable("RANK")?.ok_or(AttachError::Variable { name: "RANK", value: None })?;
    Ok(Some(Restarted { rank, number }))
}

/// Joins over the socket: as the process of the slot, if one is named, else as a guest.
fn over_socket(host: HostId, slot: Option<u32>) -> Result<Attachment, AttachError> {
    let Some(slot) = slot else {
        return as_joined(socket::join(host, AGENT_TIME), host, Origin::Socket);
    };
    match socket::join_as(host, Slot(slot), START_TIME) {
        // The agent has started this very process, so it is let in already; only the memory is
        // missing, and a guest gets that.
        Err(JoinError::Refused(Verdict::Taken)) => {
            let guest = as_joined(socket::join(host, START_TIME), host, Origin::Socket)?;
            let segment = guest.segment.clone();
            guest.leave()?;
            in_slot(segment, slot, Origin::Socket)
        }
        joined => as_joined(joined, host, Origin::Socket),
    }
}

/// The place that an agent gave.
fn as_joined(
    joined: Result<Joined, JoinError>,
    host: HostId,
    origin: Origin,
) -> Result<Attachment, AttachError> {
    let joined = joined.map_err(|error| AttachError::Join { host, error })?;
    let segment = Segment::attach(joined.segment)?;
    let found = HostId(segment.plan().host);
    if found != host {
        return Err(AttachError::Answer { host, what: format!("the memory of job {found}") });
    }
    let slot = joined.process.slot.0;
    let (processes, slots) = (segment.plan().processes, segment.plan().slots());
    if slot >= slots {
        return Err(AttachError::Answer { host, what: format!("place {slot} of {slots}") });
    }
    segment.harden(slot).map_err(AttachError::Harden)?;
    segment.set_presence(slot, Presence::Attached);
    waiter::is_registered(); // before there is a second thread
    let tie = Tie::new(joined.connection, &segment).map_err(AttachError::Tie)?;
    Ok(Attachment {
        segment,
        slot,
        incarnation: joined.process.incarnation.0,
        processes,
        origin,
        restart: None,
        tie: Some(tie),
        _watched_by: None,
        agent: None,
    })
}

/// Makes the job's segment and serves as its agent; this process gets slot 0. Whoever started all
/// processes is at the other end of `launcher`.
fn found_job(
    processes: u32,
    cpus: u32,
    launcher: Option<OwnedFd>,
    settings: impl FnOnce() -> Settings,
) -> Result<Attachment, AttachError> {
    // What a launcher of others says may be any number.
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
        tie: None,
        _watched_by: None,
        agent: Some(agent),
    })
}

/// Rank 0 of another launcher's job: makes the job and lets the others in.
fn first_of_job(
    mut client: Foreign,
    settings: impl FnOnce() -> Settings,
) -> Result<Attachment, AttachError> {
    let processes = client.place().size;
    let cpus = processors_of_job(processes);
    let launcher = client.connection().map_err(AgentError::System)?;
    let mut attachment = found_job(processes, cpus, launcher, settings)?;
    let host = HostId(attachment.segment.plan().host);
    client.put(ADDRESS_KEY, &Address { host, name: own_name() }.to_string())?;
    client.fence()?;
    // Behind the second fence all have joined: the job is whole when anybody begins to work in it,
    // and the agent stays until then.
    client.fence()?;
    if let Some(rank) = (1..processes).find(|&rank| !has_joined(&attachment.segment, rank)) {
        let value = client.get(rank, &elsewhere_key(rank))?;
        let other = Address::parse(&value).ok_or(AttachError::Address { value })?;
        // As below.
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

/// Where a process that cannot join says on which host it is.
fn elsewhere_key(rank: u32) -> String {
    format!("landeck-elsewhere-{rank}")
}

/// Any other rank of such a job: joins the job that rank 0 makes.
fn other_of_job(mut client: Foreign) -> Result<Attachment, AttachError> {
    let rank = client.place().rank;
    client.fence()?;
    let value = client.get(0, ADDRESS_KEY)?;
    let address = Address::parse(&value).ok_or(AttachError::Address { value })?;
    let joined = socket::join_as(address.host, Slot(rank), START_TIME);
    if let Err(JoinError::Exchange(ExchangeError::NobodyThere { .. })) = &joined {
        let own = Address { host: address.host, name: own_name() };
        client.put(&elsewhere_key(rank), &own.to_string())?;
        // Nobody waits for us: rank 0 sees that we have not joined, and fails as well.
        client.fence()?;
        let error = AttachError::TwoHosts { first: address.name, rank, own: own.name };
        // A launcher ends all of its job, this process too, when it is told to or when the connection
        // closes. It stays open until this process has said why and ends.
        std::mem::forget(client);
        return Err(error);
    }
    let mut attachment = as_joined(joined, address.host, Origin::Socket)?;
    client.fence()?;
    attachment.origin = Origin::Foreign(client);
    Ok(attachment)
}

/// How rank 0 of another launcher's job is reached: its job, and the name of its host for people.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: HostId,
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

/// The longest name of a host that is passed on.
const NAME_BYTES: usize = 64;

impl fmt::Display for Address {
    /// In letters that every launcher can carry: the name in hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.", self.host)?;
        self.name.bytes().take(NAME_BYTES).try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The value of a variable of a type, if it is set.
fn variable<T: std::str::FromStr>(name: &'static str) -> Result<Option<T>, AttachError> {
    let Some(text) = own_text(name) else { return Ok(None) };
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(AttachError::Variable { name, value: Some(text) }),
    }
}

/// The processors that the processes of a foreign launcher have together. One that binds each to
/// its own processors is why the affinity of this one does not say.
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

/// What a job is called that no launcher of ours has named.
fn own_program() -> JobName {
    let program = env::args_os().next().map(std::path::PathBuf::from);
    let name = program.as_deref().and_then(std::path::Path::file_name);
    JobName::new(&name.map(|name| name.to_string_lossy()).unwrap_or_default())
}

/// This host's name, for people.
fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_testing::Watchdog;

    const LIMIT: Duration = Duration::from_secs(200);

    fn none() -> Settings {
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
    fn who_makes_a_segment_asks_for_settings() {
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
        let host = first.process().host;
        let guest = over_socket(host, None).unwrap();
        assert_eq!(guest.process().host, host);
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
        let host = first.process().host;
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
        let address = Address { host: HostId(0xff), name: "häuschen.example".into() };
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
