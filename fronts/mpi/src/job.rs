//! The job of this process, and where between MPI_Init and MPI_Finalize it is.
//!
//! A process is in its job from the first MPI_Init or MPI_Session_init to MPI_Finalize, or to its end
//! where there are sessions: [`join`], [`leave`] and [`leave_at_exit`] count. A session may begin after
//! MPI_Finalize. MPI_COMM_WORLD and MPI_COMM_SELF are there between [`start`] and [`finish`]. A child made by fork has
//! all of this and is no member: what needs the job is refused there ([`current`], [`check_joined`]), as it is after
//! MPI_Finalize.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use landeck::unstable::JobInternals;
use landeck::unstable::joining::abort_word::AbortWord;
use landeck::unstable::memory::GateError;
use landeck::unstable::memory::abort::AbortClaim;
use landeck::unstable::memory::fork;
use landeck::unstable::memory::remark::{CallName, name_calls};
use landeck::{Loan, Options, Peer, ThreadMode, WayBack, World, raw};

use crate::abi::{COMM_SELF, COMM_WORLD, ERR_OTHER, THREAD_SERIALIZED};
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::{error_handler, freed};

/// The predefined communicators, which exist between MPI_Init and MPI_Finalize.
pub(crate) struct Job {
    /// MPI_COMM_WORLD.
    pub(crate) world: Arc<Communicator>,
    /// MPI_COMM_SELF.
    pub(crate) myself: Arc<Communicator>,
}

/// The membership in the job, and the number of its users.
struct Membership {
    job: Option<landeck::Job>,
    users: u32,
    /// The level of the first user; later users cannot change it.
    thread_level: c_int,
    /// The job was left, and there is no return.
    has_left_for_good: bool,
}

const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;

/// Where between MPI_Init and MPI_Finalize the process is.
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// The value of [`current`]. It is set once, before the phase is running, and never freed.
static CURRENT: AtomicPtr<Job> = AtomicPtr::new(std::ptr::null_mut());
/// How many need the membership, readable without the lock.
static USERS: AtomicU32 = AtomicU32::new(0);
static MEMBERSHIP: Mutex<Membership> =
    Mutex::new(Membership { job: None, users: 0, thread_level: 0, has_left_for_good: false });
/// The process that joined: in a child made by fork not this one.
static MEMBER: AtomicU32 = AtomicU32::new(0);
/// Whether one thread alone may call.
static IS_SINGLE: AtomicBool = AtomicBool::new(false);
/// The thread that called MPI_Init.
static MAIN_THREAD: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Why nobody comes back to the job of another launcher.
const LAUNCHER_RULE: &str = "and the launcher that has started it lets nobody come back; begin the session before \
                             MPI_Finalize, or start the program with `landeck run`";

/// The context of MPI_COMM_SELF; that of MPI_COMM_WORLD is the first world's.
const MYSELF: u32 = 1 << 20 | 2;

