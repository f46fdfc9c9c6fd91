//! The hosts of a job, and processes that are started there while the job runs.
//!
//! A started process is a guest with a parent: the launcher starts it, watches it and ends it as one of the job's own, and
//! it joins by [`Job::join`]. It has no rank in [`Job::world`]. It meets the others by names: in a
//! [named group](crate::group_service) it takes part in collective operations from the next [`crate::Member::advance`] on.
//!
//! This program is started by `landeck run -n 1`, and starts itself once more:
//!
//! ```no_run
//! use landeck::{GroupOptions, Job, Executable, Sum};
//!
//! fn main() -> landeck::Result<()> {
//!     let job = Job::join()?;
//!     let group = match job.open_group("workers") {
//!         Ok(group) => group, // this process was started by the one below
//!         Err(_) => job.create_group("workers", GroupOptions::default().minimum(2))?,
//!     };
//!     if job.world().rank() == 0 {
//!         let hosts = job.hosts();
//!         let idlest = hosts.iter().filter(|host| host.is_up()).min_by_key(|host| host.processes());
//!         let started = job.start_on(idlest.expect("its own"), &Executable::new("./this"))?;
//!         println!("process {} has joined", started.pid());
//!     }
//!     let mut inbox = job.create_mailbox()?;
//!     let mut member = group.join(&mut inbox)?;
//!     group.wait_started()?;
//!     member.advance()?; // the world of those that are members now
//!     println!("{} members", member.world()?.all_reduce(1u32, Sum)?);
//!     member.leave()?;
//!     job.leave()
//! }
//! ```

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use landeck_engine::deadline_ns;
use landeck_joining::socket::{self, AGENT_TIME, StartWish};
use landeck_memory::{FarRecord, Segment, SlotState, WaitRecord};
use landeck_wire::{HostNumber, ProcessId};

use crate::error::{self, Error, Members, Result};
use crate::job::Job;
use crate::store::Store;

impl From<&HostOfJob> for Store {
    /// The wish that data wait on this host.
    fn from(host: &HostOfJob) -> Self {
        Self::Host(HostNumber(host.number()))
    }
}

/// How long the joining of a started process is waited for, if its program does not say.
const JOIN_TIME: Duration = Duration::from_secs(30);

/// A host of a job, as this process's host knew it when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOfJob {
    number: HostNumber,
    name: String,
    is_own: bool,
    is_up: bool,
    processors: u32,
    processes: u32,
}

impl HostOfJob {
    /// Returns the name by which the user named the host; in a job on one host the system's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the host in its machine; 0 in a job on one host. A host that was lost or has left has its number
    /// again when it comes back, and no other one gets it.
    #[must_use]
    pub fn number(&self) -> u16 {
        if self.number == HostNumber::NONE { 0 } else { self.number.0 }
    }

    /// Returns whether this process runs there.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Returns whether the host belongs to the machine still: it is not lost and has not left.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns how many processors the user's processes may use there; on other hosts than that of a job on one host these
    /// are cores. 0 if that is not known.
    #[must_use]
    pub fn processors(&self) -> u32 {
        self.processors
    }

    /// Returns how many processes of the job live there: those that it began with, and those that were started while it runs.
    /// Guests are not counted.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.processes
    }
}

/// A program to be started in a running job ([`Job::start_on`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    join_within: Duration,
}

impl Executable {
    /// Creates the description of a program. A name with a slash is a path, relative to the working directory; any other is
    /// searched for in PATH, on the host where it is started. Its environment and its working directory are those with which
    /// the launcher started the program of the calling process.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            directory: None,
            join_within: JOIN_TIME,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets how long [`Job::start_on`] waits until it has joined; 30 s if this is not called.
    #[must_use]
    pub fn join_within(mut self, time: Duration) -> Self {
        self.join_within = time;
        self
    }

