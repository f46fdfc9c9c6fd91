//! Joining a job and leaving it.

use std::sync::Arc;
use std::{fmt, io};

use landeck_collectives::Settings;
use landeck_host::say::complain;
use landeck_joining::address::{connect_to_daemon, reconnect_to_daemon};
use landeck_joining::attach::{self, Attachment};
pub use landeck_joining::attach::{Restarted, WayBack};
use landeck_joining::machines;
use landeck_kernel::{Endpoint, Peer};
use landeck_memory::{Counters, GateError, Segment, ThreadMode, fork};
use landeck_transports::lanes::lanes_max;
use landeck_transports::{Lanes, SharedMemory};
use landeck_wire::SegmentId;

use crate::error::{self, Error, ErrorKind, Members, Result};
use crate::loan::Loan;
use crate::settings::one_copy;
use crate::settings::paths::Paths;
use crate::settings::{self, tuning};
use crate::store::{self, Store};
use crate::world::World;
use landeck_engine::context::WORLD_CONTEXT;
use landeck_engine::{Fault, Progress, ProgressThread, Shared, first_world};
use landeck_named_groups::{AsGuest, ServerHandle};

/// The membership of this process in its job. A process has at most one.
///
/// Dropping it without [`Job::leave`] also leaves in good order, unless the thread panics: then the
/// job treats this process as dead.
pub struct Job {
    pub(crate) shared: Arc<Shared>,
    /// The handle of the thread of this process that serves groups, if one does.
    pub(crate) server_handle: Arc<ServerHandle>,
    progress: Option<ProgressThread>,
    attachment: Option<Attachment>,
}

/// Options for joining a job.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The threads that may call the library; fixed for as long as the process is in the job.
    pub threads: ThreadMode,
    /// The threads that advance pending operations. [`Progress::Thread`] implies
    /// [`ThreadMode::Multiple`].
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: ThreadMode::Single, progress: Progress::Callers }
    }
}

impl Job {
    /// Joins the job that this process was started for by `landeck run`, or by another launcher
    /// that speaks PMI-1 or PMIx. A process that was started by hand becomes a job of one process.
    /// Only the calling thread may use the job.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`].
    pub fn join() -> Result<Self> {
        Self::join_with(Options::default())
    }

    /// Joins the job that this process was started for, as [`Job::join`] does, with a thread mode
    /// and a progress mode.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`], [`ErrorKind::ProgressThread`]; [`ErrorKind::Thread`] in a child that a process of a
    /// job has made by fork.
    pub fn join_with(options: Options) -> Result<Self> {
        let joined = || -> Result<Self> {
            GateError::refuse_children()?;
            Self::with_attachment(attach::attach(settings)?, options, Self::as_guest)
        };
        joined().map_err(|error| error.of_call("join", None))
    }

    /// Joins a running job of this user on this host as a guest, beside the processes it was
    /// started with. `job` is the name of the job (`landeck run --name`, else the program's file
    /// name) or the first digits of its identity (`landeck ps`). A program that calls [`Job::join`]
    /// and was started by hand does the same if the environment variable `LANDECK_JOB` names a job.
    ///
    /// A guest has no rank in [`Job::world`]; it meets other processes by names
    /// ([`crate::mailbox`], [`crate::port`]). When it leaves or dies, its slot becomes free for
    /// another guest.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`]: there is no such job, or it has as many guests as it can take.
    pub fn join_running(job: &str, options: Options) -> Result<Self> {
        let joined = || Self::with_attachment(attach::running(job)?, options, Self::as_guest);
        joined().map_err(|error| error.of_call("join_running", None))
    }

    /// Joins the own job of a machine of this user as a guest: the machine that the environment variable `LANDECK_MACHINE`
    /// names, or else the only one that this host is in. No launcher starts that job. It begins when a process first joins it,
    /// on any host, and stays until the machine is stopped or `landeck end` ends it. So processes that are started
    /// from shells meet here, as guests do in [`Job::join_running`]: by names, mailboxes and groups.
    ///
    /// ```no_run
    /// use landeck::{Job, Options};
    ///
    /// let job = Job::join_machine(Options::default())?;
    /// let mut inbox = job.create_mailbox()?;
    /// let group = job.open_group("weather").or_else(|_| job.create_group("weather", Default::default()))?;
    /// let member = group.join(&mut inbox)?;
    /// # drop(member);
    /// # Ok::<(), landeck::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Attach`]: there is no such machine, it is being stopped, its founder does not answer, or 128 processes of
    /// this host are in the job.
    pub fn join_machine(options: Options) -> Result<Self> {
        let machine = std::env::var(machines::VARIABLE).ok();
        let attached = || attach::machine(machine.as_deref());
        let joined = || Self::with_attachment(attached()?, options, Self::as_guest);
        joined().map_err(|error| error.of_call("join_machine", None))
    }

