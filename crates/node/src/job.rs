//! Joining a job and leaving it.

use std::fmt;
use std::sync::Arc;

use landeck_host::attach::{self, Attachment};
pub use landeck_host::attach::{Restarted, WayBack};
use landeck_host::say::complain;
use landeck_kernel::Peer;
use landeck_memory::{Counters, GateError, Presence, ThreadMode, fork};
use landeck_wire::HostId;

use crate::error::{self, Error, ErrorKind, Result};
use crate::loan::Loan;
use crate::tuning;
use crate::world::World;
use landeck_engine::context::WORLD_CONTEXT;
use landeck_engine::{Fault, Progress, ProgressThread, Shared};
use landeck_named_groups::ServerHandle;

/// This process's membership in its job. One per process.
///
/// Dropped without [`Job::leave`], it leaves in good order all the same, unless the thread
/// panics: then the job learns of a death.
pub struct Job {
    pub(crate) shared: Arc<Shared>,
    /// The thread of this process that serves groups, if one does.
    pub(crate) server_handle: Arc<ServerHandle>,
    progress: Option<ProgressThread>,
    attachment: Option<Attachment>,
}

/// How to join.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which threads may call; fixed for as long as the process is in the job.
    pub threads: ThreadMode,
    /// Who advances operations that go on; a thread that does implies [`ThreadMode::Multiple`].
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: ThreadMode::Single, progress: Progress::Callers }
    }
}

impl Job {
    /// Joins the job that this process was started for: by `landeck run`, by another launcher
    /// that speaks PMI-1 or PMIx; a job of one when it was started by hand. Only the calling thread may
    /// use it.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`].
    pub fn join() -> Result<Self> {
        Self::join_with(Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`], [`ErrorKind::ProgressThread`]; [`ErrorKind::Thread`] in a child that a process of a
    /// job has made by fork.
    pub fn join_with(options: Options) -> Result<Self> {
        let joined = || -> Result<Self> {
            GateError::refuse_children()?;
            Self::with_attachment(attach::attach(settings)?, options)
        };
        joined().map_err(|error| error.of_call("join", None))
    }

    /// Joins a running job of this user on this host, as a guest beside the processes it was started
    /// with: by its name (`landeck run --name`, else the program's file), or by the first digits of
    /// its identity (`landeck ps`). The environment variable `LANDECK_JOB` does the same for a program
    /// that calls [`Job::join`] and was started by hand.
    ///
    /// A guest has no rank in [`Job::world`]; it meets others by names ([`crate::mailbox`], [`crate::port`]).
    /// When it leaves or dies, another may take its slot.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`]: there is no such job, or it has as many guests as it can take.
    pub fn join_running(job: &str, options: Options) -> Result<Self> {
        let joined = || Self::with_attachment(attach::running(job)?, options);
        joined().map_err(|error| error.of_call("join_running", None))
    }

    /// Joins the job of a host as a guest, calls `body`, and leaves.
    fn as_guest(
        host: HostId,
        body: &mut dyn FnMut(&Arc<Shared>, &Arc<ServerHandle>),
    ) -> std::result::Result<(), String> {
        let guest = Self::join_running(&host.to_string(), Options::default());
        let guest = guest.map_err(|error| error.kind.to_string())?;
        body(&guest.shared, &guest.server_handle);
        // The body's effects stay, even if the guest cannot leave in good order.
        let _ = guest.leave();
        Ok(())
    }

    fn with_attachment(attachment: Attachment, options: Options) -> Result<Self> {
        let (segment, slot) = (&attachment.segment, attachment.slot);
        let threads = match options.progress {
            Progress::Callers => options.threads,
            Progress::Thread => ThreadMode::Multiple,
        };
        let shared =
            Shared::new(segment, slot, threads, options.progress).ok_or(ErrorKind::Ended)?;
        let shared = Arc::new(shared);
        segment.keep_from_children();
        let thread = ProgressThread::of(&shared).map_err(ErrorKind::ProgressThread)?;
        segment.set_presence(slot, Presence::Attached);
        let server_handle = Arc::new(ServerHandle::new(Self::as_guest));
        Ok(Self { shared, server_handle, progress: thread, attachment: Some(attachment) })
    }

    /// Which process this one replaces, if the launcher has started it again after a failure
    /// (`landeck run --on-failure restart`). None in a process of the first world, or a guest.
    ///
    /// It is a new process: it has no rank in [`Job::world`], where its predecessor stays dead. The
    /// others meet it as they meet guests: by names ([`crate::mailbox`], [`crate::port`]).
    pub fn restart(&self) -> Option<Restarted> {
        self.attachment.as_ref()?.restart
    }

    /// All processes that the job began with, in the order of their ranks.
    pub fn world(&self) -> World {
        let members: Arc<[Peer]> = (0..self.shared.segment.plan().processes).map(Peer).collect();
        World::new(self.shared.clone(), WORLD_CONTEXT, members)
    }

    /// Memory of the shared heap: filled here, read in place wherever it is sent on this host.
    ///
    /// # Errors
    /// [`ErrorKind::Heap`], [`ErrorKind::Thread`].
    pub fn loan<T: landeck_memory::Plain>(&self, count: usize) -> Result<Loan<T>> {
        error::call(&self.shared, "loan", || Loan::new(&self.shared, count))
    }

    /// What was counted since joining.
    pub fn counters(&self) -> Counters {
        self.shared.segment.counters(self.shared.slot)
    }

    /// Bytes of this process's shared heap that are in use: loans, data on their way, and what
    /// worlds are made of.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn heap_in_use(&self) -> Result<u64> {
        Ok(self.shared.kernel.enter()?.heap_in_use())
    }