    fn wish(&self, asker: ProcessId, host: HostNumber) -> StartWish {
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let pair = |(name, value): &(OsString, OsString)| (bytes(name), bytes(value));
        StartWish {
            asker,
            host,
            program: bytes(&self.program),
            arguments: self.arguments.iter().map(|argument| bytes(argument)).collect(),
            variables: self.variables.iter().map(pair).collect(),
            directory: self.directory.clone().map(|path| path.into_os_string().into_vec()),
            join_ms: u64::try_from(self.join_within.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// A process that was started in a running job and has joined it. Dropping this does nothing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedProcess {
    process: ProcessId,
    pid: u32,
}

impl StartedProcess {
    /// Returns its identity, which its own [`Job::process`] returns as well.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Returns its process number on its host.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Job {
    /// Returns the hosts that this process's host knows, in the order of their numbers: those of the job, and those that
    /// have come into its machine since it began. In a machine that stays these are all its hosts. A job on one host outside
    /// machines has that host alone.
    ///
    /// This reads memory of this host, and may be called at any time by any thread that may call the library.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostOfJob> {
        hosts_of(&self.shared.segment)
    }

    /// Waits until [`Job::hosts`] differs from `known`, for at most `time`, and returns it: a host has come, is lost or has
    /// left, or a process of the job has come or gone.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TimedOut`], [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn hosts_after_within(
        &self,
        known: &[HostOfJob],
        time: Duration,
    ) -> Result<Vec<HostOfJob>> {
        let segment = &self.shared.segment;
        let mut looked_at = None;
        error::call(&self.shared, "hosts_after", || {
            let waited =
                self.shared.wait_until(&WaitRecord::default(), deadline_ns(Some(time)), |_| {
                    let generation = Some(segment.membership_generation());
                    if std::mem::replace(&mut looked_at, generation) == generation {
                        return None;
                    }
                    Some(hosts_of(segment)).filter(|hosts| hosts != known)
                });
            waited.map_err(|error| Error::of_wait(&self.shared, error, Some(time), Members::OF_JOB))
        })
    }

    /// Starts a program on a host of [`Job::hosts`], and waits until it has joined ([`Executable::join_within`]). A host of
    /// the machine on which the job has no process takes part in it from then on.
    ///
    /// The process is one of the job: `landeck ps` shows it as `started 0`, the launcher shows its output, its failure has
    /// the consequence that `--on-failure` says, and the job lasts until it has ended. It has no standard input, and is not
    /// started again. It takes one of the slots for guests of its host, of which there are 16.
    ///
    /// Other operations of this process do not advance meanwhile, unless it has a progress thread. A program that does not
    /// join is an error after the time limit, and stays a process of the job.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Start`]: the host cannot take part in the job, the host is lost, there is no such program, no slot is
    /// free, the process has ended or has not joined in time, or another launcher started the job.
    /// [`crate::ErrorKind::Thread`].
    pub fn start_on(&self, host: &HostOfJob, program: &Executable) -> Result<StartedProcess> {
        error::call(&self.shared, "start_on", || {
            drop(self.shared.engine.enter()?);
            let wish = program.wish(self.process(), host.number);
            let patience = program.join_within.saturating_add(AGENT_TIME);
            let (process, pid) = socket::start(wish, patience)?;
            Ok(StartedProcess { process, pid })
        })
    }
}

/// The hosts that a segment knows.
fn hosts_of(segment: &Segment) -> Vec<HostOfJob> {
    let plan = segment.plan();
    let is_ours = |slot: &u32| {
        let record = segment.slot_record(*slot);
        let is_guest = segment.rank_of(*slot).is_none() && record.replaces.is_none();
        lives(record.state) && !is_guest
    };
    let own_processes = (0..plan.slots()).filter(is_ours).count() as u32;
    let Some(own) = segment.own_host_number() else {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        return vec![HostOfJob {
            number: HostNumber::NONE,
            name,
            is_own: true,
            is_up: true,
            processors: plan.cpus,
            processes: own_processes,
        }];
    };
    let far: Vec<_> = (0..plan.far)
        .map(|far| segment.far_record(far))
        .filter(|record| record.state != SlotState::Free)
        .collect();
    let host = |number: u16| {
        let name = segment.host_name(number).to_string();
        let (processors, is_gone) = segment.host_state(number);
        let its = || far.iter().filter(|record| record.host_number == number);
        let is_own = number == own;
        let is_ours = |record: &&FarRecord| lives(record.state) && !record.is_guest;
        let alive = its().filter(is_ours).count() as u32;
        (!name.is_empty()).then(|| HostOfJob {
            number: HostNumber(number),
            name,
            is_own,
            is_up: !is_gone,
            processors: processors.into(),
            processes: if is_own { own_processes } else { alive },
        })
    };
    let numbers = 0..u16::try_from(plan.hosts).unwrap_or(u16::MAX);
    numbers.filter_map(host).collect()
}

/// Whether a slot or far record is that of a process that takes part, or is about to.
fn lives(state: SlotState) -> bool {
    matches!(state, SlotState::Reserved | SlotState::Alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::membership::Replaced;
    use landeck_memory::{FarProcess, JobName, SegmentPlan, SlotRecord};

    #[test]
    fn hosts_are_known_with_their_processes_and_ends() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&SegmentPlan { ranks: 4, far: 4, hosts: 8, ..plan });
        segment.set_own_host(3, 1);
        let (alive, started) = (SlotState::Alive, Some(Replaced { rank: 4, number: 0 }));
        segment.set_peer_of_rank(1, 0);
        let rank = SlotRecord { state: alive, ..SlotRecord::default() };
        segment.set_slot_record(0, rank);
        segment.set_slot_record(2, rank);
        segment.set_slot_record(3, SlotRecord { replaces: started, ..rank });
        for (number, name) in [(0, "n1"), (3, "n2"), (5, "n3")] {
            segment.set_host_name(number, JobName::new(name));
            segment.set_host_state(number, 4, number == 0);
        }
        for (far, state, is_guest) in
            [(0, SlotState::Dead, false), (1, alive, false), (2, alive, true)]
        {
            let process = FarProcess { host: 9, slot: far, incarnation: 1 };
            let record = FarRecord { process, state, is_guest, ..FarRecord::default() };
            segment.set_far_record(far, record);
        }
        let seen = hosts_of(&segment);
        let told: Vec<_> =
            seen.iter().map(|it| (it.name(), it.number(), it.is_own(), it.is_up())).collect();
        assert_eq!(told, [("n1", 0, false, false), ("n2", 3, true, true), ("n3", 5, false, true)]);
        let counts = seen.iter().map(|it| (it.processes(), it.processors()));
        assert_eq!(counts.collect::<Vec<_>>(), [(1, 4), (2, 4), (0, 4)]);
    }

    #[test]
    fn a_job_on_one_host_has_that_host() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, cpus: 3, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&plan);
        let state = SlotState::Alive;
        segment.set_slot_record(1, SlotRecord { state, ..SlotRecord::default() });
        let seen = hosts_of(&segment);
        let [own] = &seen[..] else { panic!("{seen:?}") };
        assert!(own.is_own() && own.is_up() && !own.name().is_empty());
        assert_eq!((own.number(), own.processes(), own.processors()), (0, 1, 3));
    }
}