/// MPI_Init.
pub(crate) fn start(thread_level: c_int) -> Result<c_int, Mistake> {
    refuse_children()?;
    let begun = PHASE.compare_exchange(BEFORE, STARTING, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_err() {
        return Err(if begun == Err(AFTER) { too_late() } else { again() });
    }
    let made = join(thread_level).and_then(|provided| Ok((provided, make()?)));
    match made {
        Ok((provided, job)) => {
            CURRENT.store(Box::into_raw(Box::new(job)), Ordering::Release);
            MAIN_THREAD.store(this_thread(), Ordering::Release);
            PHASE.store(RUNNING, Ordering::Release);
            Ok(provided)
        }
        Err(mistake) => {
            PHASE.store(BEFORE, Ordering::Release);
            Err(mistake)
        }
    }
}

/// MPI_Finalize, after the attributes of MPI_COMM_SELF are gone.
pub(crate) fn finish() -> Result<(), Mistake> {
    current()?;
    PHASE.store(AFTER, Ordering::Release);
    leave()
}

/// Returns the function of MPI that this thread is in, for `landeck why`.
fn called() -> Option<CallName> {
    let name = landeck_c_boundary::caller::innermost(&["MPI_", "PMPI_"])?;
    Some(CallName::new(name.strip_prefix('P').unwrap_or(&name)))
}

/// Joins the job, if this process is not in it. Returns the thread level there is.
pub(crate) fn join(thread_level: c_int) -> Result<c_int, Mistake> {
    refuse_children()?;
    let mut membership = lock();
    if membership.has_left_for_good {
        let text = format!("this process has left its job with MPI_Finalize, {LAUNCHER_RULE}");
        return Err(Mistake::new(ERR_OTHER, text));
    }
    if let Some(job) = &membership.job {
        // MPI_Finalize, or the end of a session, may have left it.
        job.come_back()?;
    } else {
        error_handler::initial()?;
        // At level serialised any thread may call, though only one at a time.
        let is_single = thread_level < THREAD_SERIALIZED;
        IS_SINGLE.store(is_single, Ordering::Release);
        let threads = if is_single { ThreadMode::Single } else { ThreadMode::Multiple };
        let options = Options { threads, ..Options::default() };
        name_calls(called);
        membership.job = Some(as_member(landeck::Job::join_with(options)?)?);
        membership.thread_level = thread_level;
        MEMBER.store(std::process::id(), Ordering::Release);
    }
    membership.users += 1;
    USERS.store(membership.users, Ordering::Release);
    Ok(membership.thread_level)
}

/// Refuses a guest, who has no rank and whose memory goes to the next guest: a program of MPI is one
/// of the processes that its job began with.
fn as_member(job: landeck::Job) -> Result<landeck::Job, Mistake> {
    if job.segment().rank_of_peer(job.own_peer().0).is_some() {
        return Ok(job);
    }
    let restart = job.restart();
    let is_added = job.segment().slot_record(job.own_peer().0).is_added();
    job.leave()?;
    if let Some(landeck::Restarted { rank, number }) = restart {
        let text = format!(
            "this process was started again (--on-failure restart, number {number}) in the place of \
             rank {rank}; but MPI_COMM_WORLD has only the processes that the job began with, and MPI \
             has no way to enter it later. Start the job with --on-failure notify, so that the others \
             go on without the dead, or start the whole job again"
        );
        return Err(Mistake::new(ERR_OTHER, text));
    }
    if is_added {
        let text = "this process was started while its job ran (Job::start_on), and MPI_COMM_WORLD has only the \
                    processes that the job began with; start a program that joins a named group instead";
        return Err(Mistake::new(ERR_OTHER, text));
    }
    let text = "LANDECK_JOB names a job, but LANDECK_SLOT does not say which of its processes this \
                is; start the program with `landeck run`, or without both variables";
    Err(Mistake::new(ERR_OTHER, text))
}

/// Ends the use that a session makes of the job. Another session may come, so where nobody keeps its place
/// the process stays in the job until it ends, or until MPI_Finalize.
pub(crate) fn leave_at_exit() -> Result<(), Mistake> {
    extern "C" fn at_exit() {
        if fork::is_child() {
            return;
        }
        let mut membership = lock();
        // A process that ends between MPI_Init and MPI_Finalize, or in a session, has not left in good order.
        if membership.users > 0 {
            return;
        }
        let job = membership.job.take();
        drop(membership);
        // Nobody is left to tell that it went wrong.
        drop(job.map(landeck::Job::leave));
    }
    static IS_REGISTERED: Once = Once::new();
    let finished = finish_operations();
    let rested = lock().end_use()?;
    if rested == Rested::MustLeave {
        IS_REGISTERED.call_once(|| {
            // SAFETY: the function is one of this library, which is never unloaded. Where it cannot
            // be registered, the end of the process is all that the others see of it.
            let _ = unsafe { libc::atexit(at_exit) };
        });
    }
    finished
}

/// Leaves the job, unless another user in this process needs it.
pub(crate) fn leave() -> Result<(), Mistake> {
    let finished = finish_operations();
    let mut membership = lock();
    if membership.end_use()? != Rested::MustLeave {
        return finished;
    }
    // Another thread may be ending the job at the same time.
    let Some(job) = membership.job.take() else { return finished };
    membership.has_left_for_good = job.way_back() == WayBack::None;
    drop(membership);
    finished.and(job.leave().map_err(Mistake::from))
}

/// Before the last use of the membership ends: brings requests that the program has freed to their end, and waits until
/// what was sent is out of this process's hands; after MPI_Finalize it also takes leave. Nothing is locked meanwhile:
/// another thread may end the job.
fn finish_operations() -> Result<(), Mistake> {
    let membership = lock();
    let is_last = membership.users == 1;
    let world = membership.job.as_ref().filter(|_| is_last).map(landeck::Job::world);
    drop(membership);
    let Some(world) = world else { return Ok(()) };
    freed::finish_all();
    Ok(if is_finalized() { raw::take_leave(&world) } else { raw::drain(&world) }?)
}

/// The state of the membership after one of its users has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rested {
    /// Others use it.
    StillUsed,
    /// The process has left, and its place is kept: our launcher has started it.
    Away,
    /// The last use is over, and the launcher does not keep the place.
    MustLeave,
}

