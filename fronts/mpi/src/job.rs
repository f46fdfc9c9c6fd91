//! The job of this process, from MPI_Init to MPI_Finalize.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use landeck::{Options, ThreadMode, World};

use crate::abi::{ErrorClass, THREAD_SERIALIZED};
use crate::communicator::Communicator;
use crate::mistake::Mistake;

/// What the job is used through, and what ends with it.
pub(crate) struct Job {
    world: World,
    myself: World,
}

/// Why the job cannot be joined or left.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct StartError(landeck::Error);

/// Why the job did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct JobFailure(#[from] landeck::Error);

const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;

/// Where between MPI_Init and MPI_Finalize the process is.
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// What [`current`] gives out: set once, before the phase is running, and never freed.
static CURRENT: AtomicPtr<Job> = AtomicPtr::new(std::ptr::null_mut());
/// The membership itself, until it is left or ended.
static MEMBERSHIP: Mutex<Option<landeck::Job>> = Mutex::new(None);
/// The process that joined. A child that it makes by fork has all of this, and is no member.
static MEMBER: AtomicU32 = AtomicU32::new(0);

/// The context of the world of this process alone, beside the one of the first world.
const MYSELF: u32 = 1 << 20 | 2;

/// Joins the job.
pub(crate) fn start(thread_level: c_int) -> Result<(), Mistake> {
    let begun = PHASE.compare_exchange(BEFORE, STARTING, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_err() {
        return Err(if begun == Err(AFTER) { Mistake::TooLate } else { Mistake::Again });
    }
    match join(thread_level) {
        Ok((membership, job)) => {
            *lock() = Some(membership);
            MEMBER.store(std::process::id(), Ordering::Release);
            CURRENT.store(Box::into_raw(Box::new(job)), Ordering::Release);
            PHASE.store(RUNNING, Ordering::Release);
            Ok(())
        }
        Err(error) => {
            PHASE.store(BEFORE, Ordering::Release);
            Err(Mistake::Start(StartError(error)))
        }
    }
}

/// Leaves the job.
pub(crate) fn finish() -> Result<(), Mistake> {
    current()?;
    PHASE.store(AFTER, Ordering::Release);
    // Somebody who ends the job at the same time has it.
    let Some(membership) = lock().take() else { return Ok(()) };
    membership.leave().map_err(|error| Mistake::Job(JobFailure(error)))
}

/// The job, while it can be used.
#[inline]
pub(crate) fn current() -> Result<&'static Job, Mistake> {
    match PHASE.load(Ordering::Acquire) {
        // SAFETY: `start` stored a pointer to a job that is never freed before it set this phase.
        RUNNING => Ok(unsafe { &*CURRENT.load(Ordering::Acquire) }),
        AFTER => Err(Mistake::TooLate),
        _ => Err(Mistake::TooEarly),
    }
}

/// Ends the whole job, and this process; in a child made by fork, only this process, and without
/// the handlers that its parent registered.
#[cold]
pub(crate) fn abort(code: c_int, why: &str) -> ! {
    PHASE.store(AFTER, Ordering::Release);
    let member = MEMBER.load(Ordering::Acquire);
    if member != 0 && member != std::process::id() {
        // SAFETY: ends the process at once; nothing of it is used afterwards.
        unsafe { libc::_exit(code) }
    }
    match lock().take() {
        Some(membership) => membership.abort(code, why),
        // Not joined, left, or another thread is ending it.
        None => std::process::exit(if code == 0 { 1 } else { code }),
    }
}

/// This process as messages name it.
pub(crate) fn own_name() -> String {
    let pid = std::process::id();
    // SAFETY: the pointer is null or that of a job that is never freed.
    match unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        Some(job) => format!("rank {} of {} (pid {pid})", job.world().rank, job.world().size),
        None => format!("pid {pid}"),
    }
}

impl Job {
    /// MPI_COMM_WORLD.
    #[inline]
    pub(crate) fn world(&'static self) -> Communicator {
        Communicator::new(&self.world)
    }

    /// MPI_COMM_SELF.
    #[inline]
    pub(crate) fn myself(&'static self) -> Communicator {
        Communicator::new(&self.myself)
    }
}

impl JobFailure {
    /// The class that the standard gives it.
    pub(crate) fn class(&self) -> ErrorClass {
        match &self.0 {
            landeck::Error::PeerFailed { .. } | landeck::Error::Ended => ErrorClass::ProcessAborted,
            landeck::Error::Truncated { .. } | landeck::Error::LengthMismatch { .. } => {
                ErrorClass::Truncate
            }
            landeck::Error::RequestGone => ErrorClass::Request,
            landeck::Error::NoMemory { .. } => ErrorClass::NoMemory,
            landeck::Error::NoSuchRank { .. } => ErrorClass::Rank,
            _ => ErrorClass::Other,
        }
    }
}

fn join(thread_level: c_int) -> Result<(landeck::Job, Job), landeck::Error> {
    // At level serialised any thread may call, though only one at a time.
    let is_single = thread_level < THREAD_SERIALIZED;
    let threads = if is_single { ThreadMode::Single } else { ThreadMode::Multiple };
    let membership = landeck::Job::join_with(Options { threads, ..Options::default() })?;
    let myself = membership.world_of(MYSELF, &[membership.own_peer()])?;
    let job = Job { world: membership.world(), myself };
    Ok((membership, job))
}

fn lock() -> std::sync::MutexGuard<'static, Option<landeck::Job>> {
    MEMBERSHIP.lock().unwrap_or_else(PoisonError::into_inner)
}