    /// Joins the job of a host as a guest, calls `body`, and leaves.
    fn as_guest(
        host: SegmentId,
        body: &mut dyn FnMut(&Arc<Shared>, &Arc<ServerHandle>),
    ) -> std::result::Result<(), String> {
        Self::in_guest(Self::join_running(&host.to_string(), Options::default()), body)
    }

    /// Calls `body` in a guest that has joined, which then leaves.
    pub(crate) fn in_guest(
        guest: Result<Self>,
        body: &mut dyn FnMut(&Arc<Shared>, &Arc<ServerHandle>),
    ) -> std::result::Result<(), String> {
        let guest = guest.map_err(|error| error.kind.to_string())?;
        body(&guest.shared, &guest.server_handle);
        // The effects of the body remain, even if the guest cannot leave in good order.
        let _ = guest.leave();
        Ok(())
    }

    /// Takes part with an attachment. A thread of this process that serves groups joins by `as_guest`.
    pub(crate) fn with_attachment(
        attachment: Attachment,
        options: Options,
        as_guest: AsGuest,
    ) -> Result<Self> {
        let (segment, slot) = (&attachment.segment, attachment.slot);
        let threads = match options.progress {
            Progress::Callers => options.threads,
            Progress::Thread => ThreadMode::Multiple,
        };
        let shared =
            Shared::new(segment, slot, threads, options.progress).ok_or(ErrorKind::Ended)?;
        let shared = Arc::new(shared);
        connect_to_hosts(&shared)?;
        one_copy::begin(&shared)?;
        segment.keep_from_children();
        let thread = ProgressThread::of(&shared).map_err(ErrorKind::ProgressThread)?;
        let server_handle = Arc::new(ServerHandle::new(as_guest));
        Ok(Self { shared, server_handle, progress: thread, attachment: Some(attachment) })
    }

    /// Returns which process this one replaces, if the launcher restarted it after a failure
    /// (`landeck run --on-failure restart`). Returns `None` in a process of the first world, or in
    /// a guest.
    ///
    /// A restarted process has no rank in [`Job::world`], where its predecessor stays dead. Other
    /// processes meet it as they meet guests: by names ([`crate::mailbox`], [`crate::port`]).
    pub fn restart(&self) -> Option<Restarted> {
        self.attachment.as_ref()?.restart
    }

    /// Returns the world of all processes that the job began with, in the order of their ranks.
    pub fn world(&self) -> World {
        World::new(self.shared.clone(), WORLD_CONTEXT, first_world(&self.shared.segment))
    }

    /// Allocates `count` values in the shared heap. The program fills them here, and a receiver on
    /// this host reads them in place wherever they are sent.
    ///
    /// # Errors
    /// [`ErrorKind::Heap`], [`ErrorKind::Thread`].
    pub fn loan<T: landeck_memory::Plain>(&self, count: usize) -> Result<Loan<T>> {
        error::call(&self.shared, "loan", || Loan::new(&self.shared, count))
    }

    /// Returns the counters of this process since it joined.
    pub fn counters(&self) -> Counters {
        self.shared.segment.counters(self.shared.slot)
    }