    /// This process's slot there.
    pub fn slot(&self) -> u32 {
        self.shared.slot
    }

    /// Who this process is.
    pub fn process(&self) -> landeck_wire::ProcessId {
        self.shared.process()
    }

    /// Takes note of the processes that have died: receives from anybody go on without them.
    /// Returns their ranks in the first world.
    ///
    /// It speaks for all threads of the process: a receive from anybody in another thread that had
    /// not yet been told of these deaths will not be. So let one thread receive from anybody, or
    /// have the one that acknowledges tell the others.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn acknowledge_failures(&self) -> Result<Vec<usize>> {
        error::call(&self.shared, "acknowledge_failures", || {
            let peers = self.shared.kernel.enter()?.acknowledge_failures();
            Ok(peers.into_iter().map(|peer| peer.0 as usize).collect())
        })
    }

    /// Ends the whole job, whatever the failure of a process means in it, and this process. What the
    /// system keeps of the exit code are its lowest 8 bits; 1 stands for 0, which would be success. A
    /// child made by fork ends alone, and says so on standard error.
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

    /// Waits until what was sent is out of this process's hands.
    ///
    /// # Errors
    /// [`ErrorKind::Ended`].
    pub fn drain(&self) -> Result<()> {
        self.world().drain()
    }

    /// Leaves in good order: waits until what was sent is out of this process's hands, then says
    /// goodbye.
    ///
    /// # Errors
    /// [`ErrorKind::Attach`] when another launcher does not take leave, [`ErrorKind::Ended`].
    /// [`ErrorKind::Mismatch`] when members of one of its worlds have called different operations and no
    /// call was told so: this process has left all the same.
    pub fn leave(mut self) -> Result<()> {
        let left = self.leave_once();
        left.map_err(|error| error::in_call(&self.shared, "leave", error))
    }

    /// How this process can be in a job again after it has left this one.
    pub fn way_back(&self) -> WayBack {
        self.attachment.as_ref().map_or(WayBack::None, Attachment::way_back)
    }

    /// Says that this process has left, but keeps its place ([`WayBack::SamePlace`]): it may end now
    /// as it likes, or [come back](Job::come_back). After [`Job::drain`].
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] as [`Job::leave`].
    pub fn rest(&self) -> Result<()> {
        self.shared.segment.set_presence(self.shared.slot, Presence::Finalized);
        let mismatch = self.unnoticed_mismatch();
        mismatch.map_or(Ok(()), |error| Err(error::in_call(&self.shared, "rest", error)))
    }

    /// Takes back that this process has left.
    pub fn come_back(&self) {
        self.shared.segment.set_presence(self.shared.slot, Presence::Attached);
    }

    fn leave_once(&mut self) -> Result<()> {
        let Some(attachment) = self.attachment.take() else { return Ok(()) };
        if fork::is_child() {
            // The place in the job is the parent's, and so are the threads that keep it.
            std::mem::forget(attachment);
            return Err(GateError::Forked.into());
        }
        self.server_handle.end();
        // Who could not send everything has not left in good order.
        let drained = self.shared.drain(None).and_then(|()| self.shared.say_goodbye());
        let drained = drained.map_err(|error| Error::of_wait(&self.shared, error, None, |_| None));
        let mismatch = self.unnoticed_mismatch();
        self.progress = None;
        self.shared.drop_ended_watchers();
        attachment.leave()?;
        drained?;
        mismatch.map_or(Ok(()), Err)
    }

    /// That members of a world are out of step, if nobody here was told so.
    fn unnoticed_mismatch(&self) -> Option<Error> {
        let mismatch = Fault::Mismatch(self.shared.unnoticed_mismatch()?);
        Some(ErrorKind::of_fault(mismatch, &self.shared.segment, |_| None).into())
    }
}

/// What all processes compute with in a job that this process makes.
fn settings() -> attach::Settings {
    let (settings, trouble) = tuning::settings()?;
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