impl Membership {
    /// Counts a use less.
    fn end_use(&mut self) -> Result<Rested, Mistake> {
        self.users = self.users.saturating_sub(1);
        USERS.store(self.users, Ordering::Release);
        match &self.job {
            _ if self.users > 0 => Ok(Rested::StillUsed),
            Some(job) if job.way_back() == WayBack::SamePlace && is_finalized() => {
                job.rest()?;
                Ok(Rested::Away)
            }
            // Before MPI_Init it may yet come to MPI_COMM_WORLD, which the others wait for. Over hosts it ends with a
            // goodbye, which its connections need.
            Some(job) if job.way_back() == WayBack::SamePlace && !job.spans_hosts() => {
                job.pause()?;
                Ok(Rested::Away)
            }
            _ => Ok(Rested::MustLeave),
        }
    }
}

/// Returns the predefined communicators, or an error before MPI_Init and after MPI_Finalize.
#[inline]
pub(crate) fn current() -> Result<&'static Job, Mistake> {
    refuse_children()?;
    if_running().ok_or_else(not_running)
}

/// Returns the predefined communicators, or `None` before MPI_Init and after MPI_Finalize.
#[inline(always)]
pub(crate) fn if_running() -> Option<&'static Job> {
    let is_running = PHASE.load(Ordering::Acquire) == RUNNING;
    // SAFETY: `start` stored a pointer to a job that is never freed before it set this phase.
    is_running.then(|| unsafe { &*CURRENT.load(Ordering::Acquire) })
}

#[cold]
fn not_running() -> Mistake {
    if is_finalized() { too_late() } else { too_early() }
}

/// Checks that the process is in its job: between MPI_Init and MPI_Finalize, or in a session.
#[inline]
pub(crate) fn check_joined() -> Result<(), Mistake> {
    refuse_children()?;
    if is_joined() { Ok(()) } else { Err(not_running()) }
}

/// Returns whether the process is in its job. A child made by fork answers as its parent would.
#[inline]
pub(crate) fn is_joined() -> bool {
    USERS.load(Ordering::Acquire) > 0
}

/// Refuses a child made by fork: what it did would pass for its parent's.
#[inline]
fn refuse_children() -> Result<(), Mistake> {
    if fork::is_child() { Err(made_by_fork()) } else { Ok(()) }
}

/// Uses the membership itself, while the process is in its job.
pub(crate) fn with_membership<R>(
    work: impl FnOnce(&landeck::Job) -> Result<R, Mistake>,
) -> Result<R, Mistake> {
    check_joined()?;
    lock().job.as_ref().map_or_else(|| Err(too_late()), work)
}

/// All processes of the job, by their numbers.
pub(crate) fn everybody() -> Result<World, Mistake> {
    with_membership(|membership| Ok(membership.world()))
}

/// Whether MPI_COMM_WORLD has processes on several hosts.
pub(crate) fn world_spans_hosts() -> Result<bool, Mistake> {
    with_membership(|membership| Ok(membership.segment().plan().world_spans_hosts()))
}

/// The rank of a process among all that the job began with; the number of these for another process.
pub(crate) fn rank_of(peer: Peer) -> Result<usize, Mistake> {
    with_membership(|membership| {
        let segment = membership.segment();
        Ok(segment.rank_of_peer(peer.0).unwrap_or(segment.plan().ranks) as usize)
    })
}

/// This process as the members of groups are named.
pub(crate) fn own_peer() -> Result<Peer, Mistake> {
    with_membership(|membership| Ok(membership.own_peer()))
}