    /// Returns how many bytes of this process's shared heap are in use: by loans, by data in
    /// flight, and by worlds.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn heap_in_use(&self) -> Result<u64> {
        Ok(self.shared.engine.enter()?.endpoint.heap_in_use())
    }

    /// Returns the slot of this process in the job's segment.
    pub fn slot(&self) -> u32 {
        self.shared.slot
    }

    /// Returns the identity of this process: its host, its slot and its incarnation.
    pub fn process(&self) -> landeck_wire::ProcessId {
        self.shared.process()
    }

    /// Acknowledges the processes that have died, so that receives from [`Any`](crate::Any) go on
    /// without them. Returns their ranks in the first world.
    ///
    /// The acknowledgement holds for all threads of the process: a receive from any sender in
    /// another thread no longer reports these deaths. Receive from any sender in one thread only,
    /// or let the acknowledging thread tell the others.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn acknowledge_failures(&self) -> Result<Vec<usize>> {
        error::call(&self.shared, "acknowledge_failures", || {
            let peers = self.shared.engine.enter()?.endpoint.acknowledge_failures();
            // A process without a rank there is named by its slot.
            let rank = |peer: Peer| self.shared.segment.rank_of_peer(peer.0).unwrap_or(peer.0);
            Ok(peers.into_iter().map(|peer| rank(peer) as usize).collect())
        })
    }

    /// Returns the wish with this name for where the data of long messages wait: `receiver`, `sender`, `auto`, `least-loaded`,
    /// or the name of a host of the job.
    ///
    /// # Errors
    /// [`ErrorKind::NoStore`].
    pub fn store_named(&self, name: &str) -> Result<Store> {
        store::named(&self.shared.segment, name)
    }

    /// Ends the whole job and this process, whatever failure policy the job has. The system keeps
    /// the lowest 8 bits of the exit code; if these are 0, which would mean success, the code is 1.
    /// A child made by fork ends alone and says so on standard error.
    pub fn abort(mut self, exit_code: i32, message: &str) -> ! {
        if fork::is_child() {
            let (pid, slot) = (std::process::id(), self.shared.slot);
            fork::say(&format!(
                "pid {pid}, made by fork from process {slot} of the job, called abort with code \
                 {exit_code} ({message}): it ends alone, for it is no member of the job, which goes on."
            ));
            fork::end_child(exit_code)
        }
        let exit_code = if exit_code & 0xff == 0 { 1 } else { exit_code };
        if let Some(attachment) = &mut self.attachment {
            // Where a launcher cannot be told, it sees the exit code below.
            let _ = attachment.abort(exit_code, message);
        }
        std::process::exit(exit_code)
    }

    /// Waits until this process has transferred everything that it sent.
    ///
    /// # Errors
    /// [`ErrorKind::Ended`].
    pub fn drain(&self) -> Result<()> {
        self.world().drain()
    }

    /// Waits as [`Job::drain`] does, and says goodbye to the processes of other hosts: nothing more of theirs is received.
    /// On one host the goodbye is [`Job::rest`].
    ///
    /// # Errors
    /// [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn take_leave(&self) -> Result<()> {
        self.world().take_leave()
    }

    /// Leaves the job in good order: waits until this process has transferred everything that it
    /// sent, then announces its departure.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`] when another launcher does not accept the departure,
    /// [`ErrorKind::Ended`]. [`ErrorKind::Mismatch`] when members of one of its worlds have called
    /// different operations and no call has reported it: this process has left all the same.
    pub fn leave(mut self) -> Result<()> {
        let left = self.leave_once();
        left.map_err(|error| error::in_call(&self.shared, "leave", error))
    }

    /// Returns whether other hosts take part in the job, or have: those that it began on, and those that were added.
    #[must_use]
    pub fn spans_hosts(&self) -> bool {
        self.shared.segment.knows_other_hosts()
    }

    /// Returns how this process can join a job again after it has left this one.
    pub fn way_back(&self) -> WayBack {
        self.attachment.as_ref().map_or(WayBack::None, Attachment::way_back)
    }

    /// Announces that this process has left, but keeps its slot ([`WayBack::SamePlace`]): it may
    /// then end in any way, or [come back](Job::come_back). Call [`Job::take_leave`] first.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] as [`Job::leave`].
    pub fn rest(&self) -> Result<()> {
        if let Some(attachment) = &self.attachment {
            attachment.rest();
            tell_departure(&self.shared);
        }
        let mismatch = self.unnoticed_mismatch();
        mismatch.map_or(Ok(()), |error| Err(error::in_call(&self.shared, "rest", error)))
    }

    /// Announces that this process may end in any way, but keeps its place ([`WayBack::SamePlace`]). The others count on
    /// it still, since it may come [back](Job::come_back) to the worlds that it is a member of. Call [`Job::drain`] first.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] as [`Job::leave`].
    pub fn pause(&self) -> Result<()> {
        if let Some(attachment) = &self.attachment {
            attachment.pause();
        }
        let mismatch = self.unnoticed_mismatch();
        mismatch.map_or(Ok(()), |error| Err(error::in_call(&self.shared, "pause", error)))
    }

    /// Takes part in the job again, after [`Job::pause`] or [`Job::rest`]. After the latter it is another member, in the
    /// same place, and the worlds that it was a member of before are over for it.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`]: the job ends, or its agent does not answer.
    pub fn come_back(&self) -> Result<()> {
        let come_back = || -> Result<()> {
            GateError::refuse_children()?;
            let Some(attachment) = &self.attachment else { return Ok(()) };
            attachment.come_back()?;
            let has_left = self.shared.engine.enter()?.endpoint.has_left();
            match has_left {
                true => connect_to_hosts(&self.shared).inspect_err(|_| attachment.rest()),
                false => Ok(()),
            }
        };
        come_back().map_err(|error| error::in_call(&self.shared, "come_back", error))
    }

    fn leave_once(&mut self) -> Result<()> {
        let Some(attachment) = self.attachment.take() else { return Ok(()) };
        if fork::is_child() {
            // The place in the job is the parent's, and so are the threads that keep it.
            std::mem::forget(attachment);
            return Err(GateError::Forked.into());
        }
        self.server_handle.end();
        // A process that could not send everything has not left in good order.
        let left = self.shared.take_leave();
        let drained =
            left.map_err(|error| Error::of_wait(&self.shared, error, None, Members::OF_JOB));
        let mismatch = self.unnoticed_mismatch();
        self.progress = None;
        self.shared.drop_ended_watchers();
        attachment.leave()?;
        tell_departure(&self.shared);
        drained?;
        mismatch.map_or(Ok(()), Err)
    }

    /// Returns that members of a world called different operations, if no call here reported it.
    fn unnoticed_mismatch(&self) -> Option<Error> {
        let mismatch = Fault::Mismatch(self.shared.unnoticed_mismatch()?);
        Some(ErrorKind::of_fault(mismatch, &self.shared.segment, Members::OF_JOB).into())
    }
}