/// Memory of the shared heap; none if this process is in no job, or if less than half of the heap would
/// be left for messages.
pub(crate) fn lend_memory(bytes: usize) -> Result<Option<Loan<u8>>, Mistake> {
    let membership = lock();
    let Some(job) = &membership.job else { return Ok(None) };
    let half = job.segment().plan().heap_bytes_per_process / 2;
    if job.heap_in_use()?.saturating_add(bytes as u64) > half {
        return Ok(None);
    }
    match job.loan(bytes) {
        Ok(loan) => Ok(Some(loan)),
        // The room there is lies in pieces.
        Err(landeck::Error { kind: landeck::ErrorKind::Heap(_), .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether MPI_Init was called.
pub(crate) fn is_initialized() -> bool {
    matches!(PHASE.load(Ordering::Acquire), RUNNING | AFTER)
}

/// Whether MPI_Finalize was called; in a child made by fork of a process that is in MPI, all is over too.
pub(crate) fn is_finalized() -> bool {
    match PHASE.load(Ordering::Acquire) {
        RUNNING => fork::is_child(),
        phase => phase == AFTER,
    }
}

/// The thread level there is.
pub(crate) fn thread_level() -> Result<c_int, Mistake> {
    check_joined()?;
    Ok(lock().thread_level)
}

/// Whether one thread alone may call, as the program has said when it joined.
#[inline]
pub(crate) fn is_single() -> bool {
    IS_SINGLE.load(Ordering::Relaxed)
}

/// Whether this thread called MPI_Init.
pub(crate) fn is_main_thread() -> Result<bool, Mistake> {
    check_joined()?;
    Ok(MAIN_THREAD.load(Ordering::Acquire) == this_thread())
}

/// Ends the whole job, and this process; in a child made by fork, only this process, and without
/// the handlers that its parent registered.
#[cold]
pub(crate) fn abort(code: c_int, why: &str) -> ! {
    if fork::is_child() {
        fork::end_child(code)
    }
    PHASE.store(AFTER, Ordering::Release);
    flush_output();
    // The guard goes before the process ends: the handlers of its exit lock again.
    let job = lock().job.take();
    match job {
        Some(job) => job.abort(code, why),
        // Not joined, left, or another thread is ending it.
        None => std::process::exit(if code & 0xff == 0 { 1 } else { code }),
    }
}

/// Writes out what the program has printed, unless another thread is printing just now: a launcher
/// that is told of an abort kills, which leaves no time for that.
fn flush_output() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn ftrylockfile(stream: *mut libc::FILE) -> c_int;
        fn funlockfile(stream: *mut libc::FILE);
    }
    // SAFETY: the C library's own stream, which is there for as long as the process; its lock may
    // be taken again by the thread that has it.
    unsafe {
        if !stdout.is_null() && ftrylockfile(stdout) == 0 {
            libc::fflush(stdout);
            funlockfile(stdout);
        }
    }
}

/// Says on standard error why this process is about to call [`abort`]: `text`, then what ends, then `rule` if
/// there is one. Of the processes that abort their job for one `cause` only the first says so. A process with
/// another cause adds its `text`, but for an error that `is_consequence` of the end of another process.
#[cold]
pub(crate) fn say_why(text: &str, rule: &str, cause: &str, is_consequence: bool) {
    let ends = |what: &str| fork::say(&format!("{text}. {what}{rule}."));
    if fork::is_child() {
        return ends("This process ends alone and the job goes on");
    }
    // The guard goes before the wait for another process.
    let word = |job: &landeck::Job| AbortWord::new(job.segment().clone(), job.process());
    let Some(word) = lock().job.as_ref().map(word) else { return ends("This process ends") };
    match word.claim(cause) {
        AbortClaim::First => {
            ends("The job is aborted");
            word.said();
        }
        AbortClaim::OtherCause if !is_consequence => fork::say(&format!("{text}.")),
        AbortClaim::OtherCause | AbortClaim::Said => {}
    }
}

/// This process as messages name it.
pub(crate) fn own_name() -> String {
    let (pid, member) = (std::process::id(), MEMBER.load(Ordering::Acquire));
    // SAFETY: the pointer is null or that of a job that is never freed.
    let job = unsafe { CURRENT.load(Ordering::Acquire).as_ref() };
    let rank = job.map(|job| format!("rank {} of {}", job.world.rank, job.world.size));
    match (rank, fork::is_child()) {
        (Some(rank), false) => format!("{rank} (pid {pid})"),
        (None, false) => format!("pid {pid}"),
        (Some(rank), true) => format!("pid {pid} (made by fork from {rank}, pid {member})"),
        (None, true) => format!("pid {pid} (made by fork from pid {member})"),
    }
}

fn make() -> Result<Job, Mistake> {
    with_membership(|membership| {
        let predefined = |handle, name, world| -> Result<_, Mistake> {
            Ok(Arc::new(Communicator::predefined(handle, name, world)?))
        };
        let myself = membership.world_of(MYSELF, &[membership.own_peer()])?;
        Ok(Job {
            world: predefined(COMM_WORLD, "MPI_COMM_WORLD", membership.world())?,
            myself: predefined(COMM_SELF, "MPI_COMM_SELF", myself)?,
        })
    })
}

/// An address that no other thread has.
fn this_thread() -> *mut u8 {
    thread_local! {
        static OWN: u8 = const { 0 };
    }
    OWN.with(|own| std::ptr::from_ref(own).cast_mut())
}

fn lock() -> MutexGuard<'static, Membership> {
    MEMBERSHIP.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn made_by_fork() -> Mistake {
    landeck::Error::from(GateError::Forked).into()
}

#[cold]
fn too_early() -> Mistake {
    Mistake::new(ERR_OTHER, "MPI is not initialised; call MPI_Init first")
}

#[cold]
fn too_late() -> Mistake {
    Mistake::new(ERR_OTHER, "MPI is finalised; this function may not be called after MPI_Finalize")
}

#[cold]
fn again() -> Mistake {
    Mistake::new(
        ERR_OTHER,
        "MPI was initialised before; a program calls MPI_Init or MPI_Init_thread once",
    )
}