/// Connects a process to the daemon of its host, which opens the lanes to other hosts. A rank that knows no other host does so
/// once there is one; a guest at once, since by its connection the daemon knows of its end. A job outside machines needs
/// neither.
///
/// # Errors
/// [`ErrorKind::NoDaemon`].
fn connect_to_hosts(shared: &Shared) -> Result<()> {
    let (segment, slot) = (shared.segment.clone(), shared.slot);
    let mut engine = shared.engine.enter()?;
    // The hosts of the job may have no names yet.
    engine
        .endpoint
        .set_store(store::resolved(&segment, paths_of(&segment).store).unwrap_or_default());
    if !segment.plan().has_host_tables() {
        return Ok(());
    }
    match segment.rank_of(slot).is_some() && !segment.knows_other_hosts() {
        true => engine.endpoint.await_hosts(Box::new(opener(segment, slot))),
        false => open_network(&mut engine.endpoint, &segment, slot).map_err(ErrorKind::NoDaemon)?,
    }
    drop(engine);
    shared.forget_wake_thread();
    Ok(())
}

/// Opens the network of a process later. The first failure is said to its user.
fn opener(segment: Segment, slot: u32) -> impl FnMut(&mut Endpoint<SharedMemory>) -> bool + Send {
    let mut has_failed = false;
    move |endpoint| {
        let opened = open_network(endpoint, &segment, slot);
        let is_open = opened.is_ok();
        if let Err(error) = opened
            && !std::mem::replace(&mut has_failed, true)
        {
            complain(format_args!("landeck: {}", ErrorKind::NoDaemon(error)));
        }
        is_open
    }
}

fn paths_of(segment: &Segment) -> Paths {
    Paths::of(&Settings::from_words(&segment.plan().settings))
}

fn open_network(
    endpoint: &mut Endpoint<SharedMemory>,
    segment: &Segment,
    slot: u32,
) -> io::Result<()> {
    let paths = paths_of(segment);
    let socket = connect_to_daemon(SegmentId(segment.plan().host))?;
    let most = lanes_max(paths.lanes_max);
    let mut lanes = Lanes::with_relays(socket, segment, slot, paths.wish, most)?;
    let host = SegmentId(segment.plan().host);
    lanes.reconnect_by(move || reconnect_to_daemon(host));
    endpoint.set_network(Box::new(lanes));
    endpoint.set_incast(paths.incast);
    endpoint.set_store(store::resolved(segment, paths.store).unwrap_or_else(|| {
        complain(format_args!("landeck: {}: no host of this job has that name", settings::STORE));
        Store::Receiver
    }));
    Ok(())
}

/// Tells the daemon of this host that this process has left. The names that it has in its job end with that.
fn tell_departure(shared: &Shared) {
    let (segment, slot) = (&shared.segment, shared.slot);
    if !shared.tell_departure()
        && segment.plan().has_host_tables()
        && let Ok(socket) = connect_to_daemon(SegmentId(segment.plan().host))
    {
        // Without this, the daemon learns of it when the process ends.
        Lanes::tell_departure_of(segment, slot, socket);
    }
}

/// The settings of a job that this process creates, shared by all its processes.
fn settings() -> attach::ReadSettings {
    let (settings, trouble) = tuning::with_figures(settings::asked([])?);
    if let Some(trouble) = trouble {
        complain(format_args!("landeck: {trouble}"));
    }
    Ok(settings.to_words())
}

impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Job").field("process", &self.process()).finish_non_exhaustive()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // Nobody is left to tell.
            let _ = self.leave_once();
        }
    }
}
